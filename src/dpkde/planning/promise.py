"""The paper's (α, η) guarantee, with constants.

At any one query the error exceeds α with probability at most η, whatever the records. Let
ñ = n + Z be the noisy count and s̃ the noisy sum at a query, N the table's noise in it. With δ the
family's own error of a KDE value p, s̃ = n(p + δ) + N, so that

    s̃/ñ − p = (nδ + N − pZ)/ñ.

Given Z, whatever was chosen from ñ, δ and N are independent with laws known beforehand. With
|Z| ≤ m but for a part of η, n ≤ ñ + m and

    |error| ≤ ((ñ + m)·bias + t + m)/ñ,

where t bounds the random part of (ñ + m)δ + N but for the rest of η (`tails.deviation`). A kernel
with a constant part c has |p − c| in place of p. Clipping to [0, 1] brings answers nearer.

**Simultaneously.** Queries inside the bounds are first moved to the nearest point of a grid, of
pitch h bandwidths. Its N points share what is left of η, and moving costs L·h√d/2, L the kernel's
Lipschitz constant. So every query of the domain, chosen in whatever way from earlier answers, is
within α but for η.

**Subsampling.** Where fewer records do, each enters with probability q, by a coin of its own, and
sums are divided by q. That adds Σ(B_x/q − 1)k(x, y), a sum of n independent terms of variance at
most 1/q − 1 and size at most 1/q, and divides the noise by q. What δ multiplies is then the number
of sampled records over q, which exceeds n by little: `_swollen`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import FormatError, ParameterError
from dpkde.families.base import Worst
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real
from dpkde.privacy.laws import Law
from dpkde.privacy.laws.tails import bounded, deviation
from dpkde.space.domain import Box
from dpkde.space.frame import Frame

COUNT_SHARE = 1 / 4
"""The part of η that goes to the noisy count."""
SAMPLE_SHARE = 1 / 16
"""The part of η that goes to the number of sampled records."""
MOVED = 1 / 8
"""The part of α that moving queries to a grid may cost."""


@dataclass(frozen=True)
class Promise:
    """α and η, for any one query or, on a grid of some pitch, for all of them at once.

    Attributes
    ----------
    alpha
        The error of a KDE value.
    eta
        The probability of a larger one.
    pitch
        Of the grid that queries are moved to, in bandwidths; None: for one query at a time.
    """

    alpha: float
    eta: float
    pitch: float | None = None

    def __str__(self) -> str:
        which = "at any one query" if self.pitch is None else "at all queries in the bounds at once"
        return (
            f"{which}, the error of a KDE value exceeds {self.alpha:.4g} with probability at most "
            f"{self.eta:.4g}"
        )


def promise(
    alpha: float | None, eta: float | None, simultaneous: bool, frame: Frame | None = None
) -> Promise | None:
    """Check what a caller typed; None where nothing is asked for."""
    if alpha is None and eta is None:
        if simultaneous:
            raise ParameterError("simultaneous goes with alpha and eta")
        return None
    if alpha is None or eta is None:
        raise ParameterError("alpha and eta go together: an error, and how often it is exceeded")
    for name, value in (("alpha", alpha), ("eta", eta)):
        if not is_real(value) or not 1e-9 <= value < 1:
            raise ParameterError(f"{name} must be from 1e-9 to below 1, got {value!r}")
    if not isinstance(simultaneous, bool):
        raise ParameterError(f"simultaneous must be True or False, got {simultaneous!r}")
    pitch = grid_pitch(frame, MOVED * alpha) if simultaneous and frame is not None else None
    return Promise(float(alpha), float(eta), pitch)


def promise_from_json(entry: Any, frame: Frame) -> Promise | None:
    """Rebuild a promise from what a file says of it; FormatError where it makes no sense."""
    if entry is None:
        return None
    try:
        alpha, eta, pitch = (entry[key] for key in ("alpha", "eta", "pitch"))
    except (LookupError, TypeError):
        raise FormatError("the promise in this file is damaged") from None
    least = 0.0 if frame.kernel.home == "sets" else 1e-12
    for value, low, high in (
        (alpha, 1e-9, 1.0),
        (eta, 1e-9, 1.0),
        (1.0 if pitch is None else pitch, least, 1e9),
    ):
        if type(value) not in (int, float) or not low <= value <= high:
            raise FormatError("the promise in this file is damaged")
    if pitch is None:
        return Promise(float(alpha), float(eta))
    if frame.kernel.home == "space" and frame.domain.halves(frame.dim) is None:
        raise FormatError("the promise in this file needs bounds, and it has none")
    return Promise(float(alpha), float(eta), float(pitch))


def grid_pitch(frame: Frame, cost: float) -> float:
    """Return the pitch of a grid on which moving a query costs at most `cost`; 0 for sets.

    In space a query moves by h√d/2, and so does a direction of length 1.
    """
    if frame.kernel.home == "sets":
        return 0.0
    rate = moving_cost(frame, 1.0)
    if not math.isfinite(rate):
        raise ParameterError(
            f"simultaneous needs a kernel with a Lipschitz constant, and none is known of this "
            f"{frame.kernel.name} kernel"
        )
    if frame.kernel.home == "space" and frame.halves() is None:
        raise ParameterError("simultaneous needs bounds: all queries inside them are meant")
    return cost / rate


def _steps(frame: Frame, pitch: float) -> NDArray[np.float64]:
    """Return the pitch along each axis of space, in the data's units."""
    bandwidth = frame.kernel.bandwidth
    scale = bandwidth.smallest() if bandwidth.is_matrix else np.array(bandwidth.value)
    return np.asarray(pitch * scale * np.ones(frame.dim))


