"""Compiled loops of the fast Gauss transform: powers of records, Hermite functions of queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering, exactly

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@exactly
def accumulate(
    coordinates: Floats,
    counts: NDArray[np.bool_],
    full: int,
    order: int,
    sizes: Ints,
    table: Ints,
) -> None:
    """Add ∏(x_k − z_k)^{r_k} of every record, in units of 1/full, to the block of its cell.

    Offsets are at most ½, and rounding to nearest keeps |power| ≤ full·2^−(r₁ + … + r_d).
    """
    dim = sizes.size
    block = order**dim
    values, powers = np.empty(block, dtype=np.int64), np.empty(order, dtype=np.int64)
    for row in range(coordinates.shape[0]):
        if not counts[row]:
            continue
        place = np.int64(0)
        values[0] = full
        count = 1
        for k in range(dim):
            t = coordinates[row, k] + sizes[k] * 0.5
            t = t if t > 0.0 else 0.0
            t = t if t < sizes[k] else np.float64(sizes[k])
            cell = min(np.int64(t), sizes[k] - 1)
            place = place * sizes[k] + cell
            u = t - cell - 0.5
            powers[0] = full
            for r in range(1, order):
                powers[r] = np.int64(np.rint(powers[r - 1] * u))
            for i in range(count - 1, -1, -1):
                value = values[i]
                for r in range(order):
                    values[i * order + r] = np.int64(np.rint(value * (powers[r] / full)))
            count *= order
        start = place * block
        for i in range(block):
            table[start + i] += values[i]


@answering
def _near(
    y: float, size: int, order: int, cutoff: float, squares: Floats, functions: Floats
) -> tuple[int, int]:
    """Write h_r(y − z)/r! for the cells z of an axis within the cutoff; return first and number."""
    middle = y + size * 0.5 - 0.5
    if not -cutoff - 1 < middle < size + cutoff:
        return 0, 0
    first = max(int(np.ceil(middle - cutoff)), 0)
    last = min(int(np.floor(middle + cutoff)), size - 1)
    for cell in range(first, last + 1):
        t = middle - cell
        squares[cell - first] = t * t
        row = functions[cell - first]
        row[0] = np.exp(-t * t)
        if order > 1:
            row[1] = 2 * t * row[0]
        for r in range(1, order - 1):
            row[r + 1] = (2 * t * row[r] - 2 * row[r - 1]) / (r + 1)
    return first, last - first + 1


@answering
def respond(
    queries: Floats,
    order: int,
    cutoff: float,
    sizes: Ints,
    table: Floats,
    answers: Floats,
    lengths: Floats,
) -> None:
    """Write ⟨table, g(y)⟩ and ‖g(y)‖² of each query, from the cells within the cutoff of it.

    An empty table asks for the lengths only.
    """
    dim = sizes.size
    block = order**dim
    most = int(2 * cutoff) + 3
    squares = np.empty((dim, most))
    functions = np.empty((dim, most, order))
    weights = np.empty((dim, most))
    firsts, counts = np.empty(dim, dtype=np.int64), np.empty(dim, dtype=np.int64)
    turn = np.empty(dim + 1, dtype=np.int64)
    distance, weight = np.zeros(dim + 1), np.ones(dim + 1)
    place = np.zeros(dim + 1, dtype=np.int64)
    reduced = np.empty(block)
    for row in range(queries.shape[0]):
        answers[row] = lengths[row] = 0.0
        missed = False
        for k in range(dim):
            firsts[k], counts[k] = _near(
                queries[row, k], sizes[k], order, cutoff, squares[k], functions[k]
            )
            missed |= counts[k] <= 0
            for c in range(counts[k]):
                weights[k, c] = 0.0
                for r in range(order):
                    weights[k, c] += functions[k, c, r] ** 2
        if missed:
            continue
        level = 0
        turn[0] = -1
        while level >= 0:
            turn[level] += 1
            if turn[level] >= counts[level]:
                level -= 1
                continue
            c = turn[level]
            distance[level + 1] = distance[level] + squares[level, c]
            if distance[level + 1] > cutoff * cutoff:
                continue
            weight[level + 1] = weight[level] * weights[level, c]
            place[level + 1] = place[level] * sizes[level] + firsts[level] + c
            if level < dim - 1:
                level += 1
                turn[level] = -1
                continue
            lengths[row] += weight[dim]
            if table.size == 0:
                continue
            start = place[dim] * block
            count = block // order
            last = functions[dim - 1, c]
            for i in range(count):
                inner = 0.0
                for r in range(order):
                    inner += table[start + i * order + r] * last[r]
                reduced[i] = inner
            for k in range(dim - 2, -1, -1):
                count //= order
                for i in range(count):
                    inner = 0.0
                    for r in range(order):
                        inner += reduced[i * order + r] * functions[k, turn[k], r]
                    reduced[i] = inner
            answers[row] += reduced[0]
