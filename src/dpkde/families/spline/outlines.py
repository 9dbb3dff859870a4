"""How far shares of polygons can be off, whatever the records: in each cell, what its worst has.

Of a region by strips (see `dpkde.families.outlines`) the error of a record is a function of its
place. B-splines add up to one, so nodes that have the largest error of all cells their B-spline
reaches into make a spline above it; and its sum over the records is read from the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families import outlines
from dpkde.families.brackets import Allowance
from dpkde.families.outlines import View
from dpkde.families.reading import WHOLE, Asked
from dpkde.families.spline import bias, narrow
from dpkde.families.spline.bsplines import bspline
from dpkde.families.spline.grid import Axis, Grid
from dpkde.families.spline.intervals import NarrowAxis, SplinedAxis, group
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplinePair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PLACES, _LINE = 8, 33
"""Places within an interval, and along a narrow axis, at which errors are looked at."""
_MARGIN = 1.12
"""Larger than what is seen there by this: an error wiggles once in an interval."""


@dataclass(frozen=True, eq=False)
class _Splined:
    """A splined axis."""

    kernel: ProductKernel
    axis: Axis
    entry: Asked
    rows: Floats

    @property
    def bins(self) -> int:
        return self.axis.intervals

    @property
    def places(self) -> int:
        return _PLACES

    def near(self, bins: slice) -> Ints:
        return outlines.heavy(self.rows[:, bins.start : bins.stop + self.axis.degree])

    def counted(self, strips: Ints, bins: slice) -> Floats:
        degree = self.axis.degree
        nodes = np.arange(degree + 1) - (degree - 1) / 2
        splines = bspline(degree, np.subtract.outer(np.linspace(0, 1, _PLACES), nodes))
        near = self.rows[strips, bins.start : bins.stop + degree]
        windows = np.lib.stride_tricks.sliding_window_view(near, degree + 1, axis=1)
        return np.asarray(windows @ splines.T)

    def true(self, strips: Ints, bins: slice) -> Floats:
        steps = np.add.outer(np.arange(bins.start, bins.stop), np.linspace(0, 1, _PLACES))
        x = steps * self.axis.spacing - self.axis.half
        return outlines.shares(self.kernel, self.entry, strips, x)


@dataclass(frozen=True, eq=False)
class _Group:
    """All narrow axes, of which one or two are asked about: a single bin, and places in it.

    `features` are what records at the places have in each cell of the group.
    """

    kernel: ProductKernel
    rows: Floats
    features: Floats
    entries: Sequence[tuple[Asked, Floats]]

    bins = 1

    @property
    def places(self) -> int:
        return len(self.features)

    def near(self, bins: slice) -> Ints:
        return np.arange(len(self.rows))

    def counted(self, strips: Ints, bins: slice) -> Floats:
        return np.asarray(self.rows[strips] @ self.features.T)[:, np.newaxis]

    def true(self, strips: Ints, bins: slice) -> Floats:
        product = np.ones((len(strips), self.places))
        for entry, x in self.entries:
            product = product * outlines.shares(self.kernel, entry, strips, x)
        return product[:, np.newaxis]


def of_strips(
    pair: SplinePair, asked: Sequence[Asked], coefficients: Floats, table: Floats
) -> Allowance:
    """Return the most that the sum over a region is off by, and the noise of that: ‖p‖ or ‖q‖."""
    grid, kernel = pair.grid, pair.frame.kernel.shape
    tensor = table.reshape(grid.group, *(axis.nodes for axis in grid.axes)) / 2**pair.bits
    views: list[View] = []
    unseen = np.zeros(len(coefficients))
    one = np.ones((len(coefficients), 1))
    if any(asked[column] is not WHOLE for column, _ in grid.narrow):
        narrow_axes, unseen = _of_group(kernel, grid, asked)
        views.append(narrow_axes)
    kept = []
    for place, axis in enumerate(grid.axes):
        entry = asked[axis.column]
        if entry is not WHOLE:
            kept.append(place + 1)
            rows = entry.of(SplinedAxis(kernel, axis)).rows()
            rows = np.broadcast_to(rows, (len(one), axis.nodes))
            views.append(_Splined(kernel, axis, entry, rows))
    if len(views) < 2:
        views.append(_Group(kernel, one, np.ones((1, 1)), []))
    first, second = views
    sizes = (first.bins, second.bins)
    above, below = np.zeros(sizes), np.zeros(sizes)
    for bins, error in outlines.errors(first, second, coefficients):
        above[bins] = -error.min(axis=(1, 3))
        below[bins] = error.max(axis=(1, 3))
    # What the arch of narrow axes that are left out may add.
    if unseen.any():
        every = second.counted(np.arange(len(one)), slice(0, second.bins))
        more = np.abs(np.tensordot(coefficients * unseen, every, axes=1)).max(axis=1)
        above, below = above + more, below + more
    others = tuple(k + 1 for k in range(len(grid.axes)) if k + 1 not in kept)
    constant = 1 / (grid.shares[0] / (1 << narrow.SHARE_BITS))
    counts = tensor[0].sum(axis=tuple(k - 1 for k in others)) * constant
    copies = constant * math.sqrt(math.prod(tensor.shape[k] for k in others))
    most, norms = [0.0], []
    for bound in (above, below):
        nodes = _MARGIN * np.maximum(bound, 0.0)
        for place, view in enumerate(views):
            if isinstance(view, _Splined):
                moved = np.moveaxis(nodes, place, 1)
                nodes = np.moveaxis(bias.widest(moved, view.axis.degree + 1), 1, place)
        most.append(float((nodes.reshape(counts.shape) * counts).sum()))
        norms.append(float(np.linalg.norm(nodes)) * copies / 2**pair.bits)
    return Allowance(np.array([max(most)]), np.array([max(norms)]))


def _of_group(kernel: ProductKernel, grid: Grid, asked: Sequence[Asked]) -> tuple[_Group, Floats]:
    """Return the group as an axis, and how much of each strip is in what others may add."""
    lines = [asked[k].of(NarrowAxis(kernel, half, f"column {k}")) for k, half in grid.narrow]
    rows = group(grid, lines)
    t = np.linspace(-1, 1, _LINE)
    wanted = [k for k, (column, _) in enumerate(grid.narrow) if asked[column] is not WHOLE]
    mesh = np.meshgrid(*[t] * len(wanted), indexing="ij")
    places = {k: part.reshape(-1) for k, part in zip(wanted, mesh, strict=True)}
    count = _LINE ** len(wanted)
    cells = [np.ones(count)]
    for column in grid.tilted.tolist():
        k = next(k for k, entry in enumerate(grid.narrow) if entry[0] == column)
        cells.append(places.get(k, np.zeros(count)))
    unseen = np.zeros(len(rows))
    if grid.arch:
        heights = grid.arch_weights
        cells.append(
            np.asarray(sum(heights[k] * narrow.parabola(place) for k, place in places.items()))
        )
        # |P₂| ≤ 1.
        left = float(sum(height for k, height in enumerate(heights) if k not in places))
        unseen = rows[:, -1] * (left * grid.arch / (1 << narrow.SHARE_BITS))
    features = np.column_stack(cells) * (grid.shares / (1 << narrow.SHARE_BITS))
    entries = [(asked[grid.narrow[k][0]], grid.narrow[k][1] * place) for k, place in places.items()]
    return _Group(kernel, rows, features, entries), unseen
