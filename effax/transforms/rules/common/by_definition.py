"""Rules of primitives that a program defines: each transforms the program, and inlines it.

The primitive itself is gone after a transformation. Of a user-defined loop that is a ``scan``, the
derivative is the derivative of the ``scan``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.ir.build import Builder
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType, Type, ref_type
from effax.transforms.discharge import discharge
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import (
    BatchBuilder,
    BatchOut,
    DischargeOut,
    JvpOut,
    Linear,
    PartialEvalOut,
    Policy,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.jvp import jvp, with_tangents
from effax.transforms.partial_eval.packing import packed
from effax.transforms.partial_eval.partial_eval import FromOutput, partial_eval
from effax.transforms.rules.common.arrays import placed
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr
from effax.transforms.rules.common.cotangents import call_operands, spec_of, values_of
from effax.transforms.rules.common.split_subjaxprs import split_into_calls
from effax.transforms.transpose.engine import transpose
from effax.transforms.vmap.common import unbatched_type


def definition_of(prim: Primitive, types: Sequence[Type]) -> Jaxpr:
    """Return the program that defines a primitive, on operands of these types."""
    found = prim.definition(*types)
    assert found is not None, f"{prim.name} has no definition"
    return found


def defined_jvp(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    jaxpr = definition_of(prim, [a.type for a in primals])
    inner = jvp.cached(jaxpr, tuple([t is not None for t in tangents]), False, b.rules)
    outs = b.inline_jaxpr(inner.jaxpr, [*primals, *[t for t in tangents if t is not None]])
    return with_tangents(outs, inner.out_tangents)


def defined_transpose(
    b: RuleBuilder,
    prim: Primitive,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    ct_specs = tuple(map(spec_of, ins))
    jaxpr = definition_of(prim, [x.type for x in ins])
    inner = transpose.cached(jaxpr, ct_specs, tuple([ct is not None for ct in cts]), b.rules)
    return values_of(ct_specs, inner.nonzero, b.inline_jaxpr(inner.jaxpr, call_operands(ins, cts)))


def defined_batch(
    b: BatchBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    types = [unbatched_type(a.type) if has else a.type for a, has in zip(ins, batched, strict=True)]
    inner = batched_subjaxpr(b, definition_of(prim, types), batched, size)
    return BatchOut(b.inline_jaxpr(inner.jaxpr, [*b.mask_operands(), *ins]), inner.out_batched)


def defined_split(
    rules: RuleSet,
    prim: Primitive,
    in_types: tuple[Type, ...],
    known: Mask,
    policy: Policy | None,
) -> PartialEvalOut | None:
    jaxpr = definition_of(prim, in_types)
    none = (False,) * len(jaxpr.outs)
    split = packed(rules, partial_eval.cached(jaxpr, known, policy, none, rules))

    def known_part(b: Builder, args: Sequence[Atom]) -> Sequence[Atom]:
        outs = b.inline_jaxpr(split.known, args)
        computed = [outs[r.index] for r in split.residuals if isinstance(r, FromOutput)]
        return [*outs[: sum(split.known_outs)], *computed]

    def unknown_part(b: Builder, args: Sequence[Atom]) -> Sequence[Atom]:
        return b.inline_jaxpr(split.unknown, args)

    return split_into_calls(split, in_types, known_part, unknown_part)


def defined_discharge(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    types = [
        ref_type(a.type) if has and isinstance(a.type, ArrayType) else a.type
        for a, has in zip(ins, is_ref, strict=True)
    ]
    inner = discharge.cached(definition_of(prim, types), b.rules)
    results = b.inline_jaxpr(inner.jaxpr, ins)
    new = results[inner.n_outs :]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))


def defined_unroll(rules: RuleSet, eqn: Eqn, ins: Sequence[Atom], growth: int) -> Jaxpr | None:
    """Unroll a primitive that is one loop by definition."""
    types = [a.type for a in ins]
    jaxpr = definition_of(eqn.prim, types)
    if len(jaxpr.eqns) != 1:
        return None
    (loop,) = jaxpr.eqns
    found = rules.find(loop.prim)
    if found is None or found.unroll is None:
        return None
    given = dict(zip(jaxpr.binders, ins, strict=True))
    operands = [a if isinstance(a, Lit) else given[a] for a in loop.ins]
    made = found.unroll(rules, loop._replace(source=eqn.source), operands, growth)
    if made is None:
        return None
    b = Builder(types)
    env = dict(zip(jaxpr.binders, b.binders, strict=True))
    outs = b.inline_jaxpr(made, [a if isinstance(a, Lit) else env[a] for a in loop.ins])
    results = dict(zip(loop.outs, outs, strict=True))
    return b.finish([a if isinstance(a, Lit) else results.get(a) or env[a] for a in jaxpr.outs])


BY_DEFINITION: Final[Rules[Primitive]] = Rules(
    jvp=defined_jvp,
    transpose=defined_transpose,
    batch=defined_batch,
    split=defined_split,
    discharge=defined_discharge,
    unroll=defined_unroll,
)
"""The rules of primitives with a ``definition``."""
