"""What powers are likely to be: against sums over all chains, and where noise hides them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import ncx2

from dpkde.scale import powers
from dpkde.scale.powers import LEVELS, blocks, likely, smoothed

LEVEL = 0.01


def test_posterior_means_are_those_of_all_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow twin: every chain over a few levels, with SciPy's noncentral χ²."""
    few = np.array([0.0, 1e-3, 1e-2, 1e-1, 1.0])
    generator = np.random.default_rng(0)
    steps = generator.dirichlet(np.ones(len(few)), size=len(few))
    monkeypatch.setattr(powers, "LEVELS", few)
    monkeypatch.setattr(powers, "_steps", lambda: steps)
    means, counts = np.array([0.2, 0.03, 0.011, 0.004]), np.array([1, 1, 3, 7])
    fits = np.stack(
        [
            ncx2.pdf(2 * count * mean / LEVEL, 2 * count, 2 * count * few / LEVEL + 1e-12)
            for mean, count in zip(means, counts, strict=True)
        ]
    )
    total, told = 0.0, np.zeros(len(means))
    for chain in itertools.product(range(len(few)), repeat=len(means)):
        weight = np.prod([fits[k, level] for k, level in enumerate(chain)])
        weight *= np.prod([steps[a, b] for a, b in itertools.pairwise(chain)])
        total += weight
        told += weight * few[list(chain)]
    np.testing.assert_allclose(likely(means, counts, LEVEL)[0], told / total, rtol=1e-6)


def test_many_frequencies_count_as_normal() -> None:
    """The exact law of 16 to 64 of them is near the normal one that stands for it."""
    for count, off in ((16, 0.8), (64, 0.4)):
        for power in (0.0, 0.002, 0.05):
            mean = LEVEL + power
            exact = ncx2.logpdf(2 * count * mean / LEVEL, 2 * count, 2 * count * LEVELS / LEVEL)
            near = powers._fit(mean, count, LEVEL)
            likely_ones = exact > exact.max() - 4
            difference = (near - near.max()) - (exact - exact.max())
            assert np.abs(difference[likely_ones]).max() < off


def test_noise_alone_tells_next_to_nothing_and_a_line_beyond_a_gap_is_told() -> None:
    """Over 300 draws of a spectrum of 64 frequencies, and of one with a line at some of them."""
    generator = np.random.default_rng(1)
    normal = np.exp(-((0.8 * np.arange(1.0, 65.0)) ** 2))
    line = np.where(np.abs(np.arange(1.0, 65.0) - 30) < 3, 0.05, 0.0)
    edges = blocks(np.arange(1.0, 65.0), 1.25, 1)
    told: dict[str, list[float]] = {"normal": [], "line": []}
    for name, true in (("normal", normal), ("line", normal + line)):
        for _ in range(300):
            noise = generator.normal(size=(2, 64)) * np.sqrt(LEVEL / 2)
            waves = (np.sqrt(true) + noise[0]) ** 2 + noise[1] ** 2
            told[name].append(smoothed(waves, LEVEL, edges)[8:].sum())
    # Powers by themselves, less the noise, would scatter by 0.07 around 0 and 0.25.
    assert np.median(told["normal"]) < 0.005
    assert np.mean(told["normal"]) < 0.03
    assert 0.1 < np.mean(told["line"]) < 0.3


def test_without_noise_powers_are_what_is_seen() -> None:
    waves = np.geomspace(1.0, 1e-3, 30)
    told = smoothed(waves, 1e-9, blocks(np.arange(1.0, 31.0), 1.25, 1))
    np.testing.assert_allclose(told, waves, rtol=0.2)
    assert told.sum() == pytest.approx(waves.sum(), rel=0.05)


def test_a_level_that_is_off_by_chance_is_not_taken_for_powers() -> None:
    """Noise three tenths above what is known, over 200 draws; and how likely that level is."""
    generator = np.random.default_rng(2)
    edges = blocks(np.arange(1.0, 65.0), 1.25, 1)
    told = {0.0: 0.0, 0.18: 0.0}
    for _ in range(200):
        waves = generator.exponential(1.3 * LEVEL, size=64)
        for unsure in told:
            told[unsure] += smoothed(waves, LEVEL, edges, unsure).sum() / 200
    assert told[0.18] < told[0.0] / 2
    waves = generator.exponential(1.3 * LEVEL, size=(200, 64))
    means = np.add.reduceat(waves, edges[:-1], axis=1) / np.diff(edges)
    fits = [
        np.mean([likely(each, np.diff(edges), factor * LEVEL)[1] for each in means])
        for factor in (0.7, 1.3, 2.2)
    ]
    assert fits[1] == max(fits)
