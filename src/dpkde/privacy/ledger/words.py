"""Amounts as a person reads them: what was spent is rounded up, what is left down."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import Left
from dpkde.privacy.numbers import plain


def amount(guarantee: Guarantee) -> str:
    """Return a guarantee in letters, without whom it protects.

    >>> amount(Guarantee.declare(epsilon="1/3", delta="1e-7"))
    'ε = 0.3334, δ = 1e-07'
    """
    numbers = {"ε": guarantee.epsilon, "δ": guarantee.delta, "ρ": guarantee.rho}
    return ", ".join(f"{letter} = {plain(value)}" for letter, value in numbers.items() if value)


def at_most(value: Fraction) -> str:
    """Write a fraction in at most four figures, never too large.

    >>> at_most(Fraction(1, 3)), at_most(Fraction(11759, 10**4)), at_most(Fraction(0))
    ('0.3333', '1.175', '0')
    """
    if value <= 0:
        return "0"
    down = decimal.Context(prec=4, rounding=decimal.ROUND_FLOOR)
    return plain(Fraction(down.divide(Decimal(value.numerator), Decimal(value.denominator))))


def left_in_words(left: Left, total: Guarantee) -> str:
    """Return what the next release may have, in the currencies of a total."""
    if total.rho is not None:
        return f"ρ = {at_most(left.rho)} (or pure ε = {at_most(left.epsilon)})"
    ways = [f"ε = {at_most(left.epsilon)}"]
    if left.delta and left.epsilon_with_delta:
        with_delta = f"ε = {at_most(left.epsilon_with_delta)} with δ = {at_most(left.delta)}"
        ways = [with_delta] if left.epsilon == left.epsilon_with_delta else [*ways, with_delta]
    if total.delta and left.rho:
        ways.append(f"ρ = {at_most(left.rho)}")
    return " or ".join(ways)
