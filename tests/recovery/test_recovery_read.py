"""Reading episodes: CSV and parquet alike, every fault in its row and column, hostile files, names that look alike."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from faultbook.errors import DataError
from faultbook.recovery.pairs import pair
from faultbook.recovery.read import read_episodes
from faultbook.tables import Episodes

HEADER = "task_id,condition,delay,action,success"
SMALL = f"{HEADER}\nt1,stale2,,none,false\nt1,stale2,0,refresh,true\nt1,stale2,4,refresh,false\n"


def write(folder: Path, text: str | bytes, name: str = "episodes.csv") -> Path:
    file = folder / name
    if isinstance(text, bytes):
        file.write_bytes(text)
    else:
        file.write_text(text, encoding="utf-8")
    return file


def rows(folder: Path, *lines: str, header: str = HEADER) -> Path:
    return write(folder, "\n".join([header, *lines]) + "\n")


def fault(file: Path) -> DataError:
    """The first problem of a file; read leniently it is the first one listed."""
    with pytest.raises(DataError) as strict:
        read_episodes(file)
    _, problems = read_episodes(file, strict=False)
    error = strict.value
    parts = [error.file, error.row, error.column, error.problem, error.mend]
    assert problems.iloc[0].tolist() == ["" if part is None else str(part) for part in parts]
    assert "\n" not in str(error)
    assert len(str(error)) < 1_500
    return error


# ---- what is read -------------------------------------------------------------------------------------------------


def test_five_columns_suffice(tmp_path: Path) -> None:
    episodes = read_episodes(write(tmp_path, SMALL))
    Episodes.validate(episodes)
    assert list(episodes.columns) == list(Episodes.to_schema().columns)
    assert episodes["delay"].isna().tolist() == [True, False, False]
    assert episodes["success"].tolist() == [False, True, False]
    assert episodes["replicate"].tolist() == [0, 0, 0]
    optional = ["cohort", "source", "factual_success", "ended_before", "prefix_hash", "n_actions"]
    assert episodes[optional].isna().all(axis=None)
    assert pair(episodes)["tau"].tolist() == [1, 0]


def test_every_column(tmp_path: Path) -> None:
    header = (
        f"x_progress,{HEADER},replicate,cohort,source,factual_success,ended_before,prefix_hash,n_actions,x_noop,notes"
    )
    episodes = read_episodes(
        rows(tmp_path, "0.25,7,clean,2.0,none,1,3,fit,alfworld,TRUE,0,abc,12,,free text", header=header)
    )
    assert list(episodes.columns) == [*Episodes.to_schema().columns, "x_progress", "x_noop"]
    row = episodes.iloc[0]
    assert row[["task_id", "condition", "delay", "action", "replicate"]].tolist() == ["7", "clean", 2, "none", 3]
    assert row[["success", "factual_success", "ended_before"]].tolist() == [True, True, False]
    assert row[["cohort", "source", "prefix_hash", "n_actions"]].tolist() == ["fit", "alfworld", "abc", 12]
    assert row["x_progress"] == 0.25
    assert np.isnan(row["x_noop"])


@pytest.mark.parametrize("cell", ["true", "True", " TRUE ", "1", "1.0"])
def test_spellings_of_true(tmp_path: Path, cell: str) -> None:
    assert read_episodes(rows(tmp_path, f"t,clean,0,none,{cell}"))["success"].tolist() == [True]


@pytest.mark.parametrize("cell", ["false", "False", "0", "0.0"])
def test_spellings_of_false(tmp_path: Path, cell: str) -> None:
    assert read_episodes(rows(tmp_path, f"t,clean,0,none,{cell}"))["success"].tolist() == [False]


@pytest.mark.parametrize("cell", ["", "NA", "nan", "<NA>", "null", "None"])
def test_spellings_of_missing(tmp_path: Path, cell: str) -> None:
    header = f"{HEADER},ended_before,n_actions,x_a,replicate"
    row = read_episodes(rows(tmp_path, f"t,clean,{cell},none,1,{cell},{cell},{cell},{cell}", header=header)).iloc[0]
    assert row[["delay", "ended_before", "n_actions", "x_a"]].isna().all()
    assert row["replicate"] == 0


def test_names_that_mean_nothing_elsewhere_are_names_here(tmp_path: Path) -> None:
    episodes = read_episodes(rows(tmp_path, "NA,missing,0,none,1", "null,missing,0,none,1"))
    assert episodes["task_id"].tolist() == ["NA", "null"]
    assert episodes["condition"].tolist() == ["missing", "missing"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [(["1", "0.5", "-2e3", ""], [1, 0.5, -2000, np.nan]), (["true", "False", "1", "NA"], [1, 0, 1, np.nan])],
)
def test_features_are_numbers(tmp_path: Path, cells: list[str], values: list[float]) -> None:
    lines = [f"t{k},clean,0,none,1,{cell}" for k, cell in enumerate(cells)]
    features = read_episodes(rows(tmp_path, *lines, header=f"{HEADER},x_a"))["x_a"]
    assert features.dtype == np.float64
    np.testing.assert_array_equal(features, values)


def test_a_byte_order_mark_quotes_and_line_ends(tmp_path: Path) -> None:
    text = f'\ufeff{HEADER}\r\n"a, ""b""",stale2,0,none,true\r\n\r\n"two\nlines",stale2,0,none,true\r\n'
    episodes = read_episodes(write(tmp_path, text.encode()))
    assert episodes["task_id"].tolist() == ['a, "b"', "two\nlines"]


