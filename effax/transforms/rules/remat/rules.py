"""Rules of ``remat``, of names and of barriers. Most of ``remat``'s are those of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.prims import Name, OptimizationBarrier, Remat
from effax.ir.syntax import Atom
from effax.transforms.discharge import discharge
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    BatchOut,
    DischargeOut,
    Indivisible,
    JvpOut,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.jvp import jvp, with_tangents
from effax.transforms.rules.common import no_refs, placed
from effax.transforms.rules.cotangents import call_operands, spec_of, values_of
from effax.transforms.rules.remat.partial_eval import remat_split
from effax.transforms.transpose.engine import transpose
from effax.transforms.vmap.common import at_arguments
from effax.transforms.vmap.engine import vmap


def remat_jvp(
    b: RuleBuilder, prim: Remat, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    present = [t for t in tangents if t is not None]
    inner = jvp.cached(prim.jaxpr, tuple([t is not None for t in tangents]), False, b.rules)
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*primals, *present])
    return with_tangents(outs, inner.out_tangents)


def remat_transpose(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """What the linear part needs is computed first, inside, and the linear part backward."""
    ct_specs = tuple(map(spec_of, ins))
    has = tuple([ct is not None for ct in cts])
    inner = transpose.cached(prim.jaxpr, ct_specs, has, b.rules)
    made = replace(prim, jaxpr=inner.jaxpr, differentiated=True)
    return values_of(ct_specs, inner.nonzero, b.emit(made, call_operands(ins, cts)))


def remat_batch(
    b: BatchBuilder, prim: Remat, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    masked = b.active is not None
    with at_arguments(range(len(ins))):
        inner = vmap.cached(
            prim.jaxpr, tuple(batched), size, b.rules, b.shared, masked, None, b.axis
        )
    outs = b.emit(replace(prim, jaxpr=inner.jaxpr), [*b.mask(), *ins])
    return BatchOut(outs, inner.out_batched)


def remat_discharge(
    b: RuleBuilder, prim: Remat, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """The program is discharged. Contents are not held back by a barrier: they stay in place."""
    inner = discharge.cached(prim.jaxpr, b.rules)
    made = replace(prim, jaxpr=inner.jaxpr)
    args = list(ins)
    if True in is_ref and prim.differentiated and prim.prevent_cse:
        values = [i for i, flag in enumerate(is_ref) if not flag]
        held = b.emit(OptimizationBarrier(), [args[i] for i in values]) if values else []
        for i, x in zip(values, held, strict=True):
            args[i] = x
        made = replace(made, prevent_cse=False)
    results = b.emit(made, args)
    new = results[inner.n_outs :]
    return DischargeOut(results[: inner.n_outs], placed(inner.changed, new, len(ins)))


def name_jvp(
    b: RuleBuilder, prim: Name, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The value has a name, its tangent has none."""
    return JvpOut(b.emit(prim, primals), tangents)


def same_transpose(
    b: RuleBuilder, prim: Name, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return cts


def barrier_jvp(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    dots = iter(b.emit(prim, [t for t in tangents if t is not None]))
    return JvpOut(b.emit(prim, primals), [None if t is None else next(dots) for t in tangents])


def barrier_transpose(
    b: RuleBuilder,
    prim: OptimizationBarrier,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    given = [ct for ct in cts if ct is not None]
    held = iter(b.emit(prim, given) if given else [])
    return [None if ct is None else next(held) for ct in cts]


def same_batch(
    b: BatchBuilder,
    prim: Name | OptimizationBarrier,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), batched)


REMAT: Final[RuleSet] = (
    NO_RULES.extend(
        Remat, Rules(remat_jvp, remat_transpose, remat_batch, remat_split, remat_discharge)
    )
    .extend(Name, Rules(name_jvp, same_transpose, same_batch, Indivisible(), no_refs))
    .extend(
        OptimizationBarrier,
        Rules(barrier_jvp, barrier_transpose, same_batch, Indivisible(), no_refs),
    )
)
