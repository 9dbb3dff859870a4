"""``dpkde mass``: what it prints is what the library answers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import dpkde
from commands import POINTS, dpkde_
from contracts.rigged import constant, install

BOX = "lon=0.2:0.6,lat=:0.5"
SQUARE = [[0.2, 0.1], [0.6, 0.1], [0.6, 0.5], [0.2, 0.5], [0.2, 0.1]]


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dpkde.Release:
    monkeypatch.chdir(tmp_path)
    published = dpkde.publish(
        POINTS,
        kernel=dpkde.Gaussian(0.2),
        bounds=[(0, 1), (0, 1)],
        epsilon=1,
        family=dpkde.Spline(3, 0.6),
        columns=["lon", "lat"],
    )
    published.save("r.dpkde")
    return published


def _table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_boxes(release: dpkde.Release, capsys: Any) -> None:
    options = ("--box", BOX, "--box", "lat=0.5:", "--level", "0.9")
    code, out, _ = dpkde_("mass", "r.dpkde", *options, capsys=capsys)
    assert code == 0
    rows = _table(out)
    assert [row["region"] for row in rows] == [BOX, "lat=0.5:"]
    boxes = [{"lon": (0.2, 0.6), "lat": (None, 0.5)}, {"lat": (0.5, None)}]
    expected = {
        "mass": release.mass(boxes),
        "standard_error": release.mass_standard_error(boxes),
        "records": release.records(boxes),
        "records_standard_error": release.records_standard_error(boxes),
    }
    expected["low"], expected["high"] = release.mass_interval(boxes, 0.9)
    for name, values in expected.items():
        assert [float(row[name]) for row in rows] == pytest.approx(values.tolist(), rel=1e-8)
    out = dpkde_("mass", "r.dpkde", *options, "--bias", "typical", capsys=capsys)[1]
    low = release.mass_interval(boxes, 0.9, bias="typical")[0]
    assert [float(row["low"]) for row in _table(out)] == pytest.approx(low.tolist(), rel=1e-8)
    assert (low > expected["low"]).any()


def test_polygons(release: dpkde.Release, capsys: Any) -> None:
    geometry = {"type": "Polygon", "coordinates": [SQUARE]}
    features = [
        {"type": "Feature", "properties": {"name": "Mitte\x1b[2J"}, "geometry": geometry},
        {"type": "Feature", "id": 7, "properties": None, "geometry": geometry},
        {"type": "Feature", "properties": {}, "geometry": None},
    ]
    Path("c.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    options = ("--geojson", "c.json", "--format", "json")
    code, out, _ = dpkde_("mass", "r.dpkde", *options, capsys=capsys)
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["region"] for row in rows] == ["Mitte\\u001b[2J", "7", "region 3"]
    share = float(release.mass([(0.2, 0.6), (0.1, 0.5)]))
    assert [row["mass"] for row in rows] == pytest.approx([share, share, 0.0], abs=1e-6)
    Path("p.json").write_text(json.dumps(geometry))
    code, out, _ = dpkde_("mass", "r.dpkde", "--geojson", "p.json", capsys=capsys)
    assert code == 0
    assert float(_table(out)[0]["mass"]) == pytest.approx(share, abs=1e-6)


def test_records_that_were_moved_to_a_bound_are_noted_where_a_region_reaches_it(
    release: dpkde.Release, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    install(monkeypatch, constant(0))
    points = POINTS.copy()
    points[: len(points) // 20, 0] = -3.0
    for name, rows in (("h.dpkde", points), ("r.dpkde", POINTS)):
        dpkde.publish(rows, plan=release.plan, epsilon=1).save(name)
    Path("p.json").write_text(json.dumps({"type": "Polygon", "coordinates": [SQUARE]}))
    note = "records are heaped at 0, the lower bound of lon, or were moved there from beyond it"
    for options, noted in (
        (["--box", "lon=0:0.4"], True),
        (["--box", "lon=0.2:0.4", "--box", "lon=:0.4"], True),
        (["--box", "lat=0.2:0.4"], True),
        (["--box", "lon=0.2:0.4"], False),
        (["--box", "lon=0:0.4", "-q"], False),
        (["--geojson", "p.json"], True),
    ):
        code, _, err = dpkde_("mass", "h.dpkde", *options, capsys=capsys)
        assert code == 0
        assert (note in err) == noted
        assert err.count("\n") == noted
    assert dpkde_("mass", "r.dpkde", "--box", "lon=0:0.4", capsys=capsys)[2] == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give boxes with --box"),
        (["--box", BOX, "--geojson", "c.json"], "not both"),
        (["--box", "0.2:0.6"], "name=low:high"),
        (["--box", "lon=0.2"], "name=low:high"),
        (["--box", "long=0:1"], "no column 'long': lon, lat"),
        (["--box", "lon=a:b"], "must be numbers"),
        (["--box", "lon=0:1,lon=0:1"], "twice"),
        (["--box", "lon=1:0"], "reversed"),
        (["--box", BOX, "--level", "95"], "--level must be between 0 and 1"),
        (["--box", BOX, "--bias", "worst"], "--bias goes with --level"),
        (["--geojson", "none.json"], "none.json"),
        (["--geojson", "r.dpkde"], "not a GeoJSON file|codec"),
        (["--geojson", "bad.json"], "not a GeoJSON file"),
        (["--geojson", "point.json"], "Point has no area"),
        (["--geojson", "ring.json"], "needs 'coordinates', a list of rings"),
        (["--geojson", "features.json"], "needs 'features', a list of features: got 5"),
    ],
)
def test_wrong_use(release: dpkde.Release, options: list[str], words: str, capsys: Any) -> None:
    Path("bad.json").write_text("[1, 2]")
    Path("ring.json").write_text('{"type": "Polygon"}')
    Path("features.json").write_text('{"type": "FeatureCollection", "features": 5}')
    Path("point.json").write_text('{"type": "Point", "coordinates": [0, 0]}')
    code, out, err = dpkde_("mass", "r.dpkde", *options, capsys=capsys)
    assert (code, out) == (2, "")
    import re

    assert re.search(words, err)
    assert err.count("\n") == 1
