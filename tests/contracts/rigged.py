"""Randomness of a test's own, passed in through the budget: mutants, constants, watchers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.laws import Law, Randomness, draw

doors = importlib.import_module("dpkde.privacy.laws.draw")  # the module, not the function
Noise = Callable[[Law, int], NDArray[np.int64]]


@dataclass(frozen=True)
class Rigged(Randomness):
    """Noise by a function of the law and the size; choices and thresholds too, where given."""

    make: Noise = draw
    choose: Callable[..., int] | None = None
    check: Callable[..., Any] | None = None
    name: ClassVar[str] = "rigged"

    def noise(self, law: Law, size: int) -> NDArray[np.int64]:
        return self.make(law, size)

    def choice(self, law: Any, losses: Any) -> int:
        return super().choice(law, losses) if self.choose is None else self.choose(law, losses)

    def threshold(self, law: Any) -> Any:
        return super().threshold(law) if self.check is None else self.check(law)


def rigged(make: Noise = draw, **guarantee: Any) -> Budget:
    """Return a budget whose noise a function makes."""
    return Budget(Guarantee.declare(**guarantee), Rigged(make))


def shrunk(factor: Fraction) -> Noise:
    """Return noise that is too small by a factor."""
    return lambda law, size: draw(law.scaled(factor), size)


def constant(value: int) -> Noise:
    """Return noise that is none."""
    return lambda law, size: np.full(size, value, dtype=np.int64)


def install(monkeypatch: pytest.MonkeyPatch, make: Noise) -> None:
    """Let a function make the noise of everything that names its sampler, commands included."""
    monkeypatch.setattr(doors, "SAMPLERS", {"dpkde": Rigged(make)})


def forbidden(*_: object) -> NDArray[np.int64]:
    """Be noise that nobody may draw."""
    raise AssertionError("noise was drawn: the budget was touched")
