"""Shares that hold whatever the records: what tables tell of the most that a share can be off.

Along one axis a record counts as F(x) = Σ_j f_j(x) w_j where its share is M(x) ≥ 0. A *bracket*
adds weights p and q of the same table, found without looking at any data, with

    F − q ≤ M ≤ F + p

for every record, wherever it lies. With U = F + p and D = p + q the share over several axes obeys

    ∏U − Σ_k D_k ∏_{j≠k} U_j  ≤  ∏M  ≤  ∏U,

since ∏U − ∏M = Σ_k (U_k − M_k) ∏_{j<k} M_j ∏_{j>k} U_j and 0 ≤ M ≤ U. All of these are weights of
the table, so their sums over the records are read from it, whatever the records are. The noise of
the table is in them, too: an interval that ends with them needs its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.families.reading import along

Floats = NDArray[np.float64]


class Bracket(NamedTuple):
    """Weights along one axis, F, and those that p and q have; each of shape (n or 1, size)."""

    weights: Floats
    above: Floats
    below: Floats


class Allowance(NamedTuple):
    """What sums are off by, one number for each.

    Attributes
    ----------
    most
        How far the truth is from the sum: at most, or typically.
    norms
        The largest ‖w‖ of the weights that the ends of an interval have, as of a `Reading`: what
        noise does to a sum and to `most` together. Zero where it is in `most`, or nothing is.
    """

    most: Floats
    norms: Floats

    def over(self, unit: float) -> Allowance:
        """Return it in other units."""
        return Allowance(self.most / unit, self.norms / unit)


def none(rows: int) -> Allowance:
    """Return that nothing is allowed for."""
    return Allowance(np.zeros(rows), np.zeros(rows))


def together(parts: Sequence[Allowance]) -> Allowance:
    """Return those of all rows from those of some."""
    empty = [np.empty(0)]
    return Allowance(
        np.concatenate(empty + [part.most for part in parts]),
        np.concatenate(empty + [part.norms for part in parts]),
    )


def allowance(tensor: Floats, brackets: Sequence[Bracket]) -> Allowance:
    """Return how far sums of products over axes can be off, in units of the tensor's."""
    uppers = [bracket.weights + bracket.above for bracket in brackets]
    gaps = [bracket.above + bracket.below for bracket in brackets]
    # Each a product over axes: what may be on top, and what goes off it for each axis.
    terms = [uppers]
    for k, gap in enumerate(gaps):
        if gap.any():
            terms.append([*uppers[:k], gap, *uppers[k + 1 :]])
    middle = along(tensor, [bracket.weights for bracket in brackets], None)[:, 0]
    upper, *less = (along(tensor, term, None)[:, 0] for term in terms)
    lower = upper - sum(less, np.zeros(1))
    most = np.maximum(np.maximum(upper - middle, middle - lower), 0.0)
    # ‖∏U‖ and ‖∏U − Σ …‖; that of the sum itself is the reading's.
    signs = [1.0] + [-1.0] * len(less)
    top = _inner(uppers, uppers)
    bottom = sum(
        (
            one * other * _inner(a, b)
            for one, a in zip(signs, terms, strict=True)
            for other, b in zip(signs, terms, strict=True)
        ),
        np.zeros(1),
    )
    norms = np.sqrt(np.maximum(np.maximum(top, bottom), 0.0))
    return Allowance(*np.broadcast_arrays(most, norms))


def _inner(a: Sequence[Floats], b: Sequence[Floats]) -> Floats:
    """Return the inner products of two products over axes."""
    return math.prod(
        (np.asarray((x * y).sum(axis=1)) for x, y in zip(a, b, strict=True)), start=np.ones(1)
    )
