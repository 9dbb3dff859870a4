"""`PrivateKDEClassifier`: labels, manners, one debit, and what is kept."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import log_loss

import dpkde
from dpkde.sklearn import PrivateKDEClassifier

GENERATOR = np.random.default_rng(0)
POINTS = np.concatenate([GENERATOR.normal(mean, 0.7, (1_000, 2)) for mean in (-1, 1, 3)])
LABELS = np.repeat(["low", "middle", "high"], 1_000)


def _fits(**changes: Any) -> PrivateKDEClassifier:
    settings: dict[str, Any] = {
        "classes": ["low", "middle", "high"],
        "bandwidth": 0.4,
        "bounds": [(-4, 6)] * 2,
        "epsilon": 5,
        "family": dpkde.Spline(3, 0.5),
    }
    return PrivateKDEClassifier(**(settings | changes))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_it_classifies(adjacency: str) -> None:
    classifier = _fits(adjacency=adjacency).fit(POINTS, LABELS)
    assert classifier.classes_.tolist() == ["high", "low", "middle"]
    assert classifier.score(POINTS, LABELS) > 0.9
    shares = classifier.predict_proba(POINTS[:50])
    assert shares.shape == (50, 3)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert classifier.predict_log_proba(POINTS[:50]) == pytest.approx(np.log(shares))
    assert log_loss(LABELS, classifier.predict_proba(POINTS)) < 0.4
    each = {"add-remove": 5, "replace": 2.5}[adjacency]
    assert [r.privacy.epsilon for r in classifier.releases_.values()] == [each] * 3
    assert "together 5-differentially private" in str(classifier.privacy_)
    far = classifier.predict_proba([[1e9, 0.0]])  # nobody is there: the priors
    assert far == pytest.approx(classifier.classifier_.priors[np.newaxis])


def test_only_the_classes_that_were_given_count() -> None:
    labels = np.where(LABELS == "high", "rare", LABELS).astype(object)
    labels[:3] = [None, 7, object()]
    classifier = _fits(epsilon=10**6).fit(POINTS, labels)
    counts = {label: release.count for label, release in classifier.releases_.items()}
    assert counts == {"high": 1, "low": 997, "middle": 1_000}
    assert "rare" not in str(vars(classifier))


def test_priors_in_the_order_of_the_classes() -> None:
    for priors in ([0.1, 0.2, 0.7], {"low": 1, "middle": 2, "high": 7}):
        classifier = _fits(priors=priors).fit(POINTS, LABELS)
        assert classifier.classifier_.priors == pytest.approx([0.7, 0.1, 0.2])


@pytest.mark.parametrize(
    ("changes", "labels", "message"),
    [
        ({"classes": None}, LABELS, "which labels there are among private records is private"),
        ({"classes": [0, 1]}, LABELS, "y holds texts, and classes are numbers"),
        ({"priors": [1, 2]}, LABELS, "3 numbers, one for each class"),
        ({"priors": 3}, LABELS, "3 numbers, one for each class"),
        ({"priors": [0, 0, 0]}, LABELS, "not all zero"),
        ({}, None, "requires y to be passed, but the target y is None"),
        ({}, LABELS[:7], "one label for each row"),
        ({"bounds": None}, LABELS, "bounds is needed"),
        ({"options": {"unit": "user"}}, LABELS, "each column of X is a feature"),
    ],
)
def test_wrong_arguments_cost_nothing(
    tmp_path: Path, changes: dict[str, Any], labels: Any, message: str
) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "budget.db", dataset="x", epsilon=5)
    with pytest.raises(dpkde.ParameterError, match=message):
        _fits(ledger=ledger, **changes).fit(POINTS, labels)
    assert ledger.left().epsilon == 5


def test_one_fit_is_one_debit(tmp_path: Path) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "budget.db", dataset="x", epsilon=10)
    classifier = _fits(ledger=tmp_path / "budget.db").fit(POINTS, LABELS)
    assert ledger.left().epsilon == 5
    assert len(ledger.history()) == 1
    files = [tmp_path / f"{label}.dpkde" for label in classifier.classes_]
    for file, release in zip(files, classifier.releases_.values(), strict=True):
        release.save(file)
    assert ledger.verify(files)
    rebuilt = dpkde.Classifier({file.stem: dpkde.load(file) for file in files})
    assert np.array_equal(rebuilt.predict(POINTS[:99]), classifier.predict(POINTS[:99]))


def test_pickles_clones_and_lists() -> None:
    classifier = _fits().fit(POINTS.tolist(), LABELS.tolist())
    data = pickle.dumps(classifier)
    assert not [value for value in POINTS.ravel() if value.tobytes() in data]
    again = pickle.loads(data)
    assert set(vars(again)) == set(vars(classifier))
    shares = classifier.predict_proba(POINTS[:99])
    assert again.predict_proba(POINTS[:99]) == pytest.approx(shares, abs=1e-12)
    assert clone(classifier).get_params() == classifier.get_params()
    for name in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(_fits(), name)(POINTS)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        _fits().fit(POINTS, LABELS[:, np.newaxis])
