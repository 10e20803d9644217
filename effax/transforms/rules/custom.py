"""Rules of calls that bring derivatives of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from effax.ir.build import Builder, lit, template
from effax.ir.dtypes import BOOL
from effax.ir.errors import TransformError
from effax.ir.prims.control import Jit
from effax.ir.prims.custom import CustomJvp, CustomLinear, CustomVjp
from effax.ir.prims.reduce import ReduceSum
from effax.ir.prims.shape import BroadcastInDim
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import RefType, array_type, is_inexact, tangent_type
from effax.transforms.rulebook import (
    EMPTY_BOOK,
    BatchBuilder,
    BatchOut,
    DischargeOut,
    JvpOut,
    Linear,
    Never,
    RuleBook,
    RuleBuilder,
    Rules,
    WholeOnly,
)
from effax.transforms.rules.common import to_front, zeros
from effax.transforms.rules.jit.discharge import jit_discharge
from effax.transforms.rules.knots import is_knotted, is_tight, tied, untied
from effax.transforms.vmap import vmap_jaxpr


def _dense(b: RuleBuilder, atom: Atom, tangent: Atom | None) -> Atom:
    return zeros(b, tangent_type(atom.type)) if tangent is None else tangent


def _check_consts(label: str, tangents: Sequence[Atom | None]) -> None:
    if any(t is not None for t in tangents):
        raise TransformError(
            f"{label}, which has custom derivatives, closes over a differentiated value",
            remedy="pass the value as an argument",
        )


def custom_jvp_jvp(
    b: RuleBuilder, prim: CustomJvp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The user's rule, with zeros for tangents that are zero."""
    if isinstance(prim.rule, int):
        raise untied(prim)
    _check_consts(prim.label, tangents[: prim.n_consts])
    dots = [
        _dense(b, p, t)
        for p, t in zip(primals[prim.n_consts :], tangents[prim.n_consts :], strict=True)
        if is_inexact(p.type)
    ]
    results = b.inline(template(tied(prim.rule, prim)), [*primals, *dots])
    n = len(prim.call.outs)
    given = iter(results[n:])
    out_dots = [next(given) if is_inexact(a.type) else None for a in prim.call.outs]
    return JvpOut(results[:n], out_dots)


