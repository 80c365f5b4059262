"""The ledger of requests: what is written stays, what could not be written is said, and nothing is 0 that is unknown.

A disk that is full is a limit on the size of files (RLIMIT_FSIZE) in a process of its own, and SQLite's own limit on
pages; a disk that is read-only is a folder without the right to write, as seen by a user who is not root.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from faultbook import tables
from faultbook.runtime.ledger import (
    USAGE_STATUSES,
    Ledger,
    LedgerConflictError,
    Usage,
    completed,
    denied,
    started,
    unsettled,
)
from faultbook.runtime.ledger_events import written_id

IDS = ("run-1", "task__1", 1, "request-1")
ASKED = {"model": "m-1", "operation": "chat"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger(path, durability="normal") as opened:
        yield opened


def states(ledger: Ledger, run: str | None = None) -> dict[str, str]:
    return {row["request_id"]: row["state"] for row in ledger.requests(run)}


def script(text: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


# ---- states --------------------------------------------------------------------------------------------------------


def test_a_request_that_is_completed(ledger: Ledger) -> None:
    ledger.start(*IDS, **ASKED, provider="p", conversation_id="c", omitted_tool_images=2, detail={"stream": True})
    ledger.complete(*IDS, usage=Usage(10, 2, cost_usd=0.5), finish_reasons=["stop"], response_id="r")
    (row,) = ledger.requests()
    wanted = {
        **dict(zip(("run_id", "trial_id", "attempt", "request_id"), IDS, strict=True)),
        **ASKED,
        "state": "completed",
        "provider": "p",
        "conversation_id": "c",
        "omitted_tool_images": 2,
        "input_tokens": 10,
        "output_tokens": 2,
        "cache_read_tokens": None,
        "cost_usd": 0.5,
        "usage_status": "reported",
        "finish_reasons": ["stop"],
        "response_id": "r",
        "settled_late": False,
    }
    assert {name: row[name] for name in wanted} == wanted
    assert row["started_at"].endswith("+00:00")
    assert row["ended_at"] >= row["started_at"]
    assert row["seconds"] >= 0
    assert ledger.evidence("run-1").complete


def test_the_other_ends(ledger: Ledger) -> None:
    for name in ("open", "denied", "unsettled", "failed", "late"):
        ledger.start("run", "t", 1, name, **ASKED)
    ledger.deny("run", "t", 1, "denied", denial={"kind": "contract-violation", "reason": "images"})
    ledger.unsettle("run", "t", 1, "unsettled", reason="connection lost")
    ledger.complete("run", "t", 1, "failed", error_type="500")
    ledger.unsettle("run", "t", 1, "late")
    ledger.complete("run", "t", 1, "late", usage=Usage(1, 1))
    rows = {row["request_id"]: row for row in ledger.requests()}
    assert {name: row["state"] for name, row in rows.items()} == {
        "open": "started",
        "denied": "denied",
        "unsettled": "unsettled",
        "failed": "completed",
        "late": "completed",
    }
    assert rows["denied"]["denial"]["reason"] == "images"
    assert rows["denied"]["error_type"] == "contract-violation"
    assert rows["denied"]["usage_status"] is None
    assert rows["unsettled"]["reason"] == "connection lost"
    assert rows["failed"]["usage_status"] == "absent"
    assert rows["failed"]["input_tokens"] is None
    assert rows["late"]["settled_late"] is True
    assert ledger.totals()["settled_late"] == 1


def test_what_a_run_left_open_is_unsettled_and_kept(ledger: Ledger) -> None:
    for request in ("a", "b", "c"):
        ledger.start("run", "t", 1, request, **ASKED)
    ledger.start("other", "t", 1, "a", **ASKED)
    ledger.complete("run", "t", 1, "a")
    assert ledger.settle_open("run") == 2
    assert ledger.settle_open("run") == 0
    assert states(ledger, "run") == {"a": "completed", "b": "unsettled", "c": "unsettled"}
    assert states(ledger, "other") == {"a": "started"}


@dataclass(frozen=True)
class Refusal:
    rule: str = "no-vision-model"
    reason: str = "images"


class Described:
    def as_dict(self) -> dict[str, str]:
        return {"kind": "contract-violation", "rule": "model-not-allowed"}


@pytest.mark.parametrize(
    ("denial", "kind", "written"),
    [
        ("no images", "denied", "no images"),
        (Refusal(), "no-vision-model", asdict(Refusal())),
        (Described(), "contract-violation", Described().as_dict()),
    ],
)
def test_a_denial_is_a_text_or_an_event(ledger: Ledger, denial: object, kind: str, written: object) -> None:
    ledger.start(*IDS, **ASKED)
    ledger.deny(*IDS, denial=denial)
    (row,) = ledger.requests()
    assert (row["error_type"], row["denial"]) == (kind, written)


def test_requests_of_two_attempts_and_runs_are_their_own(ledger: Ledger) -> None:
    for run, attempt in (("a", 1), ("a", 2), ("b", 1)):
        ledger.start(run, "t", attempt, "same", **ASKED)
    ledger.complete("a", "t", 2, "same", usage=Usage(5, 5))
    assert [(row["run_id"], row["attempt"], row["state"]) for row in ledger.requests()] == [
        *(("a", 1, "started"), ("a", 2, "completed"), ("b", 1, "started"))
    ]
    assert ledger.totals("a")["input_tokens"] == 5
    assert ledger.totals("b")["input_tokens"] is None


# ---- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "status"),
    [
        (None, "absent"),
        (Usage(), "absent"),
        (Usage(cache_read_tokens=3), "absent"),
        (Usage(0, 0), "zero_suspect"),
        (Usage(0), "zero_suspect"),
        (Usage(10), "partial"),
        (Usage(output_tokens=3), "partial"),
        (Usage(10, 3, is_final=False), "partial"),
        (Usage(10, 3), "reported"),
        (Usage(10, 0), "reported"),
    ],
)
def test_how_far_usage_is_metered(ledger: Ledger, usage: Usage | None, status: str) -> None:
    ledger.start(*IDS, **ASKED)
    ledger.complete(*IDS, usage=usage)
    (row,) = ledger.requests()
    assert row["usage_status"] == status
    assert row["input_tokens"] == (usage.input_tokens if usage else None)
    totals = ledger.totals()
    assert (totals["metered"], totals["unmetered"]) == ((1, 0) if status == "reported" else (0, 1))
    assert totals["input_tokens"] == (10 if status == "reported" else None)


def test_the_words_of_usage_are_those_of_the_tables() -> None:
    assert USAGE_STATUSES == tables.USAGE_STATUSES


def test_sums_are_over_what_is_metered_and_all_is_counted(ledger: Ledger) -> None:
    for number, usage in enumerate([Usage(10, 1), Usage(20, 2, cost_usd=1.5), Usage(99), Usage(0, 0), None]):
        ledger.start("run", "t", 1, str(number), **ASKED, omitted_tool_images=number)
        ledger.complete("run", "t", 1, str(number), usage=usage)
    ledger.start("run", "t", 1, "open", **ASKED)
    ledger.start("run", "t", 1, "denied", **ASKED)
    ledger.deny("run", "t", 1, "denied", denial="no")
    totals = ledger.totals("run")
    assert totals == {
        "requests": 7,
        "started": 1,
        "completed": 5,
        "denied": 1,
        "unsettled": 0,
        "settled_late": 0,
        "metered": 2,
        "unmetered": 4,
        "partial": 1,
        "zero_suspect": 1,
        "omitted_tool_images": 10,
        "input_tokens": 30,
        "output_tokens": 3,
        "cache_read_tokens": None,
        "cache_creation_tokens": None,
        "reasoning_tokens": None,
        "cost_usd": 1.5,
    }
    assert totals["metered"] + totals["unmetered"] + totals["denied"] == totals["requests"]
    assert ledger.totals("no such run")["requests"] == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Usage(-1),
        lambda: Usage(True),
        lambda: Usage(1.5),
        lambda: Usage(2**63),
        lambda: Usage(cost_usd=float("nan")),
        lambda: Usage(cost_usd=-1.0),
        lambda: started("", "t", 1, "q", **ASKED),
        lambda: started("r", " ", 1, "q", **ASKED),
        lambda: started("r", "t", -1, "q", **ASKED),
        lambda: started("r", "t", None, "q", **ASKED),
        lambda: started("r", "t", 1, None, **ASKED),
        lambda: started("r", "t", 1, "q", **ASKED, omitted_tool_images=-1),
    ],
)
def test_what_is_no_number_or_no_id_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a"):
        make()


# ---- delivered again -----------------------------------------------------------------------------------------------


def test_the_same_event_again_changes_nothing(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.start(*IDS, **ASKED, detail={"a": [1, 2]})
        ledger.unsettle(*IDS)
        ledger.complete(*IDS, usage=Usage(1, 2, cost_usd=1), finish_reasons=("stop",))
    before = [*ledger.requests()]
    ledger.many(
        [
            completed(*IDS, usage=Usage(1, 2, cost_usd=1.0), finish_reasons=["stop"]),
            started(*IDS, **ASKED, detail={"a": [1, 2]}),
        ]
    )
    assert [*ledger.requests()] == before
    assert before[0]["settled_late"] is True


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (started(*IDS, model="m-2", operation="chat"), "another model"),
        (completed(*IDS, usage=Usage(1, 3)), "another output_tokens"),
        (completed(*IDS), "another input_tokens, output_tokens, usage_status"),
        (denied(*IDS, denial="no"), "has ended as 'completed'"),
        (unsettled(*IDS), "has ended as 'completed'"),
        (completed(*IDS[:3], "request-2"), "without a start on record"),
    ],
)
def test_what_contradicts_the_record_is_refused_and_nothing_changes(ledger: Ledger, event: Any, said: str) -> None:
    ledger.start(*IDS, **ASKED)
    ledger.complete(*IDS, usage=Usage(1, 2))
    before = [*ledger.requests()]
    with pytest.raises(LedgerConflictError, match=said):
        ledger.many([started("run-1", "t", 1, "good", **ASKED), event])
    assert [*ledger.requests()] == before  # nor is the good one of the batch half there
    assert ledger.evidence("run-1").complete


def test_a_denied_or_unsettled_request_is_not_denied_later(ledger: Ledger) -> None:
    ledger.start(*IDS, **ASKED)
    ledger.unsettle(*IDS)
    with pytest.raises(LedgerConflictError, match="ended as 'unsettled' and cannot be 'denied'"):
        ledger.deny(*IDS, denial="no")


def test_events_cannot_be_changed_or_deleted_by_anyone(ledger: Ledger, path: Path) -> None:
    ledger.start(*IDS, **ASKED)
    ledger.deny(*IDS, denial="no")
    with contextlib.closing(sqlite3.connect(path)) as other:
        for statement in ("UPDATE events SET model = 'x'", "DELETE FROM events", "DELETE FROM gaps WHERE 1"):
            with contextlib.suppress(sqlite3.IntegrityError):
                other.execute(statement)
                assert "gaps" in statement  # nothing is there to be deleted
        with pytest.raises(sqlite3.IntegrityError, match="has ended"):
            other.execute(
                "INSERT INTO events (run_id, trial_id, attempt, request_id, event, at, monotonic, usage_status)"
                " VALUES (?, ?, ?, ?, 'completed', '', 0, 'absent')",
                IDS,
            )
    assert states(ledger) == {"request-1": "denied"}


# ---- secrets -------------------------------------------------------------------------------------------------------

SECRETS = ("sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT", "hunter2hunter2", "tokentoken123456")
TEXT = f"{SECRETS[0]} https://joe:{SECRETS[1]}@h Bearer {SECRETS[2]}"


def test_secrets_in_any_field_reach_no_file(tmp_path: Path, path: Path) -> None:
    with Ledger(path) as ledger:
        ids = (TEXT, TEXT, 1, TEXT)
        ledger.start(
            *ids,
            model=TEXT,
            operation=TEXT,
            provider=TEXT,
            conversation_id=TEXT,
            detail={TEXT: [TEXT], "password": SECRETS[1]},
        )
        ledger.complete(*ids, finish_reasons=[TEXT], response_model=TEXT, response_id=TEXT, error_type=TEXT)
        ledger.start(*ids[:3], "2", **ASKED)
        ledger.deny(*ids[:3], "2", denial={"reason": TEXT, "authorization": SECRETS[2]})
        ledger.start(*ids[:3], "3", **ASKED)
        ledger.unsettle(*ids[:3], "3", reason=TEXT)
        ledger._gaps.add([written_id("run_id", TEXT)], f"failed with {TEXT}")
        ledger.start(*ids[:3], "4", **ASKED)
        assert len([*ledger.requests(TEXT)]) == 4
        assert not ledger.evidence(TEXT).complete
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert sorted(file.name for file in tmp_path.iterdir()) == [
            *("ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal", "ledger.sqlite.incomplete")
        ]
    for secret in SECRETS:
        assert secret.encode() not in written
    assert b"[redacted: API key]" in written


def test_ids_that_are_secrets_stay_apart(ledger: Ledger) -> None:
    for number in range(2):
        ledger.start("run", "t", 1, f"{SECRETS[0]}{number}", **ASKED)
    assert len(states(ledger)) == 2


# ---- what cannot be written ----------------------------------------------------------------------------------------


def test_a_full_ledger_does_not_break_the_run_and_says_so(ledger: Ledger, path: Path) -> None:
    ledger.start(*IDS, **ASKED)
    ledger._db.execute("PRAGMA max_page_count = 1")  # SQLite's own "disk full"; it rounds up to what is in use
    for number in range(2000):
        ledger.start("run-1", "t", 1, f"q{number}", **ASKED)
    ledger._db.execute("PRAGMA max_page_count = 1000000")
    kept = len(states(ledger))
    assert kept < 2001
    evidence = ledger.evidence("run-1")
    assert (evidence.complete, evidence.reason) == (False, "events were not recorded: database or disk is full")
    assert ledger.evidence("run-2").complete
    ledger.start("run-1", "t", 1, "after", **ASKED)  # the run goes on, and so does the ledger
    assert len(states(ledger)) == kept + 1
    with Ledger(path, read_only=True) as again:
        assert again.evidence("run-1") == evidence  # but what is lost stays lost
    path.with_name("ledger.sqlite.incomplete").unlink()
    with Ledger(path, read_only=True) as again:
        assert again.evidence("run-1") == evidence  # the ledger itself knows by now


FULL_DISK = """
    import json, resource, sys
    from faultbook.runtime.ledger import Ledger
    ledger = Ledger(sys.argv[1])
    ledger.start("run", "t", 1, "before", model="m", operation="chat")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most[1]))  # what is reserved can be written, nothing beyond
    for number in range(5):
        ledger.start("run", "t", 1, f"lost{number}", model="m", operation="chat")
    ledger.complete("run", "t", 1, "lost0")
    print(json.dumps([ledger.evidence("run").complete, ledger.evidence("other").complete]))
    sys.stdout.flush()
    import os
    os._exit(0)  # killed before anything can be mended
