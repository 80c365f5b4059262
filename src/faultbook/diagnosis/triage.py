"""From what was found to what is submitted: stages, and two questions that are asked apart before submitting."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from faultbook.diagnosis.entities import CHAOS_KINDS, Entity, parse_entity
from faultbook.diagnosis.graph import Propagation
from faultbook.diagnosis.match import IncidentTruth
from faultbook.diagnosis.policy import Policy
from faultbook.errors import FaultbookError, one_of
from faultbook.tables import Submissions, typed

STAGES = ("found", "suspected", "confirmed")

# The five kinds of finding, what to check first, and how to treat each at submission: ITBench-AA document, section 5
# (an editorial proposal for operators, not the benchmark's schema and not shown to raise a score).
FINDINGS = pd.DataFrame(
    [
        (
            "alerting entity",
            "time of the alert, request path, link to a change upstream",
            "keep as a symptom; check apart whether it is an independent cause",
        ),
        (
            "configuration change that explains the incident",
            "exact namespace, kind and name of what changed; its time against the incident; the propagation from it",
            "review as a candidate cause with its evidence",
        ),
        (
            "fault-injection tool or controller above",
            "the unit that the grading calls a cause; how it relates to the entity at fault",
            "do not confuse the mechanism with the cause to be submitted",
        ),
        (
            "separate warning seen at the same time",
            "whether it explains the same incident, or needs a cause of its own",
            "relation alone does not put it into the submission",
        ),
        (
            "symptom path not yet explained",
            "whether the present causes explain this path too",
            "leave open as a possible omission; investigate or hand to a person",
        ),
    ],
    columns=["finding", "check_first", "at_submission"],
)


def triage(findings: pd.DataFrame) -> pd.DataFrame:
    """Put findings beside the evidence to check and the treatment at submission.

    Parameters
    ----------
    findings : DataFrame
        Columns entity (text "namespace/Kind/name"), finding (one of `FINDINGS`), stage (found, suspected, confirmed),
        and optional evidence (text; empty where there is none yet).

    Returns
    -------
    DataFrame
        The findings with check_first, at_submission, and next: what keeps each from, or takes it to, the submission.

    Raises
    ------
    FaultbookError
        If a column is missing, or a finding or stage is none of those known.
    """
    _require(findings, ("entity", "finding", "stage"))
    for name, allowed in (("finding", tuple(FINDINGS["finding"])), ("stage", STAGES)):
        for value in findings[name]:
            if value not in allowed:
                raise FaultbookError(one_of(name, value, list(allowed)))
    evidence = findings["evidence"].fillna("") if "evidence" in findings else pd.Series("", index=findings.index)
    table = findings.assign(evidence=evidence).merge(FINDINGS, on="finding", how="left", validate="many_to_one")
    table["next"] = [_next(row["finding"], row["stage"], row["evidence"]) for row in table.to_dict("records")]
    return table


def submit(findings: pd.DataFrame, *, model: str, incident_id: str, repeat: int = 0) -> pd.DataFrame:
    """Make a submission of findings: all are kept with their stage, only `confirmed` ones count as submitted.

    Returns
    -------
    DataFrame
        The table `Submissions`.

    Raises
    ------
    FaultbookError
        As `triage`, and for an entity that is not namespace/Kind/name or a confidence outside [0, 1].
    """
    triage(findings)
    rows = []
    for position, row in enumerate(findings.to_dict("records")):
        try:
            entity = parse_entity(str(row["entity"] or ""))
        except ValueError as error:
            raise FaultbookError(f"finding {position}: {error}") from None
        confidence = row.get("confidence")
        if confidence is not None and not pd.isna(confidence) and not 0 <= confidence <= 1:
            raise FaultbookError(f"finding {position}: confidence is {confidence}, not between 0 and 1")
        named = (row["entity"], entity.namespace, entity.kind, entity.name)
        rows.append((model, incident_id, repeat, position, *named, confidence, row["stage"]))
    return typed(rows, Submissions)


@dataclass(frozen=True)
class Review:
    """The two final questions, each with what remains uncertain.

    Attributes
    ----------
    unexplained : DataFrame
        "Is an independent cause unexplained?": alerting entities that no confirmed cause reaches along the edges.
    doubtful : DataFrame
        "Is anything submitted only a symptom, a waypoint or a mechanism?": entity, doubt.
    ready : bool
        Whether both are empty. Not ready is no verdict: it says what to look at, or to hand to a person.
    """

    unexplained: pd.DataFrame
    doubtful: pd.DataFrame

    @property
    def ready(self) -> bool:
        """Whether nothing is left open."""
        return self.unexplained.empty and self.doubtful.empty

    def summary_frame(self) -> pd.DataFrame:
        """Both answers in one table: question, entity, open."""
        first = self.unexplained.assign(question="is an independent cause unexplained?")
        second = self.doubtful.assign(question="is anything submitted not a cause?")
        return pd.concat([first, second], ignore_index=True)[["question", "entity", "open"]]

    def plot(self, ax: Axes | None = None) -> Axes:
        """How many points each question leaves open."""
        from faultbook.diagnosis.plot import plot_review

        return plot_review(self.summary_frame(), ax=ax)


def review(
    submission: pd.DataFrame, entities: pd.DataFrame, edges: pd.DataFrame, policy: Policy | None = None
) -> Review:
    """Ask the two final questions of one incident's submission.

    Parameters
    ----------
    submission : DataFrame
        The table `Submissions` of one run; only stage `confirmed` is looked at.
    entities, edges : DataFrame
        What is known of the incident without its answer: the tables `Causes` (group_id, kind, namespace, name, pattern,
        cause_set, n_alerts) and `Edges`. The columns is_root_cause and role are the answer and are not looked at.
    policy : Policy, optional
        How names are matched; `itbench-aa` by default.

    Returns
    -------
    Review
        What remains uncertain; nothing is guessed.
    """
    _require(entities, ("group_id", "kind", "namespace", "name", "pattern", "cause_set", "n_alerts"))
    _require(edges, ("source", "target"))
    blind = entities.assign(is_root_cause=False, role="listed")
    known = IncidentTruth(blind, policy or Policy("itbench-aa"))
    graph = Propagation(blind, edges)
    confirmed = submission[submission["stage"] == "confirmed"]
    plain = (
        confirmed[["namespace", "kind", "name"]]
        .astype(object)
        .where(confirmed[["namespace", "kind", "name"]].notna(), None)
    )
    named = {
        Entity(*row): text
        for row, text in zip(plain.itertuples(index=False, name=None), confirmed["entity"], strict=True)
    }
    sets = {entity: {group.cause_set for group in known.matches(entity)} for entity in named}
    covered = set().union(*sets.values()) if sets else set()
    reached = covered | graph.downstream(covered)
    unexplained = [(name, "no confirmed cause reaches this alert") for name in sorted(graph.alerting - reached)]
    doubtful = [(named[entity], doubt) for entity in named for doubt in _doubts(entity, sets[entity], covered, graph)]
    columns = ["entity", "open"]
    return Review(pd.DataFrame(unexplained, columns=columns), pd.DataFrame(doubtful, columns=columns))


def _doubts(entity: Entity, sets: set[str], covered: set[str], graph: Propagation) -> list[str]:
    doubts = []
    if not sets:
        doubts.append("not among the known entities; its relation to the incident is open")
    elif sets & graph.downstream(covered - sets):
        doubts.append("lies downstream of another confirmed cause: a symptom or a waypoint")
    elif sets & graph.alerting and not graph.downstream(sets):
        doubts.append("alerts, and nothing follows from it along the edges: perhaps only a symptom")
    if (entity.kind or "").casefold() in CHAOS_KINDS | {"schedule", "workflow"}:
        doubts.append("a fault-injection mechanism; is it the unit that counts as the cause?")
    return doubts


def _next(finding: str, stage: str, evidence: str) -> str:
    if stage == "confirmed":
        return "is submitted" if evidence else "is submitted without evidence: add it or take the stage back"
    if finding == "symptom path not yet explained":
        return "stays open: investigate, or hand to a person"
    return "stays out of the submission until its evidence is checked"


def _require(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise FaultbookError(f"columns missing: {', '.join(missing)} (found {', '.join(map(str, frame.columns))})")
