"""The likelihood ratio of the declared laws: the best that an audit can look at, if they are true.

By the lemma of Neyman and Pearson no event tells two laws apart better than a half-line of their
likelihood ratio. Noise of the declared law with a smaller scale, and sums that move farther than
was paid for, leave the order of outputs by that ratio nearly as it is, so that the half-line stays
telling. The exact sums of both sides go into it: whoever audits a mechanism of their own has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import ParameterError
from dpkde.privacy.audit.directions import Outputs, Statistic
from dpkde.privacy.laws import Law


def likelihood_ratio(
    laws: Sequence[tuple[Law, int]], left: Sequence[int], right: Sequence[int]
) -> Statistic:
    """Return ln P[output | left] − ln P[output | right], as a function of outputs.

    Parameters
    ----------
    laws
        Of the noise: each with the number of cells that it is on, in their order.
    left, right
        The exact sums on both sides, as many as the cells.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpkde.privacy.laws import DiscreteLaplace
    >>> ratio = likelihood_ratio([(DiscreteLaplace(Fraction(2)), 1)], [0], [1])
    >>> ratio(np.array([[-3], [0], [5]])).tolist()
    [0.5, 0.5, -0.5]
    """
    sums = [np.asarray(side, dtype=np.int64) for side in (left, right)]
    cells = sum(size for _, size in laws)
    if any(each.shape != (cells,) for each in sums):
        raise ParameterError(f"these laws are of {cells} cells: give as many sums on either side")

    def ratio(outputs: Outputs) -> NDArray[np.float64]:
        total = np.zeros(len(outputs))
        start = 0
        for law, size in laws:
            part = slice(start, start + size)
            near, far = (law.log_weight(outputs[:, part] - side[part]) for side in sums)
            total += near - far
            start += size
        return total

    ratio.name = "likelihood ratio"  # type: ignore[attr-defined]
    return ratio
