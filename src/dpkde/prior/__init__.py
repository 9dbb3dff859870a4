"""The mechanisms that the paper compares with, each behind the same door as ours.

**Function release**: one release answers every later query. `Bernstein` and `EvenTrig` are
families, to be given to `dpkde.publish`. `SmallDB` and `PMW` make a `SyntheticRelease`, points with
weights. `NoisySample` is a sanity baseline and **not private**.

**Query release**: the queries are known to the curator, who answers these and no others. `answer`
takes a mechanism: `LaplaceAnswers`, `GaussianAnswers`, `HRW`, `SmallDB`, `PMW` or `OurRelease`;
`Online` answers queries that come one after the other.
"""

from __future__ import annotations

from dpkde import lazy

# Names resolve on first use: whoever loads a `SyntheticRelease` never loads a curator.
__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
