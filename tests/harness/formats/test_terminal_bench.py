"""Terminal-Bench 1: what its run folders hold, and what must not be made of it."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats import terminal_bench
from faultbook.tables import Trials, typed

RUN = "2026-01-02__03-04-05"
COLUMNS = set(Trials.to_schema().columns)
UNREAD = ("resolved", "reward", "cause", "reward_valid", "trial_id", "input_tokens", "total_seconds")


def trial(task: str = "sort-logs", attempt: int = 1, of: int = 1, **changes: Any) -> dict[str, Any]:
    """A trial's record by the later schema of `terminal_bench/harness/models.py`: an id, and stamps with offset."""
    document = {
        "id": f"id-{task}-{attempt}",
        "trial_name": f"{task}.{attempt}-of-{of}.{RUN}",
        "task_id": task,
        "instruction": "Sort the logs.",
        "is_resolved": True,
        "failure_mode": "unset",
        "parser_results": {"test_sorted": "passed"},
        "recording_path": None,
        "total_input_tokens": 1200,
        "total_output_tokens": 90,
        "trial_started_at": "2026-01-02T03:04:05+00:00",
        "trial_ended_at": "2026-01-02T03:06:05+00:00",
        "agent_started_at": "2026-01-02T03:04:15+00:00",
        "agent_ended_at": "2026-01-02T03:05:45+00:00",
        "test_started_at": "2026-01-02T03:05:47+00:00",
        "test_ended_at": "2026-01-02T03:05:57.5+00:00",
    }
    return {**document, **changes}


def older(**changes: Any) -> dict[str, Any]:
    """The earlier schema: a uuid, and no stamps."""
    kept = {name: value for name, value in trial().items() if name != "id" and not name.endswith("_at")}
    return {"uuid": "uuid-1", **kept, **changes}


def metadata(**changes: Any) -> dict[str, Any]:
    base = {"run_id": RUN, "agent_name": "terminus", "model_name": "maker/model-1", "task_ids": ["sort-logs"]}
    return {**base, "n_attempts": 1, "dataset_size": 1, "end_time": "2026-01-02T04:00:00+00:00", **changes}


def lock(**changes: Any) -> dict[str, Any]:
    base = {"harness": {"package": "terminal-bench", "version": "0.2.18"}, "run_config": {"n_attempts": 2}}
    return {**base, "agent": {"name": "goose", "model_name": "model-2"}, "local_config": {"run_id": RUN}, **changes}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    path.write_bytes(content)
    return path


def own_file(folder: Path, document: Any, task: str = "sort-logs", name: str | None = None) -> Path:
    name = name or f"{task}.1-of-1.{RUN}"
    return write(folder / task / name / "results.json", document)


def run_folder(tmp_path: Path, *documents: dict[str, Any], **others: Any) -> Path:
    folder = tmp_path / RUN
    folder.mkdir()
    for document in documents:
        own_file(folder, document, document["task_id"], document["trial_name"])
    names = {"metadata": "run_metadata.json", "lock": "tb.lock", "aggregate": "results.json"}
    for name, document in others.items():
        write(folder / names[name], document)
    return folder


def rows(path: Path, files: Files | None = None, **settings: Any) -> list[dict[str, Any]]:
    found = list(terminal_bench.read(path, files or Files(), **settings))
    assert all(set(row) <= COLUMNS for row in found)
    typed([{"attempt": 1, **row} for row in found], Trials)
    return found


def row(path: Path, **settings: Any) -> dict[str, Any]:
    (found,) = rows(path, **settings)
    return found


def test_a_success_is_written_unset(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, trial()))
    assert (found["state"], found["resolved"], found["cause"]) == ("finished", True, "completed")
    assert (found["cause_source"], found["exception_type"], found["reward_valid"]) == ("observed", None, True)
    assert found.get("reward") is None  # there is no number beside the verdict


