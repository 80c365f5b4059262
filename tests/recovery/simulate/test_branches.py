"""One task, eighty ends: forks from one state, conditions that touch no world, outcomes that are carried forward."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_world import ForgetfulWorld, TinyAgent, TinyEngine, TinyWorld

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.branches import COLUMNS, DELAYS, TaskEpisodes, run_task
from faultbook.recovery.simulate.conditions import HIDDEN_TEXT, MISSING_TEXT
from faultbook.recovery.simulate.features import FEATURES
from faultbook.tables import ACTIONS, CONDITIONS, Episodes

FORK = ["condition", "delay"]


def frame(episodes: TaskEpisodes) -> pd.DataFrame:
    return Episodes.validate(
        pd.DataFrame(episodes.rows).astype(
            {
                "delay": "Int64",
                "cohort": "str",
                "factual_success": "boolean",
                "ended_before": "boolean",
                "n_actions": "Int64",
            }
        )
    )


def run(index: int = 4, seed: int = 0, **settings: Any) -> TaskEpisodes:
    return run_task(TinyEngine(**settings), index, seed)


def ends(episodes: TaskEpisodes, condition: str, delay: int) -> dict[tuple[str, int], tuple[bool, int]]:
    return {
        (row["action"], row["replicate"]): (row["success"], row["n_actions"])
        for row in episodes.rows
        if (row["condition"], row["delay"]) == (condition, delay)
    }


def replicates(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two branches without recovery, row by row."""
    none = table[table["action"] == "none"]
    return none[none["replicate"] == 0], none[none["replicate"] == 1]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 50), st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_every_fork_has_its_five_branches(index: int, seed: int, noise: float) -> None:
    episodes = run(index, seed, noise=noise)
    assert episodes.feasible == (episodes.factual_actions > episodes.fork)
    if not episodes.feasible:
        assert episodes.rows == []
        return
    assert all(tuple(row) == COLUMNS for row in episodes.rows)
    table = frame(episodes)
    branches = [("none", 0), ("none", 1), ("refresh", 0), ("ablated_refresh", 0), ("replan", 0)]
    expected = [(c, d, *branch) for c in CONDITIONS for d in DELAYS for branch in branches]
    assert list(table[[*FORK, "action", "replicate"]].itertuples(index=False, name=None)) == expected
    same = table.groupby(FORK)[["prefix_hash", "ended_before", *FEATURES]].nunique()
    assert (same == 1).all(axis=None)  # nothing before the decision depends on what is decided
    assert (table["n_actions"] <= episodes.limit).all()
    assert (table["success"] | table["ended_before"] | (table["n_actions"] == episodes.limit)).all()
    assert (table["factual_success"] == episodes.factual_success).all()
    assert (table["x_steps"] <= episodes.fork + table["delay"]).all()


def test_the_fork_lies_at_a_quarter() -> None:
    for index in range(7):
        episodes = run(index)
        assert episodes.factual_actions == min(index + 4, 9)  # n boxes and a grip, or the limit
        assert episodes.fork == max(2, math.ceil(episodes.factual_actions / 4))
        assert frame(episodes)["x_steps"].min() == episodes.fork


def test_the_world_at_the_fork_is_the_same_under_every_condition() -> None:
    table = frame(run())
    at_once = table[table["delay"] == 0]
    assert at_once["prefix_hash"].nunique() == 1
    assert at_once["prefix_hash"].iloc[0] == "[0, 1] 1"  # two boxes are open


def test_a_deterministic_agent_does_the_same_twice() -> None:
    table = frame(run())
    one, other = replicates(table)
    assert one["success"].to_list() == other["success"].to_list()
    assert one["n_actions"].to_list() == other["n_actions"].to_list()
    clean = table[(table["condition"] == "clean") & (table["action"] == "none")]
    assert clean["success"].all()
    assert clean["n_actions"].eq(8).all()  # as the undisturbed run: seven boxes and a grip


def test_outcomes_by_hand() -> None:
    # Seven boxes with the key in the last, so 8 actions; the fork is at the second. Shown the first box's text (stale1)
    # or the opening (stale2), the agent tries the second box again, in vain, and goes on: one action more. A refresh
    # costs one and teaches this agent nothing; a plan anew tries both boxes again.
    episodes = run()
    assert (episodes.factual_actions, episodes.fork) == (8, 2)
    plenty = dataclasses.replace(TinyEngine(), max_slack=40)
    episodes = next(e for e in (run_task(plenty, 4, seed) for seed in range(20)) if e.limit > 16)
    assert ends(episodes, "clean", 0) == {
        ("none", 0): (True, 8),
        ("none", 1): (True, 8),
        ("refresh", 0): (True, 9),
        ("ablated_refresh", 0): (True, 9),
        ("replan", 0): (True, 10),
    }
    stale = ends(episodes, "stale1", 0)
    assert (stale["none", 0], stale["refresh", 0], stale["replan", 0]) == ((True, 9), (True, 10), (True, 10))


def test_limits_turn_costs_into_harms() -> None:
    tight = dataclasses.replace(TinyEngine(), max_slack=0)
    episodes = run_task(tight, 4, 0)
    assert episodes.limit == episodes.factual_actions
    clean = ends(episodes, "clean", 1)
    assert clean["none", 0] == (True, 8)
    assert [clean[action, 0] for action in ACTIONS[1:]] == [(False, 8)] * 3


