"""The whole of an audit, as `dpkde audit` runs it on the curator's machine.

1. **Transcripts**: the release is made of the table, and played again on others with the same noisy
   outputs: one record fewer, one more of each strange kind, none at all. Nothing may differ.
2. **Audits**: its noise is drawn many times on both sides of the most telling neighbours, by the
   road that a release takes. No event may refute the guarantee.
3. **Mutants**, where they are asked for: the same audits with wrong noise, to see what they would
   have caught.

Nothing is released and nothing debited. What it finds is computed from the exact table: it is for
the curator's eyes, unless the table was made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpkde.curator.auditing.neighbours import places, worst
from dpkde.curator.auditing.repeated import Repeated
from dpkde.curator.auditing.transcript import Player, Recorder, transcribe
from dpkde.curator.publish import Errand, publish_source
from dpkde.errors import DpkdeError, ParameterError
from dpkde.families.base import Family
from dpkde.planning.plan import Plan
from dpkde.privacy.amounts import ONE_RECORD, Adjacency
from dpkde.privacy.audit.evidence import AuditResult
from dpkde.privacy.audit.mutants import MUTANTS, right
from dpkde.privacy.budget import Budget, Guarantee
from dpkde.privacy.concentrated import epsilon_of
from dpkde.release.release import Release
from dpkde.space.frame import Frame
from dpkde.tables import Source, open_points
from dpkde.tables.arrays import as_rows

CONFIDENCE = 1 - 1e-6
"""Of each audit: a correct release is refuted once in a million."""
ZCDP_DELTA = Fraction(1, 1000)
"""What is guaranteed as ρ is audited as the ε that it implies with this δ."""
FEWEST_TRIALS = 1000
MOST_ROWS = 1_000_000
"""Of a table so many rows are taken: a dozen like it are held."""

Points = NDArray[np.float64]
Report = Callable[[int, int | None], object]


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    Attributes
    ----------
    kind
        ``"transcript"``, ``"audit"`` or ``"mutant"``.
    name
        What was tried, in words.
    as_it_should
        Whether it came out as it should; a mutant should be refuted.
    detail
        Where transcripts differ; the bound and the event of an audit.
    epsilon_lower
        Of audits and mutants.
    """

    kind: str
    name: str
    as_it_should: bool
    detail: str = ""
    epsilon_lower: float | None = None


