"""What a Harbor trial's result says: why it ended, its reward, its seconds and its usage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.harness.formats._harbor_job import plain_file, reason
from faultbook.harness.formats._harbor_models import AgentResult, ExceptionInfo, Timing, TrialResult
from faultbook.harness.formats._harbor_usage import NOTHING, Usage, measured, total
from faultbook.harness.formats._rows import sum_of_all
from faultbook.harness.formats.atif import Summary, summary
from faultbook.taxonomy import Classification, Observation, classify

_MOST_TEXT = 20_000  # characters of a message, from its end
_RAISED = re.compile(r"([A-Za-z_][\w.]*)(?::\s*(.*))?$", re.DOTALL)
_STEP_NAME = re.compile(r"[^/\\\0]{1,200}")


# --- why it ended


def exceptions(result: TrialResult) -> list[ExceptionInfo]:
    """The trial's own exception first, then those of its steps: a task of several steps has them only there."""
    found = [result.exception_info, *(step.exception_info for step in result.step_results)]
    return [exception for exception in found if exception is not None]


def ending(found: list[ExceptionInfo], resolved: bool | None, reward: float | None) -> dict[str, Any]:
    """The columns that follow from the exceptions of a trial that ended; without one it came to its own end."""
    observations = [_observation(exception) for exception in found]
    primary = classify(observations)
    names = (
        exception.exception_type
        for exception, observation in zip(found, observations, strict=True)
        if _same(classify([observation]), primary)
    )
    return {
        **fields.cause_fields(primary, resolved, reward),
        "exception_type": next((name for name in names if name), None),
    }


def _same(one: Classification, other: Classification) -> bool:
    return (one.cause, one.source) == (other.cause, other.source)


def _observation(exception: ExceptionInfo) -> Observation:
    # The frames of a traceback name files such as docker.py and timeouts.py, which are no reason: its last line is.
    said = exception.message or (exception.traceback or "").strip().rpartition("\n")[2]
    return Observation("harbor", exception.exception_type, said[-_MOST_TEXT:] or None)


def raised(traceback: str) -> ExceptionInfo | None:
    """The exception that the last line of a traceback names, or None."""
    lines = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    found = _RAISED.match(lines[-1]) if lines else None
    if found is None:
        return None
    return ExceptionInfo.model_validate(
        {"exception_type": found[1].rpartition(".")[2], "exception_message": found[2] or lines[-1]}
    )


# --- reward


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward as recorded, which of several it is, and the file that it is from if not the result."""

    value: float | None = None
    key: str | None = None
    note: str | None = None
    file: Path | None = None

    @property
    def resolved(self) -> bool | None:
        """The verdict that follows from it."""
        return fields.resolved_by(self.value)


NO_REWARD = Reward()


def reward_of(
    result: TrialResult, document: Mapping[str, Any], folder: Path, files: Files, metric: str | None
) -> Reward:
    """The verifier's reward, or why there is none. A trial without a reward never has one of 0.

    A reward that only the verifier's own file holds is taken where the result holds none, and the note says so. Where
    the result says that no verification began it is not taken: agents can write to that folder too, and Harbor clears
    it only when the verifier starts.
    """
    verified = result.verifier_result
    if verified is not None and verified.rewards:
        return _chosen(verified.rewards, metric, _of_steps(result))
    if verified is not None and values.number(verified.reward) is not None:
        return _chosen({"reward": verified.reward}, metric, None)
    missing = "no verifier's result" if verified is None else "the verifier's result holds no reward"
    if result.step_results:
        return Reward(note=missing)
    try:
        file, recorded = _reward_file(folder, files)
    except (DataError, OSError) as error:
        return Reward(note=f"{missing}; verifier's reward file: {reason(error)}")
    if file is None:
        return Reward(note=missing)
    name = f"verifier/{file.name}"
    if "verifier" in document and result.verifier is None:
        return Reward(note=f"{missing}; {name} is not used, since no verification began")
    found = _chosen(recorded, metric, f"{missing}: the reward is that of {name}")
    return Reward(found.value, found.key, found.note, file)


def _chosen(rewards: Mapping[Any, Any], metric: str | None, note: str | None) -> Reward:
    names = [str(key) for key in rewards]
    key = metric or (names[0] if len(names) == 1 else "reward")
    listed = values.text(", ".join(names))
    if key not in rewards:
        several = f"several rewards ({listed}): name one with metric"
        other = f"no reward is called '{values.text(metric)}', only: {listed}"
        return Reward(note=fields.joined_notes(several if metric is None else other, note))
    value = values.number(rewards[key])
    if value is None:
        return Reward(key=values.text(key), note=fields.joined_notes("the reward is no number", note))
    outside = None if 0 <= value <= 1 else f"reward {value:g} is outside [0, 1]: not judged as resolved or not"
    return Reward(value, values.text(key), fields.joined_notes(outside, note))


def _of_steps(result: TrialResult) -> str | None:
    """Harbor's mean over steps leaves out those that the verifier did not judge."""
    judged = sum(step.verifier_result is not None for step in result.step_results)
    steps = len(result.step_results)
    return f"the verifier judged {judged} of {steps} steps that began" if judged < steps else None


