"""What is wrong or doubtful in a ground truth, with its place and a repair; nothing is repaired silently."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from faultbook.diagnosis.baselines import example_name, oracle_answer
from faultbook.diagnosis.entities import MECHANISM_KINDS, WORKLOAD_KINDS, Entity
from faultbook.diagnosis.graph import Propagation
from faultbook.diagnosis.match import IncidentTruth, largest_matching, truths_by_incident
from faultbook.diagnosis.patterns import MOST_PATTERN, compile_pattern
from faultbook.diagnosis.policy import get_policy
from faultbook.diagnosis.sensitivity import align
from faultbook.diagnosis.truth import NOTE_COLUMNS, Truth, cause_sets

SEVERITIES = ("error", "warning", "info")
Note = tuple[str, str, str, str, str, str]


def lint(truth: Truth, other: Truth | None = None) -> pd.DataFrame:
    """List every hazard of a ground truth.

    Parameters
    ----------
    truth : Truth
        What to check.
    other : Truth, optional
        Another version of the same incidents (v2 beside v1); disagreements about the causes are listed too.

    Returns
    -------
    DataFrame
        incident_id, check, severity ("error": the incident cannot be graded as meant; "warning": a right answer may be
        graded wrong; "info"), place, found, repair. Sorted by incident and severity. What reading saw comes first.
    """
    found: list[Note] = [tuple(row) for row in truth.notes[NOTE_COLUMNS].itertuples(index=False, name=None)]
    for incident_id in truth.incidents["incident_id"]:
        causes = truth.causes[truth.causes["incident_id"] == incident_id]
        edges = truth.edges[truth.edges["incident_id"] == incident_id]
        for check in (_patterns, _unreachable, _victims, _causes, _mechanisms, _unexplained):
            found += check(incident_id, causes, edges)
    if other is not None:
        found += _disagreements(truth, align(other, truth))
    frame = pd.DataFrame(found, columns=NOTE_COLUMNS).astype("string")
    frame["found"] = frame["found"].str.slice(0, 200)
    frame["severity"] = pd.Categorical(frame["severity"], SEVERITIES, ordered=True)
    ordered = frame.sort_values(["incident_id", "severity"], kind="stable").reset_index(drop=True)
    return ordered.astype({"severity": "string"})


def _patterns(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Patterns that do not mean what they look like."""
    for row in causes[causes["pattern"].notna()].to_dict("records"):
        text, place = row["pattern"], f"group {row['group_id']}"
        pattern = compile_pattern(text)
        if pattern.fallback:
            severity = "warning" if pattern.fallback == "glob" else "error"
            repair = f"not a regular expression; read as a {pattern.fallback} pattern"
            yield incident_id, "not a regular expression", severity, place, text, repair
            if pattern.fallback == "glob" and pattern.fullmatch("anything-at-all"):
                yield incident_id, "over-matching pattern", "warning", place, text, "matches every name of its kind"
        elif "\\\\" in text:
            yield (
                incident_id,
                "double-escaped",
                "warning",
                place,
                text,
                f"never matches; write {text.replace(chr(92) * 2, chr(92))}",
            )
        elif text.endswith("*") and not text.endswith(".*") and pattern.stem is not None:
            repair = f"a glob taken for a regular expression; write {text.removesuffix('*')}.*"
            yield incident_id, "glob taken for regex", "warning", place, text, repair
        elif text.startswith(".") and not text.startswith(".*"):
            yield incident_id, "needs a character in front", "warning", place, text, f"never matches {text[1:]}"
        if len(text) > MOST_PATTERN:
            yield incident_id, "pattern too long", "error", place, f"{len(text)} characters", "shorten it"


