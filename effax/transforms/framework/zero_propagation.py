"""Which results of a program are zero where some inputs are.

A linear function is zero at zero. That is the half of linearity which transposition, which looks at
one application after the other, does not see: it takes ``x + 1`` for ``x``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomLinear, Div, DotGeneral, LinearSolve, Mul
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import is_inexact
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet, Unsupported

_PRODUCTS: Final = (Mul, DotGeneral)


@memoize(maxsize=256)
def propagate_zeros(jaxpr: Jaxpr, ins: Mask, rules: RuleSet) -> Mask:
    """Which results are known to be zero, of a program without references.

    Args:
        jaxpr: the program.
        ins: which inputs are zero.
        rules: the rules: what can be transposed maps zeros to zeros.
    """
    zero = [False] * jaxpr.size
    for v, has in zip(jaxpr.binders, ins, strict=True):
        zero[v.id] = has

    def is_zero(atom: Atom) -> bool:
        return atom.value == 0 if isinstance(atom, Lit) else zero[atom.id]

    for eqn in jaxpr.eqns:
        for v, has in zip(eqn.outs, _of_eqn(eqn, tuple(map(is_zero, eqn.ins)), rules), strict=True):
            zero[v.id] = has
    return tuple(map(is_zero, jaxpr.outs))


def _of_eqn(eqn: Eqn, ins: Mask, rules: RuleSet) -> Sequence[bool]:
    prim, n = eqn.prim, len(eqn.outs)
    if isinstance(prim, _PRODUCTS):
        return [any(ins)]
    if isinstance(prim, Div):
        return [ins[0]]
    if isinstance(prim, CustomLinear):
        return [all(ins[prim.n_fixed :])] * n
    if isinstance(prim, LinearSolve):
        return [all(ins[prim.n_consts :])] * n
    if prim.regions():
        return _of_call(prim, ins, n, rules)
    if isinstance(rules.of(prim).transpose, Unsupported) or not eqn.ins:
        return [False] * n
    values = [has for a, has in zip(eqn.ins, ins, strict=True) if is_inexact(a.type)]
    return [all(values or ins)] * n


def _of_call(prim: Primitive, ins: Mask, n: int, rules: RuleSet) -> Sequence[bool]:
    """What a loop feeds back must be zero again, every time; all branches must give zeros."""
    args, regions = list(ins), prim.regions()
    while True:
        outs = [True] * n
        before = list(args)
        for region in regions:
            found = propagate_zeros(region.jaxpr, tuple([args[a] for a in region.args]), rules)
            for has, result, feed in zip(found, region.results, region.carry_to, strict=True):
                if feed is not None:
                    args[feed] = args[feed] and has
                    has = args[feed]  # noqa: PLW2901  # without iterations, what was given
                if result is not None:
                    outs[result] = outs[result] and has
        if args == before:
            return outs
