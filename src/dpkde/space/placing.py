"""Compiled placing of records: boxes, and bandwidths without a matrix, in one pass.

The same numbers as `Frame.place_plainly`: elementwise IEEE arithmetic, no fast-math. (A zero may
differ in its sign, which rounding to steps forgets.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly


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

    Rows that do not contribute are written as zeros.
    """
    for i in range(rows.shape[0]):
        row, out = rows[i], coordinates[i]
        strange = outside = 0
        for k in range(row.size):
            value = np.float64(row[k])
            strange += 0 if abs(value) < np.inf else 1
            clipped = low[k] if value < low[k] else value
            clipped = high[k] if clipped > high[k] else clipped
            outside += 0 if clipped == value else 1
            out[k] = (clipped - origin[k]) * inverse[k]
        counts[i] = strange == 0 and (outside == 0 or not drop)
        if not counts[i]:
            out[:] = 0.0
