"""The exact law of the noise at a query, and its quantiles.

At a query with weights g the error of a sum is Σ_j g_j z_j over the table's noise z, plus p times
the count's noise, plus what the family's own randomness adds, taken as normal with a given
variance. All are symmetric and independent, so that with φ the product of their characteristic
functions

    P(|error| ≤ t) = (2/π) ∫₀^∞ φ(u)·sin(ut)/u du.

Laplace noise of scale b has φ = ∏ 1/(1 + b²g_j²u²) (b here such that the variance is that of the
discrete law), Gaussian noise φ = exp(−σ²‖g‖²u²/2), and max-norm noise, uniform on a cube of
radius r, φ = E ∏ sin(ug_j r)/(ug_j r) over r, whose law is known. The midpoint rule with
step h gives the integral but for P(|error| > 2π/h − t), which is below 10⁻⁸.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpkde.privacy.laws.base import Floats, Law
from dpkde.privacy.laws.factors import Factor
from dpkde.privacy.laws.weights import Splits, Weights

__all__ = ["Weights", "half_widths"]

_SPAN = 2 * math.pi / 44
"""Step of the midpoint rule, in units of 1/(standard deviation)."""
_MOST_NODES = 400
"""Enough for a single Laplace weight, whose φ fades slowest: to 10⁻⁵."""
_SMALL = 1e-8


def half_widths(
    law: Law,
    weights: Splits,
    level: float,
    *,
    count_law: Law | None = None,
    count_weights: Floats | None = None,
    normal: Floats | float = 0.0,
) -> Floats:
    """Return t with P(|error| ≤ t) = level for each query.

    Parameters
    ----------
    law, weights
        Of the noise on the table.
    level
        Between 0 and 1; beyond 1 − 10⁻⁷ the result is that of 1 − 10⁻⁷.
    count_law, count_weights
        Of the noise on the count, if it has any; weights of shape (n_queries,).
    normal
        Variance of a normal part, a number or shape (n_queries,).
    """
    part = _Table(law, *weights.split())
    total = part.variance + np.nan_to_num(normal)
    heavy = np.zeros_like(total)
    if count_law is not None and count_weights is not None:
        heavy = count_weights**2 * count_law.variance
        total = total + heavy
    deviation = np.sqrt(np.where(total > 0, total, 1.0))
    nodes = part.nodes(deviation)
    # Rows of u in units of 1/deviation.
    v = (np.arange(nodes, dtype=np.float64) + 0.5) * _SPAN
    u = v / deviation[:, np.newaxis]
    phi = law.characteristic(part, u)
    if np.any(normal):
        phi = phi * np.exp(-0.5 * u**2 * np.broadcast_to(normal, total.shape)[:, np.newaxis])
    if count_law is not None:
        phi = phi * count_law.characteristic_of_one(u**2 * heavy[:, np.newaxis])
    quantiles = _solve(phi, min(level, 1 - 1e-7))
    return np.asarray(np.where(total > 0, quantiles * deviation, 0.0))


def _solve(phi: Floats, level: float) -> Floats:
    """Return t with (2/π)·h·Σ φ(v)·sin(vt)/v = level, φ being given at v = h/2, 3h/2, …."""
    from dpkde.privacy.laws import inversion

    quantiles = np.empty(len(phi))
    inversion.solve(np.ascontiguousarray(phi, dtype=np.float64), _SPAN, level, quantiles)
    return quantiles


class _Table(NamedTuple):
    """The table's part: the law of the noise on a cell, and the weights; see `Split`."""

    law: Law
    squares: Floats
    counts: Floats
    powers: Floats
    edge: Floats

    @property
    def variance(self) -> Floats:
        return np.asarray(self.law.variance * (self.squares @ self.counts + self.powers[:, 0]))

    def nodes(self, deviation: Floats) -> int:
        """Return how many nodes are needed: until φ of the table's part has faded."""
        largest = np.maximum(self.squares.max(axis=1, initial=0.0), 1e-300)
        alike = float((self.variance / self.law.variance / largest).min(initial=200.0))
        share = float((self.variance / deviation**2).min(initial=1.0))
        # φ(u) ≤ (1 + b²u²·largest)^{−alike}, and b²·largest·alike is half the variance.
        rate = max(min(alike, 200.0), 1.0)
        v = math.sqrt(2 * rate * (_SMALL ** (-1 / (rate + 0.5)) - 1) / max(share, 1e-3))
        return int(min(max(v, 8.0) / _SPAN + 2, _MOST_NODES))

    def product(self, u: Floats, factor: Factor) -> Floats:
        """Return ∏ factor(u·g_j): the largest weights one by one, the others by a power series.

        Where the series no longer holds, all the largest have passed its end, too: φ has faded.
        """
        squared = u**2
        values = factor.product(squared, self.squares, self.counts)
        if self.edge.any():
            from dpkde.privacy.laws import inversion

            terms = np.array(factor.series)
            inversion.series(squared, self.powers, self.edge, terms, factor.reach, values)
        return values
