"""The samplers, bit by bit: every short string, the twins, cut buffers, forks, the float filter."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, Law, MaxNorm, bits, draw
from dpkde.privacy.laws.bits import BitStream
from dpkde.privacy.laws.gaussian import sampler as gaussian
from dpkde.privacy.laws.laplace import sampler as laplace
from dpkde.privacy.laws.laplace.sampler import bernoulli_exp, signed_geometric
from dpkde.privacy.laws.maxnorm import sampler as maxnorm
from tape import Tape

SCALES = [Fraction(1, 8), Fraction(1), Fraction(7, 3), Fraction(12345), Fraction(1 << 45)]


LENGTH = 22
LARGEST = 64


@exactly
def _every_laplace(top: int, bottom: int, width: int) -> NDArray[np.int64]:
    """Outcomes of every string of LENGTH bits, those too short to decide in the last place."""
    outcomes = np.zeros(2 * LARGEST + 2, dtype=np.int64)
    word = np.zeros(1, dtype=np.uint64)
    for string in range(1 << LENGTH):
        word[0] = string
        value, position = signed_geometric(word, 0, top, bottom, width)
        if 0 <= position <= LENGTH and abs(value) <= LARGEST:
            outcomes[value + LARGEST] += 1
        else:
            outcomes[-1] += 1
    return outcomes


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)])
def test_discrete_laplace_from_every_bit_string(scale: Fraction) -> None:
    """Strings that decide an outcome have its probability, up to those that are too short."""
    top, bottom = scale.numerator, scale.denominator
    outcomes = _every_laplace(top, bottom, (top - 1).bit_length()) / 2**LENGTH
    short = outcomes[-1]
    assert short < 0.25
    a = math.exp(-1 / scale)
    for z in range(-LARGEST, LARGEST + 1):
        chance = (1 - a) / (1 + a) * a ** abs(z)
        assert outcomes[z + LARGEST] <= chance + 1e-12
        assert chance <= outcomes[z + LARGEST] + short + 1e-12
    # Draws are symmetric string by string: flipping the first bit flips the sign.
    assert np.array_equal(outcomes[:LARGEST], outcomes[LARGEST + 1 : 2 * LARGEST + 1][::-1])


@exactly
def _every_coin(top: int, bottom: int, width: int) -> NDArray[np.int64]:
    outcomes = np.zeros(3, dtype=np.int64)
    word = np.zeros(1, dtype=np.uint64)
    for string in range(1 << LENGTH):
        word[0] = string
        value, position = bernoulli_exp(word, 0, top, bottom, width)
        outcomes[value if 0 <= position <= LENGTH else 2] += 1
    return outcomes


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(3, 4), Fraction(1)])
def test_bernoulli_exp_from_every_bit_string(gamma: Fraction) -> None:
    top, bottom = gamma.numerator, gamma.denominator
    tails, heads, short = _every_coin(top, bottom, (bottom - 1).bit_length()) / 2**LENGTH
    assert short < 0.01
    assert heads <= math.exp(-gamma) <= heads + short + 1e-12
    assert tails <= -math.expm1(-gamma) <= tails + short + 1e-12


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1 << 61), Fraction((1 << 70) + 1)])
def test_laplace_equals_its_twin(scale: Fraction) -> None:
    """The last scale is too wide for the compiled loop, and takes the twin's road."""
    drawn = laplace.discrete_laplace(scale, 200, Tape(1))
    stream = Tape(1).stream()
    assert drawn.tolist() == [bits.wrap(laplace.laplace_twin(stream, scale)) for _ in range(200)]
    drawn = laplace.geometrics(scale, 200, Tape(2))
    stream = Tape(2).stream()
    assert drawn.tolist() == [bits.wrap(laplace.geometric_twin(stream, scale)) for _ in range(200)]


@pytest.mark.parametrize("scale", SCALES)
def test_where_the_buffer_ends_does_not_matter(scale: Fraction) -> None:
    whole = laplace.discrete_laplace(scale, 300, Tape(3))
    for piece in (8, 24, 4096):
        assert np.array_equal(whole, laplace.discrete_laplace(scale, 300, Tape(3, piece)))
    variance = scale * scale
    whole = gaussian.discrete_gaussian(variance, 100, Tape(4))
    for piece in (8, 40):
        assert np.array_equal(whole, gaussian.discrete_gaussian(variance, 100, Tape(4, piece)))


