"""The suite every family passes. A family's test file subclasses `FamilyContract`.

What it asks: contributions are integers of one record alone, within the declared bounds for
adversarial records too; the fast path equals the slow one; sums add up exactly; files bring the
same pair back; answers approach the kernel; the length declared for g is its length; there is a
proof. For a family of one's own::

    class TestMine(FamilyContract):
        kernel = dpkde.Gaussian(1.0)
        axes = (1, 2)
        accuracy = 0.01

        def families(self, dim):
            return [Mine()]

Run it with pytest.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.families.base import Family, Pair
from dpkde.kernels import Kernel
from dpkde.space.domain import Domain, as_domain
from dpkde.space.frame import Frame


def adversarial_rows(dim: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return ordinary, extreme, tiny, non-finite and repeated records."""
    ordinary = generator.normal(size=(40, dim))
    special = [0.0, -0.0, 1e-320, 1e-300, 1e300, -1e308, 0.5, 1.0, -1.0, 2.0**30, np.pi]
    extreme = np.array([[value] * dim for value in special])
    strange = np.array([[np.nan] * dim, [np.inf] * dim, [-np.inf] * dim])
    mixed = ordinary[:3].copy()
    mixed[0, 0], mixed[1, -1], mixed[2, dim // 2] = np.nan, np.inf, -np.inf
    return np.concatenate([ordinary, extreme, strange, mixed, ordinary[:5]])


class FamilyContract:
    """What every family keeps to. Subclass it with families, a kernel and an accuracy."""

    kernel: ClassVar[Kernel] = dpkde.Gaussian(1.5)
    axes: ClassVar[tuple[int, ...]] = (1, 2, 3, 7, 50)
    """Numbers of axes to try."""
    kernel_axes: ClassVar[tuple[int, ...] | None] = None
    """The same for comparing with the kernel; by default `axes`."""
    accuracy: ClassVar[float]
    """How far answers may be from the kernel, for `accurate`."""

    def families(self, dim: int) -> list[Family]:
        """Return families with their parameters set."""
        raise AssertionError("a contract needs families")

    def accurate(self, dim: int) -> Family:
        """Return a family that is within `accuracy` of the kernel."""
        return self.families(dim)[0]

    def halves(self, dim: int) -> NDArray[np.float64]:
        """Return half the widths of the domain, one per axis."""
        return np.full(dim, 3.0)

    def domain(self, dim: int) -> Domain:
        """Return the domain: by default a box."""
        return as_domain([(-half, half) for half in self.halves(dim)])

    def frame(self, dim: int) -> Frame:
        """Return the frame of so many axes."""
        return Frame.of(self.kernel, self.domain(dim), dim)

    def points(self, generator: np.random.Generator, dim: int) -> NDArray[np.float64]:
        """Return some points of the domain that are not far from each other."""
        spread = np.minimum(0.8 / np.sqrt(dim), self.halves(dim))
        points = generator.uniform(-1.7, 1.7, size=(6, dim)) * spread
        return np.asarray(np.clip(points, -self.halves(dim), self.halves(dim)))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run tests that ask for `dim` with each number of axes."""
        if "dim" in metafunc.fixturenames:
            metafunc.parametrize("dim", self.axes)

    def pairs(self, dim: int) -> list[Pair]:
        """Return pairs of all families, on the coarsest and the finest lattice."""
        return [
            family.layout(self.frame(dim)).draw(bits, seed=5)
            for family in self.families(dim)
            for bits in {family.lattice_bits[0], family.lattice_bits[1]}
        ]

    def test_fast_path_equals_slow_twin(self, dim: int) -> None:
        rows = adversarial_rows(dim, np.random.default_rng(1))
        for pair in self.pairs(dim):
            coordinates, counts = pair.frame.place(rows)
            table = np.zeros(pair.bounds.cells, dtype=np.int64)
            pair.accumulate(coordinates, counts, table)
            assert np.array_equal(table, pair.quantize(coordinates, counts).sum(axis=0))

    def test_each_record_contributes_alone(self, dim: int) -> None:
        rows = adversarial_rows(dim, np.random.default_rng(2))
        for pair in self.pairs(dim):
            together = pair.quantize(*pair.frame.place(rows))
            for i in range(0, len(rows), 3):
                alone = np.zeros(pair.bounds.cells, dtype=np.int64)
                pair.accumulate(*pair.frame.place(rows[i : i + 1]), alone)
                assert np.array_equal(alone, together[i])

    def test_bounds_hold_for_adversarial_records(self, dim: int) -> None:
        rows = adversarial_rows(dim, np.random.default_rng(3))
        for pair in self.pairs(dim):
            contributions = pair.quantize(*pair.frame.place(rows)).astype(object)
            bounds = pair.bounds
            assert contributions.shape[1] == bounds.cells
            for q in contributions:
                assert sum(abs(v) for v in q) <= bounds.l1
                assert sum(v * v for v in q) <= bounds.l2_squared
                assert max(abs(v) for v in q) <= bounds.linf
                assert not bounds.nonnegative or min(q) >= 0

    def test_non_finite_records_contribute_nothing(self, dim: int) -> None:
        rows = adversarial_rows(dim, np.random.default_rng(4))
        bad = ~np.isfinite(rows).all(axis=1)
        for pair in self.pairs(dim):
            contributions = pair.quantize(*pair.frame.place(rows))
            assert bad.any()
            assert not contributions[bad].any()

    def test_a_pair_comes_back_from_its_tensors(self, dim: int) -> None:
        for family in self.families(dim):
            layout = family.layout(self.frame(dim))
            pair = layout.draw(family.lattice_bits[1], seed=9)
            written = type(family).from_json(layout.family.to_json(), dim)
            back = written.layout(pair.frame).restore(pair.bits, pair.tensors)
            rows = np.random.default_rng(6).normal(size=(20, dim))
            placed = pair.frame.place(rows)
            assert np.array_equal(pair.quantize(*placed), back.quantize(*placed))

    def test_a_release_comes_back_from_its_file(self, tmp_path: Path) -> None:
        dim = self.axes[-1]
        points = self.points(np.random.default_rng(8), dim)
        for number, family in enumerate(self.families(dim)):
            release = dpkde.publish(
                points, kernel=self.kernel, bounds=self.domain(dim), epsilon=1, family=family
            )
            release.save(tmp_path / f"{number}.dpkde")
            back = dpkde.load(
                tmp_path / f"{number}.dpkde", families=[type(family)], kernels=[type(self.kernel)]
            )
            assert back == release
            assert np.array_equal(back.kde(points), release.kde(points))

    def test_sketches_of_parts_add_up(self) -> None:
        dim = self.axes[-1]
        rows = adversarial_rows(dim, np.random.default_rng(9))
        for family in self.families(dim):
            pair = family.layout(self.frame(dim)).draw(family.lattice_bits[0], seed=4)
            plan = dpkde.Plan(pair, 40, 4)
            parts = [dpkde.sketch(rows[i::3], plan) for i in range(3)]
            assert parts[0] + parts[1] + parts[2] == dpkde.sketch(rows, plan)

    def test_the_length_and_the_weights_of_g_are_its_own(self, dim: int) -> None:
        queries = self.points(np.random.default_rng(7), dim)[:3]
        for pair in self.pairs(dim):
            cells = pair.bounds.cells
            unit = np.zeros(cells)
            entries = np.empty((len(queries), cells))
            for j in range(cells):
                unit[j] = 1.0
                entries[:, j] = pair.respond(queries, unit)
                unit[j] = 0.0
            lengths = np.sqrt((entries**2).sum(axis=1))
            assert np.allclose(lengths, pair.response_norm(queries), rtol=1e-6, atol=0)
            values, counts = pair.weights(queries).dense()
            stated = np.repeat(np.abs(values), counts.astype(int), axis=1)
            stated = np.sort(np.broadcast_to(stated, (len(queries), stated.shape[1])))[:, -cells:]
            own = np.sort(np.abs(entries))[:, -stated.shape[1] :]
            assert np.allclose(stated, own, rtol=1e-5, atol=1e-7 * lengths.max())
            assert np.allclose((stated**2).sum(axis=1), lengths**2, rtol=1e-6, atol=0)

    def test_the_worst_case_is_not_exceeded(self, dim: int) -> None:
        """Deterministic families keep to their bias; all to the sizes of g."""
        generator = np.random.default_rng(11)
        halves = np.minimum(self.halves(dim), 1e3)
        x = np.concatenate(
            [self.points(generator, dim), halves * generator.uniform(-1, 1, dim)[None]]
        )
        for family in self.families(dim):
            for bits in {family.lattice_bits[0], family.lattice_bits[1]}:
                pair = family.layout(self.frame(dim)).draw(bits, seed=3)
                worst = pair.layout.worst(bits)
                if worst is None:
                    continue
                assert (pair.response_norm(x) <= worst.gain * (1 + 1e-9)).all()
                assert np.abs(pair.weights(x).dense().values).max() <= worst.peak * (1 + 1e-9)
                if not pair.draws:
                    contributions = pair.quantize(*pair.frame.place(x)).astype(np.float64)
                    answers = np.array([pair.respond(x, row) for row in contributions])
                    assert np.abs(answers - self.kernel.evaluate(x, x)).max() <= worst.bias

    def test_answers_approach_the_kernel(self) -> None:
        for dim in self.kernel_axes or self.axes:
            generator = np.random.default_rng(dim)
            x, y = self.points(generator, dim), self.points(generator, dim)
            family = self.accurate(dim)
            pair = family.layout(self.frame(dim)).draw(family.lattice_bits[1], seed=dim)
            exact = self.kernel.evaluate(x, y)
            contributions = pair.quantize(*pair.frame.place(x)).astype(np.float64)
            answers = np.array([pair.respond(y, row) for row in contributions]) + pair.constant
            assert np.abs(answers - exact).max() <= self.accuracy

    def test_there_is_a_proof(self) -> None:
        for family in self.families(self.axes[0]):
            for word in ("Precondition", "Postcondition", "bounds"):
                assert word in family.proof, (
                    f"the proof of {family.name} does not state its {word.lower()}: it is the text "
                    "beside the module, or the docstring of a custom family"
                )
