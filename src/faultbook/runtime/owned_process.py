"""A process that is ours, and the family that it started: who belongs to it, who still lives, how all are signalled.

Nothing is signalled that is not proved to be meant: a child that was started here keeps its id until it is reaped, any
other process is told by its `Identity`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterable

import psutil

from faultbook.errors import DataError
from faultbook.processes import start_ticks
from faultbook.runtime.identity import Identity


class OwnedProcess:
    """A process and its family; see `faultbook.runtime.children.Child`.

    Parameters
    ----------
    identity : Identity
        Which process is meant.
    popen : subprocess.Popen or None
        The handle of one that was started here, which nobody else has reaped.

    Raises
    ------
    DataError
        If no run could own a process of that id.
    """

    def __init__(self, identity: Identity, popen: subprocess.Popen[bytes] | None) -> None:
        if identity.pid <= 1:
            raise DataError(f"{identity.pid} is not the id of a process that a run could own")
        self.identity, self.popen = identity, popen
        self._status: int | None = None  # as subprocess writes it: an exit status, or minus a signal
        self._ended = False
        self._reaped = False
        self._look = threading.RLock()

    @property
    def pid(self) -> int:
        """The process id; whose it is now, `alive` says."""
        return self.identity.pid

    @property
    def exit_status(self) -> int | None:
        """What it exited with; None while it lives, if a signal ended it, or if it was not started here."""
        return self._status if self._status is not None and self._status >= 0 else None

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it."""
        return _signal_name(-self._status) if self._status is not None and self._status < 0 else None

    def alive(self) -> bool:
        """Whether it still runs. Where only its id is known, whether anything has that id."""
        if self.popen is not None:
            return self._is_held() and not self._ended
        lives = self.identity.lives()
        return psutil.pid_exists(self.pid) if lives is None else lives

    def _is_held(self) -> bool:
        """Whether it was started here and is not reaped, so that its id is its own for certain; notes its end."""
        with self._look:
            if self.popen is None or self._reaped:
                return False
            if not hasattr(os, "waitid"):  # there its end cannot be seen without giving its id away
                self._status = self.popen.poll()
                self._ended = self._reaped = self._status is not None
                return not self._reaped
            try:
                found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:  # somebody else took note of its end
                self._ended = self._reaped = True
                return False
            if found is not None:
                self._ended = True
                self._status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            return True

    def _is_provable(self) -> bool:
        """Whether a signal to its id, and to its group, reaches it and nobody else."""
        if self.popen is None:
            return self.identity.lives() is True
        return self._is_held() and start_ticks(self.pid) in (None, self.identity.start_ticks)

    def _leads_group(self) -> bool:
        try:
            return os.getpgid(self.pid) == self.pid != os.getpgrp()
        except ProcessLookupError:
            return False

    def _is_grouped(self, member: Identity) -> bool:
        with contextlib.suppress(ProcessLookupError):
            return os.getpgid(member.pid) == os.getpgid(self.pid)
        return False

    def _group(self) -> frozenset[Identity]:
        """What else lives in its group; empty if the group cannot be told to be its own."""
        if not (self._leads_group() and self._is_provable()):
            return frozenset()
        others = (Identity.of(pid) for pid in psutil.pids() if pid != self.pid and _group_of(pid) == self.pid)
        return frozenset(other for other in others if other.lives() and _group_of(other.pid) == self.pid)

    def _family(self, known: frozenset[Identity]) -> frozenset[Identity]:
        """All that it started as far as parentage and group show, and what was known before."""
        found = set(known)
        roots = [self.identity] if self._is_provable() else []
        for root in (*roots, *(member for member in known if member.lives())):
            with contextlib.suppress(psutil.Error):
                for process in psutil.Process(root.pid).children(recursive=True):
                    identity = Identity.of(process.pid)
                    if identity.lives() and process.is_running():
                        found.add(identity)
        return frozenset(found) | self._group()

    def _living(self, family: frozenset[Identity]) -> frozenset[Identity]:
        itself = {self.identity} if self.alive() else set()
        return frozenset(member for member in family if member.lives()) | self._group() | itself

    def _send(self, number: int, family: Iterable[Identity]) -> bool:
        """Signal the group at once if it is its own, and the others one by one."""
        sent = set()
        if self._leads_group() and self._is_provable():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
                sent.add(self.pid)
        elif self.identity.send(number):
            sent.add(self.pid)
        grouped = self._leads_group() and bool(sent)
        for member in family:
            if member != self.identity and not (grouped and self._is_grouped(member)) and member.send(number):
                sent.add(member.pid)
        return bool(sent)

    def _force(self, family: frozenset[Identity]) -> frozenset[Identity]:
        living = self._living(family)
        self._send(signal.SIGKILL, living)
        return living

    def _release(self) -> None:
        """Reap it once nothing else lives in its group."""
        with self._look:
            if self._is_held() and self._ended and not self._group() and self.popen is not None:
                self.popen.wait()
                self._reaped = True


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of the real-time signals
        return f"signal {number}"
