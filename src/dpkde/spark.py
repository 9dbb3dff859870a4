"""Sketches of Spark frames, partition by partition: ``pip install 'dpkde[spark]'``.

    partitions ─► mapInArrow: shares ─► a merge stage: few shares ─► Sketch, here ─► (noise) ─► …

Rows are read as Arrow batches where they lie, and a task for each partition returns sums. They come
together in two steps: a few tasks add up those of many partitions, and the driver what these
return. The plan is in the code of the stage, which Spark sends to each executor once. Under a plan
with a unit rows are shuffled first, so that all of a unit are in one partition:
`curator.units.travel`.

The sketch is the one of all rows in one process, bit for bit. See ``docs/clusters.md``.

**Shares as rows.** A share crosses a shuffle as rows (merger, part, data): of its sums, pieces of
16 KiB, since Spark makes batches of thousands of rows, whatever is in them; before them the places
that it covers, or a fault in its stead. How many rows there are hangs on the plan alone.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from dpkde.curator.partitions import (
    TOTALS,
    Fault,
    Share,
    carried,
    columns_under,
    guarded,
    joined,
    share_of,
    under,
    whole,
)
from dpkde.curator.publish import publish as release_of
from dpkde.curator.sketch import Elsewhere, Sketch
from dpkde.curator.units.travel import records_of, share_of_records
from dpkde.errors import ParameterError, SchemaError
from dpkde.planning.plan import Plan, check_plan
from dpkde.privacy.secrecy import sealed
from dpkde.release.release import Release
from dpkde.tables import Source
from dpkde.tables.arrow import Chosen, arrow
from dpkde.tables.foreign import of_caller

__all__ = ["publish", "sketch"]

_WHAT = "this Spark frame"
_CAST = "frame.withColumn({0!r}, pyspark.sql.functions.expr('try_cast(`{0}` AS DOUBLE)'))"
"""Other casts raise for a cell that is no number, and quote it (`spark.sql.ansi.enabled`)."""
_MERGERS = 16
_GATHERED = 1 << 28
"""Tasks that merge, and bytes that they return to the driver together, both at most."""
_CELLS = 1 << 11
"""Of the sums in a row."""
_PLACES, _FAULT = -1, -2
"""What else than a piece of the sums a row may hold."""
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Of PySpark, which tell on the driver what a query stumbled over."""
_SHARES = "merger int, part int, data binary"
_RECORDS = "place int, kind tinyint, number bigint, row binary, text binary"
_NO_FRAME = (
    "a Spark frame is needed, got {}; of an RDD make one: rdd.toDF(). What lies in this process "
    "goes to dpkde.sketch"
)


@sealed
def sketch(
    frame: Any,
    plan: Plan,
    *,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
) -> Sketch:
    """Return the exact sketch of a Spark frame: that of `dpkde.sketch` for all its rows.

    Parameters
    ----------
    frame
        A ``pyspark.sql.DataFrame``. What is read of it has to be of numeric types, dates or
        timestamps among them.
    plan
        From `dpkde.plan`; fixed in public beforehand.
    columns
        Which columns, where the plan has no names.
    unit, rows_per_unit
        As for `dpkde.sketch`, where the plan has none.

    Raises
    ------
    SchemaError
        A column is missing, or of another type; the message has the cast to write.
    SourceError
        The frame's own query failed, or executors were lost too often. What Spark said is not
        shown: run the frame without dpkde to see it.

    Guarantee
    ---------
    As for `dpkde.sketch`. A partition counts once, however often it was computed, as long as it
    gives the same rows each time. What leaves the executors is sums, as secret as the rows; under
    a unit also the rows themselves, from executor to executor.
    """
    return _Frame(frame, columns).sketched(under(plan, unit, rows_per_unit))


@sealed
def publish(
    frame: Any, plan: Plan, *, columns: Sequence[str] | None = None, **terms: Any
) -> Release:
    """Return a differentially private release of the density of a Spark frame.

    Parameters
    ----------
    frame, columns
        As for `sketch`.
    plan
        From `dpkde.plan`; also its unit, where all rows of somebody are to be protected.
    **terms
        What `dpkde.publish` takes beside a plan: `epsilon` or `rho`, `ledger`, `extras` and so on.

    Guarantee
    ---------
    As for `dpkde.publish`: the ledger, if any, is debited on the driver, before a task is run;
    noise is drawn there, once, after all are done. A run that fails keeps what was reserved: where
    a cluster may fail, `sketch` first, which spends nothing, and publish the sketch.
    """
    return release_of(_Frame(frame, columns), plan=check_plan(plan), **terms)


