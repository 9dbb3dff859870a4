"""Shares of regions: how much of the density lies in boxes and polygons, and how sure that is.

A share is a linear functional of the table over the count, p = S/ñ (see `dpkde.families.reading`).
The noise of S is known exactly, √Var(cell)·‖w‖, and so is that of a number of records. Of a share
it is known exactly where the count is public; with a noisy count, which is drawn apart from the
table, se² = (Var S + p²·Var ñ)/ñ² to first order. An interval follows from the exact law of both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.brackets import Allowance
from dpkde.families.reading import Asked, At, Over, Reading
from dpkde.numerics.numbers import is_real, is_whole
from dpkde.privacy.laws.quantiles import half_widths
from dpkde.privacy.laws.weights import Splits, Weights
from dpkde.release import polygons
from dpkde.release.answers import deviation
from dpkde.release.assistance import Assistance, assistance
from dpkde.release.boxes import Boxes, boxes_of, check_axes, shaped
from dpkde.release.intervals import BIAS, DOUBT

if TYPE_CHECKING:
    from dpkde.families.base import Pair
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

_NUMBERS = 1 << 21
"""Most weights held at a time."""
_MANY = 1 << 22
"""Noise on more cells than this is normal, for all that a quantile shows."""
_AGREE = 1e-7
"""Strips are refined until the share of a polygon changes by no more than this."""
_REFINED = 5
_FOLLOWED = 1024.0
_LARGE = 10.0
"""Of a bias in standard deviations: beyond it counts whole."""


class Piece(ABC):
    """Some regions, with the weights of the table that read them."""

    reading: Reading

    @abstractmethod
    def typical_bias(self, pair: Pair, table: Floats, sums: Floats, variance: float) -> Floats:
        """Return what the family's bias of the sums typically is; `variance` is that of a cell."""

    @abstractmethod
    def worst_bias(self, pair: Pair, table: Floats) -> Allowance:
        """Return what it is at most, whatever the records."""

    def bias(self, kind: str, view: Sight, table: Floats, sums: Floats) -> Allowance:
        """Return what an interval allows for it."""
        pair = view.release.plan.pair
        if kind == "worst":
            return self.worst_bias(pair, table)
        variance = deviation(view.release, "table") ** 2
        typical = self.typical_bias(pair, table, sums, variance)
        return Allowance(typical, np.zeros(len(typical)))

    @abstractmethod
    def modelled(self, helper: Assistance) -> Floats | None:
        """Return the shares that a model of the data expects; None where it cannot tell."""

    def parts(self) -> Iterator[Piece]:
        """Yield the regions a few at a time, so that all weights can be held."""
        yield self