def test_a_trial_resolved_when_the_time_was_up_stands(tmp_path: Path) -> None:
    # 239 of 3,543 trials of the leaderboard's repository (commit 8e1925a3) are of this kind
    found = row(run_folder(tmp_path, trial(failure_mode="agent_timeout")))
    assert (found["resolved"], found["reward_valid"]) == (True, True)
    assert (found["cause"], found["exception_type"]) == ("agent_budget_exhausted", "agent_timeout")


@pytest.mark.parametrize("failure", ["parse_error", "test_timeout"])
def test_a_null_verdict_is_no_failure(tmp_path: Path, failure: str) -> None:
    found = row(run_folder(tmp_path, trial(is_resolved=None, failure_mode=failure)))
    assert (found["state"], found["resolved"], found["reward_valid"]) == ("finished", None, None)
    assert found["cause"] == "verifier_failed"


def test_a_null_verdict_without_a_failure_is_pointed_out(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, trial(is_resolved=None)))
    assert found["resolved"] is None
    assert "no verdict" in found["note"]


def test_the_file_of_a_trial_is_the_source_of_truth(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, trial(is_resolved=False), aggregate={"results": [trial(is_resolved=True)]})
    found = row(folder)
    assert found["resolved"] is False
    assert found["source_path"].endswith(f"sort-logs.1-of-1.{RUN}/results.json")


def test_the_aggregate_tells_of_trials_without_a_file_and_its_null_stays_missing(tmp_path: Path) -> None:
    # the harness writes no file for a trial on which it failed itself, and counts it in n_unresolved
    failed = trial("count-words", is_resolved=None, failure_mode="unknown_agent_error", parser_results=None)
    aggregate = {"results": [trial(), failed], "n_unresolved": 1, "unresolved_ids": ["count-words"]}
    folder = run_folder(tmp_path, trial(), aggregate=aggregate)
    (folder / "count-words" / failed["trial_name"] / "sessions").mkdir(parents=True)
    files = Files()
    own, told = rows(folder, files)
    assert own["task_id"] == "sort-logs"
    assert (told["task_id"], told["state"], told["resolved"]) == ("count-words", "finished", None)
    assert told["cause"] == "unclassified"
    assert "from the aggregate" in told["note"]
    assert told["source_path"] == str(folder / "results.json")
    assert told["source_sha256"] == hashlib.sha256((folder / "results.json").read_bytes()).hexdigest()


def test_trials_of_one_name_at_two_tasks_are_two(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, aggregate={"results": [trial("a", trial_name="x"), trial("b", trial_name="x")]})
    own_file(folder, trial("a"), "a", "x")
    for task in ("c", "d"):
        (folder / task / "x" / "panes").mkdir(parents=True)
    found = rows(folder)
    assert [(one["task_id"], one["state"]) for one in found] == [
        ("a", "finished"), ("b", "finished"), ("c", "unfinished"), ("d", "unfinished")
    ]  # fmt: skip


def test_one_trial_twice_in_the_aggregate_is_two_rows_of_one_id(tmp_path: Path) -> None:
    found = rows(run_folder(tmp_path, aggregate={"results": [trial(), trial(is_resolved=False)]}))
    assert [one["resolved"] for one in found] == [True, False]
    assert len({one["trial_id"] for one in found}) == 1


@pytest.mark.parametrize(
    ("given", "kept", "status"),
    [
        ((1200, 90), (1200, 90), "reported"),
        ((0, 0), (None, None), "zero_suspect"),  # 1,739 of 3,543 trials: an adapter that reports nothing
        ((0, 90), (None, 90), "zero_suspect"),
        ((0, None), (None, None), "zero_suspect"),
        ((None, None), (None, None), "absent"),  # 1,117 of 3,543
        ((1200, None), (1200, None), "partial"),
        (("1200", True), (None, None), "absent"),
        ((-3, float("nan")), (None, None), "absent"),
    ],
)
def test_zero_tokens_mean_that_nothing_was_metered(tmp_path: Path, given: Any, kept: Any, status: str) -> None:
    found = row(run_folder(tmp_path, trial(total_input_tokens=given[0], total_output_tokens=given[1])))
    assert ((found["input_tokens"], found["output_tokens"]), found["usage_status"]) == (kept, status)
    assert found.get("cache_included") is None


