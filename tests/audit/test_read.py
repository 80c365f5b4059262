"""Reading printed numbers: what is accepted, and where each refusal points."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from faultbook.audit import read_reported
from faultbook.errors import DataError
from faultbook.tables import KINDS, Reported

REPORTED = Path(__file__).resolve().parents[2] / "data" / "reported"
HEADER = "source,table,row,column,printed,unit,kind"
GOOD = "doc,t,r,c,5,count,count"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write lines, or bytes, to a CSV file of a fresh folder."""

    def run(*lines: str | bytes, name: str = "a.csv") -> Path:
        file = tmp_path / name
        file.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
        return file

    return run


# ---- what is accepted -------------------------------------------------------------------------------------------


def test_a_file_becomes_the_reported_table(write: Write) -> None:
    file = write(
        HEADER + ",n,note",
        'doc,evaluation,overall,success with,70.33%,%,rate,300,"first, of two"',
        "doc,evaluation,overall,change,+3.00 pp,pp,difference,,",
    )
    found = read_reported(file)
    assert list(found.columns) == list(Reported.to_schema().columns)
    first, second = found.to_dict("records")
    assert first == {
        "source": "doc",
        "table": "evaluation",
        "row": "overall",
        "column": "success with",
        "printed": "70.33%",
        "value": 0.7033,
        "unit": "%",
        "n": 300,
        "kind": "rate",
        "document": "doc",
        "section": "",
        "qualifier": "",
        "note": "first, of two",
        "id": "doc/evaluation/overall/success with",
    }
    assert second["value"] == 3.0
    assert pd.isna(second["n"])
    assert found.attrs["folder"] == str(file.parent)


@pytest.mark.parametrize(
    ("printed", "unit", "kind", "value"),
    [
        ("70.33%", "%", "rate", 0.7033),
        ("47", "%", "score", 0.47),
        ("+7.53 pp", "pp", "difference", 7.53),
        ("−6.45", "pp", "difference", -6.45),
        ('"22,752,932"', "tokens", "quantity", 22752932.0),
        (".034", "1", "p", 0.034),
        ("±0.011", "1", "spread", 0.011),
        ("~15.8 GiB", "GiB", "quantity", 15.8),
        ("$0.80", "USD", "quantity", 0.8),
    ],
)
def test_a_value_is_derived_from_the_printed_text(
    write: Write, printed: str, unit: str, kind: str, value: float
) -> None:
    line = f"doc,t,r,c,{printed},{unit},{kind}"
    assert read_reported(write(HEADER, line))["value"].tolist() == [value]
    assert read_reported(write(HEADER + ",value", line + f",{value}"))["value"].tolist() == [value]


@pytest.mark.parametrize(
    ("printed", "kind"), [("yes", "label"), ("GPT-4.1", "label"), ("✓", "label"), ("—", "score"), ("–", "interval_low")]
)
def test_labels_and_dashes_are_no_numbers(write: Write, printed: str, kind: str) -> None:
    found = read_reported(write(HEADER, f"doc,t,r,c,{printed},1,{kind}"))
    assert found["printed"].tolist() == [printed]
    assert math.isnan(found["value"].iloc[0])


def test_the_document_is_the_source_unless_given(write: Write) -> None:
    found = read_reported(write(HEADER + ",document", GOOD + ",", "second reading,t,r,c,5,count,count,doc"))
    assert found["document"].tolist() == ["doc", "doc"]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(write: Write) -> None:
    found = read_reported(write(b"\xef\xbb\xbf" + HEADER.encode() + b"\r", GOOD + "\r", "doc,t,r,d,6,count,count\r"))
    assert found["value"].tolist() == [5.0, 6.0]
    assert found["kind"].tolist() == ["count", "count"]


def test_spaces_around_a_cell_do_not_count(write: Write) -> None:
    found = read_reported(write(HEADER, "doc , t, r ,c, 5 ,count , count"))
    assert found["id"].tolist() == ["doc/t/r/c"]
    assert found["kind"].tolist() == ["count"]


def test_words_that_pandas_takes_for_missing_stay_text(write: Write) -> None:
    found = read_reported(write(HEADER, "doc,t,NA,None,5,count,count", "doc,t,nan,null,6,count,count"))
    assert found["row"].tolist() == ["NA", "nan"]
    assert found["column"].tolist() == ["None", "null"]


def test_a_folder_is_read_in_name_order(write: Write) -> None:
    write(HEADER, "doc,t,r,second,2,count,count", name="b.csv")
    write(HEADER, "doc,t,r,first,1,count,count", name="a.csv")
    folder = write("not, a table", name="notes.txt").parent
    found = read_reported(folder)
    assert found["column"].tolist() == ["first", "second"]
    assert found.index.tolist() == [0, 1]
    assert found.attrs["folder"] == str(folder)


def test_a_file_without_rows_is_an_empty_table(write: Write) -> None:
    found = read_reported(write(HEADER))
    assert found.empty
    assert list(found.columns) == list(Reported.to_schema().columns)


