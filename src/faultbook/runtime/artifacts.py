"""Files that are named by their content: large outputs and images stay beside a run, and messages hold references.

An artifact is a file `objects/ab/cdef…` under the SHA-256 of what is in it. It is written beside, synced and renamed,
so it is there as a whole or not at all. Whoever reads it back gets the very bytes that were put in, or an error: what
is missing or altered is never passed over. Nothing here opens, decodes or resizes an image.

Every folder on the way is opened by its descriptor, without following links. The store's folder may not become another
one while it is in use. What was put in, by which run, for how long and who may read it, stands in `index.jsonl`, one
JSON object a line; lines are only added.

What is put in is kept as it is, secrets and all: whoever puts in what a program printed redacts it first, or sees to
the permission.

`lifetime` is "run" (until that run is released, and `collect` is called) or "keep". `permission` is the mode of the
file: "owner" 0600, "group" 0640, "all" 0644. If the same content is put in twice, the longer life and the narrower
permission hold.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from faultbook.runtime import artifact_audit, artifact_index
from faultbook.runtime.artifact_audit import FINDINGS
from faultbook.runtime.artifact_folder import ArtifactFolder, names
from faultbook.runtime.artifact_source import copied
from faultbook.runtime.redaction import redacted_text
from faultbook.runtime.references import (
    LIFETIMES,
    PERMISSIONS,
    UNKNOWN_MIME,
    AlteredArtifactError,
    ArtifactError,
    MissingArtifactError,
    Reference,
    from_message_block,
    mime_of,
    to_message_block,
)
from faultbook.text import plain

__all__ = [
    "FINDINGS",
    "LIFETIMES",
    "PERMISSIONS",
    "UNKNOWN_MIME",
    "AlteredArtifactError",
    "ArtifactError",
    "ArtifactStore",
    "MissingArtifactError",
    "Reference",
    "from_message_block",
    "mime_of",
    "to_message_block",
]


class ArtifactStore:
    """A folder of artifacts, for threads and processes alike.

    Parameters
    ----------
    folder : path
        Made if there is none; not a symbolic link.
    run_id : str, optional
        Whose artifacts of lifetime "run" are put in here.
    fsync : bool
        Whether to wait until what is put in would survive a loss of power.

    Raises
    ------
    ArtifactError
        If the folder cannot be used.
    """

    def __init__(self, folder: str | Path, *, run_id: str | None = None, fsync: bool = True) -> None:
        self.folder = Path(folder).absolute()
        self.run_id = run_id
        self._folder = ArtifactFolder(self.folder, fsync=fsync)

    # ---- putting in ------------------------------------------------------------------------------------------------

    def put(
        self,
        source: bytes | Path | BinaryIO,
        *,
        mime: str | None = None,
        name: str | None = None,
        lifetime: str = "run",
        permission: str = "owner",
    ) -> Reference:
        """Keep bytes, a file or a stream.

        Parameters
        ----------
        source : bytes, path or binary stream
            A path must be of a file itself, not of a link to one. A stream is read to its end.
        mime : str, optional
            What it is; told from the bytes if not given.
        name : str, optional
            What to call it; only the last part of a path is kept.
        lifetime, permission : str
            See the module.

        Raises
        ------
        ArtifactError
            If it cannot be read or written, or a parameter cannot be. Nothing is left half written then.
        """
        Reference("0" * 64, 0, mime or UNKNOWN_MIME, None, lifetime, permission)  # before anything is written
        if mime is not None and redacted_text(mime) != mime:
            raise ArtifactError("a MIME type holds what looks like a secret")
        part = f"{os.getpid()}-{secrets.token_hex(8)}"
        with (
            self._folder.place() as root,
            self._folder.held(root, fcntl.LOCK_SH) as lock,
            self._folder.place("tmp", root) as folder,
        ):
            try:
                sha256, size, head = copied(source, part, folder, self._folder, PERMISSIONS[permission])
                reference = Reference(sha256, size, mime or mime_of(head, size), _shown(name), lifetime, permission)
                event = self._install(reference, part, folder, root)
                self._note(root, {"event": event, **reference.as_dict(), "run_id": _run(self.run_id)}, lock)
            except OSError as error:
                raise self._folder.unusable(error) from None
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)
        return reference

    def _install(self, reference: Reference, part: str, folder: int, root: int) -> str:
        """Give the new file its place: "put", "again" if the same is there already, "mended" if it had been altered."""
        sha256, mode = reference.sha256, PERMISSIONS[reference.permission]
        with self._folder.place("objects", root) as objects:
            with contextlib.suppress(FileExistsError):
                os.mkdir(sha256[:2], 0o755, dir_fd=objects)
                self._folder.sync(objects)
            with self._folder.place(sha256[:2], objects) as place:
                event = "put"
                try:
                    with self._folder.file(sha256, place) as held:
                        if hashlib.file_digest(held, "sha256").hexdigest() == sha256:
                            before = stat.S_IMODE(os.fstat(held.fileno()).st_mode)
                            if before & ~mode:
                                os.fchmod(held.fileno(), before & mode)
                            return "again"
                        event = "mended"
                except MissingArtifactError:
                    pass
                except ArtifactError:
                    event = "mended"
                os.replace(part, sha256[2:], src_dir_fd=folder, dst_dir_fd=place)
                self._folder.sync(place)
                return event

    def _note(self, root: int, line: Mapping[str, Any], lock: int | None = None) -> None:
        """Add a line to the index, all of it or nothing; with a lock, take back the file that it would have named."""
        try:
            artifact_index.note(self._folder, root, line)
        except OSError:
            if lock is not None and line["event"] == "put":
                self._take_back(root, line["sha256"], lock)
            raise

    def _take_back(self, root: int, sha256: str, lock: int) -> None:
        """Remove a file that is in no index, unless somebody else is at work: they may have found it there."""
        with contextlib.suppress(OSError, ArtifactError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if sha256 not in artifact_index.modes(artifact_index.read(self._folder, root)[0]):
                with self._folder.place("objects", root) as objects, self._folder.place(sha256[:2], objects) as place:
                    os.unlink(sha256[2:], dir_fd=place)

    # ---- reading back ----------------------------------------------------------------------------------------------

    def get(self, reference: Reference) -> bytes:
        """What is in an artifact, byte for byte as it was put in.

        Raises
        ------
        MissingArtifactError, AlteredArtifactError, ArtifactError
            If it is not there, not what was put in, or not to be read.
        """
        with self._read(reference) as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != reference.sha256:
            raise self._folder.altered(reference.sha256, "its content has another digest")
        return content

    def open(self, reference: Reference) -> BinaryIO:
        """An artifact as a file to read from, after all of it was verified; raises as `get` does."""
        with self._read(reference) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != reference.sha256:
                raise self._folder.altered(reference.sha256, "its content has another digest")
            file.seek(0)
            return os.fdopen(os.dup(file.fileno()), "rb")

    @contextlib.contextmanager
    def _read(self, reference: Reference) -> Iterator[io.BufferedReader]:
        sha256 = reference.sha256
        with self._folder.place() as root, self._folder.place("objects", root) as objects:
            try:
                with self._folder.place(sha256[:2], objects) as place, self._folder.file(sha256, place) as file:
                    size = os.fstat(file.fileno()).st_size
                    if size != reference.size:
                        raise self._folder.altered(sha256, f"it has {size} bytes where {reference.size} were put in")
                    yield file
            except FileNotFoundError:
                raise self._folder.missing(sha256) from None

    # ---- the whole store -------------------------------------------------------------------------------------------

    def verify(self) -> list[dict[str, str]]:
        """Read everything and list what is wrong.

        Returns
        -------
        list of dict
            `finding` (one of `FINDINGS`), `artifact` (a digest, a path within the store or the number of a line) and
            `detail`, in the order of these.
        """
        return artifact_audit.verify(self._folder)

    def release(self, run_id: str | None) -> None:
        """Say that a run does not need its artifacts of lifetime "run" any more; `collect` removes them."""
        with self._folder.place() as root, self._folder.held(root, fcntl.LOCK_SH):
            try:
                self._note(root, {"event": "released", "run_id": _run(run_id)})
            except OSError as error:
                raise self._folder.unusable(error) from None

    def collect(self) -> list[str]:
        """Remove what nobody holds: no run that is not released, and no wish to keep it.

        What is not in the index is left alone, since nobody knows who holds it; leftovers of puts that ended early go.

        Returns
        -------
        list of str
            Digests of what was removed.
        """
        removed: list[str] = []
        with self._folder.place() as root, self._folder.held(root, fcntl.LOCK_EX):
            lines, broken = artifact_index.read(self._folder, root)
            if broken:
                problem = "the index has lines that cannot be read, so nothing is removed"
                raise ArtifactError(problem, file=self.folder, mend="see what `verify` finds")
            known, holders = artifact_index.modes(lines), artifact_index.holders(lines)
            with self._folder.place("objects", root) as objects:
                for sha256 in artifact_audit.listed(self._folder, root)[0]:
                    if sha256 in known and sha256 not in holders:
                        self._remove(sha256, objects, root)
                        removed.append(sha256)
            with self._folder.place("tmp", root) as folder:  # nobody puts anything in while this lock is held
                for name in names(folder):
                    os.unlink(name, dir_fd=folder)
        return removed

    def _remove(self, sha256: str, objects: int, root: int) -> None:
        try:
            self._note(root, {"event": "collected", "sha256": sha256})
            with self._folder.place(sha256[:2], objects) as place:
                os.unlink(sha256[2:], dir_fd=place)
        except OSError as error:
            raise self._folder.unusable(error) from None


def _shown(name: str | None) -> str | None:
    """The last part of a path as a word for people, without secrets and without anything that moves a cursor."""
    if name is None:
        return None
    # Cleaned before it is cut: a part of an address no longer looks like one with a password.
    last = re.split(r"[/\\]", redacted_text(name))[-1]
    return " ".join(redacted_text(plain(last, most=200)).split()) or None


def _run(run_id: str | None) -> str | None:
    return None if run_id is None else redacted_text(run_id)
