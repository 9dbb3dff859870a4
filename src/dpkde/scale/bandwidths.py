"""Bandwidths: for the release, by least expected integrated squared error; or by a rule of thumb.

A release answers with f̂ = (Σ K_h(x_i − y) + noise)/n, K_h a normalised kernel. With f the density
of which the records are a sample,

    E ∫ (f̂ − f)² ≈ ∫ (f − f∗K_h)² + ∫K_h²/n + s²·V/(∏ h_k·I)²,

the first term what smoothing loses, from the noisy spectrum (`dpkde.scale.spectra`); the second
what a sample misses; the third the noise, s its standard deviation in a KDE value as planned for
these bandwidths, V the volume that it fills and I the integral of the kernel's profile. The least
of the sum is ``auto``. Noise makes bandwidths wider than a KDE of the same records would have.

**Scott** and **Silverman** are the usual rules, n^{−1/(d+4)}·s_k and (n·(d+2)/4)^{−1/(d+4)}·s_k,
with s_k a column's standard deviation, from the noisy histogram, and n the noisy count. They know
nothing of the noise, and tell the standard deviation h of a Gaussian, so that σ = √2·h in
exp(−|x−y|²/σ²); other kernels get the bandwidth whose ∫K² along an axis is that of this Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import Kernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.scale.spectra import Spectrum

Floats = NDArray[np.float64]
Errors = Callable[[Floats], tuple[float, float]]
"""The standard deviation of a KDE value's noise, and its family's own error, for bandwidths."""

_FARTHEST = 256.0
_MOST_ALONE = 6
"""Up to so many columns have bandwidths that are found one by one; more keep their proportions."""
_WORTH = 0.9
"""What their risk has to be of that of a common multiple: more may be noise in what is known."""
_SPAN = (0.02, 8.0)
"""What multiples of the columns' scales are looked at."""
_HOPELESS = 1e6
"""What a risk counts at most, in parts of the least of a list: minimisers take differences."""


@dataclass(frozen=True)
class Section:
    """A kernel along an axis, with a bandwidth of one.

    For a kernel that is no product over axes it stands for one: exact in one column.
    """

    kernel: Kernel

    @cached_property
    def _profile(self) -> tuple[Floats, Floats, Floats]:
        """Points from the origin, their weights, and the kernel there."""
        t, mass = gauss_points(graded(_FARTHEST))
        unit = self.kernel.with_bandwidth(1.0)
        values = unit.evaluate(t[:, np.newaxis], np.zeros((1, 1)))[:, 0]
        return t, mass, values

    @cached_property
    def integral(self) -> float:
        """∫ k(t) dt."""
        if self.kernel.is_product:
            return self.kernel.with_bandwidth(1.0).integral(1)
        _, mass, values = self._profile
        return 2 * float(values @ mass)

    @cached_property
    def roughness(self) -> float:
        """∫ K(t)² dt, K the normalised kernel."""
        _, mass, values = self._profile
        return 2 * float(values**2 @ mass) / self.integral**2

    def transform(self, frequencies: Floats) -> Floats:
        """Return ∫ K(t) cos ωt dt at ω ≥ 0."""
        if self.kernel.is_product:
            shape = self.kernel.shape
            return np.asarray(shape.profile_transform(frequencies) / self.integral)
        grid, heights = self._table
        return np.asarray(np.interp(frequencies, grid, heights, right=0.0))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        t, mass, values = self._profile
        grid = np.concatenate([[0.0], np.geomspace(1e-2, 60.0, 240)])
        heights = 2 * np.cos(np.multiply.outer(grid, t)) @ (values * mass) / self.integral
        return grid, np.clip(heights, 0.0, 1.0)

    def from_std(self, std: Floats) -> Floats:
        """Return bandwidths with the ∫K² of a Gaussian of these standard deviations."""
        return np.asarray(2 * math.sqrt(math.pi) * self.roughness * std)


@lru_cache(maxsize=32)
def section(kernel: Kernel) -> Section:
    """Return a kernel along an axis: computed once."""
    return Section(kernel)


