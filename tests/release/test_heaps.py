"""Heaps at the faces of a box: about which share of the records lies there, and where one shows.

Releases are without noise, or so far from every threshold that noise does not matter.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dpkde
from contracts.rigged import constant, install
from dpkde.kernels import ProductKernel
from dpkde.release.heaps import Profile, heap, heap_shows, tells_heaps

GENERATOR = np.random.default_rng(7)
SQUARE = GENERATOR.uniform(0, 1, (4000, 2))
CLOUD = GENERATOR.normal(0, 1, (4000, 2))
KERNEL = dpkde.Gaussian(0.1)


def heaped(share: float) -> Any:
    """Return records spread evenly, but for a share of them left of the bounds."""
    points = SQUARE.copy()
    points[: round(share * len(points)), 0] = -5.0
    return points


def published(points: Any, **changes: Any) -> dpkde.Release:
    settings: dict[str, Any] = {"kernel": KERNEL, "bounds": [(0, 1)] * 2, "epsilon": 4}
    return dpkde.publish(points, **{**settings, **changes})


def test_the_share_at_a_face() -> None:
    """About right for a heap of a known share: here one of 30%, the others spread evenly."""
    release = published(heaped(0.3), kernel=dpkde.Gaussian(0.2))
    share = heap(release, 0, 0)
    assert share is not None
    assert abs(share - 0.3) < 0.05
    assert heap(release, 0, 1) is None


@pytest.mark.parametrize("kernel", [KERNEL.shape, dpkde.Laplacian(1.0)], ids=lambda k: k.name)
def test_what_a_kernel_carries_across_a_face(kernel: ProductKernel) -> None:
    """By slow sums; and heaps beside records that lie evenly, or fall off, are told as they are."""
    profile = Profile(kernel, 9.0)
    u = np.linspace(0, 400, 400_001)
    weights = kernel.profile(u) / (2 * np.trapezoid(kernel.profile(u), u))
    tail = 0.5 - np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2 * np.diff(u))])
    assert profile.beyond(0.7) == pytest.approx(np.interp(0.7, u, tail), abs=2e-3)
    inside = u <= 9
    for fall in (0.0, 0.5):
        slow = np.trapezoid(np.exp(-fall * u[inside]) * tail[inside], u[inside])
        assert profile.carried(fall) == pytest.approx(slow, rel=1e-2)

    def share(start: float, stop: float, fall: float, there: float) -> float:
        """Return the share between two distances from the face, inwards."""
        places = np.linspace(0.0, 9.0, 3001)
        density = np.exp(-fall * places)
        density *= (1 - there) / np.trapezoid(density, places)
        of_one = np.where(
            places >= start,
            1 - np.interp(places - start, u, tail),
            np.interp(start - places, u, tail),
        ) - np.where(
            places >= stop, 1 - np.interp(places - stop, u, tail), np.interp(stop - places, u, tail)
        )
        at_face = np.interp(start, u, tail) - np.interp(stop, u, tail)
        return float(np.trapezoid(density * of_one, places) + there * at_face)

    for fall, there in itertools.product((0.0, 0.3, 0.8), (0.0, 0.2, 0.6)):
        over = share(0.0, 1e9, fall, there)
        over = 1 - over  # all the rest is beyond the face
        told = profile.heaped(over, share(2, 3, fall, there), share(3, 4, fall, there))
        assert abs(told - there) < 0.08


@pytest.mark.parametrize(
    ("points", "changes", "shows"),
    [
        (heaped(0.05), {}, True),  # less than is told as a trouble
        (heaped(0.05), {"epsilon": "0.05", "family": "spline"}, False),  # noise, maybe
        (SQUARE, {}, False),  # as dense at the bounds as anywhere
        (np.abs(CLOUD), {"bounds": [(0, 4)] * 2, "kernel": dpkde.Gaussian(0.4)}, False),
        (GENERATOR.exponential(1, (4000, 2)), {"bounds": [(0, 12)] * 2}, False),
    ],
    ids=["five per cent", "noise", "even", "densest there", "falls fast"],
)
def test_what_a_picture_shows(
    points: Any, changes: dict[str, Any], shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, constant(0))
    release = published(points, **changes)
    assert tells_heaps(release)
    assert heap(release, 0, 0) is None
    assert heap_shows(release, 0, 0) == shows
    assert not heap_shows(release, 0, 1)
    assert heap_shows(release.marginal(0), 0, 0) == shows


def test_standard_errors_of_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most what they are told to be, and not much less: shares of 400 noisy releases."""
    profile, generator = Profile(KERNEL.shape, 10.0), np.random.default_rng(3)
    shares, errors = np.array([0.06, 0.1, 0.1]), np.array([0.004, 0.003])
    noisy = generator.normal(shares[:2], errors, (400, 2))
    spread = np.std([profile.heaped(over, inside, inside) for over, inside in noisy])
    told = profile.error(*errors, *shares[1:])
    assert 0.6 * told < spread < told


def test_releases_that_tell_nothing() -> None:
    for changes in (
        {"bounds": dpkde.Box([(0, 1)] * 2, outside="drop")},
        {"bounds": None},
        {"kernel": dpkde.Cauchy(0.1)},
        {"family": "fourier"},
    ):
        assert not tells_heaps(published(SQUARE, **changes))
