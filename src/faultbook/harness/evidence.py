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
from faultbook.harness.files import Files, Read, changed, measure
from faultbook.harness.formats import trial_csv
from faultbook.harness.read import Paths, read_trials, runs
from faultbook.text import plain

SOURCE_COLUMNS = ["run", "file", "revision", "dirty", "says"]
_REVISION_KEYS = (
    "commit",
    "commit_hash",
    "git_commit",
    "git_commit_id",
    "git_commit_hash",
    "revision",
    "head",
    "git_sha",
)
_REVISION = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_DIRTY_KEYS = ("dirty", "is_dirty", "git_dirty", "uncommitted", "has_uncommitted_changes")
_RUN_FILES = ("config.json", "lock.json", "run_metadata.json", "tb.lock", "result.json")
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
    read_trials(path, format, strict=False, files=files)
    found = runs(path, format)
    for run, module in found:
        if module is not trial_csv:
            module.planned(run, files)
    rows = [row for run, _ in found for row in _sources(run, files)]
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


def _sources(run: Path, files: Files) -> list[tuple[Any, ...]]:
    """What a run records of the code that it ran."""
    found: dict[tuple[str, bool | None], tuple[Any, ...]] = {}
    for file, document in _documents(run, files):
        for revision, dirty in _revisions(document, _DEPTH):
            row = (str(run), file, plain(revision, most=80), dirty, _meaning(dirty))
            found.setdefault((revision, dirty), row)
    nothing = (str(run), pd.NA, pd.NA, pd.NA, "no revision is on record: what ran cannot be told from these files")
    return list(found.values()) or [nothing]


def _meaning(dirty: bool | None) -> str:
    if dirty is None:
        return "whether the tree had uncommitted changes is not on record: the revision alone may not be what ran"
    if dirty:
        return "uncommitted changes ran: the revision alone does not reproduce it"
    return "a clean tree of this revision"


def _documents(run: Path, files: Files) -> Iterator[tuple[str, Any]]:
    """The small documents of a run that may name a revision."""
    if run.is_dir():
        for name in _RUN_FILES:
            if (run / name).is_file():
                yield name, _quiet(files, run / name)
        if (run / "journal.jsonl").is_file():
            yield from (("journal.jsonl", line) for _, line in files.json_lines(run / "journal.jsonl"))
    elif run.suffix == ".json":
        yield run.name, _quiet(files, run)
    elif zipfile.is_zipfile(run):
        yield from ((f"{run.name}:{name}", document) for name, document in _headers(run))


def _quiet(files: Files, file: Path) -> Any:
    try:
        return files.read_json(file)
    except DataError:
        return None


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
