"""Tokens of trials: each part with how far it is metered, and sums that say when they are not of all parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from faultbook.harness.fields import usage_status
from faultbook.harness.formats._rows import sum_of_all
from faultbook.values import amount, count

BEST_LAST = ("absent", "zero_suspect", "partial", "reported")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost (USD) of a part of a run, and how far they are metered: a status of `Trials.usage_status`.

    `input_tokens` include those read from a cache.
    """

    input_tokens: int | None = None
    cache_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    status: str = "absent"

    def better_than(self, other: Usage) -> bool:
        """Whether more of it is metered."""
        return BEST_LAST.index(self.status) > BEST_LAST.index(other.status)


NOTHING = Usage()


def measured(
    input_tokens: int | None, cache_tokens: int | None, output_tokens: int | None, cost: float | None
) -> Usage:
    """Usage as recorded. No input at all is suspect: Harbor's adapters write 0 for totals that they do not have."""
    status = usage_status(input_tokens, output_tokens, zero_means_nothing=True)
    return Usage(input_tokens, cache_tokens, output_tokens, cost, status)


def total(parts: Sequence[Usage]) -> Usage:
    """The sum of parts.

    Parameters
    ----------
    parts : sequence of Usage
        Of steps that each are a part of the run.

    Returns
    -------
    Usage
        "reported" if every part is. Where only some are, the tokens are a lower bound and the status is "partial".
        Cache and cost have no status of their own: they are there only if every part has them.
    """
    statuses = {part.status for part in parts}
    if len(statuses) == 1:
        (status,) = statuses
    else:
        status = "zero_suspect" if statuses and statuses <= {"absent", "zero_suspect"} else "partial"
    return Usage(
        count(_sum(part.input_tokens for part in parts)),
        count(sum_of_all(part.cache_tokens for part in parts)),
        count(_sum(part.output_tokens for part in parts)),
        amount(sum_of_all(part.cost for part in parts)),
        status if parts else "absent",
    )


def _sum(values: Iterable[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return sum(given) if given else None
