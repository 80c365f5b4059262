"""Reading runs of any format: found where they are, each once, and nothing lost or made up on the way."""

from __future__ import annotations

import hashlib
import json
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.read import FORMATS, numbered, read_trials, runs
from faultbook.tables import Trials

HEADER = "arm,task_id,attempt,state,resolved"


def table(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return file


def harbor(folder: Path, agent: str, tasks: dict[str, float | None], *, start: str = "10:00", tag: str = "x") -> Path:
    """A Harbor job: the tasks with their rewards, None for a trial without a result."""
    folder.mkdir(parents=True)
    config = {"job_name": folder.name, "jobs_dir": "jobs", "n_attempts": 1, "agents": [{"name": agent}]}
    config["datasets"] = [{"task_names": list(tasks)}]
    (folder / "config.json").write_text(json.dumps(config))
    for task, reward in tasks.items():
        trial = folder / f"{task}__{tag}"
        trial.mkdir()
        own = {"trial_name": trial.name, "trials_dir": folder.name, "task": {"path": task}, "agent": {"name": agent}}
        (trial / "config.json").write_text(json.dumps(own))
        if reward is not None:
            result = {"task_name": task, "trial_name": trial.name, "trial_uri": "file:///t", "config": own}
            result |= {"verifier_result": {"rewards": {"reward": reward}}, "exception_info": None}
            result |= {"started_at": f"2026-07-01T{start}:00Z", "finished_at": "2026-07-01T23:00:00Z"}
            (trial / "result.json").write_text(json.dumps(result))
    return folder


def terminal_bench(folder: Path, agent: str, tasks: dict[str, bool | None]) -> Path:
    metadata = {"agent_name": agent, "run_id": folder.name, "task_ids": list(tasks), "n_attempts": 1}
    folder.mkdir(parents=True)
    (folder / "run_metadata.json").write_text(json.dumps(metadata))
    for task, resolved in tasks.items():
        trial = folder / task / f"{task}.1-of-1.{folder.name}"
        trial.mkdir(parents=True)
        result = {"id": f"{folder.name}-{task}", "trial_name": trial.name, "task_id": task, "is_resolved": resolved}
        (trial / "results.json").write_text(json.dumps(result | {"failure_mode": "unset"}))
    return folder


def journal(folder: Path, *events: tuple[str, dict[str, Any]]) -> Path:
    """A journal of our own, its lines chained as its description says."""
    folder.mkdir(parents=True)
    previous, lines = "0" * 64, []
    for seq, (event, data) in enumerate(events, start=1):
        record = {"seq": seq, "at": f"2026-09-08T15:12:{seq:02}+00:00", "monotonic": float(seq), "run_id": folder.name}
        record |= {"event": event, "data": data, "previous_sha256": previous}
        previous = hashlib.sha256(canonical(record)).hexdigest()
        lines.append(canonical(record | {"sha256": previous}) + b"\n")
    (folder / "journal.jsonl").write_bytes(b"".join(lines))
    return folder


def canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def small_journal(folder: Path, arm: str = "ours") -> Path:
    who = {"trial_id": "1", "arm": arm, "task_id": "t", "attempt": 1}
    plan = [{"arm": arm, "task_id": task, "attempt": 1} for task in ("t", "u")]
    start = {"kind": "report", "plan": plan, "source": {"commit": "c0ffee1", "dirty": True}, "boot_id": "b"}
    end = who | {"verdict": {"resolved": True}, "termination": {"kind": "completed", "source": "observed"}}
    return journal(folder, ("run_started", start), ("trial_started", who), ("trial_finished", end))


def found(trials: pd.DataFrame) -> list[tuple[Any, ...]]:
    Trials.validate(trials)
    columns = trials[["arm", "task_id", "attempt", "state", "resolved"]].astype(object)
    return [tuple(row) for row in columns.where(columns.notna(), None).itertuples(index=False)]


# ---- what is recognised


def test_every_format_in_one_folder(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "own,t,1,finished,false")
    harbor(tmp_path / "job", "harbor-agent", {"t": 1.0, "u": None})
    terminal_bench(tmp_path / "run", "tb-agent", {"t": True})
    small_journal(tmp_path / "ours")
    trials, problems = read_trials(tmp_path, strict=False)
    assert problems.empty
    assert sorted(found(trials)) == [
        ("harbor-agent", "t", 1, "finished", True),
        ("harbor-agent", "u", 1, "unfinished", None),
        ("ours", "t", 1, "finished", True),
        ("own", "t", 1, "finished", False),
        ("tb-agent", "t", 1, "finished", True),
    ]
    assert set(trials["source_format"]) == {"csv", "harbor", "terminal-bench", "journal"} <= set(FORMATS)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_run_lies_up_to_two_folders_down(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath("top", *["x"] * depth)
    table(folder / "t.csv", "a,t,1,finished,true") if depth < 2 else harbor(folder, "a", {"t": 1.0})
    assert len(read_trials(tmp_path / "top")) == 1


def test_a_run_further_down_is_not_found(tmp_path: Path) -> None:
    table(tmp_path / "1" / "2" / "3" / "t.csv", "a,t,1,finished,true")
    with pytest.raises(DataError, match="no trials of a known format here; name a run, or say its format: csv"):
        read_trials(tmp_path)


@pytest.mark.parametrize("format", ["harbor", "terminal-bench", "journal", "csv"])
def test_a_named_format_is_looked_for_in_a_folder_of_runs(tmp_path: Path, format: str) -> None:  # noqa: A002
    table(tmp_path / "a.csv", "a,t,1,finished,true")
    harbor(tmp_path / "job", "a", {"t": 1.0})
    terminal_bench(tmp_path / "run", "a", {"t": True})
    small_journal(tmp_path / "ours", "a")
    trials = read_trials(tmp_path, format)
    assert found(trials) == [("a", "t", 1, "finished", True)]
    assert trials["source_format"].tolist() == [format]


def test_a_named_format_is_believed(tmp_path: Path) -> None:
    file = table(tmp_path / "trials.txt", "a,t,1,finished,true")
    with pytest.raises(DataError, match="no trials of a known format"):
        read_trials(file)
    assert found(read_trials(file, "csv")) == [("a", "t", 1, "finished", True)]
    with pytest.raises(DataError, match="no such file"):
        read_trials(tmp_path / "nothing.txt", "csv")


@pytest.mark.parametrize("name", ["Harbor", "", "json"])
def test_an_unknown_format_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"'format' must be one of 'auto', 'csv', 'journal', .* found"):
        read_trials(tmp_path, name)


@pytest.mark.parametrize("path", ["nothing", "nothing\nhere", "x" * 5_000, "a\0b", ""])
def test_a_path_that_is_not_there_is_one_line(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError) as error:
        read_trials(tmp_path / "empty" / path)
    assert "\n" not in str(error.value)


def test_an_empty_folder_holds_no_trials(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no trials of a known format here"):
        read_trials(tmp_path)


def test_no_path_at_all_is_no_trial() -> None:
    trials, problems = read_trials([], strict=False)
    Trials.validate(trials)
    assert trials.empty
    assert problems.empty


# ---- links, and the same thing twice


@pytest.mark.parametrize("deep", [False, True])
def test_the_named_path_may_be_a_link(tmp_path: Path, deep: bool) -> None:
    job = harbor(tmp_path / "jobs" / "job", "a", {"t": 1.0})
    link = tmp_path / "link"
    link.symlink_to(job.parent if deep else job)
    assert found(read_trials(link)) == [("a", "t", 1, "finished", True)]


def test_the_same_run_by_several_names_is_read_once(tmp_path: Path) -> None:
    job = harbor(tmp_path / "jobs" / "job", "a", {"t": 1.0})
    (tmp_path / "jobs" / "latest").symlink_to(job)
    (tmp_path / "link").symlink_to(tmp_path / "jobs")
    files = Files()
    dotted = job.parent / ".." / "jobs" / "job"
    trials = read_trials([job, str(job), dotted, tmp_path / "jobs", tmp_path / "link"], files=files)
    assert found(trials) == [("a", "t", 1, "finished", True)]
    assert set(trials["source_path"]) == {str(job / "t__x" / "result.json")}
    assert files.manifest()["path"].is_unique


def test_a_link_to_nothing_and_a_link_to_itself_are_passed_over(tmp_path: Path) -> None:
    table(tmp_path / "1" / "t.csv", "a,t,1,finished,true")
    (tmp_path / "2").symlink_to(tmp_path / "gone")
    (tmp_path / "3").symlink_to(tmp_path / "3")
    (tmp_path / "4").symlink_to(tmp_path)
    assert len(read_trials(tmp_path)) == 1


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"r\xff")
    harbor(folder, "a", {"t": 1.0, "u": None})
    trials = read_trials(folder)
    assert trials["state"].tolist() == [
        "unreadable",
        "unfinished",
    ]  # no manifest could name these files: said, not lost
    assert trials["note"].str.contains("a name that is no UTF-8 text").any()
    table(folder / "t.csv", "a,t,1,finished,true")
    with pytest.raises(DataError, match="a name that is no UTF-8 text"):
        read_trials(folder / "t.csv")


# ---- several runs


def test_runs_are_read_in_the_order_given(tmp_path: Path) -> None:
    first, second = (table(tmp_path / f"{name}.csv", f"{name},t,1,finished,true") for name in "ba")
    assert read_trials([first, second])["arm"].tolist() == ["b", "a"]
    assert [run.name for run, _ in runs(tmp_path)] == ["a.csv", "b.csv"]


def test_faults_of_several_tables_are_located_in_their_files(tmp_path: Path) -> None:
    names = [table(tmp_path / f"{name}.csv", f"{name},t,1,done,", "a,u,1,finished,1") for name in "ab"]
    trials, problems = read_trials(names, strict=False)
    assert len(trials) == 2
    assert problems["file"].tolist() == [str(file) for file in names]
    with pytest.raises(DataError, match="row 2"):
        read_trials(names)


def test_a_result_that_cannot_be_read_raises_in_no_case(tmp_path: Path) -> None:
    job = harbor(tmp_path / "job", "a", {"t": 1.0, "u": 1.0, "v": 1.0})
    (job / "t__x" / "result.json").write_bytes(b"")
    whole = (job / "u__x" / "result.json").read_bytes()
    (job / "u__x" / "result.json").write_bytes(whole[: len(whole) // 2])
    trials = read_trials(job)
    assert found(trials) == [
        ("a", "t", 1, "unreadable", None),
        ("a", "u", 1, "unreadable", None),
        ("a", "v", 1, "finished", True),
    ]
    assert trials["note"].notna().tolist() == [True, True, False]
    assert read_trials(job, strict=False)[1].empty


def test_a_journal_that_cannot_be_read_is_a_row_without_a_task(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"")
    assert found(read_trials(tmp_path / "run")) == [("run", None, 1, "unreadable", None)]


def test_the_arm_s_name_goes_to_every_run(tmp_path: Path) -> None:
    harbor(tmp_path / "job", "a", {"t": 1.0})
    small_journal(tmp_path / "ours", "b")
    assert set(read_trials(tmp_path, arm="mine")["arm"]) == {"mine"}


def test_a_metric_goes_to_every_run(tmp_path: Path) -> None:
    job = harbor(tmp_path / "job", "a", {"t": 1.0})
    file = job / "t__x" / "result.json"
    result = json.loads(file.read_text())
    file.write_text(json.dumps(result | {"verifier_result": {"rewards": {"one": 1.0, "other": 0.0}}}))
    assert found(read_trials(job)) == [("a", "t", 1, "finished", None)]
    assert found(read_trials(job, metric="other")) == [("a", "t", 1, "finished", False)]


# ---- attempts


def test_trials_without_an_ordinal_are_counted_in_the_order_of_their_start(tmp_path: Path) -> None:
    for name, start in (("late", "12:00"), ("early", "09:00"), ("middle", "10:30")):
        harbor(tmp_path / name, "a", {"t": 1.0}, start=start, tag=name)
    trials = read_trials([tmp_path / name for name in ("late", "early", "middle")])
    assert dict(zip(trials["run_id"], trials["attempt"], strict=True)) == {"early": 1, "middle": 2, "late": 3}


def test_one_trial_in_two_folders_is_one_attempt(tmp_path: Path) -> None:
    harbor(tmp_path / "job", "a", {"t": 1.0})
    harbor(tmp_path / "copy", "a", {"t": 1.0})
    assert read_trials(tmp_path)["attempt"].tolist() == [1, 1]


ROWS = st.lists(
    st.fixed_dictionaries(
        {"arm": st.sampled_from("ab"), "task_id": st.sampled_from(["t", "u", None])},
        optional={
            "attempt": st.integers(0, 4),
            "trial_id": st.sampled_from(["x", "y", None]),
            "started_at": st.sampled_from(["2026-07-01T10:00:00Z", "2026-07-01T10:00:00", None]),
            "source_path": st.sampled_from(["p", "q"]),
        },
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_every_trial_gets_a_number_that_no_other_of_its_task_has(
    rows: list[dict[str, Any]], rng: random.Random
) -> None:
    given_before = [row.get("attempt") for row in rows]
    numbers = [row["attempt"] for row in numbered(rows)]
    assert [new for new, old in zip(numbers, given_before, strict=True) if old is not None] == [
        old for old in given_before if old is not None
    ]
    seen: dict[Any, Any] = {}
    for place, (row, old) in enumerate(zip(rows, given_before, strict=True)):
        assert isinstance(row["attempt"], int)
        group = (row["arm"], row["task_id"], row["attempt"])
        name = ("own", old) if old is not None else (row.get("trial_id") or place)
        assert seen.setdefault(group, name) == name
    first = [row for row, old in zip(rows, given_before, strict=True) if old is None]
    assert not first or min(row["attempt"] for row in first) >= 1


def test_numbers_do_not_depend_on_the_order_of_rows() -> None:
    rows = [{"arm": "a", "task_id": "t", "trial_id": name, "started_at": None} for name in "cab"]
    numbers = [{row["trial_id"]: row["attempt"] for row in numbered([dict(row) for row in order])} for order in (
        rows, rows[::-1], rows[1:] + rows[:1]
    )]  # fmt: skip
    assert numbers == [{"a": 1, "b": 2, "c": 3}] * 3


# ---- size


def peak(path: Path) -> int:
    tracemalloc.start()
    try:
        read_trials(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_trajectories(tmp_path: Path) -> None:
    def job(name: str, n_trials: int, size: int) -> Path:
        folder = harbor(tmp_path / name, "a", {f"t{i}": 1.0 for i in range(n_trials)})
        steps = [{"step_id": 1, "source": "agent", "message": "x" * size}]
        for trial in folder.glob("*__x"):
            (trial / "agent").mkdir()
            (trial / "agent" / "trajectory.json").write_text(
                json.dumps({"schema_version": "ATIF-v1.6", "steps": steps})
            )
        return folder

    size = 1_000_000
    read_trials(job("warm", 2, 10))
    few, many = peak(job("few", 5, size)), peak(job("many", 60, size))
    assert few > size  # the trajectories are read at all
    assert many < few + 2_000_000  # of 55 MB more
