"""Arrow: batches of columns, whoever makes them, as rows; streams of them, and Arrow files.

Anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` comes through here: readers, tables of
other libraries, results of databases. The types of columns are schema, and what is no number is
refused by its type (`meaning`). A stream is somebody else's code, whose errors never pass
(`foreign`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpkde.errors import SchemaError
from dpkde.tables import once
from dpkde.tables.foreign import of_library, stream
from dpkde.tables.labels import NO_LABELS, Labelled, is_label_type, labels_in_arrow
from dpkde.tables.meaning import Meaning, meaning_of
from dpkde.tables.source import Piece, Source, chunk_rows, columns_and_unit, origin_of
from dpkde.tables.streams import guarded

if TYPE_CHECKING:
    from dpkde.tables.places import Place

TO_NUMERIC = "pandas.to_numeric(frame[{0!r}], errors='coerce')"
_FILE, _OLD = b"ARROW1", b"FEA1"


def arrow(module: str = "pyarrow", what: str = "Arrow tables") -> Any:
    """Return a module of pyarrow."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SchemaError(f"{what} need one more package: pip install pyarrow") from None


@dataclass(frozen=True)
class Chosen:
    """The columns of a batch that are read: their names, places and meanings; and the unit's."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    meanings: tuple[Meaning, ...]
    whose: int | None = None
    unit: str | None = None

    @classmethod
    def among(
        cls,
        schema: Any,
        columns: Sequence[str] | None,
        unit: str | None,
        what: str,
        cast: str = TO_NUMERIC,
    ) -> Chosen:
        """Return the columns that are asked for; SchemaError where one is missing or no number."""
        names, places, whose = columns_and_unit(schema.names, columns, unit, what)
        if whose is not None and not is_label_type(kind := schema.field(whose).type):
            raise SchemaError(NO_LABELS.format(unit, f"{what} is of type {kind}"))
        meanings = []
        for name, place in zip(names, places, strict=True):
            kind = schema.field(place).type
            meaning = meaning_of(kind)
            if meaning is None:
                raise SchemaError(
                    f"column {name!r} of {what} is of type {kind}, not a number; if it holds "
                    f"numbers, cast it: {cast.format(name)}"
                )
            meanings.append(meaning)
        return cls(names, tuple(places), tuple(meanings), whose, unit)

    def first(self) -> tuple[list[int], Chosen]:
        """Return which columns are needed at all, in their order, and the same choice of those."""
        needed = sorted({*self.places, *(() if self.whose is None else (self.whose,))})
        at = {place: k for k, place in enumerate(needed)}
        places = tuple(at[place] for place in self.places)
        whose = None if self.whose is None else at[self.whose]
        return needed, Chosen(self.names, places, self.meanings, whose, self.unit)

    def pieces(self, batches: Iterable[Any]) -> Iterator[Piece]:
        """Yield the rows of batches, a few at a time, to be read when asked for."""
        step = chunk_rows(len(self.names))
        for batch in batches:
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                yield self.piece(partial(_itself, part), part.num_rows)

    def piece(self, batch: Callable[[], Any], size: int) -> Piece:
        """Return the rows of a batch, which is there when they are asked for."""
        labelled = None if self.whose is None else lambda: self.labelled(batch())
        return Piece(lambda: self.rows(batch()), size, labelled)

    def rows(self, batch: Any) -> NDArray[Any]:
        """Return the chosen columns of a batch side by side; nulls are NaN."""
        columns = [
            meaning.numbers(batch.column(place))
            for place, meaning in zip(self.places, self.meanings, strict=True)
        ]
        single = all(column.dtype == np.float32 for column in columns)
        rows = np.empty((batch.num_rows, len(columns)), np.float32 if single else np.float64)
        for k, column in enumerate(columns):
            rows[:, k] = column
        return rows

    def labelled(self, batch: Any) -> Labelled:
        """Return the same, and whose each row is."""
        return self.rows(batch), labels_in_arrow(batch.column(self.whose))

    def source(self, read: Callable[[], Iterable[Any]], **facts: Any) -> Source:
        """Return the source whose batches are read so; with other facts about it."""
        return Source(
            lambda: self.pieces(read()),
            len(self.names),
            self.names,
            unit=self.unit,
            types=tuple(meaning.type for meaning in self.meanings),
            **facts,
        )


def _itself(batch: Any) -> Any:
    return batch


def is_stream(points: Any) -> bool:
    """Return whether points hand out Arrow batches by themselves."""
    return hasattr(type(points), "__arrow_c_stream__") or hasattr(type(points), "__arrow_c_array__")


def is_table(points: Any) -> bool:
    """Return whether points are a table of pyarrow's, or a batch."""
    return str(type(points).__module__) == "pyarrow.lib" and hasattr(type(points), "schema")


