"""How finely each axis is splined: the trade of noise against bias, from public numbers.

Noise passes through every axis with its *gain*, and gains multiply. Relative errors of the fit add
up as squares, Σ_k r_k². Three kinds are told apart:

* *scatter*, the residual of least squares. Splines of spacing h see the frequencies ω of the data
  that are beyond π/h at others, 2π/h away; so what remains of it is what the data have there,
  κ² = `REMAINS`·e^{−s·t} at t = `ALIAS`/h, s being how smooth they are (`Guess.smoothness`). Rough
  data, with most records at few values, have it on all axes at once, where it adds up;
* *lines*: what data on a lattice of the bandwidth see of it (`AxisFit`), λ² = e^{−2πs} of it:
  their spectrum there is what makes them a lattice;
* *bend*: what a ridge adds, which does not average out. So, p̂ being the typical density,

    error² = noise² + p̂²·(Σ_k (κ_k²·r_k² + λ_k²·lines_k + bend_k) + Σ_{j≠k} (κ_jκ_k)^{3/2}·r_j·r_k)

with r² the scatter.

On a narrow axis little of what a line leaves averages out, since data cover an axis unevenly, and
nothing of what a constant leaves. With many narrow axes their curvatures add up; an arch over all
of them is taken where that lowers the predicted error.

The search is a Lagrangian one: for a price μ of squared error and a price ν of cells and time, each
axis on its own takes the option of least log gain + μ·r² + ν·log(nodes·(p + 1)). All prices on a
grid are tried, and the best table that fits is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import USUAL_SMOOTHNESS
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import FARTHEST, LARGEST_SQUARES, Quality, axis_fit
from dpkde.families.spline.grid import Grid, count_intervals, half_widths, is_line
from dpkde.kernels import ProductKernel
from dpkde.space.frame import Frame

if TYPE_CHECKING:
    from dpkde.families.spline.family import Spline

REMAINS, ALIAS = 0.7, 3.3
"""κ² = REMAINS·e^{−s·ALIAS/h}. By the bias of some 400 tables on 27 data sets of 2 to 8 columns,
real and generated, whose s was known: κ² is from 0.0001 to 1.5, and this mostly within a factor
of 3."""
NARROW = 5.0
"""On an axis of w bandwidths data are no smoother than (w/NARROW)²: they lie close together."""
ROUNDED = 0.02
"""What counts at least of an error on lattices: rounded values look smooth between their lines. No
more, or lines pass by meshes that suit smooth data best."""
ALIGNED = 0.3
"""How much of what many axes lack together remains: data may gather at the middle of narrow ones,
at their ends, or in clusters around the query."""
LINE_AVERAGING = 0.5
"""What remains of a small loss of a line on a narrow axis, where data may lie at one end. That of a
constant remains whole."""
MOST_CHOSEN = 1 << 22
"""Most cells chosen without being asked: noise takes time, and a release 8 bytes a cell."""
MOST_PARTS = 1 << 12
"""Most cells that a record is spread over, where they are chosen: some 10 µs."""
WIDEST_SPACING = 8.0
"""Most bandwidths between the nodes of a splined axis."""
_LEAST_TRIED = 0.02
MOST_NEAR = 1 << 16
"""Most nodes to one side that a query may look at."""
_SPACINGS = tuple(round(1.6 * 1.04**-i, 4) for i in range(60))
_WORTH = ((1, 0.55, 2.0), (2, 0.35, 1.6), (3, 0.0, 1.3), (4, 0.0, 0.9), (5, 0.0, 0.8))
"""For each degree the spacings at which it can be best: elsewhere another one has less of both."""
_ROUGH_SPACINGS = tuple(round(1.6 * 1.08**-i, 4) for i in range(58))
_ROUGH_WORTH = ((1, 0.0, 2.0), (2, 0.0, 1.6), (3, 0.0, 1.3))
"""The same where the kernel has a kink, which fine meshes and low degrees follow best."""
_RIDGES = (0.03, 0.1)
_CELL_PRICES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_EXACT_UP_TO = 8
_FLAT_UP_TO = 1.5
"""Half the width up to which an axis may get a constant or a line without being asked."""
_FEW = 16


def settle(family: Spline, frame: Frame) -> Spline:
    """Return a family with one entry an axis; slopes are chosen where they are open."""
    degrees = _per_axis("degree", family.degree, frame.dim)
    spacings = tuple(float(v) for v in _per_axis("spacing", family.spacing, frame.dim))
    ridge = 0.0 if family.ridge is None else family.ridge
    ridges = tuple(float(v) for v in _per_axis("ridge", ridge, frame.dim))
    halves = half_widths(frame)
    for p, h, half in zip(degrees, spacings, halves, strict=True):
        if h > WIDEST_SPACING and p > 0 and not is_line(p, count_intervals(half, h)):
            raise ParameterError(
                f"a spacing of {h:g} bandwidths sees nothing of the kernel: use at most "
                f"{WIDEST_SPACING:g}, or degree 0 for a constant"
            )
    kernel = frame.kernel.shape
    reach = min(kernel.profile_reach(1e-8), FARTHEST)
    if reach > MOST_NEAR * min(spacings):
        raise ParameterError(
            f"a spacing of {min(spacings):g} bandwidths is too small for a kernel that reaches "
            f"{reach:.3g} of them"
        )
    lines = [
        is_line(p, count_intervals(half, h))
        for p, h, half in zip(degrees, spacings, halves, strict=True)
    ]
    slopes, arch = family.slopes, family.arch or 0
    if slopes is None:
        studied = [
            narrow.study(kernel, half) if tilts else None
            for half, tilts in zip(halves, lines, strict=True)
        ]
        chosen = iter(narrow.shares([line.lean for line in studied if line is not None]))
        slopes = tuple(0 if line is None else next(chosen) for line in studied)
    if (
        len(slopes) != frame.dim
        or [slope > 0 for slope in slopes] != lines
        or sum(slopes) + arch >= 1 << narrow.SHARE_BITS
    ):
        raise ParameterError(
            "slopes must be positive for the axes of degree 1 over a single interval, zero for all "
            f"others, and below {1 << narrow.SHARE_BITS} together, the arch included"
        )
    if arch and not any(tilts or p == 0 for tilts, p in zip(lines, degrees, strict=True)):
        raise ParameterError("arch must be 0 where no axis has a constant or a line")
    return replace(family, degree=degrees, spacing=spacings, ridge=ridges, slopes=slopes, arch=arch)


def with_arch(family: Spline, frame: Frame) -> Spline | None:
    """Return a settled family with an arch over its narrow axes, if it has any."""
    kernel, grid = frame.kernel.shape, Grid.of(family, frame)
    if not grid.narrow or grid.arch or grid.cells // grid.group * (grid.group + 1) > MOST_CHOSEN:
        return None
    bow = _bow(kernel, grid)[0]
    leans = [narrow.study(kernel, half).lean for _, half, _ in grid.tilts]
    *slopes, arch = narrow.shares([*leans, bow ** (2 / 3)])
    placed = [0] * frame.dim
    for (column, _, _), share in zip(grid.tilts, slopes, strict=True):
        placed[column] = share
    return replace(family, slopes=tuple(placed), arch=arch)


def _bow(kernel: ProductKernel, grid: Grid) -> tuple[float, float, float]:
    """Return Σ r over narrow axes, r = c₂/c₀; what is beyond axes that bend alone; Σ_{j≠k} r_j r_k.

    Those add up as squares, and `LINE_AVERAGING` counts them: twice that is theirs.
    """
    lines = (narrow.study(kernel, half) for _, half in grid.narrow)
    bows = [line.curve / line.flat for line in lines]
    own = math.hypot(*bows)
    return sum(bows), max(0.0, sum(bows) - 2 * own), max(0.0, sum(bows) ** 2 - own**2)


def _gaps(kernel: ProductKernel, grid: Grid, tilted: set[int]) -> list[float]:
    """Return what each narrow axis lacks where a record meets the query."""
    gaps = []
    for column, half in grid.narrow:
        line = narrow.study(kernel, half)
        own = line.line_gap if column in tilted else line.flat_gap
        gaps.append(min(own, line.curve_gap) if grid.arch else own)
    return gaps


def _per_axis(what: str, value: Any, dim: int) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        return (value,) * dim
    if len(value) != dim:
        raise ParameterError(f"{what} has {len(value)} entries for {dim} axes")
    return value


@dataclass(frozen=True)
class Losses:
    """What a table lacks, axis by axis: enough for its relative error on data of any smoothness.

    Attributes
    ----------
    halves, spacings
        Half the width and the spacing of each splined axis.
    scatter, lines
        What each lacks, squared and relative.
    rest
        What ridges, narrow axes, and clusters where all axes lack something leave.
    """

    halves: NDArray[np.float64]
    spacings: NDArray[np.float64]
    scatter: NDArray[np.float64]
    lines: NDArray[np.float64]
    rest: float

    def error(self, smoothness: float | NDArray[np.float64]) -> float:
        """Return the relative error of a KDE value; smoothness may be one number per axis."""
        remains = remaining(self.halves, self.spacings, smoothness)
        shared = remains**0.75 * np.sqrt(self.scatter)
        together = float(shared.sum()) ** 2 - float((shared**2).sum())
        lines = float((on_lattices(self.halves, smoothness) * self.lines).sum())
        squares = float((remains * self.scatter).sum()) + lines + together + self.rest
        return min(1.0, math.sqrt(squares))


def quality(kernel: ProductKernel, grid: Grid) -> tuple[float, Losses]:
    """Return the gain of a table over all axes, and what it lacks."""
    gain, error, gaps = 1.0, 0.0, []
    fits = [
        axis_fit(kernel, axis.degree, axis.spacing, axis.ridge).quality(axis.intervals)
        for axis in grid.axes
    ]
    for fit in fits:
        gain *= fit.gain
        error += fit.bend
        gaps.append(fit.gap)
    tilted = {column for column, _, _ in grid.tilts}
    group = float((1 << narrow.SHARE_BITS) / grid.shares[0]) ** 2
    for column, half in grid.narrow:
        line = narrow.study(kernel, half)
        gain *= line.flat
        spared = line.line_loss - line.curve_loss if grid.arch else 0.0
        loss = line_error(line.line_loss - spared) if column in tilted else line.flat_loss - spared
        error += loss
    for _, half, share in grid.tilts:
        line = narrow.study(kernel, half)
        group += (line.slope / line.flat * (1 << narrow.SHARE_BITS) / share) ** 2
    bow, joint, crossed = _bow(kernel, grid)
    if grid.arch:
        group += (bow * (1 << narrow.SHARE_BITS) / grid.arch) ** 2
    # P₂ is −½ at the middle of an axis: of half the bow an arch leaves the products of two axes.
    left = crossed / 8 if grid.arch else joint / 2
    gaps += _gaps(kernel, grid, tilted)
    # In a cluster records meet the query on all axes, and gaps add up: beyond what each counts.
    # Where much is left, a sum of curvatures does not stand for their product, whatever the data.
    left = max(left, sum(gaps) - 2 * math.hypot(*gaps))
    error += (min(max(ALIGNED, 4 * left), 1.0) * left) ** 2
    losses = Losses(
        np.array([axis.half for axis in grid.axes]),
        np.array([axis.spacing for axis in grid.axes]),
        np.array([fit.scatter for fit in fits]),
        np.array([fit.lines for fit in fits]),
        error,
    )
    return gain * math.sqrt(group), losses


def remaining(
    half: NDArray[np.float64],
    spacing: NDArray[np.float64],
    smoothness: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return κ² = REMAINS·e^{−s·ALIAS/h}: what remains of the scatter, squared."""
    return np.asarray(REMAINS * np.exp(-_on_axis(half, smoothness) * ALIAS / spacing))


