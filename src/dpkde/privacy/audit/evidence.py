"""What an audit is, what it returns, and why that holds.

If a mechanism is (ε, δ)-DP, then for every event E, P[M(X) ∈ E] ≤ e^ε P[M(X') ∈ E] + δ. So an event
that is much likelier on one side proves that ε is at least ln((p − δ)/p'), or, whatever ε is, that
δ is at least p − e^ε p'.

The audit draws many outputs on both sides. The first fifth of them, at most `CHOOSING`, only serves
to find telling events, one of each kind (`events`). On the others, which had no part in that, it
counts how often these happen, and bounds each of their probabilities by Clopper and Pearson's
interval. All those intervals share the error rate, so that they hold together with the stated
confidence, whatever the mechanism and however the events were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.audit import directions
from dpkde.privacy.audit.directions import Outputs, Statistic
from dpkde.privacy.audit.events import Event, half_line, points, residues
from dpkde.privacy.audit.intervals import clopper_pearson

Mechanism = Callable[[Any, int], NDArray[Any]]
"""``mechanism(data, trials)`` returns independent outputs, shape (trials,) or (trials, numbers).

Integers are looked at as such, residues and single values among them; floats only by their size
and as single values."""


CHOOSING = 1 << 16
"""More outputs than these are not spent on finding events."""


@dataclass(frozen=True)
class Finding:
    """An event, and what its frequencies prove.

    Attributes
    ----------
    event
        In words.
    likely
        On one side its probability is at least this.
    unlikely
        On the other it is at most this.
    """

    event: str
    likely: float
    unlikely: float

    def epsilon(self, delta: float = 0.0) -> float:
        """Return ln((p − δ)/p′), at least 0: no smaller ε is kept with that δ."""
        low = self.likely - delta
        return max(math.log(low / self.unlikely), 0.0) if low > 0 else 0.0

    def delta(self, epsilon: float) -> float:
        """Return p − e^ε·p′, at least 0: no smaller δ is kept with that ε."""
        return max(self.likely - math.exp(epsilon) * self.unlikely, 0.0)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    epsilon_lower
        The mechanism's true ε is at least this, with the stated confidence.
    confidence
        One minus the probability that `epsilon_lower`, or anything else in here, is too large.
    trials
        Outputs drawn on each side.
    findings
        The most telling event of each kind, the one behind `epsilon_lower` first.
    """

    epsilon_lower: float
    confidence: float
    trials: int
    findings: tuple[Finding, ...] = ()

    def refutes(self, epsilon: float) -> bool:
        """Tell whether a claim of ε, with the δ that was given, is proved wrong."""
        return self.epsilon_lower > epsilon

    def delta_lower(self, epsilon: float) -> float:
        """Return a lower bound on δ: no smaller one is kept with this ε."""
        return max((finding.delta(epsilon) for finding in self.findings), default=0.0)

    @property
    def event(self) -> str:
        """The event behind `epsilon_lower`, in words; empty where nothing was telling."""
        return self.findings[0].event if self.findings and self.epsilon_lower > 0 else ""

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
    statistics: Sequence[Statistic] = (),
) -> AuditResult:
    """Return an empirical lower bound on the ε of a mechanism, from two neighbouring data sets.

    Parameters
    ----------
    mechanism
        ``mechanism(data, trials)`` runs it so many times and returns the outputs as numbers; as
        integers where they are integers, since more can be seen then.
    left, right
        Neighbouring data sets, chosen to be telling.
    trials
        How many outputs on each side; a fifth of them, or fewer, choose the events.
    delta
        The δ that the mechanism claims.
    confidence
        Of the bound; the intervals of all probabilities share the error rate.
    statistics
        Other functions of outputs, from shape (trials, numbers) to (trials,), to be looked at like
        the audit's own, such as `dpkde.privacy.audit.likelihood_ratio`.

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
    if outputs[0].dtype != outputs[1].dtype:
        outputs = [each.astype(np.float64) for each in outputs]
    first = min(trials // 5, CHOOSING)
    finalists = list(telling_events(outputs[0][:first], outputs[1][:first], delta, statistics))
    rest = [each[first:] for each in outputs]
    confirm = partial(_confirmed, rest, doubt=(1 - confidence) / (2 * max(len(finalists), 1)))
    findings = sorted(map(confirm, finalists), key=lambda one: -one.epsilon(delta))
    best = findings[0].epsilon(delta) if findings else 0.0
    return AuditResult(best, confidence, trials, tuple(findings))


def _confirmed(outputs: list[Outputs], event: Event, *, doubt: float) -> Finding:
    """Return what an event proves, by outputs that had no part in finding it."""
    likely, unlikely = reversed(outputs) if event.swapped else outputs
    runs = len(likely)
    low = float(clopper_pearson(event.hits(likely), runs, doubt)[0])
    high = float(clopper_pearson(event.hits(unlikely), runs, doubt)[1])
    return Finding(event.name, low, high)


def _outputs(mechanism: Mechanism, data: Any, trials: int) -> Outputs:
    values = np.asarray(mechanism(data, trials))
    if values.dtype.kind not in "iub" or values.dtype == np.uint64:
        values = values.astype(np.float64)
    else:
        values = values.astype(np.int64)
    if values.shape[:1] != (trials,):
        raise ParameterError(
            f"mechanism(data, trials) has to return {trials} outputs, shape ({trials},) or "
            f"({trials}, numbers), and not the shape {values.shape}"
        )
    return values.reshape(trials, -1)


def telling_events(
    left: Outputs, right: Outputs, delta: float, statistics: Sequence[Statistic] = ()
) -> Iterator[Event]:
    """Yield the most telling event of each kind, by these outputs alone."""
    real = list(directions.real(left, right))
    whole = list(directions.whole(left, right))
    own = [_Named(statistic, number) for number, statistic in enumerate(statistics)]
    mixed = [directions.whole_print(left.shape[1])] if whole and left.shape[1] > 1 else []
    contests = (
        (half_line, real),
        (half_line, own),
        (residues, whole),
        (points, whole or [look for look in real if look.cells is not None]),
        (points, mixed),
    )
    for kind, looks in contests:
        found = (kind(look, look(left), look(right), delta) for look in looks)
        events = [event for event in found if event is not None]
        if events:
            yield max(events, key=lambda event: event.ratio)


class _Named:
    """A statistic of the caller's, with a name."""

    def __init__(self, statistic: Statistic, number: int) -> None:
        self.statistic = statistic
        self.name = getattr(statistic, "name", f"statistic {number}")

    def __call__(self, outputs: Outputs) -> NDArray[Any]:
        return np.asarray(self.statistic(outputs))
