"""What the records in a samples file of lm-evaluation-harness say: which of several metrics counts, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from faultbook import values
from faultbook.harness import fields

_RECORD = "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash"
_KNOWN = frozenset(_RECORD.split())  # no metrics, where a record of an older version does not list those
_SAID = {"True": True, "False": False}  # what the harness writes of a truth value of NumPy's


@dataclass(frozen=True, slots=True)
class Run:
    """What the results file beside it says of a samples file."""

    arm: str
    date: str | None = None
    version: str | None = None
    higher_is_better: dict[str, Any] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The metric and filter that rewards are of, or why there are none."""

    metric: str | None
    filter: str | None
    note: str | None = None


def is_record(record: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a line of a samples file is a record of a document."""
    return isinstance(record, dict) and _identity(record) != (None, None)


def survey(records: Iterable[Any]) -> tuple[list[str | None], list[str]]:
    """Filters and metrics of the records of a file, in the order in which they are met."""
    filters: dict[str | None, None] = {}
    metrics: dict[str, None] = {}
    for record in records:
        if is_record(record):
            filters.setdefault(values.text(record.get("filter")))
            listed = record.get("metrics")
            found = listed if isinstance(listed, list) else [name for name in record if name not in _KNOWN]
            metrics.update(dict.fromkeys(name for name in found if isinstance(name, str)))
    return list(filters), list(metrics)


def chosen(filters: list[str | None], metrics: list[str], wanted: str | None) -> Choice:
    """The metric and the filter that count. Without a decision, documents are those of the first filter."""
    name, _, under = (wanted or "").partition(",")
    shown = ", ".join(str(found) for found in filters)
    if under and under not in filters:
        return Choice(None, filters[0], f"no filter '{under}' (there are: {shown})")
    if not under and len(filters) > 1:
        example = f"{name or (metrics[0] if metrics else 'metric')},{filters[0]}"
        return Choice(None, filters[0], f"several filters ({shown}): name one with metric, such as '{example}'")
    counted = under or filters[0]
    if name and name not in metrics:
        return Choice(None, counted, f"no metric '{name}' (there are: {', '.join(metrics) or 'none'})")
    sole = metrics[0] if len(metrics) == 1 else "reward" if "reward" in metrics else None
    if not name and sole is None:
        why = f"several rewards ({', '.join(metrics)}): name one with metric" if metrics else "no metric"
        return Choice(None, counted, why)
    return Choice(name or sole, counted)


def document_fields(record: dict[str, Any], task: str, run: Run, choice: Choice) -> dict[str, Any]:
    """The columns of a document's row that its record decides."""
    document, digest = _identity(record)
    task_id = f"{task}/{document or (digest or '')[:12]}"
    reward, resolved, odd = _verdict(record, choice.metric) if choice.metric else (None, None, None)
    if choice.metric and values.part(run.higher_is_better, task, choice.metric) is False:
        resolved, odd = None, f"lower is better for '{choice.metric}': no verdict follows from it"
    key = ",".join(part for part in (choice.metric, choice.filter) if part)
    return {
        "task_id": task_id,
        "state": "finished",
        "resolved": resolved,
        "reward": reward,
        "reward_key": key if choice.metric else None,
        "trial_id": " ".join(part for part in (task_id, (digest or "")[:12], choice.filter, run.date) if part),
        "task_checksum": digest,
        "note": fields.joined_notes(run.note, choice.note, odd),
    }


def _identity(record: dict[str, Any]) -> tuple[str | None, str | None]:
    return values.text(record.get("doc_id")), values.text(record.get("doc_hash"))


def _verdict(record: dict[str, Any], metric: str) -> tuple[float | None, bool | None, str | None]:
    """Reward, verdict, and what is odd about them. A truth value is a verdict without a number."""
    value = record.get(metric)
    if isinstance(value, (bool, str)):
        said = value if isinstance(value, bool) else _SAID.get(value)
        return None, said, None if said is not None else f"'{metric}' is a text"
    reward = values.number(value)
    if reward is None:
        return None, None, f"no number for '{metric}'"
    if not 0 <= reward <= 1:
        return reward, None, f"'{metric}' is outside [0, 1]: no verdict follows from it"
    return reward, reward == 1, None
