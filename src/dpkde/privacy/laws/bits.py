"""From entropy to draws: a stream of bits, read alike by compiled and by plain samplers.

A draw is a function of a stream of uniform bits: it reads as many as it needs, then stops. The
stream is made of 64-bit words from an entropy source, low bit first. Two readers share it: the
compiled `take`, and `BitStream.take` for the slow twins.

Compiled samplers pass the position in the stream along as a number: each takes it and returns the
next. Two situations they do not settle themselves; the position they return is then the code:

* `EXHAUSTED`: the buffer ended in the middle of the draw. `fill` appends fresh words **behind the
  bits already there** and the draw is read again from its first bit. It sees the same bits as
  before and then the new ones, so where the buffer was cut has no influence. (Starting over with
  new bits would favour draws that need few of them.)
* `UNDECIDED`: fixed-width arithmetic cannot tell. The slow twin makes this one draw, from the same
  bits, with Python integers.

Entropy is read anew in every call and lives only as long as the call: nothing is left for a
forked process to share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly

EntropySource = Callable[[int], bytes]
"""Returns so many uniform bytes. The public door always passes `os.urandom`."""

Words = NDArray[np.uint64]

EXHAUSTED = -1
UNDECIDED = -2
MAX_WIDTH = 62
"""The widest integer that `take` reads; wider ones are left to the twin."""

_CHUNK_WORDS = 1 << 13


@exactly
def take(words: Words, position: int, width: int) -> tuple[int, int]:
    """Return the next `width` ≤ 62 bits as an integer, and the next position."""
    end = position + width
    if position < 0 or end > words.size * 64:
        return -1, (EXHAUSTED if position >= 0 else position)
    word, offset = position >> 6, position & 63
    value = np.uint64(0)
    if width > 0:
        value = words[word] >> np.uint64(offset)
    if offset + width > 64:
        value |= words[word + 1] << np.uint64(64 - offset)
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    return np.int64(value & mask), end  # type: ignore[return-value]


@exactly
def uniform_below(words: Words, position: int, bound: int, width: int) -> tuple[int, int]:
    """Return a uniform integer of {0 … bound−1}; `width` is the bit length of bound − 1."""
    while True:
        value, position = take(words, position, width)
        if value < bound:  # −1, without bits, passes through with its code
            return value, position


class OutOfBitsError(Exception):
    """A stream ended in the middle of a draw."""


class BitStream:
    """The same stream for the slow twins, in plain Python integers of any width.

    >>> stream = BitStream(np.array([0b1101], dtype=np.uint64))
    >>> stream.take(2), stream.take(3)
    (1, 3)
    """

    def __init__(self, words: NDArray[np.uint64], position: int = 0, limit: int | None = None):
        self._bits = int.from_bytes(words.astype("<u8").tobytes(), "little")
        self.limit = words.size * 64 if limit is None else limit
        self.position = position

    def take(self, width: int) -> int:
        """Return the next `width` bits as an integer."""
        if self.position + width > self.limit:
            raise OutOfBitsError
        value = (self._bits >> self.position) & ((1 << width) - 1)
        self.position += width
        return value

    def below(self, bound: int) -> int:
        """Return a uniform integer of {0 … bound−1} by rejection."""
        if bound < 1:
            raise ValueError("no integer lies below this bound")  # rejection would never end
        width = (bound - 1).bit_length()
        while (value := self.take(width)) >= bound:
            pass
        return value


def fill(
    size: int,
    source: EntropySource,
    bits_each: float,
    kernel: Callable[..., tuple[int, int, int]],
    arguments: tuple[Any, ...],
    twin: Callable[[BitStream, int], int],
) -> NDArray[np.int64]:
    """Return `size` draws of a compiled sampler, refilling and falling back as it asks.

    Parameters
    ----------
    size
        How many draws.
    source
        Entropy; read in chunks, never more than the draws are likely to need plus one chunk.
    bits_each
        Expected bits per draw; sets the size of the chunks, nothing else.
    kernel
        ``kernel(words, position, out, done, *arguments) -> (done, position, code)`` writes draws
        into `out` from index `done` on until it is full or a code stops it, and returns the
        position of the first bit of the draw that it left unfinished.
    twin
        ``twin(stream, index)`` makes one draw from the same bits.
    """
    out = np.empty(size, dtype=np.int64)
    words: Words = np.empty(0, dtype=np.uint64)
    done = position = 0
    while True:
        done, position, code = kernel(words, position, out, done, *arguments)
        if done == size:
            return out
        if code == UNDECIDED:
            # A window of the stream is enough for one draw; if not, refill and come back.
            first = position >> 6
            stream = BitStream(words[first : first + 4096], position & 63)
            try:
                out[done] = wrap(twin(stream, done))
            except OutOfBitsError:
                code = EXHAUSTED
            else:
                position = first * 64 + stream.position
                done += 1
        if code == EXHAUSTED:
            count = int((size - done) * bits_each) // 64 + 64
            fresh = np.frombuffer(source(8 * min(count, _CHUNK_WORDS)), dtype=np.uint64)
            words = np.concatenate([words[position >> 6 :], fresh])
            position &= 63


def wrap(value: int) -> int:
    """Return the representative of `value` modulo 2⁶⁴ in [−2⁶³, 2⁶³)."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
