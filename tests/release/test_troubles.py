"""What a release tells of its own trouble: tables that have it, and tables that stay silent.

Nothing here fails by chance. Tables that must stay silent are further from every threshold than
their noise goes, but for a probability below 10⁻⁹ (`test_margins`). Where noise itself is the
trouble, it is drawn from a seed.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from commands import dpkde_
from contracts.rigged import install
from dpkde.privacy.laws import Law
from dpkde.release import troubles as troubling
from dpkde.release.parts import ExpectedRows

GENERATOR = np.random.default_rng(7)
SQUARE = GENERATOR.uniform(0, 1, (4000, 2))
CLOUD = GENERATOR.normal(0, 1, (4000, 2))
WAITS = GENERATOR.exponential(1, (4000, 2))
KERNEL = dpkde.Gaussian(0.2)
PLAIN: dict[str, Any] = {"kernel": KERNEL, "bounds": [(0, 1)] * 2, "epsilon": 1}

HAVE: dict[str, list[tuple[NDArray[np.float64], dict[str, Any]]]] = {
    "few-records": [(SQUARE[:0], {}), (np.full((4000, 2), np.nan), {})],
    "fewer": [(SQUARE, {"expected_rows": 100_000}), (SQUARE[:0], {"expected_rows": 4000})],
    "at-bounds": [
        (2 * SQUARE, {}),  # half of the records beyond each upper bound
        (SQUARE - 9, {}),  # all of them beyond the lower ones
        (SQUARE - 9, {"kernel": dpkde.Gaussian(0.5)}),  # the same, in bounds of few bandwidths
        (2 * SQUARE, {"kernel": dpkde.Laplacian(0.1), "epsilon": 4}),
        (2 * SQUARE, {"family": "fastgauss"}),
    ],
    "noise": [(SQUARE, {"kernel": dpkde.Gaussian(0.003), "epsilon": "0.2"})],
    "bandwidth": [(SQUARE, {"kernel": dpkde.Gaussian(0.01), "epsilon": "0.4"})],
    "epsilon": [
        (SQUARE, {"epsilon": "10.001"}),
        (SQUARE, {"epsilon": None, "rho": 3}),
        (SQUARE, {"epsilon": 11, "delta": 1e-6}),
    ],
}
HAVE_NOT: dict[str, list[tuple[NDArray[np.float64], dict[str, Any]]]] = {
    "few-records": [(SQUARE, {})],
    "fewer": [
        (SQUARE, {"expected_rows": 4000}),
        (SQUARE, {"expected_rows": 6000}),
        (SQUARE, {"expected_rows": 10}),
        (SQUARE, {"expected_rows": 4000, "adjacency": "replace"}),
    ],
    "at-bounds": [
        (SQUARE, {}),  # as dense at the bounds as anywhere
        (2 * SQUARE, {"bounds": dpkde.Box([(0, 1)] * 2, outside="drop")}),
        (CLOUD, {"bounds": [(-4, 4)] * 2, "kernel": dpkde.Gaussian(0.8)}),
        (CLOUD, {"bounds": [(-2, 2)] * 2}),  # 2.3% beyond each bound
        (np.abs(CLOUD), {"bounds": [(0, 4)] * 2}),  # densest at the lower bound
        (WAITS, {"bounds": [(0, 12)] * 2, "kernel": dpkde.Gaussian(0.7)}),  # falls fast from there
        (SQUARE, {"kernel": dpkde.Gaussian(0.5)}),
        (SQUARE[:, :1] * 0.4, {"bounds": [(0, 1)], "kernel": dpkde.Gaussian(0.5)}),
    ],
    "noise": [(SQUARE, {}), (CLOUD, {"bounds": None, "kernel": dpkde.Gaussian(1.0)})],
    "bandwidth": [(SQUARE, {}), (CLOUD, {"bounds": None, "kernel": dpkde.Gaussian(1.0)})],
    "epsilon": [(SQUARE, {"epsilon": 10}), (SQUARE, {"epsilon": None, "rho": 1})],
}


def published(points: Any, changes: dict[str, Any]) -> dpkde.Release:
    return dpkde.publish(points, **{**PLAIN, **changes})


def seeded(seed: int) -> Any:
    """Return noise of the right size that is the same in every run."""
    generator = np.random.default_rng(seed)

    def make(law: Law, size: int) -> NDArray[np.int64]:
        scale = math.sqrt(law.variance / 2)
        return np.rint(generator.laplace(0, scale, size)).astype(np.int64)

    return make


def codes(release: dpkde.Release) -> set[str]:
    return {trouble.code for trouble in release.troubles}


CASES = [
    pytest.param(code, *case, has, id=f"{code}-{has}-{number}")
    for has, cases in ((True, HAVE), (False, HAVE_NOT))
    for code, several in cases.items()
    for number, case in enumerate(several)
]


@pytest.mark.parametrize(("code", "points", "changes", "has"), CASES)
def test_troubles_are_told_where_they_are(
    code: str,
    points: NDArray[np.float64],
    changes: dict[str, Any],
    has: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if has:
        install(monkeypatch, seeded(11))
    release = published(points, changes)
    assert (code in codes(release)) == has
    if not has:
        assert not codes(release)
    for trouble in release.troubles:
        assert trouble.sentence
        assert trouble.advice
    again = dpkde.Release.from_bytes(release.to_bytes())
    assert again.troubles == release.troubles  # the file tells all of it


def test_every_kind_has_both() -> None:
    table = troubling.__doc__ or ""
    kinds = {word.strip("`") for word in table.split() if word.startswith("``") and "-" not in word}
    assert set(HAVE) == set(HAVE_NOT)
    assert {"fewer", "noise", "bandwidth", "epsilon"} <= kinds & set(HAVE)


def test_margins() -> None:
    """A quiet release is further from each threshold than noise goes, but for 10⁻⁹.

    6.1 standard errors of a typical answer, for what a square and a cloud are asked; the law's own
    margin for the count.
    """
    for points, changes in HAVE_NOT["noise"]:
        release = published(points, changes)
        error, level = troubling._error(release), troubling._typical(release)
        assert level.value > 4 * error + (troubling.SURE + 6.1) * level.error
        law = release.law("count")
        assert law is not None
        spread = math.sqrt(law.variance)
        assert 6000 / 2 + law.margin(1e-9) < 4000
        assert 4000 - law.margin(1e-9) > troubling.FEW * spread


def test_publish_warns_and_loading_does_not(tmp_path: Path) -> None:
    with pytest.warns(dpkde.ReleaseWarning, match="many records lie at the bounds") as caught:
        release = published(2 * SQUARE, {})
    assert [Path(each.filename).name for each in caught] == [Path(__file__).name]
    assert issubclass(dpkde.ReleaseWarning, UserWarning)
    release.save(tmp_path / "r.dpkde")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = dpkde.load(tmp_path / "r.dpkde")
        assert again.troubles == release.troubles
        assert not published(SQUARE, {}).troubles  # and no warning either
    plan = dpkde.plan(**PLAIN, expected_rows=4000)
    with pytest.warns(dpkde.ReleaseWarning):
        dpkde.publish(2 * SQUARE, plan=plan, epsilon=1)
    with pytest.warns(dpkde.ReleaseWarning):
        dpkde.publish(dpkde.sketch(2 * SQUARE, plan), epsilon=1)


def test_a_warning_that_is_an_error_loses_nothing(tmp_path: Path) -> None:
    ledger = dpkde.Ledger.create(tmp_path / "ledger.db", dataset="squares", epsilon=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpkde.ReleaseWarning) as caught:
            published(2 * SQUARE, {"ledger": ledger})
    release = caught.value.release
    assert release.troubles[0] == caught.value.trouble
    assert "at the upper bound of column 0" in str(caught.value)
    release.save(tmp_path / "r.dpkde")
    assert dpkde.load(tmp_path / "r.dpkde") == release
    assert ledger.spent().epsilon == 1


def test_what_goes_wrong_in_telling_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(release: dpkde.Release) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(troubling, "troubles", interrupted)
    assert published(SQUARE, {}).count > 0


def test_a_guess_is_kept_only_where_it_is_refuted() -> None:
    """One that is near the truth might be the truth, and a file must not hold that."""
    law = published(SQUARE, {}).law("count")
    assert law is not None
    margin = law.margin(troubling.CHANCE)
    for count, guess in itertools.product((1, 500, 4000, 10**6), (1, 4000, 10**5, 10**8)):
        kept = troubling.refuted(guess, count, law)
        assert bool(kept) == (2 * (count + margin) < guess)
        # Every number of records that the count allows for is below half of what is kept.
        assert all(part.rows > 2 * (count + margin) for part in kept)
    assert not troubling.refuted(None, 1, law)
    near = published(SQUARE, {"expected_rows": 4000})
    assert near.format_version == 1
    assert not near.parts
    assert b"4000" not in near.to_bytes()
    far = published(SQUARE, {"expected_rows": 100_000})
    assert far.parts.of(ExpectedRows) == ExpectedRows(100_000)
    assert dpkde.Release.from_bytes(far.to_bytes()) == far
    # A plan's guess counts too, as long as the plan is at hand.
    plan = dpkde.plan(**PLAIN, expected_rows=100_000)
    assert "fewer" in codes(dpkde.publish(SQUARE, plan=plan, epsilon=1))
    assert "fewer" not in codes(dpkde.publish(SQUARE, plan=plan, epsilon=1, expected_rows=4000))
    with pytest.raises(dpkde.ParameterError):
        ExpectedRows(0)


def test_a_wider_kernel_helps_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told of it is what a release made for it shows."""
    install(monkeypatch, seeded(11))
    points, changes = HAVE["bandwidth"][0]
    release = published(points, changes)
    (trouble,) = (each for each in release.troubles if each.code == "bandwidth")
    times = float(trouble.advice.split("scaled(")[1].split(")")[0])
    wider = published(points, {**changes, "kernel": release.kernel.scaled(times)})
    assert not wider.troubles
    assert troubling._error(wider) < troubling._typical(wider).value / 6
    view = release.with_kernel(release.kernel.scaled(times))  # the advice that costs nothing
    assert troubling._typical(view).value == pytest.approx(troubling._typical(wider).value, rel=0.5)


