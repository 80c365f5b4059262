"""The propagation graph of an incident: what lies downstream and upstream of its causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd


class Propagation:
    """Edges between alias classes of one incident; loops and dangling ends reach nothing."""

    def __init__(self, causes: pd.DataFrame, edges: pd.DataFrame) -> None:
        self.set_of = dict(zip(causes["group_id"], causes["cause_set"], strict=True))
        self.roots = set(causes.loc[causes["is_root_cause"], "cause_set"])
        self.alerting = set(causes.loc[causes["n_alerts"] > 0, "cause_set"])
        self._next: dict[str, set[str]] = {}
        self._previous: dict[str, set[str]] = {}
        for source, target in zip(edges["source"], edges["target"], strict=True):
            tail, head = self.set_of.get(source), self.set_of.get(target)
            if tail is not None and head is not None and tail != head:
                self._next.setdefault(tail, set()).add(head)
                self._previous.setdefault(head, set()).add(tail)
        self.downstream_of_roots = self.downstream(self.roots)
        self.upstream_of_roots = _reach(self.roots, self._previous)

    def after(self, name: str) -> set[str]:
        """What an edge leads to from one class."""
        return self._next.get(name, set())

    def downstream(self, sets: Iterable[str]) -> set[str]:
        """Everything that the given sets lead to, without themselves."""
        return _reach(set(sets), self._next)

    def upstream(self, sets: Iterable[str]) -> set[str]:
        """Everything that leads to the given sets, without themselves."""
        return _reach(set(sets), self._previous)


def _reach(start: set[str], following: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), list(start)
    while waiting:
        for near in following.get(waiting.pop(), ()):
            if near not in found and near not in start:
                found.add(near)
                waiting.append(near)
    return found
