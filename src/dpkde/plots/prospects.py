"""What to expect before anything is spent: the predicted error against ε and against n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpkde.errors import ParameterError
from dpkde.families.registry import FAMILIES
from dpkde.planning.plan import Plan, plan
from dpkde.plots.style import DASHES, MARKS, PAGE_WIDTH, Style, add_remarks, check_matplotlib

_STEPS = 13
"""Predictions along each axis."""
_DECADES = {"epsilon": 1.0, "rho": 2.0, "expected_rows": 1.5}
"""How far an axis goes beyond what was asked for, to either side."""
_MOST_ROWS = 2.0**61
_LETTERS = {"epsilon": "ε", "rho": "ρ", "expected_rows": "n"}


def plot_prospects(
    *,
    epsilon: Any = None,
    rho: Any = None,
    expected_rows: int | None = None,
    axes: Any = None,
    title: str | None = None,
    width: float | None = None,
    dark: bool = False,
    **settings: Any,
) -> Any:
    """Return a picture of the error to expect: a figure, or the pair of axes that were passed.

    The mean absolute error of a KDE value by `Plan.prediction`, for each family that can serve:
    against ε (or ρ) for `expected_rows` records, and against the number of records for that ε.
    Reads no data, spends nothing, and makes some 26 plans, most in a few hundredths of a second.

    Parameters
    ----------
    epsilon, rho
        One value, or several that are marked; the second axis is for the first of them.
    expected_rows
        A public guess of the number of records.
    axes
        Two axes of matplotlib to draw on, which come back.
    title, width, dark
        As in `Release.plot`.
    settings
        All else that `dpkde.plan` takes.
    """
    check_matplotlib()
    if expected_rows is None:
        raise ParameterError("expected_rows is needed to predict an error")
    if any(settings.get(name) is not None for name in ("alpha", "eta")):
        raise ParameterError(
            "a picture shows errors to expect, and a promise is another number: leave out alpha= "
            "and eta="
        )
    if (epsilon is None) == (rho is None):
        raise ParameterError("give either epsilon= or rho=")
    name = "epsilon" if rho is None else "rho"
    given = epsilon if rho is None else rho
    several = isinstance(given, (list, tuple, np.ndarray))
    asked = [Fraction(str(value)) for value in (given if several else [given])]
    if not asked or min(asked) <= 0:
        raise ParameterError(f"{name} must be above zero, got {given!r}")
    style = Style.of(width, dark)
    fixed = {**settings, "pilot": False}
    strengths = _around([float(value) for value in asked], _DECADES[name])
    counts = np.unique(np.round(_around([float(expected_rows)], _DECADES["expected_rows"])))
    counts = counts[(counts >= 1) & (counts <= _MOST_ROWS)]
    by_strength = [
        _foreseen({**fixed, name: float(one), "expected_rows": expected_rows}) for one in strengths
    ]
    by_count = [
        _foreseen({**fixed, name: asked[0], "expected_rows": int(count)}) for count in counts
    ]
    if not any([*by_strength, *by_count]):
        plan(**{**fixed, name: asked[0], "expected_rows": expected_rows})  # which says why not
    with style.applied():
        figure, panels = None, axes
        if panels is None:
            from dpkde.plots.figure import new_figure

            figure = new_figure(style, 0.5 * style.width + 0.9)
            panels = figure.subplots(1, 2, sharey=True)
        elif len(np.ravel(panels)) != 2:
            raise ParameterError("axes must be two, for ε and for n")
        left, right = np.ravel(np.asarray(panels, dtype=object))
        _draw(left, strengths, by_strength, style, [float(value) for value in asked])
        _draw(right, counts, by_count, style, [float(expected_rows)])
        left.set_xlabel(_LETTERS[name])
        right.set_xlabel("n, the number of records")
        left.set_ylabel("error to expect of a KDE value")
        letter = _LETTERS[name]
        add_remarks(left, [f"n = {expected_rows:,}"], None, style)
        add_remarks(right, [f"{letter} = {float(asked[0]):.4g}"], None, style)
        handles, names = left.get_legend_handles_labels()
        if figure is None:
            left.legend(loc="best", handlelength=3)
        else:
            few = 1 if style.width < PAGE_WIDTH else 2
            figure.legend(handles, names, loc="outside lower center", ncols=few, handlelength=3)
        if title is not None:
            left.figure.suptitle(title, parse_math=False)
    return axes if figure is None else figure


def _around(values: Sequence[float], decades: float) -> Any:
    """Return numbers evenly on a logarithmic scale, from below the least to above the largest."""
    ends = np.log10(min(values)) - decades, np.log10(max(values)) + decades
    return np.logspace(*ends, _STEPS)


def _foreseen(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the error to expect of each family; none where no plan can be made."""
    try:
        made: Plan = plan(**settings)
    except ParameterError:
        return {}
    errors: dict[str, float] = {}
    for candidate in made.considered:
        if candidate.prediction is not None:
            errors[candidate.name] = candidate.prediction.error
            if candidate.prediction.assisted is not None:
                errors[f"{candidate.name}, if a model fits"] = candidate.prediction.assisted_error
    return errors


def _draw(
    ax: Any, places: Any, errors: Sequence[Mapping[str, float]], style: Style, marked: list[float]
) -> None:
    """Draw a line for each family on logarithmic axes."""
    names = sorted(dict.fromkeys(name for each in errors for name in each), key=_order)
    for name in names:
        number, model = _order(name)[0], "," in name
        ax.plot(
            *(places, [each.get(name, np.nan) for each in errors]),
            color=style.lines[number % len(style.lines)],
            linestyle="dotted" if model else DASHES[number % len(DASHES)],
            marker=None if model else MARKS[number % len(MARKS)],
            markersize=3.5,
            label=name,
        )
    for value in marked:
        ax.axvline(value, color=style.ink, linewidth=0.6, alpha=0.5)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(True, which="major", linewidth=0.3, alpha=0.5, color=style.ink)


def _order(name: str) -> tuple[int, str]:
    """Return where a line is listed: in the order of the families, one of the caller's last."""
    known, family = list(FAMILIES), name.partition(",")[0]
    return (known.index(family) if family in known else len(known)), name
