"""Answers of a spline table at all places of a grid: one axis after the other.

g(y) is a product over axes, so ⟨table, g⟩ on a grid of m₁ × … × m_A places is the table times one
sparse matrix an axis, of m_k rows with the coefficients of as many places. Axes that shrink the
table go first: nothing in between is larger than the table or the grid. Narrow axes have one matrix
together, of the numbers of their group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplinePair

Floats = NDArray[np.float64]

_MOST_GROUPED = 1 << 24
"""Most numbers of narrow axes; a grid with more is asked place by place."""


def is_separable(pair: SplinePair, axes: Sequence[Floats]) -> bool:
    """Tell whether axes of the grid are axes of the table, and narrow ones have few places."""
    narrow = math.prod(len(axes[column]) for column, _ in pair.grid.narrow)
    matrix = pair.frame.kernel.bandwidth.is_matrix
    return not matrix and narrow * pair.grid.group <= _MOST_GROUPED


def respond(pair: SplinePair, axes: Sequence[Floats], table: Floats) -> Floats:
    """Return ⟨table, g(y)⟩ / 2^bits at all places y of the grid, one array per column."""
    grid = pair.grid
    steps: list[tuple[int, Any]] = [(0, _group(pair, axes))]
    steps += [(1 + k, _matrix(pair, axes, k)) for k in range(len(grid.axes))]
    tensor = table.reshape(grid.group, *(axis.nodes for axis in grid.axes))
    for place, matrix in sorted(steps, key=lambda step: step[1].shape[0] / step[1].shape[1]):
        rows = np.moveaxis(tensor, place, 0)
        after = matrix @ rows.reshape(len(rows), -1)
        tensor = np.moveaxis(np.asarray(after).reshape(-1, *rows.shape[1:]), 0, place)
    return np.asarray(_by_columns(pair, axes, tensor) / 2**pair.bits)


def response_norm(pair: SplinePair, axes: Sequence[Floats]) -> Floats:
    """Return ‖g(y)‖₂ / 2^bits at all places: a product over axes."""
    lengths = [np.sqrt((_group(pair, axes) ** 2).sum(axis=1))]
    for k, axis in enumerate(pair.grid.axes):
        coefficients = _coefficients(pair, axis.column, axes[axis.column])[1][:, k]
        lengths.append(np.sqrt((coefficients**2).sum(axis=1)))
    whole: Floats = reduce(np.multiply.outer, lengths)
    return np.asarray(_by_columns(pair, axes, whole) / 2**pair.bits)


def _by_columns(pair: SplinePair, axes: Sequence[Floats], tensor: Floats) -> Floats:
    """Return a tensor with narrow axes as one, in front, with an axis for each column in order."""
    order = [column for column, _ in pair.grid.narrow] + [axis.column for axis in pair.grid.axes]
    wide = tensor.reshape([len(axes[column]) for column in order])
    return np.ascontiguousarray(wide.transpose(np.argsort(order)))


def _places(pair: SplinePair, columns: Sequence[int], values: Sequence[Floats]) -> Floats:
    """Return coordinates of places with these values in these columns, the others at the origin."""
    frame = pair.frame
    queries = np.tile(frame.domain.origin(frame.dim), (len(values[0]) if values else 1, 1))
    for column, column_values in zip(columns, values, strict=True):
        queries[:, column] = column_values
    return frame.locate(queries)


def _group(pair: SplinePair, axes: Sequence[Floats]) -> Floats:
    """Return what narrow axes say at all their places, shape (places, group)."""
    columns = [column for column, _ in pair.grid.narrow]
    meshed = np.meshgrid(*(axes[column] for column in columns), indexing="ij")
    return pair.group_numbers(_places(pair, columns, [mesh.reshape(-1) for mesh in meshed]))


def _coefficients(pair: SplinePair, column: int, values: Floats) -> tuple[Any, Floats]:
    return pair.coefficients(_places(pair, [column], [values]))


def _matrix(pair: SplinePair, axes: Sequence[Floats], k: int) -> Any:
    """Return the coefficients of the k-th splined axis, a sparse matrix of (places, nodes)."""
    from scipy.sparse import csr_array

    axis = pair.grid.axes[k]
    starts, coefficients = _coefficients(pair, axis.column, axes[axis.column])
    rows = coefficients[:, k, : pair.windows[k]]
    indices = starts[:, k, np.newaxis] + np.arange(rows.shape[1])
    ends = np.arange(len(rows) + 1) * rows.shape[1]
    return csr_array((rows.reshape(-1), indices.reshape(-1), ends), (len(rows), axis.nodes))