def open_stream(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` as a source.

    What has a length is in memory, and can be handed out again; others are read once.
    """
    pa, what = arrow(), f"this {type(points).__name__}"
    if not hasattr(type(points), "__arrow_c_stream__"):
        points = _batch_of(points, what)
    again = hasattr(type(points), "__len__")
    if not again:
        once.check_unused(points)
    reader = None if again else _reader(points, what)
    if not again and reader is not points:  # it has handed out its stream already
        once.begun(points)
    schema = _reader(points, what).schema if reader is None else reader.schema
    chosen = Chosen.among(schema, columns, unit, what)

    def read() -> Iterator[Any]:
        if reader is None:
            yield from stream(what, _reader(points, what))
            return
        once.begun(points)
        yield from stream(what, reader)
        once.ended(points)

    size = len(points) if again and isinstance(points, (pa.Table, pa.RecordBatch)) else None
    return chosen.source(read, once=not again, size=size)


def _batch_of(points: Any, what: str) -> Any:
    try:
        return arrow().record_batch(points)
    except Exception:
        raise SchemaError(f"{what} is an Arrow array without columns: make a table of it") from None


def _reader(points: Any, what: str) -> Any:
    """Return a reader of batches; a stream of a single column has its one name from here."""
    pa = arrow()
    if isinstance(points, pa.RecordBatchReader):
        return points
    try:
        return pa.RecordBatchReader.from_stream(points)
    except Exception:
        raise SchemaError(
            f"{what} hands out no Arrow batches with columns; if it is a single column, make a "
            "table of it"
        ) from None


def open_dataset(points: Any, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return a dataset of pyarrow as a source, or a scanner of one, which is read once.

    Nothing is read ahead: Parquet would else be held a row group at a time, for several files.
    """
    dataset = arrow("pyarrow.dataset")
    what = f"this {type(points).__name__}"
    if isinstance(points, dataset.Scanner):
        once.check_unused(points)
        chosen = Chosen.among(points.projected_schema, columns, unit, what)

        def scan() -> Iterator[Any]:
            once.begun(points)
            yield from stream(what, points.to_batches())
            once.ended(points)

        return chosen.source(scan, once=True)
    if not _is_typed(points):
        raise SchemaError(
            f"{what} guesses the types of text from its cells: give the folder or the files "
            "themselves, whose cells are read one by one"
        )
    needed, chosen = Chosen.among(points.schema, columns, unit, what).first()
    names = [points.schema.names[place] for place in needed]
    fragments = dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=1 << 16, pre_buffer=False
    )
    options = {"fragment_scan_options": fragments} if _is_parquet(points) else {}

    def read() -> Iterator[Any]:
        def batches() -> Iterator[Any]:
            return iter(
                points.to_batches(
                    columns=names,
                    batch_size=chunk_rows(len(names)),
                    batch_readahead=2,
                    fragment_readahead=1,
                    **options,
                )
            )

        yield from stream(what, of_library(what, batches))

    return chosen.source(read)


def is_dataset(points: Any) -> bool:
    """Return whether points are a dataset of pyarrow, or a scanner."""
    bases = {f"{base.__module__}.{base.__name__}" for base in type(points).__mro__}
    return not bases.isdisjoint(("pyarrow._dataset.Dataset", "pyarrow._dataset.Scanner"))


def _formats(points: Any) -> set[str]:
    children = getattr(points, "children", None)
    if children:
        return set().union(*map(_formats, children))
    return {getattr(getattr(points, "format", None), "default_extname", "memory")}


def _is_typed(points: Any) -> bool:
    """Return whether the types of columns are written down, and not guessed from text."""
    return _formats(points).isdisjoint(("csv", "json"))


def _is_parquet(points: Any) -> bool:
    return _formats(points) == {"parquet"}


def open_arrow(place: Place, columns: Sequence[str] | None, unit: str | None = None) -> Source:
    """Return an Arrow file, which is also what Feather writes, or a stream in a file."""
    ipc = arrow("pyarrow.ipc", "Arrow files")
    damaged = f"{place.name} is damaged, or not a {place.suffix} file"

    @contextmanager
    def opened(options: Any) -> Iterator[tuple[Any, Iterator[Any]]]:
        with place.open("rb") as stored:
            file = arrow().PythonFile(stored, mode="r")
            start = file.read(len(_FILE))
            if start.startswith(_OLD):
                raise SchemaError(
                    f"{place.name} is of the first version of Feather: write it again, as in "
                    "pyarrow.feather.write_feather(pyarrow.feather.read_table(old), new)"
                )
            file.seek(0)
            if start == _FILE:
                reader = ipc.open_file(file, options=options)
                yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))
            else:
                reader = ipc.open_stream(file, options=options)
                yield reader.schema, iter(reader)

    def schema() -> Any:
        with opened(ipc.IpcReadOptions()) as (found, _):
            return found

    found = guarded(damaged, schema)
    needed, chosen = Chosen.among(found, columns, unit, place.name).first()

    def read() -> Iterator[Any]:
        with opened(ipc.IpcReadOptions(included_fields=needed)) as (_, batches):
            while (batch := guarded(damaged, lambda: next(batches, None))) is not None:
                yield batch

    return chosen.source(read, origin=origin_of(place))
