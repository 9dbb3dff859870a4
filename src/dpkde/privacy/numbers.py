"""Exact numbers for privacy: what a caller typed, and rounding with a known direction.

No float decides a privacy bound. A parameter becomes a `Fraction` at the border and stays one;
where a transcendental function is needed, its value is enclosed between two fractions, and the
one that gives more noise is used.
"""

from __future__ import annotations

import decimal
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, SupportsFloat

from dpkde.errors import ParameterError

Exact = int | str | Fraction | Decimal | float
"""What a caller may pass for ε, δ or ρ."""

SMALL_SCALE_BITS = 16
"""Scales below 2¹⁶ are multiples of 2⁻¹⁶, larger ones are integers."""


def exact(value: Exact, name: str) -> Fraction:
    """Return `value` as a fraction, never above what was meant.

    An int, a fraction, a `Decimal` or a string such as ``"0.1"`` or ``"1/10"`` is taken as it
    stands. A float is taken as the smaller of the number it stores and the decimal it prints as:
    ``0.1`` stores slightly more than a tenth, so it becomes 1/10; ``0.3`` stores slightly less
    than three tenths, and keeps that.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact(0.5, "epsilon")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))
    """
    wrong = ParameterError(f"{name} must be a finite number, got {value!r:.80}")
    if isinstance(value, bool) or not _is_short(value):
        raise wrong
    try:
        if isinstance(value, (int, str, Fraction, Decimal)):
            return Fraction(value)
        if isinstance(value, SupportsFloat):
            return min(Fraction(float(value)), Fraction(str(value)))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise wrong from None
    raise wrong


def _is_short(value: Any) -> bool:
    """Tell numbers of some hundred digits at most from those that would take forever to write."""
    if isinstance(value, str):
        power = re.search(r"[eE][+-]?([\d_]+)", value)
        return len(value) <= 400 and (power is None or len(power.group(1)) <= 3)
    return not isinstance(value, Decimal) or not value.is_finite() or abs(value.adjusted()) < 1000


LEAST, MOST = Fraction(999_999, 10**18), Fraction(10**6)
"""The range of ε and ρ: beyond it no table means anything."""


def positive(value: Exact, name: str, least: Fraction = LEAST, most: Fraction = MOST) -> Fraction:
    """Return `value` as a positive fraction within a range."""
    number = exact(value, name)
    if number <= 0:
        raise ParameterError(f"{name} must be positive, got {value!r}")
    if not least <= number <= most:
        raise ParameterError(f"{name} must be from {plain(least)} to {plain(most)}")
    return number


def scale_up(value: Fraction) -> Fraction:
    """Round a noise scale up, to an integer or, below 2¹⁶, to a multiple of 2⁻¹⁶.

    The samplers count in steps of the scale's denominator, so it has to be small; more noise is
    the safe side. The relative loss is at most 2⁻¹⁶ for scales above 1.

    >>> scale_up(Fraction(200, 3)), scale_up(Fraction(10**9, 7))
    (Fraction(4369067, 65536), Fraction(142857143, 1))
    """
    if value >= 1 << SMALL_SCALE_BITS:
        return Fraction(math.ceil(value))
    return Fraction(math.ceil(value * (1 << SMALL_SCALE_BITS)), 1 << SMALL_SCALE_BITS)


def rounded_down(value: Fraction, digits: int = 12) -> Fraction:
    """Return a positive fraction with so many decimal digits at most, and never above `value`.

    >>> rounded_down(Fraction(2, 3), 4), rounded_down(Fraction(1, 50))
    (Fraction(3333, 5000), Fraction(1, 50))
    """
    shift = digits - len(str(value.numerator)) + len(str(value.denominator))
    unit = Fraction(10) ** shift
    return Fraction(math.floor(value * unit)) / unit


def log_bounds(value: Fraction, digits: int = 50) -> tuple[Fraction, Fraction]:
    """Return fractions below and above ln(value).

    `decimal` rounds its logarithm and its division correctly, so the neighbours of the results
    at directed quotients enclose the truth.

    >>> low, high = log_bounds(Fraction(2))
    >>> low < high and abs(float(low) - math.log(2)) < 1e-15
    True
    """
    low, high = _quotients(value, digits)
    with decimal.localcontext(decimal.Context(prec=digits)):
        return Fraction(low.ln().next_minus()), Fraction(high.ln().next_plus())


def exp_minus_bounds(value: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return fractions below and above exp(−value), for value ≥ 0.

    >>> low, high = exp_minus_bounds(Fraction(1, 3), 40)
    >>> low < high and abs(float(low) - math.exp(-1 / 3)) < 1e-15
    True
    """
    low, high = _quotients(value, digits)
    with decimal.localcontext(decimal.Context(prec=digits, Emin=decimal.MIN_EMIN)):
        return (
            max(Fraction((-high).exp().next_minus()), Fraction(0)),
            min(Fraction((-low).exp().next_plus()), Fraction(1)),
        )


def _quotients(value: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return decimals below and above a fraction."""
    top, bottom = Decimal(value.numerator), Decimal(value.denominator)
    down = decimal.Context(prec=digits, rounding=decimal.ROUND_FLOOR)
    up = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return down.divide(top, bottom), up.divide(top, bottom)


def plain(value: Fraction) -> str:
    """Write a fraction as a person would read it: at most four figures, never too small.

    >>> plain(Fraction(1, 2)), plain(Fraction(1, 3)), plain(Fraction(1, 10**6))
    ('0.5', '0.3334', '1e-06')
    """
    if value == 0:
        return "0"
    up = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)
    rounded = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    near = float(rounded)
    return f"{near:.4g}" if 1e-300 < near < 1e300 else f"{rounded.normalize():e}"
