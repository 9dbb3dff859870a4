"""`PrivateKernelDensity`: scikit-learn's `KernelDensity`, from a release."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.publish import publish
from dpkde.kernels import Kernel
from dpkde.privacy.secrecy import sealed
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release.release import Release
from dpkde.sklearn.base import Published, refuse_weights
from dpkde.sklearn.door import DensityMixin, check_is_fitted, check_random_state
from dpkde.sklearn.private import private_table
from dpkde.sklearn.scores import log_densities

_SEEDS = 1 << 31
_PROPER = ("spline", "fourier")
"""Families with proper densities: others may err somewhat less, and have no sample."""


class Scoring(Published):
    """An estimator of one release, which gives places their log densities."""

    def _families(self, kernel: Kernel) -> Any:
        """Return those whose tables have proper densities, where there is a choice."""
        able = kernel.is_product or kernel.is_shift_invariant
        is_open = isinstance(self.family, str) and self.family == "auto"
        return _PROPER if is_open and able else self.family

    @sealed
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Publish private points, which spends ε; return the estimator.

        Parameters
        ----------
        X
            Shape (n_samples, n_features): an array, dense or sparse, or a data frame. Rows with a
            value that is no finite number contribute nothing.
        y
            Not looked at.
        sample_weight
            Refused: one record is one record.
        """
        refuse_weights(sample_weight)
        table = private_table(self, X, self.bounds)
        self.release_: Release = publish(table, **self._settings())
        return self

    @property
    def privacy_(self) -> PrivacyStatement:
        """What `fit` guarantees, and every spend of it: ``print(estimator.privacy_)``."""
        check_is_fitted(self)
        return self.release_.privacy

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log density at each query, shape (n_queries,). It costs no privacy.

        That of `Release.log_density`, finite however far out a query is, but for kernels that end:
        −∞ beyond their reach. Releases without a proper density have the logarithm of what is
        to be expected of it given the noisy answer.
        """
        places = self._asked(X)
        return log_densities(self.release_, places)


class PrivateKernelDensity(DensityMixin, Scoring):  # type: ignore[misc]
    """A kernel density of private points, for scikit-learn. Every `fit` spends the whole ε.

    Two fits of the same points cost 2ε together, and a cross-validation multiplies it by its fits,
    at least: give `ledger`, which refuses what goes beyond a total, and choose parameters without
    the data (docs/sklearn.md).

    Parameters
    ----------
    bandwidth
        h in scikit-learn's convention: the standard deviation of a gaussian kernel, which is
        ``dpkde.Gaussian.from_std(h)``. One number, or one per column. A text is handed to the
        kernel as it is.
    kernel
        ``"gaussian"``; ``"exponential"``; ``"linear"`` in one column; or one of dpkde's, such as
        ``dpkde.Cauchy(0.5)``, which has its own bandwidth.
    bounds
        Where records can be, from public knowledge: one (low, high) pair for each column; one pair
        for all columns; a `Box`, `Ball` or `Sphere`. Records outside are moved to the bounds.
        ``(-math.inf, math.inf)``: all of space, for many dimensions. Needed.
    epsilon, delta, rho
        The guarantee of one `fit`. With `rho` (zCDP), `epsilon` is not looked at.
    adjacency
        ``"add-remove"``: the number of records is private; or ``"replace"``.
    family
        As for `dpkde.publish`, where ``"auto"`` is the better of ``"spline"`` and ``"fourier"``:
        their tables have proper densities.
    seed
        Of the family's public randomness. The noise has no seed: each `fit` draws it anew.
    ledger, dataset, part, remark
        As for `dpkde.publish`: where each `fit` is entered, before anything is read.
    options
        More arguments of `dpkde.publish`, such as ``{"typical_density": 0.02}``.

    Attributes
    ----------
    release_
        The `Release`: all that is kept of the data. ``release_.save(path)`` publishes it.
    n_features_in_, feature_names_in_
        The schema.

    Guarantee
    ---------
    The fitted estimator, and all that it is ever asked, satisfies the guarantee for the records
    given to `fit`, if these were not made from one another: a scaler that was fitted to the same
    records breaks it. No value, and under add-remove not their number, raises or warns.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(5_000, 1))
    >>> density = PrivateKernelDensity(bandwidth=0.3, bounds=[(-5, 5)], epsilon=1).fit(points)
    >>> bool(density.score_samples([[0.0]])[0] > density.score_samples([[3.0]])[0])
    True
    >>> print(density.privacy_)  # doctest: +ELLIPSIS
    This release is 1-differentially private
    ...
    """

    def score(self, X: Any, y: Any = None) -> float:
        """Return the sum of the log densities at queries."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.float64]:
        """Return synthetic points, shape (n_samples, n_features). They cost no privacy.

        See `Release.sample`. `random_state` is that of this public randomness.
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(_SEEDS))
        return self.release_.sample(n_samples, seed=seed)
