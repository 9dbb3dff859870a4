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

_NEAR = 4.0
"""Of (ug)²: up to here sin(ug)/ug is taken from its power series."""


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
def _near(x: float) -> float:
    """Return sin(√x)/√x for x up to `_NEAR`, by its power series: it needs neither root nor sine.

    The first term left out, x¹³/27!, is below 10⁻²⁰.
    """
    value = 1 / 15511210043330985984000000.0 * x - 1 / 25852016738884976640000.0
    value = value * x + 1 / 51090942171709440000.0
    value = value * x - 1 / 121645100408832000.0
    value = value * x + 1 / 355687428096000.0
    value = value * x - 1 / 1307674368000.0
    value = value * x + 1 / 6227020800.0
    value = value * x - 1 / 39916800.0
    value = value * x + 1 / 362880.0
    value = value * x - 1 / 5040.0
    value = value * x + 1 / 120.0
    value = value * x - 1 / 6.0
    return value * x + 1.0


@answering
def sinc(squared: Floats, squares: Floats, counts: Floats, values: Floats) -> None:
    """Write ∏ (sin(ug)/ug)^count, likewise; counts are whole, and u grows along each row."""
    for row in range(squared.shape[0]):
        x, answers = squared[row], values[row]
        weights = squares[min(row, squares.shape[0] - 1)]
        answers[:] = 1.0
        for j in range(weights.size):
            weight, count = weights[j], counts[j]
            near = x.size
            while near and x[near - 1] * weight > _NEAR:
                near -= 1
            if count == 1.0:
                for i in range(near):
                    answers[i] *= _near(x[i] * weight)
            else:
                for i in range(near):
                    answers[i] *= _near(x[i] * weight) ** count
            for i in range(near, x.size):
                if abs(answers[i]) < _FADED:  # no factor is larger than one
                    answers[i] = 0.0
                    continue
                angle = math.sqrt(x[i] * weight)
                value = math.sin(angle) / angle
                answers[i] *= value if count == 1.0 else value**count
        for i in range(x.size):
            if abs(answers[i]) < _FADED:
                answers[i] = 0.0


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
