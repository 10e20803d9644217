"""Rules of ``custom_linear_solve`` and ``custom_root``, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from effax.ir.errors import NotApplicable
from effax.ir.prims import Jit, LinearSolve, Neg, Root, SolveRule, Sub
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import tangent_type
from effax.lazy.dataclasses import dataclass
from effax.transforms.discharge import discharge
from effax.transforms.framework.propagation import Mask
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
    Unsupported,
)
from effax.transforms.jvp import jvp
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.batched_subjaxprs import batched_subjaxpr
from effax.transforms.rules.custom.batched_rules import Batching


def linear_solve_jvp(
    b: RuleBuilder, prim: LinearSolve, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate A·x = b: A·dx = db - dA·x, which the same solver solves."""
    n, k = prim.n_consts, len(prim.matvec.outs)
    outs = b.emit(prim, primals)
    moved = _moved(b, prim.matvec, primals[:n], outs[:k], tangents[:n])
    rhs = [_difference(b, db, m) for db, m in zip(tangents[n:], moved, strict=True)]
    if all(x is None for x in rhs):
        return JvpOut(outs, [None] * len(outs))
    dense = [
        zeros(b, tangent_type(p.type)) if x is None else x
        for x, p in zip(rhs, primals[n:], strict=True)
    ]
    solved = b.emit(prim, [*primals[:n], *dense])
    return JvpOut(outs, [*solved[:k], *[None] * (len(outs) - k)])


