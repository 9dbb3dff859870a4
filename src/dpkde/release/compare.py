"""Two releases compared: distances without the bias of noise, a test, and a map of differences.

>>> import numpy as np
>>> import dpkde
>>> points = np.random.default_rng(0).normal(size=(2, 5000, 1))
>>> settings = {"kernel": dpkde.Gaussian(0.5), "bounds": [(-4, 4)], "epsilon": 1}
>>> may, june = (dpkde.publish(month, family=dpkde.Spline(3, 0.5), **settings) for month in points)
>>> result = dpkde.distance(may, june)
>>> bool(result.l2.standard_error > 0)
True

Everything is computed from what is public already, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.comparison import Comparison, Kind
from dpkde.kernels import Kernel
from dpkde.numerics.numbers import is_real
from dpkde.release.answering import Answering
from dpkde.release.differences import (
    NO_VARIATION,
    Difference,
    Meaning,
    TotalVariation,
    by_quadrature,
    difference,
    is_one,
    total_variation,
    whole_of,
)
from dpkde.release.quadratic import Estimate, Sameness, Side, estimate, sameness
from dpkde.release.region import Region, region_of
from dpkde.tables.arrays import QueriesLike

Floats = NDArray[np.float64]

_ALIKE = (
    "publish both by one plan (family 'spline', or 'fourier' with the same seed), so that their "
    "tables have the same cells"
)
_KINDS: tuple[Kind, Kind] = ("l2", "mmd")


@dataclass(frozen=True, eq=False)
class Distance:
    """How far two releases are apart. `dpkde.distance` makes it.

    Attributes
    ----------
    l2
        The L2 distance of the smoothed densities, (∫(f_a − f_b)²)^{1/2} with f = kde/∫k. The bias
        that noise gives to the square is taken away, exactly but for a noisy count, which is
        followed to second order; its standard error is exact in the noise of the tables, given
        what they show of the difference, and first order in that of the counts.
    mmd
        The maximum mean discrepancy of the records under the kernel, likewise.
    total_variation
        ½∫|f_a − f_b| on a grid, which noise makes too large; see `TotalVariation`.
    notes
        What could not be had, and what would help; what is None is told here.
    """

    a: Answering = field(repr=False)
    b: Answering = field(repr=False)
    l2: Estimate | None
    mmd: Estimate | None
    total_variation: TotalVariation | None
    notes: tuple[str, ...] = ()

    def same(self, level: float = 0.05) -> Sameness:
        """Return a test of whether both are samples of one population: true where they may be.

        Records count as independent draws. The squared distance (`l2` for `Spline`, `mmd` for
        `Fourier`) is compared with a chi-square law whose mean and variance are those that noise,
        counts and sampling give it, estimated from the releases. At a level of 5%, 4 to 6% of
        pairs from one population were told apart in simulations (`Spline`); fewer for `Fourier`,
        which bounds what it cannot know.
        """
        if not is_real(level) or not 0 < level < 1:
            raise ParameterError(f"level must be between 0 and 1, such as 0.05, got {level!r}")
        pair = self.a.plan.pair
        form = pair.comparison(self.b.plan.pair, "mmd" if pair.draws else "l2")
        if form is None or form.scatter is None:
            raise ParameterError(
                "whether both are of one population is told from tables of the same cells, which "
                f"these are not: {_ALIKE}"
            )
        return sameness(form, Side.of(self.a), Side.of(self.b), float(level))

    def difference(
        self,
        where: QueriesLike | int | Sequence[int],
        level: float = 0.05,
        *,
        of: Meaning = "records",
    ) -> Difference:
        """Return the difference of densities, first less second, and where it exceeds noise.

        Parameters
        ----------
        where
            A shape, as for `Release.grid`: a number of cells for all columns, or a tuple or list
            with one for each, for the centers of a grid over the bounds of both. Or points: an
            array of shape (n, dim), a list of points, a data frame; one point is ``[[3, 4]]``, and
            values of one column are an array.
        level
            Of the points that are marked, this share at most is expected to be there by chance
            (false discovery rate, Benjamini and Hochberg).
        of
            ``"records"``: what exceeds the noise; ``"populations"``: what exceeds noise and
            sampling, at most (k² ≤ k), where records are independent draws.
        """
        return difference(self.a, self.b, where, level, of)

    def __str__(self) -> str:
        rows = [
            f"L2 distance of densities  {_told(self.l2)}",
            f"maximum mean discrepancy  {_told(self.mmd)}",
            f"total variation           {_told(self.total_variation)}",
        ]
        return "\n".join([*rows, *(f"note: {note}" for note in self.notes)])


def _told(value: object) -> str:
    return "–" if value is None else str(value)


def distance(a: Answering, b: Answering) -> Distance:
    """Return how far two releases are apart: L2, MMD and total variation, with standard errors.

    Spline tables with one another, and Fourier tables of the same frequencies, are compared in
    closed form; splines and fast Gauss transforms on up to three columns by quadrature over a grid,
    without the MMD. A distance that cannot be had is None, and `notes` say why. Kernels and columns
    have to agree; bandwidths may differ, but then so do the densities of the very same records. A
    release is at distance zero from itself; two readings of one table (a view and its release, say)
    have the same noise in both, whose part is not known, and are refused.
    Costs O(cells·log cells) for splines, O(cells) for Fourier, and the answers of a grid.
    """
    check_comparable(a, b)
    notes: list[str] = []
    if is_one(a, b):
        notes.append("this is one release twice: there is no difference, and no noise in it")
    elif a.count == b.count and np.array_equal(a.table, b.table):
        raise ParameterError(
            "these are two readings of one release, whose noise is the same in both: what it adds "
            "to their distance is not known. Compare the readings of two releases"
        )
    sides = Side.of(a), Side.of(b)
    region = _region(a, b)
    l2, mmd = (_distance(a, b, sides, kind, region, notes) for kind in _KINDS)
    if l2 is None and mmd is None:
        raise ParameterError(f"these releases cannot be compared: {'; '.join(notes)}")
    variation = None
    if isinstance(region, Region) and l2 is not None:
        form = a.plan.pair.comparison(b.plan.pair, "l2")
        variation = NO_VARIATION
        if not is_one(a, b):
            variation = total_variation(a, b, region, _likeness(form, sides))
    elif isinstance(region, str):
        notes.append(f"no total variation: {region}")
    form = a.plan.pair.comparison(b.plan.pair, "mmd")
    if min(a.rate, b.rate) < 1 and (form is None or form.scatter is None) and not is_one(a, b):
        notes.append("which records were sampled into the tables counts as a difference")
    if a.kernel != b.kernel:
        notes.append(
            f"densities are smoothed by {a.kernel!r} and by {b.kernel!r}: the same records would "
            "be some way apart"
        )
    return Distance(a, b, l2, mmd, variation, tuple(notes))


def _region(a: Answering, b: Answering) -> Region | str:
    """Return a grid for integrals, or why there is none."""
    if a.plan.pair.draws or b.plan.pair.draws:
        return "what a family draws at random would look like a difference of densities"
    return region_of(a, b)


def _distance(
    a: Answering,
    b: Answering,
    sides: tuple[Side, Side],
    kind: Kind,
    region: Region | str,
    notes: list[str],
) -> Estimate | None:
    """Return a distance in closed form, or by quadrature; None with a note."""
    if kind == "l2":
        try:
            _ = whole_of(a), whole_of(b)
        except ParameterError as error:
            notes.append(f"no L2 distance: {error}")
            return None
    form = a.plan.pair.comparison(b.plan.pair, kind)
    if form is not None:
        result = Estimate(0.0, 0.0) if is_one(a, b) else estimate(form, *sides)
        if math.isfinite(result.squared) and math.isfinite(result.squared_standard_error):
            return result
        notes.append(f"no {kind.upper()}: numbers overflow on {a.dim} columns")
        return None
    if kind == "mmd":
        notes.append(f"no MMD: {_ALIKE}")
        return None
    if isinstance(region, str):
        notes.append(f"no L2 distance: {_ALIKE}")
        return None
    if is_one(a, b):
        return Estimate(0.0, 0.0)
    notes.append("L2 distance by quadrature: its standard error is itself known to 15% or so")
    return by_quadrature(a, b, region)


def _likeness(form: Comparison | None, sides: tuple[Side, Side]) -> float:
    """Return how alike the noise is over the region: the mean of squared correlations, about.

    ΣΣ cov² / (Σ var)² for the noise of the difference, from the L2 form; 1 where it is not known.
    """
    if form is None:
        return 1.0
    a, b = (side.variance for side in sides)
    squares = a**2 * form.own.squares + b**2 * form.other.squares + 2 * a * b * form.cross.squares
    trace = a * form.own.trace + b * form.other.trace
    return min(squares / trace**2, 1.0) if trace > 0 else 1.0


def check_comparable(a: Any, b: Any) -> None:
    """Refuse what cannot be compared, with what differs."""
    for release in (a, b):
        if not isinstance(release, Answering):
            raise ParameterError(
                f"two releases are compared, got {type(release).__name__}: dpkde.load(path) opens "
                "the file of one"
            )
    check_columns_agree({"the first": a, "the second": b})
    ours, theirs = (_without_bandwidth(release.kernel) for release in (a, b))
    if ours != theirs:
        raise ParameterError(
            f"the kernels differ, {a.kernel!r} and {b.kernel!r}: publish both with one kernel"
        )


def check_columns_agree(releases: dict[Any, Answering]) -> None:
    """Refuse releases of other columns than the first one's, and name them."""
    (first, one), *others = releases.items()
    for name, other in others:
        if one.dim != other.dim:
            raise ParameterError(
                f"{first} has {one.dim} column(s) and {name} has {other.dim}: both need the same"
            )
        if None not in (one.columns, other.columns) and one.columns != other.columns:
            raise ParameterError(
                f"the columns differ: {first} has {list(one.columns or ())}, {name} has "
                f"{list(other.columns or ())}"
            )


def _without_bandwidth(kernel: Kernel) -> tuple[Any, ...]:
    parameters = {key: value for key, value in kernel.to_json().items() if key != "bandwidth"}
    return kernel.name, kernel.version, kernel.home, repr(parameters)
