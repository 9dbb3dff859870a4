"""Ids in text, in canonical form: compiled, the same for files and for cells; see `ids`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly
from dpkde.tables.ids import MISSING, TEXT, WHOLE

_SPACE, _TAB, _QUOTE = 32, 9, 34
_MINUS, _ZERO, _NINE = 45, 48, 57
_MARK = (0xEF, 0xBF, 0xBD)
_DIGITS = 19
_LARGEST = np.uint64(0x7FFFFFFFFFFFFFFF)


@exactly
def canonical(
    text: NDArray[np.uint8],
    spans: NDArray[np.int64],
    missing: NDArray[np.bool_],
    kinds: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    kept: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> int:
    """Write the canonical form of the id in each span; return how many bytes of text were kept.

    Parameters
    ----------
    text, spans
        Rows of start, stop, and whether the field was in quotes.
    missing
        Which are no id, whatever stands there.
    kinds, numbers, kept, ends
        Written to, as in `Labels`; `kept` has room for all spans.
    """
    used = 0
    for i in range(len(spans)):
        start, stop = spans[i, 0], spans[i, 1]
        while start < stop and (text[start] == _SPACE or text[start] == _TAB):
            start += 1
        while stop > start and (text[stop - 1] == _SPACE or text[stop - 1] == _TAB):
            stop -= 1
        kinds[i], ends[i] = MISSING, used
        if missing[i] or start >= stop:
            continue
        whole, number = _whole(text, start, stop)
        if whole:
            kinds[i], numbers[i] = WHOLE, number
            continue
        if _is_marked(text, start, stop):
            continue
        kinds[i] = TEXT
        position = start
        while position < stop:
            kept[used] = text[position]
            used += 1
            if (
                spans[i, 2] != 0
                and text[position] == _QUOTE
                and position + 1 < stop
                and text[position + 1] == _QUOTE
            ):
                position += 1
            position += 1
        ends[i] = used
    return used


@exactly
def _is_marked(text: NDArray[np.uint8], start: int, stop: int) -> bool:
    """Return whether U+FFFD is in a text: characters that could not be read, whichever."""
    for position in range(start, stop - 2):
        if (
            text[position] == _MARK[0]
            and text[position + 1] == _MARK[1]
            and text[position + 2] == _MARK[2]
        ):
            return True
    return False


@exactly
def _whole(text: NDArray[np.uint8], start: int, stop: int) -> tuple[bool, Any]:
    """Return whether a text is the decimal form of a number of 64 bits, and which."""
    negative = text[start] == _MINUS
    if negative:
        start += 1
    digits = stop - start
    if digits < 1 or digits > _DIGITS or (text[start] == _ZERO and (digits > 1 or negative)):
        return False, 0
    size = np.uint64(0)
    for position in range(start, stop):
        c = text[position]
        if c < _ZERO or c > _NINE:
            return False, 0
        size = size * np.uint64(10) + np.uint64(c - _ZERO)
    if size > _LARGEST:  # 19 digits are below 2⁶⁴
        return False, 0
    return True, -np.int64(size) if negative else np.int64(size)
