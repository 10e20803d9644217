"""Transposition of ``scan``: the transposed body runs in the other direction.

The cotangent of the carry is carried. The cotangent of a constant, to which every iteration
adds, is a reference; that of a scanned input is a scanned reference, of which each iteration
adds to its own element, or a stacked result where there is no reference for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from effax.effects import ArgIndex
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.errors import NotApplicable
from effax.ir.prims import Freeze, Scan
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.renumber import rearranged
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.cotangents import (
    among,
    carried_spec,
    fixed_of,
    instantiated,
    n_values,
    present,
    refs_of,
    spec_of,
    sum_of,
    summed_spec,
    values_of,
)
from effax.transforms.transpose.cotangent_spec import CotangentSpec, DontWant, GradValue
from effax.transforms.transpose.engine import Transposed, transpose


class Operands(NamedTuple):
    """The arguments of a scan that is transposed."""

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
            remedy="split off what does not depend on the linear inputs (`partial_eval`)",
        )
    operands = Operands(consts, linear_carry, xs, cts[: prim.n_carry], cts[prim.n_carry :])
    const_wants = list(map(summed_spec, consts))
    ct_specs = [*map(carried_spec, linear_carry), *map(spec_of, xs)]
    carried, inner = _closed(b, prim, [*const_wants, *ct_specs], operands)
    untouched = _untouched(inner, operands)
    if untouched:
        const_wants = [DontWant() if i in untouched else w for i, w in enumerate(const_wants)]
        carried, inner = _closed(b, prim, [*const_wants, *ct_specs], operands)
    # A constant whose cotangent has no reference yet gets one for the time of the loop.
    sums = [sum_of(b, x, ct_spec) for x, ct_spec in zip(consts, const_wants, strict=True)]
    given = (*among(ct_specs, carried), *inner.nonzero[n_values(ct_specs[: prim.n_carry]) :])
    types = [
        tangent_type(t)
        for t, ct_spec in zip(prim.jaxpr.in_types, [*const_wants, *ct_specs], strict=True)
        if isinstance(ct_spec, GradValue)
    ]
    body = instantiated(inner, given, types)
    results = _emit(b, prim, body, carried, operands, sums)
    summed = [
        b(Freeze(), ref) if isinstance(x, Linear) and x.ref is None and ref is not None else None
        for x, ref in zip(consts, sums, strict=True)
    ]
    return [*summed, *values_of(ct_specs, given, results)]


def _closed(
    b: RuleBuilder, prim: Scan, ct_specs: Sequence[CotangentSpec], operands: Operands
) -> tuple[Mask, Transposed]:
    """Return which carried cotangents may be nonzero in some iteration; the transposed body.

    The least set that has the given ones and what the body makes of its own: a cotangent that
    stays zero is not carried.
    """
    wanted = [isinstance(ct_spec, GradValue) for ct_spec in prim.split(ct_specs)[1]]
    of_ys = [ct is not None for ct in operands.y_cts]
    mask = tuple([ct is not None and w for ct, w in zip(operands.carry_cts, wanted, strict=True)])

    def body(mask: Mask) -> Transposed:
        return transpose.cached(prim.jaxpr, tuple(ct_specs), (*mask, *of_ys), b.rules)

    def grown(mask: Mask) -> Mask:
        made = iter(body(mask).nonzero)
        return tuple([w and (next(made) or has) for w, has in zip(wanted, mask, strict=True)])

    mask = fixpoint(grown, mask)
    return mask, body(mask)


def _untouched(inner: Transposed, operands: Operands) -> set[int]:
    """The constants to whose cotangent no iteration adds anything."""
    linear = [i for i, x in enumerate(operands.consts) if isinstance(x, Linear) and x.wanted]
    first = len(fixed_of(operands.consts)) + len(fixed_of(operands.xs))
    touched = inner.jaxpr.effects.refs
    return {i for n, i in enumerate(linear) if ArgIndex(first + n) not in touched}


def _emit(
    b: RuleBuilder,
    prim: Scan,
    body: Jaxpr,
    carried: Mask,
    operands: Operands,
    sums: Sequence[Atom | None],
) -> Sequence[Atom]:
    """The backward loop; gives the carried cotangents, then those of scanned inputs."""
    consts, carry, xs, carry_cts, y_cts = operands
    last_cts = [
        zeros(b, tangent_type(x.type)) if ct is None else ct
        for x, ct, has in zip(carry, carry_cts, carried, strict=True)
        if has
    ]
    # As the transposed body takes them: what is fixed, references, cotangents.
    groups = [fixed_of(consts), fixed_of(xs), present(sums), refs_of(xs), last_cts, present(y_cts)]
    fixed_consts, fixed_xs, const_refs, x_refs, carry_group, y_group = range(6)
    # As a scan takes them: constants, what is carried, what is scanned.
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
