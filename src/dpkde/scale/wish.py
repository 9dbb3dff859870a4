"""What a caller leaves open: bounds, bandwidth, or both, to be found privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpkde.errors import ParameterError
from dpkde.kernels import PLAIN, Kernel
from dpkde.privacy.budget import Budget
from dpkde.scale.search import MOST_PAID, Search
from dpkde.space.domain import BoundsLike, Box, Domain, Unbounded, as_domain
from dpkde.space.frame import Frame, check_kernel

PRIVATE: Literal["private"] = "private"
"""Written for bounds that are to be found."""
Ranges = Sequence[tuple[float, float] | None]
"""What is public of each column: (low, high), or None where nothing is."""

_USUAL_WIDTH = 24.0
"""Bandwidths that bounds are taken to be wide, before anything is known."""


@dataclass(frozen=True)
class Wish:
    """What is to be found, and what is public.

    Attributes
    ----------
    kernel
        Its bandwidth may be a rule.
    domain
        The public one; None where bounds are to be found.
    ranges
        Of each column, where bounds are to be found or there are none; None: nothing is public.
    """

    kernel: Kernel
    domain: Domain | None
    ranges: tuple[tuple[float, float] | None, ...] | None = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        bounds: BoundsLike | Literal["private"],
        ranges: Ranges | None,
        columns: Sequence[str] | None,
    ) -> Wish | None:
        """Return what is to be found; None where kernel and bounds are given as numbers."""
        check_kernel(kernel)
        private, rule = isinstance(bounds, str) and bounds == PRIVATE, kernel.bandwidth.rule
        if not private and rule is None:
            if ranges is not None:
                raise ParameterError(
                    "ranges= goes with bounds='private' or bandwidth='auto': what is public of "
                    "bounds that are found; public bounds are bounds="
                )
            return None
        domain = None if private else as_domain(bounds, columns)  # type: ignore[arg-type]
        if ranges is not None and not isinstance(domain, Unbounded | None):
            raise ParameterError("ranges= goes with bounds='private': these bounds are public")
        if kernel.home != "space":
            raise ParameterError(
                f"the {kernel.name} kernel lives on the {kernel.home}: bounds and bandwidth are "
                "found for kernels of space, such as dpkde.Gaussian(bandwidth='auto')"
            )
        return cls(kernel, domain, None if ranges is None else _checked(ranges))

    @property
    def rule(self) -> str | None:
        """How the bandwidth is to be found; None where it is given."""
        return self.kernel.bandwidth.rule

    @property
    def is_private(self) -> bool:
        """Whether bounds are to be found."""
        return self.domain is None

    def frame(self, dim: int | None, fallback_dim: int | None = None) -> Frame:
        """Return the frame in which records are looked at: in units of the data."""
        domain = Unbounded() if self.domain is None else self.domain
        known = None if self.ranges is None else len(self.ranges)
        counts = {n for n in (dim, known, self.kernel.dim) if n is not None}
        if known is not None and len(counts) > 1:
            raise ParameterError(
                f"ranges= has {known} entries, and there are {min(counts - {known})} columns: "
                "give one (low, high) pair, or None, for each column"
            )
        frame = Frame.of(PLAIN, domain, dim or known or self.kernel.dim, fallback_dim)
        if self.rule is not None:
            try:
                self.kernel.with_bandwidth(1.0).integral(frame.dim)
            except ParameterError as error:
                raise ParameterError(
                    f"bandwidth={self.rule!r} is found for densities: {error}; give a number"
                ) from None
        return frame

    def search(self, frame: Frame) -> Search:
        """Return the search for what is open."""
        pairs = self.ranges
        halves = frame.halves()
        if halves is not None and not isinstance(self.domain, Unbounded | None):
            pairs = tuple((-half, half) for half in halves.tolist())
        return Search(pairs or (None,) * frame.dim, with_shape=self.rule == "auto")

    def told(self, dim: int | None, budget: Budget, rows: int | None) -> str:
        """Return in words what would be paid, and what is not known yet."""
        things = ["bounds"] * self.is_private + [f"bandwidth ({self.rule})"] * (
            self.rule is not None
        )
        what = " and ".join(things)
        if rows is None:
            return f"publish counts the records first, and then pays for {what} as they need"
        frame = self.frame(dim)
        looks = self.search(frame).foreseen(budget, rows)
        shares = " + ".join(f"{float(cost.share):.2g} for {name}" for name, cost in looks)
        whole = float(sum(cost.share for _, cost in looks))
        return (
            f"publish pays about {whole:.1%} of the budget for {what} ({shares}, as shares; more "
            f"where records are far from zero, {float(MOST_PAID):.0%} at most), and chooses the "
            "family after that"
        )

    def standin(self, dim: int) -> Frame:
        """Return a frame to set the count's share by: bounds of usual width."""
        kernel = self.kernel if self.rule is None else self.kernel.with_bandwidth(1.0)
        if isinstance(self.domain, Unbounded):
            return Frame.of(kernel, self.domain, dim)
        halves = np.abs(kernel.bandwidth.unwhiten(np.full((1, dim), _USUAL_WIDTH / 2)))[0]
        return Frame.of(kernel, Box([(-half, half) for half in halves.tolist()]), dim)


def _checked(ranges: Ranges) -> tuple[tuple[float, float] | None, ...]:
    """Check public ranges, as bounds are."""
    try:
        pairs = [None if pair is None else tuple(pair) for pair in ranges]
    except TypeError:
        raise ParameterError(
            "ranges must be a (low, high) pair, or None, for each column, such as "
            f"[(-180, 180), None], got {ranges!r}"
        ) from None
    if not pairs:
        raise ParameterError("ranges must have a (low, high) pair, or None, for each column")
    checked = [None if pair is None else Box([pair]) for pair in pairs]
    return tuple(None if box is None else (box.low[0], box.high[0]) for box in checked)


def rounded(value: float, digits: int = 3) -> float:
    """Return a number with few digits.

    >>> rounded(0.0123456), rounded(98765.0)
    (0.0123, 98800.0)
    """
    return float(f"{value:.{digits - 1}e}")


def outwards(
    low: float, high: float, within: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return bounds with few digits that hold these, or what of them is within a public range.

    >>> outwards(-74.0371, -73.7512)
    (-74.038, -73.751)
    """
    if within is not None and max(low, within[0]) < min(high, within[1]):
        written = outwards(low, high)
        return max(written[0], within[0]), min(written[1], within[1])
    if within is not None:
        return within
    width = high - low
    if not 0 < width < np.inf:
        return low, high
    unit = 10.0 ** np.floor(np.log10(width / 100))
    ends = (float(np.floor(low / unit) * unit), float(np.ceil(high / unit) * unit))
    written = (float(f"{ends[0]:.15g}"), float(f"{ends[1]:.15g}"))
    return written if written[0] <= low < high <= written[1] else (low, high)
