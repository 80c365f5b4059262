"""What a report rests on: every file that was read, and whether it is still that file."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.errors import DataError
from faultbook.harness.files import Files, Read, changed, measure, shown
from faultbook.harness.formats import journal, trial_csv
from faultbook.harness.read import Paths, read_trials, runs
from faultbook.revision import parse_revision
from faultbook.text import plain

SOURCE_COLUMNS = ["run", "file", "revision", "dirty", "says"]
_REVISION_KEYS = (
    "commit",
    "commit_hash",
    "git_commit",
    "git_commit_id",
    "git_commit_hash",
    "git_hash",
    "revision",
    "head",
    "git_sha",
)
_REVISION = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_DIRTY_KEYS = ("dirty", "is_dirty", "git_dirty", "uncommitted", "has_uncommitted_changes")
_RUN_FILES = ("config.json", "lock.json", "run_metadata.json", "tb.lock", "result.json", "journal.jsonl")
_LOGS = {"inspect": ("*.eval", "*.json"), "lm-eval": ("results_*.json",)}  # further down in the folder of a run
_DEPTH = 8  # of nested keys in which a revision is looked for
_MOST_HEADER = 1 << 26  # bytes of a header inside a log


@dataclass(frozen=True, slots=True)
class Evidence:
    """Files that a report rests on.

    Attributes
    ----------
    files : DataFrame
        Every file that was read: path, bytes, sha256; in the order of the paths.
    sources : DataFrame
        One row a revision that a run records of the code it ran: run, file, revision, dirty (missing where the run
        does not say), and what that means. A run that records none has one row too.
    """

    files: pd.DataFrame
    sources: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """The files."""
        return self.files

    def check(self) -> None:
        """Stop if a file is no longer what was read.

        Raises
        ------
        DataError
            If one has changed, or cannot be read any more.
        """
        check_files(self.files)


def evidence(path: Paths, format: str = "auto") -> Evidence:  # noqa: A002  # as for `read_trials`
    """List every file that the trials and the plan of some runs are read from.

    Parameters
    ----------
    path : path or sequence of paths
        As for `read_trials`.
    format : str
        As for `read_trials`.

    Returns
    -------
    Evidence

    Raises
    ------
    DataError
        If nothing is there or its format is not known.
    """
    files = Files()
    trials, _ = read_trials(path, format, strict=False, files=files)
    found = runs(path, format)
    for run, module in found:
        if module is not trial_csv:
            module.planned(run, files)
    rows = []
    for run, module in found:
        recorded = _documents(run, module.FORMAT, files) if module is not trial_csv else _versions(run, trials)
        rows += _sources(shown(run), recorded)
    sources = pd.DataFrame(rows, columns=SOURCE_COLUMNS)
    types = dict.fromkeys(SOURCE_COLUMNS, "string") | {"dirty": "boolean"}
    return Evidence(files.manifest(), sources.astype(types))


def check_files(manifest: pd.DataFrame) -> None:
    """Stop if a file of a manifest (path, bytes, sha256) is no longer what was read.

    Raises
    ------
    DataError
        If one has changed, or cannot be read any more.
    """
    for row in manifest.to_dict("records"):
        if measure(Path(row["path"])) != Read(row["bytes"], row["sha256"]):
            raise changed(row["path"])


def _sources(run: str, documents: Iterator[tuple[str, Any]]) -> list[tuple[Any, ...]]:
    """What a run records of the code that it ran."""
    found: dict[tuple[str, bool | None], tuple[Any, ...]] = {}
    for file, document in documents:
        for revision, dirty in _revisions(document, _DEPTH):
            row = (run, shown(file), plain(revision, most=80), dirty, _meaning(dirty))
            found.setdefault((revision, dirty), row)
    nothing = (run, pd.NA, pd.NA, pd.NA, "no revision is on record: what ran cannot be told from these files")
    return list(found.values()) or [nothing]


def _meaning(dirty: bool | None) -> str:
    if dirty is None:
        return "whether the tree had uncommitted changes is not on record: the revision alone may not be what ran"
    if dirty:
        return "uncommitted changes ran: the revision alone does not reproduce it"
    return "a clean tree of this revision"


def _versions(run: Path, trials: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """The revisions in the column source_version of a table, as "<commit>", "<commit>+clean" or "<commit>+dirty"."""
    versions = trials.loc[trials["source_path"] == shown(run), "source_version"]
    for version in versions.dropna().drop_duplicates():
        revision, dirty = parse_revision(str(version))
        yield run.name, {"revision": revision, "dirty": dirty}


def _documents(run: Path, name: str, files: Files) -> Iterator[tuple[str, Any]]:
    """The small documents of a run that may name a revision."""
    if run.is_dir():
        below = [Path(path) for path in files.manifest()["path"] if _is_below(Path(path), run)]
        places = [run / file for file in _RUN_FILES]
        places += [path for path in below if any(path.match(pattern) for pattern in _LOGS.get(name, ()))]
    else:
        places = [run] if run.suffix != ".jsonl" or name == journal.FORMAT else []
    for place in places:
        if place.is_file():
            yield from _of_file(place, place.relative_to(run) if place != run else Path(run.name), files)


def _of_file(file: Path, name: Path, files: Files) -> Iterator[tuple[str, Any]]:
    if file.suffix == ".jsonl":
        yield from ((str(name), line) for _, line in files.json_lines(file))
    elif zipfile.is_zipfile(file):
        yield from ((f"{name}:{member}", document) for member, document in _headers(file))
    else:
        try:
            document = files.read_json(file)
        except DataError as error:
            if error.problem == changed(file).problem:
                raise
            return
        # What a log's samples hold is not what ran them.
        yield str(name), {**document, "samples": None} if isinstance(document, dict) else document


def _is_below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _headers(run: Path) -> Iterator[tuple[str, Any]]:
    """Headers inside a log that is a zip file; the last of several of one name counts."""
    try:
        with zipfile.ZipFile(run) as archive:
            for name in ("header.json", "_journal/start.json"):
                if name in archive.namelist() and archive.getinfo(name).file_size <= _MOST_HEADER:
                    yield name, json.loads(archive.read(name))
    except (OSError, ValueError, RuntimeError, NotImplementedError, RecursionError, zipfile.BadZipFile):
        return


def _revisions(document: Any, depth: int) -> Iterator[tuple[str, bool | None]]:
    """Revisions anywhere in a document, each with what stands beside it on uncommitted changes."""
    if depth == 0 or not isinstance(document, (dict, list)):
        return
    if isinstance(document, list):
        for item in document:
            yield from _revisions(item, depth - 1)
        return
    for key, value in document.items():
        if key in _REVISION_KEYS and isinstance(value, str) and _REVISION.fullmatch(value):
            dirty = next((document[name] for name in _DIRTY_KEYS if isinstance(document.get(name), bool)), None)
            yield value, dirty
        yield from _revisions(value, depth - 1)
