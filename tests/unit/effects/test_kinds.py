from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from effax.effects import Accum, Alloc, ArgIndex, Free, Io, Read, VarId, Write

KINDS = (Read, Write, Accum, Alloc, Free)


def test_kinds_are_distinct() -> None:
    assert len({kind(ArgIndex(0)) for kind in KINDS}) == len(KINDS)
    assert len({kind.word for kind in (*KINDS, Io)}) == len(KINDS) + 1
    assert len({kind.rank for kind in (*KINDS, Io)}) == len(KINDS) + 1


def test_effects_are_values() -> None:
    assert Read(VarId(3)) == Read(VarId(3))
    assert Read(VarId(3)) != Read(VarId(4))
    assert Io("stdout") == Io("stdout") != Io("disk")
    with pytest.raises(FrozenInstanceError):
        Read(ArgIndex(0)).ref = ArgIndex(1)  # type: ignore[misc]  # frozen
