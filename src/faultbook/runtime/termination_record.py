"""The record of a run's end: what it must hold to be believed, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from faultbook import taxonomy
from faultbook.errors import DataError, one_of
from faultbook.runtime.observation import SIDE_EFFECTS, SideEffects, check_signal, is_canonical, shown
from faultbook.runtime.redaction import redacted_text
from faultbook.text import plain

Source = Literal["observed", "inferred_on_resume"]

SCHEMA_VERSION = 1
LONGEST_MESSAGE = 512
LONGEST_NAME = 200
SOURCES: tuple[Source, ...] = get_args(Source)

# The kinds that the source of `faultbook.runtime.termination` marks as safe to try again unasked; others may be
# retryable, but by a person's decision or after something was done about the cause.
AUTO_RETRY = frozenset({"provider_rate_limit", "provider_network", "provider_refusal"})


@dataclass(frozen=True, slots=True)
class Termination:
    """The end of a run, as it is recorded. Text in it is free of credentials, or the record is refused.

    Attributes
    ----------
    kind : str
        A cause of `faultbook.taxonomy`.
    retryable : bool
        Whether the same, started anew, may end otherwise; see `safe_to_auto_retry`.
    source : {"observed", "inferred_on_resume"}
        Whether the run's own runtime says so, or a later one that found it without an end. A process that is there to
        say it has not crashed, so "process_crash" is only ever inferred; and no signal is inferred.
    side_effects : {"none", "possible", "confirmed"}
    message : str
        For people; at most 512 characters.
    at : str or None
        Time of day in UTC, as "2026-09-09T12:00:00.000000+00:00".
    run_id, model, signal : str or None
    others : tuple of str
        Further causes that were observed.
    read_from_text : bool
        Whether `kind` was read from the text of an error, because nothing with a type was known.

    Raises
    ------
    ValueError
        If a field is not as described, or these contradict each other.
    """

    kind: str
    retryable: bool
    source: Source
    side_effects: SideEffects
    message: str = ""
    at: str | None = None
    run_id: str | None = None
    model: str | None = None
    signal: str | None = None
    others: tuple[str, ...] = ()
    read_from_text: bool = False

    def __post_init__(self) -> None:
        _check_kind(self)
        _check_source(self)
        _check_text("message", self.message, LONGEST_MESSAGE)
        for name, value in (("run_id", self.run_id), ("model", self.model)):
            if value is not None:
                _check_text(name, value, LONGEST_NAME)
        if self.at is not None and not is_canonical(self.at):
            raise ValueError("'at' must be a time of day in UTC such as 2026-09-09T12:00:00.000000+00:00")
        check_signal(self.signal)

    @property
    def safe_to_auto_retry(self) -> bool:
        """Whether it may be tried again unasked: observed, nothing changed outside, and of a kind fit for it."""
        return self.retryable and self.source == "observed" and self.side_effects == "none" and self.kind in AUTO_RETRY

    def as_dict(self) -> dict[str, Any]:
        """The record as it is written to a file."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "others": list(self.others)}

    @classmethod
    def from_dict(cls, document: object) -> Termination:
        """Read a record; keys that are not known are passed over.

        Raises
        ------
        DataError
            If it is not whole, of another version, or not to be believed. The error never quotes its texts.
        """
        if not isinstance(document, Mapping):
            raise DataError(f"a termination is an object; found {type(document).__name__}")
        version = document.get("schema_version", SCHEMA_VERSION)
        if isinstance(version, bool) or version != SCHEMA_VERSION:
            raise DataError(f"schema_version {shown(version)} of a termination is not known")
        missing = [name for name in ("kind", "retryable", "source", "side_effects") if name not in document]
        if missing:
            raise DataError(f"a termination without {', '.join(missing)}")
        values = {each.name: document[each.name] for each in fields(cls) if each.name in document}
        if isinstance(values.get("others"), list):
            values["others"] = tuple(values["others"])
        try:
            return cls(**values)
        except ValueError as error:
            raise DataError(f"not a termination: {error}") from None


def allowed(kind: str, source: Source) -> str:
    """A cause as this source may give it: a live runtime has not crashed; on resume no signal was received."""
    if kind == "process_crash" and source == "observed":
        return "harness_failed"  # the text speaks of another process than the one that reads it
    return "process_crash" if kind == "process_signal" and source != "observed" else kind


def is_clean(text: str) -> bool:
    """Whether a text holds neither credentials nor control characters."""
    return plain(text, most=len(text)) == text and redacted_text(text) == text


def _check_kind(found: Any) -> None:  # whatever a file gave
    known = taxonomy.causes()
    if not isinstance(found.others, tuple):
        raise ValueError("'others' must be a list of causes")
    for name in (found.kind, *found.others):
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"{shown(name)} is no cause of the taxonomy")
    if not isinstance(found.retryable, bool) or not isinstance(found.read_from_text, bool):
        raise ValueError("'retryable' and 'read_from_text' must be true or false")
    if found.retryable and not known[found.kind].retryable:
        raise ValueError(f"'{found.kind}' is not retryable")
    if found.signal is not None and found.kind != "process_signal":
        raise ValueError(f"a signal beside '{found.kind}'")


def _check_source(found: Any) -> None:
    if found.source not in SOURCES:
        raise ValueError(one_of("source", shown(found.source), SOURCES))
    if found.side_effects not in SIDE_EFFECTS:
        raise ValueError(one_of("side_effects", shown(found.side_effects), SIDE_EFFECTS))
    if allowed(found.kind, found.source) != found.kind:
        raise ValueError(f"'{found.kind}' cannot be {found.source}")


def _check_text(name: str, text: object, most: int) -> None:
    if not isinstance(text, str):
        raise ValueError(f"'{name}' must be a text")
    if len(text) > most:
        raise ValueError(f"'{name}' has {len(text)} characters; at most {most}")
    if not is_clean(text):
        raise ValueError(f"'{name}' holds what looks like a credential, or control characters: redact it first")
