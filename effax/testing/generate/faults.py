"""Insert faults into valid programs, each of a kind that the checker must report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from effax.effects import NO_EFFECTS, ArgIndex, Read, Row, Write
from effax.ir import prims as p
from effax.ir.analysis.faults import FaultKind
from effax.ir.build import typing_of
from effax.ir.dtypes import as_dtype
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims import Jit, refs
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.types import ArrayType, RefType, Type, array_type, ref_type

Mutation = Callable[[Jaxpr, np.random.Generator], Jaxpr | None]
"""Return the program with a fault at a random place; None if no place fits."""


def _pick(rng: np.random.Generator, items: Sequence[int]) -> int | None:
    return int(rng.choice(items)) if items else None


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


def _live_refs(jaxpr: Jaxpr, binders_only: bool = False) -> list[Var]:
    """Return the references in scope at the end that are not consumed."""
    consumed = {
        a.id
        for eqn in jaxpr.eqns
        if isinstance(eqn.prim, refs.Freeze | refs.FreeRef)
        for a in eqn.ins
        if isinstance(a, Var)
    }
    made = [] if binders_only else [v for eqn in jaxpr.eqns for v in eqn.outs]
    return [
        v for v in (*jaxpr.binders, *made) if isinstance(v.type, RefType) and v.id not in consumed
    ]


def unbound(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Drop an equation whose results are used."""
    used = _used(jaxpr)
    at = _pick(rng, [i for i, eqn in enumerate(jaxpr.eqns) if any(v.id in used for v in eqn.outs)])
    return None if at is None else _replaced(jaxpr, at, None)


