"""Choosing for a promise: the family of least error bound, and how many records it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from dpkde.errors import AccuracyError, ParameterError
from dpkde.families.base import NO_WORST, Family, Outlook, Worst
from dpkde.planning.choice import Best, Chooser
from dpkde.planning.outlook import outlook
from dpkde.planning.promise import Promise, Setting, error_bound
from dpkde.planning.split import after_count
from dpkde.privacy.budget import Budget, Guarantee, Spend, cheapest
from dpkde.privacy.laws import Law
from dpkde.space.frame import Frame

PATIENCE = 10.0
"""Seconds of the curator's time beyond which a quicker table or a sample is taken, if it does."""
_MOST_ROWS = 1e15
_ROOM = 1.05


@dataclass(frozen=True)
class Assured:
    """The family of least error bound: what a promise asks of ``family="auto"``, or of one.

    Accuracy first; but where the best table takes longer than `PATIENCE`, one that keeps the
    promise sooner is taken.
    """

    families: tuple[Family, ...]
    wanted: Promise

    @classmethod
    def of(cls, chooser: Chooser, wanted: Promise) -> Assured:
        """Return the chooser that compares bounds in place of typical errors."""
        if isinstance(chooser, Best):
            return cls(tuple(kind() for kind in chooser.families), wanted)
        assert isinstance(chooser, Family)
        return cls((chooser,), wanted)

    @property
    def needs_outlook(self) -> bool:
        """Which bound is least depends on the number of records."""
        return len(self.families) > 1 or self.families[0].needs_outlook

    def choose(self, frame: Frame, outlook: Outlook) -> Family:
        """Return the family and parameters of least bound, within reason."""
        found: list[Bounded] = []
        reasons = []
        for family in self.families:
            obstacle = type(family).obstacle(frame)
            if obstacle is None:
                try:
                    found += self._bounds(family, frame, outlook)
                except ParameterError as error:
                    obstacle = str(error)
            if obstacle is not None:
                reasons.append(f"{family.name}: {obstacle}")
        if not found:
            other = "" if len(self.families) > 1 else "; family='auto' takes one that can"
            raise ParameterError(
                f"no family can promise an error here ({'; '.join(reasons)}{other})"
            )
        least = min(entry.bound for entry in found)
        kept = [entry for entry in found if entry.bound <= self.wanted.alpha]
        soon = [entry for entry in kept or found if entry.seconds <= PATIENCE]
        if soon:
            best = min(entry.bound for entry in soon)
            enough = [entry for entry in soon if entry.bound <= 1.02 * best]
            return min(enough, key=lambda entry: entry.seconds).family
        if kept:
            return min(kept, key=lambda entry: entry.seconds).family
        return next(entry.family for entry in found if entry.bound == least)

    def _bounds(self, family: Family, frame: Frame, outlook: Outlook) -> list[Bounded]:
        found = []
        refused = ParameterError("no table of it fits")
        for settled in dict.fromkeys(family.settings(frame, outlook)):
            try:
                law, worst = table_law(settled, frame, outlook)
                seconds = settled.predict(frame, outlook).seconds
            except ParameterError as error:  # a table or noise that does not fit
                refused = error
                continue
            setting = Setting(outlook.rows, outlook.count_law)
            bound = error_bound(worst, law, setting, self.wanted.eta, frame, self.wanted.pitch)
            found.append(Bounded(bound, seconds, settled))
        if not found:
            raise refused
        return found


class Bounded(NamedTuple):
    """A family with its parameters, what it can promise, and the curator's time."""

    bound: float
    seconds: float
    family: Family


def table_law(family: Family, frame: Frame, outlook: Outlook) -> tuple[Law, Worst]:
    """Return the law that the table's share buys, and the family's worst case."""
    bits = outlook.lattice(family, frame)
    worst = family.worst(frame, bits)
    if worst is None:
        raise ParameterError(NO_WORST.format(family.name))
    bounds = family.bounds(frame, bits).under(outlook.adjacency)
    return cheapest(outlook.options, bounds)[2], worst


def subsampling(
    worst: Worst, law: Law, setting: Setting, wanted: Promise, frame: Frame, seconds: float
) -> Fraction:
    """Return the rate at which records enter: the largest power of ½ that ends the wait in time.

    1 where the table is made soon enough, is not random, or the promise needs every record.
    """
    rate = Fraction(1)
    while worst.variance > 0 and seconds * rate > PATIENCE:
        fewer = replace(setting, rate=float(rate / 2))
        if error_bound(worst, law, fewer, wanted.eta, frame, wanted.pitch) > wanted.alpha:
            break
        rate /= 2
    return rate


