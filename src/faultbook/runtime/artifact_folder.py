"""The folder that artifacts lie in, by its descriptors: no link is followed, and no other folder is taken for it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from faultbook.runtime.references import AlteredArtifactError, ArtifactError, MissingArtifactError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # of a pipe, too, nobody waits for the other end


class ArtifactFolder:
    """A folder with `objects`, `tmp`, a lock and an index; made if there is none.

    Parameters
    ----------
    path : path
        Not a symbolic link.
    fsync : bool
        Whether to wait until what is written would survive a loss of power.

    Raises
    ------
    ArtifactError
        If the folder cannot be used.
    """

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self.path = path
        self._fsync = fsync
        self._identity: tuple[int, int] | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.unusable(error) from None
        with self.place() as root:
            found = os.fstat(root)
            self._identity = found.st_dev, found.st_ino
            for name in ("objects", "tmp"):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=root)

    @contextlib.contextmanager
    def place(self, name: str | None = None, parent: int | None = None) -> Iterator[int]:
        """The descriptor of a folder of the store, or of the store itself: never that of a link's target."""
        try:
            place = os.open(self.path if name is None else name, _FOLDER, dir_fd=parent)
        except FileNotFoundError:
            if name not in (None, "objects", "tmp"):
                raise  # there is no artifact of that beginning
            raise ArtifactError(f"the folder '{name or self.path.name}' is gone", file=self.path) from None
        except OSError as error:
            problem = f"'{name or self.path.name}' is a symbolic link or no folder ({error.strerror})"
            raise ArtifactError(problem, file=self.path, mend="put a folder there, not a link") from None
        try:
            found = os.fstat(place)
            if name is None and self._identity not in (None, (found.st_dev, found.st_ino)):
                raise ArtifactError("the folder of artifacts was replaced while it was in use", file=self.path)
            yield place
        finally:
            os.close(place)

    @contextlib.contextmanager
    def held(self, root: int, how: int) -> Iterator[int]:
        """A lock that ends with its process: shared by who puts in, held alone by who collects."""
        try:
            lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=root)
        except OSError as error:
            raise self.unusable(error) from None
        try:
            fcntl.flock(lock, how)
            yield lock
        finally:
            os.close(lock)

    def sync(self, descriptor: int) -> None:
        """Wait until a file or folder is on disk, if that is wished for."""
        if self._fsync:
            os.fsync(descriptor)

    @contextlib.contextmanager
    def file(self, sha256: str, place: int) -> Iterator[io.BufferedReader]:
        """The file of an artifact: itself, no link, no pipe."""
        try:
            file = opened(sha256[2:], place)
        except FileNotFoundError:
            raise self.missing(sha256) from None
        except OSError as error:
            raise ArtifactError(f"artifact {sha256} cannot be read ({error.strerror})", file=self.path) from None
        with file:
            yield file

    def unusable(self, error: OSError) -> ArtifactError:
        """What the system says, as an error of the folder."""
        return ArtifactError(f"artifacts cannot be kept or read here ({error.strerror})", file=self.path)

    def missing(self, sha256: str) -> MissingArtifactError:
        """The error for a digest that is not there."""
        return MissingArtifactError(f"there is no artifact {sha256}", file=self.path, mend="restore it from a copy")

    def altered(self, sha256: str, problem: str) -> AlteredArtifactError:
        """The error for content that is not what was put in."""
        return AlteredArtifactError(f"artifact {sha256} was altered: {problem}", file=self.path, mend="restore it")


def opened(name: str | Path, folder: int | None = None) -> io.BufferedReader:
    """A regular file, itself: links, folders and pipes are errors of the system's kind."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return os.fdopen(descriptor, "rb")


def names(folder: int) -> list[str]:
    """Names in a folder, in order."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)
