"""nDCG: the published values, the definitions by brute force, ties, chance, sizes, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from faultbook.attribution.ndcg import Gain, Measure, Relevance, Ties, adjusted_for_chance, ndcg, random_ndcg

RELEVANCES: tuple[Relevance, ...] = ("reverse_rank", "votes")
GAINS: tuple[Gain, ...] = ("exp", "linear")
TIES: tuple[Ties, ...] = ("by_step", "expected")
VARIANTS = [
    {"relevance": relevance, "gain": gain, "ties": ties} for relevance in RELEVANCES for gain in GAINS for ties in TIES
]
NAMES = ["-".join(variant.values()) for variant in VARIANTS]
DEPTHS = st.sampled_from([1, 2, 3, 5, 40, None])
VARIANT = st.sampled_from(VARIANTS)
VOTES = st.dictionaries(st.integers(0, 11), st.integers(1, 3), min_size=1, max_size=6)
LISTS = st.lists(st.integers(0, 14), max_size=8)


def by_votes(votes: Mapping[int, int]) -> list[int]:
    return sorted(votes, key=lambda step: (-votes[step], step))


# ---- the published code -----------------------------------------------------------------------------------------


def votes_of(lists: Sequence[Sequence[int]]) -> dict[int, int]:
    return dict(Counter(step for steps in lists for step in set(steps)))


def test_the_published_notebook_on_392_cases(golden_file: Path) -> None:
    cases = json.loads(golden_file.read_text("utf-8"))["cases"]
    assert len(cases) == 392
    for case in cases:
        votes = votes_of(case["annotators"])
        assert by_votes(votes) == case["reference_ranking"], case["name"]
        for gain, (name, k) in itertools.product(GAINS, (("1", 1), ("3", 3), ("5", 5), ("full", None))):
            found = ndcg(case["predicted_ranking"], votes, k, gain=gain)
            assert found == pytest.approx(case[f"ndcg_{gain}_at_{name}"], abs=1e-12), (case["name"], gain, k)


def test_our_ranking_is_the_published_one_but_for_a_step_listed_twice(golden_file: Path) -> None:
    # The notebook counts a step as often as a sample lists it; here a sample has one vote a step, as an annotator has.
    cases = json.loads(golden_file.read_text("utf-8"))["cases"]
    others = [case for case in cases if by_votes(votes_of(case["samples"])) != case["predicted_ranking"]]
    assert [case["name"] for case in others] == ["duplicate_step_within_a_sample"]
    assert others[0]["samples"] == [[4, 4, 4], [2], [2]]
    assert others[0]["predicted_ranking"] == [4, 2]
    for case in cases:
        if case not in others:
            votes, counts = votes_of(case["annotators"]), votes_of(case["samples"])
            assert ndcg(counts, votes) == pytest.approx(case["ndcg_exp_at_5"], abs=1e-12)


# All with the functions of failure_attribution_evaluation_display.ipynb (repository of MP-Bench, commit 23f61a0),
# four digits; three of them had votes as gains put in.
FOUR, COUNTS = {3: 3, 5: 2, 7: 1, 9: 1}, {5: 3, 3: 2, 9: 1}


@pytest.mark.parametrize(
    ("predicted", "votes", "k", "choices", "value"),
    [
        (COUNTS, FOUR, 5, {}, 0.7947),
        (COUNTS, FOUR, 5, {"gain": "linear"}, 0.8225),
        (COUNTS, FOUR, 5, {"relevance": "votes"}, 0.8059),
        (COUNTS, FOUR, 5, {"relevance": "votes", "gain": "linear"}, 0.8460),
        ({2: 1, 10: 1, 7: 1}, {10: 3, 2: 1}, 5, {}, 0.6885),
        # an oracle that knows the votes and lists ties in reverse step order
        ([2, 1, 0], {0: 1, 1: 1, 2: 1}, 5, {}, 0.681),
        ([0, 3, 2, 1], {0: 2, 1: 1, 2: 1, 3: 1}, 5, {}, 0.944),
        ([0, 4, 3, 2, 1], {0: 3, 1: 1, 2: 1, 3: 1, 4: 1}, 5, {}, 0.919),
        # the top step alone
        ([0], {0: 3, 1: 1}, 5, {}, 0.826),
        ([0], dict.fromkeys(range(3), 1), 5, {}, 0.745),
        ([0], dict.fromkeys(range(5), 1), 5, {}, 0.679),
        ([0], dict.fromkeys(range(15), 1), 5, {}, 0.659),
        # everything except the top step
        ([1], {0: 3, 1: 1}, 5, {}, 0.28),
        ([1, 2], dict.fromkeys(range(3), 1), 5, {}, 0.39),
        (range(1, 5), dict.fromkeys(range(5), 1), 5, {}, 0.47),
        (range(1, 15), dict.fromkeys(range(15), 1), 5, {}, 0.50),
    ],
)
def test_values_of_the_published_functions(
    predicted: Any, votes: dict[int, int], k: int, choices: dict[str, Any], value: float
) -> None:
    digits = len(str(value).partition(".")[2])
    assert ndcg(predicted, votes, k, **choices) == pytest.approx(value, abs=0.51 * 10**-digits)


@pytest.mark.parametrize("votes", [{0: 1, 1: 1, 2: 1}, {0: 2, 1: 1, 2: 1, 3: 1}, {0: 3, 1: 1, 2: 1, 3: 1, 4: 1}])
@pytest.mark.parametrize("gain", GAINS)
def test_an_oracle_that_breaks_ties_otherwise_is_right_by_votes(votes: dict[int, int], gain: Gain) -> None:
    oracle = sorted(votes, key=lambda step: (-votes[step], -step))
    assert ndcg(oracle, votes, relevance="votes", gain=gain) == pytest.approx(1, abs=1e-12)
    assert ndcg(oracle, votes, gain=gain) < 1


def test_a_top_step_that_is_repeated_gains_once() -> None:
    # The published functions score [3, 3, 3, 3, 3] against [3, 5, 7] with 2.197.
    votes = {3: 3, 5: 2, 7: 1}
    assert ndcg([3, 3, 3, 3, 3], votes) == ndcg([3], votes) == pytest.approx(0.745, abs=5e-4)


# ---- the definitions, by brute force ----------------------------------------------------------------------------


def orders(votes: Mapping[int, int]) -> Iterator[list[int]]:
    """Every ranking by falling votes, equal ones in every order."""
    groups = [[step for step in votes if votes[step] == count] for count in sorted(set(votes.values()), reverse=True)]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [step for part in parts for step in part]


def by_hand(ranking: Sequence[int], order: Sequence[int], votes: Mapping[int, int], k: int | None, **how: str) -> float:
    """One ranking against one order of the reference, from the definition, in whole numbers as far as they go."""
    grades = {step: len(order) - place if how["relevance"] == "reverse_rank" else votes[step]
              for place, step in enumerate(order)}  # fmt: skip
    gains = {step: 2**grade - 1 if how["gain"] == "exp" else grade for step, grade in grades.items()}

    def total(steps: Sequence[int]) -> float:
        return math.fsum(gains.get(step, 0) / math.log2(place + 2) for place, step in enumerate(steps[:k]))

    return total(ranking) / total(order)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.integers(0, 9), st.integers(1, 3), max_size=5), VOTES, DEPTHS)
def test_every_variant_is_its_definition(predicted: dict[int, int], votes: dict[int, int], k: int | None) -> None:
    assume(math.prod(math.factorial(n) for n in Counter(votes.values()).values()) <= 24)
    for how in VARIANTS:
        if how["ties"] == "by_step":
            expected = by_hand(by_votes(predicted), by_votes(votes), votes, k, **how)
        else:
            pairs = itertools.product(orders(predicted), orders(votes))
            expected = float(np.mean([by_hand(one, other, votes, k, **how) for one, other in pairs]))
        assert ndcg(predicted, votes, k, **how) == pytest.approx(expected, abs=1e-12), how


@settings(max_examples=60, deadline=None)
@given(LISTS, VOTES, DEPTHS)
def test_a_list_has_no_ties_of_its_own(listed: list[int], votes: dict[int, int], k: int | None) -> None:
    ranking = list(dict.fromkeys(listed))
    for relevance, gain in itertools.product(RELEVANCES, GAINS):
        how = {"relevance": relevance, "gain": gain}
        once = by_hand(ranking, by_votes(votes), votes, k, **how)
        assert ndcg(listed, votes, k, **how) == pytest.approx(once, abs=1e-12)
        every = [by_hand(ranking, order, votes, k, **how) for order in itertools.islice(orders(votes), 721)]
        if len(every) < 721:
            found = ndcg(listed, votes, k, **how, ties="expected")
            assert found == pytest.approx(float(np.mean(every)), abs=1e-12)


def test_an_expectation_by_hand() -> None:
    # One vote each on steps 4 and 6, both named once: half of the time the order is right (1), else
    # (1 + 3 / log2 3) / (3 + 1 / log2 3).
    reverse = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert ndcg({4: 1, 6: 1}, {4: 1, 6: 1}, ties="expected") == pytest.approx((1 + reverse) / 2, abs=1e-15)
    assert ndcg({4: 1, 6: 1}, {4: 1, 6: 1}) == 1


@pytest.mark.parametrize("how", VARIANTS, ids=NAMES)
@settings(max_examples=60, deadline=None)
@given(predicted=st.one_of(LISTS, VOTES), votes=VOTES, k=DEPTHS)
def test_a_score_lies_between_0_and_1(how: Any, predicted: Any, votes: dict[int, int], k: int | None) -> None:
    assert 0 <= ndcg(predicted, votes, k, **how) <= 1


# Means over ties round: without a bound these are 1.0000000000000002.
@pytest.mark.parametrize("votes", [{11: 3, 10: 3, 4: 2, 7: 3, 8: 1, 6: 2}, {6: 3, 9: 2, 7: 1, 4: 1, 2: 3, 3: 2}])
def test_rounding_does_not_exceed_1(votes: dict[int, int]) -> None:
    found = ndcg(votes, votes, None, relevance="votes", gain="linear", ties="expected")
    assert found == pytest.approx(1, abs=1e-12)
    assert found <= 1


@settings(max_examples=60, deadline=None)
@given(VOTES, DEPTHS, VARIANT)
def test_the_reference_itself_is_perfect(votes: dict[int, int], k: int | None, how: Any) -> None:
    exact = how["ties"] == "by_step" or how["relevance"] == "votes"
    found = ndcg(votes, votes, k, **how)
    assert found == pytest.approx(1, abs=1e-12) if exact else found <= 1


# ---- what changes nothing, and what never helps -----------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(LISTS, VOTES, DEPTHS, st.data())
def test_duplicates_and_unflagged_steps_never_help(
    listed: list[int], votes: dict[int, int], k: int | None, data: st.DataObject
) -> None:
    where = data.draw(st.integers(0, len(listed)))
    before = listed[:where]
    wrong = data.draw(st.sampled_from([-1, 12, 13, 10**18, 2**63 - 1]) | st.sampled_from(before or [-2]))
    more = [*before, wrong, *listed[where:]]
    for how in VARIANTS:
        old, new = ndcg(listed, votes, k, **how), ndcg(more, votes, k, **how)
        assert new <= old + 1e-15, how
        if wrong in before:
            assert new == old


@settings(max_examples=60, deadline=None)
@given(VOTES, VOTES, st.integers(1, 5), DEPTHS)
def test_votes_for_an_unflagged_step_never_help(
    predicted: dict[int, int], votes: dict[int, int], count: int, k: int | None
) -> None:
    for how in VARIANTS:
        old, new = (ndcg(p, votes, k, **how) for p in (predicted, {**predicted, 99: count}))
        assert new <= old + 1e-15, how


@settings(max_examples=60, deadline=None)
@given(VOTES, VOTES, DEPTHS, st.permutations(range(12)), VARIANT)
def test_names_of_steps_matter_only_to_break_ties(
    predicted: dict[int, int], votes: dict[int, int], k: int | None, order: list[int], how: Any
) -> None:
    names = sorted(order) if how["ties"] == "by_step" else order
    names = [7 * name + 2 for name in names]
    renamed = [{names[step]: count for step, count in side.items()} for side in (predicted, votes)]
    assert ndcg(renamed[0], renamed[1], k, **how) == pytest.approx(ndcg(predicted, votes, k, **how), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(VOTES, VOTES, VARIANT, st.randoms(use_true_random=False))
def test_the_order_of_a_mapping_and_steps_without_a_vote_do_not_count(
    predicted: dict[int, int], votes: dict[int, int], how: Any, random: Any
) -> None:
    def shuffled(side: dict[int, int], unvoted: int) -> dict[int, int]:
        items = [*side.items(), (unvoted, 0)]
        return dict(random.sample(items, len(items)))

    assert ndcg(shuffled(predicted, 50), shuffled(votes, 60), **how) == ndcg(predicted, votes, **how)


def test_scaling_votes_changes_nothing_where_their_order_counts() -> None:
    votes, predicted = {1: 3, 4: 2, 6: 2, 7: 1}, {4: 3, 7: 2, 1: 2}
    for gain, ties in itertools.product(GAINS, TIES):
        found = [ndcg({s: c * n for s, c in predicted.items()}, {s: c * n for s, c in votes.items()}, gain=gain,
                      ties=ties) for n in (1, 2, 1000)]  # fmt: skip
        assert found[0] == found[1] == found[2]


# ---- chance -----------------------------------------------------------------------------------------------------

# n steps, flagged, predicted: the closed form, which 20,000 draws of the published baseline confirmed
# (0.313, 0.099, 0.112, 0.030)
CHANCE = [(8, 3, 3, 0.312), (33, 5, 4, 0.097), (33, 5, 8, 0.112), (130, 8, 8, 0.030)]


@pytest.mark.parametrize(("n", "flagged", "drawn", "value"), CHANCE)
def test_chance_as_published_and_simulated(n: int, flagged: int, drawn: int, value: float) -> None:
    votes = dict.fromkeys(range(flagged), 1)
    expected = random_ndcg(votes, n, drawn)
    assert expected == pytest.approx(value, abs=5.1e-4)
    rng = np.random.default_rng(5)
    simulated = [ndcg(rng.permutation(n)[:drawn], votes) for _ in range(1_500)]
    assert expected == pytest.approx(np.mean(simulated), abs=4 * np.std(simulated) / math.sqrt(1_500))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.data(), DEPTHS)
def test_chance_is_the_mean_over_all_draws(n: int, data: st.DataObject, k: int | None) -> None:
    votes = data.draw(st.dictionaries(st.integers(0, n - 1), st.integers(1, 3), min_size=1))
    drawn = data.draw(st.integers(0, n))
    draws = list(itertools.permutations(range(n), drawn))
    for how in VARIANTS:
        exact = float(np.mean([ndcg(draw, votes, k, **how) for draw in draws]))
        closed = random_ndcg(votes, n, drawn, k, relevance=how["relevance"], gain=how["gain"])
        assert closed == pytest.approx(exact, abs=1e-12), how


def test_a_list_longer_than_the_log_draws_every_step() -> None:
    votes = {0: 1, 2: 3}
    assert random_ndcg(votes, 4, 400) == random_ndcg(votes, 4) == random_ndcg(votes, 4, 4)
    assert random_ndcg(votes, 4, 4, 400) == pytest.approx(random_ndcg(votes, 4, 4, None), abs=1e-15)
    assert random_ndcg(votes, 4, 0) == 0


@pytest.mark.parametrize("n", range(1, 30))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_where_every_list_is_perfect_chance_is_exactly_1(n: int, count: int) -> None:
    votes = dict.fromkeys(range(n), count)
    for gain, k in itertools.product(GAINS, (5, None)):
        chance = random_ndcg(votes, n, k=k, relevance="votes", gain=gain)
        assert chance == 1
        assert math.isnan(adjusted_for_chance(1.0, chance))


def relabelled(votes: Mapping[int, int], n: int) -> list[dict[int, int]]:
    """All placements of the votes on the steps of a log, equally likely."""
    counts = [*votes.values(), *[0] * (n - len(votes))]
    return [dict(enumerate(placed)) for placed in itertools.permutations(counts)]


@pytest.mark.parametrize("votes", [{0: 1}, {0: 1, 1: 1}, {0: 3, 1: 1, 2: 1}, {0: 2, 1: 2, 2: 1}])
@pytest.mark.parametrize("listed", [[0], [0, 1, 2], [4, 0], [3, 3, 1]])
def test_a_constant_list_is_worth_chance_where_failures_fall_anywhere(votes: dict[int, int], listed: list[int]) -> None:
    n, length = 5, len(set(listed))
    for relevance, gain in itertools.product(RELEVANCES, GAINS):
        chance = random_ndcg(votes, n, length, relevance=relevance, gain=gain)
        for ties in TIES:
            # renaming the steps of the list makes random draws of it; the reference and its tie-break stay
            drawn = [ndcg([order[step] for step in listed], votes, relevance=relevance, gain=gain, ties=ties)
                     for order in itertools.permutations(range(n))]  # fmt: skip
            assert np.mean(drawn) == pytest.approx(chance, abs=1e-12)
        # renaming the steps of the reference is as good, unless ties of the reference go to the earlier step
        placed = relabelled(votes, n)
        for how in ({"ties": "expected"}, {"relevance": "votes"}):
            choices: dict[str, Any] = {"relevance": relevance, "gain": gain} | how
            level = random_ndcg(votes, n, length, relevance=choices["relevance"], gain=gain)
            assert np.mean([ndcg(listed, v, **choices) for v in placed]) == pytest.approx(level, abs=1e-12)
        if len(set(votes.values())) == len(votes):  # no ties
            found = [ndcg(listed, v, relevance=relevance, gain=gain) for v in placed]
            assert np.mean(found) == pytest.approx(chance, abs=1e-12)


def test_the_published_tie_break_favours_early_steps() -> None:
    # Three of eight steps have a vote each, wherever. The list [0, 1, 2] is worth chance, yet the published grade of
    # a step falls with its place, so early steps gain more: 7 for step 0 whenever it is flagged, never 7 for step 7.
    placed = [dict.fromkeys(steps, 1) for steps in itertools.combinations(range(8), 3)]
    chance = random_ndcg(placed[0], 8, 3)
    early, late = (float(np.mean([ndcg(listed, votes) for votes in placed])) for listed in ([0, 1, 2], [7, 6, 5]))
    assert chance == pytest.approx(0.3119, abs=5e-5)
    # by hand: step 0 gains 7 with probability 3/8; step 1 gains 3 behind a flagged step 0 (3·2/56), else 7 (15/56);
    # step 2 gains 1 behind both (1/56), 3 behind one (10/56), else 7 (10/56)
    gains = (7 * 3 / 8, (3 * 6 + 7 * 15) / 56, (1 + 3 * 10 + 7 * 10) / 56)
    places = [1, 1 / math.log2(3), 1 / 2]
    ideal = math.fsum(gain * place for gain, place in zip((7, 3, 1), places, strict=True))
    by_hand_early = math.fsum(gain * place for gain, place in zip(gains, places, strict=True)) / ideal
    assert early == pytest.approx(by_hand_early, abs=1e-12)
    assert early > chance + 0.15
    assert late < chance - 0.15
    for how in ({"ties": "expected"}, {"relevance": "votes"}):
        level = random_ndcg(placed[0], 8, 3, relevance=how.get("relevance", "reverse_rank"))
        for listed in ([0, 1, 2], [7, 6, 5]):
            found = np.mean([ndcg(listed, votes, **how) for votes in placed])
            assert found == pytest.approx(level, abs=1e-12)


def test_a_random_set_in_step_order_beats_chance_by_step() -> None:
    # One sample that names three random steps of eight: its ties are in step order, and so are those of the
    # reference, wherever its three steps fall. The chance level draws an order as well, as the published baseline does.
    sets = [dict.fromkeys(steps, 1) for steps in itertools.combinations(range(8), 3)]
    chance = random_ndcg(sets[0], 8, 3)
    assert chance == pytest.approx(0.3119, abs=5e-5)
    assert np.mean([ndcg(*pair) for pair in itertools.product(sets, sets)]) == pytest.approx(0.3511, abs=5e-5)
    votes = {2: 1, 4: 1, 6: 1}
    for gain in GAINS:
        level = random_ndcg(votes, 8, 3, gain=gain)
        found = np.mean([ndcg(named, votes, gain=gain, ties="expected") for named in sets])
        assert found == pytest.approx(level, abs=1e-12)


def test_adjusted_for_chance() -> None:
    assert adjusted_for_chance(0.4, 0.4) == 0
    assert adjusted_for_chance(1.0, 0.4) == 1
    assert adjusted_for_chance(0.0, 0.5) == -1
    found = adjusted_for_chance(np.array([0.7, 1.0, 0.5, 0.5]), np.array([0.4, 1.0, np.nan, 0.0]))
    assert found == pytest.approx([0.5, np.nan, np.nan, 0.5], nan_ok=True)


# ---- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", VARIANTS, ids=NAMES)
@pytest.mark.parametrize("count", [1, 3, "falling"])
def test_2000_flagged_steps(how: dict[str, Any], count: Any) -> None:
    # 2^1030 − 1 is no float: the published code stops there
    votes = {step: 2000 - step if count == "falling" else count for step in range(2000)}
    for k in (5, None, 10**9):
        assert ndcg(by_votes(votes), votes, k, **(how | {"ties": "by_step"})) == pytest.approx(1, abs=1e-12)
        assert 0 < ndcg(votes, votes, k, **how) <= 1
        half, one = ndcg(range(0, 2000, 2), votes, k, **how), ndcg([0], votes, k, **how)
        assert 0 < one <= half <= 1
        assert half < 1 or k == 5
    assert 0 < random_ndcg(votes, 4000, relevance=how["relevance"], gain=how["gain"]) < 1


def test_the_top_step_of_many_as_the_series_says() -> None:
    # gains fall by a factor of 2 a step: 1 / Σ 2^(1−i) / log2(i + 1)
    series = 1 / math.fsum(2.0**-i / math.log2(i + 2) for i in range(200))
    for n in (1023, 1024, 1030, 1100, 2000):
        assert ndcg([0], dict.fromkeys(range(n), 1), None) == pytest.approx(series, abs=1e-12)


def test_votes_up_to_the_bound() -> None:
    for count in (1023, 1024, 1100, 2000, 2**31):
        votes = {0: count, 1: count - 1}
        expected = (0.5 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3))
        assert ndcg([1, 0], votes, relevance="votes") == pytest.approx(expected, abs=1e-12)
        linear = ndcg([1, 0], {0: 2 * count // 2, 1: 1}, relevance="votes", gain="linear")
        assert linear == pytest.approx((1 + count / math.log2(3)) / (count + 1 / math.log2(3)), abs=1e-12)
    with pytest.raises(ValueError, match=f"step 0 has {2**31 + 1} votes; give 0 to {2**31}"):
        ndcg([0], {0: 2**31 + 1})


@pytest.mark.parametrize("how", VARIANTS, ids=NAMES)
def test_the_smallest_cases(how: dict[str, Any]) -> None:
    assert ndcg([0], {0: 1}, 1, **how) == 1
    assert ndcg([], {0: 1}, **how) == 0
    assert ndcg({}, {0: 1}, **how) == 0
    assert ndcg({3: 0}, {0: 1}, **how) == 0
    assert ndcg([1, 2], {0: 1}, **how) == 0
    for predicted in ([], [0], {0: 2}):
        assert math.isnan(ndcg(predicted, {}, **how))
        assert math.isnan(ndcg(predicted, {0: 0, 4: 0}, **how))
    assert math.isnan(random_ndcg({}, 5))
    assert random_ndcg({0: 2}, 1) == 1


def test_a_step_listed_behind_the_cut_gains_nothing() -> None:
    assert ndcg([9, 8, 7, 6, 5, 0], {0: 3}, 5) == 0
    assert ndcg([9, 8, 7, 6, 5, 0], {0: 3}, 6) == pytest.approx(1 / math.log2(7))
    assert ndcg([9, 8, 7, 6, 5, 0], {0: 3}, 10**6) == ndcg([9, 8, 7, 6, 5, 0], {0: 3}, None)


# ---- names and refusals -----------------------------------------------------------------------------------------


def test_a_measure_says_what_it_is() -> None:
    assert Measure().name == "nDCG@5, relevance reverse_rank, gain exp, ties by_step"
    assert Measure().column == "ndcg_at_5"
    other = Measure(None, "votes", "linear", "expected")
    assert (other.name, other.column) == ("nDCG@full, relevance votes, gain linear, ties expected", "ndcg_full")
    assert len({Measure(k, **how).name for how in VARIANTS for k in (1, 5, None)}) == 24


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    plain = ndcg([3, 1], {3: 2, 5: 1}, 3)
    assert ndcg(np.array([3, 1]), {np.int64(3): np.int8(2), np.int32(5): 1}, np.int64(3)) == plain
    assert Measure(np.int64(3)).column == "ndcg_at_3"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([1], {1: 1}, 0), "k is 0; give a whole number of at least 1, or None for the full list"),
        (([1], {1: 1}, -3), "k is -3"),
        (([1], {1: 1}, 2.5), r"k is 2\.5"),
        (([1], {1: 1}, True), "k is True"),
        (([1.0], {1: 1}), r"step is 1\.0; give a whole number"),
        ((["1"], {1: 1}), "step is '1'; give a whole number"),
        (("12", {1: 1}), "step is '1'"),
        (([True], {1: 1}), "step is True"),
        (([None], {1: 1}), "step is None"),
        (([float("nan")], {1: 1}), "step is nan"),
        (([1], {"1": 1}), "step is '1'"),
        (([1], {1: 1.5}), r"votes is 1\.5"),
        (([1], {1: True}), "votes is True"),
        (([1], {1: -1}), "step 1 has -1 votes; give 0 to"),
        (({1: -1}, {1: 1}), "step 1 has -1 votes; give 0 to"),
    ],
)
def test_what_is_no_ranking_is_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ndcg(*given)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"relevance": "vote"}, "'relevance' must be one of 'reverse_rank' or 'votes'; found 'vote'"),
        ({"gain": "exponential"}, "'gain' must be one of 'exp' or 'linear'; found 'exponential'"),
        ({"ties": "average"}, "'ties' must be one of 'by_step' or 'expected'; found 'average'"),
    ],
)
def test_unknown_variants_are_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ndcg([1], {1: 1}, **choice)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (({1: 1}, 0), "n_steps is 0; give at least 1"),
        (({1: 1}, 5, -1), "n_predicted is -1; give at least 0"),
        (({1: 1}, 5.0), r"n_steps is 5\.0; give a whole number"),
        (({5: 1}, 5), "step 5 is flagged in a log of 5 steps; give the right number of steps"),
        (({-1: 1}, 5), "step -1 is flagged in a log of 5 steps"),
    ],
)
def test_impossible_draws_are_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        random_ndcg(*given)


# ---- scikit-learn ------------------------------------------------------------------------------------------------


def of_sklearn(predicted: Mapping[int, int], gains: Mapping[int, float], n: int, k: int | None) -> float:
    columns = [[float(side.get(step, 0)) for step in range(n)] for side in (gains, predicted)]
    return float(ndcg_score([columns[0]], [columns[1]], k=k))


@settings(max_examples=80, deadline=None)
@given(VOTES, st.dictionaries(st.integers(0, 11), st.integers(1, 3), max_size=8), DEPTHS, st.sampled_from(GAINS))
def test_scikit_learn_ranks_what_is_not_predicted(
    votes: dict[int, int], predicted: dict[int, int], k: int | None, gain: Gain
) -> None:
    # It averages over ties, as "expected" does, and takes gains as they are. The steps that nobody named are ranked
    # too, all tied behind the named ones: their mean gain at each place that is left. So the two agree where every
    # flagged step is named, or the named ones fill k places, and differ by that tail otherwise.
    n = 12
    gains = {step: 2.0**count - 1 if gain == "exp" else float(count) for step, count in votes.items()}
    ours = ndcg(predicted, votes, k, relevance="votes", gain=gain, ties="expected")
    theirs = of_sklearn(predicted, gains, n, k)
    left = [gains.get(step, 0.0) for step in range(n) if step not in predicted]
    ideal = math.fsum(g / math.log2(i + 2) for i, g in enumerate(sorted(gains.values(), reverse=True)[:k]))
    places = math.fsum(1 / math.log2(i + 2) for i in range(len(predicted), n if k is None else min(k, n)))
    tail = sum(left) / len(left) * places / ideal
    assert theirs == pytest.approx(ours + tail, abs=1e-12)
    if set(votes) <= set(predicted) or len(predicted) >= (k or n):
        assert theirs == pytest.approx(ours, abs=1e-12)
    else:
        assert theirs > ours


def test_scikit_learn_on_the_published_grades() -> None:
    # (GT votes {3: 3, 5: 2, 7: 1, 9: 1}, 12 steps) linear on votes with ties averaged: 0.8635; ours leaves out the tail
    assert of_sklearn(COUNTS, FOUR, 12, 5) == pytest.approx(0.8635, abs=5e-5)
    assert ndcg(COUNTS, FOUR, relevance="votes", gain="linear", ties="expected") == pytest.approx(0.8460, abs=5e-5)
    # with rank grades as exponential gains, strict scores and every flagged step named it equals the published code
    grades = {3: 15.0, 5: 7.0, 7: 3.0, 9: 1.0}
    ranking = [5, 3, 11, 9, 7]
    scores = {step: 9 - place for place, step in enumerate(ranking)}
    assert of_sklearn(scores, grades, 12, 5) == pytest.approx(ndcg(ranking, FOUR), abs=1e-12)


def test_scikit_learn_cannot_see_a_step_out_of_range() -> None:
    # [9, 0] in a log of two steps whose first one failed: theirs has no column for step 9
    assert of_sklearn({9: 2, 0: 1}, {0: 1}, 2, 5) == 1
    assert ndcg([9, 0], {0: 1}) == pytest.approx(1 / math.log2(3), abs=1e-12)
