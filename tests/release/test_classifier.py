"""One release per class: probabilities that are right on average, and priors where noise is all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.release.classifier import truncated_mean

Floats = NDArray[np.float64]
KERNEL = dpkde.Gaussian(0.6)
BOUNDS = [(-4.0, 4.0)] * 2
GENERATOR = np.random.default_rng(21)
CENTERS = {"a": (-0.6, 0.0), "b": (0.7, 0.3)}
SIZES = {"a": 1500, "b": 700}


def _draw(label: str, size: int) -> Floats:
    return np.asarray(GENERATOR.normal(CENTERS[label], 0.9, (size, 2)))


def _publish(points: Floats, **settings: Any) -> dpkde.Release:
    usual: dict[str, Any] = {
        "kernel": KERNEL,
        "bounds": BOUNDS,
        "epsilon": 1,
        "family": dpkde.Spline(2, 0.9),
    }
    return dpkde.publish(points, **{**usual, **settings})


@pytest.fixture(scope="module")
def releases() -> dict[str, dpkde.Release]:
    return {label: _publish(_draw(label, size)) for label, size in SIZES.items()}


def test_probabilities_and_labels(releases: dict[str, dpkde.Release]) -> None:
    classifier = dpkde.Classifier(releases)
    assert classifier.classes == ("a", "b")
    counts = np.array([release.count for release in releases.values()])
    assert classifier.priors == pytest.approx(counts / counts.sum())
    queries = [[-1.5, -0.5], [2.0, 0.8], [1e9, 1e9]]
    shares = classifier.predict_proba(queries)
    assert shares.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert classifier.predict(queries).tolist() == ["a", "b", "a"]
    assert shares[2] == pytest.approx(classifier.priors)  # no class has any density there
    assert "priors 'a'" in repr(classifier)
    assert classifier.predict_proba(np.empty((0, 2))).shape == (0, 2)
    assert classifier.predict(np.empty((0, 2))).shape == (0,)


def test_without_noise_it_is_the_rule_of_bayes() -> None:
    exact = {label: _publish(_draw(label, 2000), epsilon=10**6) for label in CENTERS}
    queries = GENERATOR.normal(0.0, 1.0, (50, 2))
    shares = dpkde.Classifier(exact, priors={"b": 3, "a": 1}).predict_proba(queries)
    first, second = (exact[label].kde(queries) for label in ("a", "b"))
    # A typical bias of the fit counts as an error, of a few per cent of the densities.
    assert shares[:, 0] == pytest.approx(first / (first + 3 * second), abs=0.01)


def test_queries_without_an_answer(releases: dict[str, dpkde.Release]) -> None:
    classifier = dpkde.Classifier(releases)
    queries = [[0.0, 0.0], [math.nan, 0.0], [math.inf, 1.0]]
    shares = classifier.predict_proba(queries)
    assert np.isnan(shares[1:]).all()
    assert shares[0].sum() == pytest.approx(1)
    with pytest.raises(dpkde.ParameterError, match="2 of 3 queries are not finite"):
        classifier.predict(queries)


def test_labels_keep_their_order_and_type(releases: dict[str, dpkde.Release]) -> None:
    a, b = releases.values()
    assert dpkde.Classifier({2: a, 1: b}).predict([[-2.0, 0.0]]).dtype.kind == "i"
    pairs = dpkde.Classifier({("x", 1): a, ("x", 2): b}).predict([[-2.0, 0.0], [2.0, 1.0]])
    assert pairs.tolist() == [("x", 1), ("x", 2)]
    assert dpkde.Classifier({None: a, 1.5: b}).classes == (None, 1.5)
    # A tie goes to the first, whichever that is.
    for label in ("one", "two"):
        twice = dict.fromkeys([label, "other"], a)
        assert dpkde.Classifier(twice).predict([[0.0, 0.0]]).tolist() == [label]


def test_kernels_and_families_may_differ(releases: dict[str, dpkde.Release]) -> None:
    """Densities are compared, not KDE values: at another bandwidth those would be off by far."""
    wide = _publish(_draw("b", 700), kernel=dpkde.Gaussian(0.8), epsilon=10**6)
    narrow = _publish(_draw("a", 1500), epsilon=10**6)
    shares = dpkde.Classifier({"a": narrow, "b": wide}, priors=[1, 1]).predict_proba([[0.05, 0.15]])
    assert shares[0, 0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("change", "priors", "message"),
    [
        ({}, [1], "2 numbers"),
        ({}, [1, -1], "not negative"),
        ({}, [0, 0], "not all zero"),
        ({}, [1, math.nan], "not negative"),
        ({}, 3, "2 numbers"),
        ({}, {"a": 1}, r"labels \['a', 'b'\]"),
        ({"b": "b.dpkde"}, None, r"class 'b' needs a release, got str: dpkde\.load"),
    ],
)
def test_wrong_arguments(
    releases: dict[str, dpkde.Release], change: Any, priors: Any, message: str
) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        dpkde.Classifier({**releases, **change}, priors)


def test_wrong_releases(releases: dict[str, dpkde.Release]) -> None:
    nothing: list[Any] = [{}, list(releases.values()), None]
    for wrong in nothing:
        with pytest.raises(dpkde.ParameterError, match="a release for each label"):
            dpkde.Classifier(wrong)
    line = _publish(_draw("a", 50)[:, :1], bounds=BOUNDS[:1])
    with pytest.raises(dpkde.ParameterError, match=r"class 'a' has 2 column.*class 'c' has 1"):
        dpkde.Classifier({**releases, "c": line})
    classifier = dpkde.Classifier(releases)
    with pytest.raises(AttributeError, match="frozen"):
        classifier.priors = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        classifier.priors[0] = 1


def test_the_mean_of_a_density_given_its_noisy_estimate() -> None:
    """Against quadrature of exp(−d/m)·normal(d̂ − d); and its limits."""
    d = np.linspace(0, 60, 1_000_001)
    for estimate, error, mean in ((0.5, 1.0, 2.0), (-3.0, 1.5, 0.2), (6.0, 0.3, 1.0)):
        weight = np.exp(-d / mean - ((estimate - d) / error) ** 2 / 2)
        slow = (d * weight).sum() / weight.sum()
        found = truncated_mean(np.array([estimate]), np.array([error]), mean)
        assert found == pytest.approx([slow], rel=1e-3)
    # Noise alone: the mean, whatever the estimate says; no noise: the estimate.
    estimates = np.array([-1.0, 0.0, 1.0])
    assert truncated_mean(estimates, np.full(3, 1e6), 1.0) == pytest.approx(np.ones(3), rel=1e-3)
    assert truncated_mean(estimates, np.zeros(3), 1.0).tolist() == [0.0, 0.0, 1.0]
    # No seam where the asymptotic form takes over.
    z = np.array([-199.9, -200.1])
    ends = truncated_mean(z, np.ones(2), math.inf)
    assert ends[0] == pytest.approx(ends[1], rel=2e-3)


@pytest.mark.audit
@pytest.mark.parametrize(("epsilon", "most"), [("0.02", 0.12), ("0.1", 0.05), ("1", 0.03)])
def test_probabilities_come_true(epsilon: str, most: float) -> None:
    """Of queries said to be "a" with probability p, a share of about p is, by the exact densities.

    The mean gap over bins of a tenth and 100 releases of one sketch: 0.02 (standard deviation
    0.01), 0.022 (0.001) and 0.005 (0.0005) in trials, so that false alarms are below 10⁻⁹.
    Densities cut off at zero and divided have gaps of 0.27, 0.06 and 0.005.
    """
    plan = dpkde.plan(
        kernel=KERNEL,
        bounds=BOUNDS,
        epsilon=epsilon,
        family=dpkde.Spline(2, 0.9),
        expected_rows=1000,
    )
    sketches = {label: dpkde.sketch(_draw(label, SIZES[label]), plan) for label in CENTERS}
    priors = np.array([SIZES["a"], SIZES["b"]]) / sum(SIZES.values())
    exact = [dpkde.publish(sketch, epsilon=10**6) for sketch in sketches.values()]
    said: list[Floats] = []
    cut: list[Floats] = []
    true: list[Floats] = []
    for _ in range(100):
        releases = {k: dpkde.publish(sketch, epsilon=epsilon) for k, sketch in sketches.items()}
        queries = np.concatenate([_draw("a", 136), _draw("b", 64)]).clip(-3, 3)
        said.append(dpkde.Classifier(releases, priors=priors).predict_proba(queries)[:, 0])
        for claims, ones in ((cut, list(releases.values())), (true, exact)):
            parts = [release.kde(queries) * p for release, p in zip(ones, priors, strict=True)]
            total = parts[0] + parts[1]
            claims.append(np.where(total > 0, parts[0] / np.maximum(total, 1e-300), 0.5))
    outcome = np.concatenate(true)
    ours, theirs = (_gap(np.concatenate(claims), outcome) for claims in (said, cut))
    assert ours < most
    if epsilon != "1":
        assert ours < theirs / 1.5


def _gap(said: Floats, outcome: Floats) -> float:
    """The mean gap between what was said and what came true, over tenths."""
    bins = np.minimum((said * 10).astype(int), 9)
    sums = [np.abs((outcome - said)[bins == k].sum()) for k in range(10)]
    return float(sum(sums)) / len(said)
