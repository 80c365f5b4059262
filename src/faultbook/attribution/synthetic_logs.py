"""Synthetic logs and what three synthetic annotators flag in them: the generative model, with its constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from faultbook.stats.bootstrap import Floats

ANNOTATORS = ("annotator 1", "annotator 2", "annotator 3")
# Who is how severe is drawn anew for each set: the names say nothing.
SEVERITIES = (-0.4, 0.0, 0.4)
# Solved for the published shares of flagged steps (MP-Bench, section 4.3: flagged by all three, by two, by one) with
# scipy.optimize.fsolve on `expected_shares`; how many steps are salient does not matter for them.
PUBLISHED_SHARES = (0.196, 0.335, 0.469)
SALIENCE_MEAN, SALIENCE_SD = -0.77765, 1.47890
# The part of the standard deviation of salience that the steps of one log have in common; chosen.
LOG_SD = 0.6
# A step at t = (step + 1/2) / n is salient in proportion to t^0.4 (1 − t)^1.2, most often at a quarter of its log, and
# about 1.65 √n steps of a log are; chosen so that some 2.6 of 8 and 5.5 of 33 steps get a vote.
EARLY, LATE, SALIENT_STEPS = 0.4, 1.2, 1.65
NOTHING_TO_FIND = 0.05
# Lengths like those of hand-crafted logs (mean about 33) and of automatically generated ones (mean 8).
MANUAL_LOG_MEAN, MANUAL_LOG_SD, MANUAL_RANGE = 3.216, 0.75, (5, 130)
AUTOMATIC_LENGTHS, AUTOMATIC_CHANCES = (5, 6, 7, 8, 9, 10), (0.05, 0.10, 0.20, 0.25, 0.25, 0.15)
_WORKERS, _WORKER_CHANCES = ("Navigator", "Reader", "Coder"), (0.6, 0.25, 0.15)
_EXPERTS = ("Planner", "Searcher", "Calculator", "Checker")

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SyntheticLog:
    """A log without text: who speaks at each step, which steps are salient as failures, and how much.

    `salience` holds a number for every step; it means something where `salient` is true.
    """

    log_id: str
    split: str
    roles: tuple[str, ...]
    agents: tuple[str, ...]
    salient: npt.NDArray[np.bool_]
    salience: Floats


def expected_shares(
    mean: float = SALIENCE_MEAN, sd: float = SALIENCE_SD, severities: Sequence[float] = SEVERITIES
) -> Floats:
    """Compute the shares of flagged steps that all, all but one, …, one of the annotators flag, under the model.

    Returns
    -------
    array, shape (annotators,)
        By Gauss-Hermite quadrature over the salience; they sum to 1.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    votes = np.ones((len(points), 1))
    for severity in severities:
        flagged = expit(mean + sd * points + severity)[:, None]
        votes = np.pad(votes * (1 - flagged), ((0, 0), (0, 1))) + np.pad(votes * flagged, ((0, 0), (1, 0)))
    chances = weights @ votes / weights.sum()
    shares: Floats = chances[:0:-1] / chances[1:].sum()
    return shares


def draw_logs(n_manual: int, n_automatic: int, seeds: np.random.SeedSequence) -> Iterator[SyntheticLog]:
    """Draw logs, each from a generator of its own: a log stays as it is when others are added after it."""
    for split, n, own in zip(("manual", "automatic"), (n_manual, n_automatic), seeds.spawn(2), strict=True):
        for number, of_log in enumerate(own.spawn(n), start=1):
            rng = np.random.default_rng(of_log)
            speakers = _manual_speakers(rng) if split == "manual" else _automatic_speakers(rng)
            roles, agents = zip(*speakers, strict=True)
            salient = _salient(len(roles), rng, asked_first=split == "manual")
            yield SyntheticLog(f"{split}/{number}", split, roles, agents, salient, _salience(len(roles), rng))


def draw_annotations(logs: Sequence[SyntheticLog], rng: np.random.Generator) -> Rows:
    """Draw what the annotators flag: rows of the table `Annotations`, one for every log, annotator and step."""
    severities = rng.permutation(SEVERITIES)
    rows: Rows = []
    for log in logs:
        for annotator, severity in zip(ANNOTATORS, severities, strict=True):
            chances = np.where(log.salient, expit(log.salience + severity), 0.0)
            for step, flagged in enumerate(rng.random(len(chances)) < chances):
                said = (log.agents[step], f"synthetic reason {annotator[-1]}", "synthetic action", None)
                rows.append((log.log_id, step, annotator, bool(flagged), *(said if flagged else (None,) * 4)))
    return rows


def _manual_speakers(rng: np.random.Generator) -> list[tuple[str, str]]:
    """(role, agent) of each step: a task, then rounds of thought, instruction and action."""
    least, most = MANUAL_RANGE
    n_steps = int(np.clip(round(rng.lognormal(MANUAL_LOG_MEAN, MANUAL_LOG_SD)), least, most))
    speakers = [("human", "human")]
    while len(speakers) < n_steps:
        worker = str(rng.choice(_WORKERS, p=_WORKER_CHANCES))
        roles = ("Orchestrator (thought)", f"Orchestrator (-> {worker})")
        speakers += [*((role, "Orchestrator") for role in roles), (worker, worker)]
    return speakers[:n_steps]


def _automatic_speakers(rng: np.random.Generator) -> list[tuple[str, str]]:
    n_steps = int(rng.choice(AUTOMATIC_LENGTHS, p=AUTOMATIC_CHANCES))
    names = ["Planner", *(str(name) for name in rng.choice(_EXPERTS, n_steps - 1))]
    return list(zip(names, names, strict=True))


def _salient(n_steps: int, rng: np.random.Generator, *, asked_first: bool) -> npt.NDArray[np.bool_]:
    place = (np.arange(n_steps) + 0.5) / n_steps
    weights = place**EARLY * (1 - place) ** LATE
    if asked_first:
        weights[0] = 0.0  # the task itself is nobody's failure
    chances = np.minimum(SALIENT_STEPS * np.sqrt(n_steps) * weights / weights.sum(), 0.95)
    something_to_find = rng.random() >= NOTHING_TO_FIND
    salient: npt.NDArray[np.bool_] = (rng.random(n_steps) < chances) & something_to_find
    return salient


def _salience(n_steps: int, rng: np.random.Generator) -> Floats:
    own_sd = np.sqrt(SALIENCE_SD**2 - LOG_SD**2)
    salience: Floats = SALIENCE_MEAN + LOG_SD * rng.standard_normal() + own_sd * rng.standard_normal(n_steps)
    return salience
