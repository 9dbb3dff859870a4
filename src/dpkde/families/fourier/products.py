"""Distances between two tables of Fourier features: means over the frequencies they share.

With F(ω) = Σ e^{iω·x}/n and frequencies from the spectrum p(ω) = k̂(ω)/(2π)^d of the kernel,

    MMD² = E |F_a − F_b|²,     ∫(f_a − f_b)² = E k̂(ω)·|F_a − F_b|²/(∫k)².

Both are unbiased over the draw of frequencies, and so are diagonal forms of the tables. The second
needs k̂, which products over axes know. Frequencies count from the middle of the bounds, so bounds
and steps have to agree; the first frequencies of a seed are the same however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families.comparison import Comparison, Kind, Scatter
from dpkde.numerics.operators import Diagonal

if TYPE_CHECKING:
    from dpkde.families.fourier.family import FourierPair

Floats = NDArray[np.float64]

FEWEST = 16
"""Frequencies that tables have to share, at least."""


def shared(a: FourierPair, b: FourierPair) -> int:
    """Return how many frequencies, from the first one on, two tables have in common."""
    ours, theirs = a.layout, b.layout
    frames = [(pair.frame.kernel, pair.frame.dim) for pair in (a, b)]
    origins = [pair.frame.domain.origin(pair.frame.dim) for pair in (a, b)]
    if frames[0] != frames[1] or not np.array_equal(origins[0], origins[1]):
        return 0
    if (ours.step_bits, a.form) != (theirs.step_bits, b.form):
        return 0
    size = min(a.count, b.count)
    alike = (a.frequencies[:size] == b.frequencies[:size]).all(axis=1)
    alike &= a.offsets[:size] == b.offsets[:size]
    return size if alike.all() else int(np.argmin(alike))


def form(a: FourierPair, b: FourierPair, kind: Kind) -> Comparison | None:
    """Return the form over shared frequencies; None where they are too few, or k̂ is not known."""
    size = shared(a, b)
    if size < FEWEST:
        return None
    weights = np.full(size, 1 / size)
    if kind == "l2":
        kernel = a.frame.kernel
        if not kernel.is_product:
            return None
        shape = kernel.shape
        located: Floats = a.frequencies[:size].astype(np.float64) * a.unit
        ratios = shape.profile_transform(located.reshape(-1)).reshape(located.shape)
        volume = kernel.bandwidth.determinant(a.frame.dim)
        weights = weights * (ratios / shape.profile_integral**2).prod(axis=1) / volume
    features = 1.0 if a.form == "pairs" else 2.0
    rows = 2 if a.form == "pairs" else 1
    own, other, cross = (
        Diagonal(features * weights, rows, columns, target)
        for target, columns in ((a.count, a.count), (b.count, b.count), (a.count, b.count))
    )
    scatter = FourierScatter(weights, features, own, other)
    return Comparison(own, other, cross, scatter, draws=size, rows=rows)


@dataclass(frozen=True, eq=False)
class FourierScatter(Scatter):
    """A table does not tell E h² of its frequencies' h, but bounds it: 0 ≤ k ≤ 1, so E k² ≤ E k.

    Tests that use the bound keep their level, and find a little less than they could.
    """

    weights: Floats
    features: float
    own: Diagonal
    other: Diagonal

    @property
    def energy(self) -> float:
        """Σ w_j: cos² + sin² = 1, or 2cos² on average."""
        return float(self.weights.sum())

    @property
    def energy_of_square(self) -> float:
        """Σ w_j², twice that in the phase form."""
        return self.features * float((self.weights**2).sum())

    def mean_square(self, a: Floats, b: Floats) -> float:
        """E h·max h, and what frequencies scatter about it: at most Σ w_j²."""
        mean = max(self._mean(a, b), 0.0)
        return mean * self.energy + self.energy_of_square

    def moment(self, a: Floats, g: Floats) -> float:
        """(E h)², the least that it can be."""
        size = len(self.weights)
        shape = (self.own.rows, -1)
        shared = a.reshape(shape)[:, :size] * g.reshape(shape)[:, :size]
        return float(shared.sum()) ** 2

    def _mean(self, a: Floats, b: Floats) -> float:
        size, shape = len(self.weights), (self.own.rows, -1)
        products = a.reshape(shape)[:, :size] * b.reshape(shape)[:, :size]
        return self.features * float((products * self.weights).sum())
