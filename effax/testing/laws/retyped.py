"""A program at other dtypes, to be run only: no primitive is asked what it takes."""

from __future__ import annotations

from collections.abc import Callable

from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Jaxpr, Lit
from effax.ir.types import ArrayType, Type


def retyped(
    jaxpr: Jaxpr, of_type: Callable[[Type], Type], of_prim: Callable[[Primitive], Primitive]
) -> Jaxpr:
    """The same equations, with other types and other primitives in the place of each."""
    b = Builder(map(of_type, jaxpr.in_types))
    env: dict[int, Atom] = {v.id: w for v, w in zip(jaxpr.binders, b.binders, strict=True)}

    def value(atom: Atom) -> Atom:
        if not isinstance(atom, Lit):
            return env[atom.id]
        type_ = of_type(atom.type)
        assert isinstance(type_, ArrayType)
        return Lit(atom.value, type_)

    for eqn in jaxpr.eqns:
        types = tuple(of_type(v.type) for v in eqn.outs)
        outs = b.emit_typed(of_prim(eqn.prim), tuple(map(value, eqn.ins)), types, eqn.effects)
        env.update(zip((v.id for v in eqn.outs), outs, strict=True))
    return b.finish([value(a) for a in jaxpr.outs])
