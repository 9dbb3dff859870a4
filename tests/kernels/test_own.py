"""A kernel of one's own is one class: families, promises and files ask it by its methods alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.families.registry import FAMILIES
from dpkde.kernels import Bandwidth, Kernel, Points, ProductKernel
from dpkde.kernels.partitions import HalfSpaces, Partition, RandomBins, Uncut
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

Floats = NDArray[np.float64]
BOUNDS = [(-2.0, 2.0)] * 2


@dataclass(frozen=True)
class Plain(Kernel):
    """As little as a kernel can say."""

    bandwidth: Bandwidth = field(default=Bandwidth((1.0,), is_scalar=True), init=False)
    name: ClassVar[str] = "plain"

    def evaluate(self, points: Points, queries: Points) -> Floats:
        return np.ones((len(points), len(queries)))

    def integral(self, dim: int) -> float:
        return math.inf


@dataclass(frozen=True, init=False)
class Tent(ProductKernel):
    """On each axis the mean of two hats, of widths 1 and 3."""

    bandwidth: Bandwidth
    name: ClassVar[str] = "tent"

    def __init__(self, bandwidth: Any) -> None:
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    def integral(self, dim: int) -> float:
        return 2.0**dim * self.bandwidth.determinant(dim)

    def lipschitz(self, dim: int) -> float:
        return 2 / 3 * math.sqrt(dim)

    def profile(self, offsets: Floats) -> Floats:
        size = np.abs(offsets)
        return np.asarray(np.maximum(0, 1 - size) / 2 + np.maximum(0, 1 - size / 3) / 2)

    def profile_reach(self, tolerance: float) -> float:
        return 3.0

    @property
    def partition(self) -> Partition:
        return RandomBins(lambda generator, count, dim: generator.choice([1.0, 3.0], (count, dim)))


POINTS = np.random.default_rng(0).uniform(-2, 2, size=(20_000, 2))


def _served(kernel: Kernel) -> set[str]:
    frame = Frame.of(kernel, as_domain(BOUNDS))
    return {name for name, family in FAMILIES.items() if family.obstacle(frame) is None}


def test_a_kernel_that_says_little_is_served_by_none() -> None:
    kernel = Plain()
    assert _served(kernel) == set()
    assert not kernel.is_positive_definite
    assert kernel.lipschitz(2) == math.inf
    for ask in (lambda: kernel.shape, lambda: kernel.spectrum(np.random.default_rng(0), 1, 1)):
        with pytest.raises(dpkde.ParameterError, match="plain kernel"):
            ask()


def test_what_a_kernel_says_decides_who_serves_it() -> None:
    class Wave(Plain):
        def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
            return np.zeros((count, dim))

    class Sides(Plain):
        home: ClassVar[str] = "sphere"
        partition: ClassVar[Partition] = HalfSpaces()

    class Doubtful(Plain):
        partition: ClassVar[Partition] = Uncut("no cells are known")

    assert not Doubtful().is_positive_definite

    class Round(Plain):
        is_gaussian: ClassVar[bool] = True

    assert _served(Wave()) == {"fourier"}
    assert _served(Round()) == {"fastgauss"}
    assert _served(Tent(1.0)) == {"spline", "hashing"}
    assert all(kernel.is_positive_definite for kernel in (Wave(), Sides(), Tent(1.0)))
    release = dpkde.publish(POINTS, kernel=Sides(), epsilon=1, family=dpkde.Hashing(64, 1))
    assert release.domain.kind == "sphere"
    # The side of a plane is the sign: the constant part of the kernel is ½.
    angles = dpkde.Geodesic().evaluate(POINTS, POINTS[:5]).mean(axis=0)
    assert np.abs(release.kde(POINTS[:5]) - angles).max() < 0.2


def test_what_a_dataclass_and_a_profile_tell_need_not_be_said() -> None:
    assert (Plain().version, Plain().to_json()) == (1, {})
    kernel = Tent([0.8, 2.0])
    assert kernel.to_json() == {"bandwidth": [0.8, 2.0]}
    points, queries = POINTS[:40], POINTS[40:47]
    x, y = points / [0.8, 2.0], queries / [0.8, 2.0]
    factors = kernel.profile(x[:, np.newaxis] - y[np.newaxis])
    assert np.allclose(kernel.evaluate(points, queries), factors.prod(axis=2), rtol=1e-12, atol=0)


@pytest.mark.parametrize("family", ["spline", "hashing", "auto"])
def test_own_kernels_are_published_and_loaded(family: Any, tmp_path: Path) -> None:
    """Noise of ε = 10 on 20,000 records is far below the 0.03 that spacings and cells may cost."""
    kernel = Tent(0.8)
    release = dpkde.publish(POINTS, kernel=kernel, bounds=BOUNDS, epsilon=10, family=family)
    assert release.family.name in ("spline", "hashing")
    path = tmp_path / "own.dpkde"
    release.save(path)
    with pytest.raises(dpkde.FormatError, match=r"kernels=\[\.\.\.\]"):
        dpkde.load(path)
    again = dpkde.load(path, kernels=[Tent])
    assert again.kernel == kernel
    exact = dpkde.nonprivate.kde(POINTS, POINTS[:30], kernel)
    assert np.abs(again.kde(POINTS[:30]) - exact).mean() < 0.03


def test_own_kernels_combine_and_promise() -> None:
    both = dpkde.Product([Tent(1.0), dpkde.Laplacian(2.0)])
    assert _served(both) == {"spline", "hashing"}
    assert both.lipschitz(1) == pytest.approx(2 / 3 + 1)
    plan = dpkde.plan(
        kernel=Tent(1.0),
        bounds=BOUNDS,
        epsilon=10,
        expected_rows=1_000_000,
        alpha=0.2,
        eta=0.01,
        simultaneous=True,
    )
    assert plan.promise is not None
    # Moving a query by half the diagonal of a cell costs an eighth of α.
    assert plan.promise.pitch == pytest.approx(2 * 0.2 / 8 / (2 / 3 * math.sqrt(2)) / math.sqrt(2))


def test_a_kernel_that_derives_from_nothing_is_refused() -> None:
    class Loose:
        name = "loose"

    others: tuple[Any, ...] = (Loose(), dpkde.Gaussian, 0.1)
    for kernel in others:
        with pytest.raises(dpkde.ParameterError, match=r"kernel must be a dpkde\.Kernel"):
            dpkde.plan(kernel=kernel, bounds=BOUNDS, epsilon=1)
