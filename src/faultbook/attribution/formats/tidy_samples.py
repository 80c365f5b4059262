"""Predictions and attempts of the in-house CSV form, many rows at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.formats.cells import booleans, kept, placed, report_cells, whole_numbers
from faultbook.attribution.formats.collect import Collector
from faultbook.errors import one_of
from faultbook.tables import ATTEMPT_STATUSES

_KEY = ["log_id", "model", "sample"]
_TEXTS = ("agent", "reason", "ideal_action")
_ATTEMPT = [*_KEY, "status", "ranked", "n_unreadable", "file", "row"]
_PREDICTION = [*_KEY, "position", "step", *_TEXTS, "file", "row"]

Tables = list[tuple[Path, pd.DataFrame]]


def read(predictions: Tables, attempts: Tables, collector: Collector) -> None:
    """Read predictions and the samples they belong to; a sample that no attempt tells of is taken from its steps."""
    stated = _below([_attempts(file, table, collector) for file, table in attempts], _ATTEMPT)
    stated = _once(stated, collector)
    listed = _below([_predictions(file, table, collector) for file, table in predictions], [*_PREDICTION, "readable"])
    listed = _once(listed, collector)
    samples = _samples(stated, listed)
    if samples.empty:
        return
    samples = _settled(samples, collector)
    samples["number"] = collector.numbers(len(samples))
    taken = samples.loc[samples["status"] == "ok", [*_KEY, "number"]]
    rows = listed.loc[listed["readable"].astype(bool), _PREDICTION].merge(taken, "inner", _KEY)
    collector.frame("attempts", samples[["number", *_ATTEMPT]])
    collector.frame("predictions", rows)


def _attempts(file: Path, table: pd.DataFrame, collector: Collector) -> pd.DataFrame:
    sample, readable = whole_numbers(table, "sample", file, collector)
    readable &= _named(table, file, collector)
    known = table["status"].isin(ATTEMPT_STATUSES).to_numpy()
    report_cells(table[~known], "status", _no_status, file, collector, None)
    rows = table[["log_id", "model", "status"]].assign(sample=sample, ranked=False, n_unreadable=0)
    readable &= known
    if "ranked" in table:
        rows["ranked"], told = booleans(table, "ranked", file, collector)
        readable &= told
    if "n_unreadable" in table:
        rows["n_unreadable"], counted = whole_numbers(table, "n_unreadable", file, collector)
        readable &= counted
    rows = kept(rows[readable], _KEY, file, collector)
    return placed(rows, file)


def _predictions(file: Path, table: pd.DataFrame, collector: Collector) -> pd.DataFrame:
    """All rows whose sample is known; `readable` says which of them name a step."""
    sample, whose = whole_numbers(table, "sample", file, collector)
    whose &= _named(table, file, collector)
    step, readable = whole_numbers(table, "step", file, collector)
    rows = table[["log_id", "model"]].assign(sample=sample, step=step)
    for name in _TEXTS:
        rows[name] = table[name].mask(table[name] == "", None) if name in table else None
    if "position" in table:
        rows["position"], ordered = whole_numbers(table, "position", file, collector)
        readable &= ordered
    rows = placed(rows.assign(readable=readable)[whose], file)
    if "position" not in table:
        rows["position"] = rows.groupby([*_KEY, "readable"], sort=False).cumcount()
        return rows
    unread = rows[~rows["readable"]]
    return pd.concat([kept(rows[rows["readable"]], [*_KEY, "position"], file, collector), unread]).sort_index()


def _samples(stated: pd.DataFrame, listed: pd.DataFrame) -> pd.DataFrame:
    """One row a sample: what an attempt states of it, and how many steps are listed and unread."""
    counts = listed.groupby(_KEY, sort=False).agg(
        n_rows=("readable", "size"), n_listed=("readable", "sum"), listed_file=("file", "first"), at=("row", "first")
    )
    samples = stated.merge(counts.reset_index(), "outer", _KEY, sort=False)
    derived = samples["status"].isna()
    samples["file"] = samples["file"].where(~derived, samples["listed_file"])
    samples["row"] = samples["row"].where(~derived, samples["at"])
    samples["ranked"] = samples["ranked"].where(~derived, False).astype(bool)
    n_rows, n_listed = (samples[name].fillna(0).astype("int64") for name in ("n_rows", "n_listed"))
    samples["n_listed"] = n_listed
    samples["n_unreadable"] = samples["n_unreadable"].where(~derived, 0).astype("int64") + n_rows - n_listed
    samples["status"] = samples["status"].where(~derived, np.where(n_listed > 0, "ok", "unparsable"))
    return samples


def _settled(samples: pd.DataFrame, collector: Collector) -> pd.DataFrame:
    """Statuses that what is listed does not contradict; what does is reported.

    An abstention that lists steps is none. A list is no answer where the sample was cut off or could not be parsed,
    so it is left out there. "ok" needs a step.
    """
    lists = samples["n_listed"] > 0
    contradicted = lists & (samples["status"] != "ok")
    for row in samples[contradicted].to_dict("records"):
        text = f"{_sample(row)} is '{row['status']}', yet lists steps"
        collector.problem(text, row["file"], int(row["row"]), "status", "write 'ok', or list nothing")
    empty = ~lists & (samples["status"] == "ok")
    unread = samples["n_unreadable"] > 0
    for row in samples[empty & ~unread].to_dict("records"):
        text = f"{_sample(row)} is 'ok', yet lists no step"
        collector.problem(text, row["file"], int(row["row"]), "status", "write 'abstained', or list its steps")
    status = samples["status"].mask(contradicted & (samples["status"] == "abstained"), "ok")
    return samples.assign(status=status.mask(empty & unread, "unparsable").mask(empty & ~unread, "abstained"))


def _once(rows: pd.DataFrame, collector: Collector) -> pd.DataFrame:
    """The rows without those of samples that an earlier file tells of already."""
    if rows["file"].nunique() < 2:
        return rows
    first = rows.groupby(_KEY, sort=False)["file"].transform("first")
    again = rows["file"] != first
    for row in rows[again].drop_duplicates([*_KEY, "file"]).assign(first=first).to_dict("records"):
        text = f"{_sample(row)} stands here and in {row['first']}"
        collector.problem(text, row["file"], int(row["row"]), mend="keep one of them")
    return rows[~again]


def _below(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    filled = [frame[columns] for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def _named(table: pd.DataFrame, file: Path, collector: Collector) -> npt.NDArray[np.bool_]:
    named = (table["model"] != "").to_numpy()
    report_cells(table[~named], "model", lambda _: "no model", file, collector, "name the model")
    return np.asarray(named, dtype=bool)


def _no_status(cell: str) -> str:
    return one_of("status", cell[:80], ATTEMPT_STATUSES)


def _sample(row: Mapping[Hashable, object]) -> str:
    return f"sample {row['sample']} of '{row['model']}' for log '{row['log_id']}'"
