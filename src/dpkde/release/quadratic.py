"""Quadratic forms of noisy tables: estimates without the bias of noise, their errors, and a test.

With u the tables over the number of records (and 2^bits), M a form (of `dpkde.families.comparison`)
and noise of variance s on every cell, uncorrelated and symmetric,

    E uᵀMu = (what it is without noise) + s·tr M,
    Var uᵀMu = Var(zᵀMz) + 4s·‖Mu‖²,

Var(zᵀMz) from the second and fourth moments of the law: 2s²·ΣM_ij² for normal noise. Both are
exact, given u; u itself is replaced by what is released, less what noise adds to ‖Mu‖². A noisy
count divides a whole table: its error is followed to second order in the estimate and to first
order in the standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.families.comparison import Comparison
from dpkde.numerics.operators import Operator
from dpkde.release.answers import deviation

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A distance, estimated from two noisy tables.

    Attributes
    ----------
    squared
        The estimate of the squared distance, without the bias of noise: it is below zero about
        half of the time where there is no difference.
    squared_standard_error
        What the noise adds to it, as a standard deviation.
    squared_sampling_error
        What the family's own draws add to it; 0 for families that draw nothing.
    """

    squared: float
    squared_standard_error: float
    squared_sampling_error: float = 0.0

    @property
    def value(self) -> float:
        """The distance: the root of `squared`, 0 where that is negative."""
        return math.sqrt(max(self.squared, 0.0))

    @property
    def standard_error(self) -> float:
        """That of `value`, of noise and draws: first order, or the root of the squared one's."""
        error = math.hypot(self.squared_standard_error, self.squared_sampling_error)
        first = error / (2 * self.value) if self.value > 0 else math.inf
        return min(first, math.sqrt(error))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}"


@dataclass(frozen=True, eq=False)
class Side:
    """One of two tables, as shares of its records, with what is known of its noise.

    Attributes
    ----------
    shares
        The table over 2^bits and the records in it.
    variance, fourth, mixed
        E z², E z⁴ and E z²z′² of the noise on its cells.
    count_variance
        Var ñ/ñ².
    records, rate
        How many there are, and the share of them in the table.
    """

    shares: Floats
    variance: float
    fourth: float
    mixed: float
    count_variance: float
    records: float
    rate: float

    @classmethod
    def of(cls, release: Answering) -> Side:
        """Return what a release says."""
        unit = float(release.rate) * release.count * 2.0**release.plan.bits
        law = release.law("table")
        assert law is not None  # a release has noise on its table
        fourth, mixed = law.fourth_moments
        return cls(
            release.table / unit,
            law.variance / unit**2,
            fourth / unit**4,
            mixed / unit**4,
            (deviation(release, "count") / release.count) ** 2,
            float(release.count),
            float(release.rate),
        )

    @property
    def thinning(self) -> float:
        """τ = (1 − q)/qn: the variance of a share where a record is in the table at a rate q."""
        return (1 - self.rate) / (self.rate * self.records)

    def spread(self, form: Operator) -> float:
        """Return Var zᵀMz: exact for laws whose cells are exchangeable and have free signs."""
        trace, squares, diagonal = form.trace, form.squares, form.diagonal_squares
        apart = trace**2 + 2 * squares - 3 * diagonal
        return self.mixed * apart + self.fourth * diagonal - (self.variance * trace) ** 2