def test_phases_are_those_between_the_stamps(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, trial()))
    names = ("total_seconds", "setup_seconds", "agent_seconds", "verifier_seconds")
    assert [found[name] for name in names] == [120.0, 10.0, 90.0, 10.5]
    assert (found["started_at"], found["note"]) == ("2026-01-02T03:04:05+00:00", None)


def test_the_older_schema_has_no_times(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, older()))
    assert (found["trial_id"], found["resolved"]) == ("uuid-1", True)
    assert [found[name] for name in ("total_seconds", "agent_seconds", "started_at")] == [None, None, None]


def test_two_clocks_are_not_subtracted_and_no_span_is_negative(tmp_path: Path) -> None:
    mixed = trial(agent_started_at="2026-01-02T03:04:15", test_ended_at="2026-01-02T03:00:00Z", trial_ended_at="soon")
    found = row(run_folder(tmp_path, mixed))
    assert [found[name] for name in terminal_bench._SPANS] == [None, None, None, None]
    assert "without offset" in found["note"]
    assert "ends before it starts" in found["note"]


def test_a_folder_without_results_is_unfinished(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, trial(), metadata=metadata(end_time=None, accuracy=None))
    (folder / "count-words" / f"count-words.2-of-3.{RUN}" / "panes").mkdir(parents=True)
    (folder / "just-begun").mkdir()
    own, begun = rows(folder)
    assert own["state"] == "finished"
    assert (begun["state"], begun["task_id"], begun["attempt"]) == ("unfinished", "count-words", 2)
    assert "no end_time" in begun["note"]
    assert all(begun.get(name) is None for name in UNREAD)
    assert begun["usage_status"] == "absent"


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        (f"sort-logs.2-of-3.{RUN}", 2),
        (f"sort.logs.hard.3-of-3.{RUN}", 3),
        (f"sort-logs.1-of-1.{RUN}", None),  # one of one is no count
        (f"sort-logs.0-of-3.{RUN}", None),
        (f"sort-logs.4-of-3.{RUN}", None),
        ("sort-logs__Ab3", None),
        (None, None),
    ],
)
def test_the_attempt_is_that_of_the_name(tmp_path: Path, name: str | None, attempt: int | None) -> None:
    folder = tmp_path / RUN
    own_file(folder, trial(trial_name=name), name="something")
    assert row(folder).get("attempt") == attempt


def test_the_arm_is_agent_and_model(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, trial(), metadata=metadata(), lock=lock()))
    assert (found["arm"], found["run_id"], found["source_version"]) == ("terminus (maker/model-1)", RUN, "0.2.18")


@pytest.mark.parametrize(
    ("others", "arm"),
    [
        ({"lock": lock()}, "goose (model-2)"),
        ({"metadata": metadata(model_name=None)}, "terminus"),
        ({"metadata": b"{half"}, RUN),
        ({}, RUN),
    ],
)
def test_the_arm_without_metadata(tmp_path: Path, others: Any, arm: str) -> None:
    found = row(run_folder(tmp_path, trial(), **others))
    assert found["arm"] == arm
    assert ("run_metadata.json" in (found["note"] or "")) == (others.get("metadata") == b"{half")


def test_a_named_arm_counts(tmp_path: Path) -> None:
    assert row(run_folder(tmp_path, trial(), metadata=metadata()), arm="a")["arm"] == "a"


