"""A noise law, a family, a kernel and a format of files: one class or function and one entry each.

Each toy is registered by a single ``monkeypatch.setitem`` and then goes the ordinary road, from
points to a file and back: were anything else needed, something on that road would not know it. How
a verb is added is in ``tests/cli/test_options.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from commands import dpkde_
from dpkde.errors import FormatError, ParameterError, SchemaError
from dpkde.families.base import (
    Family,
    Layout,
    Outlook,
    Pair,
    Prediction,
    Table,
    Tensors,
    no_repetitions,
)
from dpkde.families.registry import FAMILIES
from dpkde.kernels import KERNELS, Bandwidth, Kernel, Points
from dpkde.privacy.amounts import Amount, Bounds
from dpkde.privacy.laws import NOISES, DiscreteLaplace
from dpkde.privacy.laws.weights import Weights
from dpkde.space.domain import Box, Mask
from dpkde.space.frame import Frame
from dpkde.tables.door import FILES
from dpkde.tables.source import Piece, Source
from dpkde.testing import FamilyContract

Floats = NDArray[np.float64]
POINTS = np.random.default_rng(0).normal(size=(20_000, 1))
BOUNDS = [(-4.0, 4.0)]
QUERIES = np.linspace(-4.5, 4.5, 40)[:, np.newaxis]


@dataclass(frozen=True)
class ConcentratedLaplace(DiscreteLaplace):
    """Discrete Laplace noise of scale Δ₁/ρ, paid for in ρ.

    It is pure ε = ρ, whose Rényi divergences are D_α ≤ ε ≤ ρα for every α > 1: that is ρ-zCDP.
    """

    name: ClassVar[str] = "concentrated-laplace"
    paid_in: ClassVar[Literal["rho"]] = "rho"  # type: ignore[assignment]


def _publish_with_rho(rho: str) -> dpkde.Release:
    family = dpkde.Spline(degree=1, spacing=0.5)
    return dpkde.publish(
        POINTS, kernel=dpkde.Gaussian(1.0), bounds=BOUNDS, rho=rho, family=family, seed=0
    )


def test_a_noise_law_is_a_class_and_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a record moves one cell, its variance 2/ρ² is less than the Gaussian's 1/2ρ from 4 on.

    The error allowed is 50 standard deviations of the noise.
    """
    monkeypatch.setitem(NOISES, ConcentratedLaplace.name, ConcentratedLaplace)
    laws = {rho: _publish_with_rho(rho).privacy.spends[-1].law.name for rho in ("1", "40")}
    assert laws == {"1": "discrete-gaussian", "40": "concentrated-laplace"}
    release = _publish_with_rho("40")
    spend = release.privacy.spends[-1]
    assert spend.amount.rho is not None
    assert 0 <= spend.law.scale - spend.sensitivity / spend.amount.rho < 1  # rounded up
    assert "concentrated-laplace noise" in str(release.privacy)
    path = tmp_path / "law.dpkde"
    release.save(path)
    again = dpkde.load(path)
    assert again == release
    assert again.privacy == release.privacy
    exact = dpkde.nonprivate.estimate(
        POINTS, QUERIES, release.kernel, release.family, bounds=BOUNDS, seed=0
    )
    error = np.abs(again.kde(QUERIES, clip=False) - exact)
    assert (error < 50 * again.standard_error(QUERIES) + 1e-9).all()
    low, high = again.interval(QUERIES, 0.95)
    assert (low < high).all()
    assert again.error_bound(0.05) > 0
    assert "concentrated-laplace" in dpkde_("inspect", str(path), capsys=capsys)[1]
    monkeypatch.undo()
    with pytest.raises(dpkde.FormatError):
        dpkde.load(path)


