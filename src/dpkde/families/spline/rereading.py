"""A spline table read with another kernel: f stays, and g is fitted anew.

What a record adds to the table depends on where the nodes lie, not on the kernel. In the units of
another bandwidth, σ′, the same nodes are h·σ/σ′ apart, and the coefficients of every product kernel
can be fitted there: a wider one is seen on a mesh that is finer than it need be, and lets more
noise through than a table that was made for it; a narrower one is seen on a mesh that is too coarse
for it, with more bias. How much bias is foreseen as for any table (`forecast`), on data that are as
smooth as usual at the bandwidth that was published: where the data's spectrum folds over depends on
the mesh and not on the kernel that looks at it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import USUAL_SMOOTHNESS
from dpkde.families.spline.bsplines import FARTHEST
from dpkde.families.spline.forecast import MOST_NEAR, WIDEST_SPACING
from dpkde.space.frame import Frame

if TYPE_CHECKING:
    from dpkde.families.spline.family import SplineLayout

COARSEST = 0.1
"""Most of a typical answer that the fit may be off by, unless the release's own is off by more."""
LEAST_SPACING = 2.5e-4
"""Least distance between nodes, in bandwidths: queries look at thousands of them."""
_WRITTEN = (1e-3, 1e6)
"""What `Spline` takes for one; of views nothing is read from there."""


def layout(published: SplineLayout, frame: Frame) -> SplineLayout:
    """Return the layout of the same cells in another frame.

    Data are taken to be no smoother than they usually are, at either bandwidth.
    """
    ratios = _ratios(published, frame)
    grid, family = published.grid.rescaled(ratios), published.family
    assert isinstance(family.spacing, tuple)
    spacings = np.clip(np.array(family.spacing) * ratios, *_WRITTEN)
    return replace(
        published,
        family=replace(family, spacing=tuple(spacings.tolist())),
        frame=frame,
        cells=grid,
        smoothness=USUAL_SMOOTHNESS * np.minimum(ratios[grid.columns], 1.0),
    )


def strain(published: SplineLayout, frame: Frame) -> float:
    """Return the relative error of the fit over the most that is allowed; infinity off limits."""
    obstacle = published.family.obstacle(frame)
    if obstacle is not None:
        raise ParameterError(f"splines cannot be read with this kernel: {obstacle}")
    ratios = _ratios(published, frame)
    narrow = [column for column, _ in published.grid.narrow]
    if published.grid.arch and np.ptp(ratios[narrow]) > 1e-9 * ratios[narrow].max():
        raise ParameterError(
            f"columns {', '.join(map(str, narrow))} of this table share one cell for the "
            "curvature of the kernel: multiply their bandwidths by the same number"
        )
    spacings = [axis.spacing * float(ratios[axis.column]) for axis in published.grid.axes]
    reach = min(frame.kernel.shape.profile_reach(1e-8), FARTHEST)
    least = max(LEAST_SPACING, reach / MOST_NEAR)
    if any(not least <= spacing <= WIDEST_SPACING for spacing in spacings):
        return math.inf
    error = layout(published, frame).usual_error
    return error / max(COARSEST, published.usual_error)


def _ratios(published: SplineLayout, frame: Frame) -> NDArray[np.float64]:
    ratios = published.frame.kernel.bandwidth.ratios(frame.kernel.bandwidth, frame.dim)
    if ratios is None:
        raise ParameterError(
            "the axes of this table are those of the bandwidth matrix that it was made for: use a "
            "multiple of that matrix"
        )
    return ratios
