"""Makes the tables of what a collector took: full grids of judgements, named models, one order of rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from faultbook.attribution.formats.collect import PLACE, Collector, Judgement, ModelName, Review
from faultbook.errors import DataError
from faultbook.tables import Annotations, Attempts, Logs, Predictions, Steps, typed

_JUDGED = [*Annotations.to_schema().columns, *PLACE]
_SAMPLED = ["number", *Attempts.to_schema().columns, *PLACE]
_PREDICTED = ["number", *Predictions.to_schema().columns, *PLACE]
_SAMPLE_KEY = ["log_id", "model", "sample"]


def assemble(collector: Collector, *, labels_may_lie_beyond: bool) -> dict[str, pd.DataFrame]:
    """Make the tables logs, steps, annotations, predictions and attempts.

    Parameters
    ----------
    collector : Collector
        What was read.
    labels_may_lie_beyond : bool
        Whether a label beyond the last step of its log is left to the policy for anomalies; otherwise it is a problem.

    Returns
    -------
    dict of DataFrame
        The tables by name. Logs are in the order in which they were read, and so is everything about them.
    """
    sizes = {log_id: log.n_steps for log_id, log in collector.logs.items()}
    annotations = _annotations(collector, sizes)
    attempts, predictions = _samples(collector)
    if not labels_may_lie_beyond:
        _check_range(annotations, sizes, collector, "the label of annotator '{annotator}'", _OLDER_RELEASE)
    _check_range(predictions, sizes, collector, "a prediction of '{model}'", "it is kept, as a wrong answer")
    logs = [
        (log_id, log.split, log.n_steps, log.question_id, log.source, log.release, log.content_sha256)
        for log_id, log in collector.logs.items()
    ]
    steps = [(log_id, *step) for log_id in collector.logs for step in collector.speakers.get(log_id, ())]
    ranks = {log_id: rank for rank, log_id in enumerate(collector.logs)}
    return {
        "logs": typed(logs, Logs),
        "steps": typed(steps, Steps),
        "annotations": _plain(_ordered(annotations, ranks, "annotator", ["step"]), Annotations),
        "predictions": _plain(_ordered(predictions, ranks, "model", ["sample", "position"]), Predictions),
        "attempts": _plain(_ordered(attempts, ranks, "model", ["sample"]), Attempts),
    }


_OLDER_RELEASE = "older releases of Who&When have such labels; anomalies='drop' leaves these logs out"


def natural(text: str) -> list[Any]:
    """A key that sorts 2 before 10 in names that hold numbers."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"([0-9]+)", text))]


# ---- judgements ----------------------------------------------------------------------------------------------------


def _annotations(collector: Collector, sizes: dict[str, int | None]) -> pd.DataFrame:
    given = _joined(collector.frames["annotations"], _JUDGED)
    in_frames = _steps_of_pairs(given, {pair for pair, review in collector.reviews.items() if review.complete})
    anybody = _steps_of_logs(given, collector, sizes)
    rows: list[tuple[Any, ...]] = []
    for (log_id, annotator), review in collector.reviews.items():
        unlisted = _unlisted(review, sizes[log_id], anybody[log_id]) - in_frames.get((log_id, annotator), set())
        for step in sorted({*review.judgements, *unlisted}):
            said = review.judgements.get(step)
            place = (review.file, review.row if said is None or said.row is None else said.row)
            rows.append((log_id, step, annotator, *_remarks(said), *place))
    return _joined([pd.DataFrame(rows, columns=_JUDGED), given], _JUDGED)


def _remarks(said: Judgement | None) -> tuple[Any, ...]:
    """(is_failure, agent, reason, ideal_action, category) of one step."""
    if said is None:
        return False, None, None, None, None
    agents, reasons = "; ".join(said.agents) or None, "\n".join(said.reasons) or None
    ideal_actions, categories = "\n".join(said.ideal_actions) or None, "; ".join(said.categories) or None
    return said.is_failure, agents, reasons, ideal_actions, categories


def _unlisted(review: Review, n_steps: int | None, anybody: set[int]) -> set[int]:
    """Steps that an annotator saw and did not list: all of the log, or those that anybody lists if its end is unknown.

    Where nobody lists any, step 0 stands for the whole: it was seen, and not flagged.
    """
    if not review.complete or review.spoilt:
        return set()
    seen = set(range(n_steps)) if n_steps is not None else anybody or {0}
    return seen - set(review.judgements) - review.unread


def _steps_of_pairs(given: pd.DataFrame, pairs: set[tuple[str, str]]) -> dict[tuple[str, str], set[int]]:
    if given.empty:
        return {}
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for log_id, annotator, step in zip(given["log_id"], given["annotator"], given["step"], strict=True):
        if (log_id, annotator) in pairs:
            found[log_id, annotator].add(step)
    return found