@dataclass(frozen=True, eq=False)
class BoxPiece(Piece):
    """Boxes, by closed forms."""

    reading: Reading
    boxes: Boxes
    smoothed: bool

    def typical_bias(self, pair: Pair, table: Floats, sums: Floats, variance: float) -> Floats:
        """Return what the family makes of the table."""
        return pair.box_bias(self.boxes.asked(self.smoothed), table, variance)

    def worst_bias(self, pair: Pair, table: Floats) -> Allowance:
        """Return what the family makes of the table."""
        return pair.box_bound(self.boxes.asked(self.smoothed), table)

    def modelled(self, helper: Assistance) -> Floats | None:
        """Return the mean share over the folds' clouds, in closed form for the Gaussian kernel."""
        if not helper.release.kernel.is_gaussian or helper.model.factors is not None:
            return None
        low, high = self.boxes.low, self.boxes.high
        # e^{−t²} is a normal law of variance ½.
        return np.asarray(np.mean([cloud.share(low, high, 0.5) for cloud in helper.clouds], axis=0))

    def parts(self) -> Iterator[Piece]:
        """Yield a few boxes at a time."""
        rows = max(1, _NUMBERS // max(self.reading.breadth, 1))
        for start in range(0, len(self.reading), rows):
            part = slice(start, start + rows)
            yield BoxPiece(self.reading.part(part), self.boxes.part(part), self.smoothed)


@dataclass(frozen=True, eq=False)
class PolygonPiece(Piece):
    """A region of polygons, by strips: what is asked of each, and how much it counts."""

    reading: Reading
    region: list[polygons.Polygon]
    asked: Sequence[Asked]
    coefficients: Floats

    def worst_bias(self, pair: Pair, table: Floats) -> Allowance:
        """Return what the family makes of the table."""
        most, norms = pair.region_bound(self.asked, self.coefficients, table)
        return Allowance(most, norms + self.reading.norms())

    def typical_bias(self, pair: Pair, table: Floats, sums: Floats, variance: float) -> Floats:
        """Return twice the smaller of two typical sizes: of the sum, and along the outline."""
        whole, edges = pair.edge_error(range(2))
        places, lengths = polygons.outline(self.region)
        if not whole or not len(places):
            return BIAS * whole * np.abs(sums)
        heights = pair.read([At(places[:, 0]), At(places[:, 1])]).values(table)
        along = float(np.abs(heights) @ lengths) / pair.frame.kernel.shape.integral(1)
        return BIAS * np.minimum(whole * np.abs(sums), float(edges.max()) * along)

    def modelled(self, helper: Assistance) -> Floats | None:
        """There is no closed form."""
        return None


@dataclass(frozen=True, eq=False)
class Regions:
    """What was asked for: the shape of the answer, what has none, and the pieces to read."""

    shape: tuple[int, ...]
    strange: NDArray[np.bool_]
    pieces: Callable[[], Iterator[Piece]]

    def answered(self, function: Callable[[Piece], Floats]) -> Floats:
        """Return a function of all pieces in the shape of the answer; NaN where there is none."""
        values = np.concatenate([*map(function, self.pieces()), np.empty(0)])
        values[self.strange] = math.nan
        return shaped(values, self.shape)


def regions(release: Answering, given: Any, *, smoothed: bool = True) -> Regions:
    """Return what a caller asks for: boxes or polygons."""
    if not isinstance(smoothed, (bool, np.bool_)):
        raise ParameterError(f"smoothed must be True or False, got {smoothed!r}")
    several = isinstance(given, (list, tuple)) and len(given) > 0 and polygons.is_geometry(given[0])
    if several or polygons.is_geometry(given):
        return _polygons(release, given, bool(smoothed))
    boxes = boxes_of(given, release.plan.frame, release.columns)
    pair = release.plan.pair

    def pieces() -> Iterator[Piece]:
        if len(boxes.low):
            yield BoxPiece(pair.read(boxes.asked(bool(smoothed))), boxes, bool(smoothed))

    return Regions(boxes.shape, boxes.strange, pieces)


def _polygons(release: Answering, given: Any, smoothed: bool) -> Regions:
    frame, columns = release.plan.frame, release.columns
    if release.dim != 2:
        raise ParameterError(
            f"polygons are regions of two columns, and this release has {release.dim}: ask "
            "release.marginal([…]) of two of them"
        )
    check_axes(frame.kernel)
    if not smoothed:
        raise ParameterError(
            "shares of polygons are smoothed: ask for boxes, or leave smoothed out"
        )
    drawn, single = polygons.regions_of(given, columns)

    def pieces() -> Iterator[Piece]:
        for region in drawn:
            located = [[frame.locate(ring) for ring in rings] for rings in region]
            yield _by_strips(release, located)

    shape = () if single else (len(drawn),)
    return Regions(shape, np.zeros(len(drawn), dtype=np.bool_), pieces)


def _by_strips(release: Answering, region: list[polygons.Polygon]) -> PolygonPiece:
    """Return the weights of a region, refined until its share no longer changes."""
    frame, pair = release.plan.frame, release.plan.pair
    table, rows = release.table.astype(np.float64), float(release.rate) * release.count
    shape = frame.kernel.shape
    halves, reach = frame.halves(), min(shape.profile_reach(1e-9), _FOLLOWED) + 8.0
    if not pair.knows_the_whole:
        reach = min(reach, 16.0)
    ends = np.full(2, 1e6) if halves is None else halves + reach
    clip = np.column_stack([-ends, ends])
    unit = 1 / shape.integral(1)

    def read(width: float) -> PolygonPiece:
        parts = polygons.strips(region, clip, width)
        if not len(parts.x):  # nothing of it is near
            parts = polygons.Strips(*(np.zeros(1) for _ in range(4)))
        asked = [At(parts.x), Over(parts.low, parts.high)]
        weights = parts.weights * unit
        return PolygonPiece(pair.read(asked).gathered(weights), region, asked, weights)

    width = polygons.PANEL
    piece = read(width)
    share = piece.reading.values(table)
    for _ in range(_REFINED):
        width /= 2
        piece, before = read(width), share
        share = piece.reading.values(table)
        if float(np.abs(share - before).max()) <= _AGREE * rows:
            break
    return piece


@dataclass(frozen=True, eq=False)
class Sight:
    """What shares are read from: the table, or what a model leaves of it."""

    release: Answering
    helper: Assistance | None

    @property
    def rows(self) -> float:
        """How many records are in the table."""
        return float(self.release.rate) * self.release.count

    @cached_property
    def table(self) -> Floats:
        """The noisy sums."""
        return self.release.table.astype(np.float64)

    def sums(self, piece: Piece) -> tuple[Floats, Floats]:
        """Return sums over the records in the table, and the table that they are read from."""
        expected = None if self.helper is None else piece.modelled(self.helper)
        if expected is None or self.helper is None:
            return piece.reading.values(self.table), self.table
        residual = self.helper.residual
        return expected * self.rows + piece.reading.values(residual), residual


def sight(release: Answering, assisted: bool | None) -> Sight:
    """Return what shares are read from."""
    return Sight(release, assistance(release, assisted))


def mass(
    release: Answering,
    given: Any,
    *,
    smoothed: bool = True,
    clip: bool = True,
    assisted: bool | None = None,
) -> Floats:
    """Return the share of each region, within [0, 1] unless told otherwise."""
    view = sight(release, assisted if smoothed else False)
    asked = regions(release, given, smoothed=smoothed)
    shares = asked.answered(lambda piece: view.sums(piece)[0] / view.rows)
    return np.clip(shares, 0.0, 1.0) if clip else shares


def records(release: Answering, given: Any, *, smoothed: bool = True) -> Floats:
    """Return the number of records in each region: the sum itself, without the count."""
    view = sight(release, False)
    asked, rate = regions(release, given, smoothed=smoothed), float(release.rate)
    return asked.answered(lambda piece: view.sums(piece)[0] / rate)


def records_standard_error(release: Answering, given: Any, *, smoothed: bool = True) -> Floats:
    """Return √Var(cell)·‖w‖ for each region: exact."""
    asked = regions(release, given, smoothed=smoothed)
    unit = deviation(release, "table") / float(release.rate)
    return asked.answered(lambda piece: unit * piece.reading.norms())


def mass_standard_error(
    release: Answering, given: Any, *, smoothed: bool = True, assisted: bool | None = None
) -> Floats:
    """Return √(Var S + p²·Var ñ)/ñ for each region."""
    view = sight(release, assisted if smoothed else False)
    asked = regions(release, given, smoothed=smoothed)
    table, count = deviation(release, "table"), deviation(release, "count")

    def error(piece: Piece) -> Floats:
        shares = np.clip(view.sums(piece)[0] / view.rows, 0.0, 1.0)
        own = table * piece.reading.norms() / float(release.rate)
        return np.hypot(own, shares * count) / release.count

    return asked.answered(error)


def sample_standard_error(release: Answering, given: Any, points: int) -> Floats:
    """Return √(Var + p(1 − p)/points) for each region, Var that of its mass."""
    if not is_whole(points) or points < 1:
        raise ParameterError(f"n must be a whole number of points, at least 1, got {points!r}")
    shares = np.clip(mass(release, given), 0.0, 1.0)
    noise = mass_standard_error(release, given)
    return np.asarray(np.hypot(noise, np.sqrt(shares * (1 - shares) / points)))[()]


def mass_interval(
    release: Answering,
    given: Any,
    level: float,
    *,
    smoothed: bool = True,
    clip: bool = True,
    assisted: bool | None = None,
    bias: str = "worst",
) -> tuple[Floats, Floats]:
    """Return the ends of an interval for the share of each region; clip: within [0, 1]."""
    level, kind = check_level(level), check_bias(bias)
    asked = regions(release, given, smoothed=smoothed)
    view = sight(release, assisted if smoothed else False)

    def ends(piece: Piece) -> Floats:
        found = []
        for part in piece.parts():
            sums, table = view.sums(part)
            allowed = part.bias(kind, view, table, sums)
            width = half_width(view, part.reading, table, sums, allowed, level)
            found.append(np.stack([sums / view.rows - width, sums / view.rows + width]))
        return np.concatenate(found, axis=1)

    both = np.concatenate([*map(ends, asked.pieces()), np.empty((2, 0))], axis=1)
    both[:, asked.strange] = math.nan
    low, high = np.clip(both, 0.0, 1.0) if clip else both
    return shaped(low, asked.shape), shaped(high, asked.shape)


def check_level(level: float) -> float:
    """Check a probability."""
    if not is_real(level) or not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, got {level!r}")
    return float(level)


def check_bias(bias: str) -> str:
    """Check what an interval allows for."""
    if bias not in ("typical", "worst"):
        raise ParameterError(f"bias must be 'typical' or 'worst', got {bias!r}")
    return bias


def half_width(
    view: Sight,
    reading: Reading,
    table: Floats,
    sums: Floats,
    bias: Allowance,
    level: float,
    constant: float | Floats = 0.0,
) -> Floats:
    """Return half the length of intervals for c + S/ñ, from the exact law of the noise.

    The error of a share p is (N + bias − (p − c)Z)/ñ, N and Z the noise of sum and count. p is not
    known, so the interval's own end stands for it: once to find that, once more to be sure. What is
    allowed for a bias has noise itself, together with N that of `bias.norms`: see `widened`.
    """
    release, pair, rate = view.release, view.release.plan.pair, float(view.release.rate)
    law = release.law("table")
    assert law is not None
    norms = reading.norms()
    noise = law.variance * norms**2
    own = reading.own_variance(table, noise)
    if pair.draws:
        own = own + DOUBT * math.sqrt(5 / pair.draws) * (own + noise)
    if rate < 1:
        own = own + np.maximum(sums + constant * view.rows, 0.0) * (1 - rate)
    own = own + law.variance * np.maximum(bias.norms**2 - norms**2, 0.0)
    normal, weights = own, _weights_of(reading)
    if weights is None:
        weights, normal = Weights(np.zeros((len(reading), 1)), np.ones(1)), own + noise
    most = np.maximum(constant, 1 - np.asarray(constant))
    part = np.minimum(np.abs(sums) / view.rows, most)
    spread = deviation(release, "count")
    for _ in range(2):
        width = half_widths(
            law,
            weights,
            level,
            count_law=release.law("count"),
            count_weights=part * rate,
            normal=normal,
        )
        whole = np.sqrt(noise + np.nan_to_num(own) + (part * rate * spread) ** 2)
        width = widened(width, whole, bias.most, level)
        part = np.minimum((np.abs(sums) + width) / view.rows, most)
    return np.asarray(width / view.rows)


def _weights_of(reading: Reading) -> Splits | None:
    """Return what the law of the noise depends on; None where weights are too many to be held."""
    return None if reading.breadth > _MANY else reading.weights().split()


def widened(width: Floats, deviation: Floats, bias: Floats, level: float) -> Floats:
    """Return half widths that hold the truth with probability `level` for any bias up to one.

    By the quantile t of |N(b, 1)|, b the bias over the standard deviation: little for a small bias,
    since it takes from one side what it gives to the other, and b itself for a large one. As much
    longer than without a bias as that of a normal law is, and never by more than the bias.

    The bias allowed for may have noise of its own, B + N′ in place of a bound B. t grows with b
    faster and faster, by 1 at most: so the interval misses no more often than one whose half width
    is t at B plus some part of N′, between none and all, and holds if the deviation is at least
    that of N plus or less any such part of N′.
    """
    from scipy.special import chndtrix, ndtri

    with np.errstate(all="ignore"):
        b = np.where(deviation > 0, bias / deviation, np.inf)
    # Its square follows a noncentral χ² law.
    t = np.sqrt(chndtrix(level, 1.0, np.minimum(b, _LARGE) ** 2))
    ratio = t / ndtri((1 + level) / 2)
    return np.where(b < _LARGE, np.minimum(width * ratio, width + bias), width + bias)
