"""`PrivateOutlierDetector`: a threshold from the release alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import dpkde
from dpkde.sklearn import PrivateOutlierDetector

POINTS = np.random.default_rng(0).normal(size=(20_000, 2))


def _fits(**changes: Any) -> PrivateOutlierDetector:
    settings: dict[str, Any] = {"bandwidth": 0.3, "bounds": (-6, 6), "epsilon": 2, "seed": 0}
    return PrivateOutlierDetector(**(settings | changes))


def test_the_share_of_outliers_is_about_the_contamination() -> None:
    """Within a third of it, for records that the detector never sees again."""
    detector = _fits(contamination=0.1).fit(POINTS)
    others = np.random.default_rng(1).normal(size=(20_000, 2))
    assert (detector.predict(others) == -1).mean() == pytest.approx(0.1, rel=1 / 3)
    assert detector.predict([[0.0, 0.0], [5.0, 5.0], [1e4, 0.0]]).tolist() == [1, -1, -1]
    scores = detector.score_samples(others[:9])
    assert detector.decision_function(others[:9]) == pytest.approx(scores - detector.offset_)
    again = pickle.loads(pickle.dumps(detector))
    assert again.offset_ == detector.offset_
    assert set(detector.fit_predict(POINTS[:50])) <= {-1, 1}


def test_a_threshold_may_be_given_after_the_fit() -> None:
    detector = _fits().fit(POINTS)
    own = detector.offset_
    assert detector.set_params(threshold=-3).offset_ == -3
    assert detector.set_params(threshold=None).offset_ == own
    without = _fits(family=dpkde.FastGauss()).fit(POINTS)
    with pytest.raises(dpkde.ParameterError, match=r"set_params\(threshold=\.\.\.\)"):
        without.predict(POINTS[:3])
    assert without.set_params(threshold=-6).predict([[0.0, 0.0]]) == 1
    with pytest.raises(NotFittedError):
        _fits(threshold=-3).predict(POINTS)


@pytest.mark.parametrize(
    "wrong", [{"contamination": 0}, {"contamination": "auto"}, {"threshold": "low"}]
)
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(dpkde.ParameterError, match="must be"):
        _fits(**wrong).fit(POINTS)
