"""The pilot: a small private look at the data, taken before the plan and paid for.

How dense and how smooth data are decides which mesh, how many frequencies and which family suit
them, and nobody knows it beforehand. Sums of a few Fourier features tell. With F_j the mean of
e^{iω_j·x} over the records and v the variance of the noise on it,

* q̂ = mean |F_j|² − v, over frequencies of the kernel's spectrum, estimates the mean kernel value
  over pairs of records, which is the typical density;
* the same over these frequencies with one component moved out to ±t estimates q·e^{−s·t}, s being
  how smooth the data are (`Guess.smoothness`), which is what the bias of splines hangs on. Half of
  them are moved to 4, and half to 2π, where values rounded to the bandwidth show.

The sums are taken in the pass that counts, as a table's are: integers of each record alone, within
bounds that are enforced. After the noisy count, public numbers decide whether they are paid for
(`Pilot.offer`), noise is drawn, and the range of densities and smoothness to plan for narrows to
what the noisy sums leave likely (`Pilot.range`). Sums that are not paid for are dropped.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Guess, Outlook, Pair
from dpkde.families.fourier import spectrum
from dpkde.families.fourier.family import Fourier
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
from dpkde.space.frame import Frame

FEATURES = (16, 8, 4)
"""How many frequencies of each kind: noise grows with them, and chance in drawing them falls."""
MOVED = (4.0, 2 * math.pi)
"""How far one component of a frequency is moved, over the bandwidth; in turn."""
SHARES = (Fraction(1, 50), Fraction(1, 25))
"""What may be paid, of the whole budget."""
NOISY = 0.018
"""The largest v that is worth it: against densities of some hundredths, as the mean of several."""
CHANCE, CHANCE_MOVED = 1.0, 8.0
"""How much |F|² differs between frequencies: its variance over p^{3/2}, p its mean."""
AFTER_PILOT = 0.5
"""How cautious a plan is after it (`Outlook.caution`): between the plain and the geometric mean."""
_WIDE = (4.0, 1.5)
"""Bandwidths from which on a column tells of smoothness: the widest, or at least with a mesh."""
_GRID = 4096
_UNUSUAL = 0.15
"""How likely a density outside the usual range is, before the pilot, against one inside."""


class Offer(NamedTuple):
    """What a pilot would be paid, and what for.

    Attributes
    ----------
    frequencies
        How many of them.
    share
        Of the budget.
    amount, law, bounds
        As a budget takes them.
    variance
        v: of the noise on a mean of e^{iω·x}.
    """

    frequencies: int
    share: Fraction
    amount: Amount
    law: type[Law]
    bounds: Bounds
    variance: float


@dataclass(frozen=True, eq=False)
class Pilot:
    """The features of a pilot, drawn in public.

    Attributes
    ----------
    pair
        Of the Fourier family. Every second frequency is the one before with a component moved,
        where there are columns to move it on.
    moved
        Whether there are.
    """

    pair: Pair
    moved: bool

    @classmethod
    def of(cls, frame: Frame, capacity_bits: int, seed: int) -> Pilot | None:
        """Draw a pilot; None where the kernel has no spectrum, or bounds are too wide for it."""
        if Fourier.obstacle(frame) is not None:
            return None
        halves = frame.halves()
        widths = np.zeros(0) if halves is None else 2 * halves
        wide = next((k.tolist() for w in _WIDE if len(k := np.flatnonzero(widths >= w))), [])
        layout = Fourier(2 * FEATURES[0] if wide else FEATURES[0]).layout(frame)
        chosen = spectrum.spread(frame.kernel, frame.dim, FEATURES[0], layout.step_bits, seed)
        if wide:
            moved = spectrum.moved(chosen, wide, MOVED, layout.step_bits, seed)
            chosen = np.stack([chosen, moved], axis=1).reshape(-1, frame.dim)
        bits = min(layout.family.lattice_bits[1], 62 - capacity_bits)
        return cls(layout.restore(bits, {"frequencies": np.ascontiguousarray(chosen)}), bool(wide))

    def offer(self, budget: Budget, rows: float) -> Offer | None:
        """Return what to pay for so many records; None where it would tell too little.

        From public numbers: the budget, and the noisy count.
        """
        for features, share in itertools.product(FEATURES, SHARES):
            count = 2 * features if self.moved else features
            bounds = Fourier(count).layout(self.pair.frame).bounds(self.pair.bits)
            ways = affordable(budget, share)
            try:
                amount, kind, law = cheapest(ways, budget.guarantee.moved(bounds))
            except ParameterError:  # the noise does not fit 64 bits
                continue
            variance = 2 * law.variance / 4.0**self.pair.bits / rows**2
            if variance <= NOISY:
                return Offer(count, share, amount, kind, bounds, variance)
        return None

    def worthwhile(self, choice: Choice, budget: Budget, view: Outlook) -> Offer | None:
        """Return what to pay; None where too little would be learned, or little gained by it.

        The gain is what errors are larger by for not knowing what the data are like.
        """
        offer = self.offer(budget, view.rows)
        if offer is None or not isinstance(choice.objective, Typical):
            return None
        return offer if choice.objective.regret(choice, view) > offer.share else None

    def cells(self, offer: Offer) -> NDArray[np.int64]:
        """Return which cells of the pair's table are paid for: cosines and sines of the first."""
        first = np.arange(offer.frequencies)
        return np.concatenate([first, self.pair.bounds.cells // 2 + first])

    def range(
        self, noisy: NDArray[np.int64], offer: Offer, rows: float, guess: float | None
    ) -> tuple[Guess, ...]:
        """Return what the data may be like, given the noisy sums: every third of what is likely.

        The densities that were thought of beforehand count most, others less. A mean of squares has
        the spread of the noise, and that of drawing few frequencies (`CHANCE`).
        """
        frame = self.pair.frame
        cosines, sines = noisy.astype(np.float64).reshape(2, -1) / 2**self.pair.bits / rows
        squares = cosines**2 + sines**2 - offer.variance
        plain = squares[::2] if self.moved else squares
        least = max(evenly_spread(frame), 1e-3)
        density = np.geomspace(least, 1.0, 41)
        low, high = density_range(frame, guess)
        usual = (density >= 0.99 * low) & (density <= 1.01 * high)
        likely = np.log(np.where(usual, 1.0, _UNUSUAL))
        likely += _fit(float(plain.mean()), density, density, offer.variance, len(plain), CHANCE)
        smoothness = np.linspace(0.03, 1.3, 21)
        joint = np.repeat(likely[:, np.newaxis], len(smoothness), axis=1)
        for turn, away in enumerate(MOVED if self.moved else ()):
            out = squares[1 + 2 * turn :: 4]
            level = density[:, np.newaxis] * np.exp(-smoothness * away)
            mean, base = float(out.mean()), density[:, np.newaxis]
            joint += _fit(mean, level, base, offer.variance, len(out), CHANCE_MOVED)
        weights = np.exp(joint - joint.max())
        densities = _thirds(density, weights.sum(axis=1))
        if not self.moved:
            low, high = smoothness_range(frame)
            smooth = [low + (high - low) * x for x in THIRDS]
        else:
            smooth = _thirds(smoothness, weights.sum(axis=0))
        return tuple(Guess(p, s) for p in densities for s in smooth)


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


def _fit(
    mean: float,
    level: NDArray[np.float64],
    density: NDArray[np.float64],
    variance: float,
    count: int,
    rough: float,
) -> NDArray[np.float64]:
    """Return the log likelihood of a mean of squares, for levels that it may have."""
    noise = variance**2 + 2 * variance * level
    spread = (noise + rough * level**2 / np.sqrt(density)) / count
    return np.asarray(-((mean - level) ** 2) / (2 * spread) - 0.5 * np.log(spread))


def _thirds(values: NDArray[np.float64], weights: NDArray[np.float64]) -> list[float]:
    """Return the middles of the thirds of a weighted list in order."""
    shares = np.cumsum(weights) / weights.sum()
    return [float(values[min(int(np.searchsorted(shares, x)), len(values) - 1)]) for x in THIRDS]
