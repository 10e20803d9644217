"""Differences between two programs, equation by equation.

::

      { lambda ; a:f32[] b:f32[]. let
          c:f32[] = sin a
    -     e:f32[] = mul c b
    +     d:f32[] = add c b
        in (d,) }

First, equations correspond that compute the same value of corresponding inputs, up to names; then,
between those, equations that apply the same primitive. The old program is shown in the names of the
new one, and its other variables under unused names. Subjaxprs of corresponding equations are
compared in turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from effax.ir.recursion import with_fresh_stack
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.format import lit_text
from effax.ir.text.names import VAR_NAMES
from effax.ir.text.printer import eqn_str, stores
from effax.ir.types import Type
from effax.lazy.dataclasses import dataclass

Kind = Literal["same", "removed", "added", "changed"]
MOST: Final = 1 << 18
"""Sections of more pairs of equations are not searched for corresponding ones."""


class Change(NamedTuple):
    """The change of one equation.

    Attributes:
        kind: the same, up to names; only in one program; or changed.
        old: the equation of the old program, in the names of the new one.
        new: the equation of the new program.
        inside: for an equation with subjaxprs before and after, the difference of each.
    """

    kind: Kind
    old: Eqn | None
    new: Eqn | None
    inside: tuple[Diff, ...] = ()


INDENTED: Final = 12
"""Subjaxprs at a greater depth are not indented further."""


@dataclass(frozen=True, eq=False, repr=False)
class Diff:
    """The difference of two programs; false if they are the same.

    Attributes:
        old: the old program.
        new: the new program.
        changes: the change of each equation, in order.
        header: the binders of the old program and of the new one, as they print.
        results: the results of the old program, in the names of the new one, and of the new one.
    """

    old: Jaxpr
    new: Jaxpr
    changes: tuple[Change, ...]
    header: tuple[str, str]
    results: tuple[str, str]

    def __bool__(self) -> bool:
        whole = self.header[0] != self.header[1] or self.results[0] != self.results[1]
        return whole or any(change.kind != "same" for change in self.changes)

    def count(self, kind: Kind) -> int:
        """Return the number of changes of a kind, those in subjaxprs excluded."""
        return sum(change.kind == kind for change in self.changes)

    def text(self, context: int | None = None) -> str:
        """Return the difference as text, one line per equation.

        Args:
            context: how many equal lines to show on each side of a change; all if None.
        """
        lines = [*_lines(self)]
        if context is None:
            return "\n".join(lines)
        near = [i for i, line in enumerate(lines) if line[0] != " "]
        shown: list[str] = []
        last = -1
        for i in range(len(lines)):
            at = bisect_left(near, i)
            gap = min([abs(near[k] - i) for k in (at - 1, at) if 0 <= k < len(near)], default=0)
            if near and gap <= context:
                if i > last + 1:
                    shown.append("  ...")
                shown.append(lines[i])
                last = i
        return "\n".join(shown)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


@with_fresh_stack
def diff(old: Jaxpr, new: Jaxpr) -> Diff:
    """Return the changes that turn ``old`` into ``new``, up to the names of variables."""
    pairs = _pairs(old, new)
    names = _names(old, new, pairs)
    olds = [_renamed(eqn, names) for eqn in old.eqns]
    changes: list[Change] = []
    i = j = 0
    for a, b in [*pairs, (len(olds), len(new.eqns))]:
        changes += [Change("removed", eqn, None) for eqn in olds[i:a]]
        changes += [Change("added", None, new.eqns[k]) for k in range(j, b)]
        if a < len(olds):
            changes.append(_compared(olds[a], new.eqns[b]))
        i, j = a + 1, b + 1
    binders = [v._replace(id=names[v.id]) for v in old.binders]
    outs = [_atom(a, names) for a in old.outs]
    return Diff(
        old,
        new,
        tuple(changes),
        (_header(binders, old.n_consts), _header(new.binders, new.n_consts)),
        (_shown(outs), _shown(new.outs)),
    )


def _compared(old: Eqn, new: Eqn) -> Change:
    if old == new:
        return Change("same", old, new)
    before, after = old.prim.subjaxprs(), new.prim.subjaxprs()
    match = len(before) == len(after) > 0 and old.prim.with_subjaxprs(after) == new.prim
    inside = tuple(map(diff, before, after)) if match else ()
    if match and (old.ins, old.outs) == (new.ins, new.outs) and not any(inside):
        return Change("same", old, new)
    return Change("changed", old, new, inside)


def _pairs(old: Jaxpr, new: Jaxpr) -> list[tuple[int, int]]:
    """Return corresponding equations, in order: by value first, then by primitive in between."""
    anchors = _anchors(old, new)
    found: list[tuple[int, int]] = []
    i = j = 0
    for a, b in [*anchors, (len(old.eqns), len(new.eqns))]:
        left, right = old.eqns[i:a], new.eqns[j:b]
        if 0 < len(left) * len(right) <= MOST:
            matcher = SequenceMatcher(None, _kinds(left), _kinds(right), autojunk=False)
            for word, first, last, start, stop in matcher.get_opcodes():
                # A replaced equation of equal types keeps its names in later equations.
                found += [
                    (i + first + k, j + start + k)
                    for k in range(min(last - first, stop - start))
                    if word == "equal" or _types(left[first + k]) == _types(right[start + k])
                ]
        if a < len(old.eqns):
            found.append((a, b))
        i, j = a + 1, b + 1
    return found


def _types(eqn: Eqn) -> list[Type]:
    return [v.type for v in eqn.outs]


def _kinds(eqns: Sequence[Eqn]) -> list[tuple[str, int]]:
    return [(eqn.prim.name, len(eqn.outs)) for eqn in eqns]


def _anchors(old: Jaxpr, new: Jaxpr) -> list[tuple[int, int]]:
    """Return a longest list of equations of equal value in the same order in both programs."""
    numbers: dict[object, int] = {}
    places: dict[int, list[int]] = {}
    for i, value in reversed([*enumerate(_values(old, numbers))]):
        places.setdefault(value, []).append(i)
    met: list[tuple[int, int]] = []
    for j, value in enumerate(_values(new, numbers)):
        if places.get(value):
            met.append((places[value].pop(), j))
    return _increasing(met)


def _values(jaxpr: Jaxpr, numbers: dict[object, int]) -> Iterator[int]:
    """Return a number for each equation; equal numbers: equal values as functions of the inputs."""

    def number(key: object) -> int:
        return numbers.setdefault(key, len(numbers))

    values: dict[int, int] = {v.id: number((i, v.type)) for i, v in enumerate(jaxpr.binders)}
    for eqn in jaxpr.eqns:
        ins = tuple([number(a) if isinstance(a, Lit) else values[a.id] for a in eqn.ins])
        types = tuple([v.type for v in eqn.outs])
        value = number((eqn.prim, ins, types))
        for k, v in enumerate(eqn.outs):
            values[v.id] = number((value, k, "result"))
        # After a write, the reference has a new value number, so a later read has another value.
        for effect in eqn.effects.refs if eqn.effects.changes_state else ():
            ref = eqn.ins[effect]
            if isinstance(ref, Var):
                values[ref.id] = number((value, effect, "contents"))
        yield value


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest subsequence with increasing first parts; the second parts increase."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for k, (a, _) in enumerate(pairs):
        at = bisect_left(tails, a)
        tails[at : at + 1] = [a]
        ends[at : at + 1] = [k]
        before.append(ends[at - 1] if at else -1)
    chain: list[tuple[int, int]] = []
    k = ends[-1] if ends else -1
    while k >= 0:
        chain.append(pairs[k])
        k = before[k]
    return chain[::-1]


def _names(old: Jaxpr, new: Jaxpr, pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the new program's number of each old variable, and an unused one for the rest."""
    names = {v.id: w.id for v, w in zip(old.binders, new.binders, strict=False)}
    for a, b in pairs:
        names.update((v.id, w.id) for v, w in zip(old.eqns[a].outs, new.eqns[b].outs, strict=False))
    free = new.size
    for v in [*old.binders, *(v for eqn in old.eqns for v in eqn.outs)]:
        if v.id not in names:
            names[v.id] = free
            free += 1
    return names


