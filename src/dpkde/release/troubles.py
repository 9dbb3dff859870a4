"""What a release tells of its own trouble: from noisy numbers and public settings alone.

Nothing here has seen a record, so a trouble costs no privacy, and whoever has the file can ask for
it (`Release.troubles`). With ñ the count, e the standard error of an answer, q a typical answer,
the mean KDE value at the records (`dpkde.release.classifier.typical`), and s its standard error:

=================  ===============================================================================
code               it is told where
=================  ===============================================================================
``few-records``    ñ is less than 5 standard deviations of its noise
``fewer``          ñ and all noise that it may have (but for a probability of 10⁻⁹) are less than
                   half of the records that were expected
``at-bounds``      a tenth of the records or more lie at one face of the box, whatever the noise
                   (but for 10⁻⁷ for each share that is read) and the bias of the family (`heap`).
                   For tables of splines and of the fast Gauss transform, in boxes that clip, and
                   kernels without long tails
``noise``          q ≤ e or q ≤ 3s, with records enough
``bandwidth``      the same, or q < 4e; and with a kernel 2, 4, 8, … times as wide q is 8e and more
                   than its 3s: that needs no larger ε
``epsilon``        ε is above 10, for ρ at δ = 10⁻⁶
=================  ===============================================================================

Thresholds are far from what ordinary releases have: a release whose typical answer is 13s and 13e
is silent of noise and bandwidth but for a probability below 10⁻⁹, since q moves by s and 3s, 4e
are more than 6.1 standard errors away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import ProductKernel
from dpkde.kernels.base import gauss_points, graded
from dpkde.planning import outlook
from dpkde.planning.plan import Plan
from dpkde.privacy.laws import Law
from dpkde.privacy.numbers import plain
from dpkde.release.answers import deviation
from dpkde.release.classifier import typical
from dpkde.release.parts import ExpectedRows
from dpkde.release.quadratic import Side
from dpkde.space.domain import Box
from dpkde.space.frame import Frame, profile_integral

if TYPE_CHECKING:
    from dpkde.release.answering import Answering
    from dpkde.release.release import Release

Floats = NDArray[np.float64]

FEW = 5.0
"""Fewer records than this many standard deviations of their count say next to nothing."""
FAR = 0.5
"""Less than this part of the records expected is far fewer."""
CHANCE = 1e-9
"""The probability with which the noise of a count may be larger than is allowed for."""
HEAPED, ALL_HEAPED = 0.1, 0.9
"""From which share on records at a face are told; and in bounds of few bandwidths."""
LONG = 0.05
"""Of a kernel with more than this beyond three bandwidths, slabs hear of places far away."""
LEVEL = 1 - 1e-7
"""Of the intervals that decide it."""
SURE = 3.0
"""Standard errors from zero at which a typical answer is one."""
NOISY, SHOWN = 1 / 4, 1 / 8
"""From which e/q on a wider kernel is looked for, and what it has to have at most."""
MOST_EPSILON = Fraction(10)
STATED = Fraction(1, 10**6)
"""The δ at which a declared ρ is told as ε."""
_PLACES = 64


@dataclass(frozen=True)
class Trouble:
    """Something that makes a release of less use than it might be.

    Attributes
    ----------
    code
        A word for it, the same in every version.
    sentence
        What it is, with the numbers.
    advice
        What to do about it.
    """

    code: str
    sentence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.sentence}: {self.advice}"


def troubles(release: Release) -> tuple[Trouble, ...]:
    """Return what is wrong with a release, as far as it tells; the worst first."""
    kinds = (_few_records, _fewer, _at_bounds, _drowned, _epsilon)
    return tuple(trouble for kind in kinds for trouble in kind(release))


def refuted(expected: int | None, count: int, law: Law | None) -> list[ExpectedRows]:
    """Return the guess of the number of records where the noisy count refutes it; else nothing.

    A release keeps the guess then, and only then: one that is near the truth might be the truth.
    """
    most = count + (0 if law is None else law.margin(CHANCE))
    return [ExpectedRows(expected)] if expected is not None and most < FAR * expected else []


def _few_records(release: Release) -> Iterator[Trouble]:
    spread = deviation(release, "count")
    if release.count < FEW * spread:
        unit = "; under unit= only where there is an id" if release.plan.unit.name else ""
        yield Trouble(
            "few-records",
            f"about {release.count} records, give or take {spread:.3g}: this release says next to "
            "nothing",
            "rows count only where every column is a finite number (see columns=, thousands=, "
            "decimal=), and records of text only with as many fields as the header has (see "
            f"delimiter=){unit}",
        )


def _fewer(release: Release) -> Iterator[Trouble]:
    expected = release.parts.of(ExpectedRows)
    if expected is not None:
        yield Trouble(
            "fewer",
            f"about {release.count:,} records, and {expected.rows:,} were expected",
            "rows count only where every column is a finite number, inside the bounds if those "
            "outside are dropped; before another release, dpkde check (for the curator alone) "
            "tells what becomes of the rows",
        )


def _epsilon(release: Release) -> Iterator[Trouble]:
    declared = release.privacy
    epsilon = declared.epsilon
    if epsilon is None:
        epsilon = declared.epsilon_at(STATED)
    if epsilon > MOST_EPSILON:
        where = "" if declared.rho is None else f" at δ = {float(STATED):g}"
        shown = plain(epsilon) if declared.rho is None else f"{float(epsilon):.3g}"
        yield Trouble(
            "epsilon",
            f"ε = {shown}{where} protects nobody: who guesses whether a record is in, and was "
            "undecided before, may be all but sure afterwards",
            "take an ε of some units at most; docs/threats.md says what each means",
        )


def _at_bounds(release: Release) -> Iterator[Trouble]:
    """Tell the faces of a box at which records are heaped, as those that were clipped are."""
    frame = release.plan.frame
    if (
        not isinstance(frame.domain, Box)
        or frame.domain.outside != "clip"
        or not frame.kernel.is_product
        or frame.kernel.bandwidth.is_matrix
        or not release.plan.pair.knows_the_whole
        or release.rate < 1
        or Profile(frame.kernel.shape, math.inf).beyond(3.0) > LONG
    ):
        return
    faces: list[str] = []
    heaped = 0.0
    for axis in range(frame.dim):
        for side, word in enumerate(("lower", "upper")):
            share = heap(release, axis, side)
            if share is not None:
                name = f"column {axis}" if release.columns is None else release.columns[axis]
                faces.append(f"about {share:.0%} at the {word} bound of {name}")
                heaped = max(heaped, share)
    if faces:
        yield Trouble(
            "at-bounds",
            f"many records lie at the bounds or were moved there: {', '.join(faces)}",
            "if that is not where they are, publish with wider bounds, or drop what is outside",
        )


def heap(release: Answering, axis: int, side: int) -> float | None:
    """Return about which share of the records lies at a face of the box; None where few do.

    The kernel carries part of each record across the face: T(u) = ∫_u^∞ k/∫k of one that lies u
    bandwidths inside. Let H be the share beyond the face. Of a heap of share p it is p·T(0). Of
    others it follows from how dense they are inside: in slabs from 2 to 3 and from 3 to 4
    bandwidths, of shares G and G′, where their density is taken to go like e^{−bu}, with
    b = ln G/G′ from 0 (as dense everywhere) to 1 (what falls faster is a heap to this kernel). So

        p = (H − r·G)/(T(0) − r·(T(2) − T(3))),    r = ∫₀^w e^{−bu} T(u) du / ∫₂³ e^{−bu} du.

    In bounds of less than 6 bandwidths there is room for one slab, from 1.5 bandwidths on, and b is
    0. In those of less than 3.5 there is none: the shares H and H′ beyond both faces are compared,
    and only heaps of nearly all records are told: p ≥ (H − H′)/(T(0) − T(w)).

    Decided by the least p that intervals leave which hold for any records
    (`Release.mass_interval`).
    """
    frame = release.plan.frame
    halves = frame.halves()
    assert halves is not None  # a box has bounds
    width = float(2 * halves[axis])
    profile = Profile(frame.kernel.shape, width)
    slabs = profile.slabs
    if slabs is None and 0.5 - profile.beyond(width) <= 1e-3:
        return None  # too narrow to tell one face from the other
    least = ALL_HEAPED if slabs is None else HEAPED
    ends = [(-math.inf, 0.0), *([(width, math.inf)] if slabs is None else slabs)]
    boxes = np.array([_slab(frame, axis, side, *pair) for pair in ends])
    share = profile.heaped(*release.mass(boxes, clip=False, assisted=False).tolist())
    if not share >= least:  # what follows takes longer
        return None
    low, high = release.mass_interval(boxes, LEVEL, assisted=False)
    if profile.heaped(float(low[0]), float(high[1]), *low[2:].tolist()) < least:
        return None
    return float(min(share, 1.0))


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
        start, stop = self.slabs[0]
        fall = 0.0
        if further is not None and inside > 0:
            fall = 1.0 if further <= 0 else min(max(math.log(inside / further), 0.0), 1.0)
        even = stop - start
        if fall > 0:
            even = (math.exp(-fall * start) - math.exp(-fall * stop)) / fall
        r = self.carried(fall) / even
        leak = self.beyond(start) - self.beyond(stop)
        return (over - r * max(inside, 0.0)) / (0.5 - r * leak)

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


def _drowned(release: Release) -> Iterator[Trouble]:
    """Tell where noise hides typical answers, and whether a wider kernel would show them."""
    if release.count < FEW * deviation(release, "count"):
        return  # that says it all
    error, level = _error(release), _typical(release)
    hidden = max(error, SURE * level.error) >= level.value
    told = f"a KDE value has a standard error of {error:.2g}, and where records are it is about"
    if hidden:
        yield Trouble(
            "noise",
            f"typical answers cannot be told from noise: {told} {level}",
            "what stands out of the noise is heaps alone; another release needs a larger ε, more "
            "records, a wider kernel or fewer columns (dpkde plan compares)",
        )
    if (hidden or error > NOISY * level.value) and (times := _times_wider(release, error, level)):
        reread = ""
        if _serves(release, times):
            reread = (
                f"; release.with_kernel(release.kernel.scaled({times:g})) reads this one so, with "
                "more noise, and costs nothing"
            )
        yield Trouble(
            "bandwidth",
            f"the bandwidth is too small for this ε and so many records: {told} {level}; one "
            f"{times:g} times as wide would show them",
            f"publish with a bandwidth of about {release.kernel.bandwidth.scaled(times)!r}{reread}",
        )


def _error(release: Answering) -> float:
    """Return the standard error that noise gives to a KDE value, half way in a list of places.

    Where a model answers, and noise is only what it misses, the error to expect of its answers.
    """
    helper = release._assistance if _has_model(release) else None
    if helper is not None and release.promise is None:
        try:
            drawn = release.sample(_PLACES, seed=0)
        except ParameterError:  # a kernel that cannot be drawn from
            return _plain_error(release)
        return float(np.median(release.average_error(drawn)))
    return _plain_error(release)


def _has_model(release: Answering) -> bool:
    """Tell whether the file has one: fitting it takes time."""
    parts = getattr(release, "parts", {})
    return "model" in parts and getattr(parts["model"], "kind", "none") != "none"


def _plain_error(release: Answering) -> float:
    frame = release.plan.frame
    gains = release.plan.pair.response_norm(_places(frame))
    return (
        float(np.median(gains))
        * deviation(release, "table")
        / float(release.rate)
        / (release.count)
    )


def _places(frame: Frame) -> Floats:
    """Return some places of the domain that are spread evenly, by multiples of irrational steps."""
    if not isinstance(frame.domain, Box):
        return np.asarray(
            np.eye(1, frame.dim)
            if frame.kernel.home == "sphere"
            else (frame.domain.origin(frame.dim)[np.newaxis, :])
        )
    ratio = 2.0
    for _ in range(64):  # the root of x^(d+1) = x + 1: the golden ratio where there is one axis
        ratio = (1 + ratio) ** (1 / (frame.dim + 1))
    steps = ratio ** -np.arange(1.0, frame.dim + 1)
    shares = (0.5 + np.outer(np.arange(1, _PLACES + 1), steps)) % 1.0
    low, high = frame.domain.corners
    return np.asarray(low + (high - low) * shares)


class Level(NamedTuple):
    """A typical answer, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        doubt = f", give or take {self.error:.2g}" if self.error else ""
        return f"{self.value:.2g}{doubt}"


