"""Answers that need no investigation, to be shown beside every model: what a score is worth shows against these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from faultbook.diagnosis.entities import Entity
from faultbook.diagnosis.patterns import compile_pattern
from faultbook.diagnosis.read_submissions import SubmissionTables
from faultbook.diagnosis.truth import Truth, cause_sets
from faultbook.tables import Runs, Submissions, typed

CONSTANT = "baseline: most frequent cause elsewhere"
ALERTING = "baseline: every alerting entity"
FIRST_SOURCE = "baseline: first propagation source"
EVERYTHING = "baseline: everything named"
ORACLE = "baseline: oracle"


def baselines(truth: Truth) -> SubmissionTables:
    """Make the submissions of the five baselines.

    Parameters
    ----------
    truth : Truth
        The ground truths. All baselines but the oracle use parts of them that an agent could see or guess: which
        entities alert, what the propagation starts from, which entities exist, what caused other incidents.

    Returns
    -------
    SubmissionTables
        One run a baseline and incident. The constant answer is the most frequent root cause of all *other* incidents.
    """
    answers: dict[str, Callable[[str, pd.DataFrame], Iterable[Entity]]] = {
        CONSTANT: _constant(truth),
        ALERTING: lambda _, part: _entities(part[part["n_alerts"] > 0]),
        FIRST_SOURCE: _first_source(truth),
        EVERYTHING: lambda _, part: _entities(part),
        ORACLE: lambda _, part: oracle_answer(part),
    }
    rows, runs = [], []
    for model, answer in answers.items():
        for incident_id in truth.incidents["incident_id"]:
            part = truth.causes[truth.causes["incident_id"] == incident_id]
            named = list(dict.fromkeys(answer(incident_id, part)))
            rows += [_row(model, incident_id, position, entity) for position, entity in enumerate(named)]
            runs.append((model, incident_id, 0, "scored" if named else "empty", None, None))
    return SubmissionTables(typed(rows, Submissions), typed(runs, Runs))


def with_baselines(tables: SubmissionTables, truth: Truth) -> SubmissionTables:
    """Add the baselines to submissions, so that no model is shown without them."""
    added = baselines(truth)
    return SubmissionTables(
        pd.concat([tables.submissions, added.submissions], ignore_index=True),
        pd.concat([tables.runs, added.runs], ignore_index=True),
    )


def example_name(name: Any, pattern: Any, hint: str = "x") -> str | None:
    """A name that a group accepts: its own, or one made from its pattern; None if we can make none.

    `hint` is tried for a pattern that leaves the name open ("*.*").
    """
    if not pd.isna(name):
        return str(name)
    if pd.isna(pattern):
        return None
    compiled = compile_pattern(str(pattern))
    bare = re.sub(r"\[[^\]]*\][+*]?", "x1", str(pattern).split("|")[0])
    bare = (
        bare.removeprefix("^").removesuffix("$").replace(r"\b", "").replace("-.*", "").replace(".*", "").strip("(?:)")
    )
    named = compiled.stem or (hint if compiled.fallback == "glob" else None)
    filled = str(pattern).replace(".*", "x").replace(r"\b", "").removeprefix("^").removesuffix("$")
    for candidate in (named, bare, hint, filled, bare.replace("*", "x").strip(".-")):
        if candidate and compiled.anchored(candidate, candidate):
            return candidate
    return None


def _entities(part: pd.DataFrame) -> list[Entity]:
    named = []
    for row in part.to_dict("records"):
        name = example_name(row["name"], row["pattern"], row["group_id"])
        if name is not None:
            named.append(Entity(None if pd.isna(row["namespace"]) else row["namespace"], row["kind"], name))
    return named


def oracle_answer(part: pd.DataFrame) -> list[Entity]:
    """One entity a cause set: a group that is itself marked as the cause, where its name can be made."""
    named = []
    for _, _, members in cause_sets(part):
        ordered = pd.concat([members[members["is_root_cause"]], members[~members["is_root_cause"]]])
        named += _entities(ordered)[:1]
    return named


def _constant(truth: Truth) -> Callable[[str, pd.DataFrame], list[Entity]]:
    by_incident: dict[str, list[Entity]] = {}
    for incident_id, part in truth.causes.groupby("incident_id", sort=False):
        by_incident[str(incident_id)] = _entities(part[part["is_root_cause"]])
    counted = Counter(entity for entities in by_incident.values() for entity in dict.fromkeys(entities))

    def answer(incident_id: str, _: pd.DataFrame) -> list[Entity]:
        elsewhere = counted - Counter(dict.fromkeys(by_incident.get(incident_id, []), 1))
        # a tie goes to the name that comes first, so that the answer does not depend on the order of files
        ranked = sorted(elsewhere.items(), key=lambda item: (-item[1], str(item[0])))
        return [ranked[0][0]] if ranked else []

    return answer


def _first_source(truth: Truth) -> Callable[[str, pd.DataFrame], list[Entity]]:
    first = truth.edges.drop_duplicates("incident_id").set_index("incident_id")["source"]

    def answer(incident_id: str, part: pd.DataFrame) -> list[Entity]:
        return _entities(part[part["group_id"] == first[incident_id]]) if incident_id in first.index else []

    return answer


def _row(model: str, incident_id: str, position: int, entity: Entity) -> tuple[Any, ...]:
    text = "/".join(part for part in (entity.namespace, entity.kind, entity.name) if part)
    return model, incident_id, 0, position, text, entity.namespace, entity.kind, entity.name, None, "confirmed"
