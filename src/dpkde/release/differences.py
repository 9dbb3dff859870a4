"""Where two densities differ: point by point with noise, and as total variation over a grid.

Answers here are plain (not assisted, not clipped), so that their noise has mean zero and a known
spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.release import answers
from dpkde.release.quadratic import Estimate
from dpkde.release.region import Region, bounds_of
from dpkde.space.queries import places_of

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Meaning = Literal["records", "populations"]

_PROBES = 32
_ROWS = 256
"""Queries whose weights are in memory at a time."""
_BUMP = 0.5
_MOST_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two densities, the first less the second, at points or over a grid.

    Attributes
    ----------
    points
        Where, shape (n, dim).
    values
        f_a − f_b, in the shape of the grid or (n,): positive where the first release of
        ``distance(a, b)`` is denser.
    standard_error
        What noise (and, of populations, sampling) adds.
    p_values
        How probable so large a difference is without any, at each point on its own.
    exceeds
        Where the difference is more than chance: of these points a share of `level` at most is
        expected to be wrong (Benjamini and Hochberg, for noise that is alike at neighbours).
    level
        As asked for.
    axes
        Of a grid, the centers along each column, as in `Map`; None at points.
    columns
        Of a grid, the names of the columns; x1, x2, … where the releases have none. None at points.
    """

    points: Points
    values: Floats
    standard_error: Floats
    p_values: Floats
    exceeds: Mask
    level: float
    axes: tuple[Floats, ...] | None = None
    columns: tuple[str, ...] | None = None

    def __str__(self) -> str:
        marked = int(self.exceeds.sum())
        return f"{marked} of {self.exceeds.size} points exceed chance (at {self.level:g})"


@dataclass(frozen=True)
class TotalVariation:
    """½∫|f_a − f_b| from noisy densities.

    Attributes
    ----------
    raw
        The integral as it is, which noise makes too large.
    noise
        What it would be, on average, were the densities the same.
    value
        Corrected point by point: |x| − cσ·e^{−2x²/σ²}, whose mean is 0 where there is no difference
        and which is |x| where that is well above the noise; between, at a standard error or two, it
        is too small by up to 0.4 of one. It lies from `lower` to `upper`.
    lower, upper
        By the triangle inequality, raw ± ½∫|noise|, the latter at most its mean and two standard
        deviations. They are wide, and hold whatever the difference is.
    """

    raw: float
    noise: float
    value: float
    lower: float
    upper: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} (from {self.lower:.3g} to {self.upper:.3g})"


NO_VARIATION = TotalVariation(0.0, 0.0, 0.0, 0.0, 0.0)
"""That of a release and itself."""


def is_one(a: Answering, b: Answering) -> bool:
    """Return whether both are one release, read in one way: whatever its noise, it cancels."""
    return a is b or a == b


def whole_of(release: Answering) -> float:
    """Return ∫k, by which a KDE value is divided; ParameterError where there is no such number."""
    try:
        whole = release.kernel.integral(release.dim)
    except OverflowError:
        whole = math.inf
    if not 0 < whole < math.inf:
        raise ParameterError(
            f"the integral of the kernel over {release.dim} columns is beyond what numbers hold, "
            "and so are densities"
        )
    return whole


def densities(release: Answering, points: Points) -> tuple[Floats, Floats]:
    """Return plain densities kde/∫k, and what the noise adds to them."""
    whole = whole_of(release)
    values = release.kde(points, clip=False, assisted=False)
    return values / whole, release.standard_error(points, assisted=False) / whole


def difference(a: Answering, b: Answering, where: Any, level: float, of: Meaning) -> Difference:
    """Return the difference at points or over a grid; see `Distance.difference`."""
    if not is_real(level) or not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, such as 0.05, got {level!r}")
    if of not in ("records", "populations"):
        raise ParameterError(f"of must be 'records' or 'populations', got {of!r}")
    region = _grid(a, b, where)
    points = places_of(where, a.plan.frame, a.columns) if region is None else region.points
    shape = (len(points),) if region is None else region.shape
    (first, noise), (second, other) = densities(a, points), densities(b, points)
    variances = noise**2 + other**2
    for release, values in ((a, first), (b, second)):
        if release.plan.pair.draws:
            own = release.sampling_error(points, assisted=False)
            variances = variances + (own / whole_of(release)) ** 2
        if of == "populations":
            variances = variances + _sampled(release, values)
    values = first - second
    cumulants = np.asarray(sum(_fourth(release, points) for release in (a, b)))
    if is_one(a, b):
        variances, cumulants = 0 * values, 0 * values
    p_values = _tails(values, variances, cumulants)
    names = a.columns or b.columns or tuple(f"x{k + 1}" for k in range(a.dim))
    return Difference(
        points,
        values.reshape(shape),
        np.sqrt(variances).reshape(shape),
        p_values.reshape(shape),
        discoveries(p_values, level).reshape(shape),
        float(level),
        None if region is None else tuple(region.axes),
        None if region is None else names,
    )