"""


def test_a_full_disk_leaves_a_word_beside_the_ledger_in_room_that_was_reserved(path: Path) -> None:
    done = script(FULL_DISK, path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [False, True]
    beside = path.with_name("ledger.sqlite.incomplete")
    assert beside.stat().st_size == 4096
    (line,) = beside.read_text().split("\n\n")[0].splitlines()
    assert json.loads(line)["run_id"] == "run"
    with Ledger(path) as again:
        assert states(again) == {"before": "started"}
        assert not again.evidence("run").complete
        assert again.evidence("other").complete
        assert again.verify() == []


def test_an_end_is_kept_where_its_start_was_lost(ledger: Ledger) -> None:
    ledger._gaps.add(["run"], "events were not recorded: the disk is full")
    ledger.complete("run", "t", 1, "q", usage=Usage(1, 2))
    (row,) = ledger.requests()
    assert (row["state"], row["has_start"], row["seconds"]) == ("completed", False, None)
    ledger.start("run", "t", 1, "q", **ASKED)  # delivered again after all
    (row,) = ledger.requests()
    assert (row["has_start"], row["model"]) == (True, "m-1")


def test_an_end_without_a_start_is_evidence_of_a_gap_by_itself(ledger: Ledger, path: Path) -> None:
    ledger._gaps.add(["run"], "x")
    ledger.complete("run", "t", 1, "q")
    path.with_name("ledger.sqlite.incomplete").unlink()
    ledger._gaps.reasons.clear()
    assert "without a start" in str(ledger.evidence("run").reason)


def test_a_ledger_that_is_locked_for_too_long_makes_a_gap_and_no_error(path: Path) -> None:
    with (
        Ledger(path, patience=0.05) as ledger,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        ledger.start(*IDS, **ASKED)
        assert "locked" in str(ledger.evidence("run-1").reason)
        assert ledger.settle_open("run-1") == 0
        other.execute("ROLLBACK")
        ledger.start(*IDS, **ASKED)
        assert states(ledger) == {"request-1": "started"}
        assert not ledger.evidence("run-1").complete


def test_a_ledger_that_was_moved_away_or_replaced_is_not_written_unseen(ledger: Ledger, path: Path) -> None:
    ledger.start(*IDS, **ASKED)
    moved = path.with_name("moved.sqlite")
    path.rename(moved)
    ledger.complete(*IDS)
    assert "moved or replaced" in str(ledger.evidence("run-1").reason)
    shutil.copy(moved, path)
    ledger.complete(*IDS)
    assert not ledger.evidence("run-1").complete


def test_after_closing_nothing_is_lost_in_silence(ledger: Ledger, path: Path) -> None:
    ledger.close()
    ledger.start(*IDS, **ASKED)
    assert "closed" in str(ledger.evidence("run-1").reason)
    with Ledger(path) as again:
        assert not again.evidence("run-1").complete


def test_a_line_beside_the_ledger_that_is_cut_off_speaks_against_every_run(ledger: Ledger, path: Path) -> None:
    path.with_name("ledger.sqlite.incomplete").write_text('{"run_id": "run-7", "rea')
    assert "cannot be read" in str(ledger.evidence("run-1").reason)


def test_a_disk_that_becomes_read_only(ledger: Ledger) -> None:
    ledger.start(*IDS, **ASKED)
    ledger._db.execute("PRAGMA query_only = 1")
    ledger.complete(*IDS)
    ledger._db.execute("PRAGMA query_only = 0")
    assert "readonly" in str(ledger.evidence("run-1").reason)
    assert states(ledger) == {"request-1": "started"}


READ_ONLY = """
    import os, sys
    from faultbook.errors import DataError
    from faultbook.runtime.ledger import Ledger
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    with Ledger(sys.argv[1], read_only=True) as ledger:
        print(ledger.totals()["requests"], ledger.evidence("run").complete)
    for file in sys.argv[1:]:
        try:
            Ledger(file)
        except DataError as error:
            print(error)
