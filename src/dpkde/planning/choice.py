"""Choosing a layout: what each candidate would do at the same privacy, from public numbers alone.

A family lists its layouts once for a frame; an objective picks among them, for as many outlooks as
there are. `Typical` compares errors to expect, `promised.Promised` bounds that can be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from dpkde.errors import ParameterError
from dpkde.families.base import Family, Layout, Outlook, Prediction
from dpkde.space.frame import Frame

AS_GOOD = 1.05
"""Predictions are not better than this: of families as good as that, the first one listed."""
_AS_GOOD_WITHIN = 1.015
"""The same within a family: of layouts as good as that, the quickest."""
_MISSED = 1 / 3
"""Of the typical density. That is a guess, and a bias grows with the density while noise does not:
what misses more than this counts twice, so that it is taken only where all else is far off."""


@dataclass(frozen=True)
class Candidate:
    """A family that was considered: with its layout and prediction, or why it cannot serve."""

    name: str
    layout: Layout | None = None
    prediction: Prediction | None = None
    obstacle: str | None = None

    @property
    def family(self) -> Family | None:
        """The family with all its parameters, where it can serve."""
        return None if self.layout is None else self.layout.family


class Objective(Protocol):
    """What layouts are compared by."""

    def rank(self, choice: Choice, outlook: Outlook) -> tuple[Candidate, ...]:
        """Return what was considered, the best first; ParameterError where nothing can serve."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The layouts to choose from, those of one family together; and what they are compared by.

    Attributes
    ----------
    layouts
        Every candidate.
    unable
        Families that cannot serve, and why.
    objective
        What picks among them.
    """

    layouts: tuple[Layout, ...]
    unable: tuple[Candidate, ...]
    objective: Objective

    @classmethod
    def among(cls, families: Sequence[Family], frame: Frame, objective: Objective) -> Choice:
        """Return the choice among all layouts of some families; one alone has to be able."""
        layouts: list[Layout] = []
        unable: list[Candidate] = []
        for family in families:
            try:
                family.check(frame)
                layouts += family.layouts(frame)
            except ParameterError as error:
                if len(families) == 1:
                    raise
                unable.append(Candidate(family.name, obstacle=family.obstacle(frame) or str(error)))
        return cls(tuple(layouts), tuple(unable), objective)

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to choose, so that nothing waits for the number of records."""
        return len(self.layouts) == 1 and not self.unable

    def rank(self, outlook: Outlook) -> tuple[Candidate, ...]:
        """Return what was considered, the best first."""
        return self.objective.rank(self, outlook)

    def best(self, outlook: Outlook) -> Layout:
        """Return the layout to take."""
        layout = self.rank(outlook)[0].layout
        assert layout is not None  # the first one can serve
        return layout


@dataclass(frozen=True)
class Typical:
    """Least predicted error: what ``family="auto"`` means where nothing is promised.

    Errors within 5% count as equal: then splines come first, whose bias is known best. A bias of
    more than a third of the typical density counts twice.
    """

    def rank(self, choice: Choice, outlook: Outlook) -> tuple[Candidate, ...]:
        """Return the best layout of each family by predicted error, then those that are unable."""
        able: list[tuple[float, Candidate]] = []
        unable = list(choice.unable)
        for name, group in groupby(choice.layouts, key=lambda layout: layout.family.name):
            predictions: list[tuple[Prediction, Layout]] = []
            for layout in group:
                try:
                    predictions.append((layout.predict(outlook), layout))
                except ParameterError as error:  # a table or noise that does not fit
                    refusal = error
            if not predictions:
                unable.append(Candidate(name, obstacle=str(refusal)))
                continue
            enough = _AS_GOOD_WITHIN * min(entry[0].error for entry in predictions)
            good = (entry for entry in predictions if entry[0].error <= enough)
            prediction, layout = min(good, key=lambda entry: entry[0].seconds)
            misses = prediction.approximation > _MISSED * outlook.typical_density
            weight = 2.0 if layout.family.is_biased and misses else 1.0
            able.append((weight * prediction.error, Candidate(name, layout, prediction)))
        if not able:
            raise ParameterError(no_family("be used", unable))
        least = min(error for error, _ in able)
        able.sort(key=lambda entry: entry[0] if entry[0] > AS_GOOD * least else least)
        return (*(candidate for _, candidate in able), *unable)


def no_family(what: str, unable: Sequence[Candidate]) -> str:
    """Return the message where no family can serve: the reason of the only one, or of all."""
    if len(unable) == 1:
        return str(unable[0].obstacle)
    reasons = "; ".join(f"{candidate.name}: {candidate.obstacle}" for candidate in unable)
    return f"no family can {what} here ({reasons})"
