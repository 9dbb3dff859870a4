"""Sketches: exact integer sums of contributions. Secret, mergeable, order-free.

A sketch holds, modulo 2⁶⁴, the sum of every record's integer contribution, the number of records
that contributed, and the number of rows read. Integer sums do not depend on order, batch or
threads, so ``sketch(A) + sketch(B) == sketch(A + B)`` holds bit for bit for every split.

A sketch is as secret as the data: it prints its shape and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from dpkde.curator.units.limit import limited
from dpkde.errors import FormatError, MergeError
from dpkde.families.base import Table
from dpkde.kernels import Points
from dpkde.numerics.pool import mapped
from dpkde.planning.plan import Plan, check_plan, check_switch, describe, opened_plan, protecting
from dpkde.planning.units import limit_under, with_unit
from dpkde.privacy.amounts import ONE_RECORD, Bounds, Unit
from dpkde.privacy.secrecy import sealed
from dpkde.release import container
from dpkde.release.files import Filed, Opened
from dpkde.space.domain import Mask, universe_of
from dpkde.space.frame import Frame
from dpkde.tables import Piece, PointsLike, Source, open_points
from dpkde.tables.arrays import as_rows, silent

WHOLE = Fraction(1)


class Sketch(Filed):
    """Exact sums of contributions under a plan. Make one with `dpkde.sketch`.

    ``a + b`` merges two sketches of the same plan, ``a == b`` compares them bit for bit. Its file
    and its bytes are as secret as the data: for trusted transport only.
    """

    FORMAT = "dpkde-sketch"
    SECRET = True

    __slots__ = ("_count", "_rows", "_table", "plan")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, plan: Plan, table: Table, count: int, rows: int) -> None:
        self.plan = plan
        self._table = table
        self._count = count % (1 << 64)
        self._rows = rows % (1 << 64)

    @classmethod
    def empty(cls, plan: Plan) -> Sketch:
        """Return the sketch of no records: the neutral element of merging."""
        return cls(plan, np.zeros(plan.pair.bounds.cells, dtype=np.int64), 0, 0)

    @sealed
    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.plan.unit != ONE_RECORD:
            raise MergeError(
                f"one {self.plan.unit.name} may have records in both of these sketches: use "
                "dpkde.Sketch.merge(parts), which counts with that, or "
                "dpkde.Sketch.merge(parts, disjoint_units=True) where you know that none has"
            )
        _check_alike(self.plan, other.plan)
        return self._plus(other)

    def _plus(self, other: Sketch) -> Sketch:
        return Sketch(
            self.plan,
            self._table + other._table,
            self._count + other._count,
            self._rows + other._rows,
        )

    @classmethod
    @sealed
    def merge(cls, parts: Iterable[Sketch], *, disjoint_units: bool = False) -> Sketch:
        """Return the sketch of all records of several sketches, made under the same plan.

        Parameters
        ----------
        parts
            At least one sketch.
        disjoint_units
            True: your word that no unit has records in two of the parts, as where each holds other
            patients. The guarantee rests on it, and nothing here can check it. Otherwise a unit may
            have its c records in every one of k parts, and the sum is priced at k·c of them: the
            noise of a release grows k times. Where single records are protected it makes no
            difference.

        Guarantee
        ---------
        The plan of the sum has a unit of as many records as one may have moved it by.
        """
        sketches = list(parts)
        if not sketches or not all(isinstance(part, Sketch) for part in sketches):
            raise MergeError("merge takes at least one sketch, such as [monday, tuesday]")
        check_switch(disjoint_units, "disjoint_units")
        first = sketches[0].plan
        records = [part.plan.unit.records for part in sketches]
        for part in sketches[1:]:  # of sums, units may have more records than in a part
            named = part.plan.unit.name is not None and part.plan.unit.name == first.unit.name
            _check_alike(first, replace(part.plan, unit=first.unit) if named else part.plan)
        total = sketches[0]
        for part in sketches[1:]:
            total = total._plus(part)
        if first.unit == ONE_RECORD:
            return total
        priced = replace(first.unit, records=max(records) if disjoint_units else sum(records))
        return cls(replace(first, unit=priced), total._table, total._count, total._rows)

    def __radd__(self, other: int) -> Sketch:
        """Let `sum` start at 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sketch)
            and self.plan == other.plan
            and self._count == other._count
            and self._rows == other._rows
            and bool(np.array_equal(self._table, other._table))
        )

    def __repr__(self) -> str:
        return (
            f"<Sketch (secret): {describe(self.plan)}, {self.plan.pair.bounds.cells} cells"
            f"{protecting(self.plan)}>"
        )

    @property
    def format_version(self) -> int:
        """The version of its file: its plan's."""
        return self.plan.format_version

    def _described(self) -> container.Contents:
        # Counts go into a tensor: the length of the file must not depend on their digits.
        totals = np.array([self._count, self._rows], dtype=np.uint64).view(np.int64)
        tensors = {**self.plan.tensors, "table": self._table, "totals": totals}
        return {"plan": self.plan.document}, tensors

    @classmethod
    def _rebuilt(cls, opened: Opened) -> Sketch:
        opened.expect(opened.document, {"format", "format_version", "plan"})
        plan = opened_plan(opened)
        table, totals = opened.tensors.pop("table"), opened.tensors.pop("totals")
        if (
            table.shape != (plan.pair.bounds.cells,)
            or totals.shape != (2,)
            or not table.dtype == totals.dtype == np.int64
        ):
            raise FormatError("the sums of this sketch do not fit its plan")
        count, rows = totals.view(np.uint64).tolist()
        return cls(plan, table.copy(), count, rows)


