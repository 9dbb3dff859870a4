"""Releases of disjoint parts of one data set under one guarantee: what each may cost, and a label.

A labelled record counts in the part of its own label, or in none. ``curator/labelled/proof.md``
has the argument for `each_of`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from dpkde.errors import ParameterError
from dpkde.privacy.amounts import ONE_RECORD, Adjacency
from dpkde.privacy.budget import LEAST_DELTA, Guarantee
from dpkde.privacy.concentrated import rho_within
from dpkde.privacy.ledger.words import amount
from dpkde.privacy.numbers import LEAST, exp_minus_bounds, rounded_down
from dpkde.privacy.statement import in_words, protected

_DIGITS = 30
_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: (
        "adding or removing any one labelled record (the number of records is private, and so is "
        "that of each class)"
    ),
    Adjacency.REPLACE: (
        "changing the values of any one labelled record, its label, or both (the number of all "
        "records is public, that of each class is private)"
    ),
}


def each_of(total: Guarantee) -> Guarantee:
    """Return what each release of a part guarantees by itself, so that all keep the total.

    Always for adding or removing a record. Where the total is for that, too, it is the same: the
    parts are disjoint. Where the total is for replacing a record, that is two such steps, and each
    release has ε/2 with δ/(1 + e^{ε/2}) or less, or ρ/4.

    >>> str(each_of(Guarantee.declare(epsilon=1, adjacency="replace")))
    'ε=0.5 add-remove'

    Guarantee
    ---------
    Releases of disjoint parts that each satisfy it satisfy the total together.
    """
    if total.unit != ONE_RECORD:
        raise ParameterError(
            f"records of one {total.unit.name or total.unit} may have several labels, so that its "
            "classes are not disjoint: give each class a part of ε and publish them one by one"
        )
    if total.adjacency is Adjacency.ADD_REMOVE:
        return total
    if total.rho is not None:
        return Guarantee(Adjacency.ADD_REMOVE, rho=_enough(total.rho / 4, "rho"))
    assert total.epsilon is not None
    half, delta = _enough(total.epsilon / 2, "epsilon"), total.delta
    if delta:
        # δ/(1 + e^{ε/2}) = δ·e^{−ε/2}/(1 + e^{−ε/2}), which grows with e^{−ε/2}.
        shrink = exp_minus_bounds(half, _DIGITS)[0]
        delta = rounded_down(delta * shrink / (1 + shrink))
        most = max(total.epsilon**2 / 2, rho_within(total.epsilon, total.delta))
        while 4 * rho_within(half, delta) > most:
            delta /= 2
        if delta < LEAST_DELTA:
            raise ParameterError("delta is too small to be divided under adjacency='replace'")
    return Guarantee(Adjacency.ADD_REMOVE, epsilon=half, delta=delta)


def _enough(value: Fraction, name: str) -> Fraction:
    if value < LEAST:
        raise ParameterError(f"{name} is too small to be divided under adjacency='replace'")
    return value


def share_id(root: str, number: int, of: int) -> str:
    """Return what a release is called that shares an entry of a ledger with others.

    By the name that the entry has, which of them it is, from 0, and how many there are.
    """
    return hashlib.sha256(f"{root} {number} {of}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class LabelledStatement:
    """What releases of the classes of one data set guarantee together; ``str()`` can be quoted.

    Attributes
    ----------
    guarantee
        Of all of them together, for labelled records.
    each
        Of each by itself, for adding or removing a record.
    classes
        Their labels, which are public.
    """

    guarantee: Guarantee
    each: Guarantee
    classes: tuple[Hashable, ...]

    def __str__(self) -> str:
        declared, number = self.guarantee, len(self.classes)
        return "\n".join(
            [
                f"These {number} releases, one for each class, are together {in_words(declared)}",
                f"with respect to {_NEIGHBOURS[declared.adjacency]}.",
                protected(ONE_RECORD),
                "A record counts in the release of its own label and in no other; one with another "
                "label counts in none.",
                f"Each release by itself has {amount(self.each)}, for adding or removing a record.",
                "Whatever anyone computes from them, however often, is covered by the same bound.",
            ]
        )
