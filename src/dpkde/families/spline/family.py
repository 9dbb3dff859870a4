"""Tensor B-splines: every product kernel in a bounded domain of few wide axes.

A record is spread over the nodes of a grid around it by B-spline weights, which are not negative
and add up to one: **its L1 norm is one whatever the dimension, the degree or the domain**. A query
takes the coefficients for which the splines best fit x ↦ k(x, y), by least squares. Degree and
spacing are set per axis: an axis much narrower than the bandwidth keeps a constant (degree 0) or a
line (degree 1 over a single interval), so that a table of many columns, few of them wide, fits.

The proof is in ``proof.md``; one axis in `bsplines` and `narrow`; the choice of degrees and
spacings in `forecast`; the compiled loops in `spreading` for records, `tensor` for queries.

Cost: ∏(p_k + 1) additions a record, over the splined axes k; a query touches the nodes within the
kernel's reach. The release holds ∏(intervals_k + p_k) cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import (
    USUAL_SMOOTHNESS,
    Energy,
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Terms,
    Worst,
    about,
    no_repetitions,
)
from dpkde.families.brackets import Allowance
from dpkde.families.comparison import Comparison, Kind
from dpkde.families.reading import Asked, Factor, Reading, Separable, Stored, rows_of
from dpkde.families.spline import energy, forecast, narrow, rereading, worst
from dpkde.families.spline.bsplines import FADED, FARTHEST, MAX_DEGREE, PHASES, Response, axis_fit
from dpkde.families.spline.grid import Grid, unbounded
from dpkde.families.spline.survey import SplineSurvey
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Products
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

MOST_CELLS = 1 << 26
"""The largest table that is made when asked for."""
_MANY_AXES = 8
_LANES = 8
"""Numbers in the longest vectors of processors."""
_ROWS = 4
"""Rows that are gathered at a time; see `tensor`."""


@dataclass(frozen=True)
class Spline(Family):
    """Tensor B-splines.

    Parameters
    ----------
    degree
        p from 0 to 5, one for all axes or one per axis. 0: a constant. 1 over a single interval: a
        line. None: chosen.
    spacing
        Distance between nodes in bandwidths, one for all axes or one per axis. None: chosen from
        the noisy count, ε and `typical_density`.
    ridge
        λ ≥ 0, one for all axes or one per axis: how far coefficients are shrunk to let less noise
        through, at the price of bias. None: chosen; 0 where degree and spacing are given.
    slopes
        For each axis its weight in the group of narrow axes, out of 65,536, if it is tilted; 0 for
        all others. None: chosen.
    arch
        The weight of the joint curvature of all narrow axes in that group; 0: none. None: chosen,
        and 0 where degree and spacing are given.

    Examples
    --------
    >>> Spline(degree=3, spacing=0.5)
    Spline(degree=3, spacing=0.5, ridge=None, slopes=None, arch=None)
    """

    degree: int | tuple[int, ...] | None = None
    spacing: float | tuple[float, ...] | None = None
    ridge: float | tuple[float, ...] | None = None
    slopes: tuple[int, ...] | None = None
    arch: int | None = None

    name: ClassVar[str] = "spline"
    lattice_bits: ClassVar[tuple[int, int]] = (narrow.SHARE_BITS, 30)
    is_biased: ClassVar[bool] = True
    is_random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field, low, high in (
            ("degree", 0, MAX_DEGREE),
            ("spacing", 1e-3, 1e6),
            ("ridge", 0, 10),
            ("slopes", 0, (1 << narrow.SHARE_BITS) - 1),
            ("arch", 0, (1 << narrow.SHARE_BITS) - 1),
        ):
            value = getattr(self, field)
            if value is None:
                continue
            many = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
            whole = field in ("degree", "slopes", "arch")
            for entry in value if many else (value,):
                if not (is_whole if whole else is_real)(entry) or not low <= entry <= high:
                    kind = "a whole number" if whole else "a number"
                    raise ParameterError(
                        f"{field} must be {kind} from {low} to {high}, one for all axes or one per "
                        f"axis, got {value!r}"
                    )
            plain = int if whole else float
            entries = tuple(plain(entry) for entry in value) if many else plain(value)
            object.__setattr__(self, field, entries)

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """The same for every product kernel, but for what a kink does to the bias.

        Where 1 − profile(t) goes like |t|^r at zero, splines of spacing h are off by some h^r.
        """
        kernel, bias = frame.kernel.shape, "∝ h^(p+1)"
        if not kernel.is_smooth:
            near, far = 1 - kernel.profile(np.array([1e-6, 2e-6]))
            bias = f"∝ h^{np.log2(far / near):.2g} at zero"
        return Terms("∏(p + 1)", bias, "Δ₁ = 1")

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Product kernels, in a bounded domain."""
        kernel = frame.kernel
        if not kernel.is_product:
            return f"this {kernel.name} kernel is not a product over axes"
        if float(kernel.shape.profile(np.array([FARTHEST]))[0]) > FADED:
            return f"this {kernel.name} kernel has not faded {FARTHEST:g} bandwidths away"
        return unbounded(frame)

    def layout(self, frame: Frame) -> SplineLayout:
        """Return the table with one entry per axis, degree and spacing being given."""
        if self.degree is None or self.spacing is None:
            raise ParameterError("degree and spacing of the splines are needed here")
        self.check(frame)
        return SplineLayout(forecast.settle(self, frame), frame)

    def layouts(self, frame: Frame) -> list[SplineLayout]:
        """Return what is best as the fit's error, cells and time weigh more and more."""
        if self.degree is not None and self.spacing is not None:
            return [self.layout(frame)]
        self.check(frame)
        return [SplineLayout(family, frame) for family in forecast.candidates(self, frame)]

    @classmethod
    def from_json(cls, parameters: Mapping[str, Any], dim: int) -> Self:
        """Return the family of a file, with an entry per axis: a small one cannot ask for many."""
        family = cls(**parameters)
        for entries in (family.degree, family.spacing, family.ridge, family.slopes):
            if not isinstance(entries, tuple) or len(entries) != dim:
                raise FormatError("the spline family of this file lacks entries for some axes")
        if type(family.arch) is not int:
            raise FormatError("the spline family of this file lacks its arch")
        return family


