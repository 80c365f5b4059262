"""The noise filter: take out steps that one annotator alone flags, by stated verdicts, and see what that changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faultbook.attribution.agreement import in_one_direction
from faultbook.attribution.judgements import judgements, whole_steps
from faultbook.errors import FaultbookError
from faultbook.stats.agreement import NO_VARIATION
from faultbook.stats.bootstrap import Floats
from faultbook.stats.coincidences import bootstrap_counts, kappa_of_tables
from faultbook.stats.proportion import wilson

NO_VERDICT = "share removed undefined (no verdict)"
NO_PERSON = "agreement undefined (no verdict of a person)"
NO_VERDICT_OF_BOTH = "agreement undefined (no step with a verdict of both)"
COMPARED_COLUMNS = ["model", "measure", "before", "after", "difference"]
_STEP = ["log_id", "step"]
_TOLD = ["agent", "reason", "ideal_action", "category"]


@dataclass(frozen=True, slots=True)
class Filtered:
    """Annotations before and after the filter.

    Attributes
    ----------
    annotations : DataFrame
        The table with the removed flags turned to "not flagged", and what they said of the step left out. The row
        stays: the annotator did judge the step, and without it the number of annotators, and so every consensus rate
        and agreement, would rest on fewer judgements.
    before : DataFrame
        The table as it was given.
    removed : DataFrame
        The flags that were taken out: log_id, step, annotator, and what they said (agent, reason, ideal_action,
        category).
    summary : DataFrame
        One row: n_singletons (steps that one annotator flags and at least one more judged), n_judged (with a verdict;
        the others are kept), n_removed, share_removed (of n_judged) with low and high (Wilson); n_people (steps with a
        verdict of the filter and a person's), people_legitimate (share of the person's verdicts) with bounds (Wilson),
        agreement (equal verdicts) with bounds (Wilson), kappa (Cohen's, filter with person) with bounds (percentiles
        over resampled logs), and a note on what is undefined or left out.
    """

    annotations: pd.DataFrame
    before: pd.DataFrame
    removed: pd.DataFrame
    summary: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """One row that says what the filter did."""
        return self.summary.copy()

    def compare(self, score: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Score before and after the filter, side by side.

        Parameters
        ----------
        score : callable
            Takes a table `Annotations` and gives one row a model: a column `model` and columns of numbers.

        Returns
        -------
        DataFrame
            One row a model and column of numbers: model, measure, before, after, difference (after − before).

        Raises
        ------
        FaultbookError
            If a result has no column `model` or a model twice.
        """
        sides = [_measures(score(annotations)) for annotations in (self.before, self.annotations)]
        frame = sides[0].merge(sides[1], on=["model", "measure"], how="outer", suffixes=("_before", "_after"))
        order = {key: place for place, key in enumerate(dict.fromkeys(_keys(sides[0]) + _keys(sides[1])))}
        frame = frame.iloc[np.argsort([order[key] for key in _keys(frame)], kind="stable")].reset_index(drop=True)
        frame = frame.rename(columns={"value_before": "before", "value_after": "after"})
        frame["difference"] = frame["after"] - frame["before"]
        return frame[COMPARED_COLUMNS]