@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(2), Fraction(40)])
def test_the_toy_laws_price_is_right(rho: Fraction) -> None:
    """D_α between tables that are Δ₁ = 3 apart is at most ρα, summed in logarithms."""
    law = ConcentratedLaplace.bought(Amount(rho=rho), Bounds(1, 3, 9, 3, nonnegative=False))
    z = np.arange(-2000, 2001)

    def log_law(at: NDArray[np.int64]) -> Floats:
        inverse = 1 / float(law.scale)
        return np.asarray(-np.abs(at) * inverse + math.log(math.tanh(inverse / 2)))

    assert np.exp(log_law(z)).sum() == pytest.approx(1)
    for alpha in (1.0001, 1.5, 2.0, 10.0, 100.0):
        terms = alpha * log_law(z) + (1 - alpha) * log_law(z - 3)
        divergence = np.logaddexp.reduce(terms) / (alpha - 1)
        assert divergence <= float(rho) * alpha
    with pytest.raises(dpkde.ParameterError, match="paid for in rho"):
        ConcentratedLaplace.price(Amount(epsilon=rho))


@dataclass(frozen=True)
class Lattice(Family):
    """A record counts at the nearest of so many places on one axis; a query asks the kernel there.

    Precondition: one axis with bounds. Postcondition: the answer is the sum of k(place, y), which
    is k(x, y) but for the way to the nearest place. A record is a single one: all its bounds are 1.
    """

    places: int | None = None
    name: ClassVar[str] = "lattice"
    version: ClassVar[int] = 1
    lattice_bits: ClassVar[tuple[int, int]] = (0, 0)
    is_biased: ClassVar[bool] = True
    is_random: ClassVar[bool] = False

    @classmethod
    def obstacle(cls, frame: Frame) -> str | None:
        if frame.dim != 1 or not isinstance(frame.domain, Box):
            return "it serves one axis with bounds"
        return None

    def layout(self, frame: Frame) -> LatticeLayout:
        self.check(frame)
        if self.places is None:
            raise ParameterError("a lattice needs places=, such as Lattice(places=100)")
        return LatticeLayout(self, frame, self.places)

    def layouts(self, frame: Frame) -> list[LatticeLayout]:
        counts = (16, 64, 256) if self.places is None else (self.places,)
        return [Lattice(places).layout(frame) for places in counts]

    def to_json(self) -> dict[str, Any]:
        return {"places": self.places}

    @property
    def proof(self) -> str:
        return str(type(self).__doc__)


@dataclass(frozen=True, eq=False)
class LatticeLayout(Layout):
    """So many places, from one end of the bounds to the other."""

    family: Lattice
    frame: Frame
    places: int
    nanoseconds: ClassVar[float] = 50.0

    @cached_property
    def half(self) -> float:
        """Half the width of the domain, in bandwidths."""
        halves = self.frame.halves()
        assert halves is not None
        return float(halves[0])

    def even(self, count: int) -> Points:
        """Return so many places from one end of the bounds to the other, shape (count, 1)."""
        assert isinstance(self.frame.domain, Box)
        low, high = self.frame.domain.corners
        return np.linspace(low, high, count)

    def bounds(self, bits: int) -> Bounds:
        return Bounds(self.places, 1 << bits, 1 << 2 * bits, 1 << bits, nonnegative=True)

    @property
    def relative_error(self) -> float:
        """A step s moves a record by s/√12 bandwidths, and evenly spread ones by s²/24 k″ each."""
        step = 2 * self.half / (self.places - 1)
        return step**2 / 24

    def predict(self, outlook: Outlook) -> Prediction:
        norms = self.draw(0, 0).response_norm(self.even(50))
        return outlook.prediction(
            self,
            gain=float(np.sqrt(np.mean(norms**2))),
            approximation=outlook.typical_density * self.relative_error,
        )

    def draw(self, bits: int, seed: int) -> LatticePair:
        return LatticePair(self, bits)

    def restore(self, bits: int, tensors: Tensors) -> LatticePair:
        if tensors:
            raise FormatError("a lattice has nothing random")
        return LatticePair(self, bits)

    @property
    def summary(self) -> str:
        return f"lattice {self.places}"


