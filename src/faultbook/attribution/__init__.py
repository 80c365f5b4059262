"""Which step of a multi-agent log failed, judged against several annotators who may disagree."""

from faultbook.attribution.agreement import Agreement, agreement
from faultbook.attribution.baselines import baselines, random_scores, with_baselines
from faultbook.attribution.ceiling import Ceiling, human_ceiling
from faultbook.attribution.compare import Comparison, compare_models
from faultbook.attribution.consensus import Consensus, consensus
from faultbook.attribution.convert import write_labels, write_logs
from faultbook.attribution.ensembles import Ensembles, ensembles
from faultbook.attribution.guesses import (
    best_constant,
    most_frequent_speaker,
    random_accuracy,
    reported_random_row,
    substring_accuracy,
)
from faultbook.attribution.judge_files import read_verdicts
from faultbook.attribution.labels import oracle_labels
from faultbook.attribution.ndcg import Measure, adjusted_for_chance, ndcg, random_ndcg
from faultbook.attribution.noise_filter import Filtered, filter_singletons
from faultbook.attribution.oracle import oracle_scores
from faultbook.attribution.read import FORMATS, LogTables, read_logs
from faultbook.attribution.reasoning import ReasoningTables, read_reasoning, reasoning_coverage, summarize_reasoning
from faultbook.attribution.robustness import Robustness, robustness, tau_grid, text_agreement
from faultbook.attribution.scaling import n_scaling
from faultbook.attribution.score import Scores, score

__all__ = [
    "FORMATS",
    "Agreement",
    "Ceiling",
    "Comparison",
    "Consensus",
    "Ensembles",
    "Filtered",
    "LogTables",
    "Measure",
    "ReasoningTables",
    "Robustness",
    "Scores",
    "adjusted_for_chance",
    "agreement",
    "baselines",
    "best_constant",
    "compare_models",
    "consensus",
    "ensembles",
    "filter_singletons",
    "human_ceiling",
    "most_frequent_speaker",
    "n_scaling",
    "ndcg",
    "oracle_labels",
    "oracle_scores",
    "random_accuracy",
    "random_ndcg",
    "random_scores",
    "read_logs",
    "read_reasoning",
    "read_verdicts",
    "reasoning_coverage",
    "reported_random_row",
    "robustness",
    "score",
    "substring_accuracy",
    "summarize_reasoning",
    "tau_grid",
    "text_agreement",
    "with_baselines",
    "write_labels",
    "write_logs",
]
