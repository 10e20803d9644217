"""The rails of a program: one for each reference, or for the references of a subtree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from effax.effects import Free, SideEffect
from effax.effects.row import effect_text
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.paths import path_groups
from effax.ir.types import RefType
from effax.show.marks import shortened

Key = int | str
"""The key of a rail: the id of its first reference's variable, or a kind of side effect."""

HUES: Final = 8
"""The number of colours of rails, which are reused in order."""

HOST: Final = -1
"""The colour of side effects: none."""

MOST: Final = 12
"""The maximal number of rails, unless there are more arguments than that."""


@dataclass(frozen=True, slots=True)
class Rail:
    """A reference inside one program, or those of a subtree.

    Attributes:
        key: the id of the (first) variable there.
        label: its name and type.
        hue: its colour, the same in every subjaxpr that it is passed to.
        given: whether it is an input.
        ends: whether it is consumed, so that its rail ends before the program.
    """

    key: Key
    label: str
    hue: int
    given: bool
    ends: bool


class Passed(NamedTuple):
    """A reference that a program gets from an enclosing one: its colour and its name there."""

    hue: int | None
    name: str


NOT_PASSED: Final = Passed(None, "")


class RefUse(NamedTuple):
    """A reference of a program.

    Attributes:
        var: its variable.
        name: the user's name of it; empty if it has none.
        path: the name by which it is grouped: the user's name, or the line that creates it.
        at: the position of the equation that creates it; -1 for an input.
        ends: the position of the equation that consumes it, or None.
        hue: its colour in an enclosing program, or None.
    """

    var: Var
    name: str
    path: str
    at: int
    ends: int | None
    hue: int | None


def bound(v: Var) -> str:
    """Return a variable with its type: ``c:f32[3]``."""
    return f"{VAR_NAMES[v.id]}:{v.type}"


def user_name(jaxpr: Jaxpr, i: int) -> str:
    """Return the user's name of a binder; empty if it has a description instead."""
    name = jaxpr.names[i] if i < len(jaxpr.names) else ""
    return "" if name.startswith("a ") else name


def refs_of(jaxpr: Jaxpr, given: Mapping[int, Passed]) -> list[RefUse]:
    """Return the references of a program: inputs, then those that it creates.

    ``given`` has those of an enclosing program, by the position of the binder.
    """
    ended = {
        _ref(eqn, effect.ref).id: k
        for k, eqn in enumerate(jaxpr.eqns)
        for effect in eqn.effects
        if isinstance(effect, Free)
    }
    found: list[RefUse] = []
    for i, v in enumerate(jaxpr.binders):
        if isinstance(v.type, RefType):
            passed = given.get(i, NOT_PASSED)
            name = user_name(jaxpr, i) or passed.name
            found.append(RefUse(v, name, name or f"input[{i}]", -1, ended.get(v.id), passed.hue))
    for k, eqn in enumerate(jaxpr.eqns):
        for v in eqn.outs:
            if isinstance(v.type, RefType):
                line = "" if eqn.source is None else f" line {eqn.source.line}"
                path = f"created{line}[{len(found)}]"
                found.append(RefUse(v, "", path, k, ended.get(v.id), None))
    return found


def _ref(eqn: Eqn, index: int) -> Var:
    ref = eqn.ins[index]
    assert isinstance(ref, Var), "a reference is a variable"
    return ref


def hues_of(refs: Sequence[RefUse], hues: Iterator[int]) -> dict[int, int]:
    """Return the colours, by the ids of variables: one for all references of a rail."""
    found: dict[int, int] = {}
    for group in path_groups([ref.path for ref in refs], MOST):
        own = [refs[i] for i in group.members]
        hue = next((ref.hue for ref in own if ref.hue is not None), None)
        shared = next(hues) % HUES if hue is None else hue
        found |= {ref.var.id: shared if ref.hue is None else ref.hue for ref in own}
    return found


def rails_of(
    refs: Sequence[RefUse], hues: Mapping[int, int], start: int, stop: int
) -> tuple[list[Rail], dict[int, Key]]:
    """Return the rails of equations ``start`` to ``stop``, and the rail of each reference.

    Args:
        refs: the references that the equations use.
        hues: their colours, by the ids of their variables.
        start: the position of the first equation.
        stop: the position after the last one.
    """
    rails: list[Rail] = []
    places: dict[int, Key] = {}
    for group in path_groups([ref.path for ref in refs], MOST):
        own = [refs[i] for i in group.members]
        key = own[0].var.id
        places |= {ref.var.id: key for ref in own}
        ends = all(ref.ends is not None and ref.ends < stop for ref in own)
        given = any(ref.at < start for ref in own)
        rails.append(Rail(key, _label(own, group.name), hues[key], given, ends))
    return rails, places


def _label(refs: Sequence[RefUse], name: str) -> str:
    if len(refs) > 1:
        return f"{shortened(name, 40)} ({len(refs)} refs)"
    (ref,) = refs
    return f"{shortened(ref.name, 40)} · {bound(ref.var)}" if ref.name else bound(ref.var)


def channels_of(eqns: Sequence[Eqn]) -> list[Rail]:
    """Return the rails of side effects, one for each kind."""
    found: dict[str, None] = {}
    for eqn in eqns:
        for effect in eqn.effects:
            if isinstance(effect, SideEffect):
                found[effect_text(effect, None)] = None
    return [Rail(channel, channel, HOST, True, False) for channel in found]
