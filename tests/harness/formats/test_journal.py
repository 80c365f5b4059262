"""The journal of our own runs: what is read of it, what is found wrong with it, and that nothing is made up."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats.journal import COLUMNS, FORMAT, planned, read, recognises, verify
from faultbook.journal_chain import FINDINGS, GENESIS, JOURNAL, digest
from faultbook.tables import TRIAL_STATES, Trials, typed

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PLAN = [{"arm": arm, "task_id": task, "attempt": 1} for task in ("t1", "t2") for arm in ("a", "b")]
END = {
    "verdict": {"resolved": True, "reward": 1.0},
    "termination": {"kind": "completed", "retryable": False, "source": "observed", "side_effects": "none"},
    "seconds": {"setup": 1.5, "agent": 20.25, "verifier": 2.0, "total": 24.0},
    "usage": {
        "input_tokens": 900,
        "cache_tokens": 100,
        "cache_included": True,
        "output_tokens": 50,
        "requests": 7,
        "cost": 0.25,
    },
}

Row = dict[str, Any]


def canonical(record: Row) -> bytes:
    """The form that the module's description asks for, written down once more."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class Writer:
    """Keeps a journal as the description says it."""

    def __init__(self, run_id: str = "run-1") -> None:
        self.run_id, self.previous, self.lines = run_id, "0" * 64, list[bytes]()

    def add(self, event: str, **data: Any) -> Writer:
        n = len(self.lines) + 1
        record = {"seq": n, "at": f"2026-09-08T15:12:{n % 60:02}+00:00", "monotonic": 100.0 + n, "run_id": self.run_id}
        record |= {"event": event, "data": data, "previous_sha256": self.previous}
        self.previous = hashlib.sha256(canonical(record)).hexdigest()
        self.lines.append(canonical(record | {"sha256": self.previous}) + b"\n")
        return self

    def begin(self, plan: Any = None, **more: Any) -> Writer:
        source = {"commit": "c0ffee", "dirty": False}
        return self.add("run_started", **{"kind": "report", "plan": plan, "source": source, "boot_id": "b", **more})

    def start(self, task: str, arm: str = "a", attempt: int = 1) -> Writer:
        return self.add("trial_started", **trial(task, arm, attempt))

    def finish(self, task: str, arm: str = "a", attempt: int = 1, **changes: Any) -> Writer:
        return self.add("trial_finished", **trial(task, arm, attempt), **{**END, **changes})

    def end(self, kind: str = "completed") -> Writer:
        return self.add("run_finished", termination={"kind": kind})

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        (folder / JOURNAL).write_bytes(b"".join(self.lines))
        return folder


def trial(task: str, arm: str, attempt: int) -> Row:
    return {"trial_id": f"{task}.{arm}.{attempt}", "arm": arm, "task_id": task, "attempt": attempt}


def rows(run: Path, **more: Any) -> list[Row]:
    found = list(read(run, Files(), **more))
    known = set(Trials.to_schema().columns)
    for row in found:
        assert set(row) <= known
        assert row["state"] in TRIAL_STATES
        assert row["source_format"] == FORMAT
        assert row["source_path"].endswith(JOURNAL)
    typed([{"attempt": 1, **row} for row in found], Trials)
    return found


def findings(run: Path) -> list[tuple[Any, str]]:
    frame = verify(run, Files())
    assert list(frame.columns) == COLUMNS
    assert set(frame["finding"]) <= set(FINDINGS)
    return [
        (None if line != line else line, name)
        for line, name in zip(
            frame["line"].astype(object).where(frame["line"].notna(), None), frame["finding"], strict=True
        )
    ]


@pytest.fixture
def whole() -> Writer:
    """Two tasks, two arms, all ended."""
    writer = Writer().begin(PLAN)
    for cell in PLAN:
        writer.start(cell["task_id"], cell["arm"]).finish(cell["task_id"], cell["arm"])
    return writer.end()


# ---- the form ------------------------------------------------------------------------------------------------------


