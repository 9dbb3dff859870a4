"""Discrete Gaussian noise, exact: P(z) ∝ exp(−z²/2σ²) for a rational variance parameter σ².

Canonne, Kamath and Steinke (2020, algorithm 3): a discrete Laplace proposal of integer scale
t = ⌊σ⌋ + 1, kept with probability exp(−γ), γ = (|y| − σ²/t)²/2σ². The coin compares a uniform
number U, revealed bit by bit, with exp(−γ). A float64 evaluation settles all but about one coin in
2³⁹, with an error bound proved in `proof.md`; the twin settles the rest in exact
arithmetic, from the same bits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly
from dpkde.privacy.laws.bits import (
    MAX_WIDTH,
    UNDECIDED,
    BitStream,
    EntropySource,
    Words,
    fill,
    take,
)
from dpkde.privacy.laws.laplace.sampler import laplace_twin, signed_geometric
from dpkde.privacy.numbers import exp_minus_bounds

COIN_BITS = 53
MARGIN = 2.0**-40
"""Coins closer than this to exp(−γ) are undecided; the float's true error is below 2⁻⁴³."""
_LARGEST_EXPONENT = 64.0
_LARGEST_EXACT = 1 << 52
_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453
_UNIT = 2.0**-COIN_BITS


@exactly
def exp_minus(value: float) -> float:
    """Return exp(−value) for 0 ≤ value ≤ 64, off by less than 2⁻⁴⁵, with IEEE arithmetic alone.

    Our own, because a proof cannot rest on whichever `exp` a platform links. Halvings of exp(−f),
    f = value − k ln 2 in [0, 0.7], by its Taylor polynomial of degree 17.
    """
    halvings = int(value * _LOG2_E)
    f = value - halvings * _LN_2
    total = 1.0
    for degree in range(17, 0, -1):
        total = 1.0 - total * f / degree
    for _ in range(halvings):
        total *= 0.5
    return total


@exactly
def _draw_gaussian(
    words: Words,
    position: int,
    scale: int,
    width: int,
    center: float,
    inverse: float,
    margin: float,
) -> tuple[int, int]:
    while True:
        value, position = signed_geometric(words, position, scale, 1, width)
        coin, position = take(words, position, COIN_BITS)
        if position < 0:
            return 0, position
        distance = float(abs(value)) - center
        gamma = distance * distance * inverse
        if gamma > _LARGEST_EXPONENT:
            if coin == 0:
                return 0, UNDECIDED
            continue  # exp(−γ) is far below 2⁻⁵³, the least that U can be
        if abs(value) > _LARGEST_EXACT:
            return 0, UNDECIDED
        chance = exp_minus(gamma)
        if (coin + 1) * _UNIT <= chance - margin:
            return value, position
        if coin * _UNIT < chance + margin:
            return 0, UNDECIDED


@exactly
def _fill_gaussian(
    words: Words,
    position: int,
    out: NDArray[np.int64],
    done: int,
    scale: int,
    width: int,
    center: float,
    inverse: float,
    margin: float,
) -> tuple[int, int, int]:
    while done < out.size:
        value, after = _draw_gaussian(words, position, scale, width, center, inverse, margin)
        if after < 0:
            return done, position, after
        out[done] = value
        done, position = done + 1, after
    return done, position, 0


def discrete_gaussian(
    variance: Fraction, size: int, source: EntropySource, margin: float = MARGIN
) -> NDArray[np.int64]:
    """Return `size` independent draws with P(z) ∝ exp(−z²/2σ²), σ² = `variance`.

    `margin` is for tests, which widen it to send more coins through the twin; any value from
    2⁻⁴³ up gives the same draws.
    """
    scale = proposal_scale(variance)
    width = (scale - 1).bit_length()
    return fill(
        size,
        source,
        1.4 * (4 + 6 * (width + 1) + COIN_BITS),
        _fill_gaussian,
        (
            scale if width <= MAX_WIDTH else 1,
            width,
            float(variance / scale),
            float(1 / (2 * variance)),
            margin,
        ),
        lambda stream, _: gaussian_twin(stream, variance),
    )


def proposal_scale(variance: Fraction) -> int:
    """Return t = ⌊σ⌋ + 1, in integers."""
    return math.isqrt(variance.numerator // variance.denominator) + 1


def gaussian_twin(stream: BitStream, variance: Fraction) -> int:
    """Return z with P(z) ∝ exp(−z²/2σ²), in exact arithmetic."""
    scale = proposal_scale(variance)
    while True:
        value = laplace_twin(stream, Fraction(scale))
        gamma = (abs(value) - variance / scale) ** 2 / (2 * variance)
        if coin_twin(stream, gamma):
            return value


def coin_twin(stream: BitStream, gamma: Fraction) -> bool:
    """Return whether U < exp(−γ), U uniform on [0, 1) and revealed 53 bits at a time."""
    known, bits = 0, 0
    digits = 40
    while True:
        known = (known << COIN_BITS) | stream.take(COIN_BITS)
        bits += COIN_BITS
        while True:
            low, high = exp_minus_bounds(gamma, digits)
            if Fraction(known + 1, 1 << bits) <= low:
                return True
            if Fraction(known, 1 << bits) >= high:
                return False
            if (high - low) * (1 << bits) < Fraction(1, 1 << 20):
                break  # the interval of U really straddles exp(−γ), or nearly: reveal more of U
            digits *= 2
