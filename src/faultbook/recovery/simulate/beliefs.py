"""What the household agent takes to be so, and how it reads that out of ALFWorld's texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from faultbook.recovery.simulate.household import DEVICES

THING = re.compile(r"\ban? (\w+ \d+)")
_PLACE = r"(\w+ \d+)"
_ARRIVED = re.compile(rf"You arrive at {_PLACE}\.")
_FACING = re.compile(rf"You are facing the {_PLACE}\.")
_CONTENTS = re.compile(rf"(?:On the {_PLACE}|The {_PLACE} is open\. In it), you see ([^.]*)\.")
_CLOSED = re.compile(rf"The {_PLACE} is closed\.")
_TAKEN = re.compile(rf"You pick up the {_PLACE} from the {_PLACE}\.")
_MOVED = re.compile(rf"You move the {_PLACE} to the {_PLACE}\.")
_TREATED = re.compile(rf"You (?:heat|cool|clean) the {_PLACE} using the {_PLACE}\.")
_CARRYING = re.compile(r"You are carrying: an? (\w+ \d+)\.")


@dataclass(slots=True)
class Beliefs:
    """What the agent takes to be so.

    Attributes
    ----------
    at : str or None
        Where it is; None in the middle of the room.
    seen : dict of str to set of str
        What is in a place, for places whose contents it has read.
    closed : set of str
        Places that it has read to be closed, and not opened since.
    given_up : set of str
        Places where nothing worked.
    held : str or None
        What it carries.
    treated : bool
        Whether the thing is hot, cool or clean, as the task wants it.
    failures : int
        How often in a row nothing happened.
    check : str or None
        A command by which to make sure before anything else.
    """

    at: str | None = None
    seen: dict[str, set[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    held: str | None = None
    treated: bool = False
    failures: int = 0
    check: str | None = None

    def read(self, text: str) -> bool:
        """Believe what a text says; whether it says anything."""
        return any([self._read_place(text), self._read_contents(text), self._read_doings(text)])

    def _read_place(self, text: str) -> bool:
        if match := _FACING.search(text):
            if match[1] != self.at or self.failures:
                self.check = f"examine {match[1]}"
            self.at, self.failures = match[1], 0
            return True
        if match := _ARRIVED.search(text):
            self.at = match[1]
            return True
        if "middle of a room" in text:
            self.at = None
            return True
        return False

    def _read_contents(self, text: str) -> bool:
        if match := _CONTENTS.search(text):
            place = match[1] or match[2]
            self.at, self.seen[place] = place, set(THING.findall(match[3]))
            self.closed.discard(place)
            self.given_up.discard(place)
            return True
        if match := _CLOSED.search(text):
            self.at = match[1]
            self.closed.add(match[1])
            self.seen.pop(match[1], None)
            return True
        return False

    def _read_doings(self, text: str) -> bool:
        if match := _TAKEN.search(text):
            self.held, self.at = match.groups()
            self.seen.get(self.at or "", set()).discard(match[1])
        elif match := _MOVED.search(text):
            self.held, self.at = None, match[2]
        elif match := _TREATED.search(text):
            self.treated, self.at = True, match[2]
        elif match := _CARRYING.search(text):
            self.held = match[1]
        elif "You are not carrying anything." in text:
            self.held = None
        else:
            return False
        return True

    def suppose(self, command: str) -> None:
        """Suppose that a command did what it should, and plan to look closer where it would have shown things."""
        verb, _, rest = command.partition(" ")
        if verb == "go":
            self.at = rest.removeprefix("to ")
            self.check = f"examine {self.at}"
        elif verb == "open":
            self.closed.discard(rest)
            self.check = f"examine {rest}"
        elif verb == "take":
            self.held = rest.partition(" from ")[0]
        elif verb in DEVICES:
            self.treated = True
