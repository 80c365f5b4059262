"""lm-evaluation-harness: samples files, one line for each document and filter."""

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

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats import lm_eval
from faultbook.tables import Trials, typed

DATE = "2026-01-02T03-04-05.678901"
LATER = "2026-01-03T03-04-05.678901"
COLUMNS = set(Trials.to_schema().columns)
NEVER = ("cause", "cause_source", "reward_valid", "input_tokens", "cost", "total_seconds", "started_at", "attempt")


def digest(number: int) -> str:
    return hashlib.sha256(f"document {number}".encode()).hexdigest()


def sample(number: int = 0, under: str = "none", **changes: Any) -> dict[str, Any]:
    """A record by `lm_eval/evaluator.py`; metrics stand beside its own keys."""
    record = {
        "doc_id": number,
        "doc": {"question": "1 + 1?"},
        "target": "2",
        "arguments": {"gen_args_0": {"arg_0": "1 + 1?"}},
        "resps": [["2"]],
        "filtered_resps": ["2"],
        "filter": under,
        "metrics": ["acc"],
        "doc_hash": digest(number),
        "prompt_hash": "p",
        "target_hash": "t",
        "acc": 1.0,
    }
    return {**record, **changes}


def results(**changes: Any) -> dict[str, Any]:
    base = {"model_name": "maker/model-1", "lm_eval_version": "0.4.13", "higher_is_better": {"sums": {"acc": True}}}
    return {"results": {"sums": {"acc,none": 0.5}}, "date": 1767322000.0, **base, **changes}


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def samples_file(folder: Path, *records: Any, task: str = "sums", date: str = DATE) -> Path:
    return write(folder / f"samples_{task}_{date}.jsonl", *records)


def rows(path: Path, files: Files | None = None, **settings: Any) -> list[dict[str, Any]]:
    found = list(lm_eval.read(path, files or Files(), **settings))
    assert all(set(row) <= COLUMNS for row in found)
    assert all(row.get(name) is None for row in found for name in NEVER)
    assert all(row["usage_status"] == "absent" for row in found)
    typed([{"attempt": 1, **row} for row in found], Trials)
    return found


def row(path: Path, **settings: Any) -> dict[str, Any]:
    (found,) = rows(path, **settings)
    return found


