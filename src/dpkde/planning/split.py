"""How much of the budget the noisy count gets, and what that leaves for the table."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from dpkde.errors import ParameterError
from dpkde.families.base import Layout, Outlook
from dpkde.planning.choice import Choice, Objective, expected
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.budget import Budget, Debit, Guarantee
from dpkde.privacy.laws import Randomness, law_of_a_number

SPREAD = 1.25
"""Root mean square of KDE values over their mean: 1.1 to 1.2 on Taxi, Diabetes and mixtures, 1.5 on
road accidents."""
_SHARE_GRID = 4096


def count_amount(choice: Choice, budget: Budget, view: Outlook) -> Amount:
    """Return the share of the whole budget that the noisy count gets.

    A KDE value p = s/n has squared error (Var s + p²·Var n)/n²; over many queries the root mean
    square of p counts, `SPREAD` times the typical value. With G = σ_s·ε_t/√2 the size of the
    table's noise at a query, the best split is ε_c/ε_t = (p/G)^{2/3} for pure ε and ρ_c/ρ_t = p/G
    for zCDP (G then in units of 1/√2ρ_t). G comes from public numbers: where n is not known yet,
    as for `assumed_rows`; and at least 1, that of a single query answered alone.

    With δ the table may have pure noise or Gaussian noise, and the count is pure for both to stay
    open; before a Gaussian table it costs ρ_c = ε_c²/2, and has twice the variance that ρ_c could
    buy. Of the two splits the one with the smaller predicted error: not above that without δ,
    unless a family is passed by for its bias (`choice.Typical`).
    """
    if choice.is_settled:  # releases of one plan have the split in common
        return _settled(
            choice.layouts[0],
            choice.objective,
            budget.guarantee,
            budget.spends,
            budget.randomness,
            view,
        )
    return _least_error(choice, budget, view)


@lru_cache(maxsize=64)
def _settled(
    layout: Layout,
    objective: Objective,
    guarantee: Guarantee,
    spends: tuple[Debit, ...],
    randomness: Randomness,
    view: Outlook,
) -> Amount:
    """Return the share where the table is fixed: a function of public numbers, all of them here."""
    budget = Budget(guarantee, randomness).on_paper()
    budget.debit(*spends)
    return _least_error(Choice((layout,), (), objective), budget, view)


def _least_error(choice: Choice, budget: Budget, view: Outlook) -> Amount:
    """Return the share after which the predicted error is least; see `count_amount`."""
    density = min(1.0, SPREAD * view.typical_density)
    pure = tuple(way for way in view.options if way[0].rho is None)
    concentrated = tuple(way for way in view.options if way[0].rho is not None)
    splits: list[tuple[float, Amount]] = []
    refusal: ParameterError | None = None
    for kind in filter(None, (pure, concentrated)):
        sight = replace(view, options=kind)
        try:
            layout = choice.best(sight)
        except ParameterError as error:  # no table with noise of this kind
            refusal = refusal or error
            continue
        foreseen = layout.predict(sight)
        # A model, if one fits, drops much of the table's noise and none of the count's.
        left = foreseen.noise if foreseen.assisted is None else foreseen.assisted
        # Records of a unit move count and table alike.
        size = math.sqrt(foreseen.noise * min(foreseen.noise, left)) * view.rows / view.records
        amount = _best_split(budget.guarantee, kind[0][0], size, density)
        # What the other table would have after this split, the layout being the same.
        after = expected(layout, _rehearsed(budget, amount, view).cases)
        splits.append((after.error, amount))
    if refusal is not None and not splits:
        raise refusal
    return min(splits, key=lambda split: split[0])[1]


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


def after_count(choice: Choice, budget: Budget, view: Outlook) -> Outlook:
    """Return the outlook for the table: the count's share set aside on paper, nothing spent."""
    if budget.guarantee.count_is_public:
        return view
    return _rehearsed(budget, count_amount(choice, budget, view), view)


def _rehearsed(budget: Budget, amount: Amount, view: Outlook) -> Outlook:
    rehearsal = budget.on_paper()
    rehearsal.debit(*budget.spends)
    spend = rehearsal.spend("count", amount, law_of_a_number(amount), COUNT)
    return replace(view, options=rehearsal.options, count_law=spend.law)


def share(ratio: float) -> Fraction:
    """Return ratio/(1 + ratio) on a grid, between 1/4096 and a half."""
    return _on_grid(round(_SHARE_GRID * ratio / (1 + ratio)))


def _on_grid(steps: int) -> Fraction:
    return Fraction(min(max(steps, 1), _SHARE_GRID // 2), _SHARE_GRID)
