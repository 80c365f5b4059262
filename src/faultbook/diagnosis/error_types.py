"""Every false positive gets one label, and every omission its cause set, both relative to the incident's own truth."""

from __future__ import annotations

from typing import Any

import pandas as pd

from faultbook.diagnosis.entities import MECHANISM_KINDS, Entity
from faultbook.diagnosis.graph import Propagation
from faultbook.diagnosis.match import Group, IncidentTruth, claims, truths_by_incident
from faultbook.diagnosis.policy import Policy, get_policy
from faultbook.diagnosis.score import RUN_KEY, confirmed_entities
from faultbook.diagnosis.truth import Truth

ERROR_COLUMNS = [*RUN_KEY, "policy", "error", "label", "position", "entity", "cause_set"]
LABELS = (
    "duplicate of a found cause",
    "downstream symptom",
    "upstream on the path",
    "fault-injection mechanism",
    "alerting entity",
    "in the truth but off the path",
    "not in the truth",
)


def error_types(
    submissions: pd.DataFrame, runs: pd.DataFrame, truth: Truth, policy: str | Policy = "itbench-aa"
) -> pd.DataFrame:
    """Label every error of every scored run.

    Parameters
    ----------
    submissions, runs, truth, policy
        As for `score`.

    Returns
    -------
    DataFrame
        One row an error: model, incident_id, repeat, policy, error ("false positive" or "omission"), label (one of
        `LABELS`, the first that applies; "omission" for an omission), position and entity of the submission, cause_set.
        A mechanism is one only where the truth does not call it the cause: in 14 of the 40 public incidents of
        ITBench-AA the chaos resource itself is.
    """
    chosen = get_policy(policy)
    truths = truths_by_incident(truth.causes, chosen)
    graphs = {
        name: Propagation(part, truth.edges[truth.edges["incident_id"] == name])
        for name, part in truth.causes.groupby("incident_id", sort=False)
    }
    named = confirmed_entities(submissions)
    rows: list[dict[str, Any]] = []
    for run in runs[runs["status"].isin(("scored", "empty"))].to_dict("records"):
        key = (run["model"], run["incident_id"], run["repeat"])
        found = truths.get(run["incident_id"])
        if found is None or not found.root_sets:
            continue
        common = {**dict(zip(RUN_KEY, key, strict=True)), "policy": chosen.name}
        rows += [common | error for error in _errors(named.get(key, []), found, graphs[run["incident_id"]])]
    return pd.DataFrame(rows, columns=ERROR_COLUMNS).astype({"position": "Int64"})


def _errors(named: list[tuple[int, Entity]], truth: IncidentTruth, graph: Propagation) -> list[dict[str, Any]]:
    hits = [truth.root_hits(entity) for _, entity in named]
    owner = claims([entity for _, entity in named], truth)
    errors = []
    for index, ((position, entity), sets) in enumerate(zip(named, hits, strict=True)):
        if index in owner.values():
            continue
        groups = truth.matches(entity)
        label = LABELS[0] if sets else _label(entity, groups, graph)
        cause_set = sets[0] if sets else groups[0].cause_set if groups else None
        text = "/".join(part for part in (entity.namespace, entity.kind, entity.name) if part)
        errors.append(
            {"error": "false positive", "label": label, "position": position, "entity": text, "cause_set": cause_set}
        )
    missed = [name for name in truth.root_sets if name not in owner]
    return errors + [{"error": "omission", "label": "omission", "cause_set": name} for name in missed]


def _label(entity: Entity, groups: tuple[Group, ...], graph: Propagation) -> str:
    sets = {graph.set_of.get(group.group_id, group.cause_set) for group in groups}
    if sets & graph.downstream_of_roots:
        return LABELS[1]
    if sets & graph.upstream_of_roots:
        return LABELS[2]
    kinds = {(entity.kind or "").casefold(), *(group.kind.casefold() for group in groups)}
    if kinds & MECHANISM_KINDS or entity.namespace == "chaos-mesh":
        return LABELS[3]
    if sets & graph.alerting:
        return LABELS[4]
    return LABELS[5] if groups else LABELS[6]
