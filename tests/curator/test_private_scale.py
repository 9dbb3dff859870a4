"""Bounds and bandwidth found privately: paid first, from noisy numbers alone, for any table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from contracts.rigged import Noise, constant, rigged, shrunk
from dpkde.curator import publish as publishing
from dpkde.curator.publish import Errand, publish_open
from dpkde.curator.sketch import count_and_look
from dpkde.planning.plan import as_families
from dpkde.privacy.amounts import COUNT, Amount
from dpkde.privacy.audit import audit
from dpkde.privacy.budget import Budget
from dpkde.privacy.laws import Law, draw, law_of_a_number
from dpkde.release.parts import FoundScale
from dpkde.scale import search as searching
from dpkde.scale import windows
from dpkde.scale.search import Search
from dpkde.scale.wish import Wish
from dpkde.tables import open_points

Array = NDArray[np.float64]
AUTO = dpkde.Gaussian("auto")
POINTS = np.random.default_rng(8).normal(size=(20_000, 2)) * [1.0, 4.0] + [3.0, -7.0]


def _published(points: Any, budget: Budget, kernel: Any = AUTO, **wish: Any) -> dpkde.Release:
    asked = Wish.of(kernel, wish.get("bounds", "private"), wish.get("ranges"), None)
    assert asked is not None
    source = open_points(points)
    frame = asked.frame(source.dim)
    return publish_open(source, asked, frame, as_families("auto"), Errand(budget), 3)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 2}, {"epsilon": 4, "delta": "1e-6"}, {"rho": "0.5"}]
)
def test_each_look_is_debited_before_its_noise_and_all_add_up(
    guarantee: dict[str, Any], adjacency: str
) -> None:
    seen: list[tuple[str, ...]] = []

    def watched(law: Law, size: int) -> NDArray[np.int64]:
        assert law is budget.spends[-1].law
        seen.append(tuple(spend.purpose for spend in budget.spends))
        return np.zeros(size, dtype=np.int64)  # what is looked at next hangs on no chance

    budget = rigged(watched, **guarantee, adjacency=adjacency)
    release = _published(POINTS, budget)
    spends = release.privacy.spends
    purposes = [spend.purpose for spend in spends]
    assert set(purposes) - {"count"} == {"scale", "shape", "table"}
    assert purposes[-2:] == ["shape", "table"]
    assert ("count" in purposes) == (adjacency == "add-remove")
    assert seen == [tuple(purposes[: k + 1]) for k in range(len(purposes))]
    if all(spend.amount.rho is None for spend in spends):
        assert sum(spend.amount.epsilon or 0 for spend in spends) == budget.guarantee.epsilon
    else:
        assert sum(spend.as_rho for spend in spends) == budget.guarantee.rho_limit
    times = 1 + (adjacency == "replace")
    for spend in spends:
        if spend.purpose == "shape":
            assert spend.sensitivity == times
        if spend.purpose == "scale":  # of one column or of both
            assert spend.sensitivity in (times, 2 * times)
    assert spends[purposes.index("scale")].sensitivity == 2 * times
    again = dpkde.Release.from_bytes(release.to_bytes())
    assert again == release
    assert again.parts.of(FoundScale) == release.parts.of(FoundScale)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_column_has_bounds_and_bandwidth_from_one_look(adjacency: str) -> None:
    """The last, which is paid as one that tells a bandwidth; a record adds one to a cell of it."""
    values = np.random.default_rng(2).normal(size=(10_000, 1))
    for points, most in ((values, 1), (values + 1e6, searching.MOST_ROUNDS)):
        release = _published(points, rigged(constant(0), epsilon=1, adjacency=adjacency))
        spends = [spend for spend in release.privacy.spends if spend.purpose in ("scale", "shape")]
        assert 1 <= [spend.purpose for spend in spends].index("shape") == len(spends) - 1 <= most
        assert {spend.sensitivity for spend in spends} == {1 + (adjacency == "replace")}


def test_looks_cost_what_docs_bandwidth_says_and_what_was_foreseen() -> None:
    points = np.random.default_rng(3).normal(size=(10_000, 3))
    for columns in (1, 2, 3):
        search, shares = Search((None,) * columns, with_shape=True), []
        for rows in (100_000, 10_000, 1_000):
            looks = search.foreseen(rigged(epsilon=1), rows)
            shares.append(sum(cost.share for _, cost in looks))
        assert 0.01 < shares[0] < 0.05
        assert 0.09 < shares[1] < 0.18
        assert 0.16 < shares[2] <= 0.20
        foreseen = [
            (name, cost.amount.epsilon)
            for name, cost in search.foreseen(rigged(epsilon=1), len(points))
        ]
        release = _published(points[:, :columns], rigged(constant(0), epsilon=1))
        paid = [(spend.purpose, spend.amount.epsilon) for spend in release.privacy.spends]
        assert [one for one in paid if one[0] in ("scale", "shape")] == foreseen


def test_units_are_paid_for_as_a_whole() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    who = [f"p{k % 4000}" for k in range(20_000)]
    table = pyarrow.table({"who": who, "a": POINTS[:, 0], "b": POINTS[:, 1]})
    release = dpkde.publish(
        table,
        kernel=AUTO,
        bounds="private",
        epsilon=2,
        columns=["a", "b"],
        unit="who",
        rows_per_unit=3,
    )
    first = next(spend for spend in release.privacy.spends if spend.purpose == "scale")
    assert first.sensitivity == 2 * 3


def test_plan_follows_noisy_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table with the same noisy count and histograms: the same looks, and the same plan."""
    tape: list[list[Array]] = []
    looks: list[list[tuple[int, ...]]] = [[], []]
    plain = searching._with_noise

    def recorded(parts: Any, budget: Budget, spend: Any) -> list[Array]:
        looks[0].append(tuple(map(len, parts)))
        tape.append(plain(parts, budget, spend))
        return tape[-1]

    monkeypatch.setattr(searching, "_with_noise", recorded)
    first = _published(POINTS, rigged(draw, epsilon=2))
    waiting = list(tape)

    def replayed(parts: Any, budget: Budget, spend: Any) -> list[Array]:
        looks[1].append(tuple(map(len, parts)))
        plain(parts, budget, spend)  # drawn as before, and what it gave is the tape's
        return waiting.pop(0)

    monkeypatch.setattr(searching, "_with_noise", replayed)
    monkeypatch.setattr(publishing, "_noisy_count", _counting(first.count))
    other = np.concatenate([POINTS[:50] * 1e9, np.full((9, 2), np.nan), [[1e308, -1e308]]])
    second = _published(other, rigged(draw, epsilon=2))
    assert looks[0] == looks[1]
    assert second.plan == first.plan
    assert second.privacy == first.privacy
    assert second.parts.of(FoundScale) == first.parts.of(FoundScale)


