"""Four synthetic models that name steps of synthetic logs, each through its own eyes; no model was ever run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faultbook.attribution.synthetic_logs import SALIENCE_MEAN, SALIENCE_SD, Rows, SyntheticLog
from faultbook.stats.bootstrap import Floats

MORE_STEPS = 0.25  # a sample names one step and a Poisson number of further ones, with this times √n_steps as mean


@dataclass(frozen=True, slots=True)
class SyntheticModel:
    """How a synthetic model names steps.

    A step's appeal to a sample is skill · (2 + standardised salience, if it is salient) + taste (if its speaker is one
    of those the model looks at) + bias · b + noise · e, with standard normal b (drawn once for the model and step: its
    perspective) and e (drawn anew for each sample). A sample names the steps with the highest appeal. `statuses` are
    the probabilities of abstained, unparsable, truncated and missing samples; on a log without any salient step the
    model abstains with the probability `restraint` besides.
    """

    name: str
    skill: float
    bias: float
    noise: float
    looks_at: str
    taste: float
    statuses: tuple[float, float, float, float]
    restraint: float


# A weak one, two of equal skill that look at different speakers, a strong one. Chosen, not fitted to anything: bias is
# larger than noise, so that models differ more from one another than from themselves.
MODELS = (
    SyntheticModel("synthetic A", 0.2, 0.9, 0.7, "", 0.0, (0.03, 0.05, 0.01, 0.01), 0.0),
    SyntheticModel("synthetic B", 0.9, 0.9, 0.5, "orchestrator", 1.0, (0.02, 0.01, 0.01, 0.0), 0.3),
    SyntheticModel("synthetic C", 0.9, 0.9, 0.5, "others", 1.0, (0.03, 0.01, 0.03, 0.0), 0.3),
    SyntheticModel("synthetic D", 1.8, 0.7, 0.4, "", 0.0, (0.01, 0.0, 0.01, 0.01), 0.5),
)
ORCHESTRATORS = ("Orchestrator", "Planner")
_STATUSES = ("abstained", "unparsable", "truncated", "missing", "ok")


def samples_of(
    model: SyntheticModel, logs: Sequence[SyntheticLog], n_samples: int, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Draw the samples of a model for each log: rows of the tables `Predictions` and `Attempts`."""
    predictions: Rows = []
    attempts: Rows = []
    abstains, *lost = model.statuses
    for log in logs:
        restraint = 0.0 if log.salient.any() else model.restraint
        chances = [abstains + restraint, *lost, 1 - abstains - restraint - sum(lost)]
        appeal = _appeal(model, log, rng)
        for sample in range(n_samples):
            status = _STATUSES[rng.choice(len(_STATUSES), p=chances)]
            key = (log.log_id, model.name, sample)
            attempts.append((*key, status, False, 0))
            named = _named(appeal, model.noise, rng)
            if status == "ok":
                rows = ((*key, place, step, log.agents[step], None, None) for place, step in enumerate(named))
                predictions.extend(rows)
    return predictions, attempts


def _appeal(model: SyntheticModel, log: SyntheticLog, rng: np.random.Generator) -> Floats:
    """What the samples of a model have in common."""
    orchestrates = np.array([agent in ORCHESTRATORS for agent in log.agents])
    looked_at = {"orchestrator": orchestrates, "others": ~orchestrates}.get(model.looks_at, np.zeros(len(log.agents)))
    seen = np.where(log.salient, 2 + (log.salience - SALIENCE_MEAN) / SALIENCE_SD, 0.0)
    perspective = model.taste * looked_at + model.bias * rng.standard_normal(len(log.agents))
    appeal: Floats = model.skill * seen + perspective
    return appeal


def _named(appeal: Floats, noise: float, rng: np.random.Generator) -> list[int]:
    """The steps that one sample names, in the order in which they stand in the log."""
    drawn = appeal + noise * rng.standard_normal(len(appeal))
    n_named = min(1 + int(rng.poisson(MORE_STEPS * np.sqrt(len(appeal)))), len(appeal))
    return sorted(int(step) for step in np.argsort(-drawn, kind="stable")[:n_named])
