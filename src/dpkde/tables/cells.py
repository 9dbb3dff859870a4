"""Cells of any type as numbers: of frames whose types were guessed, of object arrays, of lists.

A reader that guesses types makes text of a whole column for one bad cell in it. So the type of such
a column tells nothing of what its owner meant, and must not decide whether there is an error: each
cell is read by itself. Numbers are numbers, text is read as in a file (`numbers`), and everything
else is NaN. A cell whose own methods raise is NaN too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.secrecy import no_warnings, unseen

NUMBERS = "fiub"
CELLS = NUMBERS + "OUST"
"""Kinds of arrays: of real numbers, and of cells that are read one by one, text included."""
RAGGED = float(np.array([0x7FF8_0000_0000_0DDE], dtype=np.uint64).view(np.float64)[0])
"""The NaN of a record that has no cells of its own, being of a wrong length or not well-formed.

NaN like any other to all arithmetic. By its bits `dpkde.nonprivate.check` tells the curator why.
"""


def numbers_in(cells: Iterable[Any]) -> NDArray[np.float64]:
    """Return each cell as a number, or NaN."""
    values: list[float] = []
    texts: list[bytes] = []
    places: list[int] = []
    others: list[tuple[int, Any]] = []
    for place, cell in enumerate(cells):
        kind = type(cell)
        if kind is float:
            values.append(cell)
            continue
        values.append(np.nan)
        if kind is str or kind is bytes:
            places.append(place)
            texts.append(cell if kind is bytes else cell.encode("utf-8", "replace"))
        elif cell is not None:
            others.append((place, cell))
    numbers = np.array(values, dtype=np.float64)
    if others:
        with no_warnings():
            for place, cell in others:
                number = unseen(_number, cell)
                numbers[place] = np.nan if number is None else number
    if texts:
        from dpkde.tables.numbers import parse_texts

        numbers[places] = parse_texts(texts)
    return numbers


def _number(cell: Any) -> float:
    """Return a cell that is none of the usual ones; raise whatever its methods do."""
    kind = type(cell)
    if issubclass(kind, (str, bytes)):
        plain = str.__str__(cell) if issubclass(kind, str) else bytes.__getitem__(cell, slice(None))
        return float(numbers_in([plain])[0])
    if issubclass(kind, (Real, Decimal, np.bool_)):
        number = float(cell)
        return number if type(number) is float else float.__float__(number)
    return np.nan


def records_in(
    rows: Sequence[Any], dim: int, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return rows of cells as shape (n, dim): lists, tuples, arrays; a single cell where dim is 1.

    Rows that are mappings are asked for `names`. What is no row, or one of another length, is a
    record without a number.
    """
    plain = bool(rows) and all(
        (type(row) is list or type(row) is tuple)
        and len(row) == dim
        and all(type(cell) is float or type(cell) is int for cell in row)
        for row in rows
    )
    if plain:  # no text, and no methods but Python's own
        with suppress(OverflowError):
            return np.array(rows, dtype=np.float64)
    records = np.full((len(rows), dim), RAGGED)
    for place, row in enumerate(rows):
        cells = unseen(_cells, row, names)
        if cells is not None and len(cells) == dim:
            records[place] = numbers_in(cells)
    return records


def _cells(row: Any, names: Sequence[str] | None) -> list[Any]:
    if isinstance(row, np.ndarray):
        fits = row.ndim < 2 and row.dtype.kind in CELLS
        return np.atleast_1d(row).tolist() if fits else []
    if isinstance(row, Mapping):
        return [row[name] for name in names or ()]
    column = hasattr(type(row), "__array__") and not isinstance(row, np.generic)  # of a frame
    return list(row) if column or isinstance(row, (list, tuple)) else [row]


def is_ragged(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows are those of records of a wrong length, or not well-formed."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.bool_)
    first = np.ascontiguousarray(rows[:, :1]).view(np.uint64)[:, 0]
    return np.asarray(first == np.float64(RAGGED).view(np.uint64))
