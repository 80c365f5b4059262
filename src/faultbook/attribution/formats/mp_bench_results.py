"""Predictions for MP-Bench: results of its own evaluator, one file a sample, and the ranked lists of its leaderboard.

Sources: run_maseval.py and masevaluator.py (results/MODEL/METHOD/seed_N/[temp_T/]SPLIT/ID.json), submissions/README.md
(predictions_SPLIT.json beside metadata.json), both in yeonjun-in/MP-Bench. Steps count from 0.

A results file is a copy of an annotated log with the reply added to it. Its annotations belong to whoever made the log;
they are not read again here, and its answer is not read at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook.attribution.formats.collect import Collector
from faultbook.attribution.formats.values import as_agent, as_name, as_text, folders_above, read_history, split_name
from faultbook.attribution.steps import parse_step
from faultbook.errors import short_repr
from faultbook.replies import Payload, parse_reply, without_thinking

RESULTS = "mp-bench-predictions"
INDEX_BASE = 0
LOOKED_FOR = "an object with failure_attribution"

REPLY = "failure_attribution"
_STEP_KEYS = ("step_number", "step")
_SEED = re.compile(r"seed_([0-9]{1,9})")
_TEMPERATURE = re.compile(r"temp_(.+)")
_USUAL_TEMPERATURE = "1.0"  # of files without a temp_ folder
_CUT_OFF = ("length", "max_tokens")  # as two families of interfaces say it
_PUT = "put it at results/MODEL/METHOD/seed_N/SPLIT/ID.json"

Step = tuple[int, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Which sample a results file is, by its folders."""

    model: tuple[str, str, str]
    sample: int
    split: str


def place_of(file: Path) -> Place | None:
    """Model, method, temperature, sample and split by the folders of a results file; None if they do not say."""
    folders = folders_above(file)[::-1]
    for at in range(len(folders) - 2, 2, -1):
        seed = _SEED.fullmatch(folders[at])
        if not seed:
            continue
        below = folders[at + 1 :]
        temperature = _TEMPERATURE.fullmatch(below[0]) if len(below) > 1 else None
        if len(below) - bool(temperature) != 1:
            return None
        model = (folders[at - 2], folders[at - 1], temperature[1] if temperature else _USUAL_TEMPERATURE)
        return Place(model, int(seed[1]), split_name(below[-1]))
    return None


def recognises(payload: object, file: Path) -> bool:
    """Whether a JSON value is a result of the evaluator."""
    return isinstance(payload, dict) and REPLY in payload


def read(payload: Any, file: Path, row: int | None, collector: Collector) -> None:
    """Read a result that is JSON: the log with the reply in it, or the list alone."""
    place = place_of(file)
    if place is None:
        collector.problem("a result whose place names no model and sample", file, row, mend=_PUT)
        return
    log_id = f"{place.split}/{file.stem}"
    fields = payload if isinstance(payload, dict) and REPLY in payload else {}
    turns = fields.get("history")
    history = read_history(turns, ("role", "name"), lambda *_: None) if turns else None
    collector.log(log_id, place.split, RESULTS, file, history=history, question=fields.get("question"), weak=True)
    cut_off = any(fields.get(key) in _CUT_OFF for key in ("finish_reason", "stop_reason"))
    _take(fields.get(REPLY) if fields else payload, log_id, place, file, row, collector, cut_off=cut_off)


def read_reply(text: str, file: Path, collector: Collector) -> None:
    """Read a result that is the reply itself, as text."""
    place = place_of(file)
    if place is None:
        collector.problem("a result whose place names no model and sample", file, mend=_PUT)
        return
    log_id = f"{place.split}/{file.stem}"
    collector.log(log_id, place.split, RESULTS, file, weak=True)
    _take(text, log_id, place, file, None, collector)


def _take(
    reply: object,
    log_id: str,
    place: Place,
    file: Path,
    row: int | None,
    collector: Collector,
    *,
    cut_off: bool = False,
) -> None:
    items: list[Any] | None = None
    if not cut_off:
        items, cut_off = _items(reply, file, row, collector)
    status = "truncated" if cut_off else "unparsable" if items is None else None
    if status == "truncated":
        collector.problem("the reply was cut off", file, row, REPLY, "it is counted as truncated")
    elif status == "unparsable":
        text = f"the reply lists no steps ({short_repr(reply)})"
        collector.problem(text, file, row, REPLY, "give a list of objects with step_number; empty if there is none")
    steps, n_unreadable = _steps(items or [], REPLY, file, row, collector)
    collector.sample(log_id, place.model, place.sample, steps, file, row, status=status, n_unreadable=n_unreadable)