def _grid(a: Answering, b: Answering, where: Any) -> Region | None:
    """Return the grid that a shape stands for; None where points were given.

    Numbers in a list or a tuple are a shape, whatever they are: [80, 40] and [80.0, 40.0] must not
    be different things.
    """
    counts = (where,) * a.dim if is_whole(where) else where
    if not isinstance(counts, (list, tuple)) or not any(is_real(count) for count in counts):
        return None
    whole = len(counts) == a.dim and all(is_whole(count) and count >= 1 for count in counts)
    if not whole or math.prod(map(int, counts)) > _MOST_CELLS:
        raise ParameterError(
            f"a shape needs {a.dim} whole number(s), at least 1 and at most 2^24 cells together, "
            f"got {where!r}; points are an array of shape (n, {a.dim}), or a list of points"
        )
    box = bounds_of(a, b)
    if box is None:
        raise ParameterError("a grid needs bounds, which these releases lack: give points")
    return Region(*box, tuple(map(int, counts)))


def _sampled(release: Answering, values: Floats) -> Floats:
    """Return at most Var k(x, y)/n, in units of densities: k² ≤ k, so at most kde(1 − kde)/n."""
    whole = whole_of(release)
    kde = np.clip(values * whole, 0.0, 1.0)
    return np.asarray(kde * (1 - kde) / (float(release.rate) * release.count) / whole**2)


def _fourth(release: Answering, points: Points) -> Floats:
    """Return the fourth cumulant of the noise of a density at each point.

    Σg⁴(E z⁴ − 3E z²z′²) + 3(E z²z′² − V²)(Σg²)² of the table, and that of the count.
    """
    law, counting = release.law("table"), release.law("count")
    assert law is not None
    fourth, mixed = law.fourth_moments
    pair, unit = release.plan.pair, whole_of(release) * release.count
    lone, shared = fourth - 3 * mixed, 3 * (mixed - law.variance**2)

    def of_table(chunk: Points) -> Floats:
        sums = np.zeros(len(chunk))
        for start in range(0, len(chunk) if lone else 0, _ROWS):
            some = pair.weights(chunk[start : start + _ROWS]).split()
            sums[start : start + _ROWS] = some.squares**2 @ some.counts + some.powers[:, 1]
        return np.asarray(lone * sums + shared * pair.response_norm(chunk) ** 4)

    total = answers.answer(release, points, of_table) / (float(release.rate) * unit) ** 4
    if counting is not None:
        part = release.kde(points, assisted=False) - pair.constant
        own = counting.fourth_moments[0] - 3 * counting.variance**2
        total = total + own * (part / unit) ** 4
    return np.asarray(total)


def _tails(values: Floats, variances: Floats, cumulants: Floats) -> Floats:
    """Return P(|error| ≥ |value|) for errors of such variances and fourth cumulants.

    Sums of Laplace draws have longer tails than normal ones. Their law is √G·N with N normal and G
    of a Gamma law with mean one and shape ν = 3/(excess kurtosis): exact for equal weights.
    NaN where a point has none.
    """
    from scipy.special import ndtr, roots_genlaguerre

    with np.errstate(all="ignore"):
        z = np.abs(values) / np.sqrt(variances)
        excess = cumulants / variances**2
    z = np.where((variances == 0) & (values == 0), 0.0, z)
    p_values = 2 * ndtr(-z)
    heavy = np.nan_to_num(excess) > 0.03
    # A few shapes serve all points: rounded down, towards longer tails.
    shapes = 3 / np.where(heavy, excess, 1.0)
    steps = np.floor(4 * np.log2(np.clip(shapes, 0.25, 100.0)))
    for step in np.unique(steps[heavy]):
        nu = 2.0 ** (step / 4)
        nodes, masses = roots_genlaguerre(48, nu - 1)
        spread = np.sqrt(nodes / nu)
        rows = heavy & (steps == step)
        p_values[rows] = 2 * ndtr(-z[rows, np.newaxis] / spread) @ (masses / masses.sum())
    return np.asarray(p_values)


