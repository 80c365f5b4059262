"""The in-house CSV form: a file for each table, and a compact file of one label a log. Steps count from 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from faultbook.attribution.formats import tidy_samples, who_and_when
from faultbook.attribution.formats.cells import booleans, kept, placed, report_cells, whole_numbers
from faultbook.attribution.formats.collect import Collector, Log, Review, judge
from faultbook.attribution.formats.values import collapsed
from faultbook.attribution.steps import parse_step
from faultbook.csvfile import located, read_text_table
from faultbook.errors import DataError, short_repr

NAME = "csv"
INDEX_BASE = 0
TABLES = ("logs", "steps", "annotations", "reviews", "predictions", "attempts")
# What tells a table whose file is called something else, the first that fits; annotations without is_failure would
# leave open what was flagged.
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("labels", ("log_id", "subset", "mistake_step")),
    ("attempts", ("log_id", "model", "sample", "status")),
    ("predictions", ("log_id", "model", "sample", "step")),
    ("annotations", ("log_id", "annotator", "step", "is_failure")),
    ("reviews", ("log_id", "annotator")),
    ("steps", ("log_id", "step", "role")),
    ("logs", ("log_id", "n_steps")),
)
_REQUIRED = dict(_KINDS) | {"logs": ("log_id",), "steps": ("log_id", "step")}
LOOKED_FOR = "; ".join(f"{kind} ({', '.join(columns)})" for kind, columns in _KINDS)


def split_of(log_id: str) -> str:
    """The split of a log that only its id tells: what stands before the first "/", else "all"."""
    before, slash, _ = log_id.partition("/")
    return before if slash and before else "all"


def steps_file(labels: Path) -> Path:
    """The file of speakers that belongs to a file of labels: 'x-steps.csv' beside 'x-labels.csv'."""
    return labels.with_name(f"{labels.stem.removesuffix('-labels')}-steps.csv")


def read(files: Sequence[Path], collector: Collector) -> None:
    """Read CSV files, folder by folder: what one folder holds belongs together."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    for beside in folders.values():
        _read_folder(beside, collector)


def _read_folder(files: Iterable[Path], collector: Collector) -> None:
    tables = _tables(list(files), collector)
    readers: tuple[tuple[str, Callable[[Path, pd.DataFrame, Collector], None]], ...] = (
        ("labels", _labels),
        ("logs", _logs),
        ("steps", _steps),
    )
    for kind, read_table in readers:
        for file, table in tables[kind]:
            read_table(file, table, collector)
    listed = {log_id for _, table in tables["logs"] for log_id in table["log_id"]} if tables["logs"] else None
    for kind in ("annotations", "reviews", "predictions", "attempts"):
        for file, table in tables[kind]:
            _mentions(file, table, listed, collector)
    for file, table in tables["annotations"]:
        _annotations(file, table, collector)
    for file, table in tables["reviews"]:
        _reviews(file, table, collector)
    tidy_samples.read(tables["predictions"], tables["attempts"], collector)


def _tables(files: Sequence[Path], collector: Collector) -> dict[str, list[tuple[Path, pd.DataFrame]]]:
    """The tables of a folder by their kind; a file of labels brings its file of speakers along."""
    tables: dict[str, list[tuple[Path, pd.DataFrame]]] = {kind: [] for kind in _REQUIRED}
    beside: list[Path] = []
    for file in files:
        found = _table(file, collector)
        if found is not None:
            tables[found[0]].append((file, found[1]))
            beside += [steps_file(file)] if found[0] == "labels" else []
    for file in beside:
        found = _table(file, collector) if file not in files and file.is_file() else None
        if found is not None and found[0] == "steps":
            tables["steps"].append((file, found[1]))
    return tables


def _table(file: Path, collector: Collector) -> tuple[str, pd.DataFrame] | None:
    """The kind of a CSV file and its rows; its name decides, else its columns."""
    try:
        table = read_text_table(file)
        kind = file.stem if file.stem in TABLES else _kind(table.columns)
        if kind is None:
            found = short_repr(list(table.columns))
            raise DataError(f"no table that is known here (found {found})", file=file, row=1, mend=_MEND)
        missing = [column for column in _REQUIRED[kind] if column not in table]
        if missing:
            raise DataError(f"{kind} without the columns {missing}", file=file, row=1, mend="give them")
    except DataError as error:
        collector.problems.add(error)
        return None
    nameless = table["log_id"] == ""
    report_cells(table[nameless], "log_id", lambda _: "no log_id", file, collector, "name the log")
    return kind, table[~nameless]


_MEND = f"looked for {LOOKED_FOR}"


def _kind(columns: Iterable[str]) -> str | None:
    there = set(columns)
    return next((kind for kind, needed in _KINDS if there.issuperset(needed)), None)


# ---- logs and steps ------------------------------------------------------------------------------------------------


