"""Apply equations and programs to arrays and references, eagerly or within a trace."""

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
    """Apply the primitive of an equation to other arguments, and return its results.

    Primitives with subjaxprs are applied too. Within a trace, an equation is added to its program.

    Raises:
        IllTyped: the arguments do not fit the primitive.
    """
    return bind(eqn.prim, *as_operands(args))


def eval_jaxpr(jaxpr: Jaxpr | ClosedJaxpr, *args: object) -> list[Array]:
    """Run a program, equation by equation, and return its results.

    Args:
        jaxpr: the program. A ``ClosedJaxpr`` has its constants.
        *args: one array, number or reference an input.

    Raises:
        IllTyped: the number of arguments is wrong, or one does not fit.
        RefError: a result is a reference.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        args = (*jaxpr.consts, *args)
        jaxpr = jaxpr.jaxpr
    if len(args) != len(jaxpr.binders):
        raise IllTyped(
            "the number of arguments is not the number of inputs of the program",
            expected=str(len(jaxpr.binders)),
            found=str(len(args)),
        )
    env: dict[int, Operand] = {
        v.id: x for v, x in zip(jaxpr.binders, as_operands(args), strict=True)
    }

    def value(atom: Atom) -> Operand:
        return atom if isinstance(atom, Lit) else env[atom.id]

    for eqn in jaxpr.eqns:
        outs = bind(eqn.prim, *map(value, eqn.ins))
        env.update((v.id, out) for v, out in zip(eqn.outs, outs, strict=True))
    return [_array(value(a)) for a in jaxpr.outs]


def eval_closed(jaxpr: Jaxpr | ClosedJaxpr, consts: Sequence[object], *args: object) -> list[Array]:
    """Run a program on constants and arguments, as JAX's ``eval_jaxpr``.

    Args:
        jaxpr: the program; a ``ClosedJaxpr`` has constants, which ``consts`` may repeat.
        consts: one value for each of the first inputs: ``closed.consts``.
        *args: one array, number or reference for each of the others.

    Raises:
        IllTyped: the number of arguments is wrong, or one does not fit.
        RefError: a result is a reference.

    >>> closed = effax.make_jaxpr(lambda x: x * 2)(1.0)
    >>> effax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    if consts and isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    return eval_jaxpr(jaxpr, *consts, *args)


def as_operands(args: Sequence[object]) -> list[Operand]:
    """Return values as operands of primitives."""
    return [x if isinstance(x, Array | Ref | Lit) else as_value(x) for x in args]


def _array(x: Operand) -> Array:
    if isinstance(x, Lit):
        return as_value(x.value).astype(x.type.dtype)
    if isinstance(x, Ref):
        what = "a program returns a reference that it allocated"
        raise RefError.against(Rule.ESCAPE, what, "arrays", str(x.type))
    return x
