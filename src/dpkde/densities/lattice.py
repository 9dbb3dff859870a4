"""Weights at the sites of a lattice, smoothed by the kernel: the proper density of a spline table.

    kde(y) = Σ_s w_s ∏_a k(y_a − z_sa) · ∏_b mean of k(y_b − t) over t in the strip of axis b

with w ≥ 0 and Σ w = 1. Axes much narrower than the bandwidth have no sites: along them records are
taken to lie on a strip, whatever their other columns.

Cost: a query sees the sites within the kernel's reach, some (12/pitch)^axes of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.base import Density
from dpkde.densities.fitting import covering
from dpkde.densities.reflection import images
from dpkde.densities.survey import SiteAxis, Strip
from dpkde.errors import ParameterError
from dpkde.kernels import Points, ProductKernel

Floats = NDArray[np.float64]

_NEAR = 1e-15
"""What is left of the kernel beyond the sites that a query sees at first."""
_WEAK = 1e-9
"""Below this a query sees all the sites that a number can tell from nothing."""
_LEAST = 1e-300
_AT_ONCE = 1 << 20
"""Logarithms in memory at a time."""


@dataclass(frozen=True, eq=False)
class LatticeDensity(Density):
    """The density of weighted sites.

    Attributes
    ----------
    axes
        Axes with sites.
    strips
        Narrow axes.
    weights
        One number per site, shape (sites of the first axis, …), not negative, of sum one.
    """

    axes: tuple[SiteAxis, ...]
    strips: tuple[Strip, ...]
    weights: Floats

    def __post_init__(self) -> None:
        self.weights.setflags(write=False)

    @property
    def _kernel(self) -> ProductKernel:
        return self.frame.kernel.shape

    @cached_property
    def _live(self) -> tuple[tuple[slice, ...], Floats]:
        """The smallest box that holds all weight, and the weights in it."""
        box = covering(self.weights > 0)
        return box, np.ascontiguousarray(self.weights[box])

    def _kde(self, located: Points) -> Floats:
        values = self._sums(located, _NEAR, folds=False)
        weak = values < _WEAK
        if weak.any():
            values[weak] = self._sums(located[weak], _LEAST, folds=False)
        return values

    def kde_on_grid(self, axes: Sequence[Floats]) -> Floats:
        """Return `kde` at all places of a grid: the weights times a matrix for each axis."""
        if self.frame.kernel.bandwidth.is_matrix:
            return super().kde_on_grid(axes)
        located = self._located(axes)
        box, values = self._live if self.axes else ((), np.ones(()))
        for place, (axis, part) in enumerate(zip(self.axes, box, strict=True)):
            offsets = located[axis.column][:, np.newaxis] - axis.places[part]
            factors = axis.seen(self._kernel, offsets)
            values = np.moveaxis(np.tensordot(factors, values, (1, place)), 0, place)
        order = [axis.column for axis in self.axes] + [strip.column for strip in self.strips]
        for strip in self.strips:
            values = np.multiply.outer(values, strip.seen(self._kernel, located[strip.column]))
        return np.ascontiguousarray(values.transpose(np.argsort(order)))

    def _located(self, axes: Sequence[Floats]) -> list[Floats]:
        """Return the coordinates along each axis, in bandwidths."""
        origin = self.frame.domain.origin(self.dim)
        located = []
        for column, values in enumerate(axes):
            places = np.tile(origin, (len(values), 1))
            places[:, column] = values
            located.append(self.frame.locate(places)[:, column])
        return located

    def marginal(self, columns: Sequence[int]) -> LatticeDensity:
        """Return the density of some columns: sums of weights over all sites of the others."""
        frame, names = self._part(columns)
        kept = [k for k, axis in enumerate(self.axes) if axis.column in columns]
        kept.sort(key=lambda k: list(columns).index(self.axes[k].column))
        sums = self.weights.sum(axis=tuple(set(range(len(self.axes))) - set(kept)))
        order = np.argsort(np.argsort(kept))
        axes = tuple(
            replace(self.axes[k], column=list(columns).index(self.axes[k].column)) for k in kept
        )
        strips = tuple(
            replace(strip, column=list(columns).index(strip.column))
            for strip in self.strips
            if strip.column in columns
        )
        weights = np.array(sums.transpose(order)) if kept else np.asarray(sums)
        return LatticeDensity(frame, names, axes, strips, weights)

    def _log_kde(self, located: Points) -> Floats:
        kernel, logs = self._kernel, np.zeros(len(located))
        for strip in self.strips:
            logs += strip.log_seen(kernel, located[:, strip.column])
        if not self.axes:
            return logs
        live = np.flatnonzero(self.weights)
        numbers = np.unravel_index(live, self.weights.shape)
        weights = np.log(self.weights.reshape(-1)[live])
        step = max(1, _AT_ONCE // len(live))
        for start in range(0, len(located), step):
            rows = located[start : start + step]
            sums = np.broadcast_to(weights, (len(rows), len(live))).copy()
            for axis, number in zip(self.axes, numbers, strict=True):
                offsets = rows[:, axis.column, np.newaxis] - axis.places
                sums += axis.log_seen(kernel, offsets)[:, number]
            logs[start : start + step] += np.logaddexp.reduce(sums, axis=1)
        return logs

    def _folded_kde(self, located: Points) -> Floats:
        if self.frame.kernel.bandwidth.is_matrix:
            raise ParameterError(
                "support='bounds' folds axis by axis, and a matrix bandwidth turns the axes: "
                "leave support out for a density over all of space"
            )
        values = self._sums(located, _NEAR, folds=True)
        weak = values < _WEAK
        if weak.any():
            values[weak] = self._sums(located[weak], _LEAST, folds=True)
        return values

    def _sums(self, located: Points, tolerance: float, folds: bool) -> Floats:
        """Return the KDE from all sites where the kernel is above a tolerance."""
        kernel = self._kernel
        narrow = np.ones(len(located))
        for strip in self.strips:
            narrow *= self._on_strip(strip, located[:, strip.column], folds)
        if not self.axes:
            return narrow
        from dpkde.densities.gather import gathered

        box, weights = self._live
        reach = kernel.profile_reach(tolerance)
        starts = np.empty((len(located), len(self.axes)), dtype=np.int64)
        rows, sizes = [], []
        for k, (axis, part) in enumerate(zip(self.axes, box, strict=True)):
            y, live = located[:, axis.column], part.stop - part.start
            size = int(min(live, 2 * math.ceil(min(reach / axis.pitch, live)) + 4))
            first = np.floor((np.clip(y, -2 * axis.half, 2 * axis.half) + axis.half) / axis.pitch)
            starts[:, k] = np.clip(first - part.start - (size - 1) // 2, 0, live - size)
            near = starts[:, k, np.newaxis] + np.arange(part.start, part.start + size)
            places = axis.pitch * near - axis.half
            if folds:
                seen, rest = images(y, axis.half, kernel)
                factors = rest + sum(axis.seen(kernel, i[:, np.newaxis] - places) for i in seen)
            else:
                factors = axis.seen(kernel, y[:, np.newaxis] - places)
            rows.append(factors)
            sizes.append(size)
        factors = np.zeros((len(located), len(rows), max(sizes)))
        for k, row in enumerate(rows):
            factors[:, k, : sizes[k]] = row
        strides = np.array([math.prod(weights.shape[k + 1 :]) for k in range(len(rows))])
        sums = np.empty(len(located))
        gathered(
            factors, starts, np.array(sizes), strides.astype(np.int64), weights.reshape(-1), sums
        )
        return sums * narrow

    def _on_strip(self, strip: Strip, y: Floats, folds: bool) -> Floats:
        if not folds:
            return strip.seen(self._kernel, y)
        seen, rest = images(y, strip.half, self._kernel)
        return np.asarray(rest + sum(strip.seen(self._kernel, image) for image in seen))

    def _draw(self, generator: np.random.Generator, count: int) -> Points:
        coordinates = np.empty((count, self.dim))
        if self.axes:
            live = np.flatnonzero(self.weights)
            edges = np.cumsum(self.weights.reshape(-1)[live])
            drawn = np.searchsorted(edges[:-1], generator.random(count) * edges[-1], side="right")
            numbers = np.unravel_index(live[drawn], self.weights.shape)
            for axis, number in zip(self.axes, numbers, strict=True):
                points, shares = axis.spread
                edges = np.cumsum(shares)[:-1]
                part = np.searchsorted(edges, generator.random(count), side="right")
                coordinates[:, axis.column] = axis.pitch * number - axis.half + points[part]
        for strip in self.strips:
            coordinates[:, strip.column] = strip.draw(generator, count)
        return coordinates

    def _jitter(self, generator: np.random.Generator, count: int) -> Points:
        offsets = np.zeros((count, self.dim))
        for axis in self.axes:
            offsets[:, axis.column] = axis.pitch * (generator.random(count) - 0.5)
        return offsets

    def __repr__(self) -> str:
        live = int(np.count_nonzero(self.weights))
        return f"<LatticeDensity: {live} of {self.weights.size} sites, d={self.dim}>"
