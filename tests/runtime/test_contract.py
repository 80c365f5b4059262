"""What a run has bound itself to: yes or no, as an event, with the messages left as they are."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.runtime.contract import (
    CONTRACT_VIOLATION,
    INPUT_NOT_ALLOWED,
    MODEL_NOT_ALLOWED,
    RULES,
    Contract,
    Denied,
    check,
)
from faultbook.runtime.provider_input import Capabilities, project

SECRET = "sk-live-aaaabbbbccccddddeeee"  # noqa: S105  # planted
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SECRET}"}}
CONTRACT = Contract(frozenset({"flash", "vision"}), {"vision": frozenset({"image"})})


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": f"task {SECRET}"}, *content]}


def tool(*content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": list(content)}


def test_text_may_be_sent_to_an_allowed_model() -> None:
    assert check(CONTRACT, "flash", [user(), {"role": "assistant", "content": "yes"}]) is None


def test_a_model_that_is_not_allowed_is_denied_whatever_is_sent() -> None:
    found = check(CONTRACT, "pro", [])
    assert found is not None
    assert (found.kind, found.model, found.rule) == (CONTRACT_VIOLATION, "pro", MODEL_NOT_ALLOWED)
    assert "'pro'" in found.reason


@pytest.mark.parametrize("near", ["Flash", "flash ", "flash-2", "", "fl"])
def test_models_are_not_matched_by_likeness(near: str) -> None:
    assert check(CONTRACT, near, []) is not None


def test_a_users_image_is_denied_or_allowed_by_model() -> None:
    denied = check(CONTRACT, "flash", [user(IMAGE, IMAGE), tool(IMAGE)])
    assert denied is not None
    assert (denied.rule, denied.modality) == (INPUT_NOT_ALLOWED, "image")
    assert denied.images == {"tool": 1, "user": 2}
    assert check(CONTRACT, "vision", [user(IMAGE), tool(IMAGE)]) is None


def test_what_the_projection_leaves_is_allowed_where_only_tools_sent_images() -> None:
    messages = [user(), tool(IMAGE)]
    assert check(CONTRACT, "flash", messages) is not None
    assert check(CONTRACT, "flash", project(messages, Capabilities("flash"), CONTRACT).messages) is None


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ({"type": "input_audio", "input_audio": {}}, "audio"),
        ({"type": "document", "source": {}}, "file"),
        ({"type": "file", "file": {}}, "file"),
        ({"type": "video_url", "video_url": {}}, "video"),
    ],
)
def test_other_input_than_text_needs_leave_too(block: dict[str, Any], name: str) -> None:
    found = check(CONTRACT, "vision", [user(block)])
    assert found is not None
    assert (found.rule, found.modality, found.images) == (INPUT_NOT_ALLOWED, name, {})
    assert check(Contract(frozenset({"vision"}), {"vision": frozenset({name})}), "vision", [user(block)]) is None


def test_checking_changes_nothing() -> None:
    messages = [user(IMAGE), tool(IMAGE)]
    before = deepcopy(messages)
    check(CONTRACT, "flash", messages)
    assert messages == before


def test_a_denial_is_written_without_what_the_messages_say() -> None:
    found = check(CONTRACT, "flash", [user(IMAGE)])
    assert found is not None
    written = json.dumps(found.stamped("run-1", 12.5).as_dict())
    assert SECRET not in written
    assert "base64" not in written
    assert json.loads(written) == {
        "kind": "contract-violation",
        "model": "flash",
        "rule": "input-not-allowed",
        "reason": found.reason,
        "images": {"user": 1},
        "modality": "image",
        "run_id": "run-1",
        "at": 12.5,
    }


def test_a_denial_can_be_raised() -> None:
    found = check(CONTRACT, "pro", [])
    assert found is not None
    with pytest.raises(Denied, match="does not allow the model 'pro'") as raised:
        raise Denied(found)
    assert raised.value.denial is found


def test_the_models_for_images_are_those_that_may_be_sent_some() -> None:
    assert CONTRACT.vision_models == {"vision"}
    assert Contract(frozenset({"flash"})).vision_models == frozenset()


def test_a_contract_does_not_change_with_what_it_was_made_of() -> None:
    modalities: dict[str, Any] = {"vision": {"image"}}
    models = {"vision"}
    contract = Contract(models, modalities)
    models.add("pro")
    modalities["vision"].add("audio")
    assert not contract.may_use("pro")
    assert not contract.may_send("vision", "audio")
    with pytest.raises(TypeError):
        contract.modalities["vision"] = frozenset()
    with pytest.raises(FrozenInstanceError):
        contract.allowed_models = frozenset()
    assert hash(contract) == hash(Contract(frozenset({"vision"})))


@pytest.mark.parametrize(
    ("models", "modalities", "words"),
    [
        ("flash", {}, "give a set of names"),
        ({""}, {}, "give a set of names"),
        ({7}, {}, "give a set of names"),
        ({"flash"}, {"flash": "image"}, "modalities of 'flash': give a set of names"),
        ({"flash"}, {"vision": {"image"}}, "not among the allowed models"),
        ({"flash"}, {"flash": {"images"}}, "'modality' must be one of"),
    ],
)
def test_a_contract_that_says_nothing_sensible_is_refused(models: Any, modalities: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Contract(models, modalities)


BLOCK = st.sampled_from([IMAGE, {"type": "text", "text": "a"}, {"type": "input_audio"}, {"type": "image"}, None, "x"])
MESSAGES = st.lists(
    st.builds(dict, role=st.sampled_from(["user", "tool", "assistant"]), content=st.lists(BLOCK, max_size=4)),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(MESSAGES, st.sampled_from(["flash", "vision", "pro"]))
def test_a_denial_names_a_rule_and_checking_again_says_the_same(messages: list[Any], model: str) -> None:
    before = deepcopy(messages)
    found = check(CONTRACT, model, messages)
    assert found == check(CONTRACT, model, messages)
    assert messages == before
    if model == "pro":
        assert found is not None
    if found is not None:
        assert found.rule in RULES
        assert found.model == model
        json.dumps(found.as_dict())
