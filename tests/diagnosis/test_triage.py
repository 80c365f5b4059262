"""From found to submitted, and the two questions before submitting."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.diagnosis import Policy, Truth, baselines, read_truth, review, score, submit, triage
from faultbook.diagnosis.triage import FINDINGS, STAGES
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.errors import FaultbookError
from faultbook.tables import Runs, Submissions, typed

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"

# ITBench-AA document, section 5: the table of findings (translated), in its order.
TABLE = [
    "alerting entity",
    "configuration change that explains the incident",
    "fault-injection tool or controller above",
    "separate warning seen at the same time",
    "symptom path not yet explained",
]


def findings(*rows: tuple[str, str, str] | tuple[str, str, str, Any]) -> pd.DataFrame:
    columns = ["entity", "finding", "stage", "evidence"]
    return pd.DataFrame(rows, columns=columns[: len(rows[0])])


def test_the_five_findings_of_the_table() -> None:
    assert FINDINGS["finding"].tolist() == TABLE
    # One key phrase of each cell, translated; the document's words are Korean.
    for finding, check, treatment in (
        (0, "request path", "keep as a symptom"),
        (1, "exact namespace, kind and name", "review as a candidate cause"),
        (2, "the unit that the grading calls a cause", "do not confuse the mechanism with the cause"),
        (3, "needs a cause of its own", "relation alone does not put it into the submission"),
        (4, "explain this path too", "hand to a person"),
    ):
        assert check in FINDINGS.loc[finding, "check_first"]
        assert treatment in FINDINGS.loc[finding, "at_submission"]
    assert STAGES == ("found", "suspected", "confirmed")


def test_each_finding_gets_its_row_of_the_table() -> None:
    given = findings(*((f"ns/Pod/p{n}", name, "found") for n, name in enumerate(reversed(TABLE))))
    result = triage(given)
    assert result["finding"].tolist() == TABLE[::-1]  # the order is the user's
    assert result["check_first"].tolist() == FINDINGS["check_first"].tolist()[::-1]
    assert result["at_submission"].tolist() == FINDINGS["at_submission"].tolist()[::-1]
    assert "evidence" not in given  # the input stays as it was


@pytest.mark.parametrize(
    ("finding", "stage", "evidence", "said"),
    [
        (TABLE[1], "confirmed", "changed at 12:01", "is submitted"),
        (TABLE[1], "confirmed", None, "is submitted without evidence: add it or take the stage back"),
        (TABLE[1], "confirmed", "", "is submitted without evidence: add it or take the stage back"),
        (TABLE[1], "suspected", "changed at 12:01", "stays out of the submission until its evidence is checked"),
        (TABLE[0], "found", None, "stays out of the submission until its evidence is checked"),
        (TABLE[4], "suspected", None, "stays open: investigate, or hand to a person"),
    ],
)
def test_what_comes_next(finding: str, stage: str, evidence: str | None, said: str) -> None:
    assert triage(findings(("ns/Pod/p", finding, stage, evidence)))["next"].tolist() == [said]


def test_no_findings() -> None:
    assert triage(pd.DataFrame(columns=["entity", "finding", "stage"])).empty


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (findings(("a", TABLE[0], "sure")), "'stage' must be one of 'found', 'suspected' or 'confirmed'; found 'sure'"),
        (findings(("a", "hunch", "found")), "'finding' must be one of 'alerting entity', .* found 'hunch'"),
        (findings(("a", TABLE[0], None)), "'stage' must be one of"),
        (pd.DataFrame({"entity": ["a"], "Stage": ["found"]}), r"columns missing: finding, stage \(found entity, Stage"),
    ],
)
def test_one_helpful_error(frame: pd.DataFrame, said: str) -> None:
    for use in (triage, lambda given: submit(given, model="m", incident_id="i")):
        with pytest.raises(FaultbookError, match=said) as caught:
            use(frame)
        assert "\n" not in str(caught.value)


# ---- submitting -------------------------------------------------------------------------------------------------


def truth(payload: dict[str, Any]) -> Truth:
    document = Document("i", "made up", "")
    read_v1(payload, document)
    return assemble([document])


def test_only_what_is_confirmed_counts() -> None:
    given = findings(
        ("shop/Pod/web", TABLE[0], "found"),
        ("shop/ConfigMap/config", TABLE[1], "confirmed"),
        ("shop/Pod/api", TABLE[4], "suspected"),
    )
    submission = submit(given, model="m", incident_id="i", repeat=2)
    Submissions.validate(submission)
    assert submission["stage"].tolist() == ["found", "confirmed", "suspected"]
    assert submission["position"].tolist() == [0, 1, 2]
    assert submission[["namespace", "kind", "name"]].values.tolist()[1] == ["shop", "ConfigMap", "config"]
    assert set(submission["repeat"]) == {2}
    known = truth(
        {
            "groups": [
                {"id": n, "kind": k, "name": n, "namespace": "shop", "root_cause": n == "config"}
                for n, k in (("config", "ConfigMap"), ("web", "Pod"), ("api", "Pod"))
            ]
        }
    )
    row = score(submission, typed([("m", "i", 2, "scored", None, None)], Runs), known).iloc[0]
    assert (row["n_submitted"], row["score"]) == (1, 1)


def test_confidence_is_kept_and_may_be_missing() -> None:
    given = findings(("a", TABLE[0], "found"), ("b", TABLE[0], "found")).assign(confidence=[0.5, None])
    confidence = submit(given, model="m", incident_id="i")["confidence"]
    assert confidence[0] == 0.5
    assert confidence.isna().tolist() == [False, True]


@pytest.mark.parametrize("entity", ["a/b/c/d", "", "ns/Pod/"])
def test_an_entity_that_cannot_be_read_is_a_users_mistake(entity: str) -> None:
    with pytest.raises(FaultbookError, match="namespace/Kind/name"):
        submit(findings((entity, TABLE[0], "found")), model="m", incident_id="i")


# ---- the two questions ------------------------------------------------------------------------------------------

SHOP = {
    "groups": [
        {"id": "config-1", "kind": "ConfigMap", "name": "config", "namespace": "shop", "root_cause": True},
        {"id": "api-1", "kind": "Service", "name": "api", "namespace": "shop"},
        {"id": "web-1", "kind": "Service", "name": "web", "namespace": "shop"},
        {"id": "disk-1", "kind": "PersistentVolumeClaim", "name": "disk", "namespace": "shop", "root_cause": True},
        {"id": "db-1", "kind": "Pod", "name": "db", "namespace": "shop"},
        {"id": "storm-1", "kind": "NetworkChaos", "name": "storm", "namespace": "chaos-mesh"},
    ],
    "propagations": [
        {"source": "config-1", "target": "api-1"},
        {"source": "api-1", "target": "web-1"},
        {"source": "disk-1", "target": "db-1"},
        {"source": "storm-1", "target": "config-1"},
    ],
    "alerts": [{"id": "A", "group_id": "web-1"}, {"id": "B", "group_id": "db-1"}],
}
BOTH = ("shop/ConfigMap/config", "shop/PersistentVolumeClaim/disk")


def asked(*entities: str, stage: str = "confirmed", payload: dict[str, Any] = SHOP, **settings: Any) -> Any:
    known = truth(payload)
    given = findings(*((entity, TABLE[1], stage) for entity in entities)) if entities else None
    submission = typed([], Submissions) if given is None else submit(given, model="m", incident_id="i")
    return review(submission, known.causes, known.edges, **settings)


def test_nothing_is_left_open() -> None:
    result = asked(*BOTH)
    assert result.ready
    assert result.summary_frame().empty
    assert list(result.summary_frame().columns) == ["question", "entity", "open"]


def test_an_alert_that_no_confirmed_cause_reaches() -> None:
    result = asked(BOTH[0])
    assert not result.ready
    assert result.unexplained.values.tolist() == [["db-1", "no confirmed cause reaches this alert"]]
    assert result.doubtful.empty
    assert result.summary_frame()["question"].tolist() == ["is an independent cause unexplained?"]


def test_what_is_only_suspected_explains_nothing() -> None:
    result = asked(*BOTH, stage="suspected")
    assert result.unexplained["entity"].tolist() == ["db-1", "web-1"]
    assert result.doubtful.empty


def test_an_empty_submission_leaves_every_alert_open() -> None:
    assert asked().unexplained["entity"].tolist() == ["db-1", "web-1"]


def test_a_symptom_beside_its_cause() -> None:
    result = asked(*BOTH, "shop/Service/web", "shop/Service/api")
    assert result.unexplained.empty
    assert result.doubtful.values.tolist() == [
        ["shop/Service/web", "lies downstream of another confirmed cause: a symptom or a waypoint"],
        ["shop/Service/api", "lies downstream of another confirmed cause: a symptom or a waypoint"],
    ]
    assert result.summary_frame()["question"].tolist() == ["is anything submitted not a cause?"] * 2


def test_an_alerting_end_alone_is_perhaps_a_symptom() -> None:
    result = asked("shop/Service/web")
    assert result.unexplained["entity"].tolist() == ["db-1"]
    assert result.doubtful["open"].tolist() == [
        "alerts, and nothing follows from it along the edges: perhaps only a symptom"
    ]


def test_a_mechanism_is_asked_about() -> None:
    result = asked("chaos-mesh/NetworkChaos/storm", BOTH[1])
    assert result.unexplained.empty  # it reaches everything that the configuration reaches
    assert result.doubtful["open"].tolist() == ["a fault-injection mechanism; is it the unit that counts as the cause?"]


def test_a_mechanism_that_nobody_knows_has_two_doubts() -> None:
    result = asked(*BOTH, "chaos-mesh/Schedule/elsewhere")
    assert result.doubtful["entity"].tolist() == ["chaos-mesh/Schedule/elsewhere"] * 2


def test_an_unknown_entity_is_open_and_explains_nothing() -> None:
    result = asked(BOTH[0], "shop/Pod/elsewhere")
    assert result.unexplained["entity"].tolist() == ["db-1"]
    assert result.doubtful.values.tolist() == [
        ["shop/Pod/elsewhere", "not among the known entities; its relation to the incident is open"]
    ]


def test_aliases_are_one_entity() -> None:
    payload = {**SHOP, "aliases": [["api-1", "web-1"]]}
    result = asked(*BOTH, "shop/Service/api", payload=payload)
    assert result.doubtful["entity"].tolist() == ["shop/Service/api"]
    assert asked("shop/Service/api", "shop/Service/web", BOTH[1], payload=payload).unexplained.empty


def test_loops_and_dangling_edges_do_no_harm() -> None:
    payload = {
        **SHOP,
        "propagations": [
            *SHOP["propagations"],
            {"source": "web-1", "target": "config-1"},
            {"source": "web-1", "target": "web-1"},
            {"source": "ghost-1", "target": "db-1"},
        ],
    }
    assert asked(BOTH[0], payload=payload).unexplained["entity"].tolist() == ["db-1"]


def test_the_policy_decides_what_a_name_stands_for() -> None:
    strict = Policy("strict", namespace="strict")
    assert asked("ConfigMap/config", BOTH[1]).ready
    assert not asked("ConfigMap/config", BOTH[1], policy=strict).ready


@cache
def shipped() -> tuple[Truth, pd.DataFrame]:
    known = read_truth(INCIDENTS / "itbench-v1")
    return known, baselines(known).submissions


@pytest.mark.parametrize("model", ["baseline: oracle", "baseline: every alerting entity", "baseline: everything named"])
def test_the_review_does_not_look_at_the_answer(model: str) -> None:
    known, made = shipped()
    for incident_id in known.incidents["incident_id"][::4]:
        one = known.incident(incident_id)
        own = made[(made["incident_id"] == incident_id) & (made["model"] == model)]
        flipped = one.causes.assign(is_root_cause=~one.causes["is_root_cause"], role="cause")
        blind = one.causes.drop(columns=["is_root_cause", "role"])
        expected = review(own, one.causes, one.edges).summary_frame()
        for entities in (flipped, blind):
            pd.testing.assert_frame_equal(review(own, entities, one.edges).summary_frame(), expected)
