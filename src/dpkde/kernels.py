"""Kernels: exact values, integral over space, and the spectrum that Fourier features draw from.

A kernel is a frozen value. Its bandwidth is what one unit of distance means: a number, one number
an axis, or a matrix. `whiten` divides by it, and everything after that works in bandwidth units,
where the bandwidth is one.

To add a kernel, write a frozen dataclass with the methods of `Kernel`, give it a `name` and a
`version`, and put it into `KERNELS`; a kernel with a `spectrum` works with `Fourier` at once, and
one with the methods of `ProductKernel` with `Spline`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError

Points = NDArray[np.float64]
Json = Mapping[str, Any]
BandwidthLike = float | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any]


@dataclass(frozen=True)
class Bandwidth:
    """σ as a scalar, one σ an axis, or a positive definite matrix B: distances are ‖B⁻¹Δ‖.

    >>> Bandwidth.of(0.5)
    0.5
    >>> Bandwidth.of([1, 10]).dim
    2
    """

    value: tuple[float, ...] | tuple[tuple[float, ...], ...]
    is_scalar: bool = False

    @classmethod
    def of(cls, value: Bandwidth | BandwidthLike) -> Bandwidth:
        """Check what a caller typed."""
        if isinstance(value, Bandwidth):
            return value
        wrong = ParameterError(
            "bandwidth must be a positive number, one positive number an axis, or a symmetric "
            f"positive definite matrix, got {value!r}"
        )
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
        if array.size == 0 or not np.isfinite(array).all() or array.ndim > 2:
            raise wrong
        if array.ndim < 2:
            with np.errstate(all="ignore"):
                if not ((array > 0) & np.isfinite(1 / array)).all():
                    raise wrong
            entries = tuple(float(v) for v in np.atleast_1d(array))
            return cls(entries, array.ndim == 0)
        if array.shape[0] != array.shape[1] or not np.allclose(array, array.T, rtol=1e-10):
            raise wrong
        symmetric = (array + array.T) / 2
        if np.linalg.eigvalsh(symmetric).min() <= 0:
            raise wrong
        rows = tuple(tuple(float(v) for v in row) for row in symmetric)
        return cls(rows)

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        array = np.array(self.value, dtype=np.float64)
        return _inverse(array) if self.is_matrix else np.asarray(1 / array)

    @property
    def is_matrix(self) -> bool:
        """Whether it is a full matrix."""
        return isinstance(self.value[0], tuple)

    @property
    def dim(self) -> int | None:
        """The number of axes it prescribes; None for a scalar."""
        return None if self.is_scalar else len(self.value)

    def determinant(self, dim: int) -> float:
        """Return the volume that one cubic unit of bandwidth takes in data units."""
        if self.is_scalar:
            return float(self.value[0]) ** dim  # type: ignore[arg-type]
        array = np.array(self.value)
        return float(np.linalg.det(array)) if self.is_matrix else float(array.prod())

    def smallest(self) -> float:
        """Return the least σ along any direction."""
        array = np.array(self.value)
        return float(np.linalg.eigvalsh(array).min()) if self.is_matrix else float(array.min())

    def whiten(self, offsets: Points) -> Points:
        """Return B⁻¹Δ for each row Δ of `offsets`, shape (n_points, dim), as a new array.

        A row's result depends on that row alone, bit for bit: elementwise multiplications, and
        for a matrix a sum over columns in a fixed order. A matrix product would not do, since
        BLAS may round the same row differently in another batch.
        """
        if not self.is_matrix:
            return offsets * self._inverse
        result: Points = offsets[:, :1] * self._inverse[0]
        for k in range(1, len(self.value)):
            result += offsets[:, k : k + 1] * self._inverse[k]
        return result

    def spans(self, halves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far each coordinate of B⁻¹Δ can be from zero where |Δ_k| ≤ halves_k."""
        if not self.is_matrix:
            return np.asarray(halves * self._inverse)
        total = np.zeros(len(halves))
        for k in range(len(halves)):
            total += np.abs(self._inverse[k]) * halves[k]
        return total

    def to_json(self) -> Any:
        """Return numbers, lists or nested lists."""
        return self.value[0] if self.is_scalar else np.array(self.value).tolist()

    def __repr__(self) -> str:
        return repr(self.to_json())