def _labels(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    """One label a log, as `write_labels` writes it: the logs of Who&When without any text."""
    for line, row in located(table):
        log = _log(row, file, line, collector, split=row["subset"], source=who_and_when.NAME)
        log.question_id = row.get("question_sha256") or None
        log.content_sha256 = row.get("history_sha256") or None
        log_id = row["log_id"]
        if not collector.facts(log_id, log, line) or not row["mistake_step"]:
            continue
        review = collector.review(log_id, who_and_when.ANNOTATOR, file, line)
        try:
            step = parse_step(row["mistake_step"], base=INDEX_BASE)
        except ValueError as error:
            collector.problem(str(error), file, line, "mistake_step")
            if review is not None:
                review.spoilt = True
            continue
        if review is not None:
            judge(review, step, True, agent=row.get("mistake_agent") or None, row=line)


def _logs(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    again = table["log_id"].duplicated()
    report_cells(table[again], "log_id", lambda cell: f"log '{cell}' stands twice", file, collector, "keep one")
    for line, row in located(table[~again]):
        log = _log(row, file, line, collector, split=row.get("split", ""), source=row.get("source") or NAME)
        collector.facts(row["log_id"], log, line)


def _log(row: Mapping[str, str], file: Path, line: int, collector: Collector, *, split: str, source: str) -> Log:
    log = Log(split or split_of(row["log_id"]), source, file)
    for name in ("question_id", "release", "content_sha256"):
        setattr(log, name, row.get(name) or None)
    cell = row.get("n_steps", "")
    try:
        log.n_steps = parse_step(cell, base=1) + 1 if cell else None
    except ValueError:
        text = f"n_steps is '{cell[:80]}', not a number of steps"
        collector.problem(text, file, line, "n_steps", "give a whole number of at least 1, or nothing")
    return log


def _steps(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    """Speakers; a log whose steps run from 0 on without a gap has as many steps as rows."""
    steps, readable = whole_numbers(table, "step", file, collector)
    table = table.assign(step=steps)[readable]
    table = kept(table, ["log_id", "step"], file, collector)
    for log_id, part in table.groupby("log_id", sort=False):
        name, part = str(log_id), part.sort_values("step")
        roles = [role or None for role in part["role"]] if "role" in part else [None] * len(part)
        agents = list(part["agent"]) if "agent" in part else [""] * len(part)
        whole = part["step"].tolist() == list(range(len(part)))
        known = collector.logs.get(name)
        line = int(part.index[0])
        if known is not None and known.n_steps is not None and not (whole and known.n_steps == len(part)):
            text = f"{len(part)} steps of log '{name}', which has {known.n_steps}"
            collector.problem(text, file, line, "step", "list every step of the log once")
        elif known is None or known.n_steps is None:
            n_steps = len(part) if whole else None
            collector.facts(name, Log(split_of(name), NAME, file, n_steps=n_steps, weak=True), line)
        rows = zip(part["step"].tolist(), roles, agents, strict=True)
        spoken = [(step, role, agent or collapsed(role)) for step, role, agent in rows]
        collector.speakers.setdefault(name, spoken)


def _mentions(file: Path, table: pd.DataFrame, listed: set[str] | None, collector: Collector) -> None:
    """Logs that a table speaks about; where the folder has a list of logs, they must be on it."""
    first = table[~table["log_id"].duplicated()]
    for line, log_id in zip(first.index, first["log_id"], strict=True):
        if listed is not None and log_id not in listed:
            text = f"log '{log_id}' is not in logs.csv"
            collector.problem(text, file, int(line), "log_id", "list it, or write its id alike")
        collector.facts(log_id, Log(split_of(log_id), NAME, file, weak=True), int(line))


# ---- judgements ----------------------------------------------------------------------------------------------------


def _annotations(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    """Judgements as they stand; nothing is filled in but what `reviews.csv` says."""
    steps, readable = whole_numbers(table, "step", file, collector)
    flags, told = booleans(table, "is_failure", file, collector)
    nameless = (table["annotator"] == "").to_numpy()
    report_cells(table[nameless], "annotator", lambda _: "no annotator", file, collector, "say who judged it")
    rows = table[["log_id", "annotator"]].assign(step=steps, is_failure=flags)
    for name in ("agent", "reason", "ideal_action", "category"):
        rows[name] = table[name].mask(table[name] == "", None) if name in table else None
    rows = kept(rows[readable & told & ~nameless], ["log_id", "annotator", "step"], file, collector)
    rows = placed(rows, file)
    taken = set()
    pairs = rows[~rows.duplicated(["log_id", "annotator"])]
    for log_id, annotator, line in zip(pairs["log_id"], pairs["annotator"], pairs["row"], strict=True):
        review = collector.review(log_id, annotator, file, int(line))
        if review is None:
            taken.add((log_id, annotator))
        else:
            review.complete = False  # the rows say it all
    _unread(file, table[~nameless & ~(readable & told)], collector)
    if taken:
        here = pd.MultiIndex.from_frame(rows[["log_id", "annotator"]])
        rows = rows[~here.isin(list(taken))]
    collector.frame("annotations", rows)


def _unread(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    """Rows that cannot be read: what they say of a step, or of which step they speak, is unknown, not unsaid."""
    for line, row in located(table):
        pair = (row["log_id"], row["annotator"])
        review = collector.reviews.setdefault(pair, Review(file, line, complete=False))
        try:
            review.unread.add(parse_step(row["step"], base=INDEX_BASE))
        except ValueError:
            review.spoilt = True


def _reviews(file: Path, table: pd.DataFrame, collector: Collector) -> None:
    """Annotators who went through a whole log: a step that they do not list is not flagged."""
    for line, row in located(table):
        if not row["annotator"]:
            collector.problem("no annotator", file, line, "annotator", "say who went through the log")
            continue
        pair = (row["log_id"], row["annotator"])
        collector.reviews.setdefault(pair, Review(file, line)).complete = True
