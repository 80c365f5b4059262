"""Single values of foreign files: names, free text, speakers, histories."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook.errors import short_repr
from faultbook.text import is_unicode

Report = Callable[[str, str], None]  # a problem and the column that it is in

SPLITS = ("algorithm-generated", "hand-crafted", "manual", "automatic")
_LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class History:
    """The steps of a log: who speaks at each, and a digest of speakers and texts."""

    speakers: tuple[str | None, ...]
    content_sha256: str


def as_name(value: object, what: str) -> str:
    """An id or a name as text; whole numbers are written out.

    Raises
    ------
    ValueError
        If it is empty, of another type, endless, or holds half of a surrogate pair.
    """
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST_NAME or not is_unicode(text):
        raise ValueError(f"{what} is {short_repr(value)}, not a name")
    return text.strip()


def as_text(value: object) -> str | None:
    """Free text without the space around it; empty text is missing, other values are written as JSON.

    Half of a surrogate pair, which JSON can hold and no file, becomes the replacement character.
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else _json(value)
    if not is_unicode(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.strip() or None


def as_agent(value: object, report: Report, column: str) -> str | None:
    """The name of an agent, where there is one; what is no name is reported and missing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        return as_name(value, "agent")
    except ValueError as error:
        report(str(error), column)
        return None


def collapsed(speaker: str | None) -> str | None:
    """The agent that speaks: 'Orchestrator' for 'Orchestrator (thought)' and 'Orchestrator (-> WebSurfer)'."""
    return None if speaker is None else speaker.partition(" (")[0].strip() or speaker


def folders_above(file: Path) -> list[str]:
    """The names of the folders above a file, the nearest first; ".." in its path is resolved, links are not."""
    return [folder.name for folder in Path(os.path.abspath(file)).parents]  # noqa: PTH100  # resolve() follows links


def split_name(folder: str) -> str:
    """The split that a folder is called after; known ones in one spelling, others as they are."""
    folded = folder.casefold().replace(" ", "-").replace("_", "-")
    return folded if folded in SPLITS else folder or "all"


def sha256_of(text: str) -> str:
    """SHA-256 of a text in hexadecimal, half of a surrogate pair included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_id(question: object) -> str | None:
    """SHA-256 of a question without the space around it; None where there is no question."""
    return sha256_of(question.strip()) if isinstance(question, str) and question.strip() else None


def read_history(turns: object, speaker_keys: Sequence[str], report: Report, column: str = "history") -> History | None:
    """Read the turns of a log.

    Parameters
    ----------
    turns : object
        A list of objects with a `content`.
    speaker_keys : sequence of str
        Where a turn names its speaker: the first that is not empty counts.
    report : callable
        Takes a problem and its column.
    column : str
        What the turns are called in the file.

    Returns
    -------
    History or None
        None if there is no turn, which is reported. A turn that is no object still counts as a step: the labels
        number it.
    """
    if not isinstance(turns, list) or not turns:
        found = "empty" if turns == [] else f"{short_repr(turns)}, not a list"
        report(f"{column} is {found}", column)
        return None
    said = [_turn(turn, speaker_keys, report, f"{column}[{place}]") for place, turn in enumerate(turns)]
    return History(tuple(speaker for speaker, _ in said), sha256_of(_json([[s or "", c] for s, c in said])))


def _turn(turn: object, speaker_keys: Sequence[str], report: Report, column: str) -> tuple[str | None, Any]:
    if not isinstance(turn, dict):
        report(f"a step is {short_repr(turn)}, not an object", column)
        return None, turn
    named = next((turn[key] for key in speaker_keys if turn.get(key)), None)
    return as_agent(named, report, column), turn.get("content") or ""


def _json(value: object) -> str:
    """Canonical JSON; what is nested too deeply to be written is its type's name."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    except (RecursionError, ValueError, TypeError):
        return f"<{type(value).__name__}>"
