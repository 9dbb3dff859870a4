"""Dates and instants as numbers: days and seconds since 1970-01-01, and the texts they are told in.

A column stands for plain numbers, for dates or for instants (`ColumnType`). Dates count in days,
instants in seconds, both from 1970-01-01T00:00:00 in UTC; an instant without a zone is in UTC.
Either can be read as the other: a day has 86,400 seconds, and no leap seconds. Times of a day and
durations are plain numbers, of seconds.

A part of a second is added to the whole seconds at last, correctly rounded by itself: the same
instant in milli-, micro- or nanoseconds is the same number, bit for bit.
"""

from __future__ import annotations

import datetime
import math
import re
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError

Floats = NDArray[np.float64]

DAY = 86_400
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NONE = np.iinfo(np.int64).min
"""What NumPy calls a moment that is none."""
_SHAPE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", re.ASCII)


class ColumnType(StrEnum):
    """What the numbers of a column stand for."""

    NUMBER = "number"
    DATE = "date"
    """Days since 1970-01-01."""
    INSTANT = "instant"
    """Seconds since 1970-01-01T00:00:00Z."""


NUMBER, DATE, INSTANT = ColumnType.NUMBER, ColumnType.DATE, ColumnType.INSTANT


def seconds(ticks: NDArray[np.int64], unit: str) -> Floats:
    """Return whole numbers of ticks, in "s", "ms", "us" or "ns", as seconds.

    >>> seconds(np.array([1_500_000_000, -1]), "ns").tolist()
    [1.5, -1e-09]
    """
    step = _TICKS[unit]
    whole = np.sign(ticks) * (np.abs(ticks) // step)
    return np.asarray(whole + (ticks - whole * step) / step)


def converted(numbers: Any, have: ColumnType, want: ColumnType) -> Any:
    """Return days as seconds, or seconds as days, where one is at hand and the other is wanted."""
    if have is DATE and want is INSTANT:
        return numbers * DAY
    if have is INSTANT and want is DATE:
        return numbers / DAY
    return numbers


def type_of(array_type: np.dtype[Any]) -> ColumnType:
    """Return what an array of `datetime64` stands for, by its unit; of `timedelta64`: a number."""
    if array_type.kind != "M":
        return NUMBER
    return DATE if np.datetime_data(array_type)[0] in ("Y", "M", "W", "D") else INSTANT


def numbers_of(moments: NDArray[Any]) -> Floats:
    """Return an array of `datetime64` or `timedelta64` as numbers; what is no moment is NaN.

    >>> numbers_of(np.array(["1970-01-03", "NaT"], dtype="datetime64[D]")).tolist()
    [2.0, nan]
    """
    missing = np.isnat(moments)
    if type_of(moments.dtype) is DATE:
        days = moments.astype("datetime64[D]").view(np.int64)
        return np.where(missing, np.nan, days.astype(np.float64))
    unit, step = np.datetime_data(moments.dtype)
    if unit not in _TICKS or step != 1:
        finer = "ns" if unit in ("ps", "fs", "as", "ns", "us", "ms") else "s"
        moments, unit = moments.astype(f"{moments.dtype.kind}8[{finer}]"), finer
    ticks = np.where(missing, 0, np.ascontiguousarray(moments).view(np.int64))
    return np.where(missing, np.nan, seconds(ticks, unit))


def moment(value: Any) -> tuple[float, ColumnType] | None:
    """Return the number that a date, an instant or a text of one stands for; None for others.

    Texts are those of ISO 8601 that begin with a whole date, as in ``2026-03-01`` and
    ``2026-03-01T08:30:00.5+01:00``.

    >>> moment("1970-01-02"), moment("1970-01-02T00:00Z"), moment("1.5")
    ((1.0, <ColumnType.DATE: 'date'>), (86400.0, <ColumnType.INSTANT: 'instant'>), None)
    """
    if isinstance(value, np.generic) and value.dtype.kind == "M":
        kind = type_of(value.dtype)
        number = float(numbers_of(np.array([value]))[0])
        return None if math.isnan(number) else (number, kind)
    if isinstance(value, str):
        value = value.strip()
        if not _SHAPE.fullmatch(value):
            return None
        try:
            if len(value) == len("2026-03-01"):
                value = datetime.date.fromisoformat(value)
            else:
                value = datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        try:
            return _instant(value), INSTANT
        except ValueError:  # what pandas calls not a time
            return None
    if isinstance(value, datetime.date):
        return float(value.toordinal() - _EPOCH), DATE
    return None


def _instant(value: datetime.datetime) -> float:
    """Return seconds since the epoch."""
    since = value.utcoffset() or datetime.timedelta(0)
    clock = datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
    parts = datetime.timedelta(days=value.toordinal() - _EPOCH) + clock - since
    ticks = (parts.days * DAY + parts.seconds) * 10**9
    ticks += (parts.microseconds + value.microsecond) * 1000 + int(getattr(value, "nanosecond", 0))
    return float(seconds(np.array([ticks]), "ns")[0])


def number_of(value: Any, want: ColumnType, what: str) -> float:
    """Return the number that somebody gives for a column: a real one, or a moment for its type."""
    at = moment(value)
    if at is not None and want is not NUMBER:
        return float(converted(at[0], at[1], want))
    if at is None and not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    if want is NUMBER:
        raise ParameterError(f"{what} must be a number, got {value!r}")
    shape = "2026-03-01" if want is DATE else "2026-03-01T08:30"
    raise ParameterError(f"{what} must be a number or a text such as {shape!r}, got {value!r}")


def text_of(number: float, kind: ColumnType) -> str:
    """Return how the number of a column is told: as a date or an instant, or with all its digits.

    A moment that calendars have no text for is told as its number.

    >>> text_of(20_000.0, DATE), text_of(1.5, INSTANT), text_of(1e300, DATE)
    ('2024-10-04', '1970-01-01T00:00:01.500000Z', '1e+300')
    """
    if kind is NUMBER or not math.isfinite(number):
        return repr(float(number))
    try:
        if kind is DATE and float(number).is_integer():
            return datetime.date.fromordinal(int(number) + _EPOCH).isoformat()
        number = number * DAY if kind is DATE else number
        start = datetime.datetime(1970, 1, 1)
        return (start + datetime.timedelta(seconds=float(number))).isoformat() + "Z"
    except (OverflowError, ValueError):
        return repr(float(number))
