"""Propagation of zeros: which results of a program are zero if some inputs are.

A linear function is zero at zero. Transposition visits one equation at a time and does not check
this: it treats ``x + 1`` as ``x``.
"""

from __future__ import annotations

from typing import Final

from effax.ir.analysis.dataflow import Analysis, Positions, analyze
from effax.ir.prims import Div, DotGeneral, Mul, StrongZeroMul
from effax.ir.syntax import Eqn, Jaxpr, Lit
from effax.ir.types import is_inexact
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import RuleSet, Unsupported

_PRODUCTS: Final = (Mul, StrongZeroMul, DotGeneral)


@dataclass(frozen=True)
class _MayBeNonzero(Analysis[bool]):
    """The property that a value may be nonzero: the complement, so that it is a least fixpoint.

    A carry is zero if it is zero after every iteration, a result of branches if it is in all.
    """

    rules: RuleSet
    bottom = False

    def join(self, first: bool, second: bool) -> bool:
        return first or second

    def literal(self, lit: Lit) -> bool:
        return lit.value != 0

    def origin(self, eqn: Eqn) -> bool:
        return True

    def transfer(self, eqn: Eqn, ins: Mask) -> Mask:
        return (self._of_results(eqn, ins),) * len(eqn.outs)

    def call(self, eqn: Eqn, ins: Mask, fixed: Positions) -> tuple[Mask, Mask]:
        if eqn.prim.first_linear() is not None:
            return ins, self.transfer(eqn, ins)
        return super().call(eqn, ins, fixed)

    def _of_results(self, eqn: Eqn, ins: Mask) -> bool:
        prim = eqn.prim
        if isinstance(prim, _PRODUCTS):
            return all(ins)
        if isinstance(prim, Div):
            return ins[0]
        first_linear = prim.first_linear()
        if first_linear is not None:
            return any(ins[first_linear:])
        if isinstance(self.rules.of(prim).transpose, Unsupported) or not ins:
            return True
        values = [has for a, has in zip(eqn.ins, ins, strict=True) if is_inexact(a.type)]
        return any(values or ins)


def propagate_zeros(jaxpr: Jaxpr, ins: Mask, rules: RuleSet) -> Mask:
    """Return which results are known to be zero, of a program without references.

    Args:
        jaxpr: the program.
        ins: which inputs are zero.
        rules: the rules; a primitive with a transpose rule maps zeros to zeros.
    """
    found = analyze(_MayBeNonzero(rules), jaxpr, tuple([not zero for zero in ins]))
    return tuple([not nonzero for nonzero in found.outs])
