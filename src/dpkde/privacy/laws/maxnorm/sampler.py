"""The L∞ mechanism, exact: P(z) ∝ exp(−‖z‖_∞/t) on the integer vectors of m coordinates.

For dense tables, where every record moves every cell by up to Δ, this costs a third of the
variance of Laplace noise scaled to the L1 norm. The proof is in `proof.md`. Cost: 3m + 1
uniform integers and m + 1 geometric draws per attempt, which succeeds with probability about
exp(−m/2t).
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
    uniform_below,
)
from dpkde.privacy.laws.laplace.sampler import geometrics


@exactly
def _fill_accepts(
    words: Words,
    position: int,
    out: NDArray[np.int64],
    done: int,
    radius: int,
    narrow: bool,
) -> tuple[int, int, int]:
    """Write Bernoulli((2r+1)/(2r+2i)) to out[i−1], for i = 1 … m."""
    width = 0
    while done < out.size:
        if not narrow:
            return done, position, UNDECIDED
        bound = 2 * radius + 2 * (done + 1)
        while (1 << width) < bound:
            width += 1
        value, after = uniform_below(words, position, bound, width)
        if after < 0:
            return done, position, after
        out[done] = 1 if value <= 2 * radius else 0
        done, position = done + 1, after
    return done, position, 0


@exactly
def _fill_cube(
    words: Words,
    position: int,
    out: NDArray[np.int64],
    done: int,
    radius: int,
    width: int,
) -> tuple[int, int, int]:
    """Write uniform numbers of {−r … r}."""
    while done < out.size:
        if width > MAX_WIDTH:
            return done, position, UNDECIDED
        value, after = uniform_below(words, position, 2 * radius + 1, width)
        if after < 0:
            return done, position, after
        out[done] = value - radius
        done, position = done + 1, after
    return done, position, 0


def max_norm(scale: Fraction, cells: int, source: EntropySource) -> NDArray[np.int64]:
    """Return one draw of `cells` coordinates with P(z) ∝ exp(−‖z‖_∞/scale)."""
    while True:
        radius = _total(geometrics(scale, cells + 1, source))
        width = (2 * radius).bit_length()
        wide = (2 * radius + 2 * cells - 1).bit_length()
        narrow = wide <= MAX_WIDTH
        accepts = fill(
            cells,
            source,
            1.5 * wide,
            _fill_accepts,
            (radius if narrow else 0, narrow),
            lambda stream, i, r=radius: accept_twin(stream, r, i + 1),  # type: ignore[misc]
        )
        if accepts.all():
            return fill(
                cells,
                source,
                1.5 * width,
                _fill_cube,
                (radius if narrow else 0, width if narrow else MAX_WIDTH + 1),
                lambda stream, _, r=radius: stream.below(2 * r + 1) - r,  # type: ignore[misc]
            )


def accept_twin(stream: BitStream, radius: int, i: int) -> int:
    """Return 1 with probability (2r+1)/(2r+2i), else 0."""
    return int(stream.below(2 * radius + 2 * i) <= 2 * radius)


def _total(values: NDArray[np.int64]) -> int:
    """Return the sum of non-negative int64 without wrapping."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
