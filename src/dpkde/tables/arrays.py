"""Arrays at the border: what callers pass for points and queries, as (n, dim) of numbers.

Only the shape and the type of an array can raise; a value never does, and no message quotes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpkde.errors import SchemaError
from dpkde.kernels import Points

QueriesLike = Any
"""An array of shape (n_queries, dim), dense or sparse, one point, a data frame; or sets, as lists
of element numbers, where the domain is `Sets`."""

Function = TypeVar("Function", bound=Callable[..., Any])


def silent(function: Function) -> Function:
    """Return a function in which NumPy does not warn of values, such as a NaN that signals.

    To be put around what a worker does: the setting belongs to the thread that makes it.
    """

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return quiet  # type: ignore[return-value]


def check_columns(columns: Sequence[str] | None) -> None:
    """Refuse one text for a list of names, with the list that was probably meant."""
    if isinstance(columns, (str, bytes)):
        names = [name.strip() for name in str(columns).split(",")]
        raise SchemaError(f"columns must be a list of names, such as {names!r}")


def check_names(columns: Sequence[str] | None) -> None:
    """Refuse names for a new release that do not tell its columns apart, or are one text."""
    check_columns(columns)
    times = Counter(str(name) for name in (() if columns is None else columns))
    for name, number in times.most_common(1):
        if number > 1:
            raise SchemaError(f"column {name!r} is named twice: each needs a name of its own")


def as_rows(values: ArrayLike, dim: int | None, what: str) -> NDArray[Any]:
    """Return a real array of shape (n, dim), not copied where it already is one.

    Masked entries become NaN. An empty one-dimensional array is no rows, of any width.
    """
    try:
        if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "fiub":
        raise SchemaError(
            f"{what} must be an array of real numbers with one row per point, got type "
            f"{array.dtype}"
        )
    if array.ndim == 1 and not array.size and dim is not None:
        array = array.reshape(0, dim)
    if array.ndim == 1 and dim in (1, None):
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise SchemaError(f"{what} must have shape (n, dim), got {array.ndim} dimension(s)")
    if dim is not None and array.shape[1] != dim:
        raise SchemaError(f"{what} must have {dim} column(s), got {array.shape[1]}")
    return array


def as_queries(values: ArrayLike, dim: int) -> Points:
    """Return queries as float64 of shape (n_queries, dim); a single point may be one row."""
    try:
        array = np.asanyarray(values)
    except (TypeError, ValueError):
        raise SchemaError("queries must be an array of real numbers, one row per point") from None
    if array.ndim == 1 and array.size and dim > 1:
        array = array[np.newaxis, :]
    return as_rows(array, dim, "queries").astype(np.float64, copy=False)
