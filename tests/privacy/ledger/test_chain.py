"""Tampering: what is found without releases, what only with them, and what nobody can find."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dpkde
from dpkde.privacy.ledger import store
from dpkde.privacy.ledger.accounting import NOTHING
from dpkde.privacy.ledger.book import State
from dpkde.privacy.ledger.chain import BEFORE, Row, head_after
from dpkde.privacy.ledger.ledger import Ledger
from dpkde.privacy.ledger.verification import verify_file
from dpkde.release.parts import LedgerEntry

POINTS = np.random.default_rng(0).normal(size=(50, 2))


class Case(NamedTuple):
    """A ledger with three releases, their files, and copies of the ledger after each."""

    path: Path
    files: list[Path]
    copies: list[Path]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Case:
    tmp_path = tmp_path_factory.mktemp("ledger")
    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, dataset="trips", epsilon=3)
    files, copies = [], []
    for number in range(3):
        release = dpkde.publish(
            POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, ledger=ledger
        )
        files.append(tmp_path / f"{number}.dpkde")
        release.save(files[-1])
        copies.append(tmp_path / f"copy-{number}.db")
        shutil.copy(path, copies[-1])
    return Case(path, files, copies)


@pytest.fixture
def case(template: Case, tmp_path: Path) -> Case:
    """The same in a folder of the test's own."""
    shutil.copytree(template.path.parent, tmp_path, dirs_exist_ok=True)
    here = [[tmp_path / file.name for file in files] for files in template[1:]]
    return Case(tmp_path / template.path.name, *here)


