"""What a number is, in text: compiled, the same for files and for cells of frames, never an error.

A number is ``[+-]digits[.digits][e[+-]digits]`` with at least one digit before the exponent, spaces
and tabs around it aside. Anything else is NaN: words, ``nan``, ``inf``, hexadecimal, underscores.
A mark between thousands makes a bad cell of a number unless the caller names that mark, and then
every group but the first has to have three digits: ``1,234,567.8`` is one, ``12,34`` is none.

Numbers with up to 15 digits and small exponents come out correctly rounded, others within a few
units in the last place; always the same for the same text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly

_SPACE, _TAB = 32, 9
_PLUS, _MINUS, _ZERO, _NINE = 43, 45, 48, 57
_POWERS = 10.0 ** np.arange(23)
DOT = 46
NO_MARK = -1
"""For `thousands`: no byte."""


@exactly
def parse_number(
    text: NDArray[np.uint8], start: int, stop: int, decimal: int, thousands: int
) -> float:
    """Return the number written in text[start:stop], or NaN.

    `decimal` is the byte before decimals, `thousands` the one between groups of three digits.
    """
    while start < stop and (text[start] == _SPACE or text[start] == _TAB):
        start += 1
    while stop > start and (text[stop - 1] == _SPACE or text[stop - 1] == _TAB):
        stop -= 1
    if start == stop:
        return np.nan
    negative = text[start] == _MINUS
    if negative or text[start] == _PLUS:
        start += 1
    mantissa, exponent, digits = np.int64(0), 0, 0
    seen_decimal = grouped = False
    group = 0  # digits since the last mark
    while start < stop:
        c = text[start]
        if _ZERO <= c <= _NINE:
            digits += 1
            group += 1
            if mantissa < 100_000_000_000_000_000:
                mantissa = mantissa * 10 + np.int64(c - _ZERO)
                exponent -= 1 if seen_decimal else 0
            else:
                exponent += 0 if seen_decimal else 1
        elif c == decimal and not seen_decimal:
            if grouped and group != 3:
                return np.nan
            seen_decimal = True
        elif c == thousands and not seen_decimal:
            if group == 0 or group > 3 or (grouped and group != 3):
                return np.nan
            grouped, group = True, 0
        else:
            break
        start += 1
    if digits == 0 or (grouped and not seen_decimal and group != 3):
        return np.nan
    if start < stop:
        if text[start] != 101 and text[start] != 69:  # e, E
            return np.nan
        start += 1
        down = start < stop and text[start] == _MINUS
        if start < stop and (down or text[start] == _PLUS):
            start += 1
        if start == stop:
            return np.nan
        power = 0
        while start < stop:
            c = text[start]
            if c < _ZERO or c > _NINE:
                return np.nan
            if power < 100_000:
                power = power * 10 + int(c - _ZERO)
            start += 1
        exponent += -power if down else power
    value = _scale(float(mantissa), exponent)
    return -value if negative else value


@exactly
def _scale(mantissa: float, exponent: int) -> float:
    """Return mantissa·10^exponent, by exact powers of ten up to 10²²."""
    if mantissa == 0.0:
        return 0.0
    while exponent > 22 and mantissa < np.inf:
        mantissa *= 1e22
        exponent -= 22
    while exponent < -22 and mantissa > 0.0:
        mantissa /= 1e22
        exponent += 22
    if exponent > 22 or exponent < -22:
        return mantissa  # already infinite, or zero
    if exponent >= 0:
        mantissa *= _POWERS[exponent]
    else:
        mantissa /= _POWERS[-exponent]
    return mantissa


@exactly
def _parse_all(
    text: NDArray[np.uint8], ends: NDArray[np.int64], values: NDArray[np.float64]
) -> None:
    start = 0
    for i in range(ends.size):
        values[i] = parse_number(text, start, ends[i], DOT, NO_MARK)
        start = ends[i]


def parse_texts(texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the number in each text, or NaN.

    >>> parse_texts([b"1.5", b" 2e3", b"n/a", b""]).tolist()
    [1.5, 2000.0, nan, nan]
    """
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    values = np.empty(len(texts))
    _parse_all(np.frombuffer(b"".join(texts), dtype=np.uint8), ends, values)
    return values
