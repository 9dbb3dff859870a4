"""Private tables as scikit-learn's callers have them: the schema is checked, and no value.

scikit-learn refuses tables without rows, numbers that are not finite, and cells of an array that
are no numbers. Here none of these may raise: who sees the error, or its absence, would learn
something of a record for which nothing was paid. Such rows contribute nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpkde.errors import SchemaError
from dpkde.sklearn.door import validate_data
from dpkde.space.domain import Domain
from dpkde.tables import is_frame, is_sparse, open_points

_FLAT = (
    "Expected 2D array, got {}D array instead. Reshape your data: array.reshape(-1, 1) if it has a "
    "single feature"
)


def private_table(estimator: Any, X: Any, bounds: Any) -> Any:
    """Return a private table as `publish` takes it; set `n_features_in_`, `feature_names_in_`.

    Guarantee
    ---------
    What raises, and what is set, depends on the type of the table, on its columns and their types,
    and on `bounds`; on no value, and not on the number of rows.
    """
    if isinstance(X, (list, tuple)):
        return _rows_of_a_list(estimator, X, bounds)
    if not is_frame(X) and not is_sparse(X):
        X = _array(X)
    if is_sparse(X) and X.dtype.kind == "c":
        raise SchemaError("Complex data not supported")
    if len(X.shape) == 2 and X.shape[1] < 1:
        raise SchemaError("0 feature(s) (shape=(n, 0)) while a minimum of 1 is required.")
    validate_data(estimator, X, reset=True, skip_check_array=True)
    return X


def _array(X: Any) -> Any:
    """Return what has an array as one, of two dimensions."""
    if not hasattr(X, "__array__"):
        raise SchemaError(
            f"X must be an array, a data frame or a sparse matrix, got {type(X).__name__}; "
            "dpkde.publish takes files, batches and databases as well"
        )
    array = np.asanyarray(X)
    if array.ndim != 2:
        raise SchemaError(_FLAT.format(array.ndim))
    if array.dtype.kind == "c":
        raise SchemaError("Complex data not supported")
    return array


def _rows_of_a_list(estimator: Any, X: Any, bounds: Any) -> Any:
    """Return a list of rows as a source: how wide it is the bounds say, since a row is private."""
    dim = bounds.dim if isinstance(bounds, Domain) else None
    if dim is None and isinstance(bounds, (list, np.ndarray)):
        dim = len(bounds)
    if dim is None:
        raise SchemaError(
            "X is a list, and only its rows tell how many columns there are: give an array of "
            "shape (n_samples, n_features), or bounds with one pair for each column"
        )
    validate_data(estimator, np.empty((0, dim)), reset=True, skip_check_array=True)
    return replace(open_points(list(X)), dim=dim)