def discoveries(p_values: Floats, level: float) -> Mask:
    """Return which of many tests to believe: Benjamini and Hochberg's rule; never NaN.

    >>> discoveries(np.array([0.001, 0.02, 0.04, 0.9]), 0.05).tolist()
    [True, True, False, False]
    """
    order = np.argsort(p_values)  # NaN come last
    known = int(np.isfinite(p_values).sum())
    ranks = np.arange(1, len(order) + 1)
    with np.errstate(invalid="ignore"):
        below = np.flatnonzero(p_values[order] <= level * ranks / max(known, 1))
    believed = np.zeros(len(order), dtype=np.bool_)
    believed[order[: below[-1] + 1 if len(below) else 0]] = True
    return believed


def total_variation(a: Answering, b: Answering, region: Region, alike: float) -> TotalVariation:
    """Return the total variation over a grid; `alike` is the mean of noise's squared correlations.

    Var ∫|noise| ≤ (1 − 2/π)·∬ρ²σσ′, for cov(|X|, |Y|) ≤ (1 − 2/π)ρ²σσ′ of normal X, Y.
    """
    (first, noise), (second, other) = densities(a, region.points), densities(b, region.points)
    apart, errors = np.abs(first - second), np.hypot(noise, other)
    cell = region.cell / 2
    raw = cell * float(apart.sum())
    mean = cell * float(errors.sum()) * math.sqrt(2 / math.pi)
    height = math.sqrt(2 / math.pi) * math.sqrt(1 + _BUMP**2) / _BUMP
    with np.errstate(all="ignore"):
        bumps = np.where(errors > 0, np.exp(-((apart / errors / _BUMP) ** 2) / 2), 0.0)
    corrected = raw - cell * height * float((errors * bumps).sum())
    whole = cell * float(errors.sum())
    doubt = mean + 2 * whole * math.sqrt((1 - 2 / math.pi) * alike)
    lower, upper = (min(max(end, 0.0), 1.0) for end in (raw - doubt, raw + doubt))
    return TotalVariation(raw, mean, min(max(corrected, lower), upper), lower, upper)


def by_quadrature(a: Answering, b: Answering, region: Region) -> Estimate:
    """Return the squared L2 distance of densities over a grid, for any two families.

    The mean of what noise adds is taken away, exactly; its spread is measured with 32 tables of
    random signs in place of noise, the same whenever it is asked.
    """
    (first, noise), (second, other) = densities(a, region.points), densities(b, region.points)
    apart = first - second
    squared = region.cell * float((apart**2 - noise**2 - other**2).sum())
    probes = [
        _probe(a, region.points, 2 * k) - _probe(b, region.points, 2 * k + 1)
        for k in range(_PROBES)
    ]
    forms = np.array([region.cell * float((probe**2).sum()) for probe in probes])
    spread = float(np.var(forms, ddof=1))
    turned = np.array([2 * region.cell * float((probe * apart).sum()) for probe in probes])
    # The difference has noise in it, too, which gives the second part twice the first.
    linear = max(float((turned**2).mean()) - 2 * spread, 0.0)
    count = sum(
        (2 * region.cell * float((apart * values).sum()) * answers.deviation(release, "count")) ** 2
        / release.count**2
        for release, values in ((a, first), (b, second))
    )
    return Estimate(squared, math.sqrt(spread + linear + count))


def _probe(release: Answering, points: Points, number: int) -> Floats:
    """Return the densities of a table of signs, as large as the noise."""
    pair, size = release.plan.pair, release.table.size
    table = signs(size, number) * answers.deviation(release, "table")
    unit = whole_of(release) * float(release.rate) * release.count
    return answers.answer(release, points, lambda chunk: pair.respond(chunk, table)) / unit


def signs(size: int, number: int) -> Floats:
    """Return ±1 as the bits of a hash of positions give them (splitmix64).

    >>> signs(6, 0).tolist() == signs(8, 0)[:6].tolist()
    True
    """
    with np.errstate(over="ignore"):
        words = np.arange(size, dtype=np.uint64) + np.uint64(number << 40)
        words = words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
        words = words ^ (words >> np.uint64(31))
    return np.where(words >> np.uint64(63), 1.0, -1.0)
