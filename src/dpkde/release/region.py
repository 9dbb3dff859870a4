"""Where two densities lie, as cells of a grid: for integrals in few dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import Kernel, Points

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

MOST_AXES = 3
_MOST_CELLS = 1 << 17
_FINEST = 1 / 3
"""Cells are this part of a bandwidth wide, where there are not too many of them."""
_FARTHEST = 12.0
"""Kernels with long tails are followed so many bandwidths beyond the bounds."""
_FADED = 1e-4


@dataclass(frozen=True, eq=False)
class Region:
    """A box cut into equal cells.

    Attributes
    ----------
    low, high
        Its corners.
    shape
        Cells along each axis.
    """

    low: Floats
    high: Floats
    shape: tuple[int, ...]

    @property
    def axes(self) -> list[Floats]:
        """The centers of cells along each axis."""
        sides = zip(self.low, self.high, self.shape, strict=True)
        return [low + (np.arange(n) + 0.5) * (high - low) / n for low, high, n in sides]

    @cached_property
    def points(self) -> Points:
        """The centers of all cells, in row-major order."""
        mesh = np.meshgrid(*self.axes, indexing="ij")
        return np.stack(mesh, axis=-1).reshape(-1, len(self.shape))

    @property
    def cell(self) -> float:
        """The volume of a cell."""
        return float(((self.high - self.low) / self.shape).prod())


def bounds_of(*releases: Answering) -> tuple[Floats, Floats] | None:
    """Return the corners of a box that holds the bounds of all; None where some have none."""
    corners = []
    for release in releases:
        halves = release.domain.halves(release.dim)
        if halves is None or release.kernel.home != "space":
            return None
        origin = release.domain.origin(release.dim)
        corners.append((origin - halves, origin + halves))
    low, high = np.array(corners).swapaxes(0, 1)
    return low.min(axis=0), high.max(axis=0)


def region_of(*releases: Answering) -> Region | str:
    """Return the box around all densities, tails included; or why there is none."""
    first = releases[0]
    if first.dim > MOST_AXES:
        return f"{first.dim} columns are more than the {MOST_AXES} of a grid"
    box = bounds_of(*releases)
    if box is None:
        return "a grid needs bounds in space, which a release lacks"
    spans = np.array([_spans(release.kernel, release.dim) for release in releases])
    reach = np.array([[_reach(release.kernel)] for release in releases])
    beyond = (spans * reach).max(axis=0)
    low, high = box[0] - beyond, box[1] + beyond
    wanted = np.ceil((high - low) / (spans.min(axis=0) * _FINEST))
    surplus = float(wanted.prod()) / _MOST_CELLS
    if surplus > 1:
        coarser = surplus ** (1 / first.dim)
        if coarser * _FINEST > 1:
            return "the bounds are too many bandwidths wide for a grid"
        wanted = np.ceil(wanted / coarser)
    return Region(low, high, tuple(max(int(n), 8) for n in wanted))


def _spans(kernel: Kernel, dim: int) -> Floats:
    """Return how far a bandwidth reaches along each column."""
    value = np.array(kernel.bandwidth.value)
    return np.abs(value).sum(axis=1) if kernel.bandwidth.is_matrix else value * np.ones(dim)


def _reach(kernel: Kernel) -> float:
    """Return how many bandwidths beyond the bounds a density is followed."""
    if not kernel.is_product:
        return _FARTHEST / 2
    return min(math.ceil(kernel.shape.profile_reach(_FADED)), _FARTHEST)