def test_a_digest_reckoned_by_hand() -> None:
    body = '{"at":"2026-09-08T15:12:34+00:00","data":{"kind":"présentation"},"event":"run_started","monotonic":1.5,'
    body += f'"previous_sha256":"{GENESIS}","run_id":"r","seq":1}}'
    record = json.loads(body)
    assert digest(record) == hashlib.sha256(body.encode("utf-8")).hexdigest()
    assert digest(record) == "f2dddff3c66b0f875f75c1e1e7c87398de84bbf1073213f9ebcc7e7ed8de6348"
    assert digest({**record, "sha256": "anything"}) == digest(record)
    assert digest(dict(reversed(record.items()))) == digest(record)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"deep": {1, 2}}])
def test_what_has_no_canonical_form_has_no_digest(value: Any) -> None:
    assert digest({"data": value}) is None


def test_a_run_is_recognised_by_its_journal(tmp_path: Path, whole: Writer) -> None:
    run = whole.write(tmp_path / "run")
    assert recognises(run)
    assert recognises(run / JOURNAL)
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "none")
    assert not recognises(Path("a\0b"))
    (run / JOURNAL).write_bytes(b'{"event": "of another tool"}\n')
    assert not recognises(run)
    for begun in (b"", b"\0\0\0", whole.lines[0][:-40]):
        (run / JOURNAL).write_bytes(begun)
        assert recognises(run)
    (run / JOURNAL).unlink()
    (run / JOURNAL).mkdir()
    assert not recognises(run)


def test_a_long_plan_does_not_hide_the_run(tmp_path: Path) -> None:
    plan = [{"arm": "a", "task_id": f"task-{n:06}", "attempt": 1} for n in range(40_000)]
    run = Writer().begin(plan).write(tmp_path / "run")
    assert (run / JOURNAL).stat().st_size > 1 << 20
    assert recognises(run)
    assert len(planned(run, Files()) or []) == 40_000


# ---- trials --------------------------------------------------------------------------------------------------------


def test_a_finished_trial_as_recorded(tmp_path: Path) -> None:
    run = Writer().begin().start("t1").finish("t1").end().write(tmp_path / "run")
    (row,) = rows(run)
    content = (run / JOURNAL).read_bytes()
    assert row == {
        "arm": "a",
        "task_id": "t1",
        "attempt": 1,
        "trial_id": "t1.a.1",
        "run_id": "run-1",
        "state": "finished",
        "resolved": True,
        "reward": 1.0,
        "reward_valid": True,
        "cause": "completed",
        "cause_source": "observed",
        "other_causes": None,
        "exception_type": None,
        "setup_seconds": 1.5,
        "agent_seconds": 20.25,
        "verifier_seconds": 2.0,
        "total_seconds": 24.0,
        "input_tokens": 900,
        "cache_tokens": 100,
        "cache_included": True,
        "output_tokens": 50,
        "requests": 7,
        "cost": 0.25,
        "usage_status": "reported",
        "started_at": "2026-09-08T15:12:02+00:00",
        "note": None,
        "source_version": "c0ffee",
        "source_format": FORMAT,
        "source_path": str(run / JOURNAL),
        "source_sha256": hashlib.sha256(content).hexdigest(),
    }


def test_what_is_not_known_is_missing_and_never_nothing(tmp_path: Path) -> None:
    nothing = {"verdict": None, "termination": None, "seconds": {"agent": None}, "usage": {"requests": None}}
    run = Writer().begin().start("t1").finish("t1", **nothing).end().write(tmp_path / "run")
    (row,) = rows(run)
    filled = {name for name, value in row.items() if value is not None}
    assert filled == {
        *("arm", "task_id", "attempt", "trial_id", "run_id", "state", "usage_status", "started_at", "note"),
        *("source_version", "source_format", "source_path", "source_sha256"),
    }
    assert row["usage_status"] == "absent"
    assert row["note"] == "no cause of its end on record"


def test_a_started_trial_without_end_is_unfinished(tmp_path: Path) -> None:
    run = Writer().begin(PLAN).start("t1").finish("t1").start("t1", "b").write(tmp_path / "run")
    one, other = rows(run)
    assert (one["state"], other["state"]) == ("finished", "unfinished")
    assert (other["arm"], other["task_id"], other["attempt"]) == ("b", "t1", 1)
    assert other["started_at"] == "2026-09-08T15:12:04+00:00"
    assert other["usage_status"] == "absent"
    assert not {"resolved", "reward", "cause", "agent_seconds"} & set(other)
    assert other["note"] is None
    assert findings(run) == [(None, "run_unclosed")]


