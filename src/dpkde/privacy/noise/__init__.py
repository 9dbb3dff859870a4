"""Exact noise from the operating system's entropy.

`draw(law, size)` is the public door. It takes no seed and no generator. Each law has a file with
a compiled sampler, a slow and obvious twin that reads the same bits, and its proof:

* `laplace.py`, `laplace.proof.md`: discrete Laplace, and the geometric law under it;
* `maxnorm.py`, `maxnorm.proof.md`: the L∞ mechanism;
* `gaussian.py`, `gaussian.proof.md`: discrete Gaussian.

`exponential.py`, `exponential.proof.md` make choices: the exponential mechanism, and the checks of
the sparse vector technique.

`bits.py` is the road from entropy to draws. `reference.py` draws the same laws with OpenDP.
"""

from __future__ import annotations

from dpkde.privacy.noise.draw import SAMPLERS, draw, laws_of

__all__ = ["SAMPLERS", "draw", "laws_of"]