def _unreachable(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Roots that a right answer could miss, and patterns that search would find in other listed names."""
    names = {row["group_id"]: example_name(row["name"], row["pattern"]) for row in causes.to_dict("records")}
    for row in causes[causes["pattern"].notna()].to_dict("records"):
        pattern, place = compile_pattern(row["pattern"]), f"group {row['group_id']}"
        own = names[row["group_id"]]
        if own is None:
            repair = "no name can be made from the pattern; give the exact name"
            yield (
                incident_id,
                "unreachable pattern",
                "error" if row["is_root_cause"] else "info",
                place,
                row["pattern"],
                repair,
            )
        elif row["is_root_cause"] and row["kind"].casefold() in WORKLOAD_KINDS - {"pod"} and not pattern.fullmatch(own):
            repair = f"a full match misses the bare name {own}; anchored matching finds it"
            yield incident_id, "full match misses the name", "warning", place, row["pattern"], repair
        met = sorted({name for name in names.values() if name and name != own and pattern.search(name)})
        if met and not pattern.fallback:
            repair = "search would match these too; match anchored"
            yield incident_id, "search over-matches", "info", place, f"{row['pattern']} in {', '.join(met)}", repair


def _victims(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Alerting entities in the alias class of a cause: naming the victim scores as finding the cause."""
    for _, cause_set, members in cause_sets(causes):
        for row in members[(members["n_alerts"] > 0) & ~members["is_root_cause"]].to_dict("records"):
            same = members.loc[members["is_root_cause"], "group_id"].iloc[0]
            repair = f"naming it counts as naming {same}; check that both are one entity"
            yield (
                incident_id,
                "victim among the aliases of the cause",
                "warning",
                f"alias class {cause_set}",
                row["group_id"],
                repair,
            )


def _causes(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Several causes, and causes that only have an exact name."""
    roots = causes[causes["is_root_cause"]]
    sets = list(dict.fromkeys(roots["cause_set"]))
    if len(sets) > 1:
        repair = "all of them must be found"
        yield incident_id, "several causes", "info", "causes", ", ".join(sets), repair
    if causes["pattern"].isna().all():
        return  # a truth of exact names only, as the second version is; its graders read names
    for row in roots[roots["pattern"].isna()].to_dict("records"):
        repair = "graders that read only 'filter' can never match it; its name is used here"
        yield incident_id, "name without filter", "info", f"group {row['group_id']}", str(row["name"]), repair


def _mechanisms(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Causes that are fault-injection resources: a mechanism is the answer here, not an error."""
    for row in causes[causes["is_root_cause"]].to_dict("records"):
        if row["kind"].casefold() in MECHANISM_KINDS:
            repair = "naming the mechanism is right for this incident"
            yield incident_id, "the cause is a mechanism", "info", f"group {row['group_id']}", row["kind"], repair


def _unexplained(incident_id: str, causes: pd.DataFrame, edges: pd.DataFrame) -> Iterator[Note]:
    """Alerts that no cause reaches along the edges."""
    if edges.empty or not causes["is_root_cause"].any():
        return
    graph = Propagation(causes, edges)
    unreached = sorted(graph.alerting - graph.roots - graph.downstream_of_roots)
    if unreached:
        repair = "no edge leads from a cause to these alerts; paths are incomplete"
        yield incident_id, "alert off the paths", "info", "propagations", ", ".join(unreached), repair


def _disagreements(truth: Truth, other: Truth) -> Iterator[Note]:
    """Incidents for which a right answer under one version is not one under the other."""
    policy = get_policy("itbench-aa")
    versions = [truths_by_incident(version.causes, policy) for version in (truth, other)]
    for incident_id in other.incidents["incident_id"]:
        answers = [
            oracle_answer(version.causes[version.causes["incident_id"] == incident_id]) for version in (truth, other)
        ]
        texts = [", ".join(sorted(f"{e.kind} {e.name}" for e in answer)) or "none" for answer in answers]
        if not all(
            _solves(answer, graded.get(incident_id)) for answer, graded in zip(answers, reversed(versions), strict=True)
        ):
            yield incident_id, "versions disagree", "warning", "causes", " against ".join(texts), "grade under both"


def _solves(answer: list[Entity], graded: IncidentTruth | None) -> bool:
    """Whether an answer finds every cause of a version and names nothing else."""
    if graded is None or not graded.root_sets:
        return not answer
    hits = [graded.root_hits(entity) for entity in answer]
    return all(hits) and len(largest_matching(hits)) == len(graded.root_sets)
