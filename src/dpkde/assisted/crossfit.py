"""Cross-fitting: which model is taken, and how much of what it misses is added back.

Frequencies fall into folds. The cells of a fold are predicted by clouds fitted to the other folds
alone, so that what is left of them is honest however many parameters a cloud has.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dpkde.assisted.cloud import MOST_MEANS, RANKS, Cloud, Complex, Floats, Frequencies, product
from dpkde.assisted.fitting import Candidate, Sample, candidates, stretched
from dpkde.assisted.folds import FEWEST, FOLDS, folds, predicted
from dpkde.assisted.several import one_more
from dpkde.assisted.translation import limit
from dpkde.numerics.pool import mapped

MOST_FITTED = 1 << 13
"""Most frequencies that a fit looks at, and most numbers in them: more tell it little more."""
_MOST_NUMBERS = 1 << 22
_BETTER_BY, _RICHER_BY = 2.0, 1.0
"""By how many standard errors a model must beat none, and a richer one the one before."""
_CELLS_A_NUMBER, _MOST_STRETCHED = 4, 512
"""Directions are tried while there are so many frequencies for each number that they take, and up
to so many axes, since eigenvectors are needed."""
_PATIENCE = 2
_WORTH_A_MEAN = 0.995
_LITTLE_LEFT, _CELLS_AN_AXIS, _MOST_MEANS_NUMBERS = 0.1, 16, 1 << 19
"""Several means are looked for where more than this is left to explain, by so many frequencies for
each axis; and not where they hold more numbers than that: it takes time."""
_ALONE = threading.Lock()
"""One fit at a time: how many threads matrix products take is a setting of the whole process."""
_POINTS = 100


@dataclass(frozen=True, eq=False)
class Fit:
    """What was found: the clouds of all folds, and the numbers that answers need.

    Attributes
    ----------
    kind
        Which model; ``"none"`` where no model is better than none.
    clouds
        One for each fold, fitted without it; none for ``"none"``.
    share
        How much of E|φ|² the clouds explain, in frequencies that they have not seen.
    kept
        λ, the share of the correction that is kept.
    limit
        By how many standard errors an answer is moved at most.
    doubt
        The root mean square of what the clouds miss of the KDE at typical points, with room.
    """

    kind: str
    clouds: tuple[Cloud, ...] = ()
    share: float = 0.0
    kept: float = 1.0
    limit: float = 0.0
    doubt: float = 0.0


NO_FIT = Fit("none")


@dataclass(frozen=True, eq=False)
class _Entry:
    """A model in the race: its clouds, and what each cell is missed by, squared."""

    kind: str
    clouds: tuple[Cloud, ...]
    misses: Floats

    @property
    def loss(self) -> float:
        return float(self.misses.mean())

    def beats(self, misses: Floats, by: float) -> bool:
        """Tell whether it is better by so many standard errors of the difference."""
        gain = misses - self.misses
        return bool(gain.mean() > by * gain.std() / math.sqrt(len(gain)))


@dataclass(frozen=True, eq=False)
class _Race:
    """A table, and its folds as fits see them."""

    cells: Complex
    frequencies: Frequencies
    starts: Floats
    samples: tuple[Sample, ...]
    """For each fold all the others."""
    takes_axes: bool

    def entry(self, kind: str, clouds: list[Cloud]) -> _Entry:
        rest = self.cells - predicted(clouds, self.frequencies)
        return _Entry(kind, tuple(clouds), np.abs(rest) ** 2)

    def won(self, takes_factors: bool) -> _Entry:
        """Return the model that predicts best; a richer one has to show that it does."""
        best, found = self.about_one_mean()
        if takes_factors:
            longer = self.stretched(best, found)
            best = longer if longer.beats(best.misses, _RICHER_BY) else best
        noise, size = self.samples[0].noise, float(np.mean(np.abs(self.cells) ** 2))
        if best.loss - noise > _LITTLE_LEFT * (size - noise):
            several = self.about_several_means()
            if several is not None and several.beats(best.misses, _RICHER_BY):
                best = several
        return best

    def about_one_mean(self) -> tuple[_Entry, list[Candidate]]:
        """Return the best of the clouds about one mean."""
        by_fold = list(mapped(_Begin(self.starts), self.samples))
        entries = [
            self.entry(kind, [found[kind].cloud for found in by_fold])
            for kind, one in by_fold[0].items()
            if self.takes_axes or one.cloud.axes is None
        ]
        best = min(entries, key=lambda entry: entry.loss)
        return best, [found[best.kind] for found in by_fold]

    def stretched(self, base: _Entry, found: list[Candidate]) -> _Entry:
        """Return the best with directions of its own, more and more while that helps."""
        best = base
        for rank in RANKS:
            dim, count = self.frequencies.dim, len(self.cells)
            if rank * dim * _CELLS_A_NUMBER > count or not 2 * rank <= dim <= _MOST_STRETCHED:
                break
            found = list(mapped(_Stretch(self.starts, rank), zip(self.samples, found, strict=True)))
            entry = self.entry(f"{base.kind}, rank {rank}", [each.cloud for each in found])
            if entry.loss >= best.loss:
                break
            best = entry
        return best

    def about_several_means(self) -> _Entry | None:
        """Return the best of clouds that grow by a part at a time, while that helps."""
        best: _Entry | None
        dim, count = self.frequencies.dim, len(self.cells)
        if dim * count > _MOST_MEANS_NUMBERS or count < _CELLS_AN_AXIS * dim:
            return None
        clouds: list[Cloud | None] = [None] * FOLDS
        best, last = None, 0
        for count in range(1, MOST_MEANS + 1):
            more = list(mapped(_More(self.starts, count), zip(self.samples, clouds, strict=True)))
            clouds = list(more)
            entry = self.entry(f"{count} means", more)
            if best is None or entry.loss < _WORTH_A_MEAN * best.loss:
                best, last = entry, count
            elif count - last >= _PATIENCE:
                break
        return best


# What folds do in threads of their own. A step that overflows is one that is not taken.


@dataclass(frozen=True)
class _Begin:
    starts: Floats

    @np.errstate(all="ignore")
    def __call__(self, sample: Sample) -> dict[str, Candidate]:
        return candidates(sample, self.starts)


@dataclass(frozen=True)
class _Stretch:
    starts: Floats
    rank: int

    @np.errstate(all="ignore")
    def __call__(self, fold: tuple[Sample, Candidate]) -> Candidate:
        sample, found = fold
        return stretched(sample, found, sample.seen_from_best(self.starts)[0], self.rank)


@dataclass(frozen=True)
class _More:
    starts: Floats
    seed: int

    @np.errstate(all="ignore")
    def __call__(self, fold: tuple[Sample, Cloud | None]) -> Cloud:
        sample, cloud = fold
        return one_more(sample, cloud, sample.seen_from_best(self.starts)[0], self.seed)


def fit(
    cells: Complex,
    frequencies: Frequencies,
    noise: float,
    starts: Floats,
    *,
    takes_factors: bool = True,
    takes_axes: bool = True,
) -> Fit:
    """Return the best model of a noisy table, or none.

    Parameters
    ----------
    cells
        F, the noisy table over the noisy count, shape (n_frequencies,).
    frequencies
        ω, one for each cell.
    noise
        The variance of the noise on a complex cell.
    starts
        Public points where a cloud may lie, shape (n, dim), in bandwidth units.
    takes_factors, takes_axes
        Whether the kernel averages over clouds that vary along directions of their own, or more on
        some axes than on others.
    """
    count = len(frequencies)
    if count < FEWEST:
        return NO_FIT
    seen = min(count, max(min(MOST_FITTED, _MOST_NUMBERS // frequencies.dim), FEWEST))
    sample = Sample.of(cells[:seen], frequencies[:seen], noise)
    samples = []
    for fold in folds(seen):
        others = np.ones(seen, dtype=np.bool_)
        others[fold] = False
        samples.append(sample.part(others))
    race = _Race(cells, frequencies, starts, tuple(samples), takes_axes)
    with _ALONE, threadpool_limits(1, user_api="blas"):
        best = race.won(takes_factors)
        if not best.beats(np.abs(cells) ** 2, _BETTER_BY):
            return NO_FIT
        return _weighed(best, cells, frequencies, noise)


def _weighed(entry: _Entry, cells: Complex, frequencies: Frequencies, noise: float) -> Fit:
    """Return the fit with its λ: how large what is missed is, against the noise of knowing it.

    `bias` is the square of what the clouds miss of the KDE, by two looks at it that share no noise:
    products of what two folds say at points of the clouds, and the residual's KDE averaged over the
    records, Re mean F̄·(F − φ) less the noise. `variance` is that of the correction.
    """
    count, clouds = len(cells), entry.clouds
    rest = cells - predicted(clouds, frequencies)
    whole = float(np.mean(np.abs(cells) ** 2))
    left = max(entry.loss - noise, 0.0)
    variance = (left + noise) / (2 * count)
    generator = np.random.default_rng(0)  # public: which points of the clouds are looked at
    points = np.concatenate([cloud.draw(generator, _POINTS) for cloud in clouds])
    says = np.array([_correction(points, rest[part], frequencies[part]) for part in folds(count)])
    crossed = (says.sum(axis=0) ** 2 - (says**2).sum(axis=0)).mean() / (FOLDS * (FOLDS - 1))
    along = np.real(np.conj(cells) * rest) - noise
    mean, spread = float(along.mean()), float(along.std()) / math.sqrt(count)
    bias = max(float(crossed), mean**2, 0.0)
    return Fit(
        entry.kind,
        clouds,
        share=min(max(1 - left / max(whole - noise, 1e-300), 0.0), 1.0),
        kept=1.0 if bias > variance else bias / (bias + variance),
        limit=limit(math.sqrt(whole / max(entry.loss, 1e-300))),
        doubt=max(abs(mean) + spread, math.sqrt(max(float(crossed), 0.0))),
    )


def _correction(points: Floats, rest: Complex, frequencies: Frequencies) -> Floats:
    """Return mean Re e^{−iω·y}·rest at each point: what some frequencies say that is missed."""
    total = np.zeros(len(points))
    for part, block in frequencies.blocks():
        turns = block @ points.T
        total += product(rest[part].real, np.cos(turns)) + product(rest[part].imag, np.sin(turns))
    return total / len(rest)
