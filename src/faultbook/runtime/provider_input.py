"""What one request sends: images that tools gave back are left out, and said to be, where the model takes only text.

The conversation that is kept and the messages that are sent are two things. This is the second, made anew from the
first for every request: nothing is read out of an image, nothing is guessed, and the kept messages stay as they are.
That saves no memory: originals still hold their images.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

from faultbook.runtime.contract import Contract
from faultbook.runtime.messages import IMAGE, Message, content_blocks, content_key, is_image, is_tool_result, type_of

NOTICE = (
    "[Image not observed. A tool returned an image here, but this model is sent text only, so the image was left out of"
    " this request. It has not been inspected. The original is kept with the tool's result. Do not infer what it"
    " shows; if that matters, have a tool extract it as text.]"
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can take.

    Attributes
    ----------
    model : str
        Its id.
    input : frozenset of str
        Modalities, such as {"text", "image"}.
    """

    model: str
    input: frozenset[str] = frozenset({"text"})

    @property
    def takes_images(self) -> bool:
        """Whether it can be sent images."""
        return IMAGE in self.input


class Projection(NamedTuple):
    """The messages of one request, and how many images of tools that request leaves out.

    The count is neither a sum over requests nor a number of images that anybody looked at: an image that stays in the
    conversation is counted again in every request that leaves it out.
    """

    messages: Sequence[Any]
    omitted_tool_images: int


def project(messages: Sequence[Any], capabilities: Capabilities, contract: Contract | None = None) -> Projection:
    """Make the messages of one request out of the conversation.

    For a model that takes images nothing changes. For one that does not, each image in a tool's result becomes a block
    of text, `NOTICE`, in its place; all else stays: order, texts, ids of calls, error flags, unknown keys, and images
    that anybody but a tool sent (whether those may be sent is for `faultbook.runtime.contract.check` to say).

    Parameters
    ----------
    messages : sequence of dict
        The conversation as it is kept; see `faultbook.runtime.messages`. Never changed.
    capabilities : Capabilities
        Of the model that the request goes to.
    contract : Contract, optional
        A model that it forbids to send images counts as one that takes text only: then an image of a tool's cannot end
        the run by a denial.

    Returns
    -------
    Projection
        The very object that was given if there is nothing to do; so projecting twice is projecting once. Else a new
        list, in which messages that changed are copies through and through, and all others are the same objects as
        before, to be read only.
    """
    takes_images = capabilities.takes_images and (contract is None or contract.may_send(capabilities.model, IMAGE))
    if takes_images:
        return Projection(messages, 0)
    counts = [_tool_images(message) for message in messages]
    if not any(counts):
        return Projection(messages, 0)
    sent = [_noticed(message) if n else message for message, n in zip(messages, counts, strict=True)]
    return Projection(sent, sum(counts))


def _tool_images(message: object) -> int:
    found = content_blocks(message) or ()
    if is_tool_result(message):
        return sum(is_image(block) or _tool_images_of_block(block) for block in found)
    return sum(_tool_images_of_block(block) for block in found)


def _tool_images_of_block(block: object) -> int:
    return sum(map(is_image, content_blocks(block) or ())) if is_tool_result(block) else 0


def _noticed(message: Message) -> dict[str, Any]:
    """A copy of a message in which a tool's images are notices."""
    from_tool = is_tool_result(message)
    return _with_blocks(message, [_notice_of(block, from_tool) for block in content_blocks(message) or ()])


def _notice_of(block: Any, from_tool: bool) -> Any:
    if from_tool and is_image(block):
        # An item of the form "responses" takes blocks of its own types only.
        return {"type": "input_text" if type_of(block) == "input_image" else "text", "text": NOTICE}
    if not _tool_images_of_block(block):
        return deepcopy(block)
    return _with_blocks(block, [_notice_of(inner, True) for inner in content_blocks(block) or ()])


def _with_blocks(part: Message, found: list[Any]) -> dict[str, Any]:
    """A copy of a message or block with other content, at the same place among its keys."""
    content = content_key(part)
    return {key: found if key == content else deepcopy(value) for key, value in part.items()}
