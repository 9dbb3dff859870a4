"""Publishing: stages in order, nothing private in any choice or message, every guarantee."""

from __future__ import annotations

import functools
import logging
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import rigged
from dpkde.curator.publish import Errand, publish_source
from dpkde.planning.plan import as_families
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import DiscreteLaplace, Law, MaxNorm, draw
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points

KERNEL = dpkde.Gaussian(1.0)
BOUNDS = [(-3.0, 3.0)] * 2
POINTS = np.random.default_rng(0).normal(size=(5000, 2))


def publish(points: Any = POINTS, **changes: Any) -> dpkde.Release:
    arguments: dict[str, Any] = {"kernel": KERNEL, "bounds": BOUNDS, "epsilon": 1}
    return dpkde.publish(points, **(arguments | changes))


@pytest.mark.parametrize(
    "points",
    [
        POINTS[:0],
        POINTS[:1],
        np.full((10, 2), np.nan),
        np.full((10, 2), np.inf),
        np.full((100, 2), 1e308),
        np.full((50, 2), 7.0),
    ],
    ids=["empty", "one row", "NaN", "infinite", "huge", "duplicates outside"],
)
@pytest.mark.parametrize(
    "guarantee",
    [
        {"epsilon": 1},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": None, "rho": "0.1"},
        {"adjacency": "replace"},
    ],
    ids=["pure", "delta", "rho", "replace"],
)
def test_tiny_and_strange_tables_publish_like_any_other(
    points: NDArray[np.float64], guarantee: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        # What warns of these is the release itself, by what is published.
        warnings.simplefilter("ignore", dpkde.ReleaseWarning)
        release = publish(points, **guarantee)
    assert not [r for r in caplog.records if not r.name.startswith("numba")]
    assert release.count >= 1
    assert np.isfinite(release.kde(POINTS[:3])).all()
    assert np.isfinite(release.standard_error(POINTS[:3])).all()


def test_dropping_is_silent_and_not_counted() -> None:
    far = np.concatenate([POINTS[:200], np.full((400, 2), 50.0)])
    box = dpkde.Box(BOUNDS, outside="drop")
    inside = int((np.abs(POINTS[:200]) <= 3).all(axis=1).sum())
    counts = [publish(far, bounds=box, epsilon=100).count for _ in range(3)]
    assert all(abs(count - inside) < 60 for count in counts)
    # Under replace the number of rows is public, and stays what it is.
    assert publish(far, bounds=box, adjacency="replace").count == 600


@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "3", "100"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_spends_add_up(epsilon: str, adjacency: str) -> None:
    for pilot in (True, False):
        privacy = publish(epsilon=epsilon, adjacency=adjacency, pilot=pilot).privacy
        assert privacy.epsilon == Fraction(epsilon)
        assert sum(s.amount.epsilon or 0 for s in privacy.spends) == Fraction(epsilon)
        needed = ["count"] * (adjacency == "add-remove")
        needed += ["pilot"] * (pilot and epsilon in ("3", "100"))  # where it is worth it
        assert [s.purpose for s in privacy.spends] == [*needed, "table"]


def test_every_law_is_reached() -> None:
    fourier = functools.partial(publish, family="fourier")
    assert fourier().law("table").__class__ is MaxNorm
    assert fourier(delta=1e-6).law("table").__class__.__name__ == "DiscreteGaussian"
    assert fourier(sampler="opendp").law("table").__class__.__name__ == "DiscreteLaplace"
    assert publish().law("table").__class__.__name__ == "DiscreteLaplace"
    rho = publish(epsilon=None, rho=0.5)
    assert rho.law("count").__class__.__name__ == "DiscreteGaussian"
    # One frequency in the phase form moves one cell: Laplace beats Gaussian noise, δ or not.
    one = publish(delta=1e-6, family=dpkde.Fourier(1, form="phase"))
    assert one.law("table").__class__.__name__ in ("DiscreteLaplace", "MaxNorm")


def test_delta_lowers_the_error() -> None:
    """More frequencies at no more noise: the error with δ is below that without."""
    pure, approximate = publish(family="fourier"), publish(family="fourier", delta=1e-6)
    assert approximate.plan.prediction is not None
    assert pure.plan.prediction is not None
    assert approximate.plan.prediction.error < pure.plan.prediction.error
    assert approximate.table.size > pure.table.size


def _published(points: Any, budget: Budget) -> dpkde.Release:
    """Return what `publish` does with a budget of the test's own."""
    frame = Frame.of(KERNEL, as_domain(BOUNDS), 2)
    families = as_families("auto")
    return publish_source(open_points(points), frame, families, Errand(budget), None)


def test_budget_is_debited_before_noise_is_drawn() -> None:
    seen: list[tuple[str, ...]] = []

    def watched(law: Law, size: int) -> NDArray[np.int64]:
        seen.append(tuple(s.purpose for s in budget.spends))
        return draw(law, size)

    budget = rigged(watched, epsilon=3)
    _published(POINTS, budget)
    assert seen == [("count",), ("count", "pilot"), ("count", "pilot", "table")]


def test_noise_that_is_not_paid_for_is_not_drawn() -> None:
    budget, other = rigged(epsilon=1), rigged(epsilon=1)
    spend = other.spend("count", Amount(epsilon=Fraction(1)), DiscreteLaplace, COUNT)
    with pytest.raises(dpkde.BudgetError, match="not paid for"):
        budget.noise(spend, 1)


def test_the_plan_follows_the_noisy_count_alone() -> None:
    """Tables of different size with the same noisy count get the same plan."""
    sizes = (0, 40, 5000)
    chosen = set()
    for size in sizes:

        def noise(law: Law, n: int, size: int = size) -> NDArray[np.int64]:
            return np.full(1, 3000 - size) if n == 1 else draw(law, n)

        release = _published(POINTS[:size], rigged(noise, epsilon=1))
        assert release.count == 3000
        chosen.add((release.family, release.plan.bits, release.table.size))
    assert len(chosen) == 1


def test_repeated_releases_differ_and_seeds_fix_only_public_randomness() -> None:
    first, second = (
        publish(seed=4, family=dpkde.Fourier(8)),
        publish(seed=4, family=dpkde.Fourier(8)),
    )
    assert first.plan == second.plan
    assert not np.array_equal(first.table, second.table)
    assert first.release_id != second.release_id
    assert publish(family=dpkde.Fourier(8)).plan != publish(family=dpkde.Fourier(8)).plan


def test_one_pass_needs_a_guess_or_a_plan() -> None:
    batches = np.array_split(POINTS, 9)
    with pytest.raises(dpkde.ParameterError, match="only once"):
        publish(iter(batches))
    assert publish(iter(batches), expected_rows=5000).count > 3000
    assert publish(iter(batches), family=dpkde.Fourier(64)).count > 3000
    assert publish(batches).count > 3000
    with pytest.raises(dpkde.ParameterError, match="number of columns is open"):
        publish(batches, bounds=None)
    assert publish(batches, bounds=None, kernel=dpkde.Gaussian([1.0, 1.0])).count > 3000
    plan = dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1, expected_rows=5000)
    assert dpkde.publish(iter(batches), plan=plan, epsilon=1).plan == plan
    whole = dpkde.sketch(POINTS, plan)
    assert dpkde.publish(whole, epsilon=1).plan == plan
    assert plan.prediction is not None
    assert "predicted error" in repr(plan)


