"""ALFWorld's own engine under household tasks made here: the planner's world and the grammar's text, unchanged.

The engine is `textworld.envs.pddl.PddlEnv` with the domain (`alfred.pddl`) and the grammar (`alfred.twl2`) that the
package `alfworld` ships. It cannot be copied, so a branch is another engine that is given the same task and the same
commands; the caller compares state hashes. What the engine computes over and over is kept:

* The translation of a problem (0.3 s), which depends on domain and problem alone.
* The parse of an expression of the grammar, which depends on its text alone.
* The command text of a ground action. It is derived from facts that no action changes (which receptacle is where).
* The names in a derivation's context are copied flat, not deep: nothing alters them.

Text, commands and goal stay what the stock engine gives; the tests hold both against each other on random walks.
Measured on one core: 28 actions a second with the stock class, 890 with these caches.

A refresh is ``look``, as in the paper. Mark that in this grammar ``look`` at a receptacle says where one stands and
what lies beside it (nothing, ever), not what is in it: that takes ``examine``, which an agent may do of its own accord.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.agent import ScriptedAgent
from faultbook.recovery.simulate.extras import engine_folder, engine_module, package_versions
from faultbook.recovery.simulate.features import Vocabulary
from faultbook.recovery.simulate.household import (
    HouseholdTask,
    household_vocabulary,
    make_household_task,
    pddl_problem,
)

EXTRA = "alfworld"
# Chosen by trying out tasks of seed 0. With these, 145 of its first 168 undisturbed runs succeed (86 %), a refresh at
# once rescues three in ten of the tasks under "stale2", and harms one in twenty under "clean".
ACTION_LIMIT, MAX_SLACK = 28, 8
_SPARE_ENGINES = 4  # kept loaded in a process: each holds a copy of the planner's library
_KEPT_TRANSLATIONS = 8  # a task needs two
_KEPT_PARSES = 512
_spare: list[tuple[HouseholdTask, Any]] = []


class AlfworldEnvironment:
    """A household on ALFWorld's engine.

    Parameters
    ----------
    task : HouseholdTask
        What is to be done, and where things are.
    """

    def __init__(self, task: HouseholdTask) -> None:
        self.task = task
        self._engine = _engine_with(task)
        self._commands: list[str] = []
        self._state: Any = None

    @property
    def observation(self) -> str:
        """The text of the last `reset` or `step`."""
        return str(self._state.feedback)

    @property
    def admissible_commands(self) -> list[str]:
        """Commands that the engine understands now, sorted."""
        return list(self._state.admissible_commands)

    def reset(self) -> str:
        """Start anew and return the opening text, which holds the task."""
        self._commands = []
        self._state = self._engine.reset()
        return self.observation

    def step(self, command: str) -> tuple[str, bool]:
        """Carry out a command; a command that is not admissible changes nothing, and the text says so."""
        self._commands.append(command)
        self._state, _, _ = self._engine.step(command)
        return self.observation, bool(self._state.won)

    def state_hash(self) -> str:
        """SHA-256 of the sorted facts of the world, the first 32 hexadecimal digits."""
        facts = sorted(str(fact) for fact in self._state["_facts"])
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]

    def branch(self) -> Self:
        """Another engine, brought to the same state by the same commands."""
        other = type(self)(self.task)
        other.reset()
        for command in self._commands:
            other.step(command)
        return other

    def close(self) -> None:
        """Keep the engine for the next world in this process."""
        engine, self._engine, self._state = self._engine, None, None
        if engine is not None and len(_spare) < _SPARE_ENGINES:
            _spare.append((self.task, engine))


@dataclass(frozen=True, slots=True)
class AlfworldEngine:
    """Household tasks on ALFWorld's engine with the scripted household agent.

    Parameters
    ----------
    noise : float
        How often the agent does something else that is plausible, in [0, 1); 0 makes it deterministic.
    """

    noise: float = 0.0
    name: str = field(default="alfworld", init=False)
    query: str = field(default="look", init=False)
    action_limit: int = field(default=ACTION_LIMIT, init=False)
    max_slack: int = field(default=MAX_SLACK, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 1:
            raise FaultbookError(f"noise is {self.noise}; give at least 0 and less than 1")

    @property
    def source(self) -> str:
        """What made an episode."""
        return "alfworld engine, scripted agent" + (f" with noise {self.noise:g}" if self.noise else "")

    def settings(self) -> dict[str, str | int | float]:
        """What decides the episodes, apart from seed and number of tasks."""
        limits = {"action_limit": self.action_limit, "max_slack": self.max_slack}
        versions = package_versions("alfworld", "textworld", "fast-downward-textworld")
        return {"engine": self.name, "query": self.query, "noise": self.noise, **limits, **versions}

    def check(self) -> None:
        """Make sure that alfworld, textworld and the planner are installed."""
        _texts()
        _logic()

    def task(self, index: int, seed: int) -> HouseholdTask:
        """Household task number `index`."""
        return make_household_task(index, seed)

    def environment(self, task: Any) -> AlfworldEnvironment:
        """A world for the task."""
        return AlfworldEnvironment(task)

    def agent(self, task: Any, seed: int) -> ScriptedAgent:
        """The scripted household agent; it knows nothing of the task but what it is told."""
        return ScriptedAgent(noise=self.noise, seed=seed)

    def vocabulary(self, task: Any) -> Vocabulary:
        """How ALFWorld's texts are read."""
        return household_vocabulary(task)