def on_lattices(
    half: NDArray[np.float64], smoothness: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return λ² = e^{−2πs}: what remains of what data on a lattice see, squared."""
    return np.maximum(np.exp(-2 * math.pi * _on_axis(half, smoothness)), ROUNDED)


def _on_axis(
    half: NDArray[np.float64], smoothness: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.minimum(smoothness, (2 * half / NARROW) ** 2)


def squared_error(fit: Quality, half: float, spacing: float) -> float:
    """Return the square of an axis's relative error in a KDE value, on data of usual smoothness."""
    width = np.array(half)
    remains = float(remaining(width, np.array(spacing), USUAL_SMOOTHNESS))
    lines = float(on_lattices(width, USUAL_SMOOTHNESS))
    return remains * fit.scatter + lines * fit.lines + fit.bend


def line_error(loss: float) -> float:
    """Return the square of a tilted axis's relative error: less of a small loss remains."""
    return loss * (LINE_AVERAGING**2 + (1 - LINE_AVERAGING**2) * loss)


@dataclass(frozen=True)
class Option:
    """One way to treat an axis."""

    degree: int
    spacing: float
    ridge: float
    gain: float
    error: float
    """Squared and relative."""
    nodes: int
    lean: float = 0.0
    is_tilt: bool = False
    """Whether the axis joins the group of tilted ones."""


@dataclass(frozen=True)
class Wish:
    """What is known of an axis: its half width, and what the caller fixed."""

    half: float
    degree: int | None
    spacing: float | None
    ridge: float | None


@lru_cache(maxsize=4096)
def axis_options(kernel: ProductKernel, wish: Wish, stride: int) -> tuple[Option, ...]:
    """Return what is worth trying on an axis; of spacings every `stride`-th."""
    half, degree, spacing, ridge = wish.half, wish.degree, wish.spacing, wish.ridge
    options = []
    if degree == 0 or (degree is None and spacing is None and half <= _FLAT_UP_TO):
        line = narrow.study(kernel, half)
        options.append(Option(0, spacing or 1.0, 0.0, line.flat, line.flat_loss, 1))
    if degree in (None, 1) and half <= _FLAT_UP_TO and (spacing is None or spacing >= 2 * half):
        line = narrow.study(kernel, half)
        loss = line_error(line.line_loss)
        whole = max(2 * half, 1e-3) if spacing is None else spacing
        options.append(Option(1, whole, 0.0, line.flat, loss, 2, lean=line.lean, is_tilt=True))
    for p, h in _meshes(wish, stride, kernel.is_smooth):
        intervals = count_intervals(half, h)
        if is_line(p, intervals) or h > WIDEST_SPACING or intervals + p > MOST_CHOSEN:
            continue
        ridges = (0.0, *_RIDGES) if 2 <= p <= 3 and h >= 0.8 else (0.0,)
        for strength in ridges if ridge is None else (ridge,):
            fit = axis_fit(kernel, p, h, strength).quality(intervals)
            options.append(
                Option(p, h, strength, fit.gain, squared_error(fit, half, h), intervals + p)
            )
    return tuple(options)


def _meshes(wish: Wish, stride: int, smooth: bool) -> Iterator[tuple[int, float]]:
    """Yield degrees and spacings: few intervals fill the axis exactly, many may reach beyond.

    With a stride all reach beyond, so that fits are shared between axes of different widths.
    """
    half, degree, spacing = wish.half, wish.degree, wish.spacing
    worth = _WORTH if smooth or degree is not None else _ROUGH_WORTH
    for p, low, high in worth:
        if degree not in (None, p):
            continue
        if spacing is not None:
            yield p, spacing
            continue
        low, high = (low, high) if degree is None else (0.0, 2.0)
        seen = set()
        for h in (_SPACINGS if smooth else _ROUGH_SPACINGS)[::stride]:
            intervals = count_intervals(half, h)
            fills = intervals <= _EXACT_UP_TO and stride == 1
            exact = 2 * half / intervals if fills else h
            exact = exact if degree is None else max(exact, _LEAST_TRIED)
            if low <= exact <= high and exact >= _LEAST_TRIED and exact not in seen:
                seen.add(exact)
                yield p, exact


def candidates(family: Spline, frame: Frame) -> list[Spline]:
    """Return what is best for some price of error, of cells and of time, with and without an arch.

    The L2 norm of a record differs from option to option, and the L1 norm does not: prices are
    tried for noise that hides either.
    """
    picks = {
        tuple(picked): None
        for norm in ("L1", "L2")
        for picked in _searched(family, frame, norm, _CELL_PRICES)
    }
    if not picks:
        fixed = family.degree is not None or family.spacing is not None
        reason = "with these degrees or spacings: open them" if fixed else "so many wide columns"
        raise ParameterError(f"no table of up to 2^22 cells fits {reason}")
    plain = [_with_options(family, frame, picked) for picked in picks]
    arched = (with_arch(entry, frame) for entry in plain if family.arch is None)
    return [*plain, *(entry for entry in arched if entry is not None)]


def _with_options(family: Spline, frame: Frame, picked: tuple[Option, ...]) -> Spline:
    return settle(
        replace(
            family,
            degree=tuple(o.degree for o in picked),
            spacing=tuple(o.spacing for o in picked),
            ridge=tuple(o.ridge for o in picked),
            slopes=None,
        ),
        frame,
    )


def _searched(
    family: Spline, frame: Frame, norm: str, cell_prices: tuple[float, ...]
) -> Iterator[list[Option]]:
    """Yield an option for each axis, for every pair of prices whose table fits."""
    kernel = frame.kernel.shape
    wishes = [
        Wish(half, p, None if h is None else float(h), None if r is None else float(r))
        for half, p, h, r in zip(
            half_widths(frame),
            _per_axis("degree", family.degree, frame.dim),
            _per_axis("spacing", family.spacing, frame.dim),
            _per_axis("ridge", family.ridge, frame.dim),
            strict=True,
        )
    ]
    kinds = list(dict.fromkeys(wishes))  # axes that are alike get the same
    stride = 1 if len(kinds) <= _FEW else 4
    options = [axis_options(kernel, wish, stride) for wish in kinds]
    if not all(options):
        raise ParameterError(
            f"column {wishes.index(kinds[options.index(())])} has no spline of this degree or "
            "spacing with up to 2^22 nodes: leave them open"
        )
    order = [kinds.index(wish) for wish in wishes]
    counts = [order.count(k) for k in range(len(kinds))]
    for row in _combinations(options, counts, norm, cell_prices):
        picked = [row[k] for k in order]
        cells = math.prod(o.nodes for o in picked if not o.is_tilt)
        cells *= 1 + sum(o.is_tilt for o in picked)
        parts = math.prod(o.degree + 1 for o in picked if not o.is_tilt)
        parts *= 1 + sum(o.is_tilt for o in picked)
        if cells <= MOST_CHOSEN and parts <= MOST_PARTS:
            yield picked


def _combinations(
    kinds: list[tuple[Option, ...]],
    axes: list[int],
    norm: str,
    cell_prices: tuple[float, ...],
) -> Iterator[list[Option]]:
    """Yield one option for each kind of axis, for every pair of prices, each combination once."""
    prices = np.geomspace(1e-2, 1e12, 85)[:, np.newaxis]
    columns = [_Columns.of(options, norm) for options in kinds]
    seen: set[tuple[int, ...]] = set()
    for cell_price in cell_prices:
        total = np.zeros((len(prices), 1))
        for _ in range(3):
            # What a tilted axis costs depends on the others that tilt: a fixed point.
            leans, picks = np.zeros((len(prices), 1)), []
            for column, count in zip(columns, axes, strict=True):
                joint = 1.5 * np.log1p(column.lean / (1 + np.maximum(total - column.lean, 0.0)))
                cost = column.cost + joint + prices * column.error + cell_price * column.size
                pick = cost.argmin(axis=1)
                picks.append(pick)
                leans[:, 0] += count * column.lean[0, pick]
            total = leans
        for row in zip(*(pick.tolist() for pick in picks), strict=True):
            if row not in seen:
                seen.add(row)
                yield [options[i] for options, i in zip(kinds, row, strict=True)]


@dataclass(frozen=True)
class _Columns:
    """The options of an axis as rows of numbers."""

    cost: NDArray[np.float64]
    error: NDArray[np.float64]
    size: NDArray[np.float64]
    lean: NDArray[np.float64]

    @classmethod
    def of(cls, options: tuple[Option, ...], norm: str) -> _Columns:
        def row(values: list[float]) -> NDArray[np.float64]:
            return np.array(values, dtype=np.float64)[np.newaxis]

        return cls(
            row([math.log(o.gain * (_length(o) if norm == "L2" else 1.0)) for o in options]),
            row([o.error for o in options]),
            row([math.log(2 if o.is_tilt else o.nodes * (o.degree + 1)) for o in options]),
            row([o.lean for o in options]),
        )


def _length(option: Option) -> float:
    """Return the largest L2 norm of an axis's weights."""
    if option.degree == 0 or option.is_tilt:
        return 1.0
    return math.sqrt(LARGEST_SQUARES[option.degree])
