"""Which records of a unit enter: against a slow twin, whatever the order, pieces and memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpkde
from dpkde.curator.units.blocks import Block, Spill
from dpkde.curator.units.limit import Stage, limited
from dpkde.planning.units import Limit
from dpkde.privacy.amounts import Unit
from dpkde.space.domain import Box
from dpkde.space.frame import Frame
from dpkde.tables import Piece, Source
from dpkde.tables.labels import Labels, labels_in_cells

Record = tuple[Any, tuple[float, ...]]
MASK = (1 << 64) - 1
FRAME = Frame.of(dpkde.Gaussian(1.0), Box([(-9, 9)] * 2), 2)


def absorb(state: int, word: int) -> int:
    z = ((state ^ word) + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _hash(key: int, who: Any, row: tuple[float, ...], number: int) -> int:
    """The hash as its specification has it."""
    if isinstance(who, int):
        state = absorb(absorb(key, 1), who & MASK)
    else:
        text, state = who.encode(), absorb(key, 2)
        for start in range(0, len(text) + 1, 8):  # one more word, which may be empty
            state = absorb(state, int.from_bytes(text[start : start + 8], "little"))
        state = absorb(state, len(text))
    for word in _bits(row):
        state = absorb(state, word)
    return absorb(state, number)


def _bits(row: tuple[float, ...]) -> list[int]:
    return [int(word) for word in (np.array(row) + 0.0).view(np.uint64)]


def slow_twin(records: list[Record], limit: int, key: int) -> Counter[tuple[float, ...]]:
    """The rows that enter, by dictionaries and sorting."""
    rows_of: dict[Any, Counter[tuple[float, ...]]] = defaultdict(Counter)
    for who, row in records:
        inside = np.isfinite(row).all()
        if who not in (None, "") and inside:
            rows_of[who][tuple(value + 0.0 for value in row)] += 1
    entering: Counter[tuple[float, ...]] = Counter()
    for who, rows in rows_of.items():
        triples = [
            (_hash(key, who, row, number), _bits(row), row)
            for row, times in rows.items()
            for number in range(1, times + 1)
        ]
        entering.update(row for *_, row in sorted(triples)[:limit])
    return entering


def _source(records: list[Record], size: int) -> Source:
    def piece(start: int) -> Piece:
        part = records[start : start + size]
        rows = np.array([row for _, row in part], dtype=np.float64).reshape(len(part), 2)
        labels = labels_in_cells([who for who, _ in part])
        return Piece(lambda: rows, len(part), lambda: (rows, labels))

    def read() -> Iterator[Piece]:
        return (piece(start) for start in range(0, len(records), size))

    return Source(read, 2, unit="who")


def _chosen(
    records: list[Record], limit: Limit, size: int = 1000, **memory: int
) -> Counter[tuple[float, ...]]:
    blocks = Stage(FRAME, limit, **memory).chosen(_source(records, size).read(), 2)
    return Counter(
        tuple(row) for block in blocks for rows in block.repeated(7) for row in rows.tolist()
    )


def _limit(records: int, key: int = 1) -> Limit:
    return Limit(Unit("who", records), key)


def _records(count: int, units: int, seed: int) -> list[Record]:
    generator = np.random.default_rng(seed)
    whose = generator.integers(-2, units, count).tolist()
    rows = generator.integers(-2, 3, (count, 2)) / 2
    texts = {0: "anna", 1: "a long name, of more than sixteen bytes", 2: "", 3: "ünal", 4: None}
    return [
        (texts.get(who, who), tuple(row)) for who, row in zip(whose, rows.tolist(), strict=True)
    ]


MEMORY: dict[str, dict[str, int]] = {
    "in memory": {},
    "in a file": {"held": 1 << 10},
    "divided": {"held": 1 << 10, "gathered": 1 << 11},
    "divided to the end": {"held": 1 << 12, "gathered": 1},
}


@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
@pytest.mark.parametrize("limit", [1, 3, 40])
def test_the_slow_twin_agrees(limit: int, memory: dict[str, int]) -> None:
    """Numbers and texts, rows that are equal, that are nobody's, few units and many."""
    for units, seed in ((12, 0), (300, 1), (1, 2)):
        records = _records(1200, units, seed)
        records += [(7, (1.0, 1.0))] * 90 + [(7, (-0.0, 0.0)), (7, (0.0, -0.0))]
        records += [(7, (float("nan"), 0.0)), (None, (1.0, 2.0)), ("  7 ", (2.0, 2.0))]
        expected = slow_twin([*records[:-1], (7, (2.0, 2.0))], limit, 5)
        assert _chosen(records, _limit(limit, 5), 100, **memory) == expected


@settings(max_examples=60, deadline=None)
@given(
    data=st.lists(
        st.tuples(
            st.sampled_from([1, 2, -3, "x", "y" * 9, None]),
            st.tuples(*[st.sampled_from([0.0, -0.0, 1.5, float("inf")])] * 2),
        ),
        max_size=60,
    ),
    limit=st.integers(1, 5),
    key=st.integers(0, MASK),
    random=st.randoms(use_true_random=False),
    size=st.integers(1, 20),
    memory=st.sampled_from(list(MEMORY.values())),
)
def test_order_pieces_and_memory_change_nothing(
    data: list[Record], limit: int, key: int, random: Any, size: int, memory: dict[str, int]
) -> None:
    first = _chosen(data, _limit(limit, key))
    assert first == slow_twin(data, limit, key)
    random.shuffle(data)
    assert _chosen(data, _limit(limit, key), size, **memory) == first


