"""Running equations and programs on arrays and references: now, or into the trace that is built."""

from __future__ import annotations

from collections.abc import Sequence

from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.effects import Rule
from effax.ir.errors import IllTyped, RefError
from effax.ir.syntax import Atom, ClosedJaxpr, Eqn, Jaxpr, Lit


def eval_eqn(eqn: Eqn, *args: object) -> list[Array | Ref]:
    """Apply what an equation applies to other arguments; gives its results.

    This is so for every primitive, those that hold programs included. Inside of a traced function
    the equation goes into its program.

    Raises:
        IllTyped: the arguments do not fit the primitive.
    """
    return bind(eqn.prim, *_operands(args))


def eval_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, *args: object) -> list[Array]:
    """Run a program, equation by equation; gives its results, which are no references.

    Args:
        jaxpr: the program. Of one with its constants these need not be given.
        *args: one array, number or reference an input.

    Raises:
        IllTyped: there are more or fewer arguments than inputs, or one does not fit.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        args = (*jaxpr.consts, *args)
        jaxpr = jaxpr.jaxpr
    if len(args) != len(jaxpr.binders):
        raise IllTyped(
            "a program is run on another number of arguments than it has inputs",
            expected=str(len(jaxpr.binders)),
            found=str(len(args)),
        )
    env: dict[int, Operand] = {v.id: x for v, x in zip(jaxpr.binders, _operands(args), strict=True)}

    def value(atom: Atom) -> Operand:
        return atom if isinstance(atom, Lit) else env[atom.id]

    for eqn in jaxpr.eqns:
        outs = bind(eqn.prim, *map(value, eqn.ins))
        env.update((v.id, out) for v, out in zip(eqn.outs, outs, strict=True))
    return [_array(value(a)) for a in jaxpr.outs]


def _operands(args: Sequence[object]) -> list[Operand]:
    return [x if isinstance(x, Array | Ref | Lit) else as_value(x) for x in args]


def _array(x: Operand) -> Array:
    if isinstance(x, Lit):
        return as_value(x.value).astype(x.type.dtype)
    if isinstance(x, Ref):
        what = "a program gives a reference that it made"
        raise RefError.against(Rule.ESCAPE, what, "arrays", str(x.type))
    return x
