"""Harnesses compared: trials of interrupted runs, on the same pairs, with nothing filled in."""

from faultbook.harness.arms import Arms, problems_of, read_arms
from faultbook.harness.attrition import Attrition, attrition
from faultbook.harness.causes import cause_table
from faultbook.harness.compare import Bounds, Comparison, compare
from faultbook.harness.evidence import Evidence, check_files, evidence
from faultbook.harness.files import Files
from faultbook.harness.liveness import Liveness, liveness, liveness_of
from faultbook.harness.margins import Margins, from_margins
from faultbook.harness.plan import Held, held, plan
from faultbook.harness.read import FORMATS, read_trials
from faultbook.harness.repeats import pass_at_k
from faultbook.harness.reported import power_table, reproduce_paired_run, what_follows
from faultbook.harness.requests import read_requests
from faultbook.harness.timing import Timing, timing
from faultbook.harness.usage import Usage, usage

__all__ = [
    "FORMATS",
    "Arms",
    "Attrition",
    "Bounds",
    "Comparison",
    "Evidence",
    "Files",
    "Held",
    "Liveness",
    "Margins",
    "Timing",
    "Usage",
    "attrition",
    "cause_table",
    "check_files",
    "compare",
    "evidence",
    "from_margins",
    "held",
    "liveness",
    "liveness_of",
    "pass_at_k",
    "plan",
    "power_table",
    "problems_of",
    "read_arms",
    "read_requests",
    "read_trials",
    "reproduce_paired_run",
    "timing",
    "usage",
    "what_follows",
]
