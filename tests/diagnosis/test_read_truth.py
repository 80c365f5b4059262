"""Reading ground truths: every published shape, every real oddity, and documents that are broken anywhere."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import Truth, read_truth
from faultbook.diagnosis.truth import Document
from faultbook.errors import DataError
from faultbook.problems import PROBLEM_COLUMNS

Write = Callable[..., Path]

FLAT: dict[str, Any] = {
    "metadata": {"version": "v1"},
    "fault": [{"entity": {"name": "flagd-config", "group_id": "flagd", "kind": "ConfigMap"}, "condition": "set"}],
    "alerts": [{"id": "Rate", "group_id": "cart", "metadata": {"description": "errors"}}],
    "groups": [
        {"id": "flagd", "kind": "ConfigMap", "name": "flagd-config", "namespace": "otel-demo", "root_cause": True},
        {"id": "cart", "kind": "Service", "filter": ["cart\\b"], "namespace": "otel-demo"},
        {"id": "cart-pod", "kind": "Pod", "filter": ["cart-.*"], "namespace": "otel-demo"},
    ],
    "aliases": [["cart", "cart-pod"]],
    "propagations": [{"source": "flagd", "target": "cart", "condition": "flag", "effect": ""}],
    "recommended_actions": [],
}
BODY = {name: value for name, value in FLAT.items() if name != "metadata"}
WRAPPED = {"apiVersion": "itbench.io/v1", "kind": "GroundTruth", "metadata": {"name": "scenario-2"}, "spec": BODY}
ENTITIES = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ad", "namespace": "otel-demo"}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota", "namespace": "otel-demo"}},
]
V2 = {
    "apiVersion": "itbench.io/v2",
    "kind": "GroundTruth",
    "metadata": {"name": "scenario-102"},
    "spec": {"alerts": [{"name": "NotReady", "labels": {}}], "entities": ENTITIES, "solutions": []},
}
CSV = "incident_id,group_id,kind,namespace,name,pattern,is_root_cause,cause_set,n_alerts\n"


def _ids(truth: Truth) -> list[str]:
    return truth.incidents["incident_id"].tolist()


def _groups(truth: Truth) -> list[tuple[str, str, bool]]:
    columns = ["group_id", "cause_set", "is_root_cause"]
    return list(truth.causes[columns].itertuples(index=False, name=None))


FLAT_GROUPS = [("flagd", "flagd", True), ("cart", "cart", False), ("cart-pod", "cart", False)]


# ---- shapes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["scenario-2.yaml", "scenario-2.yml", "scenario-2.json", "scenario-2/ground_truth.yaml"]
)
def test_shape_a_flat(write: Write, name: str) -> None:
    file = write(name, FLAT if name.endswith("json") else yaml.safe_dump(FLAT))
    truth = read_truth(file)
    assert _ids(truth) == ["scenario-2"]
    assert _groups(truth) == FLAT_GROUPS
    assert truth.causes["role"].tolist() == ["cause", "alerting", "listed"]
    assert truth.causes["n_alerts"].tolist() == [0, 1, 0]
    assert len(truth.edges) == 1
    assert set(truth.causes["truth_sha256"]) == {hashlib.sha256(file.read_bytes()).hexdigest()}
    assert truth.notes["check"].tolist() == []


@pytest.mark.parametrize("actions", ["recommendedActions", "recommended_actions"])
def test_shape_b_wrapped_v1(write: Write, actions: str) -> None:
    body = {name: value for name, value in BODY.items() if name != "recommended_actions"} | {actions: []}
    truth = read_truth(write("scenario_2.yaml", yaml.safe_dump({**WRAPPED, "spec": body})))
    assert _ids(truth) == ["scenario-2"]
    assert _groups(truth) == FLAT_GROUPS
    assert truth.notes.empty


def test_shape_c_wrapped_v2(write: Write) -> None:
    truth = read_truth(write("scenario_102.yaml", yaml.safe_dump(V2)))
    assert _ids(truth) == ["scenario-102"]
    assert truth.causes["is_root_cause"].all()
    assert truth.incidents["n_cause_sets"].tolist() == [2]
    assert truth.edges.empty


@pytest.mark.parametrize("name", ["ground_truths.json", "all.json", "all.yaml"])
def test_shape_d_a_list(write: Write, name: str) -> None:
    file = write(name, [{**FLAT, "id": "Scenario-1"}, {**FLAT, "id": "Scenario-2"}, WRAPPED])
    for path in (file, file.parent):
        assert _ids(read_truth(path)) == ["Scenario-1", "Scenario-2", "scenario-2"]


def test_a_list_without_ids_counts_its_items(write: Write) -> None:
    # reference 4: IBM's loader has a KeyError for list items without id
    assert _ids(read_truth(write("all.json", [FLAT, FLAT]))) == ["all-0", "all-1"]


def test_shape_d_a_folder_of_snapshots(write: Write) -> None:
    write("Scenario-1/ground_truth.yaml", yaml.safe_dump(FLAT))
    write("Scenario-2/ground_truth.yml", yaml.safe_dump(FLAT))
    write("Scenario-3/ground_truth.json", FLAT)
    write("Scenario-4/gt.yaml", yaml.safe_dump(FLAT))
    write("Scenario-5/gt.json", FLAT)
    write("Scenario-6/groundtruth_v1.yaml", yaml.safe_dump(FLAT))
    write("Scenario-1/alerts.json", [{"not": "a truth"}])
    folder = write("Scenario-2/events/pods.yaml", "kind: List").parents[2]
    assert _ids(read_truth(folder)) == [f"Scenario-{number}" for number in range(1, 7)]


def test_shape_e_json_lines_with_yaml_inside(write: Write) -> None:
    # double escaping, reference 3.1 E: `\\\\b` on disk is `\\b` in JSON and `\b` in plain YAML
    text = "groups:\n- {id: cart, kind: Service, namespace: otel-demo, filter: [cart\\b], root_cause: true}\n"
    row = {"id_aa": "1", "scenario_id": "Scenario-1", "category": "sre", "ground_truth_yaml": text}
    file = write("data.jsonl", json.dumps(row) + "\n\n" + json.dumps({**row, "scenario_id": "Scenario-3"}) + "\n")
    assert "cart\\\\b" in file.read_text(encoding="utf-8")
    truth = read_truth(file)
    assert _ids(truth) == ["Scenario-1", "Scenario-3"]
    assert truth.causes["pattern"].tolist() == [r"cart\b"] * 2
    assert set(truth.causes["truth_sha256"]) == {hashlib.sha256(text.encode()).hexdigest()}


def test_json_lines_without_yaml_inside(write: Write) -> None:
    file = write("data.jsonl", json.dumps({**FLAT, "id": "a"}) + "\r\n" + json.dumps(WRAPPED))
    assert _ids(read_truth(file)) == ["a", "scenario-2"]


def test_json_lines_may_hold_any_line_separator_of_unicode(write: Write) -> None:
    # legal inside a JSON string; only "\n" ends a line of JSON lines
    body = {**FLAT, "id": "a", "fault": [{"condition": "one\u2028two\u0085three"}]}
    assert _ids(read_truth(write("data.jsonl", json.dumps(body, ensure_ascii=False)))) == ["a"]


def test_json_lines_may_start_with_a_byte_order_mark(write: Write) -> None:
    file = write("data.jsonl", b"\xef\xbb\xbf" + json.dumps({**FLAT, "id": "a"}).encode())
    assert _ids(read_truth(file)) == ["a"]


def test_shape_f_an_old_record(write: Write) -> None:
    old = {**FLAT, "id": "I1", "name": "x", "complexity": "Low", "technologies": ["Kubernetes"]}
    assert _ids(read_truth(write("record.yaml", yaml.safe_dump(old)))) == ["I1"]


def test_the_csv_form(write: Write) -> None:
    file = write(
        "causes.csv",
        CSV
        + "i,a,ConfigMap,n,flagd-config,,true,,\n"
        + "i,b,Service,n,,cart\\b,FALSE,b,2\n"
        + 'j,a,Pod,,,"x-.*",1,,0\n',
    )
    write("edges.csv", "incident_id,source,target\ni,a,b\ni,b,gone\n")
    for path in (file, file.parent):
        truth = read_truth(path)
        assert _ids(truth) == ["i", "j"]
        assert _groups(truth) == [("a", "a", True), ("b", "b", False), ("a", "a", True)]
        assert truth.causes["role"].tolist() == ["cause", "alerting", "cause"]
        assert truth.edges[["source", "target", "effect"]].to_numpy().tolist() == [["a", "b", ""], ["b", "gone", ""]]
        assert truth.causes["namespace"].isna().tolist() == [False, False, True]


def test_an_incident_without_a_cause_survives_in_the_csv_form(write: Write) -> None:
    write("causes.csv", CSV)
    folder = write("incidents.csv", "incident_id,source,truth_sha256\ni,x.yaml,abc\n").parent
    truth = read_truth(folder)
    assert truth.incidents.to_numpy().tolist() == [["i", "x.yaml", "abc", 0, 0]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (",a,Pod,n,x,,true,,", "'incident_id' is empty"),
        ("i,,Pod,n,x,,true,,", "'group_id' is empty"),
        ("i,a,,n,x,,true,,", "'kind' is empty"),
        ("i,a,Pod,n,x,,maybe,,", "is_root_cause is 'maybe'; write true or false"),
        ("i,a,Pod,n,x,,true,,-1", "n_alerts is '-1'; write a whole number"),
        ("i,a,Pod,n,x,,true,,1.5", "n_alerts is '1.5'"),
        ("i,a,Pod,n,x,,true,,99999999999999999999", "n_alerts is '99999999999999999999'"),
        ("i,z,Pod,n,x,,true,,", "group 'z' stands twice"),
    ],
)
def test_a_bad_csv_row_is_located(write: Write, line: str, problem: str) -> None:
    file = write("causes.csv", CSV + "i,z,Pod,n,x,,true,,\n" + line + "\n")
    with pytest.raises(DataError) as caught:
        read_truth(file)
    assert problem in str(caught.value)
    assert (caught.value.file, caught.value.row) == (file, 3)
    truth, problems = read_truth(file, strict=False)
    assert truth.causes["group_id"].tolist() == ["z"]
    assert problems["row"].tolist() == ["3"]


def test_csv_rows_are_lines_of_the_file(write: Write) -> None:
    # blank lines and cells of several lines do not count as rows, but they do count as lines
    file = write("causes.csv", CSV + '\ni,z,Pod,n,"x\ny",,true,,\n\ni,a,Pod,n,x,,maybe,,\n')
    with pytest.raises(DataError) as caught:
        read_truth(file)
    assert caught.value.row == 6


def test_a_csv_edge_of_another_incident_is_located(write: Write) -> None:
    write("causes.csv", CSV + "i,z,Pod,n,x,,true,,\n")
    file = write("edges.csv", "incident_id,source,target\ni,z,z\nother,a,b\n")
    with pytest.raises(DataError, match=r"no incident 'other' in causes\.csv") as caught:
        read_truth(file.parent)
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, 3, "incident_id")


# ---- oddities of YAML ----------------------------------------------------------------------------------------------

ONE = "groups:\n- {id: a, kind: Service, namespace: n, root_cause: true, filter: [%s]}\n"


@pytest.mark.parametrize(
    ("text", "pattern", "checks"),
    [
        (r"frontend\b", r"frontend\b", []),
        (r"'frontend\b'", r"frontend\b", []),
        (r'"frontend\b"', r"frontend\b", ["backspace"]),
        (r'"frontend\\b"', r"frontend\b", []),
        (r"'a\\b'", r"a\\b", []),  # a literal backslash: for the linter
        (r'"a\\\\b"', r"a\\b", []),
        ('"*.*"', "*.*", []),
        ("'*.*'", "*.*", []),
        (".checkout", ".checkout", []),
        ("productpage-v1-*", "productpage-v1-*", []),
        ("ratings-v*", "ratings-v*", []),
        ("otel-demo", "otel-demo", []),
    ],
)
def test_filters_as_yaml_writes_them(write: Write, text: str, pattern: str, checks: list[str]) -> None:
    # reference 3.4
    truth = read_truth(write("x.yaml", ONE % text))
    assert truth.causes["pattern"].tolist() == [pattern]
    assert truth.notes["check"].tolist() == checks


def test_an_unquoted_glob_is_a_located_error(write: Write) -> None:
    # reference 3.4: a YAML alias scanner error
    file = write("x.yaml", "groups:\n- id: a\n  kind: Pod\n  filter:\n  - *.*\n")
    with pytest.raises(DataError) as caught:
        read_truth(file)
    assert (caught.value.file, caught.value.row) == (file, 5)
    truth, problems = read_truth(file, strict=False)
    assert truth.incidents.empty
    assert problems["row"].tolist() == ["5"]  # once


DOUBLED = """groups:
- {id: a, kind: Pod, name: x, namespace: n, root_cause: true}
- {id: b, kind: Pod, name: y, namespace: n}
alerts:
- id: z
  group_id: a
  group_id: b
