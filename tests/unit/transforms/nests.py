"""Programs nested to many levels, and the sizes of programs with their subjaxprs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, CustomJvp, Jit, Remat, Scan, While
from effax.ir.recursion import postorder
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import array_type
from effax.transforms.rules.custom.dense import DenseForward
from tests.unit.building import program

F: Final = array_type((), "float32")
LEAF: Final = program([F], lambda b, x: [b(prims.Sin(), x)])
RULE: Final = program(
    [F, F], lambda b, x, t: [b(prims.Sin(), x), b(prims.Mul(), b(prims.Cos(), x), t)]
)
NEVER: Final = program([F], lambda b, x: [b(prims.Lt(), x, x)])
TRUE: Final = lit(True, array_type((), "bool"))

CALLS: Final[dict[str, tuple[Callable[[Jaxpr], Primitive], tuple[Atom, ...]]]] = {
    "jit": (Jit, ()),
    "scan": (lambda inner: Scan(inner, 1, False, 0, 1), ()),
    "cond": (lambda inner: Cond((LEAF, inner)), (TRUE,)),
    "remat": (Remat, ()),
    "while": (lambda inner: While(NEVER, inner, 0), ()),
    "custom_jvp": (lambda inner: CustomJvp(inner, DenseForward(RULE, 0, 1, "f"), 0, "f"), ()),
}


def nest(kind: str, levels: int, calls: int = 1, leaf: Jaxpr = LEAF) -> Jaxpr:
    """Return a program of nested calls, each of which multiplies the results of the inner ones."""
    jaxpr = leaf
    make, first = CALLS[kind]
    for _ in range(levels):
        prim = make(jaxpr)
        b = Builder([F])
        (x,) = b.binders
        y: Atom = x
        for _ in range(calls):
            (y,) = b.emit(prim, [*first, y])
        jaxpr = b.finish([b(prims.Mul(), y, x)])
    return jaxpr


def equations(jaxpr: Jaxpr) -> int:
    """Return the number of equations, those of equal subjaxprs counted once."""
    return sum(len(inner.eqns) for inner in dict.fromkeys(postorder(jaxpr)))


def interfaces(jaxpr: Jaxpr) -> int:
    """Return the greatest number of inputs or results of the program or a subjaxpr."""
    return max(max(len(p.binders), len(p.outs)) for p in postorder(jaxpr))