# ---- what is refused, and where ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "line", "column", "message"),
    [
        ("", ",t,r,c,5,count,count", "source", "empty"),
        ("", "doc,,r,c,5,count,count", "table", "empty"),
        ("", "doc,t,  ,c,5,count,count", "row", "empty"),
        ("", "doc,t,r,,5,count,count", "column", "empty"),
        ("", "doc,t,r,c,,count,count", "printed", "empty"),
        ("", "doc,t,r,c,5,,count", "unit", "empty"),
        ("", "doc,t,r,c,5,count,", "kind", "empty"),
        ("", "doc,t,r,c,5,count,counts", "kind", "'kind' must be one of 'count', .* found 'counts'"),
        ("", "doc,t,r,c,5,count,Count", "kind", "found 'Count'"),
        (",qualifier", GOOD + ",circa", "qualifier", "'qualifier' must be one of .*'about'.* found 'circa'"),
        (",n", GOOD + ",0", "n", "'0' is not a denominator; write a whole number above 0"),
        (",n", GOOD + ",-75", "n", "'-75' is not a denominator"),
        (",n", GOOD + ",75.0", "n", "'75.0' is not a denominator"),
        (",n", GOOD + ",٧٥", "n", "'٧٥' is not a denominator"),
        (",n", GOOD + ",many", "n", "'many' is not a denominator"),
        (",n", GOOD + ",99999999999999999999", "n", "'99999999999999999999' is not a denominator"),
        ("", "doc,t,r,c,5 6,count,count", "printed", "'5 6' is not a printed number"),
        ("", "doc,t,r,c,0.5 ± 0.1,1,score", "printed", "'0.5 ± 0.1' is not a printed number"),
        ("", 'doc,t,r,c,"1,23",1,score', "printed", "'1,23' is not a printed number"),
        ("", "doc,t,r,c,1e5,1,score", "printed", "'1e5' is not a printed number"),
        ("", "doc,t,r,c,٣,1,count", "printed", "'٣' is not a printed number"),
        ("", "doc,t,r,c,70.33%,pp,rate", "unit", "unit 'pp' for '70.33%'; write '%'"),
        ("", "doc,t,r,c,+7.53 pp,%,difference", "unit", "unit '%' for '.7.53 pp'; write 'pp'"),
        ("", "doc,t,r,c,15.8 GiB,s,quantity", "unit", "write 'GiB'"),
        (",value", "doc,t,r,c,70.33%,%,rate,70.33", "value", "value '70.33' but '70.33%'.* is 0.7033"),
        (",value", "doc,t,r,c,+7.53 pp,pp,difference,0.0753", "value", "value '0.0753' .* is 7.53"),
        (",value", "doc,t,r,c,5,count,count,6", "value", "value '6' but '5'"),
        (",value", "doc,t,r,c,70.33%,%,rate,0.70333", "value", "value '0.70333' but '70.33%'"),  # 211/300, not printed
        (",value", "doc,t,r,c,5,count,count,five", "value", "value 'five' but '5'"),
        (",value", "doc,t,r,c,5,count,count,nan", "value", "value 'nan' but '5'"),
        (",value", "doc,t,r,c,5,count,count,inf", "value", "value 'inf' but '5'"),
        (",value", "doc,t,r,c,yes,1,label,1", "value", "value '1' for 'yes', which prints no number; leave it empty"),
        (",value", "doc,t,r,c,—,1,score,0", "value", "value '0' for '—', which prints no number"),
    ],
)
def test_a_bad_cell_is_named_by_file_row_and_column(
    write: Write, columns: str, line: str, column: str, message: str
) -> None:
    file = write(HEADER + columns, "doc,t,good,c,1,count,count" + "," * columns.count(","), line)
    with pytest.raises(DataError, match=message) as caught:
        read_reported(file)
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, 3, column)
    assert str(caught.value).startswith(f"{file}, row 3, column '{column}': ")


# A number that the audit would never see: text where a number belongs, and a number where text belongs.
@pytest.mark.parametrize("line", ["doc,t,r,c,seven,count,count", "doc,t,r,c,7,count,label"])
def test_a_number_cannot_hide_behind_its_kind(write: Write, line: str) -> None:
    file = write(HEADER, GOOD.replace(",c,", ",good,"), line)
    with pytest.raises(DataError, match=r"a\.csv, row 3, column '(printed|kind)'"):
        read_reported(file)


