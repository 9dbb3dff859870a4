"""Choosing for a promise: the family of least error bound, and how many records it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpkde.errors import AccuracyError, ParameterError
from dpkde.families.base import NO_WORST, Layout, Outlook, Worst
from dpkde.planning.choice import Candidate, Choice, no_family
from dpkde.planning.outlook import outlook
from dpkde.planning.promise import Promise, Setting, error_bound
from dpkde.planning.split import after_count
from dpkde.privacy.budget import Budget, Spend
from dpkde.privacy.laws import Law
from dpkde.space.frame import Frame

PATIENCE = 10.0
"""Seconds of the curator's time beyond which a quicker table or a sample is taken, if it does."""
_MOST_ROWS = 1e15
_ROOM = 1.05


class Priced(NamedTuple):
    """A layout, the law of noise that the table's share buys for it, and its worst case."""

    layout: Layout
    cells: int
    law: Law
    worst: Worst


class Bounded(NamedTuple):
    """A layout, the error that can be promised of it, and the curator's time."""

    bound: float
    seconds: float
    layout: Layout


def _undominated(entries: list[Priced]) -> list[Priced]:
    """Return the entries that no other with the same kind of noise beats in every respect.

    Bounds rise with each of these numbers, whatever the number of records, and so does the time.
    """
    rows = np.array(
        [
            (
                worst.bias,
                worst.variance,
                worst.reach,
                worst.gain * math.sqrt(law.variance),
                worst.peak * math.sqrt(law.variance),
                layout.nanoseconds,
                cells,
            )
            for layout, cells, law, worst in entries
        ]
    )
    kinds = np.array([entry.law.name for entry in entries])
    return [
        entry
        for entry, row, kind in zip(entries, rows, kinds, strict=True)
        if not ((rows <= row).all(axis=1) & (rows < row).any(axis=1) & (kinds == kind)).any()
    ]


@dataclass(frozen=True)
class Promised:
    """Least error bound: what a promise asks of the families.

    Accuracy first; but where the best table takes longer than `PATIENCE`, one that keeps the
    promise sooner is taken.
    """

    promise: Promise

    def rank(self, choice: Choice, outlook: Outlook) -> tuple[Candidate, ...]:
        """Return the layout of least bound, within reason."""
        layout = self.pick(self.price(choice, outlook), outlook).layout
        return (Candidate(layout.family.name, layout, layout.predict(outlook)),)

    def price(self, choice: Choice, outlook: Outlook) -> list[Priced]:
        """Return what can be promised anything at all, with its law and worst case."""
        entries: list[Priced] = []
        unable = {entry.name: entry for entry in choice.unable}
        for layout in choice.layouts:
            try:
                bits, bounds, law = layout.priced(outlook)
                worst = layout.worst(bits)
                if worst is None:
                    raise ParameterError(NO_WORST.format(layout.family.name))
                entries.append(Priced(layout, bounds.cells, law, worst))
            except ParameterError as error:  # a table or noise that does not fit
                name = layout.family.name
                unable[name] = Candidate(name, obstacle=str(error))
        if not entries:
            raise ParameterError(no_family("promise an error", list(unable.values())))
        return _undominated(entries)

    def pick(self, entries: Sequence[Priced], outlook: Outlook) -> Bounded:
        """Return the entry of least bound that does not take too long."""
        setting = Setting(outlook.rows, outlook.count_law)
        bounds = [
            Bounded(
                self.bound(entry, setting),
                entry.layout.seconds(outlook.rows, entry.cells),
                entry.layout,
            )
            for entry in entries
        ]
        keeping = [entry for entry in bounds if entry.bound <= self.promise.alpha]
        soon = [entry for entry in keeping or bounds if entry.seconds <= PATIENCE]
        if soon:
            enough = 1.02 * min(entry.bound for entry in soon)
            soon = [entry for entry in soon if entry.bound <= enough]
        if soon or keeping:
            return min(soon or keeping, key=lambda entry: entry.seconds)
        return min(bounds, key=lambda entry: entry.bound)

    def bound(self, entry: Priced, setting: Setting) -> float:
        """Return the error that can be promised at η."""
        eta, pitch, frame = self.promise.eta, self.promise.pitch, entry.layout.frame
        return error_bound(entry.worst, entry.law, setting, eta, frame, pitch)


