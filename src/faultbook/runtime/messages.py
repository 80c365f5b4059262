"""Messages as chat interfaces send them: which hold a tool's result, what is in them besides text, and who sent it.

A message is a plain dictionary, and stays one: keys that are not known here are nobody's loss. Content is a text or a
list of blocks with a `type`. Three forms of a tool's result are in use, and all are read:

=========================================== =============================================
a message of role "tool"                     chat completions; also "function", "toolResult"
a block of type "tool_result" in a message   the form in which a user's message carries it
an item of type "function_call_output"       responses; its content is called `output`
=========================================== =============================================

What stands in a tool's result was sent by the tool, whatever the role of the message around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

TOOL = "tool"
USER = "user"
IMAGE = "image"

IMAGE_TYPES = frozenset({"image_url", "input_image", "image"})
TOOL_ROLES = frozenset({"tool", "function", "toolResult"})
TOOL_RESULT_TYPES = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})

# What a block is, where it is not text: types of blocks in chat completions, responses and tool protocols.
_MODALITIES = {
    **dict.fromkeys(IMAGE_TYPES, IMAGE),
    **dict.fromkeys(("input_audio", "audio", "audio_url"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
}
MODALITIES = ("text", *sorted(set(_MODALITIES.values())))


def type_of(part: object) -> str | None:
    """The `type` of a block or item; None if it has none."""
    found = part.get("type") if isinstance(part, Mapping) else None
    return found if isinstance(found, str) else None


def is_image(block: object) -> bool:
    """Whether a block holds an image or the address of one, whoever sent it."""
    return type_of(block) in IMAGE_TYPES


def is_tool_result(part: object) -> bool:
    """Whether a message, an item or a block is what a tool gave back."""
    if type_of(part) in TOOL_RESULT_TYPES:
        return True
    role = part.get("role") if isinstance(part, Mapping) else None
    return isinstance(role, str) and role in TOOL_ROLES


def content_key(part: object) -> str:
    """Where a message, an item or a block keeps its content."""
    return "output" if type_of(part) in ("function_call_output", "custom_tool_call_output") else "content"


def content_blocks(part: object) -> Sequence[Any] | None:
    """The list that a message, an item or a block holds as its content; None if it is a text, or anything else."""
    found = part.get(content_key(part)) if isinstance(part, Mapping) else None
    return found if isinstance(found, (list, tuple)) else None


def blocks(message: object) -> Iterator[tuple[str, Any]]:
    """All blocks of a message, each with who sent it; a tool's result within a message is entered.

    Yields
    ------
    (sender, block)
        The sender is `TOOL`, or else the role of the message ("unknown" if it has none).
    """
    role = message.get("role") if isinstance(message, Mapping) else None
    named = role if isinstance(role, str) and role else "unknown"
    sender = TOOL if is_tool_result(message) else named
    for block in content_blocks(message) or ():
        if is_tool_result(block):
            yield from ((TOOL, inner) for inner in content_blocks(block) or ())
        else:
            yield sender, block


def modality(block: object) -> str | None:
    """What a block holds besides text, one of `MODALITIES`; None if it is text, a call, or of a type not known."""
    kind = type_of(block)
    return None if kind is None else _MODALITIES.get(kind)


def images_by_sender(messages: Sequence[object]) -> dict[str, int]:
    """How many images each sender put into the messages; senders of none are left out."""
    found = Counter(sender for message in messages for sender, block in blocks(message) if is_image(block))
    return dict(sorted(found.items()))