def _engine_with(task: HouseholdTask) -> Any:
    """A spare engine that has the task loaded, else any spare one, else a new one."""
    for place, (loaded, engine) in enumerate(_spare):
        if loaded == task:
            del _spare[place]
            return engine
    engine = _spare.pop()[1] if _spare else _new_engine()
    _load(engine, task)
    return engine


def _load(engine: Any, task: HouseholdTask) -> None:
    domain, grammar = _texts()
    data = {"pddl_domain": domain, "grammar": grammar.replace("UNKNOWN GOAL", task.text)}
    engine.load({**data, "pddl_problem": pddl_problem(task)})
    for entity in engine._entity_infos.values():
        entity.name = entity.id.replace("_", " ")
    engine._logic.grammar.derive = _remembering_commands(engine._logic.grammar.derive)


def _remembering_commands(derive: Callable[..., str]) -> Callable[..., str]:
    """Derive the command template of a ground action once; feedback ("#…#") tells of the state, so it is never kept."""
    kept: dict[tuple[str, ...], str] = {}

    def derived(start: str, context: dict[str, Any]) -> str:
        if start.startswith("#"):
            return derive(start, context)
        key = (start, *(variable.name for variable in context["mapping"].values()))
        if key not in kept:
            kept[key] = derive(start, context)
        return kept[key]

    return derived


def _new_engine() -> Any:
    textworld = engine_module("textworld", EXTRA)
    _logic()
    return engine_module("textworld.envs.pddl", EXTRA).PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True))


@functools.cache
def _texts() -> tuple[str, str]:
    """Domain and grammar as ALFWorld's package ships them."""
    # alfworld.info, which knows these places, makes a folder in the user's home when it is imported
    data = engine_folder("alfworld", EXTRA) / "data"
    return (data / "alfred.pddl").read_text("utf-8"), (data / "alfred.twl2").read_text("utf-8")


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    """A derivation adds to its context but never alters what stands in it, so a flat copy does where a deep one was."""
    return {**context, "variables": {**context["variables"]}, "mapping": {**context["mapping"]}}


@functools.cache
def _logic() -> Any:
    """The engine's module of logic, with translation and parses remembered from now on in this process."""
    engine_module("fast_downward", EXTRA)
    logic = engine_module("textworld.envs.pddl.logic", EXTRA)
    textgen = engine_module("textworld.envs.pddl.textgen", EXTRA)
    planner, rule, parse = logic.fast_downward, textgen.Rule, textgen._parse_and_convert

    @functools.lru_cache(_KEPT_TRANSLATIONS)
    def translate(domain: str, problem: str, *, verbose: bool = False, optimize: bool = False) -> Any:
        arguments = sys.argv  # the translator overwrites them
        try:
            return planner.pddl2sas(domain, problem, verbose=verbose, optimize=optimize)
        finally:
            sys.argv = arguments

    @functools.lru_cache(_KEPT_PARSES)
    def parsed(text: str, rule_name: str) -> Any:
        return parse(text, rule_name=rule_name)

    names = {name: getattr(planner, name) for name in dir(planner) if not name.startswith("_")}
    logic.fast_downward = SimpleNamespace(**{**names, "pddl2sas": translate})
    query = functools.lru_cache(_KEPT_PARSES)(rule.parse_conjunctive_query)
    textgen.Rule = SimpleNamespace(parse_conjunctive_query=query)
    # Symbols take up their context as they are derived, so every derivation needs symbols of its own.
    textgen.copy_context = _copy_context
    textgen._parse_and_convert = lambda text, rule_name, trace=False: copy.deepcopy(parsed(text, rule_name))
    return logic
