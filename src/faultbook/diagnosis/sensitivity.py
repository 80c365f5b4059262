"""The same submissions under every policy and under alternative truths: what a score owes to the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from faultbook.diagnosis.policy import POLICIES, Policy, get_policy
from faultbook.diagnosis.score import RUN_KEY, score
from faultbook.diagnosis.summary import counted_scores
from faultbook.diagnosis.truth import Truth
from faultbook.errors import FaultbookError

SETTING = ["truth", "policy"]


@dataclass(frozen=True)
class Sensitivity:
    """Scores under every setting.

    Attributes
    ----------
    summary : DataFrame
        truth, policy, model, score, change_pp (percentage points against the reference setting), n_incidents, n_runs.
    changes : DataFrame
        Runs whose score differs from the reference: truth, policy, model, incident_id, repeat, reference, score, why.
    """

    summary: pd.DataFrame
    changes: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """The summary."""
        return self.summary

    def plot(self, ax: Axes | None = None) -> Axes:
        """A strip of scores per model, one mark a setting."""
        from faultbook.diagnosis.plot import plot_sensitivity

        return plot_sensitivity(self.summary, ax=ax)


def sensitivity(
    submissions: pd.DataFrame,
    runs: pd.DataFrame,
    truths: Truth | Mapping[str, Truth],
    policies: Iterable[str | Policy] = tuple(POLICIES),
) -> Sensitivity:
    """Score submissions under several policies and truths.

    Parameters
    ----------
    submissions, runs : DataFrame
        As for `score`.
    truths : Truth, or mapping of name to Truth
        The first one is the reference. Incidents of the others are matched by id, whatever joins its words
        ("scenario_12" is "scenario-12"); those that the reference does not have are left out.
    policies : iterable
        The first one is the reference.

    Returns
    -------
    Sensitivity

    Raises
    ------
    FaultbookError
        If there is no truth or policy, or two policies have one name.
    """
    named = {"truth": truths} if isinstance(truths, Truth) else dict(truths)
    chosen = [get_policy(policy) for policy in policies]
    if not named or not chosen:
        raise FaultbookError("give at least one truth and one policy")
    doubled = [name for name, times in Counter(policy.name for policy in chosen).items() if times > 1]
    if doubled:
        raise FaultbookError(f"several policies are called '{doubled[0]}'; give each a name of its own")
    reference_truth = next(iter(named.values()))
    scored = {
        (name, policy.name): score(submissions, runs, align(truth, reference_truth), policy)
        for name, truth in named.items()
        for policy in chosen
    }
    reference = next(iter(scored.values()))
    summaries = [_summary(frame, reference, setting) for setting, frame in scored.items()]
    changes = [_changes(frame, reference, setting) for setting, frame in scored.items()]
    return Sensitivity(pd.concat(summaries, ignore_index=True), pd.concat(changes, ignore_index=True))


def align(truth: Truth, reference: Truth) -> Truth:
    """Give the incidents of a truth the ids that a reference uses for them; incidents it does not have are dropped.

    An id that the reference has keeps its place. Otherwise ids are compared without letter case and joining character,
    and at last by the name of the file they came from.

    Raises
    ------
    FaultbookError
        If two incidents would become one.
    """
    if truth is reference:
        return truth
    ids = set(reference.incidents["incident_id"])
    by_key = {incident_key(name): name for name in reference.incidents["incident_id"]}
    by_file = {_file_key(row): row["incident_id"] for row in reference.incidents.to_dict("records")}
    names: dict[str, str] = {}
    for row in truth.incidents.to_dict("records"):
        own, key, file = row["incident_id"], incident_key(row["incident_id"]), _file_key(row)
        found = own if own in ids else by_key.get(key) or by_key.get(file) or by_file.get(key)
        if found is not None:
            names[own] = found
    doubled = [name for name, times in Counter(names.values()).items() if times > 1]
    if doubled:
        raise FaultbookError(
            f"several incidents would become '{doubled[0]}'; give them ids that differ in more than - and _"
        )

    def renamed(frame: pd.DataFrame) -> pd.DataFrame:
        new = frame["incident_id"].map(names)
        return frame.assign(incident_id=new.astype("string"))[new.notna()].reset_index(drop=True)

    return replace(
        truth,
        causes=renamed(truth.causes),
        edges=renamed(truth.edges),
        incidents=renamed(truth.incidents),
        notes=renamed(truth.notes),
    )


def _file_key(incident: Mapping[Hashable, Any]) -> str:
    return incident_key(str(incident["source"]).rsplit(".", 1)[0])


def incident_key(incident_id: str) -> str:
    """An id as it is compared between truths: letter case and the joining character do not count."""
    return str(incident_id).casefold().replace("_", "-")


def _summary(frame: pd.DataFrame, reference: pd.DataFrame, setting: tuple[str, str]) -> pd.DataFrame:
    rows = []
    for model, part in frame.groupby("model", sort=False):
        gradeable = part[part["status"] != "ungradeable"]
        value = counted_scores(gradeable).mean()
        there = reference[(reference["model"] == model) & (reference["status"] != "ungradeable")]
        change = 100 * (value - counted_scores(there).mean())
        rows.append((*setting, model, value, change, gradeable["incident_id"].nunique(), len(gradeable)))
    return pd.DataFrame(rows, columns=[*SETTING, "model", "score", "change_pp", "n_incidents", "n_runs"])


def _changes(frame: pd.DataFrame, reference: pd.DataFrame, setting: tuple[str, str]) -> pd.DataFrame:
    both = reference.merge(frame, on=RUN_KEY, suffixes=("_reference", ""))
    before, after = (both[name].astype("float64").fillna(-1.0) for name in ("score_reference", "score"))
    moved = both[(before - after).abs() > 1e-12]
    rows = [
        (*setting, *(row[name] for name in RUN_KEY), row["score_reference"], row["score"], _why(row))
        for row in moved.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=[*SETTING, *RUN_KEY, "reference", "score", "why"])


def _why(row: Mapping[object, object]) -> str:
    """What differs between the two gradings of a run, in the order in which it decides."""
    if row["status"] != row["status_reference"]:
        return f"status {row['status_reference']} → {row['status']}"
    parts = [
        f"{text} {row[f'{name}_reference']} → {row[name]}"
        for name, text in (
            ("n_causes", "causes"),
            ("n_found", "found"),
            ("tp", "true positives"),
            ("fp", "false positives"),
        )
        if row[name] != row[f"{name}_reference"]
    ]
    return ", ".join(parts) or "another formula"
