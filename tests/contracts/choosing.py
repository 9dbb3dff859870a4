"""The layout that a family takes for an outlook, for tests of what is chosen."""

from __future__ import annotations

from dpkde.families.base import Family, Layout, Outlook
from dpkde.planning.choice import Choice, Typical
from dpkde.space.frame import Frame


def best_of(family: Family, frame: Frame, outlook: Outlook) -> Layout:
    """Return the family's layout of least predicted error."""
    return Choice.among([family], frame, Typical()).best(outlook)
