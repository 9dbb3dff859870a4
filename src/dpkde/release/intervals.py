"""How far answers can be from the truth: a bound for all queries, and an interval for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.families.base import NO_WORST, Worst
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_real
from dpkde.planning import promise as accuracy
from dpkde.privacy.laws.quantiles import half_widths
from dpkde.release.answers import answer, deviation
from dpkde.release.assistance import Assistance, assistance
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

Floats = NDArray[np.float64]

DOUBT = 3.0
"""How many standard deviations of an estimated variance it is raised by."""
BIAS = 2.0
"""How many times its typical size a bias is taken to be at most."""
_NUMBERS = 1 << 21
"""Most weights held at a time."""


def error_bound(release: Answering, eta: float) -> float:
    """Return α for η, from the release's plan, laws and count; see `dpkde.planning.promise`."""
    if not is_real(eta) or not 1e-9 <= eta < 1:
        raise ParameterError(f"eta must be from 1e-9 to below 1, got {eta!r}")
    plan, law, worst = release.plan, release.law("table"), _worst(release)
    if worst is None:
        raise ParameterError(NO_WORST.format(plan.family.name))
    assert law is not None
    setting = accuracy.Setting(
        release.count, release.law("count"), float(release.rate), plan.pair.constant
    )
    pitch = release.promise.pitch if release.promise is not None else None
    return accuracy.error_bound(worst, law, setting, float(eta), plan.frame, pitch)


def interval(
    release: Answering,
    queries: QueriesLike,
    level: float,
    bias: str | None,
    assisted: bool | None = None,
) -> tuple[Floats, Floats]:
    """Return the ends of an interval for the KDE at each query, within [0, 1]."""
    if not is_real(level) or not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, got {level!r}")
    if bias is None:
        bias = "typical" if release.promise is None else "worst"
    if bias not in ("typical", "worst"):
        raise ParameterError(f"bias must be 'typical' or 'worst', got {bias!r}")
    if bias == "worst" and _worst(release) is None:
        raise ParameterError(NO_WORST.format(release.family.name))
    level, helper = float(level), assistance(release, assisted)
    sight = _Sight(release, helper, bias)
    middle, width = answer(release, queries, lambda rows: _reach(sight, rows, level), (2,))
    pitch = release.promise.pitch if release.promise is not None else None
    width += accuracy.moving_cost(release.plan.frame, pitch)
    return np.clip(middle - width, 0.0, 1.0), np.clip(middle + width, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Sight:
    """What an interval is built about: plain sums, or the unbiased ones of a model."""

    release: Answering
    helper: Assistance | None
    bias: str

    @property
    def rows(self) -> float:
        """How many records are in the table."""
        return float(self.release.rate) * self.release.count

    @cached_property
    def table(self) -> Floats:
        """What repetitions differ in: the table, or what a model leaves of it."""
        helper = self.helper
        return self.release.table.astype(np.float64) if helper is None else helper.residual

    def sums(self, chunk: Points) -> Floats:
        """Return unbiased sums over the records in the table, without the constant part."""
        if self.helper is None:
            return self.release.plan.pair.respond(chunk, self.table)
        return self.helper.look(chunk).unbiased * self.rows


def _reach(sight: _Sight, chunk: Points, level: float) -> Floats:
    """Return the middles of the intervals at a few queries, and half their lengths.

    The error of a KDE value p is (N + nδ − (p − c)Z)/ñ: see `dpkde.planning.promise`. p is not
    known, so the interval's own upper end stands for it: once to find that, once more to be sure.
    """
    release, pair = sight.release, sight.release.plan.pair
    if not len(chunk):
        return np.empty((2, 0))
    most = max(1, _NUMBERS // pair.weights(chunk[:1]).numbers)
    if len(chunk) > most:
        parts = (chunk[start : start + most] for start in range(0, len(chunk), most))
        return np.concatenate([_reach(sight, part, level) for part in parts], axis=1)
    law, rate, rows = release.law("table"), float(release.rate), sight.rows
    assert law is not None
    sums, weights = sight.sums(chunk), pair.weights(chunk).split()
    own, offset = _own_error(sight, chunk, sums)
    part = np.abs(np.clip(sums / rows, -pair.constant, 1 - pair.constant))
    for _ in range(2):
        width = offset + half_widths(
            law,
            weights,
            level,
            count_law=release.law("count"),
            count_weights=part * rate,
            normal=own,
        )
        part = np.minimum(np.abs(sums / rows) + width / rows, max(pair.constant, 1 - pair.constant))
    return np.stack([sums / rows + pair.constant, width / rows])


def _worst(release: Answering) -> Worst | None:
    return release.plan.layout.worst(release.plan.bits)


def _own_error(sight: _Sight, chunk: Points, sums: Floats) -> tuple[Floats, Floats]:
    """Return the variance and the bias that the family and sampling add to sums, generously."""
    release, rows, rate = sight.release, sight.rows, float(sight.release.rate)
    pair = release.plan.pair
    noise = deviation(release, "table") ** 2 * pair.response_norm(chunk) ** 2
    worst = _worst(release)
    own = pair.own_variance(chunk, sight.table, noise)
    offset = np.full(len(chunk), 0.0 if worst is None else worst.bias * rows)
    if pair.draws:
        # What repetitions show of their variance is itself uncertain: noise has heavy tails.
        own = own + DOUBT * math.sqrt(5 / pair.draws) * (own + noise)
        if worst is not None and sight.helper is None:
            own = np.fmin(own, worst.variance * rows**2)
    else:
        if sight.bias == "typical":
            offset = BIAS * np.sqrt(own) if worst is None else np.fmin(BIAS * np.sqrt(own), offset)
        own = np.zeros(len(chunk))
    if rate < 1:
        own = own + np.maximum(sums, 0.0) * (1 - rate)
    return own, offset