def _check_alike(one: Plan, other: Plan) -> None:
    if one != other:
        raise MergeError(
            "these sketches were made under different plans and cannot be merged: make one "
            "plan, save it, and sketch every part under that file"
        )


@sealed
def sketch(
    points: PointsLike,
    plan: Plan,
    *,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    threads: int | None = None,
) -> Sketch:
    """Return the exact sketch of private points under a plan.

    Parameters
    ----------
    points
        As for `dpkde.publish`: an array of shape (n_points, dim), a data frame, a path, a `CSV`, a
        list of rows or an iterable of arrays. From a named table the plan's columns are taken, if
        it has any.
    plan
        From `dpkde.plan`; fixed in public beforehand.
    unit, rows_per_unit
        As for `dpkde.publish`, where the plan has none: the plan of the sketch has it then.
    threads
        How many threads; by default one per core. The result does not depend on it.

    Guarantee
    ---------
    Adding one record changes the table by that record's own contribution, an integer vector within
    ``plan.pair.bounds``, modulo 2⁶⁴, and the count by at most one. No value in the data raises.
    Under a plan with a unit, adding all the rows of one unit changes both by those of at most
    ``plan.unit.records`` of its own rows, and the choice for no other unit.
    """
    plan = with_unit(check_plan(plan), Unit.declare(unit, rows_per_unit))
    universe = universe_of(plan.frame.domain)
    source = open_points(points, plan.columns, universe=universe, unit=plan.unit.name)
    if limit := limit_under(plan):
        source = limited(source, plan.frame, limit, threads)
    return sketch_source(source, plan, threads)


def sketch_source(
    source: Source, plan: Plan, threads: int | None, rate: Fraction = WHOLE
) -> Sketch:
    """Return the sketch of a source under a plan, or of a part of it.

    With a rate below 1 each record enters by a coin of its own, tossed by the operating system: the
    sum still moves by one contribution where one record is added, and less often.

    A piece is added to whichever table is free: there are never more of them than threads, and
    integer sums do not care which piece went where.
    """
    total = Sketch.empty(plan)
    free: list[Table] = []
    for count, rows in mapped(
        partial(_contribute, plan, free, rate), source.pieces(plan.frame.dim), threads
    ):
        total._count = (total._count + count) % (1 << 64)
        total._rows = (total._rows + rows) % (1 << 64)
    for table in free:
        total._table += table
    return total


class Summed(Protocol):
    """What can be summed over records: a family's pair, or a look that is taken before the plan."""

    @property
    def bounds(self) -> Bounds:
        """How far one record can move the sums."""

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Add every record's contribution to `table` modulo 2⁶⁴."""


class Totals(NamedTuple):
    """How many records contribute, and how many rows there are. Both secret under add-remove."""

    records: int
    rows: int


def count_records(source: Source, frame: Frame, threads: int | None) -> Totals:
    """Return how many records contribute, and how many rows there are."""
    return count_and_look(source, frame, (), threads)[0]


def count_and_look(
    source: Source, frame: Frame, looks: Sequence[Summed], threads: int | None
) -> tuple[Totals, list[Table]]:
    """Return the totals and, taken in the same pass, sums of contributions: secret.

    Guarantee
    ---------
    Adding one record changes each of the sums by its own contribution, within the bounds of that
    look, modulo 2⁶⁴.
    """
    count = rows = 0
    free: list[list[Table]] = [[] for _ in looks]
    for more_count, more_rows in mapped(
        partial(_counted, frame, looks, free), source.pieces(frame.dim), threads
    ):
        count, rows = count + more_count, rows + more_rows
    sums = [np.zeros(look.bounds.cells, dtype=np.int64) for look in looks]
    for total, tables in zip(sums, free, strict=True):
        for table in tables:
            total += table
    return Totals(count, rows), sums


@silent
def _contribute(plan: Plan, free: list[Table], rate: Fraction, piece: Piece) -> tuple[int, int]:
    rows = as_rows(piece.rows(), plan.frame.dim, "points")
    coordinates, counts = plan.frame.place(rows)
    if rate < 1:
        counts &= _tossed(len(rows), rate)
    _add(plan.pair, coordinates, counts, free)
    return int(counts.sum()), len(rows)


def _add(pair: Summed, coordinates: Points, counts: Mask, free: list[Table]) -> None:
    """Add every record's contribution to whichever table is free, or to a new one."""
    try:
        table = free.pop()  # atomic, as is append
    except IndexError:
        table = np.zeros(pair.bounds.cells, dtype=np.int64)
    pair.accumulate(coordinates, counts, table)
    free.append(table)


def _tossed(rows: int, rate: Fraction) -> Mask:
    """Return a coin for each row, true with probability `rate`, a multiple of 2⁻³²."""
    words = np.frombuffer(os.urandom(4 * rows), dtype=np.uint32)
    return np.asarray(words.astype(np.int64) < int(rate * (1 << 32)))


@silent
def _counted(
    frame: Frame, looks: Sequence[Summed], free: list[list[Table]], piece: Piece
) -> tuple[int, int]:
    rows = as_rows(piece.rows(), frame.dim, "points")
    coordinates, counts = frame.place(rows)
    for look, tables in zip(looks, free, strict=True):
        _add(look, coordinates, counts, tables)
    return int(counts.sum()), len(rows)
