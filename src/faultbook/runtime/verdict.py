"""The verdict on a prompt, and the exit status that it stands for."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Any, Literal

from faultbook.runtime.termination import Termination

Outcome = Literal["completed", "failed", "aborted"]

ABORTS = frozenset({"user_abort", "provider_abort", "cancelled"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a prompt.

    It says nothing of whether the task was solved: that is for a verifier.

    Attributes
    ----------
    outcome : {"completed", "failed", "aborted"}
    termination : Termination
    exit_code : int
        The status that a program ends with which has no other work; the same for every form of output.
    findings : tuple of str
        What was odd about the events.
    """

    outcome: Outcome
    termination: Termination
    exit_code: int
    findings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.outcome != _outcome(self.termination) or (self.exit_code == 0) != (self.outcome == "completed"):
            raise ValueError(f"'{self.outcome}' with status {self.exit_code} after '{self.termination.kind}'")

    def as_dict(self) -> dict[str, Any]:
        """The verdict as it is written to a file."""
        return {
            "outcome": self.outcome,
            "termination": self.termination.as_dict(),
            "exit_code": self.exit_code,
            "findings": list(self.findings),
        }


def verdict_on(termination: Termination, findings: tuple[str, ...] = ()) -> Verdict:
    """The verdict on a prompt that ended so."""
    outcome = _outcome(termination)
    return Verdict(outcome, termination, _exit_code(outcome, termination), findings)


def _outcome(termination: Termination) -> Outcome:
    if termination.kind == "completed":
        return "completed"
    return "aborted" if termination.kind in ABORTS else "failed"


def _exit_code(outcome: Outcome, termination: Termination) -> int:
    if termination.kind == "process_signal" and termination.signal is not None:
        return 128 + signals.Signals[termination.signal]
    return 0 if outcome == "completed" else 1
