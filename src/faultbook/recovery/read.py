"""Read episodes from CSV or parquet files; every fault is located."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from faultbook.columns import Columns
from faultbook.csvfile import read_text_table
from faultbook.errors import DataError, short_repr
from faultbook.parquetfile import opened_parquet
from faultbook.problems import Problems
from faultbook.recovery._frames import KEY, branch_name
from faultbook.tables import ACTIONS, CONDITIONS, FEATURE_PREFIX, Episodes
from faultbook.text import plain

REQUIRED = ("task_id", "condition", "delay", "action", "success")

_COLUMNS = list(Episodes.to_schema().columns)
_SUFFIXES = (".csv", ".parquet")
_PLACE = ["file", "row"]
_NAMES = {"condition": CONDITIONS, "action": ACTIONS}


@overload
def read_episodes(path: str | Path, strict: Literal[True] = True) -> pd.DataFrame: ...
@overload
def read_episodes(path: str | Path, strict: Literal[False]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def read_episodes(path: str | Path, strict: bool = True) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """Read episodes: one row, one branch of a run.

    Parameters
    ----------
    path : path
        A CSV or parquet file, or a folder of them (subfolders included). A file needs the columns task_id, condition,
        delay, action and success; the others of the table `Episodes` are optional, columns `x_…` are features, and
        further columns are left out. A blank cell is as good as a column that is not there: a replicate is 0 then,
        anything else is missing. A blank delay is only for the action 'none': that branch serves every delay.
    strict : bool
        Raise at the first problem; otherwise note it and go on. A row whose task, condition, delay, action, replicate
        or success cannot be read is left out, and so is a branch that stands there already; any other cell that cannot
        be read is missing.

    Returns
    -------
    DataFrame, or (DataFrame, DataFrame)
        Table `Episodes`, then features as floats, in the order of the files and their rows. With `strict=False` also
        the problems: file, row (the line of a CSV file, the number of a parquet row, counted from 0), column, problem
        and mend.

    Raises
    ------
    DataError
        If nothing is there, or (strict) at the first problem.

    Notes
    -----
    Conditions and actions may have names of one's own. A name is a problem if it is spelled like a known one but for
    case and punctuation, or if it is one typing error away from it and the two never stand side by side at one fork;
    it is kept as written.
    """
    problems, path = Problems(strict), Path(path)
    if not path.exists():
        raise DataError("no such file", file=path)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not files:
        raise DataError("no episodes here", file=path, mend="name a .csv or .parquet file, or a folder of them")
    parts = [part for file in files if (part := _read(file, problems)) is not None]
    frame = pd.concat(parts, ignore_index=True) if parts else _parsed(pd.DataFrame(columns=REQUIRED), path, problems)
    frame = _once(frame, problems)
    for column, known in _NAMES.items():
        _report_slips(frame, column, known, problems)
    if frame.empty and parts:
        problems.add(DataError("holds no episode that can be used", file=path))
    episodes = Episodes.validate(frame.drop(columns=_PLACE))
    return episodes if strict else (episodes, problems.frame())


def _read(file: Path, problems: Problems) -> pd.DataFrame | None:
    """The episodes of a file, with the place of each; None if it cannot be read."""
    try:
        raw = _parquet(file) if file.suffix == ".parquet" else read_text_table(file)
        missing = [name for name in REQUIRED if name not in raw]
        if missing:
            found = short_repr(list(raw.columns))
            raise DataError(f"columns missing: {', '.join(missing)} (found {found})", file=file, row=_header_row(file))
    except DataError as error:
        problems.add(error)
        return None
    for name in raw.columns:
        near = _near_column(name)
        if near is not None:
            problem = f"a column {short_repr(name)} is not known, '{near}' is"
            mend = "rename it, or give it a name that cannot be taken for this one"
            problems.add(DataError(problem, file=file, row=_header_row(file), column=plain(name), mend=mend))
    return _parsed(raw, file, problems)


def _parquet(file: Path) -> pd.DataFrame:
    """The columns that are of use, typed as they are in the file."""
    import pyarrow as pa

    with opened_parquet(file) as content:
        names = content.schema_arrow.names
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise DataError(f"columns twice: {short_repr(doubled)}", file=file)
        table = content.read([name for name in names if name in _COLUMNS or _is_feature(name)])
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        name = plain(nested[0])
        raise DataError("holds lists or structures", file=file, column=name, mend="write one value a cell")
    return pd.DataFrame({name: _decoded(table.column(name)) for name in table.column_names})


def _decoded(column: Any) -> pd.Series[Any]:
    import pyarrow as pa

    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    decoded: pd.Series[Any] = plain.to_pandas(types_mapper=pd.ArrowDtype)
    return decoded


def _parsed(raw: pd.DataFrame, file: Path, problems: Problems) -> pd.DataFrame:
    """The typed rows that can be used, with the columns file and row."""
    cells = Columns(raw, file, problems)
    parts: dict[str, Any] = {name: cells.text(name, required=True) for name in ("task_id", "condition", "action")}
    for column, known in _NAMES.items():
        _report_spelling(parts[column], known, file, problems)
    parts["delay"] = cells.whole("delay", required=True)
    open_ended = parts["delay"].isna() & (parts["action"] != "none").fillna(True)
    cells.leave_out(
        "delay",
        open_ended.to_numpy(dtype=bool),
        "no delay",
        "give it; only a branch with the action 'none' serves every delay",
    )
    parts["replicate"] = cells.whole("replicate", required=True).fillna(0)
    parts["success"] = cells.boolean("success", required=True)
    parts |= {name: cells.text(name) for name in ("cohort", "source", "prefix_hash")}
    parts |= {name: cells.boolean(name) for name in ("factual_success", "ended_before")}
    parts["n_actions"] = cells.whole("n_actions")
    features = {name: cells.feature(name) for name in raw.columns if _is_feature(name)}
    frame = pd.DataFrame({name: parts[name] for name in _COLUMNS} | features, index=raw.index)
    frame = frame.assign(file=str(file), row=raw.index)[cells.usable]
    return frame.astype({"success": "bool", "replicate": "int64"})


def _once(frame: pd.DataFrame, problems: Problems) -> pd.DataFrame:
    """The first row of each branch; the others are reported."""
    again = frame.duplicated(KEY).to_numpy()
    if again.any():
        first = frame.groupby(KEY, dropna=False, sort=False)[_PLACE].transform("first")
        rows, places = (part[again].to_dict("records") for part in (frame[[*KEY, *_PLACE]], first))
        for row, there in zip(rows, places, strict=True):
            where = f"row {there['row']}" + (f" of {there['file']}" if there["file"] != row["file"] else "")
            mend = "keep one of them, or number them in the column 'replicate'"
            problem = f"{branch_name(row)} stands here and in {where}"
            problems.add(DataError(problem, file=row["file"], row=int(row["row"]), mend=mend))
    return frame[~again].reset_index(drop=True)


# ---- names ---------------------------------------------------------------------------------------------------------


def _is_feature(name: str) -> bool:
    return name.startswith(FEATURE_PREFIX)


def _header_row(file: Path) -> int | None:
    return None if file.suffix == ".parquet" else 1


def _near_column(name: str) -> str | None:
    """The known column that another one is taken for."""
    if name in _COLUMNS or _is_feature(name):
        return None
    if name.casefold().replace("-", "_").startswith(FEATURE_PREFIX):
        return f"{FEATURE_PREFIX}…"
    return next((known for known in _COLUMNS if _same_letters(name, known) or _one_slip(name, known)), None)


def _report_spelling(column: pd.Series[Any], known: Sequence[str], file: Path, problems: Problems) -> None:
    """Report names that are spelled like a known one but for case and punctuation."""
    for name in _others(column, known):
        near = next((other for other in known if _same_letters(name, other)), None)
        if near is not None:
            rows = column.index[(column == name).fillna(False)]
            problems.add(_taken_for(near, name, str(column.name), len(rows), file, int(rows[0])))


def _report_slips(frame: pd.DataFrame, column: str, known: Sequence[str], problems: Problems) -> None:
    """Report names that are one typing error away from a known one, unless both are meant."""
    for name in _others(frame[column], known):
        near = next((other for other in known if _one_slip(name, other)), None)
        if near is None or any(_same_letters(name, other) for other in known):
            continue
        rows, there = (frame[frame[column] == value] for value in (name, near))
        if not _side_by_side(rows, there, column):
            first = rows.iloc[0]
            problems.add(_taken_for(near, name, column, len(rows), first["file"], int(first["row"])))


def _taken_for(near: str, name: str, column: str, n_rows: int, file: str | Path, row: int) -> DataError:
    problem = (
        f"{column} is {short_repr(name)} in {n_rows} {'row' if n_rows == 1 else 'rows'}, which looks like '{near}'"
    )
    mend = f"write '{near}', or choose a name that cannot be taken for it"
    return DataError(problem, file=file, row=row, column=column, mend=mend)


def _others(column: pd.Series[Any], known: Iterable[str]) -> list[str]:
    return [str(name) for name in column.dropna().unique() if name not in known]


def _side_by_side(rows: pd.DataFrame, others: pd.DataFrame, column: str) -> bool:
    """Whether two names of a column stand at one and the same fork: then both are meant."""
    rest = [name for name in KEY if name != column]
    return bool(pd.MultiIndex.from_frame(rows[rest]).isin(pd.MultiIndex.from_frame(others[rest])).any())


def _same_letters(name: str, known: str) -> bool:
    return _letters(name) == _letters(known)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _one_slip(name: str, known: str) -> bool:
    """Whether one letter was left out, added, exchanged or swapped; other digits are another name ('stale3')."""
    if re.findall(r"\d", name) != re.findall(r"\d", known):
        return False
    a, b = name.casefold(), known.casefold()
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[same:], b[same:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
