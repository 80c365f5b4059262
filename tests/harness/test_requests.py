from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.read import read_trials
from faultbook.harness.requests import read_requests, usage_by_trial
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.run import Run


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as made:
        for number, usage in enumerate(
            [Usage(input_tokens=10, output_tokens=2), Usage(input_tokens=5, output_tokens=1)]
        ):
            made.start("run", "t-1", 1, f"a{number}", model="m", operation="chat", omitted_tool_images=number)
            made.complete("run", "t-1", 1, f"a{number}", usage=usage)
        made.start("run", "t-2", 1, "b", model="m", operation="chat")
        made.complete("run", "t-2", 1, "b", usage=Usage(input_tokens=7, output_tokens=1))
        made.start("run", "t-2", 1, "c", model="m", operation="chat")
        made.unsettle("run", "t-2", 1, "c")
        made.start("run", "t-3", 1, "d", model="m", operation="chat")
        made.complete("run", "t-3", 1, "d", usage=Usage(input_tokens=0, output_tokens=0))
        made.start("run", "t-4", 1, "e", model="m", operation="chat")
        made.deny("run", "t-4", 1, "e", denial="forbidden")
        made.start("other", "t-1", 1, "f", model="m", operation="chat")
    return path


def test_a_ledger_that_the_runtime_wrote_is_read_as_a_file(ledger: Path) -> None:
    files = Files()
    found = read_requests(ledger.parent, "run", files=files)
    assert found["request_id"].tolist() == ["a0", "a1", "b", "c", "d", "e"]
    assert found["state"].tolist() == ["completed"] * 3 + ["unsettled", "completed", "denied"]
    assert found["input_tokens"].fillna(-1).tolist() == [10, 5, 7, -1, 0, -1]
    assert found["omitted_tool_images"].tolist()[:2] == [0, 1]
    assert found["ended"].isna().tolist() == [False, False, False, True, False, False]
    assert len(files.manifest()) == 1
    assert len(read_requests(ledger)) == 7


def test_what_trials_used(ledger: Path) -> None:
    used = usage_by_trial(read_requests(ledger, "run"))
    assert used["t-1", 1]["input_tokens"] == 15
    assert (used["t-1", 1]["requests"], used["t-1", 1]["usage_status"]) == (2, "reported")
    assert (used["t-2", 1]["requests"], used["t-2", 1]["usage_status"]) == (2, "partial")
    assert (used["t-3", 1]["input_tokens"], used["t-3", 1]["usage_status"]) == (None, "zero_suspect")
    assert ("t-4", 1) not in used  # denied: nothing was sent
    assert used["t-1", 1]["cost"] is None


def test_a_run_without_requests_and_no_ledger(ledger: Path, tmp_path: Path) -> None:
    assert read_requests(ledger, "nobody").empty
    assert usage_by_trial(read_requests(ledger, "nobody")) == {}
    with pytest.raises(DataError, match="no ledger of requests here"):
        read_requests(tmp_path / "elsewhere")


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 200])
def test_what_is_no_ledger_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a ledger that can be read"):
        read_requests(path)


def test_reading_changes_nothing(ledger: Path) -> None:
    before = {file.name: file.read_bytes() for file in ledger.parent.iterdir()}
    read_requests(ledger)
    after = {file.name: file.read_bytes() for file in ledger.parent.iterdir()}
    assert before == after


def test_costs_are_a_sum_only_where_every_request_has_one() -> None:
    rows = pd.DataFrame(
        {"trial_id": "t", "attempt": 1, "state": "completed", "usage_status": "reported", "cost": [0.1, 0.2]}
    ).assign(input_tokens=1, cache_tokens=pd.NA, output_tokens=1, cache_included=True)
    assert math.isclose(usage_by_trial(rows)["t", 1]["cost"], 0.3)
    assert usage_by_trial(rows.assign(cost=[0.1, None]))["t", 1]["cost"] is None


def test_trials_of_a_journal_get_what_their_requests_used(tmp_path: Path) -> None:
    place = tmp_path / ".runs"
    place.mkdir()
    with (
        Run.start(tmp_path, "ours", plan=[{"arm": "a", "task_id": "t", "attempt": 1}]) as run,
        Ledger(place / "ledger.sqlite") as ledger,
        run.trial("a", "t") as trial,
    ):
        ids = (run.run_id, trial.trial_id, trial.attempt, "q-1")
        ledger.start(*ids, model="m", operation="chat")
        ledger.complete(*ids, usage=Usage(input_tokens=10, output_tokens=2))
        trial.resolved = True
    files = Files()
    (row,) = read_trials(run.folder, files=files).to_dict("records")
    assert (row["resolved"], row["requests"], row["input_tokens"], row["usage_status"]) == (True, 1, 10, "reported")
    assert [Path(path).name for path in files.manifest()["path"]] == ["journal.jsonl", "ledger.sqlite"]
