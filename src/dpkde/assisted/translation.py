"""Limited translation: how far an answer may be moved, and what is left of its error then.

An unbiased answer U with a normal error may be moved towards a model by c standard errors at most.
Then, whatever the model misses at a query, its mean absolute error is at most E|N(c, 1)|/E|N(0, 1)|
of U's; where the model misses nothing, what is left is E(|N| − c)⁺/E|N|.
"""

from __future__ import annotations

import math

MOST_RISK = 1.1
"""A query's mean absolute error, at most, over that of the plain answer, errors being normal."""
_FARTHEST, _HALVINGS = 2.0, 36


def limit(gain: float) -> float:
    """Return c where U's standard error is `gain` times smaller than the plain answer's.

    It solves E|N(c, 1)| = 1.1·gain·E|N(0, 1)|, and is at most 2.

    >>> [round(limit(gain), 2) for gain in (1, 2, 10)]
    [0.45, 1.72, 2.0]
    """
    low, high = 0.0, _FARTHEST
    if risk(high) <= MOST_RISK * gain:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if risk(middle) <= MOST_RISK * gain else (low, middle)
    return low


def risk(moved: float) -> float:
    """Return E|N(c, 1)|/E|N(0, 1)|."""
    inside = math.erf(moved / math.sqrt(2))
    return math.exp(-(moved**2) / 2) + moved * math.sqrt(math.pi / 2) * inside


def remains(moved: float) -> float:
    """Return E(|N| − c)⁺/E|N|, what is left of the error where the model misses nothing."""
    outside = math.erfc(moved / math.sqrt(2))
    return math.exp(-(moved**2) / 2) - moved * math.sqrt(math.pi / 2) * outside
