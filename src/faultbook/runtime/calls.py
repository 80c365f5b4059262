"""One request of a model: routed, checked, projected, recorded and bounded in time, whoever carries it out.

This module knows no provider. The caller passes what sends a request and hands back what came of it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faultbook.runtime.contract import Contract, Denied, check
from faultbook.runtime.deadline import Deadline
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.provider_input import Capabilities, project
from faultbook.runtime.routing import route

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider answered; whatever it did not say is missing.

    Attributes
    ----------
    message : mapping
        The answer, as the conversation goes on with it.
    usage : Usage or None
        Tokens and cost as the provider reported them.
    finish_reasons, model, response_id
        Likewise.
    error_type : str or None
        If the answer is an error of the provider's, its name.
    """

    message: Message
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] | None = None
    model: str | None = None
    response_id: str | None = None
    error_type: str | None = None


Send = Callable[[str, Sequence[Any], float | None], Answer]


@dataclass(frozen=True, slots=True)
class Called:
    """A request that was answered: the answer, the model that was asked, and what it was not shown."""

    request_id: str
    model: str
    answer: Answer
    omitted_tool_images: int


@dataclass(frozen=True, slots=True)
class Caller:
    """Sends the requests of one attempt at a trial.

    Attributes
    ----------
    send : callable
        Takes the model's id, the messages, and the seconds that are left (None: any); returns an `Answer`.
    default, vision : Capabilities
        The model that was chosen, and the one for images, if there is one.
    run_id, trial_id, attempt
        Whose requests these are: every record of them says so.
    contract : Contract, optional
        What may be sent to whom.
    ledger : Ledger, optional
        Takes every request; one that cannot be recorded is sent all the same (`Ledger.evidence`).
    deadline : Deadline, optional
        Its time for the model bounds each request.
    operation, provider : str, optional
        For the record.
    clock : callable
        Monotonic seconds, for the moment of a denial.
    """

    send: Send
    default: Capabilities
    run_id: str
    trial_id: str
    attempt: int
    vision: Capabilities | None = None
    contract: Contract | None = None
    ledger: Ledger | None = None
    deadline: Deadline | None = None
    operation: str = "chat"
    provider: str | None = None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def call(self, messages: Sequence[Message]) -> Called:
        """Send a conversation.

        Parameters
        ----------
        messages : sequence of dict
            As they are kept; they are not changed.

        Returns
        -------
        Called

        Raises
        ------
        Denied
            If the contract forbids it: nothing was sent, and the ledger says so.
        DeadlineExceeded
            If no time is left for the model: nothing was sent.
        Exception
            Whatever `send` raised; the request is then unsettled in the ledger, for nobody knows what became of it.
        """
        if self.deadline is not None:
            self.deadline.check("model")
        request_id = secrets.token_hex(8)
        chosen = route(messages, self.default, self.vision, self.contract)
        model = chosen.model or self.default
        shown, omitted = project(messages, model, self.contract)
        forbidden = chosen.denial or (check(self.contract, model.model, shown) if self.contract else None)
        self._record(
            "start",
            request_id,
            model=model.model,
            operation=self.operation,
            provider=self.provider,
            omitted_tool_images=omitted,
        )
        if forbidden is not None:
            self._record("deny", request_id, denial=forbidden)
            raise Denied(forbidden.stamped(self.run_id, self.clock()))
        try:
            left = None if self.deadline is None else self.deadline.remaining("model")
            answer = self.send(model.model, shown, left)
        except BaseException as error:
            self._record("unsettle", request_id, reason=type(error).__name__)
            raise
        self._record(
            "complete",
            request_id,
            usage=answer.usage,
            finish_reasons=answer.finish_reasons,
            response_model=answer.model,
            response_id=answer.response_id,
            error_type=answer.error_type,
        )
        return Called(request_id, model.model, answer, omitted)

    def _record(self, event: str, request_id: str, **what: Any) -> None:
        if self.ledger is not None:
            getattr(self.ledger, event)(self.run_id, self.trial_id, self.attempt, request_id, **what)