def test_a_folder_of_files(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "b.csv")
    (tmp_path / "more").mkdir()
    frame = read_episodes(write(tmp_path, f"{HEADER},x_a\nt0,clean,0,none,1,2\n", "a.csv"))
    frame.assign(task_id="t2").to_parquet(tmp_path / "more" / "c.parquet")
    write(tmp_path, "not read", "README.md")
    episodes = read_episodes(tmp_path)
    assert episodes["task_id"].tolist() == ["t0", "t1", "t1", "t1", "t2"]
    assert episodes["x_a"].isna().tolist() == [False, True, True, True, False]


# ---- parquet ------------------------------------------------------------------------------------------------------

FULL = pd.DataFrame(
    {
        "task_id": ["t1", "t1"],
        "condition": ["stale2", "stale2"],
        "delay": pd.array([None, 4], dtype="Int64"),
        "action": ["none", "refresh"],
        "replicate": [0, 1],
        "success": [True, False],
        "cohort": ["fit", None],
        "factual_success": pd.array([True, None], dtype="boolean"),
        "ended_before": pd.array([None, False], dtype="boolean"),
        "n_actions": pd.array([10, None], dtype="Int64"),
        "x_a": [0.1, np.nan],
        "x_b": [True, False],
    }
)


def test_parquet_and_csv_say_the_same(tmp_path: Path) -> None:
    FULL.to_csv(tmp_path / "a.csv", index=False)
    FULL.to_parquet(tmp_path / "a.parquet")
    one, other = read_episodes(tmp_path / "a.csv"), read_episodes(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(one, other)
    other.to_parquet(tmp_path / "b.parquet")
    pd.testing.assert_frame_equal(read_episodes(tmp_path / "b.parquet"), other)


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": pd.Categorical(["t1", "t1"]), "action": pd.Categorical(["none", "refresh"])},
        {"delay": [np.nan, 4.0], "success": [1, 0], "n_actions": [10.0, np.nan]},
        {"success": ["true", "false"], "replicate": ["0", "1"], "x_a": ["0.1", None]},
        {"success": [1.0, 0.0], "x_b": [1, 0]},
        {"x_a": np.array([0.1, np.nan], dtype="float64"), "replicate": np.array([0, 1], dtype="uint8")},
    ],
)
def test_types_that_other_tools_write(tmp_path: Path, change: dict[str, Any]) -> None:
    FULL.to_parquet(tmp_path / "a.parquet")
    FULL.assign(**change).to_parquet(tmp_path / "b.parquet", index=True)
    pd.testing.assert_frame_equal(read_episodes(tmp_path / "a.parquet"), read_episodes(tmp_path / "b.parquet"))


