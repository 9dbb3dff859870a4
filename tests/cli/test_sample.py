"""``dpkde sample``: files, names, bounds, notes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpkde
from commands import GOOD, dpkde_


@pytest.fixture
def release(table: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert (
        dpkde_("publish", table, "-o", "r.dpkde", *GOOD, "--columns", "lon,lat", capsys=capsys)[0]
        == 0
    )
    return "r.dpkde"


def test_csv_and_parquet_hold_the_same(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["sample", release, "-n", "300", "--seed", "5"]
    code, out, err = dpkde_(*ask, capsys=capsys)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "lon,lat"
    assert len(out.splitlines()) == 301
    for name in ("s.csv", "s.parquet"):
        assert dpkde_(*ask, "-o", name, capsys=capsys) == (0, "", "")
    frame = pd.read_parquet("s.parquet")
    assert np.array_equal(np.loadtxt("s.csv", delimiter=",", skiprows=1), frame.to_numpy())
    assert Path("s.csv").read_text() == out
    points = dpkde.Release.load(release).sample(300, seed=5, support="bounds")
    assert list(frame.columns) == ["lon", "lat"]
    assert np.array_equal(frame.to_numpy(), points)
    assert ((points >= 0) & (points <= 1)).all()


def test_options(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = dpkde.Release.load(release)
    base = ["sample", release, "-n", "2e3", "--seed", "5", "-o", "s.parquet"]
    for typed, options in (
        (["--support", "space"], {}),
        (["--no-smoothed"], {"support": "bounds", "smoothed": False}),
    ):
        assert dpkde_(*base, *typed, capsys=capsys)[0] == 0
        drawn = loaded.sample(2000, seed=5, **options)  # type: ignore[arg-type]
        assert np.array_equal(pd.read_parquet("s.parquet").to_numpy(), drawn)
    code, out, err = dpkde_(*base, "--report", capsys=capsys)
    assert (code, out) == (0, "")
    assert "KDE of 2000 points" in err


def test_models_are_told(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--family", "fourier", "--frequencies", "64", "--bandwidth", "0.5"]
    good = ["--bounds", "0:1,0:1", "--epsilon", "1", "--columns", "lon,lat"]
    assert dpkde_("publish", table, "-o", "f.dpkde", *good, *options, capsys=capsys)[0] == 0
    code, out, err = dpkde_("sample", "f.dpkde", "-n", "3", capsys=capsys)
    assert code == 0
    assert out.splitlines()[0] == "lon,lat"
    assert err == (
        "dpkde: note: this is the density of the model that was fitted to the release, without "
        "the correction that kde adds\n"
    )


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["-o", "s.xlsx"], "neither .csv nor .parquet"),
        (["-n", "-3"], "--n must be a whole number"),
        (["-n", "many"], "a whole number such as"),
        (["--seed", "-1"], "--seed must be a whole number, not negative, got -1"),
        (["--support", "sky"], "sky"),
        (["--report", "-n", "5"], "at least 100 points"),
    ],
)
def test_what_is_refused(
    typed: list[str], message: str, release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = dpkde_("sample", release, *typed, capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err


def test_a_report_of_too_few_points_leaves_no_file(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dpkde_("sample", release, "-n", "3", "--report", "-o", "s.csv", capsys=capsys)[0] == 2
    assert not Path("s.csv").exists()
