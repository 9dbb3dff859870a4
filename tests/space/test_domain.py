"""Domains: what happens to each record, silently and alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.space.domain import Domain, Unbounded, as_domain, domain_from_json
from dpkde.space.frame import Frame
from dpkde.testing import adversarial_rows

DOMAINS: list[Domain] = [
    Unbounded(),
    dpkde.Box([(-1, 1), (0, 0.5), (-2, 3)]),
    dpkde.Box([(-1, 1), (0, 0.5), (-2, 3)], outside="drop"),
    dpkde.Ball((0.1, 0.2, 0.3), 1.0),
    dpkde.Ball((0.1, 0.2, 0.3), 1.0, outside="drop"),
    dpkde.Sphere(),
    dpkde.Sets(3),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("bandwidth", [0.7, [0.7, 2.0, 1.0], np.eye(3) + 0.1], ids=["1", "d", "dd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_records_are_placed_alone_and_silently(domain: Domain, bandwidth: Any, dtype: Any) -> None:
    frame = Frame.of(dpkde.Gaussian(bandwidth), domain, 3)
    with np.errstate(over="ignore"):
        rows = adversarial_rows(3, np.random.default_rng(0)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coordinates, counts = frame.place(rows)
        plain, plain_counts = frame.place_plainly(rows)
    assert np.array_equal(coordinates, plain)  # the compiled loop and its twin
    assert np.array_equal(counts, plain_counts)
    assert not counts[~np.isfinite(rows).all(axis=1)].any()
    assert not coordinates[~counts].any()
    for i in range(len(rows)):
        alone, one = frame.place(rows[i : i + 1])
        assert np.array_equal(alone[0], coordinates[i])
        assert one[0] == counts[i]


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("dim", [1, 2, 3, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_placed_as_by_numpy(outside: Any, dim: int, dtype: Any) -> None:
    """Over many lines of the compiled loop: some whole, some with rows that do not contribute."""
    generator = np.random.default_rng(dim)
    frame = Frame.of(dpkde.Gaussian(0.3), dpkde.Box([(-2.0, 1.0)] * dim, outside), dim)
    rows = generator.uniform(-1.9, 0.9, (2001, dim)).astype(dtype)
    for row, value in ((700, np.nan), (701, -np.inf), (1300, 5.0), (1301, -5.0), (2000, np.inf)):
        rows[row, generator.integers(dim)] = value
    rows[1302] = -2.0
    coordinates, counts = frame.place(rows)
    plain, plain_counts = frame.place_plainly(rows)
    assert np.array_equal(coordinates, plain)
    assert np.array_equal(counts, plain_counts)
    assert counts.sum() == len(rows) - (5 if outside == "drop" else 3)


def _placed(domain: Domain, rows: list[list[float]]) -> tuple[Any, Any]:
    frame = Frame.of(dpkde.Gaussian(1.0), domain, len(rows[0]))
    coordinates, counts = frame.place(np.array(rows))
    return coordinates + domain.origin(len(rows[0])), counts.tolist()


def test_boxes_clip_or_drop() -> None:
    rows = [[0.5, 0.5], [2.0, -1.0], [1.0, 0.0]]
    inside, counts = _placed(dpkde.Box([(0, 1), (0, 1)]), rows)
    assert np.allclose(inside, [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    assert counts == [True, True, True]
    assert _placed(dpkde.Box([(0, 1), (0, 1)], outside="drop"), rows)[1] == [True, False, True]


def test_balls_move_along_the_radius() -> None:
    rows = [[0.5, 0.0], [3.0, 4.0], [1e308, 0.0]]
    inside, counts = _placed(dpkde.Ball((0, 0), 1), rows)
    assert np.allclose(inside, [[0.5, 0.0], [0.6, 0.8], [1.0, 0.0]])
    assert counts == [True] * 3
    assert _placed(dpkde.Ball((0, 0), 1, outside="drop"), rows)[1] == [True, False, False]


def test_spheres_divide_by_the_length() -> None:
    rows = [[3.0, 4.0], [0.0, 0.0], [1e308, 1e308], [1e-320, 0.0]]
    inside, counts = _placed(dpkde.Sphere(), rows)
    assert np.allclose(inside[[0, 2, 3]], [[0.6, 0.8], [0.5**0.5] * 2, [1.0, 0.0]])
    assert counts == [True, False, True, True]


def test_sets_are_zero_or_one() -> None:
    inside, counts = _placed(dpkde.Sets(3), [[0, 1, 7], [-1, 0, 0.1]])
    assert inside.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert counts == [True, True]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_domains_come_back_from_json(domain: Domain) -> None:
    assert domain_from_json(domain.kind, domain.to_json()) == domain


def test_reach_bounds_every_placed_record() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3)) * 10
    for domain in DOMAINS[1:]:
        offsets, _ = domain.place(rows)
        reach = domain.reach(3)
        assert reach is not None
        assert np.sqrt((offsets**2).sum(axis=1)).max() <= reach * (1 + 1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dpkde.Box([(1, 0)]), "reversed"),
        (lambda: dpkde.Box([(0, np.inf)]), "finite"),
        (lambda: dpkde.Box([(0, 1, 2)]), "pair"),
        (lambda: dpkde.Box([]), "pair"),
        (lambda: dpkde.Box([(0, 1)], outside="bounce"), "'clip' or 'drop'"),  # type: ignore[arg-type]
        (lambda: dpkde.Ball((0, 0), 0), "radius"),
        (lambda: dpkde.Ball((0, np.nan), 1), "center"),
        (lambda: dpkde.Ball((), 1), "center"),
        (lambda: dpkde.Sets(0), "universe"),
        (lambda: as_domain("everywhere"), "pair"),  # type: ignore[arg-type]
    ],
)
def test_wrong_domains(make: Any, message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        make()


def test_large_universes_are_measured_without_a_list_of_them() -> None:
    """Some hundred million elements would take gigabytes."""
    frame = Frame.of(dpkde.Jaccard(), dpkde.Sets(1 << 30))
    assert frame.reach() == 2.0**14
