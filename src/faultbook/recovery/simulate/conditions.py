"""What an agent is shown instead of the observation it asked for. The world itself is never touched.

Source: arXiv 2610.00372, protocol (second reading): one observation is replaced, at 25 % of the undisturbed run's
actions, by the one before it, by the one before that, or by a fixed text that says it is unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultbook.errors import one_of
from faultbook.tables import ACTIONS, CONDITIONS

MISSING_TEXT = "Observation unavailable."
HIDDEN_TEXT = "The answer is hidden."  # what an ablated refresh shows
_STEPS_BACK = {"clean": 0, "stale1": 1, "stale2": 2}
LEAST_FORK = max(_STEPS_BACK.values())  # actions that the longest look back needs

CLEAN, STALE1, STALE2, MISSING = CONDITIONS
NONE, REFRESH, ABLATED_REFRESH, REPLAN = ACTIONS


def shown(condition: str, observations: Sequence[str]) -> str:
    """The text that the agent gets to read under a condition.

    Parameters
    ----------
    condition : str
        One of `faultbook.tables.CONDITIONS`.
    observations : sequence of str, shape (n,)
        What the world said: the opening text, then one text an action; the last is the one to be disturbed.

    Returns
    -------
    str
        The last observation ("clean"), the one one or two actions earlier ("stale1", "stale2"), or a fixed text
        ("missing").

    Raises
    ------
    ValueError
        If there is no such condition, or not enough history for it.
    """
    if condition not in CONDITIONS:
        raise ValueError(one_of("condition", condition, CONDITIONS))
    if condition == MISSING:
        return MISSING_TEXT
    back = _STEPS_BACK[condition]
    if len(observations) <= back:
        raise ValueError(f"'{condition}' needs {back + 1} observations; found {len(observations)}")
    return observations[-1 - back]
