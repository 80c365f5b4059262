"""Which model a request goes to, when its messages hold images.

Without a contract any image takes a request to the model that can see. Under one, what a tool returns changes no
model: a tool's image is no wish of the user's, and must not carry a run to a model that its contract then refuses. An
image of the user's may, if the contract allows that; all images are then kept, the tools' too, because that model takes
them (`faultbook.runtime.provider_input.project` has nothing to do).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faultbook.runtime.contract import (
    INPUT_NOT_ALLOWED,
    MODEL_NOT_ALLOWED,
    NO_VISION_MODEL,
    Contract,
    Denial,
    denial,
)
from faultbook.runtime.messages import IMAGE, TOOL, images_by_sender
from faultbook.runtime.provider_input import Capabilities


@dataclass(frozen=True, slots=True)
class Route:
    """The model of a request and why; or no model, and the denial.

    Attributes
    ----------
    model : Capabilities or None
        None exactly if the request is denied, so that nothing can be sent by mistake.
    reason : str
        One sentence for people.
    denial : Denial or None
    """

    model: Capabilities | None
    reason: str
    denial: Denial | None = None


def route(
    messages: Sequence[object], default: Capabilities, vision: Capabilities | None, contract: Contract | None = None
) -> Route:
    """Choose between the default model and the one that takes images. No message is changed.

    An image is the user's unless it stands in a tool's result: one in an instruction or an answer counts as put there.

    Parameters
    ----------
    messages : sequence of dict
        The conversation as it is kept, before `faultbook.runtime.provider_input.project`.
    default : Capabilities
        The model that the user chose.
    vision : Capabilities or None
        The model for images; None if there is none.
    contract : Contract, optional

    Returns
    -------
    Route
        Under a contract a user's image that no allowed model takes gives a denial; so does a default model that is not
        allowed.
    """
    images = images_by_sender(messages)
    if contract is None:
        return _automatic(bool(images), default, vision)
    users = any(sender != TOOL for sender in images)
    if users and not _may_see(default, contract):
        if vision is not None and _may_see(vision, contract):
            return Route(vision, "a user's image, and the contract lets this model be sent images")
        return _denied(_refusal(messages, default, vision, contract))
    if not contract.may_use(default.model):
        return _denied(denial(MODEL_NOT_ALLOWED, default.model, messages))
    return Route(default, "the chosen model takes what the user sent")


def _automatic(any_image: bool, default: Capabilities, vision: Capabilities | None) -> Route:
    if not any_image or default.takes_images:
        return Route(default, "the chosen model takes what there is to send")
    if vision is None or not vision.takes_images:
        return Route(default, "there is an image, and no model that takes images")
    return Route(vision, "there is an image, and the chosen model takes text only")


def _may_see(model: Capabilities, contract: Contract) -> bool:
    return model.takes_images and contract.may_send(model.model, IMAGE)


def _refusal(
    messages: Sequence[object], default: Capabilities, vision: Capabilities | None, contract: Contract
) -> Denial:
    """Why nobody may be sent a user's image: the model for images is not there, cannot, or may not."""
    if vision is None or not vision.takes_images:
        return denial(NO_VISION_MODEL, default.model, messages, IMAGE)
    rule = INPUT_NOT_ALLOWED if contract.may_use(vision.model) else MODEL_NOT_ALLOWED
    return denial(rule, vision.model, messages, IMAGE)


def _denied(found: Denial) -> Route:
    return Route(None, found.reason, found)
