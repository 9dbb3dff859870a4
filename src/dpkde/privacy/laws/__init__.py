"""The laws that randomness follows: one folder each, with scale, sampler, tails, price and proof.

Three laws of noise, which is added to sums, and two of choices, which are made in the light of
them. `draw` is the door to noise: it takes no seed and no generator. Names in files are looked up
here.

* `laplace`: discrete Laplace, and the geometric law under it;
* `maxnorm`: the L∞ mechanism;
* `gaussian`: discrete Gaussian;
* `exponential`: the exponential mechanism, and the checks of the sparse vector technique.

`bits` is the road from entropy to draws, `tails` and `quantiles` what noise does to answers.
"""

from __future__ import annotations

from dpkde.privacy.amounts import Amount
from dpkde.privacy.laws.base import Law
from dpkde.privacy.laws.draw import SAMPLERS, Randomness, draw, randomness
from dpkde.privacy.laws.exponential.law import ChoiceLaw, Exponential, SparseVector
from dpkde.privacy.laws.gaussian.law import DiscreteGaussian
from dpkde.privacy.laws.laplace.law import DiscreteLaplace
from dpkde.privacy.laws.maxnorm.law import MaxNorm

__all__ = [
    "CHOICES",
    "NOISES",
    "SAMPLERS",
    "ChoiceLaw",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Law",
    "MaxNorm",
    "Randomness",
    "SparseVector",
    "draw",
    "law_of_a_number",
    "randomness",
]

NOISES: dict[str, type[Law]] = {
    law.name: law for law in (DiscreteLaplace, MaxNorm, DiscreteGaussian)
}
CHOICES: dict[str, type[ChoiceLaw]] = {law.name: law for law in (Exponential, SparseVector)}


def law_of_a_number(amount: Amount) -> type[Law]:
    """Return the law for a single number, such as a count: the first that such an amount buys."""
    currency = "rho" if amount.epsilon is None else "epsilon"
    return next(law for law in NOISES.values() if law.is_scalar and law.paid_in == currency)
