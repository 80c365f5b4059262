"""Figures are tested by what they draw: bars, points and texts, not pixels."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from faultbook.diagnosis import Truth, plot, review, submit
from faultbook.diagnosis.illustration import rule_illustration
from faultbook.diagnosis.plot import ROLE_COLOURS
from faultbook.diagnosis.summary import SUMMARY_COLUMNS
from faultbook.diagnosis.truth import Document, assemble, read_v1

pytestmark = pytest.mark.usefixtures("house_style")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def ticks(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def drawn(ax: Axes) -> Axes:
    ax.figure.canvas.draw()
    return ax


# ---- the rule ---------------------------------------------------------------------------------------------------


def test_the_rule_is_called_synthetic() -> None:
    ax = drawn(plot.plot_rule(rule_illustration()))
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0, 1, 2 / 3, 1 / 2])
    assert texts(ax) == ["0.00", "1.00", "0.67", "0.50"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["A", "A + B", "A + B + C", "A + B + C + D"]
    assert "synthetic" in ax.get_title(loc="left").casefold()


# ---- losses -----------------------------------------------------------------------------------------------------


def losses(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """(model, score, over-diagnosis, omission, low, high) each."""
    names = ["model", "score", "over_diagnosis_loss", "omission_loss", "low", "high"]
    frame = pd.DataFrame(rows, columns=names).reindex(columns=SUMMARY_COLUMNS)
    return frame.assign(policy="itbench-aa")


def test_the_bars_of_a_model_fill_the_width() -> None:
    ax = drawn(plot.plot_losses(losses(("a", 0.5, 0.2, 0.3, 0.4, 0.6), ("b", 0.25, 0.05, 0.7, 0.1, 0.4))))
    bars = [(round(bar.get_x(), 9), round(bar.get_width(), 9)) for bar in ax.patches]
    assert bars == [(0, 0.5), (0, 0.25), (0.5, 0.2), (0.25, 0.05), (0.7, 0.3), (0.3, 0.7)]
    assert ticks(ax) == ["a", "b"]
    assert texts(ax) == ["0.50", "0.25", "0.20", "0.30", "0.70"]  # what is too narrow has no text


def test_the_interval_of_the_score() -> None:
    ax = plot.plot_losses(losses(("a", 0.5, 0.2, 0.3, 0.4, 0.6), ("b", 1.0, 0.0, 0.0, None, None)))
    assert [line.get_xdata().tolist() for line in map(_as_arrays, ax.lines)] == [[0.4, 0.6]]  # no bounds, no line
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["score", "over diagnosis loss", "omission loss", "interval of the score"]


def _as_arrays(line: Any) -> Any:
    line.set_xdata(pd.Series(line.get_xdata()).to_numpy())
    return line


def test_a_score_without_split() -> None:
    ax = drawn(plot.plot_losses(losses(("a", 0.5, None, None, 0.4, 0.6))))
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0, 0]


def test_one_model_under_two_policies_has_two_bars() -> None:
    frame = losses(("a", 0.5, 0.2, 0.3, None, None), ("a", 0.75, 0.0, 0.25, None, None))
    ax = drawn(plot.plot_losses(frame.assign(policy=["itbench-aa", "starharness"])))
    assert len({bar.get_y() for bar in ax.patches}) == 2


# ---- an incident ------------------------------------------------------------------------------------------------


def truth(groups: dict[str, str], edges: list[tuple[str, str]], alerts: str = "", roots: str = "a") -> Truth:
    document = Document("i", "made up", "")
    payload = {
        "groups": [{"id": n, "kind": k, "name": n, "root_cause": n in roots} for n, k in groups.items()],
        "propagations": [{"source": s, "target": t} for s, t in edges],
        "alerts": [{"id": "A", "group_id": n} for n in alerts],
        "aliases": [["c", "x"]] if "x" in groups else [],
    }
    read_v1(payload, document)
    return assemble([document])


PODS = dict.fromkeys("abcdx", "Pod")


def boxes(ax: Axes) -> dict[str, Any]:
    return {text.get_text(): text for text in ax.texts if text.get_text()}


def test_an_incident_from_cause_to_alert() -> None:
    given = truth(PODS, [("a", "b"), ("b", "c"), ("b", "ghost"), ("b", "b")], alerts="c")
    ax = drawn(plot.plot_incident(given, "i", submitted=("b",)))
    found = boxes(ax)
    assert set(found) == {"a", "b", "c\n+ 1 alias", "d"}
    columns = {name: text.get_position()[0] for name, text in found.items()}
    assert columns["a"] < columns["b"] < columns["c\n+ 1 alias"]
    colours = {name: to_hex(text.get_bbox_patch().get_facecolor()) for name, text in found.items()}
    roles = {"a": "cause", "b": "path", "c\n+ 1 alias": "alerting", "d": "listed"}
    assert colours == {name: to_hex(ROLE_COLOURS[role]) for name, role in roles.items()}
    widths = {name: text.get_bbox_patch().get_linewidth() for name, text in found.items()}
    assert [name for name, width in widths.items() if width > 0] == ["b"]
    assert sum(not text.get_text() for text in ax.texts) == 2  # arrows; a dangling end and a self-loop have none
    assert ax.get_title(loc="left") == "i: from cause to alert"


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "b"), ("b", "a")],
        [("b", "c"), ("c", "d"), ("d", "b")],  # a circle that no cause leads to
        [("b", "a"), ("c", "a")],
        [],
    ],
)
def test_every_class_has_a_place_of_its_own(edges: list[tuple[str, str]]) -> None:
    ax = drawn(plot.plot_incident(truth(PODS, edges), "i"))
    places = [text.get_position() for text in boxes(ax).values()]
    assert len(places) == len(set(places)) == 4


def test_an_incident_without_groups_is_said() -> None:
    given = assemble([Document("i", "made up", "")])
    assert texts(drawn(plot.plot_incident(given, "i"))) == ["nothing to show in this data"]


# ---- turns, settings, review ------------------------------------------------------------------------------------


def test_turns_are_no_experiment() -> None:
    # ITBench-AA launch: GPT-5.5 46 % in 31 turns, Gemini 3.1 Pro Preview 30 % in 83
    launch = pd.DataFrame({"row": ["GPT-5.5", "Gemini 3.1"], "turns": [31, 83], "score": [0.46, 0.30]})
    ax = drawn(plot.plot_turns(launch))
    assert ax.lines[0].get_xydata().tolist() == [[31, 46], [83, 30]]
    assert texts(ax) == ["GPT-5.5", "Gemini 3.1"]
    assert "Not an experiment" in ax.get_title(loc="left")


def strip(**rest: Any) -> pd.DataFrame:
    rows = [(t, p, m, s) for t, s0 in (("v1", 0.5), ("v2", 0.25)) for p, s in (("x", s0), ("y", s0 / 2)) for m in "ab"]
    return pd.DataFrame(rows, columns=["truth", "policy", "model", "score"]).assign(**rest)


def test_a_strip_has_one_mark_a_setting() -> None:
    ax = drawn(plot.plot_sensitivity(strip()))
    assert sorted(line.get_xdata()[0] for line in ax.lines) == pytest.approx(sorted(strip()["score"]))
    assert ticks(ax) == ["a", "b"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y", "truth v1", "truth v2"]
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines}
    assert len(looks) == 4  # colour says the policy, mark says the truth


def test_points_left_open() -> None:
    frame = pd.DataFrame({"question": ["one?", "two?", "one?"], "entity": list("abc"), "open": list("xyz")})
    ax = drawn(plot.plot_review(frame))
    assert dict(zip(ticks(ax), (bar.get_width() for bar in ax.patches), strict=True)) == {"one?": 2, "two?": 1}


def test_a_review_draws_itself() -> None:
    given = truth(PODS, [("a", "b")], alerts="bd")
    found = pd.DataFrame(
        {"entity": ["Pod/a"], "finding": ["configuration change that explains the incident"], "stage": ["confirmed"]}
    )
    _, ax = plt.subplots()
    result = review(submit(found, model="m", incident_id="i"), given.causes, given.edges)
    assert result.plot(ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == [1]


# ---- all of them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "columns"),
    [
        (plot.plot_rule, ["submission", "score"]),
        (plot.plot_losses, SUMMARY_COLUMNS),
        (plot.plot_turns, ["row", "turns", "score"]),
        (plot.plot_sensitivity, ["truth", "policy", "model", "score"]),
    ],
)
def test_nothing_to_draw_is_said(draw: Any, columns: list[str]) -> None:
    assert texts(drawn(draw(pd.DataFrame(columns=columns)))) == ["nothing to show in this data"]


def test_a_review_that_leaves_nothing_open_says_so() -> None:
    ax = drawn(plot.plot_review(pd.DataFrame(columns=["question", "entity", "open"])))
    assert texts(ax) == ["nothing left open"]


DRAWN: list[tuple[Any, tuple[Any, ...]]] = [
    (plot.plot_rule, (rule_illustration(),)),
    (plot.plot_losses, (losses(("a", 0.5, 0.2, 0.3, 0.4, 0.6)),)),
    (plot.plot_incident, (truth(PODS, [("a", "b")]), "i")),
    (plot.plot_turns, (pd.DataFrame({"row": ["a"], "turns": [31], "score": [0.46]}),)),
    (plot.plot_sensitivity, (strip(),)),
    (plot.plot_review, (pd.DataFrame({"question": ["one?"], "entity": ["a"], "open": ["x"]}),)),
]


@pytest.mark.parametrize(("draw", "given"), DRAWN, ids=[draw.__name__ for draw, _ in DRAWN])
def test_every_figure_draws_into_the_axes_it_is_given(draw: Any, given: tuple[Any, ...]) -> None:
    _, ax = plt.subplots()
    assert draw(*given, ax=ax) is ax
    drawn(ax)


MONEY = "x_{$HOME$} $$"


@pytest.mark.parametrize(
    ("draw", "given"),
    [
        (plot.plot_rule, (pd.DataFrame({"submission": [MONEY], "score": [1.0]}),)),
        (plot.plot_losses, (losses((MONEY, 0.5, 0.2, 0.3, 0.4, 0.6)),)),
        (plot.plot_incident, (truth({MONEY: "Pod"}, [], roots=MONEY), "i")),
        (plot.plot_turns, (pd.DataFrame({"row": [MONEY], "turns": [31], "score": [0.46]}),)),
        (plot.plot_sensitivity, (strip(model=MONEY, policy=MONEY, truth=MONEY),)),
    ],
)
def test_a_dollar_in_a_label_is_a_dollar(draw: Any, given: tuple[Any, ...]) -> None:
    drawn(draw(*given))  # mathematics would raise here
