"""The same laws drawn by OpenDP: the field's vetted samplers, as reference and as a choice.

OpenDP takes scales as floats; ours are rounded up to the next float first, towards more noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError


def laplace(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Return draws of a discrete Laplace law."""
    return _draws("make_laplace", "l1_distance", "i64", _float_above(scale), size)


def gaussian(variance: Fraction, size: int) -> NDArray[np.int64]:
    """Return draws of a discrete Gaussian law."""
    deviation = math.nextafter(math.sqrt(_float_above(variance)), math.inf)
    return _draws("make_gaussian", "l2_distance", "f64", deviation, size)


def _draws(make: str, distance: str, number: str, scale: float, size: int) -> NDArray[np.int64]:
    measurement = _measurement(make, distance, number, scale)
    return np.array(measurement([0] * size), dtype=np.int64)


@lru_cache(maxsize=64)
def _measurement(make: str, distance: str, number: str, scale: float) -> Any:
    """Return the measurement that adds the noise to integers: it holds a scale, and no state."""
    dp = _opendp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return getattr(dp.m, make)(integers, getattr(dp, distance)(T=number), scale)


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ParameterError(
            "the opendp sampler needs the package opendp: pip install 'dpkde[opendp]'"
        ) from None
    dp.enable_features("contrib")
    return dp


def _float_above(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
