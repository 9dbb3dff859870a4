"""Custom families whose f and g depend on the kernel and the bounds, and tables of many axes.

`CustomFamily` hands f a record and what was drawn, and nothing else. The families here need the
frame: a `PlacedFamily` makes a `Placed` of itself in a frame, which holds f and g, and `PlacedPair`
enforces the bounds as `CustomPair` does, with whole numbers of 64 bits where they suffice.

The response g(y) is kept in factors, whose outer product it is: one per axis for product kernels. A
table of a million cells is then asked without writing g(y) down.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import about, no_repetitions
from dpkde.families.custom import CustomFamily, CustomLayout, CustomPair, Drawn, Floats, Limits
from dpkde.kernels import Points, ProductKernel
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.laws.weights import Weights
from dpkde.space.frame import Frame

MOST_CELLS = 1 << 17
"""The largest table that is made when asked for."""

ROOM = 1 + 2.0**-30
"""Limits computed in floats are raised by this factor, far above their rounding."""

_TRIES = 65
_CELL_NANOSECONDS = 40.0
_RECORD_NANOSECONDS = 3e4


class Placed(ABC):
    """f and g of a family in a frame.

    Attributes
    ----------
    limits
        The length of f, and bounds on its norms.
    nonnegative
        Whether no entry of f is below zero; `PlacedPair` enforces it.
    """

    limits: Limits
    nonnegative: bool

    @abstractmethod
    def f(self, x: Floats) -> Floats:
        """Return f(x), shape (cells,), of one record in bandwidth units."""

    @abstractmethod
    def factors(self, y: Floats) -> list[Floats]:
        """Return vectors whose outer product, laid out in rows, is g(y)."""

    def bounds(self, bits: int) -> Bounds | None:
        """Return sharper bounds on the lattice than those of `limits`; None: there are none."""
        return None


class PlacedFamily(CustomFamily):
    """A `CustomFamily` that is written by `place_in`."""

    @abstractmethod
    def place_in(self, frame: Frame) -> Placed:
        """Return f and g in a frame."""

    def relative_bias(self, frame: Frame) -> float | None:
        """Return a typical |f(x)·g(y) − k(x, y)| as a part of k; None where it is not known."""
        return None

    def limits(self, frame: Frame) -> Limits:
        """Return the limits of f."""
        return self.place_in(frame).limits

    def f(self, x: Floats, drawn: Drawn) -> Floats:
        """Raise: without a frame there is nothing to ask."""
        raise ParameterError(f"{self.name} needs a frame: draw it first")

    def g(self, y: Floats, drawn: Drawn) -> Floats:
        """Raise: without a frame there is nothing to ask."""
        raise ParameterError(f"{self.name} needs a frame: draw it first")

    def layout(self, frame: Frame) -> PlacedLayout:
        """Return the family in a frame."""
        self.check(frame)
        return PlacedLayout(self, frame)

    @property
    def proof(self) -> str:
        """The text beside the module."""
        return (
            resources.files("dpkde.prior")
            .joinpath(f"{self.name}.proof.md")
            .read_text(encoding="utf-8")
        )


@dataclass(frozen=True, eq=False)
class PlacedLayout(CustomLayout):
    """A `PlacedFamily` in a frame."""

    family: PlacedFamily

    @cached_property
    def placed(self) -> Placed:
        """The family's f and g in this frame."""
        return self.family.place_in(self.frame)

    def bounds(self, bits: int) -> Bounds:
        """Return the limits on the lattice, rounded up, and whether no entry of f is negative."""
        sharp = self.placed.bounds(bits)
        return sharp or replace(super().bounds(bits), nonnegative=self.placed.nonnegative)

    def draw(self, bits: int, seed: int) -> PlacedPair:
        """Return the pair; nothing is random."""
        self.bounds(bits)  # a table that is too large says so now, also one that a file declares
        return PlacedPair(self, bits, {})

    @property
    def nanoseconds(self) -> float:
        """What a record takes, roughly."""
        return _RECORD_NANOSECONDS + _CELL_NANOSECONDS * self.placed.limits.cells

    @property
    def relative_error(self) -> float | None:
        """A typical error of f·g in a KDE value, as a part of it."""
        return self.family.relative_bias(self.frame)


@dataclass(frozen=True, eq=False)
class PlacedPair(CustomPair):
    """f and g of a `PlacedFamily` in a frame."""

    layout: PlacedLayout

    def _value(self, x: Floats) -> Floats:
        return self.layout.placed.f(x)

    def respond(self, queries: Points, table: NDArray[np.float64], groups: int = 1) -> Points:
        """Return ⟨table, g(y)⟩ / 2^bits, one factor of g after the other."""
        no_repetitions(self.layout.family.name, groups)
        answers = np.empty(len(queries))
        for i, y in enumerate(self.frame.locate(queries)):
            rest = table
            for factor in self.layout.placed.factors(y):
                rest = factor @ rest.reshape(len(factor), -1)
            answers[i] = rest[0]
        return np.asarray(answers / 2**self.bits)

    def weights(self, queries: Points) -> Weights:
        """Return g(y) / 2^bits."""
        located = self.frame.locate(queries)
        rows = np.array([outer(self.layout.placed.factors(y)) for y in located])
        rows = rows.reshape(len(located), self.bounds.cells)
        return Weights(rows / 2**self.bits, np.ones(self.bounds.cells))

    def norms(self, located: Points) -> Floats:
        """Return ‖g(y)‖₂ at places in bandwidth units: the product of the factors' lengths."""
        return np.array(
            [
                math.prod(
                    float(np.sqrt(factor @ factor)) for factor in self.layout.placed.factors(y)
                )
                for y in located
            ]
        )


