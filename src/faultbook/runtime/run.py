"""A run that is owned, journalled and ended once: a lease and a journal in a folder of its own, tied together.

A folder of work that holds results (such as `reports/`) has its runs in `.runs/` beside them, one folder a run.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from faultbook.errors import DataError, Signalled
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, RUN_STARTED, TRIAL_FINISHED, TRIAL_STARTED
from faultbook.processes import boot_id
from faultbook.revision import running_revision
from faultbook.runtime.journal import Clock, Journal, Now, records, utc_now
from faultbook.runtime.lease import DEFAULT_INTERVAL, Lease
from faultbook.runtime.redaction import redacted_text
from faultbook.runtime.segments import Segments
from faultbook.runtime.termination import Clock as Readings
from faultbook.runtime.termination import Observation, Termination, classify
from faultbook.values import count, part, text

RUNS = ".runs"  # the folder of runs, in the folder that their results are in
LEDGER = "ledger.sqlite"  # in the folder of runs: requests of all of them
ARTIFACT = "artifact"
PlannedTrial = Mapping[str, Any]


@dataclass(slots=True)
class Trial:
    """One trial of a run, while it goes on. Whoever runs it says what came of it; what is not said stays unknown.

    Attributes
    ----------
    trial_id, arm, task_id, attempt
        Which it is.
    resolved : bool or None
        The verifier's verdict; a completed trial has none unless somebody judged it.
    reward : float or None
        The verifier's number.
    observation : Observation or None
        What was seen of its end; None: it came to its own end.
    seconds, usage : dict
        As the journal has them.
    """

    trial_id: str
    arm: str
    task_id: str
    attempt: int
    started: float
    resolved: bool | None = None
    reward: float | None = None
    observation: Observation | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    def names(self) -> dict[str, Any]:
        """Which trial it is, as every record of it says."""
        return {"trial_id": self.trial_id, "arm": self.arm, "task_id": self.task_id, "attempt": self.attempt}


class Run:
    """A run of this process, from `start` to the end of its `with` block.

    The journal is evidence, not a part of the work: if it cannot be written, the work goes on, and `incomplete` says
    why its evidence is not whole.
    """

    def __init__(
        self,
        folder: Path,
        run_id: str,
        *,
        clock: Clock = time.monotonic,
        now: Now = utc_now,
        interval: float = DEFAULT_INTERVAL,
    ) -> None:
        self.folder, self.run_id = folder, run_id
        self.incomplete: str | None = None
        self.termination: Termination | None = None
        self.segments = Segments(clock)
        self._clock, self._now, self._began = clock, now, clock()
        self._lease = Lease(folder, run_id, interval=interval, now=now).take()
        try:
            self._journal = Journal(folder, run_id, clock=clock, now=now)
        except BaseException:
            self._lease.release()
            raise
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, str], int] = {}

    @classmethod
    def start(
        cls,
        place: Path,
        kind: str,
        *,
        plan: Sequence[PlannedTrial] | None = None,
        command: Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        resumes: Path | None = None,
        clock: Clock = time.monotonic,
        now: Now = utc_now,
        interval: float = DEFAULT_INTERVAL,
    ) -> Self:
        """Start a run, and own it.

        Parameters
        ----------
        place : path
            The folder that its results go into; the run's own folder is made below its `.runs/`.
        kind : str
            What is run, such as "report".
        plan : sequence of {arm, task_id, attempt}, optional
            What is to be run, if that is known before.
        command : sequence of str, optional
            Arguments that start the same again.
        settings : mapping, optional
            Whatever else a reader should know; secrets are taken out.
        resumes : path, optional
            The folder of a run that was cut off and closed (`runs.close_abandoned`), and that this one goes on from:
            trials that it started, or one before it, get the next attempt here.
        clock, now, interval
            Of journal and lease.

        Raises
        ------
        DataError, NotOwnedError
            If the folder cannot be made, or the first record not be written.
        """
        run_id = _new_id(kind, now())
        folder = place / RUNS / run_id
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise DataError(f"cannot be made ({error.strerror})", file=folder) from None
        run = cls(folder, run_id, clock=clock, now=now, interval=interval)
        try:
            revision = running_revision()
            source = {"commit": revision.commit or revision.version, "dirty": revision.dirty}
            earlier = attempts_of(resumes) if resumes is not None else {}
            run._earlier = earlier
            run._journal.append(
                RUN_STARTED,
                kind=kind,
                plan=_plan(plan, earlier),
                source=source,
                boot_id=boot_id(),
                command=list(command) if command is not None else None,
                settings=dict(settings or {}),
                resumes=resumes.name if resumes is not None else None,
            )
        except BaseException:
            run._lease.release()
            raise
        return run

    def event(self, event: str, **data: Any) -> None:
        """Record something that happened; if that fails, `incomplete` says why."""
        try:
            self._journal.append(event, **data)
        except DataError as error:
            with self._lock:
                self.incomplete = self.incomplete or str(error)

    def artifact(self, path: Path) -> None:
        """Record a file that the run made, by digest; its place is told relative to the folder of the results."""
        try:
            with path.open("rb") as opened:
                sha256, size = hashlib.file_digest(opened, "sha256").hexdigest(), opened.tell()
        except OSError as error:
            self.event("artifact_unreadable", path=path.name, reason=error.strerror)
            return
        place, file = self.folder.parent.parent.resolve(), path.resolve()
        shown = file.relative_to(place) if file.is_relative_to(place) else file
        self.event(ARTIFACT, path=str(shown), sha256=sha256, bytes=size)

    @contextlib.contextmanager
    def trial(self, arm: str, task_id: str, attempt: int = 1) -> Iterator[Trial]:
        """Run a trial in the block: its start and its end are recorded, also if the block raises.

        A trial that the run it resumes has started already gets the next attempt.
        """
        number = attempt + self._earlier.get(_cell(arm, task_id), 0)
        trial = Trial(f"{task_id}.{number}.{secrets.token_hex(3)}", arm, task_id, number, self._clock())
        self.event(TRIAL_STARTED, **trial.names())
        try:
            yield trial
        except BaseException as error:
            trial.observation = trial.observation or _observed(self.run_id, error)
            raise
        finally:
            self._end_trial(trial)

    def _end_trial(self, trial: Trial) -> None:
        seen = trial.observation or Observation(self.run_id, assistant_present=True, stop_reason="stop")
        end = classify(seen, Readings(trial.started, self._now()))
        seconds = {"total": round(self._clock() - trial.started, 6)} | trial.seconds
        verdict = {"resolved": trial.resolved, "reward": trial.reward}
        self.event(
            TRIAL_FINISHED,
            **trial.names(),
            verdict=verdict,
            termination=end.as_dict(),
            seconds=seconds,
            usage=trial.usage or None,
        )

    def finish(self, observation: Observation | None = None) -> None:
        """Say how the run ended, once: what is said later is passed over."""
        seen = observation or Observation(self.run_id, assistant_present=True, stop_reason="stop")
        with self._lock:
            if self.termination is not None:
                return
            self.termination = classify(seen, Readings(self._began, self._now()))
        self.segments.end()
        self.event(
            RUN_FINISHED,
            termination=self.termination.as_dict(),
            time=self.segments.summary().record(),
            evidence={"complete": self.incomplete is None, "reason": self.incomplete},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.finish(None if error is None else _observed(self.run_id, error))
        finally:
            self._lease.release()


def attempts_of(folder: Path) -> dict[tuple[str, str], int]:
    """The highest attempt of each arm at each task that a run has started, or one that it went on from.

    Raises
    ------
    DataError
        If its journal cannot be read.
    """
    found: dict[tuple[str, str], int] = {}
    seen, run = set[Path](), folder
    while run not in seen:
        seen.add(run)
        for line in records(run):
            attempt = count(part(line.data, "attempt"))
            if line.event == TRIAL_STARTED and attempt:
                key = _cell(part(line.data, "arm"), part(line.data, "task_id"))
                found[key] = max(found.get(key, 0), attempt)
            elif line.event == RUN_STARTED:
                folder = _beside(run, text(part(line.data, "resumes")))
        run = folder
    return found


def _beside(run: Path, name: str | None) -> Path:
    """Another run of the same folder, if it is there still; else the run itself."""
    other = run.parent / (name or run.name)
    with contextlib.suppress(OSError):
        return other if other.name == name and (other / JOURNAL).is_file() else run
    return run


def _cell(arm: object, task_id: object) -> tuple[str, str]:
    """Arm and task as records name them: without secrets."""
    return redacted_text(str(arm)), redacted_text(str(task_id))


def failed(run_id: str | None, error: str, **seen: Any) -> Observation:
    """What is observed of a trial or run that ended with an error text."""
    return Observation(run_id, assistant_present=True, stop_reason="error", error=error, **seen)


def _observed(run_id: str | None, error: BaseException) -> Observation:
    if isinstance(error, KeyboardInterrupt):
        return Observation(run_id, user_abort=True)
    if isinstance(error, Signalled):
        return Observation(run_id, signal=error.name)
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return Observation(run_id, assistant_present=True, stop_reason="stop")
    try:
        return failed(run_id, f"{type(error).__name__}: {error}")
    except Exception:  # somebody else's __str__: what is recorded of an error never takes its place
        return failed(run_id, type(error).__name__)


def _new_id(kind: str, at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{kind}-{secrets.token_hex(4)}"


def _plan(plan: Sequence[PlannedTrial] | None, earlier: Mapping[tuple[str, str], int]) -> list[dict[str, Any]] | None:
    if plan is None:
        return None
    return [{**row, "attempt": row["attempt"] + earlier.get(_cell(row["arm"], row["task_id"]), 0)} for row in plan]
