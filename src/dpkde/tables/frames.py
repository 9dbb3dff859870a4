"""Data frames: pandas, polars, Arrow and others, through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.space.moments import NUMBER
from dpkde.tables.arrow import arrow
from dpkde.tables.cells import NUMBERS, numbers_in
from dpkde.tables.labels import (
    NO_LABELS,
    Labels,
    is_label_type,
    labels_in_arrow,
    labels_in_series,
)
from dpkde.tables.meaning import Meaning, meaning_of
from dpkde.tables.source import Source, chunk_rows, columns_and_unit, labelled_slices, slices

_LIBRARIES = ("cudf", "modin", "narwhals", "pandas", "polars", "pyarrow")
_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_KINDS = (*_NUMBERS, "Float32", "Float64", "Boolean")
_GUESSED = ("String", "Object")
_TYPED = ("Date", "Datetime", "Time", "Duration", "Decimal", "Categorical", "Enum", "Unknown")
"""Kinds that Arrow tells the meaning of, where they have one."""
_LABELS = (*_KINDS, *_GUESSED, "Categorical", "Enum", "Decimal")
_CASTS = {
    "pandas": "pandas.to_numeric(frame[{0!r}], errors='coerce')",
    "polars": "frame.with_columns(polars.col({0!r}).cast(polars.Float64, strict=False))",
    "pyarrow": "pandas.to_numeric(table[{0!r}].to_pandas(), errors='coerce')",
}


def is_frame(points: Any) -> bool:
    """Return whether points are a data frame, or a column of one."""
    bases = {str(base.__module__).partition(".")[0] for base in type(points).__mro__}
    return not bases.isdisjoint(_LIBRARIES) and (
        hasattr(type(points), "columns") or hasattr(points, "__array__")
    )


def only_column(points: Any) -> Any:
    """Return the column of a data frame that has one, with its type; all else as it is."""
    if not is_frame(points) or not hasattr(type(points), "columns"):
        return points
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        return points
    frame = nw.from_native(points, eager_only=True)
    return frame[:, 0].to_native() if len(frame.columns) == 1 else points


def check_known(points: Any) -> None:
    """Refuse what has columns and is no data frame known here: it would be read by position."""
    if hasattr(points, "columns") and not isinstance(points, np.ndarray) and not is_frame(points):
        if type(points).__module__.startswith("dpkde."):  # a release in the place of a table
            raise SchemaError(
                f"a {type(points).__name__} of dpkde holds no rows to read: give a table, or an "
                "array with a row for each point"
            )
        raise SchemaError(
            f"{type(points).__name__} has columns, but is no data frame known here: make a pandas, "
            "polars or Arrow one of it, or an array"
        )


def open_frame(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a data frame, or a column of one, as a source.

    The type of a column is schema: what is no number is refused. But pandas guesses types from
    values, and one bad cell makes text or objects of a column: there each cell is read by itself.
    """
    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise SchemaError("data frames need one more package: pip install narwhals") from None
    unreadable = SchemaError(
        f"points of type {type(points).__name__} cannot be read; make a data frame with distinct "
        "column names of them, and collect a lazy one"
    )
    try:
        frame = nw.from_native(points, eager_only=True, allow_series=True)
    except Exception:
        raise unreadable from None
    if isinstance(frame, nw.Series) and unit is not None:
        raise SchemaError(f"a single column has no column {unit!r} beside it: give the whole frame")
    if isinstance(frame, nw.Series):
        # A single column: it is called what the caller says, if anything.
        name = "value" if columns is None else str(columns[0])
        column = open_frame(frame.alias(name).to_frame().to_native(), columns)
        return column if columns else replace(column, columns=None)
    available = [str(name) for name in frame.columns]
    names, places, whose = columns_and_unit(available, columns, unit, "the frame")
    keys = [frame.columns[place] for place in places]
    guesses = frame.implementation.is_pandas_like()
    labels = None if whose is None else frame.get_column(frame.columns[whose])
    if labels is not None and not _has_labels(labels):
        raise SchemaError(NO_LABELS.format(unit, f"the frame is of type {labels.dtype}"))
    meanings: list[Meaning | None] = []
    for name, key in zip(names, keys, strict=True):
        column = frame.get_column(key)
        kind = str(column.dtype)
        meanings.append(None)
        if kind in _KINDS or (guesses and (kind in _GUESSED or _is_categorical(column))):
            continue
        if kind.partition("(")[0] in _TYPED:
            meanings[-1] = meaning_of(_arrow(column[:0]).type)
        # Nulls alone have a type of their own.
        if meanings[-1] is None and not _is_null(column.to_native()):
            cast = _CASTS.get(str(frame.implementation.name).lower(), _CASTS["pandas"])
            raise SchemaError(
                f"column {name!r} of the frame is of type {kind}, not a number; if it holds "
                f"numbers, cast it: {cast.format(name)}"
            )
    rows = partial(_rows, frame, keys, meanings)
    size, step = len(frame), chunk_rows(len(keys))
    types = tuple(NUMBER if meaning is None else meaning.type for meaning in meanings)
    if labels is None:
        read = partial(slices, rows, size, step)
    else:
        read = partial(labelled_slices, rows, partial(_labels, labels), size, step)
    return Source(read, len(names), names, size=size, unit=unit, types=types)


