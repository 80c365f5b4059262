"""Recovery of agents: what it rescues, what it harms, and when to intervene."""

from faultbook.recovery.calibrate import Calibration, calibrate
from faultbook.recovery.candidates import candidates
from faultbook.recovery.detectors import calibrate_detector, match_detector, standard_policies
from faultbook.recovery.diagnostics import brier, calibration, events, folds, summaries
from faultbook.recovery.effects import bounds, by_cohort, effects
from faultbook.recovery.estimators import Estimators, fit
from faultbook.recovery.evaluate import Evaluation, evaluate
from faultbook.recovery.model_file import load_model, save_model
from faultbook.recovery.noise import expected_noise, flip_rate
from faultbook.recovery.overlap import Contrast, Overlap, contrast, overlap
from faultbook.recovery.pairs import pair, unpaired
from faultbook.recovery.policies import AlwaysAt, AnomalyDetector, Never, Oracle, RandomAtRate, Recorded, RulePolicy
from faultbook.recovery.reach import reachable
from faultbook.recovery.read import read_episodes
from faultbook.recovery.reported import reconstruct_effects
from faultbook.recovery.rule import PAPER_SETTINGS, Decision, InterventionRule, decide_many, first_pass
from faultbook.recovery.rule_file import load_rule, save_rule
from faultbook.recovery.separation import separation
from faultbook.recovery.transfer import Fitted, fit_policies, transfer

__all__ = [
    "PAPER_SETTINGS",
    "AlwaysAt",
    "AnomalyDetector",
    "Calibration",
    "Contrast",
    "Decision",
    "Estimators",
    "Evaluation",
    "Fitted",
    "InterventionRule",
    "Never",
    "Oracle",
    "Overlap",
    "RandomAtRate",
    "Recorded",
    "RulePolicy",
    "bounds",
    "brier",
    "by_cohort",
    "calibrate",
    "calibrate_detector",
    "calibration",
    "candidates",
    "contrast",
    "decide_many",
    "effects",
    "evaluate",
    "events",
    "expected_noise",
    "first_pass",
    "fit",
    "fit_policies",
    "flip_rate",
    "folds",
    "load_model",
    "load_rule",
    "match_detector",
    "overlap",
    "pair",
    "reachable",
    "read_episodes",
    "reconstruct_effects",
    "save_model",
    "save_rule",
    "separation",
    "standard_policies",
    "summaries",
    "transfer",
    "unpaired",
]
