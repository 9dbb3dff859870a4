"""Marginals and conditionals: a table read for some of its columns.

The marginal KDE of some columns is that of the records' values there, with the kernel of those
columns. From a table that knows the whole line (see `dpkde.families.reading`) it is read in closed
form: queries on the columns that are kept, the whole line on all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.families.base import Family, Layout, Outlook, Pair, Prediction, Table, no_repetitions
from dpkde.families.brackets import Allowance
from dpkde.families.reading import WHOLE, Asked, At, Reading
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weighting
from dpkde.release.answers import deviation
from dpkde.release.boxes import boxes_of, check_axes, number_of, shaped
from dpkde.release.parts import NO_PARTS, ColumnTypes, Parts
from dpkde.space.domain import Box, Mask
from dpkde.space.frame import Frame
from dpkde.space.queries import places_of
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.planning.plan import Plan
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

_CHUNK = 4096
_NOT_PUBLISHED = "a marginal is read from a release of all its columns, and not published"


@dataclass(frozen=True, eq=False)
class MarginalLayout(Layout):
    """The table of a layout of more columns, as some of them see it."""

    family: Family
    frame: Frame
    whole: Layout

    def bounds(self, bits: int) -> Bounds:
        """The same table."""
        return self.whole.bounds(bits)

    def predict(self, outlook: Outlook) -> Prediction:
        """Refuse."""
        raise ParameterError(_NOT_PUBLISHED)

    @property
    def nanoseconds(self) -> float:
        """That of the whole."""
        return self.whole.nanoseconds

    def draw(self, bits: int, seed: int) -> Pair:
        """Refuse."""
        raise ParameterError(_NOT_PUBLISHED)

    @property
    def summary(self) -> str:
        """That of the whole, and that it is a part."""
        return f"marginal of {self.whole.summary}"


@dataclass(frozen=True, eq=False)
class MarginalPair(Pair):
    """A pair of more columns, read on the whole line on those that are left out."""

    layout: MarginalLayout
    bits: int
    whole: Pair
    columns: tuple[int, ...]

    def read(self, asked: Sequence[Asked]) -> Reading:
        """Ask on the columns that are kept; the whole line on all others."""
        return self.whole.read(self._of_the_whole(asked))

    def _of_the_whole(self, asked: Sequence[Asked]) -> list[Asked]:
        entries: list[Asked] = [WHOLE] * self.whole.frame.dim
        for column, entry in zip(self.columns, asked, strict=True):
            entries[column] = entry
        return entries

    def box_bias(self, asked: Sequence[Asked], table: Floats, variance: float) -> Floats:
        """That of the whole."""
        return self.whole.box_bias(self._of_the_whole(asked), table, variance)

    def box_bound(self, asked: Sequence[Asked], table: Floats) -> Allowance:
        """That of the whole."""
        return self.whole.box_bound(self._of_the_whole(asked), table)

    def region_bound(
        self, asked: Sequence[Asked], coefficients: Floats, table: Floats
    ) -> Allowance:
        """That of the whole."""
        return self.whole.region_bound(self._of_the_whole(asked), coefficients, table)

    @property
    def knows_the_whole(self) -> bool:
        """As its whole does."""
        return self.whole.knows_the_whole

    def edge_error(self, columns: Sequence[int]) -> tuple[float, Floats]:
        """That of the columns."""
        return self.whole.edge_error([self.columns[column] for column in columns])

    def _reading(self, queries: Points) -> Reading:
        located = self.frame.locate(queries)
        return self.read([At(column) for column in located.T])

    def respond(self, queries: Points, table: Floats, groups: int = 1) -> Points:
        """Return the sums of the kernel of its columns."""
        no_repetitions(f"marginal {self.layout.family.name}", groups)
        return self._reading(queries).values(table)

    def own_variance(self, queries: Points, table: Floats, noise: Floats) -> Floats:
        """Return the square of a typical bias."""
        error = self.edge_error(range(self.frame.dim))[0]
        return np.asarray((error * self.respond(queries, table)) ** 2)

    def weights(self, queries: Points) -> Weighting:
        """Return the weights of the queries."""
        return self._reading(queries).weights()

    def response_norm(self, queries: Points) -> Floats:
        """Return their lengths."""
        return self._reading(queries).norms()

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        """Refuse."""
        raise ParameterError(_NOT_PUBLISHED)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        """Refuse."""
        raise ParameterError(_NOT_PUBLISHED)


def marginal(release: Answering, columns: Any) -> Answering:
    """Return what answers for some columns, by names or numbers, in their order."""
    known, dim = release.columns, release.dim
    try:
        asked = [columns] if isinstance(columns, str) else list(columns)
    except TypeError:
        asked = [columns]
    if columns is None:
        raise ParameterError("a marginal needs one column or more, by names or numbers, got None")
    kept = tuple(number_of(column, dim, known) for column in asked)
    if not kept or len(set(kept)) < len(kept):
        raise ParameterError(f"a marginal needs one column or more, each once, got {columns!r}")
    return release._viewed(_plan(release, kept, "marginals"))


def _plan(release: Answering, kept: tuple[int, ...], what: str) -> Plan:
    """Return the plan by which some columns are read."""
    plan, pair = release.plan, release.plan.pair
    check_axes(plan.frame.kernel)
    if not pair.knows_the_whole:
        raise ParameterError(
            f"a {plan.family.name} table has no {what}: publish with family='spline' or 'fastgauss'"
        )
    frame, halves = plan.frame, plan.domain.halves(plan.dim)
    assert halves is not None  # as such tables are bounded
    origin = frame.domain.origin(frame.dim)
    ends = np.column_stack([origin - halves, origin + halves])[list(kept)]
    smaller = Frame(frame.kernel.along(kept), Box(ends), len(kept))
    layout = MarginalLayout(plan.family, smaller, plan.layout)
    names = None if plan.columns is None else tuple(plan.columns[column] for column in kept)
    known = plan.parts.of(ColumnTypes)
    types = None if known is None else ColumnTypes(tuple(known.types[column] for column in kept))
    return replace(
        plan,
        pair=MarginalPair(layout, pair.bits, pair, kept),
        columns=names,
        considered=(),
        promise=None,
        promised=None,
        parts=NO_PARTS if types is None else Parts([types]),
    )


def conditional(release: Answering, given: Any) -> Conditional:
    """Return what answers for the other columns, where some have given values."""
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(
            "conditional takes a mapping from columns to values, such as {'trip distance': 3}"
        )
    numbers = [number_of(column, release.dim, release.columns) for column in given]
    values = list(given.values())
    if len(set(numbers)) < len(numbers) or len(numbers) >= release.dim:
        raise ParameterError(
            f"give values for some of the {release.dim} columns, each once, and leave at least one"
        )
    for value in values:
        if not is_real(value) or not np.isfinite(value):
            raise SchemaError(f"the values of a condition must be finite numbers, got {value!r}")
    condition = dict(zip(numbers, map(float, values), strict=True))
    rest = tuple(column for column in range(release.dim) if column not in condition)
    return Conditional(release, condition, _plan(release, rest, "conditionals"))


@dataclass(frozen=True, eq=False)
class Conditional:
    """The KDE of some columns, given values of the others; make one by ``release.conditional``.

    Records count by how near they are to the given values v: with k₁ the kernel of the given
    columns and k₂ that of the others,

        kde(y) = Σ k₁(x, v)·k₂(x, y) / Σ k₁(x, v),

    a number from 0 to 1, which divided by ``kernel.integral(dim)`` is a density that integrates to
    one. It is a ratio of two noisy sums: errors are to first order, and where the sum below, see
    `records`, is not many times its standard error, neither answers nor errors mean much. NaN where
    it is not positive.

    Attributes
    ----------
    release
        What it is read from.
    given
        Numbers of columns, and their values.
    plan
        Kernel and domain of the other columns.
    """

    release: Answering
    given: Mapping[int, float]
    plan: Plan

    @property
    def kernel(self) -> Any:
        """That of the columns that are left."""
        return self.plan.frame.kernel

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that are left, if there are any."""
        return self.plan.columns

    @property
    def dim(self) -> int:
        """Number of the columns that are left."""
        return self.plan.frame.dim

    @cached_property
    def _table(self) -> Floats:
        return self.release.table.astype(np.float64)

    @property
    def _rest(self) -> tuple[int, ...]:
        pair = self.plan.pair
        assert isinstance(pair, MarginalPair)
        return pair.columns

    def _reading(self, asked: Sequence[Asked]) -> Reading:
        """Return the reading of the given values, with something of the other columns."""
        frame = self.release.plan.frame
        point = frame.domain.origin(frame.dim).copy()
        point[list(self.given)] = list(self.given.values())
        entries: list[Asked] = [At(place) for place in frame.locate(point[np.newaxis]).T]
        for column, entry in zip(self._rest, asked, strict=True):
            entries[column] = entry
        return self.release.plan.pair.read(entries)

    @cached_property
    def _below(self) -> tuple[Reading, float]:
        """Σ k₁(x, v): its reading and its value, in the table's records."""
        reading = self._reading([WHOLE] * self.dim)
        return reading, float(reading.values(self._table)[0])

    @property
    def records(self) -> float:
        """Σ k₁(x, v): how many records the answers rest on, each counted by how near it is."""
        return self._below[1] / float(self.release.rate)

    @property
    def records_standard_error(self) -> float:
        """What the noise gives to `records`: exact."""
        unit = deviation(self.release, "table") / float(self.release.rate)
        return unit * float(self._below[0].norms()[0])

    def _ratio(self, asked: Sequence[Asked]) -> Floats:
        below = self._below[1]
        if not below > 0:
            return np.full(len(self._reading(asked)), np.nan)
        return self._reading(asked).values(self._table) / below

    def _error(self, asked: Sequence[Asked]) -> Floats:
        """Return √Var(cell)·‖w₁ − p·w₂‖/S₂: what table noise does to S₁/S₂, to first order."""
        (under, below), above = self._below, self._reading(asked)
        if not below > 0:
            return np.full(len(above), np.nan)
        share = np.clip(above.values(self._table) / below, 0.0, 1.0)
        squares = above.norms() ** 2 - 2 * share * above.inner(under)
        squares += share**2 * float(under.norms()[0]) ** 2
        return deviation(self.release, "table") * np.sqrt(np.maximum(squares, 0.0)) / below

    def _points(self, queries: QueriesLike) -> tuple[Points, NDArray[np.bool_]]:
        rows = places_of(queries, self.plan.frame, self.columns)
        return self.plan.frame.locate(rows), np.asarray(~np.isfinite(rows).all(axis=1))

    def _at(self, queries: QueriesLike, function: Any) -> Floats:
        located, strange = self._points(queries)
        chunks = [located[start : start + _CHUNK] for start in range(0, len(located), _CHUNK)]
        parts = [function([At(column) for column in chunk.T]) for chunk in chunks]
        values = np.concatenate([*parts, np.empty(0)])
        values[strange] = np.nan
        return np.asarray(values)

    def kde(self, queries: QueriesLike, *, clip: bool = True) -> Floats:
        """Return the KDE of the other columns at queries, given the values; within [0, 1]."""
        values = self._at(queries, self._ratio)
        return np.clip(values, 0.0, 1.0) if clip else values

    def standard_error(self, queries: QueriesLike) -> Floats:
        """Return the standard deviation that the noise gives to `kde`, to first order."""
        return self._at(queries, self._error)

    def mass(self, boxes: Any, *, clip: bool = True) -> Floats:
        """Return the share in boxes of the other columns, given the values; within [0, 1]."""
        asked = boxes_of(boxes, self.plan.frame, self.columns)
        values = np.where(asked.strange, np.nan, self._ratio(asked.asked(smoothed=True)))
        return shaped(np.clip(values, 0.0, 1.0) if clip else values, asked.shape)

    def mass_standard_error(self, boxes: Any) -> Floats:
        """Return the standard deviation that the noise gives to `mass`, to first order."""
        asked = boxes_of(boxes, self.plan.frame, self.columns)
        values = self._error(asked.asked(smoothed=True))
        return shaped(np.where(asked.strange, np.nan, values), asked.shape)

    def __repr__(self) -> str:
        known = self.release.columns
        named = {number if known is None else known[number]: v for number, v in self.given.items()}
        return (
            f"<Conditional: {self.plan.layout.summary}, given {named}, records≈{self.records:.4g}>"
        )
