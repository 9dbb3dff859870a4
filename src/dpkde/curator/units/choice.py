"""Which records of a unit enter: compiled loops over blocks of rows; see ``proof.md``.

A record of unit u with row x is known by (u, x, j): it is the j-th of u's rows that are equal to x,
in whatever order. Of the records of a unit the c smallest enter, by (h(u, x, j), x, j), h a keyed
hash of 64 bits. So which ones enter is a function of the unit's own rows, as a multiset.

**The hash.** A state s of 64 bits takes in a word w by s ← m(s ⊕ w + γ) modulo 2⁶⁴, with

    m(z) = z₂ ⊕ (z₂ ≫ 31),  z₂ = (z₁ ⊕ (z₁ ≫ 27))·0x94D049BB133111EB,
    z₁ = (z ⊕ (z ≫ 30))·0xBF58476D1CE4E5B9,  γ = 0x9E3779B97F4A7C15

from SplitMix64. It begins as the key and takes in the kind of the id; the number, or the bytes of
the text by eights, little-endian and filled up with zeros, and their number; then the bits of each
coordinate of the row as a float64, with +0 for −0; then j. Privacy does not rest on it, and no
record's chance to enter but its own rows' hangs on it: ties are broken by whole rows, and whole ids
tell units apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpkde.numerics.compiled import exactly
from dpkde.tables.labels import TEXT

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_RUN = 24
"""Rows that are sorted by insertion."""


@exactly
def absorb(state: Any, word: Any) -> Any:
    """Return the state of the hash after one more word."""
    z = (np.uint64(state) ^ np.uint64(word)) + _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@exactly
def hash_labels(
    key: Any,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
    hashes: Words,
) -> None:
    """Write the state of the hash behind each id."""
    start = 0
    for i in range(len(kinds)):
        state = absorb(key, np.uint64(kinds[i]))
        if kinds[i] != TEXT:
            hashes[i] = absorb(state, np.uint64(numbers[i]))
        else:
            word = np.uint64(0)
            for position in range(start, ends[i]):
                place = np.uint64(8 * ((position - start) % 8))
                word |= np.uint64(text[position]) << place
                if place == np.uint64(56):
                    state, word = absorb(state, word), np.uint64(0)
            state = absorb(state, word)
            hashes[i] = absorb(state, np.uint64(ends[i] - start))
        start = ends[i]


@exactly
def hash_rows(states: Words, rows: Words, hashes: Words) -> None:
    """Write the state of the hash behind each row, `states` being those behind the ids."""
    for i in range(len(rows)):
        state = states[i]
        for k in range(rows.shape[1]):
            state = absorb(state, rows[i, k])
        hashes[i] = state


@exactly
def _compared_ids(
    i: int,
    j: int,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> int:
    """Return −1, 0 or 1 as the id of row i comes before that of row j, is the same, or after."""
    if kinds[i] != kinds[j]:
        return -1 if kinds[i] < kinds[j] else 1
    if kinds[i] != TEXT:
        if numbers[i] == numbers[j]:
            return 0
        return -1 if numbers[i] < numbers[j] else 1
    a, b = (ends[i - 1] if i else 0), (ends[j - 1] if j else 0)
    size_a, size_b = ends[i] - a, ends[j] - b
    for k in range(min(size_a, size_b)):
        if text[a + k] != text[b + k]:
            return -1 if text[a + k] < text[b + k] else 1
    if size_a == size_b:
        return 0
    return -1 if size_a < size_b else 1


@exactly
def _compared(
    i: int,
    j: int,
    hashes: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> int:
    """Return the same for whole records: by the hash of the id, the id, and the row."""
    if hashes[i] != hashes[j]:
        return -1 if hashes[i] < hashes[j] else 1
    ids = _compared_ids(i, j, kinds, numbers, text, ends)
    if ids != 0:
        return ids
    for k in range(rows.shape[1]):
        if rows[i, k] != rows[j, k]:
            return -1 if rows[i, k] < rows[j, k] else 1
    return 0


@exactly
def sort_groups(
    order: Numbers,
    hashes: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> None:
    """Sort an order that is already one by hashes further: by ids, then by rows."""
    spare = np.empty(0, dtype=np.int64)
    start, size = 0, len(order)
    while start < size:
        stop = start + 1
        while stop < size and hashes[order[stop]] == hashes[order[start]]:
            stop += 1
        for low in range(start, stop, _RUN):  # runs by insertion, then merged by twos
            for right in range(low + 1, min(low + _RUN, stop)):
                one, left = order[right], right - 1
                while left >= low and (
                    _compared(order[left], one, hashes, rows, kinds, numbers, text, ends) > 0
                ):
                    order[left + 1] = order[left]
                    left -= 1
                order[left + 1] = one
        width = _RUN
        if stop - start > width and len(spare) < stop - start:
            spare = np.empty(stop - start, dtype=np.int64)
        while width < stop - start:
            for low in range(start, stop - width, 2 * width):
                middle, high = low + width, min(low + 2 * width, stop)
                a, b, to = low, middle, 0
                while a < middle and b < high:
                    if _compared(order[b], order[a], hashes, rows, kinds, numbers, text, ends) < 0:
                        spare[to] = order[b]
                        b += 1
                    else:
                        spare[to] = order[a]
                        a += 1
                    to += 1
                while a < middle:
                    spare[to] = order[a]
                    a, to = a + 1, to + 1
                order[low : low + to] = spare[:to]
            width *= 2
        start = stop


@exactly
def count_equal(
    order: Numbers,
    times: Numbers,
    hashes: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> int:
    """Gather equal records of a sorted order in the first of them; return how many there are.

    The places of the first ones come to the front of `order`, in their order, and `times` there
    says how many they stand for.
    """
    distinct = 0
    for place in range(len(order)):
        here = order[place]
        if distinct:
            before = order[distinct - 1]
            if _compared(before, here, hashes, rows, kinds, numbers, text, ends) == 0:
                times[before] += times[here]
                continue
        order[distinct] = here
        distinct += 1
    return distinct


@exactly
def _sinks(chances: Words, places: Numbers, size: int, at: int) -> None:
    """Restore the heap of `size` entries, the largest on top, whose entry at `at` may be small."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        right = child + 1
        if right < size and _later(chances, places, right, child):
            child = right
        if not _later(chances, places, child, at):
            return
        chances[at], chances[child] = chances[child], chances[at]
        places[at], places[child] = places[child], places[at]
        at = child


