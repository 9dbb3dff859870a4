"""Weights on a lattice whose KDE is near a noisy one, and which could be those of records.

The KDE of weights w at sites z is ``Σ w_s k(y − z_s)``. Whatever the records, theirs is one with
w ≥ 0 and Σ w = 1; a noisy one is not. So the nearest of these is looked for, in three steps.

**Where.** A site is *certain* where the noisy KDE is so many standard errors above zero that pure
noise would reach it nowhere in nineteen tables of twenty. Sites above `LOW` standard errors stay
where they hang together with a certain one; all others are empty. A cell of noise by itself in an
empty ocean does not stay, the thin edge of a city does.

**How much.** In the norm of the kernel's own space the squared distance to the noisy KDE f is

    ‖Σ w_s k_s − f‖² = wᵀKw − 2wᵀf + const,   K_st = k(z_s − z_t).

A least distance under w ≥ 0 leaves f as it is wherever w is positive and no other constraint
acts: dense parts keep their answers. The set of all such KDEs is convex and the truth is in it,
so without step one the projection is never further from the truth than f was, in that norm.

**One in all.** Noise that is cut off below zero adds mass, and Σ w = 1 takes it away again: w is
the solution with a price of λ/max(z, 1)² on the mass at a site of z standard errors, λ such that
the sum is one. Weak sites pay, dense ones hardly (an adaptive lasso). Where that would take
λ < 0 by more than a standard error, mass is missing: there is more than the certain sites
show, and less certain ones are let in.

Accelerated projected gradients (Beck and Teboulle, with O'Donoghue and Candès' restarts), the
product with K by a fast Fourier transform. Nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import ProductKernel

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOW = 2.0
"""Standard errors above which a site stays where it touches others that lead to a certain one."""
FALSE_ALARM = 0.05
"""How often pure noise may have a certain site anywhere."""
MOST_STEPS = 300
_CHECKED = 10
"""Steps between two looks at whether anything moves still."""
_STILL = 0.02
"""What may still move, in standard errors of the KDE."""
_REACH = 1e-9


class Fit(NamedTuple):
    """Weights, and what the constraint on their sum does to a site of one standard error."""

    weights: Floats
    price: float


def fitted(
    kernel: ProductKernel,
    pitches: tuple[float, ...],
    field: Floats,
    error: Floats,
    inside: Mask,
    cells: int,
) -> Floats:
    """Return weights of sites, not negative and of sum one.

    Parameters
    ----------
    kernel
        The kernel in bandwidth units.
    pitches
        Distances between sites, one per axis, in bandwidths.
    field
        The noisy KDE at every site, one dimension per axis.
    error
        Its standard error.
    inside
        Where records can be.
    cells
        How many cells of noise there are.
    """
    with np.errstate(all="ignore"):
        scores = np.where(inside & (error > 0), field / error, -math.inf)
    typical = float(np.median(error[inside]))
    flat = inside / inside.sum()
    best = flat
    for mask in _masks(scores, inside, cells):
        box = tuple(slice(int(k.min()), int(k.max()) + 1) for k in np.nonzero(mask))
        fit = _solved(kernel, pitches, field[box], scores[box], mask[box], typical)
        best = np.zeros(field.shape)
        best[box] = fit.weights
        if fit.price >= -typical:
            break
    return best


def _masks(scores: Floats, inside: Mask, cells: int) -> Iterator[Mask]:
    """Yield sites that may have weight, fewest first; none where nothing stands out."""
    from scipy.ndimage import generate_binary_structure, label
    from scipy.special import ndtri

    certain = scores > max(-float(ndtri(FALSE_ALARM / cells)), LOW)
    if not certain.any():
        return
    touching = generate_binary_structure(scores.ndim, min(scores.ndim, 3))
    for low in (LOW, LOW / 2, 0.0):
        parts = label(scores > low, structure=touching)[0]
        yield np.isin(parts, np.unique(parts[certain]))
    yield inside


def _solved(
    kernel: ProductKernel,
    pitches: tuple[float, ...],
    field: Floats,
    scores: Floats,
    mask: Mask,
    typical: float,
) -> Fit:
    """Return the fit on some sites."""
    smooth, most = smoothing(kernel, pitches, field.shape)
    prices = 1 / np.maximum(scores[mask], 1.0) ** 2
    weights = np.zeros(field.shape)
    weights[mask] = np.maximum(field[mask], 0.0)
    weights /= weights.sum()
    ahead, momentum, price = weights, 1.0, 0.0
    for step in range(1, MOST_STEPS + 1):
        moved = ahead - (smooth(ahead) - field) / most
        following = np.zeros(field.shape)
        following[mask], price = reduced(moved[mask], prices)
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        if float(((ahead - following) * (following - weights)).sum()) > 0:
            momentum = faster = 1.0
        change = following - weights
        ahead = following + (momentum - 1) / faster * change
        weights, momentum = following, faster
        if step % _CHECKED == 0 and np.abs(smooth(change)).max() * _CHECKED < _STILL * typical:
            break
    return Fit(weights / weights.sum(), price * most)


def reduced(values: Floats, prices: Floats) -> tuple[Floats, float]:
    """Return max(v − λ·price, 0) with the λ for which that adds up to one, and λ.

    >>> reduced(np.array([0.5, 1.0, 0.1]), np.ones(3))
    (array([0.25, 0.75, 0.  ]), 0.25)
    """
    order = np.argsort(-values / prices, kind="stable")
    limits = (np.cumsum(values[order]) - 1) / np.cumsum(prices[order])
    last = np.flatnonzero((values / prices)[order] > limits)[-1]
    price = float(limits[last])
    return np.maximum(values - price * prices, 0.0), price


def smoothing(
    kernel: ProductKernel, pitches: tuple[float, ...], shape: tuple[int, ...]
) -> tuple[Callable[[Floats], Floats], float]:
    """Return w ↦ Kw on a lattice, and a number that no eigenvalue of K exceeds. O(N log N)."""
    from scipy import fft

    reach = kernel.profile_reach(_REACH)
    sizes, symbol = [], np.ones(())
    for pitch, count in zip(pitches, shape, strict=True):
        far = int(min(count - 1.0, math.ceil(reach / pitch)))
        size = fft.next_fast_len(count + far, real=True)
        steps = np.minimum(np.arange(size), size - np.arange(size))
        row = np.where(steps <= far, kernel.profile(steps * pitch), 0.0)
        symbol = np.multiply.outer(symbol, fft.fft(row).real)
        sizes.append(size)
    most = float(np.abs(symbol).max())
    half = np.ascontiguousarray(symbol[..., : sizes[-1] // 2 + 1]) if sizes else symbol
    corner = tuple(slice(0, count) for count in shape)

    def smooth(weights: Floats) -> Floats:
        if not shape:
            return weights
        return np.asarray(fft.irfftn(fft.rfftn(weights, sizes) * half, sizes)[corner])

    return smooth, most
