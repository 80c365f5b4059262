"""SWE-bench: run reports and instances' reports, and what they leave open."""

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
from faultbook.harness.formats import swe_bench
from faultbook.tables import Trials, typed
from faultbook.values import text

COLUMNS = set(Trials.to_schema().columns)
NEVER = ("reward", "input_tokens", "output_tokens", "cost", "total_seconds", "started_at", "trial_id", "attempt")
MODEL = "maker__model-1.5"


def run_report(**changes: Any) -> dict[str, Any]:
    """A run report of schema 2 by `swebench/harness/reporting.py`: every instance of the dataset is in one list."""
    lists = {
        "completed_ids": ["a__a-1", "a__a-2", "a__a-3"],
        "resolved_ids": ["a__a-1"],
        "unresolved_ids": ["a__a-2"],
        "error_ids": ["a__a-3", "a__a-4"],
        "empty_patch_ids": ["a__a-5"],
        "incomplete_ids": ["a__a-6"],
        "submitted_ids": ["a__a-1", "a__a-2", "a__a-3", "a__a-4", "a__a-5", "z__z-9"],
    }
    counts = {"total_instances": 6, "submitted_instances": 6, "completed_instances": 3, "resolved_instances": 1}
    return {**counts, **lists, "schema_version": 2, **changes}


def instance_report(name: str = "a__a-1", **changes: Any) -> dict[str, Any]:
    """An instance's report by `swebench/harness/grading.py`."""
    entry = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": True}
    return {name: {**entry, "tests_status": {"FAIL_TO_PASS": {"success": ["t"], "failure": []}}, **changes}}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return path


def logged(place: Path, name: str, document: Any = None, *, model: str = MODEL, run: str = "r1") -> Path:
    folder = place / "logs" / "run_evaluation" / run / model / name
    write(folder / "run_instance.log", b"started")
    if document is not None:
        write(folder / "report.json", document)
    return folder


def rows(path: Path, files: Files | None = None, **settings: Any) -> list[dict[str, Any]]:
    found = list(swe_bench.read(path, files or Files(), **settings))
    assert all(set(row) <= COLUMNS for row in found)
    assert all(row.get(name) is None for row in found for name in NEVER)
    assert all(row["usage_status"] == "absent" for row in found)
    typed([{"attempt": 1, **row} for row in found], Trials)
    return found


def row(path: Path, **settings: Any) -> dict[str, Any]:
    (found,) = rows(path, **settings)
    return found


def by_task(path: Path, **settings: Any) -> dict[Any, dict[str, Any]]:
    found = rows(path, **settings)
    named = {one["task_id"]: one for one in found}
    assert len(named) == len(found)
    return named


def test_a_run_report_names_every_instance_once(tmp_path: Path) -> None:
    path = write(tmp_path / f"{MODEL}.r1.json", run_report())
    found = by_task(path)
    states = {task: (one["state"], one.get("resolved")) for task, one in found.items()}
    assert states == {
        "a__a-1": ("finished", True),
        "a__a-2": ("finished", False),
        "a__a-3": ("unreadable", None),  # in completed_ids and in error_ids: its report is there, empty or torn
        "a__a-4": ("finished", None),  # no report: the patch, the tests or a container failed, nobody knows which
        "a__a-5": ("finished", False),  # nothing was handed in
        "a__a-6": ("unfinished", None),  # incomplete_ids: no prediction
        "z__z-9": ("unfinished", None),  # submitted, and outside the dataset
    }
    assert {(one["arm"], one["run_id"]) for one in found.values()} == {(MODEL, "r1")}
    assert {one["source_sha256"] for one in found.values()} == {hashlib.sha256(path.read_bytes()).hexdigest()}


def test_an_evaluation_s_error_is_unclassified(tmp_path: Path) -> None:
    found = by_task(write(tmp_path / "m.r.json", run_report()))
    error = found["a__a-4"]
    assert (error["cause"], error["exception_type"], error["reward_valid"]) == ("unclassified", "error", None)
    assert error["note"]
    assert found["a__a-3"].get("cause") is None
    assert found["a__a-6"].get("cause") is None
    assert found["a__a-5"]["exception_type"] == "empty_patch"


