"""Transposition of ``scan``: the transposed body runs in the opposite direction.

The cotangent of a carry is a carry. The cotangent of a constant is the sum over all iterations,
accumulated in a reference. The cotangent of a scanned input is a scanned reference, each iteration
adding to its element, or without a reference a stacked result::

    c_{k+1} = A_k·c_k + B·w + C_k·x_k      =>      c_k' = A_kᵀ·c_{k+1}',
                                                   w' += Bᵀ·c_{k+1}',  x_k' = C_kᵀ·c_{k+1}'
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from effax.ir.edit.renumber import rearranged
from effax.ir.errors import NotApplicable
from effax.ir.prims import Scan
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.cotangents import (
    among,
    carried_cotangents,
    carried_spec,
    fixed_of,
    frozen_sums,
    instantiated,
    n_values,
    present,
    refs_of,
    spec_of,
    sum_of,
    summed_spec,
    untouched_consts,
    values_of,
)
from effax.transforms.transpose.cotangent_spec import CotangentSpec, DontWant, GradValue
from effax.transforms.transpose.engine import Transposed, transpose


class Operands(NamedTuple):
    """The operands of a transposed scan, and the cotangents of its results."""

    consts: Sequence[Atom | Linear]
    carry: Sequence[Linear]
    xs: Sequence[Atom | Linear]
    carry_cts: Sequence[Atom | None]
    y_cts: Sequence[Atom | None]


def scan_transpose(
    b: RuleBuilder, prim: Scan, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    consts, carry, xs = prim.split(ins)
    linear_carry = [x for x in carry if isinstance(x, Linear)]
    if len(linear_carry) != len(carry):
        raise NotApplicable(
            "the scan carries a value that does not depend on its linear inputs, and is not "
            "known before it runs backward",
            remedy="split off the equations that do not depend on linear inputs (`partial_eval`)",
        )
    operands = Operands(consts, linear_carry, xs, cts[: prim.n_carry], cts[prim.n_carry :])
    const_specs = list(map(summed_spec, consts))
    ct_specs = [*map(carried_spec, linear_carry), *map(spec_of, xs)]
    carried, inner = _closed(b, prim, [*const_specs, *ct_specs], operands)
    n_fixed = len(fixed_of(consts)) + len(fixed_of(xs))
    untouched = untouched_consts(inner, consts, n_fixed)
    if untouched:
        const_specs = [DontWant() if i in untouched else w for i, w in enumerate(const_specs)]
        carried, inner = _closed(b, prim, [*const_specs, *ct_specs], operands)
    sums = [sum_of(b, x, ct_spec) for x, ct_spec in zip(consts, const_specs, strict=True)]
    given = (*among(ct_specs, carried), *inner.nonzero[n_values(ct_specs[: prim.n_carry]) :])
    types = [
        tangent_type(t)
        for t, ct_spec in zip(prim.jaxpr.in_types, [*const_specs, *ct_specs], strict=True)
        if isinstance(ct_spec, GradValue)
    ]
    body = instantiated(inner, given, types)
    results = _emit(b, prim, body, carried, operands, sums)
    return [*frozen_sums(b, consts, sums), *values_of(ct_specs, given, results)]


def _closed(
    b: RuleBuilder, prim: Scan, ct_specs: Sequence[CotangentSpec], operands: Operands
) -> tuple[Mask, Transposed]:
    wanted = [isinstance(ct_spec, GradValue) for ct_spec in prim.split(ct_specs)[1]]
    of_ys = [ct is not None for ct in operands.y_cts]

    def body(mask: Mask) -> Transposed:
        return transpose.cached(prim.jaxpr, tuple(ct_specs), (*mask, *of_ys), b.rules)

    return carried_cotangents(operands.carry_cts, wanted, body)


def _emit(
    b: RuleBuilder,
    prim: Scan,
    body: Jaxpr,
    carried: Mask,
    operands: Operands,
    sums: Sequence[Atom | None],
) -> Sequence[Atom]:
    """Emit the backward loop. Returns the carried cotangents, then those of scanned inputs."""
    consts, carry, xs, carry_cts, y_cts = operands
    last_cts = [
        zeros(b, tangent_type(x.type)) if ct is None else ct
        for x, ct, has in zip(carry, carry_cts, carried, strict=True)
        if has
    ]
    # The order of the transposed body: fixed inputs, references, cotangents.
    groups = [fixed_of(consts), fixed_of(xs), present(sums), refs_of(xs), last_cts, present(y_cts)]
    fixed_consts, fixed_xs, const_refs, x_refs, carry_group, y_group = range(6)
    # The order of a scan: constants, carries, scanned inputs.
    order = [fixed_consts, const_refs, carry_group, fixed_xs, x_refs, y_group]
    starts = [0, *accumulate(map(len, groups))]
    ins = list(chain.from_iterable(range(starts[g], starts[g + 1]) for g in order))
    made = Scan(
        rearranged(body, ins, range(len(body.outs))),
        prim.length,
        not prim.reverse,
        len(groups[fixed_consts]) + len(groups[const_refs]),
        len(last_cts),
        prim.unroll,
    )
    return b.emit(made, [x for g in order for x in groups[g]])
