"""How a table is read at the sites of a lattice: what a family says for a proper density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SiteAxis:
    """Sites on [−half, half], both ends among them, in bandwidth units."""

    column: int
    half: float
    count: int

    @property
    def pitch(self) -> float:
        """From one to the next."""
        return 2 * self.half / (self.count - 1)

    @property
    def places(self) -> Floats:
        """Where they are."""
        return np.linspace(-self.half, self.half, self.count)


@dataclass(frozen=True)
class Strip:
    """Where records lie on a narrow axis [−half, half]: evenly from `low` to `high`."""

    column: int
    half: float
    low: float
    high: float

    @classmethod
    def about(cls, column: int, half: float, mean: float) -> Self:
        """Return the widest strip of the axis with a mean, given on [−1, 1].

        >>> Strip.about(0, 2.0, 0.5)
        Strip(column=0, half=2.0, low=0.0, high=2.0)
        """
        wide = 1 - abs(mean)
        return cls(column, half, (mean - wide) * half, (mean + wide) * half)


class Survey(ABC):
    """A table read at sites. Tables are in its own units, and so is the deviation of a cell."""

    @property
    @abstractmethod
    def axes(self) -> tuple[SiteAxis, ...]:
        """The sites, axis by axis; narrow axes have none. ParameterError where there are too many."""

    @abstractmethod
    def field(self, table: Floats) -> Floats:
        """Return the kernel sum at every site, over all there is along narrow axes."""

    @property
    @abstractmethod
    def gain(self) -> Floats:
        """What the deviation of a cell is multiplied by at every site."""

    @abstractmethod
    def strips(self, table: Floats, weights: Floats, deviation: float) -> tuple[Strip, ...]:
        """Return where records lie along narrow axes, of a table over its number of records."""