def test_task_numbers_are_text(tmp_path: Path) -> None:
    FULL.assign(task_id=[12, 13]).to_parquet(tmp_path / "a.parquet")
    assert read_episodes(tmp_path / "a.parquet")["task_id"].tolist() == ["12", "13"]


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("task_id", [1.5, 2.0], "task_id is 1.5, not a name"),
        ("task_id", [b"t", b"u"], "task_id is b't', not a name"),
        ("success", [2, 0], "success is 2, not a boolean"),
        ("replicate", [True, False], "replicate is True, not a whole number"),
        ("delay", [-1, 0], "delay is -1, not a whole number"),
        ("n_actions", [0.5, 1], "n_actions is 0.5, not a whole number"),
        ("x_a", [np.inf, 1], "x_a is inf, not a finite number"),
        ("x_a", ["high", "1"], "x_a is 'high', not a finite number"),
    ],
)
def test_values_of_parquet_that_cannot_be_read(tmp_path: Path, column: str, values: list[Any], found: str) -> None:
    file = tmp_path / "a.parquet"
    FULL.assign(**{column: values}).to_parquet(file)
    error = fault(file)
    assert (error.problem, error.row, error.column) == (found, 0, column)


def test_nested_columns_and_columns_twice(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    FULL.assign(x_a=[[1], [2]]).to_parquet(file)
    assert fault(file).problem == "holds lists or structures"
    table = pa.Table.from_arrays([pa.array(["t"])] * 2, names=["task_id", "task_id"])
    parquet.write_table(table, file)
    assert "columns twice" in fault(file).problem


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 64 + b"PAR1", SMALL.encode()])
def test_what_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    assert "not a parquet file" in fault(write(tmp_path, content, "a.parquet")).problem


# ---- located faults -----------------------------------------------------------------------------------------------

WIDE = f"{HEADER},replicate,ended_before,factual_success,n_actions,x_a"


@pytest.mark.parametrize(
    ("line", "column", "found"),
    [
        (",clean,0,none,1,0,,,,", "task_id", "no task_id"),
        ("t,,0,none,1,0,,,,", "condition", "no condition"),
        ("t,clean,0,,1,0,,,,", "action", "no action"),
        ("t,clean,0,none,,0,,,,", "success", "no success"),
        ("t,clean,0,none,nan,0,,,,", "success", "no success"),
        ("t,clean,,refresh,1,0,,,,", "delay", "no delay"),
        ("t,clean,0,none,yes,0,,,,", "success", "success is 'yes', not a boolean"),
        ("t,clean,0,none,2,0,,,,", "success", "success is '2', not a boolean"),
        ("t,clean,-1,none,1,0,,,,", "delay", "delay is '-1', not a whole number"),
        ("t,clean,1.5,none,1,0,,,,", "delay", "delay is '1.5', not a whole number"),
        ("t,clean,１,none,1,0,,,,", "delay", "delay is '１', not a whole number"),
        ("t,clean,9999999999,none,1,0,,,,", "delay", "delay is '9999999999', not a whole number"),
        ("t,clean,0,none,1,a,,,,", "replicate", "replicate is 'a', not a whole number"),
        ("t,clean,0,none,1,0,maybe,,,", "ended_before", "ended_before is 'maybe', not a boolean"),
        ("t,clean,0,none,1,0,,maybe,,", "factual_success", "factual_success is 'maybe', not a boolean"),
        ("t,clean,0,none,1,0,,,many,", "n_actions", "n_actions is 'many', not a whole number"),
        ("t,clean,0,none,1,0,,,,inf", "x_a", "x_a is 'inf', not a finite number"),
        ("t,clean,0,none,1,0,,,,1e999", "x_a", "x_a is '1e999', not a finite number"),
        ('t,clean,0,none,1,0,,,,"1,5"', "x_a", "x_a is '1,5', not a finite number"),
    ],
)
def test_cells_that_cannot_be_read(tmp_path: Path, line: str, column: str, found: str) -> None:
    error = fault(rows(tmp_path, "good,clean,0,none,1,0,,,,", line, header=WIDE))
    assert (error.problem, error.row, error.column) == (found, 3, column)


