r"""Patterns of truth files: what they mean (`ad\b` is not load-generator), and that none can hang or crash."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.diagnosis.patterns import MOST_NAME, MOST_PATTERN, compile_pattern

# Each backtracks without end in `re`.
CATASTROPHIC = ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}$", "(a*)*b", "([a-z]+)*=", "^(([a-z])+.)+[A-Z]([a-z])+$"]


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("frontend", "frontend"),
        (r"frontend\b", "frontend"),
        ("frontend-.*", "frontend"),
        ("frontend.*", "frontend"),
        ("^frontend$", "frontend"),
        ("frontend-proxy-.*", "frontend-proxy"),
        (r"valkey-cart\b", "valkey-cart"),
        ("productpage-v1-*", "productpage-v1"),  # reference 3.4: a glob by intent
        ("ad", "ad"),
        ("a", "a"),
        (".*product-catalog-network-delay", None),
        (".checkout", None),
        ("*.*", None),
        (r"a\\b", None),
        ("(frontend|ad)", None),
        ("-frontend", None),
        ("", None),
    ],
)
def test_the_literal_stem(text: str, stem: str | None) -> None:
    assert compile_pattern(text).stem == stem


# reference 3.4, measured effects of real patterns under `search`, and what is wanted instead
@pytest.mark.parametrize(
    ("text", "name", "workload", "wanted", "by_search"),
    [
        (r"ad\b", "ad", "ad", True, True),
        (r"ad\b", "load-generator", "load-generator", False, True),
        ("ad-.*", "load-generator-6d5f7c9b8d-x2x7k", "load-generator", False, True),
        ("ad-.*", "ad-6d5f7c9b8d-x2x7k", "ad", True, True),
        (r"frontend\b", "frontend-proxy", "frontend-proxy", False, True),
        ("frontend-.*", "frontend-proxy-5d4f8f7b9c-zq8kp", "frontend-proxy", False, True),
        ("frontend-.*", "frontend-5d4f8f7b9c-zq8kp", "frontend", True, True),
        (r"cart\b", "valkey-cart", "valkey-cart", False, True),
        ("cart-.*", "valkey-cart-5d4f8f7b9c-zq8kp", "valkey-cart", False, True),
        ("flagd", "flagd-config", "flagd-config", False, True),
        (r"flagd\b", "flagd-config", "flagd-config", False, True),
        # key fact 9: a Deployment whose filter wants a hyphen
        ("product-catalog-.*", "product-catalog", "product-catalog", True, False),
        ("checkout-.*", "checkout", "checkout", True, False),
        (".checkout", "checkout", "checkout", False, False),
        (".*adservice", "ad", "ad", False, False),
        ("adservice-.*", "ad", "ad", False, False),
        ("productpage-v1-*", "productpage-v1-54bb874995-8vlkw", "productpage-v1", True, True),
        (".*product-catalog-network-delay", "otel-product-catalog-network-delay", "x", True, True),
        ("(frontend|ad)", "load", "load", False, True),
        ("(frontend|ad)", "ad-5d4f8f7b9c-zq8kp", "ad", True, True),
        ("", "ad", "ad", False, True),
    ],
)
def test_anchored_matching_against_search(text: str, name: str, workload: str, wanted: bool, by_search: bool) -> None:
    pattern = compile_pattern(text)
    assert pattern.anchored(name, workload) is wanted
    assert pattern.search(name) is by_search
    assert pattern.fallback == ""


def test_a_star_dot_star_matches_everything() -> None:
    # reference 3.4 and 6.6: `re` says "nothing to repeat"; it is a glob, and it matches every name
    pattern = compile_pattern("*.*")
    assert pattern.fallback == "glob"
    for name in ("frontend", "a.b", "x" * MOST_NAME):
        assert pattern.anchored(name, name)
        assert pattern.search(name)
        assert pattern.fullmatch(name)


@pytest.mark.parametrize(
    ("text", "hit", "miss"),
    [
        ("*", "anything", None),
        ("**", "anything", None),
        ("*-proxy", "frontend-proxy", "frontend"),
        ("?d", "ad", "aad"),
        ("*proxy*", "frontend-proxy-1", "frontend"),
        ("*front*-proxy", "my-frontend-proxy", "my-frontend"),
        ("*a*b", "xayb", "xay"),
        ("*v1*x*", "productpage-v1-54-x-2", "productpage-v1"),
    ],
)
def test_what_re2_refuses_and_a_shell_takes_is_a_glob(text: str, hit: str, miss: str | None) -> None:
    pattern = compile_pattern(text)
    assert pattern.fallback == "glob"
    assert pattern.fullmatch(hit)
    assert miss is None or not pattern.fullmatch(miss)


@pytest.mark.parametrize("text", ["[a", "(?=ad)ad", r"(a)\1", "a{1001}", "(a{1000}){1000}", "(?P<n>", "a)", "\\", "+"])
def test_what_re2_refuses_otherwise_is_literal(text: str) -> None:
    pattern = compile_pattern(text)
    assert pattern.fallback == "literal"
    assert pattern.fullmatch(text)
    assert pattern.anchored(text, text)
    assert not pattern.fullmatch("ad")


@pytest.mark.parametrize("text", CATASTROPHIC)
def test_catastrophic_patterns_answer(text: str) -> None:
    pattern = compile_pattern(text)
    for name in ("a" * 10_000 + "!", "a" * (MOST_NAME - 1) + "!"):
        assert pattern.anchored(name, name) is False
        assert pattern.search(name) is False
        assert pattern.fullmatch(name) is False


def test_a_catastrophic_pattern_still_matches_what_it_means() -> None:
    assert compile_pattern("(a+)+$").fullmatch("a" * MOST_NAME)


def test_a_name_beyond_any_kubernetes_name_matches_nothing() -> None:
    assert compile_pattern(".*").fullmatch("a" * MOST_NAME)
    assert not compile_pattern(".*").fullmatch("a" * (MOST_NAME + 1))
    assert not compile_pattern(".*").search("a" * 10_000)


@pytest.mark.parametrize("text", ["a" * 2_000, ".*" * 1_000, "(a|b)" * 400, "*" * 2_000, "a" * MOST_PATTERN + ".*"])
def test_a_pattern_of_two_thousand_characters_matches_nothing_a_cluster_has(text: str) -> None:
    pattern = compile_pattern(text)
    assert pattern.fallback == "literal"
    assert not pattern.anchored("a", "a")
    assert not pattern.search("a" * 500)
    assert not pattern.search("ab")


def test_the_longest_pattern_is_still_a_pattern() -> None:
    assert compile_pattern("a?" * (MOST_PATTERN // 2)).fullmatch("aa")


@pytest.mark.parametrize("text", ["\ud800", "a\ud800.*", "[\udfff"])
def test_half_a_surrogate_pair_in_a_pattern_is_no_crash(text: str) -> None:
    # JSON and YAML can both write one: "\ud800"
    assert not compile_pattern(text).search("ad")


def test_half_a_surrogate_pair_in_a_name_is_no_crash() -> None:
    assert not compile_pattern("(frontend|ad)").search("\ud800")


@settings(deadline=None)
@given(text=st.text("ab*.?[](){}|\\^$+-1,=<!:Pb\b\0é", max_size=25), name=st.text("ab-.1\0é", max_size=12))
@example(text="*a*b", name="ab")
def test_any_pattern_answers_any_name(text: str, name: str) -> None:
    pattern = compile_pattern(text)
    answers = [pattern.search(name), pattern.fullmatch(name), pattern.anchored(name, name)]
    assert all(isinstance(answer, bool) for answer in answers)
    assert pattern.search(name) or not pattern.fullmatch(name)


@settings(deadline=None)
@given(stem=st.from_regex(r"[a-z](?:[a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True), other=st.text("ab-", max_size=5))
def test_a_stem_means_that_workload_and_no_other(stem: str, other: str) -> None:
    for text in (stem, stem + r"\b", stem + "-.*", stem + ".*"):
        pattern = compile_pattern(text)
        assert pattern.anchored(stem, stem)
        assert pattern.anchored(f"{stem}-6d5f7c9b8d-x2x7k", stem)
        assert pattern.anchored(other + stem, other + stem) is (other == "")
