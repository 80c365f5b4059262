"""Trajectories in the Agent Trajectory Interchange Format, ATIF-v1.0 to v1.8: tokens, cost and calls of a model.

The format is Harbor's (docs/rfcs/0001-trajectory-format.md; models/trajectories in the package, version 0.25).
`prompt_tokens` include those read from a cache. Media are named by path and media type, without a digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from faultbook.harness.fields import joined_notes
from faultbook.harness.formats._harbor_usage import NOTHING, Usage, measured, total
from faultbook.harness.formats._rows import sum_of_all
from faultbook.values import amount, count, part, text

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_WITH_IMAGES = VERSIONS[6:]
_OF_STEP = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")
_OF_TRAJECTORY = ("total_prompt_tokens", "total_cached_tokens", "total_completion_tokens", "total_cost_usd")
_NAME = re.compile(r"ATIF-v\d+(\.\d+)*")


@dataclass(frozen=True, slots=True)
class Summary:
    """What a trajectory says of usage.

    Parameters
    ----------
    usage : Usage
        Tokens and cost of the whole trajectory, and how far they are metered.
    usage_source : str or None
        "final_metrics", or "steps" where they are summed.
    requests : int or None
        Calls of a model by the agent and the subagents held in the document; None where a step does not say.
    agent_steps : int or None
        Steps of the agent that are not copied from an earlier trajectory; None if the document has no steps.
    tool_images : int or None
        Images in observations of those steps; None where the version of the format holds no images.
    schema_version : str or None
        As recorded.
    note : str or None
        What a reader must know.
    """

    usage: Usage = NOTHING
    usage_source: str | None = None
    requests: int | None = None
    agent_steps: int | None = None
    tool_images: int | None = None
    schema_version: str | None = None
    note: str | None = None


def summary(document: Any) -> Summary:
    """Summarise a trajectory.

    Totals of `final_metrics` come first; the sum over steps takes their place where it is better metered, and where
    the document holds subagents, whose steps the totals need not count. Steps with `is_copied_context` belong to an
    earlier trajectory and count nowhere.

    Parameters
    ----------
    document : object
        What a JSON file held, whatever it is.

    Returns
    -------
    Summary
        Of a document that does not call itself ATIF nothing but its version is read.
    """
    version = text(part(document, "schema_version"))
    if version is None or not _NAME.fullmatch(version):
        return Summary(schema_version=version, note="not an ATIF trajectory")
    trajectories = list(_with_subagents(document))
    steps = [step for trajectory in trajectories for step in _agent_steps(trajectory)]
    results = [result for step in steps for result in _objects(part(step, "observation", "results"))]
    used = [_metrics(step.get("metrics"), _OF_STEP) for step in steps]
    usage, source = _usage(document, steps, used, len(trajectories) > 1)
    found = Summary(
        usage=usage,
        usage_source=source,
        requests=_requests(steps, used),
        agent_steps=len(steps) if any(_objects(item.get("steps")) for item in trajectories) else None,
        tool_images=sum(_images(result) for result in results) if version in _WITH_IMAGES and steps else None,
        schema_version=version,
        note=None if version in VERSIONS else f"{version} is not known: read as {VERSIONS[-1]}",
    )
    return _if_whole(found, document, results)


def _if_whole(found: Summary, document: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> Summary:
    """Take back what a trajectory cannot say of the parts of it that are in other files."""
    continued = text(document.get("continued_trajectory_ref")) is not None
    elsewhere = any(
        text(reference.get("trajectory_path")) is not None
        for result in results
        for reference in _objects(result.get("subagent_trajectory_ref"))
    )
    if not (continued or elsewhere):
        return found
    usage = found.usage
    if usage.status == "reported" and (continued or found.usage_source == "steps"):
        usage = replace(usage, status="partial")
    return replace(
        found,
        usage=usage,
        requests=None,
        note=joined_notes(
            found.note,
            "the trajectory goes on in another file" if continued else None,
            "subagents have files of their own" if elsewhere else None,
        ),
    )


def _usage(
    document: Mapping[str, Any], steps: list[Mapping[str, Any]], used: list[Usage], has_subagents: bool
) -> tuple[Usage, str | None]:
    final = _metrics(document.get("final_metrics"), _OF_TRAJECTORY)
    if final.status == "reported" and not has_subagents:
        return final, "final_metrics"
    # A step of the agent without a call of a model has nothing to meter.
    metered = [usage for step, usage in zip(steps, used, strict=True) if count(step.get("llm_call_count")) != 0]
    summed = total(metered)
    if summed.better_than(final) or summed.status == "reported":
        return summed, "steps"
    return final, None if final.status == "absent" else "final_metrics"


def _metrics(metrics: Any, names: tuple[str, str, str, str]) -> Usage:
    if not isinstance(metrics, dict):
        return NOTHING
    prompt, cached, completion, cost = (metrics.get(name) for name in names)
    return measured(count(prompt), count(cached), count(completion), amount(cost))


def _requests(steps: list[Mapping[str, Any]], used: list[Usage]) -> int | None:
    return count(sum_of_all(_calls(step, usage) for step, usage in zip(steps, used, strict=True)))


def _calls(step: Mapping[str, Any], usage: Usage) -> int | None:
    """Calls of a model in a step: as counted since v1.7, where null is "not tracked"; else one, if it has tokens."""
    if "llm_call_count" in step:
        return count(step["llm_call_count"])
    return None if usage.status == "absent" else 1


def _with_subagents(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [document]
    while waiting:
        trajectory = waiting.pop()
        yield trajectory
        waiting.extend(_objects(trajectory.get("subagent_trajectories")))


def _agent_steps(trajectory: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for step in _objects(trajectory.get("steps")):
        if step.get("source") == "agent" and step.get("is_copied_context") is not True:
            yield step


def _images(result: Mapping[str, Any]) -> int:
    return sum(
        item.get("type") == "image" and isinstance(part(item, "source", "path"), str)
        for item in _objects(result.get("content"))
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
