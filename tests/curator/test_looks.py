"""Looks before the plan, pilot and mean: paid for first, within their bounds, read with noise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import Noise, constant, rigged, shrunk
from dpkde.curator.publish import Errand, _located, _looked, publish_source
from dpkde.curator.sketch import count_and_look
from dpkde.families.fourier.middle import Middle
from dpkde.planning.choice import Choice, Typical
from dpkde.planning.outlook import outlook
from dpkde.planning.pilot import Offer
from dpkde.planning.pilots import draw_pilot
from dpkde.planning.plan import as_families
from dpkde.privacy.audit import audit
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import Law, draw
from dpkde.release.assistance import fitted
from dpkde.release.parts import FittedModel, NoisyMean
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame
from dpkde.tables import open_points

Array = NDArray[np.float64]
DIM, ROWS = 6, 20_000
HALF = 20.0
KERNEL = dpkde.Gaussian(1.5)
FRAME = Frame.of(KERNEL, as_domain([(-HALF, HALF)] * DIM), DIM)
POINTS = np.random.default_rng(8).normal(size=(ROWS, DIM)) * 0.4 + 7.0
BITS = 21
"""Of the mean's integers, for 2⁴⁰ records."""


def _published(points: Array, budget: Budget) -> dpkde.Release:
    return publish_source(open_points(points), FRAME, as_families("fourier"), Errand(budget), 3)


def _middle() -> Middle:
    middle = Middle.of(FRAME, 40)
    assert middle is not None
    return middle


def _sums(points: Array) -> NDArray[np.int64]:
    return count_and_look(open_points(points), FRAME, [_middle()], 1)[1][0]


def _mean_spend(release: dpkde.Release) -> Any:
    return next(spend for spend in release.privacy.spends if spend.purpose == "mean")


