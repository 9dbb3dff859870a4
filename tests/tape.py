"""Entropy that can be played again, to compare a sampler with its slow twin."""

from __future__ import annotations

import numpy as np

from dpkde.privacy.laws.bits import BitStream


class Tape:
    """An entropy source that replays random bytes, at most `piece` at a time."""

    def __init__(self, seed: int, piece: int | None = None) -> None:
        self.data = np.random.default_rng(seed).bytes(1 << 20)
        self.piece = piece
        self.at = 0

    def __call__(self, wanted: int) -> bytes:
        size = wanted if self.piece is None else min(wanted, self.piece)
        self.at += size
        return self.data[self.at - size : self.at]

    def stream(self) -> BitStream:
        """The first of the same bits for a slow twin: the more it holds, the slower it takes."""
        return BitStream(np.frombuffer(self.data[: 1 << 16], dtype=np.uint64))
