"""Which model a request goes to: a tool's image changes nothing under a contract, a user's may.

The named cases are those of section 3 of the document "harness boundaries" of the omk repository.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.contract import (
    CONTRACT_VIOLATION,
    INPUT_NOT_ALLOWED,
    MODEL_NOT_ALLOWED,
    NO_VISION_MODEL,
    Contract,
    check,
)
from faultbook.runtime.messages import images_by_sender
from faultbook.runtime.provider_input import Capabilities, project
from faultbook.runtime.routing import route

FLASH = Capabilities("flash", frozenset({"text"}))
VISION = Capabilities("vision", frozenset({"text", "image"}))
BOTH = Contract(frozenset({"flash", "vision"}), {"vision": frozenset({"text", "image"})})
ONLY_FLASH = Contract(frozenset({"flash"}))
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

TEXT: list[Any] = [{"role": "user", "content": "hello"}]
USER_IMAGE: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}]
TOOL_IMAGE: list[Any] = [*TEXT, {"role": "tool", "tool_call_id": "c", "content": [IMAGE]}]
BOTH_IMAGES: list[Any] = [*USER_IMAGE, *TOOL_IMAGE]
RESULT_IN_USER_MESSAGE: list[Any] = [{"role": "user", "content": [{"type": "tool_result", "content": [IMAGE]}]}]


@pytest.mark.parametrize("messages", [USER_IMAGE, TOOL_IMAGE, BOTH_IMAGES, RESULT_IN_USER_MESSAGE])
def test_without_a_contract_any_image_selects_the_vision_model(messages: list[Any]) -> None:
    assert route(messages, FLASH, VISION).model == VISION


def test_without_a_contract_text_stays_with_the_chosen_model() -> None:
    assert route(TEXT, FLASH, VISION).model == FLASH
    assert route(USER_IMAGE, VISION, FLASH).model == VISION  # it can see already


@pytest.mark.parametrize("vision", [None, Capabilities("blind")])
def test_without_a_contract_and_without_a_vision_model_nothing_is_chosen_or_denied(vision: Capabilities | None) -> None:
    found = route(TOOL_IMAGE, FLASH, vision)
    assert (found.model, found.denial) == (FLASH, None)
    assert "no model that takes images" in found.reason


@pytest.mark.parametrize("messages", [TOOL_IMAGE, RESULT_IN_USER_MESSAGE])
@pytest.mark.parametrize("contract", [BOTH, ONLY_FLASH])
def test_under_a_contract_a_tool_image_never_selects_a_vision_model(messages: list[Any], contract: Contract) -> None:
    found = route(messages, FLASH, VISION, contract)
    assert (found.model, found.denial) == (FLASH, None)
    sent, omitted = project(messages, FLASH, contract)
    assert omitted == 1
    assert check(contract, "flash", sent) is None  # the run goes on: this ended four runs before


def test_a_users_image_selects_an_allowed_vision_model_and_all_images_are_kept() -> None:
    found = route(BOTH_IMAGES, FLASH, VISION, BOTH)
    assert found.model == VISION
    assert "user's image" in found.reason
    sent, omitted = project(BOTH_IMAGES, found.model, BOTH)
    assert sent is BOTH_IMAGES
    assert omitted == 0
    assert images_by_sender(sent) == {"tool": 1, "user": 1}
    assert check(BOTH, "vision", sent) is None


def test_a_users_image_that_is_not_allowed_is_denied_not_dropped() -> None:
    before = deepcopy(BOTH_IMAGES)
    found = route(BOTH_IMAGES, FLASH, VISION, ONLY_FLASH)
    assert found.model is None
    assert found.denial is not None
    assert (found.denial.kind, found.denial.rule, found.denial.model) == (
        CONTRACT_VIOLATION, MODEL_NOT_ALLOWED, "vision",
    )  # fmt: skip
    assert found.denial.images == {"tool": 1, "user": 1}
    assert found.reason == found.denial.reason
    assert before == BOTH_IMAGES


def test_each_reason_for_a_denial_has_its_rule() -> None:
    may_use_it_for_text = Contract(frozenset({"flash", "vision"}))
    denied = route(USER_IMAGE, FLASH, VISION, may_use_it_for_text).denial
    assert denied is not None
    assert (denied.rule, denied.model) == (INPUT_NOT_ALLOWED, "vision")
    for nobody in (None, Capabilities("vision")):
        denied = route(USER_IMAGE, FLASH, nobody, BOTH).denial
        assert denied is not None
        assert (denied.rule, denied.model) == (NO_VISION_MODEL, "flash")
    denied = route(TEXT, Capabilities("pro"), VISION, BOTH).denial
    assert denied is not None
    assert (denied.rule, denied.model) == (MODEL_NOT_ALLOWED, "pro")


def test_a_default_that_sees_is_not_left_for_a_users_image() -> None:
    other = Capabilities("other", frozenset({"text", "image"}))
    contract = Contract(frozenset({"vision", "other"}), {name: frozenset({"image"}) for name in ("vision", "other")})
    assert route(USER_IMAGE, VISION, other, contract).model == VISION


def test_a_default_that_sees_but_may_not_is_left_for_one_that_may() -> None:
    seeing = Capabilities("flash", frozenset({"text", "image"}))
    assert route(USER_IMAGE, seeing, VISION, BOTH).model == VISION
    assert route(TOOL_IMAGE, seeing, VISION, BOTH).model == seeing


MESSAGE = st.sampled_from([*TEXT, *USER_IMAGE, TOOL_IMAGE[1], *RESULT_IN_USER_MESSAGE])
MODEL = st.builds(Capabilities, st.sampled_from("abc"), st.sampled_from([FLASH.input, VISION.input]))
CONTRACTS = st.sets(st.sampled_from("abc")).flatmap(
    lambda models: st.dictionaries(
        st.sampled_from(sorted(models)) if models else st.nothing(), st.just(frozenset({"image"}))
    ).map(lambda seeing: Contract(frozenset(models), seeing))
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGE, max_size=4), MODEL, MODEL | st.none(), CONTRACTS)
def test_what_is_routed_under_a_contract_passes_its_check(
    messages: list[Any], default: Capabilities, vision: Capabilities | None, contract: Contract
) -> None:
    found = route(messages, default, vision, contract)
    assert (found.model is None) == (found.denial is not None)
    if found.model is not None:
        sent, _ = project(messages, found.model, contract)
        assert check(contract, found.model.model, sent) is None
    from_tools_only = set(images_by_sender(messages)) <= {"tool"}
    if from_tools_only:
        assert found.model in (default, None)
