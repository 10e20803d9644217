"""Calls in calls in calls: fewer levels for XLA, whose compiler recurs on a stack that is not ours.

A program that nests deeply has the calls that occur once replaced by what they call. It has as
many equations as before, and as many levels as it has loops, branches, and functions that are
called more than once.
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
"""Programs with no more levels than this are lowered as they are, one function a program held."""


def nesting_depth(jaxpr: Jaxpr) -> int:
    """How many programs are inside of each other at most; 0: none are held."""
    found: dict[int, int] = {}
    for program in postorder(jaxpr):
        inner = [found[id(held)] + 1 for held in subjaxprs_of(program)]
        found[id(program)] = max(inner, default=0)
    return found[id(jaxpr)]


def shallow(jaxpr: Jaxpr) -> Jaxpr:
    """The program, with calls that occur once inlined where it has many levels."""
    if nesting_depth(jaxpr) <= SHALLOW:
        return jaxpr
    uses = Counter(
        held for program in dict.fromkeys(postorder(jaxpr)) for held in subjaxprs_of(program)
    )

    def once(eqn: Eqn) -> bool:
        return eqn.prim.is_call and uses[eqn.prim.subjaxprs()[0]] == 1

    return unwrap(inline(jaxpr, once))


def check_levels(jaxpr: Jaxpr, most: int) -> None:
    """Raises LoweringError where a program has more levels than XLA's compiler survives."""
    found = nesting_depth(jaxpr)
    if found > most:
        raise LoweringError(
            "programs are held in programs too deeply for XLA's compiler",
            expected=f"at most {most} loops, branches and repeated calls inside of each other",
            found=str(found),
            remedy="run it without `jit`, or compute one level at a time",
        )