@pytest.fixture(autouse=True)
def _no_fits(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "model" not in request.function.__name__:
        monkeypatch.setattr(dpkde.Release, "with_model", lambda release: release)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 3}, {"epsilon": 6, "delta": "1e-6"}, {"rho": "0.5"}]
)
def test_each_look_is_debited_before_its_noise_and_all_add_up(
    guarantee: dict[str, Any], adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With Gaussian noise a pilot is seldom worth it for this family; here it always is.
    monkeypatch.setattr(Typical, "regret", lambda *_: 1.0)
    seen: list[tuple[tuple[str, ...], int]] = []

    def watched(law: Law, size: int) -> NDArray[np.int64]:
        last = budget.spends[-1]
        assert law is last.law
        seen.append((tuple(spend.purpose for spend in budget.spends), size))
        return draw(law, size)

    budget = rigged(watched, **guarantee, adjacency=adjacency)
    release = _published(POINTS, budget)
    expected = ["count", "pilot", "mean", "table"][adjacency == "replace" :]
    assert [spend.purpose for spend in release.privacy.spends] == expected
    assert [entry for entry, _ in seen] == [tuple(expected[: k + 1]) for k in range(len(expected))]
    assert [size for _, size in seen][-2:] == [DIM, release.table.size]
    declared = release.privacy.guarantee
    spends = release.privacy.spends
    if all(spend.amount.rho is None for spend in spends):
        assert sum(spend.amount.epsilon or 0 for spend in spends) == declared.epsilon
    else:
        assert sum(spend.as_rho for spend in spends) == declared.rho_limit
    # One record moves a coordinate by 2^bits at most; two that are exchanged, by twice that.
    times, most, spend = 1 + (adjacency == "replace"), 1 << BITS, _mean_spend(release)
    norms = {"L∞": times * most, "L1": times * DIM * most, "L2": times**2 * DIM * most**2}
    assert spend.sensitivity == norms[spend.law.norm]
    if spend.law.norm == "L2":
        assert 2 * spend.law.scale * spend.amount.rho >= spend.sensitivity
    else:
        assert spend.law.scale * spend.amount.epsilon >= spend.sensitivity


def test_what_is_told_of_the_mean_is_its_noisy_sums() -> None:
    """Exactly those: sums plus the noise that was paid for, over the noisy count."""
    generator = np.random.default_rng(0)
    fixed = generator.integers(-(1 << 33), 1 << 33, size=DIM)

    def noise(law: Law, size: int) -> NDArray[np.int64]:
        if size == 1:
            return np.array([123])
        return fixed if size == DIM else draw(law, size)

    release = _published(POINTS, rigged(noise, epsilon=2))
    part = release.parts.of(NoisyMean)
    assert part is not None
    assert release.count == ROWS + 123
    sums = _sums(POINTS)
    by_hand = np.rint(POINTS / HALF * 2**BITS).sum(axis=0)
    np.testing.assert_allclose(sums, by_hand, rtol=1e-9)
    told = (sums + fixed) / 2**BITS / (ROWS + 123) * (HALF / 1.5)
    np.testing.assert_allclose(part.mean, told, rtol=1e-12)
    assert np.abs(part.mean - sums / 2**BITS / ROWS * (HALF / 1.5)).max() > 0.01


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_model_and_mean_follow_noisy_numbers_alone(adjacency: str) -> None:
    """Other data with the same noisy count, pilot, mean and table: the same release, bit for bit.

    And none of its parts changes where it is fitted again, from its bytes.
    """
    other = POINTS[:3] if adjacency == "add-remove" else np.full((ROWS, DIM), -19.0)
    pilot = draw_pilot(FRAME, 40, 3)
    assert pilot is not None
    first: dpkde.Release | None = None
    for points in (POINTS, other):
        looks = count_and_look(open_points(points), FRAME, [pilot.look, _middle()], 1)[1]
        wanted = count_and_look(open_points(POINTS), FRAME, [pilot.look, _middle()], 1)[1]
        gaps = {1: np.array([ROWS - len(points)]), DIM: wanted[1] - looks[1]}
        for count in (8, 16, 32):  # of the pilot's signs, as many as it pays for
            gaps[count] = (wanted[0] - looks[0])[:count]
        if first is not None:
            exact = dpkde.sketch(points, first.plan)
            gaps[first.table.size] = first.table - exact._table

        def fill(law: Law, size: int, gaps: Any = gaps) -> Any:
            return gaps.get(size, np.zeros(size, dtype=np.int64))

        release = _published(points, rigged(fill, epsilon=2, adjacency=adjacency))
        first = release if first is None else first
        assert release.parts.of(NoisyMean) is not None
        assert release.parts.of(FittedModel) is not None
        assert release.privacy == first.privacy
        assert release.plan == first.plan
        assert (release.table == first.table).all()
        assert release.parts == first.parts
    assert first is not None
    again = dpkde.Release.from_bytes(first.to_bytes())
    model = fitted(again)
    assert model is not None
    assert model.to_json() == first.model.to_json()  # type: ignore[union-attr]
    for name, array in model.to_tensors().items():
        np.testing.assert_array_equal(array, first.model.to_tensors()[name])  # type: ignore[union-attr]


def test_whether_a_mean_is_paid_for_hangs_on_the_noisy_count() -> None:
    """The same rows with another noisy count: none. No rows with a large one: it is paid for."""
    few = rigged(lambda law, size: np.full(size, -ROWS + 40), epsilon=1)
    assert "mean" not in [spend.purpose for spend in _published(POINTS, few).privacy.spends]

    def many(law: Law, size: int) -> NDArray[np.int64]:
        return np.array([ROWS]) if size == 1 else draw(law, size)

    release = _published(POINTS[:0], rigged(many, epsilon=1))
    assert "mean" in [spend.purpose for spend in release.privacy.spends]
    assert release.parts.of(NoisyMean) is not None


def test_no_mean_without_its_spend_and_none_for_other_families() -> None:
    errand = Errand(rigged(constant(0), epsilon=2))
    splines = publish_source(
        open_points(POINTS[:, :1]),
        Frame.of(KERNEL, as_domain([(-HALF, HALF)]), 1),
        as_families("auto"),
        errand,
        3,
    )
    assert splines.family.name == "spline"
    assert splines.parts.of(NoisyMean) is None
    assert "mean" not in [spend.purpose for spend in splines.privacy.spends]
    off = publish_source(
        open_points(POINTS),
        FRAME,
        as_families("fourier"),
        Errand(rigged(constant(0), epsilon=2), pilot=False),
        3,
    )
    assert [spend.purpose for spend in off.privacy.spends] == ["count", "table"]


def test_rows_that_do_not_count_add_nothing_to_the_mean() -> None:
    frame = Frame.of(KERNEL, dpkde.Box([(-HALF, HALF)] * DIM, outside="drop"), DIM)
    middle = Middle.of(frame, 40)
    assert middle is not None
    strange = np.concatenate(
        [POINTS[:50], np.full((9, DIM), np.nan), np.full((9, DIM), 99.0), [[np.inf] * DIM]]
    )
    for points in (strange, np.split(strange, [10, 55])):
        totals, (sums,) = count_and_look(open_points(points), frame, [middle], 2)
        assert totals.records == 50
        assert (sums == _sums(POINTS[:50])).all()


AUDITED = 100
"""ε of a budget one hundredth of which buys a mean: its own ε is then 1."""
EXTREME, CENTER = np.full((1, DIM), HALF), np.zeros((1, DIM))


def _means(adjacency: str, make: Noise = draw) -> Callable[[Array, int], Array]:
    """Return a mechanism that tells noisy means, as `publish` does, of the very sums given."""
    middle = _middle()
    plan = dpkde.plan(
        kernel=KERNEL,
        bounds=[(-HALF, HALF)] * DIM,
        epsilon=AUDITED,
        family=dpkde.Fourier(64),
        seed=0,
    )

    def mechanism(points: Array, trials: int) -> Array:
        sums, told = _sums(points), []
        for _ in range(trials):
            errand = Errand(rigged(make, epsilon=AUDITED, adjacency=adjacency))
            # So many rows that nothing is clipped; the same on both sides, as the count is noisy.
            (part,) = _located(middle, sums, plan, 10**4, errand)
            (spend,) = errand.budget.spends
            assert spend.amount.epsilon == 1
            told.append(part.mean)
        return np.array(told)

    return mechanism


def _pilots(monkeypatch: pytest.MonkeyPatch, make: Noise = draw) -> Callable[[Array, int], Array]:
    """Return a mechanism that tells what a pilot's range is found from."""
    pilot = draw_pilot(FRAME, 40, 3)
    assert pilot is not None
    whole = rigged(make, epsilon=50)
    view = outlook(whole, FRAME, 10**4, None, 40)
    choice = Choice.among(as_families("fourier"), FRAME, Typical())
    offer = pilot.offer(whole, 10**4)
    assert offer is not None
    assert offer.amount.epsilon == 1
    told: list[NDArray[np.int64]] = []

    def heard(self: Any, noisy: NDArray[np.int64], *rest: Any) -> Any:
        told.append(noisy)
        return view.range

    def offered(self: Any, *rest: Any) -> Offer:
        return offer

    monkeypatch.setattr(type(pilot), "range", heard)
    monkeypatch.setattr(type(pilot), "worthwhile", offered)

    def mechanism(points: Array, trials: int) -> Array:
        sums = count_and_look(open_points(points), FRAME, [pilot.look], 1)[1][0]
        told.clear()
        for _ in range(trials):
            _looked(pilot, sums, choice, view, Errand(rigged(make, epsilon=50)))
        # What tells most of noise in the largest norm: by how much nearer the record's own is.
        record = pilot.look.quantize(*FRAME.place(CENTER))[0][pilot.cells(offer)]
        drawn = np.array(told, dtype=np.float64)
        return np.asarray(np.abs(drawn).max(axis=1) - np.abs(drawn - record).max(axis=1))

    return mechanism


TRIALS = 4000


@pytest.mark.audit
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_mean_costs_what_it_says(adjacency: str) -> None:
    """A record in a corner, added, or exchanged with its opposite. A quarter of the noise is seen.

    The very bounds are: with those of add-remove a record that is exchanged would cost twice.
    """
    left = EXTREME[:0] if adjacency == "add-remove" else -EXTREME
    assert not audit(_means(adjacency), left, EXTREME, trials=TRIALS).refutes(1)
    quiet = _means(adjacency, shrunk(Fraction(1, 4)))
    assert audit(quiet, left, EXTREME, trials=TRIALS).refutes(1)


@pytest.mark.audit
def test_the_pilot_costs_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record whose features are as large as any, added."""
    plain = audit(_pilots(monkeypatch), CENTER[:0], CENTER, trials=TRIALS)
    assert 0.2 < plain.epsilon_lower <= 1  # it sees most of what there is
    quiet = _pilots(monkeypatch, shrunk(Fraction(1, 4)))
    assert audit(quiet, CENTER[:0], CENTER, trials=TRIALS).refutes(1)


def test_clients_begin_at_the_mean_without_the_curator(tmp_path: Path) -> None:
    release = _published(POINTS, rigged(draw, epsilon=2))
    assert release.parts.of(NoisyMean) is not None
    assert release.parts.of(FittedModel) is None  # so that it is fitted there
    release.save(tmp_path / "r.dpkde")
    code = (
        f"import sys, dpkde; r = dpkde.load({str(tmp_path / 'r.dpkde')!r}); "
        "assert r.model is not None; r.kde([0.0] * 6); "
        "print([n for n in sys.modules if n.startswith(('dpkde.curator', 'dpkde.prior', "
        "'dpkde.nonprivate'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class _Untouchable:
    """Sums that nobody may read: they were not paid for."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("exact sums were read without being paid for")

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("exact sums were read without being paid for")

    __add__ = __radd__ = __array__ = __len__ = __iter__ = __getitem__


@pytest.mark.parametrize("rows", [1, 50, 400])
def test_sums_that_are_not_paid_for_are_not_read(rows: int) -> None:
    """So few rows that neither look is worth it: no noise is drawn, and what is known stays."""
    budget = rigged(constant(0), epsilon=1)
    pilot, sums = draw_pilot(FRAME, 40, 3), _Untouchable()
    assert pilot is not None
    view = outlook(budget, FRAME, rows, None, 40)
    choice = Choice.among(as_families("fourier"), FRAME, Typical())
    assert _looked(pilot, sums, choice, view, Errand(budget)) is view  # type: ignore[arg-type]
    plan = dpkde.plan(
        kernel=KERNEL, bounds=[(-HALF, HALF)] * DIM, epsilon=1, family=dpkde.Fourier(64), seed=0
    )
    assert _located(_middle(), sums, plan, rows, Errand(budget)) == []  # type: ignore[arg-type]
    assert budget.spends == ()


def test_after_a_pilot_the_plan_is_for_what_it_leaves() -> None:
    budget = rigged(constant(0), epsilon=2)
    pilot = draw_pilot(FRAME, 40, 3)
    assert pilot is not None
    view = outlook(budget, FRAME, ROWS, None, 40)
    choice = Choice.among(as_families("fourier"), FRAME, Typical())
    sums = count_and_look(open_points(POINTS), FRAME, [pilot.look], 1)[1][0]
    after = _looked(pilot, sums, choice, view, Errand(budget))
    (spend,) = budget.spends
    assert spend.amount.epsilon is not None
    assert {amount.epsilon for amount, _ in after.options} == {2 - spend.amount.epsilon}
