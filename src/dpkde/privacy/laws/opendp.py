"""The same laws drawn by OpenDP: the field's vetted samplers, as reference and as a choice.

OpenDP takes scales as floats; ours are rounded up to the next float first, towards more noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError


def laplace(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Return draws of a discrete Laplace law."""
    dp = _opendp()
    return _draws(dp, dp.m.make_laplace, dp.l1_distance(T="i64"), _float_above(scale), size)


def gaussian(variance: Fraction, size: int) -> NDArray[np.int64]:
    """Return draws of a discrete Gaussian law."""
    dp = _opendp()
    deviation = math.nextafter(math.sqrt(_float_above(variance)), math.inf)
    return _draws(dp, dp.m.make_gaussian, dp.l2_distance(T="f64"), deviation, size)


def _draws(dp: Any, make: Any, distance: Any, scale: float, size: int) -> NDArray[np.int64]:
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return np.array(make(integers, distance, scale)([0] * size), dtype=np.int64)


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
