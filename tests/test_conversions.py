"""The table of bandwidths in ``docs/coming-from.md``: each line gives the other library's numbers.

Every line is checked against the formula that the other library documents. SciPy itself is always
asked; the others are asked too where they are installed, as by ``make bench``.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import sqrtm
from scipy.stats import gaussian_kde

import dpkde

Floats = NDArray[np.float64]
PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
GENERATOR = np.random.default_rng(0)
PLANE = GENERATOR.normal(size=(300, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]])
LINE = PLANE[:, :1]
H, H2 = 0.3, 0.2


def ours(kernel: dpkde.Kernel, points: Floats, queries: Floats) -> Floats:
    """Return the exact density that dpkde's kernel gives."""
    return dpkde.nonprivate.kde(points, queries, kernel) / kernel.integral(points.shape[1])


def formula(profile: Callable[[Floats], Floats], points: Floats, queries: Floats) -> Floats:
    """Return the mean of a normalised kernel, a function of differences of shape (n, m, d)."""
    return np.asarray(profile(queries[None] - points[:, None]).mean(axis=0))


def normal(*widths: float) -> Callable[[Floats], Floats]:
    """Return the density of a normal law with these standard deviations."""
    h = np.array(widths)

    def profile(d: Floats) -> Floats:
        whole = math.prod(h * math.sqrt(2 * math.pi))
        return np.asarray(np.exp(-(d**2 / (2 * h**2)).sum(axis=-1)) / whole)

    return profile


def distance(d: Floats) -> Floats:
    return np.asarray(np.sqrt((d**2).sum(axis=-1)))


def triangle(width: float) -> Callable[[Floats], Floats]:
    return lambda d: np.asarray(np.maximum(0, 1 - distance(d) / width) / width)


def asked_scikit_learn(kernel: str, points: Floats, queries: Floats) -> Floats:
    from sklearn.neighbors import KernelDensity

    fitted = KernelDensity(bandwidth=H, kernel=kernel).fit(points)
    return np.asarray(np.exp(fitted.score_samples(queries)))


def asked_kdepy(kernel: str, points: Floats, queries: Floats) -> Floats:
    from KDEpy import NaiveKDE

    return np.asarray(NaiveKDE(bw=H, kernel=kernel).fit(points).evaluate(queries))


def asked_statsmodels(points: Floats, queries: Floats) -> Floats:
    from statsmodels.nonparametric.api import KDEMultivariate, KDEUnivariate

    if points.shape[1] > 1:
        return np.asarray(KDEMultivariate(points, var_type="cc", bw=[H, H2]).pdf(queries))
    fitted = KDEUnivariate(points[:, 0])
    fitted.fit(bw=H, fft=False)
    return np.asarray(fitted.evaluate(queries[:, 0]))


# What is written in the table; our kernel; the other's formula; the points; the library, and how
# it is asked.
LINES: list[tuple[str, dpkde.Kernel, Callable[[Floats], Floats], Floats, str, Any]] = [
    (
        "Gaussian.from_std(h)",
        dpkde.Gaussian.from_std(H),
        normal(H, H),
        PLANE,
        "sklearn",
        lambda p, q: asked_scikit_learn("gaussian", p, q),
    ),
    (
        "ExponentialLp(p=2, power=1, bandwidth=h)",
        dpkde.ExponentialLp(p=2, power=1, bandwidth=H),
        lambda d: np.exp(-distance(d) / H) / (2 * math.pi * H**2),
        PLANE,
        "sklearn",
        lambda p, q: asked_scikit_learn("exponential", p, q),
    ),
    (
        "Hat(h)",
        dpkde.Hat(H),
        triangle(H),
        LINE,
        "sklearn",
        lambda p, q: asked_scikit_learn("linear", p, q),
    ),
    (
        "Gaussian.from_std(h)",
        dpkde.Gaussian.from_std(H),
        normal(H, H),
        PLANE,
        "KDEpy",
        lambda p, q: asked_kdepy("gaussian", p, q),
    ),
    (
        "Laplacian(h / √2)",
        dpkde.Laplacian(H / math.sqrt(2)),
        lambda d: np.exp(-distance(d) * math.sqrt(2) / H) / (math.sqrt(2) * H),
        LINE,
        "KDEpy",
        lambda p, q: asked_kdepy("exponential", p, q),
    ),
    (
        "Hat(h * √6)",
        dpkde.Hat(H * math.sqrt(6)),
        triangle(H * math.sqrt(6)),
        LINE,
        "KDEpy",
        lambda p, q: asked_kdepy("tri", p, q),
    ),
    (
        "Gaussian.from_std(h)",
        dpkde.Gaussian.from_std(H),
        normal(H),
        LINE,
        "statsmodels",
        asked_statsmodels,
    ),
    (
        "Gaussian.from_std([h1, h2])",
        dpkde.Gaussian.from_std([H, H2]),
        normal(H, H2),
        PLANE,
        "statsmodels",
        asked_statsmodels,
    ),
]


@pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
@pytest.mark.parametrize(
    ("written", "kernel", "profile", "points", "library", "ask"),
    LINES,
    ids=[f"{line[4]}-{line[0]}" for line in LINES],
)
def test_a_line(
    written: str,
    kernel: dpkde.Kernel,
    profile: Callable[[Floats], Floats],
    points: Floats,
    library: str,
    ask: Callable[[Floats, Floats], Floats],
) -> None:
    assert f"`{written}`" in PAGE.read_text(encoding="utf-8")
    queries = points[:40] + 0.1
    density = ours(kernel, points, queries)
    assert density.max() > 0.01
    np.testing.assert_allclose(density, formula(profile, points, queries), rtol=1e-9, atol=1e-12)
    if importlib.util.find_spec(library):
        np.testing.assert_allclose(density, ask(points, queries), rtol=1e-6, atol=1e-9)


def test_the_line_of_scipy() -> None:
    """Its kernel has the factor's square times the covariance of the data."""
    theirs = gaussian_kde(PLANE.T, bw_method=H)
    np.testing.assert_allclose(theirs.covariance, H**2 * np.cov(PLANE.T), rtol=1e-12)
    kernel = dpkde.Gaussian.from_std(sqrtm(theirs.covariance))
    queries = PLANE[:40] + 0.1
    np.testing.assert_allclose(ours(kernel, PLANE, queries), theirs(queries.T), rtol=1e-9)
    alone = gaussian_kde(LINE.T, bw_method=H)
    kernel = dpkde.Gaussian.from_std(H * float(LINE.std(ddof=1)))
    np.testing.assert_allclose(ours(kernel, LINE, LINE[:40]), alone(LINE[:40].T), rtol=1e-9)


def test_every_line_of_the_table_is_here() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| library |")[1].split("\n\n")[0]
    rows = [row.split("|")[-2] for row in table.splitlines()[2:]]
    listed = sorted(written for row in rows for written in re.findall(r"`([^`]+)`", row))
    assert listed == sorted([*(line[0] for line in LINES), "Gaussian.from_std(f * s)"])
