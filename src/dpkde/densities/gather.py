"""The sum over sites near a query, compiled: ``Σ_s w_s ∏_a factor_a(y, s)``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@answering
def gathered(
    factors: Floats, starts: Ints, sizes: Ints, strides: Ints, weights: Floats, sums: Floats
) -> None:
    """Write ⟨weights, f₁ ⊗ … ⊗ f_A⟩ for each query, f_a on `sizes[a]` sites from `starts` on.

    Shapes: factors (n_queries, axes, widest), starts (n_queries, axes), weights flat.
    """
    axes = starts.shape[1]
    turn = np.zeros(axes, dtype=np.int64)
    product, place = np.empty(axes + 1), np.empty(axes + 1, dtype=np.int64)
    for row in range(starts.shape[0]):
        total = 0.0
        product[0], place[0] = 1.0, 0
        level = 0
        turn[0] = 0
        while level >= 0:
            if level == axes - 1:
                begin = place[level] + starts[row, level]
                part = 0.0
                for c in range(sizes[level]):
                    part += factors[row, level, c] * weights[begin + c]
                total += product[level] * part
                level -= 1
            elif turn[level] < sizes[level]:
                c = turn[level]
                turn[level] += 1
                if factors[row, level, c] != 0.0:
                    product[level + 1] = product[level] * factors[row, level, c]
                    place[level + 1] = place[level] + (starts[row, level] + c) * strides[level]
                    level += 1
                    turn[level] = 0
            else:
                level -= 1
        sums[row] = total
