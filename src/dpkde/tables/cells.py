"""Cells of any type as numbers: of frames whose types were guessed, of object arrays, of lists.

A reader that guesses types makes text of a whole column for one bad cell in it. So the type of such
a column tells nothing of what its owner meant, and must not decide whether there is an error: each
cell is read by itself. Numbers are numbers, text is read as in a file (`numbers`), and everything
else is NaN. A cell whose own methods raise is NaN too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.secrecy import unseen

NUMBERS = "fiub"
CELLS = NUMBERS + "OUST"
"""Kinds of arrays: of real numbers, and of cells that are read one by one, text included."""


def numbers_in(cells: Iterable[Any]) -> NDArray[np.float64]:
    """Return each cell as a number, or NaN."""
    values: list[float] = []
    texts: list[bytes] = []
    places: list[int] = []
    for place, cell in enumerate(cells):
        kind = type(cell)
        if kind is str or kind is bytes:
            places.append(place)
            texts.append(cell if kind is bytes else cell.encode("utf-8", "replace"))
            values.append(np.nan)
        elif kind is float:
            values.append(cell)
        else:
            number = unseen(_number, cell)
            values.append(np.nan if number is None else number)
    found = np.array(values, dtype=np.float64)
    if texts:
        from dpkde.tables.numbers import parse_texts

        found[places] = parse_texts(texts)
    return found


def _number(cell: Any) -> float:
    """Return a cell that is none of the usual ones; raise whatever its methods do."""
    kind = type(cell)
    if issubclass(kind, str):
        return float(numbers_in([str.__str__(cell)])[0])
    if issubclass(kind, (Real, Decimal, np.bool_)):
        number = float(cell)
        return number if type(number) is float else float.__float__(number)
    return np.nan


def records_in(rows: Sequence[Any], dim: int) -> NDArray[np.float64]:
    """Return rows of cells as shape (n, dim): lists, tuples, arrays; a single cell where dim is 1.

    What is no row, or one of another length, is a record without a number.
    """
    if all(type(row) in (list, tuple) and len(row) == dim for row in rows):
        kinds = {type(cell) for row in rows for cell in row}
        if rows and kinds <= {float, int, bool}:  # no text, and no methods but Python's own
            with suppress(OverflowError):
                return np.array(rows, dtype=np.float64)
    found = np.full((len(rows), dim), np.nan)
    for place, row in enumerate(rows):
        cells = unseen(_cells, row)
        if cells is not None and len(cells) == dim:
            found[place] = numbers_in(cells)
    return found


def _cells(row: Any) -> list[Any]:
    if isinstance(row, np.ndarray):
        fits = row.ndim < 2 and row.dtype.kind in CELLS
        return np.atleast_1d(row).tolist() if fits else []
    if isinstance(row, (list, tuple)):
        return list(row)
    return [row]