def test_shares_of_the_count_follow_the_formula() -> None:
    """ε_c/ε_t = (p/G)^{2/3} with G = √(D/3) for max-norm noise on phases, p = 1.25 · 0.05.

    For pairs G = √(2D/3), less where a model may drop some of that noise.
    """
    ratios = []
    for form in ("phase", "pairs"):
        release = publish(family=dpkde.Fourier(600, form=form), typical_density=0.05)
        count, table = (s.amount.epsilon for s in release.privacy.spends)
        assert count is not None
        assert table is not None
        ratios.append(float(count / table))
    assert ratios[0] == pytest.approx((0.0625 / 200**0.5) ** (2 / 3), rel=0.05)
    assert (0.0625 / 20) ** (2 / 3) < ratios[1] < 2 * (0.0625 / 20) ** (2 / 3)


DEEP: list[Any] = []
for _ in range(10**5):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernel": None}, "kernel is needed"),
        ({"kernel": 0.1}, "kernel must be a dpkde.Kernel"),
        ({"bounds": [(3, -3), (0, 1)]}, "reversed"),
        ({"bounds": [(0, 1), (3, -3)], "columns": ["lon", "lat"]}, "column lat are reversed"),
        ({"bounds": [(0, 1), (2, 2)], "columns": ["lon", "lat"]}, "column lat are a single point"),
        ({"bounds": [(0, math.inf), (2, 2)], "columns": ["lon", "lat"]}, "column lon must be fin"),
        ({"columns": ["a", "a"]}, "column 'a' is named twice"),
        ({"columns": np.array(["1", 1])}, "column '1' is named twice"),
        ({"columns": "lon,lat"}, r"list of names, such as \['lon', 'lat'\]"),
        ({"bounds": [(0, 0), (8, 10)]}, "single point"),
        ({"threads": "2"}, "threads"),
        ({"extras": "x"}, "mapping"),
        ({"bounds": [(0, 1)] * 3}, "does not agree"),
        ({"epsilon": "1e-9_999_999_999"}, "finite number"),
        ({"threads": 0}, "threads must be"),
        ({"bounds": [0, 1]}, r"\(low, high\)"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": None}, "exactly one"),
        ({"epsilon": "1e-400"}, "from 1e-12 to 1e"),
        ({"epsilon": 10**20}, "from 1e-12 to 1e"),
        ({"delta": "1e-400"}, "at least 1e-300"),
        ({"expected_rows": float("inf")}, "expected_rows"),
        ({"bounds": [(-1e308, 1e308)] * 2}, "column 0 go beyond 1e150"),
        ({"bounds": dpkde.Ball((0, 0), 1e100), "kernel": dpkde.Gaussian(1e-60)}, "bandwidths wide"),
        ({"bounds": [(-1e140, 1e140)] * 2}, "larger bandwidth"),
        ({"kernel": dpkde.Gaussian(1e-140)}, "larger bandwidth"),
        ({"family": "magic"}, "family must be"),
        ({"typical_density": 2}, "typical_density"),
        ({"expected_rows": 0}, "expected_rows"),
        ({"seed": -1}, "seed"),
        ({"capacity_bits": 60}, "capacity_bits"),
        ({"sampler": "numpy"}, "sampler"),
        ({"extras": {"note": 1}}, "namespaced"),
        ({"extras": {"a/b": float("nan")}}, "JSON"),
        ({"extras": {"a/b": DEEP}}, "nested 32 levels"),
        ({"expected_rows": 1.5}, "whole number"),
        ({"columns": ["a"]}, "1 column names for 2"),
        ({"kernel": dpkde.Gaussian([1.0, 2.0, 3.0])}, "does not agree"),
        ({"bounds": [(-1e12, 1e12)] * 2}, "larger bandwidth"),
    ],
)
def test_wrong_use_names_the_fix(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=told):
        publish(**changes)


