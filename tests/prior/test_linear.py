"""Bernstein, EvenTrig and NoisySample: the contract, small cases by hand, bias, files, refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dpkde
from dpkde.families.base import Family
from dpkde.families.custom import fits
from dpkde.kernels import Kernel, ProductKernel
from dpkde.prior import Bernstein, EvenTrig, NoisySample
from dpkde.prior.bernstein import axis_norms, basis, nodes
from dpkde.prior.placed import PlacedFamily, in_data_units
from dpkde.privacy.amounts import Bounds
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.testing import FamilyContract

GAUSSIAN = dpkde.Gaussian(1.0)


class TestBernstein(FamilyContract):
    axes: ClassVar[tuple[int, ...]] = (1, 2)
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1,)
    accuracy: ClassVar[float] = 4.0**2 * 2 / (8 * 400)

    def families(self, dim: int) -> list[Family]:
        return [Bernstein(5), Bernstein(1)]

    def accurate(self, dim: int) -> Family:
        return Bernstein(400)


class TestBernsteinOfOtherKernels(FamilyContract):
    kernel: ClassVar[Kernel] = dpkde.RationalQuadratic(2.0, 1.0)
    axes: ClassVar[tuple[int, ...]] = (1, 2)
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1,)
    accuracy: ClassVar[float] = 6.0**2 * 2 / (8 * 200)

    def families(self, dim: int) -> list[Family]:
        return [Bernstein(4)]

    def accurate(self, dim: int) -> Family:
        return Bernstein(200)


class TestEvenTrig(FamilyContract):
    axes: ClassVar[tuple[int, ...]] = (1, 2, 3)
    accuracy: ClassVar[float] = 1e-4

    def families(self, dim: int) -> list[Family]:
        return [EvenTrig(4), EvenTrig(1)]

    def accurate(self, dim: int) -> Family:
        return EvenTrig(16)


class TestEvenTrigOfOtherKernels(FamilyContract):
    kernel: ClassVar[Kernel] = dpkde.RationalQuadratic(2.0, 1.0)
    axes: ClassVar[tuple[int, ...]] = (1, 2)
    accuracy: ClassVar[float] = 0.02

    def families(self, dim: int) -> list[Family]:
        return [EvenTrig(5)]

    def accurate(self, dim: int) -> Family:
        return EvenTrig(16)


def _frame(kernel: Kernel, *bounds: tuple[float, float]) -> Frame:
    return Frame.of(kernel, as_domain(list(bounds)))


def test_bernstein_of_order_one_is_linear_interpolation() -> None:
    pair = Bernstein(1).layout(_frame(GAUSSIAN, (0.0, 2.0))).draw(20, 0)
    (row,) = pair.quantize(*pair.frame.place(np.array([[0.5]])))
    ends = [math.exp(-0.25), math.exp(-2.25)]
    assert row.tolist() == [round(end * 2**20) for end in ends]
    answers = pair.respond(np.array([[0.0], [2.0], [0.5], [9.0]]), row.astype(np.float64))
    expected = [ends[0], ends[1], 0.75 * ends[0] + 0.25 * ends[1], ends[1]]
    assert np.allclose(answers, expected, atol=1e-6)


def test_eventrig_of_degree_two_is_a_constant_and_a_line() -> None:
    """With y = 0 the profile is even: the line vanishes, the constant is the mean over angles."""
    pair = EvenTrig(2).layout(_frame(GAUSSIAN, (-1.0, 1.0))).draw(20, 0)
    (row,) = pair.quantize(*pair.frame.place(np.array([[0.25]])))
    assert row.tolist() == [2**20, 2**18]
    angles = (np.arange(10_000) + 0.5) * np.pi / 10_000
    (constant,) = pair.respond(np.zeros((1, 1)), np.array([2.0**20, 0.0]))
    (slope,) = pair.respond(np.zeros((1, 1)), np.array([0.0, 2.0**20]))
    assert constant == pytest.approx(np.exp(-(np.cos(angles) ** 2)).mean(), abs=1e-12)
    assert slope == pytest.approx(0.0, abs=1e-12)


def test_the_first_entry_of_eventrig_is_the_count() -> None:
    pair = EvenTrig(3).layout(_frame(GAUSSIAN, (-1, 1), (-1, 1))).draw(20, 0)
    rows = np.random.default_rng(0).normal(size=(50, 2))
    assert (pair.quantize(*pair.frame.place(rows))[:, 0] == 2**20).all()


@pytest.mark.parametrize("order", [3, 10, 40])
@pytest.mark.parametrize(("kernel", "bend"), [(GAUSSIAN, 2.0), (dpkde.Cauchy(1.0), 2.0)])
def test_the_bias_of_bernstein_is_within_its_bound(
    kernel: ProductKernel, bend: float, order: int
) -> None:
    """Σ_axes w²·sup|∂²k|/(8k); the profiles e^{−t²} and 1/(1+t²) bend most at zero, by 2."""
    frame = _frame(kernel, (-1.0, 1.0), (0.0, 1.5))
    family = Bernstein(order)
    x = np.random.default_rng(1).uniform((-1, 0), (1, 1.5), size=(40, 2))
    pair = family.layout(frame).draw(24, 0)
    contributions = pair.quantize(*frame.place(x)).astype(np.float64)
    answers = np.array([pair.respond(x, row) for row in contributions])
    error = np.abs(answers - kernel.evaluate(x, x)).max()
    assert error <= (2.0**2 + 1.5**2) * bend / (8 * order) + 1e-5
    assert error <= family.largest_bias(frame) + 1e-5
    assert family.largest_bias(frame) <= 2 * (2.0**2 + 1.5**2) * bend / (8 * order)


def test_the_bias_of_eventrig_is_what_the_series_leaves_out() -> None:
    frame = _frame(GAUSSIAN, (-2.0, 2.0), (-1.0, 1.0))
    x = np.random.default_rng(2).uniform((-2, -1), (2, 1), size=(40, 2))
    for degree, least in ((3, 1e-2), (6, 1e-3), (12, 0.0)):
        family = EvenTrig(degree)
        pair = family.layout(frame).draw(24, 0)
        contributions = pair.quantize(*frame.place(x)).astype(np.float64)
        answers = np.array([pair.respond(x, row) for row in contributions])
        error = np.abs(answers - GAUSSIAN.evaluate(x, x)).max()
        assert least <= error <= 1.05 * family.largest_bias(frame) + 1e-5
    assert EvenTrig(40).largest_bias(frame) < 1e-8
    assert math.isnan(EvenTrig(4).largest_bias(_frame(dpkde.Erfc(1.0), (-1, 1))))


@pytest.mark.parametrize(
    "kernel", [GAUSSIAN, dpkde.Laplacian(1.0), dpkde.Cauchy(1.0), dpkde.Hat(1.0)]
)
def test_norms_of_an_axis_are_upper_bounds_and_near(kernel: ProductKernel) -> None:
    for half, order in ((0.1, 3), (2.0, 1), (5.0, 12), (30.0, 100)):
        x = np.linspace(-half, half, 20_001)
        values = kernel.profile(np.subtract.outer(x, nodes(order, half)))
        l1, l2 = axis_norms(kernel, half, order)
        for bound, norms in ((l1, values.sum(axis=1)), (l2, np.sqrt((values**2).sum(axis=1)))):
            assert norms.max() <= bound * (1 + 1e-12)
            assert bound <= 1.02 * norms.max()


def test_no_honest_record_is_lost() -> None:
    """Records at nodes and corners reach the bounds, and still contribute."""
    for family in (Bernstein(7), EvenTrig(7)):
        frame = _frame(GAUSSIAN, (-3.0, 3.0), (-2.0, 2.0))
        pair = family.layout(frame).draw(22, 0)
        mesh = np.meshgrid(np.linspace(-3, 3, 8), np.linspace(-2, 2, 8))
        rows = np.stack([axis.reshape(-1) for axis in mesh], axis=1)
        far = np.array([[1e308, -1e308], [3.0, 2.0], [-3.0, 2.0]])
        assert pair.quantize(*frame.place(np.concatenate([rows, far]))).any(axis=1).all()


def test_basis_adds_up_to_one() -> None:
    for order in (1, 7, 300):
        for y in (-5.0, -1.0, -0.3, 0.0, 0.999, 1.0, 5.0):
            terms = basis(order, 1.0, y)
            assert terms.min() >= 0
            assert terms.sum() == pytest.approx(1.0, rel=1e-12)


def test_fits_counts_exactly() -> None:
    bounds = Bounds(2, 10, 52, 6, nonnegative=True)
    assert fits(np.array([4, 6]), bounds)
    assert not fits(np.array([5, 6]), bounds)
    assert not fits(np.array([-1, 6]), bounds)
    large = Bounds(2, 3 << 40, (5 << 80) - 1, 2 << 40, nonnegative=False)  # beyond 64 bits
    assert not fits(np.array([1 << 40, -2 << 40]), large)
    assert fits(np.array([1 << 40, -1 << 40]), large)


def test_a_matrix_bandwidth_comes_back_in_data_units() -> None:
    kernel = dpkde.Gaussian([[2.0, 0.5], [0.5, 1.0]])
    frame = _frame(kernel, (0, 4), (10, 12))
    rows = np.array([[1.0, 10.5], [3.0, 11.5]])
    assert np.allclose(in_data_units(frame, frame.place(rows)[0]), rows)
    exact = dpkde.nonprivate.kde(rows, rows, kernel)
    answers = dpkde.nonprivate.estimate(rows, rows, kernel, EvenTrig(20), bounds=[(0, 4), (10, 12)])
    assert np.allclose(answers, exact, atol=1e-4)


@pytest.mark.parametrize("family", [Bernstein(order=8), EvenTrig(degree=8)])
@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 1}, {"rho": "0.1"}, {"epsilon": 1, "adjacency": "replace"}]
)
def test_publish_save_and_load(
    family: PlacedFamily, guarantee: dict[str, Any], tmp_path: Path
) -> None:
    points = np.random.default_rng(3).normal(size=(3_000, 1))
    release = dpkde.publish(
        points, kernel=dpkde.Gaussian(3.0), bounds=[(-3, 3)], family=family, **guarantee
    )
    queries = np.linspace(-2, 2, 9)
    exact = dpkde.nonprivate.kde(points, queries, dpkde.Gaussian(3.0))
    # Twenty standard errors and the bias: with Laplace tails e^{−20√2} for each query, below 10⁻¹¹.
    bias = family.largest_bias(release.plan.frame)  # type: ignore[attr-defined]
    error = np.abs(release.kde(queries) - exact)
    assert (error <= bias + 1e-4 + 20 * release.standard_error(queries)).all()
    assert np.isfinite(release.sampling_error(queries)).all()
    release.save(tmp_path / "x.dpkde")
    with pytest.raises(dpkde.FormatError, match=r"families=\[\.\.\.\]"):
        dpkde.load(tmp_path / "x.dpkde")
    back = dpkde.load(tmp_path / "x.dpkde", families=[type(family)])
    assert back == release
    assert np.array_equal(back.kde(queries), release.kde(queries))


def test_a_file_that_asks_for_too_much_is_refused() -> None:
    frame = _frame(GAUSSIAN, *[(-1.0, 1.0)] * 9)
    for family in (Bernstein(4096), EvenTrig(1024)):
        with pytest.raises(dpkde.ParameterError, match=r"\^9 = .*cells"):
            family.layout(frame).restore(20, {})
    with pytest.raises(dpkde.ParameterError, match="1e150 bandwidths wide"):
        _frame(dpkde.Gaussian(1e-100), (-1e100, 1e100))


def test_the_largest_orders_are_served() -> None:
    frame = _frame(GAUSSIAN, (-50.0, 50.0))
    for family in (Bernstein(4096), EvenTrig(1024)):
        pair = family.layout(frame).draw(20, 0)
        assert pair.quantize(*frame.place(np.array([[0.3]]))).any()
        assert np.isfinite(pair.response_norm(np.array([[0.3]]))).all()


def test_tensors_that_do_not_belong_are_refused() -> None:
    frame = _frame(GAUSSIAN, (-1, 1))
    with pytest.raises(dpkde.FormatError, match="tensors of the family"):
        Bernstein(3).layout(frame).restore(20, {"words": np.zeros(3)})


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "8", None, True, 5_000])
def test_orders_are_whole_numbers(wrong: Any) -> None:
    with pytest.raises(dpkde.ParameterError, match="order of Bernstein"):
        Bernstein(wrong)
    with pytest.raises(dpkde.ParameterError, match="degree of EvenTrig"):
        EvenTrig(wrong)


@pytest.mark.parametrize("family", [Bernstein(8), EvenTrig(8)])
def test_what_cannot_be_served_is_refused_at_once(family: PlacedFamily) -> None:
    points = np.zeros((5, 10))
    with pytest.raises(dpkde.ParameterError, match=r"\^10 = .*cells .*bytes"):
        dpkde.publish(points, kernel=GAUSSIAN, bounds=[(0, 1)] * 10, epsilon=1, family=family)
    with pytest.raises(dpkde.ParameterError, match="needs bounds"):
        dpkde.publish(points, kernel=GAUSSIAN, epsilon=1, family=family)
    with pytest.raises(dpkde.ParameterError, match="does not live in space"):
        dpkde.publish(points, kernel=dpkde.Geodesic(), epsilon=1, family=family)


def test_eventrig_says_what_other_kernels_would_take() -> None:
    with pytest.raises(dpkde.ParameterError, match=r"16\^6 = 1\.68e\+07 values .*no product"):
        EvenTrig(3).layout(_frame(dpkde.Erfc(1.0), *[(0.0, 1.0)] * 6)).bounds(20)


def test_noisy_sample_says_that_it_is_not_private() -> None:
    points = np.random.default_rng(5).normal(size=(400, 2))
    points[7] = np.nan
    sample = NoisySample(points, kernel=GAUSSIAN, epsilon=1, seed=0)
    assert not sample.is_private
    assert not NoisySample.is_private
    assert "NOT" in sample.statement
    assert "NOT" in repr(sample)
    assert not hasattr(sample, "privacy")
    answers = sample.kde([[0.0, 0.0], [50.0, 50.0]])
    assert answers[0] == answers[1]
    finite = points[np.isfinite(points).all(axis=1)]
    mean = dpkde.nonprivate.kde(finite, finite, GAUSSIAN).mean()
    # The sample's mean is off by 0.02 at most, noise of scale 1/400 by 0.06 with chance e⁻²⁴.
    assert abs(answers[0] - mean) < 0.1
    with pytest.raises(dpkde.ParameterError, match="size"):
        NoisySample(points, kernel=GAUSSIAN, epsilon=1, size=0)
    with pytest.raises(dpkde.ParameterError, match="no records"):
        NoisySample(np.empty((0, 2)), kernel=GAUSSIAN, epsilon=1)


def test_every_proof_states_its_conditions() -> None:
    folder = Path(dpkde.__file__).parent / "prior"
    for name in ("bernstein", "eventrig", "hrw"):
        text = (folder / f"{name}.proof.md").read_text(encoding="utf-8")
        for heading in ("## Precondition", "## Postcondition", "## Why the bounds hold"):
            assert heading in text
