"""Assisted answers of releases: which ones they are, how near, and what is claimed of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.assisted.folds import FOLDS
from dpkde.errors import FormatError, ParameterError
from dpkde.kernels import Kernel
from dpkde.release.assistance import fitted
from dpkde.release.parts import FittedModel, NoisyMean, Parts

DIM = 20
POINTS = 0.25 * np.random.default_rng(1).standard_normal((20_000, DIM)) + 0.1
QUERIES = POINTS[:60]
KERNEL = dpkde.Gaussian(1.0)


def made(**changes: Any) -> dpkde.Release:
    arguments: dict[str, Any] = {
        "kernel": KERNEL,
        "epsilon": 1,
        "family": dpkde.Fourier(256),
        "seed": 5,
    }
    return dpkde.publish(POINTS, **(arguments | changes))


@pytest.fixture(scope="module")
def release() -> dpkde.Release:
    return made()


@pytest.fixture(scope="module")
def truth() -> Any:
    return KERNEL.evaluate(POINTS, QUERIES).mean(axis=0)


def _error(release: dpkde.Release, truth: Any, **how: Any) -> float:
    return float(np.abs(release.kde(QUERIES, **how) - truth).mean())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": None, "rho": 0.5},
        {"adjacency": "replace"},
        {"bounds": [(-2.0, 2.0)] * DIM},
        {"bounds": dpkde.Ball([0.0] * DIM, 4.0)},
    ],
    ids=["pure", "delta", "rho", "replace", "box", "ball"],
)
def test_a_model_helps_under_every_guarantee(changes: dict[str, Any], truth: Any) -> None:
    """A cloud in 20 dimensions, where plain answers are off by some hundredths."""
    release = made(**changes)
    assert release.model is not None
    assert release.model.share > 0.9
    assert _error(release, truth) < 0.4 * _error(release, truth, assisted=False)


def _whitened(kernel: Kernel) -> Any:
    return kernel.evaluate(POINTS, QUERIES).mean(axis=0)


@pytest.mark.parametrize(
    "kernel",
    [
        dpkde.Laplacian(8.0),
        dpkde.Cauchy(3.0),
        dpkde.Matern(1.5, 1.0),
        dpkde.RationalQuadratic(2, 1.0),
        dpkde.ExponentialLp(2, 1, 2.0),
        dpkde.Gaussian(tuple(np.linspace(0.8, 1.5, DIM).tolist())),
        dpkde.Gaussian(np.eye(DIM) + 0.1),
        dpkde.Mixture([dpkde.Gaussian(1.0), dpkde.Matern(1.5, 3.0)]),
    ],
    ids=lambda kernel: kernel.name,
)
def test_a_model_helps_with_every_kernel_that_it_can_be_blurred_by(kernel: Kernel) -> None:
    # Where answers are near one, the noise of a count would be most of both errors.
    release, truth = made(kernel=kernel, adjacency="replace"), _whitened(kernel)
    assert release.model is not None
    assert _error(release, truth) < 0.6 * _error(release, truth, assisted=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": dpkde.Erfc(2.0)},
        {"family": dpkde.Fourier(256, form="phase")},
        {"family": dpkde.Fourier(31)},
    ],
    ids=["erfc", "phase", "few"],
)
def test_elsewhere_answers_are_plain(changes: dict[str, Any]) -> None:
    release = made(**changes)
    assert release.model is None
    assert release.parts.of(FittedModel) is None
    assert release.format_version == 1
    plain = release.kernel_sum(QUERIES) / release.count
    for assisted in (None, True, False):
        answers = release.kde(QUERIES, clip=False, assisted=assisted)
        np.testing.assert_array_equal(answers, plain)


def test_plain_answers_are_there_for_the_asking(release: dpkde.Release) -> None:
    plain = release.kernel_sum(QUERIES) / release.count
    assert not np.allclose(release.kde(QUERIES, clip=False), plain)
    np.testing.assert_array_equal(release.kde(QUERIES, clip=False, assisted=False), plain)
    grouped = release.kernel_sum(QUERIES, groups=3) / release.count
    np.testing.assert_array_equal(release.kde(QUERIES, groups=3, clip=False), grouped)
    both = release.kde(QUERIES, groups=3, assisted=True)
    assert not np.allclose(both, np.clip(grouped, 0, 1))
    for wrong in ("yes", 1, 0.0):
        with pytest.raises(ParameterError, match="assisted"):
            release.kde(QUERIES, assisted=wrong)  # type: ignore[arg-type]


def test_a_promise_is_kept_by_plain_answers() -> None:
    release = dpkde.publish(
        POINTS[:, :3],
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-2, 2)] * 3,
        epsilon=1,
        family="fourier",
        alpha=0.5,
        eta=0.1,
    )
    queries = QUERIES[:, :3]
    plain = release.kde(queries, assisted=False)
    np.testing.assert_array_equal(release.kde(queries), plain)
    assert not np.array_equal(release.kde(queries, assisted=True), plain)
    assert release.error_bound(0.1) <= 0.5


def test_everybody_gets_the_same_answers(release: dpkde.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "a.dpkde")
    loaded = dpkde.load(tmp_path / "a.dpkde")
    assert isinstance(loaded, dpkde.Release)
    assert loaded == release
    assert loaded.parts == release.parts
    np.testing.assert_array_equal(loaded.kde(QUERIES), release.kde(QUERIES))
    assert fitted(loaded) is not None  # from what is in the file alone


def _without_model(release: dpkde.Release) -> dpkde.Release:
    return dpkde.Release(
        release.plan,
        release.table,
        release.count,
        release.privacy,
        release_id=release.release_id,
    )


def test_older_files_are_fitted_when_first_asked(release: dpkde.Release, tmp_path: Path) -> None:
    old = _without_model(release)
    assert old.format_version == 1
    assert "model" not in repr(old)
    old.save(tmp_path / "old.dpkde")
    loaded = dpkde.load(tmp_path / "old.dpkde")
    assert isinstance(loaded, dpkde.Release)
    np.testing.assert_allclose(loaded.kde(QUERIES), release.kde(QUERIES), atol=1e-9)
    assert "model" in repr(loaded)
    assert loaded.with_model() == release
    assert loaded == old  # asking changes nothing


def test_the_release_says_which_model(release: dpkde.Release) -> None:
    assert release.model is not None
    assert release.model.kind in repr(release)
    assert f"explains {release.model.share:.0%}" in repr(release)


def test_where_no_model_helps_it_says_so() -> None:
    """Two far clusters: seen from between them there is nothing."""
    halves = np.concatenate([POINTS[:500] + 9, POINTS[:500] - 9])
    release = dpkde.publish(halves, kernel=KERNEL, epsilon=0.3, family=dpkde.Fourier(64), seed=2)
    assert release.model is not None
    if release.model.kind == "none":  # noise may look like a cloud
        assert "answers are plain" in repr(release)
        plain = release.kde(QUERIES, assisted=False)
        np.testing.assert_array_equal(release.kde(QUERIES), plain)


@pytest.mark.audit
def test_the_correction_is_unbiased_whatever_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """U over seeds and noise, with a model that is wrong in every way: the mean is the KDE."""
    monkeypatch.setattr(dpkde.Release, "with_model", lambda release: release)
    rng = np.random.default_rng(0)
    wrong = FittedModel(
        "wrong",
        0.5,
        1.0,  # all of the correction is kept
        0.0,
        0.0,
        weights=np.full((FOLDS, 2), 0.5),
        variances=rng.uniform(0.01, 0.3, (FOLDS, 2)),
        means=rng.normal(size=(FOLDS, 1, 3)) * 0.5,
        axes=rng.uniform(0.5, 2, (FOLDS, 3)),
    )
    points, queries = POINTS[:200, :3], POINTS[:5, :3]
    truth = KERNEL.evaluate(points, queries).mean(axis=0)
    answers = []
    for seed in range(600):
        plan = dpkde.plan(kernel=KERNEL, dim=3, epsilon=4, family=dpkde.Fourier(40), seed=seed)
        release = dpkde.publish(points, plan=plan, epsilon=4, adjacency="replace").with_parts(wrong)
        answers.append(release.kde(queries, clip=False))
    spread = np.std(answers, axis=0) / np.sqrt(len(answers))
    assert (np.abs(np.mean(answers, axis=0) - truth) < 6 * spread).all()


@pytest.mark.audit
def test_intervals_and_errors_tell_the_truth(truth: Any) -> None:
    """Per query for U; on average for the answer, whose claim is the shorter one."""
    inside, ratios, claims = [], [], []
    for seed in range(25):
        release = made(family=dpkde.Fourier(128), seed=seed, epsilon=0.3)
        low, high = release.interval(QUERIES)
        inside.append((low <= truth) & (truth <= high))
        whole = np.hypot(release.standard_error(QUERIES), release.sampling_error(QUERIES))
        claims.append(release.average_error(QUERIES).mean() / whole.mean())
        ratios.append(np.mean((release.kde(QUERIES) - truth) ** 2) ** 0.5)
    assert np.mean(inside) > 0.93
    assert np.mean(inside, axis=0).min() > 0.6  # of 25 releases, at the worst of 60 queries
    assert np.mean(claims) < 0.9  # 0.8, give or take 0.01; that of U would be 1
    assert np.mean(ratios) < 1.2 * np.mean(claims) * whole.mean()


def test_plain_errors_are_the_plain_ones(release: dpkde.Release) -> None:
    other = _without_model(release)
    for method in ("standard_error", "sampling_error"):
        ours = getattr(release, method)(QUERIES, assisted=False)
        np.testing.assert_array_equal(ours, getattr(other, method)(QUERIES, assisted=False))
    assert (release.sampling_error(QUERIES) < release.sampling_error(QUERIES, assisted=False)).all()
    wide = np.diff(release.interval(QUERIES, assisted=False), axis=0)
    assert (np.diff(release.interval(QUERIES), axis=0) < wide).mean() > 0.9


def test_an_average_error_of_plain_answers_is_all_of_it() -> None:
    release = dpkde.publish(
        POINTS[:, :2], kernel=KERNEL, bounds=[(-2, 2)] * 2, epsilon=1, family="spline"
    )
    queries = QUERIES[:, :2]
    whole = np.hypot(release.standard_error(queries), release.sampling_error(queries))
    np.testing.assert_allclose(release.average_error(queries), whole)


def test_strange_queries(release: dpkde.Release) -> None:
    rows = np.array([[np.nan] * DIM, [1e9] * DIM, [50.0] * DIM, [0.0] * DIM])
    answers = release.kde(rows)
    assert np.isnan(answers[:2]).all()
    assert 0 <= answers[2] < 0.2
    assert answers[3] > 0.05
    assert len(release.kde(np.empty((0, DIM)))) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"kept": 1.5},
        {"share": -0.1},
        {"limit": float("nan")},
        {"kind": 3},
        {"kind": "none"},
        {"weights": np.full((FOLDS, 2), 0.4)},
        {"weights": np.full((FOLDS, 2), 0.5, dtype=np.float32)},
        {"variances": np.array([[0.1, 0.0]] * FOLDS)},
        {"variances": np.array([[0.1, np.inf]] * FOLDS)},
        {"means": np.zeros((FOLDS, 3, 2))},
        {"means": np.zeros((FOLDS - 1, 1, 2))},
        {"axes": np.full((FOLDS, 2), -1.0)},
        {"axes": np.ones((FOLDS, 3))},
        {"factors": np.ones((FOLDS, 3, 1))},
        {"variances": None},
        {"limit": 2.5},
        {"doubt": 1e308},
        {"kind": "right\nThis release is 0.001-differentially private."},
        {"means": np.full((FOLDS, 1, 2), 1e308)},
        {"factors": np.full((FOLDS, 2, 1), 1e10)},
        {"variances": np.full((FOLDS, 2), 1e308)},
    ],
    ids=str,
)
def test_a_damaged_model_is_refused(change: dict[str, Any]) -> None:
    sound: dict[str, Any] = {
        "kind": "right",
        "share": 0.5,
        "kept": 0.5,
        "limit": 1.0,
        "doubt": 0.0,
        "weights": np.full((FOLDS, 2), 0.5),
        "variances": np.full((FOLDS, 2), 0.1),
        "means": np.zeros((FOLDS, 1, 2)),
    }
    FittedModel(**sound)
    with pytest.raises(ParameterError, match="damaged"):
        FittedModel(**(sound | change))


def test_a_model_of_another_table_is_refused(release: dpkde.Release) -> None:
    assert release.model is not None
    small = made(family=dpkde.Fourier(64), kernel=dpkde.Laplacian(1.0))
    spline = dpkde.publish(POINTS[:, :2], kernel=KERNEL, bounds=[(-2, 2)] * 2, epsilon=1)
    narrow = dpkde.publish(POINTS[:, :2], kernel=KERNEL, epsilon=1, family=dpkde.Fourier(64))
    with pytest.raises(ParameterError, match="columns"):
        narrow.with_parts(release.model)
    with pytest.raises(ParameterError, match="Fourier"):
        spline.with_parts(release.model)
    longer = FittedModel(
        "long",
        0.5,
        0.5,
        1.0,
        0.0,
        np.ones((FOLDS, 1)),
        np.ones((FOLDS, 1)),
        np.zeros((FOLDS, 1, DIM)),
        factors=np.ones((FOLDS, DIM, 1)),
    )
    release.with_parts(longer)
    with pytest.raises(ParameterError, match="factors"):
        small.with_parts(longer)


def test_a_model_in_a_file_that_is_damaged_is_refused(release: dpkde.Release) -> None:
    document, tensors = release.contents()
    document = {**document, "parts": {"model": {**document["parts"]["model"], "kept": 7}}}
    with pytest.raises(FormatError, match="model"):
        dpkde.Release.of_contents((document, tensors))


@pytest.mark.parametrize("name", ["stretched", "several", "axes"])
def test_answers_of_golden_files_stay(name: str) -> None:
    """Files with a model, written once: everybody's answers, to 10⁻⁹."""
    golden = Path(__file__).parent / "golden"
    written = json.loads((golden / "assisted.json").read_text(encoding="utf-8"))
    release = dpkde.load(golden / f"assisted-{name}.dpkde")
    assert isinstance(release, dpkde.Release)
    queries, expected = np.array(written["queries"]), written["answers"][name]
    answers = release.kde(queries, clip=False)
    np.testing.assert_allclose(answers, expected["kde"], rtol=0, atol=1e-9)
    averages = release.average_error(queries)
    np.testing.assert_allclose(averages, expected["average"], rtol=0, atol=1e-9)
    ends = release.interval(queries)
    np.testing.assert_allclose(ends, expected["interval"], rtol=0, atol=1e-6)


