"""What the estimators share: how parameters become those of `publish`, and what queries are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Kernel
from dpkde.kernels.conventions import of_scikit_learn
from dpkde.numerics.numbers import is_real
from dpkde.sklearn.door import BaseEstimator, check_is_fitted, validate_data

_NO_BOUNDS = (
    "bounds is needed: where records can be, from what is known in public, never from the data's "
    "own least and largest values. Give one pair for each column, bounds=[(0, 100), (-5, 5)]; one "
    "pair for all columns, bounds=(0, 1); a dpkde.Box, or dpkde.Ball(center, radius) in many "
    "dimensions; or bounds=(-math.inf, math.inf) for all of space, which suits many dimensions and "
    "not few"
)
_OWN = (
    *("kernel", "bounds", "epsilon", "delta", "rho", "adjacency", "family", "seed"),
    *("ledger", "dataset", "part", "remark"),
)
_TABLES = ("columns", "unit", "rows_per_unit", "plan")


class Published(BaseEstimator):  # type: ignore[misc]
    """An estimator that is fitted by publishing.

    Its parameters are those of `PrivateKernelDensity`, where they are described.
    """

    def __init__(
        self,
        *,
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
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.adjacency = adjacency
        self.family = family
        self.seed = seed
        self.ledger = ledger
        self.dataset = dataset
        self.part = part
        self.remark = remark
        self.options = options

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of `publish`, for as many columns as were seen."""
        options = dict(self.options or {})
        for name in options:
            if name in _OWN:
                raise ParameterError(f"{name} is a parameter of its own: it is no option")
            if name in _TABLES:
                raise ParameterError(
                    f"{name} is no option here, where each column of X is a feature: use "
                    "dpkde.publish"
                )
        dim = int(self.n_features_in_)
        kernel = _kernel(self.kernel, self.bandwidth, dim)
        return {
            "kernel": kernel,
            "bounds": _bounds(self.bounds, dim),
            "epsilon": self.epsilon if self.rho is None else None,
            "delta": self.delta,
            "rho": self.rho,
            "adjacency": self.adjacency,
            "family": self._families(kernel),
            "seed": self.seed,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "part": self.part,
            "remark": self.remark,
            **options,
        }

    def _families(self, kernel: Kernel) -> Any:
        """Return the families to choose among."""
        return self.family

    def _asked(self, X: Any) -> NDArray[np.float64]:
        """Return queries as an array. They are the caller's, and checked as scikit-learn does."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise has no seed
        tags.input_tags.sparse = True
        return tags


def refuse_weights(sample_weight: Any) -> None:
    """Refuse weights of records."""
    if sample_weight is not None:
        raise ParameterError(
            "sample_weight is refused: a record of weight w would move the sums w times as far as "
            "is paid for. Leave it out"
        )


def _kernel(kernel: Any, bandwidth: Any, dim: int) -> Kernel:
    """Return a kernel: by scikit-learn's name and bandwidth, or as it is given."""
    if not isinstance(kernel, Kernel):
        return of_scikit_learn(kernel, bandwidth, dim)
    if not (is_real(bandwidth) and bandwidth == 1):
        raise ParameterError(
            f"the kernel {kernel!r} has a bandwidth of its own: leave bandwidth= out"
        )
    return kernel


def _bounds(bounds: Any, dim: int) -> Any:
    """Return bounds as `publish` takes them: one pair is for all columns, an infinite one none."""
    if bounds is None:
        raise ParameterError(_NO_BOUNDS)
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2 and all(map(is_real, bounds)):
        low, high = map(float, bounds)
        if (low, high) == (-math.inf, math.inf):
            return None
        return [(low, high)] * dim
    return bounds