def test_a_document_is_a_task(tmp_path: Path) -> None:
    path = samples_file(tmp_path / "model", sample(7))
    found = row(path)
    assert (found["task_id"], found["task_checksum"]) == ("sums/7", digest(7))
    assert (found["state"], found["resolved"], found["reward"]) == ("finished", True, 1.0)
    assert (found["reward_key"], found["run_id"], found["arm"]) == ("acc,none", DATE, "model")
    assert found["source_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["note"] is None


def test_another_document_at_the_same_place_has_another_checksum(tmp_path: Path) -> None:
    one = row(samples_file(tmp_path / "a", sample(7)))
    other = row(samples_file(tmp_path / "b", sample(7, doc_hash=digest(8))))
    assert one["task_id"] == other["task_id"]
    assert one["task_checksum"] != other["task_checksum"]


def test_why_it_ended_is_not_on_record(tmp_path: Path) -> None:
    assert "cause" not in row(samples_file(tmp_path, sample()))  # not "completed" either


@pytest.mark.parametrize(
    ("value", "reward", "resolved"),
    [
        (1, 1.0, True),
        (0.0, 0.0, False),
        (0.5, 0.5, False),
        (True, None, True),
        ("False", None, False),  # how the harness writes a truth value of NumPy's
        ("0.5", None, None),
        ([-3.2, 7], None, None),
        (None, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
        (27.5, 27.5, None),
        (-0.1, -0.1, None),
    ],
)
def test_verdicts_follow_from_numbers_in_0_to_1(tmp_path: Path, value: Any, reward: Any, resolved: bool | None) -> None:
    found = row(samples_file(tmp_path, sample(acc=value)))
    assert (found["reward"], found["resolved"]) == (reward, resolved)
    assert (found["note"] is None) == (resolved is not None)


def test_where_lower_is_better_no_verdict_follows(tmp_path: Path) -> None:
    write(tmp_path / f"results_{DATE}.json", results(higher_is_better={"sums": {"acc": False}}))
    found = row(samples_file(tmp_path, sample()))
    assert (found["reward"], found["resolved"]) == (1.0, None)
    assert "lower is better" in found["note"]


FILTERED = [sample(i, under, acc=float(under == "flexible")) for under in ("strict", "flexible") for i in range(3)]


def test_filters_double_documents_and_rows_are_documents(tmp_path: Path) -> None:
    path = samples_file(tmp_path, *FILTERED)
    found = rows(path)
    assert [one["task_id"] for one in found] == ["sums/0", "sums/1", "sums/2"]
    assert {(one["reward"], one["resolved"], one["reward_key"]) for one in found} == {(None, None, None)}
    assert all("several filters (strict, flexible)" in one["note"] for one in found)
    assert rows(path, metric="acc") == found  # a metric alone does not choose among filters


@pytest.mark.parametrize(("under", "resolved"), [("strict", False), ("flexible", True)])
def test_metric_and_filter_as_they_are_printed(tmp_path: Path, under: str, resolved: bool) -> None:
    found = rows(samples_file(tmp_path, *FILTERED), metric=f"acc,{under}")
    assert [(one["task_id"], one["resolved"]) for one in found] == [(f"sums/{i}", resolved) for i in range(3)]
    assert {one["reward_key"] for one in found} == {f"acc,{under}"}


@pytest.mark.parametrize("metric", ["acc,loose", "acc,", "f1,strict", ",strict"])
def test_what_is_not_there_loses_no_document(tmp_path: Path, metric: str) -> None:
    found = rows(samples_file(tmp_path, *FILTERED), metric=metric)
    assert [one["task_id"] for one in found] == ["sums/0", "sums/1", "sums/2"]
    if metric != ",strict":  # a filter and the sole metric
        assert {one["resolved"] for one in found} == {None}
        assert all(one["note"] for one in found)


def test_several_metrics_need_a_name(tmp_path: Path) -> None:
    path = samples_file(tmp_path, sample(metrics=["acc", "acc_norm"], acc_norm=0.0))
    assert row(path)["resolved"] is None
    assert "several rewards (acc, acc_norm)" in row(path)["note"]
    assert row(path, metric="acc_norm")["resolved"] is False
    assert row(path, metric="acc_norm,none")["reward_key"] == "acc_norm,none"


def test_a_metric_called_reward_goes_first(tmp_path: Path) -> None:
    assert row(samples_file(tmp_path, sample(metrics=["acc", "reward"], reward=0.0)))["resolved"] is False


def test_records_that_do_not_list_their_metrics(tmp_path: Path) -> None:
    record = sample(acc=0.0)
    del record["metrics"], record["filter"]
    found = row(samples_file(tmp_path, record))
    assert (found["resolved"], found["reward_key"]) == (False, "acc")


def test_a_rerun_under_the_same_date_is_the_same_trial_twice(tmp_path: Path) -> None:
    found = rows(samples_file(tmp_path, sample(0), sample(1), sample(0, acc=0.0), sample(1)))
    assert [one["task_id"] for one in found] == ["sums/0", "sums/1", "sums/0", "sums/1"]
    assert found[0]["trial_id"] == found[2]["trial_id"] != found[1]["trial_id"]


def test_another_date_is_another_run(tmp_path: Path) -> None:
    samples_file(tmp_path, sample())
    samples_file(tmp_path, sample(), date=LATER)
    one, other = rows(tmp_path)
    assert (one["run_id"], other["run_id"]) == (DATE, LATER)
    assert one["trial_id"] != other["trial_id"]


def test_equal_documents_at_two_places_are_two_trials(tmp_path: Path) -> None:
    one, other = rows(samples_file(tmp_path, sample(0), sample(1, doc_hash=digest(0))))
    assert one["trial_id"] != other["trial_id"]


def test_a_document_without_a_number_goes_by_its_hash(tmp_path: Path) -> None:
    found = row(samples_file(tmp_path, sample(doc_id=None)))
    assert found["task_id"] == f"sums/{digest(0)[:12]}"


def test_a_folder_of_models(tmp_path: Path) -> None:
    for name in ("maker__model-1", "maker__model-2"):
        samples_file(tmp_path / "out" / name, sample())
        samples_file(tmp_path / "out" / name, sample(), task="more_sums_2")
    write(tmp_path / "out" / "maker__model-1" / f"results_{DATE}.json", results())
    found = rows(tmp_path)
    assert [(one["arm"], one["task_id"]) for one in found] == [
        ("maker/model-1", "more_sums_2/0"),
        ("maker/model-1", "sums/0"),
        ("maker__model-2", "more_sums_2/0"),
        ("maker__model-2", "sums/0"),
    ]
    assert [one["source_version"] for one in found] == ["0.4.13", "0.4.13", None, None]
    assert lm_eval.recognises(tmp_path)
    assert lm_eval.planned(tmp_path, Files()) is None


def test_one_model_is_one_arm_though_a_results_file_is_torn(tmp_path: Path) -> None:
    folder = tmp_path / "maker__model-1"
    samples_file(folder, sample())
    samples_file(folder, sample(), date=LATER)
    write(folder / f"results_{DATE}.json", results())
    write(folder / f"results_{LATER}.json", b"{half")
    one, other = rows(folder)
    assert one["arm"] == other["arm"] == "maker/model-1"
    assert "not a JSON document" in other["note"]
    assert {found["arm"] for found in rows(folder, arm="x")} == {"x"}


def test_lines_that_are_no_records_are_rows(tmp_path: Path) -> None:
    found = rows(samples_file(tmp_path, sample(0), b"[1]", {"acc": 1.0}, b"", sample(1), b'{"doc_id": 2, "ac'))
    assert [one["state"] for one in found] == ["finished", "unreadable", "unreadable", "finished", "unreadable"]
    assert [one.get("task_id") for one in found] == ["sums/0", None, None, "sums/1", None]
    assert found[4]["note"].startswith("line 6: not a JSON document")


@pytest.mark.parametrize("content", [b"", b"\n\0\n", b"noise", b"[]"])
def test_a_file_without_a_record_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"samples_sums_{DATE}.jsonl"
    path.write_bytes(content)
    found = row(path)
    assert (found["state"], found.get("task_id")) == ("unreadable", None)
    assert found["note"]


def test_bytes_that_are_no_text_lose_nothing(tmp_path: Path) -> None:
    content = json.dumps(sample(target="@")).encode().replace(b"@", b"\xe2\xff")
    assert row(samples_file(tmp_path, content))["resolved"] is True


def test_results_without_samples_are_said(tmp_path: Path) -> None:
    samples_file(tmp_path, sample())
    write(tmp_path / f"results_{DATE}.json", results())
    write(tmp_path / f"results_{LATER}.json", results())
    own, lost = rows(tmp_path)
    assert own["state"] == "finished"
    assert (lost["state"], lost["run_id"]) == ("unreadable", LATER)
    assert "--log_samples" in lost["note"]


def test_links_inside_are_not_followed_and_not_lost(tmp_path: Path) -> None:
    elsewhere = samples_file(tmp_path / "elsewhere", sample())
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "model").symlink_to(elsewhere.parent)
    (folder / elsewhere.name).symlink_to(elsewhere)
    (folder / f"samples_more_{DATE}.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / f"results_{DATE}.json").symlink_to(write(tmp_path / "results.json", results()))
    found = rows(folder)
    assert [one["state"] for one in found] == ["unreadable"] * 3
    assert {one["arm"] for one in found} == {"place", "model"}
    assert all("symbolic link" in one["note"] for one in found)


def test_the_named_path_may_be_a_link(tmp_path: Path) -> None:
    path = samples_file(tmp_path / "model", sample())
    (tmp_path / "link").symlink_to(path.parent)
    assert row(tmp_path / "link")["arm"] == "link"
    (tmp_path / path.name).symlink_to(path)
    assert row(tmp_path / path.name)["resolved"] is True


def test_recognises(tmp_path: Path) -> None:
    assert lm_eval.recognises(samples_file(tmp_path / "m", sample()))
    assert lm_eval.recognises(write(tmp_path / "n" / "samples_sums.jsonl", sample()))
    assert lm_eval.recognises(tmp_path / "n")
    assert not lm_eval.recognises(write(tmp_path / "o" / "samples_sums.jsonl", {"x": 1}))
    assert not lm_eval.recognises(write(tmp_path / "o" / "results_2026.json", {}))
    assert not lm_eval.recognises(tmp_path / "o")
    assert not lm_eval.recognises(tmp_path / "nowhere")


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(lm_eval.read(tmp_path / "nowhere", Files()))


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.text(max_size=4),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=2), st.dictionaries(st.text(max_size=2), st.none()),
)  # fmt: skip
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(sample(), VALUES))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(RECORDS, VALUES), max_size=4), VALUES, st.sampled_from([None, "acc", "acc,none", "x,y", ","]))
def test_whatever_stands_there_nothing_is_made_up(records: list[Any], about: Any, metric: str | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = samples_file(Path(place), *records)
        write(Path(place) / f"results_{DATE}.json", results(higher_is_better=about, model_name=about))
        given_values = [one.get("acc") for one in records if isinstance(one, dict)]
        for found in rows(Path(place), metric=metric):
            if (found.get("reward_key") or "").startswith("acc") and found["resolved"] is not None:
                assert any(
                    value in (found["resolved"], found["reward"], str(found["resolved"])) for value in given_values
                )
            if found["state"] == "unreadable":
                assert found.get("resolved") is None
        lm_eval.recognises(path)


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.integers(0, 300).map(lambda n: json.dumps(sample()).encode()[:n])))
def test_torn_files_and_noise_are_unreadable_rows(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"samples_sums_{DATE}.jsonl"
        path.write_bytes(content)
        for found in rows(path):
            assert found["state"] == "unreadable"
            assert pd.isna(found.get("resolved"))