@pytest.mark.parametrize(
    "variance", [Fraction(1, 64), Fraction(1, 2), Fraction(99), Fraction(1 << 80)]
)
def test_gaussian_equals_its_twin(variance: Fraction) -> None:
    drawn = gaussian.discrete_gaussian(variance, 60, Tape(5))
    stream = Tape(5).stream()
    assert drawn.tolist() == [gaussian.gaussian_twin(stream, variance) for _ in range(60)]
    # A margin of a quarter sends about half of the coins through exact arithmetic.
    assert np.array_equal(drawn, gaussian.discrete_gaussian(variance, 60, Tape(5), margin=0.25))


def test_exp_minus_keeps_its_error_bound() -> None:
    values = [0.0, 2.0**-60, 1e-9, 0.5, 0.6931471805599453, 0.7, 1.0, 31.0, 63.99, 64.0]
    values += np.random.default_rng(0).uniform(0, 64, 2000).tolist()
    with localcontext() as context:
        context.prec = 60
        for value in values:
            exact = (-Decimal(value)).exp()
            assert abs(Decimal(gaussian.exp_minus(value)) - exact) < Decimal(2) ** -45


def test_a_coin_at_the_edge_is_decided_exactly() -> None:
    """U whose first 53 bits are those of e^(−γ): the float filter must not decide it."""
    gamma = Fraction(1, 3)
    with localcontext() as context:
        context.prec = 60
        scaled = int((Decimal(-1) / 3).exp() * Decimal(2) ** 159)
    for offset, expected in ((-1, True), (0, None), (1, False)):
        number = (scaled >> 106) + offset
        stream_bits = number | ((scaled >> 53) & ((1 << 53) - 1)) << 53
        stream_bits |= (scaled & ((1 << 53) - 1)) << 106
        words = np.frombuffer(stream_bits.to_bytes(32, "little"), dtype=np.uint64)
        stream = BitStream(words)
        heads = gaussian.coin_twin(stream, gamma)
        if expected is None:
            assert stream.position > 53  # it had to look further
        else:
            assert heads is expected
            assert stream.position == 53


def test_max_norm_parts_equal_their_twins() -> None:
    radius, cells = 1000, 50
    coins = bits.fill(cells, Tape(6), 16, maxnorm._fill_accepts, (radius, True), lambda s, i: 0)
    stream = Tape(6).stream()
    assert coins.tolist() == [maxnorm.accept_twin(stream, radius, i + 1) for i in range(cells)]
    # A radius that passes 62 bits goes to the twins. The largest scale reaches it with chance e⁻⁶⁴.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maxnorm, "_total", lambda values: 1 << 62)
        wide = maxnorm.max_norm(Fraction(1 << 55), 3, os.urandom)
    assert wide.dtype == np.int64
    assert len(set(wide.tolist())) == 3
    # A radius that just fits where the coins do not: nothing is drawn from the wrong cube.
    for radius in ((1 << 61) - 1, (1 << 61) - 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(maxnorm, "_total", lambda values, radius=radius: radius)
            cube = maxnorm.max_norm(Fraction(1 << 55), 2, os.urandom)
        assert np.abs(cube).max() > 1 << 40


LAWS: list[Law] = [
    DiscreteLaplace(Fraction(1 << 40)),
    DiscreteGaussian(Fraction(1 << 80)),
    MaxNorm(Fraction(1 << 40), 50),
]


FORKS = """
import os, sys
from fractions import Fraction
from dpkde.privacy.laws import DiscreteGaussian, DiscreteLaplace, MaxNorm
from dpkde.privacy.laws import draw

laws = eval(sys.argv[1])
for law in laws:
    draw(law, 50)  # whatever state there could be exists before the fork
for _ in range(4):
    if not (child := os.fork()):
        for law in laws:
            print(*draw(law, 50), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
for law in laws:
    print(*draw(law, 50))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_forked_processes_never_share_noise() -> None:
    """In a process of one thread: a fork of one that has run other tests can wait forever.

    False alarm: 250 draws a law from ≥ 2^39 values; two pairs of equals are below 1e-14.
    """
    done = subprocess.run(
        [sys.executable, "-c", FORKS, repr(LAWS)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [len(line) for line in lines] == [50] * 5 * len(LAWS)
    for place in range(len(LAWS)):
        drawn = np.concatenate(lines[place :: len(LAWS)])
        assert len(np.unique(drawn)) >= len(drawn) - 1


def test_draw_takes_no_seed_and_no_generator() -> None:
    np.random.seed(0)  # noqa: NPY002
    first = draw(DiscreteLaplace(Fraction(1 << 40)), 5).tolist()
    np.random.seed(0)  # noqa: NPY002
    assert draw(DiscreteLaplace(Fraction(1 << 40)), 5).tolist() != first