@dataclass(frozen=True, eq=False)
class LatticePair(Pair):
    """The places of a lattice."""

    layout: LatticeLayout
    bits: int
    tensors: ClassVar[dict[str, NDArray[Any]]] = {}

    def _place(self, coordinates: Points) -> NDArray[np.int64]:
        last, half = self.layout.places - 1, self.layout.half
        nearest = np.rint((coordinates[:, 0] / half + 1) / 2 * last)
        return np.clip(nearest, 0, last).astype(np.int64)

    def quantize(self, coordinates: Points, counts: Mask) -> NDArray[np.int64]:
        places = np.arange(self.bounds.cells)
        ones = self._place(coordinates)[:, np.newaxis] == places
        return np.asarray((ones & counts[:, np.newaxis]).astype(np.int64) << self.bits)

    def accumulate(self, coordinates: Points, counts: Mask, table: Table) -> None:
        np.add.at(table, self._place(coordinates)[counts], 1 << self.bits)

    def _g(self, queries: Points) -> Floats:
        places = self.layout.even(self.layout.places)
        return np.asarray(self.frame.kernel.evaluate(places, queries).T / 2**self.bits)

    def respond(self, queries: Points, table: Floats, groups: int = 1) -> Points:
        no_repetitions("lattice", groups)
        return np.asarray(self._g(queries) @ table)

    def own_variance(self, queries: Points, table: Floats, noise: Floats) -> Floats:
        return np.asarray((self.layout.relative_error * self.respond(queries, table)) ** 2)

    def weights(self, queries: Points) -> Weights:
        return Weights(self._g(queries), np.ones(self.bounds.cells))

    def response_norm(self, queries: Points) -> Floats:
        return np.asarray(np.linalg.norm(self._g(queries), axis=1))


class TestLattice(FamilyContract):
    axes = (1,)
    accuracy = 0.01

    def families(self, dim: int) -> list[Family]:
        return [Lattice(400), Lattice(5)]


