"""The intervention rule: its gates, its ties, and what it does with what is not known."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.rule import (
    DECISION_COLUMNS,
    GATES,
    PAPER_SETTINGS,
    Decision,
    InterventionRule,
    decide_many,
    first_pass,
)

NAN = math.nan
PASSING: dict[str, Any] = {"delay": 1, "p_err": 0.9, "p0": 0.2, "p1": 0.9}


def paper_rule(**changes: Any) -> InterventionRule:
    return InterventionRule(**{"failure_probability": "complement_of_p0", **changes})


def decide(rule: InterventionRule | None = None, **changes: Any) -> Decision:
    return (rule or paper_rule()).decide(**{**PASSING, **changes})


# ---- settings ---------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_experiments_and_say_so() -> None:
    # arXiv 2610.00372, experimental settings: d_min 1, α .876, β .052, γ 0, λ 2, ε .02
    rule = paper_rule()
    assert (rule.min_delay, rule.error_threshold, rule.failure_threshold) == (1, 0.876, 0.052)
    assert (rule.utility_threshold, rule.harm_penalty, PAPER_SETTINGS.harm_limit) == (0, 2, 0.02)
    for same in (rule, PAPER_SETTINGS.rule(failure_probability="complement_of_p0"), paper_rule(error_threshold=0.5)):
        assert "2610.00372" in same.provenance
        assert "calibrate" in same.provenance
    assert paper_rule(error_threshold=0.5, failure_threshold=0.1).provenance == "given by the caller"
    assert paper_rule(source="calibrated on 93 tasks").provenance == "calibrated on 93 tasks"


def test_how_failure_follows_from_p0_must_be_said() -> None:
    for settings_ in ({}, {"failure_probability": None}):
        with pytest.raises(FaultbookError, match=r"does not say how .* p0 .*complement_of_p0.*1 - p0"):
            InterventionRule(**settings_)
    with pytest.raises(TypeError, match="failure_probability"):
        PAPER_SETTINGS.rule()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failure_probability": "1-p0"}, "'1-p0'"),
        ({"error_threshold": 87.6}, r"error_threshold is 87.6; .*per cent"),
        ({"failure_threshold": -0.1}, "failure_threshold"),
        ({"error_threshold": NAN}, "finite"),
        ({"utility_threshold": math.inf}, "finite"),
        ({"utility_threshold": "0"}, "give a number"),
        ({"harm_penalty": -1}, "harm cannot count as a gain"),
        ({"min_delay": 0.5}, "whole number"),
        ({"min_delay": -1}, "whole number"),
        ({"min_delay": True}, "give a number"),
        ({"on_tie": "maybe"}, "on_tie"),
    ],
)
def test_settings_out_of_range(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FaultbookError, match=said):
        paper_rule(**changes)


def test_rule_and_decision_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        paper_rule().min_delay = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        decide().action = "hold"


def test_the_settings_as_a_row() -> None:
    def worse_than_p0(p0: float) -> float:
        return (1 - p0) / 2

    row = paper_rule(failure_probability=worse_than_p0).summary_frame().iloc[0]
    assert row["failure_probability"] == "worse_than_p0"
    assert "2610.00372" in row["source"]


# ---- gates ------------------------------------------------------------------------------------------------------


def test_a_refresh_and_its_scores() -> None:
    decision = decide()
    assert (decision.action, decision.gate, decision.tie) == ("refresh", None, False)
    assert decision.rescue_score == pytest.approx(0.8 * 0.9)
    assert decision.harm_score == pytest.approx(0.2 * 0.1)
    assert decision.utility_score == pytest.approx(0.72 - 2 * 0.02)


@pytest.mark.parametrize(
    ("changes", "gate"),
    [
        ({"delay": 0}, "delay"),
        ({"p_err": 0.8759}, "error"),
        ({"p0": 0.95, "p1": 1}, "failure"),
        ({"p0": 0.5, "p1": 0.5}, "utility"),
        ({"p0": 0.0, "p1": 0.0}, "tie"),
        ({"delay": 0, "p_err": 0.1}, "delay"),  # the first that holds is named
        ({"p_err": 0.1, "p0": 0.99}, "error"),
        ({"delay": 0, "p1": NAN}, "not evaluable"),
    ],
)
def test_the_gate_that_holds(changes: dict[str, Any], gate: str) -> None:
    decision = decide(**changes)
    assert (decision.action, decision.gate) == ("hold", gate)
    assert decision.gate in GATES


def test_thresholds_themselves_pass() -> None:
    # authors' code, cir.py: refused if below, so the gates of delay, α and β are ≥
    assert decide(p_err=0.876).action == "refresh"
    assert decide(p_err=math.nextafter(0.876, 0)).gate == "error"
    # β = .052 is p0 ≤ .948, and binds only where p1 > .973
    assert decide(p0=0.948, p1=0.974).action == "refresh"
    assert decide(p0=0.9481, p1=0.974).gate == "failure"
    assert decide(p0=0.948, p1=0.973).gate == "utility"


@pytest.mark.parametrize(
    ("p0", "least_p1"),
    # with λ = 2 and γ = 0: p1 ≥ 2 p0 / (1 + p0), printed to four digits
    [(0.5, 0.6667), (0.6, 0.75), (0.7, 0.8235), (0.8, 0.8889), (0.9, 0.9474), (0.948, 0.9733)],
)
def test_the_border_of_the_utility_gate(p0: float, least_p1: float) -> None:
    border = 2 * p0 / (1 + p0)
    assert border == pytest.approx(least_p1, abs=5e-5)
    assert decide(p0=p0, p1=border + 1e-6).action == "refresh"
    assert decide(p0=p0, p1=border - 1e-6).gate == "utility"
    at_border = decide(p0=p0, p1=border)
    assert (at_border.gate, at_border.tie) == ("tie", True)


def test_a_tie_is_stated_and_held_unless_asked() -> None:
    # authors' code refreshes at p0 = p1 = 0, where u = 0 ≥ γ, although a refresh cannot help
    for p0, p1 in ((0.0, 0.0), (1.0, 1.0), (0.6, 0.75)):
        held = decide(paper_rule(failure_threshold=0), p0=p0, p1=p1)
        assert (held.action, held.gate, held.tie) == ("hold", "tie", True)
        authors = paper_rule(failure_threshold=0, on_tie="refresh")
        acted = decide(authors, p0=p0, p1=p1)
        assert (acted.action, acted.gate, acted.tie) == ("refresh", None, True)
        assert decide_many(authors, 1, 0.9, p0, p1).iloc[0][["action", "tie"]].to_list() == ["refresh", True]
    # 1 − .6 rounds so that u is 5.6e-17 here: rounding must not decide
    assert (1 - 0.6) * 0.75 - 2 * (0.6 * (1 - 0.75)) > 0


def authors_rule(delay: float, p_err: float, p0: float, p1: float) -> str:
    """What comparisons that refuse, one after the other, do with NaN: the logic of the authors' code, restated."""
    if delay < 1 or p_err < 0.876 or 1 - p0 < 0.052:
        return "hold"
    return "refresh" if (1 - p0) * p1 - 2 * p0 * (1 - p1) >= 0 else "hold"


