"""Policies: named, frozen, and different where the public graders differ."""

from __future__ import annotations

import dataclasses

import pytest

from faultbook.diagnosis import POLICIES, Policy
from faultbook.diagnosis.policy import get_policy
from faultbook.errors import FaultbookError


def test_the_presets() -> None:
    assert list(POLICIES) == ["itbench-aa", "starharness", "harbor-adapter", "ibm"]
    assert all(name == policy.name for name, policy in POLICIES.items())
    assert POLICIES["itbench-aa"] == Policy("itbench-aa")


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        POLICIES["ibm"].scoring = "precision_at_full_recall"


# reference 2.4, the table of conventions, and the workload kinds that each grader widens to
@pytest.mark.parametrize(
    ("name", "repeated_hits", "family", "service", "scoring"),
    [
        ("itbench-aa", "once", False, False, "precision_at_full_recall"),
        ("starharness", "every_hit", True, False, "precision_at_full_recall"),
        ("harbor-adapter", "extra_is_fp", True, True, "precision_at_full_recall"),
        ("ibm", "every_hit", False, False, "f1"),
    ],
)
def test_what_the_presets_choose(name: str, repeated_hits: str, family: bool, service: bool, scoring: str) -> None:
    policy = get_policy(name)
    assert policy.repeated_hits == repeated_hits
    assert policy.workload_family is family
    assert policy.service_is_workload is service
    assert policy.scoring == scoring


def test_every_preset_is_anchored_and_lenient_and_closes_aliases() -> None:
    for policy in POLICIES.values():
        assert (policy.matching, policy.namespace, policy.alias_closure) == ("anchored", "lenient", True)
        assert policy.deployment_is_pod
        assert policy.schedule_is_chaos
        assert policy.fold_kinds


def test_a_policy_by_name_or_itself() -> None:
    own = Policy("own", matching="search")
    assert get_policy(own) is own
    assert get_policy("ibm") is POLICIES["ibm"]


def test_an_unknown_policy_names_those_there_are() -> None:
    with pytest.raises(FaultbookError, match="'itbench-aa', 'starharness', 'harbor-adapter' or 'ibm'; found 'aa'"):
        get_policy("aa")


@pytest.mark.parametrize(
    ("field", "value"),
    [("matching", "regex"), ("namespace", "none"), ("repeated_hits", "twice"), ("scoring", "auc")],
)
def test_a_choice_that_does_not_exist_is_refused(field: str, value: str) -> None:
    # A typo must not silently become one of the other conventions.
    with pytest.raises((FaultbookError, ValueError), match=value):
        Policy("own", **{field: value})
