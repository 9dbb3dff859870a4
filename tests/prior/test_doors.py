"""SmallDB and PMW behind the same doors as the other query mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde import prior

KERNEL = dpkde.Gaussian(0.5)
BOUNDS = [(0.0, 4.0)]
POINTS = np.repeat([1.0, 3.0], [700, 300])[:, np.newaxis]
QUERIES = np.array([[1.0], [2.0], [3.0], [np.nan]])


@pytest.mark.parametrize(
    "mechanism", [prior.SmallDB(size=4, points_per_axis=5), prior.PMW(points_per_axis=17)]
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_answers_come_through_one_door(mechanism: Any, adjacency: str) -> None:
    answers = prior.answer(
        POINTS,
        QUERIES,
        mechanism=mechanism,
        kernel=KERNEL,
        bounds=BOUNDS,
        epsilon=20,
        adjacency=adjacency,
    )
    exact = dpkde.nonprivate.kde(POINTS, QUERIES[:3], KERNEL)
    assert np.abs(answers.kde[:3] - exact).max() < 0.15
    assert np.isnan(answers.kde[3])
    assert np.isnan(answers.standard_error).all()
    assert (answers.count is None) == isinstance(mechanism, prior.SmallDB)
    assert answers.privacy.epsilon == 20
    assert "Answers" in repr(answers)


def test_pmw_answers_online_and_smalldb_does_not() -> None:
    options: dict[str, Any] = {
        "kernel": KERNEL,
        "bounds": BOUNDS,
        "epsilon": 50,
        "most_queries": 40,
    }
    curator = prior.Online(POINTS, mechanism=prior.PMW(points_per_axis=17), **options)
    exact = dpkde.nonprivate.kde(POINTS, QUERIES[:3], KERNEL)
    for _ in range(3):
        answers = curator.ask(QUERIES[:3])
        assert np.abs(answers.kde - exact).max() < 0.25
    assert answers.privacy.epsilon == 50
    with pytest.raises(dpkde.ParameterError, match="all queries at once"):
        prior.Online(POINTS, mechanism=prior.SmallDB(size=4, points_per_axis=5), **options)
