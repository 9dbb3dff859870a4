"""Splines: the contract, the exactness of their bounds, the fit, edges, the choice of meshes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpkde
from contracts.choosing import best_of
from dpkde.families.base import Family, Outlook
from dpkde.families.spline import narrow
from dpkde.families.spline.bsplines import LARGEST_SQUARES, axis_fit, bspline
from dpkde.families.spline.family import Spline, SplineLayout, SplinePair
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace
from dpkde.space.domain import Ball, as_domain
from dpkde.space.frame import Frame
from dpkde.testing import FamilyContract

GAUSSIAN = dpkde.Gaussian(1.0)


class TestSpline(FamilyContract):
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1, 2, 8, 50)

    """Two wide axes; the others so narrow that a line or a constant serves."""

    accuracy: ClassVar[float] = 1e-3

    def halves(self, dim: int) -> NDArray[np.float64]:
        return np.array([3.0, 2.0, 0.04, *([0.004] * dim)][:dim])

    def families(self, dim: int) -> list[Family]:
        degrees = (3, 2, 1, *([0] * dim))[:dim]
        spacings = (0.7, 0.9, 9.0, *([1.0] * dim))[:dim]
        tilted = (1,) * dim
        found: list[Family] = [
            Spline(degrees, spacings),
            Spline(degrees, spacings, ridge=0.05),
            Spline(tilted, 99.0),
            Spline(tilted, 99.0, arch=9000),
            Spline(0, 1.0),
            Spline(0, 1.0, arch=30_000),
        ]
        if dim <= 2:
            found += [Spline(p, h) for p, h in ((1, 1.0), (4, 0.9), (5, 2.0), (5, 0.4))]
        return found

    def accurate(self, dim: int) -> Family:
        return Spline((5, 5, 1, *([0] * dim))[:dim], (0.4, 0.4, 9.0, *([1.0] * dim))[:dim])


def _frame(*halves: float) -> Frame:
    return Frame.of(GAUSSIAN, as_domain([(-half, half) for half in halves]))


def _pair(family: Spline, *halves: float, bits: int = 22) -> SplinePair:
    return family.layout(_frame(*halves)).draw(bits, 0)


@pytest.mark.parametrize("degree", range(6))
def test_squares_are_largest_at_a_node(degree: int) -> None:
    """A proof in fractions: S(u) − S(0) has no positive Bernstein coefficient on [0, ½].

    S(u) = Σ_j B_p(u − j)² is even and of period one, so [0, ½] is all there is.
    """
    pieces = _pieces(degree) if degree else [[Fraction(1)]]
    total = [Fraction(0)] * (2 * degree + 1)
    for piece in pieces:
        for i, a in enumerate(piece):
            for j, b in enumerate(piece):
                total[i + j] += a * b
    assert total[0] == LARGEST_SQUARES[degree]
    rest = [Fraction(0), *total[1:]]
    n = len(rest) - 1
    for k in range(n + 1):  # Bernstein coefficients on [0, ½]
        value = sum(
            Fraction(math.comb(k, i), math.comb(n, i)) * rest[i] * Fraction(1, 2) ** i
            for i in range(k + 1)
        )
        assert value <= 0


def _pieces(degree: int) -> list[list[Fraction]]:
    """The polynomials in u ∈ [0, ½] of all B-splines B_p(u − j) that are not zero there."""
    found = []
    for j in range(-degree, degree + 1):
        center = (
            Fraction(degree + 1, 2) - j
        )  # B_p(u − j) = Σ (−1)^i C(p+1, i)(u + center − i)₊^p/p!
        piece = [Fraction(0)] * (degree + 1)
        for i in range(degree + 2):
            shift = center - i
            if shift < 0:  # at u in [0, ½] the argument is negative: shifts are halves
                continue
            for power in range(degree + 1):
                piece[power] += (
                    Fraction((-1) ** i * math.comb(degree + 1, i), math.factorial(degree))
                    * math.comb(degree, power)
                    * shift ** (degree - power)
                )
        if any(piece):
            found.append(piece)
    return found


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_weights_are_bsplines_and_parts_add_up(degree: int) -> None:
    pair = _pair(Spline(degree, 0.5), 2.0, bits=30)
    x = np.concatenate([np.linspace(-2, 2, 4001), np.nextafter([-2.0, 2.0], 0)])[:, np.newaxis]
    parts = pair.quantize(x, np.ones(len(x), dtype=np.bool_))
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) == 1 << 30).all()
    nodes = np.arange(parts.shape[1]) - (degree - 1) / 2
    exact = bspline(degree, (x + 2.0) / 0.5 - nodes)
    inside = x[:, 0] < 2.0  # B_0 is open to the right
    assert np.abs(parts / 2**30 - exact)[inside].max() < 2.0**-29


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_the_l2_bound_is_tight(degree: int) -> None:
    """Enforced for every fraction of a fine grid, and reached within one part in 10⁴."""
    pair = _pair(Spline(degree, 1.0), 2.0, 2.0)
    t = np.linspace(0, 1, 2049)
    for other in (0.0, 0.5, 0.3):
        x = np.column_stack([t, np.full_like(t, other)])
        parts = pair.quantize(x, np.ones(len(x), dtype=np.bool_)).astype(np.float64)
        largest = (parts**2).sum(axis=1).max()
        assert largest <= pair.bounds.l2_squared
        if (other == 0.0) == (degree % 2 == 1) and other != 0.3:
            assert largest > 0.9999 * pair.bounds.l2_squared


def test_tilted_axes_keep_to_their_shares() -> None:
    pair = _pair(Spline(1, 9.0), 0.3, 0.2, 0.25, bits=16)
    corners = np.array(np.meshgrid(*[[-9.0, -0.2, 0.0, 0.1, 9.0]] * 3)).reshape(3, -1).T
    parts = pair.quantize(corners, np.ones(len(corners), dtype=np.bool_))
    assert parts.shape[1] == 4
    sizes = np.abs(parts).sum(axis=1)
    assert sizes.max() == 1 << 16 == pair.bounds.l1
    assert not pair.bounds.nonnegative


@pytest.mark.parametrize(
    ("degree", "spacing", "gain", "sup"),
    [
        (3, 0.75, 1.46, 0.018),
        (3, 0.5, 1.66, 0.0018),
        (3, 0.25, 2.26, 0.00008),
        (2, 1.0, 1.32, 0.085),
        (2, 0.75, 1.41, 0.028),
        (2, 0.5, 1.64, 0.0055),
    ],
)
def test_known_gains_and_biases(degree: int, spacing: float, gain: float, sup: float) -> None:
    """Figures that were found independently, by another fit on another interval."""
    found = axis_fit(GAUSSIAN, degree, spacing, 0.0).quality(200)
    assert found.gain == pytest.approx(gain, rel=0.02)
    pair = _pair(Spline(degree, spacing), 8.0)
    x, y = np.linspace(-4, 4, 301)[:, np.newaxis], np.linspace(-0.5, 0.5, 41)[:, np.newaxis]
    table = pair.quantize(x, np.ones(len(x), dtype=np.bool_)).astype(np.float64)
    answers = np.array([pair.respond(y, row) for row in table])
    error = np.abs(answers - GAUSSIAN.evaluate(x, y)).max()
    assert error == pytest.approx(sup, rel=0.25)


def test_gain_is_the_length_of_g() -> None:
    for family, halves in ((Spline(3, 0.6), (3.0, 0.7)), (Spline((2, 1), (1.0, 9.0)), (3.0, 0.3))):
        layout = family.layout(_frame(*halves))
        pair = layout.draw(22, 0)
        y = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2)) * halves
        norms = pair.response_norm(y) * 2**22
        gain = layout.quality[0]
        assert gain == pytest.approx(float(np.sqrt((norms**2).mean())), rel=0.02)


def test_a_ridge_lets_less_noise_through_and_keeps_constants() -> None:
    plain, ridged = axis_fit(GAUSSIAN, 3, 1.0, 0.0), axis_fit(GAUSSIAN, 3, 1.0, 0.1)
    assert ridged.quality(50).gain < 0.93 * plain.quality(50).gain
    assert plain.quality(50).bend == 0 < ridged.quality(50).bend
    for fit in (plain, ridged):
        sums = fit.response().values.sum(axis=1)  # Σ_j φ(v − j) = ∫k/h for every v
        assert np.allclose(sums, math.sqrt(math.pi), rtol=1e-3)


def test_no_bump_at_the_edges() -> None:
    """Uniform data up to the bounds: the bias there is that of the interior, and outside too."""
    x = ((np.arange(40_000) + 0.5) / 40_000 * 12 - 6)[:, np.newaxis]
    y = np.linspace(-8, 8, 321)[:, np.newaxis]
    truth = dpkde.nonprivate.kde(x, y, GAUSSIAN)
    bounds = [(-6, 6)]
    found = dpkde.nonprivate.estimate(x, y, GAUSSIAN, Spline(3, 0.6), bounds=bounds)
    error = np.abs(found - truth)
    assert error.max() < 5e-4 * truth.max()  # the fit itself is off by 4.5e-3 at worst
    pair = Spline(3, 0.6).layout(Frame.of(GAUSSIAN, as_domain(bounds))).draw(22, 0)
    norms = pair.response_norm(y)
    assert norms.max() <= 1.02 * norms[(np.abs(y) < 3)[:, 0]].max()


@pytest.mark.parametrize(
    ("family", "halves"),
    [
        (Spline(3, 0.5), (9.0,)),
        (Spline(3, 0.5), (9.0, 4.0)),
        (Spline(2, 0.8), (0.3, 0.5)),  # fewer nodes than a window has
        (Spline(3, (0.5, 0.9, 0.7)), (2.0, 3.0, 0.6)),
        (Spline(1, (0.7, 0.9, 0.8, 0.9)), (1.0, 2.0, 1.5, 0.9)),
        (Spline((3, 1, 2), (0.5, 9.0, 0.6), arch=900), (4.0, 0.02, 2.0)),
    ],
)
def test_answers_are_the_products_of_coefficients(
    family: Spline, halves: tuple[float, ...]
) -> None:
    """Slowly: every axis as a full row, zero where a query has no coefficient."""
    pair, generator = _pair(family, *halves), np.random.default_rng(8)
    queries = np.concatenate(
        [
            generator.uniform(-1.2, 1.2, (40, len(halves))) * halves,
            np.sign(generator.normal(size=(9, len(halves)))) * halves,  # the corners
            [np.full(len(halves), 4.0), np.full(len(halves), math.nan)],
        ]
    )
    table = generator.normal(size=pair.bounds.cells)
    located = pair.frame.locate(queries)
    starts, coefficients = pair.coefficients(located)
    expected = np.empty(len(queries))
    for row, group in enumerate(pair.group_numbers(located)):
        weights = group / 2**pair.bits
        for k, axis in enumerate(pair.grid.axes):
            full, near = np.zeros(axis.nodes), int(pair.windows[k])
            full[starts[row, k] : starts[row, k] + near] = coefficients[row, k, :near]
            weights = np.multiply.outer(weights, full)
        expected[row] = weights.reshape(-1) @ table
    answers = pair.respond(queries, table)
    assert answers[:-1] == pytest.approx(expected[:-1], rel=1e-12, abs=1e-12 / 2**pair.bits)


def test_queries_far_outside_are_zero() -> None:
    pair = _pair(Spline(3, 0.6), 3.0, 3.0)
    table = np.ones(pair.bounds.cells)
    far = np.array([[40.0, 0.0], [0.0, -40.0], [1e300, 0.0], [-1e308, 1e308]])
    assert (pair.respond(far, table) == 0).all()
    assert (pair.response_norm(far) == 0).all()
    assert np.isfinite(pair.respond(np.array([[4.5, 0.0]]), table)).all()


def test_turned_and_round_domains() -> None:
    """A matrix bandwidth turns the box, a ball has a box around it: answers stay right."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(4000, 2)) * (0.5, 0.3)
    y = generator.normal(size=(50, 2)) * 0.5
    kernel = dpkde.Gaussian([[1.0, 0.4], [0.4, 0.8]])
    for bounds in ([(-2, 2), (-1.5, 1.5)], Ball((0.0, 0.0), 2.5)):
        truth = dpkde.nonprivate.kde(x, y, kernel)
        found = dpkde.nonprivate.estimate(x, y, kernel, Spline(5, 0.4), bounds=bounds)
        assert np.abs(found - truth).max() < 1e-4