@pytest.mark.parametrize("name", ["delay", "p_err"])
def test_what_is_missing_does_not_pass_as_in_the_authors_code(name: str) -> None:
    values = {**PASSING, name: NAN}
    assert authors_rule(**values) == "refresh"
    assert decide(**values).gate == "not evaluable"


@pytest.mark.parametrize("name", ["delay", "p_err", "p0", "p1"])
@pytest.mark.parametrize("value", [NAN, None, pd.NA, pd.NaT, np.float32("nan"), math.inf, -math.inf, 10**400])
def test_what_is_not_finite_holds(name: str, value: Any) -> None:
    decision = decide(**{name: value})
    assert (decision.action, decision.gate, decision.tie) == ("hold", "not evaluable", False)
    assert math.isnan(decision.rescue_score + decision.harm_score + decision.utility_score)
    row = decide_many(paper_rule(), **{**{k: [v] for k, v in PASSING.items()}, name: [value]}).iloc[0]
    assert (row["action"], row["gate"]) == ("hold", "not evaluable")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p_err": 1.01}, "p_err is 1.01; give a probability"),
        ({"p0": -0.01}, "p0 is -0.01"),
        ({"p1": 90}, "p1 is 90; .* per cent"),
        ({"p1": "0.9"}, "p1 is '0.9'; give a number"),
        ({"p1": True}, "p1 is True"),
        ({"p1": [0.9]}, "p1"),
        ({"delay": 1.5}, "delay is 1.5; give a whole number"),
        ({"delay": -1}, "delay is -1"),
        ({"p1": 90, "p_err": NAN}, "p1 is 90"),
    ],
)
def test_values_out_of_range(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FaultbookError, match=said) as error:
        decide(**changes)
    assert "\n" not in str(error.value)


