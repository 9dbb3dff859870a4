"""Fourier features: the contract, every phase there is, and what is particular to them."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dpkde
from contracts.choosing import best_of
from dpkde.families.base import Family, Outlook
from dpkde.families.fourier.family import Fourier, step_bits_for, turn_twin
from dpkde.families.fourier.phases import turns
from dpkde.numerics.compiled import exactly
from dpkde.privacy.amounts import Adjacency, Amount
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.testing import FamilyContract


class TestFourier(FamilyContract):
    kernel_axes: ClassVar[tuple[int, ...] | None] = (1, 2, 8, 50)

    def families(self, dim: int) -> list[Family]:
        return [Fourier(1), Fourier(7), Fourier(300), Fourier(33, form="phase")]

    def accurate(self, dim: int) -> Family:
        return Fourier(1 << 15)

    # Hoeffding over 2^15 frequencies, 144 comparisons: P(error > 0.04) < 300·e^(−26) < 1e-9.
    accuracy: ClassVar[float] = 0.04


@exactly
def _extremes(start: int, stop: int, shift: int) -> tuple[int, ...]:
    """Largest |value|, |c|+|s|, c²+s², least c²+s², and sums, over phases start … stop−1."""
    block = 4096
    phases, c, s = np.empty(block, np.int32), np.empty(block, np.int32), np.empty(block, np.int32)
    largest = widest = longest = sum_c = sum_s = np.int64(0)
    shortest = np.int64(1 << 62)
    for first in range(start, stop, block):
        for j in range(block):
            phases[j] = np.int32(first + j)
        turns(phases, shift, c, s)
        for j in range(block):
            largest = max(largest, max(abs(np.int64(c[j])), abs(np.int64(s[j]))))
            widest = max(widest, abs(np.int64(c[j])) + abs(np.int64(s[j])))
            sum_c += c[j]
            sum_s += s[j]
        for j in range(block):
            square = np.int64(c[j]) * np.int64(c[j]) + np.int64(s[j]) * np.int64(s[j])
            longest = max(longest, square)
            shortest = min(shortest, square)
    return largest, widest, longest, shortest, sum_c, sum_s  # type: ignore[return-value]


@pytest.mark.audit
@pytest.mark.parametrize("bits", [15, 22])
def test_bounds_hold_for_every_phase(bits: int) -> None:
    """All 2³² phases, through the compiled function that `accumulate` calls."""
    bounds = Fourier(1).layout(Frame.of(dpkde.Gaussian(1.0), as_domain([(0, 1)]))).bounds(bits)
    starts = range(-(1 << 31), 1 << 31, 1 << 26)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda p: _extremes(p, p + (1 << 26), bits - 15), starts))
    full = 1 << bits
    assert max(f[0] for f in found) == full <= bounds.linf
    assert max(f[1] for f in found) <= bounds.l1
    assert max(f[2] for f in found) <= bounds.l2_squared
    # The check never fires, and no pair is off by as much as two units.
    assert min(f[3] for f in found) >= (full - 2) ** 2
    assert max(f[2] for f in found) <= (full + 1) ** 2
    # Rounding does not drift: over a whole turn cosine and sine average to zero.
    assert abs(sum(f[4] for f in found)) / 2**32 < 0.01
    assert abs(sum(f[5] for f in found)) / 2**32 < 0.01


def test_pairs_are_cosine_and_sine() -> None:
    generator = np.random.default_rng(3)
    phases = np.concatenate(
        [generator.integers(0, 1 << 32, 100_000), np.arange(0, 1 << 32, 1 << 24), [(1 << 32) - 1]]
    )
    c, s = turn_twin(phases, 22)
    angle = phases * (2 * np.pi / 2**32)
    assert np.abs(c / 2**22 - np.cos(angle)).max() < 2.0**-22
    assert np.abs(s / 2**22 - np.sin(angle)).max() < 2.0**-22


def test_whole_numbers_of_numpy_are_taken() -> None:
    assert Fourier(np.int64(5), step_bits=np.int64(14)) == Fourier(5, step_bits=14)  # type: ignore[arg-type]
    with pytest.raises(dpkde.ParameterError, match="step_bits"):
        Fourier(5, step_bits=14.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["pairs", "phase"])
def test_frequencies_are_prefix_stable(form: str) -> None:
    frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(0, 1)] * 3))
    long = Fourier(500, form=form).layout(frame).draw(22, seed=11)  # type: ignore[arg-type]
    for count in (1, 63, 64, 65, 499):
        short = Fourier(count, form=form).layout(frame).draw(22, seed=11)  # type: ignore[arg-type]
        for name, tensor in short.tensors.items():
            assert np.array_equal(tensor, long.tensors[name][:count])
    other = Fourier(500, form=form).layout(frame).draw(22, seed=12)  # type: ignore[arg-type]
    assert not np.array_equal(other.tensors["frequencies"], long.tensors["frequencies"])


@pytest.mark.parametrize(
    "family",
    [
        "Fourier(33)",
        pytest.param("Spline(4, 0.7)", marks=pytest.mark.audit),
        pytest.param("FastGauss(5)", marks=pytest.mark.audit),
    ],
)
def test_contributions_do_not_depend_on_what_was_compiled_first(
    family: str, tmp_path: Path
) -> None:
    """A client's loops allow fused arithmetic; what they share with a curator's must not.

    In a process of its own, with nothing compiled yet, queries are answered first.
    """
    program = f"""