def test_an_unfinished_trial_does_not_take_the_cause_of_the_run(tmp_path: Path) -> None:
    run = Writer().begin().start("t1").end("user_abort").write(tmp_path / "run")
    (row,) = rows(run)
    assert row["state"] == "unfinished"
    assert "cause" not in row
    assert row["note"] == "the run ended before it did (user_abort)"


def test_a_retry_is_an_attempt_of_its_own(tmp_path: Path) -> None:
    writer = Writer().begin().start("t1").finish("t1", termination={"kind": "provider_network"}, verdict=None)
    run = writer.start("t1", attempt=2).finish("t1", attempt=2).end().write(tmp_path / "run")
    found = rows(run)
    assert [(row["attempt"], row["resolved"], row["cause"]) for row in found] == [
        (1, None, "provider_network"),
        (2, True, "completed"),
    ]
    assert findings(run) == []


@pytest.mark.parametrize(
    ("termination", "expected"),
    [
        ({"kind": "completed", "source": "observed"}, ("completed", "observed", None)),
        ({"kind": "agent_budget_exhausted"}, ("agent_budget_exhausted", "observed", "agent_budget_exhausted")),
        ({"kind": "contract-violation"}, ("configuration.invalid", "observed", "contract-violation")),
        ({"kind": "persistence.fsync_failed"}, ("persistence", "observed", "persistence.fsync_failed")),
        ({"kind": "process_crash", "source": "inferred_on_resume"}, ("process_crash", "inferred", "process_crash")),
        ({"kind": "moon phase", "source": "observed"}, ("unclassified", "inferred", "moon phase")),
        ({"kind": 5}, ("unclassified", "inferred", "5")),
        ({"kind": ["completed"]}, (None, None, None)),
        ("completed", (None, None, None)),
    ],
)
def test_causes(tmp_path: Path, termination: Any, expected: tuple[str | None, ...]) -> None:
    run = Writer().begin().start("t1").finish("t1", termination=termination).write(tmp_path / "run")
    (row,) = rows(run)
    assert tuple(row.get(name) for name in ("cause", "cause_source", "exception_type")) == expected


def test_a_verdict_beside_a_spent_budget_stands_and_one_beside_a_lost_network_does_not(tmp_path: Path) -> None:
    writer = Writer().begin()
    for task, kind in (("t1", "agent_budget_exhausted"), ("t2", "provider_network"), ("t3", "unclassified")):
        writer.start(task).finish(task, termination={"kind": kind})
    found = rows(writer.write(tmp_path / "run"))
    assert [(row["resolved"], row["reward_valid"]) for row in found] == [(True, True), (True, False), (True, None)]


@pytest.mark.parametrize(
    ("verdict", "expected", "note"),
    [
        ({"resolved": None, "reward": 1}, (True, 1.0), None),
        ({"reward": 0.5}, (False, 0.5), None),
        ({"resolved": True, "reward": 0.5}, (True, 0.5), None),
        ({"resolved": True, "reward": 0}, (True, 0.0), "resolved is True beside a reward of 0"),
        ({"resolved": False, "reward": 1}, (False, 1.0), "resolved is False beside a reward of 1"),
        ({"reward": 3}, (None, 3.0), "reward 3 is outside [0, 1]"),
        ({"resolved": 1, "reward": True}, (None, None), None),
        ({"resolved": "true", "reward": "1"}, (None, None), None),
        ([], (None, None), None),
    ],
)
def test_verdicts(tmp_path: Path, verdict: Any, expected: tuple[Any, Any], note: str | None) -> None:
    run = Writer().begin().start("t1").finish("t1", verdict=verdict).write(tmp_path / "run")
    (row,) = rows(run)
    assert (row["resolved"], row["reward"]) == expected
    assert row["note"] == note


@pytest.mark.parametrize(
    ("usage", "status"),
    [
        ({"input_tokens": 5, "output_tokens": 1}, "reported"),
        ({"input_tokens": 5}, "partial"),
        ({"input_tokens": 0, "output_tokens": 0}, "zero_suspect"),
        ({"input_tokens": -5, "output_tokens": True}, "absent"),
        (None, "absent"),
    ],
)
def test_usage(tmp_path: Path, usage: Any, status: str) -> None:
    (row,) = rows(Writer().begin().start("t1").finish("t1", usage=usage).write(tmp_path / "run"))
    assert row["usage_status"] == status
    assert row["cost"] is None


