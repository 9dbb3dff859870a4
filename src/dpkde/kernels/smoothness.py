"""How fast a kernel changes, and whether it fades: what bounds over all queries need.

Distances are Euclidean, in bandwidth units; in radians for directions.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpkde.kernels.base import Kernel
from dpkde.kernels.combine import Mixture, Product
from dpkde.kernels.product import Cauchy, Gaussian, Hat, Laplacian
from dpkde.kernels.radial import Erfc, ExponentialLp, Matern, RationalQuadratic
from dpkde.kernels.similarity import Geodesic

_SPACE = (Gaussian, Laplacian, Cauchy, Hat, ExponentialLp, Matern, RationalQuadratic, Erfc)
_MARGIN = 1.01


def lipschitz(kernel: Kernel, dim: int) -> float:
    """Return L with |k(x, y) − k(x, y′)| ≤ L‖y − y′‖₂; infinity where no L is known.

    A kernel of one's own states it by a method ``lipschitz(dim)``.

    >>> round(lipschitz(Gaussian(0.1), 7), 3), round(lipschitz(Laplacian(0.1), 4), 3)
    (0.858, 2.0)
    """
    if isinstance(kernel, (Product, Mixture)):
        # A part's own bandwidth is at least the whole's, which is their least.
        slopes = [lipschitz(part, dim) for part in kernel.kernels]
        if isinstance(kernel, Mixture):
            return sum(w * slope for w, slope in zip(kernel.weights, slopes, strict=True))
        return sum(slopes)
    if isinstance(kernel, (Gaussian, Cauchy)):
        # 2re^{−r²} at r² = ½; a product of 1/(1 + t²) is nowhere steeper.
        return math.sqrt(2 / math.e)
    if isinstance(kernel, (Laplacian, Hat)):
        return math.sqrt(dim)
    if isinstance(kernel, ExponentialLp):
        return _exponential(kernel, dim)
    if isinstance(kernel, Geodesic):
        return 1 / math.pi
    if isinstance(kernel, (Matern, RationalQuadratic, Erfc)):
        return math.inf if isinstance(kernel, Matern) and kernel.nu < 0.5 else _radial(kernel)
    stated = getattr(kernel, "lipschitz", None)
    return float(stated(dim)) if callable(stated) else math.inf


def _exponential(kernel: ExponentialLp, dim: int) -> float:
    """The slope of exp(−r^w) in r = ‖·‖_p, largest at r^w = 1 − 1/w, times that of r, d^{1/p−½}."""
    w, p = kernel.power, kernel.p
    if w < 1 or p < 1:
        return math.inf
    rate = 1 - 1 / w
    steepest = w * rate**rate * math.exp(-rate) if w > 1 else 1.0
    return float(steepest * dim ** max(1 / p - 0.5, 0.0))


@lru_cache(maxsize=64)
def _radial(kernel: Matern | RationalQuadratic | Erfc) -> float:
    """Return the steepest slope along a ray, by differences on a fine grid."""
    unit = type(kernel)(**{**kernel.to_json(), "bandwidth": 1.0})
    r = np.concatenate([np.linspace(0, 1e-3, 101), np.linspace(1e-3, 8, 8001)[1:]])
    values = unit.evaluate(r[:, np.newaxis], np.zeros((1, 1)))[:, 0]
    return _MARGIN * float((np.abs(np.diff(values)) / np.diff(r)).max())


def fades(kernel: Kernel) -> bool:
    """Tell whether k(2Δ) ≤ k(Δ) is known: it falls along every ray, and is not negative."""
    if isinstance(kernel, (Product, Mixture)):
        return all(fades(part) for part in kernel.kernels)
    return isinstance(kernel, _SPACE)


def modulus(kernel: Kernel, dim: int, step: float) -> float:
    """Return how much k(x, y) can change where each coordinate of x − y moves by `step` at most.

    By the Lipschitz constant, or by positive definiteness: |k(a) − k(b)|² ≤ 2(1 − k(a − b)).
    """
    if isinstance(kernel, (Product, Mixture)):
        # A part's coordinates move by no more, whichever way its own bandwidth turns them.
        parts = [modulus(part, dim, step * math.sqrt(dim)) for part in kernel.kernels]
        weights = kernel.weights if isinstance(kernel, Mixture) else (1.0,) * len(parts)
        return min(sum(w * part for w, part in zip(weights, parts, strict=True)), 1.0)
    steep = lipschitz(kernel, dim) * math.sqrt(dim) * step
    scale = np.array(kernel.bandwidth.value)
    apart = step * np.ones((1, dim)) * (scale.sum(axis=1) if kernel.bandwidth.is_matrix else scale)
    met = float(kernel.evaluate(apart, np.zeros((1, dim)))[0, 0])
    return min(steep, math.sqrt(max(2 * (1 - met), 0.0)), 1.0)
