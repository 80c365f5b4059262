"""Which process is meant: a process id alone is used again, so an owner is told by boot, start and namespace too.

Linux keeps these facts in `/proc`; elsewhere they are not known, and every function says so with None. Nothing here
ever sends a signal, not even the empty one that asks whether somebody is there: the process may be another one by now.

Source of the fields: proc(5), `/proc/pid/stat`, and random(4), `boot_id`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")

_STATE, _THREADS, _START = 3, 20, 22  # numbers of fields, as in proc(5)
_FIRST_AFTER_NAME = 3
_ENDED = ("Z", "X", "x")


class _Stat(NamedTuple):
    state: str
    n_threads: int
    start_ticks: int

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more: a first thread can end while others go on."""
        return self.state in _ENDED and self.n_threads <= 1


def boot_id(*, proc: Path = PROC) -> str | None:
    """The id of this start of the machine, the same in all its containers; None where the system tells none."""
    return _text(proc / "sys" / "kernel" / "random" / "boot_id")


def start_ticks(pid: int, *, proc: Path = PROC) -> int | None:
    """Clock ticks from the machine's start to that of a process.

    Unlike a time of day this number does not move when the clock is set, so together with boot and process id it names
    one process for good.

    Parameters
    ----------
    pid : int
        As the processes see it that `proc` lists.
    proc : path
        Where the process file system is mounted.

    Returns
    -------
    int or None
        None if there is no such process any more, or its entry cannot be read; `process_exists` tells these apart.
    """
    try:
        found = _stat(pid, proc)
    except OSError:
        return None
    return None if found is None or found.has_ended else found.start_ticks


def process_exists(pid: int, *, proc: Path = PROC) -> bool | None:
    """Whether a process has this id and has not ended; None where that cannot be told.

    A process that has ended and waits for its parent to take note (a zombie) is gone. One that is stopped is there. An
    entry that is missing proves nothing where entries are hidden (the mount option `hidepid`): then the first process
    is missing too.
    """
    try:
        found = _stat(pid, proc)
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return False if (proc / "1").exists() else None
    except PermissionError:
        return True
    except OSError:
        return None
    return None if found is None else not found.has_ended


def pid_namespace(*, proc: Path = PROC) -> str | None:
    """The namespace in which process ids are counted here, such as "pid:[4026531836]".

    None where the system has none, and where `proc` shows the processes of another namespace than this process's own:
    ids read there are then not those that this process knows itself and others by.
    """
    try:
        if (proc / "self").readlink().name != str(os.getpid()):
            return None
        return str((proc / "self" / "ns" / "pid").readlink())
    except OSError:
        return None


def _stat(pid: int, proc: Path) -> _Stat | None:
    """The entry of a process; None if it is not of the known form."""
    content = (proc / str(pid) / "stat").read_bytes()
    # The second field is the name in parentheses, and the name may hold blanks and parentheses itself.
    _, end, rest = content.rpartition(b")")
    fields = rest.decode("ascii", "replace").split()
    try:
        state, threads, start = (fields[number - _FIRST_AFTER_NAME] for number in (_STATE, _THREADS, _START))
        return _Stat(state, int(threads), int(start)) if end else None
    except (IndexError, ValueError):
        return None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("ascii", "replace").strip() or None
    except OSError:
        return None
