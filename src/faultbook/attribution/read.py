"""Read logs with their annotations and predictions, whatever published format they come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

import pandas as pd

from faultbook.attribution.anomalies import POLICIES, Policy, handle_anomalies
from faultbook.attribution.formats.assemble import assemble
from faultbook.attribution.formats.collect import Collector
from faultbook.attribution.formats.dispatch import read_files
from faultbook.attribution.formats.documents import files_below, shown
from faultbook.errors import DataError, one_of
from faultbook.problems import Problems

FORMATS = (
    "mp-bench-raw",
    "mp-bench",
    "mp-bench-predictions",
    "leaderboard",
    "who-and-when",
    "agentracer",
    "trail",
    "agentrx",
    "csv",
)


@dataclass(frozen=True, slots=True)
class LogTables:
    """Logs of multi-agent runs and what annotators and models say of them.

    Attributes
    ----------
    logs, steps, annotations, predictions, attempts : DataFrame
        The tables of these names in `faultbook.tables`. Every log that any of them names is in `logs`; the samples that
        list predictions are those in `attempts` with the status "ok".
    anomalies : DataFrame
        Oddities that the tables show: check, log_id, found, repair (`anomalies.find_anomalies`).
    """

    logs: pd.DataFrame
    steps: pd.DataFrame
    annotations: pd.DataFrame
    predictions: pd.DataFrame
    attempts: pd.DataFrame
    anomalies: pd.DataFrame


Paths = str | Path | Sequence[str | Path]


@overload
def read_logs(
    path: Paths,
    format: str = ...,
    strict: Literal[True] = True,
    *,
    anomalies: Policy = ...,
    sources: str | Path | None = ...,
) -> LogTables: ...
@overload
def read_logs(
    path: Paths,
    format: str = ...,
    *,
    strict: Literal[False],
    anomalies: Policy = ...,
    sources: str | Path | None = ...,
) -> tuple[LogTables, pd.DataFrame]: ...
@overload
def read_logs(
    path: Paths,
    format: str,
    strict: Literal[False],
    *,
    anomalies: Policy = ...,
    sources: str | Path | None = ...,
) -> tuple[LogTables, pd.DataFrame]: ...
def read_logs(
    path: Paths,
    format: str = "auto",  # noqa: A002  # the word that users know
    strict: bool = True,
    *,
    anomalies: Policy = "flag",
    sources: str | Path | None = None,
) -> LogTables | tuple[LogTables, pd.DataFrame]:
    """Read logs, their annotations and the predictions that models make for them.

    Parameters
    ----------
    path : path, or sequence of paths
        A file, or a folder with files of any of the formats below, mixed or not (subfolders included; names that begin
        with "_" or "." are passed over); or several of them, read as one: annotations here, predictions there. Who is
        speaking of what is told by the content of a file and by its folders:

        * "mp-bench-raw" (ANNOTATOR/SPLIT/ID.json) and "mp-bench" (the same, joined with the log), one file an
          annotator; steps from 0;
        * "mp-bench-predictions" (results/MODEL/METHOD/seed_N/[temp_T/]SPLIT/ID.json); steps from 0. Method and
          temperature stand in the model's name only where the model has several;
        * "leaderboard" (predictions_SPLIT.json, beside metadata.json): ranked lists; steps from 0;
        * "who-and-when", both subsets as JSON of all releases and as parquet; steps from 0;
        * "agentracer", parquet; steps from 0;
        * "trail", labels with traces beside, or parquet; a step is a span, a span before its children;
        * "agentrx", JSON, a list, or JSON lines; steps from 1 in the files, from 0 in the tables;
        * "csv", the in-house form: `logs.csv`, `steps.csv`, `annotations.csv`, `reviews.csv`, `predictions.csv` and
          `attempts.csv`, any of them, with the columns of `faultbook.tables` (optional ones may be absent), files of
          any name that have these columns, and files that `write_labels` wrote; steps from 0.
    format : str
        The one format that every file must have, or "auto".
    strict : bool
        Raise at the first problem; otherwise note it and go on. Then an unreadable item of a prediction is left out and
        counted, a predicted step beyond the log is kept (it is a wrong answer), a label beyond the log is kept under
        `anomalies="flag"`, and a file that nobody can read leaves no trace but its problem.
    anomalies : {"flag", "drop", "fail"}
        What to do about oddities that only the tables show, as in `anomalies.handle_anomalies`. Under "drop" a label
        beyond the log is no problem, for its log is left out.
    sources : path, optional
        A folder that holds the logs to which raw annotations of MP-Bench point. Without it the number of steps of
        these logs is missing.

    Returns
    -------
    LogTables, or (LogTables, DataFrame)
        With `strict=False` also the located problems: file, row, column, problem, mend. In the published formats, who
        judged a log judged every step of it: steps without a remark have rows with `is_failure` False. Where the
        number of steps is unknown, there are rows for those that anybody lists. In the CSV form nothing is filled in,
        except for annotators that `reviews.csv` names. An annotator one of whose remarks cannot be read is not filled
        in either: what it flagged is unknown.

    Raises
    ------
    DataError
        If nothing is there, `format`, `anomalies` or `sources` cannot be used, under "fail" at any anomaly, or
        (strict) with file, row and field of the first problem.
    """
    for name, given, allowed in (("format", format, ("auto", *FORMATS)), ("anomalies", anomalies, POLICIES)):
        if given not in allowed:
            raise DataError(one_of(name, given, allowed))
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(part) for part in path]
    folder = Path(sources) if sources is not None else None
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder of sources", file=shown(folder))
    problems = Problems(strict)
    collector = Collector(problems, folder)
    read_files(_files(paths, folder), format, collector, named={part for part in paths if part.is_file()})
    tables = assemble(collector, labels_may_lie_beyond=anomalies == "drop")
    result = LogTables(**handle_anomalies(tables, anomalies))
    return result if strict else (result, problems.frame())


def _files(paths: Sequence[Path], sources: Path | None) -> list[Path]:
    """The data files at the paths, each once."""
    files: dict[Path, Path] = {}
    for path in paths:
        below = files_below(path, apart_from=sources)
        if not below:
            mend = "name a .json, .jsonl, .parquet or .csv file, or a folder of them"
            raise DataError("no logs here", file=shown(path), mend=mend)
        for file in below:
            files.setdefault(file.resolve(), file)
    if not files:
        raise DataError("no path is named", mend="name a file or a folder")
    return list(files.values())
