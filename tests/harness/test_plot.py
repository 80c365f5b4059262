"""Figures of a comparison are tested by what they draw: cells, bars, points and texts, not pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from faultbook.harness import plot
from faultbook.harness.causes import cause_table
from faultbook.harness.compare import Comparison, compare
from faultbook.harness.plan import held, plan
from faultbook.harness.timing import timing
from faultbook.harness.usage import metered_only
from faultbook.style import COLOURS
from faultbook.tables import Trials, typed
from faultbook.taxonomy import cause, causes

pytestmark = pytest.mark.usefixtures("house_style")

HOSTILE = [
    "$x_1$",
    "<b>bold</b>",
    r"\frac{1}{0} $\bad$",
    "long-" * 60,
    "two\nlines",
    "\x1b[31mred\x07",
    "_hidden",
    "%s {0}",
]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def ticks(ax: Axes, axis: str = "y") -> list[str]:
    return [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def drawn(ax: Axes) -> Axes:
    ax.figure.canvas.draw()  # warnings are errors
    return ax


def boxes(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


# ---- data ---------------------------------------------------------------------------------------------------------

TASKS = [f"task-{number:02}" for number in range(24)]


def row(arm: str, task: str, resolved: bool | None = None, **more: Any) -> dict[str, Any]:
    """A finished trial with its usage and its time; `more` overrides."""
    name = more.get("cause", "completed")
    stands = None if resolved is None or name is None else cause(name).verdict_stands
    usual = {
        "attempt": 1,
        "state": "finished",
        "cause": "completed",
        "usage_status": "reported",
        "source_format": "csv",
    }
    amounts = {"input_tokens": 40_000, "output_tokens": 900, "total_seconds": 100.0, "agent_seconds": 70.0}
    return {"arm": arm, "task_id": task, "resolved": resolved, "reward_valid": stands} | usual | amounts | more


def unfinished(arm: str, task: str, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("input_tokens", "output_tokens", "total_seconds", "agent_seconds", "cause"))
    return row(arm, task, state="unfinished", usage_status="absent") | nothing | more


def interrupted(arms: Sequence[str] = ("a", "b"), tasks: Sequence[str] = TASKS, attempts: int = 1) -> pd.DataFrame:
    """Two arms of which three and two tasks at the end have no outcome, with causes of all owners."""
    rng = np.random.default_rng(1)
    names = ["completed"] * 6 + ["agent_budget_exhausted", "configuration.invalid", "provider_quota", "sandbox", None]
    rows = []
    for arm in arms:
        for task in tasks[: -3 if arm == arms[0] else -2]:
            for attempt in range(1, attempts + 1):
                tokens = {"input_tokens": int(rng.lognormal(13, 1)), "total_seconds": float(rng.lognormal(6, 1)) + 70}
                ended = {"cause": names[rng.integers(len(names))], "attempt": attempt, "setup_seconds": 5.0}
                rows.append(row(arm, task, bool(rng.integers(2)), **tokens, **ended))
        rows.append(unfinished(arm, tasks[-1]))
    return typed(rows, Trials)


def every_figure(trials: pd.DataFrame, planned: pd.DataFrame, arms: Sequence[str]) -> dict[str, Callable[..., Axes]]:
    """All figures of the module on the same data, each still to be drawn on an `ax`."""
    cells = held(trials, planned).cells
    found = compare(trials, planned, arms=arms) if len(set(planned["arm"])) > 1 else None
    times = timing(trials, planned, arms=arms).arms if found is not None else None
    figures: dict[str, Callable[..., Axes]] = {
        "universe": lambda **on: plot.plot_universe(cells, **on),
        "causes": lambda **on: plot.plot_causes(cause_table(trials, planned), **on),
        "pairwise": lambda **on: plot.plot_pairwise(metered_only(cells), arms, **on),
    }
    if found is not None and times is not None:
        figures |= {
            "mosaic": lambda **on: plot.plot_mosaic(found, **on),
            "difference": lambda **on: found.plot(**on),
            "time": lambda **on: plot.plot_time(times, **on),
        }
    return figures


ZEROS = {"input_tokens": 0, "total_seconds": 0.0, "agent_seconds": 0.0}
MANY = [f"t{number}" for number in range(200)]
NOTHING = dict.fromkeys(("input_tokens", "output_tokens", "total_seconds", "agent_seconds", "cause", "resolved"))
DATA: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {
    "interrupted": (interrupted(), plan(arms="ab", tasks=TASKS)),
    "three attempts": (interrupted(attempts=3), plan(arms="ab", tasks=TASKS, attempts=3)),
    "one arm": (interrupted("a"), plan(arms="a", tasks=TASKS)),
    "one arm of two": (interrupted("a"), plan(arms="ab", tasks=TASKS)),
    "three arms": (interrupted("abc"), plan(arms="abc", tasks=TASKS)),
    "no trial": (typed([], Trials), plan(arms="ab", tasks=TASKS)),
    "one task": (typed([row("a", "t", True), row("b", "t", False)], Trials), plan(arms="ab", tasks=["t"])),
    "nothing known": (
        typed([row(arm, task) | NOTHING | {"usage_status": "absent"} for arm in "ab" for task in TASKS], Trials),
        plan(arms="ab", tasks=TASKS),
    ),
    "zeros": (
        typed([row(arm, task, True, **ZEROS) for arm in "ab" for task in TASKS], Trials),
        plan(arms="ab", tasks=TASKS),
    ),
    "no task in common": (
        typed([row("a", "t", True), row("b", "u", True)], Trials),
        pd.concat([plan(arms="a", tasks=["t"]), plan(arms="b", tasks=["u"])], ignore_index=True),
    ),
    "200 tasks": (interrupted(tasks=MANY), plan(arms="ab", tasks=MANY)),
    "hostile": (interrupted(HOSTILE[:2], HOSTILE), plan(arms=HOSTILE[:2], tasks=HOSTILE)),
    "hostile and long": (interrupted(HOSTILE[3:5], HOSTILE), plan(arms=HOSTILE[3:5], tasks=HOSTILE)),
}  # fmt: skip


QUICK = ("interrupted", "no trial", "hostile")


@pytest.mark.parametrize(
    "data", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DATA]
)
def test_every_figure_is_drawn_on_the_axes_it_is_given_without_a_warning(data: str) -> None:
    trials, planned = DATA[data]
    arms = list(dict.fromkeys(planned["arm"]))[:2]
    for name, figure in every_figure(trials, planned, [*arms, "none"][:2]).items():
        given = plt.figure().add_subplot()
        plt.figure()  # the current figure is another one
        assert drawn(figure(ax=given)) is given, name
        assert not plt.gcf().axes
        plt.close("all")


@pytest.mark.parametrize("data", ["interrupted", "three attempts", "hostile and long"])
def test_nothing_runs_into_anything_else(data: str) -> None:
    """Legends stand off the axes, names and numbers off one another."""
    trials, planned = DATA[data]
    for name, figure in every_figure(trials, planned, list(dict.fromkeys(planned["arm"]))).items():
        before = len(plt.get_fignums())
        ax = drawn(figure())
        assert (len(plt.get_fignums()), plt.gcf()) == (before + 1, ax.figure)  # it makes its own
        inside = ax.get_window_extent()
        if (found := ax.get_legend()) is not None:
            box = found.get_window_extent()
            assert box.y0 >= inside.y1 - 1 or box.y1 <= inside.y0 + 1, name
            assert box.width < 1.4 * inside.width, name
        for axis in (ax.xaxis, ax.yaxis):
            labels = [label for label in axis.get_ticklabels() if label.get_text() and ax.axison]
            areas = [label.get_window_extent().shrunk(0.9, 0.9) for label in labels]
            assert not any(one.overlaps(other) for one, other in pairwise(areas)), (name, labels)
        written = [text.get_window_extent().shrunk(0.95, 0.95) for text in ax.texts]
        crossing = [(i, j) for i, one in enumerate(written) for j in range(i) if one.overlaps(written[j])]
        assert not crossing, (name, [(texts(ax)[i], texts(ax)[j]) for i, j in crossing])


# ---- names --------------------------------------------------------------------------------------------------------


def test_hostile_names_are_drawn_as_they_are() -> None:
    trials, planned = DATA["hostile"]
    arms = HOSTILE[:2]
    figures = {name: drawn(figure()) for name, figure in every_figure(trials, planned, arms).items()}
    assert ticks(figures["universe"]) == arms
    names = ticks(figures["universe"], "x")
    assert names[:2] == arms
    assert names[2] == r"\frac{1}{0} $\bad$"
    assert names[4:6] == ["two lines", "red"]
    assert figures["difference"].get_xlabel() == "$x_1$ less <b>bold</b> (pp)"
    assert figures["pairwise"].get_xlabel() == "input tokens, $x_1$"
    assert [label.split(" (")[0] for label in ticks(figures["time"])] == arms
    assert any(text.endswith("  $x_1$") for text in texts(figures["causes"]))
    assert any(text.startswith("$x_1$: ") for text in texts(figures["mosaic"]))
    for ax in figures.values():
        assert not any(text.get_parse_math() for text in [*ax.texts, *ax.get_xticklabels(), ax.xaxis.label])


def test_long_names_lose_their_middle() -> None:
    arms = [f"/data/{'runs/' * 40}{end}" for end in ("one/job", "two/job")]
    trials = typed([row(arm, "t" * 300, index == 0) for index, arm in enumerate(arms)], Trials)
    planned = plan(arms=arms, tasks=["t" * 300])
    for name, figure in every_figure(trials, planned, arms).items():
        ax = drawn(figure())
        found = [*texts(ax), *ticks(ax), *ticks(ax, "x"), ax.get_xlabel(), ax.get_ylabel(), *legend(ax)]
        assert max(len(line) for text in found for line in text.split("\n")) < 90, name
    first, second = ticks(plot.plot_universe(held(trials, planned).cells))
    assert (first[-8:], second[-8:]) == ("/one/job", "/two/job")
    assert first.startswith("/data/runs/")
    assert len(first) == len(second) == 28


# ---- the planned universe -----------------------------------------------------------------------------------------

KINDS = {
    "solved": row("a", "solved", True, cause="agent_budget_exhausted"),
    "ended": row("a", "ended", False),
    "refused": row("a", "refused", False, cause="agent_refused"),
    "budget": row("a", "budget", False, cause="agent_budget_exhausted"),
    "harness": row("a", "harness", False, cause="tool_timeout"),
    "unknown": row("a", "unknown", False, cause=None, reward_valid=True),
    "unclassified": row("a", "unclassified", False, cause="unclassified", reward_valid=None),
    "void": row("a", "void", False, cause="provider_quota"),
    "stands": row("a", "stands", False, cause="provider_quota", reward_valid=True),
    "none": row("a", "none", None),
    "unreadable": unfinished("a", "unreadable", state="unreadable"),
    "unfinished": unfinished("a", "unfinished"),
}
EXPECTED = {
    "solved": "solved",
    "ended": "not solved, ended by itself",
    "refused": "not solved, ended by itself",
    "budget": "not solved, budget used up",
    "harness": "not solved, harness failed",
    "unknown": "not solved, cause not known",
    "unclassified": "not solved, cause not known",
    "void": "ended from outside, no verdict that counts",
    "stands": "not solved, ended from outside",
    "none": "finished without a verdict",
    "unreadable": "unreadable",
    "unfinished": "unfinished",
    "disagree": "records contradict",
    "not begun": "not started",
}


def every_kind() -> pd.DataFrame:
    twice = [row("a", "disagree", True, trial_id="1"), row("a", "disagree", False, trial_id="2")]
    return held(typed([*KINDS.values(), *twice], Trials), plan(arms="a", tasks=list(EXPECTED))).cells


def test_what_a_cell_stands_for() -> None:
    cells = every_kind()
    assert dict(zip(cells["task_id"], plot.cell_kinds(cells), strict=True)) == EXPECTED
    assert set(EXPECTED.values()) == set(plot.CELLS)


def test_every_cause_has_a_kind_that_is_its_owners() -> None:
    rows = [row("a", name, False, cause=name) for name in causes()]
    cells = held(typed(rows, Trials), plan(arms="a", tasks=list(causes()))).cells
    for name, kind in zip(causes(), plot.cell_kinds(cells), strict=True):
        owner = cause(name).owner
        expected = {"agent": "not solved", "harness": "not solved, harness", "unknown": "not solved, cause not known"}
        assert kind.startswith(expected.get(owner, "ended from outside, no verdict")), name


def test_every_planned_trial_is_one_cell_in_its_place() -> None:
    ax = drawn(plot.plot_universe(every_kind()))
    places = {round(box.get_center()[0]): box for box in boxes(ax)}
    assert list(places) == list(range(len(EXPECTED)))
    for task, box in zip(EXPECTED, places.values(), strict=True):
        colour, hatch = plot.CELLS[EXPECTED[task]]
        assert to_hex(box.get_facecolor()) == to_hex(colour)
        assert (box.get_hatch() or "") == hatch
    assert ticks(ax, "x") == list(EXPECTED)
    assert legend(ax)[:2] == ["solved (1)", "not solved, ended by itself (2)"]
    assert sum(int(text.split("(")[-1][:-1]) for text in legend(ax)) == len(EXPECTED)


def test_attempts_have_rows_of_their_own_below_one_another() -> None:
    ax = drawn(plot.plot_universe(held(*DATA["three attempts"]).cells))
    assert ticks(ax) == ["a, 1", "a, 2", "a, 3", "b, 1", "b, 2", "b, 3"]
    assert ax.yaxis_inverted()
    assert len(boxes(ax)) == 6 * 24


def test_many_tasks_are_counted_and_not_named() -> None:
    ax = drawn(plot.plot_universe(held(*DATA["200 tasks"]).cells))
    assert (ticks(ax, "x"), ax.get_xlabel()) == ([], "200 planned tasks")
    assert len(boxes(ax)) == 400
    assert ax.figure.get_figwidth() <= 15


def test_colours_of_kinds_differ() -> None:
    assert len(set(plot.CELLS.values())) == len(plot.CELLS)
    assert set(plot.OWNER_COLOURS) == {one.owner for one in causes().values()} | {"none on record"}


# ---- the mosaic ---------------------------------------------------------------------------------------------------


def split(both: int, only_a: int, only_b: int, neither: int, lost: int = 0) -> Comparison:
    outcomes = [(True, True)] * both + [(True, False)] * only_a + [(False, True)] * only_b + [(False, False)] * neither
    tasks = [f"t{number}" for number in range(len(outcomes) + lost)]
    pairs = zip(tasks, outcomes, strict=False)
    rows = [row(arm, task, done) for task, pair in pairs for arm, done in zip("ab", pair, strict=True)]
    return compare(typed(rows, Trials), plan(arms="ab", tasks=tasks))


@pytest.mark.parametrize(
    "counts",
    [(5, 2, 5, 9, 3), (5, 2, 5, 9, 0), (0, 1, 0, 22, 1), (22, 0, 1, 0, 0), (0, 0, 0, 0, 4), (90, 2, 3, 120, 9)],
)
def test_areas_are_numbers_of_pairs(counts: tuple[int, int, int, int, int]) -> None:
    found = split(*counts)
    ax = drawn(plot.plot_mosaic(found))
    colours = [*map(to_hex, plot.OUTCOME_COLOURS.values()), "#ffffff"]
    areas = {to_hex(box.get_facecolor()): box.get_width() * box.get_height() for box in boxes(ax)}
    for colour, count in zip(colours, counts, strict=True):
        assert areas.get(colour, 0) == pytest.approx(count / found.pairs)
    said = " ".join([*texts(ax)[:-1], *legend(ax)])
    for name, count in zip(("both", "only a", "only b", "neither", "incomplete"), counts, strict=True):
        assert (f"{name}\n{count}" in said or f"{name} ({count})" in said) == (count > 0)
    assert texts(ax)[-1] == (
        f"a: {counts[0] + counts[1]} of {sum(counts[:4])} complete pairs solved\n"
        f"b: {counts[0] + counts[2]} of {sum(counts[:4])}"
    )


def test_no_text_is_wider_than_its_tile() -> None:
    for counts in ((5, 2, 5, 9, 3), (1, 30, 1, 30, 1), (10, 10, 1, 1, 200)):
        ax = drawn(plot.plot_mosaic(split(*counts)))
        tiles = [box.get_window_extent() for box in boxes(ax)]
        for text in ax.texts[:-1]:
            extent = text.get_window_extent()
            assert any(tile.x0 <= extent.x0 and extent.x1 <= tile.x1 for tile in tiles), text


def test_attempts_are_no_mosaic() -> None:
    found = compare(*DATA["three attempts"])
    assert texts(drawn(plot.plot_mosaic(found))) == ["no pairs of one attempt each"]


# ---- difference ---------------------------------------------------------------------------------------------------


def test_difference_with_interval_and_bounds() -> None:
    found = split(5, 2, 5, 9, 3)
    ax = drawn(plot.plot_difference(found))
    assert ticks(ax) == [
        "same pairs, verdicts that stand (21)",
        "same pairs, every recorded verdict (21)",
        "all planned pairs, what is missing counted as failed (24)",
        "every completion of the plan (24)",
    ]
    (bar,) = boxes(ax)
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((found.bounds.low, found.bounds.high))
    zero, interval, point = ax.lines[:3]
    assert list(zero.get_xdata()) == [0, 0]
    assert list(interval.get_xdata()) == [found.low, found.high]
    assert list(point.get_xdata()) == [found.difference]
    assert to_hex(interval.get_color()) == to_hex(point.get_color()) == to_hex(COLOURS["blue"])
    assert ["-14.3", f"{found.bounds.low:+.1f} to {found.bounds.high:+.1f}"] == [texts(ax)[1], texts(ax)[0]]
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "a less b (pp)"


def test_only_the_comparison_itself_is_in_colour() -> None:
    trials = typed([unfinished("a", "t"), unfinished("b", "t")], Trials)
    ax = drawn(plot.plot_difference(compare(trials, plan(arms="ab", tasks=["t"]))))
    assert ticks(ax)[0].startswith("all planned pairs")
    assert to_hex(COLOURS["blue"]) not in {to_hex(line.get_color()) for line in ax.lines}
    assert not any("nan" in text for text in texts(ax))


def test_bounds_of_no_width_are_seen() -> None:
    (bar,) = boxes(drawn(plot.plot_difference(split(3, 2, 1, 1))))
    assert bar.get_width() == 0
    assert bar.get_linewidth() > 0
    assert to_hex(bar.get_edgecolor()) == to_hex(COLOURS["grey"])


def test_no_pair_at_all() -> None:
    assert texts(drawn(plot.plot_difference(compare(*DATA["no task in common"])))) == ["no complete pair"]


# ---- causes -------------------------------------------------------------------------------------------------------


def test_causes_of_both_arms_by_whose_doing_they_are() -> None:
    rows = [row("a", f"t{n}", n == 0, cause=name) for n, name in enumerate(["completed", "completed", "sandbox", None])]
    rows += [row("b", "t0", True), unfinished("b", "t1"), unfinished("b", "t2", cause="provider_network")]
    ax = drawn(plot.plot_causes(cause_table(typed(rows, Trials), plan(arms="ab", tasks=["t0", "t1", "t2", "t3"]))))
    assert ticks(ax) == [
        "completed",
        "provider_network",
        "sandbox",
        "finished, cause not on record",
        "unfinished",
        "not started",
    ]
    assert texts(ax) == [
        *(f" {count}  a" for count in (2, 0, 1, 1, 0, 0)),
        *(f" {count}  b" for count in (1, 1, 0, 0, 1, 1)),
    ]
    assert [bar.get_width() for bar in boxes(ax)] == [2, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    assert legend(ax) == ["agent", "provider", "environment", "none on record"]
    colours = [to_hex(bar.get_facecolor()) for bar in boxes(ax)[:4]]
    owners = ("agent", "provider", "environment", "none on record")
    assert colours == [to_hex(plot.OWNER_COLOURS[owner]) for owner in owners]
    assert all(tick == int(tick) for tick in ax.get_xticks())


def test_no_cause_table() -> None:
    empty = cause_table(*DATA["no trial"]).iloc[:0]
    assert texts(plot.plot_causes(empty)) == ["nothing to show in this data"]
    assert texts(plot.plot_universe(held(*DATA["no trial"]).cells.iloc[:0])) == ["nothing to show in this data"]


# ---- pairwise -----------------------------------------------------------------------------------------------------


def two_sided(*pairs: tuple[float | None, float | None]) -> pd.DataFrame:
    rows = [
        row(arm, f"t{number}", True, input_tokens=value, usage_status="reported" if value else "absent")
        for number, pair in enumerate(pairs)
        for arm, value in zip("ab", pair, strict=True)
    ]
    return held(typed(rows, Trials), plan(arms="ab", tasks=[f"t{number}" for number in range(len(pairs))])).cells


def test_what_one_arm_alone_has_lies_at_the_margin() -> None:
    cells = two_sided((1000, 20_000), (3000, 500), (700, None), (None, 90_000), (None, None))
    ax = drawn(plot.plot_pairwise(cells, ["a", "b"]))
    both, only_a, only_b, same = (np.column_stack(line.get_data()).tolist() for line in ax.lines)
    assert both == [[1000, 20_000], [3000, 500]]
    margin = only_a[0][1]
    assert (only_a, only_b) == ([[700, margin]], [[margin, 90_000]])
    assert margin < 500 / 1.6
    assert same[0][0] == same[0][1]
    assert legend(ax) == ["both (2)", "only a (1)", "only b (1)"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("input tokens, a", "input tokens, b")
    assert ax.get_xlim() == ax.get_ylim()
    low, high = ax.get_xlim()
    assert low < margin
    assert high > 90_000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((100_000, 120_000), ["50k", "100k"]),
        ((1000, 20_000), ["500", "1k", "2k", "5k", "10k", "20k"]),
        ((1000, 50_000_000), ["1k", "10k", "100k", "1M", "10M"]),
        ((3, 4), ["2", "5"]),
    ],
)
def test_log_axes_have_plain_numbers(values: tuple[int, int], expected: list[str]) -> None:
    ax = drawn(plot.plot_pairwise(two_sided(values, values[::-1]), ["a", "b"]))
    low, high = ax.get_xlim()
    for axis in ("x", "y"):
        shown = [
            label.get_text()
            for place, label in zip(
                getattr(ax, f"get_{axis}ticks")(), getattr(ax, f"get_{axis}ticklabels")(), strict=True
            )
            if low <= place <= high
        ]
        assert shown == expected or set(expected) <= set(shown)
        assert not any("$" in text or "\\" in text for text in shown)
        minor = getattr(ax, f"get_{axis}ticklabels")(minor=True)
        assert not any(label.get_text() for label in minor)


def test_the_order_of_the_arms_is_the_callers() -> None:
    ax = plot.plot_pairwise(two_sided((1000, 20_000)), ["b", "a"])
    assert np.column_stack(ax.lines[0].get_data()).tolist() == [[20_000, 1000]]
    assert ax.get_xlabel() == "input tokens, b"


def test_zeros_and_nothing_are_no_points() -> None:
    for pairs in ([(None, None)], [(0, 0)]):
        assert texts(plot.plot_pairwise(two_sided(*pairs), ["a", "b"])) == ["no input tokens on record"]


# ---- time ---------------------------------------------------------------------------------------------------------


def test_phases_are_stacked_with_what_none_explains() -> None:
    rows = [
        row("a", "t", True, setup_seconds=10.0, agent_seconds=60.0, verifier_seconds=5.0, total_seconds=100.0),
        row("b", "t", True, setup_seconds=20.0, agent_seconds=20.0, verifier_seconds=None, total_seconds=50.0),
    ]
    ax = drawn(plot.plot_time(timing(typed(rows, Trials), plan(arms="ab", tasks=["t"])).arms))
    spans = [(bar.get_x(), bar.get_width()) for bar in boxes(ax)]
    assert spans == [(0, 10), (0, 20), (10, 60), (20, 20), (70, 5), (40, 0), (75, 25), (40, 10)]
    assert legend(ax) == ["setup", "agent", "verifier", "unexplained"]
    assert ticks(ax) == ["a (1)", "b (1)"]
    assert sorted(texts(ax)) == sorted(["10", "60", "25", "20", "20", "10"])  # 5 has no room
    assert ax.yaxis_inverted()


@pytest.mark.parametrize("data", ["no trial", "nothing known"])
def test_no_times(data: str) -> None:
    assert texts(plot.plot_time(timing(*DATA[data]).arms)) == ["no times on record"]
