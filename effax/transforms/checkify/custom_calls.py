"""Custom rules of calls that return an error besides their results.

Their rules stay: a derivative of the checked call is that of the call. The error has no derivative,
and the function runs for it where a rule takes its place, unless it has effects, which would happen
twice: then the error is zero. The rules themselves check nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.build import Builder
from effax.ir.edit.rewriter import Rewriter
from effax.ir.errors import NotApplicable
from effax.ir.memo import memoize
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    BackwardRule,
    BatchedProgram,
    Check,
    Checks,
    CustomJvp,
    CustomVjp,
    CustomVmap,
    ForwardRule,
    ReverseRule,
    SparseBackward,
    SparseJvp,
    SparseVjp,
    VmapRule,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import Type, is_inexact, tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.framework.pass_ import rules_or_default
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.vmap.common import batched_type
from effax.transforms.vmap.engine import vmap


def checked_call(prim: Primitive, checked: Jaxpr) -> Primitive:
    """Return a call with custom rules whose function returns an error too.

    Args:
        prim: the call.
        checked: its function, with the error as further results.
    """
    if not isinstance(prim, CustomJvp | CustomVjp | CustomVmap):
        raise NotApplicable(f"checkify: {prim.name} has its own rules, which return no error")
    return _with_error(prim, CallError(checked, len(prim.call.outs), bool(checked.effects.effects)))


def _with_error(prim: CustomJvp | CustomVjp | CustomVmap, error: CallError) -> Primitive:
    checked = error.checked
    batch = None if prim.vmap_rule is None else CheckedBatch(prim.vmap_rule, error, prim.label)
    if isinstance(prim, CustomVmap):
        assert batch is not None
        return replace(prim, call=checked, vmap_rule=batch)
    n = prim.n_consts
    if isinstance(prim, CustomJvp):
        rule = CheckedForward(prim.rule, error, prim.label)
        return replace(prim, call=checked, rule=rule, vmap_rule=batch)
    forward = None if prim.forward is None else CheckedForward(prim.forward, error, prim.label)
    reverse = CheckedReverse(prim.rule, error, n, prim.label)
    return replace(prim, call=checked, rule=reverse, forward=forward, vmap_rule=batch)


@memoize(maxsize=1024)
def without_checks(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program without its checks, at every depth, those of custom rules included."""
    if not any(isinstance(effect, Checks) for effect in jaxpr.effects.side_effects):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        prim = eqn.prim
        if isinstance(prim, Check):
            new.replace(eqn, ())
        elif isinstance(prim, CustomJvp | CustomVjp | CustomVmap):
            none = CallError(without_checks(prim.call), len(prim.call.outs), has_effects=True)
            new.replace(eqn, new.emit(eqn, _with_error(prim, none), new.operands(eqn)))
        else:
            quiet = prim.with_subjaxprs([without_checks(inner) for inner in prim.subjaxprs()])
            new.replace(eqn, new.emit(eqn, quiet, new.operands(eqn)))
    return new.finish()


@dataclass(frozen=True, slots=True)
class CallError:
    """The error of a call: the last results of ``checked``, after ``n_outs`` others."""

    checked: Jaxpr
    n_outs: int
    has_effects: bool

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the arrays of the error."""
        return self.checked.out_types[self.n_outs :]

    def emit(self, b: Builder, args: Sequence[Atom]) -> list[Atom]:
        """Append the error, for these arguments of the call."""
        if self.has_effects:
            return [zeros(b, t) for t in self.types]
        return b.inline_jaxpr(self.checked, args)[self.n_outs :]


@dataclass(frozen=True, slots=True)
class CheckedForward(ForwardRule):
    """The forward rule of a call that returns an error, which has no tangent."""

    rule: ForwardRule
    error: CallError
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        jaxpr, nonzero = self.rule(given)
        jaxpr = without_checks(jaxpr)
        b = Builder(jaxpr.in_types)
        outs = b.inline_jaxpr(jaxpr, b.binders)
        n = self.error.n_outs
        error = self.error.emit(b, b.binders[: len(self.error.checked.binders)])
        made = b.finish([*outs[:n], *error, *outs[n:]], jaxpr.n_consts, jaxpr.names)
        return SparseJvp(made, (*nonzero, *[False] * len(error)))


@dataclass(frozen=True, slots=True)
class CheckedReverse(ReverseRule):
    """The reverse rule of a call that returns an error, whose cotangent is not used."""

    rule: ReverseRule
    error: CallError
    n_consts: int
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        fwd, refs, bwd = self.rule(given)
        fwd = without_checks(fwd)
        b = Builder(fwd.in_types)
        outs = b.inline_jaxpr(fwd, b.binders)
        n = self.error.n_outs
        error = self.error.emit(b, b.binders[: len(self.error.checked.binders)])
        made = b.finish([*outs[:n], *error, *outs[n:]], fwd.n_consts, fwd.names)
        types = tuple([t for t in self.error.checked.out_types[:n] if is_inexact(t)])
        rest = tuple([t for t in self.error.types if is_inexact(t)])
        return SparseVjp(made, refs, CheckedBackward(bwd, types, rest, self.label))


@dataclass(frozen=True, slots=True)
class CheckedBackward(BackwardRule):
    """A backward rule that ignores the cotangents of the error, of the types ``rest``.

    ``types`` are those of the inexact results of the call.
    """

    rule: BackwardRule | SparseBackward
    types: tuple[Type, ...]
    rest: tuple[Type, ...]
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        own, more = given[: len(self.types)], given[len(self.types) :]
        dense = isinstance(self.rule, SparseBackward)
        inner = self.rule if isinstance(self.rule, SparseBackward) else self.rule(own)
        taken = (True,) * len(own) if dense else own
        jaxpr = without_checks(inner.jaxpr)
        b = Builder(jaxpr.in_types[: len(jaxpr.binders) - sum(taken)])
        args: list[Atom] = list(b.binders)
        for type_, takes, has in zip(self.types, taken, own, strict=True):
            cotangent = tangent_type(type_)
            if has:
                args.append(b.bind(cotangent))
            elif takes:
                args.append(zeros(b, cotangent))
        for type_, has in zip(self.rest, more, strict=True):
            if has:
                b.bind(tangent_type(type_))
        return SparseBackward(b.finish(b.inline_jaxpr(jaxpr, args)), inner.nonzero, inner.logs)


@dataclass(frozen=True, slots=True)
class CheckedBatch(VmapRule):
    """The batching rule of a call that returns an error: one for each batch element."""

    rule: VmapRule
    error: CallError
    label: str

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        inner = self.rule(size, batched)
        jaxpr = without_checks(inner.jaxpr)
        b = Builder(jaxpr.in_types)
        outs = b.inline_jaxpr(jaxpr, b.binders)
        if self.error.has_effects:
            error = [zeros(b, batched_type(t, size)) for t in self.error.types]
        else:
            every = (True,) * len(self.error.checked.outs)
            rules = rules_or_default(None)
            program = vmap.cached(self.error.checked, batched, size, rules, instantiate=every)
            error = b.inline_jaxpr(program.jaxpr, b.binders)[self.error.n_outs :]
        flags = (*inner.batched, *[True] * len(error))
        return BatchedProgram(b.finish([*outs, *error]), flags)
