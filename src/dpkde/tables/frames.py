"""Data frames: pandas, polars, Arrow and others, through narwhals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables.source import CHUNK_ROWS, Piece, Source, choose_columns


def is_frame(points: Any) -> bool:
    """Tell a data frame from arrays and the rest."""
    return hasattr(type(points), "columns")


def open_frame(points: Any, columns: Sequence[str] | None) -> Source | None:
    """Return a source for a data frame, or None if it is none."""
    if not is_frame(points):
        return None
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise SchemaError("data frames need one more package: pip install narwhals") from None
    frame = nw.from_native(points, eager_only=True, pass_through=True)
    if frame is points:
        raise SchemaError(
            f"points of type {type(points).__name__} cannot be read; collect a lazy frame first"
        )
    wanted, places = choose_columns([str(name) for name in frame.columns], columns, "the frame")
    keys = [frame.columns[place] for place in places]
    for name, key in zip(wanted, keys, strict=True):
        # A pandas column of Python objects is taken cell by cell: whether a column is one, and
        # what it is said to hold, can depend on single values, so it must not raise.
        if str(getattr(frame.get_column(key).to_native(), "dtype", "")) == "object":
            continue
        kind = frame.schema[key]
        if not (kind.is_numeric() or kind == nw.Boolean):
            raise SchemaError(f"column {name!r} of the frame is of type {kind}, not a number")

    def read() -> Iterator[Piece]:
        for start in range(0, len(frame), CHUNK_ROWS):
            size = min(CHUNK_ROWS, len(frame) - start)
            yield Piece(partial(_frame_rows, frame, keys, start), size)

    return Source(read, len(wanted), wanted, size=len(frame))


def _frame_rows(frame: Any, keys: Sequence[Any], start: int) -> NDArray[Any]:
    part = frame[start : start + CHUNK_ROWS]
    return np.column_stack([_numbers(part.get_column(key)) for key in keys])


def _numbers(series: Any) -> NDArray[np.float64]:
    """Return a column as float64, nulls as NaN, without a library's error reaching anyone."""
    values = series.to_numpy()
    if values.dtype.kind == "O":
        return np.array([_cell(value) for value in values], dtype=np.float64)
    if values.dtype.kind in "fiub" and not series.null_count():
        return values.astype(np.float64)  # type: ignore[no-any-return]
    missing = series.is_null().to_numpy().astype(bool)
    filled = np.full(len(values), np.nan)
    filled[~missing] = values[~missing].astype(np.float64)
    return filled


def _cell(value: Any) -> float:
    """Return a Python number as a float, and anything else as NaN."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):
            return np.nan
    return np.nan
