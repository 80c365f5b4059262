"""Jobs and trials of Harbor (0.25 and earlier), the harness of Terminal-Bench 2.

A job is a folder with config.json, result.json and lock.json, and in it one folder a trial, `<task>__<suffix>`, with a
result.json of its own. The trials are read from their own files: the job's aggregates count a missing reward as 0 and
sum tokens over the trials that have any. What is read of a trial:

- It is "finished" if its result says when it finished, or holds a reward or an exception of the trial itself;
  "unreadable" if the result is there and is no JSON object; else "unfinished". A trial that was cancelled has ended.
- Its arm is the agent that its configuration asked for, in brackets the model without the provider: the same words in
  results, in trials without a result and in the plan. `agent_info` stands in where the configuration is missing.
- Harbor gives attempts no ordinal: repeats differ by a random suffix, so there is no `attempt` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from faultbook.errors import DataError
from faultbook.harness.fields import joined_notes
from faultbook.harness.files import Files
from faultbook.harness.formats import _harbor_job, _harbor_trial
from faultbook.harness.formats._harbor_job import JobSummary, job_summary, plain_file, reason
from faultbook.harness.formats._harbor_models import (
    ExceptionInfo,
    JobConfig,
    JobLock,
    TrialConfig,
    TrialResult,
    last_part,
)
from faultbook.harness.formats._rows import LINK, UNKNOWN_ARM, known_digest, named_arm, unmetered
from faultbook.values import number, stamp, text

__all__ = ["FORMAT", "JobSummary", "job_summary", "planned", "read", "recognises"]

FORMAT = "harbor"
_OF_TRIALS = (*_harbor_job.RESULTS, "config.json", "trial.log", "exception.txt")


def recognises(path: Path) -> bool:
    """Whether a path is the folder of a job or of a trial; a folder of several jobs is neither."""
    return _harbor_job.folder_kind(path) is not None


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """Read the trials of a job, or a single one, one after the other.

    Parameters
    ----------
    path : path
        Folder of a job or of a trial; it may be a symbolic link. Links inside it are not followed: each gives a row
        that says so.
    files : Files
        Reads, and keeps the digests. Of trials without a result only the configuration and the exception are read:
        the rest may still be written to.
    arm : str, optional
        The arm of all trials; without it, of each its own.
    metric : str, optional
        Which of several rewards. Without it a sole one, or the one called "reward".

    Yields
    ------
    dict
        Keys of table `Trials`, without `attempt`.
    """
    kind = _harbor_job.folder_kind(path)
    if kind == "trial" or (kind is None and _has_result(path)):
        yield _Reader(None, files, arm, metric).row(path)
        return
    reader = _Reader(_Job(path, files), files, arm, metric)
    try:
        children = sorted(path.iterdir())
    except OSError as error:
        yield reader.unreadable(path, path, reason(error)) | {"task_id": None, "trial_id": None}
        return
    yield from (reader.row(child) for child in children if _is_trial(child))


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The trials that a job was to run: tasks × attempts × agents of its config.json, or those of its lock.json.

    Returns
    -------
    list of dict, or None
        Of arm, task_id and attempt (from 1); None for a single trial, or if neither file lists the tasks.
    """
    return None if _harbor_job.folder_kind(path) == "trial" else _harbor_job.planned_trials(path, files, arm)


class _Job:
    """What trials share."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path, self._files = path, files
        config = _harbor_job.load(path, "config.json", JobConfig, files)
        lock = _harbor_job.load(path, "lock.json", JobLock, files)
        self.name = (config and config.job_name) or text(path.resolve().name)
        self.version = lock.harbor.version if lock is not None and lock.harbor is not None else None
        self.arms = [_harbor_job.arm_name(agent) for agent in config.agents] if config is not None else []

    @cached_property
    def summary(self) -> JobSummary:
        """Read only when a trial has no result: a running job rewrites it at every trial's end."""
        return job_summary(self._path, self._files)

    def note(self, arm: str | None, named: bool) -> str | None:
        """What an arm hides where the job ran several agents."""
        if named and len(self.arms) > 1:
            return f"the job ran {len(self.arms)} agents, all read as one arm"
        same = self.arms.count(arm)
        return f"{same} agents of the job have this name and differ in other settings" if same > 1 else None