def _typical(release: Answering) -> Level:
    """Return q as the table tells it; what is usual, where the family cannot tell.

    Its standard error is that of uᵀMu, see `dpkde.release.quadratic`.
    """
    pair = release.plan.pair
    form = pair.comparison(pair, "mmd")
    if form is None:
        return Level(outlook.typical(release.plan.frame, None), 0.0)
    side = Side.of(release)
    turned = form.own.apply(side.shares)
    steep = max(float(turned @ turned) - side.variance * form.own.squares, 0.0)
    variance = side.spread(form.own) + 4 * side.variance * steep
    return Level(typical(release), math.sqrt(max(variance, 0.0)))


def _times_wider(release: Release, error: float, level: Level) -> float | None:
    """Return how many times as wide a kernel would show typical answers; None where none would.

    Noise is nearly the same in a release made for it, and typical answers are larger.
    """
    halves = release.plan.frame.halves()
    if release.plan.frame.kernel.home != "space" or halves is None:
        return None
    for power in range(1, 1 + math.floor(math.log2(max(float(halves.max()), 1.0)))):
        wider = _typical_at(release, 2.0**power, level)
        if wider.value > SURE * wider.error and error <= SHOWN * wider.value:
            return 2.0**power
    return None


def _typical_at(release: Release, times: float, level: Level) -> Level:
    """Return a typical answer for a kernel so many times as wide.

    Read from the table where that can be read with it. Elsewhere as if it grew as usual ones do.
    """
    if _serves(release, times):
        return _typical(release.with_kernel(release.kernel.scaled(times)))
    frame = release.plan.frame
    wide = Frame.of(frame.kernel.scaled(times), frame.domain, frame.dim)
    grown = outlook.typical(wide, None) / outlook.typical(frame, None)
    return Level(level.value * grown, level.error * grown)


def _serves(release: Release, times: float) -> bool:
    """Tell whether the table can be read with a kernel so many times as wide."""
    try:
        frame = release.plan.frame
        wide = Frame.of(frame.kernel.scaled(times), frame.domain, frame.dim)
        return release.plan.pair.strain(wide) <= 1
    except ParameterError:
        return False


def expected_rows_of(guess: int | None, plan: Plan) -> int | None:
    """Return how many records were expected: the caller's guess, or the one behind a plan."""
    return plan.expected_rows if guess is None else guess
