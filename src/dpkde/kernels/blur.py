"""Kernels averaged over normal clouds: E k(x, y) for x normal, in closed form or by quadrature.

A kernel that is a mixture of Gaussians over scales, k = E e^{−s·r²}, has in bandwidth units

    E k(x, y) = E_s ∏_i (1 + 2s·V_i)^{−½}·exp(−s·t_i²/(1 + 2s·V_i)),   x ~ N(μ, diag V), t = y − μ.

A kernel that is a product over axes is averaged axis by axis.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Blurred = Callable[[Floats], Floats]
"""From offsets, shape (n, dim), to values, shape (n, n_clouds)."""
_Parts = list[tuple[Floats, Floats, Floats | None]]

_NEGLIGIBLE = 1e-13
"""Scales that together have no more than this of a cloud's highest value are left out."""
_STEP = 0.5
"""Of quadrature in ln s: errors of e^{−π²/step}, some 10⁻⁹."""
_TAIL = 1e-9
_MOST_TABLES = 1 << 9
"""Most tables of a cloud, of 40 kilobytes each."""
_MOST_FALLS = 1 << 18
"""Most numbers of a cloud whose axes differ: scales, times axes, times parts."""


class Blur(ABC):
    """How a kernel averages over normal clouds."""

    takes_factors: bool = False
    """Whether clouds may vary along directions of their own."""

    def takes_axes(self, dim: int, parts: int) -> bool:
        """Tell whether clouds of so many parts may vary more on some of their axes."""
        return True

    @abstractmethod
    def prepared(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return t ↦ E k(t + z) for z ~ N(0, diag V + BBᵀ), for some clouds.

        `variances` has shape (n_clouds, dim), or (n_clouds, 1) for clouds that are round; where the
        kernel takes them, `factors` are the B of each cloud, shape (n_clouds, dim, rank). The
        function takes offsets, shape (n_offsets, dim), and returns (n_offsets, n_clouds).
        """

    def prepared_logs(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return t ↦ ln E k(t + z) for the same clouds, where it can be far below the numbers."""
        blurred = self.prepared(variances, factors)

        def logs(offsets: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(blurred(offsets)))

        return logs

    def __call__(self, offsets: Floats, variances: Floats, factors: Floats | None = None) -> Floats:
        """Return E k(t + z) at some offsets."""
        return self.prepared(variances, factors)(offsets)


@dataclass(frozen=True, eq=False)
class ScaleBlur(Blur):
    """Of k = Σ_s weight_s·e^{−rate_s·r²}."""

    weights: Floats
    rates: Floats

    @property
    def takes_factors(self) -> bool:  # type: ignore[override]
        """Whether there is one scale: each would take a product of matrices of its own."""
        return len(self.rates) == 1

    def takes_axes(self, dim: int, parts: int) -> bool:
        """Tell whether so many numbers are few enough: every query takes them all."""
        return len(self.rates) * dim * parts <= _MOST_FALLS

    def prepared(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return a sum over scales, each in closed form."""
        return partial(self._summed, self._parts(variances, factors), variances.shape[1] == 1)

    def prepared_logs(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return the logarithm of the same sum."""
        return partial(self._logs, self._parts(variances, factors), variances.shape[1] == 1)

    def _parts(self, variances: Floats, factors: Floats | None) -> _Parts:
        """Return for each cloud: logarithms of heights, how fast scales fall, G of `_woodbury`."""
        rates, parts = self.rates[:, np.newaxis], []
        for cloud, row in enumerate(variances):
            widened = 1 + 2 * rates * row  # scale, axis
            logs, along = -0.5 * np.log(widened).sum(axis=1), None
            if factors is not None:
                more, along = _woodbury(float(self.rates[0]), widened[0], factors[cloud])
                # Of a round cloud the rest is for one axis of many.
                logs = logs - more / (len(along) if len(row) == 1 else 1)
            parts.append((logs, rates / widened, along))
        return parts

    def _summed(self, parts: _Parts, is_round: bool, offsets: Floats) -> Floats:
        squares = np.square(offsets)
        if is_round:
            squares = squares.sum(axis=1, keepdims=True)
        values = np.empty((len(offsets), len(parts)))
        for cloud, (logs, falls, along) in enumerate(parts):
            heights = self.weights * np.exp(logs * (offsets.shape[1] if is_round else 1))
            seen = heights > _NEGLIGIBLE * heights.max()
            # In this thread alone: callers have theirs.
            exponents = np.einsum("ni,si->ns", squares, falls[seen])
            if along is not None:
                exponents -= np.square(offsets @ along).sum(axis=1, keepdims=True)
            values[:, cloud] = np.einsum("ns,s->n", np.exp(-exponents), heights[seen])
        return values

    def _logs(self, parts: _Parts, is_round: bool, offsets: Floats) -> Floats:
        squares = np.square(offsets)
        if is_round:
            squares = squares.sum(axis=1, keepdims=True)
        values = np.empty((len(offsets), len(parts)))
        for cloud, (logs, falls, along) in enumerate(parts):
            heights = np.log(self.weights) + logs * (offsets.shape[1] if is_round else 1)
            exponents = np.einsum("ni,si->ns", squares, falls)
            if along is not None:
                exponents -= np.square(offsets @ along).sum(axis=1, keepdims=True)
            values[:, cloud] = np.logaddexp.reduce(heights - exponents, axis=1)
        return values


def _woodbury(rate: float, widened: Floats, factors: Floats) -> tuple[float, Floats]:
    """Return what factors add to −ln E k: a number, less ‖Gᵀt‖²; G of shape (dim, rank).

    With A = diag(1 + 2sV) and M = A + 2s·BBᵀ: ln det M = ln det A + ln det C, C = 1 + 2s·BᵀA⁻¹B,
    and s·tᵀM⁻¹t = s·tᵀA⁻¹t − 2s²·pᵀC⁻¹p, p = BᵀA⁻¹t. With C = LLᵀ, G = √2·s·A⁻¹B·L⁻ᵀ.
    """
    scaled = factors / widened[:, np.newaxis]
    inner = np.eye(factors.shape[1]) + 2 * rate * factors.T @ scaled
    lower = np.linalg.cholesky(inner)
    along = math.sqrt(2) * rate * np.linalg.solve(lower, scaled.T).T
    return float(np.log(np.diag(lower)).sum()), along


@dataclass(frozen=True, eq=False)
class AxisBlur(Blur):
    """Of a product over axes: `log(t, v)` is ln E profile(t + z) for z ~ N(0, v), t ≥ 0, v > 0."""

    log: Callable[[Floats, float], Floats]

    def takes_axes(self, dim: int, parts: int) -> bool:
        """Tell whether the tables that they take are few: one for each axis of each part."""
        return dim * parts <= _MOST_TABLES

    def prepared(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return a product over axes, by tables of the axis."""
        logs = self.prepared_logs(variances, factors)
        return lambda offsets: np.exp(logs(offsets))

    def prepared_logs(self, variances: Floats, factors: Floats | None = None) -> Blurred:
        """Return the sum over axes that the tables have."""
        clouds = [_tables(self.log, tuple(row.tolist())) for row in variances]
        return partial(self._added, clouds)

    def _added(self, clouds: list[tuple[Floats, Floats]], offsets: Floats) -> Floats:
        from dpkde.kernels import lookup

        sums = np.zeros((len(clouds), len(offsets)))
        for row, (tables, scales) in zip(sums, clouds, strict=True):
            lookup.add_logs(np.ascontiguousarray(offsets), tables, scales, row)
        return sums.T


def _tables(
    log: Callable[[Floats, float], Floats], variances: tuple[float, ...]
) -> tuple[Floats, Floats]:
    from dpkde.kernels import lookup

    scales = np.minimum(np.sqrt(variances), 1.0)
    tables = [
        lookup.tabulated(lambda t, v=variance: log(t, v), float(scale))  # type: ignore[misc]
        for variance, scale in zip(variances, scales, strict=True)
    ]
    return np.array(tables), scales


ONE_SCALE = ScaleBlur(np.ones(1), np.ones(1))


def gamma_scales(shape: float, rate_of: Callable[[Floats], Floats]) -> ScaleBlur:
    """Return E e^{−s·r²} for s = rate_of(G), G ~ Gamma(shape): the trapezoidal rule in ln G.

    The density of ln G is analytic and falls off on both sides, where that rule converges faster
    than any power of its step.
    """
    from scipy.special import gammaincinv

    low = math.log(max(float(gammaincinv(shape, _TAIL)), 1e-300))
    high = math.log(float(gammaincinv(shape, 1 - _TAIL)))
    steps = math.ceil((high - low) / min(_STEP, 0.8 / math.sqrt(shape)))
    logs = np.linspace(low, high, steps + 1)
    log_density = shape * logs - np.exp(logs)
    weights = np.exp(log_density - log_density.max())
    return ScaleBlur(weights / weights.sum(), rate_of(np.exp(logs)))


def laplacian_axis(offsets: Floats, variance: float) -> Floats:
    """Return ln E e^{−|t + z|}, z ~ N(0, v), t ≥ 0: of Σ_± e^{v/2 ∓ t}·erfc((v ∓ t)/√(2v))/2.

    As e^{−t²/2v}·erfcx where the argument is positive: neither factor overflows then.
    """
    from scipy.special import erfc, erfcx

    root = math.sqrt(2 * variance)
    damp = -np.square(offsets) / (2 * variance)
    inner = (variance - offsets) / root
    near = np.where(
        inner > 0,
        damp + np.log(erfcx(np.maximum(inner, 0))),
        variance / 2 - offsets + np.log(erfc(np.minimum(inner, 0))),
    )
    far = damp + np.log(erfcx((variance + offsets) / root))
    return np.asarray(np.logaddexp(near, far) - math.log(2))


def cauchy_axis(offsets: Floats, variance: float) -> Floats:
    """Return ln E 1/(1 + (t + z)²), z ~ N(0, v): of a Voigt profile."""
    from scipy.special import wofz

    root = math.sqrt(2 * variance)
    return np.asarray(np.log(math.sqrt(math.pi) / root * wofz((offsets + 1j) / root).real))
