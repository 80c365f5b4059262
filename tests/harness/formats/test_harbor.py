"""Harbor's jobs: every oddity of its files is read for what it says, and for no more."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.harness.files import Files
from faultbook.harness.formats.harbor import FORMAT, job_summary, planned, read, recognises
from faultbook.tables import Plan, Trials, typed

START, END = "2026-07-01T10:00:00Z", "2026-07-01T10:10:00Z"
AGENT = {"name": "terminus-2", "model_name": "anthropic/claude-x"}
ARM = "terminus-2 (claude-x)"

# --- builders, after models/trial/result.py and models/job/*.py of Harbor 0.25


def span(start: str | None, end: str | None) -> dict[str, Any]:
    return {
        "started_at": f"2026-07-01T{start}Z" if start else None,
        "finished_at": f"2026-07-01T{end}Z" if end else None,
    }


def result(task: str = "fix-git", **fields: Any) -> dict[str, Any]:
    return {
        "id": "2b7c2f5e-0000-4000-8000-000000000000",
        "task_name": task,
        "trial_name": f"{task.rpartition('/')[2]}__abcdefg",
        "trial_uri": "file:///jobs/j/t",
        "task_id": {"path": task},
        "source": "terminal-bench",
        "task_checksum": "c0ffee",
        "config": {"task": {"path": task}, "agent": AGENT},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0",
            "model_info": {"name": "claude-x", "provider": "anthropic"},
        },
        "agent_result": {"n_input_tokens": 1000, "n_cache_tokens": 600, "n_output_tokens": 50, "cost_usd": 0.5},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": START,
        "finished_at": END,
        "environment_setup": span("10:00:00", "10:01:00"),
        "agent_setup": span("10:01:00", "10:01:30"),
        "agent_execution": span("10:01:30", "10:08:00"),
        "verifier": span("10:08:00", "10:09:00"),
        "step_results": None,
    } | fields


def exception(name: str, message: str = "", traceback: str = "") -> dict[str, Any]:
    return {
        "exception_type": name,
        "exception_message": message,
        "exception_traceback": traceback,
        "occurred_at": END,
    }


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def trial(folder: Path, name: str = "fix-git__abcdefg", **fields: Any) -> Path:
    task = name.partition("__")[0]
    write(folder / name / "config.json", {"task": {"path": f"tasks/{task}"}, "agent": AGENT, "trial_name": name})
    write(folder / name / "result.json", result(task, **({"trial_name": name} | fields)))
    return folder / name


def job(folder: Path, **config: Any) -> Path:
    given = {"job_name": "night", "n_attempts": 2, "agents": [AGENT], "tasks": [{"path": "tasks/fix-git"}]} | config
    write(folder / "config.json", given)
    write(folder / "lock.json", {"schema_version": 3, "harbor": {"version": "0.25.0"}, "trials": []})
    stats = {"n_completed_trials": 1, "n_running_trials": 1, "evals": {}}
    write(
        folder / "result.json",
        {"id": "j", "started_at": "2026-07-01T12:00:00", "finished_at": None, "n_total_trials": 2, "stats": stats},
    )
    return folder


def only(path: Path, **arguments: Any) -> dict[str, Any]:
    rows = list(read(path, Files(), **arguments))
    assert len(rows) == 1
    return rows[0]


def of(tmp_path: Path, **fields: Any) -> dict[str, Any]:
    return only(trial(tmp_path, **fields))


def step(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "step_name": name,
        "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 10, "n_output_tokens": 5, "cost_usd": 0.1},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "agent_execution": span("10:01:00", "10:02:00"),
        "verifier": span("10:02:00", "10:02:30"),
    } | fields


def trajectory(*metrics: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    steps = [{"source": "agent", "message": "m"} | ({"metrics": one} if one else {}) for one in metrics]
    return {"schema_version": "ATIF-v1.4", "agent": {"name": "a", "version": "1"}, "steps": steps} | fields


METRICS = {"prompt_tokens": 200, "cached_tokens": 20, "completion_tokens": 10, "cost_usd": 0.25}
UNMETERED = {"n_input_tokens": None, "n_cache_tokens": None, "n_output_tokens": None, "cost_usd": None}


# --- a trial


def test_a_finished_trial(tmp_path: Path) -> None:
    row = of(tmp_path)
    assert row == {
        "arm": ARM,
        "task_id": "fix-git",
        "trial_id": "fix-git__abcdefg",
        "run_id": None,
        "state": "finished",
        "reward": 1.0,
        "reward_key": "reward",
        "resolved": True,
        "reward_valid": True,
        "cause": "completed",
        "cause_source": "observed",
        "other_causes": None,
        "exception_type": None,
        "total_seconds": 600.0,
        "setup_seconds": 90.0,
        "agent_seconds": 390.0,
        "verifier_seconds": 60.0,
        "input_tokens": 1000,
        "cache_tokens": 600,
        "output_tokens": 50,
        "cache_included": True,
        "requests": None,
        "cost": 0.5,
        "usage_status": "reported",
        "started_at": START,
        "task_checksum": "c0ffee",
        "source_format": FORMAT,
        "source_version": None,
        "source_path": str(tmp_path / "fix-git__abcdefg" / "result.json"),
        "source_sha256": row["source_sha256"],
        "note": None,
    }
    assert len(row["source_sha256"]) == 64


def test_the_rows_of_a_job_are_a_table_of_trials(tmp_path: Path) -> None:
    folder = job(tmp_path)
    trial(folder)
    trial(folder, "fix-git__hijklmn", verifier_result={"rewards": {"reward": 0.0}})
    (folder / "night-notes").mkdir()
    rows = list(read(folder, Files()))
    assert [row["resolved"] for row in rows] == [True, False]
    assert {(row["run_id"], row["source_version"]) for row in rows} == {("night", "0.25.0")}
    typed([row | {"attempt": number} for number, row in enumerate(rows, start=1)], Trials)


def test_repeats_have_no_ordinal(tmp_path: Path) -> None:
    # (h), fault 7: the suffix is random, whatever it looks like.
    folder = job(tmp_path)
    for name in ("fix-git__0000002", "fix-git__0000001"):
        trial(folder, name)
    assert not any("attempt" in row for row in read(folder, Files()))


@pytest.mark.parametrize(
    "name", ["/root/.cache/harbor/tasks/x/fix-git", "terminal-bench/fix-git", "C:\\tasks\\fix-git", "fix-git/"]
)
def test_a_task_is_the_last_part_of_its_name(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, task_name=name)["task_id"] == "fix-git"


def test_arms_are_called_alike_in_results_in_trials_without_one_and_in_the_plan(tmp_path: Path) -> None:
    folder = job(tmp_path)
    trial(folder)
    (trial(folder, "fix-git__hijklmn") / "result.json").unlink()
    plan = planned(folder, Files())
    assert plan is not None
    assert {row["arm"] for row in [*read(folder, Files()), *plan]} == {ARM}


def test_the_agents_own_account_names_the_arm_where_the_configuration_is_missing(tmp_path: Path) -> None:
    assert of(tmp_path, config=None)["arm"] == ARM
    assert of(tmp_path, config={}, agent_info={"name": "oracle", "model_info": None})["arm"] == "oracle"
    assert of(tmp_path, config={}, agent_info=None)["arm"] == "unknown"
    assert only(tmp_path / "fix-git__abcdefg", arm="B")["arm"] == "B"


def test_a_job_of_several_agents_read_as_one_arm_says_so(tmp_path: Path) -> None:
    folder = job(tmp_path, agents=[AGENT, {"name": "oracle"}])
    trial(folder)
    assert "ran 2 agents, all read as one arm" in only(folder, arm="A")["note"]
    assert only(folder)["note"] is None


def test_two_settings_of_one_agent_are_not_told_apart_by_name(tmp_path: Path) -> None:
    folder = job(tmp_path, agents=[AGENT | {"kwargs": {"parser": "json"}}, AGENT | {"kwargs": {"parser": "xml"}}])
    trial(folder)
    assert "2 agents of the job have this name" in only(folder)["note"]


# --- reward


def test_no_verifier_result_is_no_reward_and_not_0(tmp_path: Path) -> None:
    # (a), fault 1: the mean of Harbor counts it as 0.
    row = of(tmp_path, verifier_result=None, exception_info=exception("EnvironmentStartTimeoutError"))
    assert (row["reward"], row["resolved"], row["reward_valid"]) == (None, None, None)
    assert (row["state"], row["cause"], row["note"]) == ("finished", "sandbox", "no verifier's result")


def test_a_resolved_agent_timeout_is_resolved(tmp_path: Path) -> None:
    # Fault 3: a reward beside AgentTimeoutError is normal and stands, whatever the agent says of itself.
    row = of(tmp_path, exception_info=exception("AgentTimeoutError"), agent_result=None)
    assert (row["resolved"], row["reward_valid"]) == (True, True)
    assert (row["cause"], row["exception_type"]) == ("agent_budget_exhausted", "AgentTimeoutError")
    assert row["usage_status"] == "absent"


def test_a_reward_of_0_beside_a_killed_provider_is_kept_and_not_valid(tmp_path: Path) -> None:
    # Faults 2 and 4.
    info = exception("NonZeroAgentExitCodeError", "HTTP 402: payment required")
    row = of(tmp_path, verifier_result={"rewards": {"reward": 0}}, exception_info=info)
    assert (row["reward"], row["resolved"], row["reward_valid"]) == (0.0, False, False)
    assert (row["cause"], row["cause_source"]) == ("provider_quota", "inferred")


def test_several_rewards_need_a_metric(tmp_path: Path) -> None:
    rewards = {"rewards": {"tests": 1.0, "style": 0.25}}
    row = of(tmp_path, verifier_result=rewards)
    assert (row["reward"], row["resolved"]) == (None, None)
    assert row["note"] == "several rewards (tests, style): name one with metric"
    chosen = only(tmp_path / "fix-git__abcdefg", metric="style")
    assert (chosen["reward"], chosen["reward_key"], chosen["resolved"]) == (0.25, "style", False)
    other = only(tmp_path / "fix-git__abcdefg", metric="speed")
    assert (other["reward"], other["note"]) == (None, "no reward is called 'speed', only: tests, style")


def test_the_reward_called_reward_is_the_one(tmp_path: Path) -> None:
    assert of(tmp_path, verifier_result={"rewards": {"style": 0.5, "reward": 1}})["reward_key"] == "reward"


def test_a_sole_reward_is_the_one_whatever_it_is_called(tmp_path: Path) -> None:
    assert of(tmp_path, verifier_result={"rewards": {"accuracy": 1}})["reward_key"] == "accuracy"


def test_one_reward_without_a_name_as_harbor_wrote_it_at_first(tmp_path: Path) -> None:
    assert of(tmp_path, verifier_result={"reward": 0})["resolved"] is False


@pytest.mark.parametrize("value", ["1.0", True, None, [1], float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_missing(tmp_path: Path, value: Any) -> None:
    row = of(tmp_path, verifier_result={"rewards": {"reward": value}})
    assert (row["reward"], row["resolved"], row["reward_valid"]) == (None, None, None)
    assert row["note"] == "the reward is no number"


def test_a_reward_outside_its_range_is_kept_and_not_judged(tmp_path: Path) -> None:
    row = of(tmp_path, verifier_result={"rewards": {"reward": 1.5}})
    assert (row["reward"], row["resolved"]) == (1.5, None)
    assert "outside [0, 1]" in row["note"]


@pytest.mark.parametrize(("file", "content"), [("reward.txt", "0.0\n"), ("reward.json", {"reward": 0})])
def test_a_reward_that_only_the_verifiers_file_holds(tmp_path: Path, file: str, content: Any) -> None:
    folder = trial(tmp_path, verifier_result=None, exception_info=exception("VerifierTimeoutError"))
    write(folder / "verifier" / file, content)
    row = only(folder)
    assert (row["reward"], row["resolved"], row["reward_valid"]) == (0.0, False, False)
    assert row["note"] == f"no verifier's result: the reward is that of verifier/{file}"
    assert row["source_path"] == str(folder / "verifier" / file)


def test_a_reward_file_without_a_verification_may_be_the_agents(tmp_path: Path) -> None:
    folder = trial(tmp_path, verifier_result=None, verifier=None)
    write(folder / "verifier" / "reward.txt", "1")
    row = only(folder)
    assert (row["reward"], row["resolved"]) == (None, None)
    assert "not used, since no verification began" in row["note"]


def test_a_reward_file_without_a_result_is_no_end(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    (folder / "result.json").unlink()
    write(folder / "verifier" / "reward.txt", "1")
    row = only(folder)
    assert (row["state"], row.get("reward"), row.get("cause")) == ("unfinished", None, None)


def test_a_reward_file_that_is_no_number(tmp_path: Path) -> None:
    folder = trial(tmp_path, verifier_result={"rewards": None})
    write(folder / "verifier" / "reward.txt", "passed")
    row = only(folder)
    assert row["reward"] is None
    assert "the reward is no number" in row["note"]


# --- causes


def test_exceptions_of_steps_are_found(tmp_path: Path) -> None:
    # (g): top-level exception_info and agent_result are null then.
    steps = [step("one"), step("two", exception_info=exception("AgentTimeoutError"), verifier_result=None)]
    row = of(tmp_path, step_results=steps, agent_result=None, agent_execution=None, verifier=None)
    assert (row["cause"], row["exception_type"]) == ("agent_budget_exhausted", "AgentTimeoutError")
    assert row["note"] == "the verifier judged 1 of 2 steps that began"


def test_the_taxonomy_says_which_of_several_exceptions_is_the_primary_one(tmp_path: Path) -> None:
    steps = [step("one", exception_info=exception("RateLimitError"))]
    row = of(tmp_path, step_results=steps, exception_info=exception("VerifierTimeoutError"))
    assert (row["cause"], row["exception_type"]) == ("provider_rate_limit", "RateLimitError")
    assert row["other_causes"] == "verifier_failed"


def test_frames_of_a_traceback_are_no_reason(tmp_path: Path) -> None:
    frames = 'Traceback\n  File "/harbor/environments/docker/docker.py", line 1, in up\n    error timeout\nOddError'
    assert of(tmp_path, exception_info=exception("OddError", "", frames))["cause"] == "unclassified"


def test_an_exception_of_another_form_is_not_none(tmp_path: Path) -> None:
    row = of(tmp_path, exception_info="boom")
    assert (row["cause"], row["cause_source"], row["exception_type"]) == ("unclassified", "inferred", None)


def test_a_cancelled_trial_has_ended(tmp_path: Path) -> None:
    row = of(tmp_path, exception_info=exception("CancelledError"), verifier_result=None)
    assert (row["state"], row["cause"], row["reward"]) == ("finished", "cancelled", None)


# --- states


def test_a_trial_without_a_result_is_unfinished(tmp_path: Path) -> None:
    # (b): `harbor resume` deletes such folders, so they must be seen before.
    folder = job(tmp_path)
    file = trial(folder) / "result.json"
    file.unlink()
    row = only(folder)
    assert (row["state"], row["task_id"], row["arm"], row["usage_status"]) == ("unfinished", "fix-git", ARM, "absent")
    assert row["source_path"] == str(file.with_name("config.json"))
    # (d): running trials in a job's own record prove nothing.
    assert row["note"].startswith("no result.json; by its own record the job did not end; whether it runs still")


def test_an_exception_on_file_tells_why_no_result_was_written(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    (folder / "result.json").unlink()
    write(
        folder / "exception.txt",
        "Traceback (most recent call last):\n  File x\nharbor.errors.AgentTimeoutError: 900 s\n",
    )
    row = only(folder)
    assert (row["state"], row["cause"]) == ("unfinished", "agent_budget_exhausted")
    assert (row["exception_type"], row["reward_valid"]) == ("AgentTimeoutError", None)


def test_an_empty_folder_is_an_unfinished_trial(tmp_path: Path) -> None:
    folder = job(tmp_path)
    (folder / "fix-git__abcdefg").mkdir()
    row = only(folder)
    assert (row["state"], row["task_id"], row["arm"]) == ("unfinished", "fix-git", ARM)
    assert row["source_sha256"] is None


def test_a_result_that_says_nothing_of_an_end_is_unfinished(tmp_path: Path) -> None:
    folder = trial(tmp_path, finished_at=None, verifier_result=None)
    write(folder / "agent" / "trajectory.json", trajectory(METRICS))
    row = only(folder)
    assert (row["state"], row.get("cause"), row["reward"]) == ("unfinished", None, None)
    assert (row["usage_status"], row["note"]) == ("partial", "result.json says nothing of an end")


@pytest.mark.parametrize("sign", [{"verifier_result": {"rewards": {"reward": 0}}}, {"exception_info": exception("X")}])
def test_a_verdict_or_an_exception_is_an_end_too(tmp_path: Path, sign: dict[str, Any]) -> None:
    assert of(tmp_path, **({"finished_at": None, "verifier_result": None} | sign))["state"] == "finished"


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "empty file"), (b"\0\0\0", "empty file"), (b'{"task_name": "fix', "not a JSON"), (b"[1]", "no JSON object")],
)
def test_a_half_written_result_is_unreadable(tmp_path: Path, content: bytes, why: str) -> None:
    # (j): Harbor's write is not atomic.
    folder = job(tmp_path)
    file = write(trial(folder) / "result.json", content)
    row = only(folder)
    assert (row["state"], row["task_id"], row["arm"]) == ("unreadable", "fix-git", ARM)
    assert why in row["note"]
    assert (row["source_path"], row.get("reward"), row.get("cause")) == (str(file), None, None)


def test_a_sole_trial_with_nothing_but_an_empty_result_is_unreadable(tmp_path: Path) -> None:
    write(tmp_path / "fix-git__abcdefg" / "result.json", b"")
    row = only(tmp_path / "fix-git__abcdefg")
    assert (row["state"], row["task_id"], row["note"]) == ("unreadable", "fix-git", "empty file")


def test_bytes_that_are_not_utf8_lose_nothing_else(tmp_path: Path) -> None:
    # Fault 10.
    text = json.dumps(result(exception_info=exception("AgentTimeoutError", "output: X")))
    write(tmp_path / "fix-git__abcdefg" / "result.json", text.encode().replace(b"output: X", b"output: \xe2"))
    row = only(tmp_path / "fix-git__abcdefg")
    assert (row["state"], row["resolved"], row["cause"]) == ("finished", True, "agent_budget_exhausted")


def test_the_name_results_json_of_the_documentation_is_read(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    (folder / "result.json").rename(folder / "results.json")
    assert recognises(folder)
    assert only(folder)["resolved"] is True


def test_links_inside_a_folder_are_not_followed_and_not_lost(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    elsewhere = trial(tmp_path / "other")
    (folder / "fix-git__linked0").symlink_to(elsewhere)
    (trial(folder) / "result.json").unlink()
    (folder / "fix-git__abcdefg" / "result.json").symlink_to(elsewhere / "result.json")
    rows = list(read(folder, Files()))
    assert [row["state"] for row in rows] == ["unreadable", "unreadable"]
    assert all("symbolic link" in row["note"] for row in rows)
    assert not any("reward" in row for row in rows)


def test_a_linked_job_folder_is_read(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    trial(folder)
    (tmp_path / "link").symlink_to(folder)
    assert recognises(tmp_path / "link")
    assert only(tmp_path / "link")["run_id"] == "night"


def test_a_linked_reward_and_trajectory_are_not_followed(tmp_path: Path) -> None:
    folder = trial(tmp_path, verifier_result=None, agent_result=UNMETERED)
    write(tmp_path / "elsewhere" / "reward.txt", "1")
    write(tmp_path / "elsewhere" / "trajectory.json", trajectory(METRICS))
    (folder / "verifier").symlink_to(tmp_path / "elsewhere")
    (folder / "agent").symlink_to(tmp_path / "elsewhere")
    row = only(folder)
    assert (row["reward"], row["input_tokens"], row["usage_status"]) == (None, None, "absent")
    assert row["note"].count("symbolic link") == 2


def test_a_folder_that_may_not_be_read_is_a_row(tmp_path: Path) -> None:
    folder = job(tmp_path)
    locked = trial(folder)
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        locked.chmod(0o755)
        pytest.skip("whoever runs this may read every folder")
    try:
        row = only(folder)
    finally:
        locked.chmod(0o755)
    assert row["state"] == "unreadable"


def test_a_folder_that_is_not_there_is_a_row(tmp_path: Path) -> None:
    row = only(tmp_path / "gone__abc")
    assert (row["state"], row["task_id"], row["arm"]) == ("unreadable", None, "unknown")


# --- time


def test_set_up_that_never_came_to_the_agent(tmp_path: Path) -> None:
    row = of(tmp_path, agent_setup=None, agent_execution=None, verifier=None)
    assert (row["setup_seconds"], row["agent_seconds"], row["verifier_seconds"]) == (60.0, None, None)


def test_a_phase_that_began_and_has_no_end_has_no_length(tmp_path: Path) -> None:
    row = of(tmp_path, agent_setup=span("10:01:00", None), agent_execution=span("10:01:30", None))
    assert (row["setup_seconds"], row["agent_seconds"], row["total_seconds"]) == (None, None, 600.0)


def test_two_clocks_are_never_subtracted(tmp_path: Path) -> None:
    # (c), fault 13.
    row = of(tmp_path, started_at="2026-07-01T19:00:00")
    assert row["total_seconds"] is None
    assert row["started_at"] == "2026-07-01T19:00:00"
    assert "total: a local time without offset" in row["note"]


def test_a_negative_span_is_no_duration(tmp_path: Path) -> None:
    row = of(tmp_path, verifier=span("10:09:00", "10:08:00"))
    assert row["verifier_seconds"] is None
    assert row["note"] == "verifier: it ends before it starts: no duration"


def test_seconds_of_steps_are_summed_only_if_all_are_known(tmp_path: Path) -> None:
    empty = {"agent_result": None, "agent_execution": None, "verifier": None}
    assert of(tmp_path, step_results=[step("a"), step("b")], **empty)["agent_seconds"] == 120.0
    steps = [step("a"), step("b", agent_execution=span("10:03:00", None))]
    row = of(tmp_path, step_results=steps, **empty)
    assert (row["agent_seconds"], row["verifier_seconds"]) == (None, 60.0)


# --- usage


def test_usage_of_steps_is_the_sum_where_all_are_metered(tmp_path: Path) -> None:
    # A step that the agent never came to has nothing to meter.
    never = step("c", agent_result=None, agent_execution=None, exception_info=exception("HealthcheckError"))
    row = of(tmp_path, agent_result=None, step_results=[step("a"), step("b"), never])
    assert (row["input_tokens"], row["output_tokens"], row["cache_tokens"], row["cost"]) == (200, 10, 20, 0.2)
    assert row["usage_status"] == "reported"


@pytest.mark.parametrize("unmetered", [None, UNMETERED, {"n_input_tokens": 0, "n_output_tokens": 0}])
def test_a_sum_over_some_steps_is_partial(tmp_path: Path, unmetered: Any) -> None:
    # (i)
    row = of(tmp_path, agent_result=None, step_results=[step("a"), step("b", agent_result=unmetered)])
    assert (row["input_tokens"], row["usage_status"], row["cost"]) == (100, "partial", None)
    assert "1 of 2 steps are metered" in row["note"]


def test_zeros_are_suspect_and_not_absent(tmp_path: Path) -> None:
    # (i): adapters of Harbor 0.25 write `total or 0`.
    row = of(tmp_path, agent_result={"n_input_tokens": 0, "n_cache_tokens": 0, "n_output_tokens": 0, "cost_usd": None})
    assert (row["input_tokens"], row["usage_status"]) == (0, "zero_suspect")


def test_the_trajectory_gives_tokens_that_the_agent_does_not_report(tmp_path: Path) -> None:
    folder = trial(tmp_path, agent_result=UNMETERED)
    write(folder / "agent" / "trajectory.json", trajectory(METRICS, METRICS))
    row = only(folder)
    assert (row["input_tokens"], row["cache_tokens"], row["output_tokens"], row["requests"]) == (400, 40, 20, 2)
    assert (row["cost"], row["cache_included"], row["usage_status"]) == (0.5, True, "reported")
    assert row["note"] == "agent/trajectory.json: tokens are from its steps"


def test_the_agents_own_account_comes_first(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    write(folder / "agent" / "trajectory.json", trajectory(METRICS))
    row = only(folder)
    assert (row["input_tokens"], row["requests"], row["note"]) == (1000, 1, None)


def test_requests_of_steps_are_summed_only_if_all_are_known(tmp_path: Path) -> None:
    folder = trial(tmp_path, agent_result=None, step_results=[step("a"), step("b")])
    write(folder / "steps" / "a" / "agent" / "trajectory.json", trajectory(METRICS, METRICS))
    assert only(folder)["requests"] is None
    write(folder / "steps" / "b" / "agent" / "trajectory.json", trajectory(METRICS))
    assert only(folder)["requests"] == 3


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "a/b", "a\0b", "x" * 5000, ""])
def test_a_step_cannot_name_a_place_elsewhere(tmp_path: Path, name: str) -> None:
    folder = trial(tmp_path, agent_result=None, step_results=[step(name, agent_result=None)])
    write(tmp_path / "agent" / "trajectory.json", trajectory(METRICS))
    assert only(folder)["usage_status"] == "absent"


def test_a_half_written_trajectory_loses_no_trial(tmp_path: Path) -> None:
    folder = trial(tmp_path)
    write(folder / "agent" / "trajectory.json", '{"schema_version": "ATIF-v1.7", "steps": [')
    row = only(folder)
    assert (row["resolved"], row["requests"], row["input_tokens"]) == (True, None, 1000)
    assert row["note"].startswith("agent/trajectory.json: not a JSON document")


# --- job


def test_legacy_counts_have_their_names_of_today(tmp_path: Path) -> None:
    # (e): before 0.13. (f): n_trials inside `evals` counts rewarded trials only and is not read.
    stats = {
        "n_trials": 43,
        "n_errors": 5,
        "evals": {"a__b": {"n_trials": 7, "reward_stats": {"reward": {"1.0": ["t"]}}}},
    }
    write(tmp_path / "result.json", {"n_total_trials": 48, "finished_at": None, "stats": stats})
    found = job_summary(tmp_path, Files())
    assert (found.n_completed, found.n_errored, found.n_total, found.n_running) == (43, 5, 48, None)
    assert "did not end" in str(found.note)


def test_counts_of_today_and_of_status(tmp_path: Path) -> None:
    document = {
        "n_total_trials": 4,
        "finished_at": "2026-07-01T12:00:00",
        "stats": {"n_completed_trials": 3, "n_trials": 9},
        "status": {"n_running_trials": 1, "n_retries": 2},
    }
    write(tmp_path / "result.json", document)
    found = job_summary(tmp_path, Files())
    assert (found.n_completed, found.n_running, found.n_retries, found.note) == (3, 1, 2, None)
    assert found.finished_at == "2026-07-01T12:00:00"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"stats": [1]}', None])
def test_a_job_that_says_nothing_has_only_a_note(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        write(tmp_path / "result.json", content)
    found = job_summary(tmp_path, Files())
    assert (found.finished_at, found.n_completed, found.n_running) == (None, None, None)
    assert found.note


# --- plan


def lock(*trials: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"schema_version": 3, "trials": [{"task": {"name": task}, "agent": agent} for task, agent in trials]}


def test_the_plan_of_a_configuration(tmp_path: Path) -> None:
    dataset = {"name": "terminal-bench@2.1", "task_names": ["terminal-bench/b"]}
    plan = planned(job(tmp_path, agents=[AGENT, {"name": "oracle"}], datasets=[dataset]), Files())
    assert plan is not None
    expected = {(arm, task, attempt) for arm in (ARM, "oracle") for task in ("fix-git", "b") for attempt in (1, 2)}
    assert {(row["arm"], row["task_id"], row["attempt"]) for row in plan} == expected
    typed([row | {"source": "config"} for row in plan], Plan)


def test_one_attempt_is_left_out_of_the_configuration(tmp_path: Path) -> None:
    folder = job(tmp_path)
    write(folder / "config.json", {"job_name": "n", "agents": [AGENT], "tasks": [{"name": "org/a"}]})
    assert planned(folder, Files()) == [{"arm": ARM, "task_id": "a", "attempt": 1}]


@pytest.mark.parametrize(
    "dataset",
    [
        {"name": "d"},
        {"name": "d", "task_names": ["fix-*"]},
        {"name": "d", "task_names": ["a"], "n_tasks": 1},
        {"path": "d"},
    ],
)
def test_a_data_set_without_its_tasks_is_taken_from_the_lock(tmp_path: Path, dataset: dict[str, Any]) -> None:
    folder = job(tmp_path, tasks=[], datasets=[dataset])
    assert planned(folder, Files()) is None
    write(folder / "lock.json", lock(("b", AGENT), ("a", AGENT), ("a", AGENT)))
    plan = planned(folder, Files(), arm="A")
    assert plan == [
        {"arm": "A", "task_id": "b", "attempt": 1},
        {"arm": "A", "task_id": "a", "attempt": 1},
        {"arm": "A", "task_id": "a", "attempt": 2},
    ]


def test_the_number_of_trials_decides_between_two_plans(tmp_path: Path) -> None:
    folder = job(tmp_path, datasets=[{"name": "d", "task_names": ["a", "misspelt"]}], tasks=[], n_attempts=1)
    write(folder / "lock.json", lock(("a", AGENT)))
    write(folder / "result.json", {"n_total_trials": 1, "stats": {}})
    assert planned(folder, Files()) == [{"arm": ARM, "task_id": "a", "attempt": 1}]


@pytest.mark.parametrize("attempts", [0, -1, "2", 1.5, None, 10**15])
def test_a_number_of_attempts_that_is_none_gives_no_plan(tmp_path: Path, attempts: Any) -> None:
    assert planned(job(tmp_path, n_attempts=attempts), Files()) is None


def test_half_a_plan_is_no_plan(tmp_path: Path) -> None:
    assert planned(job(tmp_path, tasks=[{"path": "a"}, {"path": 3}]), Files()) is None
    assert planned(job(tmp_path, agents=[{}]), Files()) is None


def test_a_job_that_reruns_parts_of_another_is_planned_by_its_lock(tmp_path: Path) -> None:
    # Fault 5: only some trials are run anew.
    folder = job(tmp_path, source_jobs=[{"action": "diff", "type": "local", "path": "jobs/old"}])
    write(folder / "lock.json", lock(("fix-git", AGENT)))
    assert planned(folder, Files()) == [{"arm": ARM, "task_id": "fix-git", "attempt": 1}]


def test_a_trial_alone_has_no_plan(tmp_path: Path) -> None:
    assert planned(trial(tmp_path), Files()) is None


# --- recognition


def test_what_is_recognised(tmp_path: Path) -> None:
    folder = job(tmp_path / "jobs" / "2026-07-01__10-00-00")
    inside = trial(folder)
    assert recognises(folder)
    assert recognises(inside)
    assert not recognises(tmp_path / "jobs")
    assert not recognises(tmp_path / "gone")
    assert not recognises(inside / "result.json")


def test_a_job_without_files_of_its_own_is_recognised_by_its_trials(tmp_path: Path) -> None:
    trial(tmp_path / "job")
    assert recognises(tmp_path / "job")
    assert only(tmp_path / "job")["run_id"] == "job"


def test_terminal_bench_1_is_not_harbor(tmp_path: Path) -> None:
    found = {"id": "1", "trial_name": "a.1-of-1.run", "task_id": "a", "is_resolved": True, "failure_mode": "unset"}
    write(tmp_path / "run" / "results.json", {"results": [found], "accuracy": 1.0})
    write(tmp_path / "run" / "a" / "a.1-of-1.run" / "results.json", found)
    assert not recognises(tmp_path / "run")
    assert not recognises(tmp_path / "run" / "a" / "a.1-of-1.run")


def test_a_job_inside_a_job_is_named(tmp_path: Path) -> None:
    folder = job(tmp_path)
    job(folder / "older__job")
    row = only(folder)
    assert (row["state"], row["note"]) == ("unreadable", "a job of its own inside the folder: read it by itself")


# --- evidence and memory


def test_every_file_that_was_read_is_evidence(tmp_path: Path) -> None:
    folder = job(tmp_path)
    write(trial(folder) / "agent" / "trajectory.json", trajectory(METRICS))
    (trial(folder, "fix-git__hijklmn") / "result.json").unlink()
    files = Files()
    list(read(folder, files))
    read_files = {str(Path(path).relative_to(folder)) for path in files.manifest()["path"]}
    assert read_files == {
        "config.json",
        "lock.json",
        "result.json",
        "fix-git__abcdefg/result.json",
        "fix-git__abcdefg/agent/trajectory.json",
        "fix-git__hijklmn/config.json",
    }


def test_a_running_job_without_unfinished_trials_is_not_evidence_that_changes(tmp_path: Path) -> None:
    folder = job(tmp_path)
    trial(folder)
    files = Files()
    list(read(folder, files))
    assert str(folder / "result.json") not in set(files.manifest()["path"])


def test_trials_come_one_at_a_time(tmp_path: Path) -> None:
    folder = job(tmp_path)
    for name in ("a__0000000", "b__0000000"):
        trial(folder, name)
    files = Files()
    rows = read(folder, files)
    next(rows)
    assert str(folder / "b__0000000" / "result.json") not in set(files.manifest()["path"])


# --- hostile input

LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
VALUES = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(st.text(max_size=5), LEAVES, max_size=3)
KEYS = list(result())
BROKEN = st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=8)
VERDICT = ("reward", "resolved", "reward_valid")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Path]:
    folder = job(tmp_path_factory.mktemp("jobs") / "job")
    trial(folder)

    def put(content: bytes) -> Path:
        write(folder / "fix-git__abcdefg" / "result.json", content)
        return folder

    return put


def checked(folder: Path) -> dict[str, Any]:
    row = only(folder)
    typed([row | {"attempt": 1}], Trials)
    if row["state"] != "finished":
        assert not any(row.get(name) is not None for name in VERDICT)
    return row


@settings(max_examples=30, deadline=None)
@given(broken=BROKEN)
def test_fields_of_any_type_are_read(place: Callable[[bytes], Path], broken: dict[str, Any]) -> None:
    row = checked(place(json.dumps(result() | broken).encode()))
    if "verifier_result" in broken:
        assert row["reward"] is None
    if "agent_result" in broken:
        assert row["input_tokens"] is None
    if broken.get("exception_info") is not None:
        assert row["cause"] != "completed"


@settings(max_examples=20, deadline=None)
@given(document=VALUES)
def test_any_document_is_a_row(place: Callable[[bytes], Path], document: Any) -> None:
    assert checked(place(json.dumps(document).encode()))["state"] in ("unreadable", "unfinished")


@settings(max_examples=20, deadline=None)
@given(length=st.integers(0, 10_000))
def test_a_truncated_result_is_unreadable(place: Callable[[bytes], Path], length: int) -> None:
    whole = json.dumps(result(), indent=4).encode()
    assert checked(place(whole[: length % len(whole)]))["state"] == "unreadable"


@settings(max_examples=20, deadline=None)
@given(content=st.binary(max_size=60))
def test_any_bytes_are_a_row(place: Callable[[bytes], Path], content: bytes) -> None:
    assert checked(place(content))["state"] in ("unreadable", "unfinished")


@settings(max_examples=20, deadline=None)
@given(config=VALUES | st.dictionaries(st.sampled_from(["n_attempts", "agents", "tasks", "datasets"]), VALUES))
def test_any_configuration_of_a_job_is_read(tmp_path_factory: pytest.TempPathFactory, config: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("config.json", "lock.json", "result.json"):
        write(folder / name, json.dumps(config))
    trial(folder)
    assert planned(folder, Files()) is None
    assert only(folder)["resolved"] is True
    job_summary(folder, Files())


def test_bytes_turned_over_anywhere_are_a_row(place: Callable[[bytes], Path]) -> None:
    whole, chance = bytearray(json.dumps(result()).encode()), random.Random(6)
    for _ in range(40):
        turned = bytearray(whole)
        for _ in range(3):
            turned[chance.randrange(len(turned))] = chance.randrange(256)
        checked(place(bytes(turned)))
