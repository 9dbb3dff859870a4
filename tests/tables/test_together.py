"""Several tables as one: read one after the other, where their columns are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.tables import Source, open_points, open_tables
from dpkde.tables.source import Origin, Piece, slices, together

ROWS = np.arange(60.0).reshape(30, 2)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The same rows, three times."""
    names = {name: tmp_path / name for name in ("a.npy", "b.npy", "c.csv", "d.csv.gz")}
    np.save(names["a.npy"], ROWS)
    np.save(names["b.npy"], ROWS)
    for name in ("c.csv", "d.csv.gz"):
        np.savetxt(names[name], ROWS, delimiter=",", header="x,y", comments="")
    return names


def _read(source: Source) -> list[list[float]]:
    return [row for piece in source.pieces(2) for row in np.asarray(piece.rows()).tolist()]


def test_one_after_the_other_and_again(files: dict[str, Path]) -> None:
    whole = open_tables(list(files.values()))
    assert _read(whole) == 4 * ROWS.tolist() == _read(whole)
    assert (whole.dim, whole.once, whole.unit) == (2, False, None)
    assert [member.origin for member in whole.members][:2] == [
        Origin(files["a.npy"]),
        Origin(files["b.npy"]),
    ]
    alone = open_tables([files["a.npy"]])
    assert not alone.members
    assert alone.origin == Origin(files["a.npy"])


def test_in_order_are_pieces_that_could_come_in_any() -> None:
    """Who pairs rows with labels by their places needs one order, of one table and of several."""
    first, second = ROWS[:20], ROWS[20:]

    def backwards(rows: NDArray[np.float64]) -> Iterator[Piece]:
        return slices(lambda start, stop: rows[::-1][start:stop], len(rows), 7)

    parts = [
        replace(open_points(rows, ["x", "y"]), scattered=partial(backwards, rows))
        for rows in (first, second)
    ]
    for whole in (together(parts), together(parts).watched(lambda size: None)):
        ordered = [row for piece in whole.in_order(2) for row in piece.rows().tolist()]
        assert ordered == ROWS.tolist() == [row for p in whole.read() for row in p.rows().tolist()]
        assert _read(whole) == [*first[::-1].tolist(), *second[::-1].tolist()]
    seen: list[int] = []
    _read(together(parts).watched(seen.append))
    assert sum(seen) == len(ROWS)


def test_how_much_there_is_where_that_is_known(files: dict[str, Path]) -> None:
    """Rows of some files and bytes of others make no sum; what is packed is not known."""
    text, files["e.csv"] = files["c.csv"], files["c.csv"].with_name("e.csv")
    files["e.csv"].write_bytes(text.read_bytes())
    for names, size in (
        (["a.npy", "b.npy"], 60),
        (["c.csv", "e.csv"], 2 * text.stat().st_size),
        (["a.npy", "c.csv"], None),
        (["c.csv", "d.csv.gz"], None),
    ):
        assert open_tables([files[name] for name in names]).size == size
    seen: list[int] = []
    watched = open_tables([files["a.npy"], files["b.npy"]]).watched(seen.append)
    assert _read(watched) == 2 * ROWS.tolist()
    assert sum(seen) == 60
    assert len(watched.members) == 2


def test_rules_of_text_tell_files_apart(files: dict[str, Path]) -> None:
    path = files["c.csv"]
    plain, other = (open_points(dpkde.CSV(path, records=rule)) for rule in ("quoted", "lines"))
    assert plain.origin == open_points(path).origin
    assert plain.origin != other.origin
    with path.open("rb") as stream:
        assert open_points(stream).origin is None


def test_other_columns_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((5, 3)))
    with pytest.raises(dpkde.SchemaError, match=r"wide\.npy has other columns than a\.npy"):
        open_tables([files["a.npy"], tmp_path / "wide.npy"])
    frames = [open_points(ROWS, columns) for columns in (["x", "y"], ["y", "x"])]
    with pytest.raises(dpkde.SchemaError, match="table 2 has other columns"):
        together(frames)
    assert _read(together([frames[0], open_points(ROWS)])) == 2 * ROWS.tolist()
    np.save(tmp_path / "none.npy", np.zeros(0))  # of any width
    assert _read(open_tables([files["a.npy"], tmp_path / "none.npy"])) == ROWS.tolist()
