"""Transposition of subjaxprs: cotangent specs, arguments and results of the transposed program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effax.effects import ArgIndex
from effax.ir.analysis.dataflow import fixpoint
from effax.ir.build import Builder
from effax.ir.prims import Freeze, NewRef
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, Type, tangent_type
from effax.transforms.framework.propagation import Mask
from effax.transforms.framework.rules import Linear, RuleBuilder
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.transpose.cotangent_spec import (
    CotangentSpec,
    DontWant,
    GradRef,
    GradValue,
    NonLinear,
    ThreadedRef,
)
from effax.transforms.transpose.engine import Transposed


def spec_of(operand: Atom | Linear) -> CotangentSpec:
    """Return the cotangent spec of a call's input, from its operand."""
    if not isinstance(operand, Linear):
        return NonLinear()
    if not operand.wanted:
        return DontWant()
    if isinstance(operand.type, RefType):
        return ThreadedRef()
    return GradValue() if operand.ref is None else grad_ref(operand)


def grad_ref(operand: Linear) -> GradRef:
    """Return the spec of accumulation into the operand's reference, in the reference's dtype."""
    if operand.ref is None or operand.ref.type.dtype == operand.type.dtype:
        return GradRef()
    return GradRef(operand.ref.type.dtype)


def call_operands(ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> list[Atom]:
    """Return the arguments of a transposed program: fixed operands, references, cotangents."""
    return [*fixed_of(ins), *refs_of(ins), *present(cts)]


def values_of(
    ct_specs: Sequence[CotangentSpec], given: Mask, results: Sequence[Atom]
) -> list[Atom | None]:
    """Return one cotangent per input: a result for each wanted value that ``given`` marks."""
    rest, has = iter(results), iter(given)
    return [next(rest) if isinstance(w, GradValue) and next(has) else None for w in ct_specs]


def instantiated(program: Transposed, given: Mask, types: Sequence[Type]) -> Jaxpr:
    """Return the transposed program with the cotangents ``given``, zeros where it has none."""
    if program.nonzero == given:
        return program.jaxpr
    b = Builder(program.jaxpr.in_types)
    own = iter(b.inline_jaxpr(program.jaxpr, b.binders))
    entries = zip(program.nonzero, given, types, strict=True)
    return b.finish([next(own) if has else zeros(b, t) for has, ct_spec, t in entries if ct_spec])


def summed_spec(x: Atom | Linear) -> CotangentSpec:
    """Return the spec of a loop's constant: each iteration adds to its cotangent in place."""
    ct_spec = spec_of(x)
    return GradRef() if isinstance(ct_spec, GradValue) else ct_spec


def carried_spec(x: Linear) -> CotangentSpec:
    """Return the spec of a linear carry of a loop."""
    return GradValue() if x.wanted else DontWant()


def n_values(ct_specs: Sequence[CotangentSpec]) -> int:
    """Return the number of cotangents that are returned as values."""
    return sum(isinstance(ct_spec, GradValue) for ct_spec in ct_specs)


def among(ct_specs: Sequence[CotangentSpec], carried: Mask) -> list[bool]:
    """Return the entries of ``carried`` for the carries whose cotangent is wanted."""
    return [
        has
        for has, ct_spec in zip(carried, ct_specs, strict=False)
        if isinstance(ct_spec, GradValue)
    ]


def sum_of(b: RuleBuilder, x: Atom | Linear, ct_spec: CotangentSpec) -> Atom | None:
    """Return the reference that accumulates a constant's cotangent; None if not wanted."""
    if not isinstance(x, Linear) or isinstance(ct_spec, DontWant):
        return None
    return b(NewRef(), zeros(b, tangent_type(x.type))) if x.ref is None else x.ref


def frozen_sums(
    b: RuleBuilder, consts: Sequence[Atom | Linear], sums: Sequence[Atom | None]
) -> list[Atom | None]:
    """Return the cotangents of constants from the references that :func:`sum_of` allocated."""
    return [
        b(Freeze(), ref) if isinstance(x, Linear) and x.ref is None and ref is not None else None
        for x, ref in zip(consts, sums, strict=True)
    ]


def carried_cotangents(
    cts: Sequence[Atom | None], wanted: Sequence[bool], body: Callable[[Mask], Transposed]
) -> tuple[Mask, Transposed]:
    """Return which carried cotangents may be nonzero in some iteration; the transposed body.

    This is a least fixpoint: a cotangent that stays zero in all iterations is not carried.

    Args:
        cts: the cotangents of the final carries.
        wanted: which cotangents of the initial carries are wanted.
        body: transposes the body for a mask of nonzero carried cotangents.
    """

    def grow(mask: Mask) -> Mask:
        nonzero = iter(body(mask).nonzero)
        return tuple([w and (next(nonzero) or has) for w, has in zip(wanted, mask, strict=True)])

    start = tuple([ct is not None and w for ct, w in zip(cts, wanted, strict=True)])
    mask = fixpoint(grow, start)
    return mask, body(mask)


def untouched_consts(
    inner: Transposed, consts: Sequence[Atom | Linear], n_fixed: int
) -> frozenset[int]:
    """Return the constants of a loop to whose cotangent no iteration adds.

    ``n_fixed`` is the number of fixed inputs of the transposed body, which precede references.
    """
    linear = [i for i, x in enumerate(consts) if isinstance(x, Linear) and x.wanted]
    touched = inner.jaxpr.effects.refs
    return frozenset(i for n, i in enumerate(linear) if ArgIndex(n_fixed + n) not in touched)


def fixed_of(operands: Sequence[Atom | Linear]) -> list[Atom]:
    """Return the operands that are not linear."""
    return [x for x in operands if not isinstance(x, Linear)]


def refs_of(operands: Sequence[Atom | Linear]) -> list[Atom]:
    """Return the references into which cotangents of linear operands accumulate."""
    return [x.ref for x in operands if isinstance(x, Linear) and x.ref is not None]


def present(atoms: Sequence[Atom | None]) -> list[Atom]:
    """Return the atoms that are not None."""
    return [x for x in atoms if x is not None]
