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
I repetitions, J       `Fourier.frequencies`, `FastGauss.repetitions`, `Hashing.repetitions`;
                       ``kde(queries, groups=J)``
B', buckets            `Hashing.buckets`
=====================  =====================================================================

A family is added by one folder, with a `Family`, a `Pair` and a proof (``proof.md``: why f and g
give the kernel, and why the bounds hold), by one line in `registry`, and by a test class made from
`dpkde.testing.FamilyContract`. What is in the registry is compared by ``family="auto"``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import resources
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.privacy.amounts import Adjacency, Amount, Bounds
from dpkde.privacy.budget import cheapest
from dpkde.privacy.laws import Law
from dpkde.privacy.laws.quantiles import Weights
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

DEFAULT_CAPACITY_BITS = 40
"""Sums cannot wrap up to 2⁴⁰ records, unless the caller declares another capacity."""

NO_WORST = (
    "the {} family states no worst case here, so no error can be promised: give bounds, or use "
    "another family"
)
_NOISE_NANOSECONDS = 700
"""What a cell's noise takes, roughly."""

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
    count_law
        Of the noise on the count; None where it is public.
    """

    rows: float
    typical_density: float
    adjacency: Adjacency
    options: tuple[tuple[Amount, type[Law]], ...]
    capacity_bits: int = DEFAULT_CAPACITY_BITS
    count_law: Law | None = None

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on the count."""
        return math.sqrt(self.count_law.variance) if self.count_law is not None else 0.0

    def lattice(self, family: Family, frame: Frame) -> int:
        """Return the bits after the binary point: as many as sums and noise leave room for.

        Sums of 2^capacity records of size 2^bits stay below 2⁶², and so does the noise.
        """
        least, most = family.lattice_bits
        family.bounds(frame, least)  # a table that is too large says so itself
        for bits in range(min(most, 62 - self.capacity_bits), least - 1, -1):
            bounds = family.bounds(frame, bits)
            try:
                self.cell_noise(bounds)
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

    def unit_noise(self, norm: str, signed: bool) -> float:
        """Return the noise on a cell where L1 and L2 bound are 1, of laws that hide this norm."""
        unit = 1 << 16
        bounds = Bounds(1, unit, unit**2, unit, nonnegative=not signed).under(self.adjacency)
        laws = [law.bought(amount, bounds) for amount, law in self.options if law.norm == norm]
        return min((math.sqrt(law.variance) for law in laws), default=math.inf) / unit

    def prediction(
        self, *, bounds: Bounds, bits: int, gain: float, approximation: float, nanoseconds: float
    ) -> Prediction:
        """Return a prediction, from what a family knows of itself.

        Parameters
        ----------
        bounds, bits
            Of the table.
        gain
            The root mean square of ‖g(y)‖₂ over queries: cell noise times this is a query's.
        approximation
            The family's own error of a KDE value.
        nanoseconds
            What a record takes.
        """
        law = cheapest(self.options, bounds.under(self.adjacency))[2]
        return Prediction(
            noise=math.sqrt(law.variance) / 2**bits * gain / self.rows,
            approximation=approximation,
            count=self.typical_density * self.count_noise / self.rows,
            cells=bounds.cells,
            seconds=float(self.rows * nanoseconds + bounds.cells * _NOISE_NANOSECONDS) * 1e-9,
            law=law.name,
        )


@dataclass(frozen=True)
class Prediction:
    """Errors of a KDE value, one standard deviation each, from public numbers alone.

    Attributes
    ----------
    noise
        From the noise on the table.
    approximation
        From the family itself: its bias, or for random families what the seed does.
    count
        From the noise on the count.
    cells
        The size of the table.
    seconds
        The curator's time on one core, roughly.
    law
        The law of the noise on the table.
    """

    noise: float
    approximation: float
    count: float
    cells: int
    seconds: float
    law: str

    @property
    def error(self) -> float:
        """The mean absolute error, as for a normal law: √(2/π) of all parts together."""
        return math.sqrt(2 / math.pi) * math.hypot(self.noise, self.approximation, self.count)


@dataclass(frozen=True)
class Worst:
    """What can happen at any one query, whatever the records: the constants of a guarantee.

    Attributes
    ----------
    bias
        |E f(x)·g(y) − k(x, y)| is at most this, rounding included.
    variance
        Of a mean of f(x)·g(y) over records, over the family's own randomness.
    reach
        How far one of the independent terms that make it up can be from its mean.
    gain, peak
        ‖g(y)‖₂ and ‖g(y)‖_∞ are at most this, over 2^bits: noise on cells times this is a query's.
    """

    bias: float
    variance: float
    reach: float
    gain: float
    peak: float


