"""NoisySample: the paper's sanity baseline, which is **not private**.

The mean of the exact KDE at 100 records, plus Laplace(1/(εn)) noise: one number, given as the
answer to every query. A mechanism that does no better tells nothing of the density's shape.

Why it is not private: the sampled records decide where the KDE is taken, and each of them moves the
mean by far more than 1/n. The noise hides the records that were *not* sampled, and only those. The
number of records is used as it is, too. So it takes part in no `Budget`, and says so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde import nonprivate
from dpkde.errors import ParameterError
from dpkde.kernels import Kernel
from dpkde.prior.universe import whole
from dpkde.privacy.laws import DiscreteLaplace, draw
from dpkde.privacy.numbers import Exact, plain, positive
from dpkde.tables import PointsLike, open_points
from dpkde.tables.arrays import QueriesLike, as_queries

_UNIT = 1 << 20


class NoisySample:
    """One noisy mean for every query. **Not private**: for experiments only.

    Parameters
    ----------
    points
        Array, data frame, path or iterable of arrays; rows that are not finite are left out.
    kernel
        As for `dpkde.publish`.
    epsilon
        Of the noise Laplace(1/(εn)), which protects only records that were not sampled.
    size
        How many records are sampled.
    seed
        Of the sample.

    Attributes
    ----------
    is_private
        False.
    value
        The answer to every query, not clipped.

    Notes
    -----
    O(size·n·d) time.

    Examples
    --------
    >>> import dpkde
    >>> sample = NoisySample(np.zeros((500, 2)), kernel=dpkde.Gaussian(1.0), epsilon=1)
    >>> sample.kde([[0.0, 0.0], [9.0, 9.0]]).round(1).tolist(), sample.is_private
    ([1.0, 1.0], False)
    """

    is_private: ClassVar[bool] = False

    def __init__(
        self,
        points: PointsLike,
        *,
        kernel: Kernel,
        epsilon: Exact,
        size: int = 100,
        seed: int | None = None,
    ) -> None:
        self.epsilon = positive(epsilon, "epsilon")
        most = whole(size, "size")
        parts = [piece.rows() for piece in open_points(points).read()]
        rows = np.concatenate(parts).astype(np.float64) if parts else np.empty((0, 1))
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            raise ParameterError("there are no records to sample")
        self.kernel, self.dim = kernel, rows.shape[1]
        chosen = np.random.default_rng(seed).choice(len(rows), min(most, len(rows)), replace=False)
        mean = float(nonprivate.kde(rows, rows[chosen], kernel).mean())
        # Not bought from a budget: there is no guarantee that it could be part of.
        law = DiscreteLaplace(Fraction(_UNIT) / self.epsilon)
        self.value = mean + float(draw(law, 1)[0]) / _UNIT / len(rows)

    @property
    def statement(self) -> str:
        """What is guaranteed, in a sentence: nothing for the records that were sampled."""
        return (
            "This is NOT differentially private: it reveals the mean of the exact density at "
            "records that were sampled, and their number. Noise of "
            f"ε = {plain(self.epsilon)} protects only records that were not sampled."
        )

    def kde(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the same value for every query, clipped to [0, 1]."""
        return np.full(len(as_queries(queries, self.dim)), min(max(self.value, 0.0), 1.0))

    def __repr__(self) -> str:
        return f"<NoisySample (NOT private): {self.kernel.name}, d={self.dim}>"
