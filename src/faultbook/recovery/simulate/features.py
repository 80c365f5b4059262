"""Features of a moment, computed from nothing but the commands given and the texts shown up to it.

They are this project's own formulas for the families that arXiv 2610.00372 names (action repetition, no-ops,
observation novelty, action–observation consistency, task progress, context budget); the paper's formulas are not
public, and its reasoning repetition has no counterpart here, since scripted agents write no reasons. No feature knows
the condition, the true observation where another was shown, the state of the world, or anything after the moment.

With W the last five actions (as many as lie between a disturbed observation and the latest fork, both counted), or all
if there are fewer:

``x_action_repetition``
    1 − (different commands in W) / (commands in W).
``x_no_ops``
    Share of W whose shown text says that nothing happened or repeats the text shown just before it.
``x_observation_novelty``
    Mean over W of 1 − the largest Jaccard similarity of the words of the shown text with those of any text shown before
    it, the opening text included.
``x_action_observation_consistency``
    Mean over W of how well the shown text fits the command: 1 if it says what such a command shows and names what the
    command is about, 0 if not; a command of which nothing is expected counts as 1.
``x_progress``
    Share of the task's milestones that the shown texts claim.
``x_budget_left``
    Share of a context of 6,000 characters that the commands and shown texts leave free; 0 if they exceed it.
``x_steps``
    Actions so far: a count, not a share.

A caution for whoever fits a model: the fork lies at a fixed share of the undisturbed run, so ``x_steps`` and with it
``x_budget_left`` tell something of how long that run was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from faultbook.tables import FEATURE_PREFIX

WINDOW = 5
CONTEXT_CHARACTERS = 6_000
FEATURES = tuple(
    FEATURE_PREFIX + name
    for name in (
        "action_repetition",
        "no_ops",
        "observation_novelty",
        "action_observation_consistency",
        "progress",
        "budget_left",
        "steps",
    )
)

_WORD = re.compile(r"[a-z]+(?: \d+)?|\d+")  # "mug 1" is one word: the number alone says nothing


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How the texts of a game are read.

    Attributes
    ----------
    no_op : str
        Pattern of a text that says that nothing happened.
    expected : tuple of (str, str)
        Pattern of a whole command, and pattern of the text it should show, in which ``{0}``, ``{1}`` … stand for the
        command's groups. The first command pattern that matches counts.
    milestones : tuple of str
        Patterns of texts that claim a sub-goal.
    """

    no_op: str
    expected: tuple[tuple[str, str], ...]
    milestones: tuple[str, ...]

    def fits(self, command: str, observation: str) -> bool:
        """Whether an observation says what such a command shows."""
        for command_pattern, text_pattern in self.expected:
            if match := re.fullmatch(command_pattern, command):
                wanted = text_pattern.format(*(re.escape(group) for group in match.groups()))
                return re.search(wanted, observation) is not None
        return True


@dataclass(frozen=True, slots=True)
class Turn:
    """A command and the text that was shown for it."""

    command: str
    observation: str


def features(opening: str, turns: Sequence[Turn], vocabulary: Vocabulary) -> dict[str, float]:
    """Compute the features of a moment.

    Parameters
    ----------
    opening : str
        The text before the first command.
    turns : sequence of Turn, shape (n,)
        All commands so far with what was shown.
    vocabulary : Vocabulary
        How the texts are read.

    Returns
    -------
    dict of str to float
        One number for each of `FEATURES`, in that order; before the first action nothing is repeated, nothing is
        novel and all is consistent.
    """
    texts = [opening, *(turn.observation for turn in turns)]
    recent = range(max(0, len(turns) - WINDOW), len(turns))
    commands = [turns[place].command for place in recent]
    no_ops = [_is_no_op(texts[place + 1], texts[place], vocabulary) for place in recent]
    novelty = [_novelty(texts[: place + 2]) for place in recent]
    fits = [vocabulary.fits(turns[place].command, turns[place].observation) for place in recent]
    characters = sum(map(len, texts)) + sum(len(turn.command) for turn in turns)
    values = (
        1 - len(set(commands)) / len(commands) if commands else 0.0,
        _mean(no_ops, 0.0),
        _mean(novelty, 0.0),
        _mean(fits, 1.0),
        _progress(texts[1:], vocabulary),
        max(0.0, 1 - characters / CONTEXT_CHARACTERS),
        float(len(turns)),
    )
    return dict(zip(FEATURES, values, strict=True))


def _mean(values: Sequence[float], if_empty: float) -> float:
    return sum(values) / len(values) if values else if_empty


def _is_no_op(observation: str, before: str, vocabulary: Vocabulary) -> bool:
    return observation == before or re.search(vocabulary.no_op, observation) is not None


def _novelty(texts: Sequence[str]) -> float:
    """How far the words of the last text are from those of the text most like it."""
    *earlier, last = (frozenset(_WORD.findall(text.lower())) for text in texts)
    return 1 - max(len(last & words) / len(last | words) if last | words else 1.0 for words in earlier)


def _progress(texts: Sequence[str], vocabulary: Vocabulary) -> float:
    reached = [any(re.search(pattern, text) for text in texts) for pattern in vocabulary.milestones]
    return _mean(reached, 0.0)
