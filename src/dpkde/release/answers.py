"""Answers from a release: sums, densities and their standard errors.

Nothing here has ever seen a point. Queries are answered in chunks, so memory stays bounded for any
number of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.kernels import Points
from dpkde.numerics.numbers import is_whole
from dpkde.numerics.pool import mapped
from dpkde.planning.promise import to_grid
from dpkde.release.assistance import assistance
from dpkde.release.progress import reporting
from dpkde.space.queries import places_of
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.release.answering import Answering

CHUNK_QUERIES = 4096


def kernel_sum(release: Answering, queries: QueriesLike, *, groups: int = 1) -> NDArray[np.float64]:
    """Return the estimate of Σ k(x, y) at each query."""
    _check_groups(groups)
    table = release.table.astype(np.float64)
    pair = release.plan.pair
    sums = answer(release, queries, lambda chunk: pair.respond(chunk, table, groups))
    if release.rate < 1:
        sums /= float(release.rate)
    if pair.constant:
        sums += pair.constant * release.count
    return sums


def kde(
    release: Answering,
    queries: QueriesLike,
    *,
    groups: int = 1,
    clip: bool = True,
    assisted: bool | None = None,
) -> NDArray[np.float64]:
    """Return the KDE at each query, clipped to [0, 1] unless told otherwise."""
    helper = assistance(release, assisted, _check_groups(groups))
    if helper is None:
        values = kernel_sum(release, queries, groups=groups)
        values /= release.count
    else:
        values = answer(release, queries, lambda chunk: helper.answers(chunk, groups))
    return np.clip(values, 0.0, 1.0, out=values) if clip else values


def outside(release: Answering, queries: QueriesLike) -> NDArray[np.bool_]:
    """Return which queries lie outside the bounds."""
    frame = release.plan.frame
    rows = places_of(queries, frame, release.columns)
    if frame.kernel.home != "space":
        return np.zeros(len(rows), dtype=np.bool_)
    with np.errstate(all="ignore"):
        moved = (frame.domain.nearest(rows) != rows).any(axis=1)
    return np.asarray(moved & np.isfinite(rows).all(axis=1))


def _check_groups(groups: int) -> int:
    if not is_whole(groups) or groups < 1:
        raise ParameterError(f"groups must be a whole number, at least 1, got {groups!r}")
    return int(groups)


def kernel_sum_standard_error(release: Answering, queries: QueriesLike) -> NDArray[np.float64]:
    """Return √Var(cell)·‖g(y)‖: the cells' noise is uncorrelated, with equal variances.

    Where a kernel has a constant part, the noise on the count comes on top.
    """
    constant = release.plan.pair.constant
    return np.hypot(_table_error(release, queries), constant * deviation(release, "count"))


def standard_error(
    release: Answering, queries: QueriesLike, assisted: bool | None = None
) -> NDArray[np.float64]:
    """Return √(Var s + (p − c)²·Var n)/n for p = c + s/n, c the kernel's constant part.

    The noise passes whole through the correction of a model, too.
    """
    return np.hypot(
        _table_error(release, queries) / release.count, _count_error(release, queries, assisted)
    )


def _count_error(
    release: Answering, queries: QueriesLike, assisted: bool | None
) -> NDArray[np.float64]:
    """Return what the count's noise does to a KDE value."""
    part = kde(release, queries, assisted=assisted) - release.plan.pair.constant
    return np.asarray(np.abs(part) * deviation(release, "count") / release.count)


def average_error(release: Answering, queries: QueriesLike) -> NDArray[np.float64]:
    """Return the root mean square error to expect of `kde`, on average over queries like these."""
    helper = assistance(release, None)
    if helper is None:
        return np.hypot(standard_error(release, queries), sampling_error(release, queries))
    own = np.sqrt(answer(release, queries, helper.average_variance))
    return np.hypot(own, _count_error(release, queries, None))


def deviation(release: Answering, purpose: str) -> float:
    """Return the standard deviation of the noise on ``"table"`` or ``"count"``."""
    law = release.law(purpose)
    return math.sqrt(law.variance) if law is not None else 0.0


def _table_error(release: Answering, queries: QueriesLike) -> NDArray[np.float64]:
    """Return what the table's noise does to a sum."""
    pair = release.plan.pair
    gains = answer(release, queries, pair.response_norm)
    return deviation(release, "table") * gains / float(release.rate)


def sampling_error(
    release: Answering, queries: QueriesLike, assisted: bool | None = None
) -> NDArray[np.float64]:
    """Return what the family itself adds to the error of `kde`, by its own estimate."""
    variance, rate = deviation(release, "table") ** 2, float(release.rate)
    table = release.table.astype(np.float64)
    pair, helper = release.plan.pair, assistance(release, assisted)
    sampled = table if helper is None else helper.residual

    def own(chunk: Points) -> NDArray[np.float64]:
        noise = variance * pair.response_norm(chunk) ** 2
        variances = pair.own_variance(chunk, sampled, noise)
        if rate < 1:
            # A sample of rate q adds Σ k²·(1 − q) to its sum, at most that of k.
            variances = variances + np.maximum(pair.respond(chunk, table), 0.0) * (1 - rate)
        return np.sqrt(variances)

    return answer(release, queries, own) / rate / release.count


def answer(
    release: Answering,
    queries: QueriesLike,
    function: Callable[[Points], NDArray[np.float64]],
    kinds: tuple[int, ...] = (),
) -> NDArray[np.float64]:
    """Return a function of queries, a chunk at a time; NaN where a query is not finite.

    Its values have the shape (*kinds, n_queries).
    """
    rows = places_of(queries, release.plan.frame, release.columns)
    if release.promise is not None:
        rows = to_grid(release.plan.frame, rows, release.promise.pitch)
    starts = range(0, len(rows), CHUNK_QUERIES)
    chunks = (rows[start : start + CHUNK_QUERIES] for start in starts)
    answers = np.empty((*kinds, len(rows)))
    several = len(rows) > CHUNK_QUERIES
    results = mapped(function, chunks) if several else map(function, chunks)
    report = reporting()
    for start, values in zip(starts, results, strict=True):
        answers[..., start : start + CHUNK_QUERIES] = values
        report(min(start + CHUNK_QUERIES, len(rows)), len(rows))
    finite = np.isfinite(rows)
    if not finite.all():
        answers[..., ~finite.all(axis=1)] = math.nan
    return answers
