"""Characteristic functions of single cells, whose products are those of noise at a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpkde.privacy.laws.base import Floats

TERMS = 12
"""How many terms of the power series of a logarithm are used."""


class Factor(NamedTuple):
    """The characteristic function of one cell, of x = (ug)².

    Attributes
    ----------
    product
        Of u², shape (n_queries, n), squared weights, (n_queries or 1, n_weights), and how many
        cells have each: ∏ over weights, exactly.
    series
        Σ c_k x^k is its logarithm, for x up to `reach`; beyond it 64 factors are below 10⁻⁸.
    """

    product: Callable[[Floats, Floats, Floats], Floats]
    series: tuple[float, ...]
    reach: float


def _laplace(squared: Floats, squares: Floats, counts: Floats) -> Floats:
    """Return ∏ 1/(1 + x)."""
    from dpkde.privacy.laws import inversion

    values = np.empty(squared.shape)
    inversion.laplace(squared, squares, counts, values)
    return values


def _sinc(squared: Floats, squares: Floats, counts: Floats) -> Floats:
    """Return ∏ sin(√x)/√x."""
    from dpkde.privacy.laws import inversion

    values = np.empty(squared.shape)
    inversion.sinc(squared, squares, counts, values)
    return values


LAPLACE = Factor(_laplace, tuple((-1) ** k / k for k in range(1, TERMS + 1)), 0.4)
_ZETA = (1.6449340668, 1.0823232337, 1.0173430620, 1.0040773562, 1.0009945751, 1.0002460866)
SINC = Factor(
    _sinc,
    # ln(sin v/v) = −Σ ζ(2k)/k·(v/π)^{2k}, and ζ(2k) is 1 soon.
    tuple(
        -(_ZETA[k - 1] if k <= len(_ZETA) else 1.0) / k / math.pi ** (2 * k)
        for k in range(1, TERMS + 1)
    ),
    4.0,
)