def test_a_declared_rho_is_told_as_epsilon() -> None:
    """ρ = 1 is ε = 8.4 at δ = 10⁻⁶, and 3 is 15: by the statement's own conversion."""
    for rho, above in ((1, False), (3, True)):
        release = published(SQUARE, {"epsilon": None, "rho": rho})
        epsilon = release.privacy.epsilon_at(Fraction(1, 10**6))
        assert (epsilon > 10) == above == ("epsilon" in codes(release))


@pytest.mark.parametrize(
    ("bounds", "outside"),
    [
        ([(0, 1)] * 2, [True, True, False, False, False, False]),
        (dpkde.Box([(0, 1)] * 2, outside="drop"), [True, True, False, False, False, False]),
        (dpkde.Ball((0, 0), 1.0), [False, True, False, True, False, False]),
        (None, [False] * 6),
    ],
    ids=["box", "drop", "ball", "none"],
)
def test_queries_outside_the_bounds(bounds: Any, outside: list[bool]) -> None:
    release = published(SQUARE, {"bounds": bounds})
    queries = [[-0.1, 0.5], [2, 2], [0, 1], [1, 1], [0.3, 0.7], [math.nan, 0.5]]
    assert release.outside(queries).tolist() == outside
    assert release.marginal if bounds is None else not release.outside(SQUARE[:0]).size


