"""Limited translation: how far an answer may be moved, and what is left of its error then.

An unbiased answer U with a normal error may be moved towards a model by c standard errors at most.
Then, whatever the model misses at a query, its mean absolute error is at most E|N(c, 1)|/E|N(0, 1)|
of U's; where the model misses nothing, what is left is E(|N| − c)⁺/E|N|.
"""

from __future__ import annotations

import math

MOST_RISK = 1.1
"""A query's mean absolute error, at most, over that of the plain answer, errors being normal."""
_FARTHEST, _STEP = 2.0, 2.0**-35


def limit(gain: float) -> float:
    """Return c where U's standard error is `gain` times smaller than the plain answer's.

    It solves E|N(c, 1)| = 1.1·gain·E|N(0, 1)|, and is at most 2.

    >>> [round(limit(gain), 2) for gain in (1, 2, 10)]
    [0.45, 1.72, 2.0]
    """
    target = MOST_RISK * gain
    if risk(_FARTHEST) <= target:
        return _FARTHEST
    if not target >= 1.0:
        return 0.0
    # The risk is convex, with slope √(π/2)·erf(c/√2): Newton's steps come down to c from above.
    near, before = _FARTHEST, math.inf
    while _STEP < near < before:
        slope = math.sqrt(math.pi / 2) * math.erf(near / math.sqrt(2))
        near, before = near - (risk(near) - target) / slope, near
    # The largest multiple of the step that keeps to it.
    moved = math.floor(near / _STEP) * _STEP
    while moved > 0 and risk(moved) > target:
        moved -= _STEP
    while risk(moved + _STEP) <= target:
        moved += _STEP
    return max(moved, 0.0)


def risk(moved: float) -> float:
    """Return E|N(c, 1)|/E|N(0, 1)|."""
    inside = math.erf(moved / math.sqrt(2))
    return math.exp(-(moved**2) / 2) + moved * math.sqrt(math.pi / 2) * inside


def remains(moved: float) -> float:
    """Return E(|N| − c)⁺/E|N|, what is left of the error where the model misses nothing."""
    outside = math.erfc(moved / math.sqrt(2))
    return math.exp(-(moved**2) / 2) - moved * math.sqrt(math.pi / 2) * outside