def _counting(count: int) -> Callable[..., int]:
    plain = publishing._noisy_count

    def counted(*arguments: Any) -> int:
        plain(*arguments)
        return count

    return counted


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_each_look_is_paid_for_with_its_own_bounds(adjacency: str) -> None:
    """Three columns, of which one, two or all are looked at again."""
    generator = np.random.default_rng(9)
    far = generator.normal(size=(20_000, 3)) * [1.0, 1.0, 1e-3] + [0.0, 1e5, 1e9]
    source, search = open_points(far), Search((None,) * 3, with_shape=True)
    frame, budget = Wish(AUTO, None).frame(3), rigged(constant(0), epsilon=8, adjacency=adjacency)
    looks: list[Any] = [search.first]

    def taken(look: Any) -> Any:
        looks.append(look)
        return count_and_look(source, frame, [look], 1)[1][0]

    sums = count_and_look(source, frame, [search.first], 1)[1][0]
    search.run(sums, budget, 20_000.0, taken)
    assert len({len(look.columns) for look in looks[1:-1]}) > 1
    for look, spend in zip(looks, budget.spends, strict=True):
        moved = budget.guarantee.moved(look.bounds)
        assert isinstance(spend.law, Law)
        assert spend.sensitivity == type(spend.law).sensitivity(moved)
        assert spend.law == type(spend.law).bought(spend.amount, moved)