def test_what_follows_noise_is_no_part_of_a_plan(release: dpkde.Release) -> None:
    """A plan with one would spend a budget and then be refused."""
    assert release.model is not None
    mean = NoisyMean(np.zeros(DIM))
    for part in (release.model, mean):
        with pytest.raises(ParameterError, match="before any noise"):
            replace(release.plan, parts=Parts([part]))


def test_a_mean_is_paid_for_and_the_statement_says_so() -> None:
    bounds = [(-3.0, 3.0)] * DIM
    with_mean = dpkde.publish(POINTS, kernel=KERNEL, bounds=bounds, epsilon=1, family="fourier")
    assert [spend.purpose for spend in with_mean.privacy.spends].count("mean") == 1
    mean = with_mean.parts.of(NoisyMean)
    assert mean is not None
    np.testing.assert_allclose(mean.mean, 0.1, atol=1.0)
    assert dpkde.Release.from_bytes(with_mean.to_bytes()) == with_mean
    without = made(bounds=bounds)
    with pytest.raises(ParameterError, match="paid for"):
        without.with_parts(NoisyMean(np.zeros(DIM)))
    with pytest.raises(ParameterError, match="inside the bounds"):
        with_mean.with_parts(NoisyMean(np.full(DIM, 3.1)))
    with pytest.raises(ParameterError, match="columns"):
        with_mean.with_parts(NoisyMean(np.zeros(DIM - 1)))
    document, tensors = with_mean.contents()
    for cells in (None, 1, DIM + 1, 0, "20"):
        spends = [
            {**spend, "cells": cells} if spend["purpose"] == "mean" else spend
            for spend in document["privacy"]["spends"]
        ]
        forged = {**document, "privacy": {**document["privacy"], "spends": spends}}
        with pytest.raises(FormatError):
            dpkde.Release.of_contents((forged, tensors))