def test_sources_that_a_commit_does_not_give_are_named(tmp_path: Path) -> None:
    for number, (source, version) in enumerate(
        [
            ({"commit": "abc", "dirty": True}, "abc+dirty"),
            ({"commit": "abc", "dirty": None}, "abc"),
            ({"commit": None, "dirty": True}, None),
            (None, None),
        ]
    ):
        run = Writer().begin(source=source).start("t1").finish("t1").write(tmp_path / str(number))
        assert rows(run)[0]["source_version"] == version


# ---- arms and plans ------------------------------------------------------------------------------------------------


def test_arms_are_those_recorded(tmp_path: Path, whole: Writer) -> None:
    run = whole.write(tmp_path / "run")
    assert [row["arm"] for row in rows(run)] == ["a", "b", "a", "b"]
    with pytest.raises(DataError, match=r"holds arms a, b, which cannot all be called 'x'; leave the arm's name out"):
        rows(run, arm="x")
    with pytest.raises(DataError, match="cannot all be called 'x'"):
        planned(run, Files(), arm="x")


def test_the_only_arm_can_be_named(tmp_path: Path) -> None:
    run = Writer().begin(PLAN[::2]).start("t1").finish("t1").start("t2").write(tmp_path / "run")
    assert [row["arm"] for row in rows(run, arm="x")] == ["x", "x"]
    assert [row["arm"] for row in planned(run, Files(), arm="x") or []] == ["x", "x"]


def test_a_run_without_arms_is_one_of_its_kind(tmp_path: Path) -> None:
    run = (
        Writer()
        .begin()
        .add("trial_started", trial_id="1", task_id="n")
        .add("trial_finished", trial_id="1")
        .write(tmp_path / "run")
    )
    (row,) = rows(run)
    assert (row["arm"], row["task_id"]) == ("report", "n")
    assert "attempt" not in row  # whoever reads all runs numbers it


def test_the_plan_is_that_of_the_start(tmp_path: Path, whole: Writer) -> None:
    assert planned(whole.write(tmp_path / "run"), Files()) == PLAN


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {},
        "t1",
        [*PLAN, {"arm": "a"}],
        [*PLAN, 3],
        [{"arm": "a", "task_id": "t", "attempt": 0}],
        [{"arm": 1.5}],
    ],
)
def test_a_plan_that_is_not_whole_is_none(tmp_path: Path, plan: Any) -> None:
    assert planned(Writer().begin(plan).write(tmp_path / "run"), Files()) is None


def test_an_altered_plan_is_none(tmp_path: Path, whole: Writer) -> None:
    whole.lines[0] = whole.lines[0].replace(b'"t2"', b'"t3"')
    assert planned(whole.write(tmp_path / "run"), Files()) is None


def test_a_journal_that_does_not_begin_with_the_run_has_no_plan(tmp_path: Path, whole: Writer) -> None:
    del whole.lines[0]
    run = whole.write(tmp_path / "run")
    assert planned(run, Files()) is None
    assert findings(run)[:3] == [(1, "sequence_gap"), (1, "chain_broken"), (1, "no_run_start")]


# ---- what is wrong with a journal ----------------------------------------------------------------------------------


def test_a_whole_journal_has_no_findings(tmp_path: Path, whole: Writer) -> None:
    run = whole.write(tmp_path / "run")
    assert findings(run) == []
    assert verify(run, Files()).empty


def test_a_cut_off_last_line_is_a_fragment(tmp_path: Path, whole: Writer) -> None:
    del whole.lines[-1]
    whole.lines[-1] = whole.lines[-1][:-1]  # even if only the newline is missing: it was not written to its end
    run = whole.write(tmp_path / "run")
    assert findings(run) == [(9, "trailing_fragment"), (None, "run_unclosed")]
    last = rows(run)[-1]
    assert (last["state"], last["note"]) == ("unfinished", "the journal's last line is cut off")


def test_an_altered_record(tmp_path: Path, whole: Writer) -> None:
    whole.lines[4] = whole.lines[4].replace(b'"resolved":true', b'"resolved":false')
    run = whole.write(tmp_path / "run")
    assert findings(run) == [(5, "hash_mismatch")]
    break_ = "not verified (line 5 of the journal: a record is not what its digest was taken of)"
    notes = [row["note"] for row in rows(run)]
    assert notes == [None, f"resolved is False beside a reward of 1; {break_}", break_, break_]