@dataclass(frozen=True, eq=False)
class SplineLayout(Layout):
    """A grid of nodes, with the degree, spacing and ridge of each axis.

    Attributes
    ----------
    cells
        Where they lie, if that was settled for another kernel; None: as the family says.
    smoothness
        Of usual data, one number or one per splined axis, see `Guess`.
    """

    family: Spline
    frame: Frame
    cells: Grid | None = None
    smoothness: float | NDArray[np.float64] = USUAL_SMOOTHNESS

    @cached_property
    def grid(self) -> Grid:
        """Where the cells lie."""
        return Grid.of(self.family, self.frame) if self.cells is None else self.cells

    def bounds(self, bits: int) -> Bounds:
        """L1 is 2^bits exactly; L2 by the largest squares of each axis; see the proof."""
        if self.grid.cells > MOST_CELLS:
            raise ParameterError(
                f"this spline table would have {about(self.grid.cells)} cells, and at most 2^26 "
                f"are made: {_what_fits(self.family, self.frame)}"
            )
        return self.grid.bounds(bits)

    @cached_property
    def quality(self) -> tuple[float, forecast.Losses]:
        """The gain over all axes, and what is lacking."""
        return forecast.quality(self.frame.kernel.shape, self.grid)

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly."""
        return 4 + 4 * self.frame.dim + self.grid.parts

    @cached_property
    def usual_error(self) -> float:
        """The relative error of the fit on usual data."""
        return self.quality[1].error(self.smoothness)

    @property
    def is_coarse(self) -> bool:
        """Of degree 1 over many axes: what lines leave may add up, or cancel."""
        return len(self.grid.axes) >= _MANY_AXES and bool((self.grid.degrees <= 1).all())

    def predict(self, outlook: Outlook) -> Prediction:
        """Noise: the best law's, times the gains of all axes; approximation: see `forecast`."""
        gain, losses = self.quality
        error = losses.error(outlook.smoothness)
        return outlook.prediction(self, gain=gain, approximation=outlook.typical_density * error)

    def worst(self, bits: int) -> Worst:
        """Return the largest error of the fit and the largest coefficients; see `worst`."""
        return worst.of_grid(self.frame.kernel.shape, self.grid, bits)

    def draw(self, bits: int, seed: int) -> SplinePair:
        """Return the pair: nothing is random."""
        self.bounds(bits)  # refuses a table that does not fit
        return SplinePair(self, bits)

    @property
    def summary(self) -> str:
        """The shape of the table, as in ``spline 99×43 (degree 3)``."""
        grid = self.grid
        shape = "×".join(map(str, grid.shape)) or "1"
        degrees = dict.fromkeys([int(grid.group > 1)] if not grid.axes else grid.degrees.tolist())
        return f"spline {shape} (degree {'/'.join(map(str, degrees))})"


