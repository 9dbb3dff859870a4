"""A whole map at once: the answers of a release at all places of a grid.

Places are the centers of equal cells that cover the bounds, so that values times the area of a cell
add up to an integral, and a GIS shows cells where they are. Spline tables are answered one axis
after the other (`families.spline.maps`), all others place by place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_whole
from dpkde.release import answers
from dpkde.release.assistance import assistance
from dpkde.release.container import check_not_ours
from dpkde.release.progress import progress, reporting
from dpkde.space.domain import Box
from dpkde.space.frame import Frame
from dpkde.tables.maps import Layers, write_map

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

MOST_PLACES = 1 << 27
"""The largest map that is made."""
_ROWS = 1 << 16
"""Places that are asked for at a time."""


@dataclass(frozen=True, eq=False)
class Map:
    """Answers at the centers of equal cells.

    Attributes
    ----------
    axes
        The centers along each column, one array for each.
    bounds
        (low, high) of each column, which the cells cover.
    values
        `Release.kde` at each place, one axis for each column: ``values[i, j]`` is that of
        ``(axes[0][i], axes[1][j])``.
    columns
        Names of the columns; x1, x2, … where the release has none.
    """

    axes: tuple[Floats, ...]
    bounds: tuple[tuple[float, float], ...]
    values: Floats
    columns: tuple[str, ...]
    _release: Answering = field(repr=False)
    _assisted: bool | None = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many places there are along each column."""
        return tuple(map(len, self.axes))

    @property
    def points(self) -> Points:
        """All places, shape (n_places, dim), the last column fastest, as in ``values.ravel()``."""
        return _places(self.axes, 0, math.prod(self.shape))

    @cached_property
    def standard_error(self) -> Floats:
        """`Release.standard_error` at each place; computed when it is first asked for."""
        release = self._release
        gains = None
        if _axes_answer(release, self._assisted):
            gains = release.plan.pair.response_norm_on_grid(self.axes)
        if gains is None:
            return _by_places(
                self.axes,
                lambda rows: answers.standard_error(release, rows, self._assisted),
            )
        table = answers.deviation(release, "table") * gains / float(release.rate) / release.count
        part = np.abs(np.clip(self.values, 0.0, 1.0) - release.plan.pair.constant)
        return np.hypot(table, part * (answers.deviation(release, "count") / release.count))

    def save(self, path: str | PathLike[str], *, crs: str | None = None) -> None:
        """Write the map to a file, in the format that its name ends in.

        ``.csv`` and ``.parquet`` have a row for each place, with ``kde`` and ``standard_error``;
        ``.npy`` holds `values`; ``.tif`` is a GeoTIFF of two columns with a band for each of both,
        north up, the first column across, or the second where the first is called ``lat`` or ``y``.

        Parameters
        ----------
        path
            An old file of that name is replaced when the new one is complete; one of dpkde's own,
            such as a release, is not.
        crs
            For a GeoTIFF, the coordinate system of the columns, such as ``"EPSG:4326"``.
        """
        check_not_ours(Path(path))
        values: tuple[Floats, ...] = (self.values,)
        if not str(path).lower().endswith(".npy"):
            values = (self.values, self.standard_error)
        names = (*self.columns, "kde", "standard_error")
        write_map(Layers(names, self.axes, self.bounds, values, crs), path)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.shape))
        ends = ", ".join(
            f"{name} {low:g} to {high:g}"
            for name, (low, high) in zip(self.columns, self.bounds, strict=True)
        )
        return f"<Map: {shape}, {ends}>"


def grid(
    release: Answering,
    shape: int | Sequence[int],
    bounds: Any = None,
    *,
    clip: bool = True,
    assisted: bool | None = None,
) -> Map:
    """Return the map of a release; see `Release.grid`."""
    frame = release.plan.frame
    check_space(frame)
    sizes = sizes_of(shape, frame.dim)
    ends = ends_of(frame, release.columns, bounds, sizes)
    axes = centers_of(ends, sizes)
    values = None
    if _axes_answer(release, assisted):
        pair, table = release.plan.pair, release.table.astype(np.float64)
        values = pair.respond_on_grid(axes, table)
    if values is None:
        values = _by_places(
            axes, lambda rows: answers.kde(release, rows, clip=False, assisted=assisted)
        )
    else:
        values /= float(release.rate) * release.count
        values += pair.constant
    if clip:
        np.clip(values, 0.0, 1.0, out=values)
    for array in (values, *axes):
        array.setflags(write=False)
    names = release.columns or tuple(f"x{k + 1}" for k in range(frame.dim))
    return Map(tuple(axes), ends, values, tuple(names), release, assisted)