def _moved(
    b: RuleBuilder,
    f: Jaxpr,
    consts: Sequence[Atom],
    x: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> list[Atom | None]:
    """Return the tangents of ``f(consts, x)`` for these tangents of the constants, at fixed x."""
    mask = (*[t is not None for t in tangents], *[False] * len(x))
    if True not in mask:
        return [None] * len(f.outs)
    pushed = jvp.cached(f, mask, False, b.rules)
    present = [t for t in tangents if t is not None]
    results = b.emit(Jit(pushed.jaxpr, "f"), [*consts, *x, *present])
    given = iter(results[len(f.outs) :])
    return [next(given) if has else None for has in pushed.out_tangents]


def _difference(b: RuleBuilder, first: Atom | None, second: Atom | None) -> Atom | None:
    """Return ``first - second``, where None is zero."""
    if second is None:
        return first
    return b(Neg(), second) if first is None else b(Sub(), first, second)


def linear_solve_transpose(
    b: RuleBuilder, prim: LinearSolve, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """Solve the transposed equation: x = A⁻¹·b, so b' = A⁻ᵀ·x'."""
    n, k = prim.n_consts, len(prim.matvec.outs)
    consts = [x for x in ins[:n] if not isinstance(x, Linear)]
    if len(consts) < n:
        raise NotApplicable("custom_linear_solve is linear in b alone")
    made = prim.transposed
    if made is None:
        raise NotApplicable(
            "custom_linear_solve has no reverse derivative without a solution of the transposed "
            "equation",
            remedy="pass `transpose_solve`, or `symmetric=True`",
        )
    given = [
        zeros(b, tangent_type(x.type)) if ct is None else ct
        for x, ct in zip(ins[n:], cts, strict=False)
    ]
    found = b.emit(made, [*consts, *given])[:k]
    own = [ct if isinstance(x, Linear) else None for x, ct in zip(ins[n:], found, strict=True)]
    return [*[None] * n, *own]


def linear_solve_batch(
    b: BatchBuilder,
    prim: LinearSolve,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    n, k = prim.n_consts, len(prim.matvec.outs)
    flags = (*batched[:n], *[True] * k)
    programs = [_batched(b, jaxpr, flags, size) for jaxpr in prim.subjaxprs()]
    matvec, solve, *transposed = programs
    vecmat, transpose_solve = transposed or (None, None)
    n_consts = n + len(b.mask_operands())
    rule = None if prim.rule is None else _batched_rule(b, prim.rule, flags, size)
    made = LinearSolve(matvec, solve, vecmat, transpose_solve, n_consts, rule)
    return _emit(b, made, n, ins, batched, size)


def _batched(b: BatchBuilder, jaxpr: Jaxpr, flags: Sequence[bool], size: int) -> Jaxpr:
    """Return the batched program, all results batched."""
    return batched_subjaxpr(b, jaxpr, flags, size, (True,) * len(jaxpr.outs)).jaxpr


@dataclass(frozen=True, slots=True)
class BatchedSolve(SolveRule):
    """The batched programs of a rule; ``batched`` marks their batched operands."""

    rule: SolveRule
    batching: Batching
    batched: Mask
    label: str

    def __call__(self) -> tuple[Jaxpr, ...]:
        return tuple([self.batching.program(jaxpr, self.batched) for jaxpr in self.rule()])


def _batched_rule(
    b: BatchBuilder, rule: SolveRule, flags: Sequence[bool], size: int
) -> BatchedSolve:
    batching = Batching(size, b.unbatched_refs, b.mask is not None, b.rules, b.axis)
    return BatchedSolve(rule, batching, tuple(flags), rule.label)


def _emit(
    b: BatchBuilder,
    made: LinearSolve | Root,
    n_consts: int,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
) -> BatchOut:
    args = [
        x if i < n_consts else to_front(b, x, has, size)
        for i, (x, has) in enumerate(zip(ins, batched, strict=True))
    ]
    outs = b.emit(made, [*b.mask_operands(), *args])
    return BatchOut(outs, [True] * len(outs))


def solve_discharge(
    b: RuleBuilder, prim: LinearSolve | Root, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Discharge the references that are local to the subjaxprs; they take none as operands."""
    programs = [discharge.cached(jaxpr, b.rules).jaxpr for jaxpr in prim.subjaxprs()]
    return DischargeOut(b.emit(prim.with_subjaxprs(programs), ins), [None] * len(ins))


def root_jvp(
    b: RuleBuilder, prim: Root, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """Differentiate f(w, x(w)) = 0: ∂f/∂x·dx = -∂f/∂w·dw. The initial guess has no influence."""
    n, k = prim.n_consts, len(prim.f.outs)
    outs = b.emit(prim, primals)
    moved = _moved(b, prim.f, primals[:n], outs[:k], tangents[:n])
    if all(m is None for m in moved):
        return JvpOut(outs, [None] * len(outs))
    rhs = [
        zeros(b, tangent_type(x.type)) if m is None else b(Neg(), m)
        for m, x in zip(moved, outs, strict=False)
    ]
    args = [*primals[:n], *outs[:k], *rhs]
    tangent_solve = prim.tangent_solve
    if not isinstance(tangent_solve, Jaxpr):
        (tangent_solve,) = tangent_solve()
        replace(prim, tangent_solve=tangent_solve).typing(*[x.type for x in primals])
    solved = b.emit(Jit(tangent_solve, "tangent_solve"), args)
    return JvpOut(outs, [*solved, *[None] * (len(outs) - k)])


def root_batch(
    b: BatchBuilder, prim: Root, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    n, k = prim.n_consts, len(prim.f.outs)
    flags = (*batched[:n], *[True] * k)
    wide = (*flags, *[True] * k)
    tangent_solve = prim.tangent_solve
    made = Root(
        _batched(b, prim.f, flags, size),
        _batched(b, prim.solve, flags, size),
        _batched(b, tangent_solve, wide, size)
        if isinstance(tangent_solve, Jaxpr)
        else _batched_rule(b, tangent_solve, wide, size),
        n + len(b.mask_operands()),
    )
    return _emit(b, made, n, ins, batched, size)


RULES: Final[RuleSet] = NO_RULES.extend(
    LinearSolve,
    Rules(
        jvp=linear_solve_jvp,
        transpose=linear_solve_transpose,
        batch=linear_solve_batch,
        split=Indivisible(),
        discharge=solve_discharge,
    ),
).extend(
    Root,
    Rules(
        jvp=root_jvp,
        transpose=Unsupported("it is not linear"),
        batch=root_batch,
        split=Indivisible(),
        discharge=solve_discharge,
    ),
)
