"""Compiled loops of locality sensitive hashing: the keys of cells, and what happens at a key.

A repetition cuts space into cells. The key of a record's cell is a 32-bit integer that the cuts of
the repetition add up, modulo 2³²; its highest bits are the bucket, the next bit is the sign.

Rows are float32 and are handled four at a time; repetitions, or planes, 256 at a time. Sums over
axes run in the order of the axes, in IEEE arithmetic without fused or reordered operations, so a
row's key depends on that row alone, and is the same for a record and for a query at its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering, exactly

I32 = np.int32
U32 = np.uint32
F32 = np.float32

TILE = 256
ROWS = 4
BALLS = 64


@exactly
def add_bins(
    x: NDArray[np.float32],
    rates: NDArray[np.float32],
    shifts: NDArray[np.float32],
    words: NDArray[np.int32],
    keys: NDArray[np.int32],
) -> None:
    """Add Σ_k word_k·⌊x_k·rate_k + shift_k⌋ to the keys.

    Parameters have shape (n_tiles, axes, TILE), keys (n, n_tiles·TILE); n is a multiple of ROWS.
    """
    for t in range(rates.shape[0]):
        lo, hi = t * TILE, (t + 1) * TILE
        for i in range(0, x.shape[0], ROWS):
            p0, p1 = keys[i, lo:hi], keys[i + 1, lo:hi]
            p2, p3 = keys[i + 2, lo:hi], keys[i + 3, lo:hi]
            for k in range(rates.shape[1]):
                a, b, w = rates[t, k], shifts[t, k], words[t, k]
                x0, x1, x2, x3 = x[i, k], x[i + 1, k], x[i + 2, k], x[i + 3, k]
                for j in range(TILE):
                    aj, bj, wj = a[j], b[j], w[j]
                    p0[j] = I32(p0[j] + I32(I32(np.floor(x0 * aj + bj)) * wj))
                    p1[j] = I32(p1[j] + I32(I32(np.floor(x1 * aj + bj)) * wj))
                    p2[j] = I32(p2[j] + I32(I32(np.floor(x2 * aj + bj)) * wj))
                    p3[j] = I32(p3[j] + I32(I32(np.floor(x3 * aj + bj)) * wj))


@exactly
def add_grid(
    x: NDArray[np.float32],
    rates: NDArray[np.float32],
    shifts: NDArray[np.float32],
    counts: NDArray[np.int32],
    keys: NDArray[np.int32],
) -> None:
    """Add the number of each row's cell in a grid, shape (n, repetitions).

    Axis k has cells 1 … counts_k − 2 for records; the first and the last one are for queries that
    lie before and behind them.
    """
    for i in range(x.shape[0]):
        for r in range(rates.shape[0]):
            place = I32(0)
            for k in range(rates.shape[1]):
                cell = np.floor(x[i, k] * rates[r, k] + shifts[r, k])
                last = F32(counts[r, k] - I32(1))
                if not cell > F32(0):
                    cell = F32(0)
                if cell > last:
                    cell = last
                place = I32(place * counts[r, k] + I32(cell))
            keys[i, r] += place


@exactly
def add_sides(
    x: NDArray[np.float32],
    planes: NDArray[np.float32],
    offsets: NDArray[np.float32],
    words: NDArray[np.int32],
    runs: NDArray[np.int64],
    starts: NDArray[np.int64],
    keys: NDArray[np.int32],
) -> None:
    """Add to the keys the words of the planes that a row lies beyond.

    `planes` has shape (n_tiles, axes, TILE), `offsets` and `words` (n_tiles, TILE). A row of `runs`
    says that planes first … last of a tile belong to a column of keys; those of tile t are in the
    rows from starts[t].
    """
    sums = np.empty((ROWS, TILE), dtype=np.float32)
    sides = np.empty((ROWS, TILE), dtype=np.int32)
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    for t in range(planes.shape[0]):
        offset, word = offsets[t], words[t]
        for i in range(0, x.shape[0], ROWS):
            for j in range(TILE):
                start = -offset[j]
                s0[j] = start
                s1[j] = start
                s2[j] = start
                s3[j] = start
            for k in range(planes.shape[1]):
                a = planes[t, k]
                x0, x1, x2, x3 = x[i, k], x[i + 1, k], x[i + 2, k], x[i + 3, k]
                for j in range(TILE):
                    s0[j] += x0 * a[j]
                    s1[j] += x1 * a[j]
                    s2[j] += x2 * a[j]
                    s3[j] += x3 * a[j]
            for r in range(ROWS):
                beyond, own = sides[r], sums[r]
                for j in range(TILE):
                    beyond[j] = word[j] if own[j] > F32(0) else I32(0)
                for run in range(starts[t], starts[t + 1]):
                    total = I32(0)
                    for j in range(runs[run, 1], runs[run, 2]):
                        total = I32(total + beyond[j])
                    column = runs[run, 0]
                    keys[i + r, column] = I32(keys[i + r, column] + total)


@exactly
def mix(value: np.uint32) -> np.uint32:
    """Return a 32-bit word scrambled: a permutation of them all, in which every bit counts."""
    value = U32(value ^ U32(value >> U32(16)))
    value = U32(value * U32(0x7FEB352D))
    value = U32(value ^ U32(value >> U32(15)))
    value = U32(value * U32(0x846CA68B))
    return U32(value ^ U32(value >> U32(16)))


@exactly
def fill_balls(
    seed: np.uint32, low: NDArray[np.float32], widths: NDArray[np.float32], balls: NDArray[Any]
) -> None:
    """Write the centers of balls, uniform in a box, and 14 random bits for the radius last.

    `balls` has shape (axes + 1, count). From a public seed, by integers alone: the same anywhere.
    """
    state = mix(U32(seed + U32(0x9E3779B9)))
    for t in range(balls.shape[1]):
        for k in range(balls.shape[0]):
            state = U32(state + U32(0x9E3779B9))
            word = mix(U32(mix(state) ^ seed))
            if k < low.size:
                balls[k, t] = low[k] + widths[k] * (F32(word >> U32(8)) * F32(2.0**-24))
            else:
                balls[k, t] = F32(word >> U32(18))


@exactly
def add_balls(
    x: NDArray[np.float32],
    balls: NDArray[np.float32],
    words: NDArray[np.uint32],
    keys: NDArray[np.int32],
) -> None:
    """Add a word for the first ball that holds a row; one more for rows that none holds.

    `balls` has shape (repetitions, axes + 1, count), the squared radius last; the count is a
    multiple of BALLS, and so many are tried at a time.
    """
    axes, count = balls.shape[1] - 1, balls.shape[2]
    gaps = np.empty(BALLS, dtype=np.float32)
    for r in range(balls.shape[0]):
        own = balls[r]
        for i in range(x.shape[0]):
            first = count
            for top in range(0, count, BALLS):
                squares = own[axes, top : top + BALLS]
                for j in range(BALLS):
                    gaps[j] = -squares[j]
                for k in range(axes):
                    centers = own[k, top : top + BALLS]
                    place = x[i, k]
                    for j in range(BALLS):
                        apart = place - centers[j]
                        gaps[j] += apart * apart
                covered = I32(0)
                for j in range(BALLS):
                    covered |= I32(gaps[j] <= F32(0))
                if covered != I32(0):
                    for j in range(BALLS):
                        if gaps[j] <= F32(0):
                            first = top + j
                            break
                    break
            word = mix(U32(mix(U32(first)) ^ words[r]))
            keys[i, r] = I32(keys[i, r] + I32(word))


@exactly
def add_least(
    x: NDArray[np.float32],
    orders: NDArray[np.uint32],
    words: NDArray[np.uint32],
    keys: NDArray[np.int32],
) -> None:
    """Add a word for the first element of each set, in the order of each repetition.

    An element is in the set where x is positive. `mix` is a permutation, so there are no ties; the
    empty set's word is that of the number beyond all.
    """
    least = np.empty(orders.size, dtype=np.uint32)
    for i in range(x.shape[0]):
        least[:] = U32(0xFFFFFFFF)
        some = False
        for e in range(x.shape[1]):
            if x[i, e] > F32(0):
                some = True
                scrambled = mix(U32(e + 1))
                for r in range(orders.size):
                    least[r] = min(least[r], mix(U32(scrambled ^ orders[r])))
        for r in range(orders.size):
            word = mix(U32(least[r] ^ words[r])) if some else words[r]
            keys[i, r] = I32(keys[i, r] + I32(word))


@exactly
def _bucket(key: np.int32, move: int, most: int) -> Any:
    """Return the highest 32 − move bits of a key; the key itself where it numbers the buckets."""
    if move == 0:
        return min(np.int64(U32(key)), most - 1)
    return np.int64(U32(key)) >> move


@exactly
def _sign(key: np.int32, move: int, signed: bool) -> Any:
    """Return the sign by the bit below the bucket's; plus where buckets are numbered."""
    if move == 0 or not signed:
        return 1
    return 1 - 2 * ((np.int64(U32(key)) >> (move - 1)) & 1)


