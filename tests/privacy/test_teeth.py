"""The audit of whole releases: every family, law and adjacency passes, every mutant fails.

What passes is audited at confidence 1 − 10⁻⁹: a correct release is refuted at most once in 10⁹
audits. Mutants are refuted at an error rate of 10⁻⁶. `TRIALS` are such that each is missed with a
chance below 10⁻⁶: next to each stands by how many standard deviations of its bound it exceeds ε.

By default one ε is tried for each family, law and adjacency, and the mutants at ε = 1; with
``DPKDE_AUDITS=full``, as in ``make audit``, each ε with ten times the trials, and every mutant.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpkde
from audits import hats, trials_for
from dpkde.curator.auditing.neighbours import places, worst
from dpkde.curator.auditing.repeated import Repeated, audited
from dpkde.families.base import Family
from dpkde.families.registry import FAMILIES
from dpkde.privacy.amounts import Bounds
from dpkde.privacy.audit import audit, likelihood_ratio
from dpkde.privacy.audit.mutants import LEAK, MUTANTS, Laws, right
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import NOISES, DiscreteLaplace, Law, draw

pytestmark = pytest.mark.audit

FULL = os.environ.get("DPKDE_AUDITS") == "full"
EPSILONS = ("0.1", "1", "4")
SURE, MUTANTS_DOUBT = 1 - 1e-9, 1 - 1e-6
CROWD = np.array([[0.0], [0.0], [1.0]])

KINDS: dict[str, tuple[Family, dpkde.Kernel]] = {
    "spline": (dpkde.Spline(1, 1.0), dpkde.Gaussian(1.0)),
    "cubic spline": (dpkde.Spline(3, 1.0), dpkde.Gaussian(1.0)),
    "fastgauss": (dpkde.FastGauss(3), dpkde.Gaussian(1.0)),
    "fourier": (dpkde.Fourier(1, form="pairs"), dpkde.Gaussian(1.0)),
    "fourier phases": (dpkde.Fourier(2, form="phase"), dpkde.Gaussian(1.0)),
    "hashing": (dpkde.Hashing(1, 16), dpkde.Hat(1.0)),
    "hashing signs": (dpkde.Hashing(4, 1), dpkde.Hat(1.0)),
}
ADJACENCIES = ("add-remove", "replace")


def _plan(kind: str) -> dpkde.Plan:
    family, kernel = KINDS[kind]
    return dpkde.plan(kernel=kernel, bounds=[(-2, 2)], epsilon=1, family=family, seed=1)


def _guarantee(law: type[Law], epsilon: str, adjacency: str) -> Guarantee:
    """Return a guarantee that the law can keep: ε, or ρ with about the same ε at δ = 10⁻³."""
    if law.paid_in == "epsilon":
        return Guarantee.declare(epsilon=epsilon, adjacency=adjacency)
    rho = Budget(Guarantee.declare(epsilon=epsilon, delta="0.001")).guarantee.rho_limit
    return Guarantee.declare(rho=rho, adjacency=adjacency)


def _neighbours(plan: dpkde.Plan, law: type[Law], adjacency: str) -> tuple[Any, Any]:
    records = worst(plan, law)
    if adjacency == "add-remove":
        return CROWD, np.concatenate([CROWD, records.largest])
    return np.concatenate([CROWD, records.one]), np.concatenate([CROWD, records.other])


def test_every_family_is_audited() -> None:
    assert {family.name for family, _ in KINDS.values()} == set(FAMILIES)


CASES = [
    pytest.param(kind, law, adjacency, epsilon, id=f"{kind}-{law}-{adjacency}-{epsilon}")
    for i, kind in enumerate(KINDS)
    for j, law in enumerate(NOISES)
    for k, adjacency in enumerate(ADJACENCIES)
    for m, epsilon in enumerate(EPSILONS)
    if FULL or (i + j + k) % 3 == m
]


@pytest.mark.parametrize(("kind", "law", "adjacency", "epsilon"), CASES)
def test_every_family_law_and_adjacency_passes(
    kind: str, law: str, adjacency: str, epsilon: str
) -> None:
    plan, chosen = _plan(kind), NOISES[law]
    guarantee = _guarantee(chosen, epsilon, adjacency)
    delta = 0.0 if guarantee.rho is None else 1e-3
    result = Repeated(plan, guarantee, chosen).audit(
        *_neighbours(plan, chosen, adjacency),
        trials=(40_000 if chosen.is_scalar else 20_000) if FULL else 4_000,
        confidence=SURE,
        delta=delta,
    )
    assert not result.refutes(float(epsilon))
    assert result.delta_lower(float(epsilon)) <= delta


# What the audit catches


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("epsilon", EPSILONS if FULL else ("1",))
def test_mutants_fail(name: str, epsilon: str) -> None:
    release, sides = hats(epsilon)
    trials = trials_for(name, epsilon)
    result = release.audit(*sides, trials=trials, confidence=MUTANTS_DOUBT, drawing=MUTANTS[name])
    assert result.refutes(float(epsilon)), f"{result}: {result.findings}"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_audit_sees_much_of_epsilon(epsilon: str) -> None:
    """It is not blind to what passes: of 40,000 outputs it saw 0.83 at ε = 1 and 3.6 at 4.

    At ε = 0.1 so few outputs tell next to nothing; of 300,000 it saw 0.06.
    """
    release, sides = hats(epsilon)
    if epsilon == "0.1" and not FULL:
        return
    trials = 300_000 if epsilon == "0.1" else 40_000
    result = release.audit(*sides, trials=trials, confidence=MUTANTS_DOUBT)
    assert not result.refutes(float(epsilon))
    assert result.epsilon_lower > {"0.1": 0.03, "1": 0.7, "4": 3.0}[epsilon]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("noise on an even lattice", "modulo 2 is"),
        ("noise on multiples of 3", "modulo 3 is"),
        ("the same noise on count and table", "by their covariance"),
        ("half of the noise", "likelihood ratio"),
    ],
)
def test_the_event_says_what_is_wrong(name: str, words: str) -> None:
    release, sides = hats("1")
    result = release.audit(*sides, trials=20_000, confidence=MUTANTS_DOUBT, drawing=MUTANTS[name])
    assert words in result.event, result.findings


def test_a_leak_is_a_bound_on_delta() -> None:
    """A leak of 2⁻¹⁰ takes a δ; the audit says how much of one at least, and no more than it is."""
    release, sides = hats("1")
    trials = trials_for("no noise once in a thousand", "1")
    leaking = partial(
        release.audit,
        *sides,
        trials=trials,
        confidence=MUTANTS_DOUBT,
        drawing=MUTANTS["no noise once in a thousand"],
    )
    result = leaking()
    leak = LEAK / 2**32
    assert 0.1 * leak < result.delta_lower(1.0) <= leak
    assert not leaking(delta=2 * leak).refutes(1.0)


# The parts


def test_bounds_hold_together_whatever_the_events() -> None:
    """Findings are true: probabilities of a law that is known lie within what is said of them.

    One in 10⁹ audits may fail.
    """
    law = DiscreteLaplace(Fraction(3))
    result = audit(lambda shift, n: shift + draw(law, n).reshape(-1, 1), 0, 4, trials=50_000)
    assert result.epsilon_lower <= 4 / 3
    for finding in result.findings:
        assert finding.likely <= 1
        assert finding.likely <= np.exp(4 / 3) * finding.unlikely
        assert finding.epsilon() <= 4 / 3


@pytest.mark.parametrize("law", NOISES)
def test_log_weights_are_those_of_the_law(law: str) -> None:
    """Logarithms of ratios to P(0), by frequencies of draws on two cells, where both came often.

    Each within 9 standard errors, of 0.1 at most: else a place of 41 or fewer expected draws comes
    100 times, which happens once in 10¹² over all places. Weights half as large, or twice, are seen
    where they are largest, below −2.
    """
    bounds = Bounds(2, 3, 9, 3, nonnegative=False)
    options = Budget(_guarantee(NOISES[law], "4", "add-remove")).options
    (amount,) = (amount for amount, other in options if other is NOISES[law])
    bought = NOISES[law].bought(amount, bounds)
    noise = right([(bought, 2)], 60_000)
    places, seen = np.unique(noise, axis=0, return_counts=True)
    (origin,) = np.flatnonzero((places == 0).all(axis=1))
    often = seen >= 100
    found = np.log(seen[often] / seen[origin])
    weight = bought.log_weight(places[often]) - bought.log_weight(np.zeros((1, 2), np.int64))
    assert (np.abs(found - weight) < 9 * np.sqrt(1 / seen[often] + 1 / seen[origin])).all()
    assert weight.min() < -2


@pytest.mark.parametrize("law", NOISES)
def test_scaled_laws_have_scaled_deviations(law: str) -> None:
    bought = Repeated(_plan("fourier"), _guarantee(NOISES[law], "1", "replace"), NOISES[law]).laws
    one = bought[-1][0]
    assert one.scaled(Fraction(3)).variance == pytest.approx(9 * one.variance, rel=1e-3)


def test_worst_neighbours_use_what_is_paid_for() -> None:
    """On hats a record on a node moves one cell by all; two cells, where it is replaced."""
    plan = _plan("spline")
    records = worst(plan, DiscreteLaplace)
    moves = [plan.pair.quantize(*plan.frame.place(each))[0] for each in records]
    assert np.abs(moves[0]).sum() == plan.pair.bounds.l1
    assert np.abs(moves[1] - moves[2]).sum() == 2 * plan.pair.bounds.l1
    assert (moves[0] % 2).any()


@pytest.mark.parametrize(
    ("kernel", "bounds", "dim"),
    [
        (dpkde.Gaussian(1.0), [(0, 5), (-1, 1), (3, 4)], 3),
        (dpkde.Gaussian(1.0), dpkde.Ball([1.0, 2.0], 3.0), 2),
        (dpkde.Gaussian(2.0), None, 2),
        (dpkde.Geodesic(), dpkde.Sphere(), 3),
        (dpkde.Jaccard(), dpkde.Sets(6), 6),
    ],
)
def test_candidates_lie_in_the_domain(kernel: dpkde.Kernel, bounds: Any, dim: int) -> None:
    family: Any = dpkde.Fourier(4) if kernel.home == "space" else "hashing"
    settings: dict[str, Any] = {"kernel": kernel, "bounds": bounds, "family": family}
    plan = dpkde.plan(**settings, dim=dim, epsilon=1, expected_rows=1000, seed=0)
    candidates = places(plan.frame, 50)
    assert candidates.shape == (50, dim)
    assert len(np.unique(candidates, axis=0)) > 20
    nearest = plan.frame.domain.nearest(candidates)
    if kernel.home == "space" and not isinstance(bounds, dpkde.Ball):
        assert np.allclose(nearest, candidates)
    assert np.isfinite(nearest).all()
    assert worst(plan, DiscreteLaplace, candidates[:5]).largest.shape == (1, dim)


def test_what_is_repeated_is_what_is_released() -> None:
    """The same spends as in a release of the plan, under every guarantee."""
    plan = _plan("spline")
    for guarantee in (
        {"epsilon": "0.7"},
        {"epsilon": "0.7", "adjacency": "replace"},
        {"rho": "0.1"},
        {"epsilon": "0.7", "delta": "1e-6"},
    ):
        release = dpkde.publish(dpkde.sketch(CROWD, plan), **guarantee)  # type: ignore[arg-type]
        repeated = Repeated(plan, Guarantee.declare(**guarantee))  # type: ignore[arg-type]
        assert repeated.spends == release.privacy.spends
        sums = repeated.sums(CROWD)
        assert len(sums) == sum(cells for _, cells in repeated.laws)
    with pytest.raises(dpkde.BudgetError, match="discrete-gaussian noise is not to be had"):
        Repeated(plan, Guarantee.declare(epsilon=1), NOISES["discrete-gaussian"]).spends  # noqa: B018


def test_likelihoods_need_all_sums() -> None:
    law = DiscreteLaplace(Fraction(3))
    with pytest.raises(dpkde.ParameterError, match="laws are of 3 cells"):
        likelihood_ratio([(law, 1), (law, 2)], [0, 0], [1, 1])


def test_laws_of_a_number_can_be_audited_alone() -> None:
    """A count by itself."""
    laws: Laws = [(DiscreteLaplace(Fraction(1)), 1)]
    sides = [np.array([5]), np.array([6])]
    run = partial(audited, laws, sides, trials=20_000, confidence=MUTANTS_DOUBT)
    assert not run().refutes(1.0)
    assert run(drawing=MUTANTS["noise on an even lattice"]).refutes(1.0)
