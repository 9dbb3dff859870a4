"""Numbers to read off an output, on which neighbouring data sets may differ.

An output is a vector of numbers, such as a noisy count and a noisy table. A direction is a linear
function of it. Three kinds are looked at:

* **real** ones, for half-lines. The difference of the means, weighed by the inverse of the
  covariance of the noise: where noise is the same on two cells, their difference has none, and
  this direction finds it; no cell shows it alone. The same with the variances only, which needs
  fewer outputs. Each of the cells that differ most.
* **whole** ones, for residues and points, in exact integers modulo 2⁶⁴: those cells, the sum of
  all, the sum and the difference of two cells. Where cells share a magnitude and have signs of
  their own, every covariance is zero, and one of these two is without noise half of the time.
* the **print** of an output, a fixed mix of all its cells modulo 2⁶⁴. Outputs with one print are,
  all but surely, one output: a vector that comes twice where noise is wide has no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Outputs = NDArray[Any]
"""Shape (trials, numbers): integers, or floats."""
Statistic = Callable[[Outputs], NDArray[Any]]
"""From outputs to one number each, shape (trials,)."""

CELLS = 16
"""Of the cells that differ most, so many are looked at one by one."""
PARTNERS = 3
"""So many of them are compared with all the others."""
_RIDGE = 1e-12
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Direction:
    """A weighted sum of some cells of an output: of all of them where `cells` is None."""

    name: str
    weights: NDArray[Any]
    cells: NDArray[np.intp] | None = None

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        """Return the sums, shape (trials,): exact modulo 2⁶⁴ where both are integers."""
        chosen = outputs if self.cells is None else outputs[:, self.cells]
        if chosen.dtype.kind == "f" or self.weights.dtype.kind == "f":
            return np.asarray(chosen.astype(np.float64) @ self.weights)
        total = np.zeros(len(chosen), dtype=np.int64)
        for column, weight in zip(chosen.T, self.weights, strict=True):
            total += column * weight
        return total


def real(left: Outputs, right: Outputs) -> Iterator[Direction]:
    """Yield directions for half-lines, from some outputs on either side."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    gap = a.mean(axis=0) - b.mean(axis=0)
    width = _floored(np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2), gap)
    yield Direction("all cells, by their variances", gap / width**2)
    if 1 < a.shape[1] < len(a) // 4:
        spread = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)]) / width
        covariance = spread.T @ spread / len(spread) + _RIDGE * np.eye(a.shape[1])
        yield Direction("all cells, by their covariance", _solved(covariance, gap / width) / width)
    for cell in _telling(left, right):
        sign = 1.0 if gap[cell] >= 0 else -1.0
        yield Direction(f"number {cell}", np.array([sign]), np.array([cell]))


def whole(left: Outputs, right: Outputs) -> Iterator[Direction]:
    """Yield directions for residues and points; none where outputs are not integers."""
    if left.dtype.kind != "i":
        return
    one = np.ones(1, dtype=np.int64)
    cells = _telling(left, right)
    for cell in cells:
        yield Direction(f"number {cell}", one, np.array([cell]))
    if left.shape[1] > 1:
        yield Direction("sum of all numbers", np.ones(left.shape[1], dtype=np.int64))
    for place, cell in enumerate(cells[:PARTNERS]):
        for other in cells[place + 1 :]:
            for sign, word in ((-1, "minus"), (1, "plus")):
                yield Direction(
                    f"number {cell} {word} number {other}",
                    np.array([1, sign], dtype=np.int64),
                    np.array([cell, other]),
                )


def whole_print(numbers: int) -> Direction:
    """Return the mix of all numbers of an output."""
    with np.errstate(over="ignore"):
        x = (np.arange(1, numbers + 1).astype(np.uint64) * _MIX) ^ (_MIX >> np.uint64(7))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return Direction("the whole output", (x | np.uint64(1)).view(np.int64))


def _telling(left: Outputs, right: Outputs) -> NDArray[np.intp]:
    """Return the numbers of the cells that differ most, against their spread."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    gap = np.abs(np.median(a, axis=0) - np.median(b, axis=0))
    width = _floored(a.std(axis=0) + b.std(axis=0), gap)
    return np.argsort(-gap / width, kind="stable")[:CELLS]


def _floored(width: NDArray[np.float64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the spreads of cells, with something to divide by where there is no noise."""
    scale = max(float(width.max()), float(np.abs(gap).max()))
    return np.maximum(width, 1e-9 * scale if scale > 0 else 1.0)


def _solved(covariance: NDArray[np.float64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors @ ((vectors.T @ gap) / np.maximum(values, _RIDGE)))