@pytest.mark.parametrize("content", [b"", b"  \n", b"\0\0\0", b'{"id": "x", "is_reso', b"no JSON", b"[1, 2]", b"3"])
def test_a_file_that_is_no_record_is_unreadable(tmp_path: Path, content: bytes) -> None:
    folder = run_folder(tmp_path, aggregate={"results": [trial()]})
    path = own_file(folder, content)
    found = row(folder)  # its own file is there, so the aggregate does not speak for it
    assert (found["state"], found["task_id"], found["usage_status"]) == ("unreadable", "sort-logs", "absent")
    assert all(found.get(name) is None for name in UNREAD)
    assert found["note"]
    assert found["source_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_bytes_that_are_no_text_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / RUN
    own_file(folder, json.dumps(trial(instruction="@")).encode().replace(b"@", b"\xe2\xff"))
    assert row(folder)["resolved"] is True


def test_an_unreadable_aggregate_is_said_and_loses_no_file(tmp_path: Path) -> None:
    own, lost = rows(run_folder(tmp_path, trial(), aggregate=b'{"results": ['))
    assert own["resolved"] is True
    assert (lost["state"], lost["task_id"]) == ("unreadable", None)


def test_an_aggregate_s_entry_that_is_no_trial_is_said(tmp_path: Path) -> None:
    found = rows(run_folder(tmp_path, aggregate={"results": [7, {"is_resolved": True}, trial()]}))
    assert [one["state"] for one in found] == ["unreadable", "unreadable", "finished"]


def test_the_named_folder_may_be_a_link(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, trial(), metadata=metadata())
    link = tmp_path / "latest"
    link.symlink_to(folder)
    assert row(link)["resolved"] is True
    assert terminal_bench.recognises(link)


def test_links_inside_are_not_followed_and_not_lost(tmp_path: Path) -> None:
    elsewhere = own_file(tmp_path / "elsewhere", trial())
    folder = run_folder(tmp_path)
    (folder / "a-task").symlink_to(elsewhere.parent.parent)
    (folder / "b-task").mkdir()
    (folder / "b-task" / f"b-task.1-of-1.{RUN}").symlink_to(elsewhere.parent)
    (folder / "b-task" / "broken").symlink_to(tmp_path / "nowhere")
    (folder / "c-task" / f"c-task.1-of-1.{RUN}").mkdir(parents=True)
    (folder / "c-task" / f"c-task.1-of-1.{RUN}" / "results.json").symlink_to(elsewhere)
    (folder / "run_metadata.json").symlink_to(write(tmp_path / "m.json", metadata()))
    found = rows(folder)
    assert [one["state"] for one in found] == ["unreadable"] * 4
    assert [one["task_id"] for one in found] == ["a-task", "b-task", "b-task", "c-task"]
    assert all("symbolic link" in one["note"] and "run_metadata.json is" in one["note"] for one in found)
    assert {one["arm"] for one in found} == {RUN}


def test_a_plan_is_tasks_times_attempts(tmp_path: Path) -> None:
    given = metadata(task_ids=["b", "a", ".DS_Store", "b", 3, None], n_attempts=2)
    found = terminal_bench.planned(run_folder(tmp_path, trial(), metadata=given), Files())
    assert found is not None
    cells = [(one["arm"], one["task_id"], one["attempt"]) for one in found]
    arm = "terminus (maker/model-1)"
    assert cells == [(arm, task, attempt) for task in ("b", "a", "3") for attempt in (1, 2)]


def test_a_plan_from_the_lock_adds_what_the_metadata_leave_out(tmp_path: Path) -> None:
    locked = lock(dataset={"task_ids": ["a", "c"]})
    found = terminal_bench.planned(
        run_folder(tmp_path, metadata=metadata(task_ids=["a"]), lock=locked), Files(), arm="x"
    )
    assert found is not None
    assert [(one["task_id"], one["attempt"]) for one in found] == [("a", 1), ("a", 2), ("c", 1), ("c", 2)]


@pytest.mark.parametrize(
    "others",
    [
        {"metadata": metadata(task_ids=None, dataset_size=80)},
        {"metadata": metadata(n_attempts=None)},
        {"metadata": metadata(n_attempts=10**12)},
        {"metadata": metadata(n_attempts=0)},
        {"metadata": b""},
        {},
    ],
)
def test_no_plan_where_none_is_on_record(tmp_path: Path, others: Any) -> None:
    assert terminal_bench.planned(run_folder(tmp_path, trial(), **others), Files()) is None


def test_a_trial_by_itself_knows_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(tmp_path, trial(), metadata=metadata())
    path = next(folder.glob("*/*/results.json"))
    assert row(path)["arm"] == "terminus (maker/model-1)"
    assert terminal_bench.planned(path, Files()) is None
    assert row(path.parent) == row(path)
    (folder / "run_metadata.json").unlink()
    assert row(path)["arm"] == RUN
    monkeypatch.chdir(path.parent)
    alone = row(Path("results.json"))
    assert (alone["arm"], alone["task_id"], alone["resolved"]) == (RUN, "sort-logs", True)


def test_the_folder_of_a_trial_without_results_is_unfinished(tmp_path: Path) -> None:
    folder = tmp_path / RUN / "sort-logs" / f"sort-logs.2-of-2.{RUN}"
    folder.mkdir(parents=True)
    found = row(folder)
    assert (found["state"], found["task_id"], found["attempt"]) == ("unfinished", "sort-logs", 2)


def test_an_aggregate_by_itself(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, trial(), metadata=metadata(), aggregate={"results": [trial(), trial("b")]})
    found = rows(folder / "results.json")
    assert [one["task_id"] for one in found] == ["sort-logs", "b"]
    assert all("from the aggregate" in one["note"] for one in found)


@pytest.mark.parametrize("content", [b"", b'{"results"', b"{}", b"[]"])
def test_a_torn_aggregate_by_itself_names_no_task(tmp_path: Path, content: bytes) -> None:
    found = row(write(tmp_path / "runs" / RUN / "results.json", content))
    assert (found["state"], found["task_id"], found["arm"]) == ("unreadable", None, RUN)


def test_recognises(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, trial())
    path = next(folder.glob("*/*/results.json"))
    assert terminal_bench.recognises(folder)
    assert terminal_bench.recognises(path)
    assert not terminal_bench.recognises(tmp_path)
    assert terminal_bench.recognises(path.parent)
    assert not terminal_bench.recognises(write(tmp_path / "other" / "results.json", {"score": 1}))
    assert not terminal_bench.recognises(tmp_path / "other")
    assert not terminal_bench.recognises(tmp_path / "nowhere")
    assert terminal_bench.recognises(write(tmp_path / "locked" / "tb.lock", lock()).parent)


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(terminal_bench.read(tmp_path / "nowhere", Files()))


def test_a_metric_has_nothing_to_choose_from(tmp_path: Path) -> None:
    found = row(run_folder(tmp_path, trial()), metric="acc")
    assert found["resolved"] is True
    assert "'acc' is not applied" in found["note"]


def test_one_trial_is_read_at_a_time(tmp_path: Path) -> None:
    files = Files()
    found = terminal_bench.read(run_folder(tmp_path, *(trial(f"task-{i}") for i in range(5))), files)
    next(found)
    assert len(files.manifest()) == 1


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**18), st.floats(), st.text(max_size=8), st.just("2026-01-02T03:04:05"),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.none(), max_size=1),
)  # fmt: skip
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(trial(), VALUES))


@settings(max_examples=30, deadline=None)
@given(RECORDS, st.one_of(RECORDS, VALUES), st.one_of(VALUES, st.fixed_dictionaries({"results": VALUES})))
def test_whatever_stands_there_nothing_is_made_up(record: Any, about: Any, aggregate: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = run_folder(Path(place), metadata=about, aggregate=aggregate)
        own_file(folder, record)
        found = rows(folder)
        terminal_bench.planned(folder, Files())
        own = found[0]
        if own["state"] == "unreadable":
            return
        said = record.get("is_resolved")
        assert own["resolved"] is (said if isinstance(said, bool) else None)
        assert (own.get("cause") is None) == (values.text(record.get("failure_mode")) is None)
        for name, column in (("total_input_tokens", "input_tokens"), ("total_output_tokens", "output_tokens")):
            assert own[column] is None or own[column] == record[name]


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.integers(0, 500).map(lambda n: json.dumps(trial()).encode()[:n])))
def test_torn_files_and_noise_are_unreadable_rows(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = run_folder(Path(place), lock=content)
        own_file(folder, content)
        (found,) = rows(folder)
        assert found["state"] == "unreadable"
        assert all(pd.isna(found.get(name)) for name in UNREAD)
        terminal_bench.recognises(folder)