def test_a_record_altered_with_its_digest_breaks_the_chain(tmp_path: Path, whole: Writer) -> None:
    record = json.loads(whole.lines[4])
    record["data"]["verdict"]["resolved"] = False
    record["sha256"] = digest(record)
    whole.lines[4] = canonical(record) + b"\n"
    run = whole.write(tmp_path / "run")
    assert findings(run) == [(6, "chain_broken")]


def test_a_lost_line(tmp_path: Path, whole: Writer) -> None:
    del whole.lines[2]  # the end of the first trial
    run = whole.write(tmp_path / "run")
    assert findings(run) == [(3, "sequence_gap"), (3, "chain_broken")]
    lost = rows(run)[-1]
    assert (lost["state"], lost["task_id"], lost["arm"]) == ("unfinished", "t1", "a")
    assert "the run ended before it did (completed)" in lost["note"]
    assert "no end on record, but one may be lost (line 3 of the journal: numbers are left out" in lost["note"]


def test_lines_that_come_again(tmp_path: Path, whole: Writer) -> None:
    whole.lines[3:3] = whole.lines[1:3]
    run = whole.write(tmp_path / "run")
    found = findings(run)
    assert (4, "sequence_regression") in found
    assert (4, "duplicate_start") in found
    assert (5, "duplicate_terminal") in found
    assert (6, "chain_broken") not in found  # behind them it goes on as before
    twice = [row for row in rows(run) if (row["task_id"], row["arm"]) == ("t1", "a")]
    assert [row["state"] for row in twice] == ["finished", "finished"]
    assert twice[0]["note"] is None
    assert "a run or trial ends again" in twice[1]["note"]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (b"{}\n", "schema"),
        (b"[1]\n", "malformed_json"),
        (b'{"seq": 4\n', "malformed_json"),
        (b"\n", "malformed_json"),
        (b"\xff\xfe\n", "invalid_utf8"),
    ],
)
def test_a_damaged_line_loses_no_other(tmp_path: Path, whole: Writer, line: bytes, finding: str) -> None:
    whole.lines[3] = line  # a start
    run = whole.write(tmp_path / "run")
    found = findings(run)
    assert (4, finding) in found
    assert (5, "trial_finished_without_start") in found
    assert {place for place, _ in found} == {4, 5}
    states = [row["state"] for row in rows(run)]
    assert states == ["finished"] * 4
    assert "a trial ends that never started" in rows(run)[1]["note"]


def test_bytes_that_are_not_utf8_do_not_lose_a_trial(tmp_path: Path, whole: Writer) -> None:
    whole.lines[4] = whole.lines[4].replace(b'"side_effects":"none"', b'"side_effects":"n\xe2e"')
    run = whole.write(tmp_path / "run")
    assert findings(run) == [(5, "invalid_utf8"), (5, "hash_mismatch")]
    assert [row["resolved"] for row in rows(run)] == [True] * 4


def test_a_trial_that_ends_twice(tmp_path: Path) -> None:
    run = (
        Writer()
        .begin()
        .start("t1")
        .finish("t1")
        .finish("t1", verdict={"resolved": False})
        .end()
        .write(tmp_path / "run")
    )
    one, other = rows(run)
    assert (one["resolved"], other["resolved"]) == (True, False)
    assert (one["note"], other["note"]) == (None, "a run or trial ends again")
    assert findings(run) == [(4, "duplicate_terminal")]


def test_a_trial_that_starts_again_after_its_end(tmp_path: Path) -> None:
    run = Writer().begin().start("t1").finish("t1").start("t1").end().write(tmp_path / "run")
    assert [row["state"] for row in rows(run)] == ["finished", "unfinished"]
    assert findings(run) == [(4, "duplicate_start")]


def test_a_start_that_names_another_task(tmp_path: Path) -> None:
    other = {**trial("t2", "a", 1), "trial_id": "t1.a.1"}
    run = Writer().begin().add("trial_started", **other).finish("t1").end().write(tmp_path / "run")
    (row,) = rows(run)
    assert (row["task_id"], row["note"]) == ("t1", "its start names another arm, task or attempt")


