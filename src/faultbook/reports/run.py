"""Run several reports: checked before anything starts, two at a time, each whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout

from faultbook.errors import FaultbookError
from faultbook.journal_chain import JOURNAL
from faultbook.paths import DATA_VARIABLE
from faultbook.reports.catalog import Report, read_notebook
from faultbook.reports.execute import NotebookRun, Outcome
from faultbook.reports.index import write_index
from faultbook.reports.layout import FAILED, LOCK, MANIFEST, OUTPUT_VARIABLE, READ_LOG, READ_LOG_VARIABLE
from faultbook.reports.manifest import Inputs, unchanged
from faultbook.reports.parameters import check_all
from faultbook.reports.publish import Making, keep_failure, new_building, prepare, publish, scrub
from faultbook.runtime.admission import Admission, Ticket
from faultbook.runtime.children import Child
from faultbook.runtime.deadline import Deadline, DeadlineExceeded
from faultbook.runtime.run import RUNS, Run, Trial, failed
from faultbook.runtime.runs import interrupted

DEFAULT_LIMIT = 1800.0  # seconds a notebook
_ARM = "report"  # of every trial: reports are not compared with anything


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one report; the verdict of the whole run is made from these and from nothing else."""

    name: str
    status: Literal["ran", "unchanged", "failed"]
    seconds: float
    html: str | None
    error: str | None


class Progress(Protocol):
    """What is told while reports run; called from several threads."""

    def cell(self, name: str, index: int, total: int) -> None:
        """A cell of a notebook starts (1-based)."""

    def done(self, result: Result) -> None:
        """A report has its result."""

    def waiting(self, out: Path) -> None:
        """Another run holds the reports folder."""

    def interrupted(self, left: Mapping[str, Any]) -> None:
        """An earlier run was cut off; `left` is what it left (`faultbook.runtime.runs.describe`)."""


@dataclass(frozen=True, slots=True)
class Job:
    """A report with its checked inputs."""

    report: Report
    inputs: Inputs