"""


def test_a_read_only_disk_can_be_read_and_is_no_place_to_write() -> None:
    with tempfile.TemporaryDirectory() as name:  # where others than its owner may look in, unlike pytest's own
        folder = Path(name)
        path = folder / "ledger.sqlite"
        with Ledger(path) as ledger:
            ledger.start("run", "t", 1, "before", **ASKED)
        path.chmod(0o444)
        folder.chmod(0o555)
        done = script(READ_ONLY, path, folder / "new.sqlite")
        folder.chmod(0o755)
    if "Permission denied" in done.stderr and "runtime" not in done.stderr:
        pytest.skip("another user may not run this Python")
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "1 True"
    assert "readonly database" in second
    assert "unable to open" in third


# ---- threads and processes -----------------------------------------------------------------------------------------


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    def add(thread: int) -> None:
        for number in range(50):
            ledger.start("run", f"t{thread}", 1, str(number), **ASKED)
            ledger.complete("run", f"t{thread}", 1, str(number), usage=Usage(1, 1))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    totals = ledger.totals("run")
    assert (totals["requests"], totals["metered"], totals["input_tokens"]) == (200, 200, 200)


def test_a_fork_has_a_connection_of_its_own(ledger: Ledger) -> None:
    ledger.start("run", "t", 1, "parent", **ASKED)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            ledger.start("run", "t", 1, "child", **ASKED)
            os._exit(0 if ledger.evidence("run").complete else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger.complete("run", "t", 1, "parent")
    assert states(ledger) == {"parent": "completed", "child": "started"}
    assert ledger.verify() == []


ADD_MANY = """
    import sys
    from faultbook.runtime.ledger import Ledger, Usage, completed, started
    path, process, events, batch = sys.argv[1], *map(int, sys.argv[2:])
    with Ledger(path, patience=60) as ledger:
        made = []
        for number in range(events // 2):
            ids = ("run", f"trial-{process}", 1, f"request-{number}")
            made += [started(*ids, model="m", operation="chat"), completed(*ids, usage=Usage(number, process))]
            while len(made) >= batch:
                ledger.many(made[:batch])
                del made[:batch]
        ledger.many(made)
"""


def many_processes(path: Path, processes: int, events: int, batch: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(ADD_MANY), str(path)]
    children = [subprocess.Popen([*command, *map(str, (n, events, batch))]) for n in range(processes)]
    assert [child.wait(600) for child in children] == [0] * processes
    half = events // 2
    with Ledger(path, read_only=True) as ledger:
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT COUNT(*) FROM events").fetchone() == (processes * events,)
        found = {(row["trial_id"], row["request_id"], row["input_tokens"], row["state"]) for row in ledger.requests()}
        assert found == {
            (f"trial-{n}", f"request-{number}", number, "completed") for n in range(processes) for number in range(half)
        }
        assert ledger.totals("run")["input_tokens"] == processes * half * (half - 1) // 2
        assert ledger.evidence("run").complete
        assert ledger.verify() == []


def test_processes_open_a_new_ledger_at_once_and_none_loses_an_event(path: Path) -> None:
    many_processes(path, 4, 100, batch=1)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 100])
def test_eight_processes_with_five_thousand_events_each(path: Path, batch: int) -> None:
    many_processes(path, 8, 5000, batch)


KILLED = """
    import sys
    from faultbook.runtime.ledger import Ledger
    ledger = Ledger(sys.argv[1])
    for number in range(10**6):
        ledger.start("run", "t", 1, str(number), model="m", operation="chat")
        print(number, flush=True)
"""


def test_what_was_written_before_a_kill_is_there(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = -1
        for line in process.stdout:
            last = int(line)
            if last >= 100:
                process.send_signal(signal.SIGKILL)
                break
        last = max([last, *(int(line) for line in process.stdout.read().split())])
    with Ledger(path) as ledger:
        kept = [int(request) for request in states(ledger)]
        assert kept == [*range(len(kept))]
        assert len(kept) - 1 in (last, last + 1)  # the one that was written and not yet said
        assert ledger.settle_open("run") == len(kept)
        assert ledger.verify() == []


# ---- any order of events -------------------------------------------------------------------------------------------


class AnyOrder(RuleBasedStateMachine):
    """The ledger against a dictionary that follows the rules as they are stated."""

    requests = st.sampled_from("ab")
    tokens = st.sampled_from([None, 0, 5])

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite", durability="normal")
        self.held: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        self.ledger.close()
        self.folder.cleanup()

    def offer(self, request: str, kind: str, payload: Any, event: Any) -> None:
        held = self.held.setdefault(request, {})
        ended = "completed" in held or "denied" in held or (kind == "denied" and "unsettled" in held)
        fits = kind == "started" or ("started" in held and not ended)
        if held[kind] == payload if kind in held else fits:
            held.setdefault(kind, payload)
            self.ledger.many([event])
        else:
            with pytest.raises(LedgerConflictError):
                self.ledger.many([event])

    @rule(request=requests, model=st.sampled_from(["m", "n"]))
    def start(self, request: str, model: str) -> None:
        self.offer(request, "started", model, started("r", "t", 1, request, model=model, operation="chat"))

    @rule(request=requests, tokens=tokens)
    def complete(self, request: str, tokens: int | None) -> None:
        self.offer(request, "completed", tokens, completed("r", "t", 1, request, usage=Usage(tokens, tokens)))

    @rule(request=requests, text=st.sampled_from(["x", "y"]))
    def deny(self, request: str, text: str) -> None:
        self.offer(request, "denied", text, denied("r", "t", 1, request, denial=text))

    @rule(request=requests, text=st.sampled_from(["x", "y"]))
    def unsettle(self, request: str, text: str) -> None:
        self.offer(request, "unsettled", text, unsettled("r", "t", 1, request, reason=text))

    @invariant()
    def agree(self) -> None:
        wanted = {}
        for request, held in self.held.items():
            for kind in ("completed", "denied", "unsettled", "started"):
                if kind in held:
                    wanted[request] = (kind, held.get("completed"))
                    break
        assert {row["request_id"]: (row["state"], row["input_tokens"]) for row in self.ledger.requests()} == wanted
        assert self.ledger.evidence("r").complete


def test_events_in_any_order() -> None:
    few = settings(max_examples=40, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(AnyOrder, settings=few)
