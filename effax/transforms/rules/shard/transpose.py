"""Transposition of ``shard_map``: the jaxpr transposed, over the same mesh.

Specs of operands and results are swapped. A result that is the same along an axis is taken from
the first device, so its cotangent enters on that device and is zero on the others. The cotangent of
an operand that several devices receive is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.axes import Axes
from effax.ir.build import Builder, lit
from effax.ir.dtypes import INT32
from effax.ir.partition import Spec
from effax.ir.prims import And, AxisIndex, Eq, Psum, ShardMap
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, array_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.cotangents import values_of
from effax.transforms.rules.common.pointwise import const, where
from effax.transforms.spmd.pvary_insertion import remove_pvary
from effax.transforms.transpose.cotangent_spec import (
    CotangentSpec,
    DontWant,
    GradValue,
    NonLinear,
    ThreadedRef,
)
from effax.transforms.transpose.engine import Transposed, transpose


def shard_map_transpose(
    b: RuleBuilder, prim: ShardMap, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    ct_specs = tuple(map(_spec_of, ins))
    has = tuple([ct is not None for ct in cts])
    # Inside, every value has a cotangent for each device; sums are taken at the boundary.
    alone = remove_pvary(prim.jaxpr, frozenset([axis.name for axis in prim.mesh]))
    inner = transpose.cached(alone, ct_specs, has, b.rules)
    fixed = [x for x in ins if not isinstance(x, Linear)]
    threaded = [x for x in ins if isinstance(x, Linear) and isinstance(_spec_of(x), ThreadedRef)]
    refs = [x.ref for x in threaded if x.ref is not None]
    made = _over_mesh(prim, ct_specs, has, inner)
    given = b.emit(made, [*fixed, *refs, *[ct for ct in cts if ct is not None]])
    return values_of(ct_specs, inner.nonzero, given)


def _spec_of(operand: Atom | Linear) -> CotangentSpec:
    if not isinstance(operand, Linear):
        return NonLinear()
    if not operand.wanted:
        return DontWant()
    return ThreadedRef() if isinstance(operand.type, RefType) else GradValue()


def _over_mesh(
    prim: ShardMap, ct_specs: Sequence[CotangentSpec], has: Mask, inner: Transposed
) -> ShardMap:
    """``(fixed, references, cotangents of results) -> cotangents of arguments``."""
    specs = list(zip(prim.in_specs, ct_specs, strict=True))
    in_specs = [spec for spec, w in specs if isinstance(w, NonLinear)]
    in_specs += [spec for spec, w in specs if isinstance(w, ThreadedRef)]
    n_before = len(in_specs)
    of_cts = [spec for spec, given in zip(prim.out_specs, has, strict=True) if given]
    values = [spec for spec, w in specs if isinstance(w, GradValue)]
    out_specs = [spec for spec, given in zip(values, inner.nonzero, strict=True) if given]
    body = _body(prim, inner.jaxpr, n_before, of_cts, out_specs)
    return ShardMap(
        body, prim.mesh, (*in_specs, *of_cts), tuple(out_specs), prim.check_vma, prim.grid
    )


def _body(
    prim: ShardMap,
    transposed: Jaxpr,
    n_before: int,
    ct_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
) -> Jaxpr:
    b = Builder(transposed.in_types)
    args: list[Atom] = list(b.binders)
    for k, spec in enumerate(ct_specs):
        args[n_before + k] = _on_first(b, args[n_before + k], prim.unnamed(spec))
    outs = b.inline_jaxpr(transposed, args)
    sums = [_summed(b, x, prim.unnamed(s)) for x, s in zip(outs, out_specs, strict=True)]
    return b.finish(sums)


def _on_first(b: Builder, ct: Atom, axes: Axes) -> Atom:
    """Return the cotangent on the first device along these axes, zeros on the others."""
    first: Atom | None = None
    for axis in axes:
        here = b(Eq(), b(AxisIndex(axis)), lit(0, array_type((), INT32)))
        first = here if first is None else b(And(), first, here)
    return ct if first is None else where(b, first, ct, const(0, ct))


def _summed(b: Builder, ct: Atom, axes: Axes) -> Atom:
    for axis in axes:
        ct = b(Psum(axis), ct)
    return ct