def _reward_file(folder: Path, files: Files) -> tuple[Path | None, dict[Any, Any]]:
    file = plain_file(folder, "verifier", "reward.json")
    if file is not None:
        document = files.read_json(file)
        return file, document if isinstance(document, dict) else {"reward": document}
    file = plain_file(folder, "verifier", "reward.txt")
    if file is None:
        return None, {}
    try:
        return file, {"reward": float(files.read_text(file).strip("\0 \t\r\n"))}
    except ValueError:
        return file, {"reward": None}


# --- seconds


def seconds(result: TrialResult) -> dict[str, Any]:
    """Seconds by phase, and under "note" why some are missing.

    Set-up is that of the environment and the agent, one after the other; one of them that never began counts nothing.
    Agent and verifier of a task of several steps are the sums over its steps. A phase that began and has no end makes
    its sum missing. Times of the job are of another clock and are not used.
    """
    steps = result.step_results
    phases: dict[str, list[Timing | None]] = {
        "total": [Timing(started_at=result.started_at, finished_at=result.finished_at)],
        "setup": [result.environment_setup, result.agent_setup],
        "agent": [result.agent_execution] if result.agent_execution else [step.agent_execution for step in steps],
        "verifier": [result.verifier] if result.verifier else [step.verifier for step in steps],
    }
    found: dict[str, Any] = {}
    notes: list[str | None] = []
    for phase, spans in phases.items():
        found[f"{phase}_seconds"], note = _summed(spans)
        notes.append(f"{phase}: {note}" if note else None)
    return {**found, "note": fields.joined_notes(*notes)}


def _summed(spans: list[Timing | None]) -> tuple[float | None, str | None]:
    begun = [span for span in spans if span is not None and (span.started_at or span.finished_at)]
    durations = [values.seconds_between(span.started_at, span.finished_at) for span in begun]
    note = fields.joined_notes(*(note for _, note in durations))
    return sum_of_all(duration for duration, _ in durations), note


# --- usage


def usage_fields(result: TrialResult, folder: Path, files: Files) -> dict[str, Any]:
    """Tokens, cost and calls of a model, and under "note" where they are from if not from the agent's own account.

    An ATIF trajectory gives the calls; it gives tokens too where the agent's account is not complete. Trajectories are
    read one after the other and not kept. `model_usage` is not used: its counts are 0 where nothing is known.
    """
    parts: list[Usage] = []
    requests: list[int | None] = []
    notes: list[str | None] = []
    for agent_result, place in _contexts(result):
        held, problem = _trajectory(folder, place, files)
        usage = _recorded(agent_result)
        if held.usage.better_than(usage):
            notes.append(f"{'/'.join(place)}: tokens are from its {held.usage_source}")
            usage = held.usage
        parts.append(usage)
        requests.append(held.requests)
        notes.append(f"{'/'.join(place)}: {problem}" if problem else None)
    found = total(parts)
    if found.status == "partial" and len(parts) > 1:
        notes.append(f"{sum(part.status == 'reported' for part in parts)} of {len(parts)} steps are metered")
    return {
        "input_tokens": found.input_tokens,
        "cache_tokens": found.cache_tokens,
        "output_tokens": found.output_tokens,
        "cache_included": None if found.input_tokens is None else True,
        "cost": found.cost,
        "usage_status": found.status,
        "requests": values.count(sum_of_all(requests)),
        "note": fields.joined_notes(*notes),
    }


def _contexts(result: TrialResult) -> Iterator[tuple[AgentResult | None, tuple[str, ...]]]:
    """What each run of the agent used, and where its trajectory would be; a step it never came to has no run."""
    if not result.is_multi_step:
        yield result.agent_result, ("agent", "trajectory.json")
        return
    for step in result.step_results:
        if step.agent_result is not None or step.agent_execution is not None:
            name = step.step_name or ""
            safe = _STEP_NAME.fullmatch(name) and name not in (".", "..")
            yield step.agent_result, ("steps", name, "agent", "trajectory.json") if safe else ()


def _trajectory(folder: Path, place: tuple[str, ...], files: Files) -> tuple[Summary, str | None]:
    try:
        file = plain_file(folder, *place) if place else None
        found = summary(files.read_json(file)) if file is not None else Summary()
    except (DataError, OSError) as error:
        return Summary(), reason(error)
    return found, found.note


def _recorded(result: AgentResult | None) -> Usage:
    if result is None:
        return NOTHING
    return measured(result.n_input_tokens, result.n_cache_tokens, result.n_output_tokens, result.cost_usd)
