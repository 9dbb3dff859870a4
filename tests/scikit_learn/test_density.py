"""`PrivateKernelDensity`: scikit-learn's answers without noise, its manners, and what it keeps."""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpkde
from dpkde.sklearn import PrivateKernelDensity
from dpkde.sklearn import density as module

GENERATOR = np.random.default_rng(0)
POINTS = np.concatenate([GENERATOR.normal(-1, 0.5, (600, 2)), GENERATOR.normal(1, 1, (400, 2))])
ALIKE: dict[str, Any] = {"epsilon": 10**6, "seed": 0, "options": {"expected_rows": 10**6}}
"""So that noise is nothing, and neither is what a family does."""


@pytest.mark.parametrize(
    ("kernel", "bandwidth", "dim"),
    [("gaussian", 0.3, 1), ("gaussian", 0.5, 2), ("exponential", 0.4, 1), ("linear", 0.8, 1)],
)
def test_without_noise_it_is_scikit_learns(kernel: str, bandwidth: float, dim: int) -> None:
    """Log densities to two hundredths wherever they are above −8; a sample of the same law."""
    points = POINTS[:, :dim]
    ours = PrivateKernelDensity(kernel=kernel, bandwidth=bandwidth, bounds=(-6, 6), **ALIKE)
    theirs = KernelDensity(kernel=kernel, bandwidth=bandwidth).fit(points)
    queries = np.random.default_rng(1).uniform(-3, 4, (300, dim))
    exact = theirs.score_samples(queries)
    told = ours.fit(points).score_samples(queries)
    near = exact > -8
    assert near.sum() > 150
    assert told[near] == pytest.approx(exact[near], abs=0.02)
    assert ours.score(queries[near]) == pytest.approx(exact[near].sum(), abs=0.02 * near.sum())
    # The seeds are fixed and the noise is nothing: a false alarm takes another table.
    mine, other = ours.sample(4_000, random_state=0), _drawn(kernel, bandwidth, points)
    for axis in range(dim):
        assert stats.ks_2samp(mine[:, axis], other[:, axis]).pvalue > 1e-4


def _drawn(kernel: str, bandwidth: float, points: Any) -> Any:
    """Return draws from scikit-learn's density: it draws only from gaussian ones."""
    generator = np.random.default_rng(2)
    chosen = points[generator.integers(0, len(points), 4_000)]
    draws = {
        "gaussian": generator.normal(size=chosen.shape),
        "exponential": generator.laplace(size=chosen.shape),
        "linear": generator.triangular(-1, 0, 1, size=chosen.shape),
    }
    return chosen + bandwidth * draws[kernel]


def test_log_densities_are_finite_wherever_scikit_learns_are() -> None:
    far = np.array([[0.0, 0.0], [9.0, 9.0], [50.0, -50.0], [1e3, 1e3], [1e6, -1e6]])
    gaussian = PrivateKernelDensity(bandwidth=0.3, bounds=(-6, 6), **ALIKE).fit(POINTS)
    exact = KernelDensity(bandwidth=0.3).fit(POINTS).score_samples(far)
    told = gaussian.score_samples(far)
    assert np.isfinite(told).all()
    assert told == pytest.approx(exact, rel=0.03)
    line = PrivateKernelDensity(kernel="linear", bounds=(-6, 6), **ALIKE).fit(POINTS[:, :1])
    assert line.score_samples([[50.0]]) == -math.inf
    assert KernelDensity(kernel="linear").fit(POINTS[:, :1]).score_samples([[50.0]]) == -math.inf


@pytest.mark.parametrize("family", [dpkde.Fourier(8), dpkde.FastGauss()])
def test_tables_without_a_density_have_scores(family: dpkde.Family) -> None:
    """Finite however far out, higher where records are, and about the answer above the noise."""
    settings: dict[str, Any] = {"bandwidth": 0.7, "bounds": (-6, 6), "seed": 0, "family": family}
    density = PrivateKernelDensity(epsilon=10, **settings).fit(np.zeros((5_000, 2)))
    places = np.array([[0.0, 0.0], [4.0, -4.0], [1e3, 1e3], [1e9, 0.0]])
    scores = density.score_samples(places)
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1:].max() + 0.5
    peak = -math.log(2 * math.pi * 0.7**2)
    assert scores[0] == pytest.approx(peak, abs=0.5)
    with pytest.raises(dpkde.ParameterError, match=r"no proper density|no model was found"):
        density.sample()


def _fits(**changes: Any) -> PrivateKernelDensity:
    settings: dict[str, Any] = {"bandwidth": 0.5, "bounds": [(-6, 6)] * 2, "epsilon": 1}
    settings["family"] = dpkde.Spline(3, 1.0)  # nothing to choose, and small tables
    return PrivateKernelDensity(**(settings | changes))


