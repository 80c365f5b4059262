"""How submitted entities are matched with a ground truth and counted: every choice named, none hidden.

ITBench-AA matches with a language model; faultbook matches with rules. Every score therefore carries the name of the
policy that made it, and is a derivative of the published rule, not the rule itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from faultbook.errors import FaultbookError, one_of


@dataclass(frozen=True, slots=True)
class Policy:
    """One convention of matching and counting.

    Attributes
    ----------
    name : str
        Stands in every output.
    matching : {"anchored", "search", "fullmatch"}
        How a pattern meets a name. Anchored: the workload that the name belongs to equals the pattern's literal stem
        ("frontend-.*" is frontend and its pods, not frontend-proxy); a pattern without a stem must match in full.
    alias_closure : bool
        Groups joined by alias lists are one cause set; otherwise each group stands for itself.
    deployment_is_pod : bool
        A Deployment and its pods are the same entity.
    workload_family : bool
        So are ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and Rollouts.
    service_is_workload : bool
        So is the Service of that name.
    schedule_is_chaos : bool
        A chaos Schedule and the resource it spawns are the same entity.
    namespace : {"lenient", "strict"}
        Lenient: a namespace left out matches any. Strict: it matches only a truth without a namespace.
    fold_kinds : bool
        Letter case of kinds does not count (HttpChaos is HTTPChaos).
    repeated_hits : {"once", "every_hit", "extra_is_fp"}
        What a second hit on one cause set is: nothing, a true positive, or a false positive.
    repeated_false_positives : {"once", "once_per_set", "every"}
        Whether a wrong entity counts each time it is named, once, or once for each alias class of the truth.
    scoring : {"precision_at_full_recall", "f1"}
        What the score is made of.

    Raises
    ------
    FaultbookError
        If a choice does not exist.
    """

    name: str
    matching: Literal["anchored", "search", "fullmatch"] = "anchored"
    alias_closure: bool = True
    deployment_is_pod: bool = True
    workload_family: bool = False
    service_is_workload: bool = False
    schedule_is_chaos: bool = True
    namespace: Literal["lenient", "strict"] = "lenient"
    fold_kinds: bool = True
    repeated_hits: Literal["once", "every_hit", "extra_is_fp"] = "once"
    repeated_false_positives: Literal["once", "once_per_set", "every"] = "once"
    scoring: Literal["precision_at_full_recall", "f1"] = "precision_at_full_recall"

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Policy).items():
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            if choices and getattr(self, name) not in choices:
                raise FaultbookError(one_of(name, getattr(self, name), choices))


POLICIES = {
    policy.name: policy
    for policy in (
        # Counted once per alias class, as two descriptions of AA's method agree; how AA counts a wrong entity named
        # twice is not published.
        Policy("itbench-aa"),
        # ServiceNow/StarHarness, grader.py: every hit is a true positive; its fallback widens the workload kinds.
        Policy("starharness", workload_family=True, repeated_hits="every_hit", repeated_false_positives="every"),
        # The Harbor adapter, grade.py: a second hit on a claimed group is a false positive; a Service stands for its
        # workload.
        Policy(
            "harbor-adapter",
            workload_family=True,
            service_is_workload=True,
            repeated_hits="extra_is_fp",
            repeated_false_positives="every",
        ),
        # ITBench-Evaluations: precision per prediction, recall per unique root, F1 of the two.
        Policy("ibm", repeated_hits="every_hit", repeated_false_positives="every", scoring="f1"),
    )
}


def get_policy(policy: str | Policy) -> Policy:
    """A policy by name, or the policy itself.

    Raises
    ------
    FaultbookError
        If there is no policy of that name.
    """
    if isinstance(policy, Policy):
        return policy
    if policy not in POLICIES:
        raise FaultbookError(one_of("policy", policy, list(POLICIES)))
    return POLICIES[policy]
