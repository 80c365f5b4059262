"""Precision at full recall, run by run, under a stated policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from faultbook.diagnosis.entities import Entity
from faultbook.diagnosis.match import IncidentTruth, claims, truths_by_incident
from faultbook.diagnosis.policy import Policy, get_policy
from faultbook.diagnosis.truth import Truth

RUN_KEY = ["model", "incident_id", "repeat"]
SCORE_COLUMNS = [
    *RUN_KEY,
    *("policy", "scoring", "status", "n_submitted", "n_causes", "n_found", "tp", "fp", "recall", "precision", "score"),
]
SUBMITTED = ("scored", "empty")  # statuses of runs that have a submission
_COUNTED = ("n_submitted", "n_causes", "n_found", "tp", "fp")


def score(
    submissions: pd.DataFrame, runs: pd.DataFrame, truth: Truth, policy: str | Policy = "itbench-aa"
) -> pd.DataFrame:
    """Score every run: 0 if any cause set is missed, else TP / (TP + FP).

    Parameters
    ----------
    submissions, runs : DataFrame
        The tables `Submissions` and `Runs`. Only entities at stage `confirmed` count as submitted.
    truth : Truth
        Ground truths. Every incident in it is expected of every model, as often as the model has repeats: a run that
        is not in `runs` is added with the status `missing`.
    policy : str or Policy
        The convention; its name stands in every row.

    Returns
    -------
    DataFrame
        One row a run: model, incident_id, repeat, policy, scoring, status, n_submitted, n_causes, n_found, tp, fp,
        recall, precision, score. `precision` is missing where nothing was submitted; all of them are missing for a run
        that has no submission (malformed, timed_out, missing) or no gradeable truth (ungradeable). An empty submission
        has recall and score 0.

    Notes
    -----
    ITBench-AA, methodology: average precision at full recall. Two hits on one alias class are one cause found
    (`repeated_hits`), and one entity stands for one cause.
    """
    chosen = get_policy(policy)
    truths = truths_by_incident(truth.causes, chosen)
    named = confirmed_entities(submissions)
    rows = []
    for run in complete_runs(runs, truth).to_dict("records"):
        key = (run["model"], run["incident_id"], run["repeat"])
        found = truths.get(run["incident_id"])
        status = "ungradeable" if found is None or not found.root_sets else run["status"]
        entities = [entity for _, entity in named.get(key, [])]
        measured = _measure(entities, found, chosen) if found and status in SUBMITTED else {}
        rows.append(
            {
                **dict(zip(RUN_KEY, key, strict=True)),
                "policy": chosen.name,
                "scoring": chosen.scoring,
                "status": status,
                **measured,
            }
        )
    frame = pd.DataFrame(rows, columns=SCORE_COLUMNS)
    types: dict[str, str] = dict.fromkeys(_COUNTED, "Int64") | dict.fromkeys(
        ("recall", "precision", "score"), "Float64"
    )
    return frame.astype({**types, "repeat": "int64"})


def complete_runs(runs: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    """Add the runs that a model owes: every incident of the truth, as often as the model has repeats."""
    owed = [
        (model, incident_id, repeat)
        for model, part in runs.groupby("model", sort=False)
        for incident_id in truth.incidents["incident_id"]
        for repeat in sorted(part["repeat"].unique())
    ]
    there = set(runs[RUN_KEY].itertuples(index=False, name=None))
    missing = [(*key, "missing", pd.NA, pd.NA) for key in owed if key not in there]
    if not missing:
        return runs
    added = pd.DataFrame(missing, columns=list(runs.columns)).astype(runs.dtypes.to_dict())
    return pd.concat([runs, added], ignore_index=True)


def confirmed_entities(submissions: pd.DataFrame) -> dict[tuple[str, str, int], list[tuple[int, Entity]]]:
    """The submitted entities of each run with their positions, in order: those at stage `confirmed`."""
    confirmed = submissions[submissions["stage"] == "confirmed"].sort_values([*RUN_KEY, "position"], kind="stable")
    columns = [*RUN_KEY, "position", "namespace", "kind", "name"]
    plain = confirmed[columns].astype(object).where(confirmed[columns].notna(), None)
    named: dict[tuple[str, str, int], list[tuple[int, Entity]]] = {}
    for model, incident_id, repeat, position, namespace, kind, name in plain.itertuples(index=False, name=None):
        named.setdefault((model, incident_id, repeat), []).append((position, Entity(namespace, kind, name)))
    return named


def _measure(entities: Sequence[Entity], truth: IncidentTruth, policy: Policy) -> dict[str, Any]:
    hits = [truth.root_hits(entity) for entity in entities]
    n_causes, n_found = len(truth.root_sets), len(claims(entities, truth))
    n_hits = sum(bool(sets) for sets in hits)
    wrong = [entity for entity, sets in zip(entities, hits, strict=True) if not sets]
    tp = n_hits if policy.repeated_hits == "every_hit" else n_found
    fp = _false_positives(wrong, truth, policy) + (n_hits - n_found if policy.repeated_hits == "extra_is_fp" else 0)
    recall, precision = n_found / n_causes, tp / (tp + fp) if tp + fp else None
    counts = {"n_submitted": len(entities), "n_causes": n_causes, "n_found": n_found, "tp": tp, "fp": fp}
    return counts | {"recall": recall, "precision": precision, "score": _score(recall, precision, policy)}


def _false_positives(wrong: Sequence[Entity], truth: IncidentTruth, policy: Policy) -> int:
    if policy.repeated_false_positives == "every":
        return len(wrong)
    distinct = dict.fromkeys(entity.folded() for entity in wrong)
    if policy.repeated_false_positives == "once":
        return len(distinct)
    # one claim for each alias class of the truth; what is not in the truth is a claim of its own
    claims = {(groups[0].cause_set if (groups := truth.matches(entity)) else entity) for entity in distinct}
    return len(claims)


def _score(recall: float, precision: float | None, policy: Policy) -> float:
    if precision is None:
        return 0.0
    if policy.scoring == "f1":
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision if recall == 1 else 0.0
