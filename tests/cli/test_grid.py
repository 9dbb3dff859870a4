"""``dpkde grid``, and the bar of ``dpkde query``."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpkde
from commands import GOOD, dpkde_

DPKDE = [sys.executable, "-m", "dpkde"]


@pytest.fixture
def release(table: str, capsys: pytest.CaptureFixture[str]) -> dpkde.Release:
    arguments = ["-o", "r.dpkde", "--columns", "lon,lat", *GOOD, "--no-pilot"]
    assert dpkde_("publish", table, *arguments, capsys=capsys)[0] == 0
    return dpkde.Release.load("r.dpkde")


def test_a_map_as_a_file(release: dpkde.Release, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["grid", "r.dpkde", "--shape", "6x4", "-o"]
    assert dpkde_(*typed, "m.csv", capsys=capsys) == (0, "", "")
    with Path("m.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["lon", "lat", "kde", "standard_error"]
    numbers = np.array(rows, dtype=float)
    assert numbers.shape == (24, 4)
    assert numbers[:, 2] == pytest.approx(release.kde(numbers[:, :2]), rel=1e-9)
    assert dpkde_(*typed, "m.npy", "--plain", "-q", capsys=capsys)[0] == 0
    assert np.load("m.npy") == pytest.approx(release.grid((6, 4)).values)


def test_bounds_of_the_map(release: dpkde.Release, capsys: pytest.CaptureFixture[str]) -> None:
    for bounds, ends in (("0:2,-1:1", [(0, 2), (-1, 1)]), ("-1:3,...", [(-1, 3)] * 2)):
        typed = ["--shape", "5", "--extent", bounds, "-o", "m.npy"]
        assert dpkde_("grid", "r.dpkde", *typed, capsys=capsys)[0] == 0
        assert np.array_equal(np.load("m.npy"), release.grid(5, ends).values)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--shape 6x4 -o m.txt", "ends in .csv"),
        ("--shape 6xx4 -o m.csv", "--shape must be numbers of places such as 200x100"),
        ("--shape many -o m.csv", "--shape must be numbers of places such as 200x100"),
        ("--shape 6x4x2 -o m.csv", "shape has 3 numbers, the release 2 columns"),
        ("--shape 0 -o m.csv", "--shape must have whole numbers from 1 on"),
        (
            "--shape 6 --extent 0:1,3:1 -o m.csv",
            "--extent must have low below high, got 3:1 for column lat: write 1:3",
        ),
        ("--shape 6 --extent 0:inf,... -o m.csv", "must be finite, got 0:inf for column lon"),
        ("--shape 6 --extent 0:1 -o m.csv", "--extent has one low:high for 2 columns"),
        ("--shape 6 --extent 0:1,0:1,0:1 -o m.csv", "--extent must be low:high for each of 2"),
        ("--shape 6 --extent 0:1,2:2 -o m.csv", "column lat are (2.0, 2.0): a slice"),
        ("--shape 6 --extent 0,1 -o m.csv", "--extent must be low:high"),
        ("--shape 6 --crs EPSG:4326 -o m.csv", "crs goes with a GeoTIFF"),
        ("--shape 6 -o nowhere/m.csv", "there is no folder nowhere"),
        ("--shape 6", "Missing option '--output'"),
        ("-o m.csv", "Missing option '--shape'"),
    ],
)
@pytest.mark.usefixtures("release")
def test_wrong_turns(typed: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = dpkde_("grid", "r.dpkde", *typed.split(), capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not Path("m.csv").exists()


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("typed", ["grid r.dpkde --shape 3 -o", "sample r.dpkde -n 9 -o"])
def test_a_release_is_not_written_over(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is called; any other file is."""
    before = Path("r.dpkde").read_bytes()
    Path("m.csv").write_bytes(before)
    code, out, err = dpkde_(*typed.split(), "m.csv", capsys=capsys)
    assert (code, out) == (2, "")
    assert "m.csv is a dpkde-release file; it is not overwritten" in err
    assert Path("m.csv").read_bytes() == before
    Path("m.csv").write_bytes(b"a,b\n" * 100)
    assert dpkde_(*typed.split(), "m.csv", capsys=capsys)[0] == 0
    assert Path("m.csv").read_text().startswith("lon,lat")


def test_a_bad_file_of_points_prints_no_header(
    release: dpkde.Release, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("q.csv").write_text("lon\n1\n")
    code, out, err = dpkde_("query", "r.dpkde", "--points", "q.csv", capsys=capsys)
    assert (code, out) == (2, "")
    assert err.startswith("dpkde: ")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    ("options", "to_terminal", "shown"),
    [([], False, True), (["-q"], False, False), ([], True, False)],
)
def test_a_long_query_shows_how_far_it_is(
    options: list[str], to_terminal: bool, shown: bool
) -> None:
    """Where answers go to a file; where they go to the terminal, there is no bar between them."""
    import pty

    np.savetxt("q.csv", np.zeros((50, 2)), delimiter=",", header="lon,lat", comments="")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*DPKDE, "query", "r.dpkde", "--points", "q.csv", *options],
        stderr=theirs,
        stdout=theirs if to_terminal else subprocess.DEVNULL,
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        output += more
    os.close(ours)
    assert child.wait() == 0
    assert (b"asking" in output) == shown
