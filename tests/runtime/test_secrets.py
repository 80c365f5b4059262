"""Secrets planted in whatever a caller can fill are in nothing that the runtime writes, names of files included.

Ids of runs, kinds of runs and names of events are the program's own words and are written as they are; so is what an
artifact holds, which is kept byte by byte.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from faultbook.harness import read_trials
from faultbook.runtime.artifacts import ArtifactStore
from faultbook.runtime.contract import Denial
from faultbook.runtime.journal import Journal, verify
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.ledger_export import write_otel
from faultbook.runtime.run import LEDGER, RUNS, Run, failed
from faultbook.runtime.runs import check, close_abandoned, describe
from faultbook.runtime.termination import Observation, ToolTimeout

# Put together here, so that no scanner of this file takes them for real ones.
API_KEY = "sk-ant-" + "api03-Zm9vYmFyQmF6UXV4MTIzNDU2Nzg5MA"
OTHER_KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BEARER = "eyPlanted0123456789" + "abcdefABCDEF"
PASSWORD = "hunter2" + "-correct-horse"
NAMED = "nothing like a secret"  # but for the name that it stands behind
PLANTED = {
    "API key": (API_KEY, API_KEY),
    "another API key": (OTHER_KEY, OTHER_KEY),
    "bearer token": (f"Authorization: Bearer {BEARER}", BEARER),
    "URL with a password": (f"https://reader:{PASSWORD}@db.example.org/x", PASSWORD),
}
TEXTS = [text for text, _ in PLANTED.values()]
ALL = " and ".join(TEXTS)
NESTED = {"list": [ALL, {"deeper": TEXTS}], ALL: ALL, "api_key": NAMED, "headers": {"Authorization": NAMED}}


def assert_clean(place: Path) -> None:
    """Neither the names nor the contents of any file below hold what was planted."""
    files = sorted(place.rglob("*"))
    assert any(path.is_file() for path in files)
    for path in files:
        written = str(path.relative_to(place)).encode() + (path.read_bytes() if path.is_file() else b"")
        found = [name for name, (_, secret) in PLANTED.items() if secret.encode() in written]
        assert (path.name, found) == (path.name, [])
        assert NAMED.encode() not in written, path.name


def test_what_is_planted_would_be_found(tmp_path: Path) -> None:
    """The test of the test: one of each, in a content and in a name."""
    for text, secret in PLANTED.values():
        (tmp_path / "file").write_text(f"x{text}y")
        with pytest.raises(AssertionError):
            assert_clean(tmp_path)
        (tmp_path / "file").unlink()
        (tmp_path / secret).touch()
        with pytest.raises(AssertionError):
            assert_clean(tmp_path)
        (tmp_path / secret).unlink()


def test_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "run-1")
    for text in (*TEXTS, ALL):
        returned = journal.append(
            "event", text=text, nested=NESTED, bytes=text.encode(), **{text: text, "token": NAMED}
        )
        assert PASSWORD not in json.dumps(returned)
        assert API_KEY not in json.dumps(returned)
    assert_clean(tmp_path)


def test_the_tail_that_is_set_aside_is_what_it_was_and_told_without_its_words(tmp_path: Path) -> None:
    """What another program wrote into a journal is moved, not read out: the journal itself stays clean."""
    Journal(tmp_path, "run-1").append("event")
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write(f'{{"broken": "{ALL}')
    Journal(tmp_path, "run-1")
    (tail,) = tmp_path.glob("*.tail-*")
    tail.unlink()
    assert_clean(tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    plan = [{"arm": text, "task_id": text, "attempt": 1} for text in TEXTS]
    command = [
        "report",
        "--api-key",
        NAMED,
        *TEXTS,
        *(f"--parameter=x={text}" for text in TEXTS),
        f"--password={NAMED}",
    ]
    with Run.start(tmp_path, "report", plan=plan, command=command, settings=NESTED | {"password": NAMED}) as started:
        yield started


def test_run_with_lease_and_journal(run: Run, tmp_path: Path) -> None:
    for text in TEXTS:
        with run.trial(text, text) as trial:
            trial.observation = failed(run.run_id, text)
            trial.usage = {"note": text, text: text, "api_key": NAMED}
            trial.seconds = {text: 1.0}
        with pytest.raises(ValueError, match="planted"), run.trial(f"arm {text}", f"task {text}"):
            raise ValueError(f"planted: {text}\n{ALL}")
        run.event("waiting", reason=text, **NESTED)
        with run.segments.measure(text):
            pass
    run.finish(failed(run.run_id, ALL))
    assert_clean(tmp_path)
    assert [finding["finding"] for finding in verify(run.folder)] == []
    assert describe(run.folder)["trials"]["finished"] == 2 * len(TEXTS), "they are told apart all the same"
    assert len(read_trials(run.folder)) == 2 * len(TEXTS)


@pytest.mark.parametrize(
    "seen",
    [
        {"tool_timeouts": (ToolTimeout("r", 1e18, ALL),)},
        {"denials": (Denial("unknown_model", ALL, reason=ALL, run_id="r", at=1e18),)},
        {"error_kind": ALL},
        {"error_kind": API_KEY, "error": ALL, "assistant_present": True, "stop_reason": "error"},
        {"assistant_present": True, "stop_reason": ALL},
    ],
    ids=lambda seen: ", ".join(seen),
)
def test_observations(run: Run, tmp_path: Path, seen: dict[str, Any]) -> None:
    seen = {name: _of_run(value, run.run_id) for name, value in seen.items()}
    with run.trial("a", "t") as trial:
        trial.observation = Observation(run.run_id, **seen)
    run.finish(Observation(run.run_id, **seen))
    assert_clean(tmp_path)


def _of_run(value: Any, run_id: str) -> Any:
    if not isinstance(value, tuple):
        return value
    (event,) = value
    if isinstance(event, ToolTimeout):
        return (ToolTimeout(run_id, event.at, event.tool),)
    return (event.stamped(run_id, event.at),)


def test_files_that_a_run_records(run: Run, tmp_path: Path) -> None:
    for secret in (API_KEY, BEARER):
        place = tmp_path / f"made Bearer {secret}"
        place.write_text("x")
        run.artifact(place)
        place.unlink()
        run.artifact(place)  # cannot be read any more
    run.finish()
    assert len(check(run.folder)) > 0
    assert_clean(tmp_path)


def test_what_closes_an_abandoned_run(tmp_path: Path) -> None:
    run = Run.start(tmp_path, "report", command=["report", *TEXTS], settings=NESTED)
    with Ledger(tmp_path / RUNS / LEDGER) as ledger:
        ledger.start(run.run_id, ALL, 1, ALL, model=ALL, operation="chat", detail=NESTED)
    run._lease.release()
    lease = json.loads((run.folder / "lease.json").read_text("utf-8"))
    (run.folder / "lease.json").write_text(json.dumps(lease | {"start_ticks": 1}))  # another process of our id
    close_abandoned(run.folder)
    assert describe(run.folder)["state"] == "dead"
    assert_clean(tmp_path)


def fill(ledger: Ledger, texts: Sequence[str] = (*TEXTS, ALL)) -> None:
    """Put every text into every field of every event."""
    usage = Usage(input_tokens=1, output_tokens=1)
    for text in texts:
        ids = (f"run {text}", f"trial {text}", 1)
        begin: dict[str, Any] = {"model": text, "operation": text, "provider": text, "conversation_id": text}
        for request in ("completed", "denied", "denied by a contract", "unsettled", "open"):
            ledger.start(*ids, f"{request} {text}", **begin, detail=NESTED | {text: text})
        end: dict[str, Any] = {"response_model": text, "response_id": text, "error_type": text}
        ledger.complete(*ids, f"completed {text}", usage=usage, finish_reasons=[text, text], **end, detail=NESTED)
        ledger.deny(*ids, f"denied {text}", denial={"kind": text, "rule": text, "reason": NESTED})
        ledger.deny(*ids, f"denied by a contract {text}", denial=Denial("unknown_model", text, reason=text))
        ledger.unsettle(*ids, f"unsettled {text}", reason=text)
        ledger.settle_open(f"run {text}", reason=text)


def test_ledger_and_its_export(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    with Ledger(file) as ledger:
        fill(ledger)
        assert_clean(tmp_path)  # with the write-ahead log
        assert ledger.totals()["requests"] == 5 * (len(TEXTS) + 1), "they are told apart all the same"
        write_otel(ledger.requests(), tmp_path / "spans.jsonl")
        ledger.evidence(f"run {ALL}")
    assert_clean(tmp_path)


def test_a_ledger_that_cannot_be_written_says_so_without_them(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    with Ledger(file, patience=0.05) as ledger:
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")  # somebody else's: it comes to no end
        try:
            fill(ledger, [ALL])
        finally:
            holder.execute("ROLLBACK")
            holder.close()
        assert not ledger.evidence(f"run {ALL}").complete
        fill(ledger)
    assert_clean(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("Bearer {}", "Bearer {}.txt", "api_key={}", "token={}.json", "folder/Bearer {}"),
        "https://u:{}@h",
    ],
)
def test_artifact_store(tmp_path: Path, name: str) -> None:
    for secret in (API_KEY, OTHER_KEY, BEARER, PASSWORD):
        store = ArtifactStore(tmp_path / "store", run_id=ALL)
        reference = store.put(b"content", name=name.format(secret))
        assert secret not in json.dumps(reference.as_dict())
        store.put(secret.encode()[:4], name=ALL)
        store.release(ALL)
    store.collect()
    assert_clean(tmp_path)
