"""Boxes as callers write them: arrays, None for an open end, or intervals by column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.families.reading import Asked, Over, Within
from dpkde.kernels import Kernel
from dpkde.numerics.numbers import is_whole

if TYPE_CHECKING:
    from dpkde.space.frame import Frame

Floats = NDArray[np.float64]


class Boxes(NamedTuple):
    """Boxes in a frame.

    Attributes
    ----------
    low, high
        Their corners in bandwidths from the frame's origin, shape (n_boxes, dim).
    strange
        Which of them have an end that is no number; shape (n_boxes,).
    shape
        Of the answer: () for a box on its own.
    """

    low: Floats
    high: Floats
    strange: NDArray[np.bool_]
    shape: tuple[int, ...]

    def asked(self, smoothed: bool) -> list[Asked]:
        """Return what that asks along each axis."""
        kind = Over if smoothed else Within
        return [kind(self.low[:, k], self.high[:, k]) for k in range(self.low.shape[1])]

    def part(self, rows: slice) -> Boxes:
        """Return some of them."""
        return Boxes(self.low[rows], self.high[rows], self.strange[rows], self.shape)


def boxes_of(boxes: Any, frame: Frame, columns: Sequence[str] | None) -> Boxes:
    """Return boxes of shape (dim, 2) or (n_boxes, dim, 2), or mappings from columns to intervals.

    A pair is a box where there is one column. None is an open end. Ends in the wrong order are
    refused.
    """
    check_axes(frame.kernel)
    shape: tuple[int, ...]
    if isinstance(boxes, Mapping):
        ends, shape = np.array([_named(boxes, frame.dim, columns)]), ()
    elif isinstance(boxes, (list, tuple)) and boxes and isinstance(boxes[0], Mapping):
        ends = np.array([_named(box, frame.dim, columns) for box in boxes])
        shape = (len(ends),)
    else:
        ends = _numbers(boxes, frame.dim)
        shape = ends.shape[:-2]
        ends = ends.reshape(-1, frame.dim, 2)
    wrong = np.argwhere(ends[:, :, 0] > ends[:, :, 1])
    if len(wrong):
        box, axis = wrong[0].tolist()
        low, high = ends[box, axis].tolist()
        raise ParameterError(
            f"box {box} is reversed on {name_of(axis, columns)}: ({low:g}, {high:g}); write "
            f"({high:g}, {low:g})"
        )
    strange = np.isnan(ends).any(axis=(1, 2))
    ends[strange] = 0.0
    low, high = (_located(ends[:, :, side], frame) for side in (0, 1))
    return Boxes(low, high, strange, shape)


def shaped(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return answers in the shape that was asked for: a plain number where that is ()."""
    answer: Floats = values.reshape(shape)[()]
    return answer


def _located(corners: Floats, frame: Frame) -> Floats:
    """Return corners in bandwidths; infinite ends stay where they are."""
    finite = np.where(np.isinf(corners), 0.0, corners)
    return np.where(np.isinf(corners), corners, frame.locate(finite))


def check_axes(kernel: Kernel) -> None:
    """Refuse a kernel whose axes are not those of the columns, or that is none of space."""
    if kernel.home != "space":
        raise ParameterError(
            f"the {kernel.name} kernel does not live in space: there are no boxes to ask for"
        )
    if kernel.bandwidth.is_matrix:
        raise ParameterError(
            "a matrix bandwidth turns the axes, and boxes of the columns are none of its own: ask "
            "at points, or publish with one bandwidth per column"
        )


def name_of(axis: int, columns: Sequence[str] | None) -> str:
    """Return a column as messages call it."""
    return f"column {axis}" if columns is None else f"column {columns[axis]!r}"


def number_of(column: Any, dim: int, columns: Sequence[str] | None) -> int:
    """Return which column is meant, by its name or its number; or the only one, by None."""
    if column is None and dim == 1:
        return 0
    if isinstance(column, str) and columns is not None and column in columns:
        return columns.index(column)
    if is_whole(column) and -dim <= column < dim:
        return int(column) % dim
    known = f"0 to {dim - 1}" if columns is None else ", ".join(map(repr, columns))
    if column is None:
        raise SchemaError(f"there are {dim} columns: name a column, one of {known}")
    raise SchemaError(f"there is no column {column!r}: write one of {known}")


def _named(box: Mapping[Any, Any], dim: int, columns: Sequence[str] | None) -> Floats:
    """Return the box of a mapping: columns that are left out are whole."""
    ends = np.tile([-np.inf, np.inf], (dim, 1))
    for column, interval in box.items():
        ends[number_of(column, dim, columns)] = _numbers([interval] * dim, dim)[0]
    return ends


def _numbers(boxes: Any, dim: int) -> Floats:
    """Return ends as numbers, shape (…, dim, 2)."""
    expected = f"({dim}, 2) for one box or (n_boxes, {dim}, 2) for several"
    try:
        ends = np.array(boxes, dtype=object)
        if dim == 1 and ends.shape == (2,):
            ends = ends.reshape(1, 2)
        if ends.ndim in (2, 3) and ends.shape[-1] == 2:
            for side, infinity in ((0, -np.inf), (1, np.inf)):
                column = ends[..., side]
                column[column == None] = infinity  # noqa: E711  elementwise
        if any(isinstance(end, (str, bytes, complex)) for end in ends.flat):
            raise TypeError
        ends = ends.astype(np.float64)
    except (TypeError, ValueError):
        raise SchemaError(
            f"boxes must be (low, high) pairs of real numbers of shape {expected}, None for an "
            "open end; or a mapping from columns to such pairs; or regions with a __geo_interface__"
        ) from None
    if ends.size == 0 and ends.ndim <= 3:
        ends = ends.reshape(0, dim, 2)
    if ends.ndim not in (2, 3) or ends.shape[-2:] != (dim, 2):
        raise SchemaError(f"boxes must have shape {expected}, got {ends.shape}")
    return ends
