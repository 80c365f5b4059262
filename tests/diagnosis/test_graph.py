"""What lies downstream and upstream, on graphs that loop, dangle and meet again."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.diagnosis.graph import Propagation


def graph(edges: list[tuple[str, str]], roots: str = "", alerts: str = "", **sets: str) -> Propagation:
    """Groups a to h, each its own class unless `sets` names another; edges between group ids."""
    names = list("abcdefgh")
    causes = pd.DataFrame(
        {
            "group_id": names,
            "cause_set": [sets.get(name, name) for name in names],
            "is_root_cause": [name in roots for name in names],
            "n_alerts": [alerts.count(name) for name in names],
        }
    )
    return Propagation(causes, pd.DataFrame(edges, columns=["source", "target"]))


CASES = {
    "chain": ([("a", "b"), ("b", "c")], "bc", ""),
    "diamond": ([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], "bcd", ""),
    "loop back to the cause": ([("a", "b"), ("b", "c"), ("c", "a")], "bc", "bc"),
    "loop behind the cause": ([("a", "b"), ("b", "c"), ("c", "b")], "bc", ""),
    "self-loops": ([("a", "a"), ("a", "b"), ("b", "b")], "b", ""),
    "dangling ends": ([("a", "nowhere"), ("nowhere", "b"), ("c", "a")], "", "c"),
    "the same edge twice": ([("a", "b"), ("a", "b")], "b", ""),
    "another part": ([("c", "d")], "", ""),
    "no edges": ([], "", ""),
}


@pytest.mark.parametrize(("edges", "after", "before"), CASES.values(), ids=CASES)
def test_downstream_and_upstream_of_a(edges: list[tuple[str, str]], after: str, before: str) -> None:
    found = graph(edges, roots="a")
    assert found.downstream_of_roots == set(after)
    assert found.upstream_of_roots == set(before)
    assert found.downstream(["a"]) == set(after)
    assert found.upstream(["a"]) == set(before)


def test_aliases_are_one_place() -> None:
    found = graph([("a", "b"), ("c", "d")], roots="a", c="b")  # b and c are one class
    assert found.downstream_of_roots == {"b", "d"}
    assert graph([("a", "b"), ("b", "c")], roots="a", b="a").downstream_of_roots == {"c"}


def test_an_edge_inside_a_class_leads_nowhere() -> None:
    assert graph([("a", "b")], roots="a", b="a").downstream_of_roots == set()


def test_several_roots_do_not_lie_downstream_of_one_another() -> None:
    found = graph([("a", "b"), ("b", "c")], roots="ab")
    assert found.downstream_of_roots == {"c"}
    assert found.downstream(["a"]) == {"b", "c"}


def test_roots_and_alerts_are_classes() -> None:
    found = graph([], roots="b", alerts="cc", b="a", c="a")
    assert found.roots == {"a"}
    assert found.alerting == {"a"}


def test_after_is_one_step() -> None:
    found = graph([("a", "b"), ("b", "c")])
    assert found.after("a") == {"b"}
    assert found.after("unknown") == set()


ENDS = st.sampled_from([*"abcdefgh", "x", "y"])  # x and y are ends that are no groups


@given(st.lists(st.tuples(ENDS, ENDS), max_size=25), st.sets(st.sampled_from("abcdefgh")))
def test_downstream_is_the_transitive_closure(edges: list[tuple[str, str]], start: set[str]) -> None:
    names = "abcdefgh"
    reach = {(s, t) for s, t in edges if s in names and t in names}
    for middle in names:  # Warshall
        reach |= {(s, t) for s in names for t in names if (s, middle) in reach and (middle, t) in reach}
    found = graph(edges, roots="".join(sorted(start)))
    after = {t for s, t in reach if s in start} - start
    before = {s for s, t in reach if t in start} - start
    assert found.downstream(start) == found.downstream_of_roots == after
    assert found.upstream(start) == found.upstream_of_roots == before


def test_a_long_chain_needs_no_recursion() -> None:
    n = 20_000
    names = [f"g{i}" for i in range(n)]
    causes = pd.DataFrame({"group_id": names, "cause_set": names, "is_root_cause": False, "n_alerts": 0})
    edges = pd.DataFrame({"source": names[:-1], "target": names[1:]})
    assert len(Propagation(causes, edges).downstream(["g0"])) == n - 1
