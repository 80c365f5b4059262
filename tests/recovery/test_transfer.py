"""Rules fitted on one data set and judged on another, from episodes to the table."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from faultbook.errors import FaultbookError
from faultbook.recovery.candidates import candidates
from faultbook.recovery.evaluate import ALL, TABLE_COLUMNS
from faultbook.recovery.transfer import OTHER, SAME, TRANSFER_COLUMNS, fit_policies, transfer
from faultbook.tables import CONDITIONS

MAKE = partial(fit_policies, failure_probability="complement_of_p0", harm_limit=0.1)


def moments(n_tasks: int, seed: int, *, first: int = 0, help_from_refresh: float = 0.6) -> pd.DataFrame:
    """Candidates of episodes whose features say something of what comes of them."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(first, first + n_tasks):
        for condition in CONDITIONS:
            noops = float(rng.poisson(3 if condition != "clean" else 1))
            without = bool(rng.random() < (0.8 if noops < 2 else 0.4))
            common = {"task_id": f"t{task}", "condition": condition, "replicate": 0}
            rows.append(common | {"action": "none", "delay": None, "success": without})
            for delay in (1, 2, 4):
                with_ = without if rng.random() > help_from_refresh else bool(rng.random() < 0.65)
                at = common | {"action": "refresh", "delay": delay, "success": with_, "ended_before": False}
                rows.append(at | {"x_noops": noops, "x_progress": rng.normal()})
    episodes = pd.DataFrame(rows)
    episodes["delay"] = episodes["delay"].astype("Int64")
    return candidates(episodes.assign(ended_before=False))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    sources = {"one": moments(30, 0), "another": moments(20, 1, first=25, help_from_refresh=0.2)}
    return transfer(sources, sources, MAKE, n_resamples=50)


def test_every_pair_of_data_sets_has_every_policy_and_condition(table: pd.DataFrame) -> None:
    assert list(table) == TRANSFER_COLUMNS == ["fitted_on", "judged_on", "judged_as", "n_tasks_shared", *TABLE_COLUMNS]
    assert (table.groupby(["fitted_on", "judged_on"]).size() == 9 * 5).all()
    assert len(table) == 4 * 9 * 5
    assert not table.duplicated(["fitted_on", "judged_on", "policy", "condition"]).any()


def test_the_same_runs_are_called_so(table: pd.DataFrame) -> None:
    same = table["fitted_on"] == table["judged_on"]
    assert (table.loc[same, "judged_as"] == SAME).all()
    assert (table.loc[~same, "judged_as"] == OTHER).all()


def test_shared_tasks_are_counted(table: pd.DataFrame) -> None:
    shared = table.groupby(["fitted_on", "judged_on"])["n_tasks_shared"].first()
    assert shared["one", "another"] == shared["another", "one"] == 5  # t25 to t29
    assert shared["one", "one"] == 30


def test_a_policy_without_a_threshold_does_the_same_wherever_it_was_fitted(table: pd.DataFrame) -> None:
    plain = table[table["policy"].isin(["never", "always at delay 1", "oracle (uses outcomes)"])]
    varying = plain.groupby(["judged_on", "policy", "condition"])["rescues"].nunique()
    assert (varying == 1).all()


def test_the_limit_holds_where_the_rule_was_chosen(table: pd.DataFrame) -> None:
    own = table[(table["judged_as"] == SAME) & (table["policy"] == "CIR rule") & (table["condition"] == ALL)]
    allowed = own["judged_on"].map({"one": 3, "another": 2})
    assert (own["clean_harms"] <= allowed).all()


def test_nothing_to_fit_on() -> None:
    with pytest.raises(FaultbookError, match="no data set to fit on or none to judge on"):
        transfer({}, {"one": moments(3, 0)}, MAKE)