def test_lenient_reading_keeps_what_can_be_used(tmp_path: Path) -> None:
    lines = [
        "t1,clean,0,none,1,0,,,,0.5",
        "t2,clean,0,none,yes,0,,,,0.5",  # no outcome: left out
        "t3,clean,0,none,1,0,maybe,,x,low",  # facts that cannot be read are missing
        "t4,clean,0,none,1,x,,,,",
        ",clean,,refresh,,0,,,,",  # one row, reported for what makes it useless first
    ]
    episodes, problems = read_episodes(rows(tmp_path, *lines, header=WIDE), strict=False)
    assert episodes["task_id"].tolist() == ["t1", "t3"]
    assert episodes.loc[1, ["ended_before", "n_actions", "x_a"]].isna().all()
    assert problems[["row", "column"]].to_numpy().tolist() == [
        ["6", "task_id"],
        ["5", "replicate"],
        ["3", "success"],
        ["4", "ended_before"],
        ["4", "n_actions"],
        ["4", "x_a"],
    ]


def test_branches_that_stand_twice(tmp_path: Path) -> None:
    file = rows(
        tmp_path, "t,clean,0,none,1", "t,clean,0,refresh,1", "t,clean,0,none,0", "t,clean,,none,0", "t,clean,,none,0"
    )
    error = fault(file)
    assert error.row == 4
    assert "task 't', condition 'clean', delay 0, action 'none', replicate 0 stands here and in row 2" in error.problem
    assert "replicate" in str(error.mend)
    episodes, problems = read_episodes(file, strict=False)
    assert len(episodes) == 3
    assert problems["row"].tolist() == ["4", "6"]
    assert episodes["success"].tolist() == [True, True, False]


def test_branches_that_stand_in_two_files(tmp_path: Path) -> None:
    write(tmp_path, f"{HEADER}\nt,clean,0,none,1\n", "a.csv")
    write(tmp_path, f"{HEADER}\nt,clean,0,none,1\n", "b.csv")
    error = fault(tmp_path)
    assert str(error.file).endswith("b.csv")
    assert "row 2 of " in error.problem
    assert "a.csv" in error.problem


@pytest.mark.parametrize("missing", HEADER.split(","))
def test_a_column_that_is_missing(tmp_path: Path, missing: str) -> None:
    header = ",".join(name for name in HEADER.split(",") if name != missing)
    error = fault(rows(tmp_path, "a,b,c,d", header=header))
    assert f"columns missing: {missing}" in error.problem
    assert error.row == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "not a CSV table"),
        (HEADER.encode(), "no episode that can be used"),
        (b"\xff\xfe" + SMALL.encode("utf-16-le"), "not UTF-8 text"),
        (SMALL.encode() + b"t,clean\n", "2 cells where the header has 5"),
        (SMALL.encode() + b't,"clean,0,none,1\n', "not a CSV table"),
        (f"{HEADER},success\n".encode(), "columns twice"),
        (f"{HEADER}\n{'t' * 200_000},clean,0,none,1\n".encode(), "field larger than field limit"),
        (f"{HEADER}\n{'t' * 600},clean,0,none,1\n".encode(), "not a name"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, content: bytes, found: str) -> None:
    assert found in str(fault(write(tmp_path, content)))


def test_nothing_is_there(tmp_path: Path) -> None:
    for strict in (True, False):
        with pytest.raises(DataError, match="no such file"):
            read_episodes(tmp_path / "nowhere.csv", strict=strict)
        with pytest.raises(DataError, match="no episodes here"):
            read_episodes(tmp_path, strict=strict)


def test_a_broken_file_leaves_the_others(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "a.csv")
    write(tmp_path, b"\xff", "b.csv")
    episodes, problems = read_episodes(tmp_path, strict=False)
    assert (len(episodes), len(problems)) == (3, 1)


