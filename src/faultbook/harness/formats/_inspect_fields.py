"""What a sample of an Inspect log says: its verdict, its usage and why it ended, as columns of the table `Trials`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from faultbook.harness.fields import resolved_by, usage_status
from faultbook.harness.formats._rows import sum_of_all
from faultbook.taxonomy import Observation, named
from faultbook.values import amount, count, number, text

VOCABULARY = "inspect"
_PLACEHOLDER = "88F74D2C"  # Inspect's name of the score in a sample of log version 1, which had one without a name
_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer
_TRUTHS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_REPR = re.compile(r"((?:\w+\.)*[A-Z]\w*)\(.*\)", re.DOTALL)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# "Normalize handling of cached tokens in ModelUsage (input tokens now excludes cached tokens whereas previously it
# included them for some providers)": change log of inspect-ai, 0.3.184 of 28 February 2026; for Google's models, which
# that left out, 0.3.208 of 19 April 2026 (pull requests 3341 and 3711).
_CACHE_EXCLUDED = (0, 3, 184)
_CACHE_EXCLUDED_GOOGLE = (0, 3, 208)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sample's score as a number, which of its scores that is, the scorer's reason, what a reader must know."""

    reward: float | None = None
    key: str | None = None
    reason: str | None = None
    note: str | None = None

    @property
    def resolved(self) -> bool | None:
        """The verdict that follows from it."""
        return resolved_by(self.reward)


def verdict(scores: Mapping[str, Any] | None, scorers: tuple[str, ...], metric: str | None) -> Verdict:
    """The verdict on a sample.

    Parameters
    ----------
    scores : mapping, optional
        Inspect's `Score` by scorer. Of one whose value is a mapping, each entry is a score "scorer.entry".
    scorers : tuple of str
        Those of the whole log: a sample that has but one score of several scorers has no sole one.
    metric : str, optional
        Name of the score; without it a sole one counts, or one called "reward".

    Returns
    -------
    Verdict
        As Inspect's `value_to_float` takes a value: "C", "P", "I" and "N" are 1, 0.5, 0 and 0, "yes" and "no" 1 and 0,
        numbers and truth values themselves. Where that function logs a warning and gives 0 (any other text, a list),
        and for NaN or null, Inspect's signs of a sample that was not scored, the reward is missing and the note says
        so.
    """
    values = dict(_flat(scores or {}, scorers))
    if not values:
        return Verdict()
    key, note = _chosen(list(values), scorers, metric)
    if key is None:
        return Verdict(note=note)
    value, reason = values[key]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Verdict(None, key, reason, f"not scored by '{key}'" + (f": {reason}" if reason else ""))
    reward = score_number(value)
    if reward is None:
        shown = str(value) if isinstance(value, float) else text(value) or type(value).__name__
        return Verdict(None, key, reason, f"the score '{key}' is no number: {shown}")
    return Verdict(reward, key, reason, None if 0 <= reward <= 1 else f"the score '{key}' is outside [0, 1]")


def score_number(value: Any) -> float | None:
    """A score's value as a number, as Inspect's `value_to_float` has it, or None where that finds none."""
    if not isinstance(value, str):
        return number(float(value)) if isinstance(value, bool) else number(value)
    if value in _WORDS:
        return _WORDS[value]
    try:
        return _TRUTHS[value.lower()] if value.lower() in _TRUTHS else number(float(value))
    except ValueError:
        return None


def _flat(scores: Mapping[str, Any], scorers: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, str | None]]]:
    for scorer, score in scores.items():
        name, reason = scorer, text(score.reason)
        if scorer == _PLACEHOLDER:
            name = scorers[0] if scorers else "score"
        if isinstance(score.value, Mapping):
            yield from ((f"{name}.{entry}", (value, reason)) for entry, value in score.value.items())
        else:
            yield name, (score.value, reason)


def _chosen(names: list[str], scorers: tuple[str, ...], metric: str | None) -> tuple[str | None, str | None]:
    listed = ", ".join(names)
    if metric is not None:
        fitting = [name for name in names if name == metric] or [n for n in names if n.startswith(f"{metric}.")]
        return (fitting[0], None) if len(fitting) == 1 else (None, f"no score called '{metric}' among {listed}")
    if len(names) == 1 and len(scorers) <= 1:
        return names[0], None
    if "reward" in names:
        return "reward", None
    return None, f"several rewards ({listed}): name one with metric"


def usage_fields(models: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """Tokens and cost of a sample, summed over its models; missing where one of them does not report a number.

    Inspect splits input tokens into those at full rate, written to a cache and read from one. `input_tokens` are the
    first two, `cache_tokens` the third, so that their sum is what was sent. A sample that used no model at all has an
    empty mapping: its usage is absent, not 0.
    """
    used = list(models.values())
    sent, written = _total(used, "input_tokens"), [count(usage.input_tokens_cache_write) or 0 for usage in used]
    tokens = None if sent is None else int(sent) + sum(written)
    cached, output = _total(used, "input_tokens_cache_read"), _total(used, "output_tokens")
    answered = None if output is None else int(output)
    return {
        "input_tokens": tokens,
        "cache_tokens": None if cached is None else int(cached),
        "output_tokens": answered,
        "cache_included": False if tokens is not None and _excludes_cache(models, version) else None,
        "cost": _total(used, "total_cost"),
        "usage_status": usage_status(tokens, answered, zero_means_nothing=not cached),
    }


def _total(used: list[Any], name: str) -> float | None:
    """Sum over models; Inspect's default of 0 for a field that a log does not hold is no number."""
    return sum_of_all(amount(getattr(usage, name)) if name in usage.model_fields_set else None for usage in used)


def _excludes_cache(models: Mapping[str, Any], version: str | None) -> bool:
    """Whether input tokens are known to be without those read from a cache, which only the writer's version tells."""
    found = _VERSION.match(version or "")
    if not found:
        return False
    google = any(model.startswith("google/") for model in models)
    since = _CACHE_EXCLUDED_GOOGLE if google else _CACHE_EXCLUDED
    release = tuple(int(digits) for digits in found.groups())
    return release > since or (release == since and "dev" not in (version or ""))


def ends(summary: Any, reason: str | None) -> tuple[list[Observation], str | None]:
    """What is on record of a sample's end, and Inspect's own name of it: of its error, else of its limit.

    A scorer's reason of an abnormal score is an end where the taxonomy knows it as one.
    """
    observations, names = [], []
    if summary.error is not None:
        error = _REPR.fullmatch(summary.error.strip())
        names.append(error[1] if error else None)
        observations.append(Observation(VOCABULARY, names[-1], summary.error))
    if summary.limit is not None:
        names.append(f"limit {summary.limit}")
        observations.append(Observation(VOCABULARY, names[-1], summary.limit_reason))
    if reason and named(VOCABULARY, f"reason {reason}"):
        observations.append(Observation(VOCABULARY, f"reason {reason}"))
    return observations, text(next((name for name in names if name), None))
