from __future__ import annotations

import copy
import pickle
from itertools import permutations

import pytest

from effax.effects import (
    NO_EFFECTS,
    Accum,
    Alloc,
    ArgIndex,
    Effect,
    Free,
    Io,
    Read,
    Row,
    VarId,
    Write,
)

A, B, C = map(ArgIndex, range(3))


def row_of(*effects: Effect[ArgIndex]) -> Row[ArgIndex]:
    return Row(effects)


SOME: tuple[Effect[ArgIndex], ...] = (Write(B), Read(A), Io("stdout"), Accum(A))


def test_a_row_is_a_set_in_one_order() -> None:
    rows = {Row(order) for order in permutations(SOME)}
    assert rows == {Row((*SOME, *SOME))}
    assert list(Row(SOME)) == [Read(A), Accum(A), Write(B), Io("stdout")]


def test_equal_rows_have_equal_hashes_and_texts() -> None:
    first, second = Row(SOME), Row(reversed(SOME))
    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == str(second) == "{read 0, accum 0, write 1, io stdout}"
    assert first != Row(SOME[:2])
    assert first != SOME


def test_a_row_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Row(SOME).effects = ()


def test_emptiness_and_membership() -> None:
    assert not NO_EFFECTS
    assert len(NO_EFFECTS) == 0
    assert Row(SOME)
    assert Read(A) in Row(SOME)
    assert Read(B) not in Row(SOME)


def test_join_is_union() -> None:
    first, second = Row(SOME[:3]), Row(SOME[1:])
    assert first.join(second) == second.join(first) == Row(SOME)
    assert first.join(NO_EFFECTS) == NO_EFFECTS.join(first) == first
    assert first.join(first) == first


def test_rename_removes_effects_without_a_name() -> None:
    row = Row(SOME).rename(lambda ref: VarId(7) if ref == A else None)
    expected: tuple[Effect[VarId], ...] = (Read(VarId(7)), Accum(VarId(7)), Io("stdout"))
    assert row == Row(expected)


def test_rename_may_merge() -> None:
    assert row_of(Read(A), Read(B)).rename(lambda _: VarId(0)) == Row([Read(VarId(0))])


def test_mask_drops_kinds() -> None:
    assert Row(SOME).mask((Io, Accum)) == row_of(Read(A), Write(B))


def test_on_and_refs_ignore_allocations_and_side_effects() -> None:
    row = row_of(Alloc(C), *SOME, Free(B))
    assert row.refs == (A, B)
    assert row.on(A) == (Read(A), Accum(A))
    assert row.on(B) == (Write(B), Free(B))
    assert row.on(C) == ()


def test_rows_commute_if_all_pairs_do() -> None:
    reads, adds = row_of(Read(A), Read(B)), row_of(Accum(A), Accum(B))
    assert reads.commutes(reads)
    assert adds.commutes(adds)
    assert not reads.commutes(adds)
    assert reads.commutes(row_of(Write(C)))
    assert NO_EFFECTS.commutes(adds)


def test_only_some_effects_change_state() -> None:
    assert not row_of(Read(A), Alloc(A)).changes_state
    assert row_of(Read(A), Accum(B)).changes_state


@pytest.mark.parametrize("row", [NO_EFFECTS, Row(SOME)])
def test_copies_are_equal(row: Row[ArgIndex]) -> None:
    assert pickle.loads(pickle.dumps(row)) == copy.deepcopy(row) == copy.copy(row) == row
    assert hash(pickle.loads(pickle.dumps(row))) == hash(row)