def _spark(module: str) -> Any:
    """Return a module of PySpark."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SchemaError(
            "Spark frames need one more package: pip install 'dpkde[spark]'"
        ) from None


@dataclass(frozen=True)
class _Frame(Elsewhere):
    """A frame, and which columns of it."""

    frame: Any
    columns: Sequence[str] | None

    def __repr__(self) -> str:
        return "<Spark frame>"

    @sealed
    def sketched(self, plan: Plan) -> Sketch:
        """Return its sketch: shares of all partitions, and sums of many of them."""
        frame = self.frame
        if not isinstance(frame, _spark("pyspark.sql").DataFrame):
            raise ParameterError(_NO_FRAME.format(type(frame).__name__))
        if frame.isStreaming:
            raise ParameterError("a stream has no end: sketch what it has written")
        columns = columns_under(plan, self.columns)
        fields = of_caller(_WHAT, lambda: frame.schema.fields)
        read = _Read.of(fields, columns, plan)
        cells = plan.pair.bounds.cells + TOTALS
        light = carried(plan)
        mergers = max(min(_MERGERS, _GATHERED // (8 * cells)), 1)

        def run() -> list[Any]:
            narrow = frame.select(*(f"`{name.replace('`', '``')}`" for name in read.schema.names))
            if plan.unit.name is None:
                shares = narrow.mapInArrow(partial(_shared, light, read, mergers), _SHARES)
            else:
                records = narrow.mapInArrow(partial(_travelling, light, read), _RECORDS)
                together = records.repartition("place")
                shares = together.mapInArrow(partial(_arrived, light, mergers), _SHARES)
            gathered = _by_merger(shares, mergers)
            return list(gathered.mapInArrow(partial(_merged, cells), _SHARES).collect())

        with _muted():
            rows = of_caller(_WHAT, run)
        pieces = ((int(row["part"]), bytes(row["data"])) for row in rows)
        return whole([guarded(partial(_of_rows, pieces, cells))], plan)


def _by_merger(shares: Any, mergers: int) -> Any:
    """Return shares by who adds them up; where Spark adapts, by fewer if there is little to add."""
    if shares.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
        return shares.repartition("merger")
    return shares.repartition(mergers, "merger")


@dataclass(frozen=True)
class _Read:
    """What is read of a frame: the Arrow schema of some columns, and which of them in which order.

    It goes to executors, where batches of that schema arrive.
    """

    schema: Any
    columns: tuple[str, ...]
    unit: str | None

    @classmethod
    def of(cls, fields: Sequence[Any], columns: Sequence[str] | None, plan: Plan) -> Self:
        """Return what a sketch under a plan takes; SchemaError where that cannot be."""
        pa, dim = arrow(what="Spark frames"), plan.frame.dim
        whole_schema = pa.schema([(field.name, _arrow_type(field)) for field in fields])
        chosen = Chosen.among(whole_schema, columns, plan.unit.name, _WHAT, _CAST)
        if len(chosen.names) != dim:
            raise SchemaError(f"points must have {dim} column(s), got {len(chosen.names)}")
        needed = [whole_schema.field(place) for place in chosen.first()[0]]
        return cls(pa.schema(needed), chosen.names, plan.unit.name)

    def source(self, batches: Iterable[Any]) -> Source:
        """Return the batches of a partition as a source."""
        chosen = Chosen.among(self.schema, self.columns, self.unit, _WHAT, _CAST)
        return chosen.source(lambda: batches, once=True)


def _arrow_type(field: Any) -> Any:
    """Return the Arrow type of a column; a list, which is no number, where there is none."""
    pa = arrow()
    try:
        return _spark("pyspark.sql.pandas.types").to_arrow_type(field.dataType, timezone="UTC")
    except Exception:  # of PySpark's own, and different from one version to the next
        return pa.list_(pa.null())


@contextmanager
def _muted() -> Iterator[None]:
    """Keep PySpark from logging, in this thread, the errors of queries: some quote a cell."""
    own = threading.get_ident()

    def passes(record: logging.LogRecord) -> bool:
        return record.thread != own

    loggers = [_spark("pyspark.logger").PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(passes)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(passes)


# What executors run. No value, and no error, ever raises here: it returns a fault.


def _shared(plan: Plan, read: _Read, mergers: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the share of a partition."""
    number = _partition()
    share = share_of(read.source(batches), plan, None, number)
    yield from _rows_of(share, number % mergers)


def _travelling(plan: Plan, read: _Read, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the records of a partition, for a shuffle."""
    yield from records_of(read.source(batches), plan, None)


def _arrived(plan: Plan, mergers: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the share of the records that a shuffle has brought to a partition."""
    yield from _rows_of(share_of_records(batches, plan), _partition() % mergers)


def _merged(cells: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the sum of shares, if there are any."""
    some = False

    def pieces() -> Iterator[tuple[int, bytes]]:
        nonlocal some
        for batch in batches:
            some = True
            columns = (batch.column(name).to_pylist() for name in ("part", "data"))
            yield from zip(*columns, strict=True)

    total = guarded(lambda: _of_rows(pieces(), cells))
    if some or isinstance(total, Fault):
        yield from _rows_of(total, 0)


def _partition() -> int:
    return int(_spark("pyspark").TaskContext.get().partitionId())


def _rows_of(share: Share | Fault, merger: int) -> Iterator[Any]:
    """Yield a share, or a fault, as batches of rows."""
    pa = arrow()
    schema = pa.schema([("merger", pa.int32()), ("part", pa.int32()), ("data", pa.binary())])

    def batch(part: int, data: bytes) -> Any:
        columns = [
            pa.array([cell], kind)
            for cell, kind in zip((merger, part, data), schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    if isinstance(share, Fault):
        yield batch(_FAULT, f"{share.kind}\n{share.message}".encode())
        return
    yield batch(_PLACES, share.places.to_bytes(-(-share.places.bit_length() // 8), "big"))
    for part, start in enumerate(range(0, len(share.sums), _CELLS)):
        yield batch(part, share.sums[start : start + _CELLS].tobytes())


def _of_rows(pieces: Iterable[tuple[int, bytes]], cells: int) -> Share | Fault:
    """Return the sum of shares that come as rows; the first fault, if there is one."""
    sums, places = np.zeros(cells, dtype=np.int64), 0
    for part, data in pieces:
        if part == _FAULT:
            return Fault(*data.decode().split("\n", 1))
        if part == _PLACES:
            places = joined(places, int.from_bytes(data, "big"))
        else:
            sums[part * _CELLS : (part + 1) * _CELLS] += np.frombuffer(data, dtype=np.int64)
    return Share(sums, places)