def _atom(atom: Atom, names: dict[int, int]) -> Atom:
    return atom if isinstance(atom, Lit) else Var(names[atom.id], atom.type)


def _renamed(eqn: Eqn, names: dict[int, int]) -> Eqn:
    ins = tuple([_atom(a, names) for a in eqn.ins])
    outs = tuple([Var(names[v.id], v.type) for v in eqn.outs])
    return eqn._replace(ins=ins, outs=outs)


def _header(binders: Sequence[Var], n_consts: int) -> str:
    shown = [f"{VAR_NAMES[v.id]}:{v.type}" for v in binders]
    return f"{{ lambda {' '.join(shown[:n_consts])}; {' '.join(shown[n_consts:])}. let"


def _shown(outs: Sequence[Atom]) -> str:
    shown = [lit_text(a) if isinstance(a, Lit) else VAR_NAMES[a.id] for a in outs]
    return f"in ({', '.join(shown)}{',' if len(shown) == 1 else ''}) }}"


def _both(old: str, new: str, indent: str) -> list[str]:
    return [f"  {indent}{new}"] if old == new else [f"- {indent}{old}", f"+ {indent}{new}"]


def _lines(whole: Diff) -> Iterator[str]:
    """Return the lines; those of a subjaxpr follow the equation that contains it."""
    waiting = [_level(whole, 0)]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
        elif isinstance(part, str):
            yield part
        else:
            waiting.append(_level(part, len(waiting)))


def _level(found: Diff, depth: int) -> Iterator[str | Diff]:
    """Return the lines of one program and the differences of its subjaxprs, in order."""
    indent = " " * (6 * min(depth, INDENTED))
    yield from _both(*found.header, indent)
    deep = indent + "    "
    before, after = iter(stores(found.old)), iter(stores(found.new))
    for kind, old, new, inside in found.changes:
        was = None if old is None else eqn_str(old, next(before))
        now = None if new is None else eqn_str(new, next(after))
        if kind == "same":
            yield f"  {deep}{now}"
        elif inside and old is not None and new is not None and old.ins == new.ins:
            yield f"~ {deep}{now}"
        else:
            yield from (f"{mark} {deep}{text}" for mark, text in (("-", was), ("+", now)) if text)
        yield from (nested for nested in inside if nested)
    yield from _both(*found.results, indent + "  ")
