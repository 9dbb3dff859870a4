"""Wrong noise, for audits to catch: what an audit finds nothing in is worth what it catches here.

Nothing here is ever added to what is released: a mutant takes laws and makes noise for an audit,
of all cells of many outputs at once. Each is a fault that somebody's code has had, or that hides
well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.laws import Law, draw

Laws = Sequence[tuple[Law, int]]
"""Laws of noise, each with the number of cells that it is on."""
Noise = NDArray[np.int64]
Drawing = Callable[[Laws, int], Noise]
"""From laws and a number of outputs to noise on all their cells, shape (trials, cells)."""

LEAK = 1 << 22
"""Of 2³² outputs so many have no noise: about one in a thousand."""


def right(laws: Laws, trials: int) -> Noise:
    """Return noise that follows the laws."""
    return np.column_stack([_drawn(law, cells, trials) for law, cells in laws])


def _drawn(law: Law, cells: int, trials: int) -> Noise:
    if law.is_scalar:
        return draw(law, trials * cells).reshape(trials, cells)
    return np.array([draw(law, cells) for _ in range(trials)])


def smaller(factor: Fraction, laws: Laws, trials: int) -> Noise:
    """Return noise whose standard deviation is too small: a wrong scale or sensitivity."""
    return right([(law.scaled(factor), cells) for law, cells in laws], trials)


def none(laws: Laws, trials: int) -> Noise:
    """Return none at all."""
    return np.zeros((trials, sum(cells for _, cells in laws)), dtype=np.int64)


def none_on_the_count(laws: Laws, trials: int) -> Noise:
    """Return noise, but none on the first number."""
    noise = right(laws, trials)
    noise[:, 0] = 0
    return noise


def repeated(laws: Laws, trials: int) -> Noise:
    """Return the same noise every time, as a seed would make it."""
    return np.repeat(right(laws, 1), trials, axis=0)


def even(laws: Laws, trials: int) -> Noise:
    """Return noise of the right size on the even numbers: a lattice that is too coarse."""
    return 2 * smaller(Fraction(1, 2), laws, trials)


def coarse(laws: Laws, trials: int) -> Noise:
    """Return noise on multiples of 3, where it has room for them."""
    return 3 * smaller(Fraction(1, 3), laws, trials)


def shared(laws: Laws, trials: int) -> Noise:
    """Return noise that is the same on the first two numbers, such as count and table.

    Up to their scales, so that each of them alone is as it should be.
    """
    noise = right(laws, trials)
    each = [law for law, cells in laws for _ in range(cells)]
    if len(each) > 1:
        small, large = sorted((0, 1), key=lambda j: each[j].variance)
        times = (each[small].variance / each[large].variance) ** 0.5
        noise[:, small] = np.rint(noise[:, large] * times).astype(np.int64)
    return noise


def one_magnitude(laws: Laws, trials: int) -> Noise:
    """Return noise whose size is the same on all cells of a law, each with a sign of its own."""
    blocks = []
    for law, cells in laws:
        noise = _drawn(law, cells, trials)
        signs = np.frombuffer(os.urandom(trials * cells), dtype=np.uint8).reshape(trials, cells)
        blocks.append(np.where(signs & 1, 1, -1) * np.abs(noise[:, :1]))
    return np.column_stack(blocks)


def leaking(laws: Laws, trials: int) -> Noise:
    """Return noise that is left out altogether once in a thousand outputs."""
    noise = right(laws, trials)
    noise[np.frombuffer(os.urandom(4 * trials), dtype=np.uint32) < LEAK] = 0
    return noise


MUTANTS: dict[str, Drawing] = {
    "no noise": none,
    "no noise on the count": none_on_the_count,
    "the same noise every time": repeated,
    "half of the noise": partial(smaller, Fraction(1, 2)),
    "a sensitivity too small by √2": partial(smaller, Fraction(70_711, 100_000)),
    "noise on an even lattice": even,
    "noise on multiples of 3": coarse,
    "the same noise on count and table": shared,
    "cells that share a magnitude": one_magnitude,
    "no noise once in a thousand": leaking,
}
"""What an audit of a count and a table is to catch."""
