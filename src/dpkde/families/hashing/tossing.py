"""The compiled loop of random grids: see `grids.Grids.quantize`, which says the same plainly.

Sums over axes run in the order of the axes, in IEEE arithmetic without fused or reordered
operations, so a record's signs depend on that record alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly

U64 = np.uint64


@exactly
def add_signs(
    x: NDArray[np.float64],
    counts: NDArray[np.bool_],
    full: int,
    rate: float,
    shifts: NDArray[np.float64],
    words: NDArray[np.uint64],
    axes: NDArray[np.int64],
    rates: NDArray[np.float64],
    phases: NDArray[np.float64],
    table: NDArray[np.int64],
) -> None:
    """Add each record's signs, times `full`, to a table."""
    for i in range(x.shape[0]):
        if not counts[i]:
            continue
        for j in range(shifts.shape[0]):
            key = U64(0)
            for k in range(x.shape[1]):
                number = np.int64(np.floor(x[i, k] * rate + shifts[j, k]))
                key += U64(number) * words[j, k]
            key = (key ^ (key >> U64(31))) * U64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> U64(29))) * U64(0xBF58476D1CE4E5B9)
            halves = np.int64(np.floor(x[i, axes[j]] * rates[j] + phases[j]))
            if (np.int64(key >> U64(63)) ^ halves) & np.int64(1):
                table[j] -= full
            else:
                table[j] += full
