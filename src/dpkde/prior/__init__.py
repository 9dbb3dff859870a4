"""The mechanisms that the paper compares with, each behind the same door as ours.

**Function release**: one release answers every later query. `Bernstein` and `EvenTrig` are
families, to be given to `dpkde.publish`. `SmallDB` and `PMW` make a `SyntheticRelease`, points with
weights. `NoisySample` is a sanity baseline and **not private**.

**Query release**: the queries are known to the curator, who answers these and no others. `answer`
takes a mechanism: `LaplaceAnswers`, `GaussianAnswers`, `HRW`, `SmallDB`, `PMW` or `OurRelease`;
`Online` answers queries that come one after the other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpkde.prior.base import Answered, Private, QueryMechanism, Session
    from dpkde.prior.bernstein import Bernstein
    from dpkde.prior.eventrig import EvenTrig
    from dpkde.prior.hrw import HRW
    from dpkde.prior.independent import GaussianAnswers, LaplaceAnswers
    from dpkde.prior.noisysample import NoisySample
    from dpkde.prior.online import Online
    from dpkde.prior.ours import OurRelease
    from dpkde.prior.pmw import PMW
    from dpkde.prior.queries import Answers, answer
    from dpkde.prior.smalldb import SmallDB
    from dpkde.prior.synthetic import SyntheticRelease
    from dpkde.prior.universe import Universe

# Names resolve on first use: whoever loads a `SyntheticRelease` never loads a curator.
_HOMES = {
    "Answered": "base",
    "Answers": "queries",
    "Bernstein": "bernstein",
    "EvenTrig": "eventrig",
    "GaussianAnswers": "independent",
    "HRW": "hrw",
    "LaplaceAnswers": "independent",
    "NoisySample": "noisysample",
    "Online": "online",
    "OurRelease": "ours",
    "PMW": "pmw",
    "Private": "base",
    "QueryMechanism": "base",
    "Session": "base",
    "SmallDB": "smalldb",
    "SyntheticRelease": "synthetic",
    "Universe": "universe",
    "answer": "queries",
}

__all__ = [
    "HRW",
    "PMW",
    "Answered",
    "Answers",
    "Bernstein",
    "EvenTrig",
    "GaussianAnswers",
    "LaplaceAnswers",
    "NoisySample",
    "Online",
    "OurRelease",
    "Private",
    "QueryMechanism",
    "Session",
    "SmallDB",
    "SyntheticRelease",
    "Universe",
    "answer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpkde.prior' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dpkde.prior.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
