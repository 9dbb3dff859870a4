"""The worst that splines can do, over all records and queries: the constants of the guarantee.

The error of splines and of the fast Gauss transform is deterministic: f(x)·g(y) − k(x, y) is a
function of x and y, and a KDE value is off by at most its largest size, whatever the data. On one
axis that is a function of two numbers, the offset x − y and where x lies between nodes, and its
maximum is found on a fine grid. The error wiggles once between nodes: 32 places in each of those
see its maximum to half a percent; `MARGIN` allows for three. Over several axes, with |k_a| ≤ 1
and errors of e_a at most,

    |∏(k_a + e_a) − ∏k_a| ≤ ∏(1 + e_a) − 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.families.base import Worst
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import axis_fit, bspline
from dpkde.kernels import ProductKernel

if TYPE_CHECKING:
    from dpkde.families.spline.grid import Grid

Floats = NDArray[np.float64]

MARGIN = 1.03
SLIGHT = 1.003
"""The same for lengths, which change by little between 64 phases."""
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
    places, shifts = np.arange(_PLACES) / _PLACES, np.arange(-width, width + 1)
    weights = bspline(degree, np.subtract.outer(places, shifts))
    for place, row in zip(places, weights, strict=True):
        fitted = np.zeros((len(values), len(cells)))
        for shift, weight in zip(shifts.tolist(), row.tolist(), strict=True):
            if weight:
                # Column a of `values` is the node at a − radius.
                first = width + shift
                fitted += weight * padded[:, first : first + len(cells)]
        exact = kernel.profile((cells + place - v) * spacing)
        error = max(error, float(np.abs(fitted - exact).max()))
    beyond = float(kernel.profile(np.array([radius * spacing]))[0])
    gain = float(np.sqrt((values**2).sum(axis=1)).max())
    return Extreme(MARGIN * max(error, beyond), SLIGHT * gain, SLIGHT * np.abs(values).max())


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
    return NarrowExtreme(*(MARGIN * float(size) for size in sizes))


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
        extreme = narrowed(kernel, half)
        left = extreme.line if column in tilted else extreme.flat
        firsts += left
        sizes.append(left + (extreme.slope if column in tilted else 0.0))
        arch += extreme.curve
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
