"""Files that are there as a whole or not at all, whatever breaks off their writing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` once all of it is on disk; if the block fails, it is gone.

    Parameters
    ----------
    path : path
        In a folder that exists. What is there stays until it is replaced, or for good if the block fails.
    mode : int
        Permissions of the new file.

    Yields
    ------
    binary file

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with tempfile.NamedTemporaryFile("wb", prefix=".part-", dir=path.parent, delete=False) as file:
        part = Path(file.name)
        try:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file as a whole or not at all; parameters and errors are those of `whole_file`."""
    with whole_file(path, mode=mode) as file:
        file.write(data)
