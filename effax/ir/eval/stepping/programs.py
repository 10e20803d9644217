"""Closed programs that reproduce an equation of an evaluation: by itself, or from its inputs.

Before; the logarithm is nan in iteration 3 of a loop, where ``b`` is -1::

    b:f32[] = log a

The program of the equation alone, which needs no arguments::

    let a:f32[] = -1.0 in
    { lambda a:f32[]; . let b:f32[] = log a in (b,) }
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from effax.ir.edit.alpha import renumbered
from effax.ir.edit.operations import equation
from effax.ir.eval.numpy import evaluate
from effax.ir.eval.stepping.memory import changed_by
from effax.ir.eval.stepping.watch import Hit, Test
from effax.ir.primitive import Value
from effax.ir.prims.common.operands import Elementwise
from effax.ir.prims.refs import Freeze, NewRef
from effax.ir.prims.shape import Concatenate, Reshape
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Lit, Var
from effax.ir.text.constants import MOST, constant_texts
from effax.ir.types import ArrayType, RefType, array_type


def shortest(hit: Hit, test: Test) -> ClosedJaxpr:
    """Return a program of one equation for which the test holds, on constants.

    Of an elementwise equation it has one element. A reference is made from its contents before.
    """
    element = _one_element(hit, test)
    return _closed([hit.eqn], hit, {}) if element is None else element


def backward_slice(hit: Hit) -> ClosedJaxpr:
    """Return the pure equations of the innermost program that lead to the equation, and itself.

    Its constants are the inputs of that program, and the results of equations with effects.
    """
    jaxpr, at = hit.frame.jaxpr, hit.frame.at
    needed = {a.id for a in hit.eqn.ins if isinstance(a, Var)}
    kept = [hit.eqn]
    for eqn in reversed(jaxpr.eqns[:at]):
        if not eqn.effects.effects and any(v.id in needed for v in eqn.outs):
            kept.append(eqn)
            needed.update(a.id for a in eqn.ins if isinstance(a, Var))
    return _closed(kept[::-1], hit, {})


def _one_element(hit: Hit, test: Test) -> ClosedJaxpr | None:
    """Return the equation on one element of its operands, if the test holds there."""
    eqn, value = hit.eqn, hit.value
    if not isinstance(eqn.prim, Elementwise) or value is None or test.of_value is None:
        return None
    where = np.asarray(test.of_value(value))
    if value.ndim == 0 or where.shape != value.shape:
        return None
    index = tuple(np.argwhere(where)[0])
    scalars: dict[int, Value] = {}
    atoms: list[Atom] = []
    for a, x in zip(eqn.ins, hit.operands, strict=True):
        if isinstance(a, Lit):
            atoms.append(a)
            continue
        assert isinstance(a.type, ArrayType)
        atoms.append(Var(a.id, a.type.update(shape=())))
        scalars[a.id] = np.array(x[index] if x.ndim else x)
    outs = [Var(v.id, v.type.update(shape=())) for v in eqn.outs if isinstance(v.type, ArrayType)]
    made = _closed([equation(eqn.prim, atoms, outs, eqn.source)], hit, scalars)
    return made if any(map(test.holds_for, constant_results(made))) else None


def constant_results(closed: ClosedJaxpr) -> list[Value]:
    """Return the results of a program without arguments."""
    return evaluate(closed.jaxpr, [np.asarray(c) for c in closed.consts])


def _closed(eqns: Sequence[Eqn], hit: Hit, values: dict[int, Value]) -> ClosedJaxpr:
    """Return a program of equations of the innermost program; values of free variables are consts.

    ``values`` replaces values of the evaluation.
    """
    frame, last = hit.frame, eqns[-1]
    own = {a.id: x for a, x in zip(last.ins, hit.operands, strict=True) if isinstance(a, Var)}
    bound = {v.id for eqn in eqns for v in eqn.outs}
    free = {a.id: a for eqn in eqns for a in eqn.ins if isinstance(a, Var) and a.id not in bound}
    fresh = frame.jaxpr.size
    binders: list[Var] = []
    consts: list[Value] = []
    first: list[Eqn] = []
    for a in free.values():
        found = values.get(a.id, own.get(a.id, frame.env[a.id]))
        assert found is not None, "a variable is used before it is bound"
        consts.append(np.asarray(found))
        if isinstance(a.type, RefType):
            contents = Var(fresh, a.type.inner)
            fresh += 1
            first.append(equation(NewRef(a.type.kind), [contents], [a]))
            binders.append(contents)
        else:
            binders.append(a)
    outs = list(last.outs)
    ends: list[Eqn] = []
    for position in changed_by(last):
        ref = last.ins[position]
        assert isinstance(ref.type, RefType)
        outs.append(Var(fresh, ref.type.inner))
        ends.append(equation(Freeze(), [ref], outs[-1:]))
        fresh += 1
    jaxpr = Jaxpr(binders, [*first, *eqns, *ends], outs, len(binders))
    return ClosedJaxpr(renumbered(jaxpr), tuple(consts))


def self_contained(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return an equal program of which ``str`` writes out every constant.

    An array of more elements than are written in one constant is joined from several.
    """
    jaxpr = closed.jaxpr
    fresh = jaxpr.size
    binders: list[Var] = []
    consts: list[object] = []
    first: list[Eqn] = []
    for v, value in zip(jaxpr.binders, closed.consts, strict=False):
        if not isinstance(v.type, ArrayType) or constant_texts(value, v.type) is not None:
            binders.append(v)
            consts.append(value)
            continue
        flat = np.asarray(value).reshape(-1)
        chunks = [flat[i:j] for i, j in pairwise([*range(0, flat.size, MOST), flat.size])]
        own = [Var(fresh + k, array_type(c.shape, c.dtype)) for k, c in enumerate(chunks)]
        joined = Var(fresh + len(own), array_type(flat.shape, flat.dtype))
        fresh += len(own) + 1
        first.append(equation(Concatenate(0), own, [joined]))
        first.append(equation(Reshape(v.type.shape), [joined], [v]))
        binders += own
        consts += chunks
    whole = [*binders, *jaxpr.binders[len(closed.consts) :]]
    made = jaxpr.replace(binders=whole, eqns=[*first, *jaxpr.eqns], n_consts=len(binders), names=())
    return ClosedJaxpr(renumbered(made), tuple(consts))


LARGEST: Final = 1 << 20
"""Programs with larger constants are written with names for them."""


def text_of(closed: ClosedJaxpr) -> str:
    """Return the text of a program with its constants; those of very large ones are names."""
    size = sum(np.asarray(c).size for c in closed.consts)
    return str(self_contained(closed) if size <= LARGEST else closed)
