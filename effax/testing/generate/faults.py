"""Insert faults into valid programs, each of a kind that the checker must report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from effax.effects import NO_EFFECTS, ArgIndex, Read, Row, Write
from effax.ir import prims as p
from effax.ir.analysis.faults import FaultKind
from effax.ir.build import typing_of
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims import Jit, refs
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type

T = TypeVar("T")

Mutation = Callable[[Jaxpr, np.random.Generator], Jaxpr]
"""Return the program with a fault at a random place. Raises NoPlace if no place fits."""


class NoPlace(Exception):
    """The program has no place for a fault."""


def _pick(rng: np.random.Generator, items: Sequence[T]) -> T:
    """Return a random item. Raises NoPlace if there is none."""
    if not items:
        raise NoPlace
    return items[int(rng.integers(len(items)))]


def _pick_eqn(
    rng: np.random.Generator, jaxpr: Jaxpr, accept: Callable[[Eqn], object]
) -> tuple[int, Eqn]:
    return _pick(rng, [(i, eqn) for i, eqn in enumerate(jaxpr.eqns) if accept(eqn)])


def _replaced(jaxpr: Jaxpr, index: int, eqn: Eqn | None) -> Jaxpr:
    eqns = list(jaxpr.eqns)
    eqns[index : index + 1] = [] if eqn is None else [eqn]
    return jaxpr.replace(eqns=eqns)


def _appended(jaxpr: Jaxpr, prim: Primitive, *ins: Atom, outs: Sequence[Type] = ()) -> Jaxpr:
    """Return the program with one more equation, without typing it."""
    made = tuple(Var(jaxpr.size + i, t) for i, t in enumerate(outs))
    return jaxpr.replace(eqns=[*jaxpr.eqns, Eqn(prim, ins, made, NO_EFFECTS)])


def _typed(jaxpr: Jaxpr, prim: Primitive, *ins: Atom) -> Jaxpr:
    outs, effects = typing_of(prim, tuple(a.type for a in ins))
    made = tuple(Var(jaxpr.size + i, t) for i, t in enumerate(outs))
    return jaxpr.replace(eqns=[*jaxpr.eqns, Eqn(prim, ins, made, effects)])


def _used(jaxpr: Jaxpr) -> set[int]:
    atoms = [a for eqn in jaxpr.eqns for a in eqn.ins] + list(jaxpr.outs)
    return {a.id for a in atoms if isinstance(a, Var)}


def _consumed(jaxpr: Jaxpr) -> list[Var]:
    return [
        a
        for eqn in jaxpr.eqns
        if isinstance(eqn.prim, refs.Freeze | refs.FreeRef)
        for a in eqn.ins
        if isinstance(a, Var)
    ]


def _live_refs(jaxpr: Jaxpr, binders_only: bool = False) -> list[Var]:
    """Return the references in scope at the end that are not consumed."""
    consumed = {v.id for v in _consumed(jaxpr)}
    made = [] if binders_only else [v for eqn in jaxpr.eqns for v in eqn.outs]
    return [
        v for v in (*jaxpr.binders, *made) if isinstance(v.type, RefType) and v.id not in consumed
    ]


def unbound(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Drop an equation whose results are used."""
    used = _used(jaxpr)
    at, _ = _pick_eqn(rng, jaxpr, lambda eqn: any(v.id in used for v in eqn.outs))
    return _replaced(jaxpr, at, None)


