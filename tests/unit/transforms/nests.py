"""Programs that hold programs at many levels, and how large programs are, held ones included."""

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
from tests.unit.building import program

F: Final = array_type((), "float32")
LEAF: Final = program([F], lambda b, x: [b(prims.Sin(), x)])
RULE: Final = program(
    [F, F], lambda b, x, t: [b(prims.Sin(), x), b(prims.Mul(), b(prims.Cos(), x), t)]
)
NEVER: Final = program([F], lambda b, x: [b(prims.Lt(), x, x)])
TRUE: Final = lit(True, array_type((), "bool"))

HOLD: Final[dict[str, tuple[Callable[[Jaxpr], Primitive], tuple[Atom, ...]]]] = {
    "jit": (Jit, ()),
    "scan": (lambda held: Scan(held, 1, False, 0, 1), ()),
    "cond": (lambda held: Cond((LEAF, held)), (TRUE,)),
    "remat": (Remat, ()),
    "while": (lambda held: While(NEVER, held, 0), ()),
    "custom_jvp": (lambda held: CustomJvp(held, RULE, 0, "f"), ()),
}


def nest(kind: str, levels: int, calls: int = 1, leaf: Jaxpr = LEAF) -> Jaxpr:
    """A program in a program in a program: each multiplies, and calls what is inside."""
    jaxpr = leaf
    hold, first = HOLD[kind]
    for _ in range(levels):
        prim = hold(jaxpr)
        b = Builder([F])
        (x,) = b.binders
        y: Atom = x
        for _ in range(calls):
            (y,) = b.emit(prim, [*first, y])
        jaxpr = b.finish([b(prims.Mul(), y, x)])
    return jaxpr


def equations(jaxpr: Jaxpr) -> int:
    """How many equations the program has, those of distinct held programs counted once."""
    return sum(len(held.eqns) for held in dict.fromkeys(postorder(jaxpr)))


def interfaces(jaxpr: Jaxpr) -> int:
    """The most inputs or results that the program or a held one has."""
    return max(max(len(p.binders), len(p.outs)) for p in postorder(jaxpr))