class Terms(NamedTuple):
    """What a family asks and promises for a kernel, in a few words; for tables of them."""

    cost: str
    """Time for a record or a query."""
    bias: str
    """E f(x)·g(y) − k(x, y)."""
    sensitivity: str
    """How far a record moves the table, before scaling to integers."""


Method = TypeVar("Method", bound=Callable[..., Any])


def remembered(method: Method) -> Method:
    """Remember what a method of a family says of a frame and a lattice: planners ask many times.

    A kernel or family of the caller's need not have a hash; then it is asked anew. Nor need what it
    calls equal be the same, so whatever is paid for or promised is asked `anew` too.
    """
    kept = lru_cache(maxsize=1 << 12)(method)

    @wraps(method)
    def ask(family: Any, frame: Frame, bits: int) -> Any:
        try:
            hash((family, frame))
        except TypeError:
            return method(family, frame, bits)
        return kept(family, frame, bits)

    return ask  # type: ignore[return-value]


def anew(family: Family, name: str, frame: Frame, bits: int) -> Any:
    """Return what ``family.bounds`` or ``family.worst`` says, computed now and not remembered."""
    method = getattr(type(family), name)
    return getattr(method, "__wrapped__", method)(family, frame, bits)


class Family(ABC):
    """A distribution over pairs (f, g) with E f(x)·g(y) ≈ k(x, y)."""

    name: ClassVar[str]
    version: ClassVar[int]
    lattice_bits: ClassVar[tuple[int, int]]
    """Fewest and most bits after the binary point that its integers can have."""
    is_biased: ClassVar[bool] = False
    """Whether its approximation is a bias, in proportion to the density; else what a seed does."""

    @classmethod
    @abstractmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Return why the family cannot serve a kernel and domain; None where it can."""

    @classmethod
    def check(cls, frame: Frame) -> None:
        """Raise where the family cannot serve a kernel and domain."""
        found = cls.obstacle(frame)
        if found is not None:
            raise ParameterError(
                f"the {cls.name} family cannot be used here: {found} (family='auto' takes one that "
                "can)"
            )

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """Return cost, bias and sensitivity for a kernel and domain that it serves."""
        return Terms("?", "?", "?")

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

    def worst(self, frame: Frame, bits: int) -> Worst | None:
        """Return bounds over all records and queries, parameters being set; None: not known."""
        return None

    def settings(self, frame: Frame, outlook: Outlook) -> Iterator[Self]:
        """Yield this family with its open parameters set in every way worth comparing."""
        yield self.choose(frame, outlook)

    def summary(self, frame: Frame) -> str:
        """Return the family in a few words."""
        shown = ", ".join(f"{key}={value}" for key, value in self.to_json().items())
        return f"{self.name}({shown})"

    @property
    def proof(self) -> str:
        """Why f and g give the kernel, and why the bounds hold: the text beside the code."""
        folder = type(self).__module__.rpartition(".")[0]
        return resources.files(folder).joinpath("proof.md").read_text(encoding="utf-8")


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
        """Return ⟨table, g(y)⟩ / 2^bits for each query, without the `constant`.

        With groups J > 1: the median over J groups of repetitions, as in the paper.
        """

    @property
    def constant(self) -> float:
        """c, where the kernel is c + E f(x)·g(y): that part of a sum comes from the count."""
        return 0.0

    @abstractmethod
    def own_variance(
        self, queries: Points, table: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the variance that the family itself adds to `respond`, as the table shows it.

        An estimate from public numbers. Random families: how much the answers of repetitions
        differ, less the variance `noise` that the noise explains. Others: a typical bias, squared.
        """

    @property
    def draws(self) -> int:
        """How many independent draws an answer is the mean of; 0 where nothing is random."""
        return 0

    @abstractmethod
    def weights(self, queries: Points) -> Weights:
        """Return the entries of g(y) / 2^bits that are not zero: what noise is multiplied with."""

    @abstractmethod
    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return ‖g(y)‖₂ / 2^bits: the noise at a query is this times the noise of a cell."""


def about(count: int) -> str:
    """Return a large whole number in short; there is no largest one.

    >>> about(123_456), about(10**400)
    ('1.23e+05', 'more than 1e300')
    """
    return f"{count:.3g}" if count < 10**300 else "more than 1e300"


def no_repetitions(name: str, groups: int) -> None:
    """Refuse a median over groups where there is nothing to group."""
    if groups != 1:
        raise ParameterError(f"the {name} family has no repetitions: groups must be 1")