def test_nothing_is_told_of_values(recwarn: pytest.WarningsRecorder) -> None:
    """Tables that scikit-learn refuses for what is in them, or for having no rows."""
    bad = POINTS[:50].copy()
    bad[::2] = np.nan
    odd = bad.astype(object)
    odd[1] = [{"a": 1}, "text"]
    whole = np.full((20, 2), np.inf)
    for points in (bad, odd, whole, POINTS[:0], POINTS[:1], [], [[1, 2], [3], "x", None]):
        for adjacency in ("add-remove", "replace"):
            density = _fits(adjacency=adjacency).fit(points)
            assert density.n_features_in_ == 2
            assert set(vars(density)) - set(density.get_params()) == {"n_features_in_", "release_"}
    # What a release tells of itself it tells by noisy numbers.
    assert not [w for w in recwarn if w.category.__name__ != "ReleaseWarning"]


def test_rows_that_are_not_finite_contribute_nothing() -> None:
    bad = np.concatenate([POINTS, np.full((5_000, 2), np.nan)])
    assert _fits(epsilon=10**6).fit(bad).release_.count == len(POINTS)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (POINTS[:, 0], "Expected 2D array, got 1D array instead"),
        (POINTS.astype(complex), "Complex data not supported"),
        (np.zeros((0, 0)), r"0 feature\(s\)"),
        (pl.DataFrame({"a": [[1.0]]}), "is of type"),
        ("table.csv", "got str; dpkde.publish takes files"),
        (iter(POINTS), "dpkde.publish takes files"),
    ],
)
def test_schemas_raise(points: Any, message: str) -> None:
    with pytest.raises(dpkde.SchemaError, match=message):
        _fits(bounds=(-6, 6)).fit(points)


def test_lists_need_bounds_for_each_column() -> None:
    """Since only a row would tell how many there are, and an empty list has none."""
    none: list[Any] = []
    for points in (POINTS.tolist(), none):
        with pytest.raises(dpkde.SchemaError, match="one pair for each column"):
            _fits(bounds=(-6, 6)).fit(points)
    for bounds in ([(-6, 6)] * 2, dpkde.Box([(-6, 6)] * 2), np.array([(-6, 6)] * 2)):
        fitted = _fits(bounds=bounds, epsilon=10**6).fit(POINTS.tolist())
        assert fitted.release_.count == len(POINTS)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_known_by_their_columns(frame: Any) -> None:
    table = frame({"age": POINTS[:, 0], "stay": POINTS[:, 1]})
    density = _fits().fit(table)
    assert density.feature_names_in_.tolist() == ["age", "stay"]
    assert density.release_.columns == ("age", "stay")
    assert np.array_equal(density.score_samples(table[:9]), density.score_samples(table[:9]))
    with pytest.raises(ValueError, match="feature names should match"):
        density.score_samples(frame({"stay": [1.0], "age": [1.0]}))
    assert not hasattr(density.fit(POINTS), "feature_names_in_")


def test_sparse_tables_and_queries() -> None:
    table = sparse.csr_array(np.where(POINTS > 0, POINTS, 0.0))
    density = _fits(epsilon=10**6).fit(table)
    assert density.release_.count == len(POINTS)
    assert np.array_equal(
        density.score_samples(table[:9]), density.score_samples(table[:9].todense())
    )


def test_queries_are_checked_as_scikit_learn_does() -> None:
    density = _fits()
    with pytest.raises(NotFittedError):
        density.score_samples(POINTS)
    with pytest.raises(NotFittedError):
        density.sample()
    with pytest.raises(NotFittedError):
        str(density.privacy_)
    density.fit(POINTS)
    with pytest.raises(ValueError, match="NaN"):
        density.score_samples([[math.nan, 0.0]])
    with pytest.raises(ValueError, match="expecting 2 features"):
        density.score_samples([[0.0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": None}, "bounds is needed: where records can be, from what is known in public"),
        ({"kernel": "tophat"}, "there is no 'tophat' kernel here"),
        ({"kernel": "linear"}, "none of dpkde's"),
        ({"kernel": dpkde.Cauchy(1.0)}, "has a bandwidth of its own"),
        ({"bandwidth": 0}, "bandwidth must be"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"rho": 1, "delta": "1e-6"}, "delta goes with epsilon"),
        ({"options": {"epsilon": 3}}, "a parameter of its own"),
        ({"options": {"unit": "user"}}, "each column of X is a feature"),
        ({"family": ("spline", "magic")}, "family must be"),
    ],
)
def test_wrong_parameters_cost_nothing(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "budget.db", dataset="x", epsilon=1)
    with pytest.raises(dpkde.ParameterError, match=message):
        _fits(ledger=ledger, **changes).fit(POINTS)
    with pytest.raises(dpkde.ParameterError, match="sample_weight is refused"):
        _fits(ledger=ledger).fit(POINTS, sample_weight=np.ones(len(POINTS)))
    assert ledger.left().epsilon == 1


