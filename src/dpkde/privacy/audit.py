"""The audit: run a mechanism on neighbouring data sets, and bound its ε from below.

If a mechanism is (ε, δ)-DP, then for every event E, P[M(X) ∈ E] ≤ e^ε P[M(X') ∈ E] + δ. So an event
that is much likelier on one side proves that ε is at least ln((p − δ)/p'). The audit draws many
outputs on both sides, uses the first fifth to look for a telling event, and the rest to bound its
two probabilities with Clopper–Pearson intervals. The bound it returns exceeds the mechanism's
true ε with probability at most 1 − confidence, whatever the mechanism.

It can prove a mechanism wrong; that it finds nothing proves nothing. Its power rests on the choice
of the neighbours: give it the worst ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError

Mechanism = Callable[[Any, int], NDArray[Any]]
"""``mechanism(data, trials)`` returns independent outputs, shape (trials,) or (trials, numbers)."""

_DIRECTIONS = 16
_THRESHOLDS = 64
_LUCK = 0.00135  # beyond three standard deviations


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    epsilon_lower
        The mechanism's true ε is at least this, with the stated confidence.
    confidence
        One minus the probability that `epsilon_lower` is too large.
    trials
        Outputs drawn on each side.
    """

    epsilon_lower: float
    confidence: float
    trials: int

    def refutes(self, epsilon: float) -> bool:
        """Tell whether a claim of ε is proved wrong."""
        return self.epsilon_lower > epsilon

    def __str__(self) -> str:
        doubt = f"error rate {1 - self.confidence:.1e}"
        return f"ε ≥ {self.epsilon_lower:.3f} ({doubt}, {self.trials} trials on each side)"


def audit(
    mechanism: Mechanism,
    left: Any,
    right: Any,
    *,
    trials: int,
    delta: float = 0.0,
    confidence: float = 1 - 1e-9,
) -> AuditResult:
    """Return an empirical lower bound on the ε of a mechanism, from two neighbouring data sets.

    Parameters
    ----------
    mechanism
        ``mechanism(data, trials)`` runs it so many times and returns the outputs as numbers.
    left, right
        Neighbouring data sets, chosen to be telling.
    trials
        How many outputs on each side; a fifth of them choose the event.
    delta
        The δ that the mechanism claims.
    confidence
        Of the bound; the intervals of both probabilities share the error rate.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpkde.privacy.laws import DiscreteLaplace, draw
    >>> law = DiscreteLaplace(Fraction(2))  # ε = 1/2 for sums that move by 1
    >>> audit(lambda data, n: data + draw(law, n), 0, 1, trials=20_000).refutes(0.5)
    False
    """
    if trials < 8 or not 0 < confidence < 1 or not 0 <= delta < 1:
        raise ParameterError("an audit needs trials ≥ 8, 0 < confidence < 1 and 0 ≤ delta < 1")
    outputs = [_outputs(mechanism, data, trials) for data in (left, right)]
    first = trials // 5
    direction, threshold, swapped = _telling_event(outputs[0][:first], outputs[1][:first], delta)
    likely, unlikely = reversed(outputs) if swapped else outputs
    runs, doubt = trials - first, (1 - confidence) / 2
    often = int((likely[first:] @ direction >= threshold).sum())
    seldom = int((unlikely[first:] @ direction >= threshold).sum())
    low = float(clopper_pearson(often, runs, doubt)[0]) - delta
    high = float(clopper_pearson(seldom, runs, doubt)[1])
    return AuditResult(max(math.log(low / high), 0.0) if low > 0 else 0.0, confidence, trials)


def _outputs(mechanism: Mechanism, data: Any, trials: int) -> NDArray[np.float64]:
    values = np.asarray(mechanism(data, trials), dtype=np.float64)
    if values.shape[:1] != (trials,):
        raise ParameterError(
            f"mechanism(data, trials) has to return {trials} outputs, shape ({trials},) or "
            f"({trials}, numbers), and not the shape {values.shape}"
        )
    return values.reshape(trials, -1)


def _telling_event(
    left: NDArray[np.float64], right: NDArray[np.float64], delta: float
) -> tuple[NDArray[np.float64], float, bool]:
    """Return a direction, a threshold and a side: outputs beyond it in that direction tell most.

    Directions tried: the difference of the medians, and the coordinates that differ most. An event
    is judged by the bound that it would give, at three standard deviations: with four times the
    outputs these are the six that the bound itself will keep away, so that an event never seen on
    one side does not win by luck, and one that is certain on the other does win.
    """
    runs, highest = len(left), -math.inf
    for direction in _directions(left, right):
        a, b = np.sort(left @ direction), np.sort(right @ direction)
        cuts = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, _THRESHOLDS + 1)))
        above_a = runs - np.searchsorted(a, cuts, side="left")
        above_b = runs - np.searchsorted(b, cuts, side="left")
        for swapped, (p, q) in enumerate(((above_a, above_b), (above_b, above_a))):
            low = clopper_pearson(p, runs, _LUCK)[0] - delta
            high = clopper_pearson(q, runs, _LUCK)[1]
            ratio = low / high
            at = int(np.argmax(ratio))
            if ratio[at] > highest:
                highest, event = ratio[at], (direction, float(cuts[at]), bool(swapped))
    return event


def _directions(left: NDArray[np.float64], right: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    gap = np.median(left, axis=0) - np.median(right, axis=0)
    width = left.std(axis=0) + right.std(axis=0)
    direction = gap / np.where(width > 0, width, 1.0) ** 2
    telling = np.argsort(-np.abs(gap) / np.where(width > 0, width, 1e-300))[:_DIRECTIONS]
    vectors = [direction, *(np.eye(len(gap))[j] * (1 if gap[j] >= 0 else -1) for j in telling)]
    return [sign * vector for vector in vectors for sign in (1.0, -1.0)]


def clopper_pearson(
    hits: int | NDArray[np.int64], runs: int, doubt: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds on probabilities, each wrong with chance ≤ `doubt`.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.3983, 0.6017)
    """
    from scipy.stats import beta

    misses = runs - np.asarray(hits)
    low = np.where(np.equal(hits, 0), 0.0, beta.ppf(doubt, hits, misses + 1))
    high = np.where(np.equal(misses, 0), 1.0, beta.isf(doubt, np.add(hits, 1), misses))
    return low, high
