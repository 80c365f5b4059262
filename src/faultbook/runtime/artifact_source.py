"""What an artifact is made of: bytes, a file or a stream, read in pieces and written beside its place to be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from faultbook.runtime.artifact_folder import ArtifactFolder, opened
from faultbook.runtime.references import ArtifactError

_CHUNK = 1 << 20
_HEAD = 1 << 16  # bytes that tell what a file is


def copied(
    source: bytes | Path | BinaryIO, part: str, place: int, folder: ArtifactFolder, mode: int
) -> tuple[str, int, bytes]:
    """Write all of a source to a new file `part` of the folder `place`: its SHA-256, its size and its first bytes.

    Raises
    ------
    ArtifactError
        If the source is a path and cannot be read as a file of its own.
    OSError
        If the file cannot be written.
    """
    digest, size, head = hashlib.sha256(), 0, b""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    target = os.open(part, flags, 0o600, dir_fd=place)
    try:
        for chunk in _chunks(source):
            digest.update(chunk)
            size += len(chunk)
            head += chunk[: _HEAD - len(head)]
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(target, rest) :]
        os.fchmod(target, mode)
        folder.sync(target)
    finally:
        os.close(target)
    return digest.hexdigest(), size, head


def _chunks(source: bytes | Path | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        try:
            file = opened(source)
        except OSError as error:
            problem = f"cannot be read as a file of its own ({error.strerror})"
            raise ArtifactError(problem, file=source, mend="name the file itself, not a link to it") from None
        with file:
            yield from iter(lambda: file.read(_CHUNK), b"")
    else:
        while chunk := source.read(_CHUNK):
            if not isinstance(chunk, bytes):
                raise TypeError(f"an artifact is read from a binary stream; this one gives {type(chunk).__name__}")
            yield chunk
