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
) -> tuple[int, int]:
    """Write the coefficients of the real nodes near a query; return the first one and how many."""
    v = (y + half) * scale + (degree - 1) / 2
    if not -radius - 1 < v < nodes + radius:
        return 0, 0
    below = np.floor(v)
    s = (v - below) * phases
    q = min(int(s), phases - 1)
    r = s - q
    before = -r * (r - 1) * (r - 2) / 6
    here = (r + 1) * (r - 1) * (r - 2) / 2
    after = -(r + 1) * r * (r - 2) / 2
    beyond = (r + 1) * r * (r - 1) / 6
    start = int(below) - radius
    first, last = max(start, 0), min(start + 2 * radius, nodes - 1)
    size = last - first + 1
    if size <= 0:
        return 0, 0
    near = values[q : q + 4, first - start : first - start + size]
    for c in range(size):
        out[c] = before * near[0, c] + here * near[1, c] + after * near[2, c] + beyond * near[3, c]
    return first, size


@answering
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for c in range(a.size):
        total += a[c] * b[c]
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
    phases: int,
    tilt_stride: int,
    table: Floats,
    answers: Floats,
) -> None:
    """Write ⟨table, tilts ⊗ c₁ ⊗ … ⊗ c_A⟩ for each query; touches the nodes near it only."""
    axes = columns.size
    coefficients = np.empty((max(axes, 1), values.shape[2]))
    starts, sizes = np.empty(axes + 1, dtype=np.int64), np.empty(axes + 1, dtype=np.int64)
    turn = np.empty(axes + 1, dtype=np.int64)
    product = np.empty(axes + 1)
    place = np.empty(axes + 1, dtype=np.int64)
    for row in range(queries.shape[0]):
        answers[row] = 0.0
        empty = False
        for a in range(axes):
            starts[a], sizes[a] = _coefficients(
                queries[row, columns[a]],
                halves[a],
                scales[a],
                nodes[a],
                degrees[a],
                values[a],
                radii[a],
                phases,
                coefficients[a],
            )
            empty |= sizes[a] <= 0
        if empty:
            continue
        total = 0.0
        last = axes - 1
        for g in range(tilts.shape[1]):
            product[0], place[0] = tilts[row, g], g * tilt_stride
            if axes == 0:
                total += product[0] * table[place[0]]
                continue
            level = 0
            turn[0] = 0
            while level >= 0:
                if level == last:
                    begin = place[level] + starts[level]
                    total += product[level] * _dot(
                        coefficients[level, : sizes[level]], table[begin : begin + sizes[level]]
                    )
                    level -= 1
                elif turn[level] < sizes[level]:
                    c = turn[level]
                    turn[level] += 1
                    product[level + 1] = product[level] * coefficients[level, c]
                    place[level + 1] = place[level] + (starts[level] + c) * strides[level]
                    level += 1
                    turn[level] = 0
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
    phases: int,
    answers: Floats,
) -> None:
    """Write the coefficients of each query on each axis, shape (n_queries, axes, near), or zero."""
    for row in range(queries.shape[0]):
        for a in range(columns.size):
            size = _coefficients(
                queries[row, columns[a]],
                halves[a],
                scales[a],
                nodes[a],
                degrees[a],
                values[a],
                radii[a],
                phases,
                answers[row, a],
            )[1]
            answers[row, a, size:] = 0.0
