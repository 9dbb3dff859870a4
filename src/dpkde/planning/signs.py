"""A pilot of signs: for few axes, where a random grid stands for the kernel.

With intervals as long as the integral of the kernel's profile, two records share a cell of a random
grid about as often as the kernel says. With F the mean over records of the random sign of a
record's cell (`dpkde.families.hashing.grids`) and v the variance of the noise on it,

* E F² = q + v;
* and with a wave along an axis, for data whose spectrum falls like e^{−st},
  E F² = q·(8/π²)·Σ_{odd m} e^{−mst}/m² + v.

Many cells are in each F, so that it is nearly normal, and F² varies by twice the square of its
mean. |F|² of a frequency (`dpkde.planning.waves`) varies by q^{3/2}, which is several times as
much: few frequencies of the spectrum carry most of q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.hashing.grids import MOST_CELLS, Grids
from dpkde.planning.pilot import MOVED, SHARES, Floats, Offer, Pilot, wide_axes
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import Law
from dpkde.space.frame import Frame, profile_integral

MOST_WIDE = 8
"""Most axes on which a grid stands for a kernel; they are as wide as `NARROW`, or wider."""
NARROW, MOST_NARROW = 1.5, 4.0
"""All narrower axes together may be so wide: there a grid parts records that a kernel does not."""
FAINT = 0.02
"""What a level is to be told from: between typical densities and what is left of them far out."""
TELLING, ENOUGH = 0.7, 2.5
"""The information that is worth paying for, and what is enough; see `information`."""
_BITS = 20
_ODD = (1, 3, 5, 7)


@dataclass(frozen=True, eq=False)
class Signs(Pilot):
    """Signs of each record's cell in a few grids, every second one with a wave if there are any.

    Attributes
    ----------
    look
        The grids.
    """

    FEATURES = (16, 8, 4)

    frame: Frame
    look: Grids
    moved: bool

    @classmethod
    def drawn(cls, frame: Frame, capacity_bits: int, seed: int) -> Signs | None:
        """Draw a pilot; None where a grid does not stand for the kernel."""
        halves = frame.halves()
        if frame.kernel.home != "space" or not frame.kernel.is_product or halves is None:
            return None
        narrow = 2 * halves < NARROW
        if (~narrow).sum() > MOST_WIDE or not 2 * halves[narrow].sum() <= MOST_NARROW:
            return None
        try:
            pitch = profile_integral(frame.kernel.shape)
        except (ArithmeticError, ParameterError):
            return None
        finest = min(pitch, math.pi / max(MOVED))
        if not 0 < finest <= pitch < math.inf or not halves.max(initial=0) <= MOST_CELLS * finest:
            return None
        wide, most = wide_axes(frame), cls.FEATURES[0]
        shape, bits = (2 * most if wide else most, frame.dim), min(_BITS, 62 - capacity_bits)
        return cls(frame, Grids.drawn(shape, pitch, (wide, MOVED), bits, seed), bool(wide))

    def bounds(self, features: int) -> Bounds:
        """Return the bounds of so many cells."""
        return self.look.first(2 * features if self.moved else features)

    def offer(self, budget: Budget, rows: float) -> Offer | None:
        """Return the least share that tells enough, else the largest that is worth it.

        For the number of grids that tells most.
        """
        chosen = None
        for share in SHARES:
            offers = [self.priced(budget, rows, count, share) for count in self.FEATURES]
            told = [(information(offer), offer) for offer in offers if offer is not None]
            most, offer = max(told, key=lambda entry: entry[0], default=(0.0, None))
            chosen = offer if most >= TELLING else chosen
            if most >= ENOUGH:
                break
        return chosen

    def variance(self, law: Law, rows: float) -> float:
        """Return v."""
        return law.variance / 4.0**self.look.bits / rows**2

    def cells(self, offer: Offer) -> NDArray[np.int64]:
        """Return the first cells."""
        return np.arange(offer.bounds.cells)

    def likelihood(
        self, means: Floats, variance: float, density: Floats, smoothness: Floats
    ) -> tuple[Floats, Floats]:
        """Return log likelihoods of normal numbers whose variances are levels, and the noise's."""
        means = means / 2**self.look.bits
        plain = _fit(means[::2] if self.moved else means, density + variance)
        joint = np.zeros((len(density), len(smoothness)))
        for turn, away in enumerate(MOVED if self.moved else ()):
            left = sum(np.exp(-m * away * smoothness) / m**2 for m in _ODD) * 8 / math.pi**2
            joint += _fit(means[1 + 2 * turn :: 4], density[:, np.newaxis] * left + variance)
        return plain, joint


def information(offer: Offer) -> float:
    """Return about how well the logarithm of a faint level p is known: one over its variance.

    A mean of c squares, with the noise v, has the variance 2(p + v)²/c. Max-norm noise has v in
    proportion to c²: then v = p/3 is best, which is few grids with little noise.
    """
    return 0.5 * offer.features / (1 + offer.variance / FAINT) ** 2


def _fit(means: Floats, level: Floats) -> Floats:
    """Return the log likelihood of normal numbers of mean zero."""
    return np.asarray(-0.5 * len(means) * np.log(level) - (means**2).sum() / (2 * level))
