"""The audit: our mechanisms pass, these mutants fail.

Every audit runs at confidence 1 − 10⁻⁹: a correct mechanism is refuted at most once in 10⁹ runs.
Numbers of trials are such that the named mutant is missed with probability below 10⁻⁶: with ε'
the mutant's own, p ≈ ½ and q ≈ p·e^{−ε'}, ln(p/q) is estimated with standard deviation
√(1/Np + 1/Nq), and ε' − ε is at least 6 + 4.8 of those.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import dpkde
from contracts.rigged import Noise, rigged, shrunk
from dpkde.curator.publish import Errand, publish_sketch
from dpkde.families.base import Family
from dpkde.privacy.audit import audit, clopper_pearson
from dpkde.privacy.concentrated import epsilon_of
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm, draw

pytestmark = pytest.mark.audit

EPSILON = 1.5
KERNEL = dpkde.Gaussian(1.0)
BOUNDS = [(-20.0, 20.0)]


def _plan(form: str = "phase", seed: int = 3) -> dpkde.Plan:
    return dpkde.plan(
        kernel=KERNEL,
        bounds=BOUNDS,
        epsilon=EPSILON,
        family=dpkde.Fourier(1, form=form),  # type: ignore[arg-type]
        seed=seed,
    )


def _farthest(plan: dpkde.Plan) -> tuple[float, float]:
    """The two records whose contributions differ most: cosines near +1 and −1."""
    grid = np.linspace(*BOUNDS[0], 20_001)[:, np.newaxis]
    values = plan.pair.quantize(*plan.frame.place(grid))[:, 0]
    return float(grid[values.argmax(), 0]), float(grid[values.argmin(), 0])


def _numbers(release: dpkde.Release) -> NDArray[np.int64]:
    return np.concatenate([[release.count], release.table])


def _published(
    plan: dpkde.Plan, noise: Noise = draw, **guarantee: Any
) -> Callable[[Any, int], NDArray[np.int64]]:
    """The whole road from a sketch on; sketches are exact, so one serves all trials."""

    def mechanism(data: list[float], trials: int) -> NDArray[np.int64]:
        sums = dpkde.sketch(np.array(data).reshape(-1, 1), plan)
        errands = (Errand(rigged(noise, **guarantee)) for _ in range(trials))
        return np.array([_numbers(publish_sketch(sums, errand)) for errand in errands])

    return mechanism


def _drawn(
    plan: dpkde.Plan, factor: Fraction = Fraction(1), **guarantee: Any
) -> Callable[[Any, int], NDArray[np.int64]]:
    """What `_published` returns under replace, in law, and sooner: all noise is drawn at once.

    One release tells the law of the noise; `factor` makes a mutant of it.
    """

    def mechanism(data: list[float], trials: int) -> NDArray[np.int64]:
        sketch = dpkde.sketch(np.array(data).reshape(-1, 1), plan)
        release = dpkde.publish(sketch, **guarantee, adjacency="replace")
        declared = release.law("table")
        assert declared is not None
        law, cells = declared.scaled(factor), plan.pair.bounds.cells
        if isinstance(law, MaxNorm):  # its cells are drawn together
            noise = np.array([draw(law, cells) for _ in range(trials)])
        else:
            noise = draw(law, trials * cells).reshape(trials, cells)
        return np.asarray(sketch._table + noise)

    return mechanism


def test_clopper_pearson_against_scipy() -> None:
    from scipy.stats import beta

    for hits, runs in ((0, 10), (1, 10), (10, 10), (500, 1000), (3, 20_000)):
        low, high = clopper_pearson(hits, runs, 1e-9)
        expected = 0.0 if hits == 0 else beta.ppf(1e-9, hits, runs - hits + 1)
        assert low == pytest.approx(expected, rel=1e-6, abs=1e-12)
        expected = 1.0 if hits == runs else beta.isf(1e-9, hits + 1, runs - hits)
        assert high == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    "guarantee",
    [
        {"epsilon": EPSILON},
        {"epsilon": EPSILON, "adjacency": "replace"},
        {"epsilon": EPSILON, "delta": 1e-3},
    ],
    ids=["add-remove", "replace", "delta"],
)
def test_publish_passes(guarantee: dict[str, Any]) -> None:
    plan = _plan()
    high, low = _farthest(plan)
    left = [high] * 3
    right = [high, high, low] if guarantee.get("adjacency") else [high] * 4
    result = audit(
        _published(plan, **guarantee),
        left,
        right,
        trials=12_000,
        delta=float(guarantee.get("delta", 0.0)),
    )
    assert not result.refutes(EPSILON)
    if guarantee == {"epsilon": EPSILON, "adjacency": "replace"}:
        # The audit is not blind: of so many of the same outputs its bound is 1.37 to 1.44.
        seen = audit(_drawn(plan, epsilon=EPSILON), left, right, trials=100_000)
        assert seen.epsilon_lower > 0.8 * EPSILON
        assert not seen.refutes(EPSILON)


def test_pairs_pass() -> None:
    plan = _plan("pairs")
    result = audit(_published(plan, epsilon=EPSILON), [], [0.0], trials=12_000)
    assert not result.refutes(EPSILON)


@pytest.mark.parametrize(
    ("family", "power"),
    [
        (dpkde.Spline(1, 1.0), 0.7),
        (dpkde.Spline(3, 1.0), 0.0),
        (dpkde.Spline(1, 99.0), 0.0),
        (dpkde.FastGauss(3), 0.0),
        (dpkde.Hashing(1, 16), 0.7),
        (dpkde.Hashing(4, 1), 0.0),
    ],
    ids=["hats", "cubic", "line", "fastgauss", "hashing", "signs"],
)
def test_tables_of_cells_pass(family: Family, power: float) -> None:
    """A record on a node of hat splines moves one cell by all it has: the audit sees much of ε.

    Of 60,000 outputs it saw 0.79 to 1.02 in fifty runs, where 0.525 is asked.
    """
    kernel = dpkde.Hat(1.0) if family.name == "hashing" else dpkde.Gaussian(1.0)
    plan = dpkde.plan(kernel=kernel, bounds=[(-2, 2)], epsilon=EPSILON, family=family, seed=1)
    mechanism = _drawn(plan, epsilon=EPSILON)
    # The whole road gives the same, cell by cell; with a scale half as large the largest
    # difference of the distributions is 0.125, seven of its standard deviations beyond the limit.
    whole = _published(plan, epsilon=EPSILON, adjacency="replace")([0.3], 4_000)[:, 1:]
    for one, other in zip(whole.T, mechanism([0.3], 30_000).T, strict=True):
        assert ks_2samp(one, other, method="asymp").pvalue > 1e-11
    for left, right in (([-1.0], [1.0]), ([-2.0, 0.0], [-2.0, 1.5]), ([0.0], [0.5])):
        telling = left == [-1.0]
        result = audit(mechanism, left, right, trials=60_000 if telling and power else 12_000)
        assert not result.refutes(EPSILON)
        if telling:
            assert result.epsilon_lower >= power * EPSILON / 2


def test_gaussian_passes_and_small_gaussian_fails() -> None:
    """ρ-zCDP implies (ε, δ); with a standard deviation 2 times too small it does not."""
    rho = Fraction(1, 2)
    law = DiscreteGaussian(1000**2 / (2 * rho))
    epsilon = float(epsilon_of(rho, Fraction(1, 1000)))

    def mechanism(scale: Fraction) -> Callable[[int, int], NDArray[np.float64]]:
        return lambda data, trials: (data + draw(law.scaled(scale), trials)).astype(np.float64)

    assert not audit(mechanism(Fraction(1)), 0, 1000, trials=400_000, delta=1e-3).refutes(epsilon)
    assert audit(mechanism(Fraction(1, 2)), 0, 1000, trials=400_000, delta=1e-3).refutes(epsilon)


def test_mutant_noise_ten_percent_too_small() -> None:
    plan = _plan()
    high, low = _farthest(plan)
    mutant = _drawn(plan, Fraction(9, 10), epsilon=EPSILON)
    assert audit(mutant, [high], [low], trials=80_000).refutes(EPSILON)
    assert not audit(_drawn(plan, epsilon=EPSILON), [high], [low], trials=80_000).refutes(EPSILON)


def test_mutant_count_not_noised() -> None:
    plan = _plan()

    def exact_count(law: Law, size: int) -> NDArray[np.int64]:
        return np.zeros(1, np.int64) if isinstance(law, DiscreteLaplace) else draw(law, size)

    mechanism = _published(plan, exact_count, epsilon=EPSILON)
    result = audit(mechanism, [0.0] * 3, [0.0] * 4, trials=3_000)
    assert result.refutes(EPSILON)


def test_mutant_sensitivity_too_small_by_root_two() -> None:
    plan = _plan()
    high, low = _farthest(plan)
    noise = shrunk(Fraction(70_711, 100_000))
    mechanism = _published(plan, noise, epsilon=EPSILON, adjacency="replace")
    assert audit(mechanism, [high], [low], trials=16_000).refutes(EPSILON)


def test_mutant_batch_dependent_contribution() -> None:
    """A record that is scaled by the largest of its batch moves all the others too."""
    plan = _plan("pairs")
    honest = _published(plan, epsilon=EPSILON)

    def mutant(data: list[float], trials: int) -> NDArray[np.int64]:
        largest = max(map(abs, data))
        return honest([value / largest for value in data], trials)

    crowd = [1.0] * 30
    assert audit(mutant, crowd, [*crowd, 19.0], trials=3_000).refutes(EPSILON)
    assert not audit(honest, crowd, [*crowd, 19.0], trials=3_000).refutes(EPSILON)


def test_mutant_seeded_noise() -> None:
    plan = _plan()
    high, low = _farthest(plan)

    def seeded(law: Law, size: int) -> NDArray[np.int64]:
        spread = np.random.default_rng(7).laplace(scale=float(law.scale), size=size)
        return np.rint(spread).astype(np.int64)

    mechanism = _published(plan, seeded, epsilon=EPSILON, adjacency="replace")
    assert audit(mechanism, [high], [low], trials=3_000).refutes(EPSILON)


def test_wrong_use() -> None:
    with pytest.raises(dpkde.ParameterError, match="trials"):
        audit(lambda data, n: np.zeros(n), 0, 1, trials=2)
    for output in (np.zeros(3), 0.0):
        with pytest.raises(dpkde.ParameterError, match="has to return 10 outputs"):
            audit(lambda data, n, output=output: output, 0, 1, trials=10)  # type: ignore[misc]
