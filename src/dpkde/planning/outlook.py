"""What is known in public before a table is made: rows, a typical density, what ε can buy."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Guess, Outlook
from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.space.frame import Frame

FEWEST_ROWS = 1 << 12
WORTHWHILE = 50
"""Where nothing is known of the number of records, the count's share is set as for a release worth
making: at least 4096 records, and a typical density of at least fifty times 1/(εn)."""
USUAL_DENSITIES = (0.01, 0.05)
GATHERED = 8.0
LEAST_DENSITY = 1e-6
THIRDS = (1 / 6, 1 / 2, 5 / 6)
UNKNOWN, GUESSED = (1 / 5, 5.0), (2 / 3, 3 / 2)
"""The range of densities to plan for, times the usual one, and times the caller's guess."""
SMOOTH = (0.0, 1.0)
"""The range of smoothness to plan for: rounded values and heaps, and clouds."""

ROOMY, MOST_ROOM = 8.0, 2.5


def outlook(
    budget: Budget,
    frame: Frame,
    rows: float | None,
    density: float | None,
    capacity_bits: int,
) -> Outlook:
    """Return what is known in public, for what is left of a budget."""
    level = typical(frame, density)
    return Outlook(
        rows or assumed_rows(budget.guarantee, level),
        level,
        budget.guarantee.adjacency,
        budget.options,
        capacity_bits,
        None if (count := budget.spent_on("count")) is None else count.law,
        range=data_range(frame, density),
    )


def data_range(frame: Frame, guess: float | None) -> tuple[Guess, ...]:
    """Return what the data may be like: every third of two ranges, of density and of smoothness."""
    low, high = density_range(frame, guess)
    rough, smooth = smoothness_range(frame)
    return tuple(
        Guess(low ** (1 - x) * high**x, rough + (smooth - rough) * y)
        for x in THIRDS
        for y in THIRDS
    )


def smoothness_range(frame: Frame) -> tuple[float, float]:
    """Return the least and the largest smoothness to plan for.

    More in bounds of more than `ROOMY` bandwidths: a kernel mostly sees the insides of clusters
    there, which are smooth.
    """
    halves = frame.halves()
    wide = np.zeros(0) if halves is None else halves[2 * halves > ROOMY]
    times = 1.0 if not len(wide) else float(np.exp(np.log(2 * wide / ROOMY).mean() / 3))
    low, high = SMOOTH
    return min(times, MOST_ROOM) * low, min(times, MOST_ROOM) * high


def density_range(frame: Frame, guess: float | None) -> tuple[float, float]:
    """Return the least and the largest typical density to plan for.

    from a fifth to five times the usual density (0.01 to 0.25 where that is 0.05), or around the
    caller's guess; never less than even data have, nor more than 1.
    """
    level, times = typical(frame, guess), UNKNOWN if guess is None else GUESSED
    least = max(evenly_spread(frame), LEAST_DENSITY)
    low, high = (min(max(level * factor, least), 1.0) for factor in times)
    return low, high


def assumed_rows(guarantee: Guarantee, density: float) -> float:
    """Return how many records to set the count's share for, where nothing is known of them."""
    if guarantee.rho is not None:
        strength = math.sqrt(2 * float(guarantee.rho))
    else:
        assert guarantee.epsilon is not None
        strength = float(guarantee.epsilon)
    return max(WORTHWHILE / max(strength * density, 2.0**-40), float(FEWEST_ROWS))


def typical(frame: Frame, guess: float | None) -> float:
    """Return the KDE value to plan for: the caller's guess or ours, at least that of even data."""
    return max(usual_density(frame) if guess is None else guess, evenly_spread(frame))


def usual_density(frame: Frame) -> float:
    """Return the KDE value to plan for where the caller guesses none.

    A bandwidth is worth choosing where typical values are some hundredths, and the paper's are
    from 0.01 to 0.08. Over very wide axes they are lower: records seldom gather in less than an
    eighth of an axis, which makes 8 times what even data have, axis by axis.
    """
    low, high = USUAL_DENSITIES
    shares = _shares(frame)
    if shares is None:
        return high
    return min(max(float(np.minimum(GATHERED * shares, 1.0).prod()), low), high)


def evenly_spread(frame: Frame) -> float:
    """Return about the KDE of records spread evenly over the domain: hardly any data have less.

    ½ for directions; for sets that of single elements; 0 where nothing is known.
    """
    if frame.kernel.home != "space":
        return 0.5 if frame.kernel.home == "sphere" else 1 / frame.dim
    shares = _shares(frame)
    return 0.0 if shares is None else float(shares.prod())


def _shares(frame: Frame) -> NDArray[np.float64] | None:
    """Return I/(w + I) for axes of w bandwidths, I^d the integral of the kernel; None if unknown.

    That is about the part of an axis that a kernel covers.
    """
    kernel, halves = frame.kernel, frame.halves()
    if kernel.home != "space" or halves is None:
        return None
    with np.errstate(all="ignore"):  # bounds may be as far apart as floats go
        try:
            if kernel.is_product:
                whole = profile_integral(kernel.shape)
            else:
                unit = kernel.integral(frame.dim) / kernel.bandwidth.determinant(frame.dim)
                whole = float(unit ** (1 / frame.dim))
        except (ArithmeticError, ParameterError):
            return None
        shares: NDArray[np.float64] = whole / (2 * halves + whole)
        return shares if np.isfinite(shares).all() else None


@lru_cache(maxsize=64)
def profile_integral(kernel: ProductKernel) -> float:
    """Return ∫ k(t) dt of a profile."""
    t, mass = gauss_points(graded(min(kernel.profile_reach(1e-8), 1e4)))
    return 2 * float(kernel.profile(t) @ mass)
