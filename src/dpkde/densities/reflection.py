"""Densities within bounds: what lies beyond an edge is folded back over it, as by a mirror.

Folding moves every point of space into the box and loses none, so a folded density has its whole
mass there, and near an edge it does not fall off as smoothed densities do. On an axis [−h, h] the
images of y are ``(−1)^m·y + 2hm``, and the folded density at y is the sum over them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Points, ProductKernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.space.domain import Box
from dpkde.space.frame import Frame

Floats = NDArray[np.float64]

SUPPORTS = ("space", "bounds")
_FADED = 1e-12
_MOST_IMAGES = 64
"""To each side; what is left of a profile with slow tails is spread evenly over the axis."""


def check_support(support: str, frame: Frame) -> bool:
    """Tell whether a density is asked for within the bounds; refuse what is neither."""
    if support not in SUPPORTS:
        raise ParameterError(f"support must be 'space' or 'bounds', got {support!r}")
    if support == "bounds" and not isinstance(frame.domain, Box):
        raise ParameterError(
            "support='bounds' folds a density at the faces of a box, and the bounds of this "
            f"release are {_article(frame.domain.kind)}: leave support out for all of space"
        )
    return support == "bounds"


def _article(kind: str) -> str:
    return "not set" if kind == "unbounded" else f"a {kind}"


def folded(points: Points, frame: Frame) -> Points:
    """Return points of space, each folded into the box."""
    assert isinstance(frame.domain, Box)
    low, high = frame.domain.corners
    width = high - low
    # A triangle wave of period two widths: up along the box, and down again.
    phase = np.mod(points - low, 2 * width)
    return np.asarray(np.clip(low + np.minimum(phase, 2 * width - phase), low, high))


def images(y: Floats, half: float, kernel: ProductKernel) -> tuple[list[Floats], float]:
    """Return the images of y ∈ [−half, half] that are seen, and the integral of those left out.

    The latter over the width, so that it may be added to a sum of profiles.
    """
    needed = math.ceil(kernel.profile_reach(_FADED) / (2 * half)) + 1
    count = min(needed, _MOST_IMAGES)
    rest = 0.0 if count == needed else _tail(kernel, (2 * count + 1) * half) / (2 * half)
    return [(y if m % 2 == 0 else -y) + 2 * half * m for m in range(-count, count + 1)], rest


@lru_cache(maxsize=256)
def _tail(kernel: ProductKernel, beyond: float) -> float:
    """Return ∫ profile(t) dt over |t| > beyond."""
    t, mass = gauss_points(graded(beyond))
    within = 2 * float((kernel.profile(t) * mass).sum())
    return max(float(kernel.profile_transform(np.zeros(1))[0]) - within, 0.0)
