"""What a release of a table would be like: for the curator's eyes only. Not private.

`check` goes the whole road of `dpkde.publish`, with the exact count and no noise at all, and
measures at some queries what the family makes of the data. The noise that a release would have on
top is known from its law. Nothing is spent, nothing is written, and nothing here is for anybody who
may not see the table.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.publish import Errand, publish_open, publish_sketch, publish_source
from dpkde.curator.sketch import Sketch, sketch_source, watched
from dpkde.curator.units.limit import limited
from dpkde.errors import AccuracyError, ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS, MEAN_SIZE, Family, Prediction
from dpkde.kernels import Kernel, Points
from dpkde.nonprivate.census import Census, census
from dpkde.nonprivate.report import told
from dpkde.numerics.numbers import is_whole
from dpkde.numerics.pool import mapped
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.plan import (
    Plan,
    as_families,
    check_capacity,
    check_density,
    check_plan,
    check_room,
    check_rows,
    check_seed,
    check_switch,
    make_frame,
)
from dpkde.planning.promise import promise
from dpkde.planning.split import after_count
from dpkde.planning.units import check_apart, limit_of, limit_under
from dpkde.privacy.amounts import Unit
from dpkde.privacy.budget import Budget, Guarantee, Spend
from dpkde.privacy.laws import randomness
from dpkde.privacy.numbers import Exact
from dpkde.privacy.secrecy import sealed
from dpkde.release.release import Release
from dpkde.release.troubles import Trouble
from dpkde.scale.wish import Ranges, Wish
from dpkde.space.domain import Ball, BoundsLike, Box, as_domain, universe_of
from dpkde.space.frame import Frame
from dpkde.tables import Piece, PointsLike, Source, open_points
from dpkde.tables.arrays import as_rows, check_names, silent

Floats = NDArray[np.float64]

QUERIES = 200
_BLOCK = 1 << 20
_TOLD = ("few-records", "fewer", "at-bounds", "epsilon")
"""Troubles that a table without noise tells as a noisy one would."""


class _Noiseless(Budget):
    """A budget on paper, whose noise is none: what it pays for must not leave this module."""

    def noise(self, spend: Spend, size: int) -> NDArray[np.int64]:
        """Return zeros."""
        return np.zeros(size, dtype=np.int64)


@dataclass(frozen=True)
class Errors:
    """Errors of a KDE value over some queries: root mean squares, but for the last two.

    Attributes
    ----------
    typical
        The mean KDE value.
    own
        What the family itself adds: its bias, or for random families what one seed does. Exact.
    noise, count
        What the noise on table and count adds, by their laws.
    largest_own
        The largest of what the family adds.
    error
        The mean absolute error of all together.
    """

    typical: float
    own: float
    noise: float
    count: float
    largest_own: float
    error: float


@dataclass(frozen=True)
class Check:
    """What becomes of a table, and how near a release of it would be: not private.

    Attributes
    ----------
    rows
        Which rows count, and why others do not.
    plan
        What would be published; None where that would be refused.
    refusal
        Why it would be refused; None where it would not.
    at_records, over_space
        Errors at some of the records that count, and at places spread over the bounds; None where
        there are none.
    prediction
        What `dpkde.plan` predicts for as many records; None where nothing can be predicted.
    moved
        By how much clipping, dropping and leaving out rows moves the KDE at those records: the mean
        absolute difference to that of all rows that are finite.
    troubles
        What a release would tell of its own trouble, noise and all that hangs on it aside.
    """

    rows: Census
    plan: Plan | None
    refusal: str | None
    at_records: Errors | None
    over_space: Errors | None
    prediction: Prediction | None
    moved: float | None
    troubles: tuple[Trouble, ...]

    def __repr__(self) -> str:
        return "<Check (not private): print it to read it>"

    def __str__(self) -> str:
        return told(self)


@sealed
def check(
    points: PointsLike,
    *,
    kernel: Kernel | None = None,
    bounds: BoundsLike | Literal["private"] = None,
    ranges: Ranges | None = None,
    epsilon: Exact | None = None,
    delta: Exact = 0,
    rho: Exact | None = None,
    family: str | Family | None = "auto",
    adjacency: str = "add-remove",
    seed: int | None = None,
    expected_rows: int | None = None,
    typical_density: float | None = None,
    alpha: float | None = None,
    eta: float | None = None,
    simultaneous: bool = False,
    pilot: bool = True,
    plan: Plan | None = None,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    capacity_bits: int = DEFAULT_CAPACITY_BITS,
    sampler: str = "dpkde",
    threads: int | None = None,
    queries: int = QUERIES,
) -> Check:
    """Return what becomes of a table, and how near a release of it would be: **not private**.

    For the curator's eyes only: it tells exact numbers of rows and exact errors. Whoever chooses
    bounds, bandwidth or ε by what it tells has chosen them by the data, and the guarantee does not
    cover that choice: see ``docs/threats.md``. It is for finding slips, such as a decimal comma, a
    delimiter, a unit of measurement. Nothing is spent, drawn as noise, or written.

    Parameters are those of `dpkde.publish`, but for those of extras and of the ledger, and for
    `queries`. Bounds and a bandwidth that are to be found are those that would be found without
    noise.

    Parameters
    ----------
    queries
        At how many records, and at how many places spread over the bounds, errors are measured.
        What takes time is the exact KDE there: O(n·queries·d), in pieces.

    Notes
    -----
    The table is read several times. Points that can be read only once are kept in memory. Under a
    unit, rows are kept in temporary files without a name where they are many, as in publishing.

    Examples
    --------
    >>> import dpkde
    >>> rows = [[0.2, 0.4], [0.9, "n/a"], [0.5], [0.1, 7.0]] * 500
    >>> settings = {"kernel": dpkde.Gaussian(0.3), "bounds": [(0, 1)] * 2, "epsilon": 1}
    >>> found = dpkde.nonprivate.check(rows, **settings)
    >>> found.rows.read, found.rows.not_finite, found.rows.wrong_length, found.rows.counted
    (2000, 500, 500, 1000)
    >>> found.rows.columns[1].above
    500
    """
    if isinstance(points, Sketch):
        raise ParameterError("a sketch has no rows to check: give the table that it was made from")
    if not is_whole(queries) or not 1 <= queries <= 100_000:
        raise ParameterError(f"queries must be a whole number from 1 to 100000, got {queries!r}")
    fixed = None if plan is None else check_plan(plan)
    whose = Unit.declare(unit, rows_per_unit)
    families: tuple[Family, ...]
    if fixed is not None:
        given = {
            "kernel": kernel,
            "bounds": bounds,
            "ranges": ranges,
            "columns": columns,
            "unit": unit,
            "seed": seed,
        }
        if extra := [name for name, value in given.items() if value is not None]:
            raise ParameterError(f"already fixed by the plan: {', '.join(extra)}; leave that out")
        whose = fixed.unit
    guarantee = Guarantee.declare(
        epsilon=epsilon, delta=delta, rho=rho, adjacency=adjacency, unit=whose
    )
    errand = Errand(
        _Noiseless(guarantee, randomness(sampler)),
        check_capacity(capacity_bits),
        check_rows(expected_rows),
        check_density(typical_density),
        threads,
        pilot=check_switch(pilot, "pilot"),
    )
    found: Release | None = None
    if fixed is not None:
        source = open_points(
            points,
            fixed.columns,
            universe=universe_of(fixed.frame.domain),
            unit=fixed.unit.name,
        )
        frame, families = fixed.frame, ()
    else:
        if kernel is None:
            raise ParameterError("kernel is needed, such as kernel=dpkde.Gaussian(bandwidth=0.1)")
        check_names(columns)
        check_apart(whose, columns)
        families = as_families("auto" if family is None else family)
        if (wish := Wish.of(kernel, bounds, ranges, columns)) is not None:
            if promise(alpha, eta, simultaneous) is not None:
                raise ParameterError("alpha and eta go with bounds and a bandwidth in numbers")
            source = open_points(points, columns, unit=whose.name)
            frame = wish.frame(source.dim, source.fallback_dim)
            check_room(wish.standin(frame.dim), source.columns, families)
            seed = secrets.randbits(128) if check_seed(seed) is None else seed
            found = publish_open(watched(source), wish, frame, families, errand, seed)
            frame = found.plan.frame
        else:
            domain = as_domain(bounds, columns)  # type: ignore[arg-type]
            source = open_points(points, columns, universe=universe_of(domain), unit=whose.name)
            frame = make_frame(kernel, domain, source.dim, source.fallback_dim)
            check_room(frame, source.columns, families)
    asked = promise(alpha, eta, simultaneous, frame)
    if fixed is not None:
        asked = asked or fixed.promise
    errand = replace(errand, promise=asked)
    source = _kept(watched(source), frame)
    seed = secrets.randbits(128) if check_seed(seed) is None else seed
    limit = limit_of(whose, seed) if fixed is None else limit_under(fixed)
    rows = census(source, frame, source.columns, limit, threads)
    counting = source if limit is None else limited(source, frame, limit, threads)
    try:
        if found is not None:
            release = found
        elif fixed is None:
            release = publish_source(source, frame, families, errand, seed)
        else:
            release = publish_sketch(sketch_source(counting, fixed, threads), errand)
    except AccuracyError as error:
        return Check(rows, None, str(error), None, None, None, None, ())
    sample = _sampled(counting, frame, queries, seed)
    places = _places(frame, queries, seed)
    whole = source if rows.counted < rows.read or rows.clipped else None
    at_records = over_space = moved = None
    if len(sample):
        at_records, moved = _measured(release, sample, counting, whole, frame, threads)
    if len(places) and rows.counted:
        over_space, _ = _measured(release, places, counting, None, frame, threads)
    return Check(
        rows,
        release.plan,
        None,
        at_records,
        over_space,
        _predicted(release, errand, rows.counted),
        moved,
        tuple(each for each in release.troubles if each.code in _TOLD),
    )


def _kept(source: Source, frame: Frame) -> Source:
    """Return a source that can be read again: in memory, where it could be read only once.

    It says of itself that it cannot, since what is published of it depends on that.
    """
    if not source.once:
        return source

    def held(piece: Piece) -> Piece:
        if piece.labelled is not None:
            both = piece.labelled()
            return Piece(lambda: both[0], piece.size, lambda: both)
        rows = piece.rows()
        return Piece(lambda: rows, piece.size)

    pieces = [held(piece) for piece in source.in_order(frame.dim)]
    return replace(source, read=lambda: iter(pieces), wide=None, scattered=None, members=())


def _sampled(source: Source, frame: Frame, most: int, seed: int | None) -> Points:
    """Return some of the records that count, as they are after clipping, drawn evenly."""
    generator = np.random.default_rng(seed)
    keys, chosen = np.empty(0), np.empty((0, frame.dim))
    for piece in source.in_order(frame.dim):
        records = _records(frame, piece)
        keys = np.concatenate([keys, generator.random(len(records))])
        chosen = np.concatenate([chosen, records])
        if len(keys) > most:
            first = np.argpartition(keys, most)[:most]
            keys, chosen = keys[first], chosen[first]
    return chosen


def _places(frame: Frame, count: int, seed: int | None) -> Points:
    """Return places spread evenly over the domain; none where it has no end."""
    generator = np.random.default_rng(seed)
    if isinstance(frame.domain, Box):
        low, high = frame.domain.corners
        return np.asarray(low + (high - low) * generator.random((count, frame.dim)))
    if isinstance(frame.domain, Ball) or frame.kernel.home == "sphere":
        directions = generator.normal(size=(count, frame.dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        if not isinstance(frame.domain, Ball):
            return np.asarray(directions)
        lengths = frame.domain.radius * generator.random((count, 1)) ** (1 / frame.dim)
        return np.asarray(frame.domain.origin(frame.dim) + directions * lengths)
    return np.empty((0, frame.dim))


@silent
def _records(frame: Frame, piece: Piece) -> Points:
    """Return the records of a piece that count, where they count."""
    rows = as_rows(piece.rows(), frame.dim, "points").astype(np.float64)
    coordinates, counts = frame.place(rows)
    return frame.point_at(coordinates[counts])


@silent
def _finite(frame: Frame, piece: Piece) -> Points:
    """Return all rows of a piece that are finite, where they are."""
    rows = as_rows(piece.rows(), frame.dim, "points").astype(np.float64)
    return rows[np.isfinite(rows).all(axis=1)]


def _measured(
    release: Release,
    queries: Points,
    counting: Source,
    whole: Source | None,
    frame: Frame,
    threads: int | None,
) -> tuple[Errors, float]:
    """Return the errors at queries, and how far the KDE there is from that of all finite rows."""
    exact = _exact(partial(_records, frame), counting, queries, frame, threads)
    moved = 0.0
    if whole is not None and frame.kernel.home == "space":
        table = _exact(partial(_finite, frame), whole, queries, frame, threads)
        moved = float(np.abs(table - exact).mean())
    own = release.kde(queries, clip=False, assisted=False) - exact
    sums = release.kernel_sum_standard_error(queries) / release.count
    spread = release.standard_error(queries, assisted=False)
    count = np.sqrt(np.maximum(spread**2 - sums**2, 0.0))

    def mean_square(values: Floats) -> float:
        return math.sqrt(float((values**2).mean()))

    return (
        Errors(
            float(exact.mean()),
            mean_square(own),
            mean_square(sums),
            mean_square(count),
            float(np.abs(own).max()),
            float(folded(own, spread).mean()),
        ),
        moved,
    )


def folded(bias: Floats, spread: Floats) -> Floats:
    """Return E|b + s·Z|, Z standard normal: s·√(2/π)·e^{−b²/2s²} + b·erf(b/s√2).

    >>> folded(np.array([0.0, 3.0]), np.array([1.0, 0.0])).round(4).tolist()
    [0.7979, 3.0]
    """
    from scipy.special import erf

    with np.errstate(over="ignore"):
        z = np.minimum(np.abs(bias) / np.maximum(spread, 1e-300), 100.0)
    return np.asarray(MEAN_SIZE * spread * np.exp(-(z**2) / 2) + np.abs(bias) * erf(z / 2**0.5))


def _exact(
    records_of: partial[Points], source: Source, queries: Points, frame: Frame, threads: int | None
) -> Floats:
    """Return the exact KDE of the records of a source, read in pieces."""
    step = max(1, _BLOCK // len(queries))

    def summed(piece: Piece) -> tuple[int, Floats]:
        records = records_of(piece)
        total = np.zeros(len(queries))
        for start in range(0, len(records), step):
            total += frame.kernel.evaluate(records[start : start + step], queries).sum(axis=0)
        return len(records), total

    count, sums = 0, np.zeros(len(queries))
    for more, part in mapped(summed, source.pieces(frame.dim), threads):
        count, sums = count + more, sums + part
    return np.asarray(sums / max(count, 1))


def _predicted(release: Release, errand: Errand, counted: int) -> Prediction | None:
    """Return what `dpkde.plan` would predict for this family and so many records."""
    if not counted:
        return None
    settled = Choice((release.plan.layout,), (), Typical())
    paper = errand.budget.on_paper()
    view = replace(errand, budget=paper).outlook(release.plan.frame, counted)
    return settled.rank(after_count(settled, paper, view))[0].prediction
