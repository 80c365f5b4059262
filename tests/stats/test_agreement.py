"""Agreement: golden values, three other packages as oracles, undefined cases, and the bootstrap of counts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss_kappa

from faultbook.stats.agreement import (
    NO_PAIR,
    NO_VARIATION,
    RaterAgreement,
    cohen_kappa,
    fleiss_kappa,
    jaccard,
    krippendorff_alpha,
    positive_agreement,
    raw_agreement,
)
from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.stats.coincidences import (
    alpha_of_coincidences,
    bootstrap_counts,
    coincidences_of_binary,
    fleiss_of_coincidences,
    jaccard_of_counts,
    kappa_of_tables,
    positive_of_counts,
    raw_of_counts,
)

ALL = (raw_agreement, positive_agreement, jaccard, krippendorff_alpha, fleiss_kappa)
CELL = st.integers(0, 2)
COMPLETE = st.integers(2, 5).flatmap(
    lambda r: st.lists(st.lists(CELL, min_size=r, max_size=r), min_size=1, max_size=25)
)
WITH_GAPS = st.integers(2, 5).flatmap(
    lambda r: st.lists(st.lists(st.none() | CELL, min_size=r, max_size=r), min_size=1, max_size=25)
)
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: four observers, twelve units.
TEXTBOOK = """1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 ."""


def textbook() -> list[list[str | None]]:
    rows = [[None if cell == "." else cell for cell in line.split()] for line in TEXTBOOK.splitlines()]
    return [list(unit) for unit in zip(*rows, strict=True)]


# ---- golden values ------------------------------------------------------------------------------------------------


def test_the_textbook_example_of_alpha() -> None:
    # The paper prints 0.743; krippendorff.alpha gives 0.7434210526.
    result = krippendorff_alpha(textbook())
    assert result.value == pytest.approx(0.743421052, abs=1e-8)
    # the last unit has one rating only
    assert (result.n_units, result.n_raters, result.undefined) == (11, 4, "")


def test_alpha_follows_from_fleiss_kappa_of_complete_ratings() -> None:
    # Both packages on one table of 6 units by 3 raters: statsmodels 0.15.0 prints Fleiss 0.44615, krippendorff 0.9.0
    # alpha 0.47692 = 1 − 0.55385 · 17/18. Of all such tables, those with that kappa have that alpha.
    votes = itertools.combinations_with_replacement(range(4), 6)
    tables = [[[1] * yes + [0] * (3 - yes) for yes in units] for units in votes]
    alphas = [krippendorff_alpha(table).value for table in tables if round(fleiss_kappa(table).value, 5) == 0.44615]
    assert alphas
    assert alphas == pytest.approx([0.47692] * len(alphas), abs=5e-6)


def test_cohens_example() -> None:
    # Cohen (1960), table 1, as proportions of 200: kappa 0.492 (0.4915…).
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    assert float(kappa_of_tables(table)) == pytest.approx(0.492, abs=5e-4)


def test_agreement_of_rare_positives() -> None:
    # 20 units, each rater flags two, one of them in common: 18 equal pairs, Dice 1/2, Jaccard 1/3.
    first, second = [1, 1, 0] + [0] * 17, [1, 0, 1] + [0] * 17
    ratings = np.column_stack([first, second])
    assert raw_agreement(ratings).value == pytest.approx(0.9)
    assert positive_agreement(ratings).value == pytest.approx(0.5)
    assert jaccard(ratings).value == pytest.approx(1 / 3)
    # p_e = 0.1 · 0.1 + 0.9 · 0.9 = 0.82
    assert cohen_kappa(first, second).value == pytest.approx((0.9 - 0.82) / 0.18)


# ---- other packages -----------------------------------------------------------------------------------------------


def varied(ratings: list[list[Any]]) -> list[list[Any]]:
    rated = [[cell for cell in row if cell is not None] for row in ratings]
    assume(len({cell for row in rated if len(row) > 1 for cell in row}) > 1)
    return ratings


@settings(deadline=None)
@given(WITH_GAPS)
def test_alpha_as_the_krippendorff_package(ratings: list[list[int | None]]) -> None:
    array = np.array(varied(ratings), dtype=float)
    expected = krippendorff.alpha(array.T, level_of_measurement="nominal")
    assert krippendorff_alpha(array).value == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(COMPLETE)
def test_fleiss_kappa_as_statsmodels(ratings: list[list[int]]) -> None:
    counts, _ = aggregate_raters(np.array(varied(ratings)))
    assert fleiss_kappa(ratings).value == pytest.approx(statsmodels_fleiss_kappa(counts), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=30))
def test_cohens_kappa_as_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    assume(len({*first, *second}) > 1)
    assert cohen_kappa(first, second).value == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)


@settings(deadline=None)
@given(COMPLETE)
def test_pairs_as_by_hand(ratings: list[list[int]]) -> None:
    pairs = [pair for row in ratings for pair in itertools.combinations(row, 2)]
    both, either = sum(a == b == 1 for a, b in pairs), sum(1 in pair for pair in pairs)
    assert raw_agreement(ratings).value == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert jaccard(ratings).value == pytest.approx(both / either if either else math.nan, nan_ok=True)
    dice = 2 * both / (both + either) if either else math.nan
    assert positive_agreement(ratings).value == pytest.approx(dice, nan_ok=True)


# ---- invariances --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(WITH_GAPS, st.randoms(use_true_random=False))
def test_order_and_names_do_not_count(ratings: list[list[int | None]], random: Any) -> None:
    names: dict[int | None, Any] = {0: "no", 1: ("y", 1), 2: 2.5, None: None}
    raters = random.sample(range(len(ratings[0])), len(ratings[0]))
    other = [[names[row[rater]] for rater in raters] for row in random.sample(ratings, len(ratings))]
    for statistic in (krippendorff_alpha, raw_agreement):
        assert same(statistic(ratings), statistic(other))
    for statistic in (positive_agreement, jaccard):
        assert same(statistic(ratings, positive=1), statistic(other, positive=("y", 1)))


@settings(deadline=None, max_examples=50)
@given(WITH_GAPS)
def test_every_way_to_write_a_missing_rating(ratings: list[list[int | None]]) -> None:
    array = np.array(ratings, dtype=float)
    forms = [
        array,
        np.ma.masked_array(np.nan_to_num(array, nan=7), np.isnan(array)),
        pd.DataFrame(array).astype("Int64"),
        [[pd.NA if cell is None else cell for cell in row] for row in ratings],
    ]
    for statistic in (krippendorff_alpha, raw_agreement, jaccard):
        for form in forms:
            assert same(statistic(ratings), statistic(form))


@settings(deadline=None, max_examples=50)
@given(WITH_GAPS)
def test_a_unit_with_one_rating_changes_nothing(ratings: list[list[int | None]]) -> None:
    longer = [*ratings, [0, *[None] * (len(ratings[0]) - 1)]]
    for statistic in (krippendorff_alpha, raw_agreement, positive_agreement, jaccard):
        assert same(statistic(ratings), statistic(longer))


def same(one: RaterAgreement, other: RaterAgreement) -> bool:
    rest = [(r.statistic, r.n_units, r.n_raters, r.undefined) for r in (one, other)]
    return rest[0] == rest[1] and one.value == pytest.approx(other.value, abs=1e-12, nan_ok=True)


# ---- undefined ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [krippendorff_alpha, fleiss_kappa, jaccard, positive_agreement])
def test_no_variation_is_undefined(statistic: Any) -> None:
    result = statistic([[0, 0, 0]] * 5)
    assert math.isnan(result.value)
    assert (result.undefined, result.n_units, result.n_raters) == (NO_VARIATION, 5, 3)
    assert raw_agreement([[0, 0, 0]] * 5).value == 1


def test_all_positive_is_full_agreement_on_positives_and_no_kappa() -> None:
    ratings = [[1, 1]] * 4
    assert (jaccard(ratings).value, positive_agreement(ratings).value) == (1, 1)
    assert cohen_kappa([1] * 4, [1] * 4).undefined == NO_VARIATION
    assert krippendorff_alpha(ratings).undefined == NO_VARIATION


def test_one_rater_who_never_varies_gives_kappa_zero() -> None:
    assert cohen_kappa([0, 0, 0, 0], [0, 1, 0, 1]).value == 0


@pytest.mark.parametrize("ratings", [[], [[1], [0]], [[1, None], [None, 0]]])
def test_no_pair_is_undefined(ratings: list[list[int | None]]) -> None:
    for statistic in (krippendorff_alpha, raw_agreement, positive_agreement, jaccard):
        result = statistic(ratings)
        assert math.isnan(result.value)
        assert (result.undefined, result.n_units) == (NO_PAIR, 0)


def test_kappa_leaves_out_units_that_one_did_not_rate() -> None:
    result = cohen_kappa([1, 0, 1, None, 0], pd.array([1, 0, 0, 1, None], dtype="Int64"))
    assert result.n_units == 3
    assert result.value == cohen_kappa([1, 0, 1], [1, 0, 0]).value
    assert cohen_kappa([], []).undefined == NO_PAIR


def test_text_beside_nan_is_missing_not_a_value() -> None:
    assert same(krippendorff_alpha([["a", math.nan], ["a", "b"]]), krippendorff_alpha([["a", None], ["a", "b"]]))


@pytest.mark.parametrize("statistic", ALL)
@pytest.mark.parametrize("ratings", [np.zeros(3), np.zeros((2, 2, 2)), [[1, 0], [1]], [[{}, 1], [1, 1]]])
def test_what_is_no_table_of_ratings_is_refused(statistic: Any, ratings: Any) -> None:
    with pytest.raises(ValueError, match="ratings"):
        statistic(ratings)


def test_what_fleiss_kappa_refuses() -> None:
    with pytest.raises(ValueError, match=r"1 missing of 4.*krippendorff_alpha"):
        fleiss_kappa([[1, 0], [1, None]])
    with pytest.raises(ValueError, match="at least two raters"):
        fleiss_kappa([[1], [0]])
    with pytest.raises(ValueError, match="both of each unit"):
        cohen_kappa([1], [1, 0])


def test_summary_frame() -> None:
    frame = raw_agreement([[1, 1], [1, 0]]).summary_frame()
    assert frame.to_dict("records") == [
        {"statistic": "raw agreement", "value": 0.5, "n_units": 2, "n_raters": 2, "undefined": ""}
    ]


# ---- counts -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.lists(COMPLETE.map(lambda rows: [[int(cell == 1) for cell in row[:2]] for row in rows]), max_size=4))
def test_counts_of_parts_add_up_to_the_whole(parts: list[list[list[int]]]) -> None:
    whole = [row for part in parts for row in part]
    sums = np.zeros((2, 2))
    for part in parts:
        positive = np.array(part).sum(axis=1)
        sums += coincidences_of_binary(positive, np.full(len(part), 2)).sum(axis=0)
    assert float(alpha_of_coincidences(sums)) == pytest.approx(krippendorff_alpha(whole).value, abs=1e-12, nan_ok=True)
    if whole:
        assert float(fleiss_of_coincidences(sums)) == pytest.approx(fleiss_kappa(whole).value, abs=1e-12, nan_ok=True)


def test_functions_of_counts_take_many_at_once() -> None:
    tables = np.arange(24, dtype=float).reshape(2, 3, 2, 2)
    for function in (kappa_of_tables, alpha_of_coincidences, fleiss_of_coincidences):
        many = function(tables)
        assert many.shape == (2, 3)
        assert many[1, 2] == function(tables[1, 2])
    both, one = tables[..., 0, 0], tables[..., 0, 1]
    assert positive_of_counts(both, one).shape == jaccard_of_counts(both, one).shape == (2, 3)


def mean(sums: np.ndarray[Any, Any]) -> Any:
    return raw_of_counts(sums[..., 0], sums[..., 1])


CLUSTERS = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=9
)


@settings(deadline=None, max_examples=25)
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_a_mean_has_the_interval_of_the_cluster_bootstrap(counts: list[tuple[int, int]], random: Any) -> None:
    rows = [(int(i < k), cluster) for cluster, (k, n) in enumerate(counts) for i in range(n)]
    expected = cluster_bootstrap([v for v, _ in rows], [c for _, c in rows], n_resamples=500, seed=3)
    shuffled = random.sample(counts, len(counts))
    result = bootstrap_counts(shuffled, mean, n=len(rows), n_resamples=500, seed=3)
    assert (result.n, result.n_clusters, result.degenerate) == (expected.n, expected.n_clusters, expected.degenerate)
    for name in ("estimate", "low", "high"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), abs=1e-12, nan_ok=True)


def test_the_interval_of_alpha_agrees_with_all_resamples() -> None:
    clusters = coincidences_of_binary(np.array([[3, 0, 0], [2, 0, 1], [3, 1, 0], [0, 2, 2]]), np.full((4, 3), 3))
    counts = clusters.sum(axis=1)
    exact = np.sort(
        [float(alpha_of_coincidences(sum(chosen))) for chosen in itertools.product(counts, repeat=len(counts))]
    )
    result = bootstrap_counts(
        counts.reshape(4, 4),
        lambda sums: alpha_of_coincidences(sums.reshape(*sums.shape[:-1], 2, 2)),
        n=12,
        n_resamples=40_000,
        seed=1,
    )
    # Five standard errors of an empirical distribution function at 40,000 draws are at most .0125.
    for found, probability in ((result.low, 0.025), (result.high, 0.975)):
        below, above = np.quantile(exact, np.clip([probability - 0.0125, probability + 0.0125], 0, 1))
        assert below - 1e-9 <= found <= above + 1e-9


def test_undefined_resamples_are_counted_and_left_out() -> None:
    # one of four clusters has anything: a resample misses it with probability (3/4)⁴ = .316
    result = bootstrap_counts([[1, 2], [0, 0], [0, 0], [0, 0]], mean, n=2, n_resamples=4_000, seed=0)
    assert result.estimate == 0.5
    undefined = int(result.method.split(" undefined")[0].rsplit(" ", 1)[1])
    assert undefined == pytest.approx(4_000 * 0.75**4, abs=150)
    assert result.degenerate
    assert math.isnan(result.low)


@pytest.mark.parametrize("counts", [np.zeros((0, 2)), [[1, 2]], [[0, 0], [0, 0]], [[1, 2], [1, 2]]])
def test_degenerate_counts_have_no_interval(counts: Any) -> None:
    result = bootstrap_counts(counts, mean, n=0, seed=0)
    assert result.degenerate
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert "no interval" in result.method


def test_what_the_bootstrap_of_counts_refuses() -> None:
    for wrong in ({"counts": [1, 2]}, {"n_resamples": 0}, {"level": 1.0}, {"seed": None}, {"n": -1}):
        arguments: dict[str, Any] = {"counts": [[1, 2], [2, 2]], "n": 4, "seed": 0} | wrong
        counts = arguments.pop("counts")
        with pytest.raises(ValueError, match="; give"):
            bootstrap_counts(counts, mean, **arguments)
