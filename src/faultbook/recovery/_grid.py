"""A box of thresholds, cut into the cells of a grid: sums over the points that pass, and bounds within each cell."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Thresholds = tuple[int, int, int]

_AXES = (0, 1, 2)
_ALL = (slice(None),) * 3
_SUMS = 200_000  # held at a time for one axis
_SPLITS = (4, 24)  # parts of an axis, at least and at most
_LONG = 64
_SEVERAL = tuple(mask for mask in itertools.product((False, True), repeat=3) if sum(mask) > 1)


@dataclass(frozen=True, slots=True)
class Box:
    """Thresholds between two corners: the points that are undecided in it, and the sums over those that pass.

    Coordinates end at the upper corner, above which all points of an axis are alike here.
    """

    points: Ints
    gain: Ints
    harm: Ints
    base_gain: int
    base_harm: int


class Grid:
    """A box cut into cells, each a range of thresholds on every axis.

    Parameters
    ----------
    box : Box
        The box.
    values, index
        Of `ranked`: the distinct coordinates of each axis, and where the points have theirs.

    Attributes
    ----------
    tops : list of array
        Position of the highest threshold of each part of each axis.
    gain, harm : array
        Sums over the points that pass at the highest thresholds of each cell, and so at all thresholds in it.
    """

    def __init__(self, box: Box, values: list[Ints], index: Ints) -> None:
        self.values = values
        self._box, self._index = box, index
        most = max(map(len, values))
        parts = int(np.clip(np.sqrt(_SUMS / most), *_SPLITS))
        self.starts = [
            np.unique(np.linspace(0, len(known), min(parts, len(known)) + 1).astype(int)) for known in values
        ]
        self.tops = [edges[1:] - 1 for edges in self.starts]
        self._shape = [len(tops) for tops in self.tops]
        # A point passes, on an axis, in the first `_passes` parts; in the part after them it is undecided or fails.
        self._passes = np.column_stack(
            [np.searchsorted(tops, column, side="right") for tops, column in zip(self.tops, index.T, strict=True)]
        )
        self._undecided = np.column_stack(
            [~np.isin(column, tops) for tops, column in zip(self.tops, index.T, strict=True)]
        )
        self.gain = self._sums(box.gain, (False,) * 3) + box.base_gain
        self.harm = self._sums(box.harm, (False,) * 3) + box.base_harm

    def bounds(self) -> tuple[Ints, Ints]:
        """The highest gain and the least harm that thresholds in each cell may have, at most and at least."""
        highest, least = self.gain.copy(), self.harm.copy()
        for axis in _AXES:
            highest += self._most_of_slab(self._box.gain, axis)
            least -= self._most_of_slab(-self._box.harm, axis)
        for mask in _SEVERAL:
            highest += self._sums(np.maximum(self._box.gain, 0), mask)
            least += self._sums(np.minimum(self._box.harm, 0), mask)
        return highest, np.maximum(least, 0)

    def top(self, cell: tuple[int, ...]) -> Thresholds:
        """The highest thresholds of a cell."""
        first, second, third = (int(self.values[axis][self.tops[axis][cell[axis]]]) for axis in _AXES)
        return first, second, third

    def box(self, cell: tuple[int, ...]) -> Box:
        """A cell as a box of its own."""
        start = np.array([self.starts[axis][cell[axis]] for axis in _AXES])
        top = np.array([self.tops[axis][cell[axis]] for axis in _AXES])
        inside = (self._index >= start).all(axis=1) & (self._index < top).any(axis=1)
        points = np.minimum(self._box.points[inside], np.array(self.top(cell)))
        sums = int(self.gain[cell]), int(self.harm[cell])
        return Box(points, self._box.gain[inside], self._box.harm[inside], *sums)

    def _sums(self, weights: Ints, undecided: tuple[bool, ...]) -> Ints:
        """For each cell, the sum over the points that are undecided on these axes and pass on the others."""
        used = (weights != 0) & self._undecided[:, list(undecided)].all(axis=1)
        sums = np.zeros([size + 1 for size in self._shape], dtype=np.int64)
        np.add.at(sums.reshape(-1), np.ravel_multi_index(tuple(self._passes[used].T), sums.shape), weights[used])
        for axis in _AXES:
            sums = sums[(*_ALL[:axis], slice(-1))] if undecided[axis] else _above(sums, axis)
        return sums

    def _most_of_slab(self, weights: Ints, axis: int) -> Ints:
        """For each cell, the largest sum that the points which hang on this axis alone may add, at least 0."""
        first, second = (other for other in _AXES if other != axis)
        used = (weights != 0) & self._undecided[:, axis]
        where = (self._passes[used, first], self._passes[used, second], self._index[used, axis] + 1)
        shape = (self._shape[first] + 1, self._shape[second] + 1, len(self.values[axis]) + 1)
        sums = np.zeros(shape, dtype=np.int32)
        np.add.at(sums.reshape(-1), np.ravel_multi_index(where, shape), weights[used].astype(np.int32))
        sums = _above(_above(sums, 0), 1)
        # With sums over all points below a threshold, those from it up to the next part are a difference of two.
        below = np.cumsum(sums, axis=2, dtype=sums.dtype)
        edges = self.starts[axis]
        most = below[:, :, edges[1:]] - np.minimum.reduceat(below[:, :, :-1], edges[:-1], axis=2)
        by_cell: Ints = np.moveaxis(most, 2, axis).astype(np.int64)
        return by_cell


def ranked(points: Ints) -> tuple[list[Ints], Ints]:
    """The distinct coordinates of each axis, ascending, and the position of each point's among them."""
    pairs = [np.unique(column, return_inverse=True) for column in points.T]
    return [values for values, _ in pairs], np.column_stack([index for _, index in pairs])


