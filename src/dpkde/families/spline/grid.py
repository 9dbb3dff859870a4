"""The layout of a spline table: which axis is splined, tilted or constant, and where cells lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.spline.bsplines import LARGEST_SQUARES
from dpkde.families.spline.narrow import SHARE_BITS, arch_weights
from dpkde.privacy.amounts import Bounds
from dpkde.space.frame import Frame

if TYPE_CHECKING:
    from dpkde.families.spline.family import Spline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_HALF = 1e-100
"""Axes are taken to be at least this wide, so that nothing divides by zero."""
WIDEST = 2.0**31
"""Most bandwidths that an axis may be wide."""


def unbounded(frame: Frame) -> str | None:
    """Return why a grid cannot cover the domain, if it cannot."""
    halves = frame.halves()
    if halves is None:
        return "the domain has no bounds; give bounds, one (low, high) pair per column"
    if not (halves < WIDEST).all():
        return "the bounds are more than 2^32 bandwidths apart; use a larger bandwidth"
    return None


def half_widths(frame: Frame) -> list[float]:
    """Return half the width of each axis in bandwidths, of a bounded domain."""
    halves = frame.halves()
    if halves is None:
        raise ParameterError("splines need bounds")
    return [max(half, LEAST_HALF) for half in halves.tolist()]


def count_intervals(half: float, spacing: float) -> int:
    """Return how many intervals cover an axis; the last may reach beyond its edge."""
    return max(1, math.ceil(2 * half / spacing - 1e-9))


def is_line(degree: int, intervals: int) -> bool:
    """Whether an axis is tilted: a line over a single interval."""
    return degree == 1 and intervals == 1


@dataclass(frozen=True)
class Axis:
    """A splined axis."""

    column: int
    half: float
    degree: int
    spacing: float
    ridge: float
    intervals: int
    """How many cover it."""

    @property
    def nodes(self) -> int:
        """How many B-splines reach into it."""
        return self.intervals + self.degree


@dataclass(frozen=True)
class Grid:
    """Cells in row-major order: the group of tilted axes first, then the splined axes.

    Attributes
    ----------
    axes
        The splined axes, in the order of their columns.
    narrow
        (column, half) of constant and tilted axes.
    tilts
        (column, half, share) of the tilted ones, shares out of 2^SHARE_BITS.
    arch
        The share of the arch, the last cell of the group; 0 where there is none.
    """

    axes: tuple[Axis, ...]
    narrow: tuple[tuple[int, float], ...]
    tilts: tuple[tuple[int, float, int], ...]
    arch: int = 0

    @classmethod
    def of(cls, family: Spline, frame: Frame) -> Grid:
        """Lay out the table of a family that has one entry an axis."""
        axes, narrow, tilts = [], [], []
        degrees, spacings, ridges, slopes = (
            family.degree,
            family.spacing,
            family.ridge,
            family.slopes,
        )
        assert isinstance(degrees, tuple)
        assert isinstance(spacings, tuple)
        assert isinstance(ridges, tuple)
        assert slopes is not None
        for k, half in enumerate(half_widths(frame)):
            if degrees[k] == 0:
                narrow.append((k, half))
            elif is_line(degrees[k], count_intervals(half, spacings[k])):
                narrow.append((k, half))
                tilts.append((k, half, slopes[k]))
            else:
                count = count_intervals(half, spacings[k])
                axes.append(Axis(k, half, degrees[k], spacings[k], ridges[k], count))
        return cls(tuple(axes), tuple(narrow), tuple(tilts), family.arch or 0)

    def along(self, columns: Sequence[int]) -> Grid:
        """Return the grid of some columns: as well as this one does on them."""
        return Grid(
            tuple(axis for axis in self.axes if axis.column in columns),
            tuple(entry for entry in self.narrow if entry[0] in columns),
            tuple(entry for entry in self.tilts if entry[0] in columns),
            self.arch,
        )

    def rescaled(self, ratios: Floats) -> Grid:
        """Return the same cells in other units: coordinates are `ratios` times as large."""

        def half(column: int, before: float) -> float:
            return max(before * float(ratios[column]), LEAST_HALF)

        axes = (
            replace(
                axis,
                half=half(axis.column, axis.half),
                spacing=axis.spacing * float(ratios[axis.column]),
            )
            for axis in self.axes
        )
        narrow = ((column, half(column, before)) for column, before in self.narrow)
        tilts = ((column, half(column, before), share) for column, before, share in self.tilts)
        return Grid(tuple(axes), tuple(narrow), tuple(tilts), self.arch)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis, the group of tilted axes first."""
        group = (self.group,) if self.group > 1 else ()
        return (*group, *(axis.nodes for axis in self.axes))

    @property
    def group(self) -> int:
        """How many cells narrow axes have together: the constant, the slopes, the arch."""
        return 1 + len(self.tilts) + (self.arch > 0)

    @property
    def cells(self) -> int:
        """All of them."""
        return math.prod(self.shape)

    @property
    def parts(self) -> int:
        """How many cells a record is spread over."""
        return self.group * math.prod(axis.degree + 1 for axis in self.axes)

    @property
    def tilt_stride(self) -> int:
        """From one cell of the group to the next."""
        return math.prod(axis.nodes for axis in self.axes)

    def bounds(self, bits: int) -> Bounds:
        """Return the bounds that ``proof.md`` derives.

        A part of size m is divided into parts within 2 of m·B_p, so that lengths obey
        ‖children‖ ≤ N‖parts‖ + 2√(number of children), N² the largest Σ B_p².
        """
        full = 1 << bits
        squared, count = sum(int(m) ** 2 for m in self.masses(bits)), self.group
        for axis in self.axes:
            most = LARGEST_SQUARES[axis.degree]
            count *= axis.degree + 1
            length = math.isqrt(math.ceil(most * squared)) + 1 + 2 * (math.isqrt(count) + 1)
            squared = min(length**2, full**2)
        return Bounds(
            cells=self.cells,
            l1=full,
            l2_squared=squared,
            linf=full,
            nonnegative=self.group == 1,
        )

    def masses(self, bits: int) -> Ints:
        """Return how much of a record's 2^bits each cell of the group can get."""
        return np.asarray(self.shares << (bits - SHARE_BITS))

    @cached_property
    def shares(self) -> Ints:
        """The group's weights, out of 2^SHARE_BITS: the constant's, the slopes', the arch's."""
        others = [share for _, _, share in self.tilts] + [self.arch] * (self.arch > 0)
        return np.array([(1 << SHARE_BITS) - sum(others), *others], dtype=np.int64)

    @cached_property
    def arched(self) -> Ints:
        """Columns of the arch: all narrow ones, or none."""
        return np.array([column for column, _ in self.narrow if self.arch], dtype=np.int64)

    @cached_property
    def arch_leans(self) -> Floats:
        """1/half of those."""
        return np.array([1 / half for _, half in self.narrow if self.arch], dtype=np.float64)

    @cached_property
    def arch_weights(self) -> Floats:
        """Their weights in the arch, which add up to one."""
        halves = [half for _, half in self.narrow if self.arch]
        return np.array(arch_weights(halves), dtype=np.float64)

    @cached_property
    def tilted(self) -> Ints:
        """Columns of the tilted axes."""
        return np.array([column for column, _, _ in self.tilts], dtype=np.int64)

    @cached_property
    def leans(self) -> Floats:
        """1/half of the tilted axes: takes a coordinate to [−1, 1]."""
        return np.array([1 / half for _, half, _ in self.tilts], dtype=np.float64)

    @cached_property
    def columns(self) -> Ints:
        """Columns of the splined axes."""
        return np.array([axis.column for axis in self.axes], dtype=np.int64)

    @cached_property
    def halves(self) -> Floats:
        """Half widths of the splined axes."""
        return np.array([axis.half for axis in self.axes], dtype=np.float64)

    @cached_property
    def scales(self) -> Floats:
        """1/spacing of the splined axes."""
        return np.array([1 / axis.spacing for axis in self.axes], dtype=np.float64)

    @cached_property
    def intervals(self) -> Ints:
        """Intervals of the splined axes."""
        return np.array([axis.intervals for axis in self.axes], dtype=np.int64)

    @cached_property
    def degrees(self) -> Ints:
        """Degrees of the splined axes."""
        return np.array([axis.degree for axis in self.axes], dtype=np.int64)

    @cached_property
    def nodes(self) -> Ints:
        """Nodes of the splined axes."""
        return np.array([axis.nodes for axis in self.axes], dtype=np.int64)

    @cached_property
    def strides(self) -> Ints:
        """From one node of a splined axis to the next."""
        sizes = [axis.nodes for axis in self.axes]
        return np.array([math.prod(sizes[k + 1 :]) for k in range(len(sizes))], dtype=np.int64)
