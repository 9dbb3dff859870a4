"""What commands say of answers, of slips, and of words that a file brings."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import dpkde
from commands import GOOD, POINTS, dpkde_
from contracts.rigged import constant, install


def test_intervals_are_checked_before_anything_is_printed(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dpkde_("publish", table, "-o", "r.dpkde", *GOOD, capsys=capsys)[0] == 0
    ask = ["query", "r.dpkde", "0.5,0.5"]
    for options, message in (
        (["--level", "95"], "level must be"),
        (["--bias", "worst"], "goes with --level"),
        (["--level", "0.9", "--bias", "none"], "--bias"),
    ):
        code, out, err = dpkde_(*ask, *options, capsys=capsys)
        assert (code, out) == (2, "")
        assert message in err
    widths = []
    for bias in ("typical", "worst"):
        _, out, _ = dpkde_(*ask, "--level", "0.9", "--bias", bias, capsys=capsys)
        (row,) = csv.DictReader(out.splitlines())
        widths.append(float(row["high"]) - float(row["low"]))
    assert widths[0] < widths[1]
    _, out, _ = dpkde_("query", "r.dpkde", "inf,0.5", "--format", "json", capsys=capsys)
    assert json.loads(out, parse_constant=pytest.fail)["x1"] is None


def test_a_slip_is_told_from_what_is_published(
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With no noise on what is published: else one run in some thousand would tell otherwise."""
    install(monkeypatch, constant(0))
    wide, free = "--bounds 0:1,0:1", "--bandwidth 0.2 --epsilon 1 -o r.dpkde"
    (tmp_path / "dates.csv").write_text("lon,lat\n" + "0.5,2026-11-16\n" * 2000)
    for command, words in (
        (f"publish t.csv {wide} {free}", []),
        (f"publish t.csv --bounds none {free}", ["without --bounds"]),
        (f"publish dates.csv {wide} {free}", ["this release says next to nothing"]),
        (
            f"publish dates.csv --bounds 0:1 {free} --columns lat --unit lon --rows-per-unit 2",
            ["only where there is an id"],
        ),
        (f"publish dates.csv {wide} {free} --quiet", []),
    ):
        code, out, err = dpkde_(*command.split(), capsys=capsys)
        assert (code, out) == (0, "")
        assert len(err.splitlines()) == len(words)
        assert all(text in err for text in words)


def test_words_of_a_file_cannot_pass_for_ours(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoof = "x\x1b[2J\x9b2J\n\nThis release is 0.0001-differentially private"
    dpkde.publish(
        POINTS, kernel=dpkde.Gaussian(0.2), bounds=[(0, 1)] * 2, epsilon=1, columns=[spoof, "y"]
    ).save("r.dpkde")
    for options in ([], ["--json"]):
        code, out, _ = dpkde_("inspect", "r.dpkde", *options, capsys=capsys)
        assert code == 0
        assert "\x1b" not in out
        assert "\x9b" not in out
        assert not [line for line in out.splitlines() if line.startswith("This release is 0.0001")]
    assert json.loads(out)["plan"]["columns"] == [spoof, "y"]
    for options in ([], ["--format", "json"]):
        code, out, _ = dpkde_("query", "r.dpkde", "0.5,0.5", *options, capsys=capsys)
        assert code == 0
        assert "\x1b" not in out
        assert not [line for line in out.splitlines() if line.startswith("This release is 0.0001")]
    assert list(json.loads(out))[:2] == [spoof, "y"]
    name = "Größe\u00a0(cm)"  # what only looks like a space stays what it is
    dpkde.publish(POINTS[:, :1], kernel=dpkde.Gaussian(0.2), epsilon=1, columns=[name]).save("s")
    assert dpkde_("query", "s", "0.5", capsys=capsys)[1].startswith(f"{name},kde,")
