"""Household tasks of ALFWorld's kind, made up from a seed: a kitchen, things in it, one thing to do.

The generator
    Kinds of task: put a thing somewhere, or heat, cool or clean it first; all four equally likely. The kitchen has one
    fridge, microwave, sink basin, dining table and garbage can, and a drawn number of cabinets, drawers, countertops,
    shelves and stove burners. The thing's kind, and the kind of place it is to go to, are drawn; one or two things of
    that kind and six to nine others stand about, each in a place drawn from all, but none of the wanted kind where
    putting it would be no task, nor in the device that would treat it. Drawn evenly throughout.

The official instances are not used, and nothing here is taken from them but the kinds of task and the words of the
domain that ALFWorld's package ships.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faultbook.recovery.simulate.features import Vocabulary

KINDS = ("place", "heat", "cool", "clean")
DEVICES = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
OPENABLE = ("cabinet", "drawer", "fridge", "microwave")
STATES = {"place": "", "heat": "hot ", "cool": "cool ", "clean": "clean "}
_GOALS = {"place": "", "heat": "(isHot ?o)", "cool": "(isCool ?o)", "clean": "(isClean ?o)"}
_COUNTS = {  # how many there may be, least and most
    "cabinet": (3, 6),
    "drawer": (2, 4),
    "countertop": (1, 3),
    "shelf": (1, 3),
    "stoveburner": (0, 2),
    "diningtable": (1, 1),
    "fridge": (1, 1),
    "microwave": (1, 1),
    "sinkbasin": (1, 1),
    "garbagecan": (1, 1),
}
_DESTINATIONS = ("cabinet", "countertop", "diningtable", "drawer", "garbagecan", "shelf")
_OBJECTS = ("apple", "bowl", "bread", "cup", "egg", "lettuce", "mug", "pan", "plate", "potato", "spoon", "tomato")
_TARGETS = ("apple", "bowl", "cup", "egg", "lettuce", "mug", "plate", "potato", "tomato")


@dataclass(frozen=True, slots=True)
class HouseholdTask:
    """One task: what to do, in which kitchen.

    Attributes
    ----------
    receptacles : tuple of str
        Names such as "cabinet 1".
    objects : tuple of (str, str)
        A name such as "mug 1", and the receptacle it is in.
    """

    task_id: str
    kind: str
    target: str
    destination: str
    receptacles: tuple[str, ...]
    objects: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """What the agent is told, in ALFWorld's words."""
        return f"put a {STATES[self.kind]}{self.target} in {self.destination}"


def kind_of(name: str) -> str:
    """The kind of a receptacle or object: "cabinet" of "cabinet 1"."""
    return name.rpartition(" ")[0]


def make_household_task(index: int, seed: int) -> HouseholdTask:
    """Make the task with this number: the same for the same seed and number."""
    rng = np.random.default_rng([seed, index])
    receptacles = tuple(
        f"{kind} {number + 1}"
        for kind, (least, most) in _COUNTS.items()
        for number in range(rng.integers(least, most + 1))
    )
    task = KINDS[rng.integers(len(KINDS))]
    target = _TARGETS[rng.integers(len(_TARGETS))]
    destination = _DESTINATIONS[rng.integers(len(_DESTINATIONS))]
    unfit = {destination, DEVICES.get(task, destination)}
    fit = [name for name in receptacles if kind_of(name) not in unfit]
    objects = [(f"{target} {number + 1}", fit[rng.integers(len(fit))]) for number in range(rng.integers(1, 3))]
    others = [kind for kind in _OBJECTS if kind != target]
    for place in rng.permutation(len(others))[: rng.integers(6, 10)]:
        objects += [(f"{others[place]} 1", receptacles[rng.integers(len(receptacles))])]
    return HouseholdTask(f"household-{seed}-{index:05d}", task, target, destination, receptacles, tuple(objects))


def pddl_problem(task: HouseholdTask) -> str:
    """Write the task as a problem of ALFWorld's planning domain, `alfred`.

    Types that the domain's actions name outright must be declared, each once, and names do not heed case:
    ``microwaveType`` already is the domain's ``MicrowaveType``.
    """
    places = {name: name.replace(" ", "_") for name in task.receptacles}
    things = {name: name.replace(" ", "_") for name, _ in task.objects}
    place_kinds = sorted({kind_of(name) for name in places})
    thing_kinds = sorted({kind_of(name) for name in things})
    facts = ["(atLocation agent1 loc_0)", "(= (total-cost) 0)"]
    for name, place in places.items():
        facts += [f"(receptacleAtLocation {place} loc_{place})", f"(receptacleType {place} {kind_of(name)}Type)"]
        facts += [f"(openable {place})"] if kind_of(name) in OPENABLE else []
    for name, at in task.objects:
        thing, place = things[name], places[at]
        facts += [f"(objectType {thing} {kind_of(name)}OType)"]
        facts += [f"(inReceptacle {thing} {place})", f"(objectAtLocation {thing} loc_{place})"]
        facts += [f"({able} {thing})" for able in ("pickupable", "heatable", "coolable", "cleanable")]
    facts += [f"(canContain {place}Type {thing}OType)" for place in place_kinds for thing in thing_kinds]
    return f"""(define (problem household) (:domain alfred)
(:objects agent1 - agent
 {" ".join(places.values())} - receptacle
 {" ".join(things.values())} - object
 loc_0 {" ".join(f"loc_{place}" for place in places.values())} - location
 {" ".join(f"{kind}Type" for kind in place_kinds)} - rtype
 {" ".join(f"{kind}OType" for kind in thing_kinds)} KnifeType ButterKnifeType - otype)
(:init {" ".join(facts)})
(:goal (exists (?r - receptacle ?o - object) (and (inReceptacle ?o ?r) (objectType ?o {task.target}OType)
 (receptacleType ?r {task.destination}Type) {_GOALS[task.kind]})))
(:metric minimize (total-cost)))"""


def household_vocabulary(task: HouseholdTask) -> Vocabulary:
    """How ALFWorld's texts are read for features of a household task.

    Milestones: the thing is seen, it is picked up, it is treated (if it is to be).
    """
    thing = rf"{task.target} \d+"
    treated = (rf"You {task.kind} the {thing}",) if task.kind in DEVICES else ()
    return Vocabulary(
        no_op=r"^Nothing happens\.",
        expected=(
            (r"go to (.+)", r"^You arrive at {0}\."),
            (r"open (.+)", r"^You open the {0}\."),
            (r"take (.+) from (.+)", r"^You pick up the {0} from the {1}\."),
            (r"move (.+) to (.+)", r"^You move the {0} to the {1}\."),
            (r"(heat|cool|clean) (.+) with (.+)", r"^You {0} the {1} using the {2}\."),
            (r"examine (.+)", r"\b{0}\b"),
            (r"look", r"^You are "),
            (r"inventory", r"^You are (?:not )?carrying"),
        ),
        milestones=(rf"(?:On|In) [^.]*\b{thing}", rf"You pick up the {thing}", *treated),
    )
