"""Records that are heaped at a face of the box: those that were clipped lie there, at one place.

The kernel carries part of each record across the face: T(u) = ∫_u^∞ k/∫k of one that lies u
bandwidths inside. Let H be the share beyond the face. Of a heap of share p it is p·T(0). Of others
it follows from how dense they are inside: in slabs from 2 to 3 and from 3 to 4 bandwidths, of
shares G and G′, where their density is taken to go like e^{−bu}, with b = ln G/G′ from 0 (as dense
everywhere) to 1 (what falls faster is a heap to this kernel). So

    p = (H − r·G)/(T(0) − r·(T(2) − T(3))),    r = ∫₀^w e^{−bu} T(u) du / ∫₂³ e^{−bu} du.

In bounds of less than 6 bandwidths there is room for one slab, from 1.5 bandwidths on, and b is 0.
In those of less than 3.5 there is none: the shares H and H′ beyond both faces are compared, and
only heaps of nearly all records are told: p ≥ (H − H′)/(T(0) − T(w)).

All of it is read off what was published, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.space.domain import Box
from dpkde.space.frame import Frame, profile_integral

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

HEAPED, ALL_HEAPED = 0.1, 0.9
"""From which share on records at a face are told; and in bounds of few bandwidths."""
LONG = 0.05
"""Of a kernel with more than this beyond three bandwidths, slabs hear of places far away."""
LEVEL = 1 - 1e-7
"""Of the intervals that decide it."""
SHOWN, CLEAR = 0.01, 5.0
"""From which share on pictures show it, and how many standard errors of it that has to be."""


def tells_heaps(release: Answering) -> bool:
    """Return whether a release can tell of heaps: it has bounds that clip, and knows its slabs."""
    frame = release.plan.frame
    return (
        isinstance(frame.domain, Box)
        and frame.domain.outside == "clip"
        and frame.kernel.is_product
        and not frame.kernel.bandwidth.is_matrix
        and release.plan.pair.knows_the_whole
        and release.rate >= 1
        and Profile(frame.kernel.shape, math.inf).beyond(3.0) <= LONG
    )


def heap(release: Answering, axis: int, side: int) -> float | None:
    """Return about which share of the records lies at a face of the box; None where few do.

    Decided by the least p that intervals leave which hold for any records
    (`Release.mass_interval`).
    """
    profile = _profile(release, axis)
    slabs, width = profile.slabs, profile.width
    if slabs is None and 0.5 - profile.beyond(width) <= 1e-3:
        return None  # too narrow to tell one face from the other
    least = ALL_HEAPED if slabs is None else HEAPED
    ends = [(-math.inf, 0.0), *([(width, math.inf)] if slabs is None else slabs)]
    boxes = np.array([_slab(release.plan.frame, axis, side, *pair) for pair in ends])
    share = profile.heaped(*release.mass(boxes, clip=False, assisted=False).tolist())
    if not share >= least:  # what follows takes longer
        return None
    low, high = release.mass_interval(boxes, LEVEL, assisted=False)
    if profile.heaped(float(low[0]), float(high[1]), *low[2:].tolist()) < least:
        return None
    return float(min(share, 1.0))


class Face(NamedTuple):
    """A face of the box: a column, which of its two bounds (0: the lower one), and its place."""

    column: int
    side: int
    place: float


def shown_heaps(release: Answering, columns: Sequence[int] | None = None) -> list[Face]:
    """Return the faces at which a heap shows, of all columns or of some."""
    if not tells_heaps(release):
        return []
    domain = release.domain
    assert isinstance(domain, Box)  # it tells heaps
    return [
        Face(column, side, float(bounds[column]))
        for column in (range(release.dim) if columns is None else columns)
        for side, bounds in enumerate((domain.low, domain.high))
        if heap_shows(release, column, side)
    ]


def heap_shows(release: Answering, axis: int, side: int) -> bool:
    """Return whether what is drawn has a heap at a face, which looks like a mode in a picture.

    By the noise of typical data, and for less than `heap`: a mark beside a picture is no alarm.
    """
    profile = _profile(release, axis)
    if profile.slabs is None:
        return False
    ends = [(-math.inf, 0.0), *profile.slabs]
    boxes = np.array([_slab(release.plan.frame, axis, side, *pair) for pair in ends])
    shares = release.mass(boxes, clip=False, assisted=False).tolist()
    share = profile.heaped(*shares)
    if not share >= SHOWN:
        return False
    errors = release.mass_standard_error(boxes, assisted=False).tolist()
    return share >= CLEAR * profile.error(*errors[:2], *shares[1:])


def _profile(release: Answering, axis: int) -> Profile:
    frame = release.plan.frame
    halves = frame.halves()
    assert halves is not None  # a box has bounds
    return Profile(frame.kernel.shape, float(2 * halves[axis]))


@dataclass(frozen=True)
class Profile:
    """A kernel along one axis of some width, in bandwidths: what it carries across a face."""

    kernel: ProductKernel
    width: float

    @property
    def slabs(self) -> list[tuple[float, float]] | None:
        """Slabs inside a face that tell how dense records are; None where there is no room."""
        if self.width >= 6.0:
            return [(2.0, 3.0), (3.0, 4.0)]
        return [(1.5, min(3.0, self.width - 1.5))] if self.width >= 3.5 else None

    def heaped(self, over: float, inside: float, further: float | None = None) -> float:
        """Return p, from the share beyond the face, and those of the slabs (or the other face)."""
        if self.slabs is None:
            return (over - inside) / (0.5 - self.beyond(self.width))
        r, part = self._of_others(inside, further)
        return (over - r * max(inside, 0.0)) / part

    def error(
        self, over_error: float, inside_error: float, inside: float, further: float | None = None
    ) -> float:
        """Return at most what the standard error of p is, by those of H and G; r is taken as is."""
        r, part = self._of_others(inside, further)
        return (over_error + r * inside_error) / part

    def _of_others(self, inside: float, further: float | None) -> tuple[float, float]:
        """Return r, and by which part of p the rest of H is divided, where there is a slab."""
        assert self.slabs is not None
        start, stop = self.slabs[0]
        fall = 0.0
        if further is not None and inside > 0:
            fall = 1.0 if further <= 0 else min(max(math.log(inside / further), 0.0), 1.0)
        even = stop - start
        if fall > 0:
            even = (math.exp(-fall * start) - math.exp(-fall * stop)) / fall
        r = self.carried(fall) / even
        return r, 0.5 - r * (self.beyond(start) - self.beyond(stop))

    def beyond(self, distance: float) -> float:
        """Return T(u): the share of the kernel that lies further than u on one side."""
        t, mass = gauss_points(distance + graded(self._reach))
        return float(self.kernel.profile(t) @ mass) / profile_integral(self.kernel)

    def carried(self, fall: float = 0.0) -> float:
        """Return ∫₀^w e^{−bu} T(u) du = ∫₀^∞ k(z)·(1 − e^{−b·min(z, w)})/b dz/∫k."""
        t, mass = gauss_points(graded(self._reach))
        z = np.minimum(t, self.width)
        lengths = z if fall == 0 else -np.expm1(-fall * z) / fall
        whole = profile_integral(self.kernel)
        return float((self.kernel.profile(t) * lengths) @ mass) / whole

    @property
    def _reach(self) -> float:
        return min(self.kernel.profile_reach(1e-8), 1e4)


def _slab(frame: Frame, axis: int, side: int, start: float, stop: float) -> Floats:
    """Return the box between two distances from a face, in bandwidths, inwards from it."""
    assert isinstance(frame.domain, Box)
    box = np.tile([-math.inf, math.inf], (frame.dim, 1))
    unit = float(frame.kernel.bandwidth.unwhiten(np.ones((1, frame.dim)))[0, axis])
    if side == 0:
        face = frame.domain.low[axis]
        box[axis] = (face + start * unit, face + stop * unit)
    else:
        face = frame.domain.high[axis]
        box[axis] = (face - stop * unit, face - start * unit)
    return box