def estimate(form: Comparison, a: Side, b: Side) -> Estimate:
    """Return the estimate of a form at two tables."""
    ours, theirs = form.own.apply(a.shares), form.other.apply(b.shares)
    across, back = form.cross.apply(b.shares), form.cross.transposed.apply(a.shares)
    first, second = ours - across, theirs - back
    own = float(a.shares @ ours) - a.variance * form.own.trace
    other = float(b.shares @ theirs) - b.variance * form.other.trace
    mixed = float(a.shares @ across)
    # E (n/ñ)² = 1 + 3v and E n/ñ = 1 + v, to second order in the count's noise.
    v, w = a.count_variance, b.count_variance
    squared = own / (1 + 3 * v) + other / (1 + 3 * w) - 2 * mixed / ((1 + v) * (1 + w))
    between = form.cross.squares
    steep = [
        float(first @ first) - a.variance * form.own.squares - b.variance * between,
        float(second @ second) - b.variance * form.other.squares - a.variance * between,
    ]
    alone = a.spread(form.own) + b.spread(form.other) + 4 * a.variance * b.variance * between
    linear = 4 * (a.variance * steep[0] + b.variance * steep[1])
    # Noise may show less of a difference than none: but half of its own part stays.
    table = alone + max(linear, -alone / 2)
    if form.scatter is not None and a.thinning + b.thinning > 0:
        # Tables of some of the records differ by which they are, with the covariance τ·C.
        squared -= (a.thinning + b.thinning) * form.scatter.energy
        square = max(form.scatter.mean_square(a.shares, b.shares), 0.0)
        table += 2 * (a.thinning + b.thinning) ** 2 * square
        for side, g in ((a, first), (b, second)):
            table += 4 * side.thinning * max(form.scatter.moment(side.shares, g), 0.0)
    turned = [float(a.shares @ first), float(b.shares @ second)]
    count = 4 * (turned[0] ** 2 * v + turned[1] ** 2 * w)
    sampling = 0.0
    if form.draws:
        said = form.by_draw(a.shares * first) + form.by_draw(b.shares * second)
        seen = form.draws * float(np.var(said, ddof=1))  # of the sum over draws
        sampling = math.sqrt(max(seen - table, 0.0))
    return Estimate(squared, math.sqrt(max(table + count, 0.0)), sampling)


@dataclass(frozen=True)
class Sameness:
    """A test of whether two releases are samples of one population; true where they may be.

    Attributes
    ----------
    p_value
        The probability of a distance at least as large, were the populations one.
    level
        The populations are told apart where `p_value` is below it.
    statistic
        The squared distance over what noise and sampling let one expect.
    degrees
        The degrees of freedom of the chi-square law that it is compared with.
    """

    p_value: float
    level: float
    statistic: float
    degrees: float

    def __bool__(self) -> bool:
        return self.p_value >= self.level

    def __str__(self) -> str:
        verdict = "may be" if self else "are not"
        return (
            f"the two {verdict} samples of one population "
            f"(p = {self.p_value:.3g}, level {self.level:g})"
        )


def sameness(form: Comparison, a: Side, b: Side, level: float) -> Sameness:
    """Return the test: uᵀMu against a chi-square law of its mean and variance.

    Were the populations one, u = a − b has mean zero and the covariance

        Σ = s·I + α·C + γ·μμᵀ,   α = Σ 1/(records in the table),   γ = Σ (Var ñ/ñ² − 1/n),

    s the noise of both cells, C = E f(x)f(x)ᵀ and μ = E f(x) over the population. uᵀMu has the mean
    tr MΣ and the variance 2tr(MΣ)², with what the noise's fourth moments add. All of it is
    estimated from the releases, by products of one with the other, which noise does not bias.
    """
    from scipy.stats import chi2

    scatter = form.scatter
    assert scatter is not None
    across, back = form.cross.apply(b.shares), form.cross.transposed.apply(a.shares)
    first = form.own.apply(a.shares) - across
    second = form.other.apply(b.shares) - back
    statistic = float(a.shares @ first) + float(b.shares @ second)
    noise = a.variance + b.variance
    alpha = sum(1 / (side.rate * side.records) for side in (a, b))
    gamma = sum(side.count_variance - 1 / side.records for side in (a, b))
    energy, squared_energy = scatter.energy, scatter.energy_of_square
    mean = min(max(float(a.shares @ across), 0.0), energy)
    square = max(scatter.mean_square(a.shares, b.shares), mean**2)
    moments = [
        (scatter.moment(one.shares, g) - two.variance * squared_energy - square / two.records)
        / max(1 - 1 / two.records, 0.5)
        for one, two, g in ((a, b, across), (b, a, back))
    ]
    moment = min(max(sum(moments) / 2, mean**2), square)
    steep = max(float(a.shares @ form.own.apply(across)), 0.0)
    expected = (
        a.variance * form.own.trace + b.variance * form.other.trace + alpha * energy + gamma * mean
    )
    squares = form.own.squares
    mixed = (
        alpha**2 * square
        + gamma**2 * mean**2
        + 2 * noise * alpha * squared_energy
        + 2 * noise * gamma * steep
        + 2 * alpha * gamma * moment
    )
    table = a.spread(form.own) + b.spread(form.other) + 4 * a.variance * b.variance * squares
    variance = max(table + 2 * mixed, table, 1e-6 * expected**2)
    scale, degrees = variance / (2 * expected), 2 * expected**2 / variance
    return Sameness(
        float(chi2.sf(statistic / scale, degrees)), level, statistic / expected, degrees
    )
