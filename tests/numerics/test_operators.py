"""Operators on tables: the same as the matrices that they never write out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpkde.numerics.operators import Dense, Diagonal, Kronecker, Operator, Toeplitz

GENERATOR = np.random.default_rng(3)


def _band(sequence: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    lags = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    padded = np.concatenate([sequence, np.zeros(size)])
    return np.asarray(padded[lags])


def _cases() -> list[tuple[Operator, NDArray[np.float64]]]:
    short, long = GENERATOR.normal(size=4), GENERATOR.normal(size=30)
    square, wide = GENERATOR.normal(size=(3, 3)), GENERATOR.normal(size=(5, 3))
    weights = GENERATOR.normal(size=4)
    diagonal = np.zeros((12, 14))
    for row in range(2):
        diagonal[row * 6 + np.arange(4), row * 7 + np.arange(4)] = weights
    return [
        (
            Kronecker((Dense(square), Toeplitz(short, 9), Toeplitz(long, 7)), 0.5),
            0.5 * np.kron(np.kron(square, _band(short, 9)), _band(long, 7)),
        ),
        (Kronecker((Dense(square),)), square),
        (Kronecker((Dense(wide), Toeplitz(short, 1))), wide * short[0]),
        (Diagonal(weights, 2, 7, 6), diagonal),
        (Diagonal(weights, 1, 4, 4), np.diag(weights)),
    ]


@pytest.mark.parametrize("case", range(5))
def test_operators_are_their_matrices(case: int) -> None:
    operator, matrix = _cases()[case]
    table = GENERATOR.normal(size=(matrix.shape[1],))
    back = GENERATOR.normal(size=(matrix.shape[0],))
    assert operator.apply(table) == pytest.approx(matrix @ table, abs=1e-12)
    assert operator.transposed.apply(back) == pytest.approx(matrix.T @ back, abs=1e-12)
    assert operator.squares == pytest.approx((matrix**2).sum())
    if matrix.shape[0] == matrix.shape[1]:
        assert operator.trace == pytest.approx(np.trace(matrix))
        assert operator.diagonal_squares == pytest.approx((np.diagonal(matrix) ** 2).sum())