import numpy as np
import dpkde
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(-3.0, 3.0)] * 2))
pair = dpkde.{family}.layout(frame).draw(22, seed=5)
rows = np.random.default_rng(1).normal(size=(2000, 2))
pair.respond(rows[:5], np.ones(pair.bounds.cells))
pair.response_norm(rows[:5])
placed = frame.place(rows)
table = np.zeros(pair.bounds.cells, dtype=np.int64)
pair.accumulate(*placed, table)
assert np.array_equal(table, pair.quantize(*placed).sum(axis=0))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=300)


def _outlook(rows: float, *options: tuple[Amount, type[Law]]) -> Outlook:
    return Outlook(rows, 0.05, Adjacency.ADD_REMOVE, options)


def _frequencies(frame: Frame, outlook: Outlook) -> int:
    return int(best_of(Fourier(), frame, outlook).family.to_json()["frequencies"])


def test_number_of_frequencies_follows_the_formula() -> None:
    """Pure ε: D near εn√(3q/8) for max-norm noise; (ε, δ): as many as are allowed.

    Where a model may be fitted, about half of it.
    """
    frame, plain = (
        Frame.of(kernel, as_domain([(0, 1)] * 2)) for kernel in (dpkde.Gaussian(1), dpkde.Erfc(1))
    )
    pure = Amount(epsilon=Fraction(1, 2))
    for rows in (2_000, 20_000):
        best = 0.5 * rows * (3 * 0.05 / 8) ** 0.5
        view = _outlook(rows, (pure, MaxNorm), (pure, DiscreteLaplace))
        assert 0.38 * best <= _frequencies(frame, view) <= 0.6 * best
        assert 0.7 * best <= _frequencies(plain, view) <= 1.3 * best
    gaussian = (Amount(rho=Fraction(1, 50)), DiscreteGaussian)
    assert _frequencies(plain, _outlook(100_000, gaussian)) == 1 << 14
    assert _frequencies(frame, _outlook(100_000, gaussian)) > 1 << 13


def test_frequencies_of_many_columns_stay_small() -> None:
    """Where n allows thousands of frequencies, a hundred thousand columns allow few hundred."""
    frame = Frame.of(dpkde.Gaussian(100.0), as_domain(None), dim=100_000)
    view = _outlook(1e6, (Amount(epsilon=Fraction(1)), MaxNorm))
    assert 300 <= _frequencies(frame, view) <= (1 << 26) / 100_000
    with pytest.raises(dpkde.ParameterError, match="use at most 2684"):
        Fourier(2685).layout(frame).draw(22, seed=1)


def test_memory_of_drawing_is_that_of_the_frequencies() -> None:
    frame = Frame.of(dpkde.Gaussian(1.0), as_domain(None), dim=500)
    tracemalloc.start()
    pair = Fourier(8192).layout(frame).draw(22, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.25 * pair.frequencies.nbytes


def test_gaussian_noise_does_not_grow_with_frequencies() -> None:
    frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(0, 1)] * 2))
    view = _outlook(1000, (Amount(rho=Fraction(1, 50)), DiscreteGaussian))
    few, many = Fourier(16).layout(frame).predict(view), Fourier(4096).layout(frame).predict(view)
    assert many.noise == pytest.approx(few.noise, rel=1e-3)
    assert many.approximation == pytest.approx(few.approximation / 16, rel=1e-9)


def test_median_of_means() -> None:
    frame = Frame.of(dpkde.Gaussian(1.0), as_domain([(-1, 1)] * 2))
    pair = Fourier(90).layout(frame).draw(22, seed=0)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    table = pair.quantize(*frame.place(rows)).sum(axis=0).astype(np.float64)
    queries = rows[:7]
    means = []
    for j in range(3):
        part = slice(30 * j, 30 * (j + 1))
        alone = (
            Fourier(30, step_bits=14)
            .layout(frame)
            .restore(22, {"frequencies": pair.frequencies[part]})
        )
        means.append(alone.respond(queries, table.reshape(2, 90)[:, part].reshape(-1)))
    assert np.allclose(pair.respond(queries, table, groups=3), np.median(means, axis=0))
    with pytest.raises(dpkde.ParameterError, match="groups"):
        pair.respond(queries, table, groups=91)


def test_steps_fit_the_domain() -> None:
    assert step_bits_for(None) == 14
    assert step_bits_for(65536.0) == 14
    assert step_bits_for(65537.0) == 13
    with pytest.raises(dpkde.ParameterError, match="larger bandwidth"):
        step_bits_for(2.0**25)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many", 1 << 30])
def test_wrong_number_of_frequencies(value: object) -> None:
    with pytest.raises(dpkde.ParameterError, match="frequencies"):
        Fourier(value)  # type: ignore[arg-type]


def test_wrong_form() -> None:
    with pytest.raises(dpkde.ParameterError, match="form"):
        Fourier(form="triples")  # type: ignore[arg-type]