@dataclass(frozen=True, eq=False)
class SplinePair(Pair):
    """B-spline weights and least squares coefficients, on a grid."""

    layout: SplineLayout
    bits: int

    @property
    def grid(self) -> Grid:
        """Where the cells lie."""
        return self.layout.grid

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers: the slow twin of `accumulate`, in NumPy."""
        grid, n = self.grid, len(coordinates)
        masses = grid.masses(self.bits)
        levels = np.ones((n, grid.group))
        levels[:, 1 : 1 + len(grid.tilted)] = coordinates[:, grid.tilted] * grid.leans
        if grid.arch:
            height = np.zeros(n)
            for k, column in enumerate(grid.arched):
                t = np.clip(coordinates[:, column] * grid.arch_leans[k], -1.0, 1.0)
                height += grid.arch_weights[k] * (1.5 * t * t - 0.5)
            levels[:, -1] = height
        parts = np.rint(np.clip(levels, -1.0, 1.0) * masses).astype(np.int64)
        for axis, column in enumerate(grid.columns):
            t = (coordinates[:, column] + grid.halves[axis]) * grid.scales[axis]
            t = np.clip(t, 0.0, float(grid.intervals[axis]))
            cell = np.minimum(t.astype(np.int64), grid.intervals[axis] - 1)
            weights = _weights(t - cell, int(grid.degrees[axis]))
            running = np.rint(np.cumsum(weights, axis=1)[:, :-1] * 2.0**32).astype(np.int64)
            running = np.minimum(running, 1 << 32)[:, np.newaxis]
            part = parts[:, :, np.newaxis]
            upto = np.concatenate([(running * part + (1 << 31)) >> 32, part], axis=2)
            spread = np.diff(upto, axis=2, prepend=0)
            wide = np.zeros((n, parts.shape[1], grid.nodes[axis]), dtype=np.int64)
            for j in range(spread.shape[2]):
                wide[np.arange(n), :, cell + j] = spread[:, :, j]
            parts = wide.reshape(n, -1)
        return parts * counts[:, np.newaxis].astype(np.int64)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's parts to the table."""
        from dpkde.families.spline import spreading

        grid = self.grid
        spreading.accumulate(
            np.ascontiguousarray(coordinates),
            counts,
            grid.columns,
            grid.halves,
            grid.scales,
            grid.intervals,
            grid.degrees,
            grid.strides,
            grid.tilted,
            grid.leans,
            grid.arched,
            grid.arch_leans,
            grid.arch_weights,
            grid.masses(self.bits),
            grid.tilt_stride,
            table,
        )

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return ⟨table, g(y)⟩ / 2^bits, from the nodes near each query."""
        from dpkde.families.spline import tensor

        no_repetitions(Spline.name, groups)
        grid, located = self.grid, self.frame.locate(queries)
        answers = np.empty(len(located))
        tensor.respond(
            located,
            self.group_numbers(located),
            grid.columns,
            grid.halves,
            grid.scales,
            grid.nodes,
            grid.degrees,
            grid.strides,
            *self._responses,
            PHASES,
            grid.tilt_stride,
            table,
            answers,
        )
        answers /= 2**self.bits
        return answers

    def weights(self, queries: Points) -> Products:
        """Return the group's numbers and the axes' coefficients, whose products over 2^bits are g.

        Never multiplied out: there are millions of products where axes are many.
        """
        located = self.frame.locate(queries)
        coefficients, widths = self.coefficients(located)[1], self.windows
        axes = (coefficients[:, k, :width] for k, width in enumerate(widths))
        return Products.of([self.group_numbers(located) / 2**self.bits, *axes])

    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return the product of the axes' ‖c_k(y)‖₂, over 2^bits."""
        located = self.frame.locate(queries)
        lengths = np.sqrt((self.coefficients(located)[1] ** 2).sum(axis=2)).prod(axis=1)
        group = np.sqrt((self.group_numbers(located) ** 2).sum(axis=1))
        return np.asarray(lengths * group / 2**self.bits)

    def comparison(self, other: Pair, kind: Kind) -> Comparison | None:
        """Return the form that `products` derives; None where the other is no spline table."""
        from dpkde.families.spline import products

        return products.form(self, other, kind) if isinstance(other, SplinePair) else None

    def coefficients(self, located: Points) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what each splined axis says to each query: first nodes, and coefficients.

        Shapes (n_queries, axes) and (n_queries, axes, near), zero where there are none.
        """
        from dpkde.families.spline import tensor

        grid = self.grid
        values, radii, widths = self._responses
        starts = np.empty((len(located), len(grid.axes)), dtype=np.int64)
        coefficients = np.empty((*starts.shape, int(widths.max(initial=1))))
        tensor.coefficients(
            located,
            grid.columns,
            grid.halves,
            grid.scales,
            grid.nodes,
            grid.degrees,
            values,
            radii,
            widths,
            PHASES,
            starts,
            coefficients,
        )
        return starts, coefficients

    @property
    def windows(self) -> NDArray[np.int64]:
        """How many nodes of each splined axis a query can have coefficients for."""
        return self._responses[2]

    def respond_on_grid(
        self, axes: Sequence[NDArray[np.float64]], table: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return the table times one matrix an axis; None where the axes are turned."""
        from dpkde.families.spline import maps

        return maps.respond(self, axes, table) if maps.is_separable(self, axes) else None

    def response_norm_on_grid(
        self, axes: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64] | None:
        """Return the products of lengths over axes; None where the axes are turned."""
        from dpkde.families.spline import maps

        return maps.response_norm(self, axes) if maps.is_separable(self, axes) else None

    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the square of a typical bias: the relative error of the fit, times the answer."""
        return np.asarray((self.layout.usual_error * self.respond(queries, table)) ** 2)

    def strain(self, frame: Frame) -> float:
        """Return the error of the fit to another product kernel, over the most that is read."""
        return rereading.strain(self.layout, frame)

    def reread(self, frame: Frame) -> SplinePair:
        """Return the fit to another product kernel on the same nodes."""
        return SplinePair(rereading.layout(self.layout, frame), self.bits)

    def energies(self, table: NDArray[np.float64]) -> Callable[[Frame], Energy]:
        """Return quadratic forms of the table, a matrix for each axis; see `energy`."""
        waves = energy.Waves.of(table / 2**self.bits, self.grid)

        def of_frame(frame: Frame) -> Energy:
            grid = rereading.layout(self.layout, frame).grid
            return energy.of_waves(frame.kernel.shape, grid, waves)

        return of_frame

    @cached_property
    def survey(self) -> SplineSurvey:
        """The table at sites."""
        return SplineSurvey(self.frame.kernel.shape, self.grid, self.bits)

    def group_numbers(self, located: Points) -> NDArray[np.float64]:
        """Return what narrow axes say to each query: one number for each cell of their group."""
        from dpkde.families.spline import intervals

        kernel, grid = self.frame.kernel.shape, self.grid
        if not grid.narrow:
            return np.ones((len(located), 1))
        lines = [narrow.line(kernel, half, located[:, column]) for column, half in grid.narrow]
        return intervals.group(grid, lines)

    def read(self, asked: Sequence[Asked]) -> Reading:
        """Return a product over axes: the group of narrow ones, then the splined ones."""
        from dpkde.families.spline import intervals

        kernel, grid = self.frame.kernel.shape, self.grid
        factors: list[Factor] = []
        if grid.narrow:
            lines = [
                asked[column].of(intervals.NarrowAxis(kernel, half, f"column {column}"))
                for column, half in grid.narrow
            ]
            factors.append(Stored(intervals.group(grid, lines)))
        factors += [
            asked[axis.column].of(intervals.SplinedAxis(kernel, axis)) for axis in grid.axes
        ]
        return Separable(rows_of(asked), tuple(factors), 1 / 2**self.bits)

    def box_bias(
        self, asked: Sequence[Asked], table: NDArray[np.float64], variance: float
    ) -> NDArray[np.float64]:
        """Return what heaps can do that the table shows; see `bias`."""
        from dpkde.families.spline import bias

        return bias.of_boxes(self, asked, table, variance)

    def box_bound(self, asked: Sequence[Asked], table: NDArray[np.float64]) -> Allowance:
        """Return what splines above the error tell; see `majorants`."""
        from dpkde.families.spline import majorants

        return majorants.of_boxes(self, asked, table)

    def region_bound(
        self, asked: Sequence[Asked], coefficients: NDArray[np.float64], table: NDArray[np.float64]
    ) -> Allowance:
        """Return what the worst records of each cell do; see `outlines`."""
        from dpkde.families.spline import outlines

        return outlines.of_strips(self, asked, coefficients, table)

    @property
    def knows_the_whole(self) -> bool:
        """B-splines add up to one."""
        return True

    def edge_error(self, columns: Sequence[int]) -> tuple[float, NDArray[np.float64]]:
        """Return the relative error of the fit; at an edge, what an integral leaves of it.

        The fit's error has frequencies of 2π/h, where nodes alias, which an integral divides by.
        """
        losses = forecast.quality(self.frame.kernel.shape, self.grid.along(columns))[1]
        error = losses.error(USUAL_SMOOTHNESS)
        lengths = {axis.column: min(axis.spacing / (2 * np.pi), 1.0) for axis in self.grid.axes}
        return error, error * np.array([lengths.get(column, 1.0) for column in columns])

    @cached_property
    def _responses(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """The coefficients of every splined axis, padded to one array, their radii, and windows.

        A window is as many nodes as are near; rounded up on the last two axes, which is faster, and
        never more than there are.
        """
        kernel, grid = self.frame.kernel.shape, self.grid
        responses: list[Response] = [
            axis_fit(kernel, axis.degree, axis.spacing, axis.ridge).response() for axis in grid.axes
        ]
        near = [r.values.shape[1] for r in responses]
        for axis, whole in ((-1, _LANES), (-2, _ROWS)):
            if len(near) >= -axis:
                near[axis] = -(-near[axis] // whole) * whole
        values = np.zeros((len(responses), PHASES + 3, max(near, default=1)))
        for axis, response in enumerate(responses):
            values[axis, :, : response.values.shape[1]] = response.values
        widths = np.minimum(np.array(near, dtype=np.int64), grid.nodes)
        return values, np.array([r.radius for r in responses], dtype=np.int64), widths


def _what_fits(family: Spline, frame: Frame) -> str:
    """Return what would fit in place of a settled table that does not."""
    assert isinstance(family.spacing, tuple)
    largest = forecast.WIDEST_SPACING / max(family.spacing)
    for factor in np.geomspace(1.05, max(largest, 1.05), 40).tolist() if frame.dim <= 64 else ():
        wider = replace(family, spacing=tuple(h * factor for h in family.spacing), slopes=None)
        if largest > factor and wider.layout(frame).grid.cells <= MOST_CELLS:
            return (
                f"a spacing {factor:.2g} times as large would fit, or leave degree and spacing open"
            )
    return f"leave degree and spacing open (degree up to {MAX_DEGREE} is chosen), or use 'fourier'"


def _weights(u: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return the B-splines of the p + 1 nodes around each u: `spreading` in NumPy."""
    weights = np.zeros((len(u), degree + 1))
    weights[:, 0] = 1.0
    for d in range(1, degree + 1):
        carried = np.zeros(len(u))
        for r in range(d):
            part = weights[:, r] * (1 / d)
            weights[:, r] = carried + (r + 1 - u) * part
            carried = (u + (d - 1 - r)) * part
        weights[:, d] = carried
    return weights
