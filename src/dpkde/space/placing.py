"""Compiled placing of records: boxes, and bandwidths without a matrix, in one pass.

The same numbers as `Frame.place_plainly`: elementwise IEEE arithmetic, no fast-math. (A zero may
differ in its sign, which rounding to steps forgets.)

A few rows are taken at a time, as one line of numbers, and so are as many copies of the box: a long
loop that knows nothing of columns. Nearly always all those rows contribute; where one has a number
that is not finite, or lies outside and is to be dropped, they are looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly

_LINE = 512
"""Numbers taken at a time, about."""


@exactly
def place(
    rows: NDArray[Any],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    origin: NDArray[np.float64],
    inverse: NDArray[np.float64],
    drop: bool,
    coordinates: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> None:
    """Write (clip(x) − origin)·inverse for each row, and whether the row contributes.

    Rows that do not contribute are written as zeros. Both arrays of rows are contiguous.
    """
    dim = low.size
    several = max(1, _LINE // dim)
    lows, highs = np.empty(several * dim), np.empty(several * dim)
    origins, inverses = np.empty(several * dim), np.empty(several * dim)
    for i in range(several * dim):
        k = i % dim
        lows[i], highs[i], origins[i], inverses[i] = low[k], high[k], origin[k], inverse[k]
    values, placed = rows.reshape(rows.size), coordinates.reshape(rows.size)
    for start in range(0, rows.shape[0], several):
        stop = min(start + several, rows.shape[0])
        line, out = values[start * dim : stop * dim], placed[start * dim : stop * dim]
        strange = outside = 0
        for i in range(line.size):
            value = np.float64(line[i])
            strange += 0 if abs(value) < np.inf else 1
            clipped = lows[i] if value < lows[i] else value
            clipped = highs[i] if clipped > highs[i] else clipped
            outside += 0 if clipped == value else 1
            out[i] = (clipped - origins[i]) * inverses[i]
        if strange == 0 and (outside == 0 or not drop):
            for row in range(start, stop):
                counts[row] = True
            continue
        for row in range(start, stop):
            counts[row] = True
            for k in range(dim):
                value = np.float64(rows[row, k])
                within = low[k] <= value <= high[k]
                if not (abs(value) < np.inf and (within or not drop)):
                    counts[row] = False
            if not counts[row]:
                for k in range(dim):
                    coordinates[row, k] = 0.0