@dataclass(frozen=True)
class Risk:
    """The expected integrated squared error of a release's density.

    Attributes
    ----------
    section
        The kernel along an axis.
    spectrum
        How rough the data are.
    rows
        How many records there are.
    widths
        Of the bounds.
    errors
        Of a KDE value, as planned: its noise, and what the family adds where records are.
    """

    section: Section
    spectrum: Spectrum
    rows: float
    widths: Floats
    errors: Errors

    def __call__(self, bandwidths: Floats) -> float:
        """Return what smoothing, sampling and noise add, times the volume of the spectrum's window.

        Ratios of widths alone: no unit of the data makes them overflow.
        """
        kernel, window = self.section, self.spectrum.widths
        with np.errstate(all="ignore"):
            moments = self.spectrum.moments(kernel.transform, bandwidths)
            chance = np.prod(kernel.roughness * window / bandwidths) / self.rows
            noise, approximation = np.square(self.errors(bandwidths))
            unit = bandwidths * kernel.integral
            volume = np.prod((self.widths + bandwidths) / unit)
            seen = np.prod(window / unit)
            dense = min(seen / max(moments.smoothed, 1e-300), volume)  # where records are
            total = moments.bias + chance + (noise * volume + approximation * dense) * seen
        return float(total) if math.isfinite(total) else math.inf

    def density(self, bandwidths: Floats) -> float:
        """Return the mean KDE value at the records, for such a kernel."""
        crossed = self.spectrum.moments(self.section.transform, bandwidths).crossed
        part = bandwidths / self.spectrum.widths * self.section.integral
        return crossed * float(np.prod(np.minimum(part, 1e30)))


def best(risk: Risk, scales: Floats, finest: Floats) -> Floats:
    """Return the bandwidths of least risk, none below the finest that the histograms can tell.

    Common multiples of the columns' scales are tried first, then each column on its own.
    """
    from scipy.optimize import minimize, minimize_scalar

    base = np.log(scales)
    low, high = (math.log(multiple) for multiple in _SPAN)

    def along(log: float) -> float:
        return risk(np.maximum(np.exp(base + log), finest))

    logs = np.linspace(low, high, 33)
    values = [along(log) for log in logs.tolist()]
    at = int(np.argmin(values))
    if not 0 < values[at] < math.inf:  # no table fits any of them: the caller doubles them
        return np.asarray(np.maximum(np.exp(base + logs[at]), finest))

    def part(value: float) -> float:
        return min(value / values[at], _HOPELESS)

    ends = (logs[max(at - 1, 0)], logs[min(at + 1, len(logs) - 1)])
    common = minimize_scalar(
        lambda log: part(along(log)), bounds=ends, method="bounded", options={"xatol": 0.02}
    )
    start = base + (float(common.x) if common.fun < 1 else logs[at])
    start = np.maximum(start, np.log(finest))
    if not 1 < len(scales) <= _MOST_ALONE:
        return np.exp(start)
    limits = [(math.log(one), max(math.log(one), base[k] + high)) for k, one in enumerate(finest)]
    alone = minimize(
        lambda logs: part(risk(np.exp(logs))),
        start,
        method="Powell",
        bounds=limits,
        options={"xtol": 0.02, "ftol": 1e-3, "maxiter": 8},
    )
    return np.exp(alone.x if alone.fun < _WORTH * part(risk(np.exp(start))) else start)


def scott(rows: float, stds: Floats) -> Floats:
    """Return n^{−1/(d+4)}·s_k.

    >>> scott(1024.0, np.array([2.0])).round(9).tolist()
    [0.5]
    """
    return np.asarray(rows ** (-1 / (len(stds) + 4)) * stds)


def silverman(rows: float, stds: Floats) -> Floats:
    """Return (n·(d+2)/4)^{−1/(d+4)}·s_k.

    >>> silverman(24.0, np.array([1.0, 3.0])).tolist()  # 24 to the power of −1/6
    [0.5887..., 1.7663...]
    """
    return np.asarray((rows * (len(stds) + 2) / 4) ** (-1 / (len(stds) + 4)) * stds)