def check_space(frame: Frame) -> None:
    """Refuse kernels of points that lie on no map."""
    if frame.kernel.home != "space":
        raise ParameterError(
            f"the {frame.kernel.name} kernel has no map: its points are "
            f"{'directions' if frame.kernel.home == 'sphere' else 'sets'}; ask kde at points"
        )


def centers_of(ends: Sequence[tuple[float, float]], sizes: Sequence[int]) -> list[Floats]:
    """Return the centers of equal cells along each column."""
    axes = []
    for (low, high), size in zip(ends, sizes, strict=True):
        shares = (np.arange(size) + 0.5) / size
        axes.append(np.clip(low + (high - low) * shares, low, high))
    return axes


def _axes_answer(release: Answering, assisted: bool | None) -> bool:
    """Tell whether plain sums at the very places are asked for: no model, no places moved."""
    moved = release.promise is not None and release.promise.pitch
    return assistance(release, assisted) is None and not moved


def sizes_of(shape: int | Sequence[int], dim: int) -> tuple[int, ...]:
    """Return the places along each column."""
    entries: tuple[Any, ...] = (shape,) * dim
    if not is_whole(shape):
        entries = tuple(shape) if isinstance(shape, (Sequence, np.ndarray)) else ()
    if isinstance(shape, str) or not entries or not all(map(is_whole, entries)):
        raise ParameterError(
            "shape must be a whole number, or one for each column such as (200, 100), got "
            f"{shape!r}"
        )
    if len(entries) != dim:
        raise ParameterError(f"shape has {len(entries)} numbers, the release {dim} columns")
    if min(entries) < 1:
        raise ParameterError(f"shape must have whole numbers from 1 on, got {shape!r}")
    places = math.prod(map(int, entries))
    if places > MOST_PLACES:
        raise ParameterError(
            f"a map of {'×'.join(map(str, entries[:4]))}{'×…' * (dim > 4)} places is too large, "
            f"{MOST_PLACES} fit: use fewer per column, 1 where a slice will do"
        )
    return tuple(map(int, entries))


def ends_of(
    frame: Frame, columns: Sequence[str] | None, bounds: Any, sizes: Sequence[int]
) -> tuple[tuple[float, float], ...]:
    """Return (low, high) of each column: the caller's, or those of the frame."""
    if bounds is None:
        halves = frame.domain.halves(frame.dim)
        if halves is None:
            raise ParameterError(
                "this release has no bounds: give bounds=, one (low, high) pair per column"
            )
        center = frame.domain.origin(frame.dim)
        corners = np.array([center - halves, center + halves])
        if isinstance(frame.domain, Box):
            corners = frame.domain.corners  # as they were given, to the last bit
        pairs = np.stack(tuple(corners), axis=1)
    else:
        try:
            pairs = np.array(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            pairs = np.empty(0)
        if pairs.shape != (frame.dim, 2):
            raise ParameterError(
                f"bounds must be one (low, high) pair for each of the {frame.dim} columns"
            )
    with np.errstate(all="ignore"):
        widths = pairs[:, 1] - pairs[:, 0]
    names = columns or range(frame.dim)
    for name, (low, high), width, size in zip(names, pairs.tolist(), widths, sizes, strict=True):
        if not (np.isfinite([low, high, width]).all() and width >= 0):
            raise ParameterError(
                f"bounds must be finite, low below high, and those of column {name} are "
                f"({low}, {high})"
            )
        if width == 0 and size > 1:
            raise ParameterError(
                f"bounds must have low below high, and those of column {name} are ({low}, {high}): "
                "a slice at one value has 1 in shape"
            )
    return tuple((low, high) for low, high in pairs.tolist())


def _places(axes: Sequence[Floats], start: int, stop: int) -> Points:
    """Return places of the grid by number, the last column fastest."""
    numbers = np.unravel_index(np.arange(start, stop), [len(axis) for axis in axes])
    return np.stack([axis[index] for axis, index in zip(axes, numbers, strict=True)], axis=1)


def _by_places(axes: Sequence[Floats], function: Callable[[Points], Floats]) -> Floats:
    """Return a function of places on the grid, so many at a time."""
    sizes = [len(axis) for axis in axes]
    total = math.prod(sizes)
    values, report = np.empty(total), reporting()
    for start in range(0, total, _ROWS):
        stop = min(start + _ROWS, total)
        with progress(None):  # of the whole, not of each piece
            values[start:stop] = function(_places(axes, start, stop))
        report(stop, total)
    return values.reshape(sizes)