def _inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of a positive definite matrix, the same bits on every machine.

    Gauss–Jordan in elementwise operations, which are IEEE everywhere; LAPACK's differ between
    builds, and with them the contributions of records sketched in different places.
    """
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size)], axis=1)
    for k in range(size):
        pivot = work[k] / work[k, k]
        work = work - work[:, k : k + 1] * pivot
        work[k] = pivot
    return np.asarray(work[:, size:])


@runtime_checkable
class Kernel(Protocol):
    """What the rest of the library asks of a kernel."""

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def bandwidth(self) -> Bandwidth:
        """What one unit of distance means."""
        ...

    def evaluate(self, points: Points, queries: Points) -> NDArray[np.float64]:
        """Return k(x, y), shape (n_points, n_queries), exactly as the formula says."""
        ...

    def integral(self, dim: int) -> float:
        """Return ∫ k(x, y) dx over the whole space: what turns a KDE into a density."""
        ...

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> NDArray[np.float64]:
        """Return frequencies ω, shape (count, dim), in radians per bandwidth unit.

        They satisfy E cos ω·(x − y) = k(x, y) for x and y in bandwidth units.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, without the name."""
        ...


@runtime_checkable
class ProductKernel(Kernel, Protocol):
    """A kernel that is a product over axes: k(x, y) = ∏ profile(x_k − y_k) in bandwidth units."""

    def profile(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the factor of one axis: even, at most 1, and 1 at zero."""
        ...

    def profile_reach(self, tolerance: float) -> float:
        """Return the distance beyond which the profile is below `tolerance`."""
        ...

    def __hash__(self) -> int:
        """Fits are kept by kernel."""
        ...


@dataclass(frozen=True, init=False)
class Gaussian:
    """k(x, y) = exp(−‖x − y‖²/σ²), the paper's convention.

    Parameters
    ----------
    bandwidth
        σ, one σ an axis, or a symmetric positive definite matrix B for exp(−‖B⁻¹(x − y)‖²).

    Examples
    --------
    >>> Gaussian(bandwidth=0.01)
    Gaussian(bandwidth=0.01)
    >>> float(Gaussian(2.0).evaluate(np.zeros((1, 1)), np.full((1, 1), 2.0))[0, 0])
    0.36787944117144233
    """

    bandwidth: Bandwidth
    name: ClassVar[str] = "gaussian"
    version: ClassVar[int] = 1

    def __init__(self, bandwidth: Bandwidth | BandwidthLike) -> None:
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    @classmethod
    def from_std(cls, std: BandwidthLike) -> Gaussian:
        """Return the kernel exp(−‖x − y‖²/2h²): h is a standard deviation, σ = √2·h.

        >>> Gaussian.from_std(1.0)
        Gaussian(bandwidth=1.4142135623730951)
        """
        return cls(math.sqrt(2) * np.array(std, dtype=np.float64))

    def evaluate(self, points: Points, queries: Points) -> NDArray[np.float64]:
        """Return exp(−‖B⁻¹(x − y)‖²), shape (n_points, n_queries). O(n·q·d)."""
        centre = queries.mean(axis=0) if len(queries) else 0.0
        x, y = self.bandwidth.whiten(points - centre), self.bandwidth.whiten(queries - centre)
        squared = np.zeros((len(x), len(y)))
        for k in range(x.shape[1]):
            squared += np.subtract.outer(x[:, k], y[:, k]) ** 2
        return np.exp(-squared)

    def integral(self, dim: int) -> float:
        """π^{d/2}·det B."""
        return float(math.pi ** (dim / 2)) * self.bandwidth.determinant(dim)

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> NDArray[np.float64]:
        """ω ~ √2·N(0, I)."""
        return math.sqrt(2) * generator.standard_normal((count, dim))

    def profile(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """e^{−t²}: the Gaussian is a product over axes, a matrix bandwidth included."""
        return np.exp(-np.square(offsets))

    def profile_reach(self, tolerance: float) -> float:
        """√ln(1/tolerance)."""
        return math.sqrt(-math.log(tolerance))

    def to_json(self) -> dict[str, Any]:
        """Return the bandwidth."""
        return {"bandwidth": self.bandwidth.to_json()}


KERNELS: dict[str, type[Gaussian]] = {Gaussian.name: Gaussian}
"""Kernels by the name they have in a release file."""


def kernel_from_json(name: str, version: int, parameters: Json) -> Kernel:
    """Rebuild a kernel from what a release file says of it."""
    if name not in KERNELS:
        raise FormatError(f"this release uses the kernel {name!r}, which is unknown here")
    kernel = KERNELS[name]
    if version != kernel.version:
        raise FormatError(f"this release uses version {version} of the {name} kernel")
    try:
        return kernel(**parameters)
    except (ParameterError, TypeError) as error:
        raise FormatError(f"the parameters of the {name} kernel are damaged: {error}") from None
