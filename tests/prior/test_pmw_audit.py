"""Audits of multiplicative weights, in rounds and online, at confidence 1 − 10⁻⁹ and ε = 1."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import Rigged, shrunk
from dpkde.prior.base import Private, Sums
from dpkde.prior.interactive import InteractivePMW
from dpkde.prior.lattice import LATTICE_BITS
from dpkde.prior.pmw import PMW
from dpkde.prior.universe import Universe
from dpkde.privacy.audit import audit
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Randomness


class Prepared(Private):
    """Points whose totals and sums at a few places are computed once, for many trials."""

    def kernel_sums(self, places: Any, bits: int = LATTICE_BITS) -> Sums:
        key = places.tobytes()
        if key not in self.memory:
            self.memory[key] = super().kernel_sums(places, bits)
        return self.memory[key]

    @cached_property
    def _totals(self) -> Sums:
        return super().totals()

    def totals(self) -> Sums:
        return self._totals

    @property
    def memory(self) -> dict[bytes, Sums]:
        return self.__dict__.setdefault("_memory", {})  # type: ignore[no-any-return]


def prepared(data: list[float]) -> Prepared:
    private = Private.open(np.array(data).reshape(-1, 1), dpkde.Gaussian(0.5), [(0.0, 4.0)])
    return Prepared(private.source, private.frame)


def outputs_of(release: Any) -> list[float]:
    return [float(release.count), *release.weights.tolist()]


def rounds_of(
    data: list[float], trials: int, randomness: Randomness | None = None, **guarantee: Any
) -> NDArray[Any]:
    private, promised = prepared(data), Guarantee.declare(**guarantee)
    mechanism = PMW(rounds=2, points_per_axis=2)
    budgets = (Budget(promised, randomness) for _ in range(trials))
    return np.array([outputs_of(mechanism.synthesise(private, None, b)) for b in budgets])


def answers_of(
    data: list[float], trials: int, randomness: Randomness | None = None, **guarantee: Any
) -> NDArray[Any]:
    private, promised = prepared(data), Guarantee.declare(**guarantee)
    universe = Universe.over(private.frame, points_per_axis=2)
    outputs = []
    for _ in range(trials):
        curator = InteractivePMW(
            private,
            universe,
            Budget(promised, randomness),
            updates=1,
            tolerance=0.5,
            expected_queries=3,
        )
        answers = [-1.0] * 3
        try:
            for i, place in enumerate(([1.0], [1.0], [1.0])):
                answers[i] = float(curator.ask([place])[0])
        except dpkde.BudgetError:
            pass
        outputs.append([float(curator.count), *answers])
    return np.array(outputs)


NEIGHBOURS = [
    ([1.0], [3.0], {"adjacency": "replace"}),
    ([1.0, 1.0], [1.0, 1.0, 1.0], {}),
]


@pytest.mark.audit
@pytest.mark.parametrize(("left", "right", "kind"), NEIGHBOURS, ids=["replace", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-3], ids=["pure", "delta"])
def test_audit_of_rounds(left: Any, right: Any, kind: Any, delta: float) -> None:
    def mechanism(data: list[float], trials: int) -> NDArray[Any]:
        return rounds_of(data, trials, epsilon=1, delta=delta, **kind)

    assert not audit(mechanism, left, right, trials=2_500, delta=delta).refutes(1)


@pytest.mark.audit
def test_audit_refutes_measurements_with_too_little_noise() -> None:
    """Noise sixteen times too small: replacing the only record shows."""
    short = Rigged(shrunk(Fraction(1, 16)))

    def mechanism(data: list[float], trials: int) -> NDArray[Any]:
        return rounds_of(data, trials, short, epsilon=1, adjacency="replace")

    assert audit(mechanism, [1.0], [3.0], trials=2_500).refutes(1)


@pytest.mark.audit
@pytest.mark.parametrize(("left", "right", "kind"), NEIGHBOURS, ids=["replace", "add-remove"])
def test_audit_of_a_session(left: Any, right: Any, kind: Any) -> None:
    def mechanism(data: list[float], trials: int) -> NDArray[Any]:
        return answers_of(data, trials, epsilon=1, **kind)

    assert not audit(mechanism, left, right, trials=2_500).refutes(1)


@pytest.mark.audit
def test_audit_refutes_a_threshold_without_noise() -> None:
    class Quiet:
        def __init__(self, law: object) -> None:
            pass

        def passed(self, value: int, threshold: int) -> bool:
            return value >= threshold

    def mechanism(data: list[float], trials: int) -> NDArray[Any]:
        quiet = Rigged(check=Quiet)
        return answers_of(data, trials, quiet, epsilon=1, adjacency="replace")

    left, right = [1.0, 1.0, 1.0], [1.0, 1.0, 3.0]  # apart by more, or less, than the tolerance
    assert audit(mechanism, left, right, trials=4_000).refutes(1)
