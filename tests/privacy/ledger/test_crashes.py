"""Races and kills: nothing is released without its debit, and two never overspend together."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import dpkde
from dpkde.privacy.ledger.book import State
from dpkde.privacy.ledger.ledger import Ledger

RACES = int(os.environ.get("DPKDE_RACES", "20"))
KILLS = int(os.environ.get("DPKDE_LEDGER_KILLS", "40"))
RACERS = 8

WARM = """
import json, os, signal, sys
import numpy, dpkde
from dpkde.privacy.budget import Budget

plan = dpkde.plan(kernel=dpkde.Gaussian(1.0), bounds=[(-1, 1)] * 2, epsilon=1,
                  family="spline", expected_rows=9)
sums = dpkde.sketch(numpy.zeros((9, 2)), plan)
dpkde.publish(sums, epsilon=1)
"""
# Eight copies of a process that has everything loaded wait for one starting shot.
RACER = (
    WARM
    + """
print("ready", flush=True)
for line in sys.stdin:
    ledger, *outputs = json.loads(line)
    wait, shot = os.pipe()
    children = []
    for output in outputs:
        child = os.fork()
        if not child:
            os.close(shot)
            os.read(wait, 1)
            try:
                dpkde.publish(sums, epsilon=1, ledger=ledger).save(output)
                os._exit(0)
            except dpkde.BudgetError:
                os._exit(1)
            finally:
                os._exit(2)
        children.append(child)
    os.close(wait)
    os.close(shot)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(*sorted(codes), flush=True)
"""
)
# A process that publishes without a pause, in a copy of one that has everything loaded. What is
# about to be drawn goes into a file of its own first.
PUBLISHER = (
    WARM
    + """
draw = Budget.noise
def noise(self, spend, size):
    os.write(log, f"{spend.amount.epsilon}\\n".encode())
    return draw(self, spend, size)
Budget.noise = noise
print("ready", flush=True)
for line in sys.stdin:
    ledger, folder, drawn = json.loads(line)
    log = os.open(drawn, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    child = os.fork()
    if not child:
        while True:
            release = dpkde.publish(sums, epsilon="1/10", ledger=ledger)
            release.save(f"{folder}/{release.release_id}.dpkde")
    os.close(log)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""
)


class Process:
    """A process that does what it is told, line by line."""

    def __init__(self, script: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def say(self, *words: object) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self.child.stdin.flush()

    def hear(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


def race(folder: Path, rounds: int) -> None:
    """Let eight processes publish at once from a ledger with room for five."""
    racers = Process(RACER)
    try:
        assert racers.hear() == "ready"
        for number in range(rounds):
            ledger = Ledger.create(folder / f"{number}.db", dataset="d", epsilon=5)
            outputs = [folder / f"{number}-{racer}.dpkde" for racer in range(RACERS)]
            racers.say(ledger.path, *outputs)
            assert racers.hear() == "0 0 0 0 0 1 1 1"
            assert ledger.left().epsilon == 0
            assert [booking.state for booking in ledger.history()] == [State.WRITTEN] * 5
            verdict = ledger.verify([output for output in outputs if output.exists()])
            assert verdict
            assert not verdict.unseen
    finally:
        racers.end()


def kill(folder: Path, runs: int) -> int:
    """Kill a publisher at random moments; return how many releases it has left."""
    chance, total, publisher = random.Random(7), 0, Process(PUBLISHER)
    try:
        assert publisher.hear() == "ready"
        for run in range(runs):
            if run % 10 == 0:  # a new one, so that none grows long
                place = folder / str(run)
                place.mkdir()
                Ledger.create(place / "l.db", dataset="d", epsilon=10**6)
            publisher.say(place / "l.db", place, place / "drawn")
            number = int(publisher.hear())
            time.sleep(chance.random() * chance.choice((0.05, 0.4, 1.0)))
            os.kill(number, signal.SIGKILL)
            assert publisher.hear() == "dead"
            ledger = Ledger.open(place / "l.db")
            releases = list(place.glob("*.dpkde"))
            verdict = ledger.verify(releases)
            assert verdict, verdict
            history = ledger.history()
            states = [booking.state for booking in history]
            # Each release file has its debit, and each debit that says so its file.
            kept = {booking.release_id for booking in history}
            assert {release.stem for release in releases} <= kept
            assert states.count(State.WRITTEN) <= len(releases)
            assert State.REFUSED not in states
            drawn = (place / "drawn").read_text().split()
            spent = ledger.spent().epsilon
            assert spent == Fraction(len(history), 10)  # what a crash left counts in full
            assert sum(map(Fraction, drawn), Fraction(0)) <= spent
            if run % 10 == 9:
                total += len(releases)
    finally:
        publisher.end()
    return total


def test_eight_racers_and_room_for_five(tmp_path: Path) -> None:
    race(tmp_path, 3)


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_eight_racers_and_room_for_five_again_and_again(tmp_path: Path) -> None:
    race(tmp_path, RACES)


def test_kills(tmp_path: Path) -> None:
    assert kill(tmp_path, 10) > 3


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_kills_again_and_again(tmp_path: Path) -> None:
    assert kill(tmp_path, KILLS) > KILLS // 5


def test_an_interrupt_keeps_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does whatever is no refusal of dpkde's."""
    import numpy as np

    plan = dpkde.plan(
        kernel=dpkde.Gaussian(1.0), bounds=[(-1, 1)], epsilon=1, family=dpkde.Fourier(8), seed=1
    )
    sums = dpkde.sketch(np.zeros((3, 1)), plan)
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=10)
    for error in (KeyboardInterrupt, MemoryError, RuntimeError, OSError):

        def fail(*_: object, error: type[BaseException] = error) -> None:
            raise error

        monkeypatch.setattr("dpkde.privacy.budget.Budget.noise", fail)
        with pytest.raises(error):
            dpkde.publish(sums, epsilon=1, ledger=ledger)
    assert [booking.state for booking in ledger.history()] == [State.RESERVED] * 4
    assert ledger.spent().epsilon == 4
    assert any("count in full" in note for note in ledger.verify().notes)
