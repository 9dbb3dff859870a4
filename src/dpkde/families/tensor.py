"""Compiled loops of the spline family: records split into a tensor of cells, and queries answered.

A record starts with an integer mass of 2^bits. Each axis divides every part it gets among p + 1
neighbouring nodes: running sums of the B-spline weights times the part are rounded, and each node
takes the difference of two. So parts are never negative and always add up to what was divided,
whatever the rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.compiled import answering, exactly

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@exactly
def weigh(u: float, degree: int, weights: Floats) -> None:
    """Write the B-splines of the p + 1 nodes around a point at fraction u of its interval."""
    weights[0] = 1.0
    for d in range(1, degree + 1):
        carried = 0.0
        for r in range(d):
            part = weights[r] / d
            weights[r] = carried + (r + 1 - u) * part
            carried = (u + (d - 1 - r)) * part
        weights[d] = carried


@exactly
def accumulate(
    coordinates: Floats,
    counts: NDArray[np.bool_],
    mass: int,
    columns: Ints,
    halves: Floats,
    scales: Floats,
    intervals: Ints,
    degrees: Ints,
    strides: Ints,
    tilted: Ints,
    leans: Floats,
    shares: Ints,
    tilt_stride: int,
    table: Ints,
) -> None:
    """Add every record's parts to the table, modulo 2⁶⁴."""
    axes = columns.size
    widest = 1 + tilted.size
    for a in range(axes - 1):
        widest *= degrees[a] + 1
    parts, places = np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.int64)
    weights = np.empty(8)
    for row in range(coordinates.shape[0]):
        if not counts[row]:
            continue
        parts[0], places[0] = mass, 0
        count = 1
        if tilted.size:
            parts[0] = shares[0]
            for k in range(tilted.size):
                t = coordinates[row, tilted[k]] * leans[k]
                t = t if t > -1.0 else -1.0
                t = t if t < 1.0 else 1.0
                parts[count] = np.int64(np.rint(t * shares[k + 1]))
                places[count] = (k + 1) * tilt_stride
                count += 1
        if axes == 0:
            for i in range(count):
                table[places[i]] += parts[i]
            continue
        for a in range(axes):
            degree, stride = degrees[a], strides[a]
            t = (coordinates[row, columns[a]] + halves[a]) * scales[a]
            t = t if t > 0.0 else 0.0
            t = t if t < intervals[a] else np.float64(intervals[a])
            cell = min(np.int64(t), intervals[a] - 1)
            weigh(t - cell, degree, weights)
            running = 0.0
            for j in range(degree):
                running += weights[j]
                weights[j] = running
            start = cell * stride
            if a < axes - 1:
                # From the last part backwards, so that children overwrite only what is done with.
                for i in range(count - 1, -1, -1):
                    part, place = parts[i], places[i] + start
                    size = abs(part)
                    sign = 1 if part >= 0 else -1
                    taken = np.int64(0)
                    first = i * (degree + 1)
                    for j in range(degree):
                        upto = min(np.int64(np.rint(weights[j] * size)), size)
                        parts[first + j] = sign * (upto - taken)
                        places[first + j] = place + j * stride
                        taken = upto
                    parts[first + degree] = sign * (size - taken)
                    places[first + degree] = place + degree * stride
                count *= degree + 1
            else:
                for i in range(count):
                    part, place = parts[i], places[i] + start
                    size = abs(part)
                    sign = 1 if part >= 0 else -1
                    taken = np.int64(0)
                    for j in range(degree):
                        upto = min(np.int64(np.rint(weights[j] * size)), size)
                        table[place + j * stride] += sign * (upto - taken)
                        taken = upto
                    table[place + degree * stride] += sign * (size - taken)


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
    for j in range(first, last + 1):
        c = j - start
        out[j - first] = (
            before * values[q, c]
            + here * values[q + 1, c]
            + after * values[q + 2, c]
            + beyond * values[q + 3, c]
        )
    return first, last - first + 1


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
                    inner = 0.0
                    for c in range(sizes[level]):
                        inner += coefficients[level, c] * table[begin + c]
                    total += product[level] * inner
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
def lengths(
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
    """Write ‖c₁‖·…·‖c_A‖ for each query."""
    coefficients = np.empty(max(values.shape[2], 1))
    for row in range(queries.shape[0]):
        answers[row] = 1.0
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
                coefficients,
            )[1]
            total = 0.0
            for c in range(size):
                total += coefficients[c] ** 2
            answers[row] *= np.sqrt(total)
