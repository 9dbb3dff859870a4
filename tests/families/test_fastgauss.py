"""The fast Gauss transform: the contract, the expansion, cutoffs, copies, and the order chosen."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.choosing import best_of
from dpkde.families.base import Family, Outlook
from dpkde.families.fastgauss.expansion import hermite_functions, quality, terms
from dpkde.families.fastgauss.family import FastGauss, FastGaussPair
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.laws import DiscreteLaplace
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.testing import FamilyContract

GAUSSIAN = dpkde.Gaussian(1.0)


class TestFastGauss(FamilyContract):
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1, 2, 8, 50)

    """Several unit cells an axis in few dimensions, one in many."""

    accuracy: ClassVar[float] = 5e-5

    def halves(self, dim: int) -> NDArray[np.float64]:
        return np.full(dim, 3.0 if dim <= 2 else 1.6 if dim == 3 else 0.7 if dim < 8 else 1e-3)

    def families(self, dim: int) -> list[Family]:
        if dim > 7:
            return [FastGauss(1), FastGauss(1, repetitions=2)]
        if dim > 3:
            return [FastGauss(1), FastGauss(2, cutoff=3.0)]
        return [
            FastGauss(1),
            FastGauss(3),
            FastGauss(6 if dim < 3 else 4, cutoff=2.5),
            FastGauss(2, repetitions=3, bound="product"),
        ]

    def accurate(self, dim: int) -> Family:
        order = 18 if dim <= 2 else 2 if dim == 8 else 1
        return FastGauss(order, cutoff=6.0)


def _pair(family: FastGauss, *halves: float, bits: int = 22) -> FastGaussPair:
    frame = Frame.of(GAUSSIAN, as_domain([(-half, half) for half in halves]))
    return family.layout(frame).draw(bits, 0)


def _table(pair: FastGaussPair, x: NDArray[np.float64]) -> NDArray[np.float64]:
    table: NDArray[np.float64] = pair.quantize(*pair.frame.place(x)).sum(axis=0) * 1.0
    return table


def test_the_expansion_term_by_term() -> None:
    """Powers and Hermite functions against the definitions, near cells chosen by hand."""
    pair = _pair(FastGauss(4, cutoff=1.6), 2.0, 1.5)
    x, y = np.array([[0.3, -1.2]]), np.array([[0.9, 0.1]])
    table = _table(pair, x)
    block = table.reshape(4, 3, 4, 4)[2, 0]
    z = np.array([0.5, -1.0])
    powers = np.multiply.outer((x - z)[0, 0] ** np.arange(4), (x - z)[0, 1] ** np.arange(4))
    assert np.allclose(block / 2**22, powers, atol=2.0**-22)
    assert (table != 0).sum() <= 16
    hermite = [np.polynomial.hermite.Hermite.basis(r) for r in range(4)]
    expected = 0.0
    for r in range(4):
        for s in range(4):
            g = [
                h(y[0, k] - z[k]) * math.exp(-((y[0, k] - z[k]) ** 2)) / math.factorial(i)
                for k, (h, i) in enumerate(((hermite[r], r), (hermite[s], s)))
            ]
            expected += powers[r, s] * g[0] * g[1]
    assert math.dist(y[0], z) < 1.6
    assert pair.respond(y, table)[0] == pytest.approx(expected, abs=1e-5)
    assert _pair(FastGauss(4, cutoff=1.0), 2.0, 1.5).respond(y, table)[0] == 0.0


@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_taylor_and_cutoff_errors_are_as_stated(order: int) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, size=(60, 1))
    y = np.linspace(-4, 4, 50)[:, np.newaxis]
    exact = GAUSSIAN.evaluate(x, y)
    for cutoff in (2.0, 5.0):
        pair = _pair(FastGauss(order, cutoff=cutoff), 3.0)
        rows = pair.quantize(*pair.frame.place(x)).astype(np.float64)
        found = np.array([pair.respond(y, row) for row in rows])
        taylor = 1.09 * 2 ** (-order / 2) / math.sqrt(math.factorial(order))
        assert np.abs(found - exact).max() <= taylor + math.exp(-((cutoff - 0.5) ** 2)) + 1e-5


def test_bounds_are_the_refined_ones() -> None:
    frame = Frame.of(GAUSSIAN, as_domain([(-2, 2)] * 2))
    for order in (1, 2, 8):
        bounds = FastGauss(order).layout(frame).bounds(22)
        assert bounds.l1 == (Fraction(2) * (1 - Fraction(1, 2**order))) ** 2 * 2**22
        wide = FastGauss(order, bound="product").layout(frame).bounds(22)
        assert wide.l1 == order**2 * 2**22
        assert wide.l1 >= bounds.l1
    many = FastGauss(3, repetitions=5).layout(frame).bounds(22)
    assert many.l1 == 5 * FastGauss(3).layout(frame).bounds(22).l1


def test_bounds_are_reached_at_corners_and_survive_rounding() -> None:
    """A record at a corner of its cell has the largest powers; 16 bits round the last to zero."""
    for order, bits in ((8, 22), (12, 16)):
        pair = _pair(FastGauss(order), 2.0, 2.0, bits=bits)
        x = np.array([[0.0, 0.0], [1.0, -1.0], [0.5, 0.5], [2.0, -2.0], [0.999999, 1e-9]])
        parts = np.abs(pair.quantize(*pair.frame.place(x)))
        assert parts.sum(axis=1).max() == pair.bounds.l1
        assert (parts**2).sum(axis=1).max() == pair.bounds.l2_squared


def test_terms_are_counted() -> None:
    for order, dim in ((1, 5), (2, 3), (4, 2)):
        degrees = [sum(r) for r in np.ndindex(*([order] * dim))]
        assert terms(order, dim) == [degrees.count(s) for s in range(max(degrees) + 1)]


def test_copies_and_their_median() -> None:
    pair = _pair(FastGauss(4, cutoff=4.0, repetitions=5), 2.0)
    x, y = np.random.default_rng(1).normal(size=(200, 1)), np.array([[0.2], [1.0]])
    table = _table(pair, x)
    copies = table.reshape(5, -1)
    assert (copies == copies[0]).all()
    noisy = copies + np.random.default_rng(2).normal(size=copies.shape) * 1e8
    single = _pair(FastGauss(4, cutoff=4.0), 2.0)
    each = np.array([single.respond(y, copy) for copy in noisy])
    assert np.allclose(pair.respond(y, noisy.ravel()), each.mean(axis=0))
    assert np.allclose(pair.respond(y, noisy.ravel(), groups=5), np.median(each, axis=0))
    with pytest.raises(dpkde.ParameterError, match="5 repetitions"):
        pair.respond(y, table, groups=6)


def test_the_median_reaches_a_release() -> None:
    x = np.random.default_rng(3).normal(size=(3000, 1))
    release = dpkde.publish(
        x,
        kernel=GAUSSIAN,
        bounds=[(-4, 4)],
        epsilon=10,
        family=FastGauss(6, repetitions=3),
    )
    truth = dpkde.nonprivate.kde(x, x[:50], GAUSSIAN)
    assert np.abs(release.kde(x[:50], groups=3) - truth).max() < 0.1


def test_order_grows_like_the_logarithm() -> None:
    frame = Frame.of(GAUSSIAN, as_domain([(-20, 20)] * 2))
    orders = []
    for power in range(2, 9):
        view = Outlook(
            10.0**power,
            0.05,
            Adjacency.ADD_REMOVE,
            ((Amount(epsilon=Fraction(1)), DiscreteLaplace),),
        )
        orders.append(best_of(FastGauss(), frame, view).family.to_json()["order"])
    assert orders == sorted(orders)
    assert orders[0] <= 2
    assert 5 <= orders[-1] <= 12


def test_predicted_length_of_g() -> None:
    pair = _pair(FastGauss(6, cutoff=5.0), 12.0, 12.0)
    y = np.random.default_rng(4).uniform(-5, 5, size=(2000, 2))
    measured = (pair.response_norm(y) * 2**22) ** 2
    assert quality(6, 5.0, (12.0, 12.0))[1] == pytest.approx(float(measured.mean()), rel=0.02)


def test_hermite_functions_follow_their_definition() -> None:
    t = np.linspace(-4, 4, 33)
    found = hermite_functions(t, 12)
    for r in range(12):
        basis = np.polynomial.hermite.Hermite.basis(r)
        assert np.allclose(found[:, r], basis(t) * np.exp(-t * t) / math.factorial(r), atol=1e-12)


def test_queries_outside() -> None:
    pair = _pair(FastGauss(12, cutoff=4.0), 2.0)
    x = np.array([[1.9], [2.0]])
    y = np.array([[2.5], [4.0], [9.0], [1e300], [-1e308]])
    found = pair.respond(y, _table(pair, x))
    truth = GAUSSIAN.evaluate(x, y[:3]).sum(axis=0)
    assert np.allclose(found[:3], truth, atol=1e-4)
    assert (found[2:] == 0).all()


def test_what_does_not_fit_or_serve() -> None:
    with pytest.raises(dpkde.ParameterError, match=r"order up to 1 fits"):
        _pair(FastGauss(8), *[4.0] * 8)
    with pytest.raises(dpkde.ParameterError, match="another family"):
        _pair(FastGauss(8), *[4.0] * 20)
    with pytest.raises(dpkde.ParameterError, match="no bounds"):
        FastGauss(3).layout(Frame.of(GAUSSIAN, as_domain(None), 2)).draw(22, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": 0},
        {"order": 25},
        {"order": 2.0},
        {"order": True},
        {"cutoff": 0.1},
        {"cutoff": math.nan},
        {"repetitions": 0},
        {"bound": "loose"},
    ],
)
def test_wrong_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(dpkde.ParameterError, match=next(iter(wrong))):
        FastGauss(**wrong)  # type: ignore[arg-type]
