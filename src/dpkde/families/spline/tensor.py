"""Compiled loops of the spline family: records split into a tensor of cells, and queries answered.

A record starts with an integer mass of 2^bits. Each axis divides every part it gets among p + 1
neighbouring nodes: running sums of the B-spline weights, as whole numbers of 2^−32, times the part
are rounded, and each node takes the difference of two. So all have the sign of the part and add up
to it, whatever the rounding. `SplinePair.quantize` says the same in NumPy, slowly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering, exactly

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WEIGHT_BITS = 32
_WHOLE = 1 << WEIGHT_BITS
_HALF = _WHOLE // 2
_BLOCK = 64
_INVERSE = np.array([np.inf, 1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5])


@exactly
def weigh(u: Floats, degree: int, weights: Floats, carried: Floats, running: Ints) -> None:
    """Write the running sums of the B-splines around points at fractions u of their intervals.

    Row j of `running` gets whole numbers of 2^−32, growing with j and at most 2^32, for j < p.
    Loops run over points innermost: elementwise arithmetic, the same wherever a point stands.
    """
    weights[0] = 1.0
    for d in range(1, degree + 1):
        carried[:] = 0.0
        inverse = _INVERSE[d]
        for r in range(d):
            row, up, down = weights[r], r + 1.0, d - 1.0 - r
            for i in range(u.size):
                part = row[i] * inverse
                row[i] = carried[i] + (up - u[i]) * part
                carried[i] = (u[i] + down) * part
        weights[d] = carried
    carried[:] = 0.0
    for j in range(degree):
        row, sums = weights[j], running[j]
        for i in range(u.size):
            carried[i] += row[i]
            sums[i] = min(np.int64(np.rint(carried[i] * _WHOLE)), _WHOLE)


@exactly
def accumulate(
    coordinates: Floats,
    counts: NDArray[np.bool_],
    columns: Ints,
    halves: Floats,
    scales: Floats,
    intervals: Ints,
    degrees: Ints,
    strides: Ints,
    tilted: Ints,
    leans: Floats,
    arched: Ints,
    arch_leans: Floats,
    arch_weights: Floats,
    shares: Ints,
    tilt_stride: int,
    table: Ints,
) -> None:
    """Add every record's parts to the table, modulo 2⁶⁴."""
    axes = columns.size
    widest = shares.size
    for a in range(axes - 1):
        widest *= degrees[a] + 1
    parts, places = np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.int64)
    u, carried, weights = np.empty(_BLOCK), np.empty(_BLOCK), np.empty((8, _BLOCK))
    cells = np.empty((axes, _BLOCK), dtype=np.int64)
    running = np.zeros((axes, 8, _BLOCK), dtype=np.int64)
    u[:] = 0.0
    for block in range(0, coordinates.shape[0], _BLOCK):
        rows = min(_BLOCK, coordinates.shape[0] - block)
        for a in range(axes):
            limit = np.float64(intervals[a])
            for i in range(rows):
                t = (coordinates[block + i, columns[a]] + halves[a]) * scales[a]
                t = t if t > 0.0 else 0.0
                t = t if t < limit else limit
                cells[a, i] = min(np.int64(t), intervals[a] - 1)
                u[i] = t - cells[a, i]
            weigh(u, degrees[a], weights, carried, running[a])
        for i in range(rows):
            if not counts[block + i]:
                continue
            parts[0], places[0] = shares[0], 0
            count = 1
            for k in range(tilted.size):
                t = coordinates[block + i, tilted[k]] * leans[k]
                t = t if t > -1.0 else -1.0
                t = t if t < 1.0 else 1.0
                parts[count] = np.int64(np.rint(t * shares[count]))
                places[count] = count * tilt_stride
                count += 1
            if arched.size:
                height = 0.0
                for k in range(arched.size):
                    t = coordinates[block + i, arched[k]] * arch_leans[k]
                    t = t if t > -1.0 else -1.0
                    t = t if t < 1.0 else 1.0
                    height += arch_weights[k] * (1.5 * t * t - 0.5)
                height = height if height > -1.0 else -1.0
                height = height if height < 1.0 else 1.0
                parts[count] = np.int64(np.rint(height * shares[count]))
                places[count] = count * tilt_stride
                count += 1
            if axes == 0:
                for c in range(count):
                    table[places[c]] += parts[c]
                continue
            for a in range(axes - 1):
                # From the last part backwards, so that children overwrite only what is done with.
                degree, stride = degrees[a], strides[a]
                for c in range(count - 1, -1, -1):
                    part, place = parts[c], places[c] + cells[a, i] * stride
                    taken = np.int64(0)
                    first = c * (degree + 1)
                    for j in range(degree):
                        upto = (running[a, j, i] * part + _HALF) >> WEIGHT_BITS
                        parts[first + j] = upto - taken
                        places[first + j] = place + j * stride
                        taken = upto
                    parts[first + degree] = part - taken
                    places[first + degree] = place + degree * stride
                count *= degree + 1
            a = axes - 1
            degree = degrees[a]
            for c in range(count):
                part, place = parts[c], places[c] + cells[a, i]
                taken = np.int64(0)
                for j in range(degree):
                    upto = (running[a, j, i] * part + _HALF) >> WEIGHT_BITS
                    table[place + j] += upto - taken
                    taken = upto
                table[place + degree] += part - taken


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
