"""A Fourier table read with another kernel: its frequencies, weighted.

Frequencies ω were drawn from the density p of one kernel's spectrum. For another kernel, whose
spectrum has the density p′, each counts with the weight w = p′(ω)/p(ω):

    k′(x, y) = E_p w(ω) cos ω·(x − y).

That is unbiased, and its variance grows with E w² = ∫ p′²/p, which multiplies over axes: as if
there were D/E w² frequencies. Spectra are known for kernels that are products over axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Pair, Table, spread_of_repetitions
from dpkde.kernels import Points, ProductKernel
from dpkde.kernels.base import gauss_points
from dpkde.privacy.laws.quantiles import Weights
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

if TYPE_CHECKING:
    from dpkde.families.fourier.family import FourierLayout, FourierPair

Floats = NDArray[np.float64]

MOST_SPREAD = 4.0
"""Largest E w²: a quarter of the frequencies, at least, count."""
_NEGLIGIBLE = 1e-14
"""What is left of a spectrum where its tail is given up."""
_NUMBERS = 1 << 20


def strain(published: FourierLayout, frame: Frame) -> float:
    """Return E w² over the most that is allowed."""
    old, new, ratios = _shapes(published, frame)
    logs = [math.log(spread(old, new, ratio)) for ratio in ratios.tolist()]
    return math.exp(min(sum(logs), 700.0)) / MOST_SPREAD


def reread(pair: FourierPair, frame: Frame) -> ReweightedPair:
    """Return the pair with weights for another kernel."""
    old, new, ratios = _shapes(pair.layout, frame)
    weights = np.zeros(pair.count)
    rows = max(1, _NUMBERS // frame.dim)
    for start in range(0, pair.count, rows):
        part = slice(start, start + rows)
        omega = pair.frequencies[part].astype(np.float64) * pair.unit
        with np.errstate(all="ignore"):
            logs = np.log(new.profile_transform(omega / ratios) / ratios)
            logs -= np.log(old.profile_transform(omega))
            weights[part] = np.nan_to_num(np.exp(logs.sum(axis=1)), nan=0.0)
    layout = replace(pair.layout, frame=frame, is_weighted=True)
    return ReweightedPair(layout, pair.bits, pair, weights)


@lru_cache(maxsize=4096)
def spread(old: ProductKernel, new: ProductKernel, ratio: float) -> float:
    """Return E w² on an axis: ∫ p′(ω)²/p(ω) dω, infinity where p has faded and p′ has not.

    `ratio` is the old bandwidth over the new one.
    """
    omega, mass = gauss_points(np.concatenate([[0.0], np.geomspace(1e-5, 1e5, 300)]))
    density = old.profile_transform(omega) / np.pi
    wanted = new.profile_transform(omega / ratio) / np.pi / ratio
    live = wanted > _NEGLIGIBLE * wanted.max()
    if not (density[live] > 0).all():
        return math.inf
    return max(1.0, float((wanted[live] ** 2 / density[live]) @ mass[live]))


def _shapes(layout: FourierLayout, frame: Frame) -> tuple[ProductKernel, ProductKernel, Floats]:
    """Return both kernels with a bandwidth of one, and the old bandwidth over the new one."""
    old, new = layout.frame.kernel, frame.kernel
    for kernel in (old, new):
        if not (kernel.is_product and kernel.is_shift_invariant):
            raise ParameterError(
                "frequencies are weighted by the density of a spectrum, and that is known for "
                f"kernels that are products over axes only: this {kernel.name} kernel is none"
            )
    if not _is_falling(old.shape):
        raise ParameterError(
            f"frequencies of the {old.name} kernel cannot be weighted for another bandwidth: its "
            "spectrum is zero at some of those that the other needs"
        )
    ratios = old.bandwidth.ratios(new.bandwidth, frame.dim)
    if ratios is None:
        raise ParameterError(
            "frequencies are weighted axis by axis, and the axes are those of the bandwidth matrix "
            "that was published: use a multiple of that matrix"
        )
    return old.shape, new.shape, ratios


@lru_cache(maxsize=64)
def _is_falling(kernel: ProductKernel) -> bool:
    """Whether a spectrum falls as frequencies grow: then it has no zeros on the way."""
    heights = kernel.profile_transform(np.linspace(0, 16, 1025))
    return bool((np.diff(heights) <= 1e-9 * heights[0]).all())


@dataclass(frozen=True, eq=False)
class ReweightedPair(Pair):
    """A drawn pair, and a weight for each of its frequencies."""

    layout: FourierLayout
    bits: int
    drawn: FourierPair
    importance: Floats

    @property
    def count(self) -> int:
        """D, the number of frequencies."""
        return self.drawn.count

    @cached_property
    def _cells(self) -> Floats:
        """The weight of each cell."""
        return np.tile(self.importance, 2 if self.drawn.form == "pairs" else 1)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return what the drawn pair does, for records in its own coordinates."""
        return self.drawn.quantize(coordinates, counts)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add what the drawn pair does, for records in its own coordinates."""
        self.drawn.accumulate(coordinates, counts, table)

    def respond(self, queries: Points, table: Floats, groups: int = 1) -> Points:
        """Return the weighted mean over frequencies, or the median of those of groups of them."""
        return self.drawn.respond(queries, table * self._cells, groups)

    def means(self, queries: Points, table: Floats) -> Points:
        """Return the mean of what weighted frequencies say to each query, and of its square."""
        return self.drawn.means(queries, table * self._cells)

    def own_variance(self, queries: Points, table: Floats, noise: Floats) -> Floats:
        """Return the variance of the mean over frequencies beyond the noise; NaN for one."""
        mean, square = self.means(queries, table).T
        return spread_of_repetitions(mean, square, self.count, noise)

    @property
    def draws(self) -> int:
        """How many frequencies would vary as little without weights."""
        return max(1, int(self.importance.sum() ** 2 / max((self.importance**2).sum(), 1e-300)))

    def weights(self, queries: Points) -> Weights:
        """Return those of the drawn pair, weighted."""
        drawn = self.drawn.weights(queries)
        return drawn._replace(values=drawn.values * self._cells)

    def response_norm(self, queries: Points) -> Floats:
        """Return √Σw²/D for pairs; of the weighted cosines for the phase form."""
        if self.drawn.form == "pairs":
            length = math.sqrt(float((self.importance**2).sum())) / self.count
            return np.full(len(queries), length / 2**self.bits)
        return np.asarray(np.sqrt((self.weights(queries).values ** 2).sum(axis=1)))
