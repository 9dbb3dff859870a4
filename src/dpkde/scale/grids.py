"""Public grids, and the histograms over them that are summed in a pass over the points.

A record adds one to a cell of each column (`Histograms`), or to a single cell of all columns
together (`JointHistogram`). The cell of a value x is how many inner edges are at most x: a function
of that value alone, defined for every finite float, and cells at the ends take all beyond.

The **geometric grid** covers every finite float without a look at any. Edges are ±2^e, few where
magnitudes are unusual: sixteen cells to an octave from 2⁻¹⁶ to 2⁶⁴, one from 2⁻⁴⁸ on, and then
one to 16 octaves. Cells are joined again before noise is added (`Histograms.joined`), by the
noisy count: where noise is large against it, few cells tell more than many.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpkde.families.base import Table
from dpkde.kernels import Points
from dpkde.numerics.numbers import LARGEST
from dpkde.privacy.amounts import Bounds
from dpkde.space.domain import Mask

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

FINEST = Fraction(1, 16)
"""Octaves that a cell of the finest geometric grid is long."""
_USUAL, _LOW, _STEP = (-16, 64), -48, 16
_SMALLEST, _HIGHEST = -320, 496


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of a column.

    Attributes
    ----------
    edges
        From the first cell to the end of the last, increasing; the outermost are where the ends are
        taken to be, though these cells hold all values beyond.
    """

    edges: Floats
    is_geometric: bool = False

    @classmethod
    def uniform(cls, low: float, high: float, cells: int) -> Axis:
        """Return so many cells of one width between two ends."""
        shares = np.arange(cells + 1) / cells
        return cls(low * (1 - shares) + high * shares)  # ends may be as far apart as floats go

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    @property
    def centers(self) -> Floats:
        """The middles of the cells."""
        return np.asarray(self.edges[:-1] / 2 + self.edges[1:] / 2)

    def cell_of(self, values: Floats) -> Counts:
        """Return the number of each value's cell."""
        return np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int64)


@cache
def geometric(octaves: Fraction = FINEST) -> Axis:
    """Return the geometric grid whose cells of usual magnitude are so many octaves long.

    >>> fine, coarse = geometric(), geometric(Fraction(2))
    >>> fine.cells, coarse.cells, bool(np.isin(coarse.edges, fine.edges).all())
    (2715, 203, True)
    """
    low, high = _USUAL
    step = max(1, int(octaves))
    parts = max(1, int(1 / octaves))
    outer = [*range(_SMALLEST, _LOW, _STEP), *range(_LOW, low, step)]
    within = 2.0 ** np.arange(low, high, step)[:, np.newaxis]
    # Steps in an octave are even: edges of coarse grids are those of fine ones, bit for bit.
    usual = (within * (1 + np.arange(parts) / parts)).ravel()
    beyond = 2.0 ** np.arange(high, _HIGHEST + 1, _STEP)
    sizes = np.concatenate([2.0 ** np.array(outer, dtype=np.float64), usual, beyond, [LARGEST]])
    return Axis(np.concatenate([-sizes[::-1], sizes]), is_geometric=True)


@dataclass(frozen=True, eq=False)
class Histograms:
    """One histogram per column. A record adds one to each: ‖f‖₁ = d, ‖f‖₂² = d, ‖f‖_∞ = 1.

    Attributes
    ----------
    axes
        The cells of each column that is looked at.
    columns
        Which columns those are.
    """

    axes: tuple[Axis, ...]
    columns: tuple[int, ...]

    @property
    def bounds(self) -> Bounds:
        """How far one record can move the sums."""
        count = len(self.axes)
        return Bounds(sum(axis.cells for axis in self.axes), count, count, 1, nonnegative=True)

    def places(self, coordinates: Points, counts: Mask) -> Counts:
        """Return the cells that the records that count add one to, shape (records, columns)."""
        chosen = coordinates[counts][:, self.columns]
        numbers = np.empty(chosen.shape, dtype=np.int64)
        start = 0
        for k, axis in enumerate(self.axes):
            numbers[:, k] = start + axis.cell_of(chosen[:, k])
            start += axis.cells
        return numbers

    def quantize(self, coordinates: Points, counts: Mask) -> Counts:
        """Return each record's integers: plain, slow, obvious."""
        vectors = np.zeros((len(coordinates), self.bounds.cells), dtype=np.int64)
        places = self.places(coordinates, counts)
        for row, cells in zip(np.flatnonzero(counts), places, strict=True):
            vectors[row, cells] = 1
        return vectors

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the sums."""
        np.add.at(table, self.places(coordinates, counts).ravel(), 1)

    def parted(self, table: Counts) -> list[Counts]:
        """Return the sums column by column."""
        return np.split(table, np.cumsum([axis.cells for axis in self.axes])[:-1])

    def joined(self, table: Counts, axes: tuple[Axis, ...]) -> Counts:
        """Return the sums over coarser cells, whose edges are among those of the finer ones.

        Each finer cell goes into one coarser cell, whatever the edges are. Of bounds a few floats
        apart, edges coincide, and cells between them are empty.
        """
        parts = []
        for counts, fine, coarse in zip(self.parted(table), self.axes, axes, strict=True):
            starts = np.append(-np.inf, fine.edges[1:-1])  # the first holds all below it, too
            places = coarse.cell_of(starts)
            joined = np.zeros(coarse.cells, dtype=np.int64)
            np.add.at(joined, places, counts)
            parts.append(joined)
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class JointHistogram:
    """One histogram over all columns together. A record adds one to one cell: all norms are 1."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each column."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def bounds(self) -> Bounds:
        """How far one record can move the sums."""
        return Bounds(int(np.prod(self.shape)), 1, 1, 1, nonnegative=True)

    def places(self, coordinates: Points, counts: Mask) -> Counts:
        """Return the cell of each record that counts."""
        chosen = coordinates[counts]
        number = np.zeros(len(chosen), dtype=np.int64)
        for k, axis in enumerate(self.axes):
            number = number * axis.cells + axis.cell_of(chosen[:, k])
        return number

    def quantize(self, coordinates: Points, counts: Mask) -> Counts:
        """Return each record's integers: plain, slow, obvious."""
        vectors = np.zeros((len(coordinates), self.bounds.cells), dtype=np.int64)
        vectors[np.flatnonzero(counts), self.places(coordinates, counts)] = 1
        return vectors

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the sums."""
        np.add.at(table, self.places(coordinates, counts), 1)
