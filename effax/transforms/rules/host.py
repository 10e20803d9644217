"""Rules of callbacks, and of primitives with side effects in general.

Debugging callbacks receive primal values. Other callbacks are not differentiable; a
``custom_jvp`` or ``custom_vjp`` around them defines their derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.effects import commutes
from effax.ir.build import Builder, typing_of
from effax.ir.dtypes import BOOL
from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims import Cond, DceSink, DebugCallback, IoCallback, PureCallback, Scan
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Type, array_type
from effax.transforms.framework.rules import (
    NO_RULES,
    BatchBuilder,
    BatchOut,
    JvpOut,
    Linear,
    RuleBuilder,
    Rules,
    RuleSet,
)
from effax.transforms.rules.common.arrays import to_front, zeros
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.vmap.common import unbatched_type


def primal_jvp(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Apply a primitive without results to primal values alone."""
    return JvpOut(b.emit(prim, primals), [])


def no_derivative(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Raise NotApplicable for a primitive whose derivative is not known."""
    raise NotApplicable(
        f"{prim.name} is not differentiable: it calls a Python function whose derivative is not "
        "known",
        expected="arguments that are not differentiated",
        found=f"a tangent for argument {[t is not None for t in tangents].index(True)}",
        remedy="define the derivative of a function around it (`custom_jvp`, `custom_vjp`), or "
        "pass `stop_gradient(x)`",
    )


def side_effect_transpose(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """Raise NotApplicable: a transposed program does not compute the operands."""
    raise NotApplicable(
        f"{prim.name} takes a value that depends on linear inputs, but a transposed program "
        "computes the cotangents of such values instead",
        expected="arguments that do not depend on the linear inputs",
        remedy="move it out of the transposed function; the backward rule of a `custom_vjp` can "
        "print a cotangent",
    )


def sequential_batch(
    b: BatchBuilder,
    prim: Primitive,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    unroll: int = 1,
) -> BatchOut:
    """Apply the primitive once for each active batch element, in order, by a ``scan``.

    This is the batch rule for any primitive whose side effects commute.
    """
    consts = [x for x, has in zip(ins, batched, strict=True) if not has]
    xs = [x for x, has in zip(ins, batched, strict=True) if has]
    mask = b.mask_operands()
    body = Builder([x.type for x in consts])
    active = body.bind(array_type((), BOOL)) if mask else None
    for x in xs:
        body.bind(unbatched_type(x.type))
    shared, own = iter(body.binders), iter(body.binders[len(consts) + len(mask) :])
    args: list[Atom] = [next(own) if has else next(shared) for has in batched]
    if active is None:
        outs: Sequence[Atom] = body.emit(prim, args)
    else:
        types = tuple([x.type for x in args])
        branches = (_skipped(prim, types), _applied(prim, types))
        outs = body.emit(Cond(branches), [active, *args])
    loop = Scan(body.finish(outs), size, False, len(consts), 0, unroll)
    results = b.emit(loop, [*consts, *mask, *xs])
    return BatchOut(results, [True] * len(results))


def _applied(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    b = Builder(types)
    return b.finish(b.emit(prim, b.binders))


def _skipped(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    b = Builder(types)
    return b.finish([zeros(b, t) for t in typing_of(prim, types).outs])


def unordered_batch(
    b: BatchBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch by :func:`sequential_batch` a primitive whose side effects commute with themselves.

    Raises NotApplicable for other effects of several batch elements: equations of a batched program
    run for all of them, so their effects would interleave.
    """
    types = tuple(
        [unbatched_type(x.type) if has else x.type for x, has in zip(ins, batched, strict=True)]
    )
    row = typing_of(prim, types).effects
    for effect in row.side_effects:
        if size > 1 and not commutes(effect, effect):
            raise NotApplicable(
                f"vmap: {prim.name} is ordered, and the effects of batch elements would interleave",
                expected="an effect that commutes with itself",
                found=str(row),
                remedy="use `lax.map`, which runs the batch elements in sequence; or "
                "`ordered=False`",
            )
    return sequential_batch(b, prim, ins, batched, size)


def _sink_batch(
    b: BatchBuilder, prim: DceSink, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    return BatchOut(b.emit(prim, ins), [])


def _sink_transpose(
    b: RuleBuilder, prim: DceSink, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    return [None]  # A transposed program computes no tangent.


METHODS: Final = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)
"""The methods of batching a pure callback."""


def pure_batch(
    b: BatchBuilder, prim: PureCallback, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """Batch by ``vmap_method``: one call for each batch element, or one call for all.

    A single batch element, as of ``pmap`` or ``shard_map`` on one device, needs no method.
    """
    match prim.vmap_method or (size == 1 and "sequential"):
        case "sequential" | "sequential_unrolled" as method:
            unroll = max(size, 1) if method == "sequential_unrolled" else 1
            return sequential_batch(b, prim, ins, batched, size, unroll)
        case "expand_dims":
            return _called_once(b, prim, _with_axis(b, ins, batched, 1), size)
        case "broadcast_all":
            return _called_once(b, prim, _with_axis(b, ins, batched, size), size)
        case "legacy_vectorized":
            return _called_once(b, prim, ins, size)
        case _:
            raise NotApplicable(
                "vmap of pure_callback needs a method of batching the function",
                expected=f"vmap_method, one of {', '.join(METHODS)}",
                found=f"vmap_method={prim.vmap_method!r}",
                remedy="pass `vmap_method='sequential'`, one call for each batch element",
            )


def _with_axis(
    b: BatchBuilder, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> list[Atom]:
    """Return the arguments, the unbatched ones with a leading axis of this size."""
    return [to_front(b, x, has, size) for x, has in zip(ins, batched, strict=True)]


def _called_once(b: BatchBuilder, prim: PureCallback, ins: Sequence[Atom], size: int) -> BatchOut:
    avals = tuple([_stacked(t, size) for t in prim.result_avals])
    outs = b.emit(PureCallback(prim.callback, avals, prim.vmap_method), ins)
    return BatchOut(outs, [True] * len(outs))


def _stacked(type_: ArrayType, size: int) -> ArrayType:
    return array_type((size, *type_.shape), type_.dtype, type_.weak)


def side_effect_jvp(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Apply the primitive to primal values. Raises NotApplicable if it has results."""
    has_results = bool(typing_of(prim, tuple([x.type for x in primals])).outs)
    return (no_derivative if has_results else primal_jvp)(b, prim, primals, tangents)


SIDE_EFFECT_RULES: Final[Rules[Primitive]] = array_rules(
    jvp=side_effect_jvp, transpose=side_effect_transpose, batch=unordered_batch
)
"""The rules of any primitive on arrays that has side effects."""

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        DebugCallback,
        array_rules(jvp=primal_jvp, transpose=side_effect_transpose, batch=sequential_batch),
    )
    .extend(DceSink, array_rules(jvp=primal_jvp, transpose=_sink_transpose, batch=_sink_batch))
    .extend(
        IoCallback,
        array_rules(jvp=no_derivative, transpose=side_effect_transpose, batch=unordered_batch),
    )
    .extend(
        PureCallback,
        array_rules(jvp=no_derivative, transpose=side_effect_transpose, batch=pure_batch),
    )
)
