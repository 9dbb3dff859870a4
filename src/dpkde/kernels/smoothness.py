"""How fast a kernel changes, and whether it fades: what bounds over all queries need.

Distances are Euclidean, in bandwidth units; in radians for directions. A kernel tells by methods of
its own, ``lipschitz(dim)``, ``fades`` and ``modulus(dim, step)``; without them nothing is known.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dpkde.kernels.base import Kernel

_MARGIN = 1.01


def lipschitz(kernel: Kernel, dim: int) -> float:
    """Return L with |k(x, y) − k(x, y′)| ≤ L‖y − y′‖₂; infinity where no L is known.

    >>> from dpkde.kernels import Gaussian, Laplacian
    >>> round(lipschitz(Gaussian(0.1), 7), 3), round(lipschitz(Laplacian(0.1), 4), 3)
    (0.858, 2.0)
    """
    stated = getattr(kernel, "lipschitz", None)
    return float(stated(dim)) if callable(stated) else math.inf


def fades(kernel: Kernel) -> bool:
    """Tell whether k(2Δ) ≤ k(Δ) is known: it falls along every ray, and is not negative."""
    return bool(getattr(kernel, "fades", False))


def modulus(kernel: Kernel, dim: int, step: float) -> float:
    """Return how much k(x, y) can change where each coordinate of x − y moves by `step` at most.

    By the Lipschitz constant, or by positive definiteness: |k(a) − k(b)|² ≤ 2(1 − k(a − b)).
    """
    stated = getattr(kernel, "modulus", None)
    if callable(stated):
        return float(stated(dim, step))
    steep = lipschitz(kernel, dim) * math.sqrt(dim) * step
    scale = np.array(kernel.bandwidth.value)
    apart = step * np.ones((1, dim)) * (scale.sum(axis=1) if kernel.bandwidth.is_matrix else scale)
    met = float(kernel.evaluate(apart, np.zeros((1, dim)))[0, 0])
    return min(steep, math.sqrt(max(2 * (1 - met), 0.0)), 1.0)


@lru_cache(maxsize=64)
def steepest_ray(kernel: Any) -> float:
    """Return the steepest slope of a radial kernel along a ray, by differences on a fine grid."""
    unit = type(kernel)(**{**kernel.to_json(), "bandwidth": 1.0})
    r = np.concatenate([np.linspace(0, 1e-3, 101), np.linspace(1e-3, 8, 8001)[1:]])
    values = unit.evaluate(r[:, np.newaxis], np.zeros((1, 1)))[:, 0]
    return _MARGIN * float((np.abs(np.diff(values)) / np.diff(r)).max())
