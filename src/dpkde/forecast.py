"""What is known in public before a table is made, and how much of the budget its count gets."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.choice import Chooser
from dpkde.errors import ParameterError
from dpkde.families.base import Outlook
from dpkde.frame import Frame
from dpkde.kernels import ProductKernel, home, is_product
from dpkde.kernels.base import gauss_points, graded
from dpkde.privacy.budget import COUNT, Adjacency, Amount, Budget, Guarantee, Spend
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm
from dpkde.privacy.noise.draw import laws_of

FEWEST_ROWS = 1 << 12
WORTHWHILE = 50
"""Where nothing is known of the number of records, the count's share is set as for a release worth
making: at least 4096 records, and a typical density of at least fifty times 1/(εn)."""
USUAL_DENSITIES = (0.01, 0.05)
GATHERED = 8.0
SPREAD = 1.25
"""Root mean square of KDE values over their mean: 1.1 to 1.2 on Taxi, Diabetes and mixtures, 1.5 on
road accidents."""
_SHARE_GRID = 4096


def options(budget: Budget, sampler: str) -> tuple[tuple[Amount, type[Law]], ...]:
    """Return the (amount, law) pairs that what is left of a budget can buy."""
    laws = laws_of(sampler)
    pure, concentrated = budget.left_pure(), budget.left_concentrated()
    found: list[tuple[Amount, type[Law]]] = []
    if pure is not None:
        found += [(pure, law) for law in (DiscreteLaplace, MaxNorm) if law in laws]
    if concentrated is not None:
        found.append((concentrated, DiscreteGaussian))
    return tuple(found)


def outlook(
    budget: Budget,
    frame: Frame,
    rows: float | None,
    density: float | None,
    sampler: str,
    capacity_bits: int,
) -> Outlook:
    """Return what is known in public, for what is left of a budget."""
    level = typical(frame, density)
    return Outlook(
        rows or assumed_rows(budget.guarantee, level),
        level,
        budget.guarantee.adjacency,
        options(budget, sampler),
        capacity_bits,
        next((s.law for s in budget.spends if isinstance(s, Spend) and s.purpose == "count"), None),
    )


def assumed_rows(guarantee: Guarantee, density: float) -> float:
    """Return how many records to set the count's share for, where nothing is known of them."""
    if guarantee.rho is not None:
        strength = math.sqrt(2 * float(guarantee.rho))
    else:
        assert guarantee.epsilon is not None
        strength = float(guarantee.epsilon)
    return max(WORTHWHILE / max(strength * density, 2.0**-40), float(FEWEST_ROWS))


def typical(frame: Frame, guess: float | None) -> float:
    """Return the KDE value to plan for: the caller's guess or ours, at least that of even data."""
    return max(usual_density(frame) if guess is None else guess, evenly_spread(frame))


def usual_density(frame: Frame) -> float:
    """Return the KDE value to plan for where the caller guesses none.

    A bandwidth is worth choosing where typical values are some hundredths, and the paper's are
    from 0.01 to 0.08. Over very wide axes they are lower: records seldom gather in less than an
    eighth of an axis, which makes 8 times what even data have, axis by axis.
    """
    low, high = USUAL_DENSITIES
    shares = _shares(frame)
    if shares is None:
        return high
    return min(max(float(np.minimum(GATHERED * shares, 1.0).prod()), low), high)


def evenly_spread(frame: Frame) -> float:
    """Return about the KDE of records spread evenly over the domain: hardly any data have less.

    ½ for directions; for sets that of single elements; 0 where nothing is known.
    """
    if home(frame.kernel) != "space":
        return 0.5 if home(frame.kernel) == "sphere" else 1 / frame.dim
    shares = _shares(frame)
    return 0.0 if shares is None else float(shares.prod())


def _shares(frame: Frame) -> NDArray[np.float64] | None:
    """Return I/(w + I) for axes of w bandwidths, I^d the integral of the kernel; None if unknown.

    That is about the part of an axis that a kernel covers.
    """
    kernel, halves = frame.kernel, frame.halves()
    if home(kernel) != "space" or halves is None:
        return None
    with np.errstate(all="ignore"):  # bounds may be as far apart as floats go
        try:
            if isinstance(kernel, ProductKernel) and is_product(kernel):
                whole = _profile_integral(kernel)
            else:
                unit = kernel.integral(frame.dim) / kernel.bandwidth.determinant(frame.dim)
                whole = float(unit ** (1 / frame.dim))
        except (ArithmeticError, ParameterError):
            return None
        shares: NDArray[np.float64] = whole / (2 * halves + whole)
        return shares if np.isfinite(shares).all() else None


