"""Spectra and risks from histograms, against formulas of normal densities."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.kernels import Kernel
from dpkde.scale.bandwidths import Risk, best, scott, section, silverman
from dpkde.scale.grids import Axis, JointHistogram
from dpkde.scale.spectra import Independent, Joint, Marginal

Array = NDArray[np.float64]
ROWS = 200_000


def _marginal(values: Array, cells: int = 256, low: float = -8.0, high: float = 8.0) -> Marginal:
    axis = Axis.uniform(low, high, cells)
    counts = np.bincount(axis.cell_of(values), minlength=cells).astype(np.float64)
    return Marginal.of(counts, high - low, 0.0, len(values))


def _normal_bias(std: float, h: float) -> float:
    """∫ (f − f∗K)² for f = N(0, std²) and K = N(0, h²)."""
    square = [1 / (2 * math.sqrt(math.pi * (std**2 + k * h**2 / 2))) for k in range(3)]
    return square[0] - 2 * square[1] + square[2]


def test_the_bias_of_a_normal_density_is_told() -> None:
    """Within a tenth, or a ten-thousandth of ∫f², which the sample's own chance hides."""
    values = np.random.default_rng(0).normal(size=ROWS) * 1.5
    unit = section(dpkde.Gaussian(1.0))
    for h in (0.2, 0.5, 1.0):
        told = _marginal(values).moments(unit.transform, np.array(math.sqrt(2) * h)).bias
        assert told / 16 == pytest.approx(_normal_bias(1.5, h), rel=0.1, abs=2e-5)


def test_joint_histograms_see_clusters_that_columns_alone_do_not() -> None:
    """Two clouds on a diagonal: independent columns would have four."""
    generator = np.random.default_rng(1)
    side = generator.choice([-2.0, 2.0], size=(ROWS, 1))
    points = side + generator.normal(size=(ROWS, 2)) * 0.4
    alone = tuple(_marginal(points[:, k]) for k in range(2))
    look = JointHistogram((Axis.uniform(-8, 8, 64),) * 2)
    counts = np.bincount(look.places(points, np.ones(ROWS, dtype=bool)), minlength=64 * 64)
    noisy = counts.reshape(64, 64).astype(np.float64)
    joint = Joint.of(noisy, np.array([16.0, 16.0]), np.zeros(2), 0.0, ROWS)
    unit, bandwidths = section(dpkde.Gaussian(1.0)), np.array([0.3, 0.3])
    true = 1 / (4 * math.pi * 0.4**2) / 2
    assert joint.moments(unit.transform, bandwidths).alone / 16**2 == pytest.approx(true, rel=0.03)
    independent = Independent(alone).moments(unit.transform, bandwidths)
    assert independent.alone / 16**2 == pytest.approx(true / 2, rel=0.05)


def test_values_that_are_rounded_count_as_what_is_between() -> None:
    values = np.rint(np.random.default_rng(2).normal(size=ROWS) * 2)
    rounded = _marginal(values, 512)
    assert 0.5 < rounded.finest < 0.8
    assert rounded.cut <= math.pi * 1.1
    assert _marginal(np.random.default_rng(2).normal(size=ROWS) * 2, 512).finest == 0


def _errors(noise: float) -> Callable[[Array], tuple[float, float]]:
    return lambda _: (noise, 0.0)


def test_noise_makes_bandwidths_wider() -> None:
    spectrum = Independent((_marginal(np.random.default_rng(0).normal(size=ROWS)),))
    unit, found = section(dpkde.Gaussian(1.0)), []
    for noise in (0.0, 4e-4, 4e-3):
        risk = Risk(unit, spectrum, ROWS, np.array([8.0]), _errors(noise))
        found.append(float(best(risk, np.ones(1), np.full(1, 1e-3))[0]))
    # Without noise: (4/3n)^{1/5}, the least risk there is for a normal density, times √2.
    assert found[0] == pytest.approx(math.sqrt(2) * (4 / 3 / ROWS) ** 0.2, rel=0.1)
    assert 1.2 * found[0] < found[1] < found[2] / 1.2


def test_rules_of_thumb_are_the_usual_ones() -> None:
    stds = np.array([2.0, 0.5])
    np.testing.assert_allclose(scott(1000.0, stds), 1000 ** (-1 / 6) * stds)
    np.testing.assert_allclose(silverman(1000.0, stds), 1000 ** (-1 / 6) * stds)
    np.testing.assert_allclose(silverman(100.0, stds[:1]), (75.0) ** (-1 / 5) * stds[:1])
    assert section(dpkde.Gaussian(1.0)).from_std(stds) == pytest.approx(math.sqrt(2) * stds)


@pytest.mark.parametrize(
    "kernel",
    [dpkde.Laplacian(1.0), dpkde.Cauchy(1.0), dpkde.Hat(1.0), dpkde.Matern(1.5, 1.0)],
    ids=lambda kernel: kernel.name,
)
def test_other_kernels_get_the_roughness_of_a_gaussian(kernel: Kernel) -> None:
    """∫K² along an axis is 1/(2√π·h), by quadrature."""
    width = float(section(kernel).from_std(np.array([0.5]))[0])
    t = np.linspace(-200 * width, 200 * width, 2_000_001)
    values = kernel.with_bandwidth(width).evaluate(t[:, np.newaxis], np.zeros((1, 1)))[:, 0]
    normal = values / (values.sum() * (t[1] - t[0]))
    rough = float((normal**2).sum() * (t[1] - t[0]))
    assert rough == pytest.approx(1 / (2 * math.sqrt(math.pi) * 0.5), rel=0.02)


@pytest.mark.parametrize("noise", [np.inf, 1e200])
def test_bandwidths_that_no_table_fits_are_left_to_the_caller(noise: float) -> None:
    """Minimisers cannot take differences of infinities, nor squares of such numbers."""
    values = np.random.default_rng(0).normal(size=ROWS)
    unit, spectrum = section(dpkde.Gaussian(1.0)), Independent((_marginal(values),) * 2)
    risk = Risk(unit, spectrum, ROWS, np.full(2, 16.0), lambda _: (noise, 0.0))
    found = best(risk, np.ones(2), np.full(2, 0.01))
    assert np.isfinite(found).all()
    assert (found > 0).all()


@pytest.mark.parametrize("unit", [1e-200, 1e5, 1e150])
def test_units_of_the_data_change_nothing(unit: float) -> None:
    """Four columns of them: volumes would be no numbers."""
    values = np.random.default_rng(0).normal(size=ROWS)
    found = []
    for scale in (1.0, unit):
        alone = Marginal.of(np.histogram(values, 256, (-8, 8))[0], 16.0 * scale, 0.0, ROWS)
        risk = Risk(
            section(dpkde.Gaussian(1.0)),
            Independent((alone,) * 4),
            ROWS,
            np.full(4, 16.0 * scale),
            _errors(1e-4),
        )
        bandwidths = best(risk, np.full(4, scale), np.full(4, 0.01 * scale))
        found.append([risk(bandwidths), risk.density(bandwidths), *bandwidths / scale])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
