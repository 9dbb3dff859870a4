"""The worst that random partitions can do, over all records and queries."""

from __future__ import annotations

import math

from dpkde.families.base import Worst

_ROUNDING = 1e-6
"""What float32 edges of random cells do to the kernel, generously."""


def of_partitions(count: int, buckets: int, *, signed: bool, sides: bool, bits: int) -> Worst:
    """Return the worst of `count` random partitions.

    A record says ±1 where its bucket is the query's. With c = 1/B' the chance that different cells
    meet, its variance is k(1 − c) + c − k², at most (1 − c)²/4 + c. Plain counts, less c and over
    1 − c, have at most that of a 0 or 1, ¼/(1 − c)². Sides of a plane say ±½. A mean over records
    has no more variance than the worst of them.
    """
    collide = 1 / buckets
    if sides:
        variance, reach, gain, peak = 0.25, 1.0, 0.5, 0.5
    elif signed:
        variance, reach, gain, peak = (1 - collide) ** 2 / 4 + collide, 2.0, 1.0, 1.0
    else:
        shrink = 1 / (1 - collide)
        variance, reach, gain, peak = shrink**2 / 4, shrink, math.sqrt(shrink), 1.0
    return Worst(
        _ROUNDING,
        variance / count,
        reach / count,
        gain / math.sqrt(count) / 2**bits,
        peak / count / 2**bits,
    )
