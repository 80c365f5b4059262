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
from faultbook.paths import DATA_VARIABLE
from faultbook.reports.catalog import Report, read_notebook
from faultbook.reports.execute import NotebookRun, Outcome
from faultbook.reports.index import write_index
from faultbook.reports.layout import FAILED, LOCK, OUTPUT_VARIABLE, READ_LOG, READ_LOG_VARIABLE
from faultbook.reports.manifest import Inputs, unchanged
from faultbook.reports.parameters import check_all
from faultbook.reports.publish import Making, keep_failure, new_building, prepare, publish, scrub

DEFAULT_LIMIT = 1800.0  # seconds a notebook


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
) -> list[Result]:
    """Run the jobs, publish what succeeded, and write the index.

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
        Told about cells and results.

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
        results = _run_all(jobs, out, workers, force=force, limit=limit, progress=progress)
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
    jobs: Sequence[Job], out: Path, workers: int, *, force: bool, limit: float, progress: Progress
) -> list[Result]:
    stopping, running, guard = threading.Event(), set[NotebookRun](), threading.Lock()

    def one(job: Job) -> Result:
        building = new_building(out, job.report)
        made = Making(job.report, job.inputs, job.inputs.fingerprint(), datetime.now(UTC))
        run = NotebookRun(
            read_notebook(job.report.path),
            folder=job.report.path.parent,
            building=building,
            environment=_environment(building, job.inputs),
            limit=limit,
            on_cell=lambda index, total: progress.cell(job.report.name, index, total),
        )
        with guard:
            running.add(run)
        try:
            outcome = run.execute(job.inputs.parameters) if not stopping.is_set() else None
            if outcome is None or stopping.is_set():
                raise KeyboardInterrupt
            return _result(made, outcome, building, out)
        finally:
            with guard:
                running.discard(run)
            shutil.rmtree(building, ignore_errors=True)  # gone already if it was put in place

    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        pending: list[Future[Result] | Result] = []
        try:
            for job in jobs:
                if not force and unchanged(out / job.report.name, job.inputs):
                    shutil.rmtree(out / FAILED / job.report.name, ignore_errors=True)  # what failed is history
                    pending.append(_unchanged(job, progress))
                else:
                    future = pool.submit(one, job)
                    future.add_done_callback(_telling(progress))
                    pending.append(future)
            return [item if isinstance(item, Result) else item.result() for item in pending]
        except BaseException:
            stopping.set()
            with guard:
                for run in running:
                    run.stop("interrupted")
            pool.shutdown(cancel_futures=True)
            raise


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


def _unchanged(job: Job, progress: Progress) -> Result:
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
