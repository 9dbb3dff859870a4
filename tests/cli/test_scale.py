"""Bounds and bandwidth that are found, from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpkde
from commands import dpkde_
from dpkde.release.parts import FoundScale


@pytest.fixture
def trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of 4,000 points around a place far from zero."""
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).normal(size=(4000, 2)) * 0.1 + [-73.9, 40.7]
    np.savetxt("trips.csv", points, delimiter=",", header="a,b", comments="")
    return "trips.csv"


def test_nothing_else_is_needed(trips: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["-o", "r.dpkde", "--columns", "a,b", "--epsilon", "2", "--bounds", "private"]
    typed += ["--bandwidth", "auto", "--ranges=-180:180,-", "--family", "spline"]
    assert dpkde_("publish", trips, *typed, capsys=capsys)[0] == 0
    release = dpkde.Release.load("r.dpkde")
    (low, high), _ = release.plan.domain.to_json()["bounds"]
    assert -180 <= low < high <= 180
    told = dpkde_("inspect", "r.dpkde", capsys=capsys)[1]
    found = release.parts.of(FoundScale)
    assert found is not None
    assert found.left_out is not None
    assert (
        "found      privately: the bandwidth, by the rule auto; bounds, which leave out at most "
        f"{100 * found.left_out:.3g}% of any column's records, with probability 95%"
    ) in told
    assert "  - scale: ε = " in told


def test_a_settings_file_may_say_so(trips: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.toml").write_text(
        'columns = ["a"]\nbounds = "private"\nranges = [[-180, 180]]\nbandwidth = "scott"\n'
        "epsilon = 2\n"
    )
    typed = ["-o", "r.dpkde", "--settings", "s.toml"]
    assert dpkde_("publish", trips, *typed, capsys=capsys)[0] == 0
    assert dpkde.Release.load("r.dpkde").dim == 1


def test_plan_tells_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["--columns", "a,b", "--bounds", "private", "--bandwidth", "auto", "--epsilon", "0.1,1"]
    code, told, _ = dpkde_("plan", "--expected-rows", "100000", *typed, capsys=capsys)
    assert code == 0
    assert told.count("of the budget for bounds and bandwidth (auto)") == 2
    assert "error: known once bounds and bandwidth are" in told
    code, _, why = dpkde_("plan", *typed[:-1], "1", "-o", "p.plan", capsys=capsys)
    assert code != 0
    assert "a plan is made of numbers" in why


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--bounds private --outside drop --bandwidth 1", "--outside goes with public --bounds"),
        ("--bounds 0:1,0:1 --ranges 0:1,... --bandwidth 1", "--ranges goes with"),
        ("--bounds private --ranges 0:1 --bandwidth auto", "--ranges has one low:high for 2"),
        ("--bounds private --bandwidth wide", "separated by commas, or one of auto, scott"),
        ("--bounds auto --bandwidth auto", "such as 0:1,-5:5, or private; got 'auto'"),
        ("--bounds private --bandwidth auto --alpha 0.1 --eta 0.1", "go with bounds"),
    ],
)
def test_refusals(trips: str, typed: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-o", "r.dpkde", "--columns", "a,b", "--epsilon", "1", *typed.split()]
    code, _, why = dpkde_("publish", trips, *arguments, capsys=capsys)
    assert code != 0
    assert message in why
    assert not Path("r.dpkde").exists()
