"""Insertion of ``pvary`` in calls with custom derivatives, and in their rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.analysis.dataflow import Positions
from effax.ir.analysis.variance import Names, variance
from effax.ir.axes import Axes
from effax.ir.prims import (
    BackwardRule,
    CustomJvp,
    CustomVjp,
    ForwardRule,
    ReverseRule,
    SparseBackward,
    SparseJvp,
    SparseVjp,
)
from effax.ir.syntax import Jaxpr
from effax.ir.types import is_inexact
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.rules import PvaryOut, RuleSet
from effax.transforms.spmd.pvary_insertion import insert_pvary, pvary_in_regions

Each = tuple[Names, ...]


@dataclass(frozen=True, slots=True)
class Varying:
    """The axes along which the operands and results of a call vary.

    ``fixed`` are the positions of references that are invariant.
    """

    ins: Each
    outs: Each
    n_consts: int
    axes: Axes
    fixed: Positions
    rules: RuleSet

    def inserted(self, jaxpr: Jaxpr, ins: Sequence[Names], outs: Sequence[Names]) -> Jaxpr:
        return insert_pvary(jaxpr, tuple(ins), self.axes, self.fixed, tuple(outs), self.rules)

    def given(self, mask: Sequence[bool]) -> list[Names]:
        """Return the axes of the marked arguments, constants not counted."""
        return [own for own, has in zip(self.ins[self.n_consts :], mask, strict=True) if has]


@dataclass(frozen=True, slots=True)
class VaryingForward(ForwardRule):
    """A forward rule with ``pvary``: a tangent varies exactly if its primal does."""

    rule: ForwardRule
    of: Varying
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        inner, of = self.rule(given), self.of
        dots = [own for own, has in zip(of.outs, inner.nonzero, strict=True) if has]
        made = of.inserted(inner.jaxpr, [*of.ins, *of.given(given)], [*of.outs, *dots])
        return SparseJvp(made, inner.nonzero)


@dataclass(frozen=True, slots=True)
class VaryingReverse(ReverseRule):
    """A reverse rule with ``pvary``: a cotangent varies exactly if its argument does."""

    rule: ReverseRule
    of: Varying
    cts: Each
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        inner, of = self.rule(given), self.of
        residuals = variance(inner.fwd, of.ins, of.fixed).outs[len(of.outs) :]
        fwd = of.inserted(inner.fwd, of.ins, [*of.outs, *residuals])
        operands = (*of.ins[: of.n_consts], *residuals, *[of.ins[i] for i in inner.refs])
        bwd = VaryingBackward(inner.bwd, of, operands, self.cts, tuple(of.given(given)), self.label)
        known = isinstance(inner.bwd, SparseBackward)
        return SparseVjp(fwd, inner.refs, bwd((True,) * len(self.cts)) if known else bwd)


@dataclass(frozen=True, slots=True)
class VaryingBackward(BackwardRule):
    """The backward rule of :class:`VaryingReverse`; ``linear`` are the axes of its results."""

    rule: BackwardRule | SparseBackward
    of: Varying
    operands: Each
    cts: Each
    linear: Each
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        inner = self.rule if isinstance(self.rule, SparseBackward) else self.rule(given)
        cts = [own for own, has in zip(self.cts, given, strict=True) if has]
        outs = [own for own, has in zip(self.linear, inner.nonzero, strict=True) if has]
        of = replace(self.of, fixed=frozenset())
        operands = [*self.operands, *cts]
        outs += variance(inner.jaxpr, tuple(operands)).outs[len(outs) :]
        return SparseBackward(of.inserted(inner.jaxpr, operands, outs), inner.nonzero, inner.logs)


def custom_jvp_pvary(
    rules: RuleSet, prim: CustomJvp, ins: Each, outs: Each, axes: Axes, fixed: Positions
) -> PvaryOut:
    made, ins = pvary_in_regions(rules, prim, ins, outs, axes, fixed)
    assert isinstance(made, CustomJvp)
    of = Varying(ins, outs, prim.n_consts, axes, fixed, rules)
    return PvaryOut(replace(made, rule=VaryingForward(prim.rule, of, prim.label)), ins)


def custom_vjp_pvary(
    rules: RuleSet, prim: CustomVjp, ins: Each, outs: Each, axes: Axes, fixed: Positions
) -> PvaryOut:
    cts = tuple([own for a, own in zip(prim.call.outs, outs, strict=True) if is_inexact(a.type)])
    closed = _with_cotangents(prim, ins, outs, cts, fixed)
    made, ins = pvary_in_regions(rules, prim, closed, outs, axes, fixed)
    assert isinstance(made, CustomVjp)
    of = Varying(ins, outs, prim.n_consts, axes, fixed, rules)
    rule = VaryingReverse(prim.rule, of, cts, prim.label)
    forward = None if prim.forward is None else VaryingForward(prim.forward, of, prim.label)
    return PvaryOut(replace(made, rule=rule, forward=forward), ins)


def _with_cotangents(prim: CustomVjp, ins: Each, outs: Each, cts: Each, fixed: Positions) -> Each:
    """Return the axes of the operands, joined with those of their cotangents by the rule.

    A derivative of the call follows, so the rule may be asked.
    """
    n = prim.n_consts
    given = tuple(map(is_inexact, prim.call.in_types[n:]))
    sparse = prim.rule(given)
    bwd = sparse.bwd
    if not isinstance(bwd, SparseBackward):
        bwd = bwd((True,) * len(cts))
    residuals = variance(sparse.fwd, ins, fixed).outs[len(outs) :]
    operands = (*ins[:n], *residuals, *[ins[i] for i in sparse.refs], *cts)
    found = iter(variance(bwd.jaxpr, operands).outs)
    own = iter([next(found) if has else None for has in bwd.nonzero])
    entries = [next(own) if has else None for has in given]
    pairs = zip(ins[n:], entries, strict=True)
    return (*ins[:n], *[x if ct is None else x | ct for x, ct in pairs])
