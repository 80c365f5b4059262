"""Why runs of agents end: the causes, what follows from each, and how names and texts of other tools map to them.

The causes and rules are data: `taxonomy.yaml` beside this module. Whoever judges trials and whoever ends runs reads
the same file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import re2

from faultbook.errors import one_of
from faultbook.yamlfile import parse_yaml

OWNERS = ("agent", "harness", "provider", "environment", "verifier", "operator", "unknown")
_OWN = ("agent", "harness")  # a verdict beside such a cause is a verdict on the arm
_LONGEST = 20_000  # characters of a text that rules look at: the end of a traceback says most


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of an end, and what follows from it."""

    name: str
    retryable: bool
    owner: str
    meaning: str

    @property
    def verdict_stands(self) -> bool | None:
        """Whether a verifier's verdict beside this cause is a verdict on the arm; None if that is not known."""
        return None if self.owner == "unknown" else self.owner in _OWN

    @property
    def is_infrastructure(self) -> bool:
        """Whether it is known to be neither the agent's nor the harness's own doing."""
        return self.owner not in (*_OWN, "unknown")


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that a run's records say of its end: a name of theirs, a text, or both.

    `vocabulary` is whose name it is: a key of `typed` in the data file, such as "harbor" or "runtime".
    """

    vocabulary: str
    name: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """The primary cause, whether it was observed or inferred from a text, and further causes in order."""

    cause: Cause
    source: str
    others: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    cause: str
    pattern: Any


@dataclass(frozen=True, slots=True)
class _Taxonomy:
    causes: dict[str, Cause]
    rank: dict[str, int]
    typed: dict[str, dict[str, str]]
    rules: tuple[_Rule, ...]


def causes() -> dict[str, Cause]:
    """All causes by name, in the order of the data file."""
    return dict(_taxonomy().causes)


def cause(name: str) -> Cause:
    """The cause of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    known = _taxonomy().causes
    if name not in known:
        raise ValueError(one_of("cause", name, tuple(known)))
    return known[name]


def named(vocabulary: str, name: str) -> str | None:
    """The cause that a tool's own name of an end stands for, or None; the last part of a dotted name counts too."""
    names = _taxonomy().typed.get(vocabulary, {})
    if vocabulary == "runtime" and name in _taxonomy().causes:
        return name
    return names.get(name) or names.get(name.rsplit(".", 1)[-1])


def matched(text: str) -> tuple[str, str] | None:
    """The cause that the first matching rule infers from a text, and the rule's name; None if no rule matches."""
    # JSON can hold half of a surrogate pair, which UTF-8, and so RE2, cannot.
    end = text[-_LONGEST:].encode("utf-8", errors="replace").decode("utf-8")
    return next(((rule.cause, rule.name) for rule in _taxonomy().rules if rule.pattern.search(end)), None)


def classify(observations: Iterable[Observation]) -> Classification:
    """Name the primary cause of an end among everything that is on record of it.

    A name that a tool itself gives wins over any text; among equals the order `precedence` of the data file decides.
    An observation whose name is not known, or says no more than that something failed, is judged by its text, then by
    its name read as a text.

    Parameters
    ----------
    observations : iterable of Observation
        None at all means that the run came to its own end.

    Returns
    -------
    Classification
        "unclassified", inferred, if nothing is recognised.
    """
    rank = _taxonomy().rank
    found: dict[str, str] = {}
    for observation in observations:
        name, source = _of(observation)
        if found.get(name) != "observed":
            found[name] = source
    if not found:
        return Classification(cause("completed"), "observed")
    order = sorted(found, key=lambda name: (found[name] != "observed" or name == "unclassified", rank[name]))
    if order[0] == "completed" and len(order) > 1:  # an end of its own beside an inferred one: the text is of that end
        order = [*order[1:], "completed"]
    others = tuple(name for name in order[1:] if name != "completed")
    return Classification(cause(order[0]), found[order[0]], others)


def _of(observation: Observation) -> tuple[str, str]:
    name = named(observation.vocabulary, observation.name) if observation.name else None
    if name is not None and name != "unclassified":
        return name, "observed"
    for text in (observation.text, observation.name):
        inferred = matched(text) if text else None
        if inferred is not None:
            return inferred[0], "inferred"
    return "unclassified", "inferred" if name is None else "observed"


@cache
def _taxonomy() -> _Taxonomy:
    file = resources.files("faultbook").joinpath("taxonomy.yaml")
    document = parse_yaml(file.read_text(encoding="utf-8"), "taxonomy.yaml")
    options = re2.Options()
    options.case_sensitive = False
    return _Taxonomy(
        causes={name: Cause(name, **fields) for name, fields in document["causes"].items()},
        rank={name: place for place, name in enumerate(document["precedence"])},
        typed={vocabulary: dict(names) for vocabulary, names in document["typed"].items()},
        rules=tuple(
            _Rule(rule["name"], rule["cause"], re2.compile(_either(rule["patterns"], document["status"]), options))
            for rule in document["rules"]
        ),
    )


def _either(patterns: list[str], status: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns).replace("<status>", status)
