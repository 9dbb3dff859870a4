"""Estimators for scikit-learn: a density, a classifier, an outlier detector. Every `fit` spends.

An estimator is fitted to private points by a release of them (`dpkde.publish`), and holds that and
nothing else of the data. What is asked of it afterwards costs nothing, however often.

::

    X, y ─► fit: publish, the one road ─► release_ ─► score_samples, sample, predict, predict_proba

Needs scikit-learn: ``pip install 'dpkde[sklearn]'``. It is loaded where a name is first used.

>>> import numpy as np
>>> from dpkde.sklearn import PrivateKernelDensity
>>> points = np.random.default_rng(0).normal(size=(5_000, 2))
>>> density = PrivateKernelDensity(bandwidth=0.5, bounds=(-4, 4), epsilon=1).fit(points)
>>> density.score_samples([[0.0, 0.0], [3.0, 3.0]]).shape
(2,)
"""

from __future__ import annotations

from dpkde import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
