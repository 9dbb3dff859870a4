"""What is paid, and what for: amounts of ε or ρ, who is protected, how far a record moves a sum."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpkde.errors import BudgetError, ParameterError
from dpkde.numerics.numbers import is_whole
from dpkde.privacy.numbers import plain


class Adjacency(StrEnum):
    """Which data sets count as neighbours."""

    ADD_REMOVE = "add-remove"
    """They differ by one record more or less; the number of records is private."""
    REPLACE = "replace"
    """They differ by the values of one record; the number of records is public."""


MOST_RECORDS = 1 << 32
MOST_TEXT = 200
"""Most characters of a name that a statement quotes."""


def is_quotable(text: Any) -> bool:
    """Tell whether a text can stand in a statement: printable, on one line, not long."""
    return isinstance(text, str) and text.isprintable() and 0 < len(text.strip()) <= MOST_TEXT


@dataclass(frozen=True)
class Unit:
    """What neighbours differ by: one record, or all records of somebody, up to so many.

    >>> str(Unit()), str(Unit("patient_id", 8)), str(Unit(records=3))
    ('one record', 'one patient_id with at most 8 records', '3 records')

    Attributes
    ----------
    name
        Whose records belong together, such as a column of the table; None: any records.
    records
        How many of them there are at most.
    """

    name: str | None = None
    records: int = 1

    def __post_init__(self) -> None:
        if self.name is not None and not is_quotable(self.name):
            raise ParameterError(
                f"the name of a unit is up to {MOST_TEXT} printable characters, got {self.name!r}"
            )
        if not is_whole(self.records) or not 1 <= self.records <= MOST_RECORDS:
            raise ParameterError(f"a unit has from 1 to 2^32 records, got {self.records!r}")
        object.__setattr__(self, "records", int(self.records))

    @classmethod
    def declare(cls, unit: str | None, rows_per_unit: int | None) -> Unit:
        """Check what a caller typed: whose rows are protected together, and how many count."""
        if unit is None and rows_per_unit is None:
            return ONE_RECORD
        if unit is None or rows_per_unit is None:
            raise ParameterError(
                "give unit= and rows_per_unit= together: the column that tells whose a row is, and "
                "how many rows of each may count, such as unit='patient_id', rows_per_unit=3"
            )
        if not isinstance(unit, str):
            # Its type and no more: who hands over a column would read whole ids here.
            raise ParameterError(
                "unit must be the name of a column, such as 'patient_id', got "
                f"{type(unit).__name__}"
            )
        if not is_whole(rows_per_unit) or not 1 <= rows_per_unit <= MOST_RECORDS:
            typed = isinstance(rows_per_unit, (int, float, str))
            told = repr(rows_per_unit) if typed else type(rows_per_unit).__name__
            raise ParameterError(
                f"rows_per_unit must be a whole number from 1 to {MOST_RECORDS:,}, got {told}"
            )
        return cls(unit, rows_per_unit)

    @classmethod
    def from_json(cls, entry: Any) -> Unit:
        """Rebuild it from what a file says of it: both fields, and no others."""
        if not isinstance(entry, dict) or set(entry) != {"name", "records"}:
            raise ParameterError("a unit is a name and a number of records")
        return cls(**entry)

    def __str__(self) -> str:
        number = "one record" if self.records == 1 else f"{self.records} records"
        return number if self.name is None else f"one {self.name} with at most {number}"


ONE_RECORD = Unit()


@dataclass(frozen=True)
class Bounds:
    """How far one record can move a table of integers: declared by a family, enforced in code.

    Attributes
    ----------
    cells
        Number of coordinates of the table.
    l1, linf
        Bounds on Σ|q_j| and max|q_j|.
    l2_squared
        Bound on Σq_j²; squared, so that it stays an integer.
    nonnegative
        Whether every q_j ≥ 0. Two such vectors are at most √2 apart in L2, not 2.
    """

    cells: int
    l1: int
    l2_squared: int
    linf: int
    nonnegative: bool

    def __post_init__(self) -> None:
        # Python's own integers: NumPy's would wrap where bounds are multiplied.
        for name in ("cells", "l1", "l2_squared", "linf"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        if self.cells < 1 or min(self.l1, self.l2_squared, self.linf) < 0:
            raise ParameterError("bounds are whole numbers, not below 0, for at least one cell")

    def times(self, records: int) -> Bounds:
        """Return the bounds on what so many records move together, by the triangle inequality."""
        return replace(
            self,
            l1=records * self.l1,
            l2_squared=records**2 * self.l2_squared,
            linf=records * self.linf,
        )

    def under(self, adjacency: Adjacency) -> Bounds:
        """Return the bounds on the difference between neighbouring tables."""
        if adjacency is Adjacency.ADD_REMOVE:
            return self
        return Bounds(
            cells=self.cells,
            l1=2 * self.l1,
            l2_squared=(2 if self.nonnegative else 4) * self.l2_squared,
            # Two vectors in [0, Δ] are Δ apart at most; in [−Δ, Δ] they are 2Δ apart.
            linf=(1 if self.nonnegative else 2) * self.linf,
            nonnegative=False,
        )


@dataclass(frozen=True)
class CountBounds(Bounds):
    """How far somebody's records move their count: neighbours replace 0 to l1 by 0 to l1."""

    def under(self, adjacency: Adjacency) -> Bounds:
        """Return the bounds on the difference of neighbouring counts: the same either way."""
        return self


COUNT = CountBounds(cells=1, l1=1, l2_squared=1, linf=1, nonnegative=True)
"""One record moves the count by one."""


@dataclass(frozen=True)
class Amount:
    """A part of a budget: `epsilon` (pure) or `rho` (zCDP), exactly one of them."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("an amount is either pure epsilon or rho")
        if min(value for value in (self.epsilon, self.rho) if value is not None) <= 0:
            raise BudgetError("nothing is left to spend")

    @property
    def as_rho(self) -> Fraction:
        """What this amount costs in zero-concentrated terms."""
        return self.rho if self.rho is not None else self.epsilon**2 / 2  # type: ignore[operator]

    def part(self, share: Fraction) -> Amount:
        """Return a share of it, exactly."""
        # Neither is ever zero.
        return Amount(self.epsilon and self.epsilon * share, self.rho and self.rho * share)

    def __str__(self) -> str:
        return f"ε = {plain(self.epsilon)}" if self.epsilon else f"ρ = {plain(self.as_rho)} (zCDP)"
