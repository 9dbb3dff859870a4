"""The exponential mechanism, exact: an index i with P(i) ∝ exp(−q_i/t), q_i integers, t rational.

Rejection: propose an index uniformly, keep it with probability exp(−(q_i − q_min)/t), decided in
integers by the coins of Canonne, Kamath and Steinke. The least loss is kept for certain, so a
choice among N takes at most N proposals on average, of some 50 nanoseconds each. The proof is in
`proof.md`.

`Threshold` is the sparse vector technique's comparison, with noise as exact.
"""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.numerics.compiled import exactly
from dpkde.privacy.laws.bits import BitStream, EntropySource, Words, fill, uniform_below
from dpkde.privacy.laws.exponential.law import Exponential, SparseVector
from dpkde.privacy.laws.laplace.sampler import bernoulli_exp, bernoulli_exp_twin, laplace_twin

_MOST_OPTIONS = 1 << 40
_MAX_GAP = 1 << 62
_MOST_BYTES = 64


@exactly
def _accepted(
    words: Words, position: int, gap: int, top: int, bottom: int, width: int
) -> tuple[int, int]:
    """Return 1 with probability exp(−gap·bottom/top), else 0; and the position.

    gap·bottom/top = (gap // top)·bottom + (gap % top)·bottom/top. The first part is so many coins
    of exp(−1), thrown in two loops so that no product can overflow.
    """
    for _ in range(gap // top):
        for _ in range(bottom):
            heads, position = bernoulli_exp(words, position, 1, 1, 0)
            if position < 0 or heads == 0:
                return 0, position
    rest = (gap % top) * bottom
    for _ in range(rest // top):
        heads, position = bernoulli_exp(words, position, 1, 1, 0)
        if position < 0 or heads == 0:
            return 0, position
    return bernoulli_exp(words, position, rest % top, top, width)


@exactly
def _propose(
    words: Words,
    position: int,
    out: NDArray[np.int64],
    done: int,
    gaps: NDArray[np.int64],
    options_width: int,
    top: int,
    bottom: int,
    width: int,
) -> tuple[int, int, int]:
    # A rejected proposal leaves nothing behind: where the bits end, only the unfinished one is
    # read again.
    while done < out.size:
        index, after = uniform_below(words, position, gaps.size, options_width)
        accepted = 0
        if after >= 0:
            accepted, after = _accepted(words, after, gaps[index], top, bottom, width)
        if after < 0:
            return done, position, after
        if accepted == 1:
            out[done] = index
            done += 1
        position = after
    return done, position, 0


def exponential(
    losses: NDArray[np.int64], scale: Fraction, size: int, source: EntropySource
) -> NDArray[np.int64]:
    """Return `size` independent indices with P(i) ∝ exp(−losses[i]/scale)."""
    gaps = _gaps(losses)
    top, bottom = scale.numerator, scale.denominator
    # What the compiled loop holds in 64 bits: (gap % top)·bottom < top·bottom.
    if top.bit_length() + bottom.bit_length() > 61:
        raise ParameterError("the scale of an exponential mechanism must be below 2^44")
    options_width, width = (gaps.size - 1).bit_length(), (top - 1).bit_length()
    return fill(
        size,
        source,
        4 * (options_width + width + 8),
        _propose,
        (gaps, options_width, top, bottom, width),
        lambda stream, _: exponential_twin(stream, gaps.tolist(), scale),
    )


def choose(law: Exponential, losses: NDArray[np.int64]) -> int:
    """Return one index with P(i) ∝ exp(−losses[i]/t), from the system's entropy.

    Guarantee
    ---------
    If neighbouring data sets have losses at most Δ apart in every place, the index is ε-DP, and
    ε²/8-zCDP, for ε = 2Δ/t. The number of losses must be public.
    """
    return int(exponential(losses, law.scale, 1, os.urandom)[0])


def _gaps(losses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how far each loss is above the least. Losses are bounded by their maker."""
    if losses.ndim != 1 or losses.dtype != np.int64 or not 1 <= losses.size <= _MOST_OPTIONS:
        raise ParameterError("an exponential mechanism needs losses of type int64, at least one")
    # Losses from −2⁶¹ to 2⁶¹ keep their differences within 2⁶²; others are cut, which moves no
    # two of them apart: the sensitivity holds.
    cut = np.clip(losses, -_MAX_GAP // 2, _MAX_GAP // 2)
    return np.ascontiguousarray(cut - cut.min())


class Tap(BitStream):
    """A stream without end, for single draws in Python integers: read as it is needed."""

    def __init__(self, source: EntropySource) -> None:
        self._source, self._bits, self._ready = source, 0, 0

    def take(self, width: int) -> int:
        """Return the next `width` bits as an integer."""
        while self._ready < width:
            self._bits |= int.from_bytes(self._source(_MOST_BYTES), "little") << self._ready
            self._ready += 8 * _MOST_BYTES
        value = self._bits & ((1 << width) - 1)
        self._bits >>= width
        self._ready -= width
        return value


class Threshold:
    """A noisy threshold, and checks against it until one fires: the sparse vector technique.

    Guarantee
    ---------
    If the values of neighbouring data sets are at most Δ apart at every check, and thresholds and
    the choice of values depend on earlier outcomes alone, all outcomes together are ε-DP for
    ε = 2Δ/t, however many checks there are (``pmw.proof.md``).
    """

    __slots__ = ("_noise", "_scale", "_source", "fired")

    def __init__(self, law: SparseVector, source: EntropySource = os.urandom) -> None:
        self._scale, self._source = law.scale, source
        # Python integers: a draw that wrapped around 2⁶⁴ would compare wrongly.
        self._noise = laplace_twin(Tap(source), law.scale)
        self.fired = False

    def passed(self, value: int, threshold: int) -> bool:
        """Tell whether value + noise reaches the noisy threshold. Then it must not be asked again.

        Two exact discrete Laplace draws decide, of scale t (drawn once) and 2t.
        """
        if self.fired:
            raise ParameterError("this threshold has fired: another one has to be paid for")
        noise = laplace_twin(Tap(self._source), 2 * self._scale)
        self.fired = int(value) - int(threshold) + noise >= self._noise
        return self.fired

    def __repr__(self) -> str:
        return "<Threshold (secret)>"


# The twin: the same choice from the same bits, in Python integers.


def exponential_twin(stream: BitStream, gaps: list[int], scale: Fraction) -> int:
    """Return i with P(i) ∝ exp(−gaps[i]/scale)."""
    while True:
        index = stream.below(len(gaps))
        whole, rest = divmod(gaps[index] * scale.denominator, scale.numerator)
        if all(bernoulli_exp_twin(stream, 1, 1) for _ in range(whole)) and bernoulli_exp_twin(
            stream, rest, scale.numerator
        ):
            return index
