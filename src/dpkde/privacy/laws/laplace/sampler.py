"""Discrete Laplace noise, exact: P(z) ∝ exp(−|z|/t) for a rational scale t.

The method is that of Canonne, Kamath and Steinke (2020, algorithms 1 and 2). The proof of what is
written here is in `proof.md`. Cost: about five uniform integers per draw.
"""

from __future__ import annotations

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
    uniform_below,
)


@exactly
def bernoulli_exp(
    words: Words, position: int, top: int, bottom: int, width: int
) -> tuple[int, int]:
    """Return 1 with probability exp(−top/bottom), 0 ≤ top ≤ bottom, else 0; and the position."""
    k, narrow = 1, 0  # 2^narrow ≥ k
    while True:
        # Bernoulli(top / (bottom·k)) as two coins, so that no product can overflow.
        value, position = uniform_below(words, position, bottom, width)
        if position < 0 or value >= top:
            return k & 1, position
        value, position = uniform_below(words, position, k, narrow)
        if position < 0 or value > 0:
            return k & 1, position
        k += 1
        if k > 1 << narrow:
            narrow += 1


@exactly
def geometric(words: Words, position: int, top: int, bottom: int, width: int) -> tuple[int, int]:
    """Return k ≥ 0 with P(k) ∝ exp(−k·bottom/top), and the position; `width` belongs to `top`."""
    if width > MAX_WIDTH:
        return 0, UNDECIDED
    while True:
        low, position = uniform_below(words, position, top, width)
        heads, position = bernoulli_exp(words, position, low, top, width)
        if position < 0 or heads == 1:
            break
    high = 0
    while True:
        more, position = bernoulli_exp(words, position, 1, 1, 0)
        if position < 0 or more == 0:
            break
        high += 1
    # low + top·high < 2⁶² is certain for high ≤ 16 and top ≤ 2⁵⁷: 17·2⁵⁷ < 2⁶².
    if position >= 0 and (high > 16 or width > 57) and high >= (1 << MAX_WIDTH) // top:
        return 0, UNDECIDED
    value = low + top * high
    return (value // bottom if bottom > 1 else value), position


@exactly
def signed_geometric(
    words: Words, position: int, top: int, bottom: int, width: int
) -> tuple[int, int]:
    """Return z, discrete Laplace of scale top/bottom, and the position."""
    while True:
        negative, position = take(words, position, 1)
        size, position = geometric(words, position, top, bottom, width)
        if position < 0 or negative == 0:
            return size, position
        if size > 0:
            return -size, position


@exactly
def _fill_geometric(
    words: Words,
    position: int,
    out: NDArray[np.int64],
    done: int,
    top: int,
    bottom: int,
    width: int,
    signed: bool,
) -> tuple[int, int, int]:
    while done < out.size:
        if signed:
            value, after = signed_geometric(words, position, top, bottom, width)
        else:
            value, after = geometric(words, position, top, bottom, width)
        if after < 0:
            return done, position, after
        out[done] = value
        done, position = done + 1, after
    return done, position, 0


def _arguments(scale: Fraction) -> tuple[int, int, int]:
    top, bottom = scale.numerator, scale.denominator
    width = (top - 1).bit_length()
    # A scale too wide for the compiled loop goes to the twin whole; its numbers are not used.
    return (top, bottom, width) if width <= MAX_WIDTH else (1, 1, width)


def discrete_laplace(scale: Fraction, size: int, source: EntropySource) -> NDArray[np.int64]:
    """Return `size` independent draws with P(z) ∝ exp(−|z|/scale)."""
    arguments = _arguments(scale)
    return fill(
        size,
        source,
        4 + 6 * (arguments[2] + 1),
        _fill_geometric,
        (*arguments, True),
        lambda stream, _: laplace_twin(stream, scale),
    )


def geometrics(scale: Fraction, size: int, source: EntropySource) -> NDArray[np.int64]:
    """Return `size` independent draws with P(k) ∝ exp(−k/scale), k ≥ 0."""
    arguments = _arguments(scale)
    return fill(
        size,
        source,
        3 + 5 * (arguments[2] + 1),
        _fill_geometric,
        (*arguments, False),
        lambda stream, _: geometric_twin(stream, scale),
    )


# The twins: the same draws from the same bits, in Python integers.


def bernoulli_exp_twin(stream: BitStream, top: int, bottom: int) -> bool:
    """Return True with probability exp(−top/bottom), 0 ≤ top ≤ bottom."""
    k = 1
    while stream.below(bottom) < top and stream.below(k) == 0:
        k += 1
    return k % 2 == 1


def geometric_twin(stream: BitStream, scale: Fraction) -> int:
    """Return k ≥ 0 with P(k) ∝ exp(−k/scale)."""
    top = scale.numerator
    while True:
        low = stream.below(top)
        if bernoulli_exp_twin(stream, low, top):
            break
    high = 0
    while bernoulli_exp_twin(stream, 1, 1):
        high += 1
    return (low + top * high) // scale.denominator


def laplace_twin(stream: BitStream, scale: Fraction) -> int:
    """Return z with P(z) ∝ exp(−|z|/scale)."""
    while True:
        negative = stream.take(1)
        size = geometric_twin(stream, scale)
        if not negative:
            return size
        if size:
            return -size
