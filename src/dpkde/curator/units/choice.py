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
from dpkde.tables.ids import TEXT

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
def _compared_rows(i: int, j: int, states: Words, rows: Words) -> int:
    """Return the same for rows: by their hashes, which are quick to compare, then by their bits."""
    if states[i] != states[j]:
        return -1 if states[i] < states[j] else 1
    for k in range(rows.shape[1]):
        if rows[i, k] != rows[j, k]:
            return -1 if rows[i, k] < rows[j, k] else 1
    return 0


@exactly
def sort_groups(
    order: Numbers,
    hashes: Words,
    states: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> None:
    """Write the order by hashes of ids, by which records stand already, by ids, then by rows."""
    spare = np.empty(0, dtype=np.int64)
    start, size = 0, len(order)
    while start < size:
        order[start] = start
        stop, alike = start + 1, True
        while stop < size and hashes[stop] == hashes[start]:
            order[stop] = stop
            alike &= _compared_ids(stop, start, kinds, numbers, text, ends) == 0
            stop += 1
        for low in range(start, stop, _RUN):  # runs by insertion, then merged by twos
            for right in range(low + 1, min(low + _RUN, stop)):
                one, left = order[right], right - 1
                while left >= low:
                    other = order[left]
                    ids = 0 if alike else _compared_ids(other, one, kinds, numbers, text, ends)
                    if (ids if ids != 0 else _compared_rows(other, one, states, rows)) <= 0:
                        break
                    order[left + 1] = other
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
                    one, other = order[a], order[b]
                    ids = 0 if alike else _compared_ids(other, one, kinds, numbers, text, ends)
                    if (ids if ids != 0 else _compared_rows(other, one, states, rows)) < 0:
                        spare[to] = other
                        b += 1
                    else:
                        spare[to] = one
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
    states: Words,
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
            if (
                hashes[before] == hashes[here]
                and _compared_rows(before, here, states, rows) == 0
                and _compared_ids(before, here, kinds, numbers, text, ends) == 0
            ):
                times[before] += times[here]
                continue
        order[distinct] = here
        distinct += 1
    return distinct


@exactly
def _after(a: int, b: int, chances: Words, places: Numbers, rows: Words) -> bool:
    """Return whether entry a comes after entry b: by its hash, or by its row."""
    if chances[a] != chances[b]:
        return bool(chances[a] > chances[b])
    for k in range(rows.shape[1]):
        if rows[places[a], k] != rows[places[b], k]:
            return bool(rows[places[a], k] > rows[places[b], k])
    return False


@exactly
def _sink(size: int, at: int, chances: Words, places: Numbers, rows: Words) -> None:
    """Restore the heap of `size` entries, the last one on top, whose entry at `at` may be early."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _after(child + 1, child, chances, places, rows):
            child += 1
        if not _after(child, at, chances, places, rows):
            return
        chances[at], chances[child] = chances[child], chances[at]
        places[at], places[child] = places[child], places[at]
        at = child


@exactly
def _smallest(
    limit: int,
    start: int,
    stop: int,
    order: Numbers,
    times: Numbers,
    states: Words,
    rows: Words,
    chances: Words,
    places: Numbers,
) -> int:
    """Write the first `limit` records of a unit, by hash and row; return how many there are.

    `chances` are their hashes and `places` where they stand; there is room for one more.
    """
    held = 0
    for place in range(start, stop):
        here = order[place]
        for number in range(1, times[here] + 1):
            chances[held], places[held] = absorb(states[here], np.uint64(number)), here
            if held < limit:
                held += 1
                if held == limit:
                    for at in range(limit // 2 - 1, -1, -1):
                        _sink(limit, at, chances, places, rows)
            elif _after(0, held, chances, places, rows):
                chances[0], places[0] = chances[held], here
                _sink(limit, 0, chances, places, rows)
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
def _total(start: int, stop: int, order: Numbers, times: Numbers) -> int:
    total = 0
    for place in range(start, stop):
        total += times[order[place]]
    return total


@exactly
def unit_sizes(
    order: Numbers,
    times: Numbers,
    hashes: Words,
    states: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
    starts: Numbers,
    sizes: Numbers,
) -> int:
    """Write where the records of each unit begin in the order, and how many they are.

    Returns the number of units; there is room for as many as there are records.
    """
    units = start = 0
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        starts[units], sizes[units] = start, _total(start, stop, order, times)
        units += 1
        start = stop
    return units


@exactly
def choose(
    limit: int,
    order: Numbers,
    times: Numbers,
    hashes: Words,
    states: Words,
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
    hashes, states
        The hashes behind ids, and behind rows.
    taken
        Written to, for each record that enters; zeros before.
    """
    start = 0
    chances, places = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        if _total(start, stop, order, times) <= limit:
            for place in range(start, stop):
                taken[order[place]] = times[order[place]]
        else:
            if len(chances) == 0:
                chances = np.empty(limit + 1, dtype=np.uint64)
                places = np.empty(limit + 1, dtype=np.int64)
            held = _smallest(limit, start, stop, order, times, states, rows, chances, places)
            for at in range(held):
                taken[places[at]] += 1
        start = stop


@exactly
def candidates(
    limit: int,
    order: Numbers,
    times: Numbers,
    hashes: Words,
    states: Words,
    rows: Words,
    kinds: NDArray[np.uint8],
    numbers: Numbers,
    text: NDArray[np.uint8],
    ends: Numbers,
) -> tuple[Words, Numbers]:
    """Return hashes and places of those that may enter, where a unit has more records elsewhere.

    They are the first `limit` of each unit here, in no order.
    """
    size = start = 0
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        size += min(_total(start, stop, order, times), limit)
        start = stop
    chances, places = np.empty(size + 1, dtype=np.uint64), np.empty(size + 1, dtype=np.int64)
    start = used = 0
    while start < len(order):
        stop = _end_of_unit(start, order, hashes, kinds, numbers, text, ends)
        most = min(_total(start, stop, order, times), limit)
        used += _smallest(
            *(most, start, stop, order, times, states, rows, chances[used:], places[used:])
        )
        start = stop
    return chances[:size], places[:size]
