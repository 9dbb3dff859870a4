"""How much is measured: a quick run on generated data, or the paper's protocol in full."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes of an experiment.

    Attributes
    ----------
    trials, queries
        Independent repetitions, and held-out points that are asked in each. The paper has 10, 100.
    epsilons, high_epsilons
        Privacy budgets, for few and for many dimensions.
    features, high_features
        Numbers of Fourier features, for few and for many dimensions.
    orders
        Of the fast Gauss transform.
    lattice_orders
        Of Bernstein polynomials.
    rows
        Points of a generated data set.
    map_cells, map_epsilons
        Cells per axis of a heat map, and its budgets.
    scatter_epsilons, time_epsilons
        Budgets of the scatter plots and of the curves over curator time.
    scaling_rows, scaling_dims, scaling_high_dims, scaling_errors, repeats
        The axes of the scaling experiment, and how often a time is taken.
    release_sizes, release_rows
        Numbers of queries of the query release experiment, and records.
    complexity_rows
        Numbers of records of the sample complexity experiment.
    """

    name: str
    trials: int
    queries: int
    epsilons: tuple[float, ...]
    high_epsilons: tuple[float, ...]
    features: tuple[int, ...]
    high_features: tuple[int, ...]
    orders: tuple[int, ...]
    lattice_orders: tuple[int, ...]
    rows: int
    map_cells: int
    map_epsilons: tuple[float, ...]
    scatter_epsilons: tuple[float, ...]
    time_epsilons: tuple[float, ...]
    scaling_rows: tuple[int, ...]
    scaling_dims: tuple[int, ...]
    scaling_high_dims: tuple[int, ...]
    scaling_errors: tuple[float, ...]
    repeats: int
    release_sizes: tuple[int, ...]
    release_rows: int
    complexity_rows: tuple[int, ...]


FULL = Settings(
    name="full",
    trials=10,
    queries=100,
    epsilons=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    high_epsilons=(0.01, 0.02, 0.05, 0.1, 0.2),
    features=tuple(int(2 ** (k / 2)) for k in range(6, 29)),
    high_features=tuple(int(2 ** (k / 2)) for k in range(8, 27)),
    orders=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14),
    lattice_orders=(2, 4, 8, 16, 32, 64, 128),
    rows=100_000,
    map_cells=56,
    map_epsilons=(0.01, 0.05, 0.5),
    scatter_epsilons=(0.01, 0.05, 0.2),
    time_epsilons=(0.05, 0.02),
    scaling_rows=tuple(1 << k for k in range(14, 20)),
    scaling_dims=(1, 2, 3, 4),
    scaling_high_dims=(16, 32, 64, 128, 256),
    scaling_errors=(0.2, 0.1, 0.05, 0.02, 0.01),
    repeats=3,
    release_sizes=(1, 4, 16, 64, 256),
    release_rows=10_000,
    complexity_rows=tuple(1 << k for k in range(7, 17)),
)
"""The paper's protocol."""

QUICK = Settings(
    name="quick",
    trials=3,
    queries=100,
    epsilons=(0.05, 0.2, 1.0),
    high_epsilons=(0.05, 0.2, 1.0),
    features=(4, 16, 64, 256, 1024),
    high_features=(4, 16, 64, 256, 1024),
    orders=(1, 2, 3, 4, 6, 8, 12),
    lattice_orders=(2, 8, 32),
    rows=8_000,
    map_cells=32,
    map_epsilons=(0.05, 0.5),
    scatter_epsilons=(0.05, 0.2),
    time_epsilons=(0.05, 0.2),
    scaling_rows=(1 << 12, 1 << 14, 1 << 16),
    scaling_dims=(1, 2, 3),
    scaling_high_dims=(16, 64, 256),
    scaling_errors=(0.2, 0.1, 0.05),
    repeats=2,
    release_sizes=(1, 8, 64),
    release_rows=3_000,
    complexity_rows=tuple(1 << k for k in range(7, 14, 2)),
)
"""Minutes on two cores; needs no data."""
