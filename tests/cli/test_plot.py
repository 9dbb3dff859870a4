"""``dpkde plot``, and the pictures of other verbs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from commands import GOOD, dpkde_
from dpkde.plots import figure as figures

BEGIN = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def release(table: str, capsys: pytest.CaptureFixture[str]) -> dpkde.Release:
    arguments = ["-o", "r.dpkde", "--columns", "lon,lat", *GOOD, "--no-pilot"]
    assert dpkde_("publish", table, *arguments, capsys=capsys)[0] == 0
    return dpkde.Release.load("r.dpkde")


@pytest.mark.usefixtures("release")
def test_pictures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ending of the name; what is typed is what the library draws."""
    drawn: list[Any] = []
    save = figures.save

    def noted(picture: Any, path: Path) -> None:
        drawn.append(picture)
        save(picture, path)

    monkeypatch.setattr(figures, "save", noted)
    square = {"type": "Polygon", "coordinates": [[(0.2, 0.2), (0.8, 0.2), (0.5, 0.8)]]}
    Path("o.json").write_text(json.dumps(square))
    for typed in (
        "-o m.png",
        "-o m.svg --columns lat --dark --width 3.3 --title lat_$x$",
        "-o m.pdf --log --outlines o.json --shape 20x10 --extent 0:1,0.5:1 --no-denoised",
    ):
        assert dpkde_("plot", "r.dpkde", *typed.split(), capsys=capsys) == (0, "", "")
        path = Path(typed.split()[1])
        assert path.read_bytes().startswith(BEGIN[path.suffix[1:]])
    whole, curve, part = drawn
    assert whole.axes[0].images
    assert curve.axes[0].get_xlabel() == "lat"
    assert curve.axes[0].get_title() == "lat_$x$"
    assert curve.get_figwidth() == 3.3
    ours = dpkde.load("r.dpkde")
    expected = ours.grid((20, 10), [(0, 1), (0.5, 1)]).values.T / ours.kernel.integral(2)
    image = part.axes[0].images[0]
    assert np.asarray(image.get_array()) == pytest.approx(expected.clip(image.norm.vmin), rel=1e-9)
    assert [c.get_label() for c in part.axes[0].collections][-1] == "outlines"


@pytest.mark.usefixtures("release")
def test_a_difference(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["-o", "s.dpkde", "--columns", "lon,lat", *GOOD, "--no-pilot"]
    assert dpkde_("publish", table, *arguments, capsys=capsys)[0] == 0
    assert dpkde_("plot", "r.dpkde", "s.dpkde", "-o", "d.png", capsys=capsys) == (0, "", "")
    assert Path("d.png").read_bytes().startswith(BEGIN["png"])
    code, _, err = dpkde_("plot", *["r.dpkde"] * 3, "-o", "d.png", capsys=capsys)
    assert code == 2
    assert "got 3" in err
    code, _, err = dpkde_("plot", "r.dpkde", "s.dpkde", "-o", "d.png", "--log", capsys=capsys)
    assert code == 2
    assert "--log goes with one release" in err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("-o m.jpg", "a picture ends in .png, .svg, .pdf, got 'm.jpg'"),
        ("-o nowhere/m.png", "there is no folder nowhere"),
        ("-o r.dpkde", "a picture ends in"),
        ("", "Missing option '--output'"),
        ("-o m.png --columns speed", "no column 'speed': write one of 'lon', 'lat'"),
        ("-o m.png --width 400", "--width must be from 1.5 to 40 inches"),
        ("-o m.png --shape 0", "--shape must have whole numbers from 1 on"),
        ("-o m.png --shape wide", "--shape must be numbers of places"),
        ("-o m.png --extent 0:1,0:1,0:1", "--extent must be low:high for each of 2"),
        ("-o m.png --columns lon --extent 2:1", "write 1:2"),
        ("-o m.png --outlines t.csv", "t.csv is not a GeoJSON file"),
        ("-o m.png --columns lon --outlines o.json", "go on a map"),
    ],
)
@pytest.mark.usefixtures("release")
def test_wrong_turns(typed: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("o.json").write_text('{"type": "Polygon", "coordinates": []}')
    code, out, err = dpkde_("plot", "r.dpkde", *typed.split(), capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not Path("m.png").exists()


@pytest.mark.usefixtures("release")
def test_without_matplotlib(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "dpkde.plots.figure")
    plan = ["plan", "--expected-rows", "1e4", *GOOD, "--plot", "p.png"]
    for command in (["plot", "r.dpkde", "-o", "m.png"], plan):
        code, out, err = dpkde_(*command, capsys=capsys)
        assert (code, out) == (2, "")
        assert err == "dpkde: a picture needs matplotlib: pip install 'dpkde[plot]'\n"


def test_a_picture_of_a_plan(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", "--bounds", "0:1,0:1", "--bandwidth", "0.2", "--family", "spline", "--degree"]
    plan += ["3", "--spacing", "0.75", "--expected-rows", "1e4", "--plot"]
    code, out, _ = dpkde_(*plan, "p.svg", "--epsilon", "0.5,1", capsys=capsys)
    assert code == 0
    assert "ε = 0.5" in out
    assert Path("p.svg").read_bytes().startswith(BEGIN["svg"])
    promise = ["--alpha", "0.1", "--eta", "0.1"]
    code, _, err = dpkde_(*plan, "q.svg", "--epsilon", "1", *promise, capsys=capsys)
    assert code == 2
    assert "leave out --alpha and --eta" in err
    assert not Path("q.svg").exists()