def bound_late(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Move an equation behind one that uses its result."""
    eqns = jaxpr.eqns
    places = [
        i
        for i in range(len(eqns) - 1)
        if {v.id for v in eqns[i].outs} & {a.id for a in eqns[i + 1].ins if isinstance(a, Var)}
    ]
    at = _pick(rng, places)
    if at is None:
        return None
    order = list(eqns)
    order[at], order[at + 1] = order[at + 1], order[at]
    return jaxpr.replace(eqns=order)


def bound_twice(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Bind an input again."""
    if not jaxpr.binders:
        return None
    at = _pick(rng, [i for i, eqn in enumerate(jaxpr.eqns) if len(eqn.outs) == 1])
    if at is None:
        return None
    eqn = jaxpr.eqns[at]
    same = jaxpr.binders[int(rng.integers(len(jaxpr.binders)))]
    return _replaced(jaxpr, at, eqn._replace(outs=(Var(same.id, eqn.outs[0].type),)))


def numbered_backward(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Number variables from the last to the first."""
    top = jaxpr.size - 1
    if top < 1:
        return None

    def renamed(v: Var) -> Var:
        return Var(top - v.id, v.type)

    def used(a: Atom) -> Atom:
        return renamed(a) if isinstance(a, Var) else a

    eqns = [
        eqn._replace(ins=tuple(map(used, eqn.ins)), outs=tuple(map(renamed, eqn.outs)))
        for eqn in jaxpr.eqns
    ]
    return Jaxpr([*map(renamed, jaxpr.binders)], eqns, [*map(used, jaxpr.outs)])


def false_literal(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Set a literal to a value that its type does not have."""
    wrong = [
        Lit(0.5, array_type((), as_dtype("int32"))),
        Lit(True, array_type((), as_dtype("float32"))),
        Lit(300, array_type((), as_dtype("uint8"))),
        Lit(1.0, array_type((2,), as_dtype("float32"))),
    ]
    return jaxpr.replace(outs=[*jaxpr.outs, wrong[int(rng.integers(len(wrong)))]])


def other_result_type(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Declare a result at another type, wherever it is named."""
    at = _pick(
        rng,
        [
            i
            for i, eqn in enumerate(jaxpr.eqns)
            if any(isinstance(v.type, ArrayType) for v in eqn.outs)
        ],
    )
    if at is None:
        return None
    v = next(v for v in jaxpr.eqns[at].outs if isinstance(v.type, ArrayType))
    other = _wider(v)

    def renamed(a: Atom) -> Atom:
        return other if isinstance(a, Var) and a.id == v.id else a

    eqns = [
        eqn._replace(
            ins=tuple(map(renamed, eqn.ins)),
            outs=tuple(other if w.id == v.id else w for w in eqn.outs),
        )
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns, outs=[*map(renamed, jaxpr.outs)])


def _wider(v: Var) -> Var:
    """Return the variable at another type, with one more axis."""
    assert isinstance(v.type, ArrayType)
    return Var(v.id, v.type.update(shape=(*v.type.shape, 5)))


def other_use_type(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Use a variable at another type than its own."""
    arrays = [v for v in jaxpr.binders if isinstance(v.type, ArrayType)]
    if not arrays:
        return None
    v = arrays[int(rng.integers(len(arrays)))]
    return jaxpr.replace(outs=[*jaxpr.outs, _wider(v)])


def wrong_arity(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Apply a primitive of one operand to two."""
    number = Lit(1.0, array_type((), as_dtype("float32")))
    return _appended(jaxpr, p.Sin(), number, number, outs=[number.type])


def forgotten_effects(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Record no effects for an equation that has some."""
    at = _pick(rng, [i for i, eqn in enumerate(jaxpr.eqns) if eqn.effects])
    return None if at is None else _replaced(jaxpr, at, jaxpr.eqns[at]._replace(effects=NO_EFFECTS))


def invented_effects(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Record effects that an equation does not have."""
    zero = ArgIndex(0)
    invented: Row[ArgIndex] = Row([Read(zero), Write(zero)])
    at = _pick(rng, [i for i, eqn in enumerate(jaxpr.eqns) if eqn.ins and eqn.effects != invented])
    return None if at is None else _replaced(jaxpr, at, jaxpr.eqns[at]._replace(effects=invented))


def aliased(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Pass one reference twice to a call."""
    found = _live_refs(jaxpr)
    if not found:
        return None
    ref = found[int(rng.integers(len(found)))]
    binders = [Var(0, ref.type), Var(1, ref.type)]
    return _typed(jaxpr, Jit(Jaxpr(binders, [], []), "f"), ref, ref)


def returned_ref(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Return a reference."""
    found = _live_refs(jaxpr)
    return (
        jaxpr.replace(outs=[*jaxpr.outs, found[int(rng.integers(len(found)))]]) if found else None
    )


def _with_local(jaxpr: Jaxpr) -> tuple[Jaxpr, Var]:
    """Return the program with a new reference at its end."""
    number = Lit(1.0, array_type((), as_dtype("float32")))
    made = _typed(jaxpr, refs.NewRef(), number)
    return made, Var(jaxpr.size, ref_type(number.type))


def used_after_free(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Read a consumed reference of the program, or a new one."""
    consumed = [
        a
        for eqn in jaxpr.eqns
        if isinstance(eqn.prim, refs.Freeze | refs.FreeRef)
        for a in eqn.ins
        if isinstance(a, Var)
    ]
    if consumed:
        ref = consumed[int(rng.integers(len(consumed)))]
    else:
        jaxpr, ref = _with_local(jaxpr)
        jaxpr = _typed(jaxpr, (refs.Freeze(), refs.FreeRef())[int(rng.integers(2))], ref)
    return _typed(jaxpr, refs.Get(whole(ref.type.shape)), ref)


def freed_twice(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Consume a reference a second time."""
    made, ref = _with_local(jaxpr)
    return _typed(_typed(made, refs.FreeRef(), ref), refs.Freeze(), ref)


def freed_abroad(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Consume a reference that the caller made."""
    found = _live_refs(jaxpr, binders_only=True)
    if not found:
        return None
    return _typed(jaxpr, refs.Freeze(), found[int(rng.integers(len(found)))])


def ref_in_ref(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
    """Allocate a reference to a reference."""
    made, ref = _with_local(jaxpr)
    return _appended(made, refs.NewRef(), ref, outs=[ref.type])


def ref_as_array(jaxpr: Jaxpr, rng: np.random.Generator) -> Jaxpr | None:
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


def mutated(jaxpr: Jaxpr, mutation: Mutation, rng: np.random.Generator) -> Jaxpr | None:
    """Return the program with a fault at any depth."""
    holders = [i for i, eqn in enumerate(jaxpr.eqns) if eqn.prim.subjaxprs()]
    if not holders or rng.integers(2):
        return mutation(jaxpr, rng)
    at = int(rng.choice(holders))
    eqn = jaxpr.eqns[at]
    subjaxprs = list(eqn.prim.subjaxprs())
    inner = int(rng.integers(len(subjaxprs)))
    made = mutated(subjaxprs[inner], mutation, rng)
    if made is None:
        return mutation(jaxpr, rng)
    subjaxprs[inner] = made
    return _replaced(jaxpr, at, eqn._replace(prim=eqn.prim.with_subjaxprs(subjaxprs)))
