"""Compiled loops of `quantiles`: products over cells, and the inversion of what they give."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import answering

Floats = NDArray[np.float64]


_BLOCK = 16
"""Factors that are multiplied before they divide: below 10¹⁹ each, they cannot overflow."""

_FADED = 1e-15
"""Where the product has sunk below this, it counts as zero."""


@answering
def laplace(squared: Floats, squares: Floats, counts: Floats, values: Floats) -> None:
    """Write ∏ 1/(1 + u²g²)^count, from u² of shape (n_queries, n) and g², (n_queries or 1, m)."""
    product = np.empty(squared.shape[1])
    for row in range(squared.shape[0]):
        x, answers = squared[row], values[row]
        weights = squares[min(row, squares.shape[0] - 1)]
        answers[:] = 1.0
        for start in range(0, weights.size, _BLOCK):
            product[:] = 1.0
            for j in range(start, min(start + _BLOCK, weights.size)):
                weight, count = weights[j], counts[j]
                if count == 1.0:
                    for i in range(x.size):
                        product[i] *= 1.0 + x[i] * weight
                else:
                    for i in range(x.size):
                        answers[i] *= math.exp(-count * math.log1p(x[i] * weight))
            for i in range(x.size):
                answers[i] /= product[i]


@answering
def sinc(squared: Floats, squares: Floats, counts: Floats, values: Floats) -> None:
    """Write ∏ (sin(ug)/ug)^count, likewise; counts are whole."""
    for row in range(squared.shape[0]):
        weights = squares[min(row, squares.shape[0] - 1)]
        for node in range(squared.shape[1]):
            product = 1.0
            for j in range(weights.size):
                angle = math.sqrt(squared[row, node] * weights[j])
                value = math.sin(angle) / angle if angle > 0.0 else 1.0
                product *= value if counts[j] == 1.0 else value ** counts[j]
                if abs(product) < _FADED:  # no factor is larger than one
                    product = 0.0
                    break
            values[row, node] = product


@answering
def series(
    squared: Floats, powers: Floats, edge: Floats, terms: Floats, reach: float, values: Floats
) -> None:
    """Multiply values by exp Σ c_k u^{2k} Σ g^{2k}, u growing along each row.

    Zero where u² times the largest g² is beyond the series' reach.
    """
    totals = np.empty(squared.shape[1])
    for row in range(squared.shape[0]):
        one = min(row, edge.size - 1)
        x, answers = squared[row], values[row]
        near = x.size
        while near and x[near - 1] * edge[one] > reach:
            near -= 1
        totals[:near] = 0.0
        for k in range(terms.size - 1, -1, -1):
            term = terms[k] * powers[one, k]
            for i in range(near):
                totals[i] = (totals[i] + term) * x[i]
        for i in range(near):
            answers[i] *= math.exp(totals[i])
        answers[near:] = 0.0


@answering
def solve(phi: Floats, span: float, level: float, quantiles: Floats) -> None:
    """Write t with (2/π)·h·Σ φ(v)·sin(vt)/v = level for each row, v = (i + ½)h: Newton's steps.

    Between brackets, from 0 to 22. sin(vt) and cos(vt) turn by th from one v to the next.
    """
    scale = 2 / math.pi * span
    parts = np.empty(phi.shape[1])
    for row in range(phi.shape[0]):
        heights = phi[row]
        for i in range(parts.size):
            parts[i] = heights[i] / ((i + 0.5) * span)
        low, high, t = 0.0, 22.0, 2.0
        for _ in range(60):
            sine, cosine = math.sin(0.5 * span * t), math.cos(0.5 * span * t)
            turned, kept = math.sin(span * t), math.cos(span * t)
            inside, slope = 0.0, 0.0
            for i in range(parts.size):
                inside += parts[i] * sine
                slope += heights[i] * cosine
                sine, cosine = sine * kept + cosine * turned, cosine * kept - sine * turned
            inside, slope = inside * scale, slope * scale
            if inside < level:
                low = t
            else:
                high = t
            step = t + (level - inside) / slope
            if not low < step < high:
                step = (low + high) / 2
            done = abs(step - t) < 1e-9
            t = step
            if done:
                break
        quantiles[row] = t
