"""Bandwidth: what one unit of distance means, as a number, one number per axis, or a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.numerics.numbers import LARGEST

Points = NDArray[np.float64]
_SAME = 1e-9
"""Matrices whose axes differ by less are taken to have the same."""

BandwidthLike = float | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any] | str

RULES = ("auto", "scott", "silverman")
"""What may be written in place of numbers: a rule, by which they are found privately."""


@dataclass(frozen=True)
class Bandwidth:
    """σ as a scalar, one σ per axis, or a positive definite matrix B: distances are ‖B⁻¹Δ‖.

    >>> Bandwidth.of(0.5)
    0.5
    >>> Bandwidth.of([1, 10]).dim
    2
    """

    value: tuple[float, ...] | tuple[tuple[float, ...], ...]
    is_scalar: bool = False

    @classmethod
    def of(cls, value: Bandwidth | BandwidthLike) -> Bandwidth:
        """Return what a caller typed as a bandwidth; refuse what is none."""
        if isinstance(value, Bandwidth):
            return value
        wrong = ParameterError(
            "bandwidth must be a positive number, one positive number per axis, or a symmetric "
            "positive definite matrix, from 1e-150 to 1e150 in size; or 'auto', 'scott' or "
            f"'silverman' for dpkde.publish to find it; got {value!r}"
        )
        if isinstance(value, str):
            if value not in RULES:
                raise wrong
            return OpenBandwidth((1.0,), True, value)
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
        if array.size == 0 or not np.isfinite(array).all() or array.ndim > 2:
            raise wrong
        if array.ndim < 2:
            if not ((array >= 1 / LARGEST) & (array <= LARGEST)).all():
                raise wrong
            return cls(tuple(np.atleast_1d(array).tolist()), array.ndim == 0)
        if array.shape[0] != array.shape[1] or not np.allclose(
            array, array.T, rtol=0, atol=1e-10 * np.abs(array).max()
        ):
            raise wrong
        symmetric = array / 2 + array.T / 2
        if np.abs(symmetric).max() > LARGEST or np.linalg.eigvalsh(symmetric).min() <= 0:
            raise wrong
        bandwidth = cls(tuple(map(tuple, symmetric.tolist())))
        with np.errstate(all="ignore"):
            if not (np.abs(bandwidth._inverse) <= LARGEST).all():
                raise wrong
        return bandwidth

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        array = np.array(self.value, dtype=np.float64)
        return _inverse(array) if self.is_matrix else np.asarray(1 / array)

    @property
    def rule(self) -> str | None:
        """The rule by which numbers are to be found; None where they are given."""
        return None

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

    def log_determinant(self, dim: int) -> float:
        """Return the logarithm of that, which many axes take beyond the numbers."""
        if self.is_matrix:
            return float(np.linalg.slogdet(np.array(self.value))[1])
        return float(np.log(np.array(self.value) * np.ones(dim)).sum())

    def scaled(self, factor: float) -> Bandwidth:
        """Return a bandwidth that is `factor` times this one, along every direction."""
        return Bandwidth.of(np.asarray(self.to_json()) * factor)

    def ratios(self, other: Bandwidth, dim: int) -> NDArray[np.float64] | None:
        """Return how many units of another bandwidth this one is, axis by axis.

        By them coordinates become those of the other. None where matrices turn space differently:
        their coordinates are then not those of one another, whatever the units.
        """
        if not (self.is_matrix or other.is_matrix):
            return np.asarray(np.array(self.value) * other._inverse * np.ones(dim))
        turned = self._matrix(dim) @ np.linalg.inv(other._matrix(dim))
        ratios = np.diag(turned).copy()
        same = np.abs(turned - np.diag(ratios)).max() <= _SAME * np.abs(ratios).min()
        return ratios if same else None

    def _matrix(self, dim: int) -> NDArray[np.float64]:
        array = np.array(self.value, dtype=np.float64)
        return array if self.is_matrix else np.diag(array * np.ones(dim))

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

    def unwhiten(self, coordinates: Points) -> Points:
        """Return BΔ for each row: what `whiten` takes back."""
        array = np.array(self.value, dtype=np.float64)
        if not self.is_matrix:
            return np.asarray(coordinates * array)
        return np.asarray(np.einsum("nk,kj->nj", coordinates, array))

    def spans(self, halves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far each coordinate of B⁻¹Δ can be from zero where |Δ_k| ≤ halves_k."""
        if not self.is_matrix:
            return np.asarray(halves * self._inverse)
        return np.asarray(
            sum(np.abs(row) * h for row, h in zip(self._inverse, halves, strict=True))
        )

    def to_json(self) -> Any:
        """Return numbers, lists or nested lists."""
        return self.value[0] if self.is_scalar else np.array(self.value).tolist()

    def __repr__(self) -> str:
        return repr(self.to_json())


@dataclass(frozen=True, repr=False)
class OpenBandwidth(Bandwidth):
    """A rule in place of numbers: `dpkde.publish` finds one per column, privately.

    >>> Bandwidth.of("auto"), Bandwidth.of("scott").dim
    ('auto', None)

    Where numbers are needed it refuses. A frame takes none, and so neither does any file.
    """

    name: str = RULES[0]

    @property
    def rule(self) -> str:
        """The rule."""
        return self.name

    def to_json(self) -> Any:
        """Return the rule."""
        return self.name

    def _refused(self, *_: Any) -> Any:
        raise ParameterError(
            f"bandwidth={self.name!r} is found by dpkde.publish, from the points and privately: "
            "elsewhere give numbers, such as those of a release, release.kernel"
        )

    determinant = scaled = ratios = smallest = _refused  # type: ignore[assignment]
    whiten = unwhiten = spans = _refused  # type: ignore[assignment]


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
