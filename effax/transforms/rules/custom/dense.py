"""Rules of calls that are jaxprs, for dense tangents and cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder
from effax.ir.prims import CustomJvp, ForwardRule, ReverseRule, SparseBackward, SparseJvp, SparseVjp
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.propagation import Mask
from effax.transforms.rules.common.arrays import zeros


@dataclass(frozen=True, slots=True)
class DenseForward(ForwardRule):
    """A forward rule that is a jaxpr on arguments and the tangents of inexact ones, all arrays.

    It returns the results and the tangents of inexact ones.
    """

    jaxpr: Jaxpr
    n_consts: int
    n_outs: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        n = self.n_consts + len(given)
        types = self.jaxpr.in_types[self.n_consts : n]
        nonzero = tuple(map(is_inexact, self.jaxpr.out_types[: self.n_outs]))
        dense = SparseJvp(self.jaxpr, nonzero)
        return on_given_tangents(dense, types, tuple(map(is_inexact, types)), given)


def call_with_jvp(call: Jaxpr, rule: Jaxpr, label: str) -> CustomJvp:
    """Return the call of a function without constants whose forward rule is a jaxpr."""
    return CustomJvp(call, DenseForward(rule, 0, len(call.outs), label), 0, label)


def on_given_tangents(
    rule: SparseJvp, types: Sequence[Type], wanted: Mask, given: Mask
) -> SparseJvp:
    """Return a rule on the given tangents of those that it wants; the others are zeros.

    ``types`` are those of the arguments that are not constants.
    """
    if wanted == given:
        return rule
    jaxpr = rule.jaxpr
    n = len(jaxpr.binders) - sum(wanted)
    b = Builder(jaxpr.in_types[:n])
    dots: list[Atom] = []
    for type_, has_slot, has in zip(types, wanted, given, strict=True):
        if has_slot:
            dot = tangent_type(type_)
            dots.append(b.bind(dot) if has else zeros(b, dot))
    outs = b.inline_jaxpr(jaxpr, [*b.binders[:n], *dots])
    return SparseJvp(b.finish(outs, jaxpr.n_consts, jaxpr.names[:n]), rule.nonzero)


@dataclass(frozen=True, slots=True)
class DenseReverse(ReverseRule):
    """Reverse rules that are jaxprs; ``bwd`` takes the cotangents of all inexact results.

    ``wanted`` marks the arguments for which it returns cotangents; ``refs`` are as in
    ``SparseVjp``.
    """

    fwd: Jaxpr
    bwd: Jaxpr
    refs: tuple[int, ...]
    wanted: Mask
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        bwd = of_given_arguments(SparseBackward(self.bwd, self.wanted), given)
        return SparseVjp(self.fwd, self.refs, bwd)


def of_given_arguments(bwd: SparseBackward, given: Sequence[bool]) -> SparseBackward:
    """Return a backward rule for all arguments as one for the given arguments."""
    outs = iter(bwd.jaxpr.outs)
    entries = [next(outs) if has else None for has in bwd.nonzero]
    kept = [e for e, has in zip(entries, given, strict=True) if has]
    jaxpr = bwd.jaxpr.replace(outs=[*[e for e in kept if e is not None], *outs])
    return SparseBackward(jaxpr, tuple([e is not None for e in kept]), bwd.logs)