def test_slack_varies_and_is_bounded() -> None:
    slacks = [episodes.limit - episodes.factual_actions for episodes in (run(4, seed) for seed in range(40))]
    assert set(slacks) == set(range(TinyEngine().max_slack + 1))


def test_a_failed_factual_run_gets_no_slack() -> None:
    episodes = run(6)  # nine boxes and a grip do not go into nine actions
    assert not episodes.factual_success
    assert episodes.limit == TinyEngine().action_limit


def test_what_is_over_keeps_its_outcome() -> None:
    episodes = run(0)  # three boxes, so over after 4 actions, with the fork at 2
    assert (episodes.factual_actions, episodes.fork) == (4, 2)
    table = frame(episodes)
    late = table[(table["condition"] == "clean") & (table["delay"] >= 2)]
    assert late["ended_before"].all()
    assert late["success"].all()
    assert late["n_actions"].eq(4).all()
    assert len(late) == 2 * 5  # and stays in the denominator
    assert not table.loc[table["delay"] == 0, "ended_before"].any()


def test_noise_makes_branches_differ_but_not_their_past() -> None:
    table = pd.concat([frame(episodes) for seed in range(8) if (episodes := run(4, seed, noise=0.6)).feasible])
    one, other = replicates(table)
    assert one["n_actions"].to_list() != other["n_actions"].to_list()
    assert one["prefix_hash"].to_list() == other["prefix_hash"].to_list()


def test_a_run_without_recovery_ends_alike_at_every_delay() -> None:
    tables = [frame(episodes) for seed in range(8) if (episodes := run(4, seed, noise=0.6)).feasible]
    for table in tables:
        itself = table[(table["action"] == "none") & (table["replicate"] == 0)]
        assert (itself.groupby("condition")["success"].nunique() == 1).all()
        assert (itself.groupby("condition")["n_actions"].nunique() == 1).all()
    again = pd.concat(tables).query("action == 'none' and replicate == 1")
    assert (again.groupby(["task_id", "condition"])["n_actions"].nunique() > 1).any()  # it is another run each time


def test_seed_and_number_decide_whatever_else_is_run() -> None:
    engine = TinyEngine(noise=0.4)
    alone = run_task(engine, 5, 3)
    for index in range(3):
        run_task(engine, index, 3)
    assert run_task(engine, 5, 3) == alone
    assert run_task(engine, 5, 4).rows != alone.rows


def test_an_engine_that_does_not_branch_exactly_is_refused() -> None:
    with pytest.raises(FaultbookError, match=r"tiny-0-4.*after 2 actions starts in state.*does not branch exactly"):
        run(world=ForgetfulWorld)


# ---- what agents get to read -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Watched(TinyEngine):
    """An engine that keeps every world and agent it makes or that is copied from one."""

    def environment(self, task: Any) -> TinyWorld:
        world = WatchedWorld(task)
        WatchedWorld.made.append(world)
        return world

    def agent(self, task: Any, seed: int) -> TinyAgent:
        return WatchedAgent(self.noise, seed)


class WatchedWorld(TinyWorld):
    made: list[TinyWorld] = []  # noqa: RUF012

    def branch(self) -> TinyWorld:
        other = super().branch()
        WatchedWorld.made.append(other)
        return other


class WatchedAgent(TinyAgent):
    copied: list[TinyAgent] = []  # noqa: RUF012

    def copy(self, seed: int | None = None) -> TinyAgent:
        other = super().copy(seed)
        WatchedAgent.copied.append(other)
        return other


@pytest.fixture
def watched() -> TaskEpisodes:
    WatchedWorld.made.clear()
    WatchedAgent.copied.clear()
    return run_task(Watched(max_slack=40), 4, 0)


def branch_agent(condition: str, delay: int, branch: int) -> TinyAgent:
    """The agent of a branch: they are copied in the order of the rows (none was over)."""
    place = (CONDITIONS.index(condition) * len(DELAYS) + DELAYS.index(delay)) * 5 + branch
    return WatchedAgent.copied[place]


def test_agents_read_what_the_condition_shows(watched: TaskEpisodes) -> None:
    assert watched.fork == 2
    texts = ["There are 7 boxes.", "The box 0 is empty.", "The box 1 is empty."]
    disturbed = {"clean": texts[2], "stale1": texts[1], "stale2": texts[0], "missing": MISSING_TEXT}
    for condition, text in disturbed.items():
        assert branch_agent(condition, 0, 0).read[:3] == [texts[0], texts[1], text]


def test_only_a_full_refresh_shows_its_answer(watched: TaskEpisodes) -> None:
    none, _, refresh, ablated, replan = (branch_agent("clean", 0, branch).read for branch in range(5))
    assert refresh[3] == "You kneel at the box 1."
    assert ablated[3] == HIDDEN_TEXT
    assert none[3] == "The box 2 is empty."
    assert replan[3] == "Nothing happens."  # it opens the first box again, and was shown nothing first
    assert all("kneel" not in text for text in ablated)
    assert refresh[4:] == ablated[4:] == none[3:]


def test_every_world_is_closed(watched: TaskEpisodes) -> None:
    assert watched.feasible
    assert len(WatchedWorld.made) > 80
    assert all(world.closed for world in WatchedWorld.made)
