"""Control flow that accesses a reference: a call, a branch, and loops of one iteration."""

from __future__ import annotations

from typing import Final

from effax.ir.build import Builder, lit
from effax.ir.primitive import Primitive
from effax.ir.prims import Add, Cond, Jit, Lt, Scan, While
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import COUNTER

KINDS: Final = ("jit", "cond", "scan", "while")
"""The kinds of control flow that may enclose an access."""


def enclosed(kind: str, body: Jaxpr, predicate: Atom) -> tuple[Primitive, list[Atom], list[Atom]]:
    """Return control flow that runs a program, and operands before and after those of the program.

    Args:
        kind: one of :data:`KINDS`.
        body: the program; a loop runs it once, ``while`` without its results.
        predicate: a boolean for a branch, which is taken if it is true. The other branch does
            nothing if the program has no results, and otherwise is the program too.
    """
    types = body.in_types
    match kind:
        case "cond":
            other = body if body.outs else Builder(types).finish([])
            return Cond((other, body)), [predicate], []
        case "scan":
            return Scan(body, 1, False, len(types), 0), [], []
        case "while":
            test, step = Builder([*types, COUNTER]), Builder([*types, COUNTER])
            going = test(Lt(), test.binders[-1], lit(1, COUNTER))
            step.inline_jaxpr(body, step.binders[:-1])
            count = step(Add(), step.binders[-1], lit(1, COUNTER))
            prim = While(test.finish([going]), step.finish([count]), len(types))
            return prim, [], [lit(0, COUNTER)]
        case _:
            return Jit(body, "access"), [], []
