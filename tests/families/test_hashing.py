"""Hashing: the contract for each way to cut space, keys against plain NumPy, and particulars."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.choosing import best_of
from dpkde.families.base import Family, Outlook
from dpkde.families.hashing import cells
from dpkde.families.hashing.cuts import Balls, Bins, Grid, Least, Planes
from dpkde.families.hashing.family import Hashing, HashingPair
from dpkde.kernels import Kernel
from dpkde.kernels.partitions import RandomBins
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, MaxNorm
from dpkde.space.domain import Domain, Sets, Sphere, as_domain
from dpkde.space.frame import Frame
from dpkde.testing import FamilyContract

Floats = NDArray[np.float64]


class Contract(FamilyContract):
    kernel: ClassVar[Kernel]
    axes: ClassVar[tuple[int, ...]] = (1, 2, 7)
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1, 2, 8, 50)
    # Hoeffding over 2^13 repetitions of ±1, 288 comparisons: P(error > 0.08) < 600·e^(−26) < 1e-8.
    accuracy: ClassVar[float] = 0.08

    def families(self, dim: int) -> list[Family]:
        return [Hashing(3, 1), Hashing(5, 8), Hashing(4, 16, signed=False)]

    def accurate(self, dim: int) -> Family:
        return Hashing(1 << 13, 32)


class TestLaplacian(Contract):
    kernel: ClassVar[Kernel] = dpkde.Laplacian(1.5)


class TestLaplacianUnsigned(Contract):
    """Values of a repetition are in [−1/31, 1]·32/31: the same inequality holds."""

    kernel: ClassVar[Kernel] = dpkde.Laplacian([1.5])
    axes = (1,)
    kernel_axes = (1,)

    def accurate(self, dim: int) -> Family:
        return Hashing(1 << 13, 32, signed=False)


class TestHat(Contract):
    kernel: ClassVar[Kernel] = dpkde.Hat(4.0)


class TestRoughExponential(Contract):
    kernel: ClassVar[Kernel] = dpkde.ExponentialLp(0.7, 0.5, 2.0)


class TestMixture(Contract):
    kernel: ClassVar[Kernel] = dpkde.Mixture([dpkde.Hat(2.0), dpkde.Laplacian(3.0)], [1, 2])


class Small(Contract):
    def halves(self, dim: int) -> Floats:
        return np.full(dim, 1.4 / np.sqrt(dim))


class TestPlanes(Small):
    kernel: ClassVar[Kernel] = dpkde.ExponentialLp(1.5, 1, 1.2)


class TestProduct(Small):
    kernel: ClassVar[Kernel] = dpkde.Product([dpkde.Hat(3.0), dpkde.ExponentialLp(2, 1, 2.0)])


class TestBalls(Small):
    kernel: ClassVar[Kernel] = dpkde.Erfc(1.0)
    axes = (1, 2)
    kernel_axes = (1, 2, 4)

    def halves(self, dim: int) -> Floats:
        return np.full(dim, 0.6 if dim < 3 else 0.3)

    # Hoeffding over 2^9 repetitions, 108 comparisons: P(error > 0.32) < 216·e^(−26).
    accuracy = 0.32

    def accurate(self, dim: int) -> Family:
        return Hashing(1 << (13 if dim < 3 else 9), 32)


class TestGeodesic(Contract):
    kernel: ClassVar[Kernel] = dpkde.Geodesic()

    def domain(self, dim: int) -> Domain:
        return Sphere()

    def accurate(self, dim: int) -> Family:
        return Hashing(1 << 13, 1)


class TestGeodesicInBuckets(TestGeodesic):
    kernel: ClassVar[Kernel] = dpkde.Product([dpkde.Geodesic(), dpkde.Geodesic()])

    def accurate(self, dim: int) -> Family:
        return Hashing(1 << 13, 32)


class TestJaccard(Contract):
    kernel: ClassVar[Kernel] = dpkde.Jaccard()

    def domain(self, dim: int) -> Domain:
        return Sets(dim)

    def points(self, generator: np.random.Generator, dim: int) -> Floats:
        return (generator.random((6, dim)) < 0.4).astype(np.float64)


def _pair(kernel: Kernel, dim: int, family: Hashing, half: float = 2.0, seed: int = 1) -> Any:
    frame = Frame.of(kernel, as_domain([(-half, half)] * dim), dim)
    return family.layout(frame).draw(0, seed)


def _keys(pair: HashingPair, coordinates: Floats) -> NDArray[np.int64]:
    found = [keys for _, keys in pair._keys(coordinates)]
    return np.concatenate(found).astype(np.int64) & 0xFFFFFFFF


def test_keys_of_bins_are_those_of_plain_numpy() -> None:
    pair = _pair(dpkde.Laplacian(1.0), 9, Hashing(300, 4))
    x = np.random.default_rng(0).uniform(-2, 2, size=(70, 9))
    (cut,) = pair.cuts
    assert isinstance(cut, Bins)
    rows = x.astype(np.float32)[:, np.newaxis]
    bins = np.floor(rows * cut.rates + cut.shifts).astype(np.int64)
    expected = (pair.base + (bins * cut.words).sum(axis=2)) & 0xFFFFFFFF
    assert np.array_equal(_keys(pair, x), expected)


def test_keys_of_planes_are_those_of_plain_numpy() -> None:
    pair = _pair(dpkde.ExponentialLp(1.5, 1), 3, Hashing(200, 4))
    x = np.random.default_rng(1).uniform(-2, 2, size=(70, 3))
    (cut,) = pair.cuts
    assert isinstance(cut, Planes)
    assert len(cut.words) > 2 * cells.TILE
    sums = np.zeros((70, len(cut.words)), dtype=np.float32) - cut.offsets
    for k in range(3):
        sums = sums + x[:, k : k + 1].astype(np.float32) * cut.normals[:, k]
    beyond = np.where(sums > 0, cut.words.astype(np.int64), 0)
    owners = np.repeat(np.arange(200), cut.counts)
    keys = np.tile(pair.base.astype(np.int64), (70, 1))
    for j, owner in enumerate(owners):
        keys[:, owner] += beyond[:, j]
    assert np.array_equal(_keys(pair, x), keys & 0xFFFFFFFF)


def _mix(value: NDArray[np.uint32]) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint32(16))) * np.uint32(0x7FEB352D)
        value = (value ^ (value >> np.uint32(15))) * np.uint32(0x846CA68B)
        return np.asarray(value ^ (value >> np.uint32(16)))


def test_keys_of_sets_are_those_of_plain_numpy() -> None:
    frame = Frame.of(dpkde.Jaccard(), Sets(30))
    pair = Hashing(50, 4).layout(frame).draw(0, 1)
    rows = np.random.default_rng(2).random((40, 30)) < 0.2
    rows[3] = False
    (cut,) = pair.cuts
    assert isinstance(cut, Least)
    orders, scatter = cut.orders.view(np.uint32), cut.words.view(np.uint32)
    order = _mix(_mix(np.arange(1, 31, dtype=np.uint32))[:, np.newaxis] ^ orders)
    placed, _ = frame.place(rows)
    keys = _keys(pair, placed)
    for i in range(40):
        words = scatter if not rows[i].any() else _mix(order[rows[i]].min(axis=0) ^ scatter)
        expected = (pair.base.astype(np.int64) + words.astype(np.int64)) & 0xFFFFFFFF
        assert np.array_equal(keys[i], expected)


def test_the_scrambling_is_a_permutation() -> None:
    words = np.arange(1 << 20, dtype=np.uint32) * np.uint32(4096)
    assert len(np.unique(_mix(words))) == len(words)
    assert int(cells.mix(np.uint32(12345))) == int(_mix(np.array([12345], dtype=np.uint32))[0])


@pytest.mark.parametrize("kernel", [dpkde.Hat(0.5), dpkde.Jaccard()])
def test_cells_that_differ_collide_once_in_so_many_buckets(kernel: Kernel) -> None:
    """2^15 repetitions of 16 buckets: a rate of 1/16 to 7 standard errors, signs fair as well."""
    is_set = isinstance(kernel, dpkde.Jaccard)
    frame = Frame.of(kernel, Sets(4) if is_set else as_domain([(-3, 3)] * 2))
    pair = Hashing(1 << 15, 16).layout(frame).draw(0, 3)
    rows = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]] if is_set else [[-1.0, -1.0], [1.0, 1.0]])
    assert (pair.moves != 0).all()
    found = pair.quantize(*frame.place(rows)).reshape(2, -1, 16)
    product = (found[0] * found[1]).sum(axis=1)
    assert np.abs(product).mean() == pytest.approx(1 / 16, abs=7 * (1 / 16 / 2**15) ** 0.5)
    assert abs(product.mean()) < 7 * (1 / 16 / 2**15) ** 0.5
    assert np.abs(found.sum(axis=(0, 1)) / 2**15).max() < 7 * (2 / 16 / 2**15) ** 0.5


def test_few_cells_are_numbered_and_never_collide() -> None:
    """Without noise a query in an empty cell hears nothing, wherever it lies."""
    pair = _pair(dpkde.Hat(1.0), 2, Hashing(64, 256))
    assert all(isinstance(cut, Grid) for cut in pair.cuts)
    rows = np.random.default_rng(4).uniform(-2, 2, size=(500, 2))
    table = np.zeros(pair.bounds.cells, dtype=np.int64)
    pair.accumulate(*pair.frame.place(rows), table)
    assert (table >= 0).all()
    far = np.array([[3.1, 0.0], [0.0, -9.0], [4e3, 4e3], [-4e3, 0.0], [3.01, 3.01]])
    assert not pair.respond(far, table.astype(np.float64)).any()
    beyond = np.array([[1e6, 1e6], [-1e300, 0.0]])  # coordinates are clipped before that
    assert np.isnan(pair.respond(beyond, table.astype(np.float64))).all()
    corner = np.array([[2.4, 2.4]])
    exact = dpkde.Hat(1.0).evaluate(rows, corner).sum()
    assert exact > 0
    assert pair.respond(corner, table.astype(np.float64))[0] == pytest.approx(exact, abs=25)


def test_some_are_numbered_and_some_are_hashed() -> None:
    pair = _pair(dpkde.Laplacian(1.0), 2, Hashing(400, 64))
    assert {type(cut) for cut in pair.cuts} == {Grid, Bins}
    x = np.random.default_rng(5).uniform(-2, 2, size=(4, 2))
    exact = dpkde.Laplacian(1.0).evaluate(x, x)
    contributions = pair.quantize(x, np.ones(4, dtype=np.bool_)).astype(np.float64)
    found = np.array([pair.respond(x, row) for row in contributions])
    # Hoeffding over 400: P(error > 0.35) < 32·e^(−24).
    assert np.abs(found - exact).max() < 0.35


def test_directions_use_the_count_for_half_of_the_kernel() -> None:
    points = np.random.default_rng(6).normal(size=(3000, 5)) + 0.4
    release = dpkde.publish(points, kernel=dpkde.Geodesic(), epsilon=5, adjacency="replace", seed=1)
    assert release.family == Hashing(release.family.to_json()["repetitions"], 1)
    exact = dpkde.nonprivate.kde(points, points[:20], dpkde.Geodesic())
    error = np.hypot(release.standard_error(points[:20]), release.sampling_error(points[:20]))
    assert np.abs((release.kde(points[:20]) - exact) / error).max() < 6
    private = dpkde.publish(points, kernel=dpkde.Geodesic(), epsilon=5, seed=1)
    law = private.law("count")
    assert law is not None
    assert (private.kernel_sum_standard_error(points[:3]) > 0.5 * law.variance**0.5).all()


def test_length_is_no_matter_and_zero_contributes_nothing() -> None:
    frame = Frame.of(dpkde.Geodesic(), as_domain(None), 3)
    pair = Hashing(64, 1).layout(frame).draw(0, 2)
    rows = np.random.default_rng(7).normal(size=(5, 3))
    one = pair.quantize(*frame.place(rows))
    for scale in (1e-300, 1e-3, 1e250):
        assert np.array_equal(one, pair.quantize(*frame.place(rows * scale)))
    assert not pair.quantize(*frame.place(np.zeros((2, 3)))).any()


def test_sets_that_are_sparse_or_listed_are_the_same_sets() -> None:
    from scipy import sparse

    rows = np.random.default_rng(8).random((300, 12)) < 0.3
    plan = dpkde.plan(
        kernel=dpkde.Jaccard(), bounds=dpkde.Sets(12), epsilon=1, family=Hashing(40, 8)
    )
    dense = dpkde.sketch(rows, plan)
    assert dpkde.sketch(sparse.coo_array(rows.astype(float)), plan) == dense
    listed: list[Any] = [np.flatnonzero(row).tolist() for row in rows]
    assert dpkde.sketch(listed, plan) == dense
    assert dpkde.sketch((frozenset(s) for s in listed), plan) == dense
    strange = [*listed, None, 3.5, [-1, 99, "x", float("nan")]]
    more = dpkde.sketch(strange, plan)
    assert more._count == dense._count + 1  # the last is a set without elements
    release = dpkde.publish(dense, epsilon=1)
    assert np.array_equal(release.kde(listed[:4]), release.kde(rows[:4].astype(float)))
    assert np.array_equal(release.kde(sparse.csr_array(rows[:4])), release.kde(rows[:4]))
    for wrong in ([[0, 1, 0]], [[12]], [["x"]], [[-1]]):
        with pytest.raises(dpkde.SchemaError, match="element numbers from 0 to 11"):
            release.kde(wrong)


@pytest.mark.parametrize("kernel", [dpkde.ExponentialLp(1.5, 1), dpkde.Erfc(1.0)])
def test_queries_outside_a_box_are_refused(kernel: Kernel) -> None:
    points = np.random.default_rng(9).uniform(-1, 1, size=(50, 2))
    release = dpkde.publish(
        points, kernel=kernel, bounds=[(-1, 1)] * 2, epsilon=1, family=Hashing(8, 4)
    )
    assert np.isnan(release.kde([[np.nan, 0.0], [0.0, 0.5]])).tolist() == [True, False]
    with pytest.raises(dpkde.ParameterError, match="1 query lies outside the bounds"):
        release.kde([[0.0, 0.0], [0.0, 1.5]])


def test_median_of_means() -> None:
    pair = _pair(dpkde.Laplacian(1.0), 2, Hashing(90, 8))
    table = np.random.default_rng(10).normal(size=pair.bounds.cells)
    queries = np.random.default_rng(11).uniform(-2, 2, size=(7, 2))
    shaped, means = table.reshape(90, 8), []
    for j in range(3):
        part = np.zeros((90, 8))
        part[30 * j : 30 * (j + 1)] = shaped[30 * j : 30 * (j + 1)]
        means.append(3 * pair.respond(queries, part.reshape(-1)))
    assert np.allclose(pair.respond(queries, table, groups=3), np.median(means, axis=0))
    with pytest.raises(dpkde.ParameterError, match="groups"):
        pair.respond(queries, table, groups=91)


def _outlook(rows: float, *options: Any, density: float = 0.05) -> Outlook:
    return Outlook(rows, density, Adjacency.ADD_REMOVE, options)


def test_one_bucket_with_max_norm_noise_is_compared_with_many() -> None:
    """Where cells are small for the data, collisions matter little and max-norm noise wins."""
    pure = Amount(epsilon=Fraction(1, 2))
    both = ((pure, MaxNorm), (pure, DiscreteLaplace))
    wide = Frame.of(dpkde.Laplacian(1.0), as_domain([(-1, 1)] * 50))
    many = best_of(Hashing(), wide, _outlook(20_000, *both))
    assert many.family.to_json()["buckets"] == 1
    assert many.predict(_outlook(20_000, *both)).law == "max-norm"
    low = Frame.of(dpkde.Laplacian(1.0), as_domain([(-5, 5)] * 2))
    few = best_of(Hashing(), low, _outlook(20_000, *both))
    assert few.family.to_json()["buckets"] > 64


def test_gaussian_noise_does_not_grow_with_repetitions() -> None:
    frame = Frame.of(dpkde.Laplacian(1.0), as_domain([(0, 1)] * 2))
    view = _outlook(1000, (Amount(rho=Fraction(1, 50)), DiscreteGaussian))
    few, many = (
        Hashing(16, 8).layout(frame).predict(view),
        Hashing(4096, 8).layout(frame).predict(view),
    )
    assert many.noise == pytest.approx(few.noise, rel=1e-3)
    assert many.approximation == pytest.approx(few.approximation / 16, rel=1e-9)


@pytest.mark.parametrize("p", [1.05, 1.25, 1.5, 2.0])
def test_as_many_planes_as_the_box_is_wide(p: float) -> None:
    """Poisson with mean Σw = 15: over 4,000 repetitions the mean is known to 0.06; 6 of them."""
    pair = _pair(dpkde.ExponentialLp(p, 1, 0.8), 3, Hashing(4000, 4))
    assert pair.cuts[0].counts.mean() == pytest.approx(15.0, abs=6 * (15 / 4000) ** 0.5)


def test_balls_cover_the_box() -> None:
    pair = _pair(dpkde.Erfc(1.0), 2, Hashing(20, 16), half=1.0)
    (cut,) = pair.cuts
    assert isinstance(cut, Balls)
    balls = cut._balls
    points = np.random.default_rng(12).uniform(-1, 1, size=(200, 2)).astype(np.float32)
    centers, squares = balls[:, :2].transpose(0, 2, 1), balls[:, 2]
    gaps = ((points[:, np.newaxis, np.newaxis] - centers) ** 2).sum(axis=3)
    assert (gaps <= squares).any(axis=2).all()
    # The first of them is the cell.
    first = (gaps <= squares).argmax(axis=2).astype(np.uint32)
    words = _mix(_mix(first) ^ cut.seeds.view(np.uint32)).astype(np.int64)
    expected = (pair.base.astype(np.int64) + words) & 0xFFFFFFFF
    agree = _keys(pair, points.astype(np.float64)) == expected
    assert agree.mean() > 0.999  # sums are rounded in another order here
    # Radii ½√Exp(1): mean square ¼, known to 0.25/√n.
    assert squares.mean() == pytest.approx(0.25, abs=6 * 0.25 / squares.size**0.5)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"repetitions": 0}, "repetitions"),
        ({"repetitions": 1.5}, "repetitions"),
        ({"repetitions": True}, "repetitions"),
        ({"buckets": 3}, "power of two"),
        ({"buckets": 1 << 16}, "power of two"),
        ({"buckets": 1, "signed": False}, "from 2"),
        ({"signed": 1}, "signed"),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=told):
        Hashing(**arguments)


@pytest.mark.parametrize(
    ("kernel", "bounds", "told"),
    [
        (dpkde.Gaussian(1.0), [(0, 1)], "no hash"),
        (dpkde.Matern(1.5), [(0, 1)], "no hash"),
        (dpkde.ExponentialLp(1.5, 1.2), [(0, 1)], "power 1"),
        (dpkde.ExponentialLp(1.5, 1), None, "give bounds"),
        (dpkde.Erfc(1.0), None, "give bounds"),
        (dpkde.Erfc(1.0), [(0, 1)] * 20, "family='fourier'"),
        (dpkde.Laplacian(1e-6), [(0, 1)], "larger bandwidth"),
        (dpkde.ExponentialLp(1 + 1e-9, 1), [(0, 1)], "use p = 1"),
        (dpkde.Product([dpkde.Hat(1.0), dpkde.Gaussian(1.0)]), [(0, 1)], "no hash"),
        (dpkde.Mixture([dpkde.Hat(np.eye(2)), dpkde.Hat(1.0)]), [(0, 1)] * 2, "matrix"),
    ],
)
def test_what_cannot_be_hashed_says_so(kernel: Kernel, bounds: Any, told: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=told):
        dpkde.plan(
            kernel=kernel,
            bounds=bounds,
            epsilon=1,
            family="hashing",
            expected_rows=100,
            dim=None if bounds is not None else 2,
        )


def test_too_many_planes_or_cells_say_so() -> None:
    wide = [(-2000, 2000)] * 4
    with pytest.raises(dpkde.ParameterError, match="fewer repetitions"):
        dpkde.plan(
            kernel=dpkde.ExponentialLp(1.5, 1), bounds=wide, epsilon=1, family=Hashing(4096, 4)
        )
    with pytest.raises(dpkde.ParameterError, match="use fewer"):
        dpkde.plan(
            kernel=dpkde.Hat(1.0), bounds=[(0, 1)], epsilon=1, family=Hashing(1 << 20, 1 << 10)
        )


def test_nested_combinations() -> None:
    inner = dpkde.Mixture([dpkde.Laplacian(2.0), dpkde.Hat(3.0)])
    kernel = dpkde.Product([inner, dpkde.Laplacian(4.0)])
    assert kernel.partition.obstacle(None) is None
    points = np.random.default_rng(13).uniform(-1, 1, size=(300, 2))
    exact = dpkde.nonprivate.kde(points, points[:5], kernel)
    found = dpkde.nonprivate.estimate(points, points[:5], kernel, Hashing(4096, 64), bounds=None)
    # Hoeffding over 4096: P(error > 0.12) < 10·e^(−29).
    assert np.abs(found - exact).max() < 0.12


def test_kernels_of_ones_own_inside_combinations_load(tmp_path: Path) -> None:
    class Mine(dpkde.Laplacian):
        name: ClassVar[str] = "mine"

    kernel = dpkde.Product([Mine(1.0), dpkde.Mixture([dpkde.Hat(2.0), Mine(3.0)])])
    release = dpkde.publish(
        np.zeros((5, 2)), kernel=kernel, bounds=[(-1, 1)] * 2, epsilon=1, family=Hashing(8, 4)
    )
    release.save(tmp_path / "r")
    assert dpkde.load(tmp_path / "r", kernels=[Mine]) == release
    with pytest.raises(dpkde.FormatError, match="kernels="):
        dpkde.load(tmp_path / "r")


def test_what_is_drawn_can_be_loaded_or_is_refused(tmp_path: Path) -> None:
    """Refused before anything is spent, not by whoever loads the file."""
    for kernel, half, family in (
        (dpkde.Erfc(1.0), 7.0, Hashing(1 << 15, 1)),
        (dpkde.Product([dpkde.Erfc(1.0), dpkde.Laplacian(1e-10)]), 1e-7, Hashing(4, 4)),
    ):
        with pytest.raises(dpkde.ParameterError, match="use fewer repetitions"):
            dpkde.plan(kernel=kernel, bounds=[(-half, half)] * 2, epsilon=1, family=family)


def test_damaged_repetitions_are_refused() -> None:
    pair = _pair(dpkde.Laplacian(1.0), 2, Hashing(4, 2))
    for reps in ([0, 2_000_000_000, -2_000_000_000, 1], [0, 1, 1, 2], [0, 1, 2, 4], [-1, 0, 1, 2]):
        tensors = pair.tensors | {"0.bins.reps": np.array(reps, dtype=np.int32)}
        with pytest.raises(dpkde.FormatError):
            Hashing(4, 2).layout(pair.frame).restore(0, tensors)
    for name, array in pair.tensors.items():
        wrong = pair.tensors | {name: array[:-1]}
        with pytest.raises(dpkde.FormatError):
            Hashing(4, 2).layout(pair.frame).restore(0, wrong)


def test_columns_that_do_not_exist_are_passed_over() -> None:
    """SciPy takes such a matrix as it is, and writes where they point to."""
    from scipy import sparse

    plan = dpkde.plan(
        kernel=dpkde.Jaccard(), bounds=dpkde.Sets(10), epsilon=1, family=Hashing(40, 8)
    )
    wrong = sparse.csr_matrix(
        (np.ones(4), np.array([3, 50_000_000, -7, 5]), np.array([0, 2, 4])), shape=(2, 10)
    )
    assert dpkde.sketch(wrong, plan) == dpkde.sketch([[3], [5]], plan)
    for pointers in ([0, 3, 2], [0, 2, 400], [-1, 2, 4]):
        broken = wrong.copy()
        broken.indptr = np.array(pointers)
        with pytest.raises(dpkde.SchemaError, match="damaged"):
            dpkde.sketch(broken, plan)
    with pytest.raises(dpkde.SchemaError, match="two dimensions"):
        dpkde.sketch(sparse.coo_array(np.ones(10)), plan)


def test_queries_are_seen_as_records_are() -> None:
    release = dpkde.publish(
        np.eye(6), kernel=dpkde.Jaccard(), epsilon=1, family=Hashing(40, 8), seed=1
    )
    rows = np.eye(6)[:3]
    assert np.array_equal(release.kde(rows), release.kde(rows * -0.3))
    directions = np.random.default_rng(0).normal(size=(50, 4))
    release = dpkde.publish(directions, kernel=dpkde.Geodesic(), epsilon=1, family=Hashing(40, 1))
    assert np.array_equal(release.kde(directions), release.kde(directions * 1e7))
    assert np.isnan(release.kde(np.zeros((1, 4)))).all()


def test_iterators_are_no_sets() -> None:
    """They would be read once, and there may be two passes."""
    plan = dpkde.plan(kernel=dpkde.Jaccard(), bounds=dpkde.Sets(4), epsilon=1, family=Hashing(8, 4))
    made = dpkde.sketch([iter([1, 2]), [1, 2]], plan)
    assert made == dpkde.sketch([None, [1, 2]], plan)


def test_no_code_but_ours_sees_the_records_of_a_partition() -> None:
    class Spy(Bins):
        def add(self, rows: Any, keys: Any) -> None:
            raise ValueError(f"a secret: {rows}")

    class Spying(RandomBins):
        def draw(self, pad: Any, reps: Any, scales: Any) -> Any:
            (cut,) = super().draw(pad, reps, scales)
            return [Spy(cut.reps, cut.rates, cut.shifts, cut.words)]

    def unit(generator: Any, count: int, dim: int) -> NDArray[np.float64]:
        return np.ones((count, dim))

    class Honest(dpkde.Laplacian):
        partition: ClassVar[Any] = RandomBins(unit)

    class Watching(dpkde.Laplacian):
        partition: ClassVar[Any] = Spying(unit)

    settings: dict[str, Any] = {"bounds": [(0, 9)], "epsilon": 1, "family": Hashing(4, 8)}
    point = np.array([[0.5]])
    assert dpkde.publish(point, kernel=Honest(1.0), **settings).table.size == 32
    with pytest.raises(dpkde.ParameterError, match="cuts of its sketchpad"):
        dpkde.publish(point, kernel=Watching(1.0), **settings)
