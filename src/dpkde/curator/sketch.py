"""Sketches: exact integer sums of contributions. Secret, mergeable, order-free.

A sketch holds, modulo 2⁶⁴, the sum of every record's integer contribution, the number of records
that contributed, and the number of rows read. Integer sums do not depend on order, batch or
threads, so ``sketch(A) + sketch(B) == sketch(A + B)`` holds bit for bit for every split.

A sketch is as secret as the data: it prints its shape and nothing else.

Each call of `dpkde.sketch` draws an **id** of 16 bytes from the operating system, whatever the
points are. Merging unites the ids, and refuses what has one in common: a part that came twice
would count twice. Ids tell nothing else. They are no part of ``==``, stay in sketches and their
files, and never reach a release. What `Sketch.empty` returns has none: it adds nothing, however
often it is merged. (A table without rows has one, like any other table: whether it has any is
private.) Files from before there were ids have none either, and nobody notices where such a one
comes twice.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpkde.curator.checkpoint import NO_FILE, Sums, kept
from dpkde.curator.units.limit import limited
from dpkde.errors import FormatError, MergeError, ParameterError
from dpkde.families.base import Table
from dpkde.kernels import Points
from dpkde.numerics.pool import mapped
from dpkde.planning.differences import differences
from dpkde.planning.plan import Plan, check_plan, check_switch, describe, opened_plan, protecting
from dpkde.planning.units import limit_under, with_unit
from dpkde.privacy.amounts import ONE_RECORD, Bounds, Unit
from dpkde.privacy.secrecy import sealed
from dpkde.release import container
from dpkde.release.files import SECRECY, Filed, Opened
from dpkde.release.parts import Parts, SketchIds, parts_from_json
from dpkde.release.progress import is_reporting, reporting
from dpkde.space.domain import Mask, universe_of
from dpkde.space.frame import Frame
from dpkde.tables import CSV, Piece, PointsLike, Source, open_points
from dpkde.tables.arrays import as_rows, silent
from dpkde.tables.places import is_place
from dpkde.tables.source import reported

WHOLE = Fraction(1)


class Sketch(Filed):
    """Exact sums of contributions under a plan. Make one with `dpkde.sketch`.

    ``a + b`` merges two sketches of the same plan, ``a == b`` compares them bit for bit. A sketch
    that is merged with itself, or with a sum that it is in, raises. Its file and its bytes are as
    secret as the data: for trusted transport only. Their size tells how many sketches were merged,
    and nothing of the points.
    """

    FORMAT = "dpkde-sketch"
    SECRET = True

    __slots__ = ("_count", "_ids", "_rows", "_table", "plan")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, plan: Plan, table: Table, count: int, rows: int, ids: Iterable[str] = ()
    ) -> None:
        self.plan = plan
        self._ids = frozenset(ids)
        self._table = table
        self._count = count % (1 << 64)
        self._rows = rows % (1 << 64)

    @classmethod
    def empty(cls, plan: Plan) -> Sketch:
        """Return the sketch of no records: the neutral element of merging, any number of times."""
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
        return Sketch.merge([self, other])

    def _plus(self, other: Sketch) -> Sketch:
        return Sketch(
            self.plan,
            self._table + other._table,
            self._count + other._count,
            self._rows + other._rows,
            self._ids | other._ids,
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
        named = ((f"sketch {number}", part) for number, part in enumerate(parts, 1))
        return cls.merge_named(named, disjoint_units=disjoint_units)

    @classmethod
    @sealed
    def merge_named(
        cls, parts: Iterable[tuple[str, Sketch]], *, disjoint_units: bool = False
    ) -> Sketch:
        """Return what `merge` does, from parts with names, read one at a time.

        All that cannot be merged is named in one MergeError: parts that are there twice, and parts
        of another plan with what differs.
        """
        check_switch(disjoint_units, "disjoint_units")
        faults: list[str] = []
        holder: dict[str, str] = {}
        records: list[int] = []
        total, first, apart = None, "", False
        for name, part in parts:
            if not isinstance(part, Sketch):
                raise MergeError(_NO_SKETCHES)
            if total is not None and (told := _difference(total.plan, part.plan)):
                faults.append(f"{first} and {name} were made under different plans: {told}")
                apart = True
                continue
            twice = dict.fromkeys(holder[each] for each in sorted(part._ids) if each in holder)
            if twice:
                faults.append(f"{name} has a part in it that is in {' and '.join(twice)} as well")
            holder.update(dict.fromkeys(part._ids - set(holder), name))
            records.append(part.plan.unit.records)
            if total is None:
                total, first = part, name
            elif not faults:
                total = total._plus(part)
        if total is None:
            raise MergeError(_NO_SKETCHES)
        if faults:
            advice = _ONE_PLAN if apart else ""
            raise MergeError(f"these sketches cannot be merged: {'; '.join(faults)}{advice}")
        unit = total.plan.unit
        if unit == ONE_RECORD:
            return total
        priced = replace(unit, records=max(records) if disjoint_units else sum(records))
        plan = replace(total.plan, unit=priced)
        return cls(plan, total._table, total._count, total._rows, total._ids)

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
        document: dict[str, Any] = {"plan": self.plan.document}
        if self._ids:  # in the document alone: readers of version 1 refuse tensors, and no fields
            document["secret"] = SECRECY
            document["parts"] = Parts([SketchIds(tuple(sorted(self._ids)))]).to_json()
        return document, tensors

    @classmethod
    def _rebuilt(cls, opened: Opened) -> Sketch:
        known = {"format", "format_version", "plan", "secret", "parts"}
        opened.expect(opened.document, known)
        plan = opened_plan(opened)
        ids = parts_from_json(opened.document.get("parts", {}), opened.tensors).of(SketchIds)
        table, totals = opened.tensors.pop("table"), opened.tensors.pop("totals")
        if (
            table.shape != (plan.pair.bounds.cells,)
            or totals.shape != (2,)
            or not table.dtype == totals.dtype == np.int64
        ):
            raise FormatError("the sums of this sketch do not fit its plan")
        count, rows = totals.view(np.uint64).tolist()
        return cls(plan, table.copy(), count, rows, () if ids is None else ids.ids)


def new_id() -> str:
    """Return the id of a sketch that is about to be made: 16 bytes of the operating system's."""
    return secrets.token_hex(16)