def test_a_table_that_does_not_fit_says_what_would() -> None:
    with pytest.raises(dpkde.ParameterError, match=r"at most 2\^26.*times as large would fit"):
        Spline(3, 0.1).layout(_frame(50.0, 50.0, 50.0, 50.0)).draw(22, 0)
    with pytest.raises(dpkde.ParameterError, match="leave degree and spacing open"):
        Spline(5, 1.0).layout(_frame(*[2.0] * 40)).draw(22, 0)
    with pytest.raises(dpkde.ParameterError, match="no bounds"):
        Spline(3, 1.0).layout(Frame.of(GAUSSIAN, as_domain(None), 2)).draw(22, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"degree": 6},
        {"degree": -1},
        {"degree": 2.5},
        {"degree": True},
        {"degree": "3"},
        {"spacing": 0.0},
        {"spacing": math.nan},
        {"spacing": math.inf},
        {"spacing": "fine"},
        {"degree": (3, 9)},
        {"ridge": -0.1},
        {"slopes": (1 << 16,)},
    ],
)
def test_wrong_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(dpkde.ParameterError, match=next(iter(wrong))):
        Spline(**wrong)  # type: ignore[arg-type]


def test_shares_leave_something_to_the_constant() -> None:
    for leans in ([0.1] * 3, [1.0] * 2000, [1e-9] * 3000 + [50.0], [0.0] * 65_535, [1e6]):
        found = narrow.shares(leans)
        assert min(found) >= 1
        assert sum(found) < 1 << narrow.SHARE_BITS
    with pytest.raises(dpkde.ParameterError, match="at most 65535 axes"):
        narrow.shares([0.1] * 65_536)


