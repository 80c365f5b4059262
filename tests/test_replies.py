"""Replies of models: strict JSON, fences, repair, and thinking that is no answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.replies import Payload, parse_reply, without_thinking

STEPS = [{"step_number": 3}]
TEXT = json.dumps(STEPS)


def _names_step(payload: Payload) -> bool:
    return any(isinstance(item, dict) and "step_number" in item for item in payload)


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (TEXT, False),
        (f"  {TEXT}\n", False),
        (f"```json\n{TEXT}\n```", True),
        (f"```\n{TEXT}\n```", True),
        (f"The answer:\n```json\n{TEXT}\n```\nHope it helps.", True),
        # two fences: the one that says what it is counts
        (f'```\n{{"step_number": 5}}\n```\n```json\n{TEXT}\n```', True),
        ("```json\n[{'step_number': 3},]\n```", True),
    ],
)
def test_a_list_is_found(text: str, repaired: bool) -> None:
    assert parse_reply(text, _names_step) == (STEPS, repaired)


@pytest.mark.parametrize("text", [json.dumps([{"step_number": 3, "why": "```json\n[]\n```"}]), json.dumps("```")])
def test_a_fence_in_a_string_of_valid_json_is_text(text: str) -> None:
    # hindsight #2542, PR 132: naive stripping of fences corrupts valid JSON that holds one
    assert parse_reply(text) == (json.loads(text), False)


@pytest.mark.parametrize("text", ["", "I cannot tell.", "```json\n```", "the steps [3, 5], I think", "{", "\0", "```"])
def test_prose_is_no_answer(text: str) -> None:
    assert parse_reply(text, _names_step, lists_in_prose=True) == (None, True)


def test_a_list_in_prose_counts_only_if_asked_for() -> None:
    text = f"These steps failed: {TEXT} and no others."
    assert parse_reply(text, _names_step) == (None, True)
    assert parse_reply(text, _names_step, lists_in_prose=True) == (STEPS, True)


def test_what_counts_as_an_answer_is_told_by_the_caller() -> None:
    text = "{'step_number': 3"
    assert parse_reply(text, lambda payload: "step_number" in payload) == ({"step_number": 3}, True)
    assert parse_reply(text, lambda payload: "cause" in payload) == (None, True)


@pytest.mark.parametrize("opening", ["[", "{", '{"a":'])
def test_nesting_beyond_the_parser_is_no_crash(opening: str) -> None:
    payload, repaired = parse_reply(opening * 1_000_000)
    assert repaired
    assert payload is None or isinstance(payload, (dict, list))


# ---- thinking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (TEXT, TEXT),
        (f"<think>step 5? no</think>{TEXT}", TEXT),
        # chat templates put the opening tag into the prompt
        (f'[{{"step_number": 5}}] no, wait</think>\n{TEXT}', f"\n{TEXT}"),
        (f"<think>a</think>b<think>c</think>{TEXT}", TEXT),
        (f"<think></think>{TEXT}", TEXT),
        ("", ""),
    ],
)
def test_thinking_is_taken_off(text: str, answer: str) -> None:
    assert without_thinking(text) == (answer, False)


@pytest.mark.parametrize(
    "text", ["<think>", f"<think>it must be {TEXT}", f"{TEXT} hm, <think> or", f"a</think><think>{TEXT}"]
)
def test_thinking_that_does_not_end_is_cut_off(text: str) -> None:
    # lm-evaluation-harness #3382, olmo-eval #399: cut before </think>, the reasoning was taken for the answer
    assert without_thinking(text) == ("", True)


def test_a_tag_in_a_string_of_valid_json_is_text() -> None:
    text = json.dumps([{"step_number": 3, "failure_reason": "it wrote <think> and stopped"}])
    assert without_thinking(text) == (text, False)


@settings(max_examples=60, deadline=None)
@given(st.text("<>/think{}[]\"',:`\n 01", max_size=40))
@example("<think></think>")
@example("</think><think>")
def test_no_thinking_is_left_in_an_answer(text: str) -> None:
    answer, truncated = without_thinking(text)
    assert text.endswith(answer)
    try:
        json.loads(text)
    except ValueError:
        assert "</think>" not in answer
        assert "<think>" not in answer
        assert truncated == ("<think>" in text.rpartition("</think>")[2])
    else:
        assert (answer, truncated) == (text, False)