def to_grid(frame: Frame, queries: Points, pitch: float | None) -> Points:
    """Return queries moved to the nearest place of the grid; from inside a box never out of it."""
    if not pitch or frame.kernel.home == "sets":
        return queries
    if frame.kernel.home == "sphere":
        directions = frame.locate(queries)
        moved = np.clip(np.rint(directions / pitch) * pitch, -1.0, 1.0)
        return np.where((moved != 0).any(axis=1, keepdims=True), moved, queries)
    steps, center = _steps(frame, pitch), frame.domain.origin(frame.dim)
    low, high = _walls(frame)
    with np.errstate(all="ignore"):
        moved = center + np.rint((queries - center) / steps) * steps
    inside = (queries >= low) & (queries <= high)
    return np.asarray(np.where(inside, np.clip(moved, low, high), moved))


def _walls(frame: Frame) -> NDArray[np.float64]:
    """Return the lowest and highest corner of the box around a bounded domain."""
    if isinstance(frame.domain, Box):
        return frame.domain.corners
    halves, center = frame.domain.halves(frame.dim), frame.domain.origin(frame.dim)
    assert halves is not None  # `grid_pitch` and `promise_from_json` ask for bounds
    return np.array([center - halves, center + halves])


def log_grid_size(frame: Frame, pitch: float | None) -> float:
    """Return ln N, the number of places that queries inside the bounds are moved to."""
    if pitch is None:
        return 0.0
    if frame.kernel.home == "sets":
        return frame.dim * math.log(2)
    widths = np.full(frame.dim, 2 / pitch)
    if frame.kernel.home == "space":
        halves = frame.domain.halves(frame.dim)
        assert halves is not None
        widths = 2 * halves / _steps(frame, pitch)
    return float(np.log(widths + 2).sum())


def moving_cost(frame: Frame, pitch: float | None) -> float:
    """Return what moving queries to the grid costs at most."""
    if not pitch:
        return 0.0
    return frame.kernel.lipschitz(frame.dim) * pitch * math.sqrt(frame.dim) / 2


@dataclass(frozen=True)
class Setting:
    """All that a bound depends on, apart from the family: public numbers.

    Attributes
    ----------
    count
        The noisy count, or the public one.
    count_law
        Of its noise; None where it is public.
    rate
        The probability with which a record enters the table.
    constant
        The kernel's constant part, which comes from the count.
    """

    count: float
    count_law: Law | None = None
    rate: float = 1.0
    constant: float = 0.0


def error_bound(
    worst: Worst, law: Law, setting: Setting, eta: float, frame: Frame, pitch: float | None = None
) -> float:
    """Return α: the error exceeds it with probability at most η; at most 1."""
    spent = COUNT_SHARE if setting.count_law is not None else 0.0
    spent += law.set_aside
    spent += SAMPLE_SHARE if setting.rate < 1 else 0.0
    margin = 0 if setting.count_law is None else setting.count_law.margin(eta * COUNT_SHARE)
    rows, rate = setting.count + margin, setting.rate
    swollen = rows * _swollen(rows * rate, eta * SAMPLE_SHARE) if rate < 1 else rows
    log_odds = math.log(2 / (eta * (1 - spent))) + log_grid_size(frame, pitch)
    parts = [
        law.tail(worst.gain / rate, worst.peak / rate, eta),
        bounded(worst.variance * swollen**2, worst.reach * swollen),
    ]
    if rate < 1:
        parts.append(bounded(rows * (1 / rate - 1), 1 / rate))
    random = deviation(parts, log_odds)
    counted = max(setting.constant, 1 - setting.constant) * margin
    total = (swollen * worst.bias + random + counted) / setting.count
    return float(min(1.0, total + moving_cost(frame, pitch)))


def _swollen(sampled: float, failure: float) -> float:
    """Return c with P(number of sampled records > c·(its mean)) ≤ failure: Chernoff's bound.

    e^{−μx²/3} for excesses x up to 1, e^{−μx/3} beyond.
    """
    x = 3 * math.log(1 / failure) / max(sampled, 1e-9)
    return 1 + max(math.sqrt(x), x)
