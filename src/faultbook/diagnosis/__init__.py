"""Root causes of incidents: what was found, what was missed, and what was named too much."""

from faultbook.diagnosis.baselines import baselines, with_baselines
from faultbook.diagnosis.convert import write_truth
from faultbook.diagnosis.error_types import error_types
from faultbook.diagnosis.leaks import leaks
from faultbook.diagnosis.lint import lint
from faultbook.diagnosis.policy import POLICIES, Policy
from faultbook.diagnosis.read_submissions import SubmissionTables, read_submissions
from faultbook.diagnosis.read_truth import read_truth
from faultbook.diagnosis.score import score
from faultbook.diagnosis.sensitivity import Sensitivity, sensitivity
from faultbook.diagnosis.summary import compare, summarize
from faultbook.diagnosis.triage import Review, review, submit, triage
from faultbook.diagnosis.truth import Truth

__all__ = [
    "POLICIES",
    "Policy",
    "Review",
    "Sensitivity",
    "SubmissionTables",
    "Truth",
    "baselines",
    "compare",
    "error_types",
    "leaks",
    "lint",
    "read_submissions",
    "read_truth",
    "review",
    "score",
    "sensitivity",
    "submit",
    "summarize",
    "triage",
    "with_baselines",
    "write_truth",
]
