"""The messages of one request: images of tools become notices for models that take text only, and nothing else changes.

The named cases are those of the table in section 5 of the document "harness boundaries" of the omk repository.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.contract import Contract
from faultbook.runtime.messages import IMAGE_TYPES, blocks, images_by_sender, is_image, is_tool_result, modality
from faultbook.runtime.provider_input import NOTICE, Capabilities, project

TEXT_ONLY = Capabilities("flash", frozenset({"text"}))
VISION = Capabilities("vision", frozenset({"text", "image"}))
URL = "data:image/png;base64,iVBORw0KGgo="


def image(kind: str = "image_url") -> dict[str, Any]:
    return {
        "image_url": {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        "input_image": {"type": "input_image", "image_url": URL},
        "image": {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    }[kind]


def text(value: str = "read plot.png") -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool(*content: Any, **keys: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_1", "content": list(content), **keys}


def conversation() -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "plot.png"}'}}
    return [
        {"role": "system", "content": "Solve the task."},
        {"role": "user", "content": [text("What is wrong with this?"), image()]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        tool(text("before"), image(), text("after"), is_error=False, details={"bytes": 70}),
        {"role": "assistant", "content": "It is a plot."},
    ]


# ---- the cases of the document --------------------------------------------------------------------------------------


def test_a_text_only_model_is_told_of_a_tool_image_and_keeps_all_else() -> None:
    given_messages = conversation()
    messages, omitted = project(given_messages, TEXT_ONLY)
    assert omitted == 1
    assert messages[3] == tool(text("before"), text(NOTICE), text("after"), is_error=False, details={"bytes": 70})
    assert [*messages[:3], messages[4]] == [*given_messages[:3], given_messages[4]]
    assert messages[1]["content"][1] == image()  # what the user attached


def test_the_original_is_not_changed() -> None:
    given_messages = conversation()
    before = deepcopy(given_messages)
    messages, _ = project(given_messages, TEXT_ONLY)
    assert given_messages == before
    messages[3]["details"]["bytes"] = 0
    messages[3]["content"][0]["text"] = "changed"
    messages[3]["content"].clear()
    assert given_messages == before


def test_projecting_twice_is_projecting_once() -> None:
    once = project(conversation(), TEXT_ONLY)
    twice = project(once.messages, TEXT_ONLY)
    assert twice.messages is once.messages
    assert twice.omitted_tool_images == 0


def test_a_model_that_takes_images_is_sent_what_there_is() -> None:
    given_messages = conversation()
    assert project(given_messages, VISION) == (given_messages, 0)
    assert project(given_messages, VISION).messages is given_messages


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": [image()]}],
        [tool(text())],
        [{"role": "tool", "tool_call_id": "c", "content": "the word image_url"}],
        [{"role": "assistant", "content": [image()]}],
    ],
)
def test_with_nothing_to_do_the_same_object_comes_back(messages: list[Any]) -> None:
    projection = project(messages, TEXT_ONLY)
    assert projection.messages is messages
    assert projection.omitted_tool_images == 0


def test_a_vision_model_under_a_contract_keeps_the_tools_images_too() -> None:
    contract = Contract(frozenset({"flash", "vision"}), {"vision": frozenset({"image"})})
    given_messages = conversation()
    assert project(given_messages, VISION, contract).messages is given_messages


def test_a_model_that_the_contract_forbids_to_send_images_counts_as_text_only() -> None:
    contract = Contract(frozenset({"vision"}))
    messages, omitted = project(conversation(), VISION, contract)
    assert omitted == 1
    assert images_by_sender(messages) == {"user": 1}


def test_the_count_is_of_this_request_alone() -> None:
    history = [tool(image())]
    counts = []
    for _ in range(3):
        counts.append(project(history, TEXT_ONLY).omitted_tool_images)
        history = [*history, tool(image())]
    assert counts == [1, 2, 3]  # all that each request leaves out, not what was new and not a sum
    assert project(history[:1], TEXT_ONLY).omitted_tool_images == 1


# ---- forms of results and images ------------------------------------------------------------------------------------


def test_the_notice_says_what_it_must() -> None:
    for words in ("not observed", "left out", "not been inspected", "original is kept", "Do not infer"):
        assert words in NOTICE


@pytest.mark.parametrize("kind", sorted(IMAGE_TYPES))
@pytest.mark.parametrize("role", ["tool", "function", "toolResult"])
def test_every_form_of_image_in_every_role_of_a_tool(kind: str, role: str) -> None:
    messages, omitted = project([{"role": role, "content": [image(kind), image(kind)]}], TEXT_ONLY)
    assert omitted == 2
    assert [block["text"] for block in messages[0]["content"]] == [NOTICE, NOTICE]
    assert not images_by_sender(messages)


def test_results_inside_a_users_message_are_the_tools_and_the_rest_is_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [text(), image("image")]}
    given_messages = [{"role": "user", "content": [image("image"), result, text("look"), {**result, "content": "no"}]}]
    before = deepcopy(given_messages)
    assert images_by_sender(given_messages) == {"tool": 1, "user": 1}
    messages, omitted = project(given_messages, TEXT_ONLY)
    assert omitted == 1
    found = messages[0]["content"]
    assert found[0] == image("image")
    assert found[1] == {**result, "content": [text(), text(NOTICE)]}
    assert found[2:] == before[0]["content"][2:]
    assert given_messages == before


def test_an_item_of_a_response_is_given_blocks_of_its_own_types() -> None:
    item = {"type": "function_call_output", "call_id": "c1", "output": [image("input_image")], "status": "completed"}
    messages, omitted = project([item], TEXT_ONLY)
    assert omitted == 1
    assert messages == [{**item, "output": [{"type": "input_text", "text": NOTICE}]}]
    assert is_tool_result(item)


def test_a_tuple_of_messages_and_of_blocks() -> None:
    given_messages = ({"role": "tool", "content": (text(), image())}, {"role": "user", "content": "go on"})
    messages, omitted = project(given_messages, TEXT_ONLY)
    assert (len(messages), omitted) == (2, 1)
    assert messages[1] is given_messages[1]
    assert given_messages[0]["content"][1] == image()


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        "text",
        {},
        {"role": "tool"},
        {"role": "tool", "content": None},
        {"role": "tool", "content": {"type": "image"}},
        {"role": ["tool"], "content": [{"type": "image"}]},
        {"role": "tool", "content": [None, 3, "image", {"type": ["image"]}, {"type": None}, {}]},
        {"role": "tool", "content": [{"type": "tool_result", "content": 5}]},
    ],
)
def test_what_has_no_known_form_is_passed_on(odd: Any) -> None:
    given_messages = [odd]
    assert project(given_messages, TEXT_ONLY).messages is given_messages
    assert images_by_sender(given_messages) in ({}, {"unknown": 1})


def test_senders_and_modalities_of_blocks() -> None:
    message = {"role": "user", "content": [text(), {"type": "input_audio"}, {"type": "file"}, {"type": "video_url"}]}
    assert [(sender, modality(block)) for sender, block in blocks(message)] == [
        ("user", None), ("user", "audio"), ("user", "file"), ("user", "video"),
    ]  # fmt: skip
    assert not is_image(text())
    assert modality({"type": "thinking"}) is None


# ---- properties -----------------------------------------------------------------------------------------------------

PLAIN = st.sampled_from([text(), text(""), {"type": "thinking", "thinking": "?"}, "loose text", None])
BLOCKS = st.lists(st.sampled_from([image(kind) for kind in sorted(IMAGE_TYPES)]) | PLAIN, max_size=4)
RESULTS = st.builds(lambda content: {"type": "tool_result", "content": content}, BLOCKS | st.text(max_size=5))
CONTENT = st.lists(BLOCKS.map(lambda found: found[:1]) | RESULTS.map(lambda found: [found]), max_size=4).map(
    lambda parts: [block for part in parts for block in part]
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool", "function", "other"]),
            "content": CONTENT | st.text(max_size=5) | st.none(),
        },
        optional={"tool_call_id": st.text(max_size=3), "is_error": st.booleans(), "extra": st.just({"a": [1]})},
    ),
    max_size=6,
)


def without_images(messages: Any) -> str:
    """The messages with every image and every notice as the same mark."""
    marked = json.dumps(messages, sort_keys=True)
    for shown in (*(image(kind) for kind in IMAGE_TYPES), text(NOTICE), {"type": "input_text", "text": NOTICE}):
        marked = marked.replace(json.dumps(shown, sort_keys=True), '"<mark>"')
    return marked


@settings(max_examples=100, deadline=None)
@given(MESSAGES)
def test_projection_is_idempotent_pure_and_counts_what_it_removes(messages: list[Any]) -> None:
    before = deepcopy(messages)
    had = images_by_sender(messages)
    sent, omitted = project(messages, TEXT_ONLY)
    assert messages == before
    has = images_by_sender(sent)
    assert omitted == had.get("tool", 0)
    assert "tool" not in has
    assert {sender: n for sender, n in had.items() if sender != "tool"} == has
    assert json.dumps(sent).count(json.dumps(NOTICE)) == omitted
    assert without_images(sent) == without_images(messages)  # nothing else differs, order included
    again = project(sent, TEXT_ONLY)
    assert again.messages is sent
    assert again.omitted_tool_images == 0
    assert (sent is messages) == (omitted == 0)


@settings(max_examples=50, deadline=None)
@given(MESSAGES)
def test_changing_a_message_that_was_changed_never_reaches_the_original(messages: list[Any]) -> None:
    before = deepcopy(messages)
    sent, _ = project(messages, TEXT_ONLY)
    for original, message in zip(messages, sent, strict=True):
        if message is not original:
            for block in message["content"]:
                if isinstance(block, dict):
                    block["cut"] = True
            message.setdefault("extra", {"a": []})["a"].append(2)
            message["content"].clear()
    assert messages == before