def test_records_of_another_run_and_behind_the_end(tmp_path: Path) -> None:
    writer = Writer().begin().start("t1").finish("t1").end()
    writer.run_id = "run-2"
    run = writer.start("t1").end().write(tmp_path / "run")
    assert findings(run) == [(5, "other_run"), (5, "after_end"), (6, "other_run"), (6, "duplicate_terminal")]
    assert [(row["run_id"], row["state"]) for row in rows(run)] == [("run-1", "finished"), ("run-2", "unfinished")]


def test_a_whole_record_of_another_form_is_reported_and_breaks_nothing(tmp_path: Path) -> None:
    writer = Writer().begin()
    writer.run_id = None
    run = writer.add("trial_finished", arm="a", verdict={"resolved": True}).write(tmp_path / "run")
    assert findings(run) == [
        *[(2, name) for name in ("schema", "other_run", "trial_finished_without_start")],
        (None, "run_unclosed"),
    ]
    (row,) = rows(run)
    assert (row["resolved"], row["task_id"], row["run_id"]) == (True, None, None)
    assert "no task on record" in row["note"]
    assert "not verified" not in row["note"]


def test_other_events_are_passed_over(tmp_path: Path) -> None:
    writer = Writer().begin().add("tool_timeout", tool="bash").start("t1").add("note", text="é" * 10).finish("t1").end()
    run = writer.write(tmp_path / "run")
    assert findings(run) == []
    assert len(rows(run)) == 1


def test_nan_has_no_place_in_a_record(tmp_path: Path) -> None:
    run = (
        Writer()
        .begin()
        .start("t1")
        .finish("t1", verdict={"resolved": True, "reward": float("nan")})
        .write(tmp_path / "run")
    )
    assert findings(run) == [(3, "hash_mismatch"), (None, "run_unclosed")]
    assert (rows(run)[0]["resolved"], rows(run)[0]["reward"]) == (True, None)


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0" * 4096])
def test_an_empty_journal_is_unreadable(tmp_path: Path, content: bytes) -> None:
    (run := tmp_path / "run-7").mkdir()
    (run / JOURNAL).write_bytes(content)
    (row,) = rows(run)
    assert (row["state"], row["arm"], row["note"]) == ("unreadable", "run-7", "empty file")
    assert findings(run) == [(None, "unreadable")]
    assert planned(run, Files()) is None


def test_a_journal_of_a_fragment_alone_is_unreadable(tmp_path: Path, whole: Writer) -> None:
    (run := tmp_path / "run").mkdir()
    (run / JOURNAL).write_bytes(whole.lines[0][:50])
    (row,) = rows(run)
    assert (row["state"], row["note"]) == ("unreadable", "it holds no complete line")


def test_garbage_is_unreadable(tmp_path: Path) -> None:
    (run := tmp_path / "run").mkdir()
    (run / JOURNAL).write_bytes(b"garbage\n" * 3)
    (row,) = rows(run, arm="x")
    assert (row["state"], row["arm"], row["note"]) == (
        "unreadable",
        "x",
        "line 1 of the journal: a line is no JSON object",
    )


def test_a_missing_journal_is_unreadable(tmp_path: Path) -> None:
    (row,) = rows(tmp_path / "none")
    assert (row["state"], row["note"]) == ("unreadable", "no such file")


def test_a_run_without_trials_has_no_rows(tmp_path: Path) -> None:
    assert rows(Writer().begin(PLAN).end().write(tmp_path / "run")) == []


def test_links_inside_a_run_are_not_followed_but_the_named_path_may_be_one(tmp_path: Path, whole: Writer) -> None:
    run = whole.write(tmp_path / "run")
    (tmp_path / "link").symlink_to(run)
    assert len(rows(tmp_path / "link")) == 4
    (other := tmp_path / "other").mkdir()
    (other / JOURNAL).symlink_to(run / JOURNAL)
    (row,) = rows(other)
    assert (row["state"], row["note"]) == ("unreadable", f"{JOURNAL} is a symbolic link, which is not followed")
    assert len(rows(other / JOURNAL)) == 4


