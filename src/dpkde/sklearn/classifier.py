"""`PrivateKDEClassifier`: one release for each public class, under one guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.labelled.labels import Label, as_classes
from dpkde.curator.labelled.publish import publish_labelled
from dpkde.errors import ParameterError
from dpkde.privacy.disjoint import LabelledStatement
from dpkde.privacy.secrecy import sealed
from dpkde.release.classifier import Classifier, shares_of
from dpkde.release.release import Release
from dpkde.sklearn.base import Published, refuse_weights
from dpkde.sklearn.door import ClassifierMixin, DataConversionWarning, check_is_fitted
from dpkde.sklearn.private import private_table

_NO_LABELS = (
    "requires y to be passed, but the target y is None: it says which class each record is of"
)


class PrivateKDEClassifier(ClassifierMixin, Published):  # type: ignore[misc]
    """A classifier from a release for each class of private records. Every `fit` spends ε, once.

    The classes are public and given: which labels there are in `y` is private, and nobody looks. A
    record counts in the release of its own class, and one with another label nowhere. So one record
    moves one release, and under add-remove each may have the whole ε
    (``curator/labelled/proof.md``). Under ``"replace"`` a changed record may leave one class and
    enter another: each release has half of it, and counts its records with noise.

    Parameters
    ----------
    classes
        The labels: all texts, all numbers, or True and False. Needed.
    priors
        How frequent the classes are, by label or in the order of `classes`. None: by their noisy
        counts.
    bandwidth, kernel, bounds, epsilon, delta, rho, adjacency, family, seed
        As for `PrivateKernelDensity`, the same for each class; the guarantee is that of all of
        them together.
    ledger, dataset, part, remark, options
        As for `PrivateKernelDensity`: a `fit` is one entry, and one debit.

    Attributes
    ----------
    classes_
        The labels, sorted.
    releases_
        The `Release` of each label: all that is kept of the data.
    classifier_
        The `Classifier` that answers.
    n_features_in_, feature_names_in_
        The schema.

    Guarantee
    ---------
    The releases together satisfy the guarantee for labelled records: one more or less, or, under
    ``"replace"``, one with other values or another label. No value and no label raises or warns.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = np.concatenate([generator.normal(mean, 0.5, (900, 1)) for mean in (-1, 1)])
    >>> y = np.repeat(["low", "high"], 900)
    >>> classifier = PrivateKDEClassifier(classes=["low", "high"], bandwidth=0.3, bounds=(-4, 4))
    >>> classifier.fit(X, y).predict([[-1.0], [1.0]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        priors: Any = None,
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
        self.classes = classes
        self.priors = priors

    @sealed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Publish private records class by class, which spends ε; return the estimator.

        Parameters
        ----------
        X
            As for `PrivateKernelDensity.fit`.
        y
            A label for each row. A record whose label is none of `classes` is in no release.
        sample_weight
            Refused: one record is one record.
        """
        refuse_weights(sample_weight)
        if y is None:
            raise ParameterError(_NO_LABELS)
        classes = as_classes(self.classes)
        priors = _by_label(self.priors, self.classes)
        if priors is not None:
            shares_of(dict.fromkeys(classes), priors)
        table = private_table(self, X, self.bounds)
        if len(getattr(y, "shape", ())) == 2:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: y.ravel() makes it one",
                DataConversionWarning,
                stacklevel=3,
            )
        done = publish_labelled(table, y, classes=classes, **self._settings())
        self.classes_ = np.array(classes)
        self.releases_: dict[Label, Release] = done.releases
        self.classifier_ = Classifier(done.releases, priors)
        self._statement = done.privacy
        return self

    @property
    def privacy_(self) -> LabelledStatement:
        """What the releases guarantee together: ``print(estimator.privacy_)``."""
        check_is_fitted(self)
        return self._statement

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class at each query, shape (n_queries, n_classes).

        See `Classifier.predict_proba`. Where no class has any density they are the priors.
        """
        places = self._asked(X)
        shares = self.classifier_.predict_proba(places)
        return np.where(np.isnan(shares), self.classifier_.priors, shares)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label at each query, shape (n_queries,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


def _by_label(priors: Any, classes: Any) -> Any:
    """Return priors by label, where they were given in the order of the classes."""
    if priors is None or isinstance(priors, Mapping):
        return priors
    try:
        given = list(priors)
    except TypeError:
        given = []
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    if len(given) != len(labels):
        raise ParameterError(f"priors must be {len(labels)} numbers, one for each class")
    return dict(zip(labels, given, strict=True))
