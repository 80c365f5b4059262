"""A synthetic set in the shape of MP-Bench: three annotators, four models. All of it is made up and says so.

The released annotations of MP-Bench may not be passed on, so this set stands in for them wherever the shape matters: in
examples, in tests, in a first look at a measure. It supports no statement about any agent, annotator or model.

The generative model
    A log has a number of steps: in the split "manual" from a lognormal distribution (mean about 33, 5 to 130), in
    "automatic" from 5 to 10 (mean 8). A few logs have nothing to find. In the others some steps are salient, early and
    middle ones more often than late ones. The salience of a salient step is normal, with a part that is common to all
    steps of the log; annotator a flags the step with probability 1 / (1 + exp(−salience − severity_a)), independently
    given the salience. Nobody flags a step that is not salient. The constants stand in `synthetic_logs`, the models in
    `synthetic_models`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faultbook.attribution.anomalies import handle_anomalies
from faultbook.attribution.judgements import judgements
from faultbook.attribution.read import LogTables
from faultbook.attribution.reasoning import ReasoningTables, reasoning_coverage
from faultbook.attribution.synthetic_files import write_compact, write_mp_bench
from faultbook.attribution.synthetic_logs import Rows, SyntheticLog, draw_annotations, draw_logs
from faultbook.attribution.synthetic_models import MODELS, samples_of
from faultbook.errors import FaultbookError
from faultbook.tables import REASONING_PARTS, Annotations, Attempts, Logs, Predictions, Reasoning, Steps, typed

SHARED_QUESTIONS = 3  # every third automatic log has the question of a manual one
FILTER_JUDGE, PERSON = "synthetic filter", "synthetic person"
# MP-Bench, section 4.1.4: a person finds 65.5 % of 200 single votes legitimate, the filter agrees on 92.5 % and removes
# 31.6 % of all. So it removes a = .849 of what the person calls noise and b = .035 of the rest: .345 a + .655 b = .316
# and .345 a + .655 (1 − b) = .925. (κ is .831 then; the printed .8401 goes with 40 % removed of the 200.)
LEGITIMATE, NOISE_REMOVED, LEGITIMATE_REMOVED = 0.655, 0.8493, 0.0351
NO_VERDICT = 0.02
REASONING_SAMPLES = 3  # the judge of MP-Bench sees the steps of three samples together
# Means of the overall score, in the range that MP-Bench prints (6.1 to 8.3); spread and losses are chosen.
REASONING_MEANS = (6.3, 7.5, 7.6, 8.1)
REASONING_LOG_SD, REASONING_STEP_SD, NO_SCORE = 0.7, 1.1, 0.015

__all__ = [
    "SyntheticVerdicts",
    "synthetic",
    "synthetic_reasoning",
    "synthetic_verdicts",
    "write_mp_bench",
    "write_set",
]


@dataclass(frozen=True, slots=True)
class SyntheticVerdicts:
    """What a synthetic filter says of all single votes, and a synthetic person of some; for `filter_singletons`."""

    verdicts: pd.DataFrame
    people: pd.DataFrame


def synthetic(seed: int = 0, n_manual: int = 58, n_automatic: int = 42, n_samples: int = 6) -> LogTables:
    """Make the synthetic set: logs, speakers, three annotators, four models with some samples each.

    Parameters
    ----------
    seed : int
        Source of all randomness: the same seed gives the same tables.
    n_manual, n_automatic : int
        Logs of each split.
    n_samples : int
        Samples of each model for each log.

    Returns
    -------
    LogTables
        With the source "synthetic". There are no texts but short ones that say "synthetic".

    Raises
    ------
    FaultbookError
        If there would be no log, or a number or the seed is negative.
    """
    numbers = {"seed": seed, "n_manual": n_manual, "n_automatic": n_automatic, "n_samples": n_samples}
    negative = [name for name, number in numbers.items() if number < 0]
    if negative:
        raise FaultbookError(f"{negative[0]} is {numbers[negative[0]]}; give at least 0")
    if n_manual + n_automatic == 0:
        raise FaultbookError("n_manual and n_automatic are 0; ask for at least one log")
    of_logs, of_annotators, *of_models = np.random.SeedSequence(seed).spawn(2 + len(MODELS))
    logs = list(draw_logs(n_manual, n_automatic, of_logs))
    drawn = [samples_of(m, logs, n_samples, np.random.default_rng(s)) for m, s in zip(MODELS, of_models, strict=True)]
    tables = {
        "logs": typed([_log_row(log) for log in logs], Logs),
        "steps": typed([row for log in logs for row in _step_rows(log)], Steps),
        "annotations": typed(draw_annotations(logs, np.random.default_rng(of_annotators)), Annotations),
        "predictions": typed(_by_log(logs, [rows for rows, _ in drawn]), Predictions),
        "attempts": typed(_by_log(logs, [rows for _, rows in drawn]), Attempts),
    }
    return LogTables(**handle_anomalies(tables, "flag"))


def synthetic_verdicts(tables: LogTables, seed: int = 0, n_people: int = 100) -> SyntheticVerdicts:
    """Make verdicts on the steps that one annotator alone flags.

    Whether a flag is legitimate is drawn anew, independently of salience; the person is taken to be right.

    Parameters
    ----------
    tables : LogTables
        From `synthetic`, or any other.
    seed : int
        Source of randomness.
    n_people : int
        Steps that the person judges, if there are as many.

    Returns
    -------
    SyntheticVerdicts
        Two tables with log_id, step, legitimate (missing: no verdict), judge.
    """
    known = judgements(tables.annotations)
    single = (known.votes == 1) & (known.judged > 1)
    steps = pd.DataFrame({"log_id": known.logs[known.log[single]], "step": known.step[single]}).astype(
        {"log_id": "str"}
    )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    legitimate = rng.random(len(steps)) < LEGITIMATE
    removed = rng.random(len(steps)) < np.where(legitimate, LEGITIMATE_REMOVED, NOISE_REMOVED)
    given = rng.random(len(steps)) >= NO_VERDICT
    asked = np.sort(rng.permutation(len(steps))[:n_people])
    verdicts = steps.assign(legitimate=pd.array(~removed, dtype="boolean"), judge=FILTER_JUDGE)
    verdicts["legitimate"] = verdicts["legitimate"].where(given)
    people = steps.iloc[asked].assign(legitimate=pd.array(legitimate[asked], dtype="boolean"), judge=PERSON)
    return SyntheticVerdicts(verdicts, people.reset_index(drop=True))


def synthetic_reasoning(tables: LogTables, seed: int = 0) -> ReasoningTables:
    """Make a judge's scores for the steps that annotators and the first three samples of a model both name.

    Parameters
    ----------
    tables : LogTables
        From `synthetic`.
    seed : int
        Source of randomness.

    Returns
    -------
    ReasoningTables
        A step's three scores lie within one point of each other; now and then the judge gives none.
    """
    named = tables.predictions[tables.predictions["sample"] < REASONING_SAMPLES]
    coverage = reasoning_coverage(tables.annotations, named)
    flagged = tables.annotations.loc[tables.annotations["is_failure"], ["log_id", "step"]].drop_duplicates()
    matched = named[["log_id", "model", "step"]].drop_duplicates().merge(flagged, on=["log_id", "step"])
    matched = matched.sort_values(["model", "log_id", "step"], ignore_index=True)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    pair, names = pd.factorize(pd.MultiIndex.from_frame(matched[["model", "log_id"]]))
    means = matched["model"].map(dict(zip((m.name for m in MODELS), REASONING_MEANS, strict=True))).fillna(7.0)
    of_log = REASONING_LOG_SD * rng.standard_normal(len(names))
    of_step = of_log[pair] + REASONING_STEP_SD * rng.standard_normal(len(matched))
    overall = np.round(means.to_numpy(dtype=np.float64) + of_step)
    given = rng.random(len(matched)) >= NO_SCORE
    rows: Rows = []
    offsets = rng.integers(-1, 2, (len(matched), len(REASONING_PARTS)))
    offsets[:, REASONING_PARTS.index("overall")] = 0
    scores = np.clip(overall[:, None] + offsets, 1, 10)
    for place, key in enumerate(matched.itertuples(index=False, name=None)):
        parts = zip(REASONING_PARTS, scores[place], strict=True)
        rows += [(*key, part, float(score) if given[place] else None) for part, score in parts]
    return ReasoningTables(typed(rows, Reasoning), coverage)


def write_set(folder: str | Path, seed: int = 0) -> list[Path]:
    """Write the synthetic set, verdicts and scores of reasons included, as the CSV files of `write_compact`.

    Raises
    ------
    FaultbookError
        If one of the files is there already.
    """
    tables = synthetic(seed)
    given = synthetic_verdicts(tables, seed)
    return write_compact(tables, folder, given.verdicts, given.people, synthetic_reasoning(tables, seed).scores)


def _log_row(log: SyntheticLog) -> tuple[Any, ...]:
    number = int(log.log_id.rpartition("/")[2])
    shared = log.split == "manual" or number % SHARED_QUESTIONS == 0
    question = f"synthetic question {number}" if shared else f"synthetic question of {log.log_id}"
    digest = hashlib.sha256(question.encode()).hexdigest()
    return log.log_id, log.split, len(log.roles), digest, "synthetic", None, None


def _step_rows(log: SyntheticLog) -> Iterator[tuple[Any, ...]]:
    for step, (role, agent) in enumerate(zip(log.roles, log.agents, strict=True)):
        yield log.log_id, step, role, agent


def _by_log(logs: list[SyntheticLog], of_models: list[Rows]) -> Rows:
    """Rows of several models, log by log."""
    place = {log.log_id: number for number, log in enumerate(logs)}
    return sorted((row for rows in of_models for row in rows), key=lambda row: (place[row[0]], *row[1:4]))
