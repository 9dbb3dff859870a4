"""A picture of the budget over time: how much of its total a data set has used."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpkde.plots.style import DASHES, Style, check_matplotlib, named
from dpkde.privacy.ledger.accounting import NOTHING, Cost
from dpkde.privacy.ledger.book import Account
from dpkde.privacy.ledger.words import amount

_MOST_LINES = 14
"""Most lines that a legend names."""
_LONGEST = 24
"""Most letters of a part's name in the legend."""
_MOST_DAYS = 6
"""Fewer days than this are told one by one."""


def plot_budget(account: Account, *, width: float | None = None, dark: bool = False) -> Any:
    """Return a picture of what was spent against time: of the whole, and of parts spent on.

    The line of the total is at the top; what is between is left.
    """
    check_matplotlib()
    style = Style.of(width, dark)
    with style.applied():
        from dpkde.plots.figure import new_figure

        figure = new_figure(style, 0.5 * style.width)
        _draw(figure, account, style)
    return figure


def _draw(figure: Any, account: Account, style: Style) -> None:
    import matplotlib.dates

    axes = figure.subplots()
    total = account.total
    limit, letter = (total.epsilon, "ε") if total.rho is None else (total.rho, "ρ")
    assert limit is not None
    courses = _courses(account)
    for number, (part, (days, values)) in enumerate(courses.items()):
        label = part or ("in none of these parts" if account.parts else "whole data set")
        # From nothing on the day before to a day behind the last: no time of day is kept.
        moments = np.array([days[0], *days, days[-1]], dtype="datetime64[D]")
        moments += np.array([-1, *[0] * len(days), 1], dtype="timedelta64[D]")
        axes.step(
            moments,
            [0.0, *values, values[-1]],
            where="post",
            color=style.lines[number % len(style.lines)],
            linestyle=DASHES[number // len(style.lines) % len(DASHES)],
            linewidth=1.5 + 4 * (1 - (number + 1) / len(courses)),  # one shows under the next
            label=label,
        )
    axes.axhline(float(limit), color=style.ink, linewidth=1, linestyle="dashed")
    axes.annotate(
        f"total: {amount(total)}",
        (0.01, float(limit)),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
    )
    if account.history:  # a day on either side, since all may be of one
        ends = [matplotlib.dates.datestr2num(booking.date) for booking in account.history]
        axes.set_xlim(min(ends) - 1, max(ends) + 1)
        few = max(ends) - min(ends) < _MOST_DAYS  # no hours between
        locator = matplotlib.dates.AutoDateLocator(minticks=2, maxticks=8)
        axes.xaxis.set_major_locator(matplotlib.dates.DayLocator() if few else locator)
        axes.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%Y-%m-%d"))
    else:
        axes.set_xticks([])
    axes.set_ylim(0, 1.15 * float(limit))
    axes.set_ylabel(f"{letter} spent")
    axes.set_title(named(account.name), parse_math=False)  # a name is no formula
    axes.tick_params(axis="x", rotation=20)
    if 1 < len(courses) <= _MOST_LINES:  # beside the lines, which it would hide
        for text in figure.legend(loc="outside right upper").get_texts():
            text.set_parse_math(False)
            text.set_text(named(text.get_text(), _LONGEST))


def _courses(account: Account) -> dict[str | None, tuple[list[str], list[float]]]:
    """Return days and what was spent at each, for the whole and for parts that were spent on."""
    parts = dict.fromkeys(booking.part for booking in account.history)
    courses: dict[str | None, tuple[list[str], list[float]]] = {}
    for part in parts:
        spent = NOTHING
        days: list[str] = []
        values: list[float] = []
        for booking in account.history:
            if booking.part in (None, part):
                spent = spent + booking.cost
                # A clock that was set back does not turn the line around.
                day = booking.date
                days.append(max(day, days[-1]) if days else day)
                values.append(_height(account, spent))
        if days:  # up to the last of all
            days.append(max(days[-1], account.history[-1].date))
            values.append(values[-1])
        courses[part] = (days, values)
    return courses


def _height(account: Account, spent: Cost) -> float:
    guarantee = account.rule.spent(spent)
    return 0.0 if guarantee is None else float(guarantee.epsilon or guarantee.rho or 0)
