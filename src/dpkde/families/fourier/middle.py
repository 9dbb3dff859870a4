"""Where the records lie: exact sums of their coordinates, for a noisy mean.

A model of a Fourier table is found from a start within some 1.5 bandwidths of the data's mean
(`dpkde.assisted`). In bounds that are wider than that, none of the public starts may be so near,
and a noisy mean is worth a few per cent of the budget.

**A record's contribution** is t_k = round(2^b·x_k/h_k), x_k its coordinate in bandwidths from the
center of the bounds and h_k how far that can be, clipped to ±2^b after the division: whole numbers
from that record alone, so that ‖t‖_∞ ≤ 2^b, ‖t‖₁ ≤ d·2^b and ‖t‖₂² ≤ d·4^b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Table
from dpkde.kernels import Points
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.budget import Guarantee, Options, cheapest
from dpkde.privacy.laws import Law
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

NEAR = 1.5
"""Bandwidths from the mean within which a start finds a cloud, measured in 20 to 300 dimensions."""
MEAN_SHARES = (Fraction(1, 100), Fraction(1, 50), Fraction(1, 20))
"""What may be paid of the whole budget: errors of the table grow by half of that."""
_GOAL = 1.0
"""How far the noisy mean may be from the mean, in bandwidths, to be worth its price."""
_MOST_AXES = 1 << 12
_BITS = 22
_BLOCK = 1 << 20


class Price(NamedTuple):
    """What a noisy mean is paid, and how far from the mean it is to be expected."""

    amount: Amount
    law: type[Law]
    distance: float


@dataclass(frozen=True, eq=False)
class Middle:
    """Sums of coordinates over bounded axes."""

    frame: Frame
    capacity_bits: int

    @classmethod
    def of(cls, frame: Frame, capacity_bits: int) -> Middle | None:
        """Return what sums coordinates; None without bounds, or where the center is near anyway."""
        halves = frame.halves()
        if halves is None or frame.dim > _MOST_AXES:
            return None
        if not NEAR < float(np.sqrt(np.square(halves).sum())) < math.inf:
            return None
        return cls(frame, capacity_bits)

    @cached_property
    def halves(self) -> NDArray[np.float64]:
        """How far coordinates can be from the center, in bandwidths; 1 where they cannot move."""
        halves = self.frame.halves()
        assert halves is not None
        return np.where(halves > 0, halves, 1.0)

    @property
    def bits(self) -> int:
        """Bits after the binary point: as many as sums leave room for."""
        return min(_BITS, 61 - self.capacity_bits)

    @cached_property
    def bounds(self) -> Bounds:
        """How far one record can move the sums."""
        dim, most = self.frame.dim, 1 << self.bits
        return Bounds(dim, dim * most, dim * most**2, most, nonnegative=False)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers."""
        with np.errstate(all="ignore"):
            shares = np.clip(coordinates / self.halves, -1.0, 1.0)
        steps = np.rint(np.nan_to_num(shares) * 2.0**self.bits).astype(np.int64)
        return np.asarray(steps * counts[:, np.newaxis].astype(np.int64))

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the sums."""
        most = max(1, _BLOCK // self.frame.dim)
        for start in range(0, len(coordinates), most):
            part = slice(start, start + most)
            table += self.quantize(coordinates[part], counts[part]).sum(axis=0)

    def price(self, options: Options, rows: float, guarantee: Guarantee) -> Price | None:
        """Return which of some ways to pay a share of a budget to take.

        None where the mean would be too far off. From public numbers and the noisy count.
        """
        try:
            amount, kind, law = cheapest(options, guarantee.moved(self.bounds))
        except ParameterError:  # the noise does not fit 64 bits
            return None
        spread = math.sqrt(law.variance) / 2**self.bits / rows
        distance = spread * float(np.sqrt(np.square(self.halves).sum()))
        return Price(amount, kind, distance) if distance <= _GOAL else None

    def mean(self, noisy: NDArray[np.int64], rows: float) -> NDArray[np.float64]:
        """Return the mean that noisy sums tell, in bandwidths from the center of the bounds."""
        halves = self.frame.halves()
        assert halves is not None
        return np.asarray(np.clip(noisy / 2.0**self.bits / rows, -1.0, 1.0) * halves)
