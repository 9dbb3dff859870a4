"""The worst that families can do, over all records and queries: the constants of the guarantee.

The error of splines and of the fast Gauss transform is deterministic: f(x)·g(y) − k(x, y) is a
function of x and y, and a KDE value is off by at most its largest size, whatever the data. On one
axis that is a function of two numbers, the offset x − y and where x lies between nodes, and its
maximum is found on a fine grid. The error wiggles once between nodes: 32 places in each of those
see its maximum to half a percent; `_MARGIN` allows for three. Over several axes, with |k_a| ≤ 1
and errors of e_a at most,

    |∏(k_a + e_a) − ∏k_a| ≤ ∏(1 + e_a) − 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.families import narrow
from dpkde.families.base import Worst
from dpkde.families.bsplines import axis_fit, bspline
from dpkde.families.expansion import hermite_functions
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.grid import Grid

Floats = NDArray[np.float64]

_MARGIN = 1.03
_SLIGHT = 1.003
"""The same for lengths, which change by little between 64 phases."""
_ROUNDING = 1e-6
"""What float32 edges of random cells do to the kernel, generously."""
_PLACES = 32


class Extreme(NamedTuple):
    """The largest error of an axis, and the largest ‖c‖₂ and ‖c‖_∞ of its coefficients."""

    error: float
    gain: float
    peak: float


@lru_cache(maxsize=1024)
def splined(kernel: ProductKernel, degree: int, spacing: float, ridge: float) -> Extreme:
    """Return the extremes of a splined axis: interior nodes, since edges have no others."""
    response = axis_fit(kernel, degree, spacing, ridge).response()
    rows, radius, phases = response.values, response.radius, response.phases
    # The client interpolates between phases by a cubic: look in the middle of them, too.
    middle = (9 * (rows[1:-2] + rows[2:-1]) - rows[:-3] - rows[3:]) / 16
    values = np.concatenate([rows[1 : 1 + phases], middle[:phases]])
    starts = np.arange(phases) / phases
    v = np.concatenate([starts, starts + 0.5 / phases])[:, np.newaxis]
    width = degree // 2 + 2
    padded = np.pad(values, ((0, 0), (2 * width, 2 * width)))
    cells = np.arange(-radius - width, radius + width + 1)
    error = 0.0
    for place in np.arange(_PLACES) / _PLACES:
        found = np.zeros((len(values), len(cells)))
        for shift in range(-width, width + 1):
            weight = float(bspline(degree, np.array([place - shift]))[0])
            if weight:
                # Column a of `values` is the node at a − radius.
                first = width + shift
                found += weight * padded[:, first : first + len(cells)]
        exact = kernel.profile((cells + place - v) * spacing)
        error = max(error, float(np.abs(found - exact).max()))
    beyond = float(kernel.profile(np.array([radius * spacing]))[0])
    gain = float(np.sqrt((values**2).sum(axis=1)).max())
    return Extreme(_MARGIN * max(error, beyond), _SLIGHT * gain, _SLIGHT * np.abs(values).max())


class NarrowExtreme(NamedTuple):
    """The same for a narrow axis: what a constant and a line leave, and how large they are."""

    flat: float
    line: float
    slope: float
    curve: float


@lru_cache(maxsize=1024)
def narrowed(kernel: ProductKernel, half: float) -> NarrowExtreme:
    """Return the extremes of a constant and of a line over an axis [−half, half]."""
    reach = half + min(kernel.profile_reach(1e-6), 64.0)
    y = np.unique(np.concatenate([np.linspace(-reach, reach, 801), np.linspace(-half, half, 129)]))
    level, slope, curve = narrow.line(kernel, half, y)
    t = np.linspace(-1, 1, 129)
    exact = kernel.profile(t * half - y[:, np.newaxis])
    flat = np.abs(exact - level[:, np.newaxis]).max()
    line = np.abs(exact - level[:, np.newaxis] - slope[:, np.newaxis] * t).max()
    sizes = (flat, line, np.abs(slope).max(), np.abs(curve).max())
    return NarrowExtreme(*(_MARGIN * float(size) for size in sizes))


def of_grid(kernel: ProductKernel, grid: Grid, bits: int) -> Worst:
    """Return the worst of a spline table.

    Of K narrow axes with k = c₀(1 + r t + δ) the group keeps ∏c₀·(1 + Σ r t). What it leaves is
    first the Σ|c₀δ|, then products of two or more of the |c₀(r t + δ)|; constants have r = 0. An
    arch adds at most its own size.
    """
    axes = [splined(kernel, a.degree, a.spacing, a.ridge) for a in grid.axes]
    tilted = {column for column, _, _ in grid.tilts}
    firsts, sizes, arch = 0.0, [], 0.0
    for column, half in grid.narrow:
        found = narrowed(kernel, half)
        left = found.line if column in tilted else found.flat
        firsts += left
        sizes.append(left + (found.slope if column in tilted else 0.0))
        arch += found.curve
    # ∏(1 + s) − 1 − Σs, and the factor that other axes lend to the first kind.
    others = math.expm1(min(sum(math.log1p(size) for size in sizes), 50.0))
    error = max(others - sum(sizes), 0.0) + firsts * (1 + others)
    whole = 1 << narrow.SHARE_BITS
    group = [whole / int(grid.shares[0])]
    group += [narrowed(kernel, half).slope * whole / share for _, half, share in grid.tilts]
    if grid.arch:
        squares = float((grid.arch_weights**2).sum())
        group.append(arch * float(grid.arch_weights.max()) / squares * whole / grid.arch)
        error += group[-1] * grid.arch / whole
    gain = math.hypot(*group) * math.prod(axis.gain for axis in axes)
    peak = max(group) * math.prod(axis.peak for axis in axes)
    total = sum(math.log1p(axis.error) for axis in axes) + math.log1p(error)
    # Dividing a part among nodes rounds each of them by two units at most.
    rounding = 2 * grid.parts * peak / 2**bits
    return Worst(math.expm1(min(total, 50.0)) + rounding, 0.0, 0.0, gain / 2**bits, peak / 2**bits)


@lru_cache(maxsize=1024)
def expanded(order: int, cutoff: float, half: float) -> tuple[Extreme, float]:
    """Return the extremes of an axis of the fast Gauss transform, and the largest Σ_r|h_r/r!|."""
    u = np.linspace(-1, 1, 65) * min(half, 0.5)
    s = np.linspace(-cutoff - 0.5, cutoff + 0.5, 401)
    found = hermite_functions(s, order)
    powers = u[:, np.newaxis] ** np.arange(order)
    error = float(np.abs(powers @ found.T - np.exp(-(np.subtract.outer(u, s) ** 2))).max())
    single = half <= 0.5
    centres = np.zeros(1) if single else np.arange(-math.ceil(cutoff) - 1, math.ceil(cutoff) + 2.0)
    y = s if single else np.linspace(-0.5, 0.5, 129)
    near = np.subtract.outer(y, centres)
    squares = (hermite_functions(near, order) ** 2).sum(axis=-1) * (np.abs(near) <= cutoff)
    gain = float(np.sqrt(squares.sum(axis=1).max()))
    peak, whole = float(np.abs(found).max()), float(np.abs(found).sum(axis=1).max())
    return Extreme(_MARGIN * error, _SLIGHT * gain, _SLIGHT * peak), whole


def of_expansion(
    order: int, cutoff: float, halves: tuple[float, ...], copies: int, bits: int
) -> Worst:
    """Return the worst of a fast Gauss table: inside the cutoff Taylor's rest, beyond it all."""
    found = [expanded(order, cutoff, half) for half in halves]
    inside = math.expm1(min(sum(math.log1p(axis.error) for axis, _ in found), 50.0))
    corner = math.hypot(*(min(half, 0.5) for half in halves))
    beyond = math.exp(-(max(cutoff - corner, 0.0) ** 2))
    gain = math.prod(axis.gain for axis, _ in found) / math.sqrt(copies) / 2**bits
    peak = math.prod(axis.peak for axis, _ in found) / copies / 2**bits
    rounding = 2 * len(halves) * math.prod(whole for _, whole in found) / 2**bits
    return Worst(max(inside, beyond) + rounding, 0.0, 0.0, gain, peak)


def of_partitions(count: int, buckets: int, *, signed: bool, sides: bool, bits: int) -> Worst:
    """Return the worst of `count` random partitions.

    A record says ±1 where its bucket is the query's. With c = 1/B' the chance that different cells
    meet, its variance is k(1 − c) + c − k², at most (1 − c)²/4 + c. Plain counts, less c and over
    1 − c, have at most that of a 0 or 1, ¼/(1 − c)². Sides of a plane say ±½. A mean over records
    has no more variance than the worst of them.
    """
    collide = 1 / buckets
    if sides:
        variance, reach, gain, peak = 0.25, 1.0, 0.5, 0.5
    elif signed:
        variance, reach, gain, peak = (1 - collide) ** 2 / 4 + collide, 2.0, 1.0, 1.0
    else:
        shrink = 1 / (1 - collide)
        variance, reach, gain, peak = shrink**2 / 4, shrink, math.sqrt(shrink), 1.0
    return Worst(
        _ROUNDING,
        variance / count,
        reach / count,
        gain / math.sqrt(count) / 2**bits,
        peak / count / 2**bits,
    )