@exactly
def tally(
    keys: NDArray[np.int32],
    counts: NDArray[np.bool_],
    moves: NDArray[np.int64],
    buckets: int,
    signed: bool,
    bits: int,
    table: NDArray[np.int64],
) -> None:
    """Add ±2^bits to one bucket of each repetition, for each row that counts."""
    unit = np.int64(1) << bits
    if buckets == 1 and signed:
        for i in range(counts.size):
            if counts[i]:
                for r in range(moves.size):
                    table[r] += unit if keys[i, r] >= 0 else -unit
        return
    for i in range(counts.size):
        if counts[i]:
            for r in range(moves.size):
                place = r * buckets + _bucket(keys[i, r], moves[r], buckets)
                table[place] += _sign(keys[i, r], moves[r], signed) * unit


@answering
def answer(
    keys: NDArray[np.int32],
    moves: NDArray[np.int64],
    buckets: int,
    signed: bool,
    table: NDArray[np.float64],
    means: NDArray[np.float64],
    shrink: float,
    sums: NDArray[np.float64],
) -> None:
    """Write what the repetitions say to each query, summed, and squared and summed.

    That is the signed bucket; without signs (T_b − mean of the repetition)·shrink, unless its
    buckets are numbered, so that no two cells share one.
    """
    for i in range(sums.shape[0]):
        total = squares = 0.0
        for r in range(moves.size):
            value = table[r * buckets + _bucket(keys[i, r], moves[r], buckets)]
            value *= _sign(keys[i, r], moves[r], signed)
            if not signed and moves[r] != 0:
                value = (value - means[r]) * shrink
            total += value
            squares += value * value
        sums[i, 0] = total
        sums[i, 1] = squares
