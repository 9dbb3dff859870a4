"""Queries as callers have them: arrays, frames, sparse matrices, sets; as points of a frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpkde.kernels import Points
from dpkde.space.domain import universe_of
from dpkde.space.frame import Frame
from dpkde.tables import check_known, is_frame, is_sparse, open_points, query_sets
from dpkde.tables.arrays import QueriesLike, as_queries


def places_of(queries: QueriesLike, frame: Frame, columns: Sequence[str] | None) -> Points:
    """Return queries as an array of shape (n_queries, dim); from a data frame columns by name.

    What has no place in the frame has NaN: among directions, the zero vector.
    """
    universe = universe_of(frame.domain)
    if universe is not None and isinstance(queries, (list, tuple, set, frozenset)):
        return query_sets(queries, universe)
    if is_sparse(queries):
        queries = queries.toarray()
    check_known(queries)
    if is_frame(queries):
        parts = [piece.rows() for piece in open_points(queries, columns).read()]
        queries = np.concatenate(parts) if parts else np.empty((0, frame.dim))
    places = as_queries(queries, frame.dim)
    if frame.kernel.home == "sphere":
        directed = np.abs(places).max(axis=1, initial=0.0, keepdims=True) > 0
        places = np.where(directed, places, np.nan)
    return places
