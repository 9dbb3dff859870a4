"""Differences, prospects and budgets drawn."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.dates import date2num
from matplotlib.figure import Figure

import dpkde
from dpkde.plots.budget import plot_budget
from dpkde.plots.prospects import plot_prospects

SETTINGS: dict[str, Any] = {
    "kernel": dpkde.Gaussian(0.15),
    "bounds": [(0, 1)] * 2,
    "epsilon": 1,
    "family": dpkde.Spline(3, 0.75),
    "columns": ["a", "b"],
}


@pytest.fixture(scope="module")
def months() -> tuple[dpkde.Release, dpkde.Release]:
    generator = np.random.default_rng(0)
    first, second = (generator.normal(mean, 0.1, size=(5000, 2)) for mean in (0.4, 0.6))
    return dpkde.publish(first, **SETTINGS), dpkde.publish(second, **SETTINGS)


def _hatched(ax: Any, places: np.ndarray) -> np.ndarray:
    (patch,) = [patch for patch in ax.patches if patch.get_hatch()]
    return np.asarray(patch.get_path().contains_points(places))


def test_a_difference_is_that_of_the_distance(months: tuple[Any, Any]) -> None:
    a, b = months
    expected = dpkde.distance(a, b).difference((20, 30), level=0.1)
    figure = dpkde.plot_difference(a, b, shape=(20, 30), level=0.1, names=("May", "June"))
    ax = figure.axes[0]
    image = ax.images[0]
    assert np.array_equal(np.asarray(image.get_array()), expected.values.T)
    assert image.norm.vmin == -image.norm.vmax  # no difference is in the middle
    assert np.array_equal(_hatched(ax, expected.points).reshape(20, 30), ~expected.exceeds)
    assert ax.child_axes[0].get_ylabel().startswith("May − June")
    (lines,) = [c for c in ax.collections if c.get_label() == "difference"]
    assert min(lines.levels) < 0 < max(lines.levels)
    dashed = [style[1] is not None for style in lines.get_linestyle()]
    assert dashed == [level < 0 for level in lines.levels]
    passed = Figure().subplots()
    assert dpkde.plot_difference(a, b, shape=9, ax=passed, contours=False, dark=True) is passed


def test_a_difference_of_one_column(months: tuple[Any, Any]) -> None:
    a, b = (month.marginal("b") for month in months)
    expected = dpkde.distance(a, b).difference(40)
    for figure in (
        dpkde.plot_difference(*months, "b", shape=40),
        dpkde.plot_difference(a, b, shape=40),
    ):
        zero, curve, thick = figure.axes[0].lines
        assert np.array_equal(curve.get_ydata(), expected.values)
        assert np.array_equal(np.isfinite(thick.get_ydata()), expected.exceeds)
        band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
        assert band.max() == pytest.approx(2 * expected.standard_error.max())
        assert zero.get_ydata()[0] == 0


def test_what_cannot_be_compared(months: tuple[Any, Any]) -> None:
    a, b = months
    other = dpkde.publish(
        np.zeros((5, 3)), kernel=dpkde.Gaussian(1), bounds=[(0, 1)] * 3, epsilon=1
    )
    with pytest.raises(dpkde.ParameterError, match="2 column"):
        dpkde.plot_difference(a, other)
    with pytest.raises(dpkde.ParameterError, match="choose one or two"):
        dpkde.plot_difference(other, other)
    with pytest.raises(dpkde.ParameterError, match="two releases are compared"):
        dpkde.plot_difference(a, "b.dpkde")  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="names must be two texts"):
        dpkde.plot_difference(a, b, names=("May",))  # type: ignore[arg-type]
    assert not dpkde.plot_difference(a, a, shape=9).axes[0].images[0].get_array().any()


def test_prospects_are_those_of_plans() -> None:
    """Every point of every line is the prediction of a plan; both panels meet at what is asked."""
    given: dict[str, Any] = {"kernel": dpkde.Gaussian(0.25), "bounds": [(0, 4)] * 2}
    figure = plot_prospects(epsilon="0.5", expected_rows=10_000, **given)
    left, right = figure.axes
    lines = {line.get_label(): line.get_xydata() for line in left.lines}
    epsilon = float(lines["spline"][3, 0])
    plan = dpkde.plan(epsilon=epsilon, expected_rows=10_000, pilot=False, **given)
    errors = {c.name: c.prediction.error for c in plan.considered if c.prediction is not None}
    assert {"spline", "fastgauss", "fourier"} <= set(errors)
    for name, error in errors.items():
        assert lines[name][3, 1] == error
    middle = {line.get_label(): line.get_xydata()[6] for line in right.lines[:-1]}
    assert middle["spline"][0] == 10_000
    assert middle["spline"][1] == pytest.approx(lines["spline"][6, 1], rel=1e-9)
    panels = Figure().subplots(2)
    settled: dict[str, Any] = {"rho": "0.1", "family": dpkde.Spline(3, 0.75)}
    assert plot_prospects(expected_rows=99, axes=panels, **settled, **given) is panels
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": 1}, "expected_rows is needed"),
        ({"expected_rows": 5}, "either epsilon= or rho="),
        ({"epsilon": 1, "expected_rows": 5, "alpha": 0.1, "eta": 0.1}, "leave out alpha="),
        ({"epsilon": [0], "expected_rows": 5}, "above zero"),
        ({"epsilon": 1, "expected_rows": 5, "family": "hashing"}, "hash"),
    ]
    for wrong, message in wrongs:
        with pytest.raises(dpkde.ParameterError, match=message):
            plot_prospects(**wrong, **given)


def test_a_budget_is_that_of_the_ledger(tmp_path: Path) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "l.db", dataset="$x_{", epsilon=2)
    table = np.zeros((9, 1))
    given: dict[str, Any] = {
        "kernel": dpkde.Gaussian(1),
        "bounds": [(0, 1)],
        "ledger": ledger,
        "dataset": "$x_{",
    }
    for epsilon in ("0.5", "0.25"):
        dpkde.publish(table, epsilon=epsilon, **given)
    account = ledger.account("$x_{")
    figure = plot_budget(account, dark=True)
    ax = figure.axes[0]
    step, total = ax.lines
    days = date2num(date.fromisoformat(account.history[0].date))
    assert step.get_ydata().tolist() == [0, 0.5, 0.75, 0.75, 0.75]
    assert date2num(step.get_xdata()).tolist()[1:3] == [days, days]
    assert total.get_ydata()[0] == 2
    assert ax.get_title() == "$x_{"
    figure.savefig(tmp_path / "b.svg")
