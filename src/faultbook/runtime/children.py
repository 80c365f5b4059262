"""Child processes that a run owns: told by identity, ended with all that they started, never mistaken for others.

A child runs in a session and process group of its own, so that a signal to the group reaches its own children too. Its
identity (process id, start, boot) is recorded right after the start, and no process whose identity does not match is
ever signalled. A child that was started here is not reaped while anything else lives in its group: until then its
process id, which is also that of the group, cannot be given to anybody else.

If the owner is killed without warning, its children live on: nothing here ties their lives to the owner's. (Linux's
parent-death signal would, but it fires when the *thread* that started the child ends, has to be set between fork and
exec, where a process with threads may do next to nothing, and there are none elsewhere.) Keep `Child.record()` in the
run's lease or journal, and the next inspection finds them with `find_leftovers`.

What a process started and then let go before it was looked at (a daemon that forked twice into a session of its own)
cannot be told from a stranger's, and is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

import psutil

from faultbook.errors import DataError
from faultbook.processes import start_ticks
from faultbook.runtime.identity import Identity
from faultbook.runtime.owned_process import OwnedProcess

__all__ = ["GRACE", "Child", "Ending", "Identity", "find_leftovers"]

GRACE = 5.0  # seconds between the request to end and the end
_AFTER_KILL = 5.0  # seconds until a killed process that has not gone is called left behind
_STEP = 0.02  # seconds between two looks

_File = int | IO[Any] | Path | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child was ended.

    Parameters
    ----------
    exit_status : int or None
        What it exited with; None if a signal ended it, or if its status belongs to somebody else.
    signal : str or None
        The name of the signal that ended it, such as "SIGKILL".
    asked, forced : bool
        Whether SIGTERM and SIGKILL were sent.
    seconds : float
        How long the end took.
    detached : tuple of Identity
        Descendants that had left its group; they are ended one by one.
    left_behind : tuple of Identity
        Processes of the family that still live.
    refused : str or None
        Why nothing was signalled at all.
    """

    exit_status: int | None = None
    signal: str | None = None
    asked: bool = False
    forced: bool = False
    seconds: float = 0.0
    detached: tuple[Identity, ...] = ()
    left_behind: tuple[Identity, ...] = ()
    refused: str | None = None

    def record(self) -> dict[str, Any]:
        """The same as plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


class Child(OwnedProcess):
    """A process that this run owns; make one with `start`, `adopt` or `from_record`.

    As a context manager it is ended with its block. A child that was started here must be waited for or ended, else it
    stays behind as a zombie.

    Attributes
    ----------
    identity : Identity
        As recorded when it was started, adopted or written down.
    program : str or None
        What was started; arguments may hold secrets and are not kept.
    popen : subprocess.Popen or None
        The handle of one that was started here, for its pipes. Its `poll` and `wait` are not to be called: they give
        the process id away.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        program: str | None = None,
        popen: subprocess.Popen[bytes] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(identity, popen)
        self.program = program
        self._clock = clock
        self._end = threading.Lock()

    @classmethod
    def start(
        cls,
        argv: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: _File = subprocess.DEVNULL,
        stdout: _File = None,
        stderr: _File = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Start a program in a session and process group of its own.

        Parameters
        ----------
        argv : sequence of str or path
            The program and its arguments; no shell.
        env, cwd
            As for `subprocess.Popen`.
        stdin, stdout, stderr : path, file, number or None
            A path is appended to, so that what was written before the end is kept whatever the end. Whoever passes
            `subprocess.PIPE` reads it through `popen`.
        clock : callable
            Seconds that never run backwards.

        Raises
        ------
        OSError
            If the program cannot be started.
        """
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(f.open("ab")) if isinstance(f, Path) else f for f in (stdin, stdout, stderr)]
            popen = subprocess.Popen(  # noqa: S603  # what the owner of the run says
                argv, env=env, cwd=cwd, stdin=files[0], stdout=files[1], stderr=files[2], start_new_session=True
            )
        return cls(Identity.of(popen.pid), program=os.fspath(argv[0]), popen=popen, clock=clock)

    @classmethod
    def adopt(cls, pid: int, *, program: str | None = None, clock: Callable[[], float] = time.monotonic) -> Self:
        """Own a process that another library started, such as a kernel, as it is now; that library reaps it.

        Raises
        ------
        ProcessLookupError
            If there is no such process.
        """
        identity = Identity.of(pid)
        if identity.start_ticks is None and not psutil.pid_exists(pid):
            raise ProcessLookupError(f"no process {pid} to adopt")
        return cls(identity, program=program, clock=clock)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The child that `record` wrote down, perhaps for another owner.

        Raises
        ------
        DataError
            If the record is not of that form.
        """
        pid, ticks = record.get("pid"), record.get("start_ticks")
        boot, namespace, program = (record.get(name) for name in ("boot_id", "pid_namespace", "program"))
        texts_fit = all(isinstance(text, str | None) for text in (boot, namespace, program))
        if (
            not isinstance(pid, int)
            or bool in (type(pid), type(ticks))
            or not isinstance(ticks, int | None)
            or not texts_fit
        ):
            raise DataError("not the record of a child process", mend="write it with Child.record()")
        return cls(Identity(pid=pid, start_ticks=ticks, boot_id=boot, pid_namespace=namespace), program=program)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def record(self) -> dict[str, Any]:
        """What finds it again, as plain values for a lease or a journal."""
        return {**asdict(self.identity), "program": self.program}

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most `timeout` seconds, and say whether it has."""
        ended = self._until(lambda: not self.alive(), timeout)
        if ended:
            self._release()
        return ended

    def terminate(self, seconds: float = GRACE) -> Ending:
        """End it with all that it started: ask (SIGTERM), and after `seconds` force (SIGKILL).

        The whole process group is meant, also what outlives the child in it, and descendants that left the group: they
        are looked up by parentage before the first signal and then ended one by one, each only if its own identity
        still matches. Whatever was written to files or pipes stays.

        Parameters
        ----------
        seconds : float
            Between request and force, such as what a deadline leaves for clean-up. 0 forces at once after asking.

        Returns
        -------
        Ending
            What was done, and what still lives. A second call looks again.
        """
        with self._end:
            began = self._clock()
            family = self._family(frozenset())
            refused = self._refusal(family)
            if refused is not None:
                self._release()
                return Ending(self.exit_status, self.signal, refused=refused)
            detached = tuple(sorted((member for member in family if not self._is_grouped(member)), key=_by_pid))
            asked = self._send(signal.SIGTERM, family)
            forced = False
            if not self._until(lambda: not self._living(family), seconds):
                family = self._family(family)
                forced = True
                self._until(lambda: not self._force(family), _AFTER_KILL)
            left = tuple(sorted(self._living(family), key=_by_pid))
            self._release()
            took = self._clock() - began
            return Ending(self.exit_status, self.signal, asked, forced, took, detached, left)

    def _refusal(self, family: frozenset[Identity]) -> str | None:
        if any(member.pid == os.getpid() for member in family) or self.pid == os.getpid():
            return "this process is one of its own"
        if self._reaped:
            return "it has ended, and nothing is left of its group"
        if self._is_provable():
            return None
        found = start_ticks(self.pid)
        if self.identity.lives() is None:
            return f"whether process {self.pid} is the one that was recorded cannot be told"
        return "it has ended" if found is None else f"it has ended: process {self.pid} is another one now"

    def _until(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Look until a condition holds, at most some seconds, at least once."""
        began, step = self._clock(), 0.001
        while not condition():
            left = None if seconds is None else began + seconds - self._clock()
            if left is not None and left <= 0:
                return False
            time.sleep(step if left is None else min(step, left))
            step = min(2 * step, _STEP)
        return True


def find_leftovers(records: Iterable[Mapping[str, Any]]) -> list[Child]:
    """Children of earlier owners that still live, by their records.

    Only those whose identity matches: neither a process that was given the same id later nor one of another boot, and
    none from another process namespace, where the same ids mean other processes. `Identity.lives` tells "has ended"
    and "cannot be told" apart for each record.

    Raises
    ------
    DataError
        If a record is not of the form that `Child.record` writes.
    """
    return [child for child in map(Child.from_record, records) if child.identity.lives()]


def _by_pid(identity: Identity) -> int:
    return identity.pid
