"""Collects what the files of a folder say of logs, annotators and samples, and makes the tables of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.attribution.formats.values import History, collapsed, question_id
from faultbook.errors import DataError
from faultbook.problems import Problems

Row = int | str | None
ModelName = str | tuple[str, str, str]  # a name, or model, method and temperature of a results folder
PLACE = ["file", "row"]
_LONGEST = 1_000  # of a problem


@dataclass(slots=True)
class Log:
    """What is known of a log so far."""

    split: str
    source: str
    file: Path
    n_steps: int | None = None
    question_id: str | None = None
    release: str | None = None
    content_sha256: str | None = None
    weak: bool = False


@dataclass(slots=True)
class Judgement:
    """What one annotator says of one step; several remarks on a step become one."""

    is_failure: bool
    agents: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    ideal_actions: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    row: Row = None


@dataclass(slots=True)
class Review:
    """What one annotator says of one log."""

    file: Path
    row: Row
    judgements: dict[int, Judgement] = field(default_factory=dict)
    complete: bool = True  # what is not judged is not flagged
    unread: set[int] = field(default_factory=set)  # steps of which something is said that cannot be read
    spoilt: bool = False  # something is said of a step that nobody knows, so that it cannot be complete


class Collector:
    """Takes logs, reviews and samples in any order; `assemble` makes the tables of them."""

    def __init__(self, problems: Problems, sources: Path | None = None) -> None:
        self.problems, self.sources = problems, sources
        self.logs: dict[str, Log] = {}
        self.speakers: dict[str, list[tuple[int, str | None, str | None]]] = {}
        self.reviews: dict[tuple[str, str], Review] = {}
        self.reviewed: dict[tuple[str, str], tuple[Path, Row]] = {}  # went through the whole log, says a CSV file
        self.attempts: list[tuple[Any, ...]] = []
        self.predictions: list[tuple[Any, ...]] = []
        self.frames: dict[str, list[pd.DataFrame]] = {"annotations": [], "attempts": [], "predictions": []}
        self._numbers = itertools.count()

    def problem(
        self, text: str, file: Path, row: Row = None, column: str | None = None, mend: str | None = None
    ) -> None:
        """Take a located problem, or raise it; one line is one line, whatever nests in the value it shows."""
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        self.problems.add(DataError(shown, file=file, row=row, column=column, mend=mend))

    def log(
        self,
        log_id: str,
        split: str,
        source: str,
        file: Path,
        *,
        history: History | None = None,
        question: object = None,
        release: str | None = None,
        weak: bool = False,
    ) -> None:
        """Take a log, as one file shows it.

        Parameters
        ----------
        log_id, split, source : str
            As in the table `Logs`.
        file : Path
            The file.
        history : History, optional
            Its steps, where the file holds them.
        question : object, optional
            The question, of which only a digest is kept.
        release : str, optional
            The release of its format.
        weak : bool
            Whether the file only speaks about it (predictions do); any other file then says what it is.
        """
        known = self.facts(
            log_id,
            Log(
                split,
                source,
                file,
                n_steps=len(history.speakers) if history else None,
                question_id=question_id(question),
                release=release,
                content_sha256=history.content_sha256 if history else None,
                weak=weak,
            ),
        )
        if known and history:
            self.steps(log_id, enumerate(history.speakers))

    def facts(self, log_id: str, log: Log, row: Row = None) -> bool:
        """Take facts about a log. False if they contradict an earlier file: that file counts."""
        known = self.logs.get(log_id)
        if known is None:
            self.logs[log_id] = log
            return True
        mine = (log.n_steps, log.content_sha256)
        theirs = (known.n_steps, known.content_sha256)
        if any(a is not None and b is not None and a != b for a, b in zip(mine, theirs, strict=True)):
            text = f"log '{log_id}' has other steps here than in {known.file}"
            self.problem(text, log.file, row, mend="keep one of them")
            return False
        if known.weak and not log.weak:
            known.source, known.file, known.weak = log.source, log.file, False
        for name in ("n_steps", "question_id", "release", "content_sha256"):
            if getattr(known, name) is None:
                setattr(known, name, getattr(log, name))
        return True

    def steps(self, log_id: str, roles: Iterable[tuple[int, str | None]]) -> None:
        """Take the speakers of a log's steps."""
        self.speakers.setdefault(log_id, [(step, role, collapsed(role)) for step, role in roles])

    def review(self, log_id: str, annotator: str, file: Path, row: Row = None) -> Review | None:
        """Begin what an annotator says of a log; None if another file says it already."""
        earlier = self.reviews.get((log_id, annotator))
        if earlier is not None:
            text = f"annotator '{annotator}' judges log '{log_id}' here and in {_where(earlier.file, earlier.row)}"
            self.problem(text, file, row, mend="keep one of them")
            return None
        self.reviews[log_id, annotator] = Review(file, row)
        return self.reviews[log_id, annotator]

    def sample(
        self,
        log_id: str,
        model: ModelName,
        sample: int,
        steps: Sequence[tuple[int, str | None, str | None, str | None]],
        file: Path,
        row: Row = None,
        *,
        status: str | None = None,
        ranked: bool = False,
        n_unreadable: int = 0,
    ) -> None:
        """Take a sample with the (step, agent, reason, ideal action) that it lists.

        Its status is `status` if given; else "ok" if it lists a step, "unparsable" if it lists only what names no
        step, and "abstained" if it lists nothing.
        """
        number = next(self._numbers)
        found = status or ("ok" if steps else "unparsable" if n_unreadable else "abstained")
        self.attempts.append((number, log_id, model, sample, found, ranked, n_unreadable, file, row))
        for position, named in enumerate(steps):
            self.predictions.append((number, log_id, model, sample, position, *named, file, row))

    def frame(self, table: str, rows: pd.DataFrame) -> None:
        """Take many rows at once, with the columns `file` and `row`; a number links samples and predictions."""
        self.frames[table].append(rows)

    def numbers(self, n: int) -> list[int]:
        """Numbers for n samples of a frame."""
        return list(itertools.islice(self._numbers, n))


def judge(
    review: Review,
    step: int,
    is_failure: bool,
    *,
    agent: str | None = None,
    reason: str | None = None,
    ideal_action: str | None = None,
    category: str | None = None,
    row: Row = None,
) -> None:
    """Add a remark on a step; a second remark on one step joins the first."""
    judgement = review.judgements.setdefault(step, Judgement(is_failure, row=row))
    judgement.is_failure |= is_failure
    parts = (
        (judgement.agents, agent),
        (judgement.reasons, reason),
        (judgement.ideal_actions, ideal_action),
        (judgement.categories, category),
    )
    for kept, said in parts:
        if said is not None and said not in kept:
            kept.append(said)


def _where(file: Path, row: Row) -> str:
    return f"{file}" + (f", row {row}" if row is not None else "")
