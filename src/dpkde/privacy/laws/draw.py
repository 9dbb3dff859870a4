"""The public door to noise: a law and a size in, integers out."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.laws.base import Law

SAMPLERS = ("dpkde", "opendp")
"""Our compiled samplers, and OpenDP's as the reference."""


def check_sampler(sampler: str) -> str:
    """Return the name of a sampler; ParameterError where there is none of it."""
    if sampler not in SAMPLERS:
        raise ParameterError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")
    return sampler


def draw(law: Law, size: int, *, sampler: str = "dpkde") -> NDArray[np.int64]:
    """Return `size` fresh draws of the law, as integers modulo 2⁶⁴.

    For `MaxNorm` the size has to be its number of cells: its coordinates are drawn together.

    Guarantee
    ---------
    The draws follow the law exactly, given that `os.urandom` returns uniform bits. They depend on
    nothing else; no state is kept between calls, so forked processes never share noise.
    """
    if check_sampler(sampler) == "opendp":
        return law.reference(size)
    return law.sample(size, os.urandom)
