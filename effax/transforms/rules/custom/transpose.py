"""Transposition of calls with custom rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from effax.ir.build import template
from effax.ir.errors import TransformError
from effax.ir.prims import (
    CustomJvp,
    CustomLinear,
    CustomVjp,
    CustomVmap,
    Jit,
    Name,
    OptimizationBarrier,
)
from effax.ir.syntax import Atom, Jaxpr
from effax.transforms.framework.rules import (
    Linear,
    RuleBuilder,
)
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.jit.transpose import call_transpose
from effax.transforms.transpose.logs import LOGGED


def custom_linear_transpose(
    b: RuleBuilder, prim: CustomLinear, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """Apply the user's backward rule. The transpose of a paired call is the pair, swapped."""
    fixed: list[Atom] = []
    for x in ins[: prim.n_fixed]:
        if isinstance(x, Linear):
            raise TransformError(f"{prim.label}: a residual of the forward rule is linear")
        fixed.append(x)
    none: list[Atom | None] = [None] * prim.n_fixed
    bwd, nonzero, logs, present = prim.bwd, prim.nonzero, prim.logs, cts
    if prim.paired or isinstance(bwd, Jaxpr):
        present = [
            zeros(b, t) if x is None else x for x, t in zip(cts, prim.out_types, strict=True)
        ]
    if not isinstance(bwd, Jaxpr):
        bwd, nonzero, logs = bwd(tuple([x is not None for x in present]))
    args = [*fixed, *[x for x in present if x is not None]]
    if prim.paired:
        assert prim.forward is not None
        types = prim.forward.in_types[prim.n_fixed :]
        other = replace(prim, bwd=prim.forward, forward=bwd, out_types=types)
        return none + list(b.emit(other, args))
    found = iter(b.inline(template(bwd), args))
    n_linear = len(ins) - prim.n_fixed
    flags = (True,) * n_linear if nonzero is None else nonzero
    entries = none + [next(found) if has else None for has in flags]
    return _with_logs(b, entries, logs, list(found)) if prim.logging else entries


def _with_logs(
    b: RuleBuilder, entries: list[Atom | None], paths: Sequence[str], values: Sequence[Atom]
) -> Sequence[Atom | None]:
    """Name the values to log, and keep them where a cotangent is used."""
    cts = [x for x in entries if x is not None]
    if not cts or not paths:
        return entries
    named = [b(Name(LOGGED + path), x) for path, x in zip(paths, values, strict=True)]
    kept = iter(b.emit(OptimizationBarrier(), [*cts, *named]))
    return [None if x is None else next(kept) for x in entries]


def custom_call_transpose(
    b: RuleBuilder,
    prim: CustomJvp | CustomVjp | CustomVmap,
    ins: Sequence[Atom | Linear],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """Transpose the function, which is linear; its rules define other transformations."""
    return call_transpose(b, Jit(prim.call, prim.label), ins, cts)