def box_halves(frame: Frame) -> Floats:
    """Return half the widths of the box around all records, in bandwidth units."""
    halves = frame.halves()
    assert halves is not None  # `PlacedAxis.obstacle` was asked
    return halves


def check_cells(name: str, per_axis: int, axes: int) -> None:
    """Raise, with its size, where a table is too large."""
    cells = per_axis**axes
    if cells > MOST_CELLS:
        raise ParameterError(
            f"{name} would need a table of {per_axis}^{axes} = {about(cells)} cells "
            f"({about(8 * cells)} bytes); at most 2^17 are made: use fewer axes, or a lower order"
        )


def outer(factors: Sequence[Floats]) -> Floats:
    """Return the outer product of vectors, laid out in rows."""
    return reduce(lambda done, factor: np.multiply.outer(done, factor).reshape(-1), factors)


def in_data_units(frame: Frame, coordinates: Points) -> Points:
    """Return places given in bandwidth units, from the center, where they lie in the data.

    Elementwise and in a fixed order, so that a row's result depends on that row alone.
    """
    value = np.array(frame.kernel.bandwidth.value, dtype=np.float64)
    if frame.kernel.bandwidth.is_matrix:
        offsets = coordinates[:, :1] * value[0]
        for k in range(1, len(value)):
            offsets = offsets + coordinates[:, k : k + 1] * value[k]
    else:
        offsets = coordinates * value
    return np.asarray(offsets + frame.domain.origin(frame.dim))


def mesh(axes: Sequence[Floats]) -> Points:
    """Return all points of a grid, shape (n_points, n_axes), the last axis running fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def kernel_values(frame: Frame, x: Floats, places: Points) -> Floats:
    """Return k(x, y_j) in [0, 1] of one record x in bandwidth units, at places in the data."""
    return unit_values(frame.kernel.evaluate(in_data_units(frame, x[np.newaxis]), places)[0])


def unit_values(values: Any) -> Floats:
    """Return kernel values in [0, 1]; what is not a number becomes 0.

    >>> unit_values([0.5, 1.5, -0.5, float("nan")]).tolist()
    [0.5, 1.0, 0.0, 0.0]
    """
    array = np.asarray(values, dtype=np.float64)
    return np.where(array >= 0, np.minimum(array, 1.0), 0.0)


@lru_cache(maxsize=256)
def axis_bias(family: PlacedAxis, kernel: ProductKernel, half: float) -> tuple[float, float]:
    """Return the largest error of an axis on a grid of x and y, and the relative one, typically.

    The second is the root mean square of the error over that of the profile.
    """
    places = np.linspace(-half, half, _TRIES)
    exact = kernel.profile(np.subtract.outer(places, places))
    errors = family.axis_values(kernel, half, places, places) - exact
    typical = math.sqrt(float((errors**2).sum() / (exact**2).sum()))
    return float(np.abs(errors).max()), typical


class PlacedAxis(PlacedFamily):
    """A `PlacedFamily` over a box that is a product over axes wherever the kernel is."""

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        """Return why a kernel and domain have no box to lay a lattice over; None where they do."""
        if frame.kernel.home != "space":
            return f"the {frame.kernel.name} kernel does not live in space"
        halves = frame.halves()
        if halves is None:
            return "it needs bounds, such as bounds=[(0, 1), (0, 1)]"
        if not (np.isfinite(halves) & (halves > 0)).all():
            return "the bounds are too wide or too narrow for the bandwidth"
        return None

    @abstractmethod
    def axis_values(self, kernel: ProductKernel, half: float, x: Floats, y: Floats) -> Floats:
        """Return f(x)·g(y) of one axis, shape (len(x), len(y)), for |x|, |y| ≤ half."""

    def largest_bias(self, frame: Frame) -> float:
        """Return about the largest |f(x)·g(y) − k(x, y)| over records and queries of the box.

        From errors of each axis on a grid: ∏(1 + e_k) − 1. NaN for kernels that are no product.
        """
        self.check(frame)
        if not frame.kernel.is_product:
            return math.nan
        errors = [axis_bias(self, frame.kernel.shape, h)[0] for h in box_halves(frame).tolist()]
        return math.prod(1 + error for error in errors) - 1

    def relative_bias(self, frame: Frame) -> float | None:
        """Return the typical relative error √(∏(1 + r_k²) − 1); None where kernels are no product.

        As for a single record: over many, spread out, errors partly cancel.
        """
        if not frame.kernel.is_product:
            return None
        errors = [axis_bias(self, frame.kernel.shape, h)[1] for h in box_halves(frame).tolist()]
        return math.sqrt(math.prod(1 + error**2 for error in errors) - 1)
