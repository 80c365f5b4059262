"""Figures are tested by what they draw: bars, points and texts, not pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgb

from faultbook.attribution import plot
from faultbook.attribution.baselines import CONSTANT, PRIOR, with_baselines
from faultbook.attribution.ceiling import human_ceiling
from faultbook.attribution.ensembles import ensembles
from faultbook.attribution.scaling import n_scaling
from faultbook.attribution.score import Scores, score
from faultbook.style import COLOURS
from faultbook.tables import Annotations, Predictions, typed

pytestmark = pytest.mark.usefixtures("house_style")

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}
NOTHING = "nothing to show in this data"
MONEY = "x_{$HOME$} $$"


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def ticks(ax: Axes, axis: str = "y") -> list[str]:
    return [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]


def legend(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax: Axes) -> Axes:
    ax.figure.canvas.draw()
    return ax


def marks(ax: Axes, marker: str) -> list[tuple[float, float]]:
    """The places of all single marks of a kind."""
    lines = [line for line in ax.lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in zip(*map(np.atleast_1d, line.get_data()), strict=True)]


def segments(ax: Axes) -> list[tuple[list[float], float]]:
    """Horizontal intervals: their ends and height."""
    lines = [line for line in ax.lines if line.get_marker() in ("None", "") and len(line.get_xdata()) == 2]
    return [(list(line.get_xdata()), float(line.get_ydata()[0])) for line in lines if line.get_linestyle() == "-"]


@pytest.fixture
def tables(make_annotations: Make, make_predictions: Make) -> list[pd.DataFrame]:
    """Two models with two samples each on eight logs of two splits."""
    rng = np.random.default_rng(1)
    names = [f"{split}/{n}" for split in ("manual", "automatic") for n in range(4)]
    annotations = make_annotations({name: rng.integers(0, 8, (3, 2)).tolist() for name in names})
    listed = {m: {name: rng.integers(0, 8, (2, 2)).tolist() for name in names} for m in ("x", "y")}
    return [*make_predictions(listed), annotations]


@pytest.fixture
def scores(tables: list[pd.DataFrame]) -> Scores:
    return score(*tables, **FEW)


# ---- one log ----------------------------------------------------------------------------------------------------


def test_a_log(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1], [1, 4]], "b": [[7]]})
    predictions, _ = make_predictions({"x": {"a": [[4, 4], [4, 6], [1]], "b": [[0]]}, "y": {"a": [[11]]}})
    ax = drawn(plot.plot_log(annotations, predictions, "a", 8))
    assert ticks(ax) == ["annotator 1", "annotator 2", "x", "y"]
    flags = [offset for c in ax.collections if isinstance(c, PathCollection) for offset in c.get_offsets().tolist()]
    assert flags == [[1, 0], [1, 1], [4, 1]]
    # two samples name 4, one each 1 and 6; a step beyond the log has no place
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places == {"1": (4, 2), "2": (1, 2), "3": (6, 2)}
    assert ax.get_title(loc="left") == "a"
    assert legend(ax) == ["flagged", "named by the model, with its rank"]
    strips = [bar for bar in ax.patches if bar.get_width() == 8]
    assert len(strips) == 4
    assert to_hex(ax.collections[0].get_facecolor()[0]) == COLOURS["vermilion"].lower()


def test_a_log_is_as_long_as_what_is_said_of_it(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1]]}, n_steps=3)
    for steps, last in (([[0]], 3), ([[9]], 10)):
        ax = drawn(plot.plot_log(annotations, make_predictions({"x": {"a": steps}})[0], "a"))
        assert ax.get_xlim() == (-0.6, last - 0.4)


def test_annotators_who_flag_nothing_have_a_row(make_annotations: Make, make_predictions: Make) -> None:
    ax = drawn(plot.plot_log(make_annotations({"a": [[], []]}), make_predictions({})[0], "a"))
    assert ticks(ax) == ["annotator 1", "annotator 2"]
    assert texts(ax) == []


@pytest.mark.parametrize("log_id", ["nowhere", ""])
def test_a_log_that_nobody_judged(make_annotations: Make, make_predictions: Make, log_id: str) -> None:
    ax = drawn(plot.plot_log(make_annotations({"a": [[1]]}), make_predictions({})[0], log_id))
    assert texts(ax) == ["nobody judged this log"]
    ax = drawn(plot.plot_log(typed([], Annotations), typed([], Predictions), log_id))
    assert texts(ax) == ["nobody judged this log"]


# ---- shares -----------------------------------------------------------------------------------------------------

# MP-Bench as others cite it: of the steps that anybody flagged, 16.2 % by all three, 27.8 % by two, 56.1 % by one.
SHARES = pd.DataFrame(
    [
        ("cited", "3 of 3", 0.162, None, None),
        ("cited", "2 of 3", 0.278, None, None),
        ("cited", "1 of 3", 0.561, None, None),
        ("ours", "3 of 3", 0.2, 0.1, 0.3),
        ("ours", "1 of 3", 0.8, 0.7, 0.9),
    ],
    columns=["source", "flagged_by", "share", "low", "high"],
)


def test_shares_of_two_sources() -> None:
    ax = drawn(plot.plot_shares(SHARES))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([16.2, 27.8, 56.1, 20, 80])
    assert texts(ax) == ["16.2", "27.8", "56.1", "20.0", "80.0"]
    assert ticks(ax) == ["flagged by 3 of 3", "flagged by 2 of 3", "flagged by 1 of 3"]
    assert [ends for ends, _ in segments(ax)] == [[10, 30], [70, 90]]
    assert legend(ax) == ["cited", "ours"]
    assert len({round(bar.get_y(), 6) for bar in ax.patches}) == 5  # no bar on another


def test_shares_without_intervals() -> None:
    ax = drawn(plot.plot_shares(SHARES.loc[:2, ["source", "flagged_by", "share"]]))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([16.2, 27.8, 56.1])


# ---- models -----------------------------------------------------------------------------------------------------


def test_models_by_split(scores: Scores) -> None:
    ax = drawn(scores.plot())
    table = scores.by_split
    assert sorted(x for x, _ in marks(ax, "o")) == pytest.approx(sorted(table["ndcg_at_5"]))
    assert sorted(x for x, _ in marks(ax, "|")) == pytest.approx(sorted(table["chance"]))
    ends = sorted(table[["low", "high"]].to_numpy().tolist())
    assert sorted(list(map(float, pair)) for pair, _ in segments(ax)) == ends
    assert ticks(ax) == ["x", "y"]
    assert legend(ax) == ["manual", "automatic", "chance"]
    assert ax.get_xlabel() == "nDCG@5"
    heights = [height for _, height in marks(ax, "o")]
    assert len(set(heights)) == 4
    assert all(abs(height - round(height)) < 0.5 for height in heights)


def test_models_without_splits_and_intervals(scores: Scores) -> None:
    ax = drawn(plot.plot_models(scores.models.assign(low=np.nan, high=np.nan)))
    assert len(marks(ax, "o")) == 2
    assert segments(ax) == []
    assert legend(ax) == ["all", "chance"]


def test_models_of_unknown_chance(scores: Scores) -> None:
    ax = drawn(plot.plot_models(scores.by_split.assign(chance=np.nan)))
    assert len(marks(ax, "o")) == 4


# ---- the ceiling ------------------------------------------------------------------------------------------------


def test_the_ceiling(tables: list[pd.DataFrame]) -> None:
    predictions, attempts, annotations = tables
    result = human_ceiling(annotations, predictions, attempts, **FEW)
    ax = drawn(result.plot())
    human = result.table.iloc[0]
    assert ticks(ax) == ["one annotator", "x", "y"]
    assert sorted(x for x, _ in marks(ax, "o")) == pytest.approx(sorted(result.table["ndcg_at_5"]))
    (band,) = ax.patches
    assert [band.get_x(), band.get_x() + band.get_width()] == pytest.approx([human["low"], human["high"]])
    assert legend(ax) == ["one sample", "all samples", "chance", "one annotator, interval"]
    # one sample above all samples, both within the row of their model
    rows = {height for _, height in marks(ax, "o")}
    assert rows == {0, 0.87, 1.13, 1.87, 2.13}


def test_a_ceiling_of_annotators_alone(make_annotations: Make) -> None:
    ax = drawn(human_ceiling(make_annotations({"a": [[1], [1]]}), **FEW).plot())
    assert ticks(ax) == ["one annotator"]
    assert not ax.patches  # one log: no interval, no band
    nobody = drawn(human_ceiling(make_annotations({"a": [[], []]}), **FEW).plot())
    assert texts(nobody) == [NOTHING]


# ---- lengths and samples ----------------------------------------------------------------------------------------


def test_lengths(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    lengths = {"1": 3, "2": 5, "3": 30, "4": None, "5": 100, "6": 90}
    annotations = make_annotations({name: [[0] if name != "5" else []] for name in lengths}, n_steps=1)
    listed = {"x": {"1": [[0]], "3": [[0]]}, "y": {"4": [[0]]}}
    table = score(*make_predictions(listed), annotations, make_logs(lengths), **FEW).by_length
    ax = drawn(plot.plot_lengths(table))
    assert ticks(ax, "x") == ["1–5\n2 logs", "21–40\n1 log", "81 or more\n1 log", "unknown\n1 log"]
    solid = [line for line in ax.lines if line.get_marker() == "o"]
    assert [line.get_ydata().tolist() for line in solid] == [[0.5, 1, 0, 0], [0, 0, 0, 1]]
    assert legend(ax) == ["x", "y", "chance of each"]
    assert ax.get_ylabel() == "nDCG@5"
    assert len({line.get_color() for line in solid}) == 2


def test_baselines_have_no_colour(tables: list[pd.DataFrame]) -> None:
    predictions, attempts, annotations = tables
    result = score(*with_baselines(predictions, attempts, annotations), annotations, **FEW)
    ax = drawn(plot.plot_lengths(result.by_length))
    colours = {line.get_label(): to_rgb(line.get_color()) for line in ax.lines if line.get_marker() == "o"}
    assert list(colours) == ["x", "y", PRIOR, CONSTANT]
    spread = {name: max(colour) - min(colour) for name, colour in colours.items()}
    assert min(spread["x"], spread["y"]) > 0.3 > 0.1 > max(spread[PRIOR], spread[CONSTANT])
    assert len(set(colours.values())) == 4


def test_scaling(tables: list[pd.DataFrame]) -> None:
    table = n_scaling(*tables, k=None, **FEW)
    ax = drawn(plot.plot_scaling(table))
    solid = [line for line in ax.lines if line.get_marker() == "o"]
    for line, (_, part) in zip(solid, table.groupby("model", sort=False), strict=True):
        assert line.get_xydata().tolist() == part[["n_samples", "ndcg_full"]].to_numpy().tolist()
    dashed = [line.get_ydata().tolist() for line in ax.lines if line.get_linestyle() == "--"]
    assert dashed == [part["chance"].to_list() for _, part in table.groupby("model", sort=False)]
    assert ax.get_ylabel() == "nDCG, full list"
    assert legend(ax) == ["x", "y", "chance"]
    drawn(plot.plot_scaling(table.assign(low=np.nan, high=np.nan)))


# ---- ensembles --------------------------------------------------------------------------------------------------


def test_ensembles(tables: list[pd.DataFrame]) -> None:
    result = ensembles(*tables, budget=2, **FEW)
    ax = drawn(result.plot())
    table = result.combinations.set_index("combination")["ndcg_at_5"]
    assert texts(ax) == [f"{table[name]:.3f}" for name in ("x", "x + y", "y")]
    assert ticks(ax) == ticks(ax, "x") == ["x", "y"]
    assert ax.get_title(loc="left") == "2 samples in all: one model, or two that share them"
    (mesh,) = (c for c in ax.collections if isinstance(c, QuadMesh))
    assert np.ma.filled(mesh.get_array(), np.nan).ravel().tolist() == pytest.approx(
        [table["x"], np.nan, table["x + y"], table["y"]], nan_ok=True
    )


def test_ensembles_of_one_sample_have_no_pairs(tables: list[pd.DataFrame]) -> None:
    result = ensembles(*tables, budget=1, **FEW)
    assert len(texts(drawn(result.plot()))) == 2


def test_a_budget_that_nobody_has(tables: list[pd.DataFrame]) -> None:
    assert texts(drawn(ensembles(*tables, budget=9, **FEW).plot())) == [NOTHING]


# ---- all of them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [plot.plot_shares, plot.plot_models, plot.plot_lengths, plot.plot_scaling])
def test_nothing_to_draw_is_said(draw: Any) -> None:
    columns = ["source", "flagged_by", "share", "model", "length", "n_logs", "ndcg_at_5"]
    assert texts(drawn(draw(pd.DataFrame(columns=columns)))) == [NOTHING]
    assert texts(drawn(draw(pd.DataFrame()))) == [NOTHING]


def every_figure(tables: list[pd.DataFrame], log_id: str) -> list[tuple[Any, tuple[Any, ...]]]:
    predictions, attempts, annotations = tables
    result = score(*tables, **FEW)
    return [
        (plot.plot_log, (annotations, predictions, log_id)),
        (plot.plot_shares, (SHARES.assign(source=log_id, flagged_by=MONEY),)),
        (plot.plot_models, (result.by_split,)),
        (plot.plot_ceiling, (human_ceiling(annotations, predictions, attempts, **FEW),)),
        (plot.plot_lengths, (result.by_length,)),
        (plot.plot_scaling, (n_scaling(*tables, **FEW),)),
        (plot.plot_ensembles, (ensembles(*tables, **FEW),)),
    ]


def test_every_figure_draws_into_the_axes_it_is_given(tables: list[pd.DataFrame]) -> None:
    for draw, given in every_figure(tables, "manual/0"):
        _, ax = plt.subplots()
        assert draw(*given, ax=ax) is ax
        drawn(ax)


def test_a_dollar_in_a_name_is_a_dollar(make_annotations: Make, make_predictions: Make) -> None:
    log_id = f"{MONEY}/1"
    annotations = make_annotations({log_id: [[1], [2], [1]]}).replace("annotator 1", MONEY)
    for draw, given in every_figure([*make_predictions({MONEY: {log_id: [[1], [2]]}}), annotations], log_id):
        drawn(draw(*given))  # mathematics would raise here


def test_which_column_holds_the_score() -> None:
    assert (
        plot.measure_column(pd.DataFrame(columns=["model", "ndcg_at_5_answered", "ndcg_at_12", "ndcg_full"]))
        == "ndcg_at_12"
    )
    assert plot.measure_column(pd.DataFrame(columns=["model", "ndcg_full", "low"])) == "ndcg_full"
    assert [plot.measure_label(name) for name in ("ndcg_at_12", "ndcg_full")] == ["nDCG@12", "nDCG, full list"]
