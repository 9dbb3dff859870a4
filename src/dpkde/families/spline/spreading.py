"""Compiled loops that spread records over a tensor of cells.

A record starts with an integer mass of 2^bits. Each axis divides every part it gets among p + 1
neighbouring nodes: running sums of the B-spline weights, as whole numbers of 2^−32, times the part
are rounded, and each node takes the difference of two. So all have the sign of the part and add up
to it, whatever the rounding. `SplinePair.quantize` says the same in NumPy, slowly.

Records go in blocks that stay in the nearest cache. All that does not touch the table is done for a
whole block, one number of each record beside that of the next: where it lies, its weights, its
parts along all axes but the last. Then each record divides its parts along the last axis straight
into the table, where cells of that axis are neighbours. Loops over the nodes of an axis have a
length that is known when they are compiled, one function for each degree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpkde.families.spline.bsplines import MAX_DEGREE
from dpkde.numerics.compiled import exactly

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WEIGHT_BITS = 32
_WHOLE = 1 << WEIGHT_BITS
_HALF = _WHOLE // 2
_BLOCK, _FEWEST = 256, 8
"""Records in a block, at most and at least."""
_PARTS = 1 << 13
"""Parts that a block should have at most: 64 KiB."""
_APART = 8
"""Rows are this much longer than a block: lines of memory a power of two apart share few places."""


@exactly
def _locate(
    coordinates: Floats,
    start: int,
    rows: int,
    column: int,
    half: float,
    scale: float,
    intervals: int,
    stride: int,
    places: Ints,
    fractions: Floats,
) -> None:
    """Add to each place that of the record's interval on an axis; write where in that it lies."""
    limit, last = np.float64(intervals), intervals - 1
    for i in range(rows):
        t = (coordinates[start + i, column] + half) * scale
        t = t if t > 0.0 else 0.0
        t = t if t < limit else limit
        cell = np.int64(min(np.int64(t), np.int64(last)))
        places[i] += cell * stride
        fractions[i] = t - cell


@exactly
def _split(
    weight: float, carried: float, up: float, down: float, share: float
) -> tuple[float, float]:
    """Return what a weight of degree d − 1 leaves with its node, and what moves on to the next."""
    part = weight * share
    return carried + up * part, down * part


@exactly
def _whole(weight: float) -> np.int64:
    """Return a running sum as a whole number of 2^−32, at most 2^32."""
    return np.int64(min(np.int64(np.rint(weight * _WHOLE)), np.int64(_WHOLE)))


def _weighing(degree: int) -> Callable[[int, Floats, Ints], None]:
    """Return the loop that weighs for a degree: the recurrence over degrees, written out.

    A weight for each node, in variables of their own: a compiler keeps those in registers.
    """

    @exactly
    def weigh(rows: int, fractions: Floats, running: Ints) -> None:
        """Write the running sums of the B-splines around points at fractions of their intervals.

        Row j of `running` gets whole numbers of 2^−32, growing with j and at most 2^32, for j < p.
        """
        sums0, sums1, sums2, sums3, sums4 = (
            running[0],
            running[1],
            running[2],
            running[3],
            running[4],
        )
        for i in range(rows):
            u = fractions[i]
            c = d = e = 0.0
            a, b = _split(1.0, 0.0, 1.0 - u, u, 1.0)
            if degree >= 2:
                a, moved = _split(a, 0.0, 1.0 - u, u + 1.0, 1 / 2)
                b, c = _split(b, moved, 2.0 - u, u, 1 / 2)
            if degree >= 3:
                a, moved = _split(a, 0.0, 1.0 - u, u + 2.0, 1 / 3)
                b, moved = _split(b, moved, 2.0 - u, u + 1.0, 1 / 3)
                c, d = _split(c, moved, 3.0 - u, u, 1 / 3)
            if degree >= 4:
                a, moved = _split(a, 0.0, 1.0 - u, u + 3.0, 1 / 4)
                b, moved = _split(b, moved, 2.0 - u, u + 2.0, 1 / 4)
                c, moved = _split(c, moved, 3.0 - u, u + 1.0, 1 / 4)
                d, e = _split(d, moved, 4.0 - u, u, 1 / 4)
            if degree >= 5:
                a, moved = _split(a, 0.0, 1.0 - u, u + 4.0, 1 / 5)
                b, moved = _split(b, moved, 2.0 - u, u + 3.0, 1 / 5)
                c, moved = _split(c, moved, 3.0 - u, u + 2.0, 1 / 5)
                d, moved = _split(d, moved, 4.0 - u, u + 1.0, 1 / 5)
                e, _ = _split(e, moved, 5.0 - u, u, 1 / 5)
            sums0[i] = _whole(a)
            if degree >= 2:
                b += a
                sums1[i] = _whole(b)
            if degree >= 3:
                c += b
                sums2[i] = _whole(c)
            if degree >= 4:
                d += c
                sums3[i] = _whole(d)
            if degree >= 5:
                e += d
                sums4[i] = _whole(e)

    return weigh


_weigh1, _weigh2, _weigh3, _weigh4, _weigh5 = map(_weighing, range(1, MAX_DEGREE + 1))


@exactly
def _divide(
    rows: int, degree: int, count: int, running: Ints, whole: Ints, taken: Ints, parts: Ints
) -> None:
    """Divide the first `count` parts of each record along an axis, in place.

    From the last part backwards, so that children overwrite only what is done with.
    """
    for c in range(count - 1, -1, -1):
        part, first = parts[c], c * (degree + 1)
        for i in range(rows):
            whole[i] = part[i]
            taken[i] = 0
        for j in range(degree):
            sums, child = running[j], parts[first + j]
            for i in range(rows):
                upto = (sums[i] * whole[i] + _HALF) >> WEIGHT_BITS
                child[i] = upto - taken[i]
                taken[i] = upto
        child = parts[first + degree]
        for i in range(rows):
            child[i] = whole[i] - taken[i]


