"""The LSQ framework: what a family is, and where families are found by name.

From the paper's letters to our names:

=====================  =====================================================================
paper                  here
=====================  =====================================================================
𝒬, an LSQ family       `Family`: a distribution over pairs, with its parameters
(f, g) ~ 𝒬             `Pair`: one draw of it, the public randomness included
f(x)                   `Pair.quantize(x)` / 2^bits: a record's contribution, in integers
g(y)                   used by `Pair.respond`, its length is `Pair.response_norm(y)`
F = Σ f(x)             the table of a `Sketch`
F̃ = F + noise          the table of a `Release`
Q                      `Bounds.cells`
R, S                   `Bounds.linf`, `.l1`, `.l2_squared`: what one record can do to the table
I repetitions, J       `Fourier.frequencies`; `kde(queries, groups=J)`
=====================  =====================================================================

A family is added by writing one module with a `Family` and a `Pair`, a proof beside it
(``name.proof.md``: why f and g give the kernel, and why the bounds hold), and an entry in
`FAMILIES`. The suite in ``tests/contracts`` then runs against it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.domain import Mask
from dpkde.errors import FormatError, ParameterError
from dpkde.frame import Frame
from dpkde.kernels import Points
from dpkde.privacy.budget import Adjacency, Amount, Bounds, cheapest
from dpkde.privacy.laws import Law

DEFAULT_CAPACITY_BITS = 40
"""Sums cannot wrap up to 2⁴⁰ records, unless the caller declares another capacity."""

Table = NDArray[np.int64]
Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Outlook:
    """What is known in public before a sketch is made: enough to choose parameters.

    Attributes
    ----------
    rows
        The noisy count, or a public guess of the number of records.
    typical_density
        A public guess of a typical KDE value.
    adjacency
        Which data sets count as neighbours.
    options
        The (amount, law) pairs that the table's share of the budget can buy.
    capacity_bits
        Sums must not wrap up to 2^capacity_bits records.
    """

    rows: float
    typical_density: float
    adjacency: Adjacency
    options: tuple[tuple[Amount, type[Law]], ...]
    capacity_bits: int = DEFAULT_CAPACITY_BITS

    def lattice(self, family: Family, frame: Frame) -> int:
        """Return the bits after the binary point: as many as sums and noise leave room for.

        Sums of 2^capacity records of size 2^bits stay below 2⁶², and so does the noise.
        """
        least, most = family.lattice_bits
        for bits in range(min(most, 62 - self.capacity_bits), least - 1, -1):
            try:
                self.cell_noise(family.bounds(frame, bits))
            except ParameterError:
                continue  # the noise would not fit: a coarser lattice
            return bits
        raise ParameterError(
            f"a capacity of 2^{self.capacity_bits} records and this much noise do not fit 64-bit "
            "sums: use a smaller capacity, a larger epsilon or a smaller table"
        )

    def cell_noise(self, bounds: Bounds) -> float:
        """Return the standard deviation of the noise on one cell, for the best law."""
        law = cheapest(self.options, bounds.under(self.adjacency))[2]
        return math.sqrt(law.variance)


@dataclass(frozen=True)
class Prediction:
    """Errors of a KDE value, one standard deviation each, from public numbers alone.

    Attributes
    ----------
    noise
        From the noise on the table.
    sampling
        From the family's own randomness or approximation.
    cells
        The size of the table.
    """

    noise: float
    sampling: float
    cells: int

    @property
    def error(self) -> float:
        """Both together, as a root mean square."""
        return math.hypot(self.noise, self.sampling)


class Family(ABC):
    """A distribution over pairs (f, g) with E f(x)·g(y) ≈ k(x, y)."""

    name: ClassVar[str]
    version: ClassVar[int]
    lattice_bits: ClassVar[tuple[int, int]]
    """Fewest and most bits after the binary point that its integers can have."""

    @property
    @abstractmethod
    def needs_outlook(self) -> bool:
        """Whether parameters are still to be chosen from the number of records."""

    @abstractmethod
    def choose(self, frame: Frame, outlook: Outlook) -> Self:
        """Return this family with every parameter set, from public numbers."""

    @abstractmethod
    def predict(self, frame: Frame, outlook: Outlook) -> Prediction:
        """Return the error to expect, parameters being set."""

    @abstractmethod
    def draw(self, frame: Frame, bits: int, seed: int) -> Pair:
        """Draw (f, g) from a public seed, on a lattice of 2^−bits."""

    @abstractmethod
    def restore(self, frame: Frame, bits: int, tensors: Tensors) -> Pair:
        """Rebuild a drawn pair from the tensors that a file holds; FormatError if they are off."""

    @abstractmethod
    def bounds(self, frame: Frame, bits: int) -> Bounds:
        """Return how far one record can move the table, parameters being set."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the parameters, without the name."""

    @property
    def proof(self) -> str:
        """Why f and g give the kernel, and why the bounds hold: the text beside the code."""
        return resources.files("dpkde.families").joinpath(f"{self.name}.proof.md").read_text()


class Pair(ABC):
    """One drawn (f, g), in a frame and on a lattice.

    `quantize` and `accumulate` see private points: only curator code may call them. Their result
    for a record is an integer vector that depends on that record alone.
    """

    frame: Frame
    bits: int

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """The family's bounds. `quantize` and `accumulate` enforce them on every record."""

    @property
    @abstractmethod
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The public randomness, as integers, for the file."""

    @abstractmethod
    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Return every record's contribution, shape (n_points, cells): plain, slow, obvious."""

    @abstractmethod
    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's contribution to `table` modulo 2⁶⁴. Compiled, `nogil`."""

    @abstractmethod
    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return ⟨table, g(y)⟩ / 2^bits for each query.

        With groups J > 1: the median over J groups of repetitions, as in the paper.
        """

    @abstractmethod
    def spread(self, queries: Points, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of `respond` over noise and seeds together, as the table shows it.

        An estimate from public numbers: how much the answers of the repetitions differ.
        """

    @abstractmethod
    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return ‖g(y)‖₂ / 2^bits: the noise at a query is this times the noise of a cell."""


def registry() -> dict[str, type[Family]]:
    """Return the families by the name they have in a release file."""
    from dpkde.families.fourier import Fourier

    return {Fourier.name: Fourier}


def family_from_json(
    name: str, version: int, parameters: Mapping[str, Any], extra: tuple[type[Family], ...] = ()
) -> Family:
    """Rebuild a family from what a file says of it. Names are looked up, never imported."""
    known = registry() | {family.name: family for family in extra}
    if name not in known:
        raise FormatError(
            f"this file uses the family {name!r}, which is unknown here; "
            "pass it as dpkde.load(path, families=[...])"
        )
    if version != known[name].version:
        raise FormatError(f"this file uses version {version} of the family {name!r}")
    try:
        return known[name](**parameters)
    except (ParameterError, TypeError) as error:
        raise FormatError(f"the parameters of the family {name!r} are damaged: {error}") from None
