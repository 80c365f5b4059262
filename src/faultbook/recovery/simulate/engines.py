"""The engines by name. None is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from faultbook.errors import FaultbookError, one_of
from faultbook.recovery.simulate.alfworld import AlfworldEngine
from faultbook.recovery.simulate.protocol import Engine
from faultbook.recovery.simulate.textworld import TextworldEngine

ENGINES: dict[str, Callable[..., Engine]] = {"alfworld": AlfworldEngine, "textworld": TextworldEngine}


def engine_named(name: str, noise: float = 0.0) -> Engine:
    """The engine with this name and its scripted agent.

    Parameters
    ----------
    name : str
        "alfworld" or "textworld".
    noise : float
        How often the agent does something else than it would, in [0, 1).

    Raises
    ------
    FaultbookError
        If there is no such engine, or the noise is out of its range.
    """
    if name not in ENGINES:
        raise FaultbookError(one_of("engine", name, tuple(ENGINES)))
    return ENGINES[name](noise=noise)
