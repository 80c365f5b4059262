"""The best three thresholds of a first-passing rule under a limit, exactly: branch and bound on sums over orthants.

A trajectory is decided by its first candidate that passes, so what it contributes is τ1 P1 + τ2 P2 (1 − P1) + …, with
P the indicators of passing. A product of indicators of "at least the thresholds" is the indicator of the
component-wise minimum of the candidates, so gain and harm are sums of signed whole weights over the points that
dominate the thresholds. Thresholds, points and weights are whole numbers here: values are replaced by their ranks.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from faultbook.recovery._grid import Box, Grid, Ints, Mask, Thresholds, corner_sums, is_maximal, ranked

NODE_LIMIT = 50_000

_LEAF = 50_000  # corners of a box that are all looked at


@dataclass(frozen=True, slots=True)
class Terms:
    """Signed weights at points, in the trajectories that they come from: shapes (n,), (n, 3), (n,), (n,)."""

    trajectory: Ints
    points: Ints
    gain: Ints
    harm: Ints


class Optimum(NamedTuple):
    """What the best thresholds attain; thresholds of None let nothing pass."""

    gain: int
    harm: int
    interventions: int
    thresholds: Thresholds | None

    @property
    def key(self) -> tuple[float, ...]:
        """Larger is better: gain, fewer harms, fewer interventions, then higher thresholds, the first axis first."""
        thresholds = (math.inf,) * 3 if self.thresholds is None else self.thresholds
        return (self.gain, -self.harm, -self.interventions, *thresholds)


@dataclass(frozen=True, slots=True)
class Maximum:
    """The best found: `optima[h]` for each limit 0 to h, or a single one for the one limit that was asked for.

    If `exact`, nothing is better. Else the search stopped at its node limit; no gain is higher than the one found by
    more than `gap`, and with a gap of 0 only ties are left undecided.
    """

    optima: tuple[Optimum, ...]
    exact: bool
    gap: int
    n_nodes: int


def first_pass_terms(trajectory: Ints, points: Ints, gain: Ints, harm: Ints) -> Terms:
    """Write what the first passing candidate of each trajectory contributes as a sum over orthants.

    Parameters
    ----------
    trajectory : array, shape (n,)
        Codes 0, 1, … of the candidates' trajectories, ascending; within one, candidates stand in the order of time.
    points : array, shape (n, 3)
        Ranks of the candidates; one passes where all three are at least the thresholds.
    gain, harm : array, shape (n,)
        What acting on a candidate adds.

    Returns
    -------
    Terms
        The canonical form: a point stands once a trajectory, and none has two weights of 0. There are few, since the
        union of k orthants in three dimensions has of the order of k of them.
    """
    weighty = (gain != 0) | (harm != 0)
    last = np.full(int(trajectory.max(initial=-1)) + 1, -1)
    last[trajectory[weighty]] = np.flatnonzero(weighty)
    rows = np.flatnonzero(np.arange(len(trajectory)) <= last[trajectory])  # candidates after the last cannot matter
    starts = np.flatnonzero(np.diff(trajectory[rows], prepend=-1))
    place = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    union = _Signed(trajectory[:0], points[:0], gain[:0])
    found = []
    for step in range(int(place.max(initial=-1)) + 1):
        here = rows[place == step]
        row_of = np.full(len(last), -1)
        row_of[trajectory[here]] = here
        row = row_of[union.trajectory]
        met = row >= 0
        # this candidate passes, and none before it does
        acts = _Signed(
            np.concatenate([trajectory[here], union.trajectory[met]]),
            np.concatenate([points[here], np.minimum(union.points[met], points[row[met]])]),
            np.concatenate([np.ones(len(here), dtype=np.int64), -union.sign[met]]),
        ).consolidated()
        union = _Signed(*(np.concatenate(parts) for parts in zip(union, acts, strict=True))).consolidated()
        row = row_of[acts.trajectory]
        found.append((acts.trajectory, acts.points, acts.sign * gain[row], acts.sign * harm[row]))
    if not found:
        return Terms(trajectory[:0], points[:0], gain[:0], harm[:0])
    terms = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    kept = (terms[2] != 0) | (terms[3] != 0)
    return Terms(*(part[kept] for part in terms))


class _Signed(NamedTuple):
    """A sum of signed indicators of orthants, in each trajectory."""

    trajectory: Ints
    points: Ints
    sign: Ints

    def consolidated(self) -> _Signed:
        """The same with each point once a trajectory, and none of sign 0."""
        order = np.lexsort((*self.points.T, self.trajectory))
        trajectory, points = self.trajectory[order], self.points[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (np.diff(trajectory) != 0) | (np.diff(points, axis=0) != 0).any(axis=1)
        sign = np.add.reduceat(self.sign[order], np.flatnonzero(first)) if len(order) else self.sign
        return _Signed(*(part[sign != 0] for part in (trajectory[first], points[first], sign)))


def maximize(
    terms: Terms,
    *,
    most_harm: int,
    interventions: Callable[[Thresholds], int],
    multiplicity: Ints | None = None,
    every_limit: bool = False,
    node_limit: int = NODE_LIMIT,
) -> Maximum:
    """Find the thresholds of the highest gain whose harm is at most `most_harm`.

    Parameters
    ----------
    terms : Terms
        From `first_pass_terms`.
    most_harm : int
        The limit, at least 0.
    interventions : callable
        The number of interventions at given thresholds, which never grows as a threshold does.
    multiplicity : array, optional
        How often each trajectory counts; once if not given.
    every_limit : bool
        Find the optimum for each of the limits 0 to `most_harm`.
    node_limit : int
        Boxes to look into before giving up on a proof.

    Returns
    -------
    Maximum
        Optima are those of the whole order of `Optimum.key`. Thresholds are ranks of weighted points: between two
        such ranks gain and harm do not change, and the upper one has the fewest interventions.

    Notes
    -----
    A box of thresholds splits the points into those that pass anywhere in it, those that pass nowhere, and the rest.
    Of the rest, points that hang on one threshold alone add at most the largest sum over that threshold's range; of
    those that hang on several, the positive weights bound what they add. Both bounds come for all cells of a grid at
    once from cumulative sums, so that 100,000 candidates take about a second. Boxes are taken in the order of their
    bounds; the corners of a small one are all looked at.
    """
    search = _Search(most_harm, interventions, every_limit)
    search.open(Box(*_merged(terms, multiplicity), 0, 0))
    while search.heap and search.n_nodes < node_limit:
        if (box := search.next_box()) is None:
            continue
        search.n_nodes += 1
        values, index = ranked(box.points)
        if math.prod(map(len, values)) <= _LEAF:
            search.offer(*corner_sums(box, values, index), values)
            continue
        grid = Grid(box, values, index)
        search.offer(grid.gain, grid.harm, [known[top] for known, top in zip(values, grid.tops, strict=True)])
        for cell, highest_gain, least_harm in search.alive(*grid.bounds()):
            search.push(highest_gain, least_harm, grid, cell)
    return search.result()


class _Search:
    """The best so far, and the boxes that may hold a better one."""

    def __init__(self, most_harm: int, interventions: Callable[[Thresholds], int], every_limit: bool) -> None:
        self.most_harm, self.interventions, self.every_limit = most_harm, interventions, every_limit
        self.best = [Optimum(0, 0, 0, None)] * (most_harm + 1 if every_limit else 1)
        self.heap: list[tuple[int, int, int, Grid | None, tuple[int, ...]]] = []
        self.n_nodes = 0
        self._numbers = itertools.count()
        self._root: Box | None = None

    def open(self, box: Box) -> None:
        self._root = box
        if len(box.points):
            self.push(int(np.maximum(box.gain, 0).sum()), 0, None, ())

    def push(self, highest_gain: int, least_harm: int, grid: Grid | None, cell: tuple[int, ...]) -> None:
        heapq.heappush(self.heap, (-highest_gain, least_harm, next(self._numbers), grid, cell))

    def next_box(self) -> Box | None:
        """The box of the highest bound, or None if it cannot hold a better optimum."""
        highest, least_harm, _, grid, cell = heapq.heappop(self.heap)
        best = self.best[self._place(least_harm)]
        if grid is None:
            return self._root
        bound = (-highest, -least_harm)
        if bound < best.key[:2]:
            return None
        top = grid.top(cell)
        if bound == best.key[:2] and Optimum(-highest, least_harm, self.interventions(top), top).key <= best.key:
            return None
        return grid.box(cell)

    def alive(self, highest_gain: Ints, least_harm: Ints) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Cells that may hold an optimum, with their bounds."""
        known = np.array([best.key[:2] for best in self.best], dtype=np.int64)
        place = np.minimum(least_harm, self.most_harm) if self.every_limit else np.zeros_like(least_harm)
        gain, harm = known[place, 0], -known[place, 1]
        better = (highest_gain > gain) | ((highest_gain == gain) & (least_harm <= harm))
        for cell in np.argwhere(better & (least_harm <= self.most_harm)).tolist():
            yield tuple(cell), int(highest_gain[tuple(cell)]), int(least_harm[tuple(cell)])

    def offer(self, gain: Ints, harm: Ints, values: list[Ints]) -> None:
        """Take the best of the corners of a grid, whose thresholds are `values`."""
        allowed = harm <= self.most_harm
        if not allowed.any():
            return
        place = harm[allowed] if self.every_limit else np.zeros_like(harm[allowed])
        highest = np.full(len(self.best), np.iinfo(np.int64).min)
        np.maximum.at(highest, place, gain[allowed])
        for limit in np.flatnonzero(highest >= [best.gain for best in self.best]).tolist():
            level = (harm == limit) if self.every_limit else allowed
            at = level & (gain == highest[limit])
            least = int(harm[at].min())
            if (int(highest[limit]), -least) >= self.best[limit].key[:2]:
                self._take(int(highest[limit]), least, at & (harm == least), values, limit)

    def _take(self, gain: int, harm: int, at: Mask, values: list[Ints], limit: int) -> None:
        for corner in np.argwhere(is_maximal(at)):
            thresholds = (int(values[0][corner[0]]), int(values[1][corner[1]]), int(values[2][corner[2]]))
            if Optimum(gain, harm, 0, thresholds).key <= self.best[limit].key:
                continue  # not better even without an intervention
            found = Optimum(gain, harm, self.interventions(thresholds), thresholds)
            for place in range(limit, len(self.best)):
                if found.key <= self.best[place].key:
                    break
                self.best[place] = found

    def result(self) -> Maximum:
        undecided = [
            -highest - best.gain
            for highest, least_harm, *_ in self.heap
            if (-highest, -least_harm) >= (best := self.best[self._place(least_harm)]).key[:2]
        ]
        return Maximum(tuple(self.best), not undecided, max(undecided, default=0), self.n_nodes)

    def _place(self, least_harm: int) -> int:
        return least_harm if self.every_limit else 0


def _merged(terms: Terms, multiplicity: Ints | None) -> tuple[Ints, Ints, Ints]:
    """Distinct points with their weights over all trajectories, without those that cancel."""
    times = 1 if multiplicity is None else multiplicity[terms.trajectory]
    points, index = np.unique(terms.points, axis=0, return_inverse=True)
    weights = np.zeros((2, len(points)), dtype=np.int64)
    np.add.at(weights[0], index.reshape(-1), terms.gain * times)
    np.add.at(weights[1], index.reshape(-1), terms.harm * times)
    kept = weights.any(axis=0)
    return points[kept], weights[0, kept], weights[1, kept]
