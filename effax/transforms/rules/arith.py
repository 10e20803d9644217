"""Rules of elementwise primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from effax.ir.build import lit
from effax.ir.primitive import Primitive
from effax.ir.prims import elementwise as ew
from effax.ir.prims.shape import BroadcastInDim
from effax.ir.syntax import Atom
from effax.transforms.rulebook import (
    EMPTY_BOOK,
    BatchOut,
    JvpOut,
    Linear,
    Never,
    RuleBook,
    RuleBuilder,
    Rules,
    TransposeRule,
    WholeOnly,
)
from effax.transforms.rules.common import array_of, expand_rank, linear_jvp, no_refs, no_tangent, sum_to

Derivative = Callable[[RuleBuilder, Atom, Atom, Atom], Atom]
"""From (b, dx, x, y) with y = f(x): the tangent dy."""

Partial = Callable[[RuleBuilder, Atom, Atom, Atom, Atom], Atom]
"""From (b, d, x, y, z) with z = f(x, y): the part of the tangent dz due to operand tangent d."""


def unary_jvp(
    derivative: Derivative,
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """dy = f'(x) dx, linear in dx."""
    (x,), (dx,) = primals, tangents
    assert dx is not None
    y = b(prim, x)
    return JvpOut([y], [derivative(b, dx, x, y)])


def binary_jvp(
    partials: tuple[Partial, Partial],
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """dz = f_x dx + f_y dy, each broadcast to the shape of z."""
    x, y = primals
    z = b(prim, x, y)
    parts = [
        _spread(b, part(b, d, x, y, z), z)
        for part, d in zip(partials, tangents, strict=True)
        if d is not None
    ]
    return JvpOut([z], [parts[0] if len(parts) == 1 else b(ew.Add(), *parts)])


def _spread(b: RuleBuilder, part: Atom, like: Atom) -> Atom:
    if part.type.shape == like.type.shape:
        return part
    return b(BroadcastInDim(like.type.shape, ()), part)


def batch_elementwise(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Operands keep their rank in step: unbatched ones are broadcast, scalars left alone."""
    ndim = max(
        len(x.type.shape) + (not has) for x, has in zip(ins, batched, strict=True)
    )
    shape = next(
        (
            x.type.shape if has else (size, *x.type.shape)
            for x, has in zip(ins, batched, strict=True)
            if len(x.type.shape) + (not has) == ndim
        ),
    )
    args = []
    for x, has in zip(ins, batched, strict=True):
        if not has:
            rank = len(x.type.shape)
            dims = tuple(range(ndim - rank, ndim))
            args.append(b(BroadcastInDim(shape, dims), x) if rank else x)
        elif len(x.type.shape) == ndim:
            args.append(x)
        else:
            args.append(b(BroadcastInDim(shape, (0,)), x))
    return BatchOut(b.emit(prim, args), [True])


def _one(b: RuleBuilder, x: Atom) -> Atom:
    return lit(1, x.type)


def _scaled(b: RuleBuilder, factor: float, x: Atom) -> Atom:
    return b(ew.Mul(), x, lit(factor, x.type))


def _rules(
    jvp: Callable[..., JvpOut], transpose: TransposeRule[Primitive] | Never | None = None
) -> Rules[Primitive]:
    return Rules(
        jvp=jvp,
        transpose=transpose or Never("it is not linear"),
        batch=batch_elementwise,
        split=WholeOnly(),
        discharge=no_refs,
    )


def unary(
    derivative: Derivative, transpose: TransposeRule[Primitive] | None = None
) -> Rules[Primitive]:
    """The rules of a unary primitive with this derivative."""
    return _rules(partial(unary_jvp, derivative), transpose)


def binary(
    fx: Partial, fy: Partial, transpose: TransposeRule[Primitive] | None = None
) -> Rules[Primitive]:
    """The rules of a binary primitive with these partial derivatives."""
    return _rules(partial(binary_jvp, (fx, fy)), transpose)


def _add_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx + dy> = <ct, dx> + <ct, dy>
    (ct,) = cts
    assert ct is not None
    return [sum_to(b, ct, x.type.shape) if isinstance(x, Linear) else None for x in ins]


def _sub_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    (ct,), (x, y) = cts, ins
    assert ct is not None
    dx = sum_to(b, ct, x.type.shape) if isinstance(x, Linear) else None
    dy = sum_to(b, b(ew.Neg(), ct), y.type.shape) if isinstance(y, Linear) else None
    return [dx, dy]


def _mul_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx · y> = <ct · y, dx>
    (ct,), (x, y) = cts, ins
    assert ct is not None
    if isinstance(x, Linear):
        assert not isinstance(y, Linear)
        return [sum_to(b, b(ew.Mul(), ct, y), x.type.shape), None]
    assert isinstance(y, Linear)
    return [None, sum_to(b, b(ew.Mul(), ct, x), y.type.shape)]


def _div_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    # <ct, dx / y> = <ct / y, dx>
    (ct,), (x, y) = cts, ins
    assert ct is not None and isinstance(x, Linear) and not isinstance(y, Linear)
    return [sum_to(b, b(ew.Div(), ct, y), x.type.shape), None]


def _neg_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    (ct,) = cts
    assert ct is not None
    return [b(ew.Neg(), ct)]


def _div_dy(b: RuleBuilder, d: Atom, x: Atom, y: Atom, z: Atom) -> Atom:
    # d(x/y)/dy = -(x/y)/y
    return b(ew.Mul(), d, b(ew.Neg(), b(ew.Div(), z, y)))


ARITHMETIC: RuleBook = (
    EMPTY_BOOK.extend(ew.Neg, _rules(linear_jvp, _neg_transpose))
    .extend(ew.Add, binary(lambda b, d, x, y, z: d, lambda b, d, x, y, z: d, _add_transpose))
    .extend(
        ew.Sub,
        binary(lambda b, d, x, y, z: d, lambda b, d, x, y, z: b(ew.Neg(), d), _sub_transpose),
    )
    # d(x·y) = dx·y + x·dy
    .extend(
        ew.Mul,
        binary(
            lambda b, d, x, y, z: b(ew.Mul(), d, y),
            lambda b, d, x, y, z: b(ew.Mul(), x, d),
            _mul_transpose,
        ),
    )
    .extend(ew.Div, binary(lambda b, d, x, y, z: b(ew.Div(), d, y), _div_dy, _div_transpose))
    .extend(ew.Sin, unary(lambda b, dx, x, y: b(ew.Mul(), dx, b(ew.Cos(), x))))
    .extend(ew.Cos, unary(lambda b, dx, x, y: b(ew.Mul(), dx, b(ew.Neg(), b(ew.Sin(), x)))))
    .extend(ew.Exp, unary(lambda b, dx, x, y: b(ew.Mul(), dx, y)))
    .extend(ew.Log, unary(lambda b, dx, x, y: b(ew.Div(), dx, x)))
)
