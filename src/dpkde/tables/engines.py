"""Queries that an engine has yet to run: lazy frames of polars and relations of DuckDB.

Only the columns that are read are asked for, and the answer is streamed, never held. A query is run
once for each pass over it: publishing without a plan or a guess of the number of records takes two,
and a query that draws at random gives other rows each time. An engine's error never passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpkde.errors import SchemaError
from dpkde.tables.arrow import Chosen
from dpkde.tables.foreign import of_library, stream
from dpkde.tables.source import Source, chunk_rows

_BATCH = 16
"""Pieces that are asked of an engine at a time."""


def is_relation(points: Any) -> bool:
    """Return whether points are a relation of DuckDB."""
    return _is(points, "duckdb", "DuckDBPyRelation")


def is_lazy(points: Any) -> bool:
    """Return whether points are a lazy frame of polars."""
    return _is(points, "polars", "LazyFrame")


def _is(points: Any, library: str, name: str) -> bool:
    kind = type(points)
    return kind.__name__ == name and str(kind.__module__).partition(".")[0].strip("_") == library


def open_relation(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a relation of DuckDB as a source."""
    what = "this DuckDB query"
    cast = "relation.project('* REPLACE (TRY_CAST({0} AS DOUBLE) AS {0})')"

    def reader(relation: Any, rows: int) -> Any:
        stream_of = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        return stream_of(rows)

    schema = of_library(what, lambda: reader(points.limit(0), 1).schema)
    needed, chosen = Chosen.among(schema, columns, unit, what, cast).first()
    quoted = ['"' + schema.names[place].replace('"', '""') + '"' for place in needed]
    rows = _BATCH * chunk_rows(len(needed))

    def read() -> Iterator[Any]:
        narrow = of_library(what, lambda: points.project(", ".join(quoted)))
        yield from stream(what, of_library(what, lambda: reader(narrow, rows)))

    return chosen.source(read)


def open_lazy(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a lazy frame of polars as a source; its streaming engine runs it."""
    what = "this polars query"
    cast = "frame.with_columns(polars.col({0!r}).cast(polars.Float64, strict=False))"
    if not hasattr(points, "collect_batches"):
        raise SchemaError("lazy frames need a newer polars: update it, or collect the frame")
    empty = of_library(what, lambda: points.collect_schema().to_frame().to_arrow())
    needed, chosen = Chosen.among(empty.schema, columns, unit, what, cast).first()
    names = [empty.schema.names[place] for place in needed]
    rows = _BATCH * chunk_rows(len(needed))

    def read(ordered: bool = True) -> Iterator[Any]:
        def frames() -> Any:
            return points.select(names).collect_batches(
                chunk_size=rows, maintain_order=ordered, lazy=True
            )

        for frame in stream(what, of_library(what, frames)):
            yield from frame.to_arrow().to_batches()

    return chosen.source(read, scattered=lambda: chosen.pieces(read(ordered=False)))