def run_reports(
    jobs: Sequence[Job],
    every: Sequence[Report],
    out: Path,
    *,
    workers: int = 2,
    force: bool = False,
    limit: float = DEFAULT_LIMIT,
    progress: Progress,
    command: Sequence[str] | None = None,
    resumes: Path | None = None,
) -> list[Result]:
    """Run the jobs, publish what succeeded, and write the index.

    Where anything has to be made, this is a run of its own with a lease and a journal in `.runs/` of the folder
    (`faultbook.runtime`): every notebook is a trial, every kernel an owned child that starts when memory allows.

    Parameters
    ----------
    jobs : sequence of Job
        Their parameters are already checked.
    every : sequence of Report
        The whole catalog, for the index.
    out : path
        The reports folder; made if absent. One run at a time holds it.
    workers : int
        Notebooks at a time.
    force : bool
        Run also what is unchanged.
    limit : float
        Seconds that a notebook may take in all.
    progress : Progress
        Told about cells and results, and about runs that were cut off before.
    command : sequence of str, optional
        Arguments of the command line that start the same again.
    resumes : path, optional
        The folder of the run that this one goes on from.

    Returns
    -------
    list of Result
        In the order of `jobs`.

    Raises
    ------
    FaultbookError
        If the folder cannot be made or written to.
    KeyboardInterrupt
        After the kernels were ended; reports not yet published stay as they were.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FaultbookError(f"{out} cannot be made a folder for reports ({error.strerror})") from None
    out = out.resolve()
    with _held(out, progress):
        prepare(out)
        for left in interrupted(out):
            progress.interrupted(left)
        current = [not force and unchanged(out / job.report.name, job.inputs) for job in jobs]
        todo = [job for job, is_current in zip(jobs, current, strict=True) if not is_current]
        made = _run_all(todo, out, workers, limit, progress, command, resumes) if todo else {}
        results = [made.get(job.report.name) or _unchanged(job, out, progress) for job in jobs]
        write_index(out, every, {result.name: result.status for result in results})
    return results


def verdict(results: Sequence[Result]) -> int:
    """The exit code: 0 only if every report asked for is there and current."""
    return 0 if all(result.status != "failed" for result in results) else 1


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """The results as one JSON object."""
    return {"reports": [asdict(result) for result in results], "exit_code": verdict(results)}


@contextlib.contextmanager
def _held(out: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock of the reports folder; the system releases it when the process dies."""
    lock = FileLock(out / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.waiting(out)
        lock.acquire()
    except OSError as error:
        raise FaultbookError(f"{out} cannot be written to ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()


def _run_all(
    jobs: Sequence[Job],
    out: Path,
    workers: int,
    limit: float,
    progress: Progress,
    command: Sequence[str] | None,
    resumes: Path | None,
) -> dict[str, Result]:
    """Run what is not current, as one owned run; results by name."""
    plan = [{"arm": _ARM, "task_id": job.report.name, "attempt": 1} for job in jobs]
    settings = {"limit_seconds": limit, "at_once": workers}
    with Run.start(out, _ARM, plan=plan, command=command, settings=settings, resumes=resumes) as owned:
        making = _Workshop(owned, out, limit, progress)
        with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
            try:
                futures: list[Future[Result]] = [pool.submit(making.one, job) for job in jobs]
                for future in futures:
                    future.add_done_callback(_telling(progress))
                results = [future.result() for future in futures]
            except BaseException:
                making.stop()
                pool.shutdown(cancel_futures=True)
                raise
        errors = {result.name: f"{result.name}: {result.error}" for result in results if result.status == "failed"}
        only_time = making.too_long == set(errors)
        owned.finish(failed(owned.run_id, "; ".join(errors.values()), budget_exhausted=only_time) if errors else None)
    return {result.name: result for result in results}


class _Workshop:
    """Makes reports of one run, several at a time."""

    def __init__(self, owned: Run, out: Path, limit: float, progress: Progress) -> None:
        self._owned, self._out, self._limit, self._progress = owned, out, limit, progress
        self._admission = Admission()
        self.too_long = set[str]()  # reports that ran into their limit
        self._stopping, self._running, self._guard = threading.Event(), set[NotebookRun](), threading.Lock()

    def stop(self) -> None:
        """End whatever runs; nothing starts any more."""
        self._stopping.set()
        with self._guard:
            for run in self._running:
                run.stop("interrupted")

    def one(self, job: Job) -> Result:
        """Make one report: a trial of the run."""
        name, deadline = job.report.name, Deadline.after(self._limit)
        with self._owned.trial(_ARM, name) as trial:
            building = new_building(self._out, job.report)
            journal = f"{RUNS}/{self._owned.run_id}/{JOURNAL}"
            of_run = {"run_id": self._owned.run_id, "trial_id": trial.trial_id, "journal": journal}
            made = Making(job.report, job.inputs, job.inputs.fingerprint(), datetime.now(UTC), of_run)
            try:
                outcome = self._executed(job, building, deadline, trial)
                result = _result(made, outcome, building, self._out)
            finally:
                shutil.rmtree(building, ignore_errors=True)  # gone already if it was put in place
            if result.error is not None:
                too_long = outcome.error is not None and outcome.error.startswith("ran longer than")
                if too_long:
                    self.too_long.add(name)
                trial.observation = failed(self._owned.run_id, result.error, budget_exhausted=too_long)
            elif (self._out / name / MANIFEST).is_file():
                self._owned.artifact(self._out / name / MANIFEST)
            return result

    def _executed(self, job: Job, building: Path, deadline: Deadline, trial: Trial) -> Outcome:
        """Run the notebook once a kernel may start; what became of it, never an error of its own."""
        name = job.report.name
        notebook = read_notebook(job.report.path)
        try:
            with self._owned.segments.measure("queue"):
                ticket = self._admission.admit("kernel", deadline=deadline, on_wait=self._tell_wait(name))
        except DeadlineExceeded as error:
            return Outcome(notebook, 0.0, f"ran longer than its limit of {self._limit:g} s: {error}")
        trial.seconds["setup"] = round(ticket.record()["waited_seconds"], 6)
        run = NotebookRun(
            notebook,
            folder=job.report.path.parent,
            building=building,
            environment=_environment(building, job.inputs),
            limit=self._limit,
            deadline=deadline,
            on_cell=lambda index, total: self._progress.cell(name, index, total),
            on_child=lambda child: self._began(ticket, child, trial),
        )
        with self._guard:
            self._running.add(run)
        try:
            with self._owned.segments.measure("tool"):
                outcome = run.execute(job.inputs.parameters) if not self._stopping.is_set() else None
        finally:
            with self._guard:
                self._running.discard(run)
            ticket.done()
        if outcome is None or self._stopping.is_set():
            raise KeyboardInterrupt
        trial.seconds["agent"] = round(outcome.seconds, 6)
        self._owned.event("kernel_ended", trial_id=trial.trial_id, admission=ticket.record())
        return outcome

    def _began(self, ticket: Ticket, child: Child, trial: Trial) -> None:
        ticket.started(child)
        self._owned.event("kernel_started", trial_id=trial.trial_id, child=child.record())

    def _tell_wait(self, name: str) -> Callable[[str], object]:
        return lambda reason: self._owned.event("waiting", task_id=name, reason=reason)


def _result(made: Making, outcome: Outcome, building: Path, out: Path) -> Result:
    """Put the report, or what a failed one got to, in place; the verdict was reached before anything is rendered."""
    error = outcome.error and scrub(outcome.error, made.inputs, building)
    try:
        place = publish if error is None else keep_failure
        page: str | None = place(building, out, made, outcome).relative_to(out).as_posix()
    except Exception as problem:  # one report that cannot be written must not take the others with it
        page = None
        unwritten = scrub(f"could not be written: {type(problem).__name__}: {problem}", made.inputs, building)
        error = f"{error}; {unwritten}" if error else unwritten
    status: Literal["ran", "failed"] = "failed" if error else "ran"
    return Result(made.report.name, status, round(outcome.seconds, 3), page, error)


def _telling(progress: Progress) -> Callable[[Future[Result]], None]:
    def tell(future: Future[Result]) -> None:
        if not future.cancelled() and future.exception() is None:
            progress.done(future.result())

    return tell


def _unchanged(job: Job, out: Path, progress: Progress) -> Result:
    shutil.rmtree(out / FAILED / job.report.name, ignore_errors=True)  # what failed is history
    page = f"{job.report.name}/{job.report.name}.html"
    result = Result(job.report.name, "unchanged", 0.0, page, None)
    progress.done(result)
    return result


def _environment(building: Path, inputs: Inputs) -> Mapping[str, str]:
    return {
        DATA_VARIABLE: str(inputs.data),
        OUTPUT_VARIABLE: str(building),
        READ_LOG_VARIABLE: str(building / READ_LOG),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONHASHSEED": "0",  # same inputs, same bytes: the order of a set may not differ between runs
    }


def make_jobs(
    reports: Sequence[Report], *, data: Path, lock: Path, given: Mapping[str, Any], texts: Mapping[str, str]
) -> list[Job]:
    """Check the parameters of every report before any of them runs.

    Parameters
    ----------
    reports : sequence of Report
        What is to run.
    data, lock : path
        The data folder and the lock file.
    given : mapping
        Values from a parameters file.
    texts : mapping
        Values from the command line, as text; they win over `given`.

    Raises
    ------
    ParameterError
        If a name belongs to none of the reports, or a value does not fit.
    """
    known = {parameter.name for report in reports for parameter in report.parameters}
    for name in (*given, *texts):
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise FaultbookError(f"no report to run has a parameter '{name}'; there are: {listed}")
    jobs = []
    for report in reports:
        by_name = {parameter.name: parameter for parameter in report.parameters}
        values = {name: value for name, value in given.items() if name in by_name}
        values.update({name: by_name[name].parse(text) for name, text in texts.items() if name in by_name})
        jobs.append(Job(report, Inputs(report.path, data, lock, check_all(values, report.parameters, report.name))))
    return jobs
