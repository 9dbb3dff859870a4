"""scikit-learn's own checks, and those that privacy forbids: each is seen to fail, and why is told.

The table in docs/sklearn.md is the list, for whoever asks before using the estimators.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpkde
from dpkde.sklearn import PrivateKDEClassifier, PrivateKernelDensity, PrivateOutlierDetector

PAGE = Path(__file__).parents[2] / "docs" / "sklearn.md"
ROW = re.compile(r"^\| `(check_\w+)` \| ([\w, ]+) \| (.+) \|$", re.M)
FORBIDDEN = {name: (whom, why) for name, whom, why in ROW.findall(PAGE.read_text(encoding="utf-8"))}
KINDS = {
    "density": PrivateKernelDensity,
    "classifier": PrivateKDEClassifier,
    "detector": PrivateOutlierDetector,
}


class TakesClassesFromLabels(PrivateKDEClassifier):
    """What the checks need, which name no classes, and what nobody else may do.

    Columns of real numbers have the classes 0 and 1; lists of rows become arrays.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        labels = np.asarray(0 if y is None else y)
        known = [0, 1] if labels.dtype.kind in "fc" else np.unique(labels)
        given = {**self.get_params(), "classes": known}
        rows = np.asarray(X) if isinstance(X, list) else X
        fitted = PrivateKDEClassifier(**given).fit(rows, y, sample_weight)
        for name in set(vars(fitted)) - set(given):
            setattr(self, name, getattr(fitted, name))
        return self


def forbidden(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator has to fail."""
    return {
        name: why
        for name, (whom, why) in FORBIDDEN.items()
        if whom == "all" or any(isinstance(estimator, KINDS[kind]) for kind in whom.split(", "))
    }


COMMON: dict[str, Any] = {"bandwidth": 2.0, "bounds": (-10, 10), "epsilon": 1000, "seed": 0}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        PrivateKernelDensity(family=dpkde.Fourier(64), **COMMON),
        PrivateOutlierDetector(family=dpkde.Fourier(64), **COMMON),
        TakesClassesFromLabels(family=dpkde.Fourier(16), **COMMON),
    ],
    expected_failed_checks=forbidden,
    xfail_strict=True,
)
def test_checks(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, so that none passes or fails by chance, but for the one that is about it."""
    bare = check
    while isinstance(bare, partial):
        bare = bare.func
    if bare.__name__ != "check_fit_idempotent":
        nothing = lambda budget, spend, size: np.zeros(size, dtype=np.int64)  # noqa: E731
        monkeypatch.setattr("dpkde.privacy.budget.Budget.noise", nothing)
    check(estimator)


def test_the_list_is_read() -> None:
    assert len(FORBIDDEN) > 10
    assert {whom for whom, _ in FORBIDDEN.values()} > {"all", "classifier"}
    assert set(" ".join(whom for whom, _ in FORBIDDEN.values()).replace(",", "").split()) <= {
        "all",
        *KINDS,
    }