@exactly
def _later(chances: Words, places: Numbers, a: int, b: int) -> bool:
    if chances[a] != chances[b]:
        return bool(chances[a] > chances[b])
    return bool(places[a] > places[b])


@exactly
def _smallest(
    limit: int,
    start: int,
    stop: int,
    order: Numbers,
    times: Numbers,
    hashes: Words,
    rows: Words,
    chances: Words,
    places: Numbers,
) -> int:
    """Write the `limit` smallest hashes of a unit's records and where these stand in the order.

    Return how many there are.
    """
    held = 0
    for place in range(start, stop):
        here = order[place]
        state = hashes[here]
        for k in range(rows.shape[1]):
            state = absorb(state, rows[here, k])
        for number in range(1, times[here] + 1):
            chance = absorb(state, np.uint64(number))
            if held < limit:
                chances[held], places[held] = chance, place
                held += 1
                if held == limit:
                    for at in range(limit // 2 - 1, -1, -1):
                        _sinks(chances, places, limit, at)
            elif chance < chances[0]:  # later rows lose a tie
                chances[0], places[0] = chance, place
                _sinks(chances, places, limit, 0)
    return held


@exactly
def _end_of_unit(
    start: int,
    order: Numbers,
    hashes: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> int:
    """Return where the records of the unit end that begin at `start` of the order."""
    first, stop = order[start], start + 1
    while (
        stop < len(order)
        and hashes[order[stop]] == hashes[first]
        and _compared_ids(order[stop], first, kinds, numbers, text, ends) == 0
    ):
        stop += 1
    return stop


@exactly
def choose(
    limit: int,
    order: Numbers,
    times: Numbers,
    hashes: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
    taken: Numbers,
) -> None:
    """Write how many of each distinct record enter: at most `limit` of a unit together.

    Parameters
    ----------
    limit
        c.
    order, times
        Distinct records in their order, and how many each stands for.
    taken
        Written to, for each record that enters; zeros before.
    """
    start = 0
    chances, places = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        total = 0
        for place in range(start, stop):
            total += times[order[place]]
        if total <= limit:
            for place in range(start, stop):
                taken[order[place]] = times[order[place]]
        else:
            if len(chances) < limit:
                chances = np.empty(limit, dtype=np.uint64)
                places = np.empty(limit, dtype=np.int64)
            held = _smallest(limit, start, stop, order, times, hashes, rows, chances, places)
            for at in range(held):
                taken[order[places[at]]] += 1
        start = stop


@exactly
def candidates(
    limit: int,
    order: Numbers,
    times: Numbers,
    hashes: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> tuple[Words, Numbers]:
    """Return the hashes and rows of those that may enter, where a unit has more of them elsewhere.

    They are the `limit` smallest of each unit here, in no order.
    """
    size = start = 0
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        total = 0
        for place in range(start, stop):
            total += times[order[place]]
        size += min(total, limit)
        start = stop
    chances, places = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int64)
    start = used = 0
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        total = 0
        for place in range(start, stop):
            total += times[order[place]]
        held = _smallest(
            min(total, limit),
            *(start, stop, order, times, hashes, rows, chances[used:], places[used:]),
        )
        for at in range(used, used + held):
            places[at] = order[places[at]]
        used += held
        start = stop
    return chances, places