def _has_labels(series: Any) -> bool:
    """Return whether ids may be of the type of a column."""
    return str(series.dtype).partition("(")[0] in _LABELS or _is_null(series.to_native())


def _labels(series: Any, start: int, stop: int) -> Labels:
    return labels_in_series(series[start:stop], _strings)


def _strings(series: Any) -> Labels | None:
    """Return the labels of an Arrow column, or of one of text where Arrow is at hand."""
    text = str(series.dtype) == "String" and not series.implementation.is_pandas_like()
    if not text and not series.implementation.is_pyarrow():
        return None
    try:
        whole = _arrow(series)
    except SchemaError:
        return None
    return labels_in_arrow(whole) if is_label_type(whole.type) else None


def _arrow(series: Any) -> Any:
    """Return a column as one Arrow array."""
    pa = arrow(what=f"columns of type {series.dtype}")
    native = series.to_arrow()
    return native.combine_chunks() if isinstance(native, pa.ChunkedArray) else native


def _is_categorical(series: Any) -> bool:
    """Return whether a column is one of pandas whose values are listed once, of whatever type."""
    return str(getattr(series.to_native(), "dtype", "")) == "category"


def _is_null(native: Any) -> bool:
    """Return whether the type of a column says that it holds nulls alone."""
    kinds = (getattr(native, "type", ""), getattr(native, "dtype", ""))
    return "null" in [str(kind).lower() for kind in kinds]


def _rows(
    frame: Any, keys: Sequence[Any], meanings: Sequence[Meaning | None], start: int, stop: int
) -> NDArray[Any]:
    part = frame[start:stop]
    return np.column_stack(
        [
            _numbers(part.get_column(key)) if meaning is None else _meant(part, key, meaning)
            for key, meaning in zip(keys, meanings, strict=True)
        ]
    )


def _meant(part: Any, key: Any, meaning: Meaning) -> NDArray[np.float64]:
    return meaning.numbers(_arrow(part.get_column(key))).astype(np.float64)


def _numbers(series: Any) -> NDArray[np.float64]:
    """Return a column as float64, nulls as NaN, without a library's error reaching anyone."""
    if _is_categorical(series):  # each category is read as a cell
        native = series.to_native().cat
        values = np.append(numbers_in(native.categories.tolist()), np.nan)
        return np.asarray(values[native.codes.to_numpy()])  # of a missing value the code is −1
    values = series.to_numpy()
    if values.dtype.kind not in NUMBERS:
        return numbers_in(values)
    if not series.null_count():
        return values.astype(np.float64)  # type: ignore[no-any-return]
    missing = series.is_null().to_numpy().astype(bool)
    filled = np.full(len(values), np.nan)
    filled[~missing] = values[~missing].astype(np.float64)
    return filled
