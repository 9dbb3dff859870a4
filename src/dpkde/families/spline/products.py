"""Inner products of spline tables: distances between two of them, in closed form.

A table t with a record's weights over 2^bits has the smoothed density Σ_j t_j g_j(y)/∫k, g_j a
product over axes of φ(v − node_j). So ∫ g_i g_j is a product over axes too, and on one axis it
depends on i − j alone: a Gram sequence. For the mean of k over pairs of records, x ↦ k(x, x′) is
fitted in both arguments, which gives a second sequence an axis. Tables on different meshes have
dense matrices between their axes, by quadrature. Narrow axes share a small group of cells, with a
matrix of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families.comparison import Comparison, Kind, Scatter
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import AxisFit, axis_fit, bspline, gram
from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points
from dpkde.numerics.operators import Dense, Factor, Kronecker, Toeplitz

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplinePair
    from dpkde.families.spline.grid import Axis, Grid

Floats = NDArray[np.float64]

_MOST_NUMBERS = 1 << 25
"""Largest matrix of functions at quadrature points, for two meshes."""


def form(a: SplinePair, b: SplinePair, kind: Kind) -> Comparison | None:
    """Return the form of two spline tables; None where their axes do not lie along each other."""
    if a.frame.kernel.shape != b.frame.kernel.shape:
        return None
    same_kernel = a.frame.kernel == b.frame.kernel
    if a.grid == b.grid and a.frame == b.frame:
        own = _Own(a, kind)
        operator = own.operator
        return Comparison(operator, operator, operator, SplineScatter(own))
    if kind == "mmd" and not same_kernel:
        return None
    cross = _crossed(a, b, kind)
    if cross is None:
        return None
    return Comparison(_Own(a, kind).operator, _Own(b, kind).operator, cross)


@dataclass(frozen=True, eq=False)
class _Own:
    """The form of a table with itself: one sequence for each splined axis, one small matrix."""

    pair: SplinePair
    kind: Kind

    @cached_property
    def sequences(self) -> list[Floats]:
        kernel = self.pair.frame.kernel.shape
        return [self._sequence(kernel, axis) for axis in self.pair.grid.axes]

    def _sequence(self, kernel: ProductKernel, axis: Axis) -> Floats:
        fit = axis_fit(kernel, axis.degree, axis.spacing, axis.ridge)
        if self.kind == "mmd":
            return fit.likenesses()
        return np.asarray(fit.overlaps() * (axis.spacing / kernel.profile_integral**2))

    @cached_property
    def group(self) -> Floats:
        return group_matrix(self.pair.grid, self.pair.frame.kernel.shape, self.kind)

    @property
    def scale(self) -> float:
        return 1.0 if self.kind == "mmd" else 1 / _volume(self.pair)

    @cached_property
    def operator(self) -> Kronecker:
        axes = zip(self.sequences, self.pair.grid.axes, strict=True)
        factors = [Toeplitz(sequence, axis.nodes) for sequence, axis in axes]
        return Kronecker((Dense(self.group), *factors), self.scale)


def _volume(pair: SplinePair) -> float:
    """Return what a cubic unit of bandwidth takes in the units of the data."""
    return pair.frame.kernel.bandwidth.determinant(pair.frame.dim)


def _crossed(a: SplinePair, b: SplinePair, kind: Kind) -> Kronecker | None:
    """Return the matrices between two meshes; None where there are none axis by axis."""
    first, second = a.frame.kernel.bandwidth, b.frame.kernel.bandwidth
    alike = first == second
    if (first.is_matrix or second.is_matrix) and not alike:
        return None
    if [axis.column for axis in a.grid.axes] != [axis.column for axis in b.grid.axes]:
        return None
    tables = [(g.narrow, g.tilts, g.arch) for g in (a.grid, b.grid)]
    if tables[0] != tables[1] or (a.grid.narrow and not alike):
        return None
    scales = [_scales(pair, alike) for pair in (a, b)]
    origins = [_origin(pair, alike) for pair in (a, b)]
    if any(origins[0][column] != origins[1][column] for column, _ in a.grid.narrow):
        return None
    factors: list[Factor] = [Dense(group_matrix(a.grid, a.frame.kernel.shape, kind))]
    for one, two in zip(a.grid.axes, b.grid.axes, strict=True):
        kernel, k = a.frame.kernel.shape, one.column
        pieces = [
            _Line(axis_fit(kernel, axis.degree, axis.spacing, axis.ridge), axis, origin[k], unit[k])
            for axis, origin, unit in zip((one, two), origins, scales, strict=True)
        ]
        matrix = _between(pieces[0], pieces[1], kind)
        if matrix is None:
            return None
        factors.append(Dense(matrix))
    return Kronecker(tuple(factors), 1 / _volume(a) if kind == "l2" and alike else 1.0)


def _scales(pair: SplinePair, alike: bool) -> Floats:
    """Return σ of each axis, or 1 where both tables count in the same bandwidths."""
    if alike:
        return np.ones(pair.frame.dim)
    return np.asarray(1 / pair.frame.kernel.bandwidth.whiten(np.ones((1, pair.frame.dim)))[0])


def _origin(pair: SplinePair, alike: bool) -> Floats:
    """Return where the axes are counted from, in those units."""
    origin = pair.frame.domain.origin(pair.frame.dim)
    return pair.frame.kernel.bandwidth.whiten(origin[np.newaxis])[0] if alike else origin


@dataclass(frozen=True, eq=False)
class _Line:
    """One axis of one table, with a place among those of another."""

    fit: AxisFit
    axis: Axis
    origin: float
    unit: float

    @property
    def step(self) -> float:
        """The distance between nodes."""
        return self.axis.spacing * self.unit

    @property
    def reach(self) -> tuple[float, float]:
        """Where its functions end."""
        beyond = self.axis.half + (self.fit.response().radius + self.axis.degree + 2) * (
            self.axis.spacing
        )
        return self.origin - beyond * self.unit, self.origin + beyond * self.unit

    def places(self, x: Floats) -> Floats:
        """Return x in units of the spacing, node 0 at zero."""
        located = (x - self.origin) / self.unit
        return (located + self.axis.half) / self.axis.spacing + (self.axis.degree - 1) / 2

    def responses(self, x: Floats) -> Floats:
        """Return φ(v − j) at every x for every node j, as answers have it."""
        from scipy.interpolate import make_interp_spline

        response = self.fit.response()
        values, radius = response.values, response.radius
        samples = values[1 : 1 + response.phases, ::-1].T.reshape(-1)
        offsets = np.arange(len(samples)) / response.phases - radius
        curve = make_interp_spline(offsets, samples, k=3)
        apart = np.subtract.outer(self.places(x), np.arange(self.axis.nodes, dtype=np.float64))
        inside = (apart >= offsets[0]) & (apart <= offsets[-1])
        return np.where(inside, curve(np.where(inside, apart, 0.0)), 0.0)

    def bumps(self, x: Floats, margin: int) -> Floats:
        """Return B_p(v − j), with so many nodes more at each end."""
        nodes = np.arange(-margin, self.axis.nodes + margin, dtype=np.float64)
        return bspline(self.axis.degree, np.subtract.outer(self.places(x), nodes))


def _between(a: _Line, b: _Line, kind: Kind) -> Floats | None:
    """Return ∫ φ_i φ_j dx/(∫k)² over two meshes, or the likenesses K_ij; None if it is too large.

    K_ij = ∫ D_i φ_j dv with D_i = Σ_m a_m B_{i+m} the dual splines of the first mesh.
    """
    low, high = max(a.reach[0], b.reach[0]), min(a.reach[1], b.reach[1])
    shape = (a.axis.nodes, b.axis.nodes)
    if low >= high:
        return np.zeros(shape)
    panels = math.ceil((high - low) / min(a.step, b.step) * 4) + 1
    if 8 * panels * max(shape) > _MOST_NUMBERS:
        return None
    edges = np.linspace(low, high, panels + 1)
    if kind == "mmd":  # B-splines have kinks at their knots
        knots = a.origin + (np.arange(-80, 2 * a.axis.nodes + 160) / 2) * a.step
        knots = knots - a.axis.half * a.unit
        edges = np.unique(np.concatenate([edges, knots[(knots > low) & (knots < high)]]))
    x, mass = gauss_points(edges)
    right = b.responses(x) * mass[:, np.newaxis]
    if kind == "l2":
        scale = a.unit * b.unit * a.fit.kernel.profile_integral**2
        return np.asarray(a.responses(x).T @ right / scale)
    duals = a.fit.duals()
    margin = len(duals) - 1
    products = a.bumps(x, margin).T @ right / a.step
    both = np.concatenate([duals[:0:-1], duals])
    return np.array([np.convolve(column, both, "valid") for column in products.T]).T


@dataclass(frozen=True, eq=False)
class SplineScatter(Scatter):
    """Records spread over cells: C = R ⊗ ½(DW + WD), D = diag(m) the mass at each node.

    W has the inner products of B-splines on each axis, whose rows add up to one: a record is about
    as likely anywhere within a mesh. On narrow axes records are taken to be spread evenly, which
    gives the second moments R of the group.
    """

    own: _Own

    @property
    def _grid(self) -> Grid:
        return self.own.pair.grid

    @cached_property
    def _sequences(self) -> list[tuple[Floats, Floats]]:
        """M and W for each axis, mirrored: entries −n … n."""
        return [
            (_mirrored(sequence), _mirrored(gram(axis.degree)))
            for sequence, axis in zip(self.own.sequences, self._grid.axes, strict=True)
        ]

    @cached_property
    def _seconds(self) -> Floats:
        """R: the constant's, the slopes' and the arch's second moments, for one record."""
        grid = self._grid
        weights = grid.shares / (1 << narrow.SHARE_BITS)
        moments = [1.0] + [1 / 3] * len(grid.tilts)
        if grid.arch:
            moments.append(float((grid.arch_weights**2).sum()) / 5)
        return np.asarray(weights**2 * np.array(moments))

    @property
    def energy(self) -> float:
        """tr(M_g R)·∏ Σ_m M_m W_m."""
        axes = math.prod(_inner(m, w) for m, w in self._sequences)
        return self.own.scale * axes * float(np.diagonal(self.own.group) @ self._seconds)

    @property
    def energy_of_square(self) -> float:
        """The same for M²."""
        axes = math.prod(_inner(np.convolve(m, m), w) for m, w in self._sequences)
        group = self.own.group @ self.own.group
        return self.own.scale**2 * axes * float(np.diagonal(group) @ self._seconds)

    def mean_square(self, a: Floats, b: Floats) -> float:
        """½m_aᵀ[(WM)∘(WM) + M∘(WMW)]m_b·tr(M_g R M_g R), products taken entry by entry."""
        first, second = [], []
        for (m, w), axis in zip(self._sequences, self._grid.axes, strict=True):
            once = np.convolve(m, w)
            first.append(Toeplitz(_half(once) ** 2, axis.nodes))
            second.append(Toeplitz(_half(_product(m, np.convolve(once, w))), axis.nodes))
        masses = [self._masses(table).reshape(-1) for table in (a, b)]
        sums = [
            float(masses[0] @ Kronecker(tuple(factors)).apply(masses[1]))
            if factors
            else float(masses[0][0] * masses[1][0])
            for factors in (first, second)
        ]
        turned = self.own.group * self._seconds
        return self.own.scale**2 * sum(sums) / 2 * float(np.trace(turned @ turned))

    def moment(self, a: Floats, g: Floats) -> float:
        """Σ_g R_g Σ_i m_i g_i (Wg)_i."""
        shape = (self._grid.group, *(axis.nodes for axis in self._grid.axes))
        rows, mass = g.reshape(shape), self._masses(a)
        weighed = rows
        for k, axis in enumerate(self._grid.axes):
            weighed = Toeplitz(gram(axis.degree), axis.nodes).along(weighed, k + 1)
        sums = (rows * weighed * mass).reshape(len(rows), -1).sum(axis=1)
        return float(sums @ self._seconds)

    def _masses(self, table: Floats) -> Floats:
        """The share of records at each node, from the constant's cells."""
        grid = self._grid
        shape = [axis.nodes for axis in grid.axes]
        level = float(grid.shares[0]) / (1 << narrow.SHARE_BITS)
        return np.asarray(table[: math.prod(shape)].reshape(shape) / level)


