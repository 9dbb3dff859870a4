"""The pilot: a small private look at the data, taken before the plan and paid for.

How dense and how smooth data are decides which mesh, how many frequencies and which family suit
them, and nobody knows it beforehand. A few sums tell. Each F is a mean over the records of a random
feature of theirs, v the variance of the noise on it; some features estimate q, the mean kernel
value over pairs of records, which is the typical density, and others what is left of q far out in
frequency, q·e^{−s·t}: s is how smooth the data are (`Guess.smoothness`), which is what the bias of
splines hangs on. Half of these others look at t = 4 radians per bandwidth, and half at 2π, where
values rounded to the bandwidth show. Which features, hangs on the frame:

* `signs.Signs` on few axes: a random sign for each cell of a random grid. Many cells are in each
  sum, so that few sums tell as much as hundreds of frequencies.
* `waves.Waves` elsewhere: e^{iω·x}, ω of the kernel's spectrum.

The sums are taken in the pass that counts, as a table's are: integers of each record alone, within
bounds that are enforced. After the noisy count, public numbers decide whether they are paid for
(`Pilot.offer`), noise is drawn, and the range of densities and smoothness to plan for narrows to
what the noisy sums leave likely (`Pilot.range`). Sums that are not paid for are dropped.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Guess, Outlook, Table
from dpkde.kernels import Points
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import (
    THIRDS,
    density_range,
    evenly_spread,
    smoothness_range,
)
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.budget import Budget, Options, cheapest
from dpkde.privacy.laws import NOISES, Law
from dpkde.privacy.numbers import rounded_down
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

Floats = NDArray[np.float64]

MOVED = (4.0, 2 * math.pi)
"""How far out in frequency it is looked, in radians per bandwidth; in turn."""
SHARES = (Fraction(1, 50), Fraction(1, 25))
"""What may be paid, of the whole budget."""
_WIDE = (4.0, 1.5)
"""Bandwidths from which on a column tells of smoothness: the widest, or at least with a mesh."""
_GRID = 4096
_UNUSUAL = 0.07
"""How likely a density outside the usual range is, before the pilot, against one inside."""


class Look(Protocol):
    """Integers of each record that are summed in the pass that counts."""

    @property
    def bounds(self) -> Bounds:
        """How far one record can move the sums."""

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return each record's integers."""

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's integers to the sums."""


class Offer(NamedTuple):
    """What a pilot would be paid, and what for.

    Attributes
    ----------
    features
        How many of each kind.
    share
        Of the budget.
    amount, law, bounds
        As a budget takes them.
    variance
        v: of the noise on a feature's mean.
    """

    features: int
    share: Fraction
    amount: Amount
    law: type[Law]
    bounds: Bounds
    variance: float


