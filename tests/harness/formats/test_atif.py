"""Trajectories in ATIF: what counts as a call, what as metered, and what stays missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.harness.formats._harbor_usage import BEST_LAST, measured, total
from faultbook.harness.formats.atif import VERSIONS, summary
from faultbook.tables import USAGE_STATUSES


def metrics(prompt: int = 100, completion: int = 10, cached: int = 40, cost: float = 0.5) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached, "cost_usd": cost}


def step(**fields: Any) -> dict[str, Any]:
    return {"step_id": 1, "source": "agent", "message": "m"} | fields


def trajectory(*steps: Any, version: str = "ATIF-v1.4", **fields: Any) -> dict[str, Any]:
    return {"schema_version": version, "agent": {"name": "a", "version": "1"}, "steps": list(steps)} | fields


def test_steps_are_summed_where_there_are_no_totals() -> None:
    found = summary(trajectory(step(metrics=metrics()), step(source="user"), step(metrics=metrics(50, 5, 0, 0.25))))
    usage = found.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens, usage.cost) == (150, 15, 40, 0.75)
    assert (usage.status, found.usage_source, found.requests, found.agent_steps) == ("reported", "steps", 2, 2)


def test_totals_come_before_sums() -> None:
    final = {"total_prompt_tokens": 7, "total_completion_tokens": 3, "total_cached_tokens": 1, "total_cost_usd": 0.1}
    found = summary(trajectory(step(metrics=metrics()), final_metrics=final))
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cache_tokens) == (7, 3, 1)
    assert found.usage_source == "final_metrics"
    assert found.requests == 1


def test_totals_of_zero_give_way_to_metered_steps() -> None:
    # Harbor 0.25's adapters write `total or 0`: 0 is "not known".
    zeros = {"total_prompt_tokens": 0, "total_completion_tokens": 0}
    assert summary(trajectory(step(metrics=metrics()), final_metrics=zeros)).usage.input_tokens == 100
    assert summary(trajectory(step(), final_metrics=zeros)).usage.status == "zero_suspect"


def test_a_step_without_metrics_makes_the_sum_partial_and_the_calls_unknown() -> None:
    found = summary(trajectory(step(metrics=metrics()), step()))
    assert (found.usage.input_tokens, found.usage.status, found.requests) == (100, "partial", None)
    # Cache and cost have no status of their own: a sum over some steps would pass for the whole.
    assert (found.usage.cache_tokens, found.usage.cost) == (None, None)


def test_llm_call_count_is_taken_where_it_is_given() -> None:
    # v1.7: 0 is a step without a model, more than 1 is several calls in one step.
    steps = [step(metrics=metrics(), llm_call_count=3), step(llm_call_count=0)]
    found = summary(trajectory(*steps, version="ATIF-v1.7"))
    assert (found.requests, found.usage.status, found.usage.input_tokens) == (3, "reported", 100)


@pytest.mark.parametrize("untracked", [None, "two", -1, True])
def test_llm_call_count_null_is_not_tracked_and_not_zero(untracked: Any) -> None:
    steps = [step(metrics=metrics(), llm_call_count=1), step(metrics=metrics(), llm_call_count=untracked)]
    assert summary(trajectory(*steps, version="ATIF-v1.7")).requests is None


def test_copied_context_counts_nowhere() -> None:
    copied = step(metrics=metrics(), is_copied_context=True, llm_call_count=9)
    found = summary(trajectory(copied, step(metrics=metrics(1, 2, 0, 0.0)), version="ATIF-v1.7"))
    assert (found.requests, found.agent_steps, found.usage.input_tokens) == (1, 1, 1)


def test_no_step_of_the_agent_is_no_call_on_record() -> None:
    assert summary(trajectory(step(source="user"))).requests is None
    assert summary(trajectory()).agent_steps is None


def test_subagents_in_the_document_count() -> None:
    inner = trajectory(step(metrics=metrics(10, 1, 0, 0.0)), version="ATIF-v1.7", trajectory_id="s")
    final = {"total_prompt_tokens": 100, "total_completion_tokens": 10}
    outer = trajectory(step(metrics=metrics()), version="ATIF-v1.7", subagent_trajectories=[inner], final_metrics=final)
    found = summary(outer)
    assert (found.requests, found.usage.input_tokens, found.usage_source) == (2, 110, "steps")


def test_subagents_in_other_files_leave_the_calls_unknown() -> None:
    results = [{"subagent_trajectory_ref": [{"session_id": "s", "trajectory_path": "trajectory.summary.json"}]}]
    found = summary(trajectory(step(metrics=metrics(), observation={"results": results})))
    assert (found.requests, found.usage.status) == (None, "partial")
    assert "files of their own" in str(found.note)


def test_a_trajectory_that_goes_on_elsewhere_is_partial() -> None:
    final = {"total_prompt_tokens": 7, "total_completion_tokens": 3}
    document = trajectory(
        step(metrics=metrics()), final_metrics=final, continued_trajectory_ref="trajectory.cont-1.json"
    )
    found = summary(document)
    assert (found.requests, found.usage.status, found.usage.input_tokens) == (None, "partial", 7)


def test_tool_images_are_counted_by_path() -> None:
    image = {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}}
    results = [{"content": [image, {"type": "text", "text": "t"}, image]}, {"content": "no parts"}]
    document = trajectory(step(metrics=metrics(), observation={"results": results}), version="ATIF-v1.6")
    assert summary(document).tool_images == 2
    assert summary(trajectory(step(metrics=metrics()), version="ATIF-v1.6")).tool_images == 0
    # Before v1.6 an observation could hold no image: none recorded is not none shown.
    assert summary(trajectory(step(metrics=metrics()), version="ATIF-v1.5")).tool_images is None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(version: str) -> None:
    found = summary(trajectory(step(metrics=metrics()), version=version, something_new={"a": 1}))
    assert (found.schema_version, found.requests, found.note) == (version, 1, None)


def test_a_later_version_is_read_and_named() -> None:
    found = summary(trajectory(step(metrics=metrics()), version="ATIF-v2.0"))
    assert found.usage.input_tokens == 100
    assert "ATIF-v2.0 is not known" in str(found.note)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"schema_version": "mini-swe-agent-1", "steps": []}])
def test_what_is_no_trajectory_gives_nothing(document: Any) -> None:
    found = summary(document)
    assert (found.usage.status, found.requests, found.note) == ("absent", None, "not an ATIF trajectory")


def test_wrong_types_are_missing() -> None:
    wrong = {"prompt_tokens": "100", "completion_tokens": 1.5, "cached_tokens": True, "cost_usd": float("nan")}
    usage = summary(trajectory(step(metrics=wrong))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_tokens, usage.cost) == (None, None, None, None)
    assert usage.status == "absent"


def test_subagents_nested_deeply_are_no_recursion() -> None:
    document = trajectory(step(metrics=metrics()), version="ATIF-v1.7")
    for _ in range(5000):
        document = trajectory(version="ATIF-v1.7", subagent_trajectories=[document])
    assert summary(document).requests == 1


TOKENS = st.none() | st.integers(0, 1000)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(TOKENS, TOKENS, TOKENS), max_size=6))
def test_a_total_is_reported_only_if_every_part_is(counts: list[tuple[int | None, int | None, int | None]]) -> None:
    parts = [measured(given, cached, made, None) for given, cached, made in counts]
    found = total(parts)
    assert (found.status == "reported") == (bool(parts) and all(part.status == "reported" for part in parts))
    assert (found.input_tokens is None) == all(part.input_tokens is None for part in parts)
    assert found.cost is None
    if found.cache_tokens is not None:
        assert all(part.cache_tokens is not None for part in parts)


VALUES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
NAMES = ["prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "llm_call_count", "is_copied_context"]
STEPS = st.dictionaries(
    st.sampled_from(["source", "metrics", "observation", *NAMES]),
    VALUES | st.just("agent") | st.dictionaries(st.sampled_from([*NAMES, "results"]), VALUES | st.lists(VALUES)),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES | STEPS, max_size=5) | VALUES, VALUES | STEPS, VALUES, st.sampled_from(VERSIONS))
def test_any_document_is_summarised(steps: Any, final: Any, reference: Any, version: str) -> None:
    found = summary(
        {"schema_version": version, "steps": steps, "final_metrics": final, "continued_trajectory_ref": reference}
    )
    assert found.usage.status in USAGE_STATUSES
    for number in (found.usage.input_tokens, found.usage.output_tokens, found.usage.cost, found.requests):
        assert number is None or number >= 0


def test_every_status_has_a_rank() -> None:
    assert set(BEST_LAST) == set(USAGE_STATUSES)