_NO_SKETCHES = "merge takes at least one sketch, such as [monday, tuesday]"
_ONE_PLAN = "; make one plan, save it, and sketch every part under that file"


def _difference(one: Plan, other: Plan) -> str:
    """Return what differs between the plans of two parts; of sums, units may have more records."""
    named = other.unit.name is not None and other.unit.name == one.unit.name
    return differences(one, replace(other, unit=one.unit) if named else other)


@sealed
def sketch(
    points: PointsLike,
    plan: Plan,
    *,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
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
    checkpoint
        The name of a file. How far it has come is kept there every minute, and the next call with
        the same arguments goes on from there, to the same bits. For points that are files: a path,
        a `CSV` with a path, or a list of those; and without units. The file holds exact sums, is as
        secret as the data, and is deleted before this returns.

    Raises
    ------
    SchemaError
        A table has the wrong columns; or a file is not what it was when its checkpoint was begun.
    ParameterError
        The checkpoint is of something else, or another process is at it.

    Guarantee
    ---------
    Adding one record changes the table by that record's own contribution, an integer vector within
    ``plan.pair.bounds``, modulo 2⁶⁴, and the count by at most one. No value in the data raises.
    Under a plan with a unit, adding all the rows of one unit changes both by those of at most
    ``plan.unit.records`` of its own rows, and the choice for no other unit.
    """
    plan = with_unit(check_plan(plan), Unit.declare(unit, rows_per_unit))
    if isinstance(points, Elsewhere) and checkpoint is None:
        return points.sketched(plan)
    if checkpoint is not None:
        if not is_place(points) and not isinstance(points, (CSV, Source, list, tuple)):
            raise ParameterError(NO_FILE)
        files = watched(open_points(points, plan.columns, unit=plan.unit.name))
        with resumed(files, plan, checkpoint, threads) as whole:
            return whole
    universe = universe_of(plan.frame.domain)
    source = watched(open_points(points, plan.columns, universe=universe, unit=plan.unit.name))
    if limit := limit_under(plan):
        source = limited(source, plan.frame, limit, threads)
    made = sketch_source(source, plan, threads)
    made._ids = frozenset([new_id()])
    return made


class Elsewhere(ABC):
    """Points that lie on a cluster, and are sketched there: see `partitions`."""

    @abstractmethod
    def sketched(self, plan: Plan) -> Sketch:
        """Return the exact sketch of them under a plan."""


def watched(source: Source) -> Source:
    """Return a source that tells whoever asked by `dpkde.progress` how far it is read."""
    return reported(source, reporting()) if is_reporting() else source


@contextmanager
def resumed(
    source: Source, plan: Plan, checkpoint: str | os.PathLike[str], threads: int | None = None
) -> Iterator[Sketch]:
    """Yield the sketch of a source that reads files, with a checkpoint as in `sketch`.

    It is deleted when the block inside ends, which may save the sketch; and kept where that raises.
    """

    def summed(pieces: Iterable[Piece]) -> Sums:
        more = _sketch_pieces(plan, threads, pieces)
        return Sums(more._table, more._count, more._rows)

    with kept(checkpoint, source, plan, new_id(), summed) as (sums, own_id):
        yield Sketch(plan, sums.table, sums.count, sums.rows, [own_id])


def sketch_source(
    source: Source, plan: Plan, threads: int | None, rate: Fraction = WHOLE
) -> Sketch:
    """Return the sketch of a source under a plan, or of a part of it.

    With a rate below 1 each record enters by a coin of its own, tossed by the operating system: the
    sum still moves by one contribution where one record is added, and less often.

    A piece is added to whichever table is free: there are never more of them than threads, and
    integer sums do not care which piece went where.
    """
    return _sketch_pieces(plan, threads, source.pieces(plan.frame.dim), rate)


def _sketch_pieces(
    plan: Plan, threads: int | None, pieces: Iterable[Piece], rate: Fraction = WHOLE
) -> Sketch:
    """Return the sketch of a few pieces, all of them summed when this returns."""
    total = Sketch.empty(plan)
    free: list[Table] = []
    for count, rows in mapped(partial(_contribute, plan, free, rate), pieces, threads):
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
