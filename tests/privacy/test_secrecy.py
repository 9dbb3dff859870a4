"""What leaves a function that holds exact numbers: words, and nothing behind them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpkde
from dpkde.prior import Bernstein, LaplaceAnswers, Online, answer
from dpkde.privacy.secrecy import sealed

HERE = str(Path(dpkde.__file__).parent)
COUNT = 7919
"""How many records there are: a number that nothing else here is."""
POINTS = np.random.default_rng(0).normal(size=(COUNT, 2))
GIVEN: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": [(-4, 4)] * 2, "epsilon": 1}
PLAN = dpkde.plan(**GIVEN, family=dpkde.Fourier(4), seed=1)


class Odd(dpkde.Gaussian):
    """A kernel that tells of one record, by an exception that is hard to catch."""

    name = "odd"

    def evaluate(self, points: Any, queries: Any) -> Any:
        if (np.abs(points - POINTS[17]) < 1e-9).all():
            raise KeyboardInterrupt(f"the secret is {points}")
        return super().evaluate(points, queries)


def _damaged(folder: Path) -> Path:
    path = folder / "t.parquet"
    pq.write_table(pa.table({"a": POINTS[:, 0], "b": POINTS[:, 1]}), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 5000] = b"secret" * 1000
    path.write_bytes(bytes(data))
    return path


def _failing() -> Iterator[Any]:
    yield POINTS[:4000]
    seen = 4000
    raise OSError(f"the cable after {seen}")


class _Meddling(LaplaceAnswers):
    def answer(self, private: Any, queries: Any, budget: Any) -> Any:
        raise ValueError("a defect")


def _failures(folder: Path) -> list[tuple[type[BaseException], Callable[[], Any]]]:
    whole = dpkde.sketch(POINTS, PLAN)
    other = dpkde.sketch(POINTS, dpkde.plan(**GIVEN, family=dpkde.Fourier(5)))
    few: dict[str, Any] = {"alpha": 0.001, "eta": 0.05}
    return [
        (dpkde.AccuracyError, lambda: dpkde.publish(POINTS, **GIVEN, **few)),
        (dpkde.AccuracyError, lambda: dpkde.publish(POINTS, plan=PLAN, epsilon=1, **few)),
        (dpkde.AccuracyError, lambda: dpkde.publish(whole, epsilon=1, **few)),
        (dpkde.AccuracyError, lambda: dpkde.publish(POINTS, **GIVEN, **few, adjacency="replace")),
        (dpkde.SchemaError, lambda: dpkde.publish(_damaged(folder), **GIVEN)),
        (dpkde.SchemaError, lambda: dpkde.sketch([POINTS, POINTS[:, :1]], PLAN)),
        (dpkde.SourceError, lambda: dpkde.publish(_failing(), **GIVEN, expected_rows=9)),
        (dpkde.MergeError, lambda: whole + other),
        (OSError, lambda: whole.save(folder / "no" / "folder")),
        (
            ValueError,
            lambda: answer(POINTS, [[0.0, 0.0]], mechanism=_Meddling(), **GIVEN),
        ),
        (
            dpkde.BudgetError,
            lambda: Online(POINTS, mechanism=LaplaceAnswers(), most_queries=1, **GIVEN).ask(
                [[0.0, 0.0]] * 2
            ),
        ),
    ]


def _frames(error: BaseException) -> Iterator[types.FrameType]:
    """Every frame of ours that hangs on an exception, by whatever way."""
    waiting: list[BaseException | None] = [error]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        place = one.__traceback__
        while place is not None:
            if place.tb_frame.f_code.co_filename.startswith(HERE):
                yield place.tb_frame
            place = place.tb_next


@pytest.mark.parametrize("which", range(11))
def test_no_frame_of_ours_still_has_its_variables(which: int, tmp_path: Path) -> None:
    kind, act = _failures(tmp_path)[which]
    with pytest.raises(kind) as caught:
        act()
    frames = list(_frames(caught.value))
    assert frames  # lines are still shown
    for frame in frames:
        variables = dict(frame.f_locals)
        if frame.f_code.co_name == "call":
            assert set(variables) <= {"function", "fault"}
            # A sealed function inside another has lost even that.
            assert variables.get("fault", caught.value) is caught.value
        else:
            assert not variables, frame
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_without_the_seal_the_points_are_there() -> None:
    """The walk above finds what it looks for."""
    inner: Any = dpkde.publish.__wrapped__  # type: ignore[attr-defined]
    with pytest.raises(dpkde.AccuracyError) as caught:
        inner(POINTS, **GIVEN, alpha=0.001, eta=0.05)
    values = [v for frame in _frames(caught.value) for v in frame.f_locals.values()]
    assert any(value is POINTS for value in values)


def test_exceptions_that_were_kept_elsewhere_are_emptied_too() -> None:
    errors: list[BaseException] = []

    def inner() -> None:
        secret = COUNT
        try:
            raise ValueError(f"{secret}"[:0])
        except ValueError as error:
            errors.append(error)
            raise RuntimeError("public") from error

    with pytest.raises(RuntimeError, match="public") as caught:
        sealed(inner)()
    assert caught.value.__cause__ is None
    assert errors[0].__traceback__ is None


def test_what_the_caller_was_handling_is_left_alone() -> None:
    """An exception of the caller's, in whose handler a publish fails, keeps its frames."""

    def fails_again() -> None:
        text = "mine"
        try:
            raise ValueError(text)
        except ValueError:
            dpkde.publish(3.0, **GIVEN)

    with pytest.raises(dpkde.SchemaError) as caught:
        fails_again()
    mine = caught.value.__context__
    assert isinstance(mine, ValueError)
    assert mine.__traceback__ is not None
    assert mine.__traceback__.tb_frame.f_locals["text"] == "mine"


def test_strange_exceptions_are_emptied() -> None:
    class OddError(Exception):
        exceptions = 5

    def failing() -> Iterator[Any]:
        yield POINTS[:9]
        raise OddError("x")

    def several() -> Iterator[Any]:
        yield POINTS[:9]
        raise ExceptionGroup("both", [ValueError("a"), ValueError("b")])

    for source in (failing, several):
        with pytest.raises(dpkde.SourceError) as caught:
            dpkde.publish(source(), **GIVEN, expected_rows=9)
        assert caught.value.__context__ is None
        for frame in _frames(caught.value):
            assert frame.f_code.co_name == "call" or not frame.f_locals


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_of_the_callers_is_not_seen_to_fail(threads: int) -> None:
    """Bernstein asks the kernel about records; so do answers to queries."""
    options = GIVEN | {"kernel": Odd(1.0)}
    release = dpkde.publish(POINTS[:40], **options, family=Bernstein(2), threads=threads)
    assert release.dim == 2
    answers = answer(
        POINTS[:40], [[0.0, 0.0]], mechanism=LaplaceAnswers(), threads=threads, **options
    )
    assert np.isfinite(answers.kde).all()