def test_spacings_that_see_nothing_are_refused() -> None:
    with pytest.raises(dpkde.ParameterError, match="at most 8"):
        Spline(3, 9.0).layout(_frame(50.0)).draw(22, 0)
    for spacing in (5.0, 8.0):
        sums = axis_fit(GAUSSIAN, 3, spacing, 0.0).response().values.sum(axis=1)
        assert np.allclose(sums.mean() * spacing, math.sqrt(math.pi), rtol=2e-3)


def test_too_many_cells_say_so_when_planned() -> None:
    with pytest.raises(dpkde.ParameterError, match="this spline table would have"):
        dpkde.plan(kernel=GAUSSIAN, bounds=[(0, 10)] * 14, epsilon=1, family=Spline(3, 2.0), seed=0)
    with pytest.raises(dpkde.ParameterError, match="more than 1e300 cells"):
        Spline(5, 0.5).layout(_frame(*[2.0] * 500)).draw(22, 0)


def test_parameters_must_fit_the_axes() -> None:
    with pytest.raises(dpkde.ParameterError, match="3 entries for 2 axes"):
        Spline((1, 2, 3), 1.0).layout(_frame(2.0, 2.0)).draw(22, 0)
    with pytest.raises(dpkde.ParameterError, match="slopes"):
        Spline(3, 1.0, 0.0, (5, 0)).layout(_frame(2.0, 2.0)).draw(22, 0)
    with pytest.raises(dpkde.ParameterError, match="no repetitions"):
        _pair(Spline(3, 1.0), 2.0).respond(np.zeros((1, 1)), np.zeros(7), groups=2)


