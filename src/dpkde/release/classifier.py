"""One release for each class: a classifier whose probabilities know the noise of the densities.

The estimates d̂_c of the class densities at a query have noise of known spread σ_c. What is asked
for is the predictive probability of class c, which is proportional to

    π_c · E[d_c | d̂_c],

not to π_c·d̂_c. Before it is looked at, a density is taken to be exponential with the same mean m
for all classes. Given d̂_c with normal noise it is then normal about d̂_c − σ_c²/m, cut off at zero,
and

    E[d_c | d̂_c] = t + σ_c·φ(t/σ_c)/Φ(t/σ_c),    t = d̂_c − σ_c²/m.

Without noise that is d̂_c. Where noise is all there is it is m for all classes, and probabilities
are the priors. m is the density of all classes together at the query, by the same formula: from
Σ π_c·d̂_c, whose own mean beforehand is the mean density at the records (the mean of k over pairs of
them, which tables tell).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.numerics.numbers import is_real
from dpkde.release.answering import Answering
from dpkde.release.compare import check_columns_agree
from dpkde.release.differences import whole_of
from dpkde.release.quadratic import Side
from dpkde.tables.arrays import QueriesLike

Floats = NDArray[np.float64]
Label = Hashable

_TINY = 1e-300
_USUAL = 0.1
"""A mean KDE value at records, for families that do not tell."""


class Classifier:
    """A classifier made of one release per class; it costs no privacy.

    Parameters
    ----------
    releases
        A release for each label, of the same columns; families, bounds and kernels may differ.
    priors
        How frequent the classes are, by label or in the order of the labels; they are divided by
        their sum. None: the shares of the (noisy) counts.

    Attributes
    ----------
    classes
        The labels, in the order given.
    priors
        Shape (n_classes,), adding up to one.

    Examples
    --------
    >>> import dpkde
    >>> generator = np.random.default_rng(0)
    >>> settings = {"kernel": dpkde.Gaussian(0.5), "bounds": [(-4, 4)], "epsilon": 1}
    >>> low, high = (
    ...     dpkde.publish(generator.normal(mean, 0.5, (900, 1)), **settings) for mean in (-1, 1)
    ... )
    >>> classifier = dpkde.Classifier({"low": low, "high": high})
    >>> classifier.predict([[-1.0], [1.0]]).tolist()
    ['low', 'high']
    """

    __slots__ = ("_releases", "_typical", "_units", "classes", "priors")

    classes: tuple[Label, ...]
    priors: Floats
    _releases: tuple[Answering, ...]
    _typical: float
    _units: tuple[float, ...]

    def __init__(
        self,
        releases: Mapping[Any, Answering],
        priors: Mapping[Any, float] | Sequence[float] | Floats | None = None,
    ) -> None:
        if not isinstance(releases, Mapping) or not releases:
            raise ParameterError("a classifier needs a release for each label: {'a': a, 'b': b}")
        for label, release in releases.items():
            if not isinstance(release, Answering):
                raise ParameterError(
                    f"the class {label!r} needs a release, got {type(release).__name__}: "
                    "dpkde.load(path) opens the file of one"
                )
        check_columns_agree({f"class {label!r}": release for label, release in releases.items()})
        shares = shares_of(releases, priors)
        shares.setflags(write=False)
        units = _units(releases)
        means = [typical(r) / unit for r, unit in zip(releases.values(), units, strict=True)]
        values = {
            "classes": tuple(releases),
            "priors": shares,
            "_releases": tuple(releases.values()),
            "_typical": float(shares @ means),
            "_units": units,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a classifier is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a classifier is frozen")

    def __reduce__(self) -> Any:
        return type(self), (dict(zip(self.classes, self._releases, strict=True)), self.priors)

    def predict_proba(self, queries: QueriesLike) -> Floats:
        """Return the probability of each class at each query, shape (n_queries, n_classes).

        Rows add up to one. Where densities are within their noise they are near the priors, and
        where no class has any density they are the priors. A query that is not finite, or so far
        out that a family has no answer, has NaN.
        """
        estimates, errors = self._densities(queries)
        with np.errstate(all="ignore"):
            pooled = truncated_mean(
                estimates @ self.priors, np.sqrt(errors**2 @ self.priors**2), self._typical
            )
            parts = self.priors * truncated_mean(estimates, errors, pooled[:, np.newaxis])
            total = parts.sum(axis=1, keepdims=True)
            shares = np.where(total > 0, parts / total, self.priors)
        return np.where(np.isnan(estimates).any(axis=1, keepdims=True), math.nan, shares)

    def predict(self, queries: QueriesLike) -> NDArray[Any]:
        """Return the most probable label at each query, shape (n_queries,).

        Of labels that are equally probable the one given first. Queries without an answer (not
        finite) have no label, and are refused: leave them out, or look at `predict_proba`, which
        has NaN for them.
        """
        shares = self.predict_proba(queries)
        missing = int(np.isnan(shares).any(axis=1).sum())
        if missing:
            raise ParameterError(
                f"{missing} of {len(shares)} queries are not finite, or too far out for an answer, "
                "and have no label: leave them out, or use predict_proba, which has NaN there"
            )
        return np.asarray(_array(self.classes)[shares.argmax(axis=1)])

    def _densities(self, queries: QueriesLike) -> tuple[Floats, Floats]:
        """Return estimates and their errors, shape (n_queries, n_classes), in a common unit.

        Where answers are assisted, the error is their average one: that of noise alone would have
        probabilities follow the priors where the model knows better.
        """
        columns, errors = [], []
        for release, unit in zip(self._releases, self._units, strict=True):
            columns.append(release.kde(queries, clip=False) / unit)
            errors.append(release.average_error(queries) / unit)
        return np.stack(columns, axis=1), np.stack(errors, axis=1)

    def __repr__(self) -> str:
        pairs = zip(self.classes, self.priors, strict=True)
        told = ", ".join(f"{label!r}: {share:.3g}" for label, share in pairs)
        return f"<Classifier: priors {told}; d={self._releases[0].dim}>"


def truncated_mean(estimate: Floats, error: Floats, mean: Floats | float) -> Floats:
    """Return E[d | d̂] for d exponential with a mean, d̂ = d + normal noise; d ≥ 0.

    t + σ·φ(t/σ)/Φ(t/σ) with t = d̂ − σ²/m; without noise max(d̂, 0).

    >>> truncated_mean(np.array([0.0, 5.0]), np.array([1.0, 0.0]), np.inf).round(4).tolist()
    [0.7979, 5.0]
    """
    from scipy.special import erfcx

    with np.errstate(all="ignore"):
        z = estimate / np.maximum(error, _TINY) - error / np.maximum(mean, _TINY)
        # φ/Φ = √(2/π)/erfcx(−z/√2); far below zero z + φ/Φ cancels, and is 1/|z| − 2/|z|³.
        near = z + math.sqrt(2 / math.pi) / erfcx(-z / math.sqrt(2))
        scaled = np.where(z < -200, -1 / z + 2 / z**3, near)
    return np.where(error > 0, error * scaled, np.maximum(estimate, 0.0))


def typical(release: Answering) -> float:
    """Return the mean KDE value at the records: that of k over pairs of them, without noise's part.

    A usual number where the family cannot tell; at least 10⁻⁶ and at most 1.
    """
    pair, side = release.plan.pair, Side.of(release)
    form = pair.comparison(pair, "mmd")
    if form is None:
        return _USUAL
    square = float(side.shares @ form.own.apply(side.shares)) - side.variance * form.own.trace
    return min(max(square / (1 + 3 * side.count_variance), 1e-6), 1.0)


def _units(releases: Mapping[Any, Answering]) -> tuple[float, ...]:
    """Return what turns KDE values into densities; 1 where all have the same kernel."""
    first, *others = releases.values()
    if all(other.kernel == first.kernel for other in others):
        return (1.0,) * len(releases)
    return tuple(whole_of(release) for release in releases.values())


def shares_of(releases: Mapping[Any, Answering | None], priors: Any) -> Floats:
    """Return priors as shares; those of the counts where there are none."""
    if priors is None:
        priors = [release.count for release in releases.values() if release is not None]
    elif isinstance(priors, Mapping):
        if set(priors) != set(releases):
            raise ParameterError(
                f"priors need the labels {list(releases)}, one number each, got {list(priors)}"
            )
        priors = [priors[label] for label in releases]
    wrong = ParameterError(
        f"priors must be {len(releases)} numbers, not negative and not all zero, got {priors!r}"
    )
    try:
        entries = list(priors)
    except TypeError:
        raise wrong from None
    if len(entries) != len(releases) or not all(
        is_real(entry) and 0 <= entry < math.inf for entry in entries
    ):
        raise wrong
    shares = np.array(entries, dtype=np.float64)
    if not shares.sum() > 0:
        raise wrong
    return np.asarray(shares / shares.sum())


def _array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """Return labels as an array: of their own type where they share one, else of objects."""
    for kind in (str, bool, int, float):
        if all(type(label) is kind for label in labels):
            return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
