"""Clouds: mixtures of Gaussians, the models that high-dimensional data look like from afar.

A record is N(μ_k, v_k·(diag u + BBᵀ)) with probability π_k; μ may be one for all k. In bandwidth
units its characteristic function,

    φ(ω) = Σ_k π_k e^{iω·μ_k − v_k·(Σ_i u_i ω_i² + ‖Bᵀω‖²)/2},

is what a Fourier table samples, with noise, and the kernel's `Blur` gives its KDE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels.blur import Blur, Blurred

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

SCALES, MOST_MEANS, RANKS = 3, 8, (1, 4, 16)
"""The largest clouds that are fitted, and that a file may hold: parts about one mean, parts with
means of their own, and directions along which records vary together."""
_NUMBERS = 1 << 20
"""Most numbers of a block of frequencies held at a time."""


def product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return a @ b of a matrix and a vector, or the other way round, in this thread alone.

    Libraries behind ``@`` start threads of their own, which wait for each other where cores are
    busy: hundred times slower on small products.
    """
    return np.asarray(np.einsum("ij,j->i" if a.ndim == 2 else "i,ij->j", a, b))


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies as whole numbers of a unit, shape (count, dim): they may be many.

    `unit` is in radians per bandwidth.
    """

    numbers: NDArray[Any]
    unit: float

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def dim(self) -> int:
        """The number of axes."""
        return int(self.numbers.shape[1])

    def __getitem__(self, part: slice) -> Frequencies:
        return Frequencies(self.numbers[part], self.unit)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield them in radians per bandwidth, a block at a time, and where each belongs."""
        most = max(1, _NUMBERS // self.dim)
        for start in range(0, len(self), most):
            part = slice(start, start + most)
            yield part, self.numbers[part].astype(np.float64) * self.unit


@dataclass(frozen=True, eq=False)
class Cloud:
    """A mixture of Gaussians of one shape and several sizes.

    Attributes
    ----------
    weights
        π, shape (n_parts,), with sum one.
    variances
        v, shape (n_parts,), positive.
    means
        μ, shape (n_parts, dim), or (1, dim) for one that all parts share.
    axes
        u, shape (dim,), positive; None: all one.
    factors
        B, shape (dim, rank), along which records vary together; None: none.
    """

    weights: Floats
    variances: Floats
    means: Floats
    axes: Floats | None = None
    factors: Floats | None = None

    @property
    def dim(self) -> int:
        """The number of axes."""
        return int(self.means.shape[1])

    def scaled(self, ratios: Floats) -> Cloud:
        """Return the same cloud in coordinates that are `ratios` times as large, axis by axis."""
        means = self.means * ratios
        if np.ptp(ratios) == 0:
            variances = self.variances * float(ratios[0]) ** 2
            return replace(self, variances=variances, means=means)
        axes = (np.ones(self.dim) if self.axes is None else self.axes) * ratios**2
        factors = None if self.factors is None else self.factors * ratios[:, np.newaxis]
        return replace(self, means=means, axes=axes, factors=factors)

    def characteristic(self, frequencies: Frequencies) -> Complex:
        """Return φ at each frequency."""
        values = np.empty(len(frequencies), dtype=np.complex128)
        for part, block in frequencies.blocks():
            squares = np.square(block)
            spread = squares.sum(axis=1) if self.axes is None else product(squares, self.axes)
            if self.factors is not None:
                spread += np.square(block @ self.factors).sum(axis=1)
            falls = np.exp(-0.5 * np.outer(spread, self.variances))
            phases = np.column_stack([product(block, mean) for mean in self.means])
            turned = (np.cos(phases) + 1j * np.sin(phases)) * falls
            values[part] = product(turned, self.weights)
        return values

    def kde(self, blur: Blur, located: Floats) -> Floats:
        """Return its KDE at queries in bandwidth units: the mean of the kernel over the cloud."""
        return self.seen_by(blur)(located)

    def seen_by(self, blur: Blur) -> Callable[[Floats], Floats]:
        """Return its KDE as a function of queries, with all that can be prepared."""
        parts = self._prepared(blur.prepared)

        def kde(located: Floats) -> Floats:
            pairs = zip(self.means, parts, strict=True)
            values = [blurred(located - mean) for mean, blurred in pairs]
            return product(np.concatenate(values, axis=1), self.weights)

        return kde

    def log_seen_by(self, blur: Blur) -> Callable[[Floats], Floats]:
        """Return the logarithm of its KDE, where that may be far below the numbers."""
        parts = self._prepared(blur.prepared_logs)
        with np.errstate(divide="ignore"):
            weights = np.log(self.weights)

        def log_kde(located: Floats) -> Floats:
            pairs = zip(self.means, parts, strict=True)
            logs = np.concatenate([blurred(located - mean) for mean, blurred in pairs], axis=1)
            return np.asarray(np.logaddexp.reduce(logs + weights, axis=1))

        return log_kde

    def _prepared(self, prepare: Callable[..., Blurred]) -> list[Blurred]:
        """Return what a blur prepares: of all parts at once, or of each with a mean of its own."""
        axes = np.ones(1) if self.axes is None else self.axes
        variances, factors = np.outer(self.variances, axes), None
        if self.factors is not None:
            factors = np.sqrt(self.variances)[:, np.newaxis, np.newaxis] * self.factors
        if len(self.means) == 1:
            return [prepare(variances, factors)]
        return [prepare(row[np.newaxis]) for row in variances]

    def share(self, low: Floats, high: Floats, widened: float) -> Floats:
        """Return its share in boxes, shape (n_boxes, dim), blurred by a normal law on each axis.

        `widened` is the variance of that. Only for clouds without factors.
        """
        from scipy.special import ndtr

        axes = np.ones(self.dim) if self.axes is None else self.axes
        means = np.broadcast_to(self.means, (len(self.weights), self.dim))
        shares = np.zeros(len(low))
        for weight, variance, mean in zip(self.weights, self.variances, means, strict=True):
            spread = np.sqrt(variance * axes + widened)
            sides = ndtr((high - mean) / spread) - ndtr((low - mean) / spread)
            shares += weight * sides.prod(axis=1)
        return shares

    def draw(self, generator: np.random.Generator, count: int) -> Floats:
        """Return about `count` points of it, as many of each part as its weight says."""
        axes = np.ones(self.dim) if self.axes is None else self.axes
        means = np.broadcast_to(self.means, (len(self.weights), self.dim))
        points = []
        for weight, variance, mean in zip(self.weights, self.variances, means, strict=True):
            some = max(round(count * weight), 1)
            offsets = generator.standard_normal((some, self.dim)) * np.sqrt(axes)
            if self.factors is not None:
                rank = self.factors.shape[1]
                offsets += generator.standard_normal((some, rank)) @ self.factors.T
            points.append(mean + np.sqrt(variance) * offsets)
        return np.concatenate(points)

    def points(self, generator: np.random.Generator, count: int) -> Floats:
        """Return `count` independent points of it, each of a part that is drawn by its weight."""
        edges = np.cumsum(self.weights)
        parts = np.searchsorted(edges[:-1], generator.random(count) * edges[-1], side="right")
        axes = np.ones(self.dim) if self.axes is None else self.axes
        offsets = generator.standard_normal((count, self.dim)) * np.sqrt(axes)
        if self.factors is not None:
            drawn = generator.standard_normal((count, self.factors.shape[1]))
            offsets += np.einsum("nr,dr->nd", drawn, self.factors)
        means = np.broadcast_to(self.means, (len(self.weights), self.dim))
        return np.asarray(means[parts] + np.sqrt(self.variances[parts])[:, np.newaxis] * offsets)
