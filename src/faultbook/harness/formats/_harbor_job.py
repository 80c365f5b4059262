"""The folder of a Harbor job: what kind of folder one is, what the job planned, and what it says of its own end.

Layout and names as in Harbor 0.25 (job.py, job_plan.py, models/job/*.py). A job's own times are local and naive, those
of its trials have an offset: nothing here is subtracted from anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats._harbor_models import AgentConfig, JobConfig, JobLock, Part, last_part
from faultbook.harness.formats._rows import LINK, head, named_arm
from faultbook.values import count, part, text

RESULTS = ("result.json", "results.json")  # the second name is the one that Harbor's documentation gives
_PEEK = 4096
_OF_TRIALS = (b'"trial_uri"', b'"task_checksum"', b'"agent_info"', b'"verifier_result"', b'"exception_info"')
_OF_TRIAL_CONFIGS = (b'"trial_name"', b'"trials_dir"')
_OF_JOBS = (b'"n_total_trials"', b'"trial_results"')
_OF_JOB_CONFIGS = (b'"job_name"', b'"jobs_dir"', b'"n_attempts"', b'"datasets"', b'"agents"')
_CHILDREN = 50  # looked at to recognise a job that has no files of its own
_MOST_TRIALS = 10_000_000  # no job's plan is larger: the number of attempts is not one that was meant
_PATTERN = frozenset("*?[")
_COUNTS = ("completed", "errored", "running", "pending", "cancelled")
_LEGACY = {"n_completed_trials": "n_trials", "n_errored_trials": "n_errors"}  # names before Harbor 0.13
_Document = TypeVar("_Document", bound=Part)


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What the job's own result.json says, under the names that Harbor has used since 0.13.

    Counts are of trials. `n_completed` counts trials with an exception too; `n_running` never falls to 0 in a job
    that was killed. Neither tells whether the job runs now. `finished_at` is local and naive, and set once it ended.
    """

    finished_at: str | None = None
    n_total: int | None = None
    n_completed: int | None = None
    n_errored: int | None = None
    n_running: int | None = None
    n_pending: int | None = None
    n_cancelled: int | None = None
    n_retries: int | None = None
    note: str | None = None


def job_summary(path: Path, files: Files) -> JobSummary:
    """Read what a job says of itself; legacy names are read as the ones of today.

    Parameters
    ----------
    path : path
        Folder of the job.
    files : Files
        Reads.

    Returns
    -------
    JobSummary
        With nothing but a note where there is no result.json that can be read.
    """
    try:
        file = plain_file(path, RESULTS[0])
        document = files.read_json(file) if file is not None else None
    except (DataError, OSError) as error:
        return JobSummary(note=f"the job's result.json: {reason(error)}")
    if file is None:
        return JobSummary(note="the job has no result.json")
    counts = {f"n_{name}": _job_count(document, f"n_{name}_trials") for name in _COUNTS}
    finished = text(part(document, "finished_at"))
    return JobSummary(
        finished_at=finished,
        n_total=count(part(document, "n_total_trials")),
        n_retries=_job_count(document, "n_retries"),
        note=None if finished else "by its own record the job did not end; whether it runs still is not on record",
        **counts,
    )


def _job_count(document: Any, name: str) -> int | None:
    # `status` held these counts for some versions before they moved to `stats`.
    places = [part(document, "stats"), part(document, "status"), document]
    names = [name, _LEGACY[name]] if name in _LEGACY else [name]
    found = (count(part(place, key)) for key in names for place in places)
    return next((number for number in found if number is not None), None)


def planned_trials(path: Path, files: Files, arm: str | None) -> list[dict[str, Any]] | None:
    """The trials that a job was to run, from config.json where it names its tasks, else from lock.json.

    Parameters
    ----------
    path : path
        Folder of the job.
    files : Files
        Reads.
    arm : str or None
        The arm of all of them; None for each agent's own name.

    Returns
    -------
    list of dict, or None
        Of arm, task_id and attempt; None if neither file lists the tasks. Where they differ in number, the one that
        has as many trials as the job says it has in total is taken.
    """
    found = [_of_config(load(path, "config.json", JobConfig, files)), _of_lock(load(path, "lock.json", JobLock, files))]
    plans = [plan for plan in found if plan]
    if not plans:
        return None
    size = job_summary(path, files).n_total if len({len(plan) for plan in plans}) > 1 else None
    best = next((plan for plan in plans if len(plan) == size), plans[0])
    return list(_numbered((arm or name, task) for name, task in best))