@dataclass(frozen=True)
class Prospects:
    """What can be foreseen of a promise from public numbers.

    Attributes
    ----------
    chooser
        The families, and what is wanted.
    frame, guarantee, sampler, capacity_bits
        As for a release.
    guess
        A public guess of n, by which the count's share is set; None: as if nothing were known.
    """

    chooser: Assured
    frame: Frame
    guarantee: Guarantee
    sampler: str
    capacity_bits: int
    guess: float | None = None

    def bound(self, rows: float, guarantee: Guarantee | None = None) -> tuple[float, Family]:
        """Return the error that n records could be promised, and with which family."""
        view = self._view if guarantee is None else self._after_count(guarantee)
        view = replace(view, rows=rows)
        family = self.chooser.choose(self.frame, view)
        law, worst = table_law(family, self.frame, view)
        setting, wanted = Setting(rows, view.count_law), self.chooser.wanted
        return error_bound(worst, law, setting, wanted.eta, self.frame, wanted.pitch), family

    @cached_property
    def _view(self) -> Outlook:
        """What is known of the table, whatever the number of records."""
        return self._after_count(self.guarantee)

    def _after_count(self, guarantee: Guarantee) -> Outlook:
        budget = Budget(guarantee)
        first = outlook(budget, self.frame, self.guess, 1.0, self.sampler, self.capacity_bits)
        return after_count(budget, self.chooser, self.frame, first, self.sampler)

    def check_possible(self) -> None:
        """Refuse, before anything is spent, what no number of records could keep."""
        if self.bound(_MOST_ROWS)[0] > self.chooser.wanted.alpha:
            raise AccuracyError(
                f"no number of records keeps α = {self.chooser.wanted.alpha:g} here: the bias of "
                "the family, or of moving queries to a grid, is larger"
            )

    def rows(self) -> tuple[int, Family]:
        """Return about the least n for which the promise can be kept, and with which family."""
        self.check_possible()
        found, family = self._least(1024.0, _MOST_ROWS, self.bound)
        return math.ceil(found), family

    def strength(self, rows: float) -> float:
        """Return about the least ε, or ρ, for which n records would do."""
        given = self.guarantee.rho if self.guarantee.rho is not None else self.guarantee.epsilon
        assert given is not None

        def bound(amount: float) -> tuple[float, Family]:
            exact = Fraction(amount).limit_denominator(10**6)
            pure = self.guarantee.rho is None
            raised = replace(
                self.guarantee, epsilon=exact if pure else None, rho=None if pure else exact
            )
            return self.bound(rows, raised)

        return self._least(2 * float(given), 1e5, bound)[0]

    def _least(
        self, start: float, most: float, bound: Callable[[float], tuple[float, Family]]
    ) -> tuple[float, Family]:
        """Return the least argument, to 2%, at which a bound that falls is low enough."""
        alpha = self.chooser.wanted.alpha

        def excess(logarithm: float) -> tuple[float, Family]:
            found, family = bound(math.exp(logarithm))
            return math.log(found / alpha), family

        low, high = math.log(start / 64), math.log(start)
        above, (below, family) = 10.0, excess(high)
        while below > 0:
            low, above = high, below
            if high >= math.log(most):
                raise AccuracyError("nothing within reason is enough")
            # Bounds fall like 1/n or 1/√n: a step that is long enough for the slower of them.
            high = min(high + 2 * below + 0.5, math.log(most))
            below, family = excess(high)
        while high - low > 0.02:
            middle = low + (high - low) * min(max(above / (above - below), 0.1), 0.9)
            found, better = excess(middle)
            if found > 0:
                low, above = middle, found
            else:
                high, below, family = middle, found, better
        return math.exp(high), family


class Prospect(NamedTuple):
    """What n records can be promised, foreseen from public numbers.

    Attributes
    ----------
    rows
        About the least n for which the error asked for can be promised.
    bound
        The error that can be promised for as many records as expected.
    """

    rows: int
    bound: float


def prospect(prospects: Prospects, rows: int | None) -> Prospect:
    """Return how many records the promise takes, and what so many as expected can be promised."""
    needed, _ = prospects.rows()
    return Prospect(needed, prospects.bound(rows or needed)[0])


def too_few(prospects: Prospects, count: int, least: float, spent: Spend | None) -> AccuracyError:
    """Return the refusal of a promise, and which n, ε or α would do. From the noisy count.

    The numbers have some room, since the next count has other noise.
    """
    wanted, guarantee = prospects.chooser.wanted, prospects.guarantee
    noisy = "" if spent is None else "noisy "
    message = (
        f"α = {wanted.alpha:g} cannot be promised at η = {wanted.eta:g} for a {noisy}count of "
        f"{count:,}: the least is about α = {_shown(_ROOM * least)}"
    )
    ways = []
    with suppress(AccuracyError, ParameterError):
        ways.append(f"about n = {_shown(_ROOM * prospects.rows()[0])} records")
    with suppress(AccuracyError, ParameterError):
        letter = "ε" if guarantee.rho is None else "ρ"
        ways.append(f"{letter} = {_shown(_ROOM * prospects.strength(count))}")
    if ways:
        message += f", and it would take {' or '.join(ways)}"
    if spent is not None:
        message += f"; {spent.amount} was spent on the count"
    return AccuracyError(message)


def _shown(value: float) -> str:
    """Return a number rounded up to three figures."""
    power = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / power - 1e-9) * power:,.6g}"
