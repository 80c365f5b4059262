"""Who owns a run: an operating-system lock, and beside it a record of boot, process, start and heartbeat.

The lock dies with its process, so two owners at a time cannot be; the record tells others, also on another machine or
after a restart, whose run it is. A state that somebody once wrote is never ownership. Nothing here sends a signal.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from faultbook.atomic import write_whole
from faultbook.errors import FaultbookError
from faultbook.ownership import LEASE, Ownership, ownership
from faultbook.processes import PROC, boot_id, pid_namespace, start_ticks
from faultbook.runtime.journal import Now, utc_now

RUN_LOCK = "run.lock"
DEFAULT_INTERVAL = 10.0  # seconds between heartbeats


class NotOwnedError(FaultbookError):
    """A run cannot be taken: somebody owns it, or nobody can tell."""


class Lease:
    """Holds a run for this process, from `take` to `release`; a context manager.

    Parameters
    ----------
    folder : path
        The run's folder; it exists.
    run_id : str
        The run.
    interval : float
        Seconds between heartbeats.
    now : callable
        The time of day, with offset.

    Raises
    ------
    NotOwnedError
        By `take`, if another process holds the lock.
    """

    def __init__(self, folder: Path, run_id: str, *, interval: float = DEFAULT_INTERVAL, now: Now = utc_now) -> None:
        self.folder, self.run_id, self.interval = folder, run_id, interval
        self._now = now
        self._lock = FileLock(folder / RUN_LOCK, thread_local=False)  # whichever thread lets go of it
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem: str | None = None  # why the last heartbeat could not be written, if it could not

    def take(self) -> Self:
        """Become the owner, and begin to say so.

        Raises
        ------
        NotOwnedError
            If another process holds the lock, or the record cannot be written.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise NotOwnedError(
                f"{self.folder}: another process owns this run; {inspect(self.folder).reason}"
            ) from None
        except OSError as error:
            raise NotOwnedError(f"{self.folder}: cannot be locked ({error.strerror})") from None
        self._stopped.clear()
        self.beat()
        if self.problem is not None:
            self._lock.release()
            raise NotOwnedError(f"{self.folder}: the owner record cannot be written ({self.problem})")
        self._thread = threading.Thread(target=self._beat_on, name=f"heartbeat of {self.run_id}", daemon=True)
        self._thread.start()
        return self

    def beat(self) -> None:
        """Write the owner record anew, whole. What keeps it from being written is in `problem`, and breaks nothing."""
        try:
            write_whole(self.folder / LEASE, json.dumps(self._record(), indent=1, sort_keys=True).encode(), mode=0o644)
            self.problem = None
        except OSError as error:
            self.problem = error.strerror or type(error).__name__

    def release(self) -> None:
        """Stop the heartbeat and let go of the lock; the record stays, as the last owner's."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self.take()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _record(self) -> dict[str, Any]:
        pid = os.getpid()
        return {
            "run_id": self.run_id,
            "boot_id": boot_id(),
            "pid": pid,
            "pid_namespace": pid_namespace(),
            "start_ticks": start_ticks(pid),
            "host": platform.node(),
            "heartbeat_monotonic": time.monotonic(),
            "heartbeat_at": self._now().isoformat(timespec="microseconds"),
            "interval_seconds": self.interval,
        }

    def _beat_on(self) -> None:
        while not self._stopped.wait(self.interval):
            self.beat()


def inspect(run: Path, *, proc: Path = PROC, monotonic: Callable[[], float] = time.monotonic) -> Ownership:
    """Whether the owner of a run is there: live, dead or indeterminate, and what that rests on.

    Parameters
    ----------
    run : path
        The run's folder.
    proc, monotonic
        The process file system and the monotonic clock, for tests.

    Raises
    ------
    DataError
        If there is no such folder.
    """
    return ownership(run, proc=proc, monotonic=monotonic)


def require_abandoned(run: Path, *, proc: Path = PROC) -> Ownership:
    """Make sure that a run's owner is gone for certain, before anybody goes on with what it left.

    Raises
    ------
    NotOwnedError
        If its owner lives, nobody can tell, or it came to its end and there is nothing to go on with.
    """
    found = inspect(run, proc=proc)
    if found.state == "dead" and not found.ended and not _is_locked(run):
        return found
    raise NotOwnedError(f"{run}: {found.reason}; only a run whose owner is certainly gone can be resumed")


def _is_locked(run: Path) -> bool:
    lock = FileLock(run / RUN_LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError as error:
        raise NotOwnedError(f"{run}: cannot be locked ({error.strerror})") from None
    lock.release()
    return False
