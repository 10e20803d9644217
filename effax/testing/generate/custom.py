"""Steps of calls with custom rules, which are derived from the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from effax.ir.build import Builder
from effax.ir.errors import TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims import BatchedProgram, CustomJvp, CustomVjp, CustomVmap, VmapRule
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import is_inexact, tangent_type
from effax.testing.generate import refs
from effax.testing.generate.program_builder import ProgramBuilder
from effax.testing.generate.step import Generate, Steps
from effax.testing.generate.subjaxprs import arguments, call, inside, results
from effax.transforms.framework.propagation import Mask
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.custom.dense import DenseForward, DenseReverse
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


def custom(g: ProgramBuilder, generate: Generate) -> None:
    """Append a call with custom derivatives, a batching rule, or both, on arrays."""
    ins = arguments(g, 3)
    inner = inside(g, [v.type for v in ins], ins)
    generate(inner, 3)
    refs.consume_rest(inner)
    outs = results(inner, 3)
    if any(g.is_linear(v) for v in ins):
        # A rule is for all results: linear and nonlinear ones need different rules.
        outs = [v for v in outs if inner.is_linear(v)]
        if not outs:
            return
    flags = [inner.is_linear(v) for v in outs]
    call(g, ruled(inner.finish(outs), g.choose.below(5)), ins, flags)


def ruled(jaxpr: Jaxpr, kind: int) -> Primitive:
    """Return a call of a program with a forward, a reverse, or a batching rule, or several."""
    vmap_rule = VmapRuleOfProgram(jaxpr)
    if kind == 0:
        return CustomVmap(jaxpr, vmap_rule, 0, "f")
    mask = tuple(map(is_inexact, jaxpr.in_types))
    forward = jvp.cached(jaxpr, mask, True, DEFAULT_RULES).jaxpr
    own = vmap_rule if kind in (2, 4) else None
    pushed = DenseForward(forward, 0, len(jaxpr.outs), "f")
    if kind <= 2:
        return CustomJvp(jaxpr, pushed, 0, "f", own)
    try:
        fwd, bwd = _reverse(jaxpr, mask)
    except TransformError:
        # A loop without a bound has no reverse derivative.
        return CustomJvp(jaxpr, pushed, 0, "f", own)
    return CustomVjp(jaxpr, DenseReverse(fwd, bwd, (), mask, "f"), 0, "f", pushed, own)


def _reverse(jaxpr: Jaxpr, mask: Mask) -> tuple[Jaxpr, Jaxpr]:
    """Return the rules of linearization and transposition."""
    rules = DEFAULT_RULES
    done = linearize.cached(jaxpr, mask, False, rules)
    n = len(jaxpr.outs)
    b = Builder(jaxpr.in_types)
    found = b.inline_jaxpr(done.primal, b.binders)
    residuals = [r.pick(list[Atom](b.binders), found) for r in done.residuals]
    fwd = b.finish([*found[:n], *residuals])

    ct_specs = (NonLinear(),) * len(residuals) + (GradValue(),) * sum(mask)
    pulled = transpose.cached(done.linear, ct_specs, (True,) * sum(done.out_tangents), rules)
    back = Builder([x.type for x in residuals])
    cts = [back.bind(tangent_type(t)) if is_inexact(t) else None for t in jaxpr.out_types]
    given = [ct for ct, has in zip(cts, done.out_tangents, strict=True) if has and ct is not None]
    own = iter(back.inline_jaxpr(pulled.jaxpr, [*back.binders[: len(residuals)], *given]))
    types = [tangent_type(t) for t, has in zip(jaxpr.in_types, mask, strict=True) if has]
    entries: Sequence[Atom] = [
        next(own) if has else zeros(back, t) for has, t in zip(pulled.nonzero, types, strict=True)
    ]
    return fwd, back.finish(entries)


STEPS: Final = Steps(nested={"custom": (6, custom)})