def test_numbers_of_other_types() -> None:
    assert decide(delay=np.int64(2), p_err=np.float32(0.9), p0=Decimal("0.2"), p1=1).action == "refresh"


def test_failure_by_a_function_of_ones_own() -> None:
    strict = paper_rule(failure_probability=lambda p0: (1 - p0) / 20)
    assert decide(strict, p0=0.5, p1=1).gate == "failure"
    assert decide(p0=0.5, p1=1).action == "refresh"
    assert decide(paper_rule(failure_probability=lambda _: NAN)).gate == "not evaluable"
    assert decide(paper_rule(failure_probability=lambda _: None)).gate == "not evaluable"
    with pytest.raises(FaultbookError, match=r"failure_probability\(0.2\) is 2"):
        decide(paper_rule(failure_probability=lambda _: 2.0))
    seen: list[float] = []
    decide(paper_rule(failure_probability=lambda p0: seen.append(p0) or 1.0), p0=NAN)
    assert seen == []


# ---- many at once -----------------------------------------------------------------------------------------------

PROBABILITY = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.6, 0.75, 0.876, 0.948, NAN, None, math.inf, -math.inf])
)
DELAY = st.sampled_from([0, 1, 2, 4, None, NAN])
ROWS = st.lists(st.tuples(DELAY, PROBABILITY, PROBABILITY, PROBABILITY), max_size=8)
RULES = st.builds(
    paper_rule,
    min_delay=st.integers(0, 2),
    error_threshold=st.sampled_from([0, 0.5, 0.876, 1]),
    failure_threshold=st.sampled_from([0, 0.052, 0.4]),
    utility_threshold=st.sampled_from([-0.5, 0, 0.3]),
    harm_penalty=st.sampled_from([0, 1, 2, 100]),
    on_tie=st.sampled_from(["hold", "refresh"]),
    failure_probability=st.sampled_from(["complement_of_p0", lambda p0: (1 - p0) ** 2, lambda p0: NAN if p0 else 1.0]),
)


