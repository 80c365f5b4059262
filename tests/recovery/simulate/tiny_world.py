"""A world small enough to reckon with by hand: boxes in a row, a key in one of them."""

from __future__ import annotations

import copy
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from faultbook.recovery.simulate.features import Vocabulary

VOCABULARY = Vocabulary(
    no_op=r"^Nothing happens",
    expected=((r"open (box \d+)", r"^The {0} "), (r"look", r"^You kneel at the box \d+")),
    milestones=(r"holds the key",),
)


@dataclass(frozen=True)
class Boxes:
    task_id: str
    n_boxes: int
    key: int
    text: str = "take the key"


class TinyWorld:
    """Each box opens once; what was opened last is what "look" tells of and "take key" takes from."""

    def __init__(self, task: Boxes, pause: float = 0.0) -> None:
        time.sleep(pause)
        self.task, self.open = task, set[int]()
        self.at: int | None = None
        self.observation = ""
        self.closed = False

    @property
    def admissible_commands(self) -> list[str]:
        boxes = [f"open box {n}" for n in range(self.task.n_boxes) if n not in self.open]
        return sorted([*boxes, "look", *(["take key"] if self.at == self.task.key else [])])

    def reset(self) -> str:
        self.open, self.at = set(), None
        self.observation = f"There are {self.task.n_boxes} boxes."
        return self.observation

    def step(self, command: str) -> tuple[str, bool]:
        won, self.observation = False, "Nothing happens."
        if command not in self.admissible_commands:
            return self.observation, won
        if command == "look":
            self.observation = f"You kneel at the box {self.at}." if self.at is not None else "You stand."
        elif command == "take key":
            self.observation, won = "You take the key.", True
        else:
            self.at = int(command.split()[-1])
            self.open.add(self.at)
            self.observation = f"The box {self.at} {'holds the key' if self.at == self.task.key else 'is empty'}."
        return self.observation, won

    def state_hash(self) -> str:
        return f"{sorted(self.open)} {self.at}"

    def branch(self) -> Self:
        return copy.deepcopy(self)

    def close(self) -> None:
        assert not self.closed, "a world is closed once"
        self.closed = True


class ForgetfulWorld(TinyWorld):
    """A world whose branches are not exact."""

    def branch(self) -> Self:
        other = copy.deepcopy(self)
        other.open.discard(min(other.open, default=0))
        return other


class TinyAgent:
    """Opens box after box and believes what it reads; where it read of the key, it takes it."""

    def __init__(self, noise: float, seed: int) -> None:
        self.noise, self.rng = noise, np.random.default_rng(seed)
        self.done, self.key, self.n, self.last = set[int](), False, 0, ""
        self.read: list[str] = []

    def start(self, task_text: str, observation: str) -> None:
        self.n = int(re.findall(r"\d+", observation)[0])
        self.read.append(observation)

    def act(self) -> str:
        left = [n for n in range(self.n) if n not in self.done]
        if self.key:
            self.last = "take key"
        elif not left:
            self.done.clear()
            self.last = "look"
        elif self.noise and self.rng.random() < self.noise:
            self.last = f"open box {self.rng.choice(left)}"
        else:
            self.last = f"open box {left[0]}"
        return self.last

    def observe(self, text: str) -> None:
        self.read.append(text)
        if match := re.match(r"The box (\d+) (is empty|holds the key)", text):
            self.done.add(int(match[1]))
            self.key = match[2] == "holds the key"
        elif "Nothing happens" in text:
            self.key = False
            if match := re.match(r"open box (\d+)", self.last):
                self.done.add(int(match[1]))

    def replan(self) -> None:
        self.done.clear()

    def copy(self, seed: int | None = None) -> Self:
        other = copy.deepcopy(self)
        if seed is not None:
            other.rng = np.random.default_rng(seed)
        return other


@dataclass(frozen=True)
class TinyEngine:
    """Task number i has 3 + i % 7 boxes, the key in the last; the first of seven is over at once if `short`."""

    noise: float = 0.0
    pause: float = 0.0  # seconds a task takes, so that a test can stop a run in the middle
    short: bool = False
    world: type[TinyWorld] = TinyWorld
    log: str = ""  # a folder that gets a file for each task that is begun
    name: str = "tiny"
    source: str = "tiny world, tiny agent"
    query: str = "look"
    action_limit: int = 9
    max_slack: int = 4

    def settings(self) -> dict[str, str | int | float]:
        return {"engine": self.name, "noise": self.noise, "short": self.short}

    def check(self) -> None:
        """It is always there."""

    def task(self, index: int, seed: int) -> Boxes:
        if self.log:
            Path(self.log, f"{index}-{time.monotonic_ns()}").touch()
        time.sleep(self.pause)
        n_boxes = 1 if self.short and index % 7 == 0 else 3 + index % 7
        return Boxes(f"tiny-{seed}-{index}", n_boxes, n_boxes - 1)

    def environment(self, task: Any) -> TinyWorld:
        return self.world(task)

    def agent(self, task: Any, seed: int) -> TinyAgent:
        return TinyAgent(self.noise, seed)

    def vocabulary(self, task: Any) -> Vocabulary:
        return VOCABULARY
