"""The frame: domain, kernel and dimension together, in which points become coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError, SchemaError
from dpkde.kernels import Kernel, Points, ProductKernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.numerics.numbers import LARGEST
from dpkde.space.domain import Box, Domain, Mask, Sets, Sphere, Unbounded

NO_NUMBERS = (
    "bandwidth={!r} is found by dpkde.publish, which counts the points first and pays for a look "
    "at them: here numbers are needed, such as those of a release, release.kernel"
)


@dataclass(frozen=True)
class Frame:
    """The public frame in which points are measured: domain, kernel and dimension.

    `place` is for private records, `locate` for queries; both return coordinates relative to the
    domain's origin in units of the bandwidth, and both work row by row.
    """

    kernel: Kernel
    domain: Domain
    dim: int

    def __post_init__(self) -> None:
        """Refuse what would overflow: coordinates are squared, and summed over axes."""
        if (rule := self.kernel.bandwidth.rule) is not None:
            raise ParameterError(NO_NUMBERS.format(rule))
        reach = self.reach()
        if reach is not None and not reach <= LARGEST:
            raise ParameterError(
                "the bounds are more than 1e150 bandwidths wide, and numbers so large overflow "
                "when they are squared: use narrower bounds or a larger bandwidth"
            )

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        domain: Domain,
        dim: int | None = None,
        fallback_dim: int | None = None,
    ) -> Frame:
        """Return the frame of a kernel, a domain and points that agree on home and columns.

        A kernel of directions or of sets brings its domain with it, where none is declared.
        """
        counts = {"the table": dim, "the bounds": domain.dim, "the bandwidth": kernel.dim}
        if all(count is None for count in counts.values()):
            counts["the table"] = fallback_dim
        known = {source: count for source, count in counts.items() if count is not None}
        if not known:
            ways = {
                "space": "bounds, a bandwidth for each column",
                "sphere": "points as an array",
                "sets": "bounds=dpkde.Sets(universe)",
            }
            raise ParameterError(
                f"the number of columns is open: give {ways[kernel.home]}, or dim= to plan"
            )
        if len(set(known.values())) > 1:
            numbers = ", ".join(f"{count} in {source}" for source, count in known.items())
            others = max((known[k] for k in known if k != "the table"), default=0)
            choose = "; columns= chooses among those that have names"
            raise SchemaError(
                f"the number of columns does not agree: {numbers}"
                f"{choose if known.get('the table', 0) > others else ''}"
            )
        count = next(iter(known.values()))
        if count < 1:
            raise SchemaError("points need at least one column")
        place = kernel.home
        if place != "space" and isinstance(domain, Unbounded):
            domain = Sphere() if place == "sphere" else Sets(count)
        if place != "space" and domain.kind != place:
            fix = "Sphere()" if place == "sphere" else "Sets(universe)"
            raise ParameterError(
                f"the {kernel.name} kernel lives on {'the ' if place == 'sphere' else ''}{place}, "
                f"not in a {domain.kind}: leave bounds out, or in Python use bounds={fix}"
            )
        return cls(kernel, domain, count)

    def place(self, rows: NDArray[Any]) -> tuple[Points, Mask]:
        """Return the coordinates of private records, and which of them contribute.

        Rows are real numbers of any type. Boxes go through a compiled loop.
        """
        if rows.dtype not in (np.float32, np.float64):
            with np.errstate(all="ignore"):
                rows = rows.astype(np.float64)
        if self._walls is None:
            return self.place_plainly(rows)
        from dpkde.space.placing import place

        rows = np.ascontiguousarray(rows)
        coordinates = np.empty(rows.shape, dtype=np.float64)
        counts = np.empty(len(rows), dtype=np.bool_)
        place(rows, *self._walls, coordinates, counts)
        return coordinates, counts

    @cached_property
    def _walls(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], bool] | None:
        """What the compiled `place` takes behind the rows: for a box and no matrix."""
        if not isinstance(self.domain, Box) or self.kernel.bandwidth.is_matrix:
            return None
        low, high = self.domain.corners
        inverse = self.kernel.bandwidth.whiten(np.ones((1, self.dim)))[0]
        return low, high, self.domain.origin(self.dim), inverse, self.domain.outside == "drop"

    def place_plainly(self, rows: NDArray[Any]) -> tuple[Points, Mask]:
        """Return the same as `place`, by NumPy, for any domain and bandwidth."""
        offsets, counts = self.domain.place(rows.astype(np.float64, copy=False))
        with np.errstate(all="ignore"):
            coordinates = self.kernel.bandwidth.whiten(offsets)
            # A matrix may turn huge numbers into infinity less infinity.
            strange = np.isnan(coordinates).any(axis=1)
            if strange.any():
                coordinates[strange] = 0.0
                counts &= ~strange
        return coordinates, counts

    def locate(self, queries: Points) -> Points:
        """Return the coordinates of queries, wherever they lie.

        Kernels of directions and of sets see queries as they see records. Beyond `LARGEST`
        bandwidths no kernel sees a record, and squares would overflow: queries stop there.
        """
        with np.errstate(all="ignore"):
            if self.kernel.home != "space":
                queries = self.domain._settle(queries)[0]
            located = self.kernel.bandwidth.whiten(queries - self.domain.origin(self.dim))
            return np.clip(located, -LARGEST, LARGEST, out=located)

    def point_at(self, coordinates: Points) -> Points:
        """Return the points with these coordinates: what `locate` takes back."""
        return np.asarray(
            self.domain.origin(self.dim) + self.kernel.bandwidth.unwhiten(coordinates)
        )

    def beyond(self, coordinates: Points) -> NDArray[np.float64]:
        """Return how far coordinates lie outside the domain, by the axis where that is most."""
        points = self.point_at(coordinates)
        apart = self.kernel.bandwidth.whiten(self.domain.nearest(points) - points)
        return np.asarray(np.abs(apart).max(axis=1, initial=0.0))

    def reach(self) -> float | None:
        """Return how far records lie from the origin at most, in bandwidth units.

        By the widths of the columns, each in its own unit, or by the smallest bandwidth.
        """
        return self._reach

    @cached_property
    def _reach(self) -> float | None:
        reach, bandwidth = self.domain.reach(self.dim), self.kernel.bandwidth
        if reach is None or bandwidth.is_scalar:
            return None if reach is None else reach / bandwidth.smallest()
        reach, halves = reach / bandwidth.smallest(), self.halves()
        if halves is None:
            return reach
        largest = float(halves.max(initial=0.0))  # taken out, so that squares do not overflow
        if not 0 < largest < math.inf:
            return reach
        return min(reach, largest * float(np.sqrt(np.square(halves / largest).sum())))

    def halves(self) -> NDArray[np.float64] | None:
        """Return h with |coordinate_k| ≤ h_k for every record, in bandwidth units.

        None where the domain has no bounds. A matrix bandwidth turns the box: the new one holds
        it, by the triangle inequality. Rounding may put a coordinate an ulp outside.
        """
        return self._halves

    @cached_property
    def _halves(self) -> NDArray[np.float64] | None:
        halves = self.domain.halves(self.dim)
        if halves is None:
            return None
        with np.errstate(all="ignore"):
            spans = self.kernel.bandwidth.spans(halves)
        spans.setflags(write=False)
        return spans

    @cached_property
    def covered(self) -> NDArray[np.float64] | None:
        """I/(w + I) for axes of w bandwidths, I^d the integral of the kernel; None if unknown.

        That is about the part of an axis that a kernel covers.
        """
        kernel, halves = self.kernel, self.halves()
        if kernel.home != "space" or halves is None:
            return None
        with np.errstate(all="ignore"):  # bounds may be as far apart as floats go
            try:
                if kernel.is_product:
                    whole = profile_integral(kernel.shape)
                else:
                    unit = kernel.integral(self.dim) / kernel.bandwidth.determinant(self.dim)
                    whole = float(unit ** (1 / self.dim))
            except (ArithmeticError, ParameterError):
                return None
            shares: NDArray[np.float64] = whole / (2 * halves + whole)
        if not np.isfinite(shares).all():
            return None
        shares.setflags(write=False)
        return shares


def check_kernel(kernel: Any) -> None:
    """Refuse what is no kernel."""
    if not isinstance(kernel, Kernel):
        raise ParameterError(
            f"kernel must be a dpkde.Kernel, such as dpkde.Gaussian(bandwidth=0.1), got {kernel!r}"
        )


@lru_cache(maxsize=64)
def profile_integral(kernel: ProductKernel) -> float:
    """Return ∫ k(t) dt of a profile."""
    t, mass = gauss_points(graded(min(kernel.profile_reach(1e-8), 1e4)))
    return 2 * float(kernel.profile(t) @ mass)
