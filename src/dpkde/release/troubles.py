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
                   (but for 10⁻⁷ for each share that is read) and the bias of the family
                   (`dpkde.release.heaps`). For tables of splines and of the fast Gauss
                   transform, in boxes that clip, and kernels without long tails
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
from dpkde.planning import outlook
from dpkde.planning.plan import Plan
from dpkde.privacy.laws import Law
from dpkde.privacy.numbers import plain
from dpkde.release.answers import deviation
from dpkde.release.classifier import typical
from dpkde.release.heaps import heap, tells_heaps
from dpkde.release.parts import ExpectedRows
from dpkde.release.quadratic import Side
from dpkde.space.domain import Box
from dpkde.space.frame import Frame

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
SURE = 3.0
"""Standard errors from zero at which a typical answer is one."""
NOISY, SHOWN = 1 / 4, 1 / 8
"""From which e/q on a wider kernel is looked for, and what it has to have at most."""
MOST_EPSILON = Fraction(10)
STATED = Fraction(1, 10**6)
"""The δ at which a declared ρ is told as ε."""
_PLACES = 64
_CHECK = (
    "before another release, dpkde check (for the curator alone) tells what becomes of the rows"
)


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
        number = "1 record" if release.count == 1 else f"{release.count:,} records"
        yield Trouble(
            "few-records",
            f"about {number}, give or take {spread:,.1f}: this release says next to nothing",
            "rows count only where every column is a finite number (see columns=, thousands=, "
            "decimal=), and records of text only with as many fields as the header has (see "
            f"delimiter=){unit}; {_CHECK}",
        )


def _fewer(release: Release) -> Iterator[Trouble]:
    expected = release.parts.of(ExpectedRows)
    if expected is not None:
        yield Trouble(
            "fewer",
            f"about {release.count:,} records, and {expected.rows:,} were expected",
            "rows count only where every column is a finite number, inside the bounds if those "
            f"outside are dropped; {_CHECK}",
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
    if not tells_heaps(release):
        return
    faces: list[str] = []
    for axis in range(release.dim):
        for side, word in enumerate(("lower", "upper")):
            share = heap(release, axis, side)
            if share is not None:
                name = f"column {axis}" if release.columns is None else release.columns[axis]
                faces.append(f"about {share:.0%} at the {word} bound of {name}")
    if faces:
        yield Trouble(
            "at-bounds",
            f"many records lie at the bounds or were moved there: {', '.join(faces)}",
            "if that is not where they are, publish with wider bounds, or drop what is outside",
        )


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
