"""A pilot of Fourier features: for many axes, and for kernels that no grid stands for.

With F_j the mean of e^{iω_j·x} over the records and v the variance of the noise on it,

* q̂ = mean |F_j|² − v, over frequencies of the kernel's spectrum, estimates q;
* the same over these frequencies with one component moved out to ±t estimates q·e^{−s·t}.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.families.base import Pair
from dpkde.families.fourier import spectrum
from dpkde.families.fourier.family import Fourier
from dpkde.planning.pilot import MOVED, SHARES, Floats, Offer, Pilot, wide_axes
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import Law
from dpkde.space.frame import Frame

CHANCE, CHANCE_MOVED = 1.0, 8.0
"""How much |F|² differs between frequencies: its variance over p^{3/2}, p its mean."""


@dataclass(frozen=True, eq=False)
class Waves(Pilot):
    """Cosines and sines of each record's phase at a few frequencies.

    Attributes
    ----------
    look
        A pair of the Fourier family. Every second frequency is the one before with a component
        moved.
    """

    FEATURES = (16, 8, 4)
    NOISY: ClassVar[float] = 0.018
    """The largest v that is worth it: against densities of some hundredths, as the mean of several.
    """

    frame: Frame
    look: Pair
    moved: bool

    @classmethod
    def drawn(cls, frame: Frame, capacity_bits: int, seed: int) -> Waves | None:
        """Draw a pilot; None where the kernel has no spectrum, or bounds are too wide for it."""
        if Fourier.obstacle(frame) is not None:
            return None
        wide, most = wide_axes(frame), cls.FEATURES[0]
        layout = Fourier(2 * most if wide else most).layout(frame)
        chosen = spectrum.spread(frame.kernel, frame.dim, most, layout.step_bits, seed)
        if wide:
            moved = spectrum.moved(chosen, wide, MOVED, layout.step_bits, seed)
            chosen = np.stack([chosen, moved], axis=1).reshape(-1, frame.dim)
        bits = min(layout.family.lattice_bits[1], 62 - capacity_bits)
        pair = layout.restore(bits, {"frequencies": np.ascontiguousarray(chosen)})
        return cls(frame, pair, bool(wide))

    def bounds(self, features: int) -> Bounds:
        """Return the bounds of a Fourier table of so many frequencies."""
        count = 2 * features if self.moved else features
        return Fourier(count).layout(self.frame).bounds(self.look.bits)

    def offer(self, budget: Budget, rows: float) -> Offer | None:
        """Return as many features as noise lets be told, since chance in drawing them is larger."""
        for count, share in itertools.product(self.FEATURES, SHARES):
            offer = self.priced(budget, rows, count, share)
            if offer is not None and offer.variance <= self.NOISY:
                return offer
        return None

    def variance(self, law: Law, rows: float) -> float:
        """Return v: that of a complex number."""
        return 2 * law.variance / 4.0**self.look.bits / rows**2

    def cells(self, offer: Offer) -> NDArray[np.int64]:
        """Return the cosines and sines of the first frequencies."""
        first = np.arange(offer.bounds.cells // 2)
        return np.concatenate([first, self.look.bounds.cells // 2 + first])

    def likelihood(
        self, means: Floats, variance: float, density: Floats, smoothness: Floats
    ) -> tuple[Floats, Floats]:
        """Return log likelihoods of means of squares.

        They have the spread of the noise, and that of drawing few frequencies (`CHANCE`).
        """
        cosines, sines = means.reshape(2, -1) / 2**self.look.bits
        squares = cosines**2 + sines**2 - variance
        own = squares[::2] if self.moved else squares
        plain = _fit(float(own.mean()), density, density, variance, len(own), CHANCE)
        joint = np.zeros((len(density), len(smoothness)))
        for turn, away in enumerate(MOVED if self.moved else ()):
            out = squares[1 + 2 * turn :: 4]
            base = density[:, np.newaxis]
            level = base * np.exp(-smoothness * away)
            joint += _fit(float(out.mean()), level, base, variance, len(out), CHANCE_MOVED)
        return plain, joint


def _fit(
    mean: float,
    level: Floats,
    density: Floats,
    variance: float,
    count: int,
    rough: float,
) -> Floats:
    """Return the log likelihood of a mean of squares, for levels that it may have."""
    noise = variance**2 + 2 * variance * level
    spread = (noise + rough * level**2 / np.sqrt(density)) / count
    return np.asarray(-((mean - level) ** 2) / (2 * spread) - 0.5 * np.log(spread))
