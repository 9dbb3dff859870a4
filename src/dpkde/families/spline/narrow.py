"""Axes much narrower than the bandwidth: a constant, a slope, and the curvature of all together.

With t ∈ [−1, 1] the position on the axis, k(x − y) ≈ c₀(y) + c₁(y)·t + c₂(y)·P₂(t), the least
squares parabola, P₂ = (3t² − 1)/2. A constant axis keeps c₀ and adds no cell. Tilted axes share one
group of cells: f = (1, t₁, …, t_K) with public weights w₀ … w_K that add up to one, and
g = ∏c₀ · (1/w₀, c₁₁/c₀₁w₁, …). Its noise is least for w_k ∝ (c₁/c₀)^{2/3} against w₀ ∝ 1.

Curvatures of many narrow axes add up where data gather at the middle of all of them, or at the
ends. One more cell serves them together, the *arch*: f = Σ_k a_k P₂(t_k), a_k ∝ half width².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import ProductKernel

Floats = NDArray[np.float64]

SHARE_BITS = 16
"""Weights of a tilted group are whole numbers of 2⁻¹⁶: they belong to f, so they are exact."""
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def line(kernel: ProductKernel, half: float, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return c₀(y), c₁(y) and c₂(y) for an axis [−half, half], by quadrature.

    Panels end where the kernel may have a kink, at y, and where it has faded.
    """
    reach = kernel.profile_reach(1e-9)
    panels = max(1, int(np.ceil(min(2 * half, reach))))
    middle = np.clip(y / half, -1.0, 1.0)
    ends = (np.clip((y - reach) / half, -1.0, middle), np.clip((y + reach) / half, middle, 1.0))
    flat, slope, curve = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))
    for low, high in ((ends[0], middle), (middle, ends[1])):
        width = ((high - low) / panels / 2)[:, np.newaxis]
        for panel in range(panels):
            t = low[:, np.newaxis] + width * (2 * panel + 1 + _POINTS)
            mass = kernel.profile(t * half - y[:, np.newaxis]) * (width * _WEIGHTS)
            flat += mass.sum(axis=1) / 2
            slope += (mass * t).sum(axis=1) * 1.5
            curve += (mass * parabola(t)).sum(axis=1) * 2.5
    return flat, slope, curve


def parabola(t: Floats) -> Floats:
    """P₂(t) = (3t² − 1)/2."""
    return np.asarray(1.5 * t * t - 0.5)


def arch_weights(halves: list[float]) -> list[float]:
    """Return a_k ∝ half width², adding up to one: in a fixed order, so the same everywhere."""
    squares = [half * half for half in halves]
    total = sum(squares)
    return [square / total if total > 0 else 1 / len(squares) for square in squares]


@dataclass(frozen=True)
class Line:
    """Root mean squares over queries on the axis, and the relative squared errors that remain."""

    flat: float
    slope: float
    curve: float
    flat_loss: float
    line_loss: float
    curve_loss: float
    flat_gap: float
    """What a constant lacks where a record meets the query, relative, as a mean over queries."""
    line_gap: float
    curve_gap: float

    @property
    def lean(self) -> float:
        """(c₁/c₀)^{2/3}: the best weight of the slope against the constant's."""
        return float((self.slope / self.flat) ** (2 / 3))


@lru_cache(maxsize=1024)
def study(kernel: ProductKernel, half: float) -> Line:
    """Return how well a constant and a line fit the kernel on an axis [−half, half]."""
    panels = max(1, int(np.ceil(min(2 * half, 64.0))))
    centers = (2 * np.arange(panels) + 1) / panels - 1
    t = (centers[:, np.newaxis] + _POINTS / panels).reshape(-1)
    mean = np.tile(_WEIGHTS, panels) / (2 * panels)
    flat, slope, curve = line(kernel, half, t * half)
    energy = line(_Squared(kernel), half, t * half)[0]  # type: ignore[arg-type]
    whole = float(np.sum(mean * energy))
    flat_square, slope_square, curve_square = (
        float(np.sum(mean * values**2)) for values in (flat, slope, curve)
    )
    return Line(
        flat=flat_square**0.5,
        slope=slope_square**0.5,
        curve=curve_square**0.5,
        flat_loss=max(1 - flat_square / whole, 0.0),
        line_loss=max(1 - (flat_square + slope_square / 3) / whole, 0.0),
        curve_loss=max(1 - (flat_square + slope_square / 3 + curve_square / 5) / whole, 0.0),
        flat_gap=abs(float(np.sum(mean * (1 - flat)))),
        line_gap=abs(float(np.sum(mean * (1 - flat - slope * t)))),
        curve_gap=abs(float(np.sum(mean * (1 - flat - slope * t - curve * parabola(t))))),
    )


@dataclass(frozen=True)
class _Squared:
    """The square of a kernel: its mean over an axis is the energy to be explained."""

    kernel: ProductKernel

    def profile(self, offsets: Floats) -> Floats:
        return self.kernel.profile(offsets) ** 2

    def profile_reach(self, tolerance: float) -> float:
        return self.kernel.profile_reach(tolerance)


def shares(leans: list[float]) -> list[int]:
    """Return whole weights of the slopes out of 2^SHARE_BITS; the constant takes the rest."""
    whole = 1 << SHARE_BITS
    if len(leans) >= whole:
        raise ParameterError(f"at most {whole - 1} axes can be tilted: use degree 0 for the others")
    total = 1 + sum(leans)
    shares = [max(1, int(whole * lean / total)) for lean in leans]
    excess = sum(shares) - (whole - 1)
    for k in sorted(range(len(shares)), key=shares.__getitem__, reverse=True):
        # The least weights were raised to 1: the largest pay, so that the constant keeps one.
        paid = max(0, min(shares[k] - 1, excess))
        shares[k] -= paid
        excess -= paid
    return shares
