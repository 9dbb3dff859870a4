"""Choosing a family: what each would do at the same privacy, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from dpkde.errors import ParameterError
from dpkde.families.base import Family, Outlook, Prediction
from dpkde.space.frame import Frame

AS_GOOD = 1.05
_MISSED = 1 / 3
"""Of the typical density. That is a guess, and a bias grows with the density while noise does not:
what misses more than this counts twice, so that it is taken only where all else is far off."""


class Chooser(Protocol):
    """Whatever settles on a family: a family itself, or the best of several."""

    @property
    def needs_outlook(self) -> bool:
        """Whether something is still to be chosen from the number of records."""
        ...

    def choose(self, frame: Frame, outlook: Outlook) -> Family:
        """Return a family with every parameter set."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A family that was considered: with its parameters and prediction, or why it cannot serve."""

    name: str
    family: Family | None = None
    prediction: Prediction | None = None
    obstacle: str | None = None


@dataclass(frozen=True)
class Best:
    """The family of least predicted error: what ``family="auto"`` means."""

    families: tuple[type[Family], ...]

    @property
    def needs_outlook(self) -> bool:
        """Which is best depends on the number of records."""
        return True

    def choose(self, frame: Frame, outlook: Outlook) -> Family:
        """Return the family of least predicted error."""
        best = rank(self, frame, outlook)[0].family
        assert best is not None
        return best


def rank(chooser: Chooser, frame: Frame, outlook: Outlook) -> tuple[Candidate, ...]:
    """Return what was considered: those that can serve by predicted error, then the others.

    Errors within 5% count as equal: then splines come first, whose bias is known best. A bias of
    more than a third of the typical density counts twice. The last few rankings are remembered:
    the split of ε asks for the one that the plan is made of.
    """
    try:
        hash((chooser, frame))
    except TypeError:  # a kernel or a family of the caller's need not have one
        return _ranked(chooser, frame, outlook)
    ranked: tuple[Candidate, ...] = _remembered(chooser, frame, outlook)
    return ranked


def _ranked(chooser: Chooser, frame: Frame, outlook: Outlook) -> tuple[Candidate, ...]:
    if not isinstance(chooser, Best):
        family = chooser.choose(frame, outlook)
        return (Candidate(family.name, family, family.predict(frame, outlook)),)
    able: list[tuple[float, Candidate]] = []
    unable: list[Candidate] = []
    for kind in chooser.families:
        obstacle = kind.obstacle(frame)
        if obstacle is None:
            try:
                family = kind().choose(frame, outlook)
                prediction = family.predict(frame, outlook)
            except ParameterError as error:
                obstacle = str(error)
        if obstacle is not None:
            unable.append(Candidate(kind.name, obstacle=obstacle))
            continue
        misses = prediction.approximation > _MISSED * outlook.typical_density
        weight = 2.0 if kind.is_biased and misses else 1.0
        able.append((weight * prediction.error, Candidate(kind.name, family, prediction)))
    if not able:
        reasons = "; ".join(f"{c.name}: {c.obstacle}" for c in unable)
        raise ParameterError(f"no family can be used here ({reasons})")
    least = min(error for error, _ in able)
    # Predictions are not better than this: of what is as good, the first family listed.
    able.sort(key=lambda entry: entry[0] if entry[0] > AS_GOOD * least else least)
    return (*(candidate for _, candidate in able), *unable)


_remembered: Any = lru_cache(maxsize=16)(_ranked)