def test_what_is_left_out_is_told_of_any_look_and_all_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, plain = [], windows.ends

    def heard(axis: Any, noisy: Any, cells: Any, law: Any, rows: Any, far: Any, wrong: Any) -> Any:
        told.append(wrong)
        return plain(axis, noisy, cells, law, rows, far, wrong)

    monkeypatch.setattr(searching, "ends", heard)
    _published(POINTS, rigged(constant(0), epsilon=2))
    assert len(told) == 2
    assert sum(told) * (searching.MOST_ROUNDS + 1) <= (1 - windows.SURE) * 1.000001


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("epsilon", ["0.01", "1"])
def test_where_nothing_shows_sums_are_not_asked_instead(columns: int, epsilon: str) -> None:
    """Noise alone, for an empty table and for a full one: the same looks at the same price."""
    full = np.random.default_rng(9).normal(size=(5_000, columns)) + 40.0
    told = []
    for points in (full[:0], full):
        source, search = open_points(points), Search((None,) * columns, with_shape=True)
        frame = Wish(AUTO, None).frame(columns)
        looks: list[Any] = []

        def taken(
            look: Any, source: Any = source, frame: Any = frame, looks: list[Any] = looks
        ) -> Any:
            looks.append([axis.edges.tolist() for axis in look.axes])
            return count_and_look(source, frame, [look], 1)[1][0]

        sums = count_and_look(source, frame, [search.first], 1)[1][0]
        budget = rigged(epsilon=epsilon)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searching, "_with_noise", _silent)
            scale = search.run(sums, budget, 5_000.0, taken)
        told.append((looks, budget.spends, scale.ends, scale.stds.tolist()))
    assert told[0] == told[1]


def _silent(parts: Any, budget: Budget, spend: Any) -> list[Array]:
    return [np.zeros(len(part)) for part in parts]


