"""Exact KDE, and families without their noise. Not private."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpkde.curator.sketch import sketch
from dpkde.errors import ParameterError
from dpkde.families.base import DEFAULT_CAPACITY_BITS, Family
from dpkde.kernels import Kernel
from dpkde.numerics.pool import mapped
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.plan import Plan, as_families, make_frame
from dpkde.space.domain import BoundsLike, as_domain
from dpkde.tables.arrays import as_queries, as_rows

_BLOCK = 1 << 22


def kde(points: ArrayLike, queries: ArrayLike, kernel: Kernel) -> NDArray[np.float64]:
    """Return the exact mean of k(x, y) over the points, at each query. O(n·q·d); not private.

    Points with a coordinate that is not finite are left out: they add nothing to a release either.

    >>> from dpkde import Gaussian
    >>> kde([[0.0], [1.0]], [[0.0]], Gaussian(1.0)).round(4)
    array([0.6839])
    """
    rows = as_rows(points, None, "points").astype(np.float64, copy=False)
    rows = rows[np.isfinite(rows).all(axis=1)]
    make_frame(kernel, as_domain(None), rows.shape[1])
    targets = as_queries(queries, rows.shape[1])
    step = max(1, _BLOCK // max(1, len(targets)))
    starts = range(0, len(rows), step)
    total = np.zeros(len(targets))
    for part in mapped(lambda s: kernel.evaluate(rows[s : s + step], targets).sum(axis=0), starts):
        total += part
    return total / max(1, len(rows))


def estimate(
    points: ArrayLike,
    queries: ArrayLike,
    kernel: Kernel,
    family: Family,
    *,
    bounds: BoundsLike = None,
    seed: int = 0,
    groups: int = 1,
) -> NDArray[np.float64]:
    """Return what a family alone, without noise, makes of the KDE at each query. Not private."""
    rows = as_rows(points, None, "points")
    frame = make_frame(kernel, as_domain(bounds), rows.shape[1])
    choice = Choice.among(as_families(family), frame, Typical())
    if not choice.is_settled:
        raise ParameterError(
            "without noise there is nothing to balance: set the family's parameters, such as "
            "dpkde.Spline(degree=3, spacing=0.5) or dpkde.Fourier(frequencies=1024)"
        )
    (layout,) = choice.layouts
    pair = layout.draw(layout.family.lattice_bits[1], seed)
    totals = sketch(rows, Plan(pair, DEFAULT_CAPACITY_BITS, seed))
    sums = totals._table.astype(np.float64)
    answers = pair.respond(as_queries(queries, frame.dim), sums, groups) / max(1, totals._count)
    return np.asarray(answers + pair.constant)
