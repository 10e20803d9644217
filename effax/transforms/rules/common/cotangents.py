"""What the transpose rules of calls share: the wants of the program, its arguments, its results."""

from __future__ import annotations

from collections.abc import Sequence

from effax.ir.build import Builder
from effax.ir.prims import NewRef
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
    """What the program of a call is to do about its input, from what its operand is."""
    if not isinstance(operand, Linear):
        return NonLinear()
    if not operand.wanted:
        return DontWant()
    if isinstance(operand.type, RefType):
        return ThreadedRef()
    return GradValue() if operand.ref is None else grad_ref(operand)


def grad_ref(operand: Linear) -> GradRef:
    """That the cotangent of an array goes into the operand's reference, or one of its dtype."""
    if operand.ref is None or operand.ref.type.dtype == operand.type.dtype:
        return GradRef()
    return GradRef(operand.ref.type.dtype)


def call_operands(ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]) -> list[Atom]:
    """The arguments of a transposed program: what is fixed, references, cotangents present."""
    fixed = [x for x in ins if not isinstance(x, Linear)]
    refs = [x.ref for x in ins if isinstance(x, Linear) and x.ref is not None]
    return [*fixed, *refs, *[ct for ct in cts if ct is not None]]


def values_of(
    ct_specs: Sequence[CotangentSpec], given: Mask, results: Sequence[Atom]
) -> list[Atom | None]:
    """One cotangent an input: a result, for each input of a value that is given."""
    rest, has = iter(results), iter(given)
    return [next(rest) if isinstance(w, GradValue) and next(has) else None for w in ct_specs]


def instantiated(program: Transposed, given: Mask, types: Sequence[Type]) -> Jaxpr:
    """The transposed program, giving these cotangents: zeros, for one that it does not have."""
    if program.nonzero == given:
        return program.jaxpr
    b = Builder(program.jaxpr.in_types)
    own = iter(b.inline_jaxpr(program.jaxpr, b.binders))
    entries = zip(program.nonzero, given, types, strict=True)
    return b.finish([next(own) if has else zeros(b, t) for has, ct_spec, t in entries if ct_spec])


def summed_spec(x: Atom | Linear) -> CotangentSpec:
    """The want of a constant of a loop, to whose cotangent every iteration adds."""
    ct_spec = spec_of(x)
    return GradRef() if isinstance(ct_spec, GradValue) else ct_spec


def carried_spec(x: Linear) -> CotangentSpec:
    """The want of what a loop carries."""
    return GradValue() if x.wanted else DontWant()


def n_values(ct_specs: Sequence[CotangentSpec]) -> int:
    """How many cotangents are values."""
    return sum(isinstance(ct_spec, GradValue) for ct_spec in ct_specs)


def among(ct_specs: Sequence[CotangentSpec], carried: Mask) -> list[bool]:
    """The entries of ``carried`` for carried values whose cotangent is wanted."""
    return [
        has
        for has, ct_spec in zip(carried, ct_specs, strict=False)
        if isinstance(ct_spec, GradValue)
    ]


def sum_of(b: RuleBuilder, x: Atom | Linear, ct_spec: CotangentSpec) -> Atom | None:
    """Where the cotangent of a constant is summed up."""
    if not isinstance(x, Linear) or isinstance(ct_spec, DontWant):
        return None
    return b(NewRef(), zeros(b, tangent_type(x.type))) if x.ref is None else x.ref


def fixed_of(operands: Sequence[Atom | Linear]) -> list[Atom]:
    """The operands that are not linear."""
    return [x for x in operands if not isinstance(x, Linear)]


def refs_of(operands: Sequence[Atom | Linear]) -> list[Atom]:
    """Where the cotangents of linear operands accumulate, where that is a reference."""
    return [x.ref for x in operands if isinstance(x, Linear) and x.ref is not None]


def present(atoms: Sequence[Atom | None]) -> list[Atom]:
    """Those that are there."""
    return [x for x in atoms if x is not None]
