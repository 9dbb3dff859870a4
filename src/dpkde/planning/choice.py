"""Choosing a layout: what each candidate would do at the same privacy, from public numbers alone.

A family lists its layouts once for a frame; an objective picks among them, for as many outlooks as
there are. `Typical` compares errors to expect, `promised.Promised` bounds that can be kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Protocol

from dpkde.errors import ParameterError
from dpkde.families.base import MEAN_SIZE, Family, Layout, Outlook, Prediction
from dpkde.space.frame import Frame

AS_GOOD = 1.05
"""Predictions are not better than this: of families as good as that, the first one listed."""
_AS_GOOD_WITHIN = 1.015
"""The same within a family: of layouts as good as that, the quickest."""
_MISSED = 1 / 3
"""Of the density. Ranges of it are guesses, and a bias grows with it while noise does not: what
misses more than this counts twice, so that it is taken only where all else is far off."""
_ROUGH = 1 / 3
"""How much of the error that data at few places would have counts at least, against families that
have no bias."""
MODELS_COST = 1.19
"""Of layouts of a family, those of up to this times its least error may be taken for the sake of
answers that a model assists. Half of the frequencies that are best without a model cost 1.12."""


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

    def __hash__(self) -> int:
        """Return a hash: what is decided by an objective is found again by it."""


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
    """Least expected error over the outlook's range: ``family="auto"`` where nothing is promised.

    Within a family by the error of assisted answers, among layouts that plain answers are nearly
    best with; the two are the same where no model is tried. Families by that of plain answers.
    Errors within 5% count as equal: then splines come first. A bias of more than a third of the
    density counts twice, and so does that of lines over eight axes or more; and one that could be
    several times as large counts more, where a family without any is near.
    """

    def rank(self, choice: Choice, outlook: Outlook) -> tuple[Candidate, ...]:
        """Return the best layout of each family by expected error, then those that are unable."""
        able: list[tuple[float, Candidate]] = []
        unable = list(choice.unable)
        cases = outlook.cases
        easiest = min(cases, key=lambda case: (case.typical_density, -case.smoothness))
        density = fmean(case.typical_density for case in cases)
        rough = replace(cases[0], typical_density=density, smoothness=0.0)
        for name, group in groupby(choice.layouts, key=lambda layout: layout.family.name):
            fitting: list[tuple[Prediction, Layout]] = []
            for layout in group:
                try:
                    fitting.append((layout.predict(easiest), layout))
                except ParameterError as error:  # a table or noise that does not fit
                    refusal = error
            if fitting:
                prediction, layout = self._best(_foreseen(fitting, cases))
                merit = self._merit(prediction, layout, rough)
                able.append((merit, Candidate(name, layout, prediction)))
            else:
                unable.append(Candidate(name, obstacle=str(refusal)))
        if not able:
            raise ParameterError(no_family("be used", unable))
        enough = AS_GOOD * min(merit for merit, _ in able)
        able.sort(key=lambda entry: max(entry[0], enough))
        return (*(candidate for _, candidate in able), *unable)

    def regret(self, choice: Choice, outlook: Outlook) -> float:
        """Return how much larger errors are than if it were known what the data are like.

        The mean over the range of the error of what is chosen for all of it, over that of what is
        best there; less one.
        """
        chosen, ratios = choice.best(outlook), []
        for case in outlook.cases:
            best = self.rank(choice, case)[0].prediction
            assert best is not None
            ours = chosen.predict(case)
            assisted = ours.assisted_error / best.assisted_error
            ratios.append(max(ours.error / best.error, assisted, 1.0))
        return fmean(ratios) - 1

    @staticmethod
    def _merit(prediction: Prediction, layout: Layout, rough: Outlook) -> float:
        """Return what families are compared by: the error of plain answers, or more for a bias."""
        if not layout.family.is_biased:
            return prediction.error
        misses = prediction.approximation > _MISSED * rough.typical_density or layout.is_coarse
        return max((1 + misses) * prediction.error, _ROUGH * layout.predict(rough).error)

    @staticmethod
    def _best(entries: list[tuple[Prediction, Layout]]) -> tuple[Prediction, Layout]:
        """Return the best layout of a family; of those as good, the quickest."""
        most = MODELS_COST * min(prediction.error for prediction, _ in entries)
        fair = [entry for entry in entries if entry[0].error <= most]
        merits = [one.assisted_error for one, _ in fair]
        enough = _AS_GOOD_WITHIN * min(merits)
        good = (entry for entry, merit in zip(fair, merits, strict=True) if merit <= enough)
        return min(good, key=lambda entry: entry[0].seconds)


def _foreseen(
    fitting: list[tuple[Prediction, Layout]], cases: Sequence[Outlook]
) -> list[tuple[Prediction, Layout]]:
    """Return layouts with what is expected of them, but for those that cannot be chosen.

    `fitting` has what they do in the easiest case, and none does better in another.
    """
    entries: list[tuple[Prediction, Layout]] = []
    least = math.inf
    for easy, layout in sorted(fitting, key=lambda entry: entry[0].error):
        if easy.error > MODELS_COST * least:
            break
        entries.append((expected(layout, cases), layout))
        least = min(least, entries[-1][0].error)
    return entries


def expected(layout: Layout, cases: Sequence[Outlook]) -> Prediction:
    """Return a prediction whose errors are means over some cases.

    Noise and cells are the same in all; what the family adds is set so that parts make up the mean.
    """
    predictions = [layout.predict(case) for case in cases]
    first = predictions[0]
    if len(predictions) == 1:
        return first
    count = fmean(one.count for one in predictions)
    total = fmean(one.error for one in predictions) / MEAN_SIZE
    rest = max(total**2 - first.noise**2 - count**2, 0.0)
    assisted = None
    if first.assisted is not None:
        total = fmean(one.assisted_error for one in predictions) / MEAN_SIZE
        assisted = math.sqrt(max(total**2 - count**2, 0.0))
    return replace(first, approximation=math.sqrt(rest), count=count, assisted=assisted)


def no_family(what: str, unable: Sequence[Candidate]) -> str:
    """Return the message where no family can serve: the reason of the only one, or of all."""
    if len(unable) == 1:
        return str(unable[0].obstacle)
    reasons = "; ".join(f"{candidate.name}: {candidate.obstacle}" for candidate in unable)
    return f"no family can {what} here ({reasons})"
