"""Put a finished folder in the place of another so that a reader, or a kill, sees either the old or the new one."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_ASIDE = ".old"


def swap_in(built: Path, target: Path) -> None:
    """Move the folder `built` to `target`; what stood there is removed afterwards.

    Both must lie on one filesystem. With nothing at `target` this is one rename. Otherwise the two are exchanged
    atomically (Linux); where the system cannot, the old one is moved aside first, and `recover` puts it back should
    the process die between the two renames.
    """
    if not target.exists():
        built.rename(target)
        return
    if _exchange(built, target):
        shutil.rmtree(built)
        return
    aside = target.with_name(f".{target.name}{_ASIDE}")
    shutil.rmtree(aside, ignore_errors=True)
    target.rename(aside)
    built.rename(target)
    shutil.rmtree(aside)


def recover(folder: Path) -> None:
    """Put back folders that a dead process had moved aside, where nothing took their place."""
    for aside in folder.glob(f".*{_ASIDE}"):
        target = aside.with_name(aside.name.removeprefix(".").removesuffix(_ASIDE))
        if target.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(target)


def _exchange(first: Path, second: Path) -> bool:
    """renameat2(RENAME_EXCHANGE); False where the C library, kernel or filesystem does not have it."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    done = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(second))
