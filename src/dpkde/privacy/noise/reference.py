"""The same laws drawn by OpenDP: the field's vetted samplers, as reference and as a choice.

OpenDP takes scales as floats; ours are rounded up to the next float first, towards more noise.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.laws import DiscreteLaplace, Law


def draw(law: Law, size: int) -> NDArray[np.int64]:
    """Return `size` draws of a discrete Laplace or discrete Gaussian law."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ParameterError(
            "the opendp sampler needs the package opendp: pip install 'dpkde[opendp]'"
        ) from None
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    if isinstance(law, DiscreteLaplace):
        measure = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), _float_above(law.scale))
    else:
        deviation = math.nextafter(math.sqrt(_float_above(law.scale)), math.inf)
        measure = dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), deviation)
    return np.array(measure([0] * size), dtype=np.int64)


def _float_above(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