def test_failures_of_the_infrastructure_are_advice(tmp_path: Path) -> None:
    lists = {"infra_failure_ids": ["a__a-2"], "ambiguous_failure_ids": ["a__a-5"]}
    reasons = {"a__a-2": "docker pull failed", "a__a-5": "no_tests_collected"}
    found = by_task(write(tmp_path / "m.r.json", run_report(**lists, failure_reasons=reasons)))
    infra, ambiguous = found["a__a-2"], found["a__a-5"]
    assert (infra["resolved"], infra["cause"], infra["reward_valid"]) == (False, "sandbox", False)
    assert (infra["cause_source"], infra["exception_type"]) == ("observed", "infra_failure")
    assert "docker pull failed" in infra["note"]
    assert (ambiguous["resolved"], ambiguous["cause"], ambiguous["reward_valid"]) == (False, "unclassified", None)


def test_an_infrastructure_failure_without_another_list_is_still_there(tmp_path: Path) -> None:
    found = by_task(write(tmp_path / "m.r.json", run_report(infra_failure_ids=["b__b-1"])))
    assert (found["b__b-1"]["state"], found["b__b-1"]["resolved"]) == ("finished", None)


def test_contradicting_lists_give_no_verdict(tmp_path: Path) -> None:
    found = by_task(write(tmp_path / "m.r.json", run_report(unresolved_ids=["a__a-1", "a__a-2"])))
    assert (found["a__a-1"]["state"], found["a__a-1"]["resolved"]) == ("finished", None)
    assert "as resolved and as unresolved" in found["a__a-1"]["note"]


def test_a_report_of_before_unresolved_ids(tmp_path: Path) -> None:
    document = run_report()
    del document["unresolved_ids"]
    del document["schema_version"]
    found = by_task(write(tmp_path / "m.r.json", document))
    assert [found[f"a__a-{i}"].get("resolved") for i in range(1, 7)] == [True, False, None, None, False, None]


def test_a_report_that_lists_resolved_instances_alone_is_unreadable(tmp_path: Path) -> None:
    # whoever is not in it may have been judged or not: with resolved ones alone every pair would be a success
    older = {"resolved_ids": ["a__a-1"], "total_instances": 3}
    found = row(write(tmp_path / "m.r.json", older))
    assert (found["state"], found["task_id"], found.get("resolved")) == ("unreadable", None, None)


@pytest.mark.parametrize("content", [b"", b"\0\0", b'{"resolved_ids": ["a', b"[]", b"7", b"\xe2\xff"])
def test_a_run_report_that_is_none_is_unreadable(tmp_path: Path, content: bytes) -> None:
    found = row(write(tmp_path / "m.r.json", content))
    assert (found["state"], found["task_id"], found["arm"]) == ("unreadable", None, "m")
    assert found["note"]
    assert swe_bench.planned(tmp_path / "m.r.json", Files()) is None


@pytest.mark.parametrize(
    ("name", "arm", "run"),
    [
        ("gpt-4.1.r1.json", "gpt-4.1", "r1"),
        ("maker__m.r.json", "maker__m", "r"),  # "/" is written "__", and a name may hold "__" itself
        ("alone.json", "alone", None),
    ],
)
def test_the_arm_is_the_model_of_the_name(tmp_path: Path, name: str, arm: str, run: str | None) -> None:
    found = rows(write(tmp_path / name, run_report()))
    assert {(one["arm"], one["run_id"]) for one in found} == {(arm, run)}
    assert {one["arm"] for one in rows(tmp_path / name, arm="x")} == {"x"}


