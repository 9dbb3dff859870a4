"""`PrivateOutlierDetector`: places of low density, by a threshold that needs no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.numerics.numbers import is_real
from dpkde.privacy.secrecy import sealed
from dpkde.sklearn.density import Scoring
from dpkde.sklearn.door import OutlierMixin, check_is_fitted
from dpkde.sklearn.scores import proper

_POINTS = 10_000
"""Synthetic points whose densities tell what is usual: a quantile is off by half a per cent."""


class PrivateOutlierDetector(OutlierMixin, Scoring):  # type: ignore[misc]
    """An outlier detector from a release of private points. Every `fit` spends the whole ε.

    Places with a log density below `offset_` are outliers. It comes from the release alone: the
    `contamination`-quantile of the log densities of synthetic points, which costs nothing more.

    Parameters
    ----------
    contamination
        The share of the records that is to be below the threshold, as the release tells it: above 0
        and at most 0.5.
    threshold
        A log density to use in its place, such as one from public points.
    bandwidth, kernel, bounds, epsilon, delta, rho, adjacency, family, seed
        As for `PrivateKernelDensity`.
    ledger, dataset, part, remark, options
        As for `PrivateKernelDensity`.

    Attributes
    ----------
    release_
        The `Release`: all that is kept of the data.
    n_features_in_, feature_names_in_
        The schema.

    Guarantee
    ---------
    That of `PrivateKernelDensity`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> detector = PrivateOutlierDetector(bandwidth=0.3, bounds=(-6, 6), contamination=0.02)
    >>> detector.fit(points).predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        contamination: float = 0.1,
        threshold: float | None = None,
        bandwidth: Any = 1.0,
        kernel: Any = "gaussian",
        bounds: Any = None,
        epsilon: Any = 1.0,
        delta: Any = 0,
        rho: Any = None,
        adjacency: str = "add-remove",
        family: Any = "auto",
        seed: int | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        part: str | None = None,
        remark: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth,
            kernel=kernel,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            adjacency=adjacency,
            family=family,
            seed=seed,
            ledger=ledger,
            dataset=dataset,
            part=part,
            remark=remark,
            options=options,
        )
        self.contamination = contamination
        self.threshold = threshold

    @sealed
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Publish private points, which spends ε, and find the threshold; return the estimator.

        Parameters
        ----------
        X, y, sample_weight
            As for `PrivateKernelDensity.fit`.
        """
        if not is_real(self.contamination) or not 0 < self.contamination <= 0.5:
            raise ParameterError(
                f"contamination must be above 0 and at most 0.5, got {self.contamination!r}"
            )
        if self.threshold is not None and not is_real(self.threshold):
            raise ParameterError(f"threshold must be a log density, got {self.threshold!r}")
        super().fit(X, y, sample_weight)
        self._usual = self._quantile()
        return self

    def _quantile(self) -> float:
        """Return the log density that a share of the release's sample is below; NaN: unknown."""
        density = proper(self.release_)
        if density is None:
            return math.nan
        scores = density.log_density(density.sample(_POINTS, seed=0, smoothed=False))
        return float(np.quantile(scores, self.contamination))

    @property
    def offset_(self) -> float:
        """The log density below which a place is an outlier."""
        check_is_fitted(self)
        if self.threshold is not None:
            return float(self.threshold)
        if math.isnan(self._usual):
            raise ParameterError(
                "this release has no proper density, so it has no sample to take a threshold from: "
                "set_params(threshold=...), from scores of public points, is enough, without "
                "another fit"
            )
        return self._usual

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log density less `offset_`: below zero for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for usual places and −1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)