def _mirrored(sequence: Floats) -> Floats:
    return np.concatenate([sequence[:0:-1], sequence])


def _half(both: Floats) -> Floats:
    return both[len(both) // 2 :]


def _product(a: Floats, b: Floats) -> Floats:
    """Return the products of two sequences that are mirrored at their middles."""
    reach = min(len(a), len(b)) // 2
    return np.asarray(
        a[len(a) // 2 - reach : len(a) // 2 + reach + 1]
        * b[len(b) // 2 - reach : len(b) // 2 + reach + 1]
    )


def _inner(a: Floats, b: Floats) -> float:
    return float(_product(a, b).sum())


def group_matrix(grid: Grid, kernel: ProductKernel, kind: Kind) -> Floats:
    """Return the form's matrix between the cells of the group: constant, slopes, arch.

    With c₀, c₁, c₂ the coefficients of an axis, P_pq = ∫ c_p c_q dy/(∫k)² or the least squares
    coefficients of k itself. Even ones do not meet odd ones. The others are products over axes in
    which one factor, or two, is another than P₀₀.
    """
    moments = np.array([_moments(kernel, half, kind) for _, half in grid.narrow]).reshape(-1, 4)
    flat, slopes, mixed, curves = moments.T
    whole = math.prod(flat.tolist())
    matrix = np.zeros((grid.group, grid.group))
    matrix[0, 0] = whole
    columns = [column for column, _ in grid.narrow]
    for row, (column, _, _) in enumerate(grid.tilts, start=1):
        k = columns.index(column)
        matrix[row, row] = whole * slopes[k] / flat[k]
    if grid.arch:
        parts = grid.arch_weights / float((grid.arch_weights**2).sum())
        bent = parts * mixed / flat
        total = float(bent.sum())
        matrix[0, -1] = matrix[-1, 0] = whole * total
        alone = float((parts**2 * curves / flat - bent**2).sum())
        matrix[-1, -1] = whole * (alone + total**2)
    weights = grid.shares / (1 << narrow.SHARE_BITS)
    return np.asarray(matrix / np.outer(weights, weights))


def _moments(kernel: ProductKernel, half: float, kind: Kind) -> tuple[float, float, float, float]:
    """Return P₀₀, P₁₁, P₀₂ and P₂₂ of a narrow axis."""
    if kind == "l2":
        reach = kernel.profile_reach(1e-9)
        panels = 2 + math.ceil(min(2 * half, 512.0))
        inner, outer = np.linspace(0, half, panels), half + np.geomspace(1e-3, 1.0, 64) * reach
        y, mass = gauss_points(np.concatenate([inner, outer]))
        flat, slope, curve = narrow.line(kernel, half, y)
        mass = 2 * mass / kernel.profile_integral**2
        products = (flat * flat, slope * slope, flat * curve, curve * curve)
        return tuple(float(mass @ product) for product in products)  # type: ignore[return-value]
    panels = max(2, math.ceil(min(2 * half, 64.0)))
    t, mass = gauss_points(np.linspace(-1.0, 1.0, panels + 1))
    flat, slope, curve = narrow.line(kernel, half, t * half)
    bowed = narrow.parabola(t)
    return (
        float(mass @ flat) / 2,
        float(mass @ (slope * t)) * 1.5,
        float(mass @ (flat * bowed)) * 2.5,
        float(mass @ (curve * bowed)) * 2.5,
    )
