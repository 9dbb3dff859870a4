"""Which pilot a frame gets."""

from __future__ import annotations

from dpkde.planning.pilot import Pilot
from dpkde.planning.signs import Signs
from dpkde.planning.waves import Waves
from dpkde.space.frame import Frame


def draw_pilot(frame: Frame, capacity_bits: int, seed: int) -> Pilot | None:
    """Return a pilot of signs on few axes, else one of waves; None where neither can serve."""
    return Signs.drawn(frame, capacity_bits, seed) or Waves.drawn(frame, capacity_bits, seed)
