"""Clouds: what they say of themselves, and whether they are found again in a table of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import dpkde
from dpkde.assisted import translation
from dpkde.assisted.cloud import Cloud, Complex, Floats, Frequencies
from dpkde.assisted.crossfit import NO_FIT, fit
from dpkde.assisted.folds import FOLDS, folds, predicted

GENERATOR = np.random.default_rng(11)
DIM = 6
ROUND = Cloud(np.array([0.7, 0.3]), np.array([0.1, 0.5]), np.full((1, DIM), 0.2))
CLOUDS = {
    "round": ROUND,
    "axes": Cloud(ROUND.weights, ROUND.variances, ROUND.means, np.geomspace(0.2, 3, DIM)),
    "directions": Cloud(
        ROUND.weights,
        ROUND.variances,
        ROUND.means,
        np.ones(DIM),
        GENERATOR.standard_normal((DIM, 1)),
    ),
    "two means": Cloud(
        np.array([0.6, 0.4]), np.array([0.05, 0.1]), np.array([[1.2] * DIM, [-0.3] * DIM])
    ),
}


def _drawn(cloud: Cloud, count: int) -> Floats:
    """Return points of a cloud, in proportion to its weights."""
    points = cloud.draw(np.random.default_rng(3), count)
    assert abs(len(points) - count) <= len(cloud.weights)
    return points


def _frequencies(count: int, dim: int = DIM, seed: int = 0) -> Frequencies:
    """Return frequencies of a Gaussian kernel of bandwidth one."""
    return Frequencies(np.random.default_rng(seed).standard_normal((count, dim)), 2**0.5)


def _table(cloud: Cloud, frequencies: Frequencies, noise: float, seed: int = 1) -> Complex:
    generator = np.random.default_rng(seed)
    real, imaginary = generator.standard_normal((2, len(frequencies))) * np.sqrt(noise / 2)
    return np.asarray(cloud.characteristic(frequencies) + real + 1j * imaginary)


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=list(CLOUDS))
def test_the_characteristic_function_is_that_of_the_points(cloud: Cloud) -> None:
    frequencies, points = _frequencies(50), _drawn(cloud, 100_000)
    turns = np.exp(1j * (points @ frequencies.numbers.T) * frequencies.unit).mean(axis=0)
    assert np.abs(turns - cloud.characteristic(frequencies)).max() < 7 / np.sqrt(len(points))


@pytest.mark.parametrize("cloud", CLOUDS.values(), ids=list(CLOUDS))
def test_its_kde_is_that_of_the_points(cloud: Cloud) -> None:
    kernel, points = dpkde.Gaussian(1.0), _drawn(cloud, 100_000)
    blur, queries = kernel.blur(DIM), points[:: len(points) // 20]
    assert blur is not None
    values = kernel.evaluate(points, queries)
    spread = values.std(axis=0) / np.sqrt(len(points))
    assert (np.abs(cloud.kde(blur, queries) - values.mean(axis=0)) < 7 * spread).all()


def test_frequencies_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    frequencies, cloud = _frequencies(100), CLOUDS["directions"]
    whole = cloud.characteristic(frequencies)
    monkeypatch.setattr("dpkde.assisted.cloud._NUMBERS", 7 * DIM)
    assert len(list(frequencies.blocks())) == 15
    np.testing.assert_allclose(cloud.characteristic(frequencies), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("round", ("three scales", "near mean", "free mean")),
        ("axes", ("near axes", "free axes")),
        ("directions", ("rank 1",)),
        ("two means", ("2 means",)),
    ],
)
def test_a_cloud_is_found_again(name: str, kinds: tuple[str, ...]) -> None:
    """Of the right kind, in a table with noise, and its KDE is right where the table's is not."""
    cloud, frequencies = CLOUDS[name], _frequencies(800)
    found = fit(_table(cloud, frequencies, 1e-3), frequencies, 1e-3, np.zeros((1, DIM)))
    assert found.kind.endswith(kinds)
    assert found.share > 0.98
    assert len(found.clouds) == FOLDS
    blur, queries = dpkde.Gaussian(1.0).blur(DIM), _drawn(cloud, 200)
    assert blur is not None
    truth = cloud.kde(blur, queries)
    for each in found.clouds:
        assert np.abs(each.kde(blur, queries) - truth).mean() < 0.1 * truth.mean()


