"""The examples of ``docs/extend.md``, the contract included; and what a wrong f cannot do."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import dpkde
from dpkde.families.custom import fits
from dpkde.privacy.amounts import Bounds
from dpkde.space.domain import as_domain
from dpkde.space.frame import Frame

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"


@pytest.mark.audit
def test_the_example_passes_the_contract(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "test_mine.py").write_text("\n\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b1\d passed", done.stdout), done.stdout


@dataclass(frozen=True)
class Wild(dpkde.CustomFamily):
    """f does what it likes."""

    how: str = "large"
    name: ClassVar[str] = "wild"
    version: ClassVar[int] = 1

    def limits(self, frame: Frame) -> dpkde.Limits:
        return dpkde.Limits(cells=3, l1=1.2 if self.how == "long in L2" else 1.0, l2=0.8, linf=0.7)

    def randomness(self, frame: Frame, generator: np.random.Generator) -> dict[str, NDArray[Any]]:
        return {"words": generator.integers(0, 9, 4)}

    def f(self, x: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> Any:
        if self.how == "raises":
            raise RuntimeError(f"the secret is {x}")
        return {
            "large": np.array([1e300, 0.0, 0.0]),
            "long in L1": np.array([0.4, 0.4, 0.3]),  # 1.1, and 0.64 in L2
            "long in L2": np.array([0.68, 0.0, 0.47]),  # 0.83 in L2, and see `limits` for L1
            "high": np.array([0.75, 0.0, 0.0]),
            "not a number": np.array([np.nan, 0.0, 0.0]),
            "of another shape": np.zeros(4),
            "text": "abc",
            "fine": np.array([0.6, -0.3, 0.1]),
        }[self.how]

    def g(self, y: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return np.ones(3)


FRAME = Frame.of(dpkde.Gaussian(1.0), as_domain([(-1, 1)]))


@pytest.mark.parametrize(
    "how",
    [
        "raises",
        "large",
        "long in L1",
        "long in L2",
        "high",
        "not a number",
        "of another shape",
        "text",
    ],
)
def test_a_record_that_breaks_the_limits_contributes_nothing(how: str) -> None:
    pair = Wild(how).layout(FRAME).draw(20, 0)
    assert not pair.quantize(*FRAME.place(np.zeros((2, 1)))).any()
    table = np.zeros(3, dtype=np.int64)
    pair.accumulate(*FRAME.place(np.zeros((2, 1))), table)
    assert not table.any()
    release = dpkde.publish(np.zeros((5, 1)), kernel=FRAME.kernel, epsilon=1, family=Wild(how))
    assert release.table.size == 3


def test_bounds_are_the_limits_rounded_up() -> None:
    pair = Wild("fine").layout(FRAME).draw(20, 0)
    assert pair.quantize(*FRAME.place(np.zeros((1, 1))))[0].tolist() == [629146, -314573, 104858]
    bounds = pair.bounds
    assert 1 << 20 <= bounds.l1 <= (1 << 20) + 4
    assert 0.8 * (1 << 20) <= bounds.l2_squared**0.5 <= 0.8 * (1 << 20) + 4
    assert 0.7 * (1 << 20) <= bounds.linf <= 0.7 * (1 << 20) + 2


def test_files_need_the_family_and_its_tensors(tmp_path: Path) -> None:
    release = dpkde.publish(np.zeros((5, 1)), kernel=FRAME.kernel, epsilon=1, family=Wild("fine"))
    release.save(tmp_path / "wild")
    assert dpkde.load(tmp_path / "wild", families=[Wild]) == release
    with pytest.raises(dpkde.FormatError, match=r"families=\[\.\.\.\]"):
        dpkde.load(tmp_path / "wild")
    with pytest.raises(dpkde.FormatError, match="damaged"):
        Wild("fine").layout(FRAME).restore(20, {"words": np.zeros(3, dtype=np.int64)})


def test_g_of_a_wrong_length_says_so() -> None:
    class Short(Wild):
        def g(self, y: NDArray[np.float64], drawn: Any) -> NDArray[np.float64]:
            return np.ones(2)

    with pytest.raises(dpkde.ParameterError, match=r"g of wild has shape \(2,\)"):
        Short("fine").layout(FRAME).draw(20, 0).respond(np.zeros((1, 1)), np.zeros(3))


def test_one_record_cannot_reach_another_through_what_was_drawn() -> None:
    class Writing(Wild):
        def f(self, x: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> Any:
            drawn["seen"] = x
            if self.how == "forces":
                drawn["words"].setflags(write=True)
            drawn["words"] += 3
            return np.array([0.5, 0.0, 0.0])

    for how in ("tries", "forces"):
        pair = Writing(how).layout(FRAME).draw(20, 0)
        before = pair.tensors["words"].copy()
        assert not pair.quantize(*FRAME.place(np.ones((2, 1)))).any()
        assert list(pair.tensors) == ["words"]
        assert np.array_equal(pair.tensors["words"], before)


def test_what_f_does_with_a_private_value_is_not_seen(recwarn: pytest.WarningsRecorder) -> None:
    import warnings

    class Panic(BaseException):
        pass

    class Loud(Wild):
        def f(self, x: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> Any:
            warnings.warn(f"the secret is {x}", stacklevel=1)
            if self.how == "leaves":
                raise SystemExit(3)
            if self.how == "interrupts":
                raise KeyboardInterrupt(f"the secret is {x}")
            if self.how == "overflows":
                np.seterr(all="raise")
                return np.full(3, 1e308)
            if self.how == "panics":
                raise Panic(f"the secret is {x}")
            return np.emath.sqrt(-np.ones(3)) if self.how == "complex" else np.zeros(3)

    points = np.full((5, 1), 0.123)
    given: dict[str, Any] = {"kernel": FRAME.kernel, "bounds": [(-1, 1)], "epsilon": 1}
    with np.errstate():
        for how in ("leaves", "panics", "complex", "warns", "overflows", "interrupts"):
            for threads in (1, 2):
                dpkde.publish(points, **given, family=Loud(how), threads=threads)
    # Where it is asked in the main thread, that might be the caller's Ctrl-C: without its text.
    pair = Loud("interrupts").layout(FRAME).draw(8, 0)
    with pytest.raises(KeyboardInterrupt) as caught:
        pair.quantize(points, np.ones(5, dtype=np.bool_))
    assert not caught.value.args
    assert caught.value.__context__ is None
    told = [each for each in recwarn if not issubclass(each.category, dpkde.ReleaseWarning)]
    assert not told


@pytest.mark.parametrize(
    "limits",
    [
        (0, 1.0),
        (3, 0.0),
        (3, float("nan")),
        (3, float("inf")),
        (3, 1.0, 1.0, 2.0**40),
        (1 << 40, 1),
    ],
)
def test_limits_have_to_be_numbers(limits: Any) -> None:
    class Strange(Wild):
        def limits(self, frame: Frame) -> dpkde.Limits:
            return dpkde.Limits(*limits)

    with pytest.raises(dpkde.ParameterError, match="limits need"):
        Strange("fine").layout(FRAME).bounds(20)


def test_what_is_not_declared_is_not_known() -> None:
    release = dpkde.publish(np.zeros((5, 1)), kernel=FRAME.kernel, epsilon=1, family=Wild("fine"))
    assert np.isnan(release.sampling_error([0.0])).all()


def test_bounds_are_enforced_in_whole_numbers_that_do_not_wrap() -> None:
    """`np.prod` makes NumPy's integers of a size; products of those would wrap, and let f pass."""

    class Wide(Wild):
        def limits(self, frame: Frame) -> dpkde.Limits:
            cells: Any = np.prod((2, 2))
            return dpkde.Limits(cells, l1=2048.0, l2=512.0, linf=512.0)

        def f(self, x: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> Any:
            return np.full(4, 512.0)  # twice the L2 bound

    for bits in Wide.lattice_bits:
        pair = Wide().layout(FRAME).draw(bits, 0)
        assert type(pair.bounds.cells) is int
        assert not pair.quantize(*FRAME.place(np.zeros((1, 1)))).any()
    for bounds in ((0, 1, 1, 1), (1, 1, 1, -1)):
        with pytest.raises(dpkde.ParameterError, match="not below 0"):
            Bounds(*bounds, nonnegative=True)
    large = Bounds(1, 1 << 62, 1 << 124, (1 << 53) + 3, nonnegative=False)
    assert fits(np.array([-(1 << 53) - 3]), large)
    assert not fits(np.array([(1 << 53) + 4]), large)


def test_plans_of_families_with_other_bounds_are_others(tmp_path: Path) -> None:
    """Name, version and parameters are the same, the code is not: noise would be too small."""

    class Near(Wild):
        def f(self, x: NDArray[np.float64], drawn: dict[str, NDArray[Any]]) -> Any:
            return np.array([0.5, 0.0, 0.0])

    class Far(Near):
        def limits(self, frame: Frame) -> dpkde.Limits:
            return dpkde.Limits(cells=3, l1=100.0)

    point = np.zeros((1, 1))
    settings: dict[str, Any] = {
        "kernel": FRAME.kernel,
        "bounds": [(-1, 1)],
        "epsilon": 1,
        "seed": 1,
    }
    near, far = (dpkde.plan(**settings, family=family) for family in (Near("x"), Far("x")))
    assert near != far
    with pytest.raises(dpkde.MergeError):
        _ = dpkde.Sketch.empty(near) + dpkde.sketch(point, far)
    with pytest.raises(dpkde.ParameterError, match="another plan"):
        dpkde.publish(dpkde.sketch(point, far), plan=near, epsilon=1)
    far.save(tmp_path / "plan")
    dpkde.sketch(point, far).save(tmp_path / "sketch")
    dpkde.publish(point, **settings, family=Far("x")).save(tmp_path / "release")
    for read, name in (
        (dpkde.Plan.load, "plan"),
        (dpkde.Sketch.load, "sketch"),
        (dpkde.Release.load, "release"),
    ):
        assert read(tmp_path / name, families=[Far])
        with pytest.raises(dpkde.FormatError):
            read(tmp_path / name, families=[Near])
