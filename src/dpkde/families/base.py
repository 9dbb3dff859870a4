"""The LSQ framework: what a family is, and where families are found by name.

From the paper's letters to our names:

=====================  =====================================================================
paper                  here
=====================  =====================================================================
𝒬, an LSQ family       `Family`: a distribution over pairs, as a caller writes it; parameters may
                       be left open
                       `Layout`: a family in a frame, every parameter set: what a table would be
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

A family is added by one folder, with a `Family`, a `Layout`, a `Pair` and a proof (``proof.md``:
why f and g give the kernel, and why the bounds hold), by one entry in `registry.FAMILIES`, and by a
test class made from `dpkde.testing.FamilyContract`. What is registered is compared by
``family="auto"``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.densities.survey import Survey
from dpkde.errors import FormatError, ParameterError
from dpkde.families.brackets import Allowance, none
from dpkde.families.comparison import Comparison, Kind
from dpkde.families.reading import Asked, Reading, rows_of
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_whole
from dpkde.privacy.amounts import Adjacency, Bounds
from dpkde.privacy.budget import Options, cheapest
from dpkde.privacy.laws import Law
from dpkde.privacy.laws.weights import Weighting
from dpkde.space.domain import Mask
from dpkde.space.frame import Frame

DEFAULT_CAPACITY_BITS = 40
"""Sums cannot wrap up to 2⁴⁰ records, unless the caller declares another capacity."""

NO_WORST = (
    "the {} family states no worst case here, so no error can be promised: give bounds, or use "
    "another family"
)
ONE_KERNEL = (
    "a table of the {} family is read with the kernel that it was made for, and no other: ask for "
    "a release of family='spline', or of 'fourier' in many dimensions, to choose bandwidths later"
)
_NOISE_NANOSECONDS = 700
"""What a cell's noise takes, roughly."""

Table = NDArray[np.int64]
Tensors = Mapping[str, NDArray[Any]]


MEAN_SIZE = math.sqrt(2 / math.pi)
"""E|N(0, 1)|: mean absolute error over standard deviation."""
USUAL_SMOOTHNESS = 0.5
"""Where nothing is known of it."""


class Guess(NamedTuple):
    """What data may be like, as far as errors depend on it.

    Attributes
    ----------
    density
        A typical KDE value.
    smoothness
        s, where the squared modulus of the data's characteristic function falls like e^{−s·t} as
        one frequency moves out to t, in units of one over the bandwidth: 0 for data at few points,
        1 for clouds wider than the bandwidth.
    """

    density: float
    smoothness: float = USUAL_SMOOTHNESS


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
    smoothness
        A public guess of how smooth the data are, see `Guess`.
    range
        What the data may be like, equally likely each; empty: as guessed.
    records
        How many records of a unit are protected together.
    """

    rows: float
    typical_density: float
    adjacency: Adjacency
    options: Options
    capacity_bits: int = DEFAULT_CAPACITY_BITS
    count_law: Law | None = None
    smoothness: float = USUAL_SMOOTHNESS
    range: tuple[Guess, ...] = ()
    records: int = 1

    @cached_property
    def cases(self) -> tuple[Outlook, ...]:
        """One outlook for each of the range, with nothing left open."""
        return tuple(
            replace(self, typical_density=guess.density, smoothness=guess.smoothness, range=())
            for guess in self.range or [Guess(self.typical_density, self.smoothness)]
        )

    @cached_property
    def terms(self) -> Outlook:
        """What the price of a table hangs on: one object for all outlooks that have it in common.

        So it is found in a cache at once, without its fractions being compared.
        """
        kept = (self.adjacency, self.options, self.capacity_bits, self.count_law, self.records)
        return _terms(*kept)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, entry.name) for entry in fields(self)))

    def law(self, bounds: Bounds) -> Law:
        """Return the best law of noise on a table that a record moves so far."""
        return cheapest(self.options, bounds.times(self.records).under(self.adjacency))[2]

    def prediction(self, layout: Layout, *, gain: float, approximation: float) -> Prediction:
        """Return a prediction, from what a layout knows of itself.

        Parameters
        ----------
        layout
            Of the table.
        gain
            The root mean square of ‖g(y)‖₂ over queries: cell noise times this is a query's.
        approximation
            The family's own error of a KDE value.
        """
        bits, bounds, law = _priced(layout, self.terms)
        spread = 0.0 if self.count_law is None else math.sqrt(self.count_law.variance)
        return Prediction(
            noise=math.sqrt(law.variance) / 2**bits * gain / self.rows,
            approximation=approximation,
            count=self.typical_density * spread / self.rows,
            cells=bounds.cells,
            seconds=layout.seconds(self.rows, bounds.cells),
            law=law.name,
        )


@lru_cache(maxsize=64)
def _terms(
    adjacency: Adjacency,
    options: Options,
    capacity_bits: int,
    count_law: Law | None,
    records: int,
) -> Outlook:
    given = (adjacency, options, capacity_bits, count_law)
    return Outlook(1.0, 1.0, *given, smoothness=1.0, records=records)


@lru_cache(maxsize=1 << 10)
def _priced(layout: Layout, terms: Outlook) -> tuple[int, Bounds, Law]:
    """Return the lattice, the bounds and the law of a table: the same in all cases of a range."""
    return layout.priced(terms)


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
    assisted
        Noise and approximation together if a model fits the data, see `dpkde.assisted`; None where
        no model is tried.
    """

    noise: float
    approximation: float
    count: float
    cells: int
    seconds: float
    law: str
    assisted: float | None = None

    @property
    def error(self) -> float:
        """The mean absolute error of plain answers, as for a normal law: √(2/π) of all parts."""
        return MEAN_SIZE * math.hypot(self.noise, self.approximation, self.count)

    @property
    def assisted_error(self) -> float:
        """The mean absolute error if a model fits the data; `error` where no model is tried."""
        if self.assisted is None:
            return self.error
        return MEAN_SIZE * math.hypot(self.assisted, self.count)


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


class Family(ABC):
    """A distribution over pairs (f, g) with E f(x)·g(y) ≈ k(x, y), as a caller writes it."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    lattice_bits: ClassVar[tuple[int, int]]
    """Fewest and most bits after the binary point that its integers can have."""
    is_biased: ClassVar[bool] = False
    """Whether its approximation is a bias, in proportion to the density; else what a seed does."""
    is_random: ClassVar[bool] = True
    """Whether a pair depends on the seed."""

    @classmethod
    @abstractmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Return why the family cannot serve a kernel and domain; None where it can."""

    @classmethod
    def check(cls, frame: Frame) -> None:
        """Raise where the family cannot serve a kernel and domain."""
        obstacle = cls.obstacle(frame)
        if obstacle is not None:
            raise ParameterError(
                f"the {cls.name} family cannot be used here: {obstacle} (family='auto' takes one "
                "that can)"
            )

    @classmethod
    def terms(cls, frame: Frame) -> Terms:
        """Return cost, bias and sensitivity for a kernel and domain that it serves."""
        return Terms("?", "?", "?")

    @abstractmethod
    def layout(self, frame: Frame) -> Layout:
        """Return the layout that its parameters describe; ParameterError where one is not given."""

    def layouts(self, frame: Frame) -> Iterable[Layout]:
        """Return the candidates: open parameters set in every way worth comparing, listed once."""
        return [self.layout(frame)]

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, the fields of a dataclass, without the name."""
        entries: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        values = {entry.name: getattr(self, entry.name) for entry in entries}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}

    @classmethod
    def from_json(cls, parameters: Mapping[str, Any], dim: int) -> Self:
        """Return the family whose parameters a file of so many columns holds."""
        return cls(**parameters)

    @property
    def proof(self) -> str:
        """Why f and g give the kernel, and why the bounds hold: the text beside the code."""
        folder = type(self).__module__.rpartition(".")[0]
        return resources.files(folder).joinpath("proof.md").read_text(encoding="utf-8")


class Layout(ABC):
    """A family in a frame with every parameter set: what its table would be, and what it can do.

    Attributes
    ----------
    family
        As it would be written with all its parameters.
    frame
        Kernel, domain and dimension.
    """

    family: Family
    frame: Frame

    @abstractmethod
    def bounds(self, bits: int) -> Bounds:
        """Return how far one record can move the table; ParameterError where it is too large."""

    @abstractmethod
    def predict(self, outlook: Outlook) -> Prediction:
        """Return the error to expect."""

    @property
    @abstractmethod
    def nanoseconds(self) -> float:
        """What a record takes, roughly, on one core."""

    def seconds(self, rows: float, cells: int) -> float:
        """Return the curator's time for so many records and a table of so many cells."""
        return float(rows * self.nanoseconds + cells * _NOISE_NANOSECONDS) * 1e-9

    @property
    def can_be_modelled(self) -> bool:
        """Whether a model is fitted to a release of such a table; see `dpkde.assisted`."""
        return False

    @property
    def is_coarse(self) -> bool:
        """Whether its bias may be several times what is predicted, over many axes."""
        return False

    def worst(self, bits: int) -> Worst | None:
        """Return bounds over all records and queries; None where they are not known."""
        return None

    @abstractmethod
    def draw(self, bits: int, seed: int) -> Pair:
        """Draw (f, g) from a public seed, on a lattice of 2^−bits."""

    def restore(self, bits: int, tensors: Tensors) -> Pair:
        """Rebuild a drawn pair from the tensors that a file holds; FormatError if they are off.

        A family without randomness has none.
        """
        if tensors or self.family.is_random:
            raise FormatError(f"the tensors in this file are not those of {self.family.name!r}")
        return self.draw(bits, 0)

    @property
    @abstractmethod
    def summary(self) -> str:
        """The shape of the table and what steers it, as in ``spline 99×43 (degree 3)``."""

    def lattice(self, outlook: Outlook) -> int:
        """Return the bits after the binary point: as many as sums and noise leave room for.

        Sums of 2^capacity records of size 2^bits stay below 2⁶², and so does the noise.
        """
        return self.priced(outlook)[0]

    def priced(self, outlook: Outlook) -> tuple[int, Bounds, Law]:
        """Return that lattice, the bounds on it, and the best law of noise for them."""
        least, most = self.family.lattice_bits
        for bits in range(min(most, 62 - outlook.capacity_bits), least - 1, -1):
            bounds = self.bounds(bits)  # a table that is too large says so itself
            try:
                return bits, bounds, outlook.law(bounds)
            except ParameterError:
                continue  # the noise would not fit: a coarser lattice
        self.bounds(least)
        raise ParameterError(
            f"a capacity of 2^{outlook.capacity_bits} records and this much noise do not fit "
            "64-bit sums: use a smaller capacity, a larger epsilon or a smaller table"
        )


class Energy(NamedTuple):
    """Quadratic forms of a table t of sums f(x), noise included, in units of the kernel's values.

    Noise of variance v on each cell adds v times the trace of a form to it, on average.
    """

    answers: float
    """∫ ⟨t, g(y)⟩² dy over all of space, in bandwidth units."""
    answers_trace: float
    pairs: float
    """Σ k(x, x′) over all pairs of records, each with itself included."""
    pairs_trace: float
    itself: float
    """What a record's pair with itself adds to that, on average over where it lies."""


class Pair(ABC):
    """One drawn (f, g), of a layout and on a lattice of 2^−bits.

    `quantize` and `accumulate` see private points: only curator code may call them. Their result
    for a record is an integer vector that depends on that record alone.
    """

    layout: Layout
    bits: int

    @property
    def frame(self) -> Frame:
        """Kernel, domain and dimension."""
        return self.layout.frame

    @cached_property
    def bounds(self) -> Bounds:
        """The layout's bounds. `quantize` and `accumulate` enforce them on every record."""
        return self.layout.bounds(self.bits)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The public randomness, as integers, for the file; none where nothing is random."""
        return {}

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

    def strain(self, frame: Frame) -> float:
        """Return how hard it is to read a table with the kernel of another frame: at most 1 to do.

        f is as it is, g may be another. ParameterError where no bandwidth of that kernel would do.
        """
        raise ParameterError(ONE_KERNEL.format(self.layout.family.name))

    def reread(self, frame: Frame) -> Pair:
        """Return this pair with a g for the kernel of another frame, where `strain` allows it."""
        raise ParameterError(ONE_KERNEL.format(self.layout.family.name))

    def energies(self, table: NDArray[np.float64]) -> Callable[[Frame], Energy]:
        """Return sums of squares of answers over space, and of kernel values over pairs of records.

        As functions of the frame by whose kernel the table is read.
        """
        raise ParameterError(
            f"answers of the {self.layout.family.name} family have no integral over space in "
            "closed form: ask for a release of family='spline'"
        )

    @property
    def draws(self) -> int:
        """How many independent draws an answer is the mean of; 0 where nothing is random."""
        return 0

    def read(self, asked: Sequence[Asked]) -> Reading:
        """Return the weights of what is asked along each axis, over 2^bits; see `reading`.

        ParameterError where the family cannot tell.
        """
        raise ParameterError(
            f"the {self.layout.family.name} family answers at points only: shares of regions, "
            "marginals and distribution functions need family='spline', 'fastgauss' or 'fourier'"
        )

    @property
    def knows_the_whole(self) -> bool:
        """Whether its weights on the whole line are exact: each record then counts as one.

        So it has marginals, and knows what a distribution function ends with.
        """
        return False

    def edge_error(self, columns: Sequence[int]) -> tuple[float, NDArray[np.float64]]:
        """Return a typical bias over an answer of some columns; and that at an edge of each.

        The bias of a share is made at the edges of its region, over the whole line it is none: it
        is told in units of the kernel's value there. Zero where the family's error is no bias.
        """
        return 0.0, np.zeros(len(columns))

    def box_bias(
        self, asked: Sequence[Asked], table: NDArray[np.float64], variance: float
    ) -> NDArray[np.float64]:
        """Return what sums over boxes are typically off by, in records, for each row of `asked`.

        For records that are spread out, and for one heap of them, so far as the table shows it: its
        own noise is allowed for, `variance` is that of a cell. Zero where the family's error is no
        bias.
        """
        return np.zeros(rows_of(asked))

    def box_bound(self, asked: Sequence[Asked], table: NDArray[np.float64]) -> Allowance:
        """Return the most that sums over boxes are off by, whatever the records.

        Told by the table itself, with the noise of that; nothing where the family's error is no
        bias.
        """
        return none(rows_of(asked))

    def region_bound(
        self, asked: Sequence[Asked], coefficients: NDArray[np.float64], table: NDArray[np.float64]
    ) -> Allowance:
        """Return the same of the sum of all rows of `asked`, times a coefficient each.

        Two columns are asked about, `At` or `Over`, all others are `WHOLE`. The norm is that of
        what is allowed for alone, without the sum's.
        """
        return none(1)

    def comparison(self, other: Pair, kind: Kind) -> Comparison | None:
        """Return the quadratic form of a distance to a table of another pair; None without one."""
        return None

    @abstractmethod
    def weights(self, queries: Points) -> Weighting:
        """Return the entries of g(y) / 2^bits that are not zero: what noise is multiplied with."""

    @abstractmethod
    def response_norm(self, queries: Points) -> NDArray[np.float64]:
        """Return ‖g(y)‖₂ / 2^bits: the noise at a query is this times the noise of a cell."""

    def respond_on_grid(
        self, axes: Sequence[NDArray[np.float64]], table: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return `respond` at all places of a grid, one axis for each column, all finite.

        None where the family has no quicker way than place by place.
        """
        return None

    def response_norm_on_grid(
        self, axes: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64] | None:
        """Return `response_norm` at all places of a grid; None likewise."""
        return None

    @property
    def survey(self) -> Survey | None:
        """How the table is read at the sites of a lattice; None where it has no such places.

        What has one has a proper density: `dpkde.densities.lattice`.
        """
        return None


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


def grouped(count: int, groups: int, what: str) -> list[slice]:
    """Return the parts of `count` repetitions that a median over groups is taken of."""
    if not 1 <= groups <= count:
        raise ParameterError(f"groups must be from 1 to the {count} {what}, got {groups}")
    edges = [count * j // groups for j in range(groups + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def spread_of_repetitions(
    mean: NDArray[np.float64], square: NDArray[np.float64], count: int, noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the variance of the mean over repetitions beyond that of the noise; NaN for one.

    `mean` and `square` are the mean of what the repetitions say and of its square.
    """
    if count < 2:
        return np.full(len(mean), math.nan)
    spread = np.maximum(square - mean**2, 0.0) / (count - 1)
    return np.asarray(np.maximum(spread - noise, 0.0))


def check_whole(family: Family, name: str, low: int, high: int, shown: str = "") -> None:
    """Check a parameter that is None or a whole number, and keep it as a plain one."""
    value = getattr(family, name)
    if value is None:
        return
    if not is_whole(value) or not low <= value <= high:
        raise ParameterError(
            f"{name} must be a whole number from {low} to {shown or high}, got {value!r}"
        )
    object.__setattr__(family, name, int(value))