@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
def test_removing_a_unit_leaves_the_choice_for_all_others(memory: dict[str, int]) -> None:
    records = _records(900, 40, 3)
    whole = _chosen(records, _limit(2), **memory)
    for who in ("anna", 7, 11):
        without = _chosen([one for one in records if one[0] != who], _limit(2), **memory)
        gone = whole - without
        assert not without - whole
        assert 1 <= gone.total() <= 2
        own = Counter(row for name, row in records if name == who)
        assert not gone - own


def _made(ids: list[int], rows: list[tuple[float, float]], hashes: int) -> Block:
    labels = labels_in_cells(ids)
    block = Block.of(np.array(rows), labels, np.full(len(ids), hashes, dtype=np.uint64))
    return replace(block, hashes=np.full(len(ids), hashes, dtype=np.uint64))


@pytest.mark.parametrize("gathered", [1 << 20, 1 << 9, 1])
def test_ids_with_one_hash_are_two_units(gathered: int) -> None:
    """Hashes of ids can be made to agree, by whoever knows the key: whole ids decide."""
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 3, 200).tolist()
    rows = [tuple(row) for row in generator.integers(0, 50, (200, 2)).astype(float).tolist()]
    block = _made(ids, rows, 99)
    stage = Stage(FRAME, _limit(4), gathered=gathered)
    blocks = partial(iter, [block.part(0, 120), block.part(120, 200)])
    entering = Counter(
        tuple(row)
        for one in stage._chosen(blocks, 1)
        for rows_ in one.repeated(9)
        for row in rows_.tolist()
    )
    assert entering.total() == 12
    for who in range(3):  # each has its own four: with the others gone they are the same
        mine = [k for k, one in enumerate(ids) if one == who]
        alone = stage._chosen(partial(iter, [block.at(np.array(mine))]), 1)
        kept = Counter(tuple(r) for one in alone for rs in one.repeated(9) for r in rs.tolist())
        assert kept.total() == 4
        assert not kept - Counter(rows[k] for k in mine)
        entering -= kept
    assert not entering


def test_a_million_equal_rows_of_one_unit() -> None:
    rows = np.tile([[1.0, 2.0]], (1_000_000, 1))
    rows[-1] = [3.0, 4.0]
    whose = Labels(
        np.ones(len(rows), np.uint8),
        np.full(len(rows), 8),
        np.zeros(0, np.uint8),
        np.zeros(len(rows), np.int64),
    )
    source = Source(lambda: iter([Piece(lambda: rows, 1, lambda: (rows, whose))]), 2, unit="who")
    entering = limited(source, FRAME, _limit(5), 1)
    kept = np.concatenate([piece.rows() for piece in entering.pieces(2)])
    assert len(kept) == 5
    assert (kept == rows[0]).all(axis=1).sum() >= 4


def test_each_key_chooses_others_and_all_rows_alike() -> None:
    """A hundred units with ten rows each, one of which enters: by the key alone."""
    records: list[Record] = [(who, (float(k), 0.0)) for who in range(100) for k in range(9)]
    chosen = [_chosen(records, _limit(1, key)) for key in range(60)]
    assert len({tuple(sorted(one.items())) for one in chosen}) == 60
    totals = sum(chosen, Counter())
    # 6,000 choices among nine: none of nine shares is off by more than six standard deviations
    # but once in 5·10⁷ hashes that are none.
    expected, spread = 6000 / 9, (6000 / 9 * 8 / 9) ** 0.5
    assert all(abs(totals[(float(k), 0.0)] - expected) < 6.5 * spread for k in range(9))


def test_nothing_is_left_of_what_did_not_fit_in_memory(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has no name while it is used, and its bytes come back."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spill = Spill(1)
    blocks = [_made([k, k + 1], [(k, 0.5), (0.0, k)], k) for k in range(20)]
    for k, block in enumerate(blocks):
        spill.put(k % 3, block)
        assert list(tmp_path.iterdir()) == []
    assert list(spill) == [0, 1, 2]
    back = [one for key in spill for one in spill.blocks(key)]
    assert sum(map(len, back)) == 40
    rows = sorted(map(tuple, np.concatenate([one.rows for one in back]).tolist()))
    assert rows == sorted(map(tuple, np.concatenate([one.rows for one in blocks]).tolist()))
    spill.close()
    assert list(spill) == []


def test_blocks_are_cut_and_joined() -> None:
    cells = ["anna", 4, "bo", None, "cäsar", ""]
    rows = np.arange(12.0).reshape(6, 2)
    block = Block.of(rows, labels_in_cells(cells), np.arange(6, dtype=np.uint64))
    places = np.array([4, 0, 1, 4])
    taken = block.at(places)
    assert [taken.id_at(k)[2].decode() for k in range(4)] == ["cäsar", "anna", "", "cäsar"]
    assert taken.id_at(2)[:2] == (1, 4)
    again = Block.joined([block.part(0, 2), block.part(2, 6)])
    assert [again.id_at(k) for k in range(6)] == [block.id_at(k) for k in range(6)]
    assert (again.rows == rows).all()
    assert repr(block) == "<Block (secret)>"
