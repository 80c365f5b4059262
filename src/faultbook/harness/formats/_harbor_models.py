"""What is taken of Harbor's documents: every field may be missing, and what is not of its type is missing.

Names of fields as in Harbor 0.25 (models/trial/result.py, models/trial/config.py, models/job/{config,lock,result}.py).
Keys that are not named here are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from faultbook import values
from faultbook.text import is_unicode

_SEPARATORS = re.compile(r"[/\\]+")


def last_part(name: str | None) -> str | None:
    """The last part of a task's name, which may be an absolute path or `organisation/name`; None if it has none."""
    parts = [part for part in _SEPARATORS.split(name or "") if part.strip()]
    return values.text(parts[-1]) if parts else None


def _string(value: Any) -> str | None:
    """A text as it is, uncut; half of a surrogate pair, which no model and no table holds, becomes '?'."""
    if not isinstance(value, str) or not value.strip():
        return None
    return value if is_unicode(value) else value.encode("utf-8", "replace").decode()


def _object(value: Any) -> Any:
    return value if isinstance(value, Mapping) else None


def _objects(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _exception(value: Any) -> Any:
    # Something of another form stands where an exception would: it is not known what, but "no exception" is not it.
    return value if value is None or isinstance(value, Mapping) else {"exception_message": values.text(value)}


_Model = TypeVar("_Model", bound="Part")
String = Annotated[str | None, BeforeValidator(_string)]
Text = Annotated[str | None, BeforeValidator(values.text)]
Count = Annotated[int | None, BeforeValidator(values.count)]
Amount = Annotated[float | None, BeforeValidator(values.amount)]
Truth = Annotated[bool | None, BeforeValidator(values.truth)]
AsIs = Annotated[Any, PlainValidator(lambda value: value)]
Object = Annotated[_Model | None, BeforeValidator(_object)]
Objects = Annotated[list[_Model], BeforeValidator(_objects)]


class Part(BaseModel):
    """Some of an object's keys."""

    model_config = ConfigDict(extra="ignore")


class Timing(Part):
    """When a phase began and ended."""

    started_at: String = None
    finished_at: String = None


class ExceptionInfo(Part):
    """An exception that Harbor recorded; the shorter names of its texts are accepted too."""

    exception_type: Text = None
    message: String = Field(None, validation_alias=AliasChoices("exception_message", "message"))
    traceback: String = Field(None, validation_alias=AliasChoices("exception_traceback", "traceback"))


class AgentResult(Part):
    """The agent's usage. `n_input_tokens` includes what was read from a cache."""

    n_input_tokens: Count = None
    n_cache_tokens: Count = None
    n_output_tokens: Count = None
    cost_usd: Amount = None


class VerifierResult(Part):
    """Rewards by name; before there were several, `reward`."""

    rewards: Annotated[dict[Any, Any] | None, PlainValidator(_object)] = None
    reward: AsIs = None


class StepResult(Part):
    """One step of a task of several."""

    step_name: String = None
    agent_result: Object[AgentResult] = None
    verifier_result: Object[VerifierResult] = None
    exception_info: Annotated[ExceptionInfo | None, BeforeValidator(_exception)] = None
    agent_execution: Object[Timing] = None
    verifier: Object[Timing] = None


class ModelInfo(Part):
    """The model that an agent used."""

    name: Text = None


class AgentInfo(Part):
    """The agent that ran, by its own account."""

    name: Text = None
    model_info: Object[ModelInfo] = None


class AgentConfig(Part):
    """The agent that was asked for."""

    name: Text = None
    import_path: Text = None
    model_name: Text = None
    skip_model_parsing: Truth = None


class TaskConfig(Part):
    """The task that was asked for: a package's name or a folder."""

    name: String = None
    path: String = None

    @property
    def task_id(self) -> str | None:
        """The last part of its name."""
        return last_part(self.name) or last_part(self.path)


class TrialConfig(Part):
    """What a trial was asked to run."""

    task: Object[TaskConfig] = None
    agent: Object[AgentConfig] = None
    trial_name: Text = None
    trials_dir: String = None


class TrialResult(Part):
    """What became of a trial."""

    task_name: String = None
    trial_name: Text = None
    task_checksum: Text = None
    config: Object[TrialConfig] = None
    agent_info: Object[AgentInfo] = None
    agent_result: Object[AgentResult] = None
    verifier_result: Object[VerifierResult] = None
    exception_info: Annotated[ExceptionInfo | None, BeforeValidator(_exception)] = None
    started_at: String = None
    finished_at: String = None
    environment_setup: Object[Timing] = None
    agent_setup: Object[Timing] = None
    agent_execution: Object[Timing] = None
    verifier: Object[Timing] = None
    step_results: Objects[StepResult] = Field(default_factory=list)

    @property
    def is_multi_step(self) -> bool:
        """Whether usage and phases are those of the steps: the trial itself then has none."""
        return bool(self.step_results) and self.agent_result is None


class DatasetConfig(Part):
    """A data set that was asked for, and which of its tasks."""

    task_names: AsIs = None
    exclude_task_names: AsIs = None
    n_tasks: AsIs = None


class JobConfig(Part):
    """What a job was asked to run. Harbor leaves out of the file what has its default, such as one attempt."""

    job_name: Text = None
    n_attempts: Count = 1
    agents: Objects[AgentConfig] = Field(default_factory=list)
    tasks: Objects[TaskConfig] = Field(default_factory=list)
    datasets: Objects[DatasetConfig] = Field(default_factory=list)
    source_jobs: AsIs = None


class TrialLock(Part):
    """One trial that the job resolved before it began."""

    task: Object[TaskConfig] = None
    agent: Object[AgentConfig] = None


class Versions(Part):
    """Of Harbor."""

    version: Text = None


class JobLock(Part):
    """What the job resolved before it began: one entry a trial."""

    harbor: Object[Versions] = None
    trials: Objects[TrialLock] = Field(default_factory=list)
