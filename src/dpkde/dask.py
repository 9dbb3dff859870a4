"""Sketches of Dask collections, partition by partition: ``pip install 'dpkde[dask]'``.

    partitions ─► shares ─► a tree of sums ─► Sketch, here ─► (noise) ─► Release

A collection is a data frame, an array, a bag, or a list of delayed frames or arrays. Whatever
scheduler Dask would use computes it: threads of this process, or a cluster of `distributed`. Rows
stay where they are; a task for each partition returns sums, and sums are added by eights. The plan
is one key of the graph, sent once to each worker that needs it. Under a plan with a unit rows are
shuffled first, so that all of a unit are in one partition: `curator.units.travel`.

The sketch is the one of all rows in one process, bit for bit. See ``docs/clusters.md``.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpkde.curator.partitions import (
    Fault,
    Share,
    added,
    carried,
    columns_under,
    opened,
    share_of,
    under,
    whole,
)
from dpkde.curator.publish import publish as release_of
from dpkde.curator.sketch import Elsewhere, Sketch
from dpkde.curator.units.travel import records_of, schema, share_of_records
from dpkde.errors import ParameterError, SchemaError
from dpkde.planning.plan import Plan, check_plan
from dpkde.privacy.secrecy import sealed
from dpkde.release.release import Release
from dpkde.tables import Source
from dpkde.tables.foreign import of_caller
from dpkde.tables.source import chunk_rows

__all__ = ["publish", "sketch"]

_FAN = 8
"""Shares that a task adds up."""
_WHAT = "this Dask collection"
_NO_COLLECTION = (
    "a Dask collection is needed: a data frame, an array of one or two dimensions, a bag, or a "
    "list of delayed frames or arrays; got {}. What lies in this process goes to dpkde.sketch"
)


@sealed
def sketch(
    collection: Any,
    plan: Plan,
    *,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
) -> Sketch:
    """Return the exact sketch of a Dask collection: that of `dpkde.sketch` for all its rows.

    Parameters
    ----------
    collection
        A ``dask.dataframe``; a ``dask.array`` of shape (n_points, dim); a ``dask.bag`` of rows or
        frames; a delayed frame or array, or a list of those.
    plan
        From `dpkde.plan`; fixed in public beforehand.
    columns
        Which columns of frames, where the plan has no names.
    unit, rows_per_unit
        As for `dpkde.sketch`, where the plan has none.

    Raises
    ------
    SchemaError
        The collection has the wrong columns or types.
    SourceError
        A task of the collection's own failed, or a worker was lost too often. What it said is not
        shown: run the collection without dpkde to see it.

    Guarantee
    ---------
    As for `dpkde.sketch`. A partition counts once, however often it was computed, as long as it
    gives the same rows each time. What leaves the workers is sums, as secret as the rows; under a
    unit also the rows themselves, from worker to worker.

    >>> import dask.array
    >>> import numpy as np
    >>> import dpkde
    >>> points = np.linspace(0, 1, 1000).reshape(500, 2)
    >>> plan = dpkde.plan(kernel=dpkde.Gaussian(0.2), bounds=[(0, 1)] * 2, epsilon=1,
    ...                   expected_rows=500)
    >>> sums = dpkde.dask.sketch(dask.array.from_array(points, chunks=(100, 2)), plan)
    >>> sums == dpkde.sketch(points, plan)
    True
    """
    return _Collection(collection, columns).sketched(under(plan, unit, rows_per_unit))


@sealed
def publish(
    collection: Any, plan: Plan, *, columns: Sequence[str] | None = None, **terms: Any
) -> Release:
    """Return a differentially private release of the density of a Dask collection.

    Parameters
    ----------
    collection, columns
        As for `sketch`.
    plan
        From `dpkde.plan`; also its unit, where all rows of somebody are to be protected.
    **terms
        What `dpkde.publish` takes beside a plan: `epsilon` or `rho`, `ledger`, `extras` and so on.

    Guarantee
    ---------
    As for `dpkde.publish`: the ledger, if any, is debited here, before a task is run; noise is
    drawn here, once, after all are done. A run that fails keeps what was reserved: where a cluster
    may fail, `sketch` first, which spends nothing, and publish the sketch.
    """
    return release_of(_Collection(collection, columns), plan=check_plan(plan), **terms)


def _dask(module: str = "dask") -> Any:
    """Return a module of Dask."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SchemaError(
            "Dask collections need one more package: pip install 'dpkde[dask]'"
        ) from None