def test_directions_are_nowhere_outside() -> None:
    release = dpkde.publish(CLOUD, kernel=dpkde.Geodesic(), epsilon=1)
    assert not release.outside([[3.0, 4.0], [0.0, 0.0]]).any()


def test_the_commands_tell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("wide.npy", 2 * SQUARE)
    np.save("square.npy", SQUARE)
    options = ["--bounds", "0:1,...", "--bandwidth", "0.2", "--epsilon", "1", "-o", "r.dpkde"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, _, err = dpkde_("publish", "wide.npy", *options, capsys=capsys)
    assert code == 0
    assert err.startswith("dpkde: note: many records lie at the bounds")
    assert len(err.splitlines()) == 1
    assert dpkde_("publish", "wide.npy", *options, "-q", capsys=capsys)[2] == ""
    _, out, _ = dpkde_("inspect", "r.dpkde", capsys=capsys)
    assert "\ntrouble    many records lie at the bounds" in out
    _, out, _ = dpkde_("inspect", "r.dpkde", "--json", capsys=capsys)
    (told,) = json.loads(out)["troubles"]
    assert told["code"] == "at-bounds"
    assert set(told) == {"code", "sentence", "advice"}
    code, out, err = dpkde_("query", "r.dpkde", "0.5,0.5", "3,3", "9,0.5", capsys=capsys)
    assert code == 0
    (note,) = err.splitlines()
    assert "2 of 3 points lie outside the bounds" in note
    assert "moved to them" in note
    assert dpkde_("query", "r.dpkde", "0.5,0.5", "3,3", "-q", capsys=capsys)[2] == ""
    drop = ["--outside", "drop"]
    assert dpkde_("publish", "square.npy", *options, *drop, capsys=capsys)[2] == ""
    assert "left out" in dpkde_("query", "r.dpkde", "3,3", capsys=capsys)[2]
    assert dpkde_("query", "r.dpkde", "0.5,0.5", capsys=capsys)[2] == ""
    _, out, _ = dpkde_("inspect", "r.dpkde", "--json", capsys=capsys)
    assert json.loads(out)["troubles"] == []
    few = ["--bounds", "0:1,...", "--bandwidth", "0.2", "--epsilon", "0.001", "-o", "r.dpkde"]
    _, _, err = dpkde_("publish", "square.npy", *few, "--expected-rows", "1e7", capsys=capsys)
    assert "this release says next to nothing" in err
    assert "--columns, --thousands, --decimal" in err
    assert (
        "this release says next to nothing (dpkde inspect)"
        in dpkde_("query", "r.dpkde", "0.5,0.5", capsys=capsys)[2]
    )
