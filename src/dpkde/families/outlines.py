"""What a table makes of regions that are sums of strips, for a record at any place.

A region is Σ_s c_s (place s of one axis) ⊗ (interval s of the other). A record at (x₁, x₂) counts
as Σ_s c_s F_s(x₁) F′_s(x₂) where its share is Σ_s c_s M_s(x₁) M′_s(x₂): two products of matrices
tell how far they are apart at all places of a lattice. Strips far from a place are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpkde.families.reading import Asked, At, Over, Within
from dpkde.families.spline.intervals import share_upto
from dpkde.kernels import ProductKernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NUMBERS = 1 << 22
_FAINT = 1e-12
"""Strips whose weights on all of a few bins are below this are far."""


class View(Protocol):
    """One axis, at places within bins of it."""

    @property
    def bins(self) -> int:
        """How many there are."""

    @property
    def places(self) -> int:
        """How many places a bin has."""

    def near(self, bins: slice) -> Ints:
        """Return the strips that tell anything about some bins."""

    def counted(self, strips: Ints, bins: slice) -> Floats:
        """Return what records at the places count as, shape (strips, bins, places)."""

    def true(self, strips: Ints, bins: slice) -> Floats:
        """Return what their shares are."""


def errors(first: View, second: View, coefficients: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield bins of the first axis, and by how much records in them count too much.

    Of shape (bins, places, bins of the second, places).
    """
    every = slice(0, second.bins)
    wide = second.bins * second.places
    step = max(1, _NUMBERS // (wide * first.places))
    for start in range(0, first.bins, step):
        bins = slice(start, min(start + step, first.bins))
        strips = first.near(bins)
        shape = (bins.stop - bins.start, first.places, second.bins, second.places)
        total = np.zeros((shape[0] * shape[1], wide))
        chunk = max(1, _NUMBERS // wide)
        for begin in range(0, len(strips), chunk):
            some = strips[begin : begin + chunk]
            parts = coefficients[some, np.newaxis]
            for sign, of in ((1.0, "counted"), (-1.0, "true")):
                one = getattr(first, of)(some, bins).reshape(len(some), -1)
                other = getattr(second, of)(some, every).reshape(len(some), -1)
                total += sign * (one * parts).T @ other
        yield bins, total.reshape(shape)


def shares(kernel: ProductKernel, entry: Asked, strips: Ints, x: Floats) -> Floats:
    """Return what strips make of records at x: the kernel there, or its share; (strips, *x)."""
    shape = (-1, *(1,) * x.ndim)
    if isinstance(entry, At):
        return np.asarray(kernel.profile(entry.places[strips].reshape(shape) - x))
    assert isinstance(entry, (Over, Within))
    low, high = (end[strips].reshape(shape) for end in (entry.low, entry.high))
    return share_upto(kernel, high - x) - share_upto(kernel, low - x)


def heavy(rows: Floats) -> Ints:
    """Return which rows have any weight."""
    return np.flatnonzero((np.abs(rows) > _FAINT).any(axis=1))
