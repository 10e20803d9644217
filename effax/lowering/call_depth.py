"""Reduce the nesting of calls, on which XLA's compiler recurs until its stack overflows.

In deeply nested programs, functions that are called once are inlined. The program keeps its
number of equations; its depth is that of loops, branches, and functions called more than once.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from effax.ir.errors import LoweringError
from effax.ir.recursion import postorder, subjaxprs_of
from effax.ir.syntax import Eqn, Jaxpr
from effax.transforms.framework.runner import unwrap
from effax.transforms.optimize.inline import inline

SHALLOW: Final = 32
"""The depth up to which each subjaxpr becomes a function, without inlining."""


def nesting_depth(jaxpr: Jaxpr) -> int:
    """Return the depth of nesting; 0 for a jaxpr without subjaxprs."""
    found: dict[int, int] = {}
    for program in postorder(jaxpr):
        inner = [found[id(sub)] + 1 for sub in subjaxprs_of(program)]
        found[id(program)] = max(inner, default=0)
    return found[id(jaxpr)]


def shallow(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program, with functions that are called once inlined if it nests deeply."""
    if nesting_depth(jaxpr) <= SHALLOW:
        return jaxpr
    uses = Counter(
        sub for program in dict.fromkeys(postorder(jaxpr)) for sub in subjaxprs_of(program)
    )

    def once(eqn: Eqn) -> bool:
        return eqn.prim.is_call and uses[eqn.prim.subjaxprs()[0]] == 1

    return unwrap(inline(jaxpr, once))


def check_levels(jaxpr: Jaxpr, most: int) -> None:
    """Raise LoweringError if the program nests more deeply than XLA's compiler supports."""
    found = nesting_depth(jaxpr)
    if found > most:
        raise LoweringError(
            "the program is nested too deeply for XLA's compiler",
            expected=f"at most {most} nested loops, branches and repeated calls",
            found=str(found),
            remedy="run it without `jit`, or compute one level at a time",
        )
