"""Which process is meant, told by process id, start and boot, so that no other one is ever signalled."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultbook.processes import PROC, boot_id, pid_namespace, start_ticks


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process is meant, on this machine, in this boot; what is None was not known."""

    pid: int
    start_ticks: int | None
    boot_id: str | None
    pid_namespace: str | None

    @classmethod
    def of(cls, pid: int, *, proc: Path = PROC) -> Identity:
        """The process that has this id now."""
        return cls(pid, start_ticks(pid, proc=proc), boot_id(proc=proc), pid_namespace(proc=proc))

    def lives(self, *, proc: Path = PROC) -> bool | None:
        """Whether this very process runs; None if that cannot be told (facts are missing, or ids are another's)."""
        boot = boot_id(proc=proc)
        if self.boot_id is not None and boot is not None and self.boot_id != boot:
            return False  # nothing outlives a reboot, whatever has its id now
        if None in (self.start_ticks, self.boot_id, boot) or self.pid_namespace != pid_namespace(proc=proc):
            return None
        return start_ticks(self.pid, proc=proc) == self.start_ticks

    def send(self, number: int) -> bool:
        """Send a signal to this very process; False if it is gone, cannot be told or may not be signalled."""
        # The handle is taken before the look, so that what is seen is what is signalled.
        with contextlib.suppress(ProcessLookupError, PermissionError), _handle(self.pid) as handle:
            if self.lives() is not True:
                return False
            if handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
            return True
        return False


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """A handle of the process that has this id now, which no later process can take over; None where there is none."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, or a sandbox that forbids it
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)