def test_a_mean_far_away_is_found_from_its_start() -> None:
    """Two bandwidths on each axis from the center: only a start nearby helps."""
    away = np.full((1, 40), 2.0)
    cloud = Cloud(np.ones(1), np.array([0.05]), away + 0.05)
    frequencies = _frequencies(600, 40)
    table = _table(cloud, frequencies, 1e-3)
    assert fit(table, frequencies, 1e-3, np.zeros((1, 40))).kind == "none"
    found = fit(table, frequencies, 1e-3, np.concatenate([np.zeros((1, 40)), away]))
    assert found.share > 0.95
    assert np.abs(found.clouds[0].means - away).max() < 0.2


def test_noise_has_no_model() -> None:
    """The gate is at two standard errors, after the best of several: some noise passes it."""
    nothing = Cloud(np.ones(1), np.full(1, 50.0), np.zeros((1, DIM)))
    frequencies = _frequencies(200)
    kinds = [
        fit(_table(nothing, frequencies, 0.1, seed), frequencies, 0.1, np.zeros((1, DIM))).kind
        for seed in range(8)
    ]
    assert kinds.count("none") >= 5
    assert fit(_table(ROUND, _frequencies(31), 0), _frequencies(31), 0, np.zeros((1, 6))) is NO_FIT


def test_a_fold_is_predicted_without_it() -> None:
    """Whatever is in the cells of a fold, its own cloud stays, and all the others move."""
    frequencies = _frequencies(160)
    table = _table(CLOUDS["axes"], frequencies, 1e-3)
    other = table.copy()
    mine = folds(160)[2]
    other[mine] = other[mine] * np.exp(0.05j * (frequencies.numbers[mine] @ np.ones(DIM)))
    starts = np.zeros((1, DIM))
    before, after = (fit(cells, frequencies, 1e-3, starts) for cells in (table, other))
    assert before.kind == after.kind
    same = [
        bool(np.array_equal(a.means, b.means) and np.array_equal(a.variances, b.variances))
        for a, b in zip(before.clouds, after.clouds, strict=True)
    ]
    assert same == [False, False, True, False]


def test_each_cell_is_predicted_by_the_cloud_of_its_fold() -> None:
    clouds = [Cloud(np.ones(1), np.full(1, 0.1 * k + 0.1), np.zeros((1, 2))) for k in range(FOLDS)]
    frequencies = _frequencies(10, 2)
    values = predicted(clouds, frequencies)
    for j in range(10):
        one = clouds[j % FOLDS].characteristic(frequencies[slice(j, j + 1)])
        np.testing.assert_allclose(values[j], one[0])


def test_what_a_model_misses_is_kept() -> None:
    """A clump that no cloud about one mean can have: the correction must not be dropped."""
    clump = Cloud(np.array([0.7, 0.3]), np.array([0.03, 1e-3]), np.array([[0.0] * 30, [0.6] * 30]))
    frequencies = _frequencies(400, 30)  # too few for several means
    found = fit(_table(clump, frequencies, 1e-4), frequencies, 1e-4, np.zeros((1, 30)))
    assert found.clouds
    assert found.kept == 1
    right = Cloud(np.ones(1), np.array([0.03]), np.zeros((1, 30)))
    found = fit(_table(right, frequencies, 1e-2), frequencies, 1e-2, np.zeros((1, 30)))
    assert found.clouds
    assert found.kept < 0.3


@pytest.mark.parametrize("gain", [1.0, 1.3, 1.7])
def test_the_limit_keeps_the_risk(gain: float) -> None:
    """Against integrals: moved by c at most, E|N + c| is 1.1·gain of E|N|; the rest is left."""
    moved = translation.limit(gain)

    def mean(function: Any) -> float:
        return float(integrate.quad(lambda x: function(x) * stats.norm.pdf(x), -12, 12)[0])

    plain = mean(abs)
    assert mean(lambda x: abs(x + moved)) / plain == pytest.approx(1.1 * gain, rel=1e-6)
    left = mean(lambda x: max(abs(x) - moved, 0.0)) / plain
    assert translation.remains(moved) == pytest.approx(left, rel=1e-5)


def test_no_answer_is_moved_far() -> None:
    assert translation.limit(100) == pytest.approx(2)
    assert translation.limit(0.5) == 0
