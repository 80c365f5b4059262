"""What a ground truth holds, whatever file it came from, and how a truth document becomes tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from faultbook.diagnosis.patterns import any_of
from faultbook.errors import short_repr
from faultbook.tables import Causes, Edges, typed
from faultbook.text import is_unicode

NOTE_COLUMNS = ["incident_id", "check", "severity", "place", "found", "repair"]
INCIDENT_COLUMNS = ["incident_id", "source", "truth_sha256", "n_groups", "n_cause_sets"]


@dataclass(frozen=True)
class Truth:
    """Ground truths of one or more incidents.

    Attributes
    ----------
    causes, edges : DataFrame
        The tables `Causes` and `Edges`.
    incidents : DataFrame
        One row an incident: incident_id, source, truth_sha256, n_groups, n_cause_sets. An incident without a cause is
        here and nowhere else; it cannot be graded.
    notes : DataFrame
        Oddities that reading saw and tables no longer show (a repeated id, a backspace in a pattern): incident_id,
        check, severity, place, found, repair.
    """

    causes: pd.DataFrame
    edges: pd.DataFrame
    incidents: pd.DataFrame
    notes: pd.DataFrame

    def incident(self, incident_id: str) -> Truth:
        """The truth of one incident alone."""
        frames = (self.causes, self.edges, self.incidents, self.notes)
        return Truth(*(frame[frame["incident_id"] == incident_id].reset_index(drop=True) for frame in frames))


@dataclass
class Document:
    """One incident on its way from a document to tables."""

    incident_id: str
    source: str
    sha256: str
    groups: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)

    def note(self, check: str, severity: str, place: str, found: object, repair: str) -> None:
        """Record an oddity."""
        text = found if isinstance(found, str) else short_repr(found)
        row = (self.incident_id, check, severity, place, text[:200], repair)
        self.notes.append(dict(zip(NOTE_COLUMNS, row, strict=True)))


def assemble(documents: Iterable[Document]) -> Truth:
    """Put documents into tables."""
    documents = list(documents)
    groups = [group for document in documents for group in document.groups]
    edges = [edge for document in documents for edge in document.edges]
    incidents = [
        (
            document.incident_id,
            document.source,
            document.sha256,
            len(document.groups),
            len({group["cause_set"] for group in document.groups if group["is_root_cause"]}),
        )
        for document in documents
    ]
    notes = [note for document in documents for note in document.notes]
    return Truth(
        typed(groups, Causes),
        typed(edges, Edges),
        pd.DataFrame(incidents, columns=INCIDENT_COLUMNS),
        pd.DataFrame(notes, columns=NOTE_COLUMNS).astype("string"),
    )


def read_v1(payload: Mapping[str, Any], document: Document) -> None:
    """Take groups, aliases, alerts and propagations of a v1 truth (flat, or the `spec` of a wrapped one).

    Raises
    ------
    ValueError
        If a group lacks an id or a kind, or anything is of the wrong type: nothing could be graded against it.
    """
    groups = _mappings(payload.get("groups"), "groups")
    seen: set[str] = set()
    for position, group in enumerate(groups):
        row = _group(group, position, document)
        if row["group_id"] in seen:
            document.note("duplicate id", "warning", f"groups[{position}].id", row["group_id"], "the first one is kept")
            continue
        seen.add(row["group_id"])
        document.groups.append(row)
    _close_aliases(_aliases(payload.get("aliases")), document, seen)
    _count_alerts(_mappings(payload.get("alerts"), "alerts"), document, seen)
    _take_edges(_mappings(payload.get("propagations"), "propagations"), document, seen)
    _check_faults(_mappings(payload.get("fault"), "fault"), document, seen)
    set_roles(document.groups, document.edges)


def read_v2(payload: Mapping[str, Any], document: Document) -> None:
    """Take the entities of a v2 truth: each is a cause of its own, and there are no ids, aliases or edges.

    Raises
    ------
    ValueError
        If an entity lacks a kind or a name.
    """
    for position, entity in enumerate(_mappings(payload.get("entities"), "entities")):
        given = entity.get("metadata")
        metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        place = f"entities[{position}]"
        kind = as_text(entity.get("kind"), f"{place}.kind")
        name, namespace = (as_text(metadata.get(part), f"{place}.metadata.{part}") for part in ("name", "namespace"))
        if kind is None or name is None:
            raise ValueError(f"{place} has no kind or no metadata.name")
        group_id = "/".join(part for part in (namespace, kind, name) if part)
        if any(group["group_id"] == group_id for group in document.groups):
            document.note("duplicate entity", "info", place, group_id, "it counts once")
            continue
        document.groups.append(_row(document, group_id, kind, namespace, name=name, is_root_cause=True))
    if not document.groups:
        document.note("no cause", "error", "entities", "[]", "the incident is ungradeable")
    set_roles(document.groups, document.edges)


def set_roles(groups: list[dict[str, Any]], edges: Iterable[Mapping[str, str]]) -> None:
    """Give each group the first role that applies: cause (it is one), alerting, path (on an edge), listed."""
    on_path = {end for edge in edges for end in (edge["source"], edge["target"])}
    for group in groups:
        if group["is_root_cause"]:
            group["role"] = "cause"
        elif group["n_alerts"]:
            group["role"] = "alerting"
        else:
            group["role"] = "path" if group["group_id"] in on_path else "listed"


def _row(document: Document, group_id: str, kind: str, namespace: str | None, **rest: Any) -> dict[str, Any]:
    filled = {"name": None, "pattern": None, "is_root_cause": False, "cause_set": group_id, "role": "listed"}
    given = {"incident_id": document.incident_id, "group_id": group_id, "kind": kind, "namespace": namespace}
    return given | filled | {"n_alerts": 0, "truth_sha256": document.sha256} | rest


def _group(group: Mapping[str, Any], position: int, document: Document) -> dict[str, Any]:
    place = f"groups[{position}]"
    texts = {part: as_text(group.get(part), f"{place}.{part}") for part in ("id", "kind", "namespace", "name")}
    group_id, kind, namespace, name = texts.values()
    if group_id is None or kind is None:
        raise ValueError(f"{place} has no {'id' if group_id is None else 'kind'}")
    if namespace is None and kind.casefold() not in ("namespace", "node"):
        document.note("no namespace", "info", f"{place}.namespace", group.get("namespace"), "any namespace matches")
    pattern = _pattern(group.get("filter"), place, document)
    if pattern is None and name is None:
        document.note("no name or filter", "error", place, group_id, "nothing can match it")
    root = group.get("root_cause")
    if not isinstance(root, bool | None):
        raise ValueError(f"{place}.root_cause is {short_repr(root)}, neither true nor false")
    return _row(document, group_id, kind, namespace, name=name, pattern=pattern, is_root_cause=bool(root))


def _pattern(given: Any, place: str, document: Document) -> str | None:
    texts = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(texts, list) or not all(isinstance(text, str) and is_unicode(text) for text in texts):
        raise ValueError(f"{place}.filter is {short_repr(given)}, neither text nor a list of texts")
    if not texts:
        return None
    if len(texts) > 1:
        document.note("several filters", "info", f"{place}.filter", ", ".join(texts), "any of them matches")
    return any_of([_plain_pattern(text, f"{place}.filter", document) for text in texts])


def _plain_pattern(text: str, place: str, document: Document) -> str:
    """A pattern as it was meant: with a word boundary for a backspace, without spaces around it."""
    if "\b" in text:
        repair = r"a double-quoted \b became a backspace; read as a word boundary"
        document.note("backspace", "warning", place, text.replace("\b", "<backspace>"), repair)
        text = text.replace("\b", r"\b")
    odd = sorted({character for character in text if ord(character) < 32 or ord(character) == 127})
    if odd:
        repair = "no name has one; write the pattern in single quotes"
        document.note("control character", "warning", place, repr(text), repair)
    if text != text.strip():
        document.note("space around a pattern", "warning", place, repr(text), "read without it")
    return text.strip()


def _aliases(given: Any) -> list[list[str]]:
    lists = [] if given is None else given
    if not isinstance(lists, list) or not all(isinstance(members, list) for members in lists):
        raise ValueError(f"aliases is {short_repr(given)}, not a list of lists of group ids")
    names = [[as_text(name, f"aliases[{i}]") for name in members] for i, members in enumerate(lists)]
    if not all(name for members in names for name in members):
        raise ValueError(f"aliases holds an empty group id in {short_repr(given)}")
    return [[name for name in members if name] for members in names]


def _close_aliases(aliases: list[list[str]], document: Document, known: set[str]) -> None:
    """Union of overlapping alias lists; the class is named by its first group in file order."""
    parent: dict[str, str] = {}

    def find(member: str) -> str:
        while parent.setdefault(member, member) != member:
            member = parent[member]
        return member

    listed: dict[str, int] = {}
    for position, names in enumerate(aliases):
        for name in names:
            if name not in known:
                document.note("dangling alias", "warning", f"aliases[{position}]", name, "no such group; ignored")
            elif name in listed:
                found = f"{name} is in lists {listed[name]} and {position}"
                document.note("overlapping aliases", "info", f"aliases[{position}]", found, "the lists are one class")
            listed.setdefault(name, position)
        for name in names[1:]:
            parent[find(name)] = find(names[0])
    first: dict[str, str] = {}
    for group in document.groups:
        group["cause_set"] = first.setdefault(find(group["group_id"]), group["group_id"])


def _count_alerts(alerts: list[Mapping[str, Any]], document: Document, known: set[str]) -> None:
    by_id = {group["group_id"]: group for group in document.groups}
    for position, alert in enumerate(alerts):
        group_id = as_text(alert.get("group_id"), f"alerts[{position}].group_id")
        if group_id is None:
            document.note("alert without group", "info", f"alerts[{position}]", alert.get("id"), "it marks no entity")
        elif group_id not in known:
            document.note(
                "dangling alert", "warning", f"alerts[{position}].group_id", group_id, "no such group; ignored"
            )
        else:
            by_id[group_id]["n_alerts"] += 1


def _take_edges(propagations: list[Mapping[str, Any]], document: Document, known: set[str]) -> None:
    seen: set[tuple[str, str]] = set()
    for position, edge in enumerate(propagations):
        place = f"propagations[{position}]"
        source, target = (as_text(edge.get(end), f"{place}.{end}") for end in ("source", "target"))
        if source is None or target is None:
            document.note("edge without an end", "warning", place, dict(edge), "left out")
            continue
        for end in (source, target):
            if end not in known:
                document.note("dangling edge", "warning", place, end, "no such group; kept, but it reaches nothing")
        if source == target:
            document.note("self-loop", "info", place, source, "kept; it explains nothing")
        if (source, target) in seen:
            document.note("duplicate edge", "info", place, f"{source} → {target}", "kept")
        seen.add((source, target))
        texts = {name: as_text(edge.get(name), f"{place}.{name}") or "" for name in ("condition", "effect")}
        document.edges.append({"incident_id": document.incident_id, "source": source, "target": target, **texts})


def _check_faults(faults: list[Mapping[str, Any]], document: Document, known: set[str]) -> None:
    for position, fault in enumerate(faults):
        entity = fault.get("entity")
        place = f"fault[{position}].entity.group_id"
        group_id = as_text(entity.get("group_id"), place) if isinstance(entity, Mapping) else None
        if group_id is not None and group_id not in known:
            document.note("dangling fault", "info", place, group_id, "no such group; faults are not scored")


def _mappings(value: Any, name: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError(f"'{name}' is not a list of mappings")
    return value


def as_text(value: Any, place: str) -> str | None:
    """A text of some length, or None: null, "" and a missing key are all missing; YAML makes numbers of some texts.

    Raises
    ------
    ValueError
        If it is a list or a mapping, which as text would match nothing and say nothing.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float | datetime.date):
        raise ValueError(f"{place} is {short_repr(value)}, not text")
    text = str(value).strip()
    if not is_unicode(text):
        raise ValueError(f"{place} holds half of a surrogate pair")
    return text or None


def cause_sets(causes: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Each (incident_id, cause_set, its groups) that holds a root cause."""
    roots = causes.loc[causes["is_root_cause"], ["incident_id", "cause_set"]].drop_duplicates()
    for incident_id, cause_set in roots.itertuples(index=False, name=None):
        members = causes[(causes["incident_id"] == incident_id) & (causes["cause_set"] == cause_set)]
        yield incident_id, cause_set, members
