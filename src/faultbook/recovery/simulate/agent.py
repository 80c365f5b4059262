"""A scripted agent for household tasks: it reads, believes what it reads, and acts on what it believes.

It is no language model and stands for none. It is a stand-in with known habits, by which the machinery of paired
branches can be tried on a real engine:

* It searches places in an order of its own, takes the first thing of the wanted kind that it sees, treats it if the
  task says so, and brings it where it is to go.
* It believes the text it is shown, even if it does not fit the command: told that it arrived at cabinet 1, it takes
  itself to be there. So a stale observation misleads it.
* Where nothing happens it tries again, a few times, then gives up on that place and goes on with the next. When it has
  given up on all, it forgets and starts over. How often it tries is its character, drawn from its seed: two in five
  agents are stubborn and try 5 to 8 times, the others once or twice.
* It takes some places that have no door for places that have one (a third of them, drawn from its seed) and tries to
  open them, in vain: undisturbed runs are not free of failed commands either.
* Of a missing observation it supposes that the command did what it should, and looks closer (``examine``) where it
  would have seen things. An answer that says nothing, and that it did not ask for, it passes over, unless nothing works
  just then: then it looks closer too.
* An answer of ``look`` that contradicts where it thinks it is sets it right, and so does one that comes while nothing
  works: it examines the place again.
* Told to plan anew, it forgets where it is, what it searched and what it gave up, and starts its search over; it only
  keeps what it carries.

With noise it does something else that is plausible now and then: another place, ``look``, ``inventory`` or ``examine``.
"""

from __future__ import annotations

import copy
import re
from typing import Self

import numpy as np

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.beliefs import THING, Beliefs
from faultbook.recovery.simulate.household import DEVICES, OPENABLE

STUBBORN_SHARE = 0.4
FEW_TRIES, MANY_TRIES = (1, 2), (5, 8)  # least and most, drawn evenly
MISJUDGED_SHARE = 1 / 3
_TASK = re.compile(r"put (?:a|an|some) (?:(hot|cool|clean) )?(\w+) (?:in|on) (\w+)")
_TREATMENTS = {"hot": "heat", "cool": "cool", "clean": "clean"}


def draw_tries(rng: np.random.Generator) -> int:
    """Draw how often an agent tries what does not work."""
    tries = MANY_TRIES if rng.random() < STUBBORN_SHARE else FEW_TRIES
    return int(rng.integers(*tries, endpoint=True))


