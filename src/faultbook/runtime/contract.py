"""What a run has bound itself to: which models it may use, and what besides text may be sent to each.

Checking says yes or no. It rewrites no message and picks no model: whoever chose the model hears that it may not be
used, as an event that has a type. So a refusal is known for what it is before any text of an error is read
(`faultbook.runtime.termination`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from faultbook.errors import one_of
from faultbook.runtime.messages import IMAGE, MODALITIES, blocks, images_by_sender, modality

CONTRACT_VIOLATION = "contract-violation"

MODEL_NOT_ALLOWED = "model-not-allowed"
INPUT_NOT_ALLOWED = "input-not-allowed"
NO_VISION_MODEL = "no-vision-model"
RULES = (MODEL_NOT_ALLOWED, INPUT_NOT_ALLOWED, NO_VISION_MODEL)


@dataclass(frozen=True, slots=True)
class Contract:
    """Which models may be used, and what may be sent to them. What it does not allow is denied; text always goes.

    Attributes
    ----------
    allowed_models : frozenset of str
        Ids of models; nothing is matched by pattern or beginning.
    modalities : mapping of str to frozenset of str
        What may be sent to an allowed model: "text", "image", "audio", "video", "file". A model that is not named here
        is sent text only.
    """

    allowed_models: frozenset[str]
    modalities: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        models = _names("allowed_models", self.allowed_models)
        allowed = {model: _names(f"modalities of '{model}'", found) for model, found in self.modalities.items()}
        for model, found in allowed.items():
            if model not in models:
                raise ValueError(f"modalities are given for '{model}', which is not among the allowed models")
            for name in sorted(found - set(MODALITIES)):
                raise ValueError(one_of("modality", name, MODALITIES))
        object.__setattr__(self, "allowed_models", models)
        object.__setattr__(self, "modalities", MappingProxyType(allowed))

    def may_use(self, model: str) -> bool:
        """Whether a model may be sent anything at all."""
        return model in self.allowed_models

    def may_send(self, model: str, modality: str) -> bool:
        """Whether a model may be sent this."""
        return self.may_use(model) and (modality == "text" or modality in self.modalities.get(model, ()))

    @property
    def vision_models(self) -> frozenset[str]:
        """The models that may be sent images."""
        return frozenset(model for model in self.allowed_models if self.may_send(model, IMAGE))


@dataclass(frozen=True, slots=True)
class Denial:
    """A request that a contract forbids, as an event. It holds nothing of what the messages say.

    Attributes
    ----------
    model : str
        The model that would have been used.
    rule : str
        One of `RULES`.
    reason : str
        One sentence for people.
    images : mapping of str to int
        Images in the messages by who sent them.
    modality : str or None
        What may not be sent, for rules of what is sent.
    run_id, at : str and float, or None
        In which run it was observed, and when by the monotonic clock, in seconds; see `stamped`.
    """

    model: str
    rule: str
    reason: str
    images: Mapping[str, int] = field(default_factory=dict, hash=False)
    modality: str | None = None
    run_id: str | None = None
    at: float | None = None
    kind: str = field(default=CONTRACT_VIOLATION, init=False)

    def stamped(self, run_id: str, at: float) -> Denial:
        """The same event with the run and the moment, in seconds of the monotonic clock, in which it was observed."""
        return replace(self, run_id=run_id, at=at)

    def as_dict(self) -> dict[str, Any]:
        """The event as it is written to a file."""
        fields = asdict(self)
        return {"kind": fields.pop("kind"), **fields}


class Denied(Exception):  # noqa: N818  # the name says what happened; the program is not at fault
    """A denial, for callers that leave a request by an exception."""

    def __init__(self, denial: Denial) -> None:
        self.denial = denial
        super().__init__(denial.reason)


def check(contract: Contract, model: str, messages: Sequence[object]) -> Denial | None:
    """Whether a contract lets these messages be sent to this model, as they are.

    To be asked of the messages of one request after `faultbook.runtime.provider_input.project`, and again wherever the
    request is put into a provider's own form. Blocks of a type that is not known are not judged.

    Parameters
    ----------
    contract : Contract
    model : str
        The id of the model that was chosen.
    messages : sequence of dict
        Never changed.

    Returns
    -------
    Denial or None
        None if nothing forbids it.
    """
    if not contract.may_use(model):
        return denial(MODEL_NOT_ALLOWED, model, messages)
    for message in messages:
        for _, block in blocks(message):
            found = modality(block)
            if found is not None and not contract.may_send(model, found):
                return denial(INPUT_NOT_ALLOWED, model, messages, found)
    return None


def denial(rule: str, model: str, messages: Sequence[object], modality: str | None = None) -> Denial:
    """The event for a rule that a request breaks, with the images in the request counted by sender."""
    reasons = {
        MODEL_NOT_ALLOWED: f"the contract does not allow the model '{model}'",
        INPUT_NOT_ALLOWED: f"the contract does not let the model '{model}' be sent input of the kind '{modality}'",
        NO_VISION_MODEL: f"there is a user's image, and no model that takes images and may be used beside '{model}'",
    }
    return Denial(model, rule, reasons[rule], images_by_sender(messages), modality)


def _names(what: str, found: Iterable[object]) -> frozenset[str]:
    """A set of names; a lone text is refused, because it would be taken for the set of its letters."""
    named = [] if isinstance(found, (str, bytes)) else list(found)
    names = frozenset(name for name in named if isinstance(name, str) and name)
    if isinstance(found, (str, bytes)) or not all(isinstance(name, str) and name for name in named):
        raise ValueError(f"{what}: give a set of names, such as {{'text', 'image'}}")
    return names
