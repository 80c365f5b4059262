"""Reading submissions: three JSON shapes, CSV, lines and folders; and that no run is ever dropped in silence."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import SubmissionTables, Truth, read_submissions, score
from faultbook.diagnosis.read_submissions import ANSWER_FIELDS
from faultbook.errors import DataError
from faultbook.problems import PROBLEM_COLUMNS
from faultbook.replies import parse_reply
from faultbook.tables import Runs, Submissions

Write = Callable[..., Path]
KEY = {"model": "m", "incident_id": "i-1", "repeat": 0}
FACTORS = [
    {"name": "otel-demo/Deployment/ad", "reasoning": "r", "evidence": "e"},
    {"name": "cluster/Node/n", "reasoning": "", "evidence": ""},
]


def _named(tables: SubmissionTables) -> list[tuple[str | None, ...]]:
    columns = ["namespace", "kind", "name"]
    plain = tables.submissions[columns].astype(object).where(tables.submissions[columns].notna(), None)
    return list(plain.itertuples(index=False, name=None))


def _runs(tables: SubmissionTables) -> list[tuple[str, str, int, str]]:
    return list(tables.runs[["model", "incident_id", "repeat", "status"]].itertuples(index=False, name=None))


AD_AND_NODE = [("otel-demo", "Deployment", "ad"), (None, "Node", "n")]

# ---- shapes --------------------------------------------------------------------------------------------------------


def test_the_shape_of_itbench_aa(write: Write) -> None:
    tables = read_submissions(write("x.json", {**KEY, "contributing_factors": FACTORS, "turns": 31, "cost": 0.5}))
    assert _named(tables) == AD_AND_NODE
    assert tables.runs.to_dict("records") == [{**KEY, "status": "scored", "turns": 31, "cost": 0.5}]
    assert tables.submissions["position"].tolist() == [0, 1]
    assert tables.submissions["stage"].tolist() == ["confirmed", "confirmed"]
    assert list(tables.submissions.columns) == list(Submissions.to_schema().columns)
    assert list(tables.runs.columns) == list(Runs.to_schema().columns)


def test_the_shape_of_ibm(write: Write) -> None:
    entities = [
        {"name": "otel-demo/Deployment/ad", "contributing_factor": True},
        {"name": "otel-demo/Service/cart", "contributing_factor": False},
        {"id": "cluster/Node/n", "contributing_factor": True},
        {"name": "otel-demo/Service/frontend"},
    ]
    content = {**KEY, "entities": entities, "propagations": [], "alerts_explained": []}
    assert _named(read_submissions(write("x.json", content))) == AD_AND_NODE


def test_the_shape_of_third_parties(write: Write) -> None:
    causes = [{"name": "ad", "kind": "Deployment", "namespace": "otel-demo"}, {"name": "n", "kind": "Node"}]
    assert _named(read_submissions(write("x.json", {**KEY, "root_causes": causes}))) == AD_AND_NODE


@pytest.mark.parametrize("name", ["contributing_factors", "root_causes"])
def test_a_scalar_and_a_list_of_one_are_equal(write: Write, name: str) -> None:
    # reference 6.1: AIOpsLab PR #105
    for value in ("otel-demo/Deployment/ad", ["otel-demo/Deployment/ad"], {"name": "otel-demo/Deployment/ad"}):
        assert _named(read_submissions(write("x.json", {**KEY, name: value}))) == AD_AND_NODE[:1]


def test_a_bare_list(write: Write) -> None:
    assert _named(read_submissions(write("m_i-1_0.json", FACTORS))) == AD_AND_NODE


def test_stages_and_confidence(write: Write) -> None:
    factors = [{"name": "a", "stage": "found", "confidence": 0.5}, {"name": "b", "stage": None, "confidence": "x"}]
    tables = read_submissions(write("x.json", {**KEY, "contributing_factors": factors}))
    assert tables.submissions["stage"].tolist() == ["found", "confirmed"]
    assert tables.submissions["confidence"].isna().tolist() == [False, True]


CSV = "model,incident_id,repeat,entity,stage,confidence,status\n"


def test_csv(write: Write) -> None:
    lines = [
        "m,i-1,0,otel-demo/Deployment/ad,,0.9,",
        "m,i-2,0,,,,timed_out",
        "m,i-1,0,cluster/Node/n,suspected,,",
        "m,i-3,0,,,,",
    ]
    tables = read_submissions(write("runs.csv", CSV + "\n".join(lines)))
    assert _named(tables) == AD_AND_NODE
    assert tables.submissions["stage"].tolist() == ["confirmed", "suspected"]
    assert _runs(tables) == [("m", "i-1", 0, "scored"), ("m", "i-2", 0, "timed_out"), ("m", "i-3", 0, "empty")]


def test_json_lines(write: Write) -> None:
    lines = [json.dumps({**KEY, "repeat": repeat, "contributing_factors": FACTORS}) for repeat in (2, 0)]
    tables = read_submissions(write("runs.jsonl", "\n\n".join(lines) + "\r\n"))
    assert _runs(tables) == [("m", "i-1", 2, "scored"), ("m", "i-1", 0, "scored")]
    assert _named(tables) == AD_AND_NODE * 2


def test_json_lines_may_hold_any_line_separator_of_unicode(write: Write) -> None:
    text = json.dumps({**KEY, "contributing_factors": FACTORS, "note": "a\u2028b\u0085c"}, ensure_ascii=False)
    assert _named(read_submissions(write("runs.jsonl", text))) == AD_AND_NODE


def test_a_byte_order_mark_is_accepted(write: Write) -> None:
    content = b"\xef\xbb\xbf" + json.dumps({**KEY, "contributing_factors": FACTORS}).encode()
    for suffix in ("json", "jsonl"):
        assert _named(read_submissions(write(f"x.{suffix}", content))) == AD_AND_NODE


# ---- whose run it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("gpt_scenario-1_0.json", ("gpt", "scenario-1", 0)),
        ("gpt-5.5_scenario-31_2.json", ("gpt-5.5", "scenario-31", 2)),
        ("my_own_model_scenario-1_0.json", ("my_own_model", "scenario-1", 0)),
        # the shipped truths have ids of this form: scenario_10
        ("gpt_scenario_10_0.json", ("gpt", "scenario_10", 0)),
        ("my_model_Scenario_7_12.json", ("my_model", "Scenario_7", 12)),
    ],
)
def test_model_incident_and_repeat_of_a_file_name(write: Write, name: str, key: tuple[str, str, int]) -> None:
    assert _runs(read_submissions(write(name, {"contributing_factors": FACTORS}))) == [(*key, "scored")]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("gpt/scenario-1/0/answer.json", ("gpt", "scenario-1", 0)),
        ("gpt/scenario_10/2/answer.json", ("gpt", "scenario_10", 2)),
        ("gpt/scenario-1/answer.json", ("gpt", "scenario-1", 0)),
        ("gpt/scenario-1/1/logs/answer.json", ("gpt", "scenario-1", 1)),
    ],
)
def test_model_incident_and_repeat_of_folders(
    write: Write, tmp_path: Path, name: str, key: tuple[str, str, int]
) -> None:
    write(name, {"contributing_factors": FACTORS})
    assert _runs(read_submissions(tmp_path / "given")) == [(*key, "scored")]


def test_fields_outweigh_names(write: Write) -> None:
    content = {"model": "other", "incident_id": None, "repeat": 5, "contributing_factors": []}
    assert _runs(read_submissions(write("m_i-1_0.json", content))) == [("other", "i-1", 5, "empty")]


def test_a_run_of_nobody_is_a_problem(write: Write) -> None:
    file = write("answer.json", {"contributing_factors": FACTORS})
    with pytest.raises(DataError, match="no model and no incident_id, neither as a field nor in the name") as caught:
        read_submissions(file)
    assert caught.value.file == file
    tables, problems = read_submissions(file, strict=False)
    assert tables.runs.empty
    assert len(problems) == 1


@pytest.mark.parametrize("repeat", ["x", -1, 1.5, True, [0], {"a": 1}, "", "²", 10**30, "9" * 5_000])
def test_a_bad_repeat_is_located(write: Write, repeat: object) -> None:
    file = write("answer.json", {**KEY, "repeat": repeat, "contributing_factors": FACTORS})
    with pytest.raises(DataError, match="repeat is") as caught:
        read_submissions(file)
    assert caught.value.file == file
    assert len(str(caught.value)) < 400
    _, problems = read_submissions(file, strict=False)
    assert len(problems) == 1


def test_a_bad_repeat_does_not_drop_a_run_whose_file_names_it(write: Write) -> None:
    # "what cannot be read becomes a run …, never a dropped row": the name still says whose run it is
    file = write("m_i-1_3.json", {"repeat": "x", "contributing_factors": FACTORS})
    tables, problems = read_submissions(file, strict=False)
    assert [run[:3] for run in _runs(tables)] == [("m", "i-1", 3)]
    assert len(problems) == 1


@pytest.mark.parametrize("field", ["model", "incident_id"])
@pytest.mark.parametrize("value", [["x"], {"a": 1}, True])
def test_a_name_that_is_no_text_is_a_problem(write: Write, field: str, value: object) -> None:
    with pytest.raises(DataError, match=field):
        read_submissions(write("x.json", {**KEY, field: value, "contributing_factors": FACTORS}))


def test_a_run_twice_is_refused_or_the_first_is_kept(write: Write, tmp_path: Path) -> None:
    write("a/m_i-1_0.json", {"contributing_factors": FACTORS})
    second = write("b/m_i-1_0.json", {"contributing_factors": []})
    folder = tmp_path / "given"
    with pytest.raises(DataError, match="stands here and in m_i-1_0.json".replace(".", r"\.")) as caught:
        read_submissions(folder)
    assert caught.value.file == second
    tables, problems = read_submissions(folder, strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "scored")]
    assert problems["file"].tolist() == [str(second)]


def test_a_run_twice_in_json_lines_names_both_lines(write: Write) -> None:
    line = json.dumps({**KEY, "contributing_factors": []})
    with pytest.raises(DataError, match="row 1; keep one") as caught:
        read_submissions(write("x.jsonl", f"{line}\n{line}\n"))
    assert caught.value.row == 2


# ---- broken replies ------------------------------------------------------------------------------------------------

GOOD = json.dumps({"contributing_factors": FACTORS}, indent=1)
REPAIRABLE = {
    "fence": f"Here it is:\n```json\n{GOOD}\n```\nDone.",
    "fence without a language": f"```\n{GOOD}\n```",
    "fence on windows": f"```json\r\n{GOOD}\r\n```".replace("\n", "\r\n").replace("\r\r", "\r"),
    "trailing commas": GOOD.replace("}\n ]", "},\n ],"),
    "single quotes": str({"contributing_factors": FACTORS}),
    "fence and trailing commas": "```json\n" + GOOD.replace("}\n ]", "},\n ],") + "\n```",
    "another fence before it": f"```\nkubectl get pods\n```\nSo:\n```json\n{GOOD}\n```",
    "another fence before a broken one": "```\nkubectl get pods\n```\nSo:\n```json\n"
    + GOOD.replace("}\n ]", "},\n ],")
    + "\n```",
}


@pytest.mark.parametrize("text", REPAIRABLE.values(), ids=REPAIRABLE.keys())
def test_what_strict_parsing_refuses_is_repaired_and_flagged(write: Write, text: str) -> None:
    file = write("m_i-1_0.json", text)
    with pytest.raises(DataError, match="not strict JSON; read after repair; check it") as caught:
        read_submissions(file)
    assert caught.value.file == file
    tables, problems = read_submissions(file, strict=False)
    assert _named(tables) == AD_AND_NODE
    assert _runs(tables) == [("m", "i-1", 0, "scored")]
    assert problems["problem"].tolist() == ["not strict JSON"]


def test_a_fence_inside_a_valid_string_is_left_alone(write: Write) -> None:
    evidence = 'log:\n```json\n{"contributing_factors": ["n/Pod/wrong"]}\n```\n{} [] {"a": 1}'
    content = {"contributing_factors": [{**FACTORS[0], "evidence": evidence}]}
    tables, problems = read_submissions(write("m_i-1_0.json", content), strict=False)
    assert _named(tables) == AD_AND_NODE[:1]
    assert problems.empty


def test_braces_in_the_text_are_no_prediction(write: Write) -> None:
    # reference 6.10: OpenRCA counts `{}` anywhere in the text
    factor = {"name": "n/Pod/a", "evidence": 'saw 503 [x], {} and "quotes",'}
    tables = read_submissions(write("m_i-1_0.json", {"contributing_factors": [factor]}))
    assert len(tables.submissions) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b" \n", b"\0\0\0", bytes(range(256)), b"I do not know.", b"\xff\xfe{\x00}\x00", b"{", b"[", b"```json\n```"],
)
def test_what_cannot_be_read_is_a_malformed_run(write: Write, content: bytes) -> None:
    file = write("m_i-1_0.json", content)
    with pytest.raises(DataError) as caught:
        read_submissions(file)
    assert caught.value.file == file
    tables, problems = read_submissions(file, strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "malformed")]
    assert tables.submissions.empty
    assert set(problems["file"]) == {str(file)}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "```json\n" + "[" * 100_000 + "\n```"])
def test_endless_nesting_is_a_malformed_run(write: Write, content: str) -> None:
    tables, problems = read_submissions(write("m_i-1_0.json", content), strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "malformed")]
    assert not problems.empty


@pytest.mark.parametrize(
    "content", ["null", "5", '"n/Pod/a"', "true", "{}", '{"answer": "n/Pod/a"}', '{"entities": 5}']
)
def test_json_that_is_no_submission_is_malformed_and_said_so(write: Write, content: str) -> None:
    file = write("m_i-1_0.json", content)
    tables, problems = read_submissions(file, strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "malformed")]
    assert len(problems) == 1
    with pytest.raises(DataError):
        read_submissions(file)


def test_prose_is_not_searched_for_names(write: Write) -> None:
    # reference 6.11: no free-text inference
    tables, _ = read_submissions(write("m_i-1_0.json", "The cause is [flagd-config], I think."), strict=False)
    assert tables.submissions.empty
    assert _runs(tables) == [("m", "i-1", 0, "malformed")]


@pytest.mark.parametrize("content", ['{"contributing_factors": []}', '{"root_causes": []}', '{"entities": []}', "[]"])
def test_an_empty_list_is_an_empty_run(write: Write, content: str) -> None:
    tables, problems = read_submissions(write("m_i-1_0.json", content), strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "empty")]
    assert problems.empty


@pytest.mark.parametrize("factor", [5, None, "", " ", {}, {"name": None}, {"name": 5}, ["a"], "a/b/c/d", {"name": "/"}])
def test_an_entity_that_is_none_is_a_located_problem(write: Write, factor: object) -> None:
    file = write("m_i-1_0.json", {"contributing_factors": [factor, "n/Pod/a"]})
    tables, problems = read_submissions(file, strict=False)
    assert _named(tables) == [("n", "Pod", "a")]
    assert tables.submissions["position"].tolist() == [0]
    assert len(problems) == 1
    with pytest.raises(DataError) as caught:
        read_submissions(file)
    assert caught.value.file == file
    alone, _ = read_submissions(write("m_i-1_0.json", {"contributing_factors": [factor]}), strict=False)
    assert _runs(alone) == [("m", "i-1", 0, "malformed")]


@pytest.mark.parametrize("entity", ["n/Pod/a", 5, None, {"name": "n/Pod/a", "contributing_factor": "true"}])
def test_an_ibm_entity_of_the_wrong_type_is_not_passed_over(write: Write, entity: object) -> None:
    file = write("m_i-1_0.json", {"entities": [entity]})
    tables, problems = read_submissions(file, strict=False)
    assert len(tables.runs) == 1
    assert len(problems) == 1


@pytest.mark.parametrize("field", ["namespace", "kind"])
@pytest.mark.parametrize("value", [["x"], {"a": 1}, 5, True])
def test_a_part_of_an_entity_that_is_no_text_is_a_problem(write: Write, field: str, value: object) -> None:
    file = write("m_i-1_0.json", {"root_causes": [{"name": "a", field: value}]})
    with pytest.raises(DataError):
        read_submissions(file)
    tables, problems = read_submissions(file, strict=False)
    assert len(tables.runs) == len(problems) == 1


@pytest.mark.parametrize("confidence", [5, 1.01, 90, "90", -1, float("inf"), float("nan"), [1], True])
def test_a_confidence_beyond_its_range_is_no_crash(write: Write, confidence: object) -> None:
    file = write("m_i-1_0.json", {"contributing_factors": [{"name": "a", "confidence": confidence}]})
    tables, _ = read_submissions(file, strict=False)
    assert _named(tables) == [(None, None, "a")]
    assert tables.submissions["confidence"].dropna().between(0, 1).all()


@pytest.mark.parametrize("field", ["turns", "cost"])
@pytest.mark.parametrize("value", [3.5, 1e300, 10**30, "31", "x", -1, [1], True, float("nan")])
def test_odd_turns_and_costs_are_no_crash(write: Write, field: str, value: object) -> None:
    file = write("m_i-1_0.json", {"contributing_factors": [], field: value})
    tables, _ = read_submissions(file, strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "empty")]


def test_half_a_surrogate_pair_is_no_crash(write: Write, make_truth: Callable[..., Truth]) -> None:
    file = write("m_i-1_0.json", '{"contributing_factors": ["n/Pod/\\ud800"]}')
    tables, _ = read_submissions(file, strict=False)
    assert len(tables.runs) == 1
    assert score(tables.submissions, tables.runs, make_truth("a* | n/Pod/(a|b).*"))["score"].fillna(0).eq(0).all()


# ---- status --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["timed_out", "missing", "malformed"])
def test_a_status_outweighs_what_was_submitted(write: Write, status: str) -> None:
    for rest in ({}, {"contributing_factors": FACTORS}):
        assert _runs(read_submissions(write("x.json", {**KEY, "status": status, **rest}))) == [("m", "i-1", 0, status)]


def test_a_run_cannot_call_itself_ungradeable(write: Write, make_truth: Callable[..., Truth]) -> None:
    # Only a truth makes a run ungradeable; a wrong answer must not take itself out of the mean.
    file = write("m_i-1_0.json", {"status": "ungradeable", "contributing_factors": ["n/Pod/wrong"]})
    tables, _ = read_submissions(file, strict=False)
    (row,) = score(tables.submissions, tables.runs, make_truth("a* | n/Pod/=a")).to_dict("records")
    assert row["status"] != "ungradeable"


def test_scored_without_a_submission_is_malformed(write: Write) -> None:
    tables, _ = read_submissions(write("m_i-1_0.json", {"status": "scored"}), strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "malformed")]


@pytest.mark.parametrize("status", ["timeout", "TIMED_OUT", 5, ["scored"]])
def test_an_unknown_status_is_a_problem(write: Write, status: object) -> None:
    file = write("m_i-1_0.json", {"status": status, "contributing_factors": FACTORS})
    _, problems = read_submissions(file, strict=False)
    assert len(problems) == 1
    with pytest.raises(DataError, match="status"):
        read_submissions(file)


# ---- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("field", ANSWER_FIELDS)
def test_answers_are_refused(write: Write, field: str, strict: bool) -> None:
    content = {**KEY, "contributing_factors": [], field: "x"}
    for file in (
        write("x.json", content),
        write("x.jsonl", content),
        write("x.csv", f"model,incident_id,repeat,entity,{field}\nm,i,0,a,1\n"),
    ):
        with pytest.raises(DataError, match=rf"holds the answer \({field}\)") as caught:
            read_submissions(file, strict)
        assert caught.value.file == file


@pytest.mark.parametrize("field", ["is_root_cause", "cause_set", "ground_truth"])
def test_answers_beside_an_entity_are_refused(write: Write, field: str) -> None:
    for name in ("contributing_factors", "root_causes"):
        with pytest.raises(DataError, match="holds the answer"):
            read_submissions(write("m_i-1_0.json", {name: [{"name": "n/Pod/a", field: True}]}))


def test_a_truth_is_no_submission(write: Write) -> None:
    with pytest.raises(DataError, match="holds the answer"):
        read_submissions(write("m_i-1_0.json", {"groups": [], "aliases": []}))


# ---- CSV faults ----------------------------------------------------------------------------------------------------

SHORT = "model,incident_id,repeat,entity\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("m,i-2,x,n/Pod/a", "repeat is 'x', not a whole number"),
        (",i-2,0,n/Pod/a", "no model"),
        ("m,,0,n/Pod/a", "no incident_id"),
        ("m,i-2,0,a/b/c/d", "is not namespace/Kind/name"),
    ],
)
def test_a_csv_problem_names_the_line_of_the_file(write: Write, line: str, problem: str) -> None:
    file = write("x.csv", SHORT + "m,i-1,0,n/Pod/a\n\n" + line + "\n")
    with pytest.raises(DataError, match=problem) as caught:
        read_submissions(file)
    assert (caught.value.file, caught.value.row) == (file, 4)


def test_a_bad_entity_of_a_csv_run_names_its_own_line(write: Write) -> None:
    file = write("x.csv", SHORT + "m,i-1,0,n/Pod/a\nm,i-1,0,n/Pod/b\nm,i-1,0,a/b/c/d\n")
    with pytest.raises(DataError) as caught:
        read_submissions(file)
    assert caught.value.row == 4


def test_spellings_of_a_repeat_are_one_run(write: Write) -> None:
    tables, _ = read_submissions(write("x.csv", SHORT + "m,i-1,0,n/Pod/a\nm,i-1,00,n/Pod/b\n"), strict=False)
    assert [name for _, _, name in _named(tables)] == ["a", "b"]


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", SHORT.encode() + b"m,i\n", b"\xff\xfe", SHORT.encode() + b'"'])
def test_a_broken_table_is_located(write: Write, content: bytes) -> None:
    file = write("x.csv", content)
    with pytest.raises(DataError) as caught:
        read_submissions(file)
    assert caught.value.file == file


def test_a_broken_table_does_not_spoil_a_folder(write: Write) -> None:
    write("a.csv", "a,b\n1,2\n")
    folder = write("m_i-1_0.json", {"contributing_factors": FACTORS}).parent
    tables, problems = read_submissions(folder, strict=False)
    assert _runs(tables) == [("m", "i-1", 0, "scored")]
    assert len(problems) == 1


# ---- nothing dropped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [True, False])
def test_nothing_there(tmp_path: Path, strict: bool) -> None:
    for path in (tmp_path, tmp_path / "gone.json"):
        with pytest.raises(DataError, match="no submissions here") as caught:
            read_submissions(path, strict)
        assert caught.value.file == path


def test_a_folder_of_everything_drops_no_run(write: Write, tmp_path: Path) -> None:
    contents = [GOOD, "", "null", "[]", "not json", "\0", '{"a": 1}', *REPAIRABLE.values()]
    for number, content in enumerate(contents):
        write(f"m/i-{number}/0/answer.json", content)
    tables, problems = read_submissions(tmp_path / "given", strict=False)
    assert len(tables.runs) == len(contents)
    assert list(problems.columns) == PROBLEM_COLUMNS
    assert set(tables.runs["status"]) <= {"scored", "empty", "malformed"}


DOCUMENT = {**KEY, "status": "scored", "turns": 3, "cost": 0.1, "contributing_factors": FACTORS}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)


ODD = st.sampled_from([None, True, 5, 1.5, 10**30, "", "x", [], [1], ["x"], {}, {"a": 1}])
JSONABLE = ODD | LEAVES | _nested(LEAVES | _nested(LEAVES))
PLACES: list[tuple[Any, ...]] = [
    *((name,) for name in DOCUMENT),
    *(
        ("contributing_factors", 0, *rest)
        for rest in ((), ("name",), ("namespace",), ("kind",), ("stage",), ("confidence",))
    ),
]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "m_i-1_0.json"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(place=st.sampled_from(PLACES), value=JSONABLE)
def test_a_submission_broken_anywhere_is_a_run_or_a_located_problem(
    scratch: Path, place: tuple[Any, ...], value: object
) -> None:
    document: Any = copy.deepcopy(DOCUMENT)
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    scratch.write_text(json.dumps(document), encoding="utf-8")
    tables, problems = read_submissions(scratch, strict=False)
    assert len(tables.runs) == 1 or not problems.empty
    assert set(problems["file"]) <= {str(scratch)}
    assert len(tables.submissions) <= 2
    try:
        strict = read_submissions(scratch)
    except DataError as error:
        assert error.file == scratch  # noqa: PT017
    else:
        pd.testing.assert_frame_equal(strict.runs, tables.runs)


@settings(max_examples=60, deadline=None)
@given(st.text("{}[]\"',:`\n\\ njsotruefal0.", max_size=40) | st.binary(max_size=40).map(lambda b: b.decode("latin-1")))
@example("```json\n")
@example('{"a": ```')
def test_any_reply_is_parsed_or_none(text: str) -> None:
    payload, repaired = parse_reply(text)
    assert repaired or json.dumps(payload) == json.dumps(json.loads(text))
    assert payload is None or not repaired or isinstance(payload, (dict, list))
