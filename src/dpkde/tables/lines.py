r"""Numbers from lines of delimited text: compiled, one line one record, never an error.

Why not a library's CSV reader: in those a stray quote or an over-long cell in one record can
swallow, shift or end the records after it, and their errors quote the offending cell. Here **a
record is a line**, whatever is in it. What is not a finite number becomes NaN, a line with too many
or too few fields becomes a row of NaN, and nothing raises. So a record cannot touch its neighbours.

Rules. Lines end with ``\n``, ``\r\n`` or ``\r\r\n`` (text translated twice, on Windows); where a
header ends with ``\r`` alone, `text` makes every ``\r`` a line break. Blank lines are no records,
except in a table of one column, where a missing value leaves nothing else of its line. Fields are
separated by the delimiter; a field that begins with ``"`` runs to its closing ``"`` within the
line. Spaces around a field are ignored. A number is ``[+-]digits[.digits][e[+-]digits]``, with at
least one digit before the exponent. A line longer than `MAX_LINE` bytes is a row of NaN.

Numbers with up to 15 digits and small exponents come out correctly rounded, others within a few
units in the last place; always the same for the same text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.compiled import exactly

MAX_LINE = 1 << 20

_NEWLINE, _RETURN, _SPACE, _TAB, _QUOTE = 10, 13, 32, 9, 34
_PLUS, _MINUS, _DOT, _ZERO, _NINE = 43, 45, 46, 48, 57
_POWERS = 10.0 ** np.arange(23)


@exactly
def parse_number(text: NDArray[np.uint8], start: int, stop: int) -> float:
    """Return the number written in text[start:stop], or NaN."""
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
    seen_dot = False
    while start < stop:
        c = text[start]
        if _ZERO <= c <= _NINE:
            digits += 1
            if mantissa < 100_000_000_000_000_000:
                mantissa = mantissa * 10 + np.int64(c - _ZERO)
                exponent -= 1 if seen_dot else 0
            else:
                exponent += 0 if seen_dot else 1
        elif c == _DOT and not seen_dot:
            seen_dot = True
        else:
            break
        start += 1
    if digits == 0:
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
def count_lines(text: NDArray[np.uint8]) -> int:
    """Return at least the number of lines."""
    lines = 1
    for c in text:
        lines += c == _NEWLINE
    return lines


@exactly
def parse_lines(
    text: NDArray[np.uint8], delimiter: int, wanted: NDArray[np.int64], rows: NDArray[np.float64]
) -> int:
    """Write the wanted fields of each line, and return how many records there were.

    Lines are what line breaks are between: after the last one there is one more, if only a blank.
    `wanted` has one entry for each field a line should have: the column of `rows` to write it to,
    or −1.
    """
    n, position, size = 0, 0, text.size
    while position <= size:
        end = position
        while end < size and text[end] != _NEWLINE:
            end += 1
        stop = end
        while stop > max(position, end - 2) and text[stop - 1] == _RETURN:
            stop -= 1
        if stop > position or wanted.size == 1:
            good = stop - position <= MAX_LINE and _parse_line(
                text, position, stop, delimiter, wanted, rows[n]
            )
            if not good:
                rows[n, :] = np.nan
            n += 1
        position = end + 1
    return n


@exactly
def _parse_line(
    text: NDArray[np.uint8],
    start: int,
    stop: int,
    delimiter: int,
    wanted: NDArray[np.int64],
    row: NDArray[np.float64],
) -> bool:
    """Write one line's fields; return whether it has as many as it should."""
    field = 0
    while True:
        first = start
        while first < stop and text[first] == _SPACE:
            first += 1
        if first < stop and text[first] == _QUOTE:
            first += 1
            last = first
            while last < stop and text[last] != _QUOTE:
                last += 1
            if last == stop:
                return False  # the quote never closes
            start = last + 1
            while start < stop and text[start] != delimiter:
                if text[start] != _SPACE:
                    return False
                start += 1
        else:
            while start < stop and text[start] != delimiter:
                start += 1
            last = start
        if field == wanted.size:
            return False
        if wanted[field] >= 0:
            row[wanted[field]] = parse_number(text, first, last)
        field += 1
        if start == stop:
            return field == wanted.size
        start += 1