def custom_vjp_jvp(
    b: RuleBuilder, prim: CustomVjp, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    """The forward rule, and a linear equation that only knows how to be transposed."""
    if isinstance(prim.fwd, int) or isinstance(prim.bwd, int):
        raise untied(prim)
    _check_consts(prim.label, tangents[: prim.n_consts])
    results = b.inline(template(tied(prim.fwd, prim)), primals)
    n = len(prim.call.outs)
    refs = [primals[i] for i in prim.refs]
    fixed = [*primals[: prim.n_consts], *results[n:], *refs]
    dots = [
        _dense(b, p, t)
        for p, t, wanted in zip(
            primals[prim.n_consts :], tangents[prim.n_consts :], prim.wanted, strict=True
        )
        if wanted
    ]
    out_types = tuple(tangent_type(a.type) for a in prim.call.outs if is_inexact(a.type))
    linear = CustomLinear(tied(prim.bwd, prim), len(fixed), out_types, prim.label)
    given = iter(b.emit(linear, [*fixed, *dots]))
    out_dots = [next(given) if is_inexact(a.type) else None for a in prim.call.outs]
    return JvpOut(results[:n], out_dots)


def custom_linear_transpose(
    b: RuleBuilder, prim: CustomLinear, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """The user's backward rule."""
    fixed: list[Atom] = []
    for x in ins[: prim.n_fixed]:
        if isinstance(x, Linear):
            raise TransformError(f"{prim.label}: a residual of the forward rule is linear")
        fixed.append(x)
    dense = [zeros(b, t) if ct is None else ct for ct, t in zip(cts, prim.out_types, strict=True)]
    given = b.inline(template(prim.bwd), [*fixed, *dense])
    return [None] * prim.n_fixed + list(given)


def _batched(
    b: BatchBuilder,
    jaxpr: Jaxpr,
    batched: Sequence[bool],
    size: int,
    shared: frozenset[int],
    masked: bool,
) -> Jaxpr:
    """The program over the batch, every result batched; where ``masked`` it takes a mask."""
    everything = (True,) * len(jaxpr.outs)
    inside = vmap_jaxpr(jaxpr, tuple(batched), size, b.book, shared, masked, everything, b.axis)
    return inside.jaxpr


def custom_jvp_batch(
    b: BatchBuilder, prim: CustomJvp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Both programs over the batch."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomJvp:
        call = _batched(b, prim.call, flags, size, b.shared, masked)
        rule = prim.rule
        if not isinstance(prim.rule, int):
            rest = zip(prim.call.binders[prim.n_consts :], flags[prim.n_consts :], strict=True)
            dots = [has for v, has in rest if is_inexact(v.type)]
            rule = _batched(b, prim.rule, [*flags, *dots], size, b.shared, masked)
        return CustomJvp(call, rule, prim.n_consts + masked, prim.label)

    return _custom_batch(b, prim, ins, batched, size, over_batch)


def custom_vjp_batch(
    b: BatchBuilder, prim: CustomVjp, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """All three programs over the batch; the cotangent of what is not batched is summed."""

    def over_batch(flags: Sequence[bool], masked: bool) -> CustomVjp:
        call = _batched(b, prim.call, flags, size, b.shared, masked)
        fwd, bwd = prim.fwd, prim.bwd
        if not isinstance(prim.fwd, int) and not isinstance(prim.bwd, int):
            fwd = _batched(b, prim.fwd, flags, size, b.shared, masked)
            bwd = _backward_batch(b, prim, prim.fwd, prim.bwd, flags, size, masked)
        refs = tuple(i + masked for i in prim.refs)
        n_consts = prim.n_consts + masked
        return CustomVjp(call, fwd, bwd, n_consts, refs, prim.wanted, prim.label)

    return _custom_batch(b, prim, ins, batched, size, over_batch)


def _backward_batch(
    b: BatchBuilder,
    prim: CustomVjp,
    fwd: Jaxpr,
    bwd: Jaxpr,
    batched: Sequence[bool],
    size: int,
    masked: bool,
) -> Jaxpr:
    n_residuals = len(fwd.outs) - len(prim.call.outs)
    refs = [batched[i] for i in prim.refs]
    n_cts = len(bwd.binders) - prim.n_consts - n_residuals - len(refs)
    inside = [*batched[: prim.n_consts], *[True] * n_residuals, *refs, *[True] * n_cts]
    of_consts = {i for i in b.shared if i < prim.n_consts}
    of_refs = {prim.n_consts + n_residuals + k for k, i in enumerate(prim.refs) if i in b.shared}
    made = _batched(b, bwd, inside, size, frozenset(of_consts | of_refs), masked)
    rest = zip(batched[prim.n_consts :], prim.wanted, strict=True)
    return _summed_where_unbatched(made, [has for has, wanted in rest if wanted])


def _custom_batch(
    b: BatchBuilder,
    prim: CustomJvp | CustomVjp,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    over_batch: Callable[[Sequence[bool], bool], CustomJvp | CustomVjp],
) -> BatchOut:
    """The call over the batch.

    One that its own rules call again has all arguments batched, and a mask where any call inside
    has one: so the calls inside are on the same types.
    """
    mask: tuple[Atom, ...] = b.mask()
    if not is_knotted(prim):
        made = over_batch(batched, bool(mask))
        return BatchOut(b.emit(made, [*mask, *ins]), [True] * len(made.call.outs))
    args, flags = list(ins), list(batched)
    for i, x in enumerate(ins):
        if i >= prim.n_consts and not isinstance(x.type, RefType):
            args[i], flags[i] = to_front(b, x, batched[i], size), True
    made = over_batch(flags, bool(mask))
    if not mask and not is_tight(made):
        mask = (b(BroadcastInDim((size,), ()), lit(True, array_type((), BOOL))),)
        made = over_batch(flags, True)
    if not is_tight(made):
        raise untied(prim)
    return BatchOut(b.emit(made, [*mask, *args]), [True] * len(made.call.outs))


def _summed_where_unbatched(bwd: Jaxpr, batched: Sequence[bool]) -> Jaxpr:
    if all(batched):
        return bwd
    b = Builder(bwd.in_types)
    outs = b.inline_jaxpr(bwd, b.binders)
    kept = [x if has else b(ReduceSum((0,)), x) for x, has in zip(outs, batched, strict=True)]
    return b.finish(kept, bwd.n_consts, bwd.names)


def custom_call_discharge(
    b: RuleBuilder, prim: CustomJvp | CustomVjp, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """Discharge comes after differentiation: the call alone is left."""
    return jit_discharge(b, Jit(prim.call, prim.label), ins, is_ref)


def custom_linear_discharge(
    b: RuleBuilder, prim: CustomLinear, ins: Sequence[Atom], is_ref: Sequence[bool]
) -> DischargeOut:
    """It touches no reference before it is transposed: the types of its arguments change."""
    kinds = [isinstance(t, RefType) for t in prim.bwd.in_types]
    if any(kinds):
        raise TransformError(f"{prim.label}: its backward rule uses references; transpose first")
    return DischargeOut(b.emit(prim, ins), [None] * len(ins))


_NOT_LINEAR: Final = Never("it is not linear")

CUSTOM: Final[RuleBook] = (
    EMPTY_BOOK.extend(
        CustomJvp,
        Rules(custom_jvp_jvp, _NOT_LINEAR, custom_jvp_batch, WholeOnly(), custom_call_discharge),
    )
    .extend(
        CustomVjp,
        Rules(custom_vjp_jvp, _NOT_LINEAR, custom_vjp_batch, WholeOnly(), custom_call_discharge),
    )
    .extend(
        CustomLinear,
        Rules(
            Never("custom_vjp gives a reverse derivative, and no forward one"),
            custom_linear_transpose,
            Never("a function with a custom_vjp rule has no forward derivative: no jvp, no jacfwd"),
            WholeOnly(),
            custom_linear_discharge,
        ),
    )
)
