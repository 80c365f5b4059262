"""Parquet files with a label a log, and the one that an engine without nested columns has emptied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultbook.attribution.read import read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]


def _row(step: str = "1", **rest: Any) -> dict[str, Any]:
    names = ("Product Manager", "Engineer", "Engineer")
    history = [
        {"content": f"t{number}", "name": name, "role": "assistant", "step": number}
        for number, name in enumerate(names)
    ]
    row = {"question_ID": "q", "question": "Q?", "ground_truth": "4711", "history": history}
    return row | {"mistake_agent": "Engineer", "mistake_step": step, "mistake_reason": "r", **rest}


def test_agentracer(write_parquet: Write, rows: Rows) -> None:
    tables = read_logs(write_parquet("coding.parquet", [_row(), _row("2")]))
    assert rows(tables.logs, "log_id", "split", "n_steps", "source", "release") == [
        ("coding/0", "coding", 3, "agentracer", None),
        ("coding/1", "coding", 3, "agentracer", None),
    ]
    assert rows(tables.steps, "agent")[:2] == [("Product Manager",), ("Engineer",)]
    assert rows(tables.annotations[tables.annotations["is_failure"]], "log_id", "step", "agent", "reason") == [
        ("coding/0", 1, "Engineer", "r"),
        ("coding/1", 2, "Engineer", "r"),
    ]
    assert "4711" not in tables.annotations.to_csv() + tables.logs.to_csv()


def test_the_parquet_files_of_who_and_when(write_parquet: Write, rows: Rows) -> None:
    # the card has Hand-Crafted.parquet and Algorithm-Generated.parquet
    write_parquet("Hand-Crafted.parquet", [_row()])
    folder = write_parquet("other.parquet", [_row(is_corrected=False)]).parent
    tables = read_logs(folder)
    assert rows(tables.logs, "log_id", "source", "release") == [
        ("hand-crafted/row-0", "who-and-when", "parquet"),
        ("other/row-0", "who-and-when", "parquet"),
    ]


@pytest.mark.parametrize("history", [None, []])
@pytest.mark.parametrize("name", ["coding", "Hand-Crafted"])
def test_a_file_whose_histories_are_all_empty_is_refused(write_parquet: Write, history: Any, name: str) -> None:
    # with pandas and fastparquet, `history` is silently None in all rows
    typed = _row()["history"][:0]
    file = write_parquet(f"{name}.parquet", [_row(history=typed if history == [] else None) for _ in range(3)])
    with pytest.raises(DataError, match=r"all 3 histories are empty.*write it with pyarrow") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "history")
    tables, problems = read_logs(file, strict=False)
    assert tables.logs.empty
    assert len(problems) == 1


def test_one_empty_history_is_located(write_parquet: Write) -> None:
    file = write_parquet("coding.parquet", [_row(), _row(history=None)])
    with pytest.raises(DataError, match="history is None, not a list") as caught:
        read_logs(file)
    assert (caught.value.row, caught.value.column) == (1, "history")


def test_a_label_is_located_by_its_row(write_parquet: Write) -> None:
    file = write_parquet("coding.parquet", [_row(), _row("three")])
    with pytest.raises(DataError, match="step is 'three'") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.row) == (file, 1)


def test_a_turn_that_counts_otherwise_is_located(write_parquet: Write) -> None:
    row = _row()
    row["history"] = [{**turn, "step": turn["step"] + 1} for turn in row["history"]]
    with pytest.raises(DataError, match="step is 1, but its place in the history is 0"):
        read_logs(write_parquet("coding.parquet", [row]))


def test_an_empty_file_holds_no_log(write_parquet: Write) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    file = write_parquet("coding.parquet", [_row()])
    parquet.write_table(pa.Table.from_pylist([_row()]).slice(0, 0), file)
    assert read_logs(file).logs.empty


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"{}", b"\xff" * 1_000])
def test_what_is_no_parquet_file_is_located(write: Write, content: bytes) -> None:
    file = write("coding.parquet", content)
    with pytest.raises(DataError, match="not a parquet file that can be read") as caught:
        read_logs(file)
    assert caught.value.file == file
    assert len(str(caught.value)) < 500
    assert len(read_logs(file, strict=False)[1]) == 1


@pytest.mark.slow
def test_a_file_that_is_damaged_in_the_middle_is_located(write_parquet: Write) -> None:
    file = write_parquet("coding.parquet", [_row() for _ in range(200)])
    whole = file.read_bytes()
    for at in range(4, len(whole) - 200, 97):
        file.write_bytes(whole[:at] + b"\xff" * 40 + whole[at + 40 :])
        tables, problems = read_logs(file, strict=False)
        assert len(tables.logs) <= 200
        assert set(problems["file"]) <= {str(file)}


def test_other_columns_are_no_format(write_parquet: Write) -> None:
    with pytest.raises(DataError, match=r"no format that is known here \(columns \['a'\]\); looked for parquet with"):
        read_logs(write_parquet("x.parquet", [{"a": 1}]))