@dataclass(frozen=True)
class Course:
    """What is to be audited.

    Attributes
    ----------
    rows
        The table, shape (n, dim): private, unless it was made up.
    frame, families, seed
        As a release has them.
    errand
        What else is decided; its budget is the guarantee's, and stays as it is.
    trials
        Outputs on each side of an audit.
    mutants
        Whether wrong noise is audited, too.
    """

    rows: Points
    frame: Frame
    families: Sequence[Family]
    errand: Errand
    seed: int | None = None
    trials: int = 20_000
    mutants: bool = False

    def __post_init__(self) -> None:
        if self.trials < FEWEST_TRIALS:
            raise ParameterError(f"trials must be at least {FEWEST_TRIALS}, got {self.trials}")
        if self.guarantee.unit != ONE_RECORD:
            raise ParameterError("audits are of single rows: leave unit= and rows_per_unit= out")

    @property
    def guarantee(self) -> Guarantee:
        """What is to be guaranteed."""
        return self.errand.budget.guarantee

    @property
    def claim(self) -> tuple[float, float]:
        """The ε and δ that are put to the test."""
        given = self.guarantee
        if given.rho is not None:
            return float(epsilon_of(given.rho, ZCDP_DELTA)), float(ZCDP_DELTA)
        assert given.epsilon is not None
        return float(given.epsilon), float(given.delta)

    def run(self, report: Report | None = None) -> Iterator[Finding]:
        """Yield what is found, and `report` how far it is."""
        total = len(self.tables()) + 2 + self.mutants * len(MUTANTS)
        recorder = Recorder(self.errand.budget.randomness)
        for done, finding in enumerate(self._findings(recorder), 1):
            if report is not None:
                report(done, total)
            yield finding

    def _findings(self, recorder: Recorder) -> Iterator[Finding]:
        first = transcribe(partial(self._published, self.rows, recorder), recorder)
        for name, table in self.tables().items():
            player = Player(recorder)
            played = transcribe(partial(self._published, table, player), player)
            differences = first.differences(played)
            yield Finding("transcript", name, not differences, "; ".join(differences))
        if not first.result:
            words = "no release to audit: publishing is refused, as it would be for any such table"
            reason = first.error.splitlines()[-1]
            refused = reason.startswith(f"{DpkdeError.__module__}.")
            yield Finding("audit", words, as_it_should=refused, detail=reason)
            return
        families = tuple(type(family) for family in self.families)
        kernels = (type(self.frame.kernel),)
        plan = Release.from_bytes(first.result, families=families, kernels=kernels).plan
        yield from self._audits(plan)

    def _published(self, table: Points, recorder: Recorder) -> Release:
        errand = replace(self.errand, budget=Budget(self.guarantee, recorder))
        return publish_source(open_points(table), self.frame, self.families, errand, self.seed)

    def _audits(self, plan: Plan) -> Iterator[Finding]:
        repeated = Repeated(plan, self.guarantee)
        epsilon, delta = self.claim
        pairs = self.neighbours(repeated)
        for kind, name, drawing, sides in [
            *(("audit", name, right, sides) for name, *sides in pairs),
            *(("mutant", name, each, pairs[0][1:]) for name, each in MUTANTS.items()),
        ][: None if self.mutants else len(pairs)]:
            result = repeated.audit(
                *sides, trials=self.trials, confidence=CONFIDENCE, drawing=drawing, delta=delta
            )
            yield Finding(
                kind=kind,
                name=name,
                as_it_should=result.refutes(epsilon) == (kind == "mutant"),
                detail=_in_words(result),
                epsilon_lower=result.epsilon_lower,
            )

    def tables(self) -> dict[str, Points]:
        """Return tables that must not be told from this one, with what they are in words."""
        dim, rows = self.frame.dim, self.rows
        strange = {
            "in the middle of the domain": places(self.frame, 1)[0],
            "far outside": np.full(dim, 1e6),
            "of huge numbers": np.full(dim, 1e308),
            "of missing values": np.full(dim, np.nan),
            "of infinite values": np.full(dim, np.inf),
        }
        if self.guarantee.adjacency is Adjacency.REPLACE:
            if not len(rows):
                return {"the same table": rows}
            return {
                **{
                    f"another first record, {name}": np.concatenate([[row], rows[1:]])
                    for name, row in strange.items()
                },
                "all records alike": np.repeat(places(self.frame, 1), len(rows), axis=0),
            }
        return {
            "one record fewer": rows[1:],
            **{
                f"one record more, {name}": np.concatenate([rows, [row]])
                for name, row in strange.items()
            },
            "no records": rows[:0],
        }

    def neighbours(self, repeated: Repeated) -> list[tuple[str, Points, Points]]:
        """Return pairs of neighbouring tables to audit: by the worst records, and by its first."""
        law, rows = type(repeated.laws[-1][0]), self.rows
        finite = rows[np.isfinite(rows).all(axis=1)]
        records = worst(repeated.plan, law, finite)
        if self.guarantee.adjacency is Adjacency.REPLACE:
            rest = rows[1:]
            pairs = [("two records that are far apart", records.one, records.other)]
            if len(rows):
                pairs.append(("its first record, and one far from it", rows[:1], records.largest))
            return [
                (name, np.concatenate([rest, one]), np.concatenate([rest, other]))
                for name, one, other in pairs
            ]
        found = [("a record that moves most", rows, np.concatenate([rows, records.largest]))]
        return [*found, ("its first record", rows[1:], rows)] if len(rows) else found


def rows_of(source: Source, dim: int) -> Points:
    """Return the first rows of a table, `MOST_ROWS` at most, bad cells as NaN: secret."""
    held, number = [np.empty((0, dim))], 0
    for piece in source.pieces(dim):
        rows = as_rows(piece.rows(), dim, "points").astype(np.float64)
        held.append(rows[: MOST_ROWS - number])
        number += len(rows)
        if number >= MOST_ROWS:
            break
    return np.concatenate(held)


def _in_words(result: AuditResult) -> str:
    return f"{result}{f'; most telling: {result.event}' if result.event else ''}"
