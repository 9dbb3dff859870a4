"""Tables: one door (`door.py`), and a file for each kind of thing that comes through it."""

from __future__ import annotations

from dpkde.tables.door import PointsLike, open_points, open_tables
from dpkde.tables.frames import check_known, is_frame
from dpkde.tables.sets import is_sparse, query_sets
from dpkde.tables.source import Piece, Source
from dpkde.tables.text import CSV, is_text

__all__ = [
    "CSV",
    "Piece",
    "PointsLike",
    "Source",
    "check_known",
    "is_frame",
    "is_sparse",
    "is_text",
    "open_points",
    "open_tables",
    "query_sets",
]
