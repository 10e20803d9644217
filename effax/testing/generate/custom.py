"""Steps of calls with custom rules, which are derived from the function when they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.errors import TransformError
from effax.ir.indexing import whole
from effax.ir.primitive import Primitive
from effax.ir.prims import (
    BackwardRule,
    BatchedProgram,
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
from effax.ir.types import RefType, is_inexact, tangent_type
from effax.testing.generate import refs
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import arguments, call, inside, references, results
from effax.transforms.discharge import discharge
from effax.transforms.framework.propagation import Mask
from effax.transforms.jvp import jvp
from effax.transforms.linearize import Linearized, linearize
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.transpose.engine import GradValue, NonLinear, transpose
from effax.transforms.vmap.engine import vmap


@dataclass(frozen=True)
class VmapRuleOfProgram(VmapRule):
    """A batching rule that batches the program."""

    program: Jaxpr
    label: str = "f"

    def __call__(self, size: int, batched: tuple[bool, ...], /) -> BatchedProgram:
        made = vmap.cached(self.program, batched, size, DEFAULT_RULES)
        return BatchedProgram(made.jaxpr, made.out_batched)


@dataclass(frozen=True)
class ForwardOfProgram(ForwardRule):
    """The derivative of the program, which calls the function itself where ``recurs``."""

    program: Jaxpr
    recurs: bool = False
    label: str = "f"

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        made = jvp.cached(self.program, given, False, DEFAULT_RULES)
        if not self.recurs or self.program.effects.side_effects:
            return SparseJvp(made.jaxpr, made.out_tangents)
        b, n = Builder(made.jaxpr.in_types), len(self.program.binders)
        own = CustomJvp(self.program, self, 0, self.label)
        found = b.inline_jaxpr(made.jaxpr, b.binders)[len(self.program.outs) :]
        return SparseJvp(b.finish([*b.emit(own, b.binders[:n]), *found]), made.out_tangents)


@dataclass(frozen=True)
class ReverseOfProgram(ReverseRule):
    """The linearization of the program and its transpose.

    The residuals are arrays, and the linear program, which is data of the rules. Where ``recurs``,
    the forward rule calls the function itself.
    """

    program: Jaxpr
    recurs: bool = False
    label: str = "f"

    def linearized(self, given: Mask) -> Linearized:
        contents = discharge.cached(self.program, DEFAULT_RULES).jaxpr
        return linearize.cached(contents, given, False, DEFAULT_RULES)

    def __call__(self, given: tuple[bool, ...], /) -> SparseVjp:
        done, n = self.linearized(given), len(self.program.outs)
        b = Builder(self.program.in_types)
        args = [_contents(b, v) for v in b.binders]
        found = b.inline_jaxpr(done.primal, args)
        residuals = [r.pick(list[Atom](args), found) for r in done.residuals]
        outs: Sequence[Atom] = found[:n]
        if self.recurs:
            outs = b.emit(CustomVjp(self.program, self, 0, self.label), b.binders)
        fwd = b.finish([*outs, *residuals])
        return SparseVjp(fwd, (), BackwardOfProgram(done, self.program, self.label))


@dataclass(frozen=True)
class BackwardOfProgram(BackwardRule):
    """The transpose of a linear program."""

    done: Linearized
    program: Jaxpr
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseBackward:
        linear, has_tangent = self.done.linear, self.done.out_tangents
        n = len(self.done.residuals)
        flags = iter(given)
        of_outs = [is_inexact(t) and next(flags) for t in self.program.out_types]
        wanted = [g for g, has in zip(of_outs, has_tangent, strict=True) if has]
        ct_specs = (NonLinear(),) * n + (GradValue(),) * (len(linear.binders) - n)
        pulled = transpose.cached(linear, ct_specs, tuple(wanted), DEFAULT_RULES)
        # Cotangents of results without a tangent are not used.
        b = Builder([v.type for v in linear.binders[:n]])
        cts: list[Atom] = []
        for t, g, has in zip(self.program.out_types, of_outs, has_tangent, strict=True):
            if g:
                ct = b.bind(tangent_type(t))
                cts += [ct] if has else []
        return SparseBackward(
            b.finish(b.inline_jaxpr(pulled.jaxpr, [*b.binders[:n], *cts])), pulled.nonzero
        )


def _contents(b: Builder, atom: Atom) -> Atom:
    type_ = atom.type
    return b(p.Get(whole(type_.shape)), atom) if isinstance(type_, RefType) else atom


def custom(g: ProgramBuilder, generate: Generate) -> None:
    """Append a call with custom derivatives, a batching rule, or both.

    Its function reads the references among its arguments.
    """
    _call(g, generate, g.choose.below(5))


def custom_vjp(g: ProgramBuilder, generate: Generate) -> None:
    """Append a call with a reverse rule, and none for forward derivatives if it reads references.

    Both cannot be combined with references, so laws of forward mode have no such calls.
    """
    _call(g, generate, 5)


def _call(g: ProgramBuilder, generate: Generate, kind: int) -> None:
    ins = arguments(g, 3)
    read = [] if any(map(g.is_linear, ins)) else references(g, lambda r: not g.is_linear(r))
    ins = [*ins, *read]
    inner = inside(g, [v.type for v in ins], ins)
    inner.refs.clear()
    for v in inner.b.binders:
        if isinstance(v.type, RefType):
            inner.emit(p.Get(whole(v.type.shape)), v, magnitude=4.0)
    generate(inner, 3)
    refs.consume_rest(inner)
    outs = results(inner, 3)
    if any(g.is_linear(v) for v in ins):
        # A rule is for all results: linear and nonlinear ones need different rules.
        outs = [v for v in outs if inner.is_linear(v)]
        if not outs:
            return
    flags = [inner.is_linear(v) for v in outs]
    call(g, ruled(inner.finish(outs), kind, g.choose.chance(50)), ins, flags)


def ruled(jaxpr: Jaxpr, kind: int, recurs: bool = False) -> Primitive:
    """Return a call of a program with a forward, a reverse, or a batching rule, or several."""
    vmap_rule = VmapRuleOfProgram(jaxpr)
    has_refs = any(isinstance(t, RefType) for t in jaxpr.in_types)
    if kind == 0:
        return CustomVmap(jaxpr, vmap_rule, 0, "f")
    forward = ForwardOfProgram(jaxpr, recurs)
    own = vmap_rule if kind in (2, 4) else None
    if kind <= 2 or (has_refs and kind < 5):
        return CustomJvp(jaxpr, forward, 0, "f", own)
    reverse = ReverseOfProgram(jaxpr, recurs)
    try:
        bwd = reverse(tuple(map(is_inexact, jaxpr.in_types))).bwd
        assert isinstance(bwd, BackwardOfProgram)
        bwd((True,) * sum(map(is_inexact, jaxpr.out_types)))
    except TransformError:
        # A loop without a bound has no reverse derivative.
        return CustomJvp(jaxpr, forward, 0, "f", own)
    return CustomVjp(jaxpr, reverse, 0, "f", None if has_refs else forward, own)


STEPS: Final = Steps(nested={"custom": (6, custom), "custom_vjp": (6, custom_vjp)})
