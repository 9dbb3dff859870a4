"""Zero-concentrated differential privacy, and its exact statement as (ε, δ).

Bun and Steinke 2016: a pure ε-DP mechanism is ε²/2-zCDP, and ρ adds up under adaptive
composition. Canonne, Kamath and Steinke 2020, Corollary 13: ρ-zCDP implies (ε, δ)-DP whenever some
α > 1 gives

    ln δ ≥ (α − 1)(αρ − ε) − ln(α − 1) + α ln(1 − 1/α).

A float search may look for a good α, since every α is valid; the inequality itself is then
decided in fractions, with logarithms rounded to the safe side.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpkde.privacy.numbers import log_bounds

_GRID = 1 << 40


def _largest_rho_at(alpha: float, epsilon: float, log_delta: float) -> float:
    spare = log_delta + math.log(alpha - 1) - alpha * math.log1p(-1 / alpha)
    return (epsilon + spare / (alpha - 1)) / alpha


def _search_alpha(epsilon: float, log_delta: float) -> float:
    """Return the α that maximises ρ, by golden section in ln(α − 1); ρ is unimodal there."""
    # Its results must never change by a bit: what files declare is checked against the ρ of today.
    low, high = math.log(1e-6), math.log(1e15)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if _largest_rho_at(1 + math.exp(left), epsilon, log_delta) < _largest_rho_at(
            1 + math.exp(right), epsilon, log_delta
        ):
            low = left
        else:
            high = right
    return 1 + math.exp((low + high) / 2)


@lru_cache(maxsize=256)
def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ we can prove to imply (ε, δ)-DP, rounded down.

    Guarantee
    ---------
    Any ρ-zCDP mechanism, for the ρ returned, is (ε, δ)-DP.

    >>> rho = rho_within(Fraction(1), Fraction(1, 10**6))
    >>> 0.024 < rho < 0.025
    True
    """
    if delta <= 0:
        return Fraction(0)
    log_delta = log_bounds(delta)[0]
    alpha = Fraction(_search_alpha(float(epsilon), float(log_delta))).limit_denominator(10**6)
    if alpha <= 1:
        return Fraction(0)
    log_gap = log_bounds(alpha - 1)[0]
    log_shrink = log_bounds(1 - 1 / alpha)[1]
    spare = log_delta + log_gap - alpha * log_shrink
    rho = (epsilon + spare / (alpha - 1)) / alpha
    return max(_floor(rho), Fraction(0))


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an ε, rounded up, for which ρ-zCDP implies (ε, δ)-DP.

    >>> epsilon_of(rho_within(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10**6)) <= 1.000001
    True
    """
    low, high = Fraction(0), Fraction(math.ceil(float(rho) + 1))
    while rho_within(high, delta) < rho:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if rho_within(middle, delta) < rho:
            low = middle
        else:
            high = middle
    return high


def _floor(value: Fraction) -> Fraction:
    """Round down to a multiple of 2⁻⁴⁰, or to 40 significant bits where that is finer."""
    grid = _GRID
    while 0 < value < Fraction(1, 1 << 20) and value * grid < _GRID:
        grid <<= 20
    return Fraction(math.floor(value * grid), grid)