# ---- names that look alike ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "action", "near"),
    [
        ("Clean", "none", "clean"),
        ("stale-2", "none", "stale2"),
        ("stael2", "none", "stale2"),
        ("clear", "none", "clean"),
        ("clean", "None", "none"),
        ("clean", "refesh", "refresh"),
        ("clean", "re-plan", "replan"),
        ("clean", "Ablated Refresh", "ablated_refresh"),
        ("clean", "ablatedrefresh", "ablated_refresh"),
    ],
)
def test_a_name_that_looks_like_a_known_one(tmp_path: Path, condition: str, action: str, near: str) -> None:
    file = rows(tmp_path, "t1,missing,1,refresh,1", "t1,missing,1,none,1", f"t2,{condition},1,{action},1")
    error = fault(file)
    assert f"in 1 row, which looks like '{near}'" in error.problem
    assert (error.row, error.column) == (4, "action" if condition == "clean" else "condition")
    episodes, problems = read_episodes(file, strict=False)
    assert episodes.loc[2, ["condition", "action"]].tolist() == [condition, action]  # kept as written
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("condition", "action"),
    [("stale3", "none"), ("stale", "none"), ("delayed", "none"), ("clean", "rollback"), ("clean", "refresh2")],
)
def test_names_of_ones_own(tmp_path: Path, condition: str, action: str) -> None:
    episodes = read_episodes(rows(tmp_path, "t,stale2,1,refresh,1", f"t,{condition},1,{action},1"))
    assert episodes.loc[1, ["condition", "action"]].tolist() == [condition, action]


def test_two_names_at_one_fork_are_both_meant(tmp_path: Path) -> None:
    lines = ["t1,clean,0,none,1", "t1,clean,0,replan,1", "t1,clean,0,replay,0"]
    assert read_episodes(rows(tmp_path, *lines))["action"].tolist() == ["none", "replan", "replay"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("ended-before", "ended_before"), ("replicat", "replicate"), ("X_noop", "x_…"), ("x-noop", "x_…")],
)
def test_a_column_that_looks_like_a_known_one(tmp_path: Path, name: str, near: str) -> None:
    error = fault(rows(tmp_path, "t,clean,0,none,1,1", header=f"{HEADER},{name}"))
    assert f"'{near}' is" in error.problem
    assert (error.row, error.column) == (1, name)


@pytest.mark.parametrize("name", ["notes", "seconds", "model", "tasks", "x"])
def test_columns_of_ones_own_are_left_out(tmp_path: Path, name: str) -> None:
    assert name not in read_episodes(rows(tmp_path, "t,clean,0,none,1,1", header=f"{HEADER},{name}"))


# ---- hostile files ------------------------------------------------------------------------------------------------


def test_control_characters_do_not_reach_the_message(tmp_path: Path) -> None:
    error = fault(rows(tmp_path, "t,clean,0,none,\x1b[31mred\u202e"))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)


CELLS = st.one_of(
    st.sampled_from(
        ["t1", "clean", "stale2", "none", "refresh", "true", "0", "1", "", "4", "NA", "None", "-1", "1e400"]
    ),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=6),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(CELLS, min_size=7, max_size=7), max_size=6))
def test_any_table_is_read_or_refused_in_one_line(tmp_path: Path, table: list[list[str]]) -> None:
    frame = pd.DataFrame(table, columns=[*HEADER.split(","), "replicate", "x_a"], dtype=object)
    file = tmp_path / "any.csv"
    frame.to_csv(file, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            episodes, problems = read_episodes(file, strict=False)
        except DataError as error:
            assert "\n" not in str(error)  # noqa: PT017  # only sometimes
            return
        Episodes.validate(episodes)
        assert len(episodes) <= len(frame)
        if problems.empty:
            pd.testing.assert_frame_equal(read_episodes(file), episodes)
        else:
            with pytest.raises(DataError):
                read_episodes(file)
        if not episodes.empty and not problems["column"].isin(["condition", "action"]).any():
            pair(episodes, strict=False)


def test_a_large_file_in_both_forms(tmp_path: Path) -> None:
    n = 20_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "task_id": np.char.add("task ", (np.arange(n) // 4).astype(str)),
            "condition": "stale2",
            "delay": np.arange(n) // 2 % 2,
            "action": np.array(["none", "refresh"])[np.arange(n) % 2],
            "success": rng.random(n) < 0.5,
            "x_a": rng.random(n),
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    one, other = read_episodes(tmp_path / "a.csv"), read_episodes(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(one, other)
    assert len(one) == n
