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
from dpkde.families.spline.narrow import SHARE_BITS, parabola
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_WIDEST_PITCH = 0.45
"""Between sites, in bandwidths: the KDE of a record between two is then that of sites nearly."""
_MANY_SITES = 1 << 20
"""Above this sites are as far apart as nodes."""
MOST_SITES = 1 << 23
_MOST_WEIGHTS = 1 << 12
_PARTS = 8
"""Points of a site to each side, for kernels with a kink."""
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
        parts = 1 if self.kernel.is_smooth else _PARTS
        axes = tuple(
            _sites(axis, min(axis.spacing / 2, _WIDEST_PITCH), parts) for axis in self.grid.axes
        )
        if math.prod(axis.count for axis in axes) <= _MANY_SITES:
            return axes
        axes = tuple(_sites(axis, axis.spacing, parts) for axis in self.grid.axes)
        count = math.prod(axis.count for axis in axes)
        if count > MOST_SITES:
            raise ParameterError(
                f"a proper density of this table would have {count:.3g} sites, and at most "
                f"{MOST_SITES:.3g} are fitted: ask kde, or publish with a larger bandwidth"
            )
        return axes

    def field(self, table: Floats) -> Floats:
        """Return ⟨table, g(y)⟩/2^bits at every site, of the constant cells of narrow axes."""
        values = np.asarray(self._cells(table)[0] / self._share(0))
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

    @cached_property
    def heaviest(self) -> Floats:
        """What cells weigh, divided by their length, at the site where one weighs most."""
        weights = np.ones(1)
        for matrix in self._responses:
            sizes = np.sqrt((matrix**2).sum(axis=1))
            tops = abs(matrix).max(axis=1).toarray().reshape(-1) / sizes
            row = matrix[[int(tops.argmax())]].data / sizes[tops.argmax()]
            weights = np.sort(np.abs(np.outer(weights, row)).reshape(-1))[-_MOST_WEIGHTS:]
        return np.asarray(weights / np.sqrt((weights**2).sum()))

    def strips(self, table: Floats, weights: Floats, deviation: float) -> tuple[Strip, ...]:
        """Return where records lie along narrow axes, by the means that slopes and arch tell.

        `table` in records, `weights` of the sites, `deviation` of a cell. With e_j what sites put
        into cell j, the cells of a slope are about m·share·e_j, m its mean: least squares. Those
        of the arch are about Σ a_k·E P₂(t_k), which records at the ends raise.
        """
        expected = weights
        for axis, matrix in enumerate(self._splines):
            expected = _along(matrix, expected, axis)
        cells, square = self._cells(table), float((expected**2).sum())

        def mean_of(k: int) -> tuple[float, bool]:
            mean = float((cells[k] * expected).sum()) / (self._share(k) * square)
            error = deviation / 2**self.bits / (self._share(k) * math.sqrt(square))
            return mean, abs(mean) > _CERTAIN * error

        grid = self.grid
        means = dict.fromkeys((column for column, _ in grid.narrow), 0.0)
        for k, (column, _, _) in enumerate(grid.tilts, start=1):
            mean, is_certain = mean_of(k)
            means[column] = min(max(mean, -1.0), 1.0) * is_certain
        ends = 0.0
        if grid.arch:
            arch, is_certain = mean_of(grid.group - 1)
            centers = np.array([means[column] for column, _ in grid.narrow])
            evenly = parabola(np.sqrt(centers**2 + (1 - np.abs(centers)) ** 2 / 3))
            least = float((grid.arch_weights * evenly).sum())  # at the ends P₂ is one
            if is_certain and least < 1:
                ends = min(max((arch - least) / (1 - least), 0.0), 1.0)
        return tuple(Strip(column, half, means[column], ends) for column, half in grid.narrow)

    def _share(self, k: int) -> float:
        return float(self.grid.shares[k]) / (1 << SHARE_BITS)

    def _cells(self, table: Floats) -> Floats:
        """Return the table in records, the group of narrow axes first."""
        nodes = (axis.nodes for axis in self.grid.axes)
        return np.asarray(table.reshape(self.grid.group, *nodes) / 2**self.bits)

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


def _sites(axis: Axis, pitch: float, parts: int) -> SiteAxis:
    count = max(math.ceil(2 * axis.half / pitch - 1e-9), 1) + 1
    return SiteAxis(axis.column, axis.half, count, parts)


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
