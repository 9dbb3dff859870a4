"""Sketches: exact, mergeable, order-free, for any split, order, batch, layout, type and threads."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpkde
from dpkde.curator.sketch import Sketch
from dpkde.tables.source import chunk_rows


def _anew(sums: dpkde.Sketch) -> dpkde.Sketch:
    """Return the same sums without the ids that tell which sketches are in them."""
    return Sketch(sums.plan, sums._table, sums._count, sums._rows)


def _plan(axes: int, **changes: Any) -> dpkde.Plan:
    arguments: dict[str, Any] = {
        "kernel": dpkde.Gaussian(1.0),
        "bounds": [(-2.0, 2.0)] * axes,
        "epsilon": 1,
        "family": dpkde.Fourier(5),
        "seed": 1,
    }
    return dpkde.plan(**(arguments | changes))


matrix = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
PLANS = [
    _plan(1),
    _plan(2, bounds=dpkde.Box([(-1, 1)] * 2, outside="drop")),
    _plan(3, kernel=dpkde.Gaussian(matrix)),
    _plan(3, bounds=dpkde.Ball((0, 0, 0), 1.5), family=dpkde.Fourier(9, form="phase")),
    _plan(4, bounds=dpkde.Sphere(), dim=4),
    _plan(5, bounds=None, dim=5),
    _plan(6, bounds=dpkde.Sets(6)),
    _plan(2, family=dpkde.Spline(3, 0.7)),
    _plan(3, bounds=[(-2, 2), (-1, 1), (-0.1, 0.1)], family=dpkde.Spline((5, 2, 1), (1.0, 0.8, 9))),
    _plan(3, kernel=dpkde.Gaussian(matrix), family=dpkde.Spline(2, 1.5)),
    _plan(4, bounds=dpkde.Sphere(), dim=4, family=dpkde.Spline(1, 1.0)),
    _plan(2, family=dpkde.FastGauss(4)),
    _plan(3, bounds=dpkde.Ball((0, 0, 0), 1.5), family=dpkde.FastGauss(2, repetitions=2)),
]
values = st.one_of(
    st.floats(-5, 5, width=32),
    st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e30, -1e38, 1e-40, 2.0]),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dpkde.Plan, NDArray[Any]]:
    plan = draw(st.sampled_from(PLANS))
    rows = draw(st.integers(0, 40))
    cells = draw(st.lists(values, min_size=rows * plan.frame.dim, max_size=rows * plan.frame.dim))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return plan, np.array(cells, dtype=dtype).reshape(rows, plan.frame.dim)


@given(tables(), st.data())
def test_any_split_order_batch_layout_and_thread_count(
    table: tuple[dpkde.Plan, NDArray[Any]], data: st.DataObject
) -> None:
    plan, points = table
    whole = dpkde.sketch(points, plan, threads=1)
    # any split, merged
    cut = data.draw(st.integers(0, len(points)))
    assert dpkde.sketch(points[:cut], plan) + dpkde.sketch(points[cut:], plan) == whole
    # any order
    order = data.draw(st.permutations(range(len(points))))
    assert dpkde.sketch(points[list(order)], plan) == whole
    # any batch size, any number of threads
    size = data.draw(st.integers(1, 7))
    batches = (points[i : i + size] for i in range(0, len(points), size))
    assert dpkde.sketch(batches, plan, threads=data.draw(st.sampled_from([1, 2, 5]))) == whole
    # any memory layout, either float type, either byte order
    assert dpkde.sketch(np.asfortranarray(points), plan) == whole
    assert dpkde.sketch(np.repeat(points, 2, axis=0)[::2], plan) == whole
    assert dpkde.sketch(points[::-1][::-1], plan) == whole
    assert dpkde.sketch(points.astype(np.float64), plan) == whole
    assert dpkde.sketch(points.astype(points.dtype.newbyteorder(">")), plan) == whole


@given(tables(), st.data())
def test_one_record_changes_the_sketch_by_its_own_contribution(
    table: tuple[dpkde.Plan, NDArray[Any]], data: st.DataObject
) -> None:
    plan, points = table
    record = np.array([data.draw(values) for _ in range(plan.frame.dim)], dtype=points.dtype)
    at = data.draw(st.integers(0, len(points)))
    more = np.insert(points, at, record, axis=0)
    before, after = dpkde.sketch(points, plan), dpkde.sketch(more, plan)
    own = plan.pair.quantize(*plan.frame.place(record[np.newaxis]))[0]
    assert np.array_equal(after._table - before._table, own)
    assert after._count - before._count in (0, 1)
    assert after._rows == before._rows + 1


def test_large_tables_in_every_way() -> None:
    """More rows than a chunk, odd sizes, wide rows: past every block and tile edge."""
    generator = np.random.default_rng(0)
    plan = _plan(33, family=dpkde.Fourier(517))
    points = generator.normal(size=(3 * chunk_rows(33) + 77, 33))
    whole = dpkde.sketch(points, plan, threads=1)
    assert whole == dpkde.sketch(points, plan, threads=4)
    assert whole == dpkde.sketch(np.array_split(points, 13), plan, threads=2)
    assert whole == sum(
        (dpkde.sketch(p, plan) for p in np.array_split(points, 5)), Sketch.empty(plan)
    )
    rows = points[::997]
    slow = plan.pair.quantize(*plan.frame.place(rows)).sum(axis=0)
    assert np.array_equal(dpkde.sketch(rows, plan)._table, slow)


def test_integer_and_boolean_tables() -> None:
    plan = _plan(2)
    points = np.array([[0, 1], [1, -1], [2, 0]])
    whole = dpkde.sketch(points.astype(np.float64), plan)
    for dtype in (np.int8, np.int64, np.float16):
        assert dpkde.sketch(points.astype(dtype), plan) == whole


def test_masked_and_extended_arrays() -> None:
    plan = _plan(2)
    hidden = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=bool)
    masked = np.ma.masked_array(np.ones((4, 2)), mask=hidden)
    assert dpkde.sketch(masked, plan)._count == 1
    long = np.ones((2, 2), dtype=np.longdouble)
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        long[0, 0] = np.longdouble("1e4000")
    assert dpkde.sketch(long, plan)._rows == 2  # and no warning, which would be an error here


def test_no_rows_are_no_rows_whatever_their_shape() -> None:
    plan = _plan(2)
    whole = dpkde.sketch(np.ones((3, 2)), plan)
    nothing = dpkde.sketch(np.empty((0, 2)), plan)
    kinds: list[Any] = [np.array([]), [], iter([]), [np.array([])], [np.empty((0, 2))]]
    for empty in kinds:
        assert dpkde.sketch(empty, plan) == nothing
    assert dpkde.sketch([np.array([]), np.ones((3, 2)), np.array([])], plan) == whole


def test_a_million_duplicates() -> None:
    plan = _plan(1, family=dpkde.Fourier(3))
    one = dpkde.sketch(np.array([[0.7]]), plan)
    many = dpkde.sketch(np.full((1_000_000, 1), 0.7), plan)
    assert np.array_equal(many._table, 1_000_000 * one._table)


def test_sums_wrap_and_never_raise() -> None:
    """Doubling past 2⁶³ wraps like the integers modulo 2⁶⁴, without a word."""
    plan = _plan(1)
    made = dpkde.sketch(np.array([[0.7]]), plan)
    exact = made._table.astype(object)
    for _ in range(70):
        made = _anew(made) + _anew(made)
        exact = exact * 2
    wrapped = [(int(v) + (1 << 63)) % (1 << 64) - (1 << 63) for v in exact]
    assert made._table.tolist() == wrapped
    assert dpkde.publish(made, epsilon=1).count >= 1


def test_it_prints_its_shape_only() -> None:
    plan = _plan(2)
    generator = np.random.default_rng(0)
    texts = {repr(dpkde.sketch(generator.normal(size=(n, 2)), plan)) for n in (0, 1, 10, 1000)}
    assert len(texts) == 1
    assert "secret" in texts.pop()


def test_sketches_of_other_plans_do_not_merge() -> None:
    left, right = (
        dpkde.sketch(np.zeros((1, 2)), _plan(2)),
        dpkde.sketch(np.zeros((1, 2)), _plan(2, seed=2)),
    )
    with pytest.raises(dpkde.MergeError, match="different plans"):
        left + right
    assert left != right
    with pytest.raises(TypeError):
        left + 1  # type: ignore[operator]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.frame.domain.kind)
def test_save_and_load(plan: dpkde.Plan, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(50, plan.frame.dim))
    made = dpkde.sketch(points, plan)
    made.save(tmp_path / "part.sketch")
    back = Sketch.load(tmp_path / "part.sketch")
    assert back == made
    assert back + _anew(made) == _anew(made) + made
    if os.name == "posix":
        assert (tmp_path / "part.sketch").stat().st_mode & 0o077 == 0
    empty = dpkde.sketch(points[:0], plan)
    empty.save(tmp_path / "empty.sketch")
    sizes = {p.stat().st_size for p in tmp_path.iterdir()}
    assert len(sizes) == 1  # the size of the file does not tell how many records
    with pytest.raises(dpkde.FormatError, match="not a dpkde-release"):
        dpkde.load(tmp_path / "part.sketch")
    plan.save(tmp_path / "plan")
    with pytest.raises(dpkde.FormatError, match="not a dpkde-sketch"):
        Sketch.load(tmp_path / "plan")
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (np.zeros((3, 3)), "must have 2 column"),
        (np.zeros((3, 2, 1)), "shape"),
        (np.zeros(5), "must have 2 column"),
        (np.array([[1j, 2]]), "real numbers"),
        (np.zeros((3, 3), dtype=object), "must have 2 column"),
        ([np.zeros((3, 3))], "must have 2 column"),
        (None, "got NoneType"),
        (3.0, "got float"),
        ({"a": [1.0], "b": [2.0]}, "got dict"),
        ({(1.0, 2.0)}, "got set"),
        (b"1,2", "got bytes"),
        ((Path("b"), Path("a.parquet")), "b is not a table that can be read"),
    ],
)
def test_only_the_schema_raises(points: Any, told: str) -> None:
    with pytest.raises(dpkde.SchemaError, match=told):
        dpkde.sketch(points, _plan(2))