@pytest.mark.parametrize("below", [".", "logs", "logs/run_evaluation", "logs/run_evaluation/r1"])
def test_instances_are_found_below_the_named_folder(tmp_path: Path, below: str) -> None:
    logged(tmp_path, "a__a-1", instance_report())
    logged(tmp_path, "a__a-2", instance_report("a__a-2", resolved=False))
    logged(tmp_path, "a__a-1", instance_report(), model="other")
    found = rows(tmp_path / below)
    assert [(one["arm"], one["task_id"], one["resolved"]) for one in found] == [
        (MODEL, "a__a-1", True),
        (MODEL, "a__a-2", False),
        ("other", "a__a-1", True),
    ]
    assert {one["run_id"] for one in found} == {"r1"}
    assert swe_bench.recognises(tmp_path / below)
    assert swe_bench.planned(tmp_path / below, Files()) is None


def test_any_folder_that_holds_instances(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "a__a-1" / "report.json", instance_report())
    found = row(tmp_path / "mine")
    assert (found["arm"], found["run_id"], found["resolved"]) == ("mine", None, True)
    assert row(tmp_path / "mine" / "a__a-1") == found
    assert row(tmp_path / "mine" / "a__a-1" / "report.json") == found


@pytest.mark.parametrize("content", [b"", b'{"a__a-1": {"resol', b"[]", b"{}", b'{"a__a-1": 3}', b"noise"])
def test_an_instance_s_torn_report_is_unreadable(tmp_path: Path, content: bytes) -> None:
    folder = logged(tmp_path, "a__a-1", content)
    found = row(tmp_path)
    assert (found["state"], found["task_id"], found.get("resolved")) == ("unreadable", "a__a-1", None)
    assert found["source_sha256"] == hashlib.sha256((folder / "report.json").read_bytes()).hexdigest()
    assert found["note"]


def test_bytes_that_are_no_text_lose_no_instance(tmp_path: Path) -> None:
    # SWE-bench's own pull request 635: one byte 0xe2 in a test's output, and the instance had no report
    content = json.dumps(instance_report(tests_status={"t": "@"})).encode().replace(b"@", b"\xe2")
    logged(tmp_path, "a__a-1", content)
    assert row(tmp_path)["resolved"] is True


@pytest.mark.parametrize(
    ("entry", "resolved", "kind"),
    [
        ({"patch_is_None": True, "patch_exists": False, "resolved": False}, False, "empty_patch"),
        ({"patch_successfully_applied": False, "resolved": False}, False, "patch_not_applied"),
        ({"infra_failure": True, "infra_failure_reason": "docker", "resolved": False}, False, "infra_failure"),
        ({"resolved": False}, False, None),
        ({"resolved": "yes"}, None, None),
        ({"resolved": 1}, None, None),
        ({"resolved": None}, None, None),
    ],
)
def test_what_an_instance_s_report_says(tmp_path: Path, entry: Any, resolved: bool | None, kind: str | None) -> None:
    logged(tmp_path, "a__a-1", instance_report(**entry))
    found = row(tmp_path)
    assert (found["state"], found["resolved"], found["exception_type"]) == ("finished", resolved, kind)
    assert (found.get("cause") is None) == (resolved is None)
    assert (found["note"] is None) == (kind in (None, "empty_patch", "patch_not_applied") and resolved is not None)


def test_a_report_under_another_name_and_one_without_a_name(tmp_path: Path) -> None:
    logged(tmp_path, "a__a-1", instance_report("b__b-1"))
    logged(tmp_path, "c__c-1", {"instance_id": "c__c-1", "resolved": False})
    assert {task: one["resolved"] for task, one in by_task(tmp_path).items()} == {"b__b-1": True, "c__c-1": False}


def test_without_a_report_an_instance_is_unfinished(tmp_path: Path) -> None:
    logged(tmp_path, "a__a-1")
    found = row(tmp_path)
    assert (found["state"], found["task_id"], found.get("resolved")) == ("unfinished", "a__a-1", None)
    assert swe_bench.recognises(tmp_path)