def _of_config(config: JobConfig | None) -> list[tuple[str, str]] | None:
    if config is None or config.source_jobs or not config.n_attempts:
        return None
    tasks = _tasks(config)
    arms = [arm_name(agent) for agent in config.agents]
    if tasks is None or config.n_attempts * len(tasks) * len(arms) > _MOST_TRIALS:
        return None
    return _known((arm, task) for _ in range(config.n_attempts) for task in tasks for arm in arms)


def _tasks(config: JobConfig) -> list[str | None] | None:
    """Tasks by name; None where a data set is named without its tasks, or with patterns that only Harbor resolves."""
    names = [task.task_id for task in config.tasks]
    for dataset in config.datasets:
        chosen = dataset.task_names
        if not isinstance(chosen, list) or not chosen or dataset.n_tasks is not None or dataset.exclude_task_names:
            return None
        if any(not isinstance(name, str) or _PATTERN & set(name) for name in chosen):
            return None
        names += [last_part(name) for name in chosen]
    return names


def _of_lock(lock: JobLock | None) -> list[tuple[str, str]] | None:
    if lock is None:
        return None
    return _known((arm_name(trial.agent), trial.task.task_id if trial.task else None) for trial in lock.trials)


def _known(pairs: Iterable[tuple[str | None, str | None]]) -> list[tuple[str, str]] | None:
    """All pairs, or None if one of them is not known: half a plan would pass for a plan."""
    found: list[tuple[str, str]] = []
    for arm, task in pairs:
        if arm is None or task is None:
            return None
        found.append((arm, task))
    return found


def _numbered(pairs: Iterable[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    attempts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        attempts[pair] += 1
        yield {"arm": pair[0], "task_id": pair[1], "attempt": attempts[pair]}


def arm_name(agent: AgentConfig | None) -> str | None:
    """The agent as it was asked for, and in brackets its model without the provider, as "terminus-2 (gpt-5)"."""
    if agent is None:
        return None
    model = agent.model_name
    if model is not None and not agent.skip_model_parsing:
        model = text(model.partition("/")[2]) or model
    return named_arm(agent.name or agent.import_path, model)


def load(folder: Path, name: str, model: type[_Document], files: Files) -> _Document | None:
    """A document beside the results, or None if it is not there, cannot be read, or is no object."""
    try:
        file = plain_file(folder, name)
        document = files.read_json(file) if file is not None else None
    except (DataError, OSError):
        return None
    return model.model_validate(document) if isinstance(document, dict) else None


def plain_file(folder: Path, *names: str) -> Path | None:
    """A file in a folder, or None if there is none.

    Raises
    ------
    DataError
        If it, or a folder on the way to it, is a symbolic link: links inside a folder are not followed.
    """
    place = folder
    for name in names:
        place /= name
        if place.is_symlink():
            raise DataError(f"{place.relative_to(folder)} is {LINK}", file=place)
    return place if place.is_file() else None


def reason(error: DataError | OSError) -> str:
    """Why a file could not be read, in words."""
    if isinstance(error, DataError):
        return text(error.problem) or "cannot be read"
    return f"cannot be read ({error.strerror})"


def folder_kind(path: Path) -> str | None:
    """Whether a folder is a "job" or a "trial" of Harbor's, by names and first bytes of files; None if neither."""
    try:
        return _own_kind(path) or _kind_of_children(path)
    except (OSError, ValueError):
        return None


def _own_kind(path: Path) -> str | None:
    results = b"".join(head(path / name, _PEEK) for name in RESULTS)
    config = head(path / "config.json", _PEEK)
    if _holds(results, _OF_JOBS) or _holds(config, _OF_JOB_CONFIGS):
        return "job"
    if _holds(results, _OF_TRIALS) or _holds(config, _OF_TRIAL_CONFIGS):
        return "trial"
    return None


def _kind_of_children(path: Path) -> str | None:
    for number, child in enumerate(path.iterdir()):
        if number >= _CHILDREN:
            break
        if "__" in child.name and not child.is_symlink() and child.is_dir() and _own_kind(child) == "trial":
            return "job"
    return None


def _holds(start: bytes, keys: Iterable[bytes]) -> bool:
    return any(key in start for key in keys)
