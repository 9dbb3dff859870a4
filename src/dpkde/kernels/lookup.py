"""Products over axes of smooth even functions, by tables: special functions cost too much a query.

ln h is kept at nodes that lie 1/64 of an octave of 1 + t/s apart, with its slopes, and read by
cubics between them: to about 10⁻⁶, where h changes over lengths of s near zero, and over lengths in
proportion to t further out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]

OCTAVE = 64
"""Nodes an octave."""
OCTAVES = 40


def nodes(scale: float) -> Floats:
    """Return where the function is tabulated."""
    octaves = 2.0 ** np.arange(OCTAVES)[:, np.newaxis]
    inner = octaves * (1 + np.arange(OCTAVE) / OCTAVE)
    return np.asarray(scale * (np.append(inner.ravel(), 2.0**OCTAVES) - 1))


def tabulated(log: Callable[[Floats], Floats], scale: float) -> Floats:
    """Return ln h and its slope at the nodes, shape (n_nodes, 2)."""
    at = nodes(scale)
    step = 1e-5 * (at + scale)
    slopes = (log(at + step) - log(np.abs(at - step))) / (2 * step)
    return np.ascontiguousarray(np.stack([log(at), slopes], axis=1))


@answering
def add_logs(
    offsets: NDArray[np.float64],
    tables: NDArray[np.float64],
    scales: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add Σ_k ln h_k(|t_k|) to the sum of each row; one table for all axes, or one for each."""
    last = tables.shape[1] - 2
    for i in range(offsets.shape[0]):
        total = 0.0
        for k in range(offsets.shape[1]):
            which = k if tables.shape[0] > 1 else 0
            scale = scales[which]
            t = abs(offsets[i, k])
            mantissa, octave = math.frexp(1 + t / scale)
            place = (2 * mantissa - 1) * OCTAVE
            inside = int(place)
            node = (octave - 1) * OCTAVE + inside
            part = place - inside
            if not 0 <= node <= last:  # 10¹² scales away, or no number
                node, part, octave = last, 1.0, OCTAVES
            width = scale * 2.0 ** (octave - 1) / OCTAVE
            value, slope = tables[which, node, 0], tables[which, node, 1] * width
            rise = tables[which, node + 1, 0] - value
            after = tables[which, node + 1, 1] * width
            curve = 3 * rise - 2 * slope - after
            total += value + part * (slope + part * (curve + part * (slope + after - 2 * rise)))
        sums[i] += total
