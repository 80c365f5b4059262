"""Several prompts one after the other, none after one that did not complete, with one exit status for the program."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple, TypeVar

from faultbook.errors import Signalled
from faultbook.runtime.termination import Clock, Observation, classify
from faultbook.runtime.verdict import Verdict, verdict_on

__all__ = ["NO_PROMPT", "Prompts", "Signalled", "ending_on_signals", "run_prompts"]

NO_PROMPT = 2


class Prompts(NamedTuple):
    """What became of several prompts: the program's exit status, the verdicts, and how many were not started."""

    exit_code: int
    verdicts: tuple[Verdict, ...]
    not_started: int


_Prompt = TypeVar("_Prompt")


def run_prompts(prompts: Iterable[_Prompt], run_one: Callable[[_Prompt], Verdict]) -> Prompts:
    """Work on prompts one after the other, and start none after one that did not complete.

    Parameters
    ----------
    prompts : iterable
        Blank texts are no prompts.
    run_one : callable
        Works on one prompt to its end and gives its verdict. Its exceptions are the caller's, but for `Signalled`,
        which ends the prompt as that signal.

    Returns
    -------
    Prompts
    """
    asked = [prompt for prompt in prompts if not isinstance(prompt, str) or prompt.strip()]
    if not asked:
        return Prompts(NO_PROMPT, (), 0)
    verdicts: list[Verdict] = []
    started = 0
    try:
        for started, prompt in enumerate(asked, start=1):  # noqa: B007  # counted for what is not started
            verdicts.append(run_one(prompt))
            if verdicts[-1].exit_code:
                break
    except Signalled as signalled:
        ended = classify(Observation(None, signal=signalled.name), Clock())
        verdicts.append(verdict_on(ended))
    return Prompts(verdicts[-1].exit_code, tuple(verdicts), len(asked) - started)


@contextmanager
def ending_on_signals(names: Iterable[str] = ("SIGTERM", "SIGHUP")) -> Iterator[None]:
    """Turn signals into `Signalled`, so that what is under way is cleaned up and `run_prompts` gives their status.

    Only the first is raised; those that follow are ignored until this context is left, so that they do not break off
    the cleaning up. A signal that is ignored already, as SIGHUP is under nohup, stays so. For the main thread only, as
    Python handles signals there, and not for event loops, which have their own way with signals.

    Raises
    ------
    ValueError
        In another thread.
    """
    ends = [signals.Signals[name] for name in names]
    former = {end: signals.getsignal(end) for end in ends}
    handled = [end for end in ends if former[end] != signals.SIG_IGN]

    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        # A handler that does nothing, not SIG_IGN: programs that are started for cleaning up would inherit that.
        received.append(number)
        if len(received) == 1:
            raise Signalled(signals.Signals(number).name)

    try:
        for each in handled:
            signals.signal(each, end)
        yield
    finally:
        for each in handled:
            signals.signal(each, former[each] or signals.SIG_DFL)