def test_a_family_is_three_classes_and_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Matérn kernel has random Fourier features alone: a table of counts has far less error."""
    monkeypatch.setitem(FAMILIES, Lattice.name, Lattice)
    kernel = dpkde.Matern(1.5, 1.0)
    request: dict[str, Any] = {"kernel": kernel, "bounds": BOUNDS, "epsilon": 1}
    plan = dpkde.plan(**request, expected_rows=len(POINTS))
    assert [entry.name for entry in plan.considered if entry.prediction] == ["lattice", "fourier"]
    assert plan.considered[0].layout is not None
    assert plan.considered[0].layout.summary.startswith("lattice ")
    release = dpkde.publish(POINTS, **request)
    assert isinstance(release.family, Lattice)
    assert release == dpkde.Release.from_bytes(release.to_bytes())
    release.save(tmp_path / "family.dpkde")
    again = dpkde.load(tmp_path / "family.dpkde")
    assert again == release
    exact = dpkde.nonprivate.kde(POINTS, QUERIES, kernel)
    assert np.abs(again.kde(QUERIES) - exact).mean() < 0.02
    typed = ["--bounds=-4:4", "--bandwidth", "1", "--epsilon", "1", "--expected-rows", "9999"]
    code, text, _ = dpkde_("plan", *typed, "--family", "lattice", capsys=capsys)
    assert code == 0
    assert "lattice" in text
    monkeypatch.undo()
    with pytest.raises(dpkde.FormatError, match=r"families=\[\.\.\.\]"):
        dpkde.load(tmp_path / "family.dpkde")


@dataclass(frozen=True, init=False)
class Secant(Kernel):
    """k(x, y) = ∏ 1/cosh((x_k − y_k)/σ)."""

    bandwidth: Bandwidth
    name: ClassVar[str] = "secant"
    version: ClassVar[int] = 1

    def __init__(self, bandwidth: Any) -> None:
        object.__setattr__(self, "bandwidth", Bandwidth.of(bandwidth))

    def evaluate(self, points: Points, queries: Points) -> Floats:
        x, y = self.bandwidth.whiten(points), self.bandwidth.whiten(queries)
        return np.asarray(np.prod(1 / np.cosh(x[:, np.newaxis] - y), axis=2))

    def integral(self, dim: int) -> float:
        return float(np.pi**dim * self.bandwidth.determinant(dim))

    def spectrum(self, generator: np.random.Generator, count: int, dim: int) -> Floats:
        return np.asarray(2 / np.pi * np.log(np.tan(np.pi / 2 * generator.random((count, dim)))))

    def to_json(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth.to_json()}


def test_a_kernel_is_a_class_and_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KERNELS, Secant.name, Secant)
    release = dpkde.publish(POINTS, kernel=Secant(1.0), bounds=BOUNDS, epsilon=10)
    release.save(tmp_path / "kernel.dpkde")
    again = dpkde.load(tmp_path / "kernel.dpkde")
    assert again == release
    exact = dpkde.nonprivate.kde(POINTS, QUERIES, Secant(1.0))
    assert np.abs(again.kde(QUERIES) - exact).mean() < 0.05
    typed = ["--bounds=-4:4", "--bandwidth", "1", "--epsilon", "1", "--expected-rows", "9999"]
    assert dpkde_("plan", *typed, "--kernel", "secant", capsys=capsys)[0] == 0
    monkeypatch.undo()
    with pytest.raises(dpkde.FormatError, match=r"kernels=\[\.\.\.\]"):
        dpkde.load(tmp_path / "kernel.dpkde")


def open_json_lines(path: Path, columns: Sequence[str] | None) -> Source:
    """Return a file with one JSON object on each line; a line that is none is a row of NaN."""
    if columns is None:
        raise SchemaError(f"{path.name} has no header: name its columns")
    names = tuple(columns)

    def cells(line: bytes) -> list[float]:
        try:
            record = json.loads(line)
            return [float(record[name]) for name in names]
        except Exception:  # a value never raises
            return [math.nan] * len(names)

    def rows(lines: list[bytes]) -> Floats:
        return np.array([cells(line) for line in lines])

    def read() -> Iterator[Piece]:
        with path.open("rb") as file:
            while lines := list(islice(file, 1024)):
                yield Piece(partial(rows, lines), len(lines))

    return Source(read, len(names), names)


def test_a_format_of_files_is_a_function_and_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python, for queries and on the command line; bad lines contribute nothing."""
    table = tmp_path / "heights.JSONL"
    good = [json.dumps({"name": "?", "height": height}) for height in POINTS[:3000, 0].tolist()]
    bad = ["", "height", "[" * 100_000, '{"height": "tall"}', '{"weight": 1}', "7", '{"height": 1']
    table.write_text("\n".join([*bad, *good]), encoding="utf-8")
    request: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": BOUNDS, "epsilon": 1}
    with pytest.raises(dpkde.SchemaError, match="is not a table that can be read") as refusal:
        dpkde.publish(table, columns=["height"], **request)
    assert ".jsonl" not in str(refusal.value).replace(table.name, "")
    monkeypatch.setitem(FILES, ".jsonl", open_json_lines)
    plan = dpkde.plan(**request, expected_rows=3000, columns=["height"])
    rows = np.concatenate([np.full((len(bad), 1), np.nan), POINTS[: len(good)]])
    assert dpkde.sketch(table, plan) == dpkde.sketch(rows, plan)
    with pytest.raises(dpkde.SchemaError, match="name its columns"):
        dpkde.publish(table, **request)
    output = str(tmp_path / "heights.dpkde")
    typed = ["--columns", "height", "--bounds=-4:4", "--bandwidth", "1", "--epsilon", "1"]
    assert dpkde_("publish", str(table), "-o", output, *typed, "-q", capsys=capsys)[0] == 0
    answers = dpkde_("query", output, "--points", str(table), capsys=capsys)[1].splitlines()
    assert len(answers) == 1 + len(good) + len(bad)
    with pytest.raises(dpkde.SchemaError, match=r"\.jsonl"):  # a message lists it with the others
        dpkde.publish(tmp_path / "t.xlsx", **request)
    with pytest.raises(dpkde.SchemaError, match="is not a table"):
        dpkde.publish(tmp_path / "t.jsonl.gz", **request)
