"""Kernels from kernels: products and mixtures. What serves all the parts serves the whole.

A product of positive definite kernels is one, and so is a mixture. Spectra of a product add up, a
mixture draws from one part's; hashes of a product are joined, a mixture hashes by one part's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels.bandwidth import Bandwidth, Points
from dpkde.kernels.base import (
    Floats,
    Kernel,
    ProductKernel,
    cosine_transform,
    gauss_points,
    graded,
)
from dpkde.kernels.blur import Blur, ScaleBlur
from dpkde.kernels.partitions import Combined, Partition

MOST_PARTS = 16
_FARTHEST = 1024.0


@dataclass(frozen=True, init=False)
class _Combined(Kernel):
    """Some kernels of the same home, in units of the least bandwidth among them."""

    kernels: tuple[Kernel, ...]
    bandwidth: Bandwidth = field(init=False, repr=False, compare=False)

    def __init__(self, kernels: Sequence[Any]) -> None:
        if isinstance(kernels, Kernel) or not isinstance(kernels, Sequence):
            raise ParameterError("kernels must be a list, such as [Hat(1), Laplacian(2)]")
        parts = tuple(kernels)
        if not 1 <= len(parts) <= MOST_PARTS or not all(isinstance(p, Kernel) for p in parts):
            raise ParameterError(f"kernels must be a list of 1 to {MOST_PARTS} kernels")
        homes = {part.home for part in parts}
        if len(homes) > 1:
            raise ParameterError(
                f"kernels of {' and '.join(sorted(homes))} cannot be combined: they live on "
                "different things"
            )
        axes = {part.dim for part in parts if part.dim is not None}
        if len(axes) > 1:
            raise ParameterError(
                f"kernels of {' and '.join(map(str, sorted(axes)))} axes cannot be combined"
            )
        least = min(part.bandwidth.smallest() for part in parts)
        vars(self).update(kernels=parts, bandwidth=Bandwidth.of(least))

    def scaled(self, factor: float) -> Self:
        """Return the combination of the same kernels, all with bandwidths `factor` times theirs."""
        return replace(self, kernels=tuple(part.scaled(factor) for part in self.kernels))

    @property
    def home(self) -> str:
        """Where all the parts live."""
        return self.kernels[0].home

    @property
    def dim(self) -> int | None:
        """The number of axes that a part prescribes."""
        return next((part.dim for part in self.kernels if part.dim is not None), None)

    @property
    def is_shift_invariant(self) -> bool:
        """Whether all the parts have a spectrum."""
        return all(part.is_shift_invariant for part in self.kernels)

    @property
    def is_positive_definite(self) -> bool:
        """Whether all the parts are."""
        return all(part.is_positive_definite for part in self.kernels)

    @property
    def partition(self) -> Partition:
        """The cells of the parts."""
        return Combined(self.kernels, self.bandwidth.smallest(), self._turns)

    def _turns(self, generator: np.random.Generator, count: int) -> NDArray[np.bool_]:
        """Return which parts cut each of `count` repetitions: all of them."""
        return np.ones((len(self.kernels), count), dtype=np.bool_)

    @property
    def _shares(self) -> tuple[float, ...]:
        """How much of a change in each part reaches the whole, at most."""
        return (1.0,) * len(self.kernels)

    @property
    def fades(self) -> bool:
        """Whether all the parts do."""
        return all(part.fades for part in self.kernels)

    def lipschitz(self, dim: int) -> float:
        """Return the sum of the parts' slopes: their bandwidths are at least the whole's."""
        slopes = (part.lipschitz(dim) for part in self.kernels)
        return sum(w * slope for w, slope in zip(self._shares, slopes, strict=True))

    def modulus(self, dim: int, step: float) -> float:
        """Return the sum over parts, in which no coordinate moves by more than √d steps."""
        parts = (part.modulus(dim, step * math.sqrt(dim)) for part in self.kernels)
        return min(sum(w * part for w, part in zip(self._shares, parts, strict=True)), 1.0)

    def _spectra(self, generator: np.random.Generator, count: int, dim: int) -> list[Floats]:
        """Return frequencies of every part, in radians per unit of the whole."""
        unit = self.bandwidth.smallest()
        # ω·(B⁻¹Δ) = (B⁻¹ω)·Δ, for a symmetric B.
        return [
            part.bandwidth.whiten(part.spectrum(generator, count, dim)) * unit
            for part in self.kernels
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the parts by name, version and parameters; and the weights of a mixture."""
        parts = [
            {"name": part.name, "version": part.version, "parameters": part.to_json()}
            for part in self.kernels
        ]
        return super().to_json() | {"kernels": parts}


