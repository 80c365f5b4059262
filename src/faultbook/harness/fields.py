"""The columns of a trial that follow from what a format records."""

from __future__ import annotations

from typing import Any

from faultbook.taxonomy import Classification


def usage_status(input_tokens: int | None, output_tokens: int | None, *, zero_means_nothing: bool = False) -> str:
    """How far the tokens of a trial are metered: reported, absent, zero_suspect or partial.

    `zero_means_nothing` for formats that write 0 where nothing was metered; two zeros are suspect in any format,
    since no model answers without a token.
    """
    given = [tokens for tokens in (input_tokens, output_tokens) if tokens is not None]
    if not given:
        return "absent"
    if not any(given) or (zero_means_nothing and input_tokens == 0):
        return "zero_suspect"
    return "reported" if len(given) == 2 else "partial"


def resolved_by(reward: float | None) -> bool | None:
    """The verdict that follows from a reward: True for 1, False from 0 up to 1, missing otherwise."""
    return reward == 1 if reward is not None and 0 <= reward <= 1 else None


def cause_fields(found: Classification, resolved: bool | None, reward: float | None) -> dict[str, Any]:
    """The columns of a trial that follow from why it ended, and whether its verdict stands beside that."""
    verdict = resolved is not None or reward is not None
    return {
        "cause": found.cause.name,
        "cause_source": found.source,
        "other_causes": "; ".join(found.others) or None,
        "reward_valid": found.cause.verdict_stands if verdict else None,
    }


def joined_notes(*notes: str | None) -> str | None:
    """Notes as one text, each once."""
    return "; ".join(dict.fromkeys(note for note in notes if note)) or None
