"""The planned universe: what was to be run counts whether it is on record or not, and nothing else does."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.harness.files import Files
from faultbook.harness.plan import Held, arms_of, every_attempt, held, joined_plans, plan, two_arms
from faultbook.harness.read import read_trials
from faultbook.tables import Plan, Trials, typed

KEY = ["arm", "task_id", "attempt"]


def trial(arm: str, task: str | None, resolved: bool | None = None, attempt: int = 1, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def trials(*rows: dict[str, Any]) -> pd.DataFrame:
    return typed(list(rows), Trials)


def cells(frame: pd.DataFrame) -> set[tuple[str, str, int]]:
    return {(arm, task, int(attempt)) for arm, task, attempt in frame[KEY].itertuples(index=False)}


def outside(found: Held) -> list[tuple[Any, ...]]:
    frame = found.outside[["arm", "task_id", "attempt", "what"]].astype(object)
    return [tuple(row) for row in frame.where(frame.notna(), None).itertuples(index=False)]


# ---- where a plan comes from


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    file, files = tmp_path / "plan.csv", Files()
    file.write_text("task_id,arm,attempt,note\nt,b,0,x\nt,a,0,\n")
    found = plan(file, files=files)
    Plan.validate(found)
    assert found.values.tolist() == [["b", "t", 0, "file"], ["a", "t", 0, "file"]]
    assert files.manifest()["sha256"].tolist() == [hashlib.sha256(file.read_bytes()).hexdigest()]


def test_a_given_plan_is_a_product() -> None:
    found = plan(arms=["b", "a"], tasks=["t", "u"], attempts=2)
    assert set(found["source"]) == {"given"}
    assert cells(found) == {(arm, task, k) for arm in "ab" for task in "tu" for k in (1, 2)}
    assert arms_of(found) == ["b", "a"]


def test_an_inferred_plan_says_so_and_gives_every_arm_every_attempt() -> None:
    found = plan(trials=trials(trial("a", "t", attempt=1), trial("a", "t", attempt=3), trial("b", "u", attempt=1)))
    Plan.validate(found)
    assert set(found["source"]) == {"inferred"}
    assert cells(found) == {(arm, *one) for arm in "ab" for one in (("t", 1), ("t", 3), ("u", 1))}


def test_arms_that_count_from_0_and_from_1_are_brought_together() -> None:
    rows = trials(
        trial("a", "t", True, 0), trial("a", "t", True, 1), trial("b", "t", True, 1), trial("b", "u", False, 2)
    )
    found = plan(trials=rows)
    assert cells(found) == {("a", "t", 0), ("a", "t", 1), ("a", "u", 1), ("b", "t", 1), ("b", "t", 2), ("b", "u", 2)}
    assert held(rows, found).outside.empty


def test_an_arm_without_a_trial_counts_from_1() -> None:
    tried = pd.DataFrame([("a", "t", 0), ("a", "t", 1)], columns=KEY)
    assert cells(every_attempt(tried, ["b"])) == {("b", "t", 1), ("b", "t", 2)}
    assert every_attempt(tried, []).empty


def test_rows_without_a_task_plan_nothing() -> None:
    rows = trials(trial("a", None, state="unreadable"), trial("a", "t", True))
    assert cells(plan(trials=rows)) == {("a", "t", 1)}
    with pytest.raises(FaultbookError, match="there is no trial of a known task"):
        plan(trials=rows[:1])
    with pytest.raises(FaultbookError, match="there is no trial of a known task"):
        plan(trials=trials())


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"source": "x", "arms": ["a"], "tasks": ["t"]},
        {"source": "x", "trials": pd.DataFrame()},
        {"trials": pd.DataFrame(), "tasks": ["t"]},
    ],
)
def test_a_plan_comes_from_one_thing(arguments: dict[str, Any]) -> None:
    with pytest.raises(FaultbookError, match="a plan comes from one thing"):
        plan(**arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"arms": ["a"]}, "at least one arm, one task and one attempt"),
        ({"tasks": ["t"]}, "at least one arm, one task and one attempt"),
        ({"arms": [], "tasks": ["t"]}, "at least one arm"),
        ({"arms": ["a"], "tasks": []}, "at least one arm"),
        ({"arms": ["a"], "tasks": ["t"], "attempts": 0}, "at least one arm"),
        ({"arms": ["a", "a"], "tasks": ["t"]}, "names each arm and each task once"),
        ({"arms": ["a"], "tasks": ["t", "t"]}, "names each arm and each task once"),
    ],
)
def test_a_given_plan_that_is_none(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(FaultbookError, match=problem):
        plan(**arguments)


def test_a_source_that_plans_nothing(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("arm,task_id,attempt\n")
    with pytest.raises(DataError, match=r"plan.csv: no trial is planned there; name a plan"):
        plan(file)
    with pytest.raises(DataError, match="no trial is planned there"):
        plan([])
    with pytest.raises(DataError, match="no such file"):
        plan(tmp_path / "other.csv")


def test_the_faults_of_a_plan_are_located(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("arm,task_id,attempt\na,t,1\na,t,x\n")
    with pytest.raises(DataError, match=r"plan.csv, row 3, column 'attempt': attempt is 'x', not a whole number"):
        plan(file)
    file.write_text("arm,task_id,attempt\na,t,1\na,t,1\n")
    with pytest.raises(DataError, match=r"row 3.*is planned already"):
        plan(file)


def test_plans_of_several_files_are_one(tmp_path: Path) -> None:
    for name, lines in (("a", "a,t,1\na,u,1"), ("b", "b,t,1\na,t,1")):
        (tmp_path / f"{name}.csv").write_text(f"arm,task_id,attempt\n{lines}\n")
    found = plan([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert cells(found) == {("a", "t", 1), ("a", "u", 1), ("b", "t", 1)}
    assert len(plan(tmp_path)) == 3


# ---- plans of other tools' configurations


def harbor(folder: Path, agents: list[str], tasks: list[str], attempts: int = 1, **dataset: Any) -> Path:
    folder.mkdir()
    config = {"job_name": folder.name, "n_attempts": attempts, "agents": [{"name": name} for name in agents]}
    config["datasets"] = [{"task_names": tasks, **dataset}]
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_plan_of_a_harbor_job(tmp_path: Path) -> None:
    job = harbor(tmp_path / "job", ["x", "y"], ["t", "u"], 2)
    found = plan(job)
    Plan.validate(found)
    assert set(found["source"]) == {"config"}
    assert cells(found) == {(arm, task, k) for arm in "xy" for task in "tu" for k in (1, 2)}
    assert set(plan(harbor(tmp_path / "other", ["x"], ["t"]), arm="mine")["arm"]) == {"mine"}


def test_the_plan_of_a_terminal_bench_run_and_of_a_journal(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    metadata = {"agent_name": "tb", "task_ids": ["t", "u"], "n_attempts": 3}
    (run / "run_metadata.json").write_text(json.dumps(metadata))
    assert cells(plan(run)) == {("tb", task, k) for task in "tu" for k in (1, 2, 3)}
    record = {"seq": 1, "at": "2026-09-08T15:12:34+00:00", "monotonic": 1.0, "run_id": "r", "event": "run_started"}
    rows = [{"arm": "ours", "task_id": "t", "attempt": k} for k in (1, 2)]
    record |= {"data": {"kind": "report", "plan": rows, "boot_id": "b"}, "previous_sha256": "0" * 64}
    body = json.dumps(record, sort_keys=True, separators=(",", ":"))
    own = tmp_path / "own"
    own.mkdir()
    line = json.dumps(record | {"sha256": hashlib.sha256(body.encode()).hexdigest()})
    (own / "journal.jsonl").write_text(line + "\n")
    assert cells(plan(own)) == {("ours", "t", 1), ("ours", "t", 2)}
    assert cells(plan([run, own])) == cells(plan(run)) | cells(plan(own))


def test_a_run_that_does_not_say_what_was_planned(tmp_path: Path) -> None:
    job = harbor(tmp_path / "job", ["x"], ["t*"])
    with pytest.raises(DataError, match="a harbor run that does not say what was planned; give a CSV file") as error:
        plan(job)
    assert error.value.file == job


def test_a_trial_of_a_job_that_was_never_started_is_planned(tmp_path: Path) -> None:
    job = harbor(tmp_path / "job", ["x"], ["t", "u"])
    trial_folder = job / "t__abc"
    trial_folder.mkdir()
    result = {"task_name": "t", "trial_name": "t__abc", "trial_uri": "u", "config": {"agent": {"name": "x"}}}
    result |= {"verifier_result": {"rewards": {"reward": 1.0}}, "finished_at": "2026-07-01T10:00:00Z"}
    (trial_folder / "result.json").write_text(json.dumps(result))
    found = held(read_trials(job), plan(job))
    assert found.cells[["task_id", "state"]].values.tolist() == [["t", "finished"], ["u", "not_started"]]
    assert found.outside.empty


# ---- trials held against a plan


def test_what_is_planned_counts_and_nothing_else() -> None:
    rows = trials(
        trial("a", "t", True),
        trial("a", "t", True, 2),
        trial("a", "v", True),
        trial("c", "t", True),
        trial("a", None, state="unreadable", source_path="broken.json"),
        trial("b", "u", state="unfinished"),
    )
    found = held(rows, plan(arms=["a", "b"], tasks=["t", "u"]))
    states = dict(zip(cells_in_order(found), found.cells["state"], strict=True))
    assert states == {
        ("a", "t", 1): "finished",
        ("a", "u", 1): "not_started",
        ("b", "t", 1): "not_started",
        ("b", "u", 1): "unfinished",
    }
    assert found.cells["verdict"].notna().sum() == 1
    assert outside(found) == [
        ("a", "t", 2, "the attempt is not planned"),
        ("a", "v", 1, "the task is not planned for this arm"),
        ("c", "t", 1, "the arm is not planned"),
        ("a", None, 1, "a file that cannot be read"),
    ]
    assert found.outside["source_path"].tolist()[-1] == "broken.json"


def cells_in_order(found: Held) -> list[tuple[str, str, int]]:
    return [tuple(row) for row in found.cells[KEY].itertuples(index=False)]


def test_a_task_absent_from_both_arms_is_there() -> None:
    found = held(trials(trial("a", "t", True), trial("b", "t", True)), plan(arms="ab", tasks=["t", "never"]))
    assert (found.cells["state"] == "not_started").sum() == 2
    assert set(found.cells.loc[found.cells["task_id"] == "never", "usage_status"]) == {"absent"}


def test_no_trial_at_all() -> None:
    found = held(trials(), plan(arms=["a", "b"], tasks=["t"]))
    assert found.cells["state"].tolist() == ["not_started"] * 2
    assert found.cells[["verdict", "recorded"]].isna().all(axis=None)
    assert found.outside.empty


def test_an_empty_plan_is_refused() -> None:
    with pytest.raises(FaultbookError, match="the plan is empty"):
        held(trials(trial("a", "t", True)), typed([], Plan))


@pytest.mark.parametrize(
    ("more", "recorded", "verdict"),
    [
        ({}, True, True),
        ({"reward_valid": True}, True, True),
        ({"reward_valid": False, "cause": "provider_network"}, True, None),
        ({"reward_valid": None, "cause": "unclassified"}, True, True),
        ({"reward_valid": True, "cause": "agent_budget_exhausted"}, True, True),
        ({"state": "unfinished"}, None, None),
        ({"state": "unreadable"}, None, None),
        ({"resolved": None}, None, None),
    ],
)
def test_which_verdicts_count(more: dict[str, Any], recorded: bool | None, verdict: bool | None) -> None:
    row = held(trials(trial("a", "t", True) | more), plan(arms=["a"], tasks=["t"])).cells.iloc[0]
    assert [None if pd.isna(row[name]) else bool(row[name]) for name in ("recorded", "verdict")] == [recorded, verdict]


# ---- several records of one trial


def one(*rows: dict[str, Any]) -> tuple[pd.Series[Any], list[str]]:
    """The planned trial, and what is said of further records of it; the order of the records must not matter."""
    planned = plan(arms=["a"], tasks=["t"])
    found = [held(trials(*order), planned) for order in (rows, rows[::-1])]
    pd.testing.assert_frame_equal(found[0].cells, found[1].cells)
    assert len(found[0].cells) == 1
    return found[0].cells.iloc[0], [str(what) for what in found[0].outside["what"]]


def test_the_same_trial_twice_counts_once() -> None:
    cell, said = one(trial("a", "t", True, source_path="p"), trial("a", "t", True, source_path="q"))
    assert cell["verdict"]
    assert said == ["the same trial again"]
    cell, said = one(*[trial("a", "t", True, trial_id="x", cost=cost) for cost in (1.0, 2.0)])
    assert said == ["the same trial again"]


def test_another_record_that_agrees_is_said_to_be_one() -> None:
    cell, said = one(trial("a", "t", False, trial_id="x"), trial("a", "t", False, trial_id="y"))
    assert not cell["verdict"]
    assert not cell["disagree"]
    assert said == ["another record of the trial, which agrees with the first"]


@pytest.mark.parametrize(
    "other",
    [
        trial("a", "t", False),
        trial("a", "t", None),
        trial("a", "t", None, state="unfinished"),
        trial("a", "t", None, state="unreadable"),
        trial("a", "t", True, reward_valid=False, cause="provider_network"),
    ],
)
def test_records_that_contradict_one_another_are_no_verdict(other: dict[str, Any]) -> None:
    cell, said = one(trial("a", "t", True), other)
    assert cell["disagree"]
    assert pd.isna(cell["verdict"])
    assert pd.isna(cell["recorded"])
    assert said == ["another record of the trial, which contradicts the first"]


def test_three_records() -> None:
    cell, said = one(trial("a", "t", True), trial("a", "t", False), trial("a", "t", True))
    assert pd.isna(cell["verdict"])
    assert len(said) == 2


def test_a_missing_validity_and_a_stated_one_agree() -> None:
    cell, _ = one(trial("a", "t", True), trial("a", "t", True, reward_valid=True))
    assert cell["verdict"]


def test_rows_with_the_labels_of_others() -> None:
    rows = pd.concat([trials(trial("a", "t", True)), trials(trial("a", "t", False), trial("a", "u", True))])
    found = held(rows, plan(arms=["a"], tasks=["t", "u"]))
    assert found.cells["disagree"].tolist() == [True, False]
    assert len(found.outside) == 1


def test_repeats_are_named() -> None:
    tasks = [trial("a", "t", attempt=k) for k in (1, 2)] + [trial("a", "u"), trial("b", "u")]
    planned = typed(pd.DataFrame(tasks)[KEY].assign(source="file"), Plan)
    found = held(trials(), planned).repeats
    assert found.values.tolist() == [["a", 2, 1], ["a", 1, 1], ["b", 1, 1]]


# ---- two arms


def test_the_arms_of_a_plan() -> None:
    planned = plan(arms=["b", "a"], tasks=["t"])
    assert two_arms(planned, None) == ("b", "a")
    assert two_arms(planned, ["a", "b"]) == ("a", "b")


@pytest.mark.parametrize(
    ("planned", "arms", "problem"),
    [
        (["a", "b", "c"], None, r"the plan has 3 arms \('a', 'b', 'c'\); name the two"),
        (["a"], None, r"the plan has 1 arms \('a'\); name the two"),
        (["a", "b", "c"], ["a", "d"], "no arm 'd' in the plan; there are 'a', 'b', 'c'"),
        (["a", "b"], ["a"], "two different arms are compared"),
        (["a", "b"], ["a", "a"], "two different arms are compared"),
        (["a", "b", "c"], ["a", "b", "c"], "two different arms are compared"),
    ],
)
def test_what_are_not_two_arms(planned: list[str], arms: list[str] | None, problem: str) -> None:
    with pytest.raises(FaultbookError, match=problem):
        two_arms(plan(arms=planned, tasks=["t"]), arms)


# ---- properties

ANY = st.lists(
    st.builds(
        trial,
        st.sampled_from("abc"),
        st.sampled_from(["t", "u", "v", None]),
        st.sampled_from([True, False, None]),
        st.integers(0, 2),
        state=st.sampled_from(["finished", "finished", "unfinished", "unreadable"]),
        reward_valid=st.sampled_from([True, False, None]),
        trial_id=st.sampled_from(["x", "y", None]),
    ),
    max_size=8,
)


@settings(max_examples=12, deadline=None)
@given(ANY, st.randoms(use_true_random=False))
def test_every_record_counts_once_and_the_order_of_rows_decides_nothing(rows: list[Any], rng: random.Random) -> None:
    planned = plan(arms=["a", "b"], tasks=["t", "u"], attempts=2)
    found = held(trials(*rows), planned)
    assert cells(found.cells) == cells(planned)
    assert len(found.cells) == len(planned)
    assert (found.cells["state"] != "not_started").sum() + len(found.outside) == len(rows)
    assert not (found.cells["verdict"].notna() & found.cells["recorded"].isna()).any()
    shuffled = rng.sample(rows, len(rows))
    again = held(trials(*shuffled), planned.sample(frac=1, random_state=rng.randrange(99)).reset_index(drop=True))
    sides = [one.cells.sort_values(KEY).reset_index(drop=True) for one in (found, again)]
    pd.testing.assert_frame_equal(*sides)
    assert sorted(map(str, outside(found))) == sorted(map(str, outside(again)))


@settings(max_examples=12, deadline=None)
@given(ANY)
def test_an_inferred_plan_holds_every_trial_of_a_known_task(rows: list[Any]) -> None:
    known = [row for row in rows if row["task_id"] is not None]
    if known:
        table = trials(*rows)
        planned = plan(trials=table)
        Plan.validate(planned)
        assert cells(trials(*known)) <= cells(planned)
        sizes = planned.groupby(["task_id", "arm"]).size().groupby("task_id").nunique()
        assert (sizes == 1).all()


def test_each_run_of_a_format_without_ordinals_plans_a_further_attempt() -> None:
    cells = pd.DataFrame({"arm": "a", "task_id": ["t", "u"], "attempt": 1, "source": "config"})
    jobs = [cells.assign(format="harbor"), cells.iloc[:1].assign(format="harbor")]
    joined = joined_plans(jobs)
    assert joined[["task_id", "attempt"]].values.tolist() == [["t", 1], ["u", 1], ["t", 2]]
    several = pd.concat([cells.assign(attempt=number) for number in (1, 2)]).assign(format="terminal-bench")
    assert len(joined_plans([several, several])) == 4, "numbered within each run: the second run's are the first's"
    assert len(joined_plans([cells.assign(format="terminal-bench")] * 2)) == 4
    epochs = [cells.assign(format="inspect")] * 2
    assert len(joined_plans(epochs)) == 2
    assert len(joined_plans([cells, cells])) == 2
