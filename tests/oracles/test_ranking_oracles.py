"""Our nDCG against ranx and trec_eval: equal where all mean the same, and where they differ, how and why.

Both are test oracles only, in an environment of their own (`make test-full`). They know graded documents and scores: a
step is a document, its grade the published one (n, n − 1, …, 1) or its votes, and a ranking strictly falling scores.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from faultbook.attribution.ndcg import ndcg

WHERE = "an oracle that is not among the dependencies; `make test-full` makes an environment with it"

with warnings.catch_warnings():
    # escapes in a docstring of ranx, told when its bytecode is made: by Python 3.11 in the first form
    for category in (DeprecationWarning, SyntaxWarning):
        warnings.filterwarnings("ignore", "invalid escape sequence|.* is an invalid escape sequence", category)
    ranx = pytest.importorskip("ranx", reason=WHERE)
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=WHERE)

# numba, of code of ranx
pytestmark = pytest.mark.filterwarnings("ignore:.*unsafe cast from uint64 to int64")

DEPTHS = (1, 3, 5, None)
RANX = {(gain, k): f"{name}@{k}" if k else name
        for gain, name in (("exp", "ndcg_burges"), ("linear", "ndcg")) for k in DEPTHS}  # fmt: skip
TREC = {k: f"ndcg_cut_{k}" if k else "ndcg" for k in DEPTHS}

Side = Mapping[int, int]
Case = tuple[list[int], dict[int, int]]


def name(step: int) -> str:
    return f"{step:05d}"  # padded: trec_eval compares ids as text


def graded(votes: Side, relevance: str) -> dict[str, int]:
    ranking = sorted(votes, key=lambda step: (-votes[step], step))
    return {name(s): votes[s] if relevance == "votes" else len(ranking) - i for i, s in enumerate(ranking)}


def scored(ranking: Sequence[int]) -> dict[str, float]:
    return {name(step): float(len(ranking) - place) for place, step in enumerate(ranking)}


def random_cases(n: int) -> dict[str, Case]:
    rng = np.random.default_rng(2603)
    cases = {}
    for number in range(n):
        flagged = rng.permutation(40)[: rng.integers(1, 15)]
        votes = {int(step): int(rng.integers(1, 4)) for step in flagged}
        named = rng.permutation(45)[: rng.integers(1, 15)]  # some beyond the log
        cases[f"case {number}"] = (named.tolist(), votes)
    return cases


CASES = random_cases(150)
FOUR = {3: 3, 5: 2, 7: 1, 9: 1}
CASES["golden"] = ([5, 3, 9], FOUR)


# ---- ranx -------------------------------------------------------------------------------------------------------

TIED = {"10": 2, "2": 1}  # documents 10 and 2, of which the first one is worth more
LONG = {name(step): 1_024 - step for step in range(1_024)}
SPECIAL: dict[str, tuple[dict[str, int], dict[str, float]]] = {
    "tied, 2 first": (TIED, {"2": 1.0, "10": 1.0, "7": 1.0}),
    "tied, 10 first": (TIED, {"10": 1.0, "7": 1.0, "2": 1.0}),
    "nothing named": ({"a": 1}, {}),
    "nothing flagged": ({"a": 0}, {"a": 1.0}),
    "1,023 flagged": ({doc: grade - 1 for doc, grade in LONG.items()}, {d: float(g) for d, g in LONG.items()}),
    "1,024 flagged": (LONG, {doc: float(grade) for doc, grade in LONG.items()}),
}


@pytest.fixture(scope="module")
def of_ranx() -> dict[str, dict[str, float]]:
    """All that is asked of ranx, in one call: it compiles itself for half a minute."""
    queries = {f"{r}: {key}": (graded(votes, r), scored(ranking))
               for r in ("reverse_rank", "votes") for key, (ranking, votes) in CASES.items()} | SPECIAL  # fmt: skip
    grades, run = ({key: pair[side] for key, pair in queries.items()} for side in (0, 1))
    found = ranx.Run(run)
    ranx.evaluate(ranx.Qrels(grades), found, list(RANX.values()), return_mean=False)
    return {metric: dict(values) for metric, values in found.scores.items()}


def test_ranx_is_equal_in_both_gains_and_both_grades(of_ranx: Any) -> None:
    for (key, (ranking, votes)), (gain, k) in itertools.product(CASES.items(), RANX):
        for relevance in ("reverse_rank", "votes"):
            ours = ndcg(ranking, votes, k, relevance=relevance, gain=gain)
            theirs = of_ranx[RANX[gain, k]][f"{relevance}: {key}"]
            assert ours == pytest.approx(theirs, abs=1e-12), (key, relevance, gain, k)
    assert of_ranx["ndcg_burges@5"]["reverse_rank: golden"] == pytest.approx(0.7947, abs=5e-5)
    assert of_ranx["ndcg@5"]["reverse_rank: golden"] == pytest.approx(0.8225, abs=5e-5)


def test_ranx_leaves_ties_as_they_come(of_ranx: Any) -> None:
    # The same documents and scores, in two orders: two results. Ours takes the step order, or the mean of all orders.
    behind, third = 1 / math.log2(3), 1 / 2
    ideal = 3 + behind
    found = [of_ranx["ndcg_burges@5"][key] for key in ("tied, 2 first", "tied, 10 first")]
    assert found == pytest.approx([(1 + 3 * behind) / ideal, (3 + 1 * third) / ideal])
    votes, tied = {10: 2, 2: 1}, {2: 1, 10: 1, 7: 1}
    assert ndcg(tied, votes) == pytest.approx((1 + 3 * third) / ideal)  # 2, 7, 10
    orders = [ndcg(order, votes) for order in itertools.permutations(tied)]
    assert ndcg(tied, votes, ties="expected") == pytest.approx(np.mean(orders), abs=1e-12)


def test_ranx_overflows_at_1024_grades(of_ranx: Any) -> None:
    # 2^1024 − 1 is infinite as a float, also where only five places count; ours scales by the highest grade
    assert of_ranx["ndcg_burges"]["1,023 flagged"] == 1
    assert math.isnan(of_ranx["ndcg_burges"]["1,024 flagged"])
    assert math.isnan(of_ranx["ndcg_burges@5"]["1,024 flagged"])
    assert of_ranx["ndcg"]["1,024 flagged"] == 1
    for n in (1_023, 1_024, 2_000):
        assert ndcg(range(n), dict.fromkeys(range(n), 1), None) == pytest.approx(1, abs=1e-12)


def test_ranx_scores_0_where_there_is_nothing_to_find(of_ranx: Any) -> None:
    assert of_ranx["ndcg_burges@5"]["nothing named"] == ndcg([], {0: 1}) == 0
    assert of_ranx["ndcg_burges@5"]["nothing flagged"] == 0
    assert math.isnan(ndcg([0], {}))  # such a log is asked for false alarms instead


def test_ranx_keeps_the_last_of_a_document_listed_twice() -> None:
    # Runs are mappings in both packages, so nothing gains twice. A list with a duplicate becomes one with the last
    # score in ranx; ours keeps the first place.
    grades, run = ranx.Qrels(), ranx.Run()
    grades.add_multi(q_ids=["a"], doc_ids=[["3", "5", "7"]], scores=[[3, 2, 1]])
    run.add_multi(q_ids=["a"], doc_ids=[["3", "5", "3"]], scores=[[3.0, 2.0, 1.0]])
    votes = {3: 3, 5: 2, 7: 1}
    assert ranx.evaluate(grades, run, "ndcg_burges@5") == pytest.approx(ndcg([5, 3], votes), abs=1e-12)
    assert ndcg([3, 5, 3], votes) == ndcg([3, 5], votes) > ndcg([5, 3], votes)


# ---- trec_eval --------------------------------------------------------------------------------------------------


def of_trec(grades: Any, run: Any) -> Any:
    return pytrec_eval.RelevanceEvaluator(grades, {"ndcg", "ndcg_cut.1,3,5"}).evaluate(run)


def test_trec_eval_is_equal_with_linear_gain() -> None:
    for relevance in ("reverse_rank", "votes"):
        grades = {key: graded(votes, relevance) for key, (_, votes) in CASES.items()}
        theirs = of_trec(grades, {key: scored(ranking) for key, (ranking, _) in CASES.items()})
        for (key, (ranking, votes)), k in itertools.product(CASES.items(), DEPTHS):
            ours = ndcg(ranking, votes, k, relevance=relevance, gain="linear")
            assert ours == pytest.approx(theirs[key][TREC[k]], abs=1e-12), (key, relevance, k)
    assert theirs["golden"]["ndcg_cut_5"] == pytest.approx(0.8460, abs=5e-5)  # votes


def test_trec_eval_takes_exponential_gains_as_grades() -> None:
    # It has no gain of its own, but grades of 2^g − 1 are one, up to what 32 bits hold.
    grades = {
        key: {doc: 2**g - 1 for doc, g in graded(votes, "reverse_rank").items()} for key, (_, votes) in CASES.items()
    }
    theirs = of_trec(grades, {key: scored(ranking) for key, (ranking, _) in CASES.items()})
    for key, (ranking, votes) in CASES.items():
        assert ndcg(ranking, votes) == pytest.approx(theirs[key]["ndcg_cut_5"], abs=1e-12), key


def test_trec_eval_breaks_ties_by_id_as_text() -> None:
    # Equal scores stand in falling order of their ids as text, "7" before "2" before "10"; ours in order of steps.
    grades, tied = {"a": {"10": 2, "2": 1}}, {2: 1, 10: 1, 7: 1}
    theirs = of_trec(grades, {"a": {str(step): 1.0 for step in tied}})["a"]["ndcg_cut_5"]
    assert theirs == pytest.approx(0.6199, abs=5e-5)
    assert theirs == pytest.approx(ndcg([7, 2, 10], {10: 2, 2: 1}, gain="linear"), abs=1e-12)
    ours = ndcg(tied, {10: 2, 2: 1}, gain="linear")
    assert ours == ndcg([2, 7, 10], {10: 2, 2: 1}, gain="linear") == pytest.approx(0.7602, abs=5e-5)
    strict = of_trec(grades, {"a": {"2": 3.0, "7": 2.0, "10": 1.0}})["a"]["ndcg_cut_5"]
    assert strict == pytest.approx(ours, abs=1e-12)


def test_trec_eval_leaves_out_what_is_missing() -> None:
    # A log that was not answered is absent from its results, so a mean over them is one over answered logs.
    grades = {"a": {"1": 1}, "b": {"1": 1}, "c": {"1": 0}, "d": {"1": 1}}
    found = of_trec(grades, {"a": {"1": 1.0}, "b": {}, "c": {"1": 1.0}, "e": {"1": 1.0}})
    assert {key: values["ndcg"] for key, values in found.items()} == {"a": 1, "b": 0, "c": 0}
    assert ndcg([], {1: 1}) == 0
    assert math.isnan(ndcg([1], {}))


def test_trec_eval_at_2000_grades() -> None:
    grades = {name(step): 2_000 - step for step in range(2_000)}
    run = {doc: float(2_000 - grade) for doc, grade in grades.items()}  # the worst order
    found = of_trec({"a": grades}, {"a": run})["a"]
    votes = dict.fromkeys(range(2_000), 1)
    for k in DEPTHS:
        assert ndcg(range(1_999, -1, -1), votes, k, gain="linear") == pytest.approx(found[TREC[k]], abs=1e-12)
