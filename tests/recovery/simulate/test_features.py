"""Features of hand-made histories, and what no feature may depend on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.recovery.simulate.features import CONTEXT_CHARACTERS, FEATURES, WINDOW, Turn, Vocabulary, features
from faultbook.tables import FEATURE_PREFIX

VOCABULARY = Vocabulary(
    no_op=r"^Nothing happens",
    expected=((r"go to (.+)", r"arrive at {0}\."), (r"take (.+) from (.+)", r"pick up the {0} from the {1}")),
    milestones=(r"you see [^.]*mug", r"You pick up the mug", r"You heat the mug"),
)
OPENING = "You are in a room."
GO = Turn("go to shelf 1", "You arrive at shelf 1. On it you see a mug 1.")
TAKE = Turn("take mug 1 from shelf 1", "You pick up the mug 1 from the shelf 1.")
VAIN = Turn("open shelf 1", "Nothing happens.")
STALE = Turn("take mug 1 from shelf 1", GO.observation)


def of(*turns: Turn, opening: str = OPENING) -> dict[str, float]:
    return {name.removeprefix(FEATURE_PREFIX): value for name, value in features(opening, turns, VOCABULARY).items()}


def test_before_the_first_action() -> None:
    assert of() == {
        "action_repetition": 0,
        "no_ops": 0,
        "observation_novelty": 0,
        "action_observation_consistency": 1,
        "progress": 0,
        "budget_left": 1 - len(OPENING) / CONTEXT_CHARACTERS,
        "steps": 0,
    }


def test_repetition_counts_different_commands_among_the_last_five() -> None:
    assert of(GO, TAKE)["action_repetition"] == 0
    assert of(GO, VAIN, VAIN, VAIN)["action_repetition"] == pytest.approx(1 - 2 / 4)
    assert of(VAIN, VAIN, VAIN, VAIN, VAIN)["action_repetition"] == pytest.approx(1 - 1 / 5)
    distinct = [Turn(f"go to shelf {n}", f"text {n}") for n in range(WINDOW)]
    assert of(VAIN, VAIN, VAIN, *distinct)["action_repetition"] == 0


def test_no_ops_are_said_or_repeated() -> None:
    assert of(GO, TAKE)["no_ops"] == 0
    assert of(GO, VAIN)["no_ops"] == pytest.approx(1 / 2)
    assert of(GO, STALE)["no_ops"] == pytest.approx(1 / 2)  # the same text again
    assert of(GO, TAKE, STALE)["no_ops"] == 0  # an older text again is no repetition of the last
    assert of(Turn("look", OPENING))["no_ops"] == 1


def test_novelty_is_one_less_the_nearest_earlier_text() -> None:
    # words of the opening: you are in a room; of "A mug 1.": a, "mug 1": 1 shared of 6
    assert of(Turn("look", "A mug 1."))["observation_novelty"] == pytest.approx(1 - 1 / 6)
    assert of(Turn("look", OPENING))["observation_novelty"] == 0
    both = of(Turn("look", "A mug 1."), Turn("look", "A mug 2."))["observation_novelty"]
    assert both == pytest.approx(((1 - 1 / 6) + (1 - 1 / 3)) / 2)  # "mug 2" is not "mug 1"
    assert of(Turn("look", ""), Turn("look", ""))["observation_novelty"] == pytest.approx((1 + 0) / 2)


def test_consistency_wants_the_expected_words_and_the_named_things() -> None:
    assert of(GO, TAKE)["action_observation_consistency"] == 1
    assert of(GO, STALE)["action_observation_consistency"] == pytest.approx(1 / 2)
    elsewhere = Turn("go to shelf 1", "You arrive at shelf 10.")
    assert of(elsewhere)["action_observation_consistency"] == 0
    assert of(Turn("sing", "whatever"))["action_observation_consistency"] == 1  # nothing is expected of it


def test_names_with_signs_of_patterns_are_names() -> None:
    assert of(Turn("go to a.c (2)", "You arrive at a.c (2)."))["action_observation_consistency"] == 1
    assert of(Turn("go to a.c", "You arrive at abc."))["action_observation_consistency"] == 0


def test_progress_is_the_share_of_milestones_that_texts_claim() -> None:
    assert of(GO)["progress"] == pytest.approx(1 / 3)
    assert of(GO, TAKE)["progress"] == pytest.approx(2 / 3)
    assert of(opening="you see a mug")["progress"] == 0  # nothing was done for it
    assert features(OPENING, [GO], Vocabulary("x", (), ()))["x_progress"] == 0


def test_budget_counts_commands_and_texts() -> None:
    used = len(OPENING) + len(GO.command) + len(GO.observation)
    assert of(GO)["budget_left"] == pytest.approx(1 - used / CONTEXT_CHARACTERS)
    assert of(Turn("look", "x" * CONTEXT_CHARACTERS))["budget_left"] == 0


TURNS = st.lists(
    st.builds(Turn, st.sampled_from(["look", "go to shelf 1", "take mug 1 from shelf 1"]), st.text(max_size=30))
)


@given(TURNS, st.text(max_size=20))
def test_all_are_numbers_in_their_range(turns: list[Turn], opening: str) -> None:
    values = features(opening, turns, VOCABULARY)
    assert tuple(values) == FEATURES
    assert values.pop("x_steps") == len(turns)
    assert all(0 <= value <= 1 for value in values.values())


@given(TURNS, TURNS)
def test_only_the_history_counts(turns: list[Turn], later: list[Turn]) -> None:
    known = features(OPENING, turns, VOCABULARY)
    assert features(OPENING, [*turns, *later][: len(turns)], VOCABULARY) == known
