"""``dpkde budget``, and ``dpkde publish --ledger``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import dpkde
from commands import GOOD, dpkde_
from dpkde.privacy.ledger.book import State


def test_from_a_ledger_to_a_statement(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> str:
        code, out, err = dpkde_(*words, capsys=capsys)
        assert (code, err) == (0, "")
        return out

    out = run("budget", "create", "l.db", "--dataset", "trips", "--epsilon", "2")
    assert "left    ε = 2\n" in out
    ledger = ["--ledger", "l.db", "--dataset", "trips", "--remark", "map of May"]
    run("publish", table, "-o", "r.dpkde", *GOOD, *ledger, "-q")
    (booking,) = dpkde.Ledger.open("l.db").history()
    assert booking.state is State.WRITTEN
    assert "left    ε = 1\n" in run("budget", "show", "l.db")
    assert json.loads(run("budget", "show", "l.db", "--json"))["left"]["epsilon"] == "1/1"
    out = run("budget", "history", "l.db")
    assert out.split()[2:8] == ["trips", "release", "ε", "=", "1", "written"]
    assert "map of May" in out
    (entry,) = json.loads(run("budget", "history", "l.db", "--dataset", "trips", "--json"))
    assert (entry["state"], entry["release_id"]) == ("written", booking.release_id)
    out = run("budget", "verify", "l.db", "--releases", "r.dpkde")
    assert "the chain holds" in out
    assert json.loads(run("budget", "verify", "l.db", "--json"))["unseen"] == [booking.number]
    assert "is together 2-differentially private" in run("budget", "statement", "l.db")
    document = json.loads(run("budget", "statement", "l.db", "--dataset", "trips", "--json"))
    assert document["spent"]["epsilon"] == "1/1"
    out = run("inspect", "r.dpkde")
    assert f"ledger     {booking and dpkde.Ledger.open('l.db').id}, entry {booking.number}" in out
    assert "parts      ledger" not in out


def test_overspending_ends_in_one_line(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    create = ["budget", "create", "l.db", "--dataset", "trips", "--epsilon", "1.5", "--part", "a"]
    assert dpkde_(*create, "--part", "b", capsys=capsys)[0] == 0
    for part in ("a", "b"):
        words = ["publish", table, "-o", f"{part}.dpkde", *GOOD, "--ledger", "l.db", "--part", part]
        assert dpkde_(*words, "-q", capsys=capsys)[0] == 0
    for words, message in (
        (["--ledger", "l.db", "--part", "a"], "part a, has ε = 0.5 left of ε = 1.5"),
        (["--ledger", "l.db"], "trips has ε = 0.5 left"),
        (["--ledger", "l.db", "--part", "c"], "no part 'c': there are a, b"),
        (["--ledger", "l.db", "--dataset", "c"], "no data set 'c'"),
        (["--dataset", "trips"], "--dataset goes with --ledger"),
        (["--ledger", "none.db"], "there is no ledger none.db"),
        (["--ledger", table], "is not a ledger"),
        (["--ledger", "."], "is not a ledger but a folder"),
    ):
        code, out, err = dpkde_("publish", table, "-o", "c.dpkde", *GOOD, *words, capsys=capsys)
        assert (code, out) == (2, "")
        assert message in err
        assert len(err.splitlines()) == 1
    assert not Path("c.dpkde").exists()
    code, out, _ = dpkde_("budget", "show", "l.db", "--part", "b", capsys=capsys)
    assert "trips, part b\n" in out
    assert "left    ε = 0.5" in out
    code, out, _ = dpkde_("budget", "show", "l.db", capsys=capsys)
    assert "parts   a: left ε = " in out
    assert "b: left ε = 0.5" in out


CREATE = ("budget", "create", "l.db", "--dataset", "d", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("create t.csv --dataset d --epsilon 1", "t.csv is not a ledger"),
        ("create n.db --dataset d", "--epsilon is needed"),
        ("create n.db --epsilon 1", "--dataset"),
        (
            "create n.db --dataset d --epsilon 1 --unit p",
            "give --unit and --rows-per-unit together",
        ),
        (
            "create n.db --dataset d --epsilon 1 --unit p --rows-per-unit 0",
            "--rows-per-unit must be a whole number from 1",
        ),
        ("create n.db --dataset d --epsilon 1 --adjacency replace --part a", "can change its part"),
        ("create l.db --dataset d --epsilon 1", "its total cannot be changed"),
        ("show l.db --plot map.txt", "a picture ends in"),
        ("show l.db --dataset e", "no data set 'e'"),
        ("show l.db --in-advance", "has no δ"),
        ("verify l.db r.dpkde", "--releases goes with release files"),
        ("verify l.db --releases", "--releases goes with release files"),
        ("verify t.csv", "is not a ledger"),
        ("history nothing.db", "there is no ledger"),
        ("statement .", "a folder"),
    ],
)
def test_wrong_turns(
    table: str, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dpkde_(*CREATE, capsys=capsys)[0] == 0
    code, out, err = dpkde_("budget", *words.split(), capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_tampering_ends_with_code_2(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dpkde_(*CREATE, capsys=capsys)[0] == 0
    assert dpkde_("publish", table, "-o", "r.dpkde", *GOOD, "-q", capsys=capsys)[0] == 0
    code, out, _ = dpkde_(*["budget", "verify", "l.db", "--releases", "r.dpkde"], capsys=capsys)
    assert code == 2
    assert "WRONG: r.dpkde is in no ledger" in out


def test_a_picture(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    create = ["budget", "create", "l.db", "--dataset", "$数据_{$", "--epsilon", "3"]
    create += ["--delta", "1e-6", "--part", "a", "--part", "b", "--part", "$_"]
    assert dpkde_(*create, capsys=capsys)[0] == 0
    show = ["budget", "show", "l.db", "--plot"]
    assert dpkde_(*show, "empty.svg", capsys=capsys)[0] == 0
    for words in ([], ["--part", "a"], ["--part", "$_"]):
        publish = ["publish", table, "-o", "r.dpkde", *GOOD, "--ledger", "l.db", *words, "-q"]
        assert dpkde_(*publish, capsys=capsys)[0] == 0
    assert dpkde_(*show, "budget.png", capsys=capsys)[0] == 0
    picture = Path("budget.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000


def test_figures_that_hold_in_advance_are_marked(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create = "budget create l.db --dataset d --epsilon 3 --delta 1e-6"
    assert dpkde_(*create.split(), capsys=capsys)[0] == 0
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    show = ["budget", "show", "l.db", "--in-advance"]
    code, _, err = dpkde_(*show, capsys=capsys)
    assert code == 2
    assert "pip install 'dpkde[accounting]'" in err
    asked: list[object] = []

    def figure(*arguments: object) -> float:
        asked.append(arguments)
        return 0.123

    monkeypatch.setattr("dpkde.privacy.ledger.reference.epsilon_in_advance", figure)
    code, out, _ = dpkde_(*show, capsys=capsys)
    assert code == 0
    assert "ε = 0.123 if all releases had been fixed in advance" in out
    out = dpkde_(*show, "--json", capsys=capsys)[1]
    assert json.loads(out)["epsilon_in_advance"] == 0.123
    assert len(asked) == 2


def test_words_of_a_ledger_cannot_move_the_cursor(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names are printable, and changes of direction are not."""
    for name in ("a\u202eb", "a\x1b[2J", "a\nb"):
        create = ["budget", "create", "l.db", "--epsilon", "1", "--dataset", name]
        code, _, err = dpkde_(*create, capsys=capsys)
        assert code == 2
        assert "printable" in err
        assert "\x1b" not in err
    create = ["budget", "create", "l.db", "--epsilon", "1", "--dataset", "Fahrten (Größe) 数据"]
    assert "Fahrten (Größe) 数据" in dpkde_(*create, capsys=capsys)[1]
