from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from faultbook.runtime.calls import Answer, Caller
from faultbook.runtime.contract import Contract, Denied
from faultbook.runtime.deadline import Deadline, DeadlineExceeded
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.provider_input import Capabilities

TEXT, VISION = Capabilities("text-model"), Capabilities("vision-model", frozenset({"text", "image"}))
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CONVERSATION = [
    {"role": "user", "content": "read the picture"},
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.png"}, IMAGE]},
]
ONLY_TEXT = Contract(frozenset({"text-model"}))


class Provider:
    """A provider on this machine's own address, which keeps what it was sent."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.received.append(body)
                answer = {"id": "r-1", "model": body["model"], "usage": {"prompt_tokens": 11, "completion_tokens": 3}}
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def send(self, model: str, messages: Any, seconds: float | None) -> Answer:
        data = json.dumps({"model": model, "messages": messages}).encode()
        url = f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions"
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=seconds or 20) as reply:
            found = json.load(reply)
        used = Usage(input_tokens=found["usage"]["prompt_tokens"], output_tokens=found["usage"]["completion_tokens"])
        return Answer({"role": "assistant", "content": "done"}, used, ("stop",), found["model"], found["id"])


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def caller(send: Any, ledger: Ledger, **options: Any) -> Caller:
    return Caller(send, TEXT, "run-1", "trial-1", 1, ledger=ledger, **options)


def only(ledger: Ledger) -> dict[str, Any]:
    (row,) = ledger.requests("run-1")
    return row


def test_a_tool_image_reaches_no_text_model_and_the_request_succeeds(provider: Provider, ledger: Ledger) -> None:
    before = json.dumps(CONVERSATION)
    called = caller(provider.send, ledger, contract=ONLY_TEXT, vision=VISION).call(CONVERSATION)
    assert (called.model, called.omitted_tool_images) == ("text-model", 1)
    assert json.dumps(CONVERSATION) == before
    (sent,) = provider.received
    assert "base64" not in json.dumps(sent)
    assert sent["messages"][2]["tool_call_id"] == "c1"
    row = only(ledger)
    assert (row["state"], row["input_tokens"], row["omitted_tool_images"]) == ("completed", 11, 1)


def test_without_a_contract_the_ordinary_routing_stays(provider: Provider, ledger: Ledger) -> None:
    called = caller(provider.send, ledger, vision=VISION).call(CONVERSATION)
    assert (called.model, called.omitted_tool_images) == ("vision-model", 0)
    assert "base64" in json.dumps(provider.received)


def test_a_forbidden_model_sends_nothing(provider: Provider, ledger: Ledger) -> None:
    forbidding = caller(provider.send, ledger, contract=Contract(frozenset({"another-model"})))
    with pytest.raises(Denied) as denied:
        forbidding.call([{"role": "user", "content": "hello"}])
    assert provider.received == []
    assert (denied.value.denial.run_id, denied.value.denial.kind) == ("run-1", "contract-violation")
    assert only(ledger)["state"] == "denied"


def test_a_users_image_that_nobody_may_see_is_denied_not_dropped(provider: Provider, ledger: Ledger) -> None:
    with pytest.raises(Denied):
        caller(provider.send, ledger, contract=ONLY_TEXT, vision=VISION).call([{"role": "user", "content": [IMAGE]}])
    assert provider.received == []


def test_an_allowed_vision_model_keeps_tool_images_too(provider: Provider, ledger: Ledger) -> None:
    both = Contract(frozenset({"text-model", "vision-model"}), {"vision-model": frozenset({"image"})})
    conversation = [{"role": "user", "content": [IMAGE]}, *CONVERSATION[1:]]
    called = caller(provider.send, ledger, contract=both, vision=VISION).call(conversation)
    assert (called.model, called.omitted_tool_images) == ("vision-model", 0)
    assert json.dumps(provider.received).count("base64") == 2


def test_a_request_that_breaks_off_is_unsettled_and_not_metered_as_0(ledger: Ledger) -> None:
    def broken(model: str, messages: Any, seconds: float | None) -> Answer:
        raise ConnectionResetError("peer closed")

    with pytest.raises(ConnectionResetError):
        caller(broken, ledger).call([{"role": "user", "content": "hello"}])
    row = only(ledger)
    assert (row["state"], row["input_tokens"], row["usage_status"]) == ("unsettled", None, None)


def test_a_deadline_of_0_sends_nothing_and_a_later_one_is_handed_on(provider: Provider, ledger: Ledger) -> None:
    with pytest.raises(DeadlineExceeded):
        caller(provider.send, ledger, deadline=Deadline.after(0)).call([{"role": "user", "content": "hello"}])
    assert provider.received == []
    left: list[float | None] = []

    def noting(model: str, messages: Any, seconds: float | None) -> Answer:
        left.append(seconds)
        return Answer({"role": "assistant", "content": ""})

    deadline = Deadline.after(60, reserve_cleanup=10, clock=lambda: 0.0)
    caller(noting, ledger, deadline=deadline).call([{"role": "user", "content": "hello"}])
    assert left == [50.0]


def test_unknown_usage_stays_unknown(ledger: Ledger) -> None:
    silent = caller(lambda *_: Answer({"role": "assistant", "content": "hi"}), ledger)
    silent.call([{"role": "user", "content": "hello"}])
    row = only(ledger)
    assert (row["usage_status"], row["input_tokens"], row["output_tokens"]) == ("absent", None, None)
    assert ledger.totals("run-1")["unmetered"] == 1