def test_rows_are_counted_as_the_lines_of_the_file(write: Write) -> None:
    file = write(HEADER, "", GOOD, "", "doc,t,r,d,5 6,count,count")
    with pytest.raises(DataError, match="5 6") as caught:
        read_reported(file)
    assert caught.value.row == 5


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER.removesuffix(",kind"), ["missing: ['kind']", "needed are source, table, row"]),
        (HEADER + ",colour", ["unknown: ['colour']"]),
        (HEADER.replace("printed", "value") + ",printed_text", ["missing: ['printed']", "unknown: ['printed_text']"]),
        (HEADER + ",unit", ["columns twice: ['unit']"]),
        (HEADER.replace(",", ";"), ["missing: ['source', 'table',"]),
        ("", ["CSV"]),
    ],
)
def test_missing_and_unknown_columns_are_listed(write: Write, header: str, words: list[str]) -> None:
    file = write(header)
    with pytest.raises(DataError) as caught:
        read_reported(file)
    assert caught.value.file == file
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([GOOD, "doc,t,r,d,22,752,count,count"], id="a comma unquoted in a later row"),
        pytest.param(["doc,t,r,d,22,752,count,count"], id="a comma unquoted in the first row"),
        pytest.param(
            ["doc,t,r,d,22,752,count,count", "doc,t,r,e,22,753,count,count"], id="a comma unquoted in each row"
        ),
        pytest.param(['doc,t,"r,d,5,count,count'], id="a quote that stays open"),
        pytest.param([GOOD, "doc,t,r,d,5,count"], id="a cell too few"),
    ],
)
def test_a_ragged_table_is_refused(write: Write, lines: list[str]) -> None:
    file = write(HEADER, *lines)
    with pytest.raises(DataError, match="quote cells that hold a comma") as caught:
        read_reported(file)
    assert caught.value.file == file


@pytest.mark.parametrize(
    "content", [b"doc,t,caf\xe9,c,5,count,count", b"\xff\xfed\x00o\x00c\x00", HEADER.encode("utf-16")]
)
def test_not_utf8_is_refused(write: Write, content: bytes) -> None:
    file = write(HEADER, content)
    with pytest.raises(DataError, match=r"a\.csv: not UTF-8 text .*; save as UTF-8"):
        read_reported(file)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_refused(write: Write, content: bytes) -> None:
    file = write(content)
    with pytest.raises(DataError) as caught:
        read_reported(file)
    assert caught.value.file == file


def test_a_cell_that_stands_twice_names_both_places(write: Write) -> None:
    file = write(HEADER, GOOD, "doc,t,r,c,6,count,count")
    with pytest.raises(DataError, match=r"row 3: cell 'doc/t/r/c' stands here and in a\.csv, row 2"):
        read_reported(file)


def test_a_cell_that_stands_in_two_files_names_both(write: Write) -> None:
    write(HEADER, GOOD)
    second = write(HEADER, "doc,t,r,d,1,count,count", GOOD, name="b.csv")
    with pytest.raises(DataError, match=r"cell 'doc/t/r/c' stands here and in a\.csv, row 2") as caught:
        read_reported(second.parent)
    assert (caught.value.file, caught.value.row) == (second, 3)


def test_labels_that_make_the_same_id_are_the_same_cell(write: Write) -> None:
    # Relations name cells by id: "a/b" + "c" and "a" + "b/c" could not be told apart.
    file = write(HEADER, "doc,t,a/b,c,1,count,count", "doc,t,a,b/c,2,count,count")
    with pytest.raises(DataError, match="'doc/t/a/b/c'"):
        read_reported(file)


def test_an_empty_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no.csv", tmp_path / "no" / "folder"):
        with pytest.raises(DataError, match="no CSV file of printed numbers here") as caught:
            read_reported(str(path))
        assert str(caught.value).startswith(f"{path}: ")


# ---- the repository's own tables --------------------------------------------------------------------------------


def plain_number(printed: str, unit: str) -> Decimal:
    """Read a printed number by hand: typographic signs off, per cent to rates."""
    digits = re.sub(r"[^0-9.\-]", "", printed.replace("−", "-").removesuffix("GiB"))
    return Decimal(digits) / (100 if unit == "%" else 1)


def test_every_real_value_is_its_printed_text(real_reported: pd.DataFrame) -> None:
    numbers = real_reported[real_reported["value"].notna()]
    assert len(numbers) > 700
    for cell in numbers.itertuples():
        assert cell.value == pytest.approx(float(plain_number(cell.printed, cell.unit)), rel=1e-12, abs=0), cell.id


def test_what_prints_no_number_is_a_label_or_a_dash(real_reported: pd.DataFrame) -> None:
    rest = real_reported[real_reported["value"].isna()]
    assert set(rest.loc[rest["kind"] != "label", "printed"]) == {"—"}


def test_all_real_files_are_read_whole_and_in_order(real_reported: pd.DataFrame) -> None:
    files = sorted(REPORTED.glob("*.csv"))
    assert len(files) > 50
    rows = []
    for file in files:
        with file.open(encoding="utf-8", newline="") as opened:
            rows += [(row["source"], row["table"], row["row"], row["column"]) for row in csv.DictReader(opened)]
    found = real_reported[["source", "table", "row", "column"]].itertuples(index=False, name=None)
    assert list(found) == rows


def test_real_files_are_read_alone_as_in_the_folder(real_reported: pd.DataFrame) -> None:
    alone = pd.concat([read_reported(file) for file in sorted(REPORTED.glob("cir-*.csv"))], ignore_index=True)
    pd.testing.assert_frame_equal(alone, real_reported[real_reported["document"] == "cir"].reset_index(drop=True))


def test_the_four_documents_and_their_kinds_are_there(real_reported: pd.DataFrame) -> None:
    assert set(real_reported["document"]) == {"cir", "itbench-aa", "mp-bench", "terminal-bench"}
    assert set(real_reported["kind"]) <= set(KINDS)
    assert real_reported["id"].is_unique
