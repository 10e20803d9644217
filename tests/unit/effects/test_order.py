"""The commutation table, against a model: the contents of a store and a log of side effects."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import pytest

from effax.effects import (
    Accum,
    Alloc,
    ArgIndex,
    Effect,
    Free,
    Io,
    Read,
    SideEffect,
    Write,
    changes_state,
    commutes,
)

A, B = ArgIndex(0), ArgIndex(1)
KINDS = (Read, Write, Accum, Free)


@dataclass(frozen=True, slots=True)
class ReadClock(SideEffect):
    """A user-defined kind: the time is read, which no other effect observes."""

    word: ClassVar[str] = "clock"
    observed: ClassVar[bool] = False

    def commutes_with(self, other: SideEffect) -> bool:
        return not isinstance(other, SetClock)


@dataclass(frozen=True, slots=True)
class SetClock(SideEffect):
    """A kind with the default rule: it commutes with all kinds but itself."""

    zone: str
    word: ClassVar[str] = "set"


TABLE = {
    (Read, Read): True,
    (Read, Write): False,
    (Read, Accum): False,
    (Read, Free): False,
    (Write, Write): False,
    (Write, Accum): False,
    (Write, Free): False,
    (Accum, Accum): True,
    (Accum, Free): False,
    (Free, Free): False,
}


def every_effect() -> list[Effect[ArgIndex]]:
    on_refs: list[Effect[ArgIndex]] = [kind(ref) for kind in (*KINDS, Alloc) for ref in (A, B)]
    return [*on_refs, Io("stdout"), Io("disk"), ReadClock(), SetClock("UTC")]


@pytest.mark.parametrize(("first", "second"), list(TABLE), ids=lambda kind: kind.word)
def test_effects_on_one_reference(
    first: type[Read[ArgIndex]], second: type[Read[ArgIndex]]
) -> None:
    assert commutes(first(A), second(A)) is TABLE[first, second]
    assert commutes(second(A), first(A)) is TABLE[first, second]


@pytest.mark.parametrize(("first", "second"), list(product(KINDS, KINDS)))
def test_effects_on_different_references_commute(
    first: type[Read[ArgIndex]], second: type[Read[ArgIndex]]
) -> None:
    assert commutes(first(A), second(B))


def test_an_allocation_commutes_with_everything() -> None:
    assert all(commutes(Alloc(A), effect) for effect in every_effect())
    assert all(commutes(effect, Alloc(A)) for effect in every_effect())


def test_ordered_io_keeps_its_order_on_one_channel_only() -> None:
    assert not commutes(Io("stdout"), Io("stdout"))
    assert commutes(Io("stdout"), Io("disk"))
    assert all(commutes(Io("stdout"), kind(A)) for kind in KINDS)
    unordered = Io("stdout", ordered=False)
    assert all(commutes(unordered, effect) for effect in (unordered, Io("stdout")))


def test_side_effects_commute_if_both_kinds_declare_it() -> None:
    assert SetClock("UTC").commutes_with(ReadClock())
    assert not commutes(SetClock("UTC"), ReadClock())
    assert not commutes(SetClock("UTC"), SetClock("CET"))
    assert commutes(ReadClock(), Io("stdout"))


def test_commuting_is_symmetric() -> None:
    for first, second in product(every_effect(), repeat=2):
        assert commutes(first, second) == commutes(second, first)


Op = tuple[str, int]


def run(effects: tuple[Effect[ArgIndex], Effect[ArgIndex]], order: tuple[int, int]) -> object:
    """Return all observations of two operations that run in this order."""
    store: dict[int, float | None] = {0: 1.0, 1: 2.0}
    log: dict[str, list[int]] = {"stdout": [], "disk": []}
    clock = 0
    seen: dict[int, object] = {}
    for i in order:
        effect = effects[i]
        if isinstance(effect, Io):
            log[effect.channel].append(i)
            continue
        if isinstance(effect, SetClock):
            clock = 100 + i
            continue
        if isinstance(effect, ReadClock):
            seen[i] = clock
            continue
        if isinstance(effect, Alloc | SideEffect):
            continue
        contents = store[effect.ref]
        if contents is None:
            seen[i] = "used after it was freed"
        elif isinstance(effect, Read):
            seen[i] = contents
        elif isinstance(effect, Write):
            store[effect.ref] = 10.0 + i
        elif isinstance(effect, Accum):
            store[effect.ref] = contents + 100.0 * (i + 1)
        else:
            store[effect.ref] = None
    return store, log, clock, seen


@pytest.mark.parametrize(("first", "second"), list(product(every_effect(), repeat=2)), ids=repr)
def test_effects_commute_iff_their_order_is_unobservable(
    first: Effect[ArgIndex], second: Effect[ArgIndex]
) -> None:
    same = run((first, second), (0, 1)) == run((first, second), (1, 0))
    assert commutes(first, second) == same


def test_observed_effects_per_kind() -> None:
    noticed = {type(effect) for effect in every_effect() if changes_state(effect)}
    assert noticed == {Write, Accum, Free, Io, SetClock}
