"""Why trials ended, by arm: every planned trial counts once, under what is on record of it."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.harness.causes import COLUMNS, cause_table, infrastructure
from faultbook.harness.plan import plan
from faultbook.tables import Trials, typed
from faultbook.taxonomy import causes


def trial(arm: str, task: str, resolved: bool | None = None, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": 1, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def trials(*rows: dict[str, Any]) -> pd.DataFrame:
    return typed(list(rows), Trials)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


def test_the_table() -> None:
    rows = [
        trial("b", "t", True, cause="completed", cause_source="observed"),
        trial("b", "u", False, cause="completed", cause_source="observed"),
        trial("b", "v", None, cause="completed", cause_source="inferred"),
        trial("a", "t", True, cause="provider_quota", cause_source="inferred", reward_valid=False),
        trial("a", "u", None, state="unfinished"),
        trial("c", "t", True, cause="completed"),
    ]
    table = cause_table(trials(*rows), plan(arms=["b", "a"], tasks=["t", "u", "v"]))
    assert list(table.columns) == COLUMNS
    nothing = {"owner": None, "retryable": None, "observed": 0, "inferred": 0, "resolved": 0, "verdict_stands": None}
    nothing |= {"cause": None, "trials": 1, "not_resolved": 0, "without_verdict": 1}
    assert records(table) == [
        {
            "arm": "b",
            "state": "finished",
            "cause": "completed",
            "owner": "agent",
            "retryable": False,
            "trials": 3,
            "observed": 2,
            "inferred": 1,
            "resolved": 1,
            "not_resolved": 1,
            "without_verdict": 1,
            "verdict_stands": True,
        },
        {
            "arm": "a",
            "state": "finished",
            "cause": "provider_quota",
            "owner": "provider",
            "retryable": False,
            "trials": 1,
            "observed": 0,
            "inferred": 1,
            "resolved": 1,
            "not_resolved": 0,
            "without_verdict": 0,
            "verdict_stands": False,
        },
        nothing | {"arm": "a", "state": "unfinished"},
        nothing | {"arm": "a", "state": "not_started"},
    ]


def test_without_a_plan_it_is_inferred() -> None:
    table = cause_table(trials(trial("a", "t", True), trial("b", "u", True)))
    assert table["trials"].sum() == 4


def test_a_verdict_of_an_unclassified_end_is_neither_valid_nor_void() -> None:
    (row,) = records(cause_table(trials(trial("a", "t", True, cause="unclassified"))))
    assert row["verdict_stands"] is None
    assert row["owner"] == "unknown"


def test_records_that_contradict_one_another_have_no_verdict() -> None:
    table = cause_table(trials(trial("a", "t", True), trial("a", "t", False)))
    assert table[["trials", "resolved", "not_resolved", "without_verdict"]].values.tolist() == [[1, 0, 0, 1]]


@pytest.mark.parametrize("name", [None, *causes()])
def test_whose_doing_it_was(name: str | None) -> None:
    expected = name is not None and causes()[name].owner in ("provider", "environment", "verifier", "operator")
    assert infrastructure(trials(trial("a", "t", cause=name))).tolist() == [expected]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.builds(
            trial,
            st.sampled_from("abc"),
            st.sampled_from("tuv"),
            st.sampled_from([True, False, None]),
            state=st.sampled_from(["finished", "unfinished", "unreadable"]),
            cause=st.sampled_from([None, "completed", "sandbox", "unclassified"]),
            cause_source=st.sampled_from(["observed", "inferred"]),
        ),
        max_size=7,
    ),
    st.randoms(use_true_random=False),
)
def test_every_planned_trial_counts_once_in_any_order(rows: list[dict[str, Any]], rng: random.Random) -> None:
    planned = plan(arms=["a", "b"], tasks=["t", "u"])
    table = cause_table(trials(*rows), planned)
    assert table["trials"].sum() == len(planned)
    verdicts = table[["resolved", "not_resolved", "without_verdict"]].sum(axis=1)
    assert (verdicts == table["trials"]).all()
    assert not table.duplicated(["arm", "state", "cause"]).any()
    shuffled = planned.sample(frac=1, random_state=rng.randrange(99)).sort_values("arm", kind="stable")
    again = cause_table(trials(*rng.sample(rows, len(rows))), shuffled.reset_index(drop=True))
    pd.testing.assert_frame_equal(again, table)