def corner_sums(box: Box, values: list[Ints], index: Ints) -> tuple[Ints, Ints]:
    """Gain and harm at all thresholds of a box."""
    shape = [len(known) for known in values]
    where = np.ravel_multi_index(tuple(index.T), shape)
    both = []
    for weights, base in ((box.gain, box.base_gain), (box.harm, box.base_harm)):
        sums = np.zeros(shape, dtype=np.int64)
        np.add.at(sums.reshape(-1), where, weights)
        for axis in _AXES:
            sums = _from_end(sums, axis)
        both.append(sums + base)
    return both[0], both[1]


def is_maximal(at: Mask) -> Mask:
    """Which true corners have no other true corner at or above them on all axes."""
    above = at
    for axis in _AXES:
        above = np.flip(np.logical_or.accumulate(np.flip(above, axis), axis=axis), axis)
    below_another = np.zeros_like(at)
    for axis in _AXES:
        lower = tuple(slice(None, -1) if other == axis else slice(None) for other in _AXES)
        upper = tuple(slice(1, None) if other == axis else slice(None) for other in _AXES)
        below_another[lower] |= above[upper]
    return at & ~below_another


def _from_end(sums: npt.NDArray[np.signedinteger], axis: int) -> npt.NDArray[np.signedinteger]:
    """Cumulative sums from each position to the end of the axis."""
    if sums.shape[axis] > _LONG:
        return np.flip(np.cumsum(np.flip(sums, axis), axis=axis, dtype=sums.dtype), axis)
    slices = sums.swapaxes(0, axis)  # adding slice to slice is several times faster where there are few
    for position in range(len(slices) - 2, -1, -1):
        slices[position] += slices[position + 1]
    return sums


def _above(sums: npt.NDArray[np.signedinteger], axis: int) -> npt.NDArray[np.signedinteger]:
    """For each part of an axis, the sum over the points that pass in it."""
    return _from_end(sums, axis)[(*_ALL[:axis], slice(1, None))]