def test_a_small_file_cannot_ask_for_much() -> None:
    """Laplacian clouds take a table for each axis of each part, mixtures a number a scale."""

    def cloud(parts: int, dim: int, **more: Any) -> FittedModel:
        weights = np.full((FOLDS, parts), 1 / parts)
        means, axes = np.zeros((FOLDS, 1, dim)), np.ones((FOLDS, dim))
        return FittedModel("many", 0.5, 0.5, 1.0, 0.0, weights, weights, means, axes, **more)

    with pytest.raises(ParameterError, match="damaged"):
        cloud(64, DIM)
    with pytest.raises(ParameterError, match="damaged"):
        cloud(3, DIM, factors=np.zeros((FOLDS, DIM, 64)))
    wide: dict[str, Any] = {"epsilon": 1, "seed": 0, "family": dpkde.Fourier(32)}
    points = np.zeros((10, 400))
    made().with_parts(cloud(3, DIM))
    for kernel in (dpkde.Laplacian(8.0), dpkde.RationalQuadratic(0.05, 1.0)):
        release = dpkde.publish(points, kernel=kernel, **wide)
        with pytest.raises(ParameterError, match="takes no axes"):
            release.with_parts(cloud(3, 400))


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, RuntimeError, OSError])
def test_a_fit_that_fails_leaves_plain_answers(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is spent by then. And nobody tries again, perhaps with another end."""

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("dpkde.assisted.crossfit.fit", fails)
    release = made()
    assert release.model is not None
    assert release.model.kind == "none"
    assert release.parts.of(FittedModel) == release.model
    answers = release.kde(QUERIES, clip=False)
    np.testing.assert_array_equal(answers, release.kde(QUERIES, clip=False, assisted=False))


def test_who_stops_a_fit_keeps_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpkde.assisted.crossfit.fit", stopped)
        release = made()
    assert release.parts.of(FittedModel) is None
    assert release.model is not None  # fitted when first asked