def test_columns_are_told_apart_before_anything_is_spent(tmp_path: Path) -> None:
    """In new plans; a file that has one name twice is read as it always was."""
    frame = pd.DataFrame({"a": [0.1], "b": [0.2]})
    settings: dict[str, Any] = {"kernel": dpkde.Gaussian(0.5), "bounds": [(0, 1)] * 2, "epsilon": 1}
    with pytest.raises(dpkde.SchemaError, match="'a' is named twice"):
        dpkde.publish(frame, columns=["a", "a"], **settings)
    with pytest.raises(dpkde.SchemaError, match="'a' is named twice"):
        dpkde.plan(columns=["a", "a"], expected_rows=100, **settings)
    plan = dpkde.plan(columns=["a", "b"], expected_rows=100, **settings)
    replace(plan, columns=("a", "a")).save(tmp_path / "old.plan")
    old = dpkde.Plan.load(tmp_path / "old.plan")
    made = dpkde.publish(frame.to_numpy(), plan=old, epsilon=1)
    made.save(tmp_path / "old.dpkde")
    assert dpkde.load(tmp_path / "old.dpkde").columns == ("a", "a")


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path: Path) -> None:
    three: Any = np.int64(3)
    made = publish(
        family=dpkde.Fourier(three),
        seed=three,
        threads=three,
        expected_rows=three,
        columns=["x", "y"],
    )
    made.save(tmp_path / "r")
    assert dpkde.load(tmp_path / "r").plan == made.plan
    assert np.isfinite(made.kde([[0.0, 9.0]], groups=three)).all()
    assert dpkde.Sets(three) == dpkde.Sets(3)


def test_a_plan_is_not_contradicted() -> None:
    plan = dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1, expected_rows=10)
    with pytest.raises(dpkde.ParameterError, match="already fixed by the plan"):
        dpkde.publish(POINTS, plan=plan, kernel=KERNEL, epsilon=1)
    made = dpkde.sketch(POINTS, plan)
    other = dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1, expected_rows=10**6)
    with pytest.raises(dpkde.ParameterError, match="another plan"):
        dpkde.publish(made, plan=other, epsilon=1)
    for wrong in ("p.plan", 5):
        with pytest.raises(dpkde.ParameterError, match=r"dpkde.Plan.load"):
            dpkde.publish(POINTS, plan=wrong, epsilon=1)  # type: ignore[arg-type]
        with pytest.raises(dpkde.ParameterError, match=r"dpkde.Plan.load"):
            dpkde.sketch(POINTS, wrong)  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="is needed to choose"):
        dpkde.plan(kernel=KERNEL, bounds=BOUNDS, epsilon=1)
    with pytest.raises(dpkde.ParameterError, match="number of columns is open"):
        dpkde.plan(kernel=KERNEL, epsilon=1, expected_rows=10)