def subsampling(entry: Priced, setting: Setting, objective: Promised, seconds: float) -> Fraction:
    """Return the rate at which records enter: the largest power of ½ that ends the wait in time.

    1 where the table is made soon enough, is not random, or the promise needs every record.
    """
    rate = Fraction(1)
    while entry.worst.variance > 0 and seconds * rate > PATIENCE:
        fewer = replace(setting, rate=float(rate / 2))
        if objective.bound(entry, fewer) > objective.promise.alpha:
            break
        rate /= 2
    return rate


@dataclass(frozen=True, eq=False)
class Prospects:
    """What can be foreseen of a promise from public numbers.

    Attributes
    ----------
    choice
        The layouts.
    objective
        What is promised.
    frame, capacity_bits
        As for a release.
    budget
        None of it spent yet.
    guess
        A public guess of n, by which the count's share is set; None: as if nothing were known.
    """

    choice: Choice
    objective: Promised
    frame: Frame
    budget: Budget
    capacity_bits: int
    guess: float | None = None

    def bound(self, rows: float) -> float:
        """Return the error that n records could be promised."""
        return self._foreseen(self._priced, rows)

    @cached_property
    def _priced(self) -> tuple[list[Priced], Outlook]:
        """What can be promised with, whatever the number of records."""
        return self._prices(self.budget)

    def _prices(self, budget: Budget) -> tuple[list[Priced], Outlook]:
        first = outlook(budget, self.frame, self.guess, 1.0, self.capacity_bits)
        view = after_count(self.choice, budget, first)
        return self.objective.price(self.choice, view), view

    def _foreseen(self, prices: tuple[list[Priced], Outlook], rows: float) -> float:
        entries, view = prices
        return self.objective.pick(entries, replace(view, rows=rows)).bound

    def check_possible(self) -> None:
        """Refuse, before anything is spent, what no number of records could keep."""
        alpha = self.objective.promise.alpha
        if self.bound(_MOST_ROWS) > alpha:
            raise AccuracyError(
                f"no number of records keeps α = {alpha:g} here: the bias of the family, or of "
                "moving queries to a grid, is larger"
            )

    def rows(self) -> int:
        """Return about the least n for which the promise can be kept."""
        self.check_possible()
        return math.ceil(self._least(1.0, _MOST_ROWS, self.bound))

    def strength(self, rows: float) -> float:
        """Return about the least ε, or ρ, for which n records would do."""
        guarantee = self.budget.guarantee
        strength = guarantee.epsilon if guarantee.rho is None else guarantee.rho
        assert strength is not None

        def bound(amount: float) -> float:
            exact = Fraction(amount).limit_denominator(10**6)
            raised = (
                replace(guarantee, epsilon=exact)
                if guarantee.rho is None
                else replace(guarantee, rho=exact)
            )
            return self._foreseen(self._prices(self.budget.on_paper(raised)), rows)

        return self._least(float(strength), 1e5, bound)

    def _least(self, start: float, most: float, bound: Callable[[float], float]) -> float:
        """Return the least argument, to 2%, at which a bound that falls is low enough."""
        from scipy.optimize import brentq

        alpha = self.objective.promise.alpha

        def excess(logarithm: float) -> float:
            return math.log(bound(math.exp(logarithm)) / alpha)

        low, high = math.log(start), math.log(most)
        if excess(high) > 0:
            raise AccuracyError("nothing within reason is enough")
        if excess(low) <= 0:
            return start
        return math.exp(float(brentq(excess, low, high, xtol=0.01)) + 0.01)


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
    needed = prospects.rows()
    return Prospect(needed, prospects.bound(rows or needed))


def too_few(prospects: Prospects, count: int, least: float, spent: Spend | None) -> AccuracyError:
    """Return the refusal of a promise, and which n, ε or α would do. From the noisy count.

    The numbers have some room, since the next count has other noise.
    """
    promise, guarantee = prospects.objective.promise, prospects.budget.guarantee
    noisy = "" if spent is None else "noisy "
    message = (
        f"α = {promise.alpha:g} cannot be promised at η = {promise.eta:g} for a {noisy}count of "
        f"{count:,}: the least is about α = {_shown(_ROOM * least)}"
    )
    ways = []
    with suppress(AccuracyError, ParameterError):
        ways.append(f"about n = {_shown(_ROOM * prospects.rows())} records")
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