def filter_singletons(
    annotations: pd.DataFrame,
    verdicts: pd.DataFrame,
    people: pd.DataFrame | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Filtered:
    """Remove the flags of steps that one annotator alone flags, where a verdict calls them noise.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`.
    verdicts : DataFrame
        The filter's verdicts, a model's or a person's: log_id, step, legitimate (true: keep; false: noise; missing: no
        verdict, kept and counted), and perhaps `judge`, who gave it.
    people : DataFrame, optional
        A person's verdicts on some of the steps, in the same columns: how far the filter agrees with people.
    level : float
        Confidence level.
    n_resamples, seed : int
        Of the percentile bootstrap of κ, which resamples logs.

    Returns
    -------
    Filtered

    Raises
    ------
    FaultbookError
        If a verdict is of a step that is no single vote, a step has two verdicts in one table, a column is missing or
        `legitimate` is neither true nor false nor missing; or if the annotations cannot be used.

    Notes
    -----
    MP-Bench (arXiv 2603.25001), section 4.1.4, filters by a model and prints 31.6 % removed. On 200 single votes a
    person found 65.5 % legitimate and the model agreed on 92.5 % (κ 0.8401).
    """
    singletons = _singletons(annotations)
    given = _on_singletons(verdicts, singletons, "verdicts")
    noise = given[given["legitimate"].notna() & ~given["legitimate"].fillna(True)]
    is_removed = _is_flag_of(annotations, noise)
    kept = annotations.copy()
    kept.loc[is_removed, "is_failure"] = False
    told = [name for name in _TOLD if name in annotations]
    kept.loc[is_removed, told] = pd.NA
    removed = annotations.loc[is_removed, [*_STEP, "annotator", *told]].reset_index(drop=True)
    n_judged, n_removed = int(given["legitimate"].notna().sum()), len(noise)
    row: dict[str, Any] = {"n_singletons": len(singletons), "n_judged": n_judged, "n_removed": n_removed}
    row |= _proportion(n_removed, n_judged, level, ("share_removed", "low", "high"))
    row |= _with_people(given, people, singletons, (level, n_resamples, seed))
    row["note"] = "; ".join(part for part in ("" if n_judged else NO_VERDICT, row["note"]) if part)
    return Filtered(kept, annotations, removed, pd.DataFrame([row]))


def _singletons(annotations: pd.DataFrame) -> pd.MultiIndex:
    """Steps that one annotator flags and at least one more judged."""
    known = judgements(annotations)
    single = (known.votes == 1) & (known.judged > 1)
    return pd.MultiIndex.from_arrays([known.logs[known.log[single]], known.step[single]], names=_STEP)


def _on_singletons(verdicts: pd.DataFrame, singletons: pd.MultiIndex, name: str) -> pd.DataFrame:
    """Verdicts that can be used: log_id, step, legitimate (nullable boolean)."""
    lost = [column for column in (*_STEP, "legitimate") if column not in verdicts]
    if lost:
        raise FaultbookError(f"{name} without {', '.join(lost)}; give log_id, step and legitimate")
    unnamed = int(verdicts[_STEP].isna().any(axis=1).sum())
    if unnamed:
        raise FaultbookError(f"{unnamed} of {len(verdicts)} {name} name no log or no step; give both")
    step = whole_steps(verdicts["step"]) if len(verdicts) else np.zeros(0, dtype=np.int64)
    log_id = verdicts["log_id"].to_numpy(dtype=object)
    frame = pd.DataFrame({"log_id": log_id, "step": step, "legitimate": _legitimate(verdicts["legitimate"], name)})
    twice = frame.duplicated(_STEP)
    if twice.any():
        first = frame[twice].iloc[0]
        problem = f"{int(twice.sum())} steps have two {name} (first: {first['log_id']}, step {first['step']})"
        raise FaultbookError(f"{problem}; filter by one judge at a time")
    strange = ~pd.MultiIndex.from_frame(frame[_STEP]).isin(singletons)
    if strange.any():
        first = frame[strange].iloc[0]
        problem = f"{int(strange.sum())} {name} are on steps that are no single vote"
        raise FaultbookError(
            f"{problem} (first: {first['log_id']}, step {first['step']}); give verdicts on steps that exactly one of "
            "several annotators flags"
        )
    return frame


def _legitimate(column: pd.Series, name: str) -> pd.Series:
    known = column[column.notna()].infer_objects()
    if len(known) and not pd.api.types.is_bool_dtype(known):
        raise FaultbookError(f"legitimate of {name} holds {known.iloc[0]!r}; give true, false or nothing")
    return pd.Series(column.to_numpy(dtype=object), dtype="boolean")


def _is_flag_of(annotations: pd.DataFrame, noise: pd.DataFrame) -> pd.Series:
    """Which annotations flag one of these steps."""
    keys = pd.MultiIndex.from_arrays([annotations["log_id"].to_numpy(dtype=object), whole_steps(annotations["step"])])
    flagged = annotations["is_failure"].astype(bool)
    return flagged & keys.isin(pd.MultiIndex.from_frame(noise[_STEP]))


def _with_people(
    given: pd.DataFrame, people: pd.DataFrame | None, singletons: pd.MultiIndex, settings: tuple[float, int, int]
) -> dict[str, Any]:
    """How far the filter agrees with a person, on the steps where both give a verdict."""
    columns: dict[str, list[Any]] = {"log_id": [], "step": [], "legitimate": []}
    persons = _on_singletons(pd.DataFrame(columns) if people is None else people, singletons, "people's verdicts")
    persons = persons[persons["legitimate"].notna()]
    both = persons.merge(given[given["legitimate"].notna()], on=_STEP, suffixes=("_person", "_filter"))
    person, chosen = (both[f"legitimate_{who}"].to_numpy(dtype=bool) for who in ("person", "filter"))
    level, n_resamples, seed = settings
    log, _ = pd.factorize(both["log_id"])
    cells = [chosen & person, chosen & ~person, ~chosen & person, ~chosen & ~person]
    counts: Floats = np.column_stack([np.bincount(log, weights=cell) for cell in cells]).astype(np.float64)
    e = bootstrap_counts(in_one_direction(counts), _kappa, n=len(both), level=level, n_resamples=n_resamples, seed=seed)
    row: dict[str, Any] = {"n_people": len(both)}
    row |= _proportion(int(person.sum()), len(both), level, _names("people_legitimate"))
    row |= _proportion(int((person == chosen).sum()), len(both), level, _names("agreement"))
    row |= dict(zip(_names("kappa"), (e.estimate, e.low, e.high), strict=True))
    return row | {"note": _note(e.estimate, len(both), len(persons))}


def _note(kappa: float, n_both: int, n_persons: int) -> str:
    notes = []
    if not n_both:
        notes.append(NO_VERDICT_OF_BOTH if n_persons else NO_PERSON)
    elif np.isnan(kappa):
        notes.append(f"kappa {NO_VARIATION}")
    if n_persons > n_both:
        notes.append(f"{n_persons - n_both} of {n_persons} steps that a person judged have no verdict of the filter")
    return "; ".join(notes)


def _kappa(sums: Floats) -> Floats:
    return kappa_of_tables(sums.reshape(*sums.shape[:-1], 2, 2))


def _names(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _proportion(k: int, n: int, level: float, names: tuple[str, str, str]) -> dict[str, float]:
    if not n:
        return dict.fromkeys(names, float("nan"))
    share = wilson(k, n, level)
    return dict(zip(names, (share.estimate, share.low, share.high), strict=True))


def _measures(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores as model, measure, value."""
    if "model" not in scores:
        raise FaultbookError(f"scores without a column 'model' (found {list(scores)}); give one row a model")
    twice = scores["model"][scores["model"].duplicated()]
    if len(twice):
        raise FaultbookError(f"scores have the model '{twice.iloc[0]}' twice; give one row a model")
    names = [name for name in scores.select_dtypes("number") if name != "model"]
    numbers = scores[["model", *names]].astype(dict.fromkeys(names, "Float64"))
    return numbers.melt(id_vars="model", value_vars=names, var_name="measure", value_name="value")


def _keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(frame[["model", "measure"]].itertuples(index=False, name=None))
