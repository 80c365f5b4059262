"""What a report rests on: every file once with its digest, one that changes stops it, and dirty sources are named."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.evidence import SOURCE_COLUMNS, Evidence, check_files, evidence
from faultbook.harness.files import Files

COMMIT, OTHER = "c0ffee1234567890c0ffee1234567890c0ffee12", "deadbee"
NOTHING = "no revision is on record: what ran cannot be told from these files"
has_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="the extra [inspect] is not installed"
)


def job(folder: Path, config: dict[str, Any] | None = None, tasks: str = "tu") -> Path:
    """A Harbor job; its configuration may hold more."""
    folder.mkdir(parents=True)
    base = {"job_name": "j", "n_attempts": 1, "agents": [{"name": "a"}], "datasets": [{"task_names": list(tasks)}]}
    (folder / "config.json").write_text(json.dumps(base | (config or {})))
    for task in tasks:
        (folder / f"{task}__x").mkdir()
        result = {"task_name": task, "trial_name": f"{task}__x", "trial_uri": "u", "finished_at": "2026-07-01"}
        result |= {"config": {"agent": {"name": "a"}}, "verifier_result": {"rewards": {"reward": 1}}}
        (folder / f"{task}__x" / "result.json").write_text(json.dumps(result))
    return folder


def journal(folder: Path, source: Any) -> Path:
    folder.mkdir(parents=True)
    who = {"trial_id": "1", "arm": "a", "task_id": "t", "attempt": 1}
    events = [("run_started", {"kind": "r", "plan": [who], "source": source, "boot_id": "b"}), ("trial_started", who)]
    previous, lines = "0" * 64, []
    for seq, (event, data) in enumerate(events, start=1):
        record = {"seq": seq, "at": "2026-09-08T15:12:00+00:00", "monotonic": 1.0, "run_id": "r", "event": event}
        record |= {"data": data, "previous_sha256": previous}
        previous = hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        lines.append(json.dumps(record | {"sha256": previous}))
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def eval_log(file: Path, *members: tuple[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for name, document in members:
            archive.writestr(name, document if isinstance(document, (str, bytes)) else json.dumps(document))
    return file


def sources(found: Evidence) -> list[tuple[str | None, bool | None]]:
    assert list(found.sources.columns) == SOURCE_COLUMNS
    columns = found.sources[["revision", "dirty"]].astype(object)
    return [tuple(row) for row in columns.where(columns.notna(), None).itertuples(index=False, name=None)]


# ---- files


def test_every_file_that_was_read_is_listed_once(tmp_path: Path) -> None:
    run = job(tmp_path / "job")
    (run / "t__x" / "agent").mkdir()
    (run / "t__x" / "agent" / "trajectory.json").write_text("{}")
    (run / "not-read.log").write_text("x")
    (tmp_path / "link").symlink_to(run)
    found = evidence([run, tmp_path / "link", run])
    files = found.files.to_dict("records")
    names = [str(Path(row["path"]).relative_to(run)) for row in files]
    assert names == ["config.json", "t__x/agent/trajectory.json", "t__x/result.json", "u__x/result.json"]
    for row in files:
        content = Path(row["path"]).read_bytes()
        assert (row["bytes"], row["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert found.summary_frame() is found.files
    found.check()


def test_the_files_that_a_plan_is_read_from_are_listed(tmp_path: Path) -> None:
    run = job(tmp_path / "job", {"datasets": []})
    (run / "lock.json").write_text(json.dumps({"trials": []}))
    assert str(run / "lock.json") in set(evidence(run).files["path"])


@pytest.mark.parametrize("change", ["same length", "longer", "gone", "folder"])
def test_a_file_that_changed_since_stops_the_report(tmp_path: Path, change: str) -> None:
    run = job(tmp_path / "job")
    found = evidence(run)
    file = run / "u__x" / "result.json"
    content = file.read_bytes()
    file.unlink()
    if change == "folder":
        file.mkdir()
    elif change != "gone":
        file.write_bytes(content.replace(b"1}", b"0}") if change == "same length" else content + b" ")
    with pytest.raises(DataError) as error:
        found.check()
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    assert ("changed between reading and reporting" in str(error.value)) == (change in ("same length", "longer"))


def test_a_file_that_changes_between_the_trials_and_the_sources_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = job(tmp_path / "job", {"commit": COMMIT})
    real, seen = Files.read_bytes, []

    def and_change(self: Files, path: Path) -> bytes:
        content = real(self, path)
        seen.append(path.name)
        if seen.count("result.json") == 2 and "lock.json" not in seen:
            seen.append("lock.json")
            (run / "config.json").write_text(json.dumps({"commit": OTHER}))
        return content

    monkeypatch.setattr(Files, "read_bytes", and_change)
    found = None
    with pytest.raises(DataError, match="changed between reading and reporting; read it again"):
        found = evidence(run)
    assert found is None


def test_a_manifest_that_was_written_down_is_checked(tmp_path: Path) -> None:
    found = evidence(job(tmp_path / "job"))
    found.files.to_csv(tmp_path / "manifest.csv", index=False)
    check_files(pd.read_csv(tmp_path / "manifest.csv"))
    check_files(found.files[:0])


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        evidence(tmp_path / "nothing")
    with pytest.raises(DataError, match="no trials of a known format"):
        evidence(tmp_path)


def test_a_result_that_cannot_be_read_is_evidence_too(tmp_path: Path) -> None:
    run = job(tmp_path / "job")
    (run / "u__x" / "result.json").write_bytes(b'{"half":')
    assert str(run / "u__x" / "result.json") in set(evidence(run).files["path"])


# ---- sources


def test_a_run_without_any_revision_says_so(tmp_path: Path) -> None:
    run = job(tmp_path / "job")
    found = evidence(run)
    assert sources(found) == [(None, None)]
    assert found.sources.iloc[0][["run", "says"]].tolist() == [str(run), NOTHING]
    assert pd.isna(found.sources.loc[0, "file"])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"commit": COMMIT}, (COMMIT, None)),
        ({"git": {"commit_hash": COMMIT, "is_dirty": True}}, (COMMIT, True)),
        ({"a": [{"b": {"git_commit_id": OTHER, "dirty": False}}]}, (OTHER, False)),
        ({"harness": {"git_sha": OTHER.upper(), "has_uncommitted_changes": True}}, (OTHER.upper(), True)),
        ({"source": {"revision": OTHER, "dirty": "yes"}}, (OTHER, None)),
        ({"source": {"revision": OTHER, "dirty": 1}}, (OTHER, None)),
        ({"dirty": True, "source": {"head": OTHER}}, (OTHER, None)),  # of what that is said is not known
        ({"commit": "main"}, (None, None)),
        ({"commit": "abc123"}, (None, None)),
        ({"commit": 1234567}, (None, None)),
        ({"commit": f"{COMMIT}\n"}, (None, None)),
        ({"commit": None, "dirty": True}, (None, None)),
        ({"commit": {"commit": COMMIT}}, (COMMIT, None)),
        ({"message": f"commit {COMMIT}"}, (None, None)),
    ],
)
def test_revisions_in_nested_documents(tmp_path: Path, document: Any, expected: tuple[str | None, bool | None]) -> None:
    assert sources(evidence(job(tmp_path / "job", {"more": document}))) == [expected]


@pytest.mark.parametrize(
    ("dirty", "says"),
    [
        (True, "uncommitted changes ran: the revision alone does not reproduce it"),
        (False, "a clean tree of this revision"),
        (None, "whether the tree had uncommitted changes is not on record: the revision alone may not be what ran"),
    ],
)
def test_what_a_revision_is_worth(tmp_path: Path, dirty: bool | None, says: str) -> None:
    run = job(tmp_path / "job", {"source": {"commit": COMMIT, "dirty": dirty}})
    found = evidence(run)
    assert found.sources[["run", "file", "says"]].values.tolist() == [[str(run), "config.json", says]]


def test_the_same_revision_is_named_once_and_others_beside_it(tmp_path: Path) -> None:
    run = job(tmp_path / "job", {"x": {"commit": COMMIT}, "y": {"commit": COMMIT}, "z": {"commit": OTHER}})
    (run / "lock.json").write_text(json.dumps({"harbor": {"commit": COMMIT, "dirty": True}, "v": {"commit": OTHER}}))
    assert sources(evidence(run)) == [(COMMIT, None), (OTHER, None), (COMMIT, True)]


def test_documents_that_nest_without_end_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    deep: Any = {"commit": COMMIT}
    for _ in range(50):
        deep = {"x": [deep]}
    run = job(tmp_path / "job", {"deep": deep})
    (run / "lock.json").write_text("[" * 5_000)
    (run / "result.json").write_bytes(b"\0\0")
    assert sources(evidence(run)) == [(None, None)]


@pytest.mark.parametrize("named", ["folder", "file"])
@pytest.mark.parametrize("dirty", [True, False, None])
def test_the_source_of_a_journal(tmp_path: Path, named: str, dirty: bool | None) -> None:
    run = journal(tmp_path / "run", {"commit": COMMIT, "dirty": dirty})
    found = evidence(run if named == "folder" else run / "journal.jsonl")
    assert sources(found) == [(COMMIT, dirty)]
    assert found.sources["file"].tolist() == ["journal.jsonl"]
    assert len(found.files) == 1


def test_a_journal_with_broken_lines(tmp_path: Path) -> None:
    run = journal(tmp_path / "run", {"commit": COMMIT, "dirty": True})
    file = run / "journal.jsonl"
    file.write_bytes(b"\xff{\n" + file.read_bytes() + b'{"half')
    assert sources(evidence(run, "journal")) == [(COMMIT, True)]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["", ""], [(None, None)]),
        (["0.25.0", ""], [(None, None)]),
        ([COMMIT, f"{COMMIT}+dirty"], [(COMMIT, None), (COMMIT, True)]),
        ([f"{COMMIT}+clean", f"{COMMIT}+clean"], [(COMMIT, False)]),
    ],
)
def test_the_versions_in_a_table(
    tmp_path: Path, versions: list[str], expected: list[tuple[str | None, bool | None]]
) -> None:
    lines = [f"a,t{i},1,finished,true,{version}" for i, version in enumerate(versions)]
    for name, rest in (("t", lines), ("other", [f"a,x,1,finished,true,{OTHER}"])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["arm,task_id,attempt,state,resolved,source_version", *rest]))
    assert sources(evidence(tmp_path / "t.csv")) == expected
    both = evidence([tmp_path / "t.csv", tmp_path / "other.csv"])
    assert sources(both) == [*expected, (OTHER, None)]


def test_lm_eval_s_results_name_a_commit(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "model"
    folder.mkdir(parents=True)
    date = "2026-07-01T10-00-00.000000"
    record = {"doc_id": 0, "doc": {"commit": OTHER}, "doc_hash": "h", "filter": "none", "metrics": ["acc"], "acc": 1.0}
    (folder / f"samples_task_{date}.jsonl").write_text(json.dumps(record) + "\n")
    (folder / f"results_{date}.json").write_text(json.dumps({"git_hash": OTHER[:7], "model_name": "m"}))
    found = evidence(tmp_path / "out")
    assert sources(found) == [(OTHER[:7], None)]
    assert found.sources["file"].tolist() == [f"model/results_{date}.json"]
    record["doc"] = {"commit": COMMIT}  # what a sample holds is not what ran it
    (folder / f"samples_task_{date}.jsonl").write_text(json.dumps(record) + "\n")
    assert sources(evidence(folder / f"samples_task_{date}.jsonl")) == [(None, None)]


# ---- logs that are zip files

HEADER = {"version": 2, "status": "success", "eval": {"revision": {"type": "git", "commit": OTHER, "dirty": True}}}


@has_inspect
@pytest.mark.parametrize("place", ["file", "folder", "deeper"])
def test_the_header_of_an_inspect_log(tmp_path: Path, place: str) -> None:
    log = eval_log(tmp_path / "logs" / ("x" if place == "deeper" else "") / "a.eval", ("header.json", HEADER))
    if place == "deeper":
        eval_log(tmp_path / "logs" / "b.eval", ("header.json", {"eval": {}}))
    found = evidence(log if place == "file" else tmp_path / "logs")
    assert sources(found) == [(OTHER, True)]
    assert found.sources["file"].tolist() == [f"{'x/' if place == 'deeper' else ''}a.eval:header.json"]


@has_inspect
def test_the_last_of_two_headers_counts_and_samples_do_not(tmp_path: Path) -> None:
    first = {"eval": {"revision": {"commit": COMMIT, "dirty": False}}}
    with pytest.warns(UserWarning, match="Duplicate name"):
        log = eval_log(
            tmp_path / "a.eval", ("header.json", first), ("samples/1_epoch_1.json", first), ("header.json", HEADER)
        )
    assert sources(evidence(log)) == [(OTHER, True)]


@has_inspect
def test_a_log_that_was_never_closed_has_its_start(tmp_path: Path) -> None:
    log = eval_log(tmp_path / "a.eval", ("_journal/start.json", HEADER))
    assert sources(evidence(log)) == [(OTHER, True)]


@has_inspect
@pytest.mark.parametrize("header", [b"", b"{", b"[" * 5_000, b"\xff\xfe", "[]", '{"commit": NaN}'])
def test_a_header_that_cannot_be_read(tmp_path: Path, header: Any) -> None:
    log = eval_log(tmp_path / "a.eval", ("header.json", header))
    assert sources(evidence(log)) == [(None, None)]


@has_inspect
def test_a_log_that_is_no_zip_file(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04 half a file")
    found = evidence(tmp_path / "a.eval")
    assert sources(found) == [(None, None)]
    assert len(found.files) == 1


@has_inspect
def test_a_log_of_one_document(tmp_path: Path) -> None:
    sample = {"id": 1, "epoch": 1, "metadata": {"commit": COMMIT}}
    file = tmp_path / "2026-07-01T10-00-00_task.json"
    file.write_text(json.dumps(HEADER | {"samples": [sample]}))
    assert sources(evidence(file)) == [(OTHER, True)]


# ---- whatever documents hold

LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from([COMMIT, OTHER, "main", ""]))
KEYS = st.sampled_from(["commit", "revision", "dirty", "is_dirty", "x"])
INNER = st.one_of(LEAF, st.lists(LEAF, max_size=2), st.dictionaries(KEYS, LEAF, max_size=3))
DOCUMENTS = st.one_of(INNER, st.lists(INNER, max_size=3), st.dictionaries(KEYS, INNER, max_size=4))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS)
def test_no_revision_is_made_up(tmp_path: Path, document: Any) -> None:
    run = tmp_path / "job"
    if not run.exists():
        job(run, tasks="t")
    (run / "lock.json").write_text(json.dumps({"document": document}))
    found = sources(evidence(run))
    assert found
    assert {revision for revision, _ in found} <= {COMMIT, OTHER, None}
    text = json.dumps(document)
    assert all(revision is None or revision in text for revision, _ in found)
    assert all(dirty is None or "dirty" in text for _, dirty in found)
