"""Events that may be telling: sets of values of a direction, found on outputs set apart for it.

============  ====================================================================================
half-line     values from a cut on: too little noise, a wrong sensitivity, no noise
residues      some residues modulo m: noise on a lattice coarser than the integers
points        single values, or a few of them: values without noise, however seldom
============  ====================================================================================

Events compete by the bound on ε that each would give, at three standard deviations: with four
times the outputs these are the six that the bound itself keeps away, so that an event never seen
on one side does not win by luck, and one that is certain on the other does win. Many are compared,
so these bounds are rough ones (`_cautious`): they choose, and prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.privacy.audit.directions import Outputs, Statistic

CUTS = 64
MODULI = (2, 3, 4, 5, 7, 8, 10, 16, 32, 64, 100, 128, 256, 512, 1000, 1024)
MOST_POINTS = 64
LEAST_SEEN = 3
"""Points that came less often are passed over."""
_DEVIATIONS = 3.0

Values = NDArray[Any]


@dataclass(frozen=True)
class Event:
    """A set of outputs; with what it would tell, by the outputs it was found on.

    Attributes
    ----------
    name
        In words.
    statistic, holds
        It happens where ``holds(statistic(outputs))``.
    swapped
        Whether it is the right side on which it is likely.
    ratio
        (p − δ)/q, cautiously.
    """

    name: str
    statistic: Statistic
    holds: Callable[[Values], NDArray[np.bool_]]
    swapped: bool
    ratio: float

    def hits(self, outputs: Outputs) -> int:
        """Return in how many outputs it happens."""
        return int(self.holds(self.statistic(outputs)).sum())


Kind = Callable[[Any, Values, Values, float], Event | None]
"""Finds the most telling event of a kind: of a direction, its values on both sides, and δ."""


def half_line(direction: Any, left: Values, right: Values, delta: float) -> Event | None:
    """Return the most telling half-line: cuts at quantiles, and far out in both tails."""
    a, b = np.sort(left), np.sort(right)
    both = np.concatenate([a, b])
    tails = 1 << np.arange(len(a).bit_length())
    orders = np.concatenate([each for s in (a, b) for each in (s[tails - 1], s[-tails])])
    spread = np.quantile(both, np.linspace(0, 1, CUTS + 1), method="nearest")
    cuts = np.unique(np.concatenate([spread, orders]))
    best: Event | None = None
    for upwards in (True, False):
        if upwards:
            p, q = (len(s) - np.searchsorted(s, cuts, side="left") for s in (a, b))
        else:
            p, q = (np.searchsorted(s, cuts, side="right") for s in (a, b))
        at, swapped, ratio = _most_telling(p, q, len(a), delta)
        if best is None or ratio > best.ratio:
            cut, sign = cuts[at], "≥" if upwards else "≤"
            holds = _at_least(cut) if upwards else _at_most(cut)
            best = Event(f"{direction.name} {sign} {cut:.6g}", direction, holds, swapped, ratio)
    return best


def residues(direction: Any, left: Values, right: Values, delta: float) -> Event | None:
    """Return the most telling set of residues, modulo small numbers and what the noise shows.

    The values of one side, less one of them, may all be multiples of some number: of the step of
    the lattice that its noise is on.
    """
    best: Event | None = None
    steps = {int(np.gcd.reduce(side - side[0])) for side in (left, right)}
    for modulus in sorted({*MODULI, *(step for step in steps if 1 < step < 1 << 62)}):
        parts, where = np.unique(np.concatenate([left, right]) % modulus, return_inverse=True)
        if len(parts) > max(len(left) // LEAST_SEEN, 2):
            continue
        a = np.bincount(where[: len(left)], minlength=len(parts))
        b = np.bincount(where[len(left) :], minlength=len(parts))
        chosen = _union(a, b, len(left), delta, len(parts))
        if chosen is not None and (best is None or chosen[2] > best.ratio):
            which, swapped, ratio = chosen
            name = f"{direction.name} modulo {modulus} is {_listed(parts[which])}"
            best = Event(name, direction, _residue(parts[which], modulus), swapped, ratio)
    return best


def points(direction: Any, left: Values, right: Values, delta: float) -> Event | None:
    """Return the most telling set of values, each of which came several times."""
    values, where = np.unique(np.concatenate([left, right]), return_inverse=True)
    a = np.bincount(where[: len(left)], minlength=len(values))
    b = np.bincount(where[len(left) :], minlength=len(values))
    often = np.flatnonzero(np.maximum(a, b) >= LEAST_SEEN)
    if not len(often):
        return None
    values, a, b = values[often], a[often], b[often]
    chosen = _union(a, b, len(left), delta, MOST_POINTS)
    if chosen is None:
        return None
    which, swapped, ratio = chosen
    name = f"{direction.name} is {_listed(values[which])}"
    return Event(name, direction, _among(values[which]), swapped, ratio)


def _union(
    a: NDArray[np.int64], b: NDArray[np.int64], runs: int, delta: float, most: int
) -> tuple[NDArray[np.intp], bool, float] | None:
    """Return the union of values that tells most: those of the largest ratios, either way."""
    best: tuple[NDArray[np.intp], bool, float] | None = None
    for swapped, (p, q) in enumerate(((a, b), (b, a))):
        low, high = _cautious(p, runs)[0], _cautious(q, runs)[1]
        order = np.argsort(-low / high, kind="stable")[:most]
        at, _, ratio = _most_telling(
            np.cumsum(p[order]), np.cumsum(q[order]), runs, delta, one_way=True
        )
        if best is None or ratio > best[2]:
            best = order[: at + 1], bool(swapped), ratio
    return best


def _most_telling(
    a: NDArray[np.int64], b: NDArray[np.int64], runs: int, delta: float, one_way: bool = False
) -> tuple[int, bool, float]:
    """Return which pair of counts tells most, on which side it is likely, and the ratio."""
    best = (0, False, -np.inf)
    for swapped, (p, q) in enumerate(((a, b),) if one_way else ((a, b), (b, a))):
        ratio = (_cautious(p, runs)[0] - delta) / _cautious(q, runs)[1]
        at = int(np.argmax(ratio))
        if ratio[at] > best[2]:
            best = at, bool(swapped), float(ratio[at])
    return best


def _cautious(
    hits: NDArray[np.int64], runs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return about three standard deviations less and more than the frequencies.

    The angle whose sine squared is a frequency has the standard deviation 1/(2√runs) everywhere.
    """
    step = _DEVIATIONS / (2 * runs**0.5)
    low, high = (np.arcsin(np.sqrt(np.minimum((hits + e) / runs, 1.0))) for e in (0, 1))
    return (
        np.sin(np.maximum(low - step, 0.0)) ** 2,
        np.sin(np.minimum(high + step, np.pi / 2)) ** 2,
    )


def _at_least(cut: Any) -> Callable[[Values], NDArray[np.bool_]]:
    return lambda values: values >= cut


def _at_most(cut: Any) -> Callable[[Values], NDArray[np.bool_]]:
    return lambda values: values <= cut


def _residue(which: Values, modulus: int) -> Callable[[Values], NDArray[np.bool_]]:
    return lambda values: np.isin(values % modulus, which)


def _among(which: Values) -> Callable[[Values], NDArray[np.bool_]]:
    return lambda values: np.isin(values, which)


def _listed(values: Values) -> str:
    """Return a few values in words; most of many are left out."""
    shown = ", ".join(f"{value}" for value in values[:4])
    return shown if len(values) <= 4 else f"{shown} or one of {len(values) - 4} others"