def test_what_is_handed_to_publish(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def publish(points: Any, **settings: Any) -> Any:
        seen.update(settings)
        raise StopIteration

    monkeypatch.setattr(module, "publish", publish)

    def handed(**changes: Any) -> dict[str, Any]:
        with pytest.raises(StopIteration):
            _fits(**changes).fit(POINTS)
        return seen

    assert handed()["kernel"] == dpkde.Gaussian.from_std(0.5)
    assert handed(family="auto")["family"] == ("spline", "fourier")
    geodesic = {"kernel": dpkde.Geodesic(), "bandwidth": 1}
    assert handed(family="auto", **geodesic)["family"] == "auto"
    assert handed(family="hashing")["family"] == "hashing"
    assert handed(bounds=(0, 1))["bounds"] == [(0.0, 1.0)] * 2
    assert handed(bounds=(-math.inf, math.inf))["bounds"] is None
    assert handed(bounds="private", options={"ranges": [(0, 9)] * 2})["bounds"] == "private"
    assert seen["ranges"] == [(0, 9)] * 2
    assert handed(kernel=dpkde.Cauchy(2.0), bandwidth=1.0)["kernel"] == dpkde.Cauchy(2.0)
    assert (handed(rho="1/2")["epsilon"], seen["rho"]) == (None, "1/2")


def test_rules_for_bandwidths_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, to the kernel, which knows what it means or refuses."""
    from dpkde.kernels import conventions

    named: list[Any] = []
    monkeypatch.setattr(conventions, "Gaussian", named.append)
    for rule in ("scott", "silverman", "auto"):
        conventions.of_scikit_learn("gaussian", rule, 2)
    assert named == ["scott", "silverman", "auto"]


def test_every_fit_spends_and_says_so(tmp_path: Path) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "budget.db", dataset="x", epsilon=2)
    density = _fits(ledger=ledger, dataset="x", remark="a map")
    first = density.fit(POINTS).release_
    assert "1-differentially private" in str(density.privacy_)
    assert ledger.left().epsilon == 1
    second = density.fit(POINTS).release_
    assert not np.array_equal(first.table, second.table)
    assert ledger.left().epsilon == 0
    with pytest.raises(dpkde.BudgetError):
        density.fit(POINTS)
    assert [booking.remark for booking in ledger.history()] == ["a map", "a map"]
    assert "Every `fit` spends" in str(PrivateKernelDensity.__doc__)


def test_a_ledger_stops_a_search(tmp_path: Path) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "budget.db", dataset="x", epsilon=3)
    search = GridSearchCV(
        _fits(ledger=tmp_path / "budget.db", family="spline"),
        {"bandwidth": [0.3, 0.5, 0.8]},
        cv=3,
        error_score="raise",
    )
    with pytest.raises(dpkde.BudgetError):
        search.fit(POINTS)
    assert len(ledger.history()) == 3
    assert ledger.left().epsilon == 0


def test_clones_pipelines_and_parameters() -> None:
    kernel = dpkde.Laplacian([0.5, 1.0])
    density = PrivateKernelDensity(kernel=kernel, bounds=dpkde.Box([(-2, 2)] * 2), seed=3)
    other = clone(density)
    assert other.get_params() == density.get_params()
    assert other.set_params(epsilon="1/2").epsilon == "1/2"
    pipeline = make_pipeline(FunctionTransformer(np.tanh), _fits(bounds=(-1, 1)))
    assert np.isfinite(clone(pipeline).fit(POINTS).score_samples(POINTS[:5])).all()


def test_a_fitted_one_holds_its_release_and_nothing_else(tmp_path: Path) -> None:
    """In pickles and by joblib: no row of the data, and the same answers."""
    density = _fits(epsilon=10**6).fit(POINTS)
    density.sample(3)
    density.score_samples(POINTS)
    file = io.BytesIO()
    joblib.dump(density, file)
    for data, load in (
        (pickle.dumps(density), pickle.loads),
        (file.getvalue(), lambda data: joblib.load(io.BytesIO(data))),
    ):
        assert not [value for value in POINTS.ravel() if value.tobytes() in data]
        again = load(data)
        assert set(vars(again)) == set(vars(density))
        assert again.release_ == density.release_
        assert np.array_equal(again.score_samples(POINTS[:9]), density.score_samples(POINTS[:9]))
        assert again.release_.to_bytes() == density.release_.to_bytes()
    density.release_.save(tmp_path / "points.dpkde")
    assert dpkde.load(tmp_path / "points.dpkde") == density.release_
