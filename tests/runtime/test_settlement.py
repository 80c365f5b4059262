"""The verdict on a prompt: once, after everything that was open has ended, and the same for every form of output.

The named cases are those of the table in section 5 of the document "harness boundaries" of the omk repository.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.contract import Contract, check
from faultbook.runtime.provider_input import NOTICE, Capabilities, project
from faultbook.runtime.routing import route
from faultbook.runtime.settlement import (
    EVENT_KINDS,
    Event,
    Settlement,
    Unsettled,
    Verdict,
    run_prompts,
    settle,
)
from faultbook.runtime.termination import Clock, Observation, Termination, classify

DONE = Termination("completed", False, "observed", "none", run_id="p1")
NETWORK = Termination("provider_network", True, "observed", "none", run_id="p1")
ABORT = Termination("user_abort", False, "observed", "possible", run_id="p1")
DEADLINE = 30  # seconds; never reached unless something hangs


def terminal(termination: Termination = DONE) -> Event:
    return Event("terminal", termination=termination)


def started(key: str = "a1") -> Event:
    return Event("attempt_started", key)


def ended(key: str = "a1", termination: Termination | None = None, **seen: Any) -> Event:
    return Event("attempt_ended", key, termination, **seen)


# ---- the cases of the document --------------------------------------------------------------------------------------


def test_a_failed_settlement_is_a_failed_prompt() -> None:
    verdict = settle([started(), ended(stop_reason="stop"), terminal(NETWORK)])
    assert (verdict.outcome, verdict.exit_code, verdict.termination) == ("failed", 1, NETWORK)


def test_a_retry_that_failed_does_not_make_a_success_fail() -> None:
    first, second = ended("a1", NETWORK, stop_reason="error"), ended("a2", stop_reason="stop")
    verdict = settle([started("a1"), started("a2"), first, second, terminal(DONE)])
    assert (verdict.outcome, verdict.exit_code, verdict.findings) == ("completed", 0, ())


# ---- when it is decided ---------------------------------------------------------------------------------------------

OPENINGS = ["attempt_started", "tool_started", "child_started", "continuation_queued"]
CLOSINGS = ["attempt_ended", "tool_ended", "child_ended", "continuation_started"]


@pytest.mark.parametrize(("opening", "closing"), list(zip(OPENINGS, CLOSINGS, strict=True)))
def test_nothing_is_decided_while_something_is_open(opening: Any, closing: Any) -> None:
    settlement = Settlement()
    settlement.add(Event(opening, "k"))
    settlement.add(terminal())
    with pytest.raises(Unsettled, match="'k' is open"):
        settlement.settle()
    assert not settlement.is_settled
    settlement.add(Event(closing, "k"))
    assert settle(settlement).outcome == "completed"


def test_a_continuation_that_was_dropped_is_not_waited_for() -> None:
    queue = [Event("continuation_queued", "c1"), Event("continuation_queued", "c2"), terminal()]
    with pytest.raises(Unsettled, match="continuation 'c1' is open, continuation 'c2' is open"):
        settle(queue)
    with pytest.raises(Unsettled, match="continuation 'c2' is open"):
        settle([*queue, Event("continuation_dropped", "c1")])
    assert settle([*queue, Event("continuation_dropped", "c1"), Event("continuation_dropped", "c2")]).exit_code == 0


def test_the_end_of_one_part_does_not_close_another() -> None:
    with pytest.raises(Unsettled, match="tool 'b' is open"):
        settle([Event("tool_started", "b"), Event("tool_ended", "a"), Event("attempt_ended", "b"), terminal()])


def test_the_first_end_counts_and_another_one_is_a_finding() -> None:
    verdict = settle([terminal(NETWORK), terminal(DONE), terminal(ABORT)])
    assert verdict.termination == NETWORK
    assert verdict.findings == (
        "another end, which is not counted: completed", "another end, which is not counted: user_abort",
    )  # fmt: skip


def test_the_verdict_is_given_once() -> None:
    settlement = Settlement()
    settlement.add(terminal(DONE))
    verdict = settlement.settle()
    settlement.add(terminal(NETWORK))
    settlement.add(Event("tool_started", "late"))
    assert settlement.settle() is verdict
    assert settlement.late == ["terminal after the verdict", "tool_started after the verdict: late"]


def test_an_end_without_its_start_is_a_finding() -> None:
    assert settle([Event("tool_ended", "t"), terminal()]).findings == ("the end of tool 't' without its start",)


def test_a_key_may_be_used_again() -> None:
    with pytest.raises(Unsettled):
        settle([started("a"), ended("a"), started("a"), terminal()])
    assert settle([started("a"), ended("a"), started("a"), ended("a"), terminal()]).findings == ()


# ---- without an end of the prompt on record -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop_reason", "kind", "outcome"),
    [
        ("stop", "completed", "completed"),
        ("error", "provider_rate_limit", "failed"),
        ("aborted", "provider_abort", "aborted"),
    ],
)
def test_without_an_end_the_last_answer_is_looked_at(stop_reason: str, kind: str, outcome: str) -> None:
    verdict = settle([started(), ended(stop_reason=stop_reason, error="429 too many requests")])
    assert (verdict.termination.kind, verdict.outcome) == (kind, outcome)
    assert verdict.findings == ("no end of the prompt on record: judged by its last attempt",)


def test_without_an_end_only_the_last_attempt_is_looked_at() -> None:
    first = [started("a1"), ended("a1", NETWORK, stop_reason="error")]
    assert settle([*first, started("a2"), ended("a2", stop_reason="stop")]).outcome == "completed"
    overlapping = [started("a1"), started("a2"), ended("a2", stop_reason="stop"), ended("a1", NETWORK)]
    assert settle(overlapping).outcome == "completed"
    assert settle([ended("a1", stop_reason="stop"), ended("a2", NETWORK)]).outcome == "failed"  # starts not reported


def test_without_an_end_a_typed_one_of_the_attempt_counts() -> None:
    assert settle([started(), ended(termination=ABORT, stop_reason="stop")]).termination == ABORT
    assert settle([started(), ended(termination=DONE)]).outcome == "completed"
    assert settle([started(), ended(termination=DONE, stop_reason="error")]).outcome == "failed"
    assert settle([started(), ended(error="429 too many requests")]).termination.kind == "provider_rate_limit"


def test_of_a_prompt_of_which_nothing_is_known_nothing_is_claimed() -> None:
    for events in ([], [started(), ended()], [Event("tool_started", "t"), Event("tool_ended", "t")]):
        verdict = settle(events)
        assert (verdict.outcome, verdict.termination.kind, verdict.exit_code) == ("failed", "unclassified", 1)


def judged(before: Termination | None, termination: Termination, run_id: str | None = None, **seen: Any) -> Verdict:
    settlement = Settlement(run_id, before)
    for event in (started(), ended(termination=termination, **seen)):
        settlement.add(event)
    return settlement.settle()


def test_an_end_that_was_there_before_is_not_this_prompts() -> None:
    old = replace(NETWORK, run_id=None, at="2026-09-09T12:00:00.000000+00:00")
    read_again = Termination.from_dict(json.loads(json.dumps(old.as_dict())))
    for seen_again in (old, read_again):
        assert judged(old, seen_again, stop_reason="stop").outcome == "completed"
        assert judged(None, seen_again, stop_reason="stop").outcome == "failed"
    assert judged(NETWORK, NETWORK, stop_reason="stop").outcome == "completed"
    assert judged(NETWORK, replace(NETWORK), stop_reason="stop").outcome == "failed"  # of no known moment: a new one
    assert judged(None, NETWORK, "p2", stop_reason="stop").outcome == "completed"  # of another run
    assert judged(None, NETWORK, "p1", stop_reason="stop").outcome == "failed"


def test_an_end_of_another_run_does_not_settle_this_prompt() -> None:
    settlement = Settlement("p2")
    for event in (terminal(NETWORK), started(), ended(stop_reason="stop")):
        settlement.add(event)
    verdict = settlement.settle()
    assert verdict.outcome == "completed"
    assert "an end of another run or prompt, which is not counted: provider_network" in verdict.findings


def test_an_event_of_no_kind_or_an_end_without_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="'kind' must be one of"):
        Event("finished")
    with pytest.raises(ValueError, match="needs its termination"):
        Event("terminal")


# ---- properties -----------------------------------------------------------------------------------------------------

PAIRS = list(zip(OPENINGS, CLOSINGS, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PAIRS), st.sampled_from("abc")), max_size=8), st.randoms(), st.data())
def test_the_order_of_starts_and_ends_does_not_matter(
    parts: list[tuple[tuple[Any, Any], str]], random: Any, data: st.DataObject
) -> None:
    events = [Event(kind, key) for pair, key in parts for kind in pair]
    events.append(terminal(data.draw(st.sampled_from([DONE, NETWORK, ABORT]))))
    expected = settle(events)
    random.shuffle(events)
    assert settle(events) == expected
    assert expected.findings == ()
    for left_out in range(len(events)):  # with one event less it is not settled, or says what is wrong
        rest = events[:left_out] + events[left_out + 1 :]
        try:
            assert settle(rest).findings
        except Unsettled:
            assert events[left_out].kind in CLOSINGS


ANY_EVENT = st.builds(
    Event,
    kind=st.sampled_from(EVENT_KINDS),
    key=st.sampled_from("ab"),
    termination=st.sampled_from([DONE, NETWORK, ABORT]),
    stop_reason=st.none() | st.sampled_from(["stop", "error", "aborted"]),
    error=st.none() | st.text(max_size=5),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ANY_EVENT, max_size=10))
def test_any_events_give_one_verdict_or_none_yet(events: list[Event]) -> None:
    settlement = Settlement()
    for event in events:
        settlement.add(event)
    try:
        verdict = settlement.settle()
    except Unsettled:
        assert settlement.still_open()
        return
    assert verdict == settle(events)
    assert (verdict.exit_code == 0) == (verdict.outcome == "completed")
    ends = [event.termination for event in events if event.kind == "terminal"]
    if ends:
        assert verdict.termination == ends[0]


def test_every_order_of_a_parallel_ending() -> None:
    parts = [
        started("a"),
        ended("a", stop_reason="stop"),
        Event("tool_started", "t"),
        Event("tool_ended", "t"),
        terminal(),
    ]
    assert len({settle(order) for order in permutations(parts)}) == 1


# ---- all parts together, over a real connection ---------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
FLASH = Capabilities("flash")
CONTRACT = Contract(frozenset({"flash"}))


@contextmanager
def provider() -> Iterator[tuple[str, list[bytes]]]:
    """A server on this machine that asks for a tool first, then answers, and keeps what it was sent."""
    requests: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.rfile.read(int(self.headers["Content-Length"])))
            call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            asked = {"role": "assistant", "content": None, "tool_calls": [call]}
            answer = asked if len(requests) == 1 else {"role": "assistant", "content": "done"}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def work(address: str, history: list[dict[str, Any]], default: Capabilities, run_id: str) -> Verdict:
    """The least agent: it routes, projects, checks, sends, and lets its one tool return an image."""
    settlement, denials, stop_reason = Settlement(run_id), [], "stop"
    for turn in range(3):
        settlement.add(started(f"a{turn}"))
        chosen = route(history, default, None, CONTRACT)
        sent, omitted = project(history, chosen.model or default, CONTRACT)
        denied = chosen.denial or check(CONTRACT, default.model, sent)
        if denied is not None:
            denials.append(denied.stamped(run_id, 1.0))
            stop_reason = "error"
            settlement.add(ended(f"a{turn}", stop_reason="error", error="429 too many requests"))
            break
        assert omitted == (turn > 0)
        body = json.dumps({"model": default.model, "messages": sent}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=DEADLINE) as reply:
            history.append(json.load(reply))
        settlement.add(ended(f"a{turn}", stop_reason="stop"))
        if not history[-1].get("tool_calls"):
            break
        history.append({"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "1x1"}, IMAGE]})
    seen = Observation(
        run_id, denials=tuple(denials), assistant_present=True, stop_reason=stop_reason, error="429 too many requests"
    )
    settlement.add(terminal(classify(seen, Clock(started=0.0), default.model)))
    return settle(settlement)


def test_a_tools_image_does_not_end_the_run_nor_leave_the_machine() -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "read the plot"}]
    with provider() as (address, requests):
        verdict = work(address, history, FLASH, "r1")
    assert (verdict.outcome, len(requests)) == ("completed", 2)
    assert PIXEL.encode() not in b"".join(requests)
    (result,) = [message for message in json.loads(requests[1])["messages"] if message["role"] == "tool"]
    assert result == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": [{"type": "text", "text": "1x1"}, {"type": "text", "text": NOTICE}],
    }
    assert history[2]["content"][1] == IMAGE  # what is kept


def test_a_model_that_is_not_allowed_is_never_sent_anything_and_the_next_run_recovers() -> None:
    with provider() as (address, requests):
        denied = run_prompts(["one", "two"], lambda _: work(address, [], Capabilities("pro"), "r1"))
        assert requests == []
        assert (denied.exit_code, denied.not_started) == (1, 1)
        assert denied.verdicts[0].termination.kind == "configuration.invalid"
        assert not denied.verdicts[0].termination.retryable
        recovered = work(address, [{"role": "user", "content": "read the plot"}], FLASH, "r2")
    assert recovered.exit_code == 0


def test_a_users_image_that_is_not_allowed_is_not_sent_without_it() -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": [IMAGE]}]
    with provider() as (address, requests):
        verdict = work(address, history, FLASH, "r1")
    assert (verdict.exit_code, verdict.termination.kind, requests) == (1, "configuration.invalid", [])
