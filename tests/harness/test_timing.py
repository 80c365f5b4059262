"""Where the time of trials went, and the rest that no phase explains."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.harness.plan import plan
from faultbook.harness.read import read_trials
from faultbook.harness.timing import PHASES, Timing, timing
from faultbook.tables import Trials, typed


def trial(arm: str, task: str, total: float | None, *phases: float | None, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": 1, "state": "finished", "resolved": True, "total_seconds": total}
    row |= dict(zip(PHASES, phases, strict=False))
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def run(*rows: dict[str, Any], **settings: Any) -> Timing:
    if not any(row["arm"] == "b" for row in rows):
        rows = (*rows, trial("b", "t", None))
    return timing(typed(list(rows), Trials), **settings)


def only(found: Timing) -> dict[str, Any]:
    (row,) = found.trials.to_dict("records")
    return row


def of_arm(found: Timing, arm: str, phase: str) -> dict[str, Any]:
    table = found.arms
    return table[(table["arm"] == arm) & (table["phase"] == phase)].iloc[0].to_dict()


@pytest.mark.parametrize(
    ("phases", "rest", "note"),
    [
        ((1.0, 7.0, 0.5), 1.5, None),
        ((1.0, 7.0, 2.0), 0.0, None),
        ((0.1, 0.2, 9.7 + 1e-9), 0.0, None),  # of times read as text
        ((1.0, 7.0, None), 2.0, None),
        ((None, None, 0.0), 10.0, None),
        ((None, None, None), None, "no phase is known"),
        ((5.0, 5.0, 0.5), None, "the phases overlap: they sum to more than the total"),
        ((None, 10.1, None), None, "the phases overlap: they sum to more than the total"),
    ],
)
def test_the_rest(phases: tuple[float | None, ...], rest: float | None, note: str | None) -> None:
    row = only(run(trial("a", "t", 10.0, *phases)))
    found = row["unexplained_seconds"]
    assert pd.isna(found) if rest is None else found == pytest.approx(rest)
    assert (None if pd.isna(row["note"]) else row["note"]) == note
    assert row["total_seconds"] == 10


def test_a_trial_without_a_total_is_not_timed() -> None:
    found = run(trial("a", "t", None, 1.0, 2.0, 3.0), trial("a", "u", 6.0, 1.0, 2.0, 3.0))
    assert found.trials["task_id"].tolist() == ["u"]
    row = of_arm(found, "a", "agent")
    assert (row["finished"], row["timed"], row["known_in"]) == (2, 1, 1)
    assert (row["seconds"], row["per_trial"], row["share"]) == (2.0, 2.0, 2 / 6)


def test_the_table_by_arm() -> None:
    found = run(
        trial("a", "t", 10.0, 1.0, 7.0, 1.0), trial("a", "u", 20.0, None, 15.0, 1.0), trial("b", "t", 4.0, None, 5.0)
    )
    assert found.arms["phase"].tolist() == ["setup", "agent", "verifier", "unexplained"] * 2
    seconds = {phase: of_arm(found, "a", phase) for phase in ("setup", "agent", "verifier", "unexplained")}
    assert [row["seconds"] for row in seconds.values()] == [1.0, 22.0, 2.0, 5.0]
    assert [row["known_in"] for row in seconds.values()] == [1, 2, 2, 2]
    assert sum(row["share"] for row in seconds.values()) == pytest.approx(1)
    assert seconds["agent"]["per_trial"] == 11
    row = of_arm(found, "b", "unexplained")  # its phases overlap
    assert row["known_in"] == 0
    assert math.isnan(row["seconds"])
    assert math.isnan(row["share"])
    assert found.summary_frame() is found.arms


def test_nothing_timed_is_missing_and_not_zero() -> None:
    found = run(trial("a", "t", None))
    assert found.trials.empty
    assert found.arms[["seconds", "per_trial", "share"]].isna().all(axis=None)
    assert (found.arms["timed"] == 0).all()


def test_no_time_at_all_has_no_share() -> None:
    row = of_arm(run(trial("a", "t", 0.0, 0.0)), "a", "setup")
    assert (row["seconds"], row["known_in"]) == (0.0, 1)
    assert math.isnan(row["share"])


def test_a_trial_that_broke_off_is_timed_with_its_state() -> None:
    found = run(trial("a", "t", 9.0, 1.0, state="unfinished", resolved=None, cause="sandbox"))
    row = only(found)
    assert (row["state"], row["cause"], row["unexplained_seconds"]) == ("unfinished", "sandbox", 8.0)
    assert of_arm(found, "a", "setup")["finished"] == 0


def test_what_is_not_planned_takes_no_time() -> None:
    rows = [trial(arm, task, 1.0, 1.0) for arm in "abc" for task in "tu"]
    found = run(*rows, planned=plan(arms=["a", "b"], tasks=["t"]))
    assert found.trials[["arm", "task_id"]].values.tolist() == [["a", "t"], ["b", "t"]]


def test_three_arms_need_two_names() -> None:
    rows = [trial(arm, "t", 1.0, 1.0) for arm in "abc"]
    with pytest.raises(FaultbookError, match="the plan has 3 arms"):
        run(*rows)
    assert run(*rows, arms=["c", "a"]).arms["arm"].unique().tolist() == ["c", "a"]


# ---- from clocks


def job(folder: Path, **spans: tuple[str | None, str | None]) -> pd.DataFrame:
    """The trials of a Harbor job of one trial; `trial` is its own span, the others those of its phases."""
    trial_folder = folder / "job" / "t__x"
    trial_folder.mkdir(parents=True)
    started, finished = spans.pop("trial")
    result = {"task_name": "t", "trial_name": "t__x", "trial_uri": "u", "agent_info": {"name": "a", "version": "1"}}
    result |= {"verifier_result": {"rewards": {"reward": 1}}, "started_at": started, "finished_at": finished}
    result |= {name: {"started_at": start, "finished_at": end} for name, (start, end) in spans.items()}
    (trial_folder / "result.json").write_text(json.dumps(result))
    return read_trials(folder / "job")


def timed(table: pd.DataFrame) -> Timing:
    return timing(table, plan(arms=["a", "b"], tasks=["t"]))


def test_times_of_one_clock(tmp_path: Path) -> None:
    spans = {"trial": ("2026-07-01T10:00:00Z", "2026-07-01T12:10:00+02:00")}
    spans |= {"agent_execution": ("2026-07-01T10:01:00Z", "2026-07-01T10:09:00+00:00")}
    row = only(timed(job(tmp_path, **spans)))
    assert (row["total_seconds"], row["agent_seconds"], row["unexplained_seconds"]) == (600, 480, 120)


@pytest.mark.parametrize("end", ["2026-07-01T10:10:00", "2026-07-01T09:59:59Z", "soon", None])
def test_naive_reversed_or_broken_times_are_no_duration(tmp_path: Path, end: str | None) -> None:
    table = job(tmp_path, trial=("2026-07-01T10:00:00Z", end), verifier=("2026-07-01T10:00:00Z", end))
    assert table[["total_seconds", "verifier_seconds"]].isna().all(axis=None)
    assert timed(table).trials.empty


SECONDS = st.one_of(st.none(), st.floats(0, 1e6))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, SECONDS), min_size=1, max_size=5))
def test_phases_and_rest_make_up_the_total_or_the_rest_is_missing(times: list[tuple[float | None, ...]]) -> None:
    rows = [trial("a", f"t{i}", *one) for i, one in enumerate(times)]
    found = run(*rows).trials
    assert len(found) == sum(one[0] is not None for one in times)
    rest = found["unexplained_seconds"]
    known = found[list(PHASES)].sum(axis=1)
    assert not (rest.dropna() < 0).any()
    explained = (known + rest - found["total_seconds"]).dropna().astype(float).abs()
    assert (explained <= 2e-6).all()
    assert (rest.isna() == found["note"].notna()).all()
