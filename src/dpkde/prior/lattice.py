"""Kernel values as whole numbers: what choices and measurements of single sums are made of.

A record's part of a kernel sum is rint(k(x, y)·2¹⁶), from 0 to 2¹⁶. Choices compare such sums, so
they must not wrap: with 16 bits that takes 2⁴⁷ records, more than any table holds, and what is
beyond 2⁴⁰ of them is cut, which moves no two data sets further apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import Points
from dpkde.privacy.amounts import Adjacency, Bounds
from dpkde.space.frame import Frame

LATTICE_BITS = 16
"""Kernel values are rounded to multiples of 2⁻¹⁶: an error of 8·10⁻⁶ at most."""

CAPACITY = 1 << 40
"""Records beyond so many are not seen any more; with 16 bits, sums are 2⁵⁶ at most."""

Integers = NDArray[np.int64]


def within_capacity(sums: Integers) -> Integers:
    """Return sums cut to what `CAPACITY` records can have."""
    return np.clip(sums, 0, CAPACITY << LATTICE_BITS)


def on_lattice(values: NDArray[np.float64]) -> Integers:
    """Return rint(value·2¹⁶), cut to [0, 2¹⁶]; what is no number becomes 0."""
    scaled = np.rint(np.asarray(values, dtype=np.float64) * 2.0**LATTICE_BITS)
    return np.clip(np.where(np.isnan(scaled), 0.0, scaled), 0.0, 2.0**LATTICE_BITS).astype(np.int64)


def public_lattice(frame: Frame, options: Points, places: Points) -> Integers:
    """Return rint(k(z, y)·2¹⁶) for public z and y, shape (n_options, n_places)."""
    center = frame.domain.origin(frame.dim)
    return on_lattice(frame.kernel.evaluate(options - center, places - center))


def one_sum(adjacency: Adjacency) -> Bounds:
    """Return how far a record moves one kernel sum.

    Entries lie in [0, 2¹⁶]. Where n is public, entries may be counted from the middle of that
    range, and n times the middle added back: then replacing one moves the sum by 2¹⁶ in every
    norm, not by twice that.
    """
    public = adjacency is Adjacency.REPLACE
    reach = 1 << (LATTICE_BITS - public)
    return Bounds(1, l1=reach, l2_squared=reach**2, linf=reach, nonnegative=not public)
