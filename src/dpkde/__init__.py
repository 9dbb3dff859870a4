"""dpkde: publish the density of a private data set once; let anyone query it forever.

::

              public ──► Plan ──────────────────────────┐
                          │                             │
    points ──► Domain ──► Pair.quantize ──► Sketch ──► noise ──► Release ──► Pair.respond ──► kde
    (private)  clip,scale  f(x) as integers  exact sums  exact DP (public)   ⟨table, g(y)⟩
    └───────────────── curator: the only code that holds points ─┘└─────── client ──────────┘

>>> import dpkde
>>> import numpy as np
>>> points = np.random.default_rng(0).normal(size=(20_000, 3))
>>> release = dpkde.publish(points, kernel=dpkde.Gaussian(bandwidth=2.0), epsilon=1.0)
>>> release.kde(np.zeros((5, 3))).shape
(5,)
"""

from __future__ import annotations

from dpkde import lazy

__version__ = "0.1.0"

# Names resolve on first use: importing dpkde loads little, and client code never loads the curator.
__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__, "__version__")
