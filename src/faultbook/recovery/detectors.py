"""Baselines of the intervention rule: anomaly detectors chosen by the same objective, or matched to its rate."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._problem import Scale, check_kinds, checked_limit, make_problem, scaled
from faultbook.recovery._trajectories import trajectories_of
from faultbook.recovery.calibrate import Calibration
from faultbook.recovery.orthant import NODE_LIMIT
from faultbook.recovery.policies import (
    AlwaysAt,
    AnomalyDetector,
    Never,
    Oracle,
    Policy,
    RandomAtRate,
    RulePolicy,
    anomaly_score,
)
from faultbook.recovery.rule import TRAJECTORY
from faultbook.stats.proportion import as_count

MATCHED = "anomaly detector, matched rate"


def calibrate_detector(
    candidates: pd.DataFrame,
    probabilities: pd.DataFrame | None = None,
    *,
    score: str = "p_err",
    harm_limit: float = 0.02,
    min_delay: int = 1,
    name: str = "sequential anomaly detector",
) -> AnomalyDetector:
    """Choose the threshold of an anomaly detector as `calibrate` chooses those of the rule, exactly.

    Parameters
    ----------
    candidates, probabilities, harm_limit, min_delay
        As in `calibrate`; probabilities are needed only if they hold the score.
    score : str
        A column of the probabilities, or else of the candidates.
    name : str
        What the detector is called.

    Returns
    -------
    AnomalyDetector
        With the highest threshold among equally good ones; infinity if it is best never to act.

    Raises
    ------
    FaultbookError
        As `calibrate`.
    """
    limit = checked_limit(harm_limit)
    known = trajectories_of(candidates)
    check_kinds(known)
    values = anomaly_score(candidates, probabilities, score)
    usable = (candidates["reached"] & (candidates["delay"] >= min_delay)).to_numpy(dtype=bool) & ~np.isnan(values)
    scale = scaled(values[usable])
    one = Scale(np.zeros_like(scale.rank), np.zeros(1))
    problem = make_problem(known, candidates["tau"].to_numpy(dtype=np.int64), usable, (scale, one, one))
    best = problem.solve(problem.harms_allowed(limit), node_limit=NODE_LIMIT).optima[0]
    threshold = math.inf if best.thresholds is None else problem.values(best.thresholds)[0]
    return AnomalyDetector(threshold, score, min_delay, name)


def match_detector(
    candidates: pd.DataFrame,
    probabilities: pd.DataFrame | None = None,
    *,
    interventions: int,
    score: str = "p_err",
    min_delay: int = 1,
    name: str = MATCHED,
) -> AnomalyDetector:
    """Choose the threshold at which an anomaly detector acts as often as another policy, outcomes left aside.

    Parameters
    ----------
    candidates, probabilities, score, min_delay, name
        As in `calibrate_detector`.
    interventions : int
        How often the other policy acts on these candidates.

    Returns
    -------
    AnomalyDetector
        Its number of interventions is the nearest that a threshold can give; of two equally near, the lower. With
        tied scores it may be some way off.
    """
    wanted = as_count("interventions", interventions)
    values = anomaly_score(candidates, probabilities, score)
    usable = (candidates["reached"] & (candidates["delay"] >= min_delay)).to_numpy(dtype=bool) & ~np.isnan(values)
    # a trajectory is acted on at all thresholds up to its highest score
    highest = candidates.loc[usable, TRAJECTORY].assign(score=values[usable]).groupby(TRAJECTORY)["score"].max()
    thresholds, counts = np.unique(highest.to_numpy(), return_counts=True)
    options = [(0, math.inf), *zip(np.cumsum(counts[::-1]).tolist(), thresholds[::-1].tolist(), strict=True)]
    _, threshold = min(options, key=lambda option: (abs(option[0] - wanted), option[0]))
    return AnomalyDetector(threshold, score, min_delay, name)


def standard_policies(
    calibration: Calibration,
    candidates: pd.DataFrame,
    probabilities: pd.DataFrame,
    *,
    score: str = "p_err",
    seed: int | np.random.Generator = 0,
) -> list[Policy]:
    """The rule with everything that it should be compared with, chosen on the same candidates as the rule.

    Parameters
    ----------
    calibration : Calibration
        The rule, calibrated on these candidates and probabilities.
    candidates, probabilities : DataFrame
        What it was calibrated on. The policies are then judged on others with `evaluate`.
    score : str
        Of the anomaly detectors.
    seed : int or numpy.random.Generator
        Of the random policy's single draw.

    Returns
    -------
    list of Policy
        Never; always at each delay; the anomaly detector with the same objective and limit; the one matched on the
        rule's interventions; random at its rate; the rule; the oracle.

    Raises
    ------
    FaultbookError
        If the calibration is of other candidates.
    """
    rule = RulePolicy(calibration.rule)
    if int(rule.choose(candidates, probabilities).sum()) != calibration.interventions:
        raise FaultbookError("the rule was calibrated on other candidates; give those, to choose the baselines alike")
    limit, count, least = calibration.harm_limit, calibration.interventions, calibration.rule.min_delay
    detector = calibrate_detector(candidates, probabilities, score=score, harm_limit=limit, min_delay=least)
    matched = match_detector(candidates, probabilities, interventions=count, score=score, min_delay=least)
    rate = count / calibration.n_trajectories
    return [
        Never(),
        *(AlwaysAt(int(delay)) for delay in sorted(candidates["delay"].unique())),
        detector,
        matched,
        RandomAtRate(rate, least, seed),
        rule,
        Oracle(),
    ]
