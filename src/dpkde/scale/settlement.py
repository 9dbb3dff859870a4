"""From what noisy histograms tell to bounds and a bandwidth in numbers: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import Family, Prediction
from dpkde.kernels import Kernel
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import LEAST_DENSITY, outlook
from dpkde.privacy.budget import Budget
from dpkde.release.parts import FoundScale
from dpkde.scale.bandwidths import Risk, best, scott, section, silverman
from dpkde.scale.search import Scale
from dpkde.scale.windows import SURE, Ends
from dpkde.scale.wish import Wish, outwards, rounded
from dpkde.space.domain import Box, Domain, Unbounded
from dpkde.space.frame import Frame

Floats = NDArray[np.float64]

_STEP = math.log(2.0)
"""Errors are planned for bandwidths so far apart, and between them by a line."""
_WIDEST = 24
"""Doublings that bounds are wider than a bandwidth at most: no table has more."""
_COVERED = 16
"""Bounds that no table covers are narrowed to so many doublings of the bandwidth, or less."""
_DOUBLINGS = 64
_FINE = 2.0**30
"""How far from zero bounds are that had to be narrowed, at most, in parts of their width."""


@dataclass(frozen=True)
class Settlement:
    """What is needed to settle on bounds and bandwidth.

    Attributes
    ----------
    wish
        What is open.
    families
        Those that a table may be of.
    budget
        What is left of it buys the table.
    capacity_bits
        As for `dpkde.publish`.
    rows
        The noisy count.
    """

    wish: Wish
    families: Sequence[Family]
    budget: Budget
    capacity_bits: int
    rows: float

    def found(self, scale: Scale, looked: Frame) -> tuple[Frame, float | None]:
        """Return the frame with numbers, and a typical KDE value where the spectrum tells it."""
        dim = looked.dim
        low, high = (np.array([getattr(one, end) for one in scale.ends]) for end in ("low", "high"))
        domain: Domain
        if self.wish.domain is None:
            domain = self._box(scale)
            widths = 2 * domain.halves(dim)
        else:
            domain = self.wish.domain
            halves = domain.halves(dim)
            bounded = halves is not None and not isinstance(domain, Unbounded)
            widths = 2 * halves if bounded and halves is not None else high - low
        kernel, density = self.wish.kernel, None
        if self.wish.rule is not None:
            bandwidths = np.maximum(self._bandwidths(scale, widths, domain), widths / 2.0**_WIDEST)
            values = self._fitting(bandwidths, domain)
            kernel = kernel.with_bandwidth(values)
            if self.wish.rule == "auto":
                unit = self._risk(scale, widths, domain)
                density = min(max(unit.density(np.array(values)), LEAST_DENSITY), 1.0)
        return Frame.of(kernel, domain, dim), density

    def covered(self, scale: Scale) -> Scale:
        """Return what was found, with bounds that a table of the kernel can cover.

        Where the bandwidth is a number, no table may fit so wide bounds. The looks are paid for,
        and a refusal would leave nothing: so bounds are narrowed around their middles, and promise
        nothing of what they leave out.
        """
        kernel = self.wish.kernel
        if self.wish.rule is not None or not self.wish.is_private:
            return scale
        if self._fits(kernel, self._box(scale)):
            return scale
        reach = kernel.bandwidth.spans
        units = [1 / float(reach(row).max()) for row in np.eye(len(scale.ends))]
        narrowed = scale
        for doublings in range(_COVERED, -1, -1):
            most = [2.0**doublings * unit for unit in units]
            ends = [_narrowed(*each) for each in zip(scale.ends, most, strict=True)]
            narrowed = scale._replace(ends=tuple(ends))
            if self._fits(kernel, self._box(narrowed)):
                break
        return narrowed

    def _box(self, scale: Scale) -> Box:
        """Return the bounds that were found, with few digits, within public ranges."""
        ranges = self.wish.ranges or (None,) * len(scale.ends)
        pairs = zip(scale.ends, ranges, strict=True)
        return Box([outwards(one.low, one.high, within) for one, within in pairs])

    def _fitting(self, bandwidths: Floats, domain: Domain) -> list[float]:
        """Return these bandwidths with few digits, or multiples with which a table fits."""
        values = [rounded(value) for value in bandwidths.tolist()]
        for _ in range(_DOUBLINGS):
            if self._fits(self.wish.kernel.with_bandwidth(values), domain):
                break
            values = [rounded(2 * value) for value in values]
        return values

    def _fits(self, kernel: Kernel, domain: Domain) -> bool:
        """Tell whether some table of the kernel covers such bounds."""
        try:
            self._planned(Frame.of(kernel, domain))
        except ParameterError:
            return False
        return True

    def _planned(self, frame: Frame) -> Prediction:
        """Return what is to be expected of the table that would be taken; an error if none fits."""
        view = outlook(self.budget, frame, self.rows, None, self.capacity_bits)
        layout = Choice.among(self.families, frame, Typical()).best(view)
        return layout.predict(view)

    def part(self, scale: Scale) -> FoundScale:
        """Return what a file says of it."""
        if not self.wish.is_private:
            return FoundScale(self.wish.rule, None, None)
        left_out = max(one.left_out for one in scale.ends)
        return FoundScale(self.wish.rule, min(math.ceil(left_out * 1000) / 1000, 1.0), SURE)

    def _bandwidths(self, scale: Scale, widths: Floats, domain: Domain) -> Floats:
        """Return one bandwidth per column, by the rule."""
        if self.wish.rule == "auto":
            return best(self._risk(scale, widths, domain), scale.stds, scale.finest)
        rule = scott if self.wish.rule == "scott" else silverman
        return section(self.wish.kernel.with_bandwidth(1.0)).from_std(rule(self.rows, scale.stds))

    def _risk(self, scale: Scale, widths: Floats, domain: Domain) -> Risk:
        """Return the risk of a release, by bandwidth."""
        dim, base = len(widths), np.log(scale.stds)

        @cache
        def planned(step: int) -> tuple[float, float]:
            bandwidths = np.exp(base + step * _STEP)
            try:
                frame = Frame.of(self.wish.kernel.with_bandwidth(bandwidths.tolist()), domain, dim)
                told = self._planned(frame)
            except ParameterError:  # no table of so narrow a kernel fits
                return math.inf, math.inf
            return told.noise, told.approximation

        def errors(bandwidths: Floats) -> tuple[float, float]:
            at = float((np.log(bandwidths) - base).mean()) / _STEP
            step = math.floor(at)
            (noise, own), (more_noise, more_own) = planned(step), planned(step + 1)
            share = at - step
            return (1 - share) * noise + share * more_noise, (1 - share) * own + share * more_own

        unit = section(self.wish.kernel.with_bandwidth(1.0))
        return Risk(unit, scale.spectrum, self.rows, widths, errors)


def _narrowed(found: Ends, most: float) -> Ends:
    """Return bounds that are no wider than this."""
    if found.high / 2 - found.low / 2 <= most / 2:
        return found
    far = _FINE * most  # further out, floats would be as far apart as the bounds
    middle = min(max(found.low / 2 + found.high / 2, -far), far)
    return Ends(middle - most / 2, middle + most / 2, 1.0)