@dataclass(frozen=True, init=False)
class Product(_Combined, ProductKernel):
    """k(x, y) = ∏ k_i(x, y), each part with its own bandwidth.

    Examples
    --------
    >>> from dpkde.kernels import Hat, Laplacian
    >>> kernel = Product([Hat(2.0), Laplacian(1.0)])
    >>> float(kernel.evaluate(np.zeros((1, 1)), np.ones((1, 1)))[0, 0].round(6))
    0.18394
    """

    name: ClassVar[str] = "product"

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return ∏ k_i(x, y), shape (n_points, n_queries)."""
        return np.asarray(math.prod(part.evaluate(points, queries) for part in self.kernels))

    def integral(self, dim: int) -> float:
        """Return the integral by quadrature, for products over axes; others have no formula."""
        if not self.is_product:
            raise ParameterError("the integral of this product of kernels has no formula")
        t, mass = gauss_points(graded(min(self.profile_reach(1e-12), 1e6)))
        axis = 2 * float((self.profile(t) * mass).sum())
        return float(axis**dim) * self.bandwidth.determinant(dim)

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw axis by axis, for products over axes; others have no formula."""
        if not self.is_product:
            raise ParameterError("this product of kernels cannot be drawn from")
        return super().draw(generator, count, dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return sums of frequencies: characteristic functions multiply."""
        return np.asarray(sum(self._spectra(generator, count, dim)))

    @property
    def is_product(self) -> bool:
        """Whether all the parts are, with the same bandwidth for all axes."""
        return all(part.is_product and part.bandwidth.is_scalar for part in self.kernels)

    @property
    def is_smooth(self) -> bool:
        """Whether all the parts are."""
        return all(part.is_product and part.shape.is_smooth for part in self.kernels)

    def _scaled(self) -> list[tuple[ProductKernel, float]]:
        """Return the parts, and how many of their bandwidths a unit of the whole is."""
        unit = self.bandwidth.smallest()
        return [(part.shape, unit / part.bandwidth.smallest()) for part in self.kernels]

    def profile(self, offsets: Floats) -> Floats:
        """Return the product of the parts' profiles."""
        return np.asarray(math.prod(part.profile(offsets * s) for part, s in self._scaled()))

    def log_profile(self, offsets: Floats) -> Floats:
        """Return the sum of the parts' logarithms."""
        return np.asarray(sum(part.log_profile(offsets * s) for part, s in self._scaled()))

    def profile_reach(self, tolerance: float) -> float:
        """Return the least of the parts' reaches."""
        return min(part.profile_reach(tolerance) / scale for part, scale in self._scaled())

    def profile_transform(self, frequencies: Floats) -> Floats:
        """Return ∫ profile(t) cos ωt dt by quadrature."""
        return cosine_transform(self, frequencies, _FARTHEST)


@dataclass(frozen=True, init=False)
class Mixture(_Combined):
    """k(x, y) = Σ w_i·k_i(x, y), with weights that add up to one.

    A mixture of hats of different bandwidths has any convex profile that one likes.

    Parameters
    ----------
    kernels
        The parts.
    weights
        One for each, positive; they are divided by their sum. By default all alike.

    Examples
    --------
    >>> from dpkde.kernels import Hat
    >>> kernel = Mixture([Hat(1.0), Hat(3.0)], weights=[1, 3])
    >>> float(kernel.evaluate(np.zeros((1, 1)), np.full((1, 1), 1.5))[0, 0])
    0.375
    """

    weights: tuple[float, ...]
    name: ClassVar[str] = "mixture"

    def __init__(self, kernels: Sequence[Any], weights: Sequence[float] | None = None) -> None:
        super().__init__(kernels)
        wrong = ParameterError("weights must be positive numbers, one for each kernel")
        try:
            array = np.array([1.0] * len(self.kernels) if weights is None else weights, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
        if array.shape != (len(self.kernels),) or not ((array > 0) & (array < 1e100)).all():
            raise wrong
        total = float(array.sum())
        normal = array if abs(total - 1) < 1e-12 else array / total
        object.__setattr__(self, "weights", tuple(normal.tolist()))

    @property
    def _shares(self) -> tuple[float, ...]:
        return self.weights

    def evaluate(self, points: Points, queries: Points) -> Floats:
        """Return Σ w_i·k_i(x, y), shape (n_points, n_queries)."""
        pairs = zip(self.weights, self.kernels, strict=True)
        return np.asarray(sum(weight * part.evaluate(points, queries) for weight, part in pairs))

    def integral(self, dim: int) -> float:
        """Return Σ w_i times the parts' integrals."""
        pairs = zip(self.weights, self.kernels, strict=True)
        return sum(weight * part.integral(dim) for weight, part in pairs)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Return frequencies of a part that is drawn for each."""
        spectra = np.array(self._spectra(generator, count, dim))
        return np.asarray(spectra[self._owners(generator, count), np.arange(count)])

    def draw(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        """Draw from a part, which is drawn by its weight times its integral."""
        masses = [
            w * part.integral(dim) for w, part in zip(self.weights, self.kernels, strict=True)
        ]
        edges = np.cumsum(np.array(masses) / sum(masses))[:-1]
        owners = np.searchsorted(edges, generator.random(count), side="right")
        offsets = np.empty((count, dim))
        for number, part in enumerate(self.kernels):
            own = owners == number
            drawn = part.bandwidth.unwhiten(part.draw(generator, int(own.sum()), dim))
            offsets[own] = drawn / self.bandwidth.smallest()
        return offsets

    def blur(self, dim: int) -> Blur | None:
        """The scales of all the parts, where each has some, and one bandwidth for all axes."""
        weights, rates = [], []
        for weight, part in zip(self.weights, self.kernels, strict=True):
            own = part.blur(dim)
            if not isinstance(own, ScaleBlur) or not part.bandwidth.is_scalar:
                return None
            weights.append(weight * own.weights)
            rates.append(own.rates * (self.bandwidth.smallest() / part.bandwidth.smallest()) ** 2)
        return ScaleBlur(np.concatenate(weights), np.concatenate(rates))

    def _turns(self, generator: np.random.Generator, count: int) -> NDArray[np.bool_]:
        numbers = np.arange(len(self.kernels))[:, np.newaxis]
        return np.asarray(numbers == self._owners(generator, count))

    def _owners(self, generator: np.random.Generator, count: int) -> NDArray[np.intp]:
        """Draw which part each of `count` draws is of."""
        edges = np.cumsum(self.weights)[:-1]
        return np.searchsorted(edges, generator.random(count), side="right")