def _scattering(
    degree: int,
) -> Callable[[int, int, NDArray[np.bool_], Ints, Ints, Ints, Ints, Ints], None]:
    """Return the loop that divides along a last axis of some degree; 0: along none."""

    @exactly
    def scatter(
        start: int,
        rows: int,
        counts: NDArray[np.bool_],
        places: Ints,
        offsets: Ints,
        parts: Ints,
        running: Ints,
        table: Ints,
    ) -> None:
        """Divide the parts of records that count along the last axis, into the table.

        Places are not negative, and unsigned numbers say so: no index counts from the end.
        """
        for i in range(rows):
            if not counts[start + i]:
                continue
            for c in range(offsets.size):
                part, place = parts[c, i], places[i] + offsets[c]
                taken = np.int64(0)
                for j in range(degree):
                    upto = (running[j, i] * part + _HALF) >> WEIGHT_BITS
                    table[np.uint64(place + j)] += upto - taken
                    taken = upto
                table[np.uint64(place + degree)] += part - taken

    return scatter


_scatter0, _scatter1, _scatter2, _scatter3, _scatter4, _scatter5 = map(
    _scattering, range(MAX_DEGREE + 1)
)


@exactly
def _group(
    coordinates: Floats,
    start: int,
    rows: int,
    tilted: Ints,
    leans: Floats,
    arched: Ints,
    arch_leans: Floats,
    arch_weights: Floats,
    shares: Ints,
    heights: Floats,
    parts: Ints,
) -> None:
    """Write what each record gives to the cells of narrow axes: the constant, slopes, the arch."""
    for i in range(rows):
        parts[0, i] = shares[0]
    for k in range(tilted.size):
        column, lean, share = tilted[k], leans[k], shares[1 + k]
        part = parts[1 + k]
        for i in range(rows):
            t = coordinates[start + i, column] * lean
            t = t if t > -1.0 else -1.0
            t = t if t < 1.0 else 1.0
            part[i] = np.int64(np.rint(t * share))
    if arched.size:
        for i in range(rows):
            heights[i] = 0.0
        for k in range(arched.size):
            column, lean, weight = arched[k], arch_leans[k], arch_weights[k]
            for i in range(rows):
                t = coordinates[start + i, column] * lean
                t = t if t > -1.0 else -1.0
                t = t if t < 1.0 else 1.0
                heights[i] += weight * (1.5 * t * t - 0.5)
        share, part = shares[1 + tilted.size], parts[1 + tilted.size]
        for i in range(rows):
            height = heights[i]
            height = height if height > -1.0 else -1.0
            height = height if height < 1.0 else 1.0
            part[i] = np.int64(np.rint(height * share))


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
    axes, count = columns.size, shares.size
    last = degrees[axes - 1] if axes else 0
    outer = count
    for a in range(axes - 1):
        outer *= degrees[a] + 1
    # From a record's place to those of its parts, which are the same for all records.
    offsets = np.empty(outer, dtype=np.int64)
    for c in range(count):
        offsets[c] = c * tilt_stride
    for a in range(axes - 1):
        for c in range(count - 1, -1, -1):
            offset = offsets[c]
            for j in range(degrees[a] + 1):
                offsets[c * (degrees[a] + 1) + j] = offset + j * strides[a]
        count *= degrees[a] + 1
    block = max(_FEWEST, min(_BLOCK, _PARTS // outer))
    parts = np.empty((outer, block + _APART), dtype=np.int64)
    running = np.empty((MAX_DEGREE, block + _APART), dtype=np.int64)
    fractions, heights = np.empty(block), np.empty(block)
    places = np.empty(block, dtype=np.int64)
    whole, taken = np.empty(block, dtype=np.int64), np.empty(block, dtype=np.int64)
    for start in range(0, coordinates.shape[0], block):
        rows = min(block, coordinates.shape[0] - start)
        _group(
            coordinates,
            start,
            rows,
            tilted,
            leans,
            arched,
            arch_leans,
            arch_weights,
            shares,
            heights,
            parts,
        )
        for i in range(rows):
            places[i] = 0
        count = shares.size
        for a in range(axes):
            degree = degrees[a]
            _locate(
                coordinates,
                start,
                rows,
                columns[a],
                halves[a],
                scales[a],
                intervals[a],
                strides[a],
                places,
                fractions,
            )
            if degree == 1:
                _weigh1(rows, fractions, running)
            elif degree == 2:
                _weigh2(rows, fractions, running)
            elif degree == 3:
                _weigh3(rows, fractions, running)
            elif degree == 4:
                _weigh4(rows, fractions, running)
            else:
                _weigh5(rows, fractions, running)
            if a < axes - 1:
                _divide(rows, degree, count, running, whole, taken, parts)
                count *= degree + 1
        if last == 0:
            _scatter0(start, rows, counts, places, offsets, parts, running, table)
        elif last == 1:
            _scatter1(start, rows, counts, places, offsets, parts, running, table)
        elif last == 2:
            _scatter2(start, rows, counts, places, offsets, parts, running, table)
        elif last == 3:
            _scatter3(start, rows, counts, places, offsets, parts, running, table)
        elif last == 4:
            _scatter4(start, rows, counts, places, offsets, parts, running, table)
        else:
            _scatter5(start, rows, counts, places, offsets, parts, running, table)
