"""Tasks that are made up are tasks, and the planner's text says what they say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.recovery.simulate.agent import ScriptedAgent
from faultbook.recovery.simulate.household import DEVICES, KINDS, kind_of, make_household_task, pddl_problem

TASKS = st.builds(make_household_task, st.integers(0, 10_000), st.integers(0, 2**40))


@given(TASKS)
def test_nothing_is_done_already(task) -> None:
    wanted = [at for name, at in task.objects if kind_of(name) == task.target]
    assert 1 <= len(wanted) <= 2
    assert all(kind_of(at) not in (task.destination, DEVICES.get(task.kind)) for at in wanted)
    assert {at for _, at in task.objects} <= set(task.receptacles)
    assert task.destination in map(kind_of, task.receptacles)
    assert len(dict(task.objects)) == len(task.objects)
    assert len(set(task.receptacles)) == len(task.receptacles)


@given(TASKS)
def test_the_problem_declares_each_name_once(task) -> None:
    problem = pddl_problem(task)
    assert problem.count("(") == problem.count(")")
    objects = problem.partition("(:objects")[2].partition("(:init")[0]
    names = [word.lower() for word in re.findall(r"[\w]+", re.sub(r"- \w+", "", objects))]
    assert len(names) == len(set(names))  # names of the planner do not heed case
    assert {"microwavetype", "fridgetype", "sinkbasintype", "knifetype", "butterknifetype"} <= set(names)
    for name, at in task.objects:
        assert f"(inReceptacle {name.replace(' ', '_')} {at.replace(' ', '_')})" in problem


@given(TASKS)
def test_the_agent_understands_it(task) -> None:
    agent = ScriptedAgent()
    agent.start(task.text, "You see a cabinet 1.")
    assert (agent._target, agent._destination) == (task.target, task.destination)
    assert agent._treatment == (task.kind if task.kind in DEVICES else None)


def test_number_and_seed_decide() -> None:
    assert make_household_task(3, 0) == make_household_task(3, 0)
    assert make_household_task(3, 0) != make_household_task(4, 0)
    assert make_household_task(3, 0).objects != make_household_task(3, 1).objects


def test_kinds_are_about_equally_often() -> None:
    kinds = [make_household_task(index, 0).kind for index in range(2_000)]
    for kind in KINDS:
        assert kinds.count(kind) == pytest.approx(500, abs=5 * (2_000 * 0.25 * 0.75) ** 0.5)
