"""The recorded episodes are what data/README.md says of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from faultbook.recovery.read import read_episodes
from faultbook.recovery.simulate.features import FEATURES

FOLDER = Path(__file__).parents[3] / "data" / "episodes"
FORK = ["task_id", "condition", "delay"]
SETS = {"alfworld-scripted": (93, 75), "alfworld-scripted-noisy": (30, 24)}


@pytest.fixture(scope="module", params=SETS)
def recorded(request: pytest.FixtureRequest) -> tuple[str, pd.DataFrame]:
    return request.param, read_episodes(FOLDER / f"{request.param}.parquet")


def test_cohorts_and_branches(recorded: tuple[str, pd.DataFrame]) -> None:
    name, episodes = recorded
    cohorts = episodes.groupby("task_id")["cohort"].agg(["first", "nunique"])
    assert cohorts["nunique"].eq(1).all()
    assert tuple(cohorts["first"].value_counts()[["fit", "evaluation"]]) == SETS[name]
    assert episodes.groupby("task_id").size().eq(80).all()
    assert episodes["source"].str.startswith("alfworld engine, scripted agent").all()


def test_all_branches_of_a_fork_share_its_past(recorded: tuple[str, pd.DataFrame]) -> None:
    _, episodes = recorded
    same = episodes.groupby(FORK)[["prefix_hash", "ended_before", *FEATURES]].nunique()
    assert same.eq(1).all(axis=None)
    at_once = episodes[episodes["delay"] == 0]
    assert at_once.groupby("task_id")["prefix_hash"].nunique().eq(1).all()  # no condition touches the world


def test_without_noise_nothing_flips(recorded: tuple[str, pd.DataFrame]) -> None:
    name, episodes = recorded
    none = episodes[episodes["action"] == "none"].groupby(FORK)["success"].nunique()
    assert (none.max() == 1) == (name == "alfworld-scripted")


def test_outcomes_of_what_was_over_are_carried_forward(recorded: tuple[str, pd.DataFrame]) -> None:
    _, episodes = recorded
    over = episodes[episodes["ended_before"]]
    assert len(over) > 0
    assert over.groupby(FORK)[["success", "n_actions"]].nunique().eq(1).all(axis=None)


def test_both_rescues_and_harms_occur(recorded: tuple[str, pd.DataFrame]) -> None:
    _, episodes = recorded
    at_once = episodes[(episodes["delay"] == 0) & (episodes["replicate"] == 0)]
    ends = at_once.pivot_table(index=["task_id", "condition"], columns="action", values="success", aggfunc="first")
    gain = ends["refresh"].astype(int) - ends["none"].astype(int)
    counts = gain.groupby("condition").value_counts().unstack(fill_value=0)  # noqa: PD010  # of a series
    assert counts.loc["stale2", 1] > 0.1 * ends.loc[:, :].index.get_level_values("task_id").nunique()
    assert counts.loc["clean", -1] > 0