def _items(reply: object, file: Path, row: int | None, collector: Collector) -> tuple[list[Any] | None, bool]:
    """The items of a reply, None if there are none to be found, and whether its thinking was cut off."""
    if isinstance(reply, str):
        answer, truncated = without_thinking(reply)
        if truncated:
            return None, True
        reply, repaired = parse_reply(answer, _is_answer, lists_in_prose=True)
        if repaired and reply is not None:
            collector.problem("the reply is not strict JSON", file, row, REPLY, "read after repair; check it")
    for _ in range(2):  # an object around the list, or one item alone
        if isinstance(reply, dict):
            reply = reply[REPLY] if REPLY in reply else [reply] if _names_step(reply) else None
    return (reply if isinstance(reply, list) else None), False


def _is_answer(payload: Payload) -> bool:
    """Whether repaired JSON is an answer: the list of objects that was asked for, or an object that holds it."""
    if isinstance(payload, dict):
        return REPLY in payload or _names_step(payload)
    return any(isinstance(item, dict) and _names_step(item) for item in payload)


def _names_step(item: Mapping[str, Any]) -> bool:
    return any(key in item for key in _STEP_KEYS)


def _steps(
    items: list[Any], column: str, file: Path, row: int | str | None, collector: Collector
) -> tuple[list[Step], int]:
    """The steps that items name, in their order, and how many items name none; a step named twice stays so."""
    steps: list[Step] = []
    for place, item in enumerate(items):
        at = f"{column}[{place}]"

        def report(problem: str, part: str, at: str = at) -> None:
            collector.problem(problem, file, row, f"{at}.{part}")

        fields: Mapping[str, Any] = item if isinstance(item, dict) else {"step": item}
        named = next((fields[key] for key in _STEP_KEYS if key in fields), None)
        try:
            step = parse_step(named, base=INDEX_BASE)
        except ValueError as error:
            collector.problem(str(error), file, row, at, "it is left out and counted as unreadable")
            continue
        agent = as_agent(fields.get("agent_name"), report, "agent_name")
        steps.append((step, agent, as_text(fields.get("failure_reason")), as_text(fields.get("ideal_action"))))
    return steps, len(items) - len(steps)


# ---- leaderboard ---------------------------------------------------------------------------------------------------

LEADERBOARD = "leaderboard"
LOOKED_FOR_LEADERBOARD = "predictions_SPLIT.json: an object of ids with lists of steps"
METADATA = "metadata.json"
_PREDICTIONS = re.compile(r"predictions(?:[_-](.+))?", re.IGNORECASE)
_MODEL_KEYS = ("model_name", "name", "model", "submission")


def recognises_leaderboard(payload: object, file: Path) -> bool:
    """Whether a JSON value is a submission to the leaderboard: its name says so."""
    return isinstance(payload, dict) and _PREDICTIONS.fullmatch(file.stem) is not None


def is_companion(payload: object, file: Path) -> bool:
    """Whether a JSON value belongs to the leaderboard and holds no predictions: metadata, or the board itself."""
    if file.name == METADATA:
        return any(file.parent.glob("predictions*.json")) or (isinstance(payload, dict) and _MODEL_KEYS[0] in payload)
    return file.name == "leaderboard.json" and isinstance(payload, list)


def read_leaderboard(payload: Mapping[str, Any], file: Path, row: int | None, collector: Collector) -> None:
    """Read ranked lists of steps, one sample a log; the model is the one that `metadata.json` beside it names."""
    named = _PREDICTIONS.fullmatch(file.stem)
    split = split_name(str(named[1] or file.stem) if named is not None else file.stem)
    model = _model(file)
    for key, items in payload.items():
        try:
            log_id = f"{split}/{as_name(key, 'the id of a log')}"
        except ValueError as error:
            collector.problem(str(error), file, row, mend="name the log")
            continue
        collector.log(log_id, split, LEADERBOARD, file, weak=True)
        if isinstance(items, list):
            steps, n_unreadable = _steps(items, key, file, row, collector)
            collector.sample(log_id, model, 0, steps, file, row, ranked=True, n_unreadable=n_unreadable)
        else:
            collector.problem(f"{short_repr(items)} is not a list of steps", file, row, key, "list steps, best first")
            collector.sample(log_id, model, 0, [], file, row, status="unparsable", ranked=True)


def _model(file: Path) -> str:
    """The model by the metadata beside a file, else by its folder."""
    try:
        metadata = json.loads(file.with_name(METADATA).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        metadata = None
    for key in _MODEL_KEYS if isinstance(metadata, dict) else ():
        try:
            return as_name(metadata.get(key), key)
        except ValueError:
            continue
    return folders_above(file)[0] or "model"
