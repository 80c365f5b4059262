"""Files as they are read: the bytes and the SHA-256 of each are kept, so that a report can say what it rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.errors import DataError, unreadable
from faultbook.jsonfile import document, parsed_json
from faultbook.text import is_unicode

COLUMNS = ["path", "bytes", "sha256"]
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a file: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


class Files:
    """Reads files and remembers the digest of each; a file that was read before must be the same still."""

    def __init__(self) -> None:
        self._seen: dict[Path, Read] = {}

    def read_bytes(self, path: Path) -> bytes:
        """The content of a file.

        Raises
        ------
        DataError
            If it cannot be read, its name is no text, or it is no longer what it was when it was read before.
        """
        _check_name(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise unreadable(error, path) from None
        self._remember(path, Read(len(content), hashlib.sha256(content).hexdigest()))
        return content

    def read_text(self, path: Path) -> str:
        """The text of a file; bytes that are not UTF-8 become replacement characters, and lose nothing else."""
        return self.read_bytes(path).decode("utf-8-sig", errors="replace")

    def read_json(self, path: Path) -> Any:
        """The JSON document in a file; NaN and Infinity are let through, as Python's own writer lets them.

        Raises
        ------
        DataError
            If it cannot be read, is empty, or is no JSON, such as one that was half written.
        """
        return document(self.read_text(path), path)

    def json_lines(self, path: Path) -> Iterator[tuple[int, Any]]:
        """Each line that is not blank, with its number from 1 on; a line that is no JSON comes as a DataError.

        One line is in memory at a time; the digest is known once all have been taken.

        Raises
        ------
        DataError
            As `read_bytes`.
        """
        digest, size = hashlib.sha256(), 0
        _check_name(path)
        try:
            with path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    digest.update(raw)
                    size += len(raw)
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").removesuffix("\n")
                    if line.strip("\0 \t\r"):
                        yield number, _line(line, path, number)
        except OSError as error:
            raise unreadable(error, path) from None
        self._remember(path, Read(size, digest.hexdigest()))

    def digest(self, path: Path) -> str:
        """SHA-256 of a file, without holding it in memory, for a file that somebody else's reader opens.

        Raises
        ------
        DataError
            As `read_bytes`.
        """
        _check_name(path)
        found = measure(path)
        self._remember(path, found)
        return found.sha256

    def sha256(self, path: Path) -> str:
        """SHA-256 of a file that was read."""
        return self._seen[path].sha256

    def manifest(self) -> pd.DataFrame:
        """Every file that was read, in the order of their paths: path, bytes, sha256."""
        rows = [(str(path), read.bytes, read.sha256) for path, read in sorted(self._seen.items())]
        return pd.DataFrame(rows, columns=COLUMNS).astype({"path": "str", "bytes": "int64", "sha256": "str"})

    def _remember(self, path: Path, read: Read) -> None:
        before = self._seen.setdefault(path, read)
        if before != read:
            raise changed(path)


def _line(line: str, path: Path, number: int) -> Any:
    try:
        return parsed_json(line, path, number)
    except DataError as error:
        return error


def shown(path: str | Path) -> str:
    """A path as a text that a table can hold: bytes of a name that are no text become escapes."""
    return str(path).encode("utf-8", errors="backslashreplace").decode("utf-8")


def measure(path: Path) -> Read:
    """Size and SHA-256 of a file.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise unreadable(error, path) from None
    return Read(size, digest.hexdigest())


def changed(path: str | Path) -> DataError:
    """A file is no longer what was read."""
    mend = "read it again once nothing writes to it, or copy the folder first"
    return DataError("changed between reading and reporting", file=path, mend=mend)


def _check_name(path: Path) -> None:
    """Refuse a file that no manifest could name."""
    if not is_unicode(str(path)):
        raise DataError("a name that is no UTF-8 text, which no manifest can hold", file=shown(path), mend="rename it")
