"""What the types of Arrow stand for as numbers: a type is schema, and may be refused.

========================  =======================================================================
integers, floats          themselves, rounded to a float64
booleans                  0 and 1
decimals                  the nearest float64, as of the same digits in text
dates                     days since 1970-01-01
timestamps                seconds since 1970-01-01T00:00:00 in UTC; without a zone they are in UTC
times of a day            seconds since midnight
durations                 seconds
dictionaries              what their values stand for
nulls alone               NaN
========================  =======================================================================

Text, binary, nested and extension types have no such meaning. No value raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.space.moments import DATE, DAY, INSTANT, NUMBER, ColumnType, seconds

Floats = NDArray[np.float64]

_EXACT = 1 << 53
"""Whole numbers up to this are floats."""
_TENS = 22
"""The largest power of ten that is a float."""


@dataclass(frozen=True)
class Meaning:
    """What a column stands for, and how its numbers are read.

    `read` takes an Arrow array that is no dictionary; what it returns for nulls may be anything.
    """

    type: ColumnType
    read: Callable[[Any], NDArray[Any]]

    def numbers(self, array: Any) -> NDArray[Any]:
        """Return an array as numbers, nulls as NaN: float32 where it is that, else float64."""
        import pyarrow as pa

        if pa.types.is_dictionary(array.type):  # its values may be null where its indices are not
            array = array.dictionary_decode()
        numbers = self.read(array)
        if numbers.dtype not in (np.float32, np.float64):
            numbers = numbers.astype(np.float64)
        if array.null_count:
            numbers = np.where(np.asarray(array.is_null()), numbers.dtype.type(np.nan), numbers)
        return numbers


def meaning_of(kind: Any) -> Meaning | None:
    """Return what an Arrow type stands for; None where that is no number."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return meaning_of(kind.value_type)
    if types.is_null(kind):
        return Meaning(NUMBER, lambda array: np.full(len(array), np.nan))
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind):
        return Meaning(NUMBER, _plain)
    if types.is_decimal(kind):
        return Meaning(NUMBER, _decimals)
    if types.is_date32(kind):
        return Meaning(DATE, lambda array: _words(array, np.int32).astype(np.float64))
    if types.is_date64(kind):
        return Meaning(DATE, lambda array: seconds(_words(array, np.int64), "ms") / DAY)
    if types.is_timestamp(kind):
        return Meaning(INSTANT, partial(_seconds, unit=kind.unit))
    if types.is_time(kind) or types.is_duration(kind):
        return Meaning(NUMBER, partial(_seconds, unit=kind.unit))
    return None


def _plain(array: Any) -> NDArray[Any]:
    if array.null_count and str(array.type) not in ("halffloat", "float", "double"):
        array = array.fill_null(False if str(array.type) == "bool" else 0)
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _words(array: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """Return what is stored of each entry, of a type whose entries are one word each."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype=dtype)[array.offset : array.offset + len(array)]


def _seconds(array: Any, unit: str) -> Floats:
    words = _words(array, np.int32 if array.type.bit_width == 32 else np.int64)
    return seconds(words.astype(np.int64), unit)


def _decimals(array: Any) -> Floats:
    """Return the float64 nearest to each decimal.

    A whole number that is a float, by a power of ten that is one, is correctly rounded by a single
    division; others, which are rare, are read digit by digit.
    """
    width, scale = array.type.bit_width, array.type.scale
    if width <= 64:
        digits = _words(array, np.int32 if width == 32 else np.int64).astype(np.int64)
        small = np.ones(len(array), dtype=np.bool_)
    else:
        words = width // 64
        data = array.buffers()[1]
        stored = np.frombuffer(data or b"", dtype=np.int64).reshape(-1, words)
        stored = stored[array.offset : array.offset + len(array)]
        digits = stored[:, 0]
        small = (stored[:, 1:] == (digits >> 63)[:, np.newaxis]).all(axis=1)
    small = small & (digits >= -_EXACT) & (digits <= _EXACT) & (abs(scale) <= _TENS)
    power = float(10 ** min(abs(scale), _TENS))
    numbers = digits * power if scale < 0 else digits / power
    for place in np.flatnonzero(~small).tolist():
        cell = array[place].as_py()
        numbers[place] = float(cell) if isinstance(cell, Decimal) else np.nan
    return np.asarray(numbers)
