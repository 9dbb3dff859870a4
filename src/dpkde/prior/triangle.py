"""Compiled forward substitution, with the same bits for every record and every length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly


@exactly
def solve(columns: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Replace `values` v by w = L⁻¹v, where row j of `columns` is column j of L.

    Column by column: every entry has its own chain of operations, in order, so that w_i depends on
    the first i rows of L and entries of v alone, however many follow.
    """
    for j in range(values.size):
        values[j] /= columns[j, j]
        for i in range(j + 1, values.size):
            values[i] -= values[j] * columns[j, i]