class Pilot(ABC):
    """The features of a pilot, drawn in public.

    Attributes
    ----------
    frame
        Kernel and domain.
    look
        What is summed. Every second feature is one that looks far out in frequency, where there are
        columns to look along.
    moved
        Whether there are.
    """

    FEATURES: ClassVar[tuple[int, ...]]
    """How many of each kind: noise grows with them, and chance in drawing them falls."""

    frame: Frame
    look: Look
    moved: bool

    @abstractmethod
    def bounds(self, features: int) -> Bounds:
        """Return how far a record can move the sums of the first so many features of each kind."""

    @abstractmethod
    def variance(self, law: Law, rows: float) -> float:
        """Return v, where a cell has noise of this law."""

    @abstractmethod
    def cells(self, offer: Offer) -> NDArray[np.int64]:
        """Return which cells of the sums are paid for."""

    @abstractmethod
    def likelihood(
        self, means: Floats, variance: float, density: Floats, smoothness: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log likelihood of densities, and of pairs of a density and a smoothness.

        `means` are noisy, one per cell that is paid for. The first is by features of the kernel's
        own frequencies alone, the second by those that look far out.
        """

    @abstractmethod
    def offer(self, budget: Budget, rows: float) -> Offer | None:
        """Return what to pay for so many records; None where it would tell too little.

        From public numbers: the budget, and the noisy count.
        """

    def priced(self, budget: Budget, rows: float, count: int, share: Fraction) -> Offer | None:
        """Return the offer of so many features for a share; None where no noise fits 64 bits."""
        bounds = self.bounds(count)
        ways = affordable(budget, share)
        try:
            amount, kind, law = cheapest(ways, budget.guarantee.moved(bounds))
        except ParameterError:
            return None
        return Offer(count, share, amount, kind, bounds, self.variance(law, rows))

    def worthwhile(self, choice: Choice, budget: Budget, view: Outlook) -> Offer | None:
        """Return what to pay; None where too little would be learned, or little gained by it.

        The gain is what errors are larger by for not knowing what the data are like.
        """
        offer = self.offer(budget, view.rows)
        if offer is None or not isinstance(choice.objective, Typical):
            return None
        return offer if choice.objective.regret(choice, view) > offer.share else None

    def range(
        self, noisy: NDArray[np.int64], offer: Offer, rows: float, guess: float | None
    ) -> tuple[Guess, ...]:
        """Return what the data may be like, given the noisy sums: every third of what is likely.

        The densities that were thought of beforehand count most, others less.
        """
        least = max(evenly_spread(self.frame), 1e-3)
        density, smoothness = np.geomspace(least, 1.0, 41), np.linspace(0.03, 1.3, 21)
        low, high = density_range(self.frame, guess)
        usual = (density >= 0.99 * low) & (density <= 1.01 * high)
        prior = np.log(np.where(usual, 1.0, _UNUSUAL))
        means = noisy.astype(np.float64) / rows
        plain, out = self.likelihood(means, offer.variance, density, smoothness)
        joint = (prior + plain)[:, np.newaxis] + out
        weights = np.exp(joint - joint.max())
        densities = _thirds(density, weights.sum(axis=1))
        if not self.moved:
            low, high = smoothness_range(self.frame)
            smooth = [low + (high - low) * x for x in THIRDS]
        else:
            smooth = _thirds(smoothness, weights.sum(axis=0))
        return tuple(Guess(p, s) for p in densities for s in smooth)


def wide_axes(frame: Frame) -> list[int]:
    """Return the columns along which it is looked far out in frequency."""
    halves = frame.halves()
    widths = np.zeros(0) if halves is None else 2 * halves
    return next((k.tolist() for w in _WIDE if len(k := np.flatnonzero(widths >= w))), [])


def affordable(budget: Budget, share: Fraction) -> Options:
    """Return the (amount, law) pairs that a share of the whole budget can buy before the table."""
    amount = _amount(budget, share)
    currency = "rho" if amount.epsilon is None else "epsilon"
    return tuple(
        (amount, law)
        for law in NOISES.values()
        if law.paid_in == currency and budget.randomness.has(law)
    )


def _amount(budget: Budget, share: Fraction) -> Amount:
    """Return a share of the whole budget; with δ, pure and no more than that share of ρ either.

    Rounded down to few digits, however many the budget has: a file holds no long ones for it.
    """
    guarantee = budget.guarantee
    if guarantee.epsilon is None:
        assert guarantee.rho is not None
        return Amount(rho=rounded_down(guarantee.rho * share))
    epsilon = guarantee.epsilon * share
    if guarantee.delta:
        worth = math.sqrt(2 * float(guarantee.rho_limit * share) / float(epsilon) ** 2)
        epsilon *= Fraction(max(math.floor(_GRID * min(worth, 1.0)), 1), _GRID)
    return Amount(epsilon=rounded_down(epsilon))


def _thirds(values: NDArray[np.float64], weights: NDArray[np.float64]) -> list[float]:
    """Return the middles of the thirds of a weighted list in order."""
    shares = np.cumsum(weights) / weights.sum()
    return [float(values[min(int(np.searchsorted(shares, x)), len(values) - 1)]) for x in THIRDS]