def test_looks_never_cost_more_than_their_part() -> None:
    """Sums that make the search look again and again, after a count that took half of it all."""
    generator = np.random.default_rng(12)

    def taken(look: Any) -> Any:
        (axis,) = look.axes
        sums = np.zeros(axis.cells, dtype=np.int64)
        first = generator.integers(axis.cells // 2)
        if generator.random() < 0.5:
            sums[[0, -1]] = 150
        else:
            sums[first : first + max(axis.cells // 3, 1)] = 900 // axis.cells
            sums[-1] = 25 * generator.integers(2)
        return sums

    costs = []
    for _ in range(60):
        budget, search = rigged(constant(0), epsilon=1), Search((None,), with_shape=True)
        half = Amount(epsilon=Fraction(1, 2))
        budget.spend("count", half, law_of_a_number(half), COUNT)
        sums = np.zeros(search.first.bounds.cells, dtype=np.int64)
        sums[[len(sums) // 3, 2 * len(sums) // 3]] = 150
        search.run(sums, budget, 300.0, taken)
        costs.append(sum(spend.amount.epsilon or 0 for spend in budget.spends[1:]))
    assert max(costs) <= searching.MOST_PAID
    assert max(costs) > Fraction(3, 10)


SEARCH = Search((None, (-5.0, 5.0)), with_shape=True)
AUDITED = 400
"""ε of a budget the least share of which, one in four hundred, is 1."""
ROWS = 1000.0
NEIGHBOURS = (np.zeros((0, 2)), np.array([[1e308, 4.9]]), np.array([[-2.0, -4.9]]))


def _first_price(budget: Budget) -> searching.Price:
    return SEARCH._first_price(budget, SEARCH.first.bounds, ROWS)


def _begun(cells: list[int], adjacency: str, make: Noise = draw) -> Callable[[Array, int], Array]:
    """Return a mechanism that tells the first noisy histograms, as the search sees them."""
    frame = Wish(AUTO, None).frame(2)

    def mechanism(points: Array, trials: int) -> Array:
        sums = count_and_look(open_points(points), frame, [SEARCH.first], 1)[1][0]
        told = []
        plain = searching._with_noise

        def heard(*arguments: Any) -> list[Array]:
            told.append(np.concatenate(noisy := plain(*arguments)))
            return noisy

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searching, "_with_noise", heard)
            for _ in range(trials):
                budget = rigged(make, epsilon=AUDITED, adjacency=adjacency)
                SEARCH._begun(sums, _first_price(budget), budget, ROWS)
                assert budget.spends[0].amount.epsilon == 1
        return np.array(told)[:, cells]

    return mechanism


TRIALS = 4000


@pytest.mark.audit
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_histograms_cost_what_they_say(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record beyond all others, added, or exchanged for one elsewhere. Too little noise is seen.

    With the bounds of one column, or of add-remove, a record would cost twice.
    """
    left = NEIGHBOURS[0] if adjacency == "add-remove" else NEIGHBOURS[2]
    right = NEIGHBOURS[1]
    frame = Wish(AUTO, None).frame(2)
    exact = [
        count_and_look(open_points(points), frame, [SEARCH.first], 1)[1][0]
        for points in (left, right)
    ]
    cells = _exact_cells(exact, adjacency)
    assert len(cells) == 2 * (1 + (adjacency == "replace"))
    monkeypatch.setattr(searching, "_found", lambda *_: None)  # what follows is not told
    assert not audit(_begun(cells, adjacency), left, right, trials=TRIALS).refutes(1)
    quiet = _begun(cells, adjacency, shrunk(Fraction(1, 4)))
    assert audit(quiet, left, right, trials=TRIALS).refutes(1)


def _exact_cells(exact: list[NDArray[np.int64]], adjacency: str) -> list[int]:
    """Return in which cells the first histograms of two tables differ, without noise."""
    told: list[Array] = []
    plain = searching._with_noise
    with pytest.MonkeyPatch.context() as patch:

        def heard(*arguments: Any) -> list[Array]:
            told.append(np.concatenate(noisy := plain(*arguments)))
            return noisy

        patch.setattr(searching, "_with_noise", heard)
        for sums in exact:
            budget = rigged(constant(0), epsilon=AUDITED, adjacency=adjacency)
            SEARCH._begun(sums, _first_price(budget), budget, ROWS)
    return [int(cell) for cell in np.flatnonzero(told[0] != told[1])]


def _scales(make: Noise) -> Callable[[Array, int], Array]:
    """Return a mechanism that tells bounds and the scale of one column, as found at ε = 1."""
    frame, search = Wish(AUTO, None).frame(1), Search((None,), with_shape=False)

    def mechanism(points: Array, trials: int) -> Array:
        def taken(look: Any) -> Any:
            return count_and_look(open_points(points), frame, [look], 1)[1][0]

        first, told = taken(search.first), []
        for _ in range(trials):
            scale = search.run(first, rigged(make, epsilon=1), 300.0, taken)
            told.append([*scale.ends[0][:2], *scale.stds])
        return np.array(told)

    return mechanism


@pytest.mark.audit
def test_bounds_of_neighbours_whose_extremes_differ() -> None:
    """One record more, far out, with which bounds differ where there is no noise.

    A search that forgot its noise would tell the two apart every time: that is seen.
    """
    once, trials = _scales(constant(0)), 120

    def silent(points: Array, trials: int) -> Array:
        return np.repeat(once(points, 1), trials, axis=0)

    first = silent(np.full((80, 1), 1e6), 1)
    counts = (np.full((count, 1), 1e6) for count in range(81, 400))
    more = next(points for points in counts if (silent(points, 1) != first).any())
    assert audit(silent, more[1:], more, trials=trials).refutes(1)
    assert not audit(_scales(draw), more[1:], more, trials=trials).refutes(1)


TABLES: dict[str, Array] = {
    "nothing": np.zeros((0, 1)),
    "one": np.full((1, 1), 3.0),
    "not-finite": np.array([[np.nan], [np.inf], [-np.inf]] * 20),
    "largest": np.full((400, 1), 1.7976931348623157e308),
    "both-ends": np.array([[1e308], [-1e308]] * 300),
    "subnormal": np.random.default_rng(0).normal(size=(2000, 1)) * 1e-310,
    "constant": np.full((3000, 1), 7.25),
    "zeros": np.zeros((3000, 1)),
    "outliers": np.append(np.random.default_rng(0).normal(size=2000), [1e200] * 40)[:, np.newaxis],
}


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [*((name, "1") for name in TABLES), ("constant", "1e6"), ("both-ends", "1e6"), ("one", "1e-6")],
)
def test_any_table_publishes_without_a_word(name: str, epsilon: str) -> None:
    kernel = AUTO if epsilon == "1" else dpkde.Gaussian("silverman")
    release = dpkde.publish(
        TABLES[name], kernel=kernel, bounds="private", epsilon=epsilon, family="spline"
    )
    again = dpkde.Release.from_bytes(release.to_bytes())
    low, high = again.plan.domain.to_json()["bounds"][0]
    assert -1e150 <= low < high <= 1e150
    assert np.isfinite(again.kde(np.array([[low], [high], [0.0]]))).all()
    part = again.parts.of(FoundScale)
    assert part is not None
    assert part.bandwidth == kernel.bandwidth.rule


@pytest.mark.parametrize(
    ("points", "bandwidth"),
    [
        (np.random.default_rng(1).standard_cauchy((3000, 1)) * 1e20, 1.0),
        (np.random.default_rng(2).normal(size=(3000, 2)) * [1e150, 1.0], [1.0, 0.3]),
        (np.random.default_rng(3).normal(size=(3000, 2)) * 1e30, [[2.0, 1.0], [1.0, 2.0]]),
        (np.full((3000, 1), 1.7e308), 1e-3),
    ],
)
def test_a_bandwidth_that_is_far_too_small_narrows_bounds(points: Array, bandwidth: Any) -> None:
    """No table covers what was found: a refusal would leave nothing of what was paid."""
    release = dpkde.publish(
        points, kernel=dpkde.Gaussian(bandwidth), bounds="private", epsilon=8, family="spline"
    )
    part = release.parts.of(FoundScale)
    assert part is not None
    assert part.left_out == 1.0
    assert release.kernel == dpkde.Gaussian(bandwidth)
    low, high = np.array(release.plan.domain.to_json()["bounds"]).T
    assert (high - low <= 2**18).all()
    assert np.isfinite(release.kde(np.stack([low, high]))).all()


@pytest.mark.parametrize(
    "bounds",
    [
        [(1e9, 1e9 + 1e-6), (-5, 5), (-1e140, 1e140), (1.0, 1.0000000000000002)],
        [(-1e140, 1e140)] * 2 + [(0, 1)] * 2,
    ],
)
@pytest.mark.parametrize("rule", ["auto", "scott"])
def test_public_bounds_of_any_width_have_a_bandwidth(bounds: Any, rule: str) -> None:
    """Nothing overflows, and the bandwidth found is one of which a table fits."""
    points = np.random.default_rng(4).normal(size=(300, 4))
    for kernel, family in ((dpkde.Laplacian(rule), "hashing"), (dpkde.Gaussian(rule), "spline")):
        release = dpkde.publish(points, kernel=kernel, bounds=bounds, epsilon=20, family=family)
        assert np.isfinite(release.kernel.bandwidth.to_json()).all()


def test_many_duplicates() -> None:
    points, budget = np.full((1_000_000, 1), 1.5), rigged(constant(0), epsilon=1)
    release = _published(points, budget, dpkde.Gaussian("scott"))
    low, high = release.plan.domain.to_json()["bounds"][0]
    assert low <= 1.5 <= high


def test_what_is_found_without_noise() -> None:
    """Bounds hold all but the tails, near and far from zero; bandwidths suit each column."""
    release = _published(POINTS, rigged(constant(0), epsilon=2))
    spreads = (POINTS - POINTS.mean(axis=0)) / POINTS.std(axis=0)
    for k, (low, high) in enumerate(release.plan.domain.to_json()["bounds"]):
        ends = (np.array([low, high]) - POINTS[:, k].mean()) / POINTS[:, k].std()
        assert 2.5 < -ends[0] < 5.5
        assert 2.5 < ends[1] < 5.5
        assert abs(spreads[:, k]).max() < 5
    bandwidths = np.array(release.kernel.bandwidth.to_json()) / POINTS.std(axis=0)
    assert ((bandwidths > 0.2) & (bandwidths < 0.6)).all()
    assert bandwidths.max() < 1.3 * bandwidths.min()
    far = _published(POINTS[:, :1] * 1e4 + 1.6e9, rigged(constant(0), epsilon=2))
    low, high = far.plan.domain.to_json()["bounds"][0]
    assert 1.6e9 - 4e4 < low < high < 1.6e9 + 1e5


def test_public_bounds_stay_and_ranges_save_a_look() -> None:
    given = dpkde.publish(POINTS, kernel=AUTO, bounds=[(0, 6), (-20, 5)], epsilon=2)
    assert given.plan.domain == dpkde.Box([(0, 6), (-20, 5)])
    part = given.parts.of(FoundScale)
    assert part is not None
    assert part.left_out is None
    assert "scale" in [spend.purpose for spend in given.privacy.spends]
    ranged = _published(
        POINTS,
        rigged(constant(0), epsilon=2),
        dpkde.Gaussian([0.3, 1.0]),
        ranges=[(-5, 15), (-30, 20)],
    )
    assert [spend.purpose for spend in ranged.privacy.spends] == ["count", "scale", "table"]
    assert ranged.kernel == dpkde.Gaussian([0.3, 1.0])
    for (low, high), (least, most) in zip(
        ranged.plan.domain.to_json()["bounds"], [(-5, 15), (-30, 20)], strict=True
    ):
        assert least <= low < high <= most


@pytest.mark.parametrize("kernel", [dpkde.Laplacian("auto"), dpkde.Matern(1.5, "auto")])
def test_other_kernels_and_no_bounds(kernel: Any) -> None:
    release = dpkde.publish(POINTS[:2000], kernel=kernel, epsilon=2)
    assert release.kernel.name == kernel.name
    assert isinstance(release.kernel.bandwidth.to_json(), list)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.1, "eta": 0.1, "bounds": "private"}, "alpha and eta go with"),
        ({"bounds": "private", "ranges": [(0, 1)]}, "ranges= has 1 entries"),
        ({"bounds": "private", "ranges": [(1, 0), None]}, "reversed"),
        ({"bounds": "private", "ranges": 3}, "ranges must be"),
        ({"bounds": [(0, 1)] * 2, "ranges": [(0, 1)] * 2}, "these bounds are public"),
        ({"bounds": "secret"}, "bounds='private' is for"),
        ({"kernel": dpkde.Gaussian(1.0), "ranges": [(0, 1)] * 2}, "ranges= goes with"),
        ({"kernel": dpkde.Geodesic(), "bounds": "private"}, "lives on the sphere"),
        ({"kernel": dpkde.RationalQuadratic(0.5, "auto")}, "is found for densities"),
    ],
)
def test_what_cannot_be_found_is_refused_before_anything_is_spent(
    settings: dict[str, Any], message: str
) -> None:
    asked: dict[str, Any] = {"kernel": AUTO, "epsilon": 1} | settings
    with pytest.raises(dpkde.ParameterError, match=message):
        dpkde.publish(POINTS, **asked)


def test_what_needs_numbers_says_so() -> None:
    with pytest.raises(dpkde.ParameterError, match="read only once"):
        dpkde.publish(iter([POINTS]), kernel=AUTO, bounds=[(0, 1)] * 2, epsilon=1)
    with pytest.raises(dpkde.ParameterError, match=r"pays about \d.*for bounds and bandwidth"):
        dpkde.plan(kernel=AUTO, bounds="private", epsilon=1, expected_rows=10_000, dim=2)
    with pytest.raises(dpkde.ParameterError, match="counts the records"):
        dpkde.plan(kernel=AUTO, bounds=[(0, 1)], epsilon=1)
    with pytest.raises(dpkde.ParameterError, match="is found by dpkde"):
        dpkde.nonprivate.kde(POINTS, POINTS[:2], AUTO)
    plan = dpkde.plan(kernel=dpkde.Gaussian(1.0), bounds=[(0, 1)], epsilon=1, expected_rows=100)
    with pytest.raises(dpkde.ParameterError, match="already fixed by the plan: bounds, ranges"):
        dpkde.publish(POINTS[:, :1], plan=plan, bounds="private", ranges=[None], epsilon=1)
