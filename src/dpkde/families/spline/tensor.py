"""Compiled loops of the spline family that answer queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@answering
def _coefficients(
    y: float,
    half: float,
    scale: float,
    nodes: int,
    degree: int,
    values: Floats,
    radius: int,
    phases: int,
    out: Floats,
) -> int:
    """Write the coefficients of a window of nodes near a query; return its first node, or −1.

    The window is as long as `out`, lies among the real nodes and holds all near ones: where an edge
    or a longer `out` brings others into it, those have zero.
    """
    v = (y + half) * scale + (degree - 1) / 2
    if not -radius - 1 < v < nodes + radius:
        return -1
    below = np.floor(v)
    s = (v - below) * phases
    q = min(int(s), phases - 1)
    r = s - q
    before = -r * (r - 1) * (r - 2) / 6
    here = (r + 1) * (r - 1) * (r - 2) / 2
    after = -(r + 1) * r * (r - 2) / 2
    beyond = (r + 1) * r * (r - 1) / 6
    first, size = int(below) - radius, out.size
    # Rows by themselves are known to be contiguous, and a loop of its own is faster.
    zeroth, one, two, three = values[q], values[q + 1], values[q + 2], values[q + 3]
    if first >= 0 and first + size <= nodes:
        for c in range(size):
            out[c] = before * zeroth[c] + here * one[c] + after * two[c] + beyond * three[c]
        return first
    low, high = max(first, 0), min(first + 2 * radius, nodes - 1)
    if low > high:
        return -1
    skipped, first = low - first, min(low, nodes - size)
    out[:] = 0.0
    for c in range(skipped, skipped + high - low + 1):
        value = before * zeroth[c] + here * one[c] + after * two[c] + beyond * three[c]
        out[low - first + c - skipped] = value
    return first


@answering
def _plane(a: Floats, b: Floats, table: Floats, begin: int, stride: int, sums: Floats) -> float:
    """Return Σ_i a_i Σ_c b_c·table[begin + i·stride + c].

    Rows are gathered four at a time into one, so that short rows need one reduction at the end
    in place of one each.
    """
    near = b.size
    sums[:near] = 0.0
    i = 0
    while i + 4 <= a.size:
        first = table[begin : begin + near]
        second = table[begin + stride : begin + stride + near]
        third = table[begin + 2 * stride : begin + 2 * stride + near]
        fourth = table[begin + 3 * stride : begin + 3 * stride + near]
        # Out of the loop by hand: a compiler does not know that `sums` is none of the others.
        k, m, n, o = a[i], a[i + 1], a[i + 2], a[i + 3]
        for c in range(near):
            sums[c] += k * first[c] + m * second[c] + n * third[c] + o * fourth[c]
        begin += 4 * stride
        i += 4
    while i < a.size:
        row, k = table[begin : begin + near], a[i]
        for c in range(near):
            sums[c] += k * row[c]
        begin += stride
        i += 1
    total = 0.0
    for c in range(near):
        total += sums[c] * b[c]
    return total


@answering
def respond(
    queries: Floats,
    tilts: Floats,
    columns: Ints,
    halves: Floats,
    scales: Floats,
    nodes: Ints,
    degrees: Ints,
    strides: Ints,
    values: Floats,
    radii: Ints,
    widths: Ints,
    phases: int,
    tilt_stride: int,
    table: Floats,
    answers: Floats,
) -> None:
    """Write ⟨table, tilts ⊗ c₁ ⊗ … ⊗ c_A⟩ for each query; touches the nodes near it only.

    The last two axes are a plane, with one row where there is a single axis; the others are walked
    through node by node.
    """
    axes = columns.size
    walked = max(axes - 2, 0)
    coefficients = np.empty((max(axes, 1), max(widths.max(), 1) if axes else 1))
    sums, one = np.empty(coefficients.shape[1]), np.ones(1)
    starts, turn = np.empty(axes, dtype=np.int64), np.empty(walked + 1, dtype=np.int64)
    lows, highs = np.zeros(axes + 1, dtype=np.int64), np.zeros(axes + 1, dtype=np.int64)
    product, place = np.empty(walked + 1), np.empty(walked + 1, dtype=np.int64)
    for row in range(queries.shape[0]):
        answers[row] = 0.0
        near = True
        for a in range(axes):
            starts[a] = _coefficients(
                queries[row, columns[a]],
                halves[a],
                scales[a],
                nodes[a],
                degrees[a],
                values[a],
                radii[a],
                phases,
                coefficients[a, : widths[a]],
            )
            near &= starts[a] >= 0
        if not near:
            continue
        for a in range(axes - 1):  # at edges many are zero, and axes multiply
            low, high = 0, widths[a]
            while low < high and coefficients[a, low] == 0.0:
                low += 1
            while low < high and coefficients[a, high - 1] == 0.0:
                high -= 1
            lows[a], highs[a] = low, high
        total = 0.0
        last, stride, rows = axes - 1, 0, one
        if axes >= 2:
            stride = strides[axes - 2]
            rows = coefficients[axes - 2, lows[axes - 2] : highs[axes - 2]]
        for g in range(tilts.shape[1]):
            product[0], place[0] = tilts[row, g], g * tilt_stride
            if axes == 0:
                total += product[0] * table[place[0]]
                continue
            level = 0
            turn[0] = lows[0]
            while level >= 0:
                if level == walked:
                    begin = place[level] + starts[last]
                    if axes >= 2:
                        begin += (starts[axes - 2] + lows[axes - 2]) * stride
                    total += product[level] * _plane(
                        rows, coefficients[last, : widths[last]], table, begin, stride, sums
                    )
                    level -= 1
                elif turn[level] < highs[level]:
                    c = turn[level]
                    turn[level] += 1
                    product[level + 1] = product[level] * coefficients[level, c]
                    place[level + 1] = place[level] + (starts[level] + c) * strides[level]
                    level += 1
                    turn[level] = lows[level]
                else:
                    level -= 1
        answers[row] = total


@answering
def coefficients(
    queries: Floats,
    columns: Ints,
    halves: Floats,
    scales: Floats,
    nodes: Ints,
    degrees: Ints,
    values: Floats,
    radii: Ints,
    widths: Ints,
    phases: int,
    starts: Ints,
    answers: Floats,
) -> None:
    """Write each query's coefficients on each axis, (n_queries, axes, near), and first nodes.

    Where a query is out of reach, the coefficients are zero and the first node is 0.
    """
    for row in range(queries.shape[0]):
        for a in range(columns.size):
            width = widths[a]
            start = _coefficients(
                queries[row, columns[a]],
                halves[a],
                scales[a],
                nodes[a],
                degrees[a],
                values[a],
                radii[a],
                phases,
                answers[row, a, :width],
            )
            answers[row, a, (width if start >= 0 else 0) :] = 0.0
            starts[row, a] = max(start, 0)
