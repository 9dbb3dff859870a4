"""The public door to noise: a law and a size in, integers out."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm

SAMPLERS = ("dpkde", "opendp")
"""Our compiled samplers, and OpenDP's as the reference."""


def laws_of(sampler: str) -> tuple[type[Law], ...]:
    """Return the laws that a sampler has. OpenDP has no L∞ mechanism on the integers."""
    if sampler == "dpkde":
        return (DiscreteLaplace, MaxNorm, DiscreteGaussian)
    if sampler == "opendp":
        return (DiscreteLaplace, DiscreteGaussian)
    raise ParameterError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")


def draw(law: Law, size: int, *, sampler: str = "dpkde") -> NDArray[np.int64]:
    """Return `size` fresh draws of the law, as integers modulo 2⁶⁴.

    For `MaxNorm` the size has to be its number of cells: its coordinates are drawn together.

    Guarantee
    ---------
    The draws follow the law exactly, given that `os.urandom` returns uniform bits. They depend on
    nothing else; no state is kept between calls, so forked processes never share noise.
    """
    if type(law) not in laws_of(sampler):
        raise ParameterError(f"the {sampler} sampler has no {law.name} noise")
    if sampler == "opendp":
        from dpkde.privacy.noise import reference

        return reference.draw(law, size)
    if isinstance(law, DiscreteLaplace):
        from dpkde.privacy.noise.laplace import discrete_laplace

        return discrete_laplace(law.scale, size, os.urandom)
    if isinstance(law, DiscreteGaussian):
        from dpkde.privacy.noise.gaussian import discrete_gaussian

        return discrete_gaussian(law.scale, size, os.urandom)
    if size != law.cells:
        raise ParameterError(f"max-norm noise has {law.cells} cells, not {size}")
    from dpkde.privacy.noise.maxnorm import max_norm

    return max_norm(law.scale, size, os.urandom)
