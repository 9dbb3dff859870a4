"""Query release: integer sums, unbiased answers of the stated spread, statements, refusals.

Noise cannot be seeded. Means of N answers are compared at 7 standard errors. Spread is compared by
the mean size of the noise, to within 8/√N of itself: for Laplace noise that mean is Gamma(N)/N, for
normal noise its relative standard deviation is 0.76/√N. Covariances are compared at 7·√(2/N). Each
comparison raises a false alarm with probability below 10⁻⁹.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.kernels import Bandwidth, Kernel
from dpkde.prior import HRW, GaussianAnswers, LaplaceAnswers, OurRelease, Private, answer
from dpkde.prior.base import Answered, QueryMechanism
from dpkde.prior.hrw import HrwSession, Projections
from dpkde.privacy.amounts import Adjacency
from dpkde.privacy.budget import Budget, Guarantee, Spend
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points
from dpkde.testing import adversarial_rows
from remembered import Remembered

KERNEL = dpkde.Gaussian(1.0)
POINTS = np.array([[0.0], [0.5], [2.0]])
QUERIES = np.array([[0.0], [0.4]])
EXACT = KERNEL.evaluate(POINTS, QUERIES).sum(axis=0)
ALL: list[tuple[QueryMechanism, dict[str, Any]]] = [
    (LaplaceAnswers(), {"epsilon": 1}),
    (GaussianAnswers(), {"rho": "0.5"}),
    (HRW(), {"rho": "0.5"}),
    (OurRelease(dpkde.Spline(1, 1.0)), {"epsilon": 1}),
]
NAMES = [mechanism.name for mechanism, _ in ALL]


def _private(rows: Any, kernel: Kernel = KERNEL, bounds: Any = None, **more: Any) -> Private:
    source = open_points(np.asarray(rows, dtype=np.float64))
    return Private(source, Frame.of(kernel, as_domain(bounds), source.dim), **more)


def _many(
    mechanism: QueryMechanism, trials: int, guarantee: dict[str, Any]
) -> tuple[list[Answered], Budget]:
    """Answers by the whole road; exact sums, so that one computation serves all trials."""
    private = Remembered(open_points(POINTS), Frame.of(KERNEL, as_domain([(-3, 3)]), 1))
    answers = []
    for _ in range(trials):
        budget = Budget(Guarantee.declare(**guarantee))
        answers.append(mechanism.answer(private, QUERIES, budget))
    return answers, budget


@pytest.mark.parametrize("bits", [8, 22])
def test_kernel_sums_are_integers_of_one_record_each(bits: int) -> None:
    rows = adversarial_rows(2, np.random.default_rng(0))
    places = np.array([[0.0, 0.0], [1.0, -1.0], [1e300, 0.0]])
    total = np.zeros(3, dtype=np.int64)
    for row in rows:
        sums, records, counted = _private(row[np.newaxis]).kernel_sums(places, bits)
        assert (sums >= 0).all()
        assert (sums <= 2**bits).all()
        assert records == int(np.isfinite(row).all())
        assert counted == 1
        assert records or not sums.any()
        total += sums
    sums, _, counted = _private(rows).kernel_sums(places, bits)
    assert np.array_equal(sums, total)
    assert counted == len(rows)
    with np.errstate(all="ignore"):
        exact = KERNEL.evaluate(rows[:40], places)
    assert np.array_equal(
        _private(rows[:40]).kernel_sums(places, bits).sums, np.rint(exact * 2.0**bits).sum(axis=0)
    )


def test_the_batch_changes_no_bit() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 3))
    places = rows[:17]
    frame = Frame.of(KERNEL, as_domain([(-2, 2)] * 3))
    whole = Private(open_points(rows), frame).kernel_sums(places, 22)
    for step in (1, 7, 64):
        parts = [rows[i : i + step] for i in range(0, len(rows), step)]
        split = Private(open_points(parts), frame, threads=1).kernel_sums(places, 22)
        assert np.array_equal(split.sums, whole.sums)
        assert (split.records, split.rows) == (whole.records, whole.rows)


def test_bounds_clip_and_drop_records() -> None:
    rows, places = np.array([[5.0], [0.0]]), np.array([[1.0]])
    clipped = _private(rows, bounds=[(-1, 1)]).kernel_sums(places, 20)
    assert clipped.records == 2
    assert clipped.sums[0] == 2**20 + round(np.exp(-1.0) * 2**20)
    dropped = _private(rows, bounds=dpkde.Box([(-1, 1)], outside="drop"))
    totals = dropped.kernel_sums(places, 20)
    assert (totals.records, totals.rows) == (1, 2)


class Loud(dpkde.Kernel):
    """A kernel that warns, raises, or leaves [0, 1]."""

    name: ClassVar[str] = "loud"
    version: ClassVar[int] = 1
    bandwidth = Bandwidth.of(1.0)

    def __init__(self, how: str) -> None:
        self.how = how

    def evaluate(
        self, points: NDArray[np.float64], queries: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        warnings.warn(f"the secret is {points}", stacklevel=1)
        if self.how == "raises":
            raise RuntimeError(f"the secret is {points}")
        wild = {"high": 7.0, "low": -7.0, "nan": np.nan, "inf": np.inf}[self.how]
        return np.full((len(points), len(queries)), wild)

    def integral(self, dim: int) -> float:
        return 1.0

    def to_json(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("how", "value"), [("high", 1), ("low", 0), ("nan", 0), ("inf", 1), ("raises", 0)]
)
def test_a_wild_kernel_breaks_no_bound_and_tells_nothing(
    how: str, value: int, recwarn: pytest.WarningsRecorder
) -> None:
    sums = _private(POINTS, kernel=Loud(how)).kernel_sums(QUERIES, 20).sums
    assert (sums == 3 * value * 2**20).all()
    assert not recwarn.list


@pytest.mark.parametrize(("mechanism", "guarantee"), ALL[:3], ids=NAMES[:3])
@pytest.mark.parametrize(
    "adjacency", ["add-remove", pytest.param("replace", marks=pytest.mark.audit)]
)
def test_answers_are_unbiased_and_spread_as_stated(
    mechanism: QueryMechanism, guarantee: dict[str, Any], adjacency: str
) -> None:
    trials = 3_000
    answers, budget = _many(mechanism, trials, guarantee | {"adjacency": adjacency})
    sums = np.array([each.kernel_sums for each in answers])
    spread = answers[0].deviations
    assert (np.abs(sums.mean(axis=0) - EXACT) <= 7 * spread / np.sqrt(trials) + 1e-5).all()
    usual = np.sqrt(1 / 2 if mechanism.name == "laplace" else 2 / np.pi)  # E|z| of deviation 1
    size = np.abs(sums - EXACT).mean(axis=0) / spread
    assert (np.abs(size / usual - 1) <= 8 / np.sqrt(trials)).all()
    counts = np.array([each.count for each in answers])
    if adjacency == "replace":
        assert (counts == 3).all()
        assert [s.purpose for s in budget.spends] == ["answers"]
    else:
        assert [s.purpose for s in budget.spends] == ["count", "answers"]
        assert len(set(counts.tolist())) > 1


def test_what_is_paid_for() -> None:
    """L1 = q·2^b, L2² = q·4^b, the same under replace; for HRW about 4^b, and four times that."""
    for adjacency, factor in (("add-remove", 1), ("replace", 4)):
        _, budget = _many(LaplaceAnswers(), 1, {"epsilon": 1, "adjacency": adjacency})
        assert budget.spends[-1].sensitivity == 2 << 22
        _, budget = _many(GaussianAnswers(), 1, {"rho": 1, "adjacency": adjacency})
        assert budget.spends[-1].sensitivity == 2 << 44
        _, budget = _many(HRW(), 1, {"rho": 1, "adjacency": adjacency})
        assert 1 <= budget.spends[-1].sensitivity / (factor << 44) < 1 + 1e-5


def test_the_whole_budget_is_spent_and_no_more() -> None:
    for mechanism, guarantee in ALL:
        _, budget = _many(mechanism, 1, guarantee)
        if "epsilon" in guarantee:
            assert sum(s.amount.epsilon or 0 for s in budget.spends) == 1
        else:
            assert sum(s.amount.rho or 0 for s in budget.spends) == Fraction(1, 2)
        _, budget = _many(mechanism, 1, {"epsilon": 1, "delta": 1e-6})
        with pytest.raises(dpkde.BudgetError):
            mechanism.answer(_private(POINTS, bounds=[(-3, 3)]), QUERIES, budget)


def test_a_guess_of_the_density_sets_the_share_of_the_count() -> None:
    """(p/q)^{2/3} of ε_t: 1/4 for p = ¼ and q = 2, on a grid of 4096ths."""
    options: dict[str, Any] = {"mechanism": LaplaceAnswers(), "kernel": KERNEL, "epsilon": 1}
    answers = answer(POINTS, QUERIES, typical_density=0.25, **options)
    assert answers.privacy.spends[0].amount.epsilon == Fraction(819, 4096)
    assert answers.privacy.spends[1].amount.epsilon == Fraction(3277, 4096)


def test_the_noise_of_hrw_has_the_kernel_as_its_covariance() -> None:
    """Sample covariances of N normal pairs have standard deviation √((1 + r²)/N)·τ²."""
    trials, rho = 6_000, Fraction(1, 2)
    answers, budget = _many(HRW(), trials, {"rho": rho, "adjacency": "replace"})
    sums = np.array([each.kernel_sums for each in answers])
    (spend,) = budget.spends
    assert isinstance(spend, Spend)
    tau2 = spend.law.variance / 4.0**22
    assert tau2 == pytest.approx(4 / (2 * float(rho)), rel=1e-5)  # replace: length 2
    correlation = np.exp(-(0.4**2))
    expected = tau2 * np.array([[1, correlation], [correlation, 1]])
    error = np.abs(np.cov(sums.T) - expected) / tau2
    assert error.max() <= 7 * np.sqrt(2 / trials)
    # Far from the covariance of independent noise: the test has power.
    assert correlation > 3 * 7 * np.sqrt(2 / trials)


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, dpkde.Laplacian(0.3), dpkde.Matern(1.5, 1.0), dpkde.Geodesic(), dpkde.Jaccard()],
    ids=lambda kernel: kernel.name,
)
def test_hrw_contributions_are_within_their_length(kernel: Kernel) -> None:
    rows = adversarial_rows(3, np.random.default_rng(2))
    fine = rows[np.isfinite(rows).all(axis=1)]
    private = _private(rows, kernel=kernel)
    for jitter in (1e-10, 2.0**-24, 0.1):
        budget = Budget(Guarantee(Adjacency.ADD_REMOVE, rho=Fraction(1)))
        session = HRW(jitter).session(private, budget, 80)
        assert isinstance(session, HrwSession)
        session.ask(np.unique(fine, axis=0)[:30] + 0.0)
        placed = Projections(private.frame, session.places, session.columns, session.used)
        bounds = placed.bounds(22)
        lengths = []
        for row in rows:
            whole = _private(row[np.newaxis], kernel=kernel).sums(placed, 22).sums
            assert sum(v * v for v in whole.tolist()) <= bounds.l2_squared
            lengths.append(float(np.sqrt(np.square(whole / 2.0**22).sum())))
        # Records that were asked for nearly fill the bound, and are not lost.
        assert max(lengths) == pytest.approx(1 / np.sqrt(1 + jitter), rel=0.1)


def test_hrw_rows_are_those_of_a_cholesky_factor() -> None:
    queries = np.random.default_rng(4).normal(size=(20, 2))
    private = _private(np.zeros((3, 2)))
    session = HRW(1e-6).session(private, Budget(Guarantee.declare(rho=1)), 20)
    session.ask(queries)
    gram = KERNEL.evaluate(queries, queries) + 1e-6 * np.eye(20)
    assert np.allclose(session.columns.T, np.linalg.cholesky(gram), atol=1e-8)


def test_hrw_answers_without_bias_however_many_are_asked() -> None:
    """Noise of a sum has deviation 1/√(2ρ) ≈ 0.02 for all 200 queries; 8 of those, and the count.

    False alarm: 200·2·Φ(−8) < 10⁻¹².
    """
    points = np.random.default_rng(5).normal(size=(300, 2))
    queries = np.concatenate([points[:150], points[:50] + 1e-9])
    answers = answer(
        points, queries, mechanism=HRW(), kernel=KERNEL, rho=1_000, adjacency="replace"
    )
    exact = KERNEL.evaluate(points, queries).sum(axis=0)
    assert answers.standard_error.max() < 0.05 / 300
    assert (np.abs(answers.kernel_sums - exact) <= 8 * 300 * answers.standard_error + 1e-3).all()


def test_repeated_queries_of_hrw_agree() -> None:
    queries = np.array([[0.3], [1.0], [0.3], [-0.0], [0.0]])
    answers = answer(POINTS, queries, mechanism=HRW(), kernel=KERNEL, rho=1)
    assert answers.kernel_sums[0] == answers.kernel_sums[2]
    assert answers.kernel_sums[3] == answers.kernel_sums[4]


def test_which_kernels_are_positive_definite() -> None:
    assert dpkde.Product([dpkde.Hat(1.0), KERNEL]).is_positive_definite
    assert dpkde.Mixture([dpkde.Erfc(1.0), KERNEL]).is_positive_definite
    assert not Loud("high").is_positive_definite
    with pytest.raises(dpkde.ParameterError, match="positive definite kernel, and loud"):
        answer(POINTS, QUERIES, mechanism=HRW(), kernel=Loud("high"), rho=1)

    class Claims(Loud):
        is_positive_definite = True

        def evaluate(
            self, points: NDArray[np.float64], queries: NDArray[np.float64]
        ) -> NDArray[np.float64]:
            return np.minimum(1.0, np.abs(points - queries.T))

    with pytest.raises(dpkde.ParameterError, match="not positive definite at these"):
        answer(POINTS, [[0.0], [5.0]], mechanism=HRW(), kernel=Claims("x"), rho=1)


@pytest.mark.parametrize(("mechanism", "guarantee"), ALL, ids=NAMES)
def test_answers_say_what_they_are(mechanism: QueryMechanism, guarantee: dict[str, Any]) -> None:
    points = np.random.default_rng(6).normal(size=(4_000, 1))
    queries = np.array([[0.0], [np.nan], [1.0]])
    answers = answer(
        points, queries, mechanism=mechanism, kernel=KERNEL, bounds=[(-3, 3)], **guarantee
    )
    assert np.isnan(answers.kde[1])
    assert np.isnan(answers.standard_error[1])
    assert str(answers.privacy.guarantee) in repr(answers)
    assert "no others" in str(answers.privacy)
    exact = dpkde.nonprivate.kde(points, queries[[0, 2]], KERNEL)
    # 25 standard errors: with Laplace tails a false alarm has probability e^{−35}; 0.03 is for
    # the bias of a coarse spline.
    gap = np.abs(answers.kde[[0, 2]] - exact)
    assert (gap <= 0.03 + 25 * answers.standard_error[[0, 2]]).all()
    with pytest.raises(ValueError, match="read-only"):
        answers.kde[0] = 1.0


@pytest.mark.parametrize(("mechanism", "guarantee"), ALL, ids=NAMES)
def test_empty_tables_and_no_queries_are_answered(
    mechanism: QueryMechanism, guarantee: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"mechanism": mechanism, "kernel": KERNEL, "bounds": [(-3, 3)]}
    empty = answer(np.empty((0, 1)), QUERIES, **options, **guarantee)
    assert np.isfinite(empty.kde).all()
    assert empty.count is not None
    assert empty.count >= 1
    nothing = answer(POINTS, np.empty((0, 1)), **options, **guarantee)
    assert nothing.kde.shape == (0,)
    assert nothing.count is not None
    assert nothing.count >= 1


def test_points_come_as_for_publish(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"a": [0.0, 0.5, 2.0], "b": [1.0, 1.0, 1.0]})
    table.to_csv(tmp_path / "t.csv", index=False)
    options: dict[str, Any] = {"mechanism": LaplaceAnswers(), "kernel": KERNEL, "epsilon": 10**6}
    for points in (table, tmp_path / "t.csv", iter([table])):
        answers = answer(points, table[["a"]], columns=["a"], **options, bounds=[(-3, 3)])
        assert np.allclose(
            answers.kernel_sums, KERNEL.evaluate(POINTS, POINTS).sum(axis=0), atol=1e-3
        )
    sets = answer(
        [{0, 1}, {1}],
        [{1}],
        mechanism=GaussianAnswers(),
        kernel=dpkde.Jaccard(),
        bounds=dpkde.Sets(3),
        rho=10**6,
    )
    # The noise has standard deviation 1/√(2ρ) ≈ 0.0007.
    assert sets.kernel_sums[0] == pytest.approx(1.5, abs=0.01)


def test_the_reference_sampler_serves_too() -> None:
    pytest.importorskip("opendp")
    for mechanism, guarantee in ALL[:3]:
        answers = answer(
            POINTS, QUERIES, mechanism=mechanism, kernel=KERNEL, sampler="opendp", **guarantee
        )
        assert np.isfinite(answers.kde).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": LaplaceAnswers}, "must be an instance such as"),
        ({"mechanism": "laplace"}, "must be an instance such as"),
        ({"mechanism": GaussianAnswers()}, "delta > 0"),
        ({"mechanism": HRW()}, "delta > 0"),
        ({"epsilon": None, "rho": 1}, "give epsilon, not rho"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"sampler": "numpy"}, "sampler must be"),
        ({"adjacency": "swap"}, "add-remove"),
        ({"kernel": dpkde.Gaussian}, "kernel must be"),
        ({"capacity_bits": 0}, "capacity_bits"),
        ({"expected_rows": 0}, "expected_rows"),
        ({"typical_density": 2}, "typical_density"),
        ({"queries": np.zeros((2, 3))}, "1 column"),
        ({"queries": np.zeros((2**20 + 1, 1))}, "too many"),
        ({"expected_rows": 10**12}, "hours"),
    ],
)
def test_wrong_use(change: dict[str, Any], words: str) -> None:
    options: dict[str, Any] = {"mechanism": LaplaceAnswers(), "kernel": KERNEL, "epsilon": 1}
    queries = change.pop("queries", QUERIES)
    with pytest.raises(dpkde.ParameterError, match=words):
        answer(POINTS, queries, **(options | change))


def test_hrw_tells_the_cost_of_what_it_refuses() -> None:
    options: dict[str, Any] = {"mechanism": HRW(), "kernel": KERNEL, "rho": 1}
    with pytest.raises(dpkde.ParameterError, match=r"8e\+08 bytes"):
        answer(POINTS, np.arange(10_000.0), **options)
    with pytest.raises(dpkde.ParameterError, match="hours"):
        answer(POINTS, np.arange(1_000.0), expected_rows=10**9, **options)
    for wrong in (0, -1e-6, 2.0, "small", float("nan")):
        with pytest.raises(dpkde.ParameterError, match="jitter"):
            HRW(wrong)  # type: ignore[arg-type]


def test_private_points_are_not_shown() -> None:
    assert "secret" in repr(_private(POINTS))
    assert "0.5" not in repr(_private(POINTS))