@given(RULES, ROWS)
@settings(max_examples=66, deadline=None)
def test_many_are_decided_as_one(rule: InterventionRule, rows: list[tuple[Any, ...]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    frame = decide_many(rule, *columns)
    assert list(frame.columns) == DECISION_COLUMNS
    for row, (delay, p_err, p0, p1) in zip(frame.to_dict("records"), rows, strict=True):
        one = dataclasses.asdict(rule.decide(delay=delay, p_err=p_err, p0=p0, p1=p1))
        found = {name: None if name == "gate" and pd.isna(value) else value for name, value in row.items()}
        assert all(a == b or (a != a and b != b) for a, b in zip(one.values(), found.values(), strict=True)), (one, row)


@given(RULES, st.integers(0, 4), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_gates_are_monotone(
    rule: InterventionRule, delay: int, p_err: float, p0: float, p1: float, other: float
) -> None:
    # more delay, a likelier error, a likelier success with and a less likely one without: never from refresh to hold
    if rule.decide(delay=delay, p_err=p_err, p0=p0, p1=p1).action == "hold":
        return
    assume(rule.p_fail(min(p0, other)) >= rule.failure_threshold)  # a callable need not be monotone
    for better in (
        {"delay": delay + 1},
        {"p_err": max(p_err, other)},
        {"p1": max(p1, other)},
        {"p0": min(p0, other)},
    ):
        values = {"delay": delay, "p_err": p_err, "p0": p0, "p1": p1} | better
        assert rule.decide(**values).action == "refresh"


def test_the_index_stays_and_one_number_stands_for_all() -> None:
    p1 = pd.Series([0.9, None, 0.1], index=["a", "b", "c"], dtype="Float64")
    frame = decide_many(paper_rule(), 1, 0.9, [0.2, 0.2, 0.2], p1)
    assert list(frame.index) == ["a", "b", "c"]
    assert frame["gate"].isna().to_list() == [True, False, False]
    assert frame["gate"].to_list()[1:] == ["not evaluable", "utility"]
    assert len(decide_many(paper_rule(), 1, 0.9, 0.2, 0.9)) == 1


@pytest.mark.parametrize("delay", [[1, 2], np.array([1, 2]), pd.Series([1, 2]), pd.Series([1, 2], dtype="Int8")])
def test_columns_of_any_type(delay: Any) -> None:
    assert (decide_many(paper_rule(), delay, [0.9, 0.9], [0.2, 0.2], [0.9, 0.9])["action"] == "refresh").all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p1": [0.9, 90.0]}, "row 1, column 'p1'"),
        ({"p1": [0.9, "x"]}, "row 1, column 'p1'"),
        ({"delay": [1, 1.5]}, "row 1, column 'delay'"),
        ({"delay": [True, False]}, "row 0, column 'delay'"),
        ({"delay": [1, 2, 4]}, "differ in length"),
        ({"p0": pd.Series([0, 0]), "p1": pd.Series([1, 1], index=[5, 6])}, "different indexes"),
    ],
)
def test_many_with_a_fault(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FaultbookError, match=said):
        decide_many(paper_rule(), **{**{name: [value] * 2 for name, value in PASSING.items()}, **changes})


# ---- one refresh a run ------------------------------------------------------------------------------------------


def moments(actions: dict[tuple[str, int], str], **columns: Any) -> pd.DataFrame:
    rows = [{"task_id": task, "delay": delay, "action": action} for (task, delay), action in actions.items()]
    return pd.DataFrame(rows).assign(**{"condition": "clean", "replicate": 0, **columns})


def test_the_first_that_passes_in_order_of_delay() -> None:
    frame = moments({("a", 4): "refresh", ("a", 1): "hold", ("a", 2): "refresh", ("b", 1): "hold", ("c", 4): "refresh"})
    frame.index = pd.Index([9, 9, 7, 5, 3])
    marked = first_pass(frame)
    assert marked["refreshed"].to_list() == [False, False, True, False, True]
    pd.testing.assert_frame_equal(marked.drop(columns="refreshed"), frame)


def test_a_run_that_is_over_is_not_acted_on() -> None:
    frame = moments({("a", 1): "refresh", ("a", 2): "refresh", ("a", 4): "refresh"}, reached=[False, None, True])
    assert first_pass(frame)["refreshed"].to_list() == [False, False, True]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1, 2, 4])), st.sampled_from(["refresh", "hold"])
    ),
    st.randoms(use_true_random=False),
)
def test_at_most_one_refresh_whatever_the_order(actions: dict[tuple[str, int], str], random: Any) -> None:
    assume(actions)
    items = list(actions.items())
    random.shuffle(items)
    marked = first_pass(moments(dict(items)))
    for task, part in marked.groupby("task_id"):
        passing = [delay for (name, delay), action in actions.items() if name == task and action == "refresh"]
        assert part.loc[part["refreshed"], "delay"].to_list() == sorted(passing)[:1]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (moments({("a", 1): "refresh"}).drop(columns="condition"), "no column condition"),
        (moments({("a", 1): "replan"}), "'action' must be one of"),
        (pd.concat([moments({("a", 1): "hold"})] * 2), "task a, clean, replicate 0, delay 1.*twice"),
    ],
)
def test_frames_that_cannot_be_marked(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(DataError, match=said):
        first_pass(frame)