def test_the_run_report_tells_of_what_has_no_report_of_its_own(tmp_path: Path) -> None:
    logged(tmp_path, "a__a-1", instance_report(resolved=False))  # contradicts the run report, and counts
    logged(tmp_path, "a__a-4")
    logged(tmp_path, "y__y-1")
    write(tmp_path / f"{MODEL}.r1.json", run_report())
    found = by_task(tmp_path)
    assert found["a__a-1"]["resolved"] is False
    assert found["a__a-1"]["source_path"].endswith("a__a-1/report.json")
    assert (found["a__a-4"]["state"], found["a__a-4"]["exception_type"]) == ("finished", "error")
    assert found["y__y-1"]["state"] == "unfinished"
    assert found["a__a-6"]["state"] == "unfinished"
    assert len(found) == 8


def test_a_torn_run_report_beside_instances_is_said(tmp_path: Path) -> None:
    logged(tmp_path, "a__a-1", instance_report())
    write(tmp_path / f"{MODEL}.r1.json", b"")
    own, lost = rows(tmp_path)
    assert (own["resolved"], lost["state"], lost["task_id"]) == (True, "unreadable", None)


def test_a_folder_of_run_reports_is_an_arm_each(tmp_path: Path) -> None:
    for model in ("m1", "m2"):
        write(tmp_path / f"{model}.r.json", run_report())
    write(tmp_path / "predictions.json", [{"instance_id": "a__a-1"}])
    assert swe_bench.recognises(tmp_path)
    assert sorted({one["arm"] for one in rows(tmp_path)}) == ["m1", "m2"]
    plan = swe_bench.planned(tmp_path, Files())
    assert plan is not None
    assert len(plan) == 12


def test_the_plan_is_the_dataset(tmp_path: Path) -> None:
    path = write(tmp_path / "m.r.json", run_report())
    plan = swe_bench.planned(path, Files())
    assert plan is not None
    assert sorted(one["task_id"] for one in plan) == [f"a__a-{i}" for i in range(1, 7)]  # z__z-9 is outside
    assert {(one["arm"], one["attempt"]) for one in plan} == {("m", 1)}


@pytest.mark.parametrize("changes", [{"total_instances": 7}, {"incomplete_ids": None}])
def test_no_plan_where_the_lists_do_not_cover_the_dataset(tmp_path: Path, changes: Any) -> None:
    assert swe_bench.planned(write(tmp_path / "m.r.json", run_report(**changes)), Files()) is None


def test_links_inside_are_not_followed_and_not_lost(tmp_path: Path) -> None:
    elsewhere = logged(tmp_path / "elsewhere", "a__a-1", instance_report())
    place = tmp_path / "place"
    folder = logged(place, "a__a-1", instance_report())
    (folder.parent / "b__b-1").symlink_to(elsewhere)
    (folder.parent / "c__c-1").mkdir()
    (folder.parent / "c__c-1" / "report.json").symlink_to(elsewhere / "report.json")
    (folder.parent / "d__d-1").symlink_to(tmp_path / "nowhere")
    (folder.parent.parent / "model-2").symlink_to(elsewhere.parent)
    (folder / "image_build_dir").symlink_to(tmp_path)  # the harness makes this link itself: nothing is lost with it
    (place / "m9.r9.json").symlink_to(write(tmp_path / "m9.r9.json", run_report()))
    found = rows(place)
    states = {(one["arm"], one["task_id"]): one["state"] for one in found}
    assert states == {
        (MODEL, "a__a-1"): "finished",
        (MODEL, "b__b-1"): "unreadable",
        (MODEL, "c__c-1"): "unreadable",
        (MODEL, "d__d-1"): "unreadable",
        ("model-2", None): "unreadable",
        ("m9", None): "unreadable",
    }
    assert all("symbolic link" in one["note"] for one in found if one["state"] == "unreadable")
    assert swe_bench.planned(place, Files()) is None