def bound_late(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Move an equation behind one that uses its result."""
    eqns = list(jaxpr.eqns)
    places = [i for i, (x, y) in enumerate(pairwise(eqns)) if set(x.outs) & set(y.ins)]
    at = _pick(rng, places)
    eqns[at], eqns[at + 1] = eqns[at + 1], eqns[at]
    return jaxpr.replace(eqns=eqns)


def bound_twice(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Bind an input again."""
    at, eqn = _pick_eqn(rng, jaxpr, lambda eqn: len(eqn.outs) == 1)
    same = _pick(rng, jaxpr.binders)
    return _replaced(jaxpr, at, eqn._replace(outs=(Var(same.id, eqn.outs[0].type),)))


def _renamed(jaxpr: Jaxpr, change: Callable[[Var], Var]) -> Jaxpr:
    """Return the program with every variable changed, wherever it occurs."""

    def used(a: Atom) -> Atom:
        return change(a) if isinstance(a, Var) else a

    eqns = [
        eqn._replace(ins=tuple(map(used, eqn.ins)), outs=tuple(map(change, eqn.outs)))
        for eqn in jaxpr.eqns
    ]
    return Jaxpr([*map(change, jaxpr.binders)], eqns, [*map(used, jaxpr.outs)])


def numbered_backward(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Number variables from the last to the first."""
    top = jaxpr.size - 1
    if top < 1:
        raise NoPlace
    return _renamed(jaxpr, lambda v: Var(top - v.id, v.type))


def false_literal(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Set a literal to a value that its type does not have."""
    wrong = [
        Lit(0.5, array_type((), "int32")),
        Lit(True, array_type((), "float32")),
        Lit(300, array_type((), "uint8")),
        Lit(1.0, array_type((2,), "float32")),
    ]
    return jaxpr.replace(outs=[*jaxpr.outs, _pick(rng, wrong)])


def other_result_type(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Declare a result at another type, wherever it occurs."""
    made = [v for eqn in jaxpr.eqns for v in eqn.outs if isinstance(v.type, ArrayType)]
    v = _pick(rng, made)
    return _renamed(jaxpr, lambda w: _wider(w) if w.id == v.id else w)


def _wider(v: Var) -> Var:
    """Return the variable at another type, with one more axis."""
    assert isinstance(v.type, ArrayType)
    return Var(v.id, v.type.update(shape=(*v.type.shape, 5)))


def other_use_type(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Use a variable at another type than its own."""
    v = _pick(rng, [v for v in jaxpr.binders if isinstance(v.type, ArrayType)])
    return jaxpr.replace(outs=[*jaxpr.outs, _wider(v)])


def wrong_arity(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Apply a primitive of one operand to two."""
    number = Lit(1.0, array_type((), "float32"))
    return _appended(jaxpr, p.Sin(), number, number, outs=[number.type])


def forgotten_effects(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Record no effects for an equation that has some."""
    at, eqn = _pick_eqn(rng, jaxpr, lambda eqn: eqn.effects)
    return _replaced(jaxpr, at, eqn._replace(effects=NO_EFFECTS))


def invented_effects(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Record effects that an equation does not have."""
    zero = ArgIndex(0)
    invented: Row[ArgIndex] = Row([Read(zero), Write(zero)])
    at, eqn = _pick_eqn(rng, jaxpr, lambda eqn: eqn.ins and eqn.effects != invented)
    return _replaced(jaxpr, at, eqn._replace(effects=invented))


def aliased(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Pass one reference twice to a call."""
    ref = _pick(rng, _live_refs(jaxpr))
    binders = [Var(0, ref.type), Var(1, ref.type)]
    return _typed(jaxpr, Jit(Jaxpr(binders, [], []), "f"), ref, ref)


def returned_ref(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Return a reference."""
    return jaxpr.replace(outs=[*jaxpr.outs, _pick(rng, _live_refs(jaxpr))])


def _with_local(jaxpr: Jaxpr) -> tuple[Jaxpr, Var]:
    """Return the program with a new reference at its end."""
    number = Lit(1.0, array_type((), "float32"))
    made = _typed(jaxpr, refs.NewRef(), number)
    return made, Var(jaxpr.size, ref_type(number.type))


def used_after_free(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Read a consumed reference of the program, or a new one."""
    consumed = _consumed(jaxpr)
    if consumed:
        ref = _pick(rng, consumed)
    else:
        jaxpr, ref = _with_local(jaxpr)
        jaxpr = _typed(jaxpr, _pick(rng, (refs.Freeze(), refs.FreeRef())), ref)
    return _typed(jaxpr, refs.Get(whole(ref.type.shape)), ref)


def freed_twice(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Consume a reference a second time."""
    made, ref = _with_local(jaxpr)
    return _typed(_typed(made, refs.FreeRef(), ref), refs.Freeze(), ref)


def freed_abroad(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Consume a reference that the caller made."""
    return _typed(jaxpr, refs.Freeze(), _pick(rng, _live_refs(jaxpr, binders_only=True)))


def ref_in_ref(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Allocate a reference to a reference."""
    made, ref = _with_local(jaxpr)
    return _appended(made, refs.NewRef(), ref, outs=[ref.type])


def ref_as_array(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr:
    """Apply arithmetic to a reference."""
    made, ref = _with_local(jaxpr)
    assert isinstance(ref.type, RefType)
    return _appended(made, p.Sin(), ref, outs=[ref.type.inner])


MUTATIONS: Final[tuple[tuple[FaultKind, Mutation], ...]] = (
    (FaultKind.SCOPE, unbound),
    (FaultKind.SCOPE, bound_late),
    (FaultKind.BINDING, bound_twice),
    (FaultKind.NUMBERING, numbered_backward),
    (FaultKind.LITERAL, false_literal),
    (FaultKind.TYPE, other_result_type),
    (FaultKind.TYPE, other_use_type),
    (FaultKind.TYPE, wrong_arity),
    (FaultKind.EFFECT, forgotten_effects),
    (FaultKind.EFFECT, invented_effects),
    (FaultKind.ALIAS, aliased),
    (FaultKind.ESCAPE, returned_ref),
    (FaultKind.USE_AFTER_FREE, used_after_free),
    (FaultKind.USE_AFTER_FREE, freed_twice),
    (FaultKind.FOREIGN_FREE, freed_abroad),
    (FaultKind.REF_TO_REF, ref_in_ref),
    (FaultKind.REF_AS_ARRAY, ref_as_array),
)
"""Every kind of fault, with the mutations that cause it."""


def mutated(jaxpr: Jaxpr, mutation: Mutation, rng: np.random.Generator) -> Jaxpr:
    """Return the program with a fault at any depth. Raises NoPlace if no place fits."""
    nested = [i for i, eqn in enumerate(jaxpr.eqns) if eqn.prim.subjaxprs()]
    if nested and not rng.integers(2):
        at = _pick(rng, nested)
        eqn = jaxpr.eqns[at]
        subjaxprs = list(eqn.prim.subjaxprs())
        inner = int(rng.integers(len(subjaxprs)))
        with suppress(NoPlace):
            subjaxprs[inner] = mutated(subjaxprs[inner], mutation, rng)
            return _replaced(jaxpr, at, eqn._replace(prim=eqn.prim.with_subjaxprs(subjaxprs)))
    return mutation(jaxpr, rng)