class _Reader:
    """Makes rows of the folders of trials."""

    def __init__(self, job: _Job | None, files: Files, arm: str | None, metric: str | None) -> None:
        self._job, self._files, self._arm, self._metric = job, files, arm, metric

    def row(self, folder: Path) -> dict[str, Any]:
        """The row of one trial, whatever is in its folder."""
        try:
            row = self._row(folder)
        except (DataError, OSError) as error:
            file = error.file if isinstance(error, DataError) else None
            row = self.unreadable(folder, Path(file or folder), reason(error))
        if self._job is not None:
            row["note"] = joined_notes(row["note"], self._job.note(row["arm"], self._arm is not None))
        return row

    def _row(self, folder: Path) -> dict[str, Any]:
        if folder.is_symlink():
            return self.unreadable(folder, folder, LINK)
        found = (plain_file(folder, name) for name in _harbor_job.RESULTS)
        file = next((file for file in found if file is not None), None)
        if file is None:
            return self._without_result(folder)
        document = self._files.read_json(file)
        if not isinstance(document, dict):
            return self.unreadable(folder, file, f"{file.name} holds no JSON object")
        if "n_total_trials" in document and "task_name" not in document:
            return self.unreadable(folder, file, "a job of its own inside the folder: read it by itself")
        return self._with_result(folder, file, document)

    def unreadable(self, folder: Path, file: Path, why: str) -> dict[str, Any]:
        """The row of what cannot be read; who and what it was is told from the files beside it."""
        return self._base(folder, file, None, self._config(folder)) | unmetered("unreadable", why)

    def _config(self, folder: Path) -> TrialConfig | None:
        return None if folder.is_symlink() else _harbor_job.load(folder, "config.json", TrialConfig, self._files)

    def _without_result(self, folder: Path) -> dict[str, Any]:
        config = self._config(folder)
        row = self._base(folder, folder / "config.json" if config is not None else folder, None, config)
        job_note = self._job.summary.note if self._job is not None else None
        row |= unmetered("unfinished", "no result.json", job_note)
        exception = self._raised(folder)
        return row if exception is None else row | _harbor_trial.ending([exception], None, None)

    def _raised(self, folder: Path) -> ExceptionInfo | None:
        """What exception.txt tells of a trial whose result was never written."""
        try:
            file = plain_file(folder, "exception.txt")
            return _harbor_trial.raised(self._files.read_text(file)) if file is not None else None
        except (DataError, OSError):
            return None

    def _with_result(self, folder: Path, file: Path, document: dict[str, Any]) -> dict[str, Any]:
        result = TrialResult.model_validate(document)
        exceptions = _harbor_trial.exceptions(result)
        seconds = _harbor_trial.seconds(result)
        usage = _harbor_trial.usage_fields(result, folder, self._files)
        row = self._base(folder, file, result, result.config) | seconds | usage
        ended = _has_ended(result)
        reward = _harbor_trial.NO_REWARD
        if ended:
            reward = _harbor_trial.reward_of(result, document, folder, self._files, self._metric)
            row |= _source(reward.file, self._files) if reward.file is not None else {}
        elif row["usage_status"] == "reported":
            row["usage_status"] = "partial"  # of a run that has not ended
        if ended or exceptions:
            row |= _harbor_trial.ending(exceptions, reward.resolved, reward.value)
        return row | {
            "state": "finished" if ended else "unfinished",
            "reward": reward.value,
            "reward_key": reward.key,
            "resolved": reward.resolved,
            "started_at": text(result.started_at),
            "task_checksum": result.task_checksum,
            "note": joined_notes(
                None if ended else "result.json says nothing of an end", reward.note, seconds["note"], usage["note"]
            ),
        }

    def _base(self, folder: Path, file: Path, result: TrialResult | None, config: TrialConfig | None) -> dict[str, Any]:
        task = (result and last_part(result.task_name)) or (config and config.task and config.task.task_id)
        name = (result and result.trial_name) or (config and config.trial_name) or text(folder.name)
        return {
            "arm": self._arm or self._own_arm(result, config),
            # The folder's name holds no more than the first 32 characters of the task's.
            "task_id": task or text(folder.name.rpartition("__")[0]),
            "trial_id": name,
            "run_id": self._job.name if self._job is not None else last_part(config.trials_dir if config else None),
            "source_format": FORMAT,
            "source_version": self._job.version if self._job is not None else None,
            **_source(file, self._files),
        }

    def _own_arm(self, result: TrialResult | None, config: TrialConfig | None) -> str:
        info = result.agent_info if result is not None else None
        model = info.model_info.name if info is not None and info.model_info is not None else None
        asked = _harbor_job.arm_name(config.agent) if config is not None else None
        ran = named_arm(info.name, model) if info is not None else None
        arms = set(self._job.arms) if self._job is not None else set()
        return asked or ran or (arms.pop() if len(arms) == 1 else None) or UNKNOWN_ARM


def _has_ended(result: TrialResult) -> bool:
    verified = result.verifier_result
    judged = verified is not None and (bool(verified.rewards) or number(verified.reward) is not None)
    return stamp(result.finished_at) is not None or judged or result.exception_info is not None


def _has_result(path: Path) -> bool:
    """Whether a folder that is not known by its content, such as an empty file's, has a result all the same."""
    try:
        return any((path / name).is_file() for name in _harbor_job.RESULTS)
    except OSError:
        return False


def _is_trial(child: Path) -> bool:
    """Whether an entry of a job's folder is a trial, or a link where one would be."""
    task, _, suffix = child.name.rpartition("__")
    is_named = bool(task and suffix)
    try:
        if child.is_symlink():
            return is_named or child.is_dir()
        return child.is_dir() and (is_named or any((child / name).is_file() for name in _OF_TRIALS))
    except OSError:  # it is not ours to look into: the row says so
        return True


def _source(file: Path, files: Files) -> dict[str, Any]:
    return {"source_path": str(file), "source_sha256": known_digest(file, files)}
