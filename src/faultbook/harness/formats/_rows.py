"""What readers of several formats share: rows and their source, documents and folders that may be links, sums."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook.errors import DataError
from faultbook.harness.fields import joined_notes
from faultbook.harness.files import Files

UNKNOWN_ARM = "unknown"
LINK = "a symbolic link, which is not followed"
LINK_TO_NAME = "a symbolic link, not followed: name what it points to by itself"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder that is not looked into, and why."""

    path: Path
    why: str


# ---- rows


def row(name: str, state: str, place: Path, files: Files, *notes: str | None, **columns: Any) -> dict[str, Any]:
    """The row of a trial without usage, of the format of that name, as told by the file or folder at `place`."""
    return {
        **columns,
        **unmetered(state, *notes),
        "source_format": name,
        "source_path": str(place).encode("utf-8", errors="replace").decode("utf-8"),  # a file's name may be no text
        "source_sha256": known_digest(place, files),
    }


def unmetered(state: str, *notes: str | None) -> dict[str, Any]:
    """The columns of a trial of which no usage is on record."""
    return {"state": state, "usage_status": "absent", "note": joined_notes(*notes)}


def known_digest(path: Path, files: Files) -> str | None:
    """SHA-256 of a file, or None if it was not read."""
    try:
        return files.sha256(path)
    except KeyError:
        return None


def without_metrics(rows: Iterable[dict[str, Any]], harness: str, metric: str | None) -> Iterator[dict[str, Any]]:
    """Rows of a harness that records verdicts alone: if a metric is named, each row says that it is not applied."""
    unused = f"{harness} records a verdict and no metrics: '{metric}' is not applied" if metric else None
    for one in rows:
        yield {**one, "note": joined_notes(one["note"], unused)}


def named_arm(agent: str | None, model: str | None) -> str | None:
    """An arm by its agent and, where one is on record, its model: "agent (model)"."""
    return f"{agent} ({model})" if agent and model else agent


def sum_of_all(values: Iterable[float | None]) -> float | None:
    """The sum of some values, or None where there are none or one of them is missing."""
    found: list[float] = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    return sum(found) if found else None


# ---- files and folders


def check_exists(path: Path) -> None:
    """Stop at a path that the caller named and that is not there.

    Raises
    ------
    DataError
        If there is no such file or folder.
    """
    if not path.exists():
        raise DataError("no such file or folder", file=path)


def optional_document(path: Path, files: Files) -> tuple[Any, str | None]:
    """A JSON document that may be missing, and what is wrong with it."""
    if path.is_symlink():
        return None, f"{path.name} is {LINK_TO_NAME}"
    if not path.exists():
        return None, None
    try:
        return files.read_json(path), None
    except DataError as error:
        return None, f"{path.name}: {error.problem}"


def head(path: Path, most: int) -> bytes:
    """The first bytes of a file; none if there is no such file."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(most)


def subfolders(path: Path) -> list[Path]:
    """Folders in a folder, and links to folders or to nothing, by name; not the hidden ones."""
    with os.scandir(path) as entries:
        found = [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
    return sorted(entry for entry in found if entry.is_dir() or (entry.is_symlink() and not entry.exists()))


def unopened(path: Path, error: OSError) -> Skipped:
    """A folder that does not open."""
    return Skipped(path, f"the folder cannot be opened ({error.strerror})")
