"""Tables that differ by one record, and are as easy to tell apart as any.

Where a record moves sums by as much as is paid for, noise has to hide all of it. Such records are
looked for among candidates: places all over the domain, and whatever else is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpkde.planning.plan import Plan
from dpkde.privacy.laws import Law
from dpkde.space.frame import Frame

MOST = 1 << 22
"""Of cells of all candidates' contributions together: it limits how many candidates there are."""
ANCHORS = 64
"""Of the largest contributions, so many are compared with all others."""
_ODD = 1e-3
"""So much farther a record may move sums for another to be taken, by which some move by an odd
number: noise on even numbers alone does not hide that."""
WIDE = 3.0
"""Where there are no bounds, candidates lie within so many bandwidths of the origin."""

Points = NDArray[np.float64]


class Worst(NamedTuple):
    """Records whose contributions are large, or far apart; each of shape (1, dim)."""

    largest: Points
    """Moves the sums most where it is added."""
    one: Points
    """Moves them most where `other` comes in its place."""
    other: Points


def places(frame: Frame, number: int) -> Points:
    """Return places all over the domain, shape (number, dim): the middle, corners, evenly spread.

    The same ones every time, and without any generator: multiples of irrational steps, modulo 1.
    """
    dim = frame.dim
    root = 1.5
    for _ in range(64):  # the root of x^(dim + 1) = x + 1
        root = (1 + root) ** (1 / (dim + 1))
    steps = root ** -np.arange(1.0, dim + 1)
    spread = (0.5 + np.arange(1.0, number + 1)[:, np.newaxis] * steps) % 1.0
    shares = np.concatenate([[[0.5] * dim, [0.0] * dim, [1.0] * dim], spread])[:number]
    halves = frame.domain.halves(dim)
    if frame.kernel.home == "sets":
        return np.asarray(np.rint(shares))
    if halves is None:
        return frame.point_at(WIDE * (2 * shares - 1))
    return np.asarray(frame.domain.origin(dim) + (2 * shares - 1) * halves)


def worst(plan: Plan, law: type[Law], others: Points | None = None) -> Worst:
    """Return the records that move the sums of a plan most, in the norm of a law.

    Of `places`, and of `others`, if any are given: then it is as secret as they are.
    """
    cells = plan.pair.bounds.cells
    number = max(8, min(2001, MOST // cells))
    candidates = places(plan.frame, number)
    if others is not None:
        candidates = np.concatenate([candidates, others[:number]])
    moves = plan.pair.quantize(*plan.frame.place(candidates)).astype(np.float64)
    sizes = _size(moves, law) * (1 + _ODD * (moves % 2).any(axis=1))
    far, pair = -1.0, (0, 0)
    for anchor in np.argsort(-sizes, kind="stable")[:ANCHORS]:
        change = moves - moves[anchor]
        apart = _size(change, law) * (1 + _ODD * (change % 2).any(axis=1))
        if (at := int(np.argmax(apart))) >= 0 and apart[at] > far:
            far, pair = float(apart[at]), (int(anchor), at)
    chosen = int(np.argmax(sizes)), *pair
    return Worst(*(candidates[j : j + 1] for j in chosen))


def _size(moves: NDArray[np.float64], law: type[Law]) -> NDArray[np.float64]:
    """Return the norms of contributions in the norm of a law."""
    order = {"L1": 1, "L2": 2, "L∞": np.inf}[law.norm]
    return np.asarray(np.linalg.norm(moves, ord=order, axis=1))
