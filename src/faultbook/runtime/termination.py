"""Why a run ended, told from what was observed of it: a pure function, and the record that it gives.

The order in which causes are looked for, the first that is found being the cause (the order is that of
`session-run-termination.ts` in the omk repository, at the commit of its document "harness boundaries"):

===================================================== =========================================================
1. a budget was used up                                agent_budget_exhausted
2. a tool did not answer in time                       tool_timeout
3. a contract denied a request                         configuration.invalid
4. a person broke it off                               user_abort
5. a signal was received                               process_signal
6. an error with a name of the runtime's own           what the name stands for
7. the run was found without an end, its owner gone    process_crash
8. there is no answer of the model                     unclassified
9. the answer's stop reason is "aborted"               provider_abort
10. the answer's stop reason is "error"                by the rules for texts of `faultbook.taxonomy`
11. otherwise                                          completed; unclassified without a stop reason
===================================================== =========================================================

1 to 6 were seen by the runtime itself and have types; no text is read while there is one of them. A denial therefore
stands before any guess, but not before a budget or a tool's timeout, which are no guesses. What holds for a denial
holds beside these too: **a run in which a request was denied is not retryable, whatever else ended it**, because the
next attempt would be denied again; and the denial is named among `others`. 5 to 7 and the want of a stop reason are
additions to the order there.

Names of causes, what may be retried and the rules for texts are those of the shared data file. Its `precedence` is not
used here: that order is for records that somebody else left, where several causes stand side by side and nobody knows
which came first. It starts with what is known of the set-up (a denial, the provider) and puts a budget late; here the
run's own runtime says what it did, and a budget that it enforced is what ended the run.

Every observation belongs to one run. A denial or timeout that carries another run's id, or that was seen before this
run's start, is not looked at: no cause outlives its run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from faultbook import taxonomy
from faultbook.runtime.observation import (
    SIDE_EFFECTS,
    Clock,
    Observation,
    Seen,
    SideEffects,
    ToolTimeout,
    canonical_utc,
)
from faultbook.runtime.redaction import redacted_text
from faultbook.runtime.termination_record import (
    AUTO_RETRY,
    LONGEST_MESSAGE,
    LONGEST_NAME,
    SCHEMA_VERSION,
    SOURCES,
    Source,
    Termination,
    allowed,
    is_clean,
)
from faultbook.text import plain

__all__ = [
    "AUTO_RETRY",
    "LONGEST_MESSAGE",
    "SCHEMA_VERSION",
    "SIDE_EFFECTS",
    "SOURCES",
    "Clock",
    "Observation",
    "Seen",
    "SideEffects",
    "Source",
    "Termination",
    "ToolTimeout",
    "canonical_utc",
    "classify",
]

_LONGEST_TEXT = 20_000  # characters of an error's end that a message is taken from
_WITHHELD = "(left out: it holds what looks like a credential)"


def classify(observation: Observation, clock: Clock, model: str | None = None) -> Termination:
    """Tell why a run ended.

    Parameters
    ----------
    observation : Observation
        Of this run. Denials and timeouts of other runs in it are passed over: those with another run's id, those seen
        before `clock.started`, and those of which neither run nor moment is known.
    clock : Clock
        When it started and ended.
    model : str, optional
        The id of the model that was last used, for the record.

    Returns
    -------
    Termination
        For every observation there is one, and the same observation always gives the same.
    """
    denials = _of_this_run(observation.denials, observation.run_id, clock.started)
    timeouts = _of_this_run(observation.tool_timeouts, observation.run_id, clock.started)
    source: Source = "inferred_on_resume" if observation.found_on_resume else "observed"
    typed = [allowed(name, source) for name in _typed(observation, bool(timeouts), bool(denials))]
    kind, *others = dict.fromkeys(typed or [allowed(_untyped(observation), source)])
    from_text = not typed and observation.stop_reason == "error" and not observation.found_on_resume
    return Termination(
        kind,
        taxonomy.cause(kind).retryable and not denials,
        source,
        _side_effects(observation, kind, timeouts),
        _message(kind, observation, denials, timeouts),
        None if clock.utc is None else canonical_utc(clock.utc),
        _name(observation.run_id),
        _name(model),
        observation.signal if kind == "process_signal" else None,
        tuple(others),
        from_text and kind != "unclassified",
    )


# ---- the order ------------------------------------------------------------------------------------------------------

_T = TypeVar("_T", bound=Seen)


def _of_this_run(events: Iterable[_T], run_id: str | None, started: float | None) -> list[_T]:
    return [event for event in events if _is_of(event, run_id, started)]


def _is_of(event: Seen, run_id: str | None, started: float | None) -> bool:
    if event.run_id is not None and run_id is not None:
        earlier = event.at is not None and started is not None and event.at < started
        return event.run_id == run_id and not earlier
    return event.at is not None and started is not None and event.at >= started


def _typed(observation: Observation, timed_out: bool, denied: bool) -> list[str]:
    """Causes that were observed as such, in their order."""
    own = taxonomy.named("runtime", observation.error_kind) if observation.error_kind else None
    found = (
        ("agent_budget_exhausted", observation.budget_exhausted),
        ("tool_timeout", timed_out),
        ("configuration.invalid", denied),
        ("user_abort", observation.user_abort),
        ("process_signal", observation.signal is not None and not observation.found_on_resume),
        (own or "", own not in (None, "completed", "unclassified")),
    )
    return [name for name, is_there in found if is_there]


def _untyped(observation: Observation) -> str:
    """The cause where nothing with a type was observed."""
    if observation.found_on_resume:
        return "process_crash"
    if not observation.assistant_present or observation.stop_reason is None:
        return "unclassified"
    if observation.stop_reason == "aborted":
        return "provider_abort"
    if observation.stop_reason != "error":
        return "completed"
    named = None if observation.error_kind == "completed" else observation.error_kind  # no name of an error
    return taxonomy.classify([taxonomy.Observation("runtime", named, observation.error)]).cause.name


def _side_effects(observation: Observation, kind: str, timeouts: list[ToolTimeout]) -> SideEffects:
    """What was seen, and at least "possible" where the run was cut off while a tool may have been at work."""
    cut_off = observation.user_abort or kind in ("process_signal", "process_crash")
    possible = (
        observation.budget_exhausted
        or any(timeout.execution_started is not False for timeout in timeouts)
        or (cut_off and observation.tools_ran is not False)
    )
    return "possible" if possible and observation.side_effects == "none" else observation.side_effects


# ---- texts ----------------------------------------------------------------------------------------------------------


def _message(kind: str, observation: Observation, denials: list[Any], timeouts: list[ToolTimeout]) -> str:
    meaning = taxonomy.cause(kind).meaning
    events: list[Any] = {"tool_timeout": timeouts, "configuration.invalid": denials}.get(kind, [])
    silent = bool(denials) or kind == "completed"
    detail = events[0].reason if events else "" if silent else observation.error or ""
    return _clean(meaning, detail) if detail else meaning


def _clean(meaning: str, detail: str) -> str:
    """Both as a message: one line without credentials; of a long detail the end, which says most."""
    line, most = _line(detail[-_LONGEST_TEXT:]), LONGEST_MESSAGE - len(meaning) - 2
    short = line if len(line) <= most else f"… {line[2 - most :]}"
    # A cut, or the words before it, can make what looks like a credential of what did not.
    return next(text for text in (f"{meaning}; {short}", f"{meaning}; {_WITHHELD}", meaning) if is_clean(text))


def _name(text: str | None) -> str | None:
    """An id as it is; None if it cannot be kept so, because a part of it or a mended one would name something else."""
    return text if text and len(text) <= LONGEST_NAME and is_clean(text) else None


def _line(text: str) -> str:
    """One line without credentials: also without those that only show once control characters are gone."""
    shown = redacted_text(text)
    return redacted_text(" ".join(plain(shown, most=len(shown)).split()))
