"""Tails: how far independent errors go together, with what probability.

Chernoff's bound: each part of an error tells a bound ψ on ln E e^{u·error}, and
P(|Σ errors| > t) ≤ 2e^{−L} for t = min_u (Σψ(u) + L)/u. It holds for every query at once, since it
knows of the weights of the noise only how large they can be. The exact law of the noise at one
query, whose weights are known, is in `quantiles`.

Why each ψ holds:

* Discrete Laplace noise of scale t has E e^{uz} = 1/(1 − sinh²(u/2)/sinh²(1/2t)) ≤ 1/(1 − t²u²),
  since sinh(x)/x grows. For weights g the sum of −ln(1 − t²u²g_j²) is convex in the g_j², so among
  all with ‖g‖₂ ≤ G and ‖g‖_∞ ≤ P it is largest where G²/P² of them are P and the others zero.
* Discrete Gaussian noise is sub-Gaussian with its own σ² (Canonne, Kamath and Steinke 2020).
* Max-norm noise is uniform on a cube of radius r, given r; a uniform law on −r … r is
  sub-Gaussian with its own variance r(r + 1)/3. The radius exceeds
  t(m + 1 + √(2(m + 1)x) + x) + 1 with probability e^{−x} at most: a Gamma tail, the unit for the
  lattice.
* Independent terms with mean zero, variances that add up to V and values at most M have Bennett's
  ψ(u) = V/M²·(e^{uM} − 1 − uM).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm

RADIUS_SHARE = 1 / 8
"""The part of a failure probability that goes to the radius of max-norm noise."""


@dataclass(frozen=True)
class Part:
    """A bound ψ(u) on ln E e^{u·error}, for 0 ≤ u < limit, the same for −error."""

    cumulant: Callable[[float], float]
    limit: float = math.inf


def bounded(variance: float, reach: float) -> Part:
    """Return ψ of a sum of independent terms: their variances together, and the largest value."""
    if reach <= 0 or variance <= 0:
        return Part(lambda u: 0.0)

    def cumulant(u: float) -> float:
        x = u * reach
        return math.inf if x > 600 else variance / reach**2 * (math.expm1(x) - x)

    return Part(cumulant)


def gaussian(variance: float) -> Part:
    """Return ψ of a sub-Gaussian error."""
    return Part(lambda u: u * u * variance / 2)


def noise(law: Law, gain: float, peak: float, failure: float) -> Part:
    """Return ψ of noise at a query whose weights have ‖g‖₂ ≤ gain and ‖g‖_∞ ≤ peak.

    For max-norm noise it holds but for an event of probability `failure` times `RADIUS_SHARE`.
    """
    if isinstance(law, DiscreteGaussian):
        return gaussian(float(law.scale) * gain**2)
    if isinstance(law, MaxNorm):
        x = -math.log(failure * RADIUS_SHARE)
        m = law.cells + 1
        radius = float(law.scale) * (m + math.sqrt(2 * m * x) + x) + 1
        return gaussian((radius + 0.5) ** 2 / 3 * gain**2)
    scale = float(law.scale) * peak
    if scale <= 0:
        return Part(lambda u: 0.0)
    count = max((gain / peak) ** 2, 1.0)
    return Part(lambda u: -count * math.log1p(-((u * scale) ** 2)), 1 / scale)


def deviation(parts: Sequence[Part], log_odds: float) -> float:
    """Return t with P(|Σ errors| > t) ≤ 2e^{−log_odds}, the errors being independent.

    (ψ(u) + L)/u falls, then rises: a golden section in ln u finds its least value. Any u is valid.

    >>> t = deviation([gaussian(1.0)], math.log(2 / 0.05))
    >>> abs(t - math.sqrt(2 * math.log(2 / 0.05))) < 1e-6
    True
    """
    limit = min(part.limit for part in parts)

    def bound(log_u: float) -> float:
        u = math.exp(log_u)
        if u >= limit:
            return math.inf
        return (sum(part.cumulant(u) for part in parts) + log_odds) / u

    if all(part.cumulant(1e-3 * min(limit, 1.0)) == 0.0 for part in parts):
        return 0.0
    high = 90.0 if limit == math.inf else math.log(limit)
    low = high - 180.0
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = bound(left), bound(right)
    for _ in range(60):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = bound(right)
    return min(at_left, at_right)


def count_margin(law: Law | None, failure: float) -> int:
    """Return m with P(|noise on the count| > m) ≤ failure.

    Discrete Laplace: P(|z| > m) = 2q^{m+1}/(1 + q), q = e^{−1/t}. Gaussian: 2e^{−m²/2σ²}.
    """
    if law is None:
        return 0
    if isinstance(law, DiscreteGaussian):
        return math.ceil(math.sqrt(2 * float(law.scale) * math.log(2 / failure)))
    assert isinstance(law, DiscreteLaplace)
    inverse = 1 / float(law.scale)
    return max(0, math.ceil(math.log(2 / ((1 + math.exp(-inverse)) * failure)) / inverse))
