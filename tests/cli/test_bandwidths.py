"""``--bandwidth-std``: a bandwidth told as others tell it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dpkde
from commands import dpkde_

REST = ["--bounds", "0:1,0:1", "--epsilon", "1", "--expected-rows", "2000"]


@pytest.mark.parametrize(
    ("typed", "std"), [("0.1", 0.1), ("0.1,0.2", [0.1, 0.2])], ids=["one", "per column"]
)
def test_a_standard_deviation_in_place_of_a_bandwidth(
    typed: str, std: float | list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "p.plan")
    code, _, err = dpkde_("plan", *REST, "--bandwidth-std", typed, "-o", path, capsys=capsys)
    assert (code, err) == (0, "")
    kernel = dpkde.Plan.load(path).kernel
    assert kernel == dpkde.Gaussian.from_std(std)
    assert np.asarray(kernel.bandwidth.to_json()) == pytest.approx(math.sqrt(2) * np.asarray(std))


def test_what_it_goes_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for more, words in (
        (["--bandwidth", "0.2"], "give --bandwidth or --bandwidth-std, not both"),
        (["--kernel", "laplacian"], "--bandwidth-std goes with --kernel gaussian"),
        (["--kernel", "nonsense"], "--bandwidth-std goes with --kernel gaussian"),
    ):
        code, out, err = dpkde_("plan", *REST, "--bandwidth-std", "0.1", *more, capsys=capsys)
        assert (code, out) == (2, "")
        assert words in err
    # What is typed wins over either in a file; a file with both is refused.
    for name, typed, width in (
        ("bandwidth", ["--bandwidth-std", "0.1"], math.sqrt(2) / 10),
        ("bandwidth-std", ["--bandwidth", "0.1"], 0.1),
        ("bandwidth-std", [], math.sqrt(2) / 5),
    ):
        Path("s.toml").write_text(f"{name} = 0.2\n")
        settings = ["--settings", "s.toml", "-o", "p.plan"]
        assert dpkde_("plan", *REST, *settings, *typed, capsys=capsys)[0] == 0
        assert dpkde.Plan.load("p.plan").kernel.bandwidth.value == pytest.approx((width,))
    Path("s.toml").write_text("bandwidth = 0.2\nbandwidth-std = 0.2\n")
    assert "not both" in dpkde_("plan", *REST, "--settings", "s.toml", capsys=capsys)[2]