def rewritten(path: Path, change: Callable[[list[Row]], list[Row]]) -> None:
    """Put other rows in the place of those of a ledger."""
    rows = change(store.read(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM entries")
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
        connection.commit()


def rehashed(rows: list[Row]) -> list[Row]:
    """Number the rows and compute every hash anew, as a careful forger would."""
    fresh: list[Row] = []
    for number, row in enumerate(rows):
        before = fresh[-1].head if fresh else BEFORE
        fresh.append(Row(number, row.body, head_after(before, row.body)))
    return fresh


def cheaper(row: Row) -> Row:
    return row._replace(body=row.body.replace('"epsilon":"1/1"', '"epsilon":"1/2"'))


def changed(rows: list[Row]) -> list[Row]:
    return [cheaper(row) if '"reserved"' in row.body else row for row in rows]


def renumbered(rows: list[Row]) -> list[Row]:
    return [row._replace(number=number) for number, row in enumerate(rows)]


def swapped(rows: list[Row]) -> list[Row]:
    rows[2], rows[5] = rows[5], rows[2]
    return renumbered(rows)


TAMPERINGS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "changed": changed,
    "a head changed": lambda rows: [*rows[:4], rows[4]._replace(head="0" * 64), *rows[5:]],
    "removed": lambda rows: [*rows[:2], *rows[5:]],
    "removed and renumbered": lambda rows: renumbered([*rows[:2], *rows[5:]]),
    "swapped": swapped,
    "added in the middle": lambda rows: renumbered([*rows[:3], rows[2], *rows[3:]]),
    "the first removed": lambda rows: renumbered(rows[1:]),
    "all removed": lambda rows: [rows[0]._replace(body="{}")],
}


def test_nothing_is_wrong_with_an_honest_one(case: Case) -> None:
    ledger = Ledger.open(case.path)
    verdict = ledger.verify(case.files)
    assert verdict
    assert (verdict.faults, verdict.unseen, verdict.notes) == ((), (), ())
    assert ledger.verify([dpkde.load(file) for file in case.files]) == verdict
    assert ledger.verify([*case.files, case.files[0]])  # the same twice is one
    # Written, and not shown: told, and no fault.
    assert ledger.verify(case.files[:1]).unseen == (5, 8)
    assert ledger.verify()
    assert str(verdict).splitlines()[1] == "the chain holds"


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_without_releases(case: Case, name: str) -> None:
    rewritten(case.path, TAMPERINGS[name])
    verdict = verify_file(case.path)
    assert not verdict
    assert "WRONG" in str(verdict)
    assert verdict.to_json()["sound"] is False
    with pytest.raises(dpkde.LedgerError):
        dpkde.publish(
            POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, ledger=case.path
        )


@pytest.mark.parametrize("name", ["changed", "removed", "swapped"])
def test_a_chain_computed_anew_is_found_with_releases(case: Case, name: str) -> None:
    """Where it still makes sense it passes for honest, but for the releases that vouch."""
    rewritten(case.path, lambda rows: rehashed(TAMPERINGS[name](rows)))
    assert not verify_file(case.path, case.files)
    # Of a release alone, what lies before it: the last vouches for all entries up to its own.
    assert not verify_file(case.path, case.files[-1:])
    if name == "changed":
        assert verify_file(case.path)  # named as undetectable without releases
        assert Ledger.open(case.path).left().epsilon > 1


def test_a_cut_off_end_and_an_old_copy_are_found_with_releases(case: Case) -> None:
    for length in (2, 5, 8):
        cut = [*store.read(case.copies[-1])][:length]
        rewritten(case.path, lambda rows, cut=cut: cut)  # type: ignore[misc]
        assert verify_file(case.path)  # named as undetectable without releases
        assert not verify_file(case.path, case.files)
        assert any(
            "its end was cut off, or an old copy was put back" in fault
            for fault in verify_file(case.path, case.files).faults
        )
    for number, copy in enumerate(case.copies):
        shutil.copy(copy, case.path)
        verdict = verify_file(case.path, case.files)
        assert len(verdict.faults) == 2 - number
        # And what nobody can find: the end is gone, and so are its releases.
        assert verify_file(case.path, case.files[: number + 1])


def test_an_old_copy_that_went_on_is_found(case: Case) -> None:
    shutil.copy(case.copies[0], case.path)
    for _ in range(2):
        dpkde.publish(
            POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, ledger=case.path
        )
    verdict = verify_file(case.path, case.files)
    assert len(verdict.faults) == 2
    assert all("another head" in fault for fault in verdict.faults)


def test_releases_that_are_not_what_was_paid_for(case: Case, tmp_path: Path) -> None:
    ledger, release = Ledger.open(case.path), dpkde.load(case.files[0])
    entry = release.parts.of(LedgerEntry)
    other = Ledger.create(tmp_path / "other.db", dataset="trips", epsilon=3)
    stranger = dpkde.publish(
        POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, ledger=other
    )
    plain = dpkde.publish(POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1)
    dearer = dpkde.publish(POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=2)
    renamed = dpkde.Release(
        dearer.plan,
        dearer.table,
        dearer.count,
        dearer.privacy,
        release_id=release.release_id,
        parts=[entry],
    )
    for claim, message in (
        (stranger, "in another ledger"),
        (plain, "in no ledger"),
        (plain.with_parts(entry), "is not the release of entry 2"),
        (renamed, "guarantees another thing"),
        (release.with_parts(replace(entry, entry=3)), "another head"),
        (release.with_parts(replace(entry, entry=99)), "ends with entry 10"),
        (tmp_path / "nothing", "cannot be read"),
        (case.path, "cannot be read"),
        (7, "cannot be read"),
    ):
        verdict = ledger.verify([claim])  # type: ignore[list-item]
        assert len(verdict.faults) == 1
        assert message in verdict.faults[0]
    cheap = dpkde.publish(POINTS, plan=release.plan, epsilon=release.privacy.epsilon)
    forged = dpkde.Release(
        cheap.plan,
        cheap.table,
        release.count,
        release.privacy,
        release_id=release.release_id,
        parts=[entry],
    )
    assert ledger.verify([release, case.files[0], release.with_parts(entry)])
    (fault,) = ledger.verify([release, forged]).faults
    assert "one of the two was never entered" in fault
    with pytest.raises(dpkde.ParameterError, match="must be a list"):
        ledger.verify(str(case.files[0]))
    with pytest.raises(dpkde.ParameterError, match="not in this ledger"):
        ledger.written(plain)


def test_a_release_that_was_refused_in_the_ledger(tmp_path: Path) -> None:
    """As when somebody settles an entry whose release is out."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpkde.privacy.ledger.booking.Reservation.returned", lambda self: None)
        release = dpkde.publish(
            POINTS, kernel=dpkde.Gaussian(1.0), bounds=[(-3, 3)] * 2, epsilon=1, ledger=ledger
        )
    ledger.settle(2, State.REFUSED, NOTHING)
    (fault,) = ledger.verify([release]).faults
    assert "says that it was refused" in fault


def test_entries_mean_something(case: Case) -> None:
    """Whole chains with right hashes, of entries that do not follow from each other."""

    def with_last(**changes: object) -> Callable[[list[Row]], list[Row]]:
        def change(rows: list[Row]) -> list[Row]:
            body = {**json.loads(rows[2].body), "release_id": "0" * 32, **changes}
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            return rehashed([*rows, Row(len(rows), text, "")])

        return change

    good = store.read(case.path)
    nothing = {"epsilon": "0/1", "delta": "0/1", "rho": "0/1"}
    for change, message in (
        (with_last(), "overspends"),
        (with_last(entry="magic"), "does not follow"),
        (with_last(dataset="unknown"), "does not follow"),
        (with_last(part="unknown"), "does not follow"),
        (with_last(guarantee=None), "does not follow"),
        (with_last(release_id="x"), "does not follow"),
        (with_last(remark="a\nb"), "does not follow"),
        (with_last(date="yesterday"), "does not follow"),
        (with_last(extra=1), "does not follow"),
        (lambda rows: rehashed([*rows, rows[0]]), "does not follow"),
        (lambda rows: rehashed([*rows, rows[1]]), "does not follow"),
        (lambda rows: rehashed([*rows, rows[4]]), "does not follow"),
        (lambda rows: rehashed([*rows, Row(0, "[]", "")]), "is damaged"),
        (lambda rows: rehashed([*rows, Row(0, "{ }", "")]), "is damaged"),
        (lambda rows: rehashed([*rows, Row(0, "[" * 99_999, "")]), "is damaged"),
        (
            lambda rows: rehashed(
                [
                    *rows,
                    Row(0, json.dumps({"cost": nothing, "entry": "refused", "of": 2}), ""),
                ]
            ),
            "is damaged",  # no canonical JSON
        ),
        (lambda rows: rehashed(rows[1:]), "does not begin"),
    ):
        rewritten(case.path, lambda rows, change=change: change(list(good)))  # type: ignore[misc]
        verdict = verify_file(case.path)
        assert any(message in fault for fault in verdict.faults), verdict.faults
        with pytest.raises(dpkde.LedgerError):
            Ledger.open(case.path).left()
