"""The audit of the prior mechanisms at ε = 1: they pass, those with too little noise fail.

Confidence is 1 − 10⁻⁹: a correct mechanism is refuted at most once in 10⁹ runs. Mutants have a
quarter of the noise. For Laplace noise ε' = 4: with 6,000 trials on each side, of which 4,800
count, ln(p/q) is estimated with standard deviation √(1/2,400 + 1/44) ≈ 0.15, and ε' − ε is 20 of
those.
For Gaussian noise at δ = 0.01 the event «above 2 standard deviations» has p ≈ 0.3 and q ≈ 0.02:
ln((p − δ)/q) ≈ 2.6 with standard deviation 0.1. 6 + 4.8 of them would do: a mutant is missed with a
chance below 10⁻⁶. Where the audit is asked to see some of the ε of a correct mechanism, what it
sees on average is 7 of its standard deviations more.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import Noise, rigged, shrunk
from dpkde.prior import (
    HRW,
    Bernstein,
    EvenTrig,
    GaussianAnswers,
    LaplaceAnswers,
    OurRelease,
)
from dpkde.prior.base import QueryMechanism
from dpkde.prior.placed import PlacedFamily
from dpkde.privacy.audit import audit
from dpkde.privacy.laws import Law, draw
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points
from remembered import Remembered

pytestmark = pytest.mark.audit

KERNEL = dpkde.Gaussian(1.0)
TRIALS = 6_000
DELTA = 1e-2


def _answers(
    mechanism: QueryMechanism, queries: list[float], noise: Noise = draw, **guarantee: Any
) -> Callable[[Any, int], NDArray[np.float64]]:
    places = np.array(queries)[:, np.newaxis]

    def run(data: list[float], trials: int) -> NDArray[np.float64]:
        frame = Frame.of(KERNEL, as_domain([(-4, 4)]), 1)
        private = Remembered(open_points(np.array(data).reshape(-1, 1)), frame, threads=1)
        rows = []
        for _ in range(trials):
            answered = mechanism.answer(private, places, rigged(noise, **guarantee))
            rows.append([answered.count, *answered.kernel_sums])
        return np.array(rows)

    return run


def _published(family: PlacedFamily, **guarantee: Any) -> Callable[[Any, int], NDArray[np.float64]]:
    plan = dpkde.plan(kernel=KERNEL, bounds=[(-1, 1)], epsilon=1, family=family)

    def run(data: list[float], trials: int) -> NDArray[np.float64]:
        sketch = dpkde.sketch(np.array(data).reshape(-1, 1), plan)
        releases = [dpkde.publish(sketch, **guarantee) for _ in range(trials)]
        return np.array([[r.count, *(r.table / 2.0**r.plan.bits)] for r in releases])

    return run


@pytest.mark.parametrize(
    ("family", "power"),
    [(Bernstein(1), 0.3), (EvenTrig(2), 0.05)],
    ids=["bernstein", "eventrig"],
)
def test_families_pass(family: PlacedFamily, power: float) -> None:
    adding = audit(_published(family, epsilon=1), [0.3], [0.3, 1.0], trials=TRIALS // 4)
    assert not adding.refutes(1)
    replacing = _published(family, epsilon=1, adjacency="replace")
    result = audit(replacing, [-1.0], [1.0], trials=TRIALS)
    assert not result.refutes(1)
    assert result.epsilon_lower >= power  # the audit is not blind


@pytest.mark.parametrize(
    ("mechanism", "guarantee", "power"),
    [
        (LaplaceAnswers(), {"epsilon": 1}, 0.4),
        (GaussianAnswers(), {"epsilon": 1, "delta": DELTA}, 0.0),
        (HRW(), {"epsilon": 1, "delta": DELTA}, 0.0),
    ],
    ids=["laplace", "gaussian", "hrw"],
)
def test_answers_pass(mechanism: QueryMechanism, guarantee: dict[str, Any], power: float) -> None:
    delta = guarantee.get("delta", 0.0)
    adding = _answers(mechanism, [0.0], **guarantee)
    result = audit(adding, [1.0], [1.0, 0.0], trials=TRIALS // 2, delta=delta)
    assert not result.refutes(1)
    replacing = _answers(mechanism, [0.0], **guarantee, adjacency="replace")
    result = audit(replacing, [4.0], [0.0], trials=TRIALS, delta=delta)
    assert not result.refutes(1)
    assert result.epsilon_lower >= power
    several = _answers(mechanism, [0.0, 0.1, 1.0], **guarantee)
    assert not audit(several, [], [0.05], trials=TRIALS // 4, delta=delta).refutes(1)


def test_our_release_passes() -> None:
    run = _answers_of_a_release()
    assert not audit(run, [4.0], [0.0], trials=500).refutes(1)


def _answers_of_a_release() -> Callable[[Any, int], NDArray[np.float64]]:
    def run(data: list[float], trials: int) -> NDArray[np.float64]:
        rows = []
        for _ in range(trials):
            answers = dpkde.prior.answer(
                np.array(data).reshape(-1, 1),
                [[0.0]],
                mechanism=OurRelease(dpkde.Spline(1, 1.0)),
                kernel=KERNEL,
                bounds=[(-4, 4)],
                epsilon=1,
                adjacency="replace",
                threads=1,
            )
            rows.append([answers.count, *answers.kernel_sums])
        return np.array(rows)

    return run


@pytest.mark.parametrize(
    ("mechanism", "guarantee"),
    [
        (LaplaceAnswers(), {"epsilon": 1}),
        (GaussianAnswers(), {"epsilon": 1, "delta": DELTA}),
    ],
    ids=["laplace", "gaussian"],
)
def test_mutants_with_a_quarter_of_the_noise_are_refuted(
    mechanism: QueryMechanism, guarantee: dict[str, Any]
) -> None:
    quarter = shrunk(Fraction(1, 4))
    run = _answers(mechanism, [0.0], quarter, **guarantee, adjacency="replace")
    result = audit(run, [4.0], [0.0], trials=TRIALS, delta=guarantee.get("delta", 0.0))
    assert result.refutes(1)


def test_mutant_of_hrw_without_noise_on_later_queries() -> None:
    """Noise on the first coordinate only: a second query far away is then answered exactly."""

    def first_only(law: Law, size: int) -> NDArray[np.int64]:
        noise = draw(law, size)
        noise[1:] = 0
        return noise

    run = _answers(HRW(), [0.0, 3.5], first_only, epsilon=1, delta=DELTA, adjacency="replace")
    assert audit(run, [3.5], [-4.0], trials=3_000, delta=DELTA).refutes(1)
