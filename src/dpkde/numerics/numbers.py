"""What counts as a number where a caller gives one: NumPy's do, truth values do not."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = 1e150
"""Bounds and bandwidths go no further: squares of larger numbers, summed over axes, overflow."""


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number.

    >>> [is_whole(value) for value in (3, np.int64(3), 3.0, True)]
    [True, True, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Return whether a value is a real number.

    >>> [is_real(value) for value in (0.5, np.float32(0.5), 3, "3", True)]
    [True, True, True, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
