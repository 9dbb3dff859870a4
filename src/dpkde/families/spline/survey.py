"""What a spline table says on a lattice of sites: the KDE there, its noise, and what sites expect.

Sites cover the splined axes, from edge to edge, at most half a spacing apart. Narrow axes have
none: along them the constant cells alone are read, and the slopes tell a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.survey import SiteAxis, Strip, Survey
from dpkde.errors import ParameterError
from dpkde.families.spline.bsplines import Response, axis_fit, bspline
from dpkde.families.spline.grid import Axis, Grid
from dpkde.families.spline.narrow import SHARE_BITS
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_WIDEST_PITCH = 0.45
"""Between sites, in bandwidths: the KDE of a record between two is then that of sites nearly."""
_MANY_SITES = 1 << 20
"""Above this sites are as far apart as nodes."""
MOST_SITES = 1 << 23
_CERTAIN = 2.0
"""Standard errors from which a mean on a narrow axis is believed."""


@dataclass(frozen=True)
class SplineSurvey(Survey):
    """A spline table, read at sites.

    Attributes
    ----------
    kernel
        In bandwidth units.
    grid
        Where the cells lie.
    bits
        The table is in units of 2^−bits.
    """

    kernel: ProductKernel
    grid: Grid
    bits: int

    @cached_property
    def axes(self) -> tuple[SiteAxis, ...]:
        """The sites of every splined axis."""
        axes = tuple(_sites(axis, min(axis.spacing / 2, _WIDEST_PITCH)) for axis in self.grid.axes)
        if math.prod(axis.count for axis in axes) <= _MANY_SITES:
            return axes
        axes = tuple(_sites(axis, axis.spacing) for axis in self.grid.axes)
        count = math.prod(axis.count for axis in axes)
        if count > MOST_SITES:
            raise ParameterError(
                f"a proper density of this table would have {count:.3g} sites, and at most "
                f"{MOST_SITES:.3g} are fitted: ask kde, or publish with a larger bandwidth"
            )
        return axes

    def field(self, table: Floats) -> Floats:
        """Return ⟨table, g(y)⟩/2^bits at every site, of the constant cells of narrow axes."""
        values = self._cells(table)[0] / self._share(0)
        for axis, matrix in enumerate(self._responses):
            values = _along(matrix, values, axis)
        return values

    @cached_property
    def gain(self) -> Floats:
        """‖g(y)‖₂/2^bits at every site, for the same cells."""
        gain = np.array(1 / self._share(0) / 2**self.bits)
        for matrix in self._responses:
            gain = np.multiply.outer(gain, np.sqrt((matrix**2).sum(axis=1)))
        return gain

    def strips(self, table: Floats, weights: Floats, deviation: float) -> tuple[Strip, ...]:
        """Return where records lie along narrow axes: evenly about the mean that the slopes tell.

        `table` in records, `weights` of the sites, `deviation` of a cell. With e_j what sites put
        into cell j, slopes are about m·share·e_j, m the mean on [−1, 1]: least squares.
        """
        expected = weights
        for axis, matrix in enumerate(self._splines):
            expected = _along(matrix, expected, axis)
        cells, square = self._cells(table), float((expected**2).sum())
        means = dict.fromkeys((column for column, _ in self.grid.narrow), 0.0)
        for k, (column, _, _) in enumerate(self.grid.tilts, start=1):
            mean = float((cells[k] * expected).sum()) / (self._share(k) * square)
            error = deviation / 2**self.bits / (self._share(k) * math.sqrt(square))
            if abs(mean) > _CERTAIN * error:
                means[column] = min(max(mean, -1.0), 1.0)
        return tuple(Strip.about(column, half, means[column]) for column, half in self.grid.narrow)

    def _share(self, k: int) -> float:
        return float(self.grid.shares[k]) / (1 << SHARE_BITS)

    def _cells(self, table: Floats) -> Floats:
        return table.reshape(self.grid.group, *(axis.nodes for axis in self.grid.axes)) / (
            2**self.bits
        )

    @cached_property
    def _responses(self) -> list[csr_array[Any, Any]]:
        """The coefficients of nodes for a query at each site, axis by axis."""
        return [
            _rows(axis_fit(self.kernel, own.degree, own.spacing, own.ridge).response(), own, sites)
            for own, sites in zip(self.grid.axes, self.axes, strict=True)
        ]

    @cached_property
    def _splines(self) -> list[csr_array[Any, Any]]:
        """The B-splines of nodes for a record at each site, shape (nodes, sites), axis by axis."""
        from scipy.sparse import csr_array

        matrices = []
        for own, sites in zip(self.grid.axes, self.axes, strict=True):
            t = (sites.places + own.half) / own.spacing
            cell = np.minimum(t.astype(np.int64), own.intervals - 1)
            nodes = cell[:, np.newaxis] + np.arange(own.degree + 1)
            values = bspline(own.degree, t[:, np.newaxis] - nodes + (own.degree - 1) / 2)
            rows = np.broadcast_to(np.arange(sites.count)[:, np.newaxis], nodes.shape)
            entries = (values.reshape(-1), (nodes.reshape(-1), rows.reshape(-1)))
            matrices.append(csr_array(entries, shape=(own.nodes, sites.count)))
        return matrices


def _sites(axis: Axis, pitch: float) -> SiteAxis:
    return SiteAxis(axis.column, axis.half, max(math.ceil(2 * axis.half / pitch - 1e-9), 1) + 1)


def _rows(response: Response, own: Axis, sites: SiteAxis) -> csr_array[Any, Any]:
    """Return φ(v − node) for every site and node, cubic between phases as `tensor.respond` has it.

    The slow twin is `SplinePair.respond`.
    """
    from scipy.sparse import csr_array

    v = (sites.places + own.half) / own.spacing + (own.degree - 1) / 2
    below = np.floor(v)
    s = (v - below) * response.phases
    q = np.minimum(s.astype(np.int64), response.phases - 1)
    r = (s - q)[:, np.newaxis]
    values = (
        -r * (r - 1) * (r - 2) / 6 * response.values[q]
        + (r + 1) * (r - 1) * (r - 2) / 2 * response.values[q + 1]
        - (r + 1) * r * (r - 2) / 2 * response.values[q + 2]
        + (r + 1) * r * (r - 1) / 6 * response.values[q + 3]
    )
    offsets = np.arange(2 * response.radius + 1) - response.radius
    nodes = below.astype(np.int64)[:, np.newaxis] + offsets
    real = (nodes >= 0) & (nodes < own.nodes)
    rows = np.broadcast_to(np.arange(sites.count)[:, np.newaxis], nodes.shape)
    return csr_array((values[real], (rows[real], nodes[real])), shape=(sites.count, own.nodes))


def _along(matrix: csr_array[Any, Any], values: Floats, axis: int) -> Floats:
    """Return a matrix applied along an axis."""
    first = np.moveaxis(values, axis, 0)
    product = matrix @ np.ascontiguousarray(first).reshape(len(first), -1)
    return np.asarray(np.moveaxis(product.reshape(-1, *first.shape[1:]), 0, axis))
