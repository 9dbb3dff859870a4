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

from dpkde.densities.survey import SiteAxis
from dpkde.kernels import ProductKernel

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LOW = 2.0
"""Standard errors above which a site stays where it touches others that lead to a certain one."""
MOST_STEPS = 1000
_STILL = 0.1
"""How far from a solution the KDE may stay at any site, in standard errors."""
_REACH = 1e-9
_MOST_NEWTON = 100
_EXACT = 1e-13
_FEW = 48
"""Sites that a matrix reaches to each side; beyond, transforms are faster."""


class Fit(NamedTuple):
    """Weights, and what the constraint on their sum does to a site of one standard error."""

    weights: Floats
    price: float


def fitted(
    kernel: ProductKernel,
    axes: tuple[SiteAxis, ...],
    field: Floats,
    error: Floats,
    inside: Mask,
    certain: float,
) -> Floats:
    """Return weights of sites, not negative and of sum one.

    Parameters
    ----------
    kernel
        The kernel in bandwidth units.
    axes
        Where the sites are.
    field
        The noisy KDE at every site, one dimension per axis.
    error
        Its standard error.
    inside
        Where records can be.
    certain
        How many standard errors noise reaches in one table of twenty.
    """
    if not axes:
        return np.ones(())
    with np.errstate(all="ignore"):
        scores = np.where(inside & (error > 0), field / error, -math.inf)
    typical = float(np.median(error[inside]))
    best = np.asarray(inside / inside.sum())
    # A KDE is at most one: where noise alone is that large, nothing is certain.
    sure = (scores > max(certain, LOW)) & (error * certain < 1)
    start = field
    for mask in _masks(scores, sure, inside):
        box = covering(mask)
        fit = _solved(kernel, axes, field[box], scores[box], mask[box], typical, start[box])
        start = best = np.zeros(field.shape)
        best[box] = fit.weights
        if fit.price >= -typical:
            break
    return best


def covering(mask: Mask) -> tuple[slice, ...]:
    """Return the least box that holds all of a mask, which has some."""
    return tuple(slice(int(k.min()), int(k.max()) + 1) for k in np.nonzero(mask))


def _masks(scores: Floats, certain: Mask, inside: Mask) -> Iterator[Mask]:
    """Yield sites that may have weight, fewest first; none where nothing stands out."""
    from scipy.ndimage import generate_binary_structure, label

    if not certain.any():
        return
    touching = generate_binary_structure(scores.ndim, min(scores.ndim, 3))
    for low in (LOW, LOW / 2, 0.0):
        parts = label(scores > low, structure=touching)[0]
        yield np.isin(parts, np.unique(parts[certain]))
    yield inside


def _solved(
    kernel: ProductKernel,
    axes: tuple[SiteAxis, ...],
    field: Floats,
    scores: Floats,
    mask: Mask,
    typical: float,
    start: Floats,
) -> Fit:
    """Return the fit on some sites, looked for from some weights on."""
    smooth, most = smoothing(kernel, axes, field.shape)
    prices = 1 / np.maximum(scores[mask], 1.0) ** 2
    weights = np.zeros(field.shape)
    weights[mask] = np.maximum(start[mask], 0.0)
    weights /= weights.sum()
    ahead, momentum, price = weights, 1.0, 0.0
    for _ in range(MOST_STEPS):
        moved = ahead - (smooth(ahead) - field) / most
        following = np.zeros(field.shape)
        following[mask], price = reduced(moved[mask], prices, price)
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        if float(((ahead - following) * (following - weights)).sum()) > 0:
            momentum = faster = 1.0
        # How far the KDE is from what the constraints ask for, at the worst site.
        residual = most * float(np.abs(following - ahead).max())
        ahead = following + (momentum - 1) / faster * (following - weights)
        weights, momentum = following, faster
        if residual < _STILL * typical:
            break
    return Fit(weights / weights.sum(), price * most)


def reduced(values: Floats, prices: Floats, guess: float = 0.0) -> tuple[Floats, float]:
    """Return max(v − λ·price, 0) with the λ for which that adds up to one, and λ.

    Newton's steps: the sum is convex in λ and made of lines, so few of them end at a solution.

    >>> reduced(np.array([0.5, 1.0, 0.0]), np.ones(3))[0]
    array([0.25, 0.75, 0.  ])
    """
    price = guess if (values > guess * prices).any() else (values.sum() - 1) / prices.sum()
    for _ in range(_MOST_NEWTON):
        rest = values - price * prices
        positive = rest > 0
        excess = float(rest[positive].sum()) - 1
        if abs(excess) < _EXACT:
            break
        price += excess / float(prices[positive].sum())
    return np.maximum(values - price * prices, 0.0), float(price)


def smoothing(
    kernel: ProductKernel, axes: tuple[SiteAxis, ...], shape: tuple[int, ...]
) -> tuple[Callable[[Floats], Floats], float]:
    """Return w ↦ Kw on a part of a lattice, and a number that no eigenvalue of K exceeds.

    Axis by axis: by a matrix with few diagonals where the kernel reaches few sites, else by a
    fast Fourier transform. Costs O(N) or O(N log N) for N sites.
    """
    parts, most = [], 1.0
    for axis, count in zip(axes, shape, strict=True):
        reach = kernel.profile_reach(_REACH) + axis.pitch
        far = int(min(count - 1.0, math.ceil(reach / axis.pitch)))
        row = axis.seen(kernel, np.arange(far + 1.0) * axis.pitch)
        parts.append(_banded(row, count) if far <= _FEW else _convolved(row, count))
        most *= float(row[0] + 2 * np.abs(row[1:]).sum())

    def smooth(weights: Floats) -> Floats:
        for axis, part in enumerate(parts):
            first = np.moveaxis(weights, axis, 0)
            product = part(np.ascontiguousarray(first).reshape(len(first), -1))
            weights = np.moveaxis(product.reshape(first.shape), 0, axis)
        return weights

    return smooth, most


def _banded(row: Floats, count: int) -> Callable[[Floats], Floats]:
    from scipy.sparse import diags_array

    offsets = np.arange(1 - len(row), len(row))
    shape = (count, count)
    matrix = diags_array(row[np.abs(offsets)], offsets=offsets, shape=shape, format="csr")
    return lambda columns: np.asarray(matrix @ columns)


def _convolved(row: Floats, count: int) -> Callable[[Floats], Floats]:
    from scipy import fft

    size = fft.next_fast_len(count + len(row) - 1, real=True)
    wrapped = np.zeros(size)
    wrapped[: len(row)] = row
    wrapped[size - len(row) + 1 :] = row[:0:-1]
    symbol = fft.rfft(wrapped).real[:, np.newaxis]
    return lambda columns: np.asarray(
        fft.irfft(fft.rfft(columns, size, axis=0) * symbol, size, axis=0)[:count]
    )
