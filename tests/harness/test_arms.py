"""Runs read as arms: named apart, in the order of their paths, under one plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.errors import DataError, FaultbookError
from faultbook.harness.arms import Arms, problems_of, read_arms
from faultbook.harness.compare import compare
from faultbook.harness.plan import arms_of
from faultbook.problems import PROBLEM_COLUMNS
from faultbook.tables import Plan, Trials

KEY = ["arm", "task_id", "attempt"]


def table(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["arm,task_id,attempt,state,resolved", *lines]) + "\n")
    return file


def plan_file(folder: Path, *lines: str) -> Path:
    file = folder / "plan.csv"
    file.write_text("\n".join(["arm,task_id,attempt", *lines]) + "\n")
    return file


def job(folder: Path, agent: str, tasks: dict[str, float | None]) -> Path:
    """A Harbor job that planned the tasks, and has run those with a reward."""
    folder.mkdir(parents=True)
    config = {"job_name": "j", "n_attempts": 1, "agents": [{"name": agent}], "datasets": [{"task_names": list(tasks)}]}
    (folder / "config.json").write_text(json.dumps(config))
    for task, reward in tasks.items():
        if reward is not None:
            (folder / f"{task}__x").mkdir()
            result = {"task_name": task, "trial_name": f"{task}__x", "trial_uri": "u", "finished_at": "2026-07-01"}
            result |= {"config": {"agent": {"name": agent}}, "verifier_result": {"rewards": {"reward": reward}}}
            (folder / f"{task}__x" / "result.json").write_text(json.dumps(result))
    return folder


def cells(found: Arms) -> set[tuple[str, str, int, str]]:
    return {(*row[:2], int(row[2]), row[3]) for row in found.plan[[*KEY, "source"]].itertuples(index=False, name=None)}


def checked(found: Arms) -> Arms:
    Trials.validate(found.trials)
    Plan.validate(found.plan)
    assert list(found.problems.columns) == PROBLEM_COLUMNS
    return found


def test_one_file_with_both_arms(tmp_path: Path) -> None:
    found = checked(read_arms([table(tmp_path / "t.csv", "b,t,1,finished,true", "a,u,1,finished,false")]))
    assert arms_of(found.plan) == ["b", "a"]
    assert cells(found) == {(arm, task, 1, "inferred") for arm in "ab" for task in "tu"}
    assert found.files.manifest()["path"].tolist() == [str(tmp_path / "t.csv")]


def test_two_runs_are_two_arms_in_the_order_given(tmp_path: Path) -> None:
    first, second = (
        job(tmp_path / "x", "zeta", {"t": 1.0, "u": None}),
        job(tmp_path / "y", "alpha", {"t": 0.0, "u": 1.0}),
    )
    for paths, arms in (((first, second), ["zeta", "alpha"]), ((second, first), ["alpha", "zeta"])):
        found = checked(read_arms(paths))
        assert arms_of(found.plan) == arms
        assert cells(found) == {(arm, task, 1, "config") for arm in arms for task in "tu"}
    assert compare(found.trials, found.plan).arm_a == "alpha"


def test_the_first_path_is_the_first_arm_also_where_only_the_second_has_a_plan(tmp_path: Path) -> None:
    first = table(tmp_path / "own.csv", "own,t,1,finished,true")
    second = job(tmp_path / "job", "agent", {"t": 0.0, "u": None})
    found = checked(read_arms([first, second]))
    assert arms_of(found.plan) == ["own", "agent"]
    assert cells(found) == {
        (arm, task, 1, source) for arm, source in (("own", "inferred"), ("agent", "config")) for task in "tu"
    }
    result = compare(found.trials, found.plan)
    assert (result.arm_a, result.difference) == ("own", 100.0)
    assert result.plan_source == "config, inferred"


def test_the_first_path_is_the_first_arm_also_under_a_plan_that_names_it_last(tmp_path: Path) -> None:
    paths = [table(tmp_path / f"{arm}.csv", f"{arm},t,1,finished,true") for arm in "ba"]
    planned = plan_file(tmp_path, "a,t,1", "c,t,1", "b,t,1", "a,u,1", "b,u,1")
    found = checked(read_arms(paths, planned=planned))
    assert arms_of(found.plan) == ["b", "a", "c"]
    assert set(found.plan["source"]) == {"file"}
    assert found.plan.loc[found.plan["arm"] == "a", "task_id"].tolist() == ["t", "u"]
    assert len(found.files.manifest()) == 3


def test_an_inferred_arm_counts_attempts_as_it_does(tmp_path: Path) -> None:
    first = table(tmp_path / "own.csv", "own,t,0,finished,true")
    second = job(tmp_path / "job", "agent", {"t": 0.0, "u": 1.0})
    found = checked(read_arms([first, second]))
    assert {(arm, task, k) for arm, task, k, _ in cells(found)} == {
        ("own", "t", 0), ("own", "u", 0), ("agent", "t", 1), ("agent", "u", 1),
    }  # fmt: skip
    assert compare(found.trials, found.plan).complete_pairs == 1


# ---- names


def test_arms_of_one_name_are_called_after_their_paths(tmp_path: Path) -> None:
    paths = [job(tmp_path / name, "agent", {"t": reward, "u": None}) for name, reward in (("old", 0.0), ("new", 1.0))]
    found = checked(read_arms(paths))
    assert found.trials["arm"].tolist() == ["old", "new"]
    assert cells(found) == {(arm, task, 1, "config") for arm in ("old", "new") for task in "tu"}
    tables = [table(tmp_path / f"{name}.csv", "a,t,1,finished,true") for name in ("x", "y")]
    assert read_arms(tables).trials["arm"].tolist() == ["x", "y"]


def test_paths_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [table(tmp_path / folder / "t.csv", "a,t,1,finished,true") for folder in ("x", "y")]
    assert read_arms(paths).trials["arm"].tolist() == [str(path) for path in paths]


def test_a_path_s_name_that_is_another_arm_s_is_not_taken(tmp_path: Path) -> None:
    paths = [
        table(tmp_path / name, f"{arm},t,1,finished,true")
        for name, arm in (("b.csv", "a"), ("c.csv", "a"), ("d.csv", "b"))
    ]
    found = checked(read_arms(paths))
    assert found.trials["arm"].tolist() == [str(paths[0]), str(paths[1]), "b"]


def test_the_folder_one_stands_in_has_a_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = (job(tmp_path / name, "agent", {"t": 1.0}) for name in ("here", "there"))
    monkeypatch.chdir(here)
    assert read_arms([".", there]).trials["arm"].tolist() == ["here", "there"]


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    run = job(tmp_path / "job", "agent", {"t": 1.0})
    (tmp_path / "link").symlink_to(run)
    found = checked(read_arms([run, str(run), tmp_path / "link"]))
    assert len(found.trials) == 1
    with pytest.raises(FaultbookError, match=r"the plan has 1 arms \('agent'\)"):
        compare(found.trials, found.plan)


def test_a_run_in_a_folder_that_is_named_too_is_not_compared_with_itself(tmp_path: Path) -> None:
    run, other = (job(tmp_path / "jobs" / name, f"agent-{name}", {"t": 1.0}) for name in "xy")
    found = checked(read_arms([tmp_path / "jobs", run]))
    assert found.trials["arm"].tolist() == ["agent-x", "agent-y"]
    found = checked(read_arms([other, tmp_path / "jobs"]))
    assert found.trials["arm"].tolist() == arms_of(found.plan) == ["agent-y", "agent-x"]


def test_three_runs_are_three_arms(tmp_path: Path) -> None:
    paths = [table(tmp_path / f"{arm}.csv", f"{arm},t,1,finished,true") for arm in "abc"]
    found = read_arms(paths)
    with pytest.raises(FaultbookError, match="the plan has 3 arms"):
        compare(found.trials, found.plan)
    assert compare(found.trials, found.plan, arms=["c", "b"]).complete_pairs == 1


# ---- faults


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run is named; name the runs"):
        read_arms([])
    with pytest.raises(DataError, match="no such file"):
        read_arms([tmp_path / "nothing"])
    run = table(tmp_path / "t.csv", "a,t,1,finished,true")
    with pytest.raises(DataError, match="no such file"):
        read_arms([run], planned=tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="row 2"):
        read_arms([run], planned=plan_file(tmp_path, "a,t,one"))


def test_faults_are_listed_and_the_rest_is_read(tmp_path: Path) -> None:
    paths = [table(tmp_path / f"{arm}.csv", f"{arm},t,1,finished,perhaps", f"{arm},u,1,finished,1") for arm in "ab"]
    found = checked(read_arms(paths))
    assert found.problems["file"].tolist() == [str(path) for path in paths]
    assert compare(found.trials, found.plan).complete_pairs == 1


def test_a_metric_is_named_for_all(tmp_path: Path) -> None:
    run = job(tmp_path / "job", "agent", {"t": 1.0})
    file = run / "t__x" / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"verifier_result": {"rewards": {"x": 1.0, "y": 0.0}}}))
    assert read_arms([run], metric="y").trials["resolved"].tolist() == [False]


# ---- problems


def rows(found: pd.DataFrame) -> list[dict[str, Any]]:
    assert list(found.columns) == PROBLEM_COLUMNS
    assert found.notna().all(axis=None)
    return found.to_dict("records")


def test_trials_that_do_not_enter_are_problems(tmp_path: Path) -> None:
    lines = (
        "a,t,1,finished,true",
        "a,t,1,finished,false",
        "b,t,1,finished,what",
        "c,t,1,finished,true",
        "a,t,2,finished,1",
    )
    file = table(tmp_path / "t.csv", *lines)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "journal.jsonl").write_bytes(b"")
    found = checked(read_arms([file, broken], planned=plan_file(tmp_path, "a,t,1", "b,t,1")))
    problems = rows(problems_of(compare(found.trials, found.plan), found.problems))
    assert [(row["file"], row["problem"]) for row in problems] == [
        (str(file), "resolved is 'what', not a boolean"),
        (str(file), "attempt 1 of 'c' at 't' does not enter: the arm is not planned"),
        (str(file), "attempt 2 of 'a' at 't' does not enter: the attempt is not planned"),
        (str(broken / "journal.jsonl"), "'broken': a file that cannot be read"),
        (
            str(file),
            "attempt 1 of 'a' at 't' does not enter: another record of the trial, which contradicts the first",
        ),
    ]


def test_no_problem_is_no_row(tmp_path: Path) -> None:
    found = read_arms([table(tmp_path / "t.csv", "a,t,1,finished,true", "b,t,1,finished,true")])
    assert rows(problems_of(compare(found.trials, found.plan), found.problems)) == []