class ScriptedAgent:
    """The scripted household agent.

    Parameters
    ----------
    noise : float
        Probability, at each command, of another one that is plausible.
    seed : int
        Of its character: the order in which it searches, how often it tries; and of its noise.
    """

    def __init__(self, noise: float = 0.0, seed: int = 0) -> None:
        self._noise, self._rng = noise, np.random.default_rng(seed)
        self._tries = draw_tries(self._rng)
        self._places: list[str] = []
        self._misjudged: set[str] = set()
        self._in_vain = False
        self._treatment: str | None = None
        self._target = self._destination = ""
        self._last, self._asked = "", False
        self.beliefs = Beliefs()

    def start(self, task_text: str, observation: str) -> None:
        """Begin a task: read what is wanted, and which places there are.

        Raises
        ------
        FaultbookError
            If the task is none that the agent understands.
        """
        wanted = _TASK.search(task_text)
        if wanted is None:
            raise FaultbookError(f"the scripted agent does not understand the task '{task_text}'")
        state, self._target, self._destination = wanted.groups()
        self._treatment = _TREATMENTS.get(state)
        places = THING.findall(observation.partition("Your task is to")[0])
        self._places = [places[number] for number in self._rng.permutation(len(places))]
        open_places = [place for place in self._places if place.rpartition(" ")[0] not in OPENABLE]
        self._misjudged = {place for place in open_places if self._rng.random() < MISJUDGED_SHARE}
        self.beliefs = Beliefs(treated=self._treatment is None)
        self._last, self._asked = "", False

    def copy(self, seed: int | None = None) -> Self:
        """An independent agent with the same beliefs."""
        other = copy.deepcopy(self)
        if seed is not None:
            other._rng = np.random.default_rng(seed)
        return other

    def replan(self) -> None:
        """Start the search over, with nothing but what it carries."""
        self.beliefs = Beliefs(held=self.beliefs.held, treated=self.beliefs.treated)

    # ---- reading ------------------------------------------------------------------------------------------------

    def observe(self, text: str) -> None:
        """Believe what a text says; if it says nothing, suppose that the last command did what it should."""
        asked, self._asked = self._asked, False
        if "Nothing happens." in text:
            self._nothing_happened()
            return
        if not self.beliefs.read(text):
            if not asked and not self.beliefs.failures:
                return
            self.beliefs.suppose(self._last)
        self.beliefs.failures = 0

    def _nothing_happened(self) -> None:
        """Try again, up to a point; then turn to another place, after a look into its own hands where a grip failed."""
        b = self.beliefs
        if self._in_vain:
            return
        b.failures += 1
        if b.failures < self._tries:
            return
        place = " ".join(self._last.split()[-2:])  # every command that can fail ends in a place
        b.given_up.add(place)
        b.failures, b.at = 0, None if b.at == place else b.at
        b.check = "inventory" if self._last.startswith("take ") else None

    # ---- acting -------------------------------------------------------------------------------------------------

    def act(self) -> str:
        """The next command."""
        command = self._choose()
        if self._noise and self._rng.random() < self._noise:
            command = self._other_than(command)
        self._last, self._asked = command, True
        return command

    def _other_than(self, command: str) -> str:
        choices = [f"go to {place}" for place in self._places if place not in self.beliefs.seen]
        choices += ["look", "inventory"] + ([f"examine {self.beliefs.at}"] if self.beliefs.at else [])
        choices = [choice for choice in choices if choice != command]
        return choices[self._rng.integers(len(choices))]

    def _choose(self) -> str:
        b, self._in_vain = self.beliefs, False
        check, b.check = b.check, None
        if check:
            return check
        if b.at in self._misjudged and b.at in b.seen:
            self._misjudged.remove(b.at)
            self._in_vain = True
            return f"open {b.at}"
        return self._deliver() if b.held else self._search()

    def _deliver(self) -> str:
        b = self.beliefs
        kind = self._destination if b.treated else DEVICES[self._treatment or ""]
        fit = [name for name in self._places if name.rpartition(" ")[0] == kind]
        if not fit:
            return "look"
        place = self._next_place(fit)
        if b.at != place:
            return f"go to {place}"
        if not b.treated:
            return f"{self._treatment} {b.held} with {place}"
        return f"open {place}" if place in b.closed else f"move {b.held} to {place}"

    def _next_place(self, places: list[str]) -> str:
        """Where it is, if that will do, else the first not given up; if all are, it tries all again."""
        b = self.beliefs
        if not set(places) - b.given_up:
            b.given_up -= set(places)
        open_to_try = [place for place in places if place not in b.given_up]
        return b.at if b.at in open_to_try else open_to_try[0]

    def _search(self) -> str:
        b = self.beliefs
        if b.at and b.at not in b.given_up:
            if thing := self._wanted(b.at):
                return f"take {thing} from {b.at}"
            if b.at in b.closed:
                return f"open {b.at}"
            if b.at not in b.seen:
                return f"examine {b.at}"
        for place in self._places:
            if place not in b.given_up and (place not in b.seen or self._wanted(place)):
                return f"go to {place}"
        b.seen, b.given_up = {}, set()
        return "inventory"

    def _wanted(self, place: str) -> str | None:
        things = self.beliefs.seen.get(place, set())
        wanted = sorted(thing for thing in things if thing.rpartition(" ")[0] == self._target)
        return wanted[0] if wanted else None