@lru_cache(maxsize=64)
def _profile_integral(kernel: ProductKernel) -> float:
    t, mass = gauss_points(graded(min(kernel.profile_reach(1e-8), 1e4)))
    return 2 * float(kernel.profile(t) @ mass)


def count_amount(
    family: Chooser, frame: Frame, guarantee: Guarantee, view: Outlook, sampler: str
) -> Amount:
    """Return the share of the whole budget that the noisy count gets.

    A KDE value p = s/n has squared error (Var s + p²·Var n)/n²; over many queries the root mean
    square of p counts, `SPREAD` times the typical value. With G = σ_s·ε_t/√2 the size of the
    table's noise at a query, the best split is ε_c/ε_t = (p/G)^{2/3} for pure ε and ρ_c/ρ_t = p/G
    for zCDP (G then in units of 1/√2ρ_t). G comes from public numbers: where n is not known yet,
    as for `assumed_rows`; and at least 1, that of a single query answered alone.

    With δ the table may have pure noise or Gaussian noise, and the count is pure for both to stay
    open; before a Gaussian table it costs ρ_c = ε_c²/2, and has twice the variance that ρ_c could
    buy. Of the two splits the one with the smaller predicted error: not above that without δ,
    unless a family is passed by for its bias (`choice.rank`).
    """
    density = min(1.0, SPREAD * view.typical_density)
    kinds = [tuple(way for way in view.options if way[0].rho is None)]
    kinds.append(tuple(way for way in view.options if way[0].rho is not None))
    found: list[Amount] = []
    refused: ParameterError | None = None
    for kind in filter(None, kinds):
        sight = replace(view, options=kind)
        try:
            noise = family.choose(frame, sight).predict(frame, sight).noise
        except ParameterError as why:  # no table with noise of this kind
            refused = refused or why
            continue
        found.append(_best_split(guarantee, kind[0][0], noise * view.rows, density))
    if refused is not None and not found:
        raise refused
    if len(found) == 1:
        return found[0]

    def error(amount: Amount) -> float:
        after = _rehearsed(guarantee, amount, view, sampler)
        return family.choose(frame, after).predict(frame, after).error

    return min(found, key=error)


def _best_split(guarantee: Guarantee, whole: Amount, size: float, density: float) -> Amount:
    """Return the count's amount before a table whose noise is of this size for all the budget."""
    if whole.rho is None:
        assert whole.epsilon is not None
        gain = max(size * float(whole.epsilon) / 2**0.5, 1.0)
        return Amount(epsilon=whole.epsilon * share((density / gain) ** (2 / 3)))
    gain = max(size * float(2 * whole.rho) ** 0.5, 1.0)
    if guarantee.epsilon is None:
        return Amount(rho=whole.rho * share(density / gain))
    worth = float(2 * whole.rho * share(2**0.5 * density / gain)) ** 0.5
    steps = math.floor(_SHARE_GRID * worth / float(guarantee.epsilon))
    return Amount(epsilon=guarantee.epsilon * _on_grid(steps))


def after_count(
    budget: Budget, family: Chooser, frame: Frame, view: Outlook, sampler: str
) -> Outlook:
    """Return the outlook for the table: the count's share set aside on paper, nothing spent."""
    if budget.guarantee.adjacency is Adjacency.REPLACE:
        return view
    amount = count_amount(family, frame, budget.guarantee, view, sampler)
    return _rehearsed(budget.guarantee, amount, view, sampler)


def _rehearsed(guarantee: Guarantee, amount: Amount, view: Outlook, sampler: str) -> Outlook:
    rehearsal = Budget(guarantee)
    spend = rehearsal.spend("count", amount, count_law(amount), COUNT)
    return replace(view, options=options(rehearsal, sampler), count_law=spend.law)


def share(ratio: float) -> Fraction:
    """Return ratio/(1 + ratio) on a grid, between 1/4096 and a half."""
    return _on_grid(round(_SHARE_GRID * ratio / (1 + ratio)))


def _on_grid(steps: int) -> Fraction:
    return Fraction(min(max(steps, 1), _SHARE_GRID // 2), _SHARE_GRID)


def count_law(amount: Amount) -> type[Law]:
    """Return the law of the count's noise: Laplace for pure ε, Gaussian for ρ."""
    return DiscreteLaplace if amount.epsilon is not None else DiscreteGaussian
