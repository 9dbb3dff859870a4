"""Compiled loops of random Fourier features: exact integer phases and their cosine and sine.

A phase is an integer count of 2⁻³² turns, Σ_k x_k ω_k modulo 2³²: wrapping integer arithmetic, so
the order of summation does not matter and every machine gets the same one. Its cosine and sine
come from `turn`, a function of a 32-bit integer alone.

`turn` folds the phase to ±1/8 turn, evaluates short polynomials in float32 (no fast-math, so the
same bits in a vector body, its tail, or NumPy), rounds to integers with `bits` bits, and **sets the
pair to zero if it is longer than allowed**: with A, B the integers shifted right by bits − 15, it
asks A² + B² ≤ 2³⁰ + 2¹⁶ in 32-bit integers. That never happens, as trying all 2³² phases shows; the
check is there so that the bound is enforced, not believed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering, exactly

I32 = np.int32
F32 = np.float32

TILE = 256
"""Frequencies handled at a time: their phases stay in the first cache."""
ROWS = 4
"""Rows handled at a time: each frequency loaded serves all of them."""
AXES = 4
"""Axes handled at a time."""
BLOCK = 256
"""Rows summed in 32 bits before they are added to the 64-bit table: 2⁸ · 2²² < 2³¹."""
CHECK_BITS = 15
CHECK_LIMIT = I32((1 << 30) + (1 << 16))

_EIGHTH = I32(1 << 29)
_QUARTER = I32(1 << 30)
_FRACTION = I32((1 << 30) - 1)
_RADIANS = F32(2 * math.pi * 2.0**-32)
# Least-maximum polynomials on ±π/4: errors 1.8e-9 and 1e-10, below float32's own 6e-8.
_S3, _S5, _S7 = F32(-0.16666650772), F32(0.00833197869), F32(-0.000194956359)
_C2, _C4, _C6, _C8 = F32(-0.5), F32(0.0416666456), F32(-0.00138873677), F32(2.44384519e-05)
_ONE = F32(1)


@exactly
def turn(phase: np.int32, scale: np.float32, shift: np.int32) -> tuple[np.int32, np.int32]:
    """Return the cosine and sine of `phase`·2⁻³² turns, times `scale` = 2^(15+shift), rounded."""
    quadrant = I32(phase + _EIGHTH)
    z = F32(I32(I32(quadrant & _FRACTION) - _EIGHTH)) * _RADIANS
    w = z * z
    sine = z + z * w * (_S3 + w * (_S5 + w * _S7))
    cosine = _ONE + w * (_C2 + w * (_C4 + w * (_C6 + w * _C8)))
    s = I32(np.rint(sine * scale))
    c = I32(np.rint(cosine * scale))
    a, b = I32(c >> shift), I32(s >> shift)
    keep = I32(-I32(I32(I32(a * a) + I32(b * b)) <= CHECK_LIMIT))
    s, c = I32(s & keep), I32(c & keep)
    # Bits 30 and 31 of `quadrant` tell by how many quarter turns to rotate (c, s).
    swap = I32(I32(c ^ s) & I32(-I32(I32(quadrant >> I32(30)) & I32(1))))
    c, s = I32(c ^ swap), I32(s ^ swap)
    sign = I32(I32(quadrant + _QUARTER) >> I32(31))
    c = I32(I32(c ^ sign) - sign)
    sign = I32(quadrant >> I32(31))
    s = I32(I32(s ^ sign) - sign)
    return c, s


@exactly
def round_steps(
    coordinates: NDArray[np.float64],
    counts: NDArray[np.bool_],
    steps_per_unit: float,
    limit: float,
    steps: NDArray[np.int32],
    masks: NDArray[np.int32],
) -> None:
    """Write coordinates as whole steps, clipped to ±limit, and masks of −1 for rows that count.

    `steps` and `masks` are longer than the rows and wider than the axes: padding, set to zero, so
    that one path of code serves every row. What is not a number goes to −limit: the row's own
    affair, and a defined one.
    """
    steps[:] = 0
    masks[:] = 0
    for i in range(coordinates.shape[0]):
        masks[i] = -1 if counts[i] else 0
        for k in range(coordinates.shape[1]):
            value = np.rint(coordinates[i, k] * steps_per_unit)
            if not value > -limit:
                value = -limit
            if value > limit:
                value = limit
            steps[i, k] = I32(value)


@exactly
def _four(row: NDArray[np.int32], k: int) -> tuple[np.int32, np.int32, np.int32, np.int32]:
    return row[k], row[k + 1], row[k + 2], row[k + 3]


@exactly
def phases_of_rows(
    steps: NDArray[np.int32],
    first: int,
    frequencies: NDArray[np.int32],
    offsets: NDArray[np.int32],
    p0: NDArray[np.int32],
    p1: NDArray[np.int32],
    p2: NDArray[np.int32],
    p3: NDArray[np.int32],
) -> None:
    """Write the phases of rows first … first+3 for one tile of frequencies.

    `frequencies` has shape (axes, TILE), with a multiple of AXES axes; the phases have TILE
    entries a row. Separate arrays, and four axes at a time: so the compiler keeps to registers.
    """
    for j in range(TILE):
        p0[j] = offsets[j]
        p1[j] = offsets[j]
        p2[j] = offsets[j]
        p3[j] = offsets[j]
    for k in range(0, frequencies.shape[0], AXES):
        u, v, w, z = frequencies[k], frequencies[k + 1], frequencies[k + 2], frequencies[k + 3]
        a0, b0, c0, d0 = _four(steps[first], k)
        a1, b1, c1, d1 = _four(steps[first + 1], k)
        a2, b2, c2, d2 = _four(steps[first + 2], k)
        a3, b3, c3, d3 = _four(steps[first + 3], k)
        for j in range(TILE):
            uj, vj, wj, zj = u[j], v[j], w[j], z[j]
            p0[j] = I32(p0[j] + I32(a0 * uj) + I32(b0 * vj) + I32(c0 * wj) + I32(d0 * zj))
            p1[j] = I32(p1[j] + I32(a1 * uj) + I32(b1 * vj) + I32(c1 * wj) + I32(d1 * zj))
            p2[j] = I32(p2[j] + I32(a2 * uj) + I32(b2 * vj) + I32(c2 * wj) + I32(d2 * zj))
            p3[j] = I32(p3[j] + I32(a3 * uj) + I32(b3 * vj) + I32(c3 * wj) + I32(d3 * zj))


@exactly
def accumulate(
    steps: NDArray[np.int32],
    masks: NDArray[np.int32],
    tiles: NDArray[np.int32],
    offsets: NDArray[np.int32],
    shift: int,
    cosines: NDArray[np.int64],
    sines: NDArray[np.int64],
) -> None:
    """Add the rounded cosines and sines of all rows to 64-bit sums, modulo 2⁶⁴.

    `tiles` has shape (n_tiles, axes, TILE), `offsets` (n_tiles, TILE), the sums n_tiles·TILE.
    """
    move = I32(shift)
    scale = F32(I32(1 << CHECK_BITS) << move)
    p0, p1 = np.empty(TILE, dtype=np.int32), np.empty(TILE, dtype=np.int32)
    p2, p3 = np.empty(TILE, dtype=np.int32), np.empty(TILE, dtype=np.int32)
    block_c = np.empty(TILE, dtype=np.int32)
    block_s = np.empty(TILE, dtype=np.int32)
    for t in range(tiles.shape[0]):
        tile, start = tiles[t], offsets[t]
        for top in range(0, steps.shape[0], BLOCK):
            block_c[:] = 0
            block_s[:] = 0
            for i in range(top, min(steps.shape[0], top + BLOCK), ROWS):
                phases_of_rows(steps, i, tile, start, p0, p1, p2, p3)
                m0, m1, m2, m3 = _four(masks, i)
                for j in range(TILE):
                    c0, s0 = turn(p0[j], scale, move)
                    c1, s1 = turn(p1[j], scale, move)
                    c2, s2 = turn(p2[j], scale, move)
                    c3, s3 = turn(p3[j], scale, move)
                    block_c[j] += I32((c0 & m0) + (c1 & m1) + (c2 & m2) + (c3 & m3))
                    block_s[j] += I32((s0 & m0) + (s1 & m1) + (s2 & m2) + (s3 & m3))
            for j in range(TILE):
                cosines[t * TILE + j] += block_c[j]
                sines[t * TILE + j] += block_s[j]


@answering
def _weigh(
    phases: NDArray[np.int32],
    cosines: NDArray[np.float64],
    sines: NDArray[np.float64],
    answers: NDArray[np.float64],
) -> None:
    """Add Σ t_j and Σ t_j² to two answers, t_j = C_j cos φ_j + S_j sin φ_j; cosines of 22 bits."""
    move, scale = I32(22 - CHECK_BITS), F32(1 << 22)
    total = squares = 0.0
    for j in range(TILE):
        c, s = turn(phases[j], scale, move)
        answer = c * cosines[j] + s * sines[j]
        total += answer
        squares += answer * answer
    answers[0] += total * 2.0**-22
    answers[1] += squares * 2.0**-44


@answering
def respond(
    steps: NDArray[np.int32],
    tiles: NDArray[np.int32],
    offsets: NDArray[np.int32],
    cosines: NDArray[np.float64],
    sines: NDArray[np.float64],
    answers: NDArray[np.float64],
) -> None:
    """Add Σ_j t_j and Σ_j t_j² to the answers of each query, shape (n_queries, 2).

    t_j = C_j cos φ_j + S_j sin φ_j is what one frequency says. The weights C and S have
    n_tiles·TILE entries, zero in the padding.
    """
    p0, p1 = np.empty(TILE, dtype=np.int32), np.empty(TILE, dtype=np.int32)
    p2, p3 = np.empty(TILE, dtype=np.int32), np.empty(TILE, dtype=np.int32)
    for t in range(tiles.shape[0]):
        tile, start = tiles[t], offsets[t]
        c, s = cosines[t * TILE : (t + 1) * TILE], sines[t * TILE : (t + 1) * TILE]
        for i in range(0, steps.shape[0], ROWS):
            phases_of_rows(steps, i, tile, start, p0, p1, p2, p3)
            _weigh(p0, c, s, answers[i])
            _weigh(p1, c, s, answers[i + 1])
            _weigh(p2, c, s, answers[i + 2])
            _weigh(p3, c, s, answers[i + 3])


@exactly
def turns(
    phases: NDArray[np.int32],
    shift: int,
    cosines: NDArray[np.int32],
    sines: NDArray[np.int32],
) -> None:
    """Write `turn` of each phase: the compiled function itself, for tests that try them all."""
    move = I32(shift)
    scale = F32(I32(1 << CHECK_BITS) << move)
    for j in range(phases.size):
        cosines[j], sines[j] = turn(phases[j], scale, move)
