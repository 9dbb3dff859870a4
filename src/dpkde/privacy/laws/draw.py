"""The public door to noise: a law and a size in, integers out.

`Randomness` is what a budget holds: where noise, choices and thresholds come from, and what is
random in public, such as a release's name. There are two, and both ask the operating system; a test
passes one of its own in to see what a wrong one would do, and an audit one that remembers.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import BudgetError, ParameterError
from dpkde.privacy.laws.base import Law
from dpkde.privacy.laws.exponential.law import Exponential, SparseVector

if TYPE_CHECKING:
    from dpkde.privacy.laws.exponential.sampler import Threshold


class Randomness:
    """Our compiled samplers, fed by the operating system."""

    name: ClassVar[str] = "dpkde"

    def has(self, law: type[Law]) -> bool:
        """Tell whether this law can be drawn."""
        return True

    def noise(self, law: Law, size: int) -> NDArray[np.int64]:
        """Return `size` fresh draws of the law, as integers modulo 2⁶⁴."""
        return law.sample(size, os.urandom)

    def added(self, sums: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return exact sums with noise that was drawn here, modulo 2⁶⁴: what is public from now on.

        For an audit to step in, which plays a run again with other sums and the same outcome.
        """
        return sums + noise

    def public_bits(self, number: int) -> int:
        """Return so many random bits for what is public: seeds, keys and names, and never noise."""
        return secrets.randbits(number)

    def public_name(self) -> str:
        """Return a new random name, for a release."""
        return uuid.UUID(int=self.public_bits(128), version=4).hex

    def choice(self, law: Exponential, losses: NDArray[np.int64]) -> int:
        """Return an index, chosen by losses."""
        from dpkde.privacy.laws.exponential.sampler import choose

        return choose(law, losses)

    def threshold(self, law: SparseVector) -> Threshold:
        """Return a noisy threshold, for checks until one fires."""
        from dpkde.privacy.laws.exponential.sampler import Threshold

        return Threshold(law)


class Reference(Randomness):
    """OpenDP's samplers of noise, as the reference; it has no L∞ mechanism on the integers."""

    name: ClassVar[str] = "opendp"

    def has(self, law: type[Law]) -> bool:
        """Tell whether OpenDP has this law."""
        return law.in_opendp

    def noise(self, law: Law, size: int) -> NDArray[np.int64]:
        """Return draws of OpenDP's sampler."""
        return law.reference(size)


class OnPaper(Randomness):
    """Whatever another randomness could draw, and does not: for budgets that only rehearse."""

    name: ClassVar[str] = "on paper"

    def __init__(self, other: Randomness) -> None:
        self.has = other.has  # type: ignore[method-assign]

    def noise(self, law: Law, size: int) -> NDArray[np.int64]:
        """Refuse to draw."""
        raise BudgetError("nothing is drawn from a budget on paper")

    choice = threshold = noise  # type: ignore[assignment]


SAMPLERS: Mapping[str, Randomness] = MappingProxyType(
    {each.name: each for each in (Randomness(), Reference())}
)
"""Our compiled samplers, and OpenDP's as the reference."""


def randomness(sampler: str) -> Randomness:
    """Return the randomness of this name; ParameterError where there is none."""
    if sampler not in SAMPLERS:
        raise ParameterError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")
    return SAMPLERS[sampler]


def draw(law: Law, size: int, *, sampler: str = "dpkde") -> NDArray[np.int64]:
    """Return `size` fresh draws of the law, as integers modulo 2⁶⁴.

    For `MaxNorm` the size has to be its number of cells: its coordinates are drawn together.

    Guarantee
    ---------
    The draws follow the law exactly, given that `os.urandom` returns uniform bits. They depend on
    nothing else; no state is kept between calls, so forked processes never share noise.
    """
    return randomness(sampler).noise(law, size)