"""


def test_a_doubled_key_is_an_error_or_the_last_counts(write: Write) -> None:
    # Scenario-14 of the public set
    file = write("x.yaml", DOUBLED)
    with pytest.raises(DataError, match="row 7: the key 'group_id' stands twice"):
        read_truth(file)
    truth, problems = read_truth(file, strict=False)
    assert truth.causes["n_alerts"].tolist() == [0, 1]
    assert problems[["row", "problem"]].to_numpy().tolist() == [["7", "the key 'group_id' stands twice in one mapping"]]


def test_a_doubled_key_inside_json_lines_is_reported_too(write: Write) -> None:
    # reference 3.4, duplicate mapping key: "strict loader reports it"
    file = write("x.jsonl", {"scenario_id": "Scenario-14", "ground_truth_yaml": DOUBLED})
    truth, problems = read_truth(file, strict=False)
    assert truth.causes["n_alerts"].tolist() == [0, 1]
    assert "stands twice" in " ".join([*problems["problem"], *truth.notes["found"]])
    with pytest.raises(DataError, match="stands twice"):
        read_truth(file)


@pytest.mark.parametrize("namespace", ["", "namespace: null, ", "namespace: ~, ", "namespace: '', "])
def test_a_namespace_that_is_null_or_missing(write: Write, namespace: str) -> None:
    text = f"groups:\n- {{id: a, kind: Namespace, name: otel-demo, {namespace}root_cause: true}}\n"
    truth = read_truth(write("x.yaml", text))
    assert truth.causes["namespace"].isna().all()


def test_a_truth_without_a_root_is_ungradeable_not_refused(write: Write) -> None:
    groups = [{"id": "a", "kind": "Pod", "name": "x", "namespace": "n"}]
    for content in ({"groups": groups}, {"groups": []}, {"spec": {"entities": []}}, {"spec": {"groups": None}}):
        truth = read_truth(write("x.json", content))
        assert truth.incidents["n_cause_sets"].tolist() == [0]
        assert truth.notes["check"].tolist() == ["no cause"]


def test_a_name_that_disagrees_with_its_file_counts_and_is_noted(write: Write) -> None:
    # scenario_61 says scenario-110 (reference 3.1)
    truth = read_truth(write("scenario_61.json", {**WRAPPED, "metadata": {"name": "scenario-110"}}))
    assert _ids(truth) == ["scenario-110"]
    assert truth.notes["check"].tolist() == ["name disagrees"]


def test_values_that_yaml_takes_for_something_else_stay_text(write: Write) -> None:
    text = "groups:\n- {id: 1, kind: Pod, name: 2026-10-02, namespace: 007, root_cause: yes}\nalerts: [{group_id: 1}]\n"
    truth = read_truth(write("x.yaml", text))
    assert truth.causes[["group_id", "name", "n_alerts"]].to_numpy().tolist() == [["1", "2026-10-02", 1]]
    assert truth.incidents["n_cause_sets"].tolist() == [1]


def test_an_incident_twice_is_refused_or_the_first_is_kept(write: Write) -> None:
    write("a.json", WRAPPED)
    folder = write("b.json", WRAPPED).parent
    with pytest.raises(DataError, match=r"incident 'scenario-2' stands here and in a\.json") as caught:
        read_truth(folder)
    assert Path(str(caught.value.file)).name == "b.json"
    truth, problems = read_truth(folder, strict=False)
    assert _ids(truth) == ["scenario-2"]
    assert len(problems) == 1


def test_a_file_of_a_problem_is_named_as_the_caller_named_it(write: Write) -> None:
    write("a.json", WRAPPED)
    file = write("b.json", WRAPPED)
    with pytest.raises(DataError) as caught:
        read_truth(file.parent)
    assert caught.value.file == file


# ---- nothing there, nothing readable -------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", ["", "gone.yaml", "gone.jsonl", "gone.csv", "gone/folder"])
def test_nothing_there(tmp_path: Path, name: str, strict: bool) -> None:
    with pytest.raises(DataError, match=r"no ground truth here|no such file") as caught:
        read_truth(tmp_path / name, strict)
    assert caught.value.file == tmp_path / name


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing\n",
        b"null",
        b"5",
        b"text",
        b"[]x",
        b"- 1\n- [2]\n",
        b"a: b",
        b"\xff\xfe\x00g",
        bytes(range(256)),
        b"groups:\n\t- a",
        b"groups: 5",
        b"groups: {a: b}",
        b"groups: [1, 2]",
        b"spec: {groups: [null]}",
        b"spec: {entities: {kind: Pod}}",
        b"--- {groups: []}\n--- {groups: []}\n",
        b"!!python/object/apply:os.getcwd []",
        b"&a [*a]",
        b"groups: &a [*a]",
        b"[" * 500,
        b"{a: " * 500,
        b"groups: [{id: a, kind: Pod, filter: [!!binary x]}]",
    ],
)
@pytest.mark.parametrize("suffix", ["yaml", "json", "jsonl"])
def test_what_is_no_truth_is_one_located_problem(write: Write, content: bytes, suffix: str) -> None:
    file = write(f"x.{suffix}", content)
    if suffix == "jsonl" and not content:
        return  # JSON lines without a line hold no incident; there is nothing to locate
    with pytest.raises(DataError) as caught:
        read_truth(file)
    assert caught.value.file == file
    assert "\n" not in str(caught.value)
    truth, problems = read_truth(file, strict=False)
    assert truth.incidents.empty
    assert list(problems.columns) == PROBLEM_COLUMNS
    assert set(problems["file"]) == {str(file)}


def test_one_bad_file_does_not_spoil_the_others(write: Write) -> None:
    write("a.yaml", "groups: [*.*]")
    write("b.json", {**FLAT, "groups": 5})
    folder = write("c.json", {**FLAT, "id": "good"}).parent
    truth, problems = read_truth(folder, strict=False)
    assert _ids(truth) == ["good"]
    assert {Path(name).name for name in problems["file"]} == {"a.yaml", "b.json"}


def test_one_bad_line_does_not_spoil_the_others(write: Write) -> None:
    lines = ["{", "5", json.dumps({"ground_truth_yaml": "[*.*]"}), json.dumps({**FLAT, "id": "good"}), '{"a": 1}']
    file = write("x.jsonl", "\n".join(lines))
    truth, problems = read_truth(file, strict=False)
    assert _ids(truth) == ["good"]
    assert sorted(problems["row"]) == ["1", "2", "3", "5"]


def test_the_file_itself_without_a_single_problem(write: Write) -> None:
    truth, problems = read_truth(write("x.json", FLAT), strict=False)
    assert problems.empty
    assert list(problems.columns) == PROBLEM_COLUMNS
    pd.testing.assert_frame_equal(truth.causes, read_truth(write("x.json", FLAT)).causes)


# ---- wrong types anywhere ------------------------------------------------------------------------------------------

PLACES = [
    (("groups",), "x"),
    (("groups",), 5),
    (("groups",), {"a": 1}),
    (("groups", 1), None),
    (("groups", 1), "cart"),
    (("groups", 1, "id"), None),
    (("groups", 1, "id"), ["cart"]),
    (("groups", 1, "id"), {"a": 1}),
    (("groups", 1, "kind"), None),
    (("groups", 1, "kind"), ["Pod"]),
    (("groups", 1, "namespace"), ["otel-demo"]),
    (("groups", 1, "namespace"), {"name": "otel-demo"}),
    (("groups", 0, "name"), ["flagd-config"]),
    (("groups", 0, "root_cause"), "true"),
    (("groups", 0, "root_cause"), 1),
    (("groups", 0, "root_cause"), ["x"]),
    (("groups", 1, "filter"), 5),
    (("groups", 1, "filter"), True),
    (("groups", 1, "filter"), {"a": 1}),
    (("groups", 1, "filter"), [None]),
    (("groups", 1, "filter"), [["cart"]]),
    (("aliases",), 5),
    (("aliases",), "cart"),
    (("aliases",), {"cart": "cart-pod"}),
    (("aliases", 0), {"cart": 1}),
    (("aliases", 0), 5),
    (("aliases", 0, 0), ["cart"]),
    (("aliases", 0, 0), None),
    (("alerts",), 5),
    (("alerts", 0), "x"),
    (("propagations",), {"source": "a"}),
    (("propagations", 0), ["flagd", "cart"]),
    (("fault",), "x"),
    (("fault", 0), 5),
]


@pytest.mark.parametrize(("place", "value"), PLACES)
def test_a_wrong_type_is_a_located_error_not_a_guess(write: Write, place: tuple[str | int, ...], value: object) -> None:
    # A list that becomes the text "['otel-demo']" would match nothing and say nothing; so would root_cause: "true".
    file = write("x.json", _put(FLAT, place, value))
    with pytest.raises(DataError) as caught:
        read_truth(file)
    assert caught.value.file == file
    assert str(place[0]).rstrip("s") in str(caught.value)
    _, problems = read_truth(file, strict=False)
    assert len(problems) == 1


@pytest.mark.parametrize("key", ["metadata", "alerts", "propagations", "aliases", "fault", "recommended_actions"])
def test_a_part_that_is_null_is_a_part_that_is_missing(write: Write, key: str) -> None:
    truth = read_truth(write("x.json", {**FLAT, key: None}))
    assert truth.causes["group_id"].tolist() == ["flagd", "cart", "cart-pod"]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _paths(part, (*path, key))


_DROP = object()


def _put(document: Any, path: tuple[Any, ...], value: object) -> Any:
    """A copy of a document with another value at a path, or without it."""
    if not path:
        return None if value is _DROP else value
    made = copy.deepcopy(document)
    parent = made
    for key in path[:-1]:
        parent = parent[key]
    if value is _DROP:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return made


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)


ODD = st.sampled_from([None, True, 5, 1.5, 10**30, "", "x", [], [1], ["x"], {}, {"a": 1}])
JSONABLE = ODD | LEAVES | _nested(LEAVES | _nested(LEAVES))


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "x.json"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=st.sampled_from([FLAT, WRAPPED, V2, [FLAT, V2]]), data=st.data(), value=st.just(_DROP) | JSONABLE)
def test_a_document_broken_anywhere_is_a_truth_or_a_located_error(
    scratch: Path, document: Any, data: st.DataObject, value: object
) -> None:
    path = data.draw(st.sampled_from(list(_paths(document))))
    scratch.write_text(json.dumps(_put(document, path, value)), encoding="utf-8")
    truth, problems = read_truth(scratch, strict=False)  # whatever stands there, it does not raise
    assert set(problems["file"]) <= {str(scratch)}
    try:
        strict = read_truth(scratch)
    except DataError as error:
        assert error.file == scratch  # noqa: PT017
        assert not problems.empty
    else:
        assert problems.empty
        pd.testing.assert_frame_equal(strict.causes, truth.causes)
    # what was read obeys its own rules
    assert set(truth.causes["incident_id"]) <= set(truth.incidents["incident_id"])
    roots = truth.causes[truth.causes["is_root_cause"]].groupby("incident_id")["cause_set"].nunique()
    counted = truth.incidents.set_index("incident_id")["n_cause_sets"]
    assert {name: size for name, size in counted.items() if size} == roots.to_dict()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | st.text("-[]{}:,*&!|>'\"# \n\tagroupsid", max_size=60).map(str.encode))
def test_any_bytes_are_a_truth_or_a_located_error(scratch: Path, content: bytes) -> None:
    for suffix in (".yaml", ".jsonl"):
        file = scratch.with_suffix(suffix)
        file.write_bytes(content)
        read_truth(file, strict=False)
        try:
            read_truth(file)
        except DataError as error:
            assert error.file == file  # noqa: PT017


def test_ids_with_half_a_surrogate_pair_are_no_crash(write: Write) -> None:
    text = json.dumps({"groups": [{"id": "\ud800", "kind": "Pod", "name": "\ud800", "root_cause": True}]})
    truth, problems = read_truth(write("x.json", text), strict=False)
    assert len(truth.causes) + len(problems) == 1


# ---- the public files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "count", "groups"), [("v1", 61, 546), ("v2", 67, 83)])
def test_every_public_file_is_read_strictly(
    public: Callable[[str], Truth], version: str, count: int, groups: int
) -> None:
    # the counts of files are the issue's; of groups, counted in this repository's copies of the files
    truth = public(version)
    assert len(truth.incidents) == count
    assert truth.incidents["incident_id"].is_unique
    assert len(truth.causes) == groups


def test_three_public_v1_scenarios_have_two_causes(public: Callable[[str], Truth]) -> None:
    # key fact 3: 38, 52 and 62, whose metadata.name says scenario-116 (reference 3.1)
    incidents = public("v1").incidents.set_index("incident_id")["n_cause_sets"]
    assert incidents[incidents != 1].to_dict() == {"scenario-38": 2, "scenario-52": 2, "scenario-116": 2}


def test_one_public_v2_scenario_is_ungradeable(public: Callable[[str], Truth]) -> None:
    # reference 3.4: `entities: []` in 37
    incidents = public("v2").incidents.set_index("incident_id")["n_cause_sets"]
    assert incidents[incidents == 0].index.tolist() == ["scenario-37"]


def test_the_oddities_of_the_public_files_are_noted(public: Callable[[str], Truth]) -> None:
    notes = pd.concat([public("v1").notes, public("v2").notes])
    where = {check: set(incidents) for check, incidents in notes.groupby("check")["incident_id"]}
    assert where["duplicate id"] == {"scenario-18"}  # key fact 11
    assert where["dangling edge"] == {"scenario_25", "scenario-44", "scenario_91"}  # reference 3.4, main
    assert where["duplicate entity"] == {f"scenario-{number}" for number in (12, 13, 14, 15)}  # reference 3.4
    assert "scenario-40" in where["self-loop"]  # key fact 11
    assert where["name disagrees"] == {"scenario-110", "scenario-116"}  # reference 3.1
    assert where["no cause"] == {"scenario-37"}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_shipped_truths_are_what_the_public_files_give(
    public: Callable[[str], Truth], shipped: Callable[[str], Truth], version: str
) -> None:
    read, kept = public(version), shipped(version)
    pd.testing.assert_frame_equal(read.causes, kept.causes)
    pd.testing.assert_frame_equal(read.incidents, kept.incidents)
    pd.testing.assert_frame_equal(read.notes, kept.notes)
    # sentences of the source stay with the source
    facts = read.edges.assign(condition="", effect="").astype(kept.edges.dtypes.to_dict())
    pd.testing.assert_frame_equal(facts, kept.edges)


def test_the_shipped_truths_hold_what_the_issue_counts(shipped: Callable[[str], Truth]) -> None:
    assert [len(shipped(version).incidents) for version in ("v1", "v2")] == [61, 67]
    assert (shipped("v1").incidents["n_cause_sets"] == 2).sum() == 3
    assert shipped("v2").incidents.query("n_cause_sets == 0")["incident_id"].tolist() == ["scenario-37"]


def test_a_document_note_is_bounded() -> None:
    # reference 3.4: 2 to 20 kB of feature-flag JSON are never shown by default
    document = Document("i", "x", "0")
    document.note("check", "info", "place", "x" * 20_000, "none")
    assert len(document.notes[0]["found"]) == 200
