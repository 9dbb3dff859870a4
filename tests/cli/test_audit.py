"""``dpkde audit``: what it says of a release, of a table of the caller's and of one made up.

Of what is right each audit is refuted once in a million runs; there are some 20 here.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpkde
from commands import dpkde_
from dpkde.curator.auditing import course
from dpkde.curator.auditing.repeated import MOST_CELLS, Repeated
from dpkde.privacy.audit.mutants import MUTANTS, smaller
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.laws import NOISES

road = importlib.import_module("dpkde.curator.publish")
Printed = pytest.CaptureFixture[str]

USUAL = ["--bandwidth", "0.5", "--epsilon", "1", "--trials", "4000"]
DEFECTIVE = "the audit found a defect of dpkde, told above; please report it"
SPLINE = ["--family", "spline", "--degree", "1", "--spacing", "1"]


def test_a_table_of_ones_own_is_for_the_curators_eyes(table: str, capsys: Printed) -> None:
    before = sorted(Path().iterdir())
    code, out, err = dpkde_("audit", table, "--bounds", "0:1,...", *USUAL, *SPLINE, capsys=capsys)
    assert (code, err) == (0, "")
    assert "transcripts: 7 of 7 alike\n" in out
    assert "audits: 2 of 2 not refuted\n" in out
    assert "for the curator's eyes, not to be published" in out
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (["--adjacency", "replace"], "ε = 1 (ε=1 replace)"),
        (["--delta", "1/1000"], "ε = 1, δ = 0.001"),
        (["--seed", "1", "--family", "fourier", "--frequencies", "80"], "ε = 1"),
    ],
)
def test_a_table_that_is_made_up_is_public(options: list[str], claim: str, capsys: Printed) -> None:
    """Of many cells a few are looked at; those of max-norm noise are drawn together."""
    own = [] if "--family" in options else SPLINE
    code, out, _ = dpkde_("audit", "--bounds", "0:4", *USUAL, *own, *options, capsys=capsys)
    assert code == 0
    assert f"claimed: {claim}" in out
    assert "made up: nothing in it is secret" in out


def test_zcdp_as_json_with_what_would_be_caught(capsys: Printed) -> None:
    typed = ["--bandwidth", "1", "--rho", "0.5", "--trials", "4000", "--mutants", "--json"]
    code, out, _ = dpkde_("audit", "--bounds", "0:4", *typed, *SPLINE, capsys=capsys)
    assert code == 0
    document = json.loads(out)
    assert document["delta"] == 0.001
    assert 3 < document["epsilon"] < 5
    findings = document["findings"]
    assert {f["kind"] for f in findings} == {"transcript", "audit", "mutant"}
    caught = {f["name"]: f["as_it_should"] for f in findings if f["kind"] == "mutant"}
    assert set(caught) == set(MUTANTS)
    for name in ("no noise", "noise on an even lattice", "the same noise every time"):
        assert caught[name]  # events that are certain on one side alone: ln(3200/18) > 5
    assert all(f["as_it_should"] for f in findings if f["kind"] != "mutant")


def test_a_share_planned_from_n_is_a_defect(
    table: str, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy_count = road._noisy_count

    def share_of_n(totals: Any, choice: Any, view: Any, errand: Any) -> int:
        view = replace(view, rows=max(totals.records, 1))
        return int(noisy_count(totals, choice, view, errand))

    monkeypatch.setattr(road, "_noisy_count", share_of_n)
    code, out, err = dpkde_("audit", table, "--bounds", "0:1,...", *USUAL, capsys=capsys)
    assert (code, err) == (1, f"dpkde: {DEFECTIVE}\n")
    assert "no records: NOT ALIKE\n" in out
    assert "asked: " in out


def test_too_little_noise_is_a_defect(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of it: ε = 4 in truth, of which twelve audits showed 2.9 to 3.2."""
    monkeypatch.setattr(course, "right", partial(smaller, Fraction(1, 4)))
    code, out, err = dpkde_("audit", "--bounds", "0:4", *USUAL, *SPLINE, capsys=capsys)
    assert (code, err) == (1, f"dpkde: {DEFECTIVE}\n")
    assert "a record that moves most: REFUTED\n    ε ≥ " in out


def test_a_promise_that_is_refused_leaves_nothing_to_audit(capsys: Printed) -> None:
    typed = ["--bounds", "0:4", *USUAL, "--alpha", "0.001", "--eta", "0.1"]
    code, out, _ = dpkde_("audit", *typed, capsys=capsys)
    assert code == 0
    assert "publishing is refused, as it would be for any such table" in out
    assert "transcripts: 7 of 7 alike" in out
    assert "dpkde.errors.AccuracyError: α = 0.001 cannot be promised" in out


def test_a_defect_is_no_refusal(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("by accident")

    monkeypatch.setattr(road, "_noisy_count", broken)
    code, out, _ = dpkde_("audit", "--bounds", "0:4", *USUAL, *SPLINE, capsys=capsys)
    assert code == 1
    assert "any such table: REFUTED\n    RuntimeError: by accident" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trials", "10", "--bounds", "0:1"], "--trials must be at least 1000, got 10"),
        (["--unit", "who", "--rows-per-unit", "2", "--bounds", "0:1"], "leave --unit"),
        ([], "the number of columns is open"),
        (["--bounds", "1:0"], "bounds"),
    ],
)
def test_wrong_use(options: list[str], words: str, capsys: Printed) -> None:
    code, out, err = dpkde_("audit", *USUAL, *options, capsys=capsys)
    assert (code, out) == (2, "")
    assert words in err


def test_a_release_is_no_table(table: str, capsys: Printed) -> None:
    typed = ["publish", table, "-o", "r.dpkde", "--bounds", "0:1,...", *USUAL[:4]]
    assert dpkde_(*typed, capsys=capsys)[0] == 0
    code, _, err = dpkde_("audit", "r.dpkde", "--bounds", "0:1,...", *USUAL, capsys=capsys)
    assert code == 2
    assert "is a dpkde-release file, and not a table" in err


def test_a_table_with_bad_cells_and_one_without_rows(table: str, capsys: Printed) -> None:
    for text in ("lon,lat\n0.5,x\n,\n0.1,0.2\n", "lon,lat\n"):
        Path("few.csv").write_text(text)
        for adjacency in ("add-remove", "replace"):
            typed = ["audit", "few.csv", "--bounds", "0:1,...", "--adjacency", adjacency]
            code, out, _ = dpkde_(*typed, *USUAL, *SPLINE, capsys=capsys)
            assert code == 0, out


@pytest.mark.parametrize("law", ["discrete-laplace", "max-norm"])
def test_of_many_cells_those_that_tell_are_looked_at(law: str) -> None:
    """A table of 150 cells: half of the cells' noise missing on the even lattice is still seen."""
    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0),
        bounds=[(-2, 2)],
        epsilon=1,
        family=dpkde.Fourier(75, form="pairs"),
        seed=1,
    )
    repeated = Repeated(plan, Guarantee.declare(epsilon=4), NOISES[law])
    sides = np.zeros((1, 1)), np.array([[0.0], [1.3]])
    assert repeated.laws[-1][1] == 150 > MOST_CELLS
    honest = repeated.audit(*sides, trials=2_000, confidence=1 - 1e-9)
    assert not honest.refutes(4)
    even = repeated.audit(
        *sides, trials=2_000, confidence=1 - 1e-6, drawing=MUTANTS["noise on an even lattice"]
    )
    assert even.refutes(4)