def _outlook(rows: float, *, epsilon: str = "1/2", gaussian: bool = False) -> Outlook:
    amount = Amount(rho=Fraction(1, 100)) if gaussian else Amount(epsilon=Fraction(epsilon))
    law = DiscreteGaussian if gaussian else DiscreteLaplace
    return Outlook(rows, 0.05, Adjacency.ADD_REMOVE, ((amount, law),))


def _best(family: Spline, frame: Frame, outlook: Outlook) -> SplineLayout:
    layout = best_of(family, frame, outlook)
    assert isinstance(layout, SplineLayout)
    return layout


def test_meshes_grow_finer_with_the_data() -> None:
    frame = _frame(20.0, 30.0)
    sizes = [_best(Spline(), frame, _outlook(10.0**k)) for k in (2, 3, 4, 5, 6, 8)]
    cells = [layout.grid.cells for layout in sizes]
    assert cells == sorted(cells)
    assert cells[-1] > 4 * cells[0]
    errors = [
        f.predict(_outlook(10.0**k)).error for f, k in zip(sizes, (2, 3, 4, 5, 6, 8), strict=True)
    ]
    assert errors == sorted(errors, reverse=True)


def test_what_is_chosen_is_predicted_best() -> None:
    """Against every single degree and spacing for all axes: none is predicted better."""
    frame = _frame(8.0, 5.0)
    for view in (_outlook(3e3), _outlook(1e5), _outlook(1e5, gaussian=True)):
        best = _best(Spline(), frame, view).predict(view).error
        for degree in (1, 2, 3, 4, 5):
            for spacing in (1.4, 1.1, 0.9, 0.75, 0.6, 0.5, 0.4):
                assert best <= 1.015 * Spline(degree, spacing).layout(frame).predict(view).error