@dataclass(frozen=True)
class _Collection(Elsewhere):
    """A collection, and which columns of it."""

    collection: Any
    columns: Sequence[str] | None

    def __repr__(self) -> str:
        return "<Dask collection>"

    @sealed
    def sketched(self, plan: Plan) -> Sketch:
        """Return its sketch: shares of all partitions, and sums of them by eights."""
        delayed = _dask("dask.delayed").delayed
        columns = columns_under(plan, self.columns)
        partitions = _partitions(self.collection, plan, columns)
        name = f"dpkde-plan-{uuid.uuid4().hex}"
        light = delayed(carried(plan), name=name, traverse=False)
        if plan.unit.name is None:
            task = delayed(share_of, pure=False)
            shares = [task(each, light, columns, k) for k, each in enumerate(partitions)]
        else:
            shares = _by_unit(partitions, light, columns)
        add = delayed(added, pure=False)
        while len(shares) > 1:
            shares = [add(*shares[k : k + _FAN]) for k in range(0, len(shares), _FAN)]
        return whole(of_caller(_WHAT, lambda: _dask().compute(*shares)), plan)


def _partitions(collection: Any, plan: Plan, columns: tuple[str, ...] | None) -> list[Any]:
    """Return what each partition holds, delayed; SchemaError for what the schema tells."""
    delayed = _dask("dask.delayed").Delayed
    kind = type(collection)
    if isinstance(collection, delayed):
        return [collection]
    if isinstance(collection, (list, tuple)) and collection:
        if all(isinstance(each, delayed) for each in collection):
            return list(collection)
    elif _dask().is_dask_collection(collection) and hasattr(kind, "to_delayed"):
        if hasattr(kind, "rechunk"):
            opened(_no_rows_of(collection), plan, columns)
            if collection.ndim == 2:
                collection = collection.rechunk({1: -1})
        elif hasattr(collection, "_meta"):
            collection = _narrowed(collection, opened(collection._meta, plan, columns))
        return list(np.ravel(of_caller(_WHAT, collection.to_delayed)))
    raise ParameterError(_NO_COLLECTION.format(kind.__name__))


def _no_rows_of(array: Any) -> Any:
    """Return an array of the type and width of another, without rows."""
    width = [0 if np.isnan(size) else int(size) for size in array.shape[1:]]
    return np.empty((0, *width), dtype=array.dtype)


def _narrowed(frame: Any, source: Source) -> Any:
    """Return a frame of the columns that are read, so that no others are loaded."""
    if source.columns is None or not hasattr(type(frame), "columns"):
        return frame
    needed = {*source.columns, source.unit}
    return frame[[name for name in frame.columns if str(name) in needed]]


def _by_unit(partitions: list[Any], plan: Any, columns: tuple[str, ...] | None) -> list[Any]:
    """Return shares of partitions in which all rows of a unit are together."""
    delayed, frames = _dask("dask.delayed").delayed, _dask("dask.dataframe")
    read = delayed(_travelling, pure=False)
    records = frames.from_delayed(
        [read(each, plan, columns) for each in partitions],
        meta=_frame([]),
        verify_meta=False,
    )
    together = records.shuffle(on="place", npartitions=len(partitions)).to_delayed()
    task = delayed(_arrived, pure=False)
    return [task(each, plan) for each in together]


def _travelling(points: Any, plan: Plan, columns: tuple[str, ...] | None) -> Any:
    """Return the records of a partition as a frame that Dask can shuffle; bytes stay bytes."""
    return _frame(list(records_of(points, plan, columns)))


def _frame(batches: list[Any]) -> Any:
    import pandas
    import pyarrow

    table = pyarrow.Table.from_batches(batches, schema=schema())
    return table.to_pandas(types_mapper={pyarrow.binary(): pandas.ArrowDtype(pyarrow.binary())}.get)


def _arrived(frame: Any, plan: Plan) -> Share | Fault:
    """Return the share of the records that a shuffle has brought to a partition."""

    def batches() -> Iterator[Any]:
        import pyarrow

        table = pyarrow.Table.from_pandas(frame, schema=schema(), preserve_index=False)
        yield from table.to_batches(max_chunksize=chunk_rows(plan.frame.dim))

    return share_of_records(batches(), plan)
