"""Stable laws, by transformations of uniform and exponential draws. Public randomness only.

`symmetric` has the characteristic function e^{−|t|^p} (Chambers, Mallows and Stuck), `positive` the
Laplace transform e^{−s^α} (Kanter). If S has p-stable entries and T is positive (r/p)-stable, then
T^{1/p}·S has the characteristic function e^{−‖t‖_p^r}, since E e^{−T‖t‖_p^p} = e^{−‖t‖_p^r}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def symmetric(generator: np.random.Generator, p: float, shape: tuple[int, ...]) -> Floats:
    """Draw symmetric p-stable numbers, 0 < p ≤ 2."""
    if p == 2:
        return np.asarray(np.sqrt(2) * generator.standard_normal(shape))
    angle = np.pi * (generator.random(shape) - 0.5)
    if p == 1:
        return np.asarray(np.tan(angle))
    energy = generator.standard_exponential(shape)
    with np.errstate(all="ignore"):  # for small p numbers grow beyond the largest float
        rest = (np.cos((1 - p) * angle) / energy) ** ((1 - p) / p)
        return np.asarray(np.sin(p * angle) / np.cos(angle) ** (1 / p) * rest)


def positive(generator: np.random.Generator, alpha: float, shape: tuple[int, ...]) -> Floats:
    """Draw positive α-stable numbers, 0 < α ≤ 1; all are 1 for α = 1."""
    if alpha == 1:
        return np.ones(shape)
    angle = np.pi * (1 - generator.random(shape))
    energy = generator.standard_exponential(shape)
    with np.errstate(all="ignore"):
        rest = (np.sin((1 - alpha) * angle) / energy) ** ((1 - alpha) / alpha)
        return np.asarray(np.sin(alpha * angle) / np.sin(angle) ** (1 / alpha) * rest)


def size_biased(generator: np.random.Generator, p: float, count: int) -> Floats:
    """Draw numbers whose density is that of `symmetric`, 1 < p ≤ 2, times |θ| over its mean.

    In the formula of Chambers, Mallows and Stuck, |θ| is a function of the angle times
    E^{(p−1)/p}: biased by size, E becomes Gamma(2 − 1/p), and the angle's density is proportional
    to that function. Near a right angle it behaves like V^{−1/p}, V the distance from it, which
    V = (π/2)·W^{p/(p−1)} has for uniform W; what remains is bounded, and is done by rejection.
    """
    sizes = np.empty(0)
    while len(sizes) < count:
        tries = 4 * count + 64
        energy = generator.gamma(2 - 1 / p, size=tries)
        with np.errstate(all="ignore"):
            away = np.pi / 2 * generator.random(tries) ** (p / (p - 1))
            angle = np.pi / 2 - away
            shape = np.sin(p * angle) * np.cos((p - 1) * angle) ** (-(p - 1) / p)
            height = shape * (away / np.sin(away)) ** (1 / p) / (2 * (np.pi / 2) ** (1 / p))
            size = shape * np.sin(away) ** (-1 / p) * energy ** ((p - 1) / p)
        accepted = (generator.random(tries) < height) & np.isfinite(size)
        sizes = np.concatenate([sizes, size[accepted]])
    signs = 1 - 2 * generator.integers(0, 2, count)
    return sizes[:count] * signs
