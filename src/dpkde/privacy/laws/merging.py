"""The largest products of a tensor and power sums of all others, from axis to axis, compiled.

Of the products over some axes, the largest, T, are held in order, and of the others O only power
sums P_k = Σ x^k. With a further axis C the largest products lie in T × C, and

    P_k(others) = P_k(O)·P_k(C) + Σ_{c ∈ C} c^k · P_k(those of T that c was not taken with).

For each c the taken ones come first in T, so the last factor is a sum from there to the end. All
terms are positive: nothing cancels, as it would if the largest were subtracted from the whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@answering
def split(factors: Floats, sizes: Ints, largest: Floats, powers: Floats, edge: Floats) -> None:
    """Write for each query the largest products in falling order, and the sums of the others.

    `factors`, shape (n_queries, n_factors, widest), are not negative; the results begin as zeros.
    """
    most, terms = largest.shape[1], powers.shape[1]
    held, merged = np.empty(most), np.empty(most)
    ends = np.empty((most + 1, terms))
    taken = np.empty(factors.shape[2], dtype=np.int64)
    whole = np.empty(terms)
    for row in range(factors.shape[0]):
        held[0] = 1.0
        count = 1
        others, farthest = powers[row], 0.0
        for k in range(sizes.size):
            axis = np.sort(factors[row, k, : sizes[k]])[::-1]
            size = 0
            while size < axis.size and axis[size] > 0.0:
                taken[size] = 0
                size += 1
            _power_sums(axis[:size], whole)
            for j in range(terms):
                others[j] *= whole[j]
            farthest *= axis[0] if size else 0.0
            fresh = _merge(held[:count], axis[:size], taken, merged)
            # What is left of T × C; sums from each place of T to its end first.
            ends[count] = 0.0
            for i in range(count - 1, -1, -1):
                power = 1.0
                for j in range(terms):
                    power *= held[i]
                    ends[i, j] = ends[i + 1, j] + power
            for c in range(size):
                if taken[c] < count:
                    farthest = max(farthest, axis[c] * held[taken[c]])
                    power = 1.0
                    for j in range(terms):
                        power *= axis[c]
                        others[j] += power * ends[taken[c], j]
            count = fresh
            held[:count] = merged[:count]
        largest[row, :count] = held[:count]
        edge[row] = farthest


@answering
def _power_sums(values: Floats, sums: Floats) -> None:
    """Write Σ x^k for k = 1, 2, …."""
    sums[:] = 0.0
    for value in values:
        power = 1.0
        for j in range(sums.size):
            power *= value
            sums[j] += power


@answering
def _merge(held: Floats, axis: Floats, taken: Ints, merged: Floats) -> int:
    """Write the largest products of two falling lists in order; return how many there are.

    `taken` gets how many of `held` went with each of the axis.
    """
    count = min(held.size * axis.size, merged.size)
    for m in range(count):
        best, place = -1.0, 0
        for c in range(axis.size):
            if taken[c] < held.size and axis[c] * held[taken[c]] > best:
                best, place = axis[c] * held[taken[c]], c
            if taken[c] == 0:
                break  # whatever comes behind is smaller
        merged[m] = best
        taken[place] += 1
    return count