def test_the_named_path_may_be_a_link(tmp_path: Path) -> None:
    logged(tmp_path / "place", "a__a-1", instance_report())
    (tmp_path / "link").symlink_to(tmp_path / "place")
    assert row(tmp_path / "link")["resolved"] is True
    (tmp_path / "m.r.json").symlink_to(write(tmp_path / "place" / "m.r.json", run_report()))
    assert len(rows(tmp_path / "m.r.json")) == 7


def test_linked_logs_are_said(tmp_path: Path) -> None:
    logged(tmp_path / "place", "a__a-1", instance_report())
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "logs").symlink_to(tmp_path / "place" / "logs")
    found = row(tmp_path / "here")
    assert (found["state"], found["task_id"]) == ("unreadable", None)


def test_recognises(tmp_path: Path) -> None:
    assert swe_bench.recognises(write(tmp_path / "m.r.json", run_report()))
    assert swe_bench.recognises(write(tmp_path / "x" / "report.json", instance_report()))
    assert swe_bench.recognises(tmp_path / "x")
    assert not swe_bench.recognises(write(tmp_path / "y" / "report.json", {"score": 1}))
    assert not swe_bench.recognises(tmp_path / "y")
    assert not swe_bench.recognises(tmp_path / "nowhere")
    assert not swe_bench.recognises(write(tmp_path / "z" / "results.json", {"results": []}))


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(swe_bench.read(tmp_path / "nowhere", Files()))


def test_a_metric_has_nothing_to_choose_from(tmp_path: Path) -> None:
    logged(tmp_path, "a__a-1", instance_report())
    found = row(tmp_path, metric="acc")
    assert found["resolved"] is True
    assert "'acc' is not applied" in found["note"]


def test_one_report_is_read_at_a_time(tmp_path: Path) -> None:
    for i in range(5):
        logged(tmp_path, f"a__a-{i}", instance_report(f"a__a-{i}"))
    files = Files()
    next(swe_bench.read(tmp_path, files))
    assert len(files.manifest()) == 1


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.text(max_size=3)), max_size=2),
)  # fmt: skip
REPORTS = st.fixed_dictionaries({}, optional={**dict.fromkeys(run_report(), VALUES), "failure_reasons": VALUES})
ENTRIES = st.fixed_dictionaries({}, optional=dict.fromkeys([*instance_report()["a__a-1"], "infra_failure"], VALUES))


@settings(max_examples=30, deadline=None)
@given(REPORTS)
def test_whatever_a_run_report_lists_no_verdict_is_made_up(document: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = write(Path(place) / "m.r.json", document)
        swe_bench.planned(path, Files())
        for one in rows(path):
            named = {key: [text(name) for name in ids] for key, ids in document.items() if isinstance(ids, list)}
            lists = [key for key, ids in named.items() if one["task_id"] in ids]
            assert not one.get("resolved") or "resolved_ids" in lists
            assert one.get("resolved") is not False or {"unresolved_ids", "empty_patch_ids", "completed_ids"} & {*lists}


@settings(max_examples=30, deadline=None)
@given(st.one_of(VALUES, ENTRIES, st.fixed_dictionaries({"a__a-1": st.one_of(ENTRIES, VALUES)})))
def test_whatever_an_instance_s_report_says_no_verdict_is_made_up(document: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        logged(Path(place), "a__a-1", document if document is not None else b"null")
        (found,) = rows(Path(place))
        if found.get("resolved") is not None:
            assert found["resolved"] in (document.get("resolved"), (document.get("a__a-1") or {}).get("resolved"))


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.integers(0, 300).map(lambda n: json.dumps(run_report()).encode()[:n])))
def test_torn_files_and_noise_are_unreadable_rows(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = write(Path(place) / "m.r.json", content)
        logged(Path(place), "a__a-1", content)
        for found in (row(path), *rows(Path(place))):
            assert found["state"] == "unreadable"
            assert pd.isna(found.get("resolved"))
            assert found.get("cause") is None
        swe_bench.recognises(path)
        swe_bench.planned(Path(place), Files())
