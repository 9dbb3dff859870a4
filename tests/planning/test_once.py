"""Planning asks each thing once, and equal questions have equal answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpkde
from dpkde.families.base import Layout
from dpkde.families.registry import FAMILIES
from dpkde.space.frame import Frame

BOX: dict[str, Any] = {"kernel": dpkde.Gaussian(1.0), "bounds": [(-4, 4)] * 2, "epsilon": 1}
PROMISE = {"alpha": 0.05, "eta": 0.05}
POINTS = np.random.default_rng(0).normal(size=(2000, 2))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"delta": 1e-6},
        {"alpha": 0.05, "eta": 0.05},
        {"delta": 1e-6, "alpha": 0.05, "eta": 0.05},
    ],
    ids=["pure", "delta", "promise", "both"],
)
def test_families_list_their_layouts_once(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever δ, α and η say, for a plan and for a release."""
    listed: list[str] = []
    for kind in FAMILIES.values():

        def layouts(family: Any, frame: Frame, plain: Any = kind.layouts) -> list[Layout]:
            listed.append(family.name)
            return list(plain(family, frame))

        monkeypatch.setattr(kind, "layouts", layouts)
    able = [name for name, kind in FAMILIES.items() if name != "hashing"]  # none for the Gaussian
    dpkde.plan(**BOX, **asked, expected_rows=2000)
    assert listed == able
    listed.clear()
    dpkde.publish(POINTS, **BOX, **asked)
    assert listed == able


def test_equal_arguments_and_seeds_give_equal_plans() -> None:
    for family in ("auto", "spline", "fastgauss"):  # nothing random: no seed is needed
        one, other = (dpkde.plan(**BOX, family=family, expected_rows=2000) for _ in range(2))
        assert one == other
        assert one.to_bytes() == other.to_bytes()
    for random in ("fourier", dpkde.Fourier(8, form="phase")):
        plans = [
            dpkde.plan(**BOX, family=random, expected_rows=2000, seed=seed)
            for seed in (4, 4, 5, None, None)
        ]
        assert plans[0] == plans[1]
        assert plans[0].to_bytes() == plans[1].to_bytes()
        assert len(set(plans)) == 4


def test_written_settled_and_drawn_are_three_types() -> None:
    plan = dpkde.plan(**BOX, family=dpkde.Spline(), expected_rows=2000)
    written, layout, pair = dpkde.Spline(), plan.layout, plan.pair
    with pytest.raises(dpkde.ParameterError, match="needed here"):
        written.layout(plan.frame)
    assert layout.family == plan.family
    assert plan.family.layout(plan.frame).family == plan.family
    for state, name in ((written, "degree"), (layout, "family"), (pair, "bits")):
        with pytest.raises(AttributeError):
            setattr(state, name, None)
