"""The mechanism of Hall, Rinaldo and Wasserman (2013): noise that is a Gaussian process.

The noise on the answers at y_1 … y_q has the covariance τ²·k(y_i, y_j). It does not grow with the
number of queries: in the kernel's own Hilbert space a record is a vector of length one, whatever it
is asked for.

Here it is done in integers. With K = (k(y_i, y_j)) + jitter·I = L·Lᵀ, a record contributes
w = L⁻¹v, v_i = k(x, y_i), whose length is at most one. Sums of w, rounded to integers, get
independent discrete Gaussian noise; the answers are L times that. Since L extends row by row,
queries may come one after the other, and all of them cost what one costs.

Cost: O(n·q·(d + q) + q³) time and 8·q² bytes. The proof is in ``hrw.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpkde.errors import ParameterError
from dpkde.families.base import about
from dpkde.families.custom import Floats, Limits
from dpkde.kernels import Points
from dpkde.numerics.compiled import exactly
from dpkde.numerics.numbers import is_real
from dpkde.prior.base import (
    Answered,
    Private,
    QueryMechanism,
    Summands,
    concentrated_shares,
    deviation_of,
)
from dpkde.prior.independent import check_left
from dpkde.prior.placed import in_data_units
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.budget import Budget, Spend
from dpkde.privacy.laws import DiscreteGaussian
from dpkde.space.frame import Frame

MOST_QUERIES = 1 << 12
"""Most queries: the factor L has as many entries as their number squared."""
LEAST_JITTER = 1e-10
_SOLVE_SHARE = 32


@dataclass(frozen=True)
class HRW(QueryMechanism):
    """Answers with noise of covariance τ²·k(y_i, y_j), of one size for any number of queries.

    Parameters
    ----------
    jitter
        Added to the diagonal of the kernel matrix, so that it can be inverted: from 1e-10 to 1. It
        raises the variance of the noise by that part, and biases nothing.

    Notes
    -----
    Needs a positive definite kernel with k(x, x) = 1, and δ > 0 or ρ. Error of a KDE value: about
    1/(√(2ρ_t)·n); n ~ √(log q·log(1/δ))/(ε·α) records for q answers within α.

    Guarantee
    ---------
    Each record contributes integers with Σw² ≤ (2^b + room)², which `PlacedPair` enforces, for all
    queries together; the noise is priced for that, doubled in length under replace.
    """

    jitter: float = 2.0**-24
    name: ClassVar[str] = "hrw"

    def __post_init__(self) -> None:
        if not is_real(self.jitter) or not LEAST_JITTER <= self.jitter <= 1:
            raise ParameterError(
                f"jitter must be a number from {LEAST_JITTER:g} to 1, got {self.jitter!r}"
            )

    def answer(self, private: Private, queries: Points, budget: Budget) -> Answered:
        """Return exact sums with noise of one Gaussian process. O(n·q·(d + q) + q³)."""
        distinct = max(len(np.unique(queries, axis=0)), 1)
        return self.session(private, budget, distinct).ask(queries)

    def session(self, private: Private, budget: Budget, most_queries: int) -> HrwSession:
        """Return a session in which the whole budget pays for all queries together."""
        kernel = private.frame.kernel
        if not kernel.is_positive_definite:
            raise ParameterError(
                f"HRW needs a positive definite kernel, and {kernel.name} is not known to be one: "
                "use one with a spectrum, such as dpkde.Gaussian(1.0)"
            )
        if most_queries > MOST_QUERIES:
            raise ParameterError(
                f"HRW with {about(most_queries)} queries would need a matrix of "
                f"{about(8 * most_queries**2)} bytes and {about(most_queries**2 // 2)} operations "
                f"for each record; at most {MOST_QUERIES} queries: dpkde.publish answers any number"
            )
        private.check_work(most_queries + most_queries**2 // _SOLVE_SHARE)
        count, whole = concentrated_shares(private, budget, 1.0, self.name)
        return HrwSession(self.jitter, private, budget, most_queries, count, whole)


class Projections(Summands):
    """f(x) = L⁻¹(k(x, y_1), …, k(x, y_t)): a record in an orthonormal basis of what was asked.

    Places are an array of always the same length, of which the first t count: so each kernel value
    comes out the same, bit for bit, however many queries follow.
    """

    nonnegative = False

    def __init__(self, frame: Frame, places: Points, columns: Floats, used: int) -> None:
        self.frame, self.places, self.columns, self.used = frame, places, columns, used
        self.limits = Limits(used, math.sqrt(used) + 1, 1.0, 1.0)

    def f(self, x: Floats) -> Floats:
        """Return L⁻¹v of one record."""
        record = in_data_units(self.frame, x[np.newaxis])
        values = self.frame.kernel.evaluate(self.places, record)[: self.used, 0].copy()
        solve(self.columns, values)
        return values

    def bounds(self, bits: int) -> Bounds:
        """Return those of ‖w‖₂ ≤ 1, with room for rounding to integers (√q/2) and floats (10⁻⁶)."""
        most = len(self.places)
        length = (1 << bits) + (1 << bits >> 20) + (math.isqrt(most) + 1) // 2 + 2
        l1 = (math.isqrt(most) + 1) * length
        return Bounds(self.used, l1, length**2, length, nonnegative=False)


@dataclass
class HrwSession:
    """Answers with noise of one process, which is drawn further with each new query.

    A query that was asked before gets the answer it got.
    """

    jitter: float
    private: Private
    budget: Budget
    most_queries: int
    count_amount: Amount | None
    whole: Amount
    used: int = 0
    count: int | None = None
    known: dict[bytes, int] = field(default_factory=dict)
    spend: Spend | None = None

    def __post_init__(self) -> None:
        most, dim = self.most_queries, self.private.frame.dim
        self.places = np.zeros((most, dim))
        self.columns = np.zeros((most, most))  # row j is column j of L
        self.coordinates = np.zeros(most)
        everything = Projections(self.private.frame, self.places, self.columns, most)
        self.bits = self.private.lattice(self.whole, DiscreteGaussian, self.budget, everything)
        self.bounds = everything.bounds(self.bits)

    def ask(self, queries: Points) -> Answered:
        """Return answers to these queries."""
        keys = [(query + 0.0).tobytes() for query in queries]  # −0.0 and 0.0 are one place
        new = [key for key in dict.fromkeys(keys) if key not in self.known]
        check_left(self.used, len(new), self.most_queries)
        if new or self.count is None:
            self._extend([np.frombuffer(key) for key in new])
            self.known |= {key: self.used + i for i, key in enumerate(new)}
            self.used += len(new)
        rows = [self.known[key] for key in keys]
        factor = self.columns[: self.used, : self.used].T
        sums = np.array([factor[i, : i + 1] @ self.coordinates[: i + 1] for i in rows])
        lengths = np.array([math.sqrt(float((factor[i] ** 2).sum())) for i in rows])
        noise = 0.0 if self.spend is None else math.sqrt(self.spend.law.variance) / 2**self.bits
        assert self.count is not None
        return Answered(sums, self.count, noise * lengths, deviation_of(self.budget, "count"))

    def _extend(self, new: list[Floats]) -> None:
        """Add rows to L for new queries, and their noisy coordinates. O(n·t²) for t queries."""
        start, end = self.used, self.used + len(new)
        for at, query in enumerate(new, start):
            self._add_row(at, query)
        # Where nothing is asked the first place stands in, for the count alone.
        shown = max(end, 1)
        self.columns[0, 0] = self.columns[0, 0] or 1.0
        placed = Projections(self.private.frame, self.places, self.columns, shown)
        totals = self.private.sums(placed, self.bits)
        if self.count is None:
            self.count = self.private.noisy_count(totals, self.budget, self.count_amount)
        if not new:
            return
        if self.spend is None:  # once: it pays for every query that will ever be asked
            self.spend = self.budget.spend("answers", self.whole, DiscreteGaussian, self.bounds)
        noise = self.budget.noise(self.spend, len(new))
        self.coordinates[start:end] = (totals.sums[start:end] + noise) / 2**self.bits

    def _add_row(self, at: int, query: Floats) -> None:
        """Write row `at` of L: L⁻¹k(Y, y), and the root of what is left of k(y, y) + jitter."""
        kernel = self.private.frame.kernel
        self.places[at] = query
        with np.errstate(all="ignore"):  # queries may be as far apart as floats go
            values = kernel.evaluate(self.places[: at + 1], query[np.newaxis])[:, 0].copy()
        row = values[:at].copy()
        solve(self.columns, row)
        left = float(values[at]) + self.jitter - float(row @ row)
        if not left >= -self.jitter:
            raise ParameterError(
                f"the {self.private.frame.kernel.name} kernel is not positive definite at these "
                "queries, as HRW needs it to be"
            )
        self.columns[:at, at] = row
        # Rounding may leave less than the jitter; only ever more is put on the diagonal.
        self.columns[at, at] = math.sqrt(max(left, self.jitter))


@exactly
def solve(columns: Floats, values: Floats) -> None:
    """Replace `values` v by w = L⁻¹v, where row j of `columns` is column j of L.

    Column by column: every entry has its own chain of operations, in order, so that w_i depends on
    the first i rows of L and entries of v alone, however many follow.
    """
    for j in range(values.size):
        values[j] /= columns[j, j]
        for i in range(j + 1, values.size):
            values[i] -= values[j] * columns[j, i]
