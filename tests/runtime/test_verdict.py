"""The verdict on a prompt: what each end makes of it, and the status of the program."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from faultbook.runtime.settlement import Event, settle
from faultbook.runtime.termination import Clock, Observation, Termination, classify
from faultbook.runtime.verdict import Verdict

DONE = Termination("completed", False, "observed", "none", run_id="p1")
NETWORK = Termination("provider_network", True, "observed", "none", run_id="p1")


def terminal(termination: Termination = DONE) -> Event:
    return Event("terminal", termination=termination)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("completed", "completed"), ("user_abort", "aborted"), ("provider_abort", "aborted"), ("cancelled", "aborted"),
        ("configuration.invalid", "failed"), ("unclassified", "failed"), ("agent_budget_exhausted", "failed"),
    ],
)  # fmt: skip
def test_what_each_end_makes_of_a_prompt(kind: str, outcome: str) -> None:
    verdict = settle([terminal(Termination(kind, False, "observed", "none"))])
    assert (verdict.outcome, verdict.exit_code) == (outcome, 0 if outcome == "completed" else 1)


def test_a_verdict_does_not_speak_of_the_task() -> None:
    names = {field.name for field in fields(Verdict)}
    assert names == {"outcome", "termination", "exit_code", "findings"}
    assert not names & {"resolved", "success", "solved", "passed", "reward"}
    assert json.loads(json.dumps(settle([terminal()]).as_dict()))["termination"]["kind"] == "completed"


@pytest.mark.parametrize(
    ("outcome", "termination", "exit_code"),
    [("completed", NETWORK, 0), ("failed", NETWORK, 0), ("completed", DONE, 1), ("failed", DONE, 1)],
)
def test_a_verdict_that_contradicts_itself_is_refused(outcome: Any, termination: Termination, exit_code: int) -> None:
    with pytest.raises(ValueError, match="with status"):
        Verdict(outcome, termination, exit_code)


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_has_the_status_of_a_shell(name: str, status: int) -> None:
    verdict = settle([terminal(classify(Observation("p1", signal=name), Clock()))])
    assert (verdict.outcome, verdict.exit_code) == ("failed", status)