def _steps_of_logs(given: pd.DataFrame, collector: Collector, sizes: dict[str, int | None]) -> dict[str, set[int]]:
    """The steps that anybody lists for each log whose end is unknown."""
    found: dict[str, set[int]] = defaultdict(set)
    for (log_id, _), review in collector.reviews.items():
        if sizes[log_id] is None:
            found[log_id].update(review.judgements)
    for log_id, step in zip(given["log_id"], given["step"], strict=True):
        if sizes[log_id] is None:
            found[log_id].add(step)
    return found


# ---- samples -------------------------------------------------------------------------------------------------------


def _samples(collector: Collector) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = _model_names({row[2] for row in collector.attempts})
    drawn = [(*row[:2], names[row[2]], *row[3:]) for row in collector.attempts]
    listed = [(*row[:2], names[row[2]], *row[3:]) for row in collector.predictions]
    attempts = _joined([pd.DataFrame(drawn, columns=_SAMPLED), *collector.frames["attempts"]], _SAMPLED)
    predictions = _joined([pd.DataFrame(listed, columns=_PREDICTED), *collector.frames["predictions"]], _PREDICTED)
    again = attempts.duplicated(_SAMPLE_KEY)
    if again.any():
        first = attempts[~again].set_index(_SAMPLE_KEY)["file"]
        for key, file, row in _rows(attempts[again], _SAMPLE_KEY):
            text = f"sample {key[2]} of '{key[1]}' for log '{key[0]}' stands here and in {first[key]}"
            collector.problem(text, file, row, mend="keep one of them")
        predictions = predictions[predictions["number"].isin(attempts.loc[~again, "number"])]
    return attempts[~again], predictions


def _model_names(models: Iterable[ModelName]) -> dict[ModelName, str]:
    """A name for each model; method and temperature stand in it only where the model has several."""
    methods: dict[str, set[str]] = defaultdict(set)
    temperatures: dict[str, set[str]] = defaultdict(set)
    folders = [model for model in models if not isinstance(model, str)]
    for model, method, temperature in folders:
        methods[model].add(method)
        temperatures[model].add(temperature)
    named: dict[ModelName, str] = {model: model for model in models if isinstance(model, str)}
    for model, method, temperature in folders:
        by_method = f", {method}" if len(methods[model]) > 1 else ""
        by_temperature = f", temperature {temperature}" if len(temperatures[model]) > 1 else ""
        named[model, method, temperature] = model + by_method + by_temperature
    return named


# ---- frames --------------------------------------------------------------------------------------------------------


def _joined(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """The frames one below the other; with columns of any type, for the types come at the end."""
    filled = [frame[columns] for frame in frames if len(frame)]
    if not filled:
        return pd.DataFrame(columns=columns)
    return filled[0].reset_index(drop=True) if len(filled) == 1 else pd.concat(filled, ignore_index=True)


def _check_range(
    frame: pd.DataFrame, sizes: dict[str, int | None], collector: Collector, whose: str, mend: str
) -> None:
    if frame.empty:
        return
    size = frame["log_id"].map({log_id: size for log_id, size in sizes.items() if size is not None})
    beyond = size.notna() & (frame["step"].astype("int64") >= size)
    who = "annotator" if "annotator" in frame else "model"
    for (log_id, step, name), file, row in _rows(frame[beyond], ["log_id", "step", who]):
        text = f"{whose.format(**{who: name})} names step {step} of log '{log_id}', which has {sizes[log_id]}"
        collector.problems.add(DataError(f"{text} steps", file=file, row=row, column="step", mend=mend))


def _rows(frame: pd.DataFrame, columns: list[str]) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """The columns of each row, its file, and its row there."""
    for *key, file, row in frame[[*columns, *PLACE]].itertuples(index=False, name=None):
        yield tuple(key), file, row if isinstance(row, str) else None if pd.isna(row) else int(row)


def _ordered(frame: pd.DataFrame, ranks: dict[str, int], who: str, then: list[str]) -> pd.DataFrame:
    """Sorted by log, then by name of annotator or model, then by number."""
    if frame.empty:
        return frame
    names = {name: rank for rank, name in enumerate(sorted(frame[who].unique(), key=natural))}
    keys = frame[then].astype("int64").assign(_log=frame["log_id"].map(ranks), _who=frame[who].map(names))
    return frame.loc[keys.sort_values(["_log", "_who", *then], kind="stable").index]


def _plain(frame: pd.DataFrame, model: type[Any]) -> pd.DataFrame:
    types = {name: str(column.dtype) for name, column in model.to_schema().columns.items()}
    table: pd.DataFrame = model.validate(frame[list(types)].astype(types).reset_index(drop=True))
    return table
