"""Sketches on clusters: what a task makes of a partition, and how that becomes one sketch. Secret.

    partition ─► share ─┐
    partition ─► share ─┼─► share ─┐
    partition ─► share ─┘          ├─► Sketch, where the call was made
    …                   …   share ─┘

A **share** is the sums of one or of several partitions, and the *places* that it covers: numbers of
partitions or, where rows are somebody's, of groups of units (`units.travel`). Two shares with a
place in common are never added: whatever an engine does with tasks that fail, run twice or run
anew, a partition that came twice is noticed, and so is a unit whose rows are in two partitions.

**Faults.** What a task raises travels with its message and its traceback through the logs of an
engine, and some engines log the arguments too. So a task of ours never raises: it returns a
`Fault`, which holds our own words or a type's name, and the first of them is raised where the call
was made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpkde import errors
from dpkde.curator.sketch import Sketch, new_id, sketch
from dpkde.errors import DpkdeError, ParameterError, SchemaError, SourceError
from dpkde.families.base import Table
from dpkde.planning.plan import Plan, check_plan
from dpkde.planning.units import with_unit
from dpkde.privacy.amounts import Unit
from dpkde.space.domain import universe_of
from dpkde.tables import Source, open_points
from dpkde.tables.arrays import as_rows, check_columns

TOTALS = 2
"""Cells behind those of the table: how many records contributed, and how many rows there were."""
_TWICE = (
    "the same rows came out of two partitions: the cluster computed the table more than once, and "
    "not alike; make it one that is the same each time, such as files (no rand(), no sample "
    "without a seed)"
)
_STOPPED = (
    "a partition stopped with an error that is no word of dpkde's ({}); it is not shown, since "
    "such errors may quote a cell"
)


@dataclass(frozen=True, eq=False)
class Share:
    """Sums of some partitions: of the table's cells, of records and of rows. Secret.

    Attributes
    ----------
    sums
        Modulo 2⁶⁴, the two totals last.
    places
        Which places they cover: bit k is place k.
    """

    sums: Table
    places: int

    def __repr__(self) -> str:
        return "<Share (secret)>"

    def __sizeof__(self) -> int:
        return int(self.sums.nbytes)


@dataclass(frozen=True)
class Fault:
    """Why there is no share, in words that hold nothing of the data: a type of ours, a message."""

    kind: str
    message: str

    def raised(self) -> DpkdeError:
        """Return what to raise."""
        kind = getattr(errors, self.kind, SourceError)
        return kind(self.message)


def guarded(action: Callable[[], Any]) -> Any:
    """Return what an action of ours on private rows returns, or the fault that ended it."""
    try:
        return action()
    except DpkdeError as error:
        return Fault(type(error).__name__, str(error))
    except (KeyboardInterrupt, SystemExit, GeneratorExit) as error:
        stop = type(error)()
    except BaseException as error:  # some libraries' panics are no `Exception`
        return Fault(SourceError.__name__, _STOPPED.format(type(error).__name__))
    raise stop


def under(plan: Plan, unit: str | None, rows_per_unit: int | None) -> Plan:
    """Return the plan of a sketch that was asked for."""
    return with_unit(check_plan(plan), Unit.declare(unit, rows_per_unit))


def carried(plan: Plan) -> Plan:
    """Return what tasks need of a plan: the same, without what was considered for it."""
    return replace(plan, considered=(), promised=None, pilot=None)


def columns_under(plan: Plan, columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the columns to read: those of the plan or, where it has none, the caller's."""
    check_columns(columns)
    asked = None if columns is None else tuple(str(name) for name in columns)
    if plan.columns is not None and asked not in (None, plan.columns):
        raise ParameterError("already fixed by the plan: columns; leave that out")
    return asked if plan.columns is None else plan.columns


def opened(points: Any, plan: Plan, columns: Sequence[str] | None) -> Source:
    """Return a partition as a source. Other elements of a list than rows and frames are no files.

    A text that a task returns may be a cell, and is never taken for a path.
    """
    if isinstance(points, (str, bytes, os.PathLike)):
        raise SchemaError(
            f"a partition must be rows, an array or a frame, got {type(points).__name__}: read "
            "files in the task"
        )
    rows = iter(points) if isinstance(points, (list, tuple)) else points
    universe = universe_of(plan.frame.domain)
    source = open_points(rows, columns, universe=universe, unit=plan.unit.name)
    if source.dim is not None:
        as_rows(np.empty((0, source.dim)), plan.frame.dim, "points")
    return source


def share_of(points: Any, plan: Plan, columns: Sequence[str] | None, place: int) -> Share | Fault:
    """Return the sums of a partition, which is one place. In one thread: tasks run side by side."""

    def summed() -> Share:
        source = opened(points, plan, columns)
        return as_share(sketch(source, plan, threads=1), 1 << place)

    return guarded(summed)  # type: ignore[no-any-return]


def as_share(sums: Sketch, places: int) -> Share:
    """Return what a sketch sums, without its plan, which is where the call was made."""
    totals = np.array([sums._count, sums._rows], dtype=np.uint64).view(np.int64)
    return Share(np.concatenate([sums._table, totals]), places)


def joined(places: int, more: int) -> int:
    """Return the places of two shares together; SourceError where they have one in common."""
    if places & more:
        raise SourceError(_TWICE)
    return places | more


def added(*shares: Share | Fault) -> Share | Fault:
    """Return the sum of some shares, or the first fault. What is given stays as it is.

    A task that is run anew is given the same again, so nothing may be added up in its place.
    """
    for share in shares:
        if isinstance(share, Fault):
            return share
    return guarded(partial(_sum_of, shares))  # type: ignore[no-any-return]


def _sum_of(shares: Sequence[Any]) -> Share:
    first, *others = shares
    sums, places = first.sums.copy(), first.places
    for share in others:
        places = joined(places, share.places)
        sums += share.sums
    return Share(sums, places)


def whole(shares: Sequence[Share | Fault], plan: Plan) -> Sketch:
    """Return the sketch that all shares together are; raise the first fault.

    It is one sketch with one id, as if the rows had been read here. Under a plan with a unit all
    rows of each are in one place, and `added` has seen to that: so at most ``plan.unit.records`` of
    them are in the sum, as in a merge of parts with disjoint units.
    """
    cells = plan.pair.bounds.cells
    total = added(Share(np.zeros(cells + TOTALS, dtype=np.int64), 0), *shares)
    if isinstance(total, Fault):
        raise total.raised()
    count, rows = total.sums[cells:].view(np.uint64).tolist()
    return Sketch(plan, total.sums[:cells].copy(), count, rows, [new_id()])
