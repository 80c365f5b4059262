"""Why a run ended: what was observed comes before what is guessed, and no run is marked by another one's cause.

The order is that of `session-run-termination.ts` in the omk repository, as the module describes it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook import taxonomy
from faultbook.errors import DataError
from faultbook.runtime.contract import Contract, check
from faultbook.runtime.redaction import redacted_text
from faultbook.runtime.termination import (
    AUTO_RETRY,
    LONGEST_MESSAGE,
    SIDE_EFFECTS,
    SOURCES,
    Clock,
    Observation,
    Termination,
    ToolTimeout,
    canonical_utc,
    classify,
)

RUN = "run-2"
NOON = datetime(2026, 9, 9, 12, tzinfo=UTC)
CLOCK = Clock(started=100.0, utc=NOON)
RATE_LIMIT = "Error code: 429 - too many requests"
SECRETS = (
    "sk-proj-aaaabbbbccccddddeeeeffff1234",
    "Authorization: Bearer abcdefghijklmnopqrstuvwx.yz0123456789",
    "https://operator:hunter2hunter2@provider.example/v1",
    "api_key=0123456789abcdefghijKLMNOP",
)
PLANTED = (
    "aaaabbbbccccddddeeeeffff1234", "abcdefghijklmnopqrstuvwx", "hunter2hunter2", "0123456789abcdefghijKLMNOP",
)  # fmt: skip


def denial(run_id: str = RUN, at: float = 101.0) -> Any:
    found = check(Contract(frozenset({"flash"})), "pro", [])
    assert found is not None
    return found.stamped(run_id, at)


def timeout(run_id: str | None = RUN, at: float | None = 101.0, **keys: Any) -> ToolTimeout:
    return ToolTimeout(run_id, at, "bash", **keys)


def end(**seen: Any) -> Termination:
    return classify(Observation(RUN, **seen), CLOCK, "flash")


def answered(stop_reason: str, error: str | None = None, **seen: Any) -> Termination:
    return end(assistant_present=True, stop_reason=stop_reason, error=error, **seen)


# ---- the cases of the document --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [RATE_LIMIT, "401 unauthorized", "connection reset by peer", "", None])
def test_a_denial_is_an_invalid_configuration_before_any_text_is_read(text: str | None) -> None:
    found = answered("error", text, denials=(denial(),))
    assert (found.kind, found.retryable, found.source) == ("configuration.invalid", False, "observed")
    assert not found.read_from_text
    assert "does not allow the model 'pro'" in found.message
    assert not found.safe_to_auto_retry


def test_after_a_denied_run_the_next_one_that_is_allowed_completes() -> None:
    denied = answered("error", "contract-violation", denials=(denial("run-1", 90.0),))
    assert denied.kind == "configuration.invalid"  # by its text: that denial itself is of another run
    assert denied.read_from_text
    recovered = answered("stop", denials=(denial("run-1", 90.0),))
    assert (recovered.kind, recovered.others) == ("completed", ())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error code: 401 - invalid api key", "provider_auth"),
        ("connection refused by api.provider.example: fetch failed", "provider_network"),
        ("You exceeded your current quota", "provider_quota"),
        (RATE_LIMIT, "provider_rate_limit"),
        ("prompt is too long: 201337 tokens", "context_overflow"),
        ("litellm.ContentPolicyViolationError", "provider_refusal"),
        ("No tool call found for function call output", "provider_protocol"),
        ("tool 'bash' timed out after 120 s", "tool_timeout"),
        ("fatal tool error", "tool_fatal"),
        ("no space left on device", "persistence"),
    ],
)
def test_texts_are_read_by_the_rules_that_all_share(text: str, kind: str) -> None:
    found = answered("error", text)
    assert (found.kind, found.retryable) == (kind, taxonomy.cause(kind).retryable)
    assert found.read_from_text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("compaction.failed", "compaction"),
        ("compaction.aborted", "compaction"),
        ("persistence.fsync_failed", "persistence"),
        ("transcript_invalid", "transcript_invalid"),
        ("provider_auth", "provider_auth"),
        ("tool_fatal", "tool_fatal"),
    ],
)
@pytest.mark.parametrize("assistant_present", [True, False])
def test_names_of_the_runtimes_own_come_before_texts(name: str, kind: str, assistant_present: bool) -> None:
    found = end(error_kind=name, assistant_present=assistant_present, stop_reason="error", error=RATE_LIMIT)
    assert (found.kind, found.read_from_text) == (kind, False)


@pytest.mark.parametrize("name", ["unclassified", "completed", "no name of ours", ""])
def test_a_name_that_says_nothing_leaves_it_to_the_text(name: str) -> None:
    found = answered("error", RATE_LIMIT, error_kind=name)
    assert (found.kind, found.others, found.read_from_text) == ("provider_rate_limit", (), True)
    assert answered("stop", error_kind=name).kind == "completed"


# ---- the order ------------------------------------------------------------------------------------------------------

LADDER: list[tuple[str, dict[str, Any]]] = [
    ("agent_budget_exhausted", {"budget_exhausted": True}),
    ("tool_timeout", {"tool_timeouts": (timeout(),)}),
    ("configuration.invalid", {"denials": (denial(),)}),
    ("user_abort", {"user_abort": True}),
    ("process_signal", {"signal": "SIGTERM"}),
    ("compaction", {"error_kind": "compaction.stale"}),
]


@pytest.mark.parametrize("place", range(len(LADDER)))
def test_causes_that_were_observed_stand_in_their_order(place: int) -> None:
    seen = {name: value for _, part in LADDER[place:] for name, value in part.items()}
    found = answered("error", RATE_LIMIT, **seen)
    assert (found.kind, *found.others) == tuple(kind for kind, _ in LADDER[place:])


def test_without_anything_observed_the_answer_decides() -> None:
    assert end().kind == "unclassified"
    assert end(error=RATE_LIMIT).kind == "unclassified"  # no answer: its text is nobody's
    assert answered("aborted", RATE_LIMIT).kind == "provider_abort"
    assert answered("error").kind == "unclassified"
    assert answered("error", "the plot thickens").kind == "unclassified"
    for reason in ("stop", "tool_use", "length"):
        assert answered(reason, RATE_LIMIT).kind == "completed"
    assert end(assistant_present=True).kind == "unclassified"  # nothing says that it came to its end


@pytest.mark.parametrize("other", [{"budget_exhausted": True}, {"tool_timeouts": (timeout(),)}])
def test_a_run_with_a_denial_is_never_retryable(other: dict[str, Any]) -> None:
    without, beside = answered("stop", **other), answered("stop", **other, denials=(denial(),))
    assert without.kind == beside.kind
    assert "configuration.invalid" in beside.others
    assert not beside.retryable
    read = answered("error", RATE_LIMIT, **other, denials=(denial(),))
    assert read.message == beside.message  # nor is a text read
    assert without.retryable == taxonomy.cause(without.kind).retryable


# ---- one run's causes are not another's -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run_id", "at", "counts"),
    [
        (RUN, 101.0, True),
        (RUN, 100.0, True),
        (RUN, None, True),
        (RUN, float("nan"), True),
        (RUN, 99.9, False),  # an id that was used before
        ("run-1", 101.0, False),
        ("run-1", None, False),
        (None, 101.0, True),
        (None, 100.0, True),
        (None, 99.9, False),
        (None, None, False),
        (None, float("nan"), False),
    ],
)
def test_only_what_was_seen_in_this_run_counts(run_id: str | None, at: float | None, counts: bool) -> None:
    found = answered("stop", tool_timeouts=(timeout(run_id, at),))
    assert found.kind == ("tool_timeout" if counts else "completed")


def test_an_event_of_no_known_run_or_moment_does_not_count() -> None:
    seen = Observation(None, denials=(denial(),), assistant_present=True, stop_reason="stop")
    assert classify(seen, Clock()).kind == "completed"
    assert classify(seen, Clock(started=100.0)).kind == "configuration.invalid"


def test_of_several_timeouts_the_first_of_this_run_is_named() -> None:
    early = ToolTimeout("run-1", 50.0, "grep")
    found = answered("stop", tool_timeouts=(early, timeout()))
    assert "the tool 'bash' did not answer in time" in found.message
    assert "grep" not in found.message


# ---- side effects and retries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "effects"),
    [
        ({}, "none"),
        ({"side_effects": "confirmed", "budget_exhausted": True}, "confirmed"),
        ({"budget_exhausted": True}, "possible"),
        ({"tool_timeouts": (timeout(),)}, "possible"),  # whether it had begun is not known
        ({"tool_timeouts": (timeout(execution_started=True),)}, "possible"),
        ({"tool_timeouts": (timeout(execution_started=False),)}, "none"),
        ({"user_abort": True, "tools_ran": True}, "possible"),
        ({"user_abort": True}, "possible"),
        ({"user_abort": True, "tools_ran": False}, "none"),
        ({"signal": "SIGTERM", "tools_ran": False}, "none"),
        ({"found_on_resume": True}, "possible"),
    ],
)
def test_what_a_run_may_have_changed(seen: dict[str, Any], effects: str) -> None:
    assert answered("error", RATE_LIMIT, **seen).side_effects == effects


def test_only_an_observed_end_without_side_effects_is_tried_again_unasked() -> None:
    for kind in taxonomy.causes().values():
        for source in SOURCES:
            for effects in SIDE_EFFECTS:
                if kind.name == ("process_crash" if source == "observed" else "process_signal"):
                    continue
                found = Termination(kind.name, kind.retryable, source, effects)
                expected = kind.name in AUTO_RETRY and source == "observed" and effects == "none"
                assert found.safe_to_auto_retry == expected
    assert all(taxonomy.cause(name).retryable for name in AUTO_RETRY)
    assert not Termination("provider_network", False, "observed", "none").safe_to_auto_retry


# ---- found on resume ------------------------------------------------------------------------------------------------


def test_a_run_found_without_an_end_crashed_and_that_is_inferred() -> None:
    found = answered("stop", found_on_resume=True)
    assert (found.kind, found.source, found.retryable) == ("process_crash", "inferred_on_resume", True)
    assert not found.safe_to_auto_retry


def test_what_its_records_say_of_a_lost_run_stands_before_the_crash() -> None:
    assert end(found_on_resume=True, denials=(denial(),)).kind == "configuration.invalid"
    assert end(found_on_resume=True, signal="SIGTERM").kind == "process_crash"  # no signal is inferred
    assert end(found_on_resume=True, signal="SIGTERM", error_kind="compaction.failed").kind == "compaction"
    assert end(found_on_resume=True, error_kind="process.signal").kind == "process_crash"


def test_a_runtime_that_is_there_to_say_it_has_not_crashed() -> None:
    assert answered("error", "agent process exited with code 139: segmentation fault").kind == "harness_failed"
    assert end(error_kind="process.crash").kind == "harness_failed"
    with pytest.raises(ValueError, match="'process_crash' cannot be observed"):
        Termination("process_crash", True, "observed", "possible")
    with pytest.raises(ValueError, match="'process_signal' cannot be inferred_on_resume"):
        Termination("process_signal", False, "inferred_on_resume", "possible")


# ---- the record -----------------------------------------------------------------------------------------------------


def test_a_record_survives_its_file() -> None:
    found = answered("error", RATE_LIMIT, signal="SIGHUP", denials=(denial(),))
    written = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert written["schema_version"] == 1
    assert written["at"] == "2026-09-09T12:00:00.000000+00:00"
    assert (written["run_id"], written["model"]) == (RUN, "flash")
    assert Termination.from_dict(written) == found
    assert Termination.from_dict({**written, "of_a_later_version": 1}) == found


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_of_an_error_do_not_reach_the_record(secret: str) -> None:
    for text in (secret, f"{RATE_LIMIT}; {secret} was refused", "x " * 400 + secret, f"{secret}\n" * 200):
        found = answered("error", text)
        assert not any(planted in json.dumps(found.as_dict()) for planted in PLANTED)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_record_with_a_credential_is_refused_and_not_quoted(secret: str) -> None:
    record = answered("stop").as_dict()
    for name in ("message", "run_id", "model", "kind", "signal", "source"):
        with pytest.raises(DataError) as raised:
            Termination.from_dict({**record, name: secret})
        assert not any(planted in str(raised.value) for planted in PLANTED)


def test_a_credential_hidden_by_control_characters_is_seen() -> None:
    hidden = SECRETS[0][:8] + "\x00" + SECRETS[0][8:]
    message = answered("error", f"{hidden} was refused").message
    assert PLANTED[0] not in message
    assert message.endswith("[redacted: API key] was refused")


def test_a_tools_name_and_an_id_are_foreign_texts_too() -> None:
    seen = Observation(SECRETS[0], tool_timeouts=(ToolTimeout(SECRETS[0], 101.0, SECRETS[1]),))
    found = classify(seen, CLOCK, SECRETS[2])
    assert (found.kind, found.run_id, found.model) == ("tool_timeout", None, None)
    assert "[redacted" in found.message
    assert not any(planted in json.dumps(found.as_dict()) for planted in PLANTED)


def test_a_long_text_is_cut_to_its_end() -> None:
    found = answered("error", "Traceback (most recent call last)\n" + "  File a.py\n" * 3000 + RATE_LIMIT)
    assert len(found.message) <= LONGEST_MESSAGE
    assert found.message.startswith("the provider asked to send less often; … ")
    assert found.message.endswith(RATE_LIMIT)


@pytest.mark.parametrize(
    "moment",
    [
        "2026-09-09T12:00:00+00:00",  # no microseconds
        "2026-09-09T12:00:00.000000Z",
        "2026-09-09T12:00:00.000000",
        "2026-09-09T14:00:00.000000+02:00",
        "2026-09-09T12:00:00.000000+00:00\n",
        "2026-09-09 12:00:00.000000+00:00",
        "2026-02-30T12:00:00.000000+00:00",
        "0001-01-01T00:00:00.000000+14:00",
        "noon",
        1757419200,
    ],
)
def test_a_moment_that_is_not_written_as_it_should_be_is_refused(moment: Any) -> None:
    with pytest.raises(DataError, match="time of day in UTC"):
        Termination.from_dict({**answered("stop").as_dict(), "at": moment})


def test_a_moment_of_another_offset_is_written_in_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert canonical_utc(datetime(2026, 9, 9, 21, tzinfo=east)) == canonical_utc(NOON)
    with pytest.raises(ValueError, match="offset"):
        Clock(utc=datetime(2026, 9, 9))
    with pytest.raises(ValueError, match="offset"):
        Clock(utc=datetime(1, 1, 1, tzinfo=east))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "tired"}, {"kind": None}, {"kind": ["completed"]}, {"retryable": 1}, {"retryable": True},
        {"source": "guessed"}, {"source": []}, {"side_effects": "some"}, {"side_effects": None},
        {"message": "x" * 513}, {"message": None}, {"message": "bell \x07"}, {"message": "half \ud800"},
        {"run_id": 7}, {"model": "m" * 201}, {"signal": "SIGTERM"}, {"signal": 15},
        {"others": "completed"}, {"others": ["tired"]}, {"others": {"a": 1}}, {"read_from_text": "no"},
        {"schema_version": 2}, {"schema_version": True}, {"schema_version": "1"},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_that_is_not_to_be_believed_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Termination.from_dict({**answered("stop").as_dict(), **change})


@pytest.mark.parametrize("document", [None, [], "completed", {}, {"kind": "completed"}])
def test_what_is_no_record_is_refused(document: Any) -> None:
    with pytest.raises(DataError, match="a termination"):
        Termination.from_dict(document)


def test_an_observation_that_names_no_signal_or_degree_is_refused() -> None:
    with pytest.raises(ValueError, match="no name of a signal"):
        Observation(RUN, signal="SIGNAL")
    with pytest.raises(ValueError, match="'side_effects' must be one of"):
        Observation(RUN, side_effects="some")


# ---- properties -----------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [RATE_LIMIT, *SECRETS, "exit code 139", "killed by SIGKILL", "password: ", "\ud800", "é\x1b[0m"]
)
TEXT = st.none() | st.text(max_size=30) | st.lists(WORDS | st.text(max_size=10), max_size=6).map(" ".join)
TIME = st.none() | st.floats(width=32) | st.just(101.0)
ID = st.none() | st.sampled_from([RUN, "run-1", SECRETS[0]]) | st.text(max_size=5)
KINDS = st.sampled_from([*taxonomy.causes(), "compaction.failed", "completed"])
TIMEOUTS = st.builds(ToolTimeout, run_id=ID, at=TIME, tool=TEXT.map(str), execution_started=st.none() | st.booleans())
DENIALS = st.builds(denial, run_id=st.sampled_from([RUN, "run-1"]), at=st.floats(0, 200))
OBSERVATIONS = st.builds(
    Observation,
    run_id=ID,
    budget_exhausted=st.booleans(),
    tool_timeouts=st.lists(TIMEOUTS, max_size=2).map(tuple),
    denials=st.lists(DENIALS, max_size=2).map(tuple),
    user_abort=st.booleans(),
    signal=st.none() | st.sampled_from(["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"]),
    error_kind=st.none() | st.text(max_size=5) | KINDS,
    assistant_present=st.booleans(),
    stop_reason=st.none() | st.text(max_size=5) | st.sampled_from(["stop", "error", "aborted"]),
    error=TEXT,
    side_effects=st.sampled_from(SIDE_EFFECTS),
    tools_ran=st.none() | st.booleans(),
    found_on_resume=st.booleans(),
)
CLOCKS = st.builds(Clock, started=TIME, utc=st.none() | st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC)))


@settings(max_examples=300, deadline=None)
@given(OBSERVATIONS, CLOCKS, TEXT)
def test_every_observation_has_one_end_and_always_the_same(seen: Observation, clock: Clock, model: str | None) -> None:
    found = classify(seen, clock, model)
    assert classify(seen, clock, model) == found
    written = json.dumps(found.as_dict())
    assert Termination.from_dict(json.loads(written)) == found
    assert found.kind in taxonomy.causes()
    assert found.kind not in found.others
    assert redacted_text(found.message) == found.message
    assert not any(planted in written for planted in PLANTED)
    assert SIDE_EFFECTS.index(found.side_effects) >= SIDE_EFFECTS.index(seen.side_effects)
    if found.retryable:
        assert taxonomy.cause(found.kind).retryable
        assert "configuration.invalid" not in found.others


@settings(max_examples=100, deadline=None)
@given(OBSERVATIONS, CLOCKS)
def test_another_runs_causes_change_nothing(seen: Observation, clock: Clock) -> None:
    alone = Observation(**{**_fields(seen), "run_id": RUN, "denials": (), "tool_timeouts": ()})
    others = {"denials": (denial("run-1"),), "tool_timeouts": (timeout("run-1"), timeout("run-1", None))}
    assert classify(alone, clock) == classify(Observation(**{**_fields(alone), **others}), clock)


def _fields(seen: Observation) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in Observation.__dataclass_fields__}