def test_narrow_axes_take_a_line_or_a_constant() -> None:
    halves = (15.0, 4.0, 0.25, 0.1, *([0.002] * 46))
    frame = _frame(*halves)
    grid = _best(Spline(), frame, _outlook(2e4)).grid
    assert {axis.column for axis in grid.axes} == {0, 1}
    assert {column for column, _, _ in grid.tilts} <= {2, 3}
    assert 2 in {column for column, _, _ in grid.tilts}
    assert grid.cells < 10_000


@pytest.mark.parametrize("gathered", ["spread", "middle", "ends"])
def test_an_arch_serves_many_narrow_axes(gathered: str) -> None:
    """Curvatures of 27 narrow axes add up where data gather: without an arch they are 10% off."""
    generator = np.random.default_rng(8)
    narrow_columns = {
        "spread": generator.uniform(-0.125, 0.125, size=(3000, 27)),
        "middle": generator.normal(0, 0.02, size=(3000, 27)).clip(-0.125, 0.125),
        "ends": generator.choice([-0.125, 0.125], size=(3000, 27)),
    }[gathered]
    x = np.column_stack([generator.normal(size=3000).clip(-5, 5), narrow_columns])
    bounds = [(-5.0, 5.0)] + [(-0.125, 0.125)] * 27
    frame = Frame.of(GAUSSIAN, as_domain(bounds))
    chosen = _best(Spline(), frame, _outlook(1e5)).family
    assert chosen.arch
    truth = dpkde.nonprivate.kde(x, x[:200], GAUSSIAN)
    errors = {}
    for arch, slopes in ((chosen.arch, chosen.slopes), (0, None)):
        family = Spline(chosen.degree, chosen.spacing, chosen.ridge, slopes, arch)
        found = dpkde.nonprivate.estimate(x, x[:200], GAUSSIAN, family, bounds=bounds)
        errors[arch > 0] = float(np.abs(found / truth - 1).mean())
    assert errors[True] < (0.02 if gathered == "spread" else 0.05)
    if gathered != "spread":
        assert errors[False] > 0.1 > 2 * errors[True]


def test_given_parameters_are_kept() -> None:
    frame = _frame(8.0, 5.0)
    fixed = _best(Spline(degree=2), frame, _outlook(1e4)).family
    assert fixed.degree == (2, 2)
    fixed = _best(Spline(spacing=(0.9, 0.8)), frame, _outlook(1e4)).family
    assert fixed.spacing == (0.9, 0.8)


@given(st.floats(1e-3, 4.0), st.floats(-6.0, 6.0))
def test_lines_are_least_squares(half: float, y: float) -> None:
    """The constant and the slope are those of a direct fit on a fine grid."""
    t = (np.arange(4000) + 0.5) / 2000 - 1
    values = np.exp(-((t * half - y) ** 2))
    flat, slope, curve = narrow.line(GAUSSIAN, half, np.array([y]))
    assert flat[0] == pytest.approx(values.mean(), abs=1e-6)
    assert slope[0] == pytest.approx(3 * (values * t).mean(), abs=1e-6)
    assert curve[0] == pytest.approx(5 * (values * (1.5 * t * t - 0.5)).mean(), abs=1e-5)
