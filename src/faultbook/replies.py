"""What a model's reply holds: strict JSON, JSON in a fence, repaired JSON; its thinking is never its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Payload = dict[str, Any] | list[Any]

_FENCE = re.compile(r"```(json|JSON)?[^\n`]*\n(.*?)\n[ \t]*```", re.DOTALL)
_OPEN, _CLOSE = "<think>", "</think>"
_BRACKET = re.compile(r"[\[{]|[\]}]")
_DEEPEST = 1_000  # repair gives up on deeper nesting too, but only after minutes


def parse_reply(
    text: str, is_answer: Callable[[Payload], bool] = bool, *, lists_in_prose: bool = False
) -> tuple[Any, bool]:
    """Parse a model's reply: strictly first; then what stands in a fence; then repaired. The flag says "not strict".

    Strict parsing comes first because a fence may stand inside a string of valid JSON.

    Parameters
    ----------
    text : str
        The reply as it came.
    is_answer : callable, optional
        Whether an object or a list that only a repair brought to light counts as an answer: repair makes some object
        of nearly any prose. Any that is not empty counts unless given.
    lists_in_prose : bool
        Whether a repaired list outside any fence may be the answer. A list in the middle of prose
        ("[flagd-config], I think") is none unless `is_answer` can tell.

    Returns
    -------
    (payload, repaired)
        The payload is None if nothing could be read.
    """
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        pass
    fences = _FENCE.findall(text)
    blocks = [block for tag, block in sorted(fences, key=lambda fence: not fence[0])]
    for block in blocks:
        try:
            return json.loads(block), True
        except (ValueError, RecursionError):
            continue
    for block in blocks:
        payload = _repair(block, is_answer)
        if payload is not None:
            return payload, True
    payload = _repair(text, is_answer)
    return (payload if lists_in_prose or isinstance(payload, dict) else None), True


def without_thinking(text: str) -> tuple[str, bool]:
    """The reply after its thinking, and whether the thinking was cut off, so that there is no answer at all.

    A reply that is cut before ``</think>`` would otherwise be searched for an answer in its reasoning, without any
    error. What stands before the last ``</think>`` is thinking even where the opening tag is missing: chat templates
    put it into the prompt. A reply that is valid JSON as it stands has no thinking, whatever its strings hold.

    Parameters
    ----------
    text : str
        The reply as it came.

    Returns
    -------
    (answer, truncated)
        The answer is empty if the thinking was cut off.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        answer = text.rpartition(_CLOSE)[2]
        return ("", True) if _OPEN in answer else (answer, False)
    return text, False


def _repair(text: str, is_answer: Callable[[Payload], bool]) -> Payload | None:
    """What broken JSON meant, if it is an answer."""
    from json_repair import repair_json

    if _depth(text) > _DEEPEST:
        return None
    try:
        repaired = repair_json(text, return_objects=True)
    except (RecursionError, ValueError):  # nested too deeply
        return None
    return repaired if isinstance(repaired, (dict, list)) and repaired and is_answer(repaired) else None


def _depth(text: str) -> int:
    """How deeply the brackets of a text nest, those in its strings included."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest
