"""What a query mechanism is, and what it may do with private points.

A curator who knows the queries answers these and no others. `QueryMechanism.answer` gets the
points behind a `Private`, the queries, and a `Budget`; it returns an `Answered`: noisy sums, a
count, and how far noise moves them.

`Private` hands out exact integer sums, in which a record's part is a function of that record alone
and within bounds that are enforced. They are **secret**: a mechanism adds noise bought from the
budget before anything leaves it, and takes no decision from them before that. To add a mechanism,
write a class with a `name` and an `answer`; where its queries may come one by one, a `session` too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.publish import Errand, noisy_count
from dpkde.curator.sketch import Totals, count_records, sketch_source
from dpkde.errors import BudgetError, ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS, about
from dpkde.families.custom import Floats, Limits
from dpkde.kernels import Kernel, Points
from dpkde.planning.plan import Plan, make_frame
from dpkde.planning.split import share
from dpkde.prior.lattice import LATTICE_BITS
from dpkde.prior.placed import (
    Placed,
    PlacedFamily,
    PlacedLayout,
    PlacedPair,
    kernel_values,
)
from dpkde.privacy.amounts import Adjacency, Amount, Bounds
from dpkde.privacy.budget import Budget, Spend
from dpkde.privacy.laws import Law
from dpkde.space.domain import BoundsLike, as_domain, universe_of
from dpkde.space.frame import Frame
from dpkde.tables import PointsLike, Source, open_points

TYPICAL_DENSITY = 0.05
"""A typical KDE value where nobody guesses one, by which the count's share of the budget is set."""
MOST_QUERIES = 1 << 20
MOST_VALUES = 1 << 37
"""Most kernel values that are computed where a public guess of n tells how many there are."""
LATTICE = (8, 22)
"""Fewest and most bits after the binary point."""
_VALUE_NANOSECONDS = 15.0


def check_alone(unit: str | None, rows_per_unit: int | None) -> None:
    """Refuse a unit: nothing here sees to it that somebody has no more records."""
    if unit is not None or rows_per_unit is not None:
        raise ParameterError(
            "the mechanisms of dpkde.prior protect single records: leave out unit= and "
            "rows_per_unit=; dpkde.publish protects all rows of somebody"
        )


class Sums(NamedTuple):
    """Exact integer sums over the records. Secret: never to be shown without noise."""

    sums: NDArray[np.int64]
    records: int
    """How many records count."""
    rows: int
    """How many rows there are: public under replace, and only there."""

    def size(self, adjacency: Adjacency) -> int:
        """Return the number of records: secret under add-remove, public under replace."""
        return self.rows if adjacency is Adjacency.REPLACE else self.records

    def __repr__(self) -> str:
        return f"<Sums (secret): {len(self.sums)} places>"


class Private:
    """Private points behind a door that hands out exact integer sums.

    Attributes
    ----------
    frame
        Kernel, domain and number of columns.
    capacity_bits
        Sums do not wrap up to 2^capacity_bits records.
    expected_rows
        A public guess of the number of records, or None.
    typical_density
        A public guess of a typical KDE value, or None.
    """

    def __init__(
        self,
        source: Source,
        frame: Frame,
        *,
        capacity_bits: int = DEFAULT_CAPACITY_BITS,
        expected_rows: int | None = None,
        typical_density: float | None = None,
        threads: int | None = None,
    ) -> None:
        self.source = source
        self.frame = frame
        self.capacity_bits = capacity_bits
        self.expected_rows = expected_rows
        self.typical_density = typical_density
        self.threads = threads

    @classmethod
    def open(cls, points: PointsLike, kernel: Kernel, bounds: BoundsLike) -> Private:
        """Open whatever a caller has for points; only its schema can raise."""
        domain = as_domain(bounds)
        source = open_points(points, None, universe=universe_of(domain))
        return cls(source, make_frame(kernel, domain, source.dim, source.fallback_dim))

    def __repr__(self) -> str:
        kernel, domain = self.frame.kernel, self.frame.domain
        return f"<Private (secret): {kernel.name}, {domain.kind}, d={self.frame.dim}>"

    def kernel_sums(self, places: Points, bits: int = LATTICE_BITS) -> Sums:
        """Return Σ_x rint(k(x, y_j)·2^bits) at places y_j, one record at a time.

        Guarantee
        ---------
        A record's part is a function of that record alone, with entries from 0 to 2^bits; a record
        whose kernel values cannot be computed has zeros.
        """
        return self.sums(KernelValues(self.frame, places), bits)

    def sums(self, placed: Placed, bits: int) -> Sums:
        """Return Σ_x rint(f(x)·2^bits), the bounds of f enforced on every record."""
        pair = PlacedPair(PlacedLayout(_Fixed(placed), self.frame), bits, {})
        sketch = sketch_source(self.source, Plan(pair, self.capacity_bits, 0), self.threads)
        return Sums(sketch._table, sketch._count, sketch._rows)

    def totals(self) -> Sums:
        """Return the number of records and of rows, with no sums."""
        records, rows = count_records(self.source, self.frame, self.threads)
        return Sums(np.empty(0, dtype=np.int64), records, rows)

    def noisy_count(self, totals: Sums, budget: Budget, amount: Amount | None) -> int:
        """Return the number of rows where it is public; else spend, and return a noisy count."""
        return noisy_count(Totals(totals.records, totals.rows), budget, amount)

    def errand(self, budget: Budget) -> Errand:
        """Return what a release of these points would need, to be paid for by `budget`."""
        guesses = (self.expected_rows, self.typical_density)
        return Errand(budget, self.capacity_bits, *guesses, self.threads)

    def lattice(self, amount: Amount, law: type[Law], budget: Budget, values: Summands) -> int:
        """Return the bits after the binary point: as many as sums and noise leave room for."""
        least, most = LATTICE
        refused: ParameterError | None = None
        for bits in range(min(most, 62 - self.capacity_bits), least - 1, -1):
            moved = charged(values.bounds(bits), budget).under(budget.guarantee.adjacency)
            try:
                law.bought(amount, moved)
            except ParameterError as error:  # the noise would not fit: a coarser lattice
                refused = error
            else:
                return bits
        raise refused or ParameterError(
            f"a capacity of 2^{self.capacity_bits} records does not fit 64-bit sums"
        )

    def check_work(self, values_each: int) -> None:
        """Refuse what would take too long, where a public guess tells the number of records."""
        if self.expected_rows is None or self.expected_rows * values_each <= MOST_VALUES:
            return
        values = self.expected_rows * values_each
        raise ParameterError(
            f"{about(self.expected_rows)} records with {about(values_each)} values each are "
            f"{about(values)} values, about {values * _VALUE_NANOSECONDS * 1e-9 / 3600:.3g} hours: "
            "ask fewer queries, or publish a release (dpkde.publish), which answers any number"
        )


@dataclass(frozen=True)
class Answered:
    """What a mechanism returns: public numbers.

    Attributes
    ----------
    kernel_sums
        Estimates of Σ k(x, y), shape (n_queries,); NaN where the mechanism has no count.
    count
        The number of records: noisy under add-remove. At least 1; None where it is not released.
    deviations
        Standard deviations that noise gives to `kernel_sums`; NaN where they are not known.
    count_deviation
        The same for `count`; 0 where it is public.
    standard_errors
        Of KDE values, where a mechanism knows better than from the two above.
    kde
        KDE values, where they are not `kernel_sums` over `count`.
    """

    kernel_sums: Floats
    count: int | None
    deviations: Floats
    count_deviation: float
    standard_errors: Floats | None = None
    kde: Floats | None = None


class Session(Protocol):
    """Answers to queries that come one after the other, within one budget."""

    def ask(self, queries: Points) -> Answered:
        """Return answers, having paid for them."""


class QueryMechanism(ABC):
    """A mechanism that answers queries which the curator knows."""

    name: ClassVar[str]

    @abstractmethod
    def answer(self, private: Private, queries: Points, budget: Budget) -> Answered:
        """Return answers to all queries at once, shape (n_queries, dim), all of them finite.

        Every number that depends on the points has noise bought from `budget`, before it is drawn.
        """

    def session(self, private: Private, budget: Budget, most_queries: int) -> Session:
        """Return answers to at most so many queries, one after the other."""
        raise ParameterError(
            f"{self.name} answers all queries at once here: use dpkde.prior.answer"
        )


class Summands(Placed):
    """An f whose sums are the answers: it is asked nothing afterwards, and declares its bounds."""

    def factors(self, y: Floats) -> list[Floats]:
        """Not asked: the sums are the answers."""
        raise ParameterError("kernel sums answer the queries they were made for, and no others")

    @abstractmethod
    def bounds(self, bits: int) -> Bounds:
        """Return bounds on what one record contributes on the lattice of 2^−bits."""


class KernelValues(Summands):
    """f(x) = (k(x, y_1), …, k(x, y_q)), each entry in [0, 1]."""

    nonnegative = True

    def __init__(self, frame: Frame, places: Points) -> None:
        self.frame, self.places = frame, places
        count = len(places)
        self.limits = Limits(count, float(count), math.sqrt(count), 1.0)

    def f(self, x: Floats) -> Floats:
        """Return the kernel values of one record."""
        return kernel_values(self.frame, x, self.places)

    def bounds(self, bits: int) -> Bounds:
        """Return them without room for rounding: an entry of at most 1 becomes at most 2^bits."""
        count = len(self.places)
        return Bounds(count, count << bits, count << 2 * bits, 1 << bits, nonnegative=True)


@dataclass(frozen=True)
class _Fixed(PlacedFamily):
    """A family of a single f, for sums that never become a release."""

    placed: Placed
    name: ClassVar[str] = "queries"

    def place_in(self, frame: Frame) -> Placed:
        return self.placed

    def to_json(self) -> dict[str, Any]:
        return {}


def charged(bounds: Bounds, budget: Budget) -> Bounds:
    """Return the bounds that a spend is to be priced for.

    Under replace `Bounds.under` doubles what one record can do. Two vectors with entries from 0 to
    2^b, none of them bound otherwise, are no farther apart than each may be from zero: q·2^b in L1
    and q·4^b in L2². So half of that is declared, and doubled again.
    """
    filled = bounds.cells * bounds.linf
    if budget.guarantee.adjacency is Adjacency.ADD_REMOVE or not bounds.nonnegative:
        return bounds
    half_l1 = min(bounds.l1, -(-filled // 2))
    half_l2 = min(bounds.l2_squared, -(-filled * bounds.linf // 2))
    return Bounds(bounds.cells, half_l1, half_l2, bounds.linf, nonnegative=True)


def pure_shares(
    private: Private, budget: Budget, gain: float, name: str
) -> tuple[Amount | None, Amount]:
    """Return the count's and the answers' part of a pure budget; None where n is public.

    ε_c/ε_t = (p/G)^{2/3}, with G the noise of an answer in units of √2/ε_t, and p a typical KDE
    value, 0.05 where nobody guesses it: that minimises Var s + p²·Var n.
    """
    left = budget.left_pure()
    if left is None:
        raise ParameterError(f"{name} has pure noise: give epsilon, not rho")
    return _shares(budget, left, (_density(private) / gain) ** (2 / 3))


def concentrated_shares(
    private: Private, budget: Budget, gain: float, name: str
) -> tuple[Amount | None, Amount]:
    """Return the same for zCDP: ρ_c/ρ_t = p/G, G the noise of an answer in units of 1/√(2ρ_t)."""
    if budget.guarantee.rho is None and not budget.guarantee.delta:
        raise ParameterError(
            f"{name} has Gaussian noise: give delta > 0 with epsilon, such as delta=1e-6, or rho"
        )
    left = budget.left_concentrated()
    if left is None:
        raise BudgetError("nothing is left to spend")
    return _shares(budget, left, _density(private) / gain)


def _shares(budget: Budget, left: Amount, ratio: float) -> tuple[Amount | None, Amount]:
    if budget.guarantee.adjacency is Adjacency.REPLACE:
        return None, left
    part = share(ratio)
    return left.part(part), left.part(1 - part)


def _density(private: Private) -> float:
    return TYPICAL_DENSITY if private.typical_density is None else private.typical_density


def deviation_of(budget: Budget, purpose: str) -> float:
    """Return the standard deviation of the noise bought for a purpose; 0 where there is none."""
    spends = [s for s in budget.spends if isinstance(s, Spend) and s.purpose == purpose]
    return math.sqrt(sum(spend.law.variance for spend in spends))


def answered_by_kde(values: Floats, count: int | None, budget: Budget) -> Answered:
    """Return KDE values as a mechanism does; how far noise moves them is not known."""
    unknown = np.full(len(values), math.nan)
    sums = unknown if count is None else values * count
    return Answered(sums, count, unknown, deviation_of(budget, "count"), kde=values)
