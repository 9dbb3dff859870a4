"""How a table is read at the sites of a lattice: what a family says for a proper density."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SiteAxis:
    """Sites on [−half, half], both ends among them, in bandwidth units.

    Attributes
    ----------
    column
        Which column of the data.
    half
        Half the width of the axis.
    count
        How many sites.
    parts
        1: a site is a point. P > 1: it is spread over 2P − 1 points between its neighbours, their
        shares a triangle, so that kernels with a kink do not show where sites are.
    """

    column: int
    half: float
    count: int
    parts: int = 1

    @property
    def pitch(self) -> float:
        """From one to the next."""
        return 2 * self.half / (self.count - 1)

    @property
    def places(self) -> Floats:
        """Where they are."""
        return np.linspace(-self.half, self.half, self.count)

    @property
    def spread(self) -> tuple[Floats, Floats]:
        """The points of a site, as offsets, and their shares."""
        steps = np.arange(1.0 - self.parts, self.parts)
        shares = (self.parts - np.abs(steps)) / self.parts**2
        return np.asarray(steps * (self.pitch / self.parts)), np.asarray(shares)

    def seen(self, kernel: ProductKernel, offsets: Floats) -> Floats:
        """Return what a site adds to a KDE on this axis, at offsets from it."""
        if self.parts == 1:
            return kernel.profile(offsets)
        pairs = zip(*self.spread, strict=True)
        return np.asarray(sum(share * kernel.profile(offsets - point) for point, share in pairs))

    def log_seen(self, kernel: ProductKernel, offsets: Floats) -> Floats:
        """Return the logarithm of `seen`, however far below the numbers that is."""
        pairs = zip(*self.spread, strict=True)
        logs = [math.log(share) + kernel.log_profile(offsets - point) for point, share in pairs]
        return np.asarray(np.logaddexp.reduce(logs, axis=0))


@dataclass(frozen=True)
class Strip:
    """Where records lie on a narrow axis [−half, half].

    Evenly on the widest strip that has their mean, or at the two ends, in a share of `ends`, by
    the same mean: columns of zeros and ones lie at the ends.

    Attributes
    ----------
    column
        Which column of the data.
    half
        Half the width of the axis, in bandwidths.
    mean
        On [−1, 1].
    ends
        The share at the ends.
    """

    column: int
    half: float
    mean: float = 0.0
    ends: float = 0.0

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the strip.

        >>> Strip(0, half=2.0, mean=0.5).limits
        (0.0, 2.0)
        """
        wide = 1 - abs(self.mean)
        return (self.mean - wide) * self.half, (self.mean + wide) * self.half

    def seen(self, kernel: ProductKernel, y: Floats) -> Floats:
        """Return the mean of profile(y − t) over records t."""
        evenly = mean_profile(kernel, *self.limits, y)
        if not self.ends:
            return evenly
        upper, lower = kernel.profile(y - self.half), kernel.profile(y + self.half)
        at_ends = (1 + self.mean) / 2 * upper + (1 - self.mean) / 2 * lower
        return np.asarray((1 - self.ends) * evenly + self.ends * at_ends)

    def log_seen(self, kernel: ProductKernel, y: Floats) -> Floats:
        """Return the logarithm of `seen`, far from the strip: to some digits, by quadrature."""
        low, high = self.limits
        points, mass = gauss_points(np.linspace(low, high, max(1, math.ceil(high - low)) + 1))
        if not high - low > 1e-12 * max(abs(low), abs(high)):
            points, mass = np.array([low]), np.ones(1)
        offsets, shares = y[:, np.newaxis] - points, mass / mass.sum() * (1 - self.ends)
        offsets = np.column_stack([offsets, y - self.half, y + self.half])
        shares = np.append(
            shares, [self.ends * (1 + self.mean) / 2, self.ends * (1 - self.mean) / 2]
        )
        with np.errstate(divide="ignore"):
            logs = np.log(shares) + kernel.log_profile(offsets)
        return np.asarray(np.logaddexp.reduce(logs, axis=1))

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return places of records, drawn."""
        low, high = self.limits
        evenly = low + (high - low) * generator.random(count)
        above = generator.random(count) < (1 + self.mean) / 2
        at_ends = generator.random(count) < self.ends
        return np.where(at_ends, np.where(above, self.half, -self.half), evenly)


def mean_profile(kernel: ProductKernel, low: float, high: float, y: Floats) -> Floats:
    """Return the mean of profile(y − t) over low ≤ t ≤ high, by quadrature.

    Panels end at y, where the profile may have a kink, and are a bandwidth wide at most.
    """
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        return kernel.profile(y - low)
    total, middle = np.zeros(len(y)), np.clip(y, low, high)
    panels = max(1, math.ceil(high - low))
    points, mass = gauss_points(np.linspace(0.0, 1.0, panels + 1))
    for start, stop in ((np.full(len(y), low), middle), (middle, np.full(len(y), high))):
        width = (stop - start)[:, np.newaxis]
        t = start[:, np.newaxis] + width * points
        total += (kernel.profile(y[:, np.newaxis] - t) * (width * mass)).sum(axis=1)
    return np.asarray(total / (high - low))


class Survey(ABC):
    """A table read at sites. Tables are in its own units, and so is the deviation of a cell."""

    @property
    @abstractmethod
    def axes(self) -> tuple[SiteAxis, ...]:
        """The sites, axis by axis; narrow axes have none. ParameterError where they are many."""

    @abstractmethod
    def field(self, table: Floats) -> Floats:
        """Return the kernel sum at every site, over all there is along narrow axes."""

    @property
    @abstractmethod
    def gain(self) -> Floats:
        """What the deviation of a cell is multiplied by at every site."""

    @property
    @abstractmethod
    def heaviest(self) -> Floats:
        """What cells weigh, divided by their length, at the site where one weighs most."""

    @abstractmethod
    def strips(self, table: Floats, weights: Floats, deviation: float) -> tuple[Strip, ...]:
        """Return where records lie along narrow axes, of a table over its number of records."""