def test_a_journal_that_grows_between_two_readings_stops_them(tmp_path: Path) -> None:
    writer = Writer().begin(PLAN).start("t1")
    run, files = writer.write(tmp_path / "run"), Files()
    assert planned(run, files) == PLAN
    writer.finish("t1").write(run)
    with pytest.raises(DataError, match="changed between reading and reporting"):
        list(read(run, files))
    with pytest.raises(DataError, match="changed between reading and reporting"):
        verify(run, files)


def test_what_was_read_stands_in_the_manifest(tmp_path: Path, whole: Writer) -> None:
    files = Files()
    found = list(read(whole.write(tmp_path / "run"), files))
    assert files.manifest()["sha256"].tolist() == [found[0]["source_sha256"]]


# ---- anything at all -----------------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = (
    scalars
    | st.lists(scalars, max_size=3)
    | st.dictionaries(st.sampled_from(["kind", "resolved", "input_tokens", "arm"]), scalars, max_size=3)
)
names = [
    "trial_id",
    "arm",
    "task_id",
    "attempt",
    "verdict",
    "termination",
    "seconds",
    "usage",
    "plan",
    "source",
    "kind",
]
events = st.sampled_from(["run_started", "trial_started", "trial_finished", "run_finished", "other"])
records = st.tuples(events, st.dictionaries(st.sampled_from(names), values, max_size=8))


@QUICK
@given(story=st.lists(records, max_size=8), cut=st.integers(0, 60))
def test_any_story_is_read(tmp_path: Path, story: list[tuple[str, Row]], cut: int) -> None:
    writer = Writer()
    for event, data in story:
        try:
            writer.add(event, **data)
        except UnicodeEncodeError:
            continue
    run = writer.write(tmp_path / "run")
    content = (run / JOURNAL).read_bytes()
    (run / JOURNAL).write_bytes(content[: len(content) - cut])
    found = rows(run)
    findings(run)
    planned(run, Files())
    given_numbers = [value for _, data in story for value in data.values()]
    for row in found:
        if row.get("resolved") is not None:
            assert any(isinstance(value, dict) and value.get("resolved") is not None for value in given_numbers)
        assert row.get("reward") is None  # no record has one
        assert row.get("agent_seconds") is None


@QUICK
@given(
    content=st.binary(max_size=300)
    | st.lists(st.sampled_from([b"{", b"}\n", b'"seq":1', b"\xff", b"\n", b"[[", b"1e999", b"\0"])).map(b"".join)
)
def test_any_bytes_are_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(content)
    assert all(row["state"] == "unreadable" for row in rows(tmp_path))
    assert findings(tmp_path)
    assert planned(tmp_path, Files()) is None
    recognises(tmp_path)


@QUICK
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(tmp_path: Path, place: int, bit: int) -> None:
    content = bytearray(b"".join(Writer().begin(PLAN).start("t1").finish("t1").start("t2").finish("t2").end().lines))
    content[place % len(content)] ^= 1 << bit
    (tmp_path / JOURNAL).write_bytes(content)
    assert findings(tmp_path)
    rows(tmp_path)


@QUICK
@given(end=st.integers(0))
def test_a_journal_cut_anywhere_gives_the_trials_that_had_ended(tmp_path: Path, end: int) -> None:
    lines = Writer().begin(PLAN).start("t1").finish("t1").start("t2").finish("t2").end().lines
    content = b"".join(lines)
    end %= len(content)
    (tmp_path / JOURNAL).write_bytes(content[:end])
    complete = sum(len(b"".join(lines[:n])) <= end for n in range(1, len(lines) + 1))
    states = [row["state"] for row in rows(tmp_path)]
    expected = {0: ["unreadable"], 1: [], 2: ["unfinished"], 3: ["finished"], 4: ["finished", "unfinished"]}
    assert states == expected.get(complete, ["finished", "finished"])


def test_a_deep_line_is_a_line_that_cannot_be_read(tmp_path: Path, whole: Writer) -> None:
    whole.lines[1] = b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    run = whole.write(tmp_path / "run")
    assert (2, "malformed_json") in findings(run)
    assert len(rows(run)) == 4


def test_a_journal_that_may_not_be_read(tmp_path: Path, whole: Writer) -> None:
    run = whole.write(tmp_path / "run")
    (run / JOURNAL).chmod(0)
    if os.access(run / JOURNAL, os.R_OK):
        pytest.skip("whoever runs this may read every file")
    assert rows(run)[0]["note"] == "cannot be read (Permission denied)"
