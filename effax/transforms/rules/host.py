"""Rules of calls of Python functions, and of what acts on the world outside in general.

What is shown for debugging is shown of primal values. Derivatives of the other calls are not
known; a function with a ``custom_jvp`` or ``custom_vjp`` rule around it says them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from effax.effects import commutes
from effax.ir.build import Builder, typing_of
from effax.ir.dtypes import BOOL
from effax.ir.errors import NotApplicable
from effax.ir.primitive import Primitive
from effax.ir.prims import BroadcastInDim, Cond, DebugCallback, IoCallback, PureCallback, Scan
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
from effax.transforms.rules.common.arrays import zeros
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.vmap.common import unbatched_type


def of_primals(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """For a primitive without results that acts on primal values alone."""
    return JvpOut(b.emit(prim, primals), [])


def no_derivative(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """For a primitive whose derivative nobody knows."""
    raise NotApplicable(
        f"{prim.name} is not differentiable: it calls a Python function, of which no derivative "
        "is known",
        expected="arguments that are not differentiated",
        found=f"a tangent for argument {[t is not None for t in tangents].index(True)}",
        remedy="give a function around it a rule (`custom_jvp`, `custom_vjp`), or pass "
        "`stop_gradient(x)`",
    )


def not_computed(
    b: RuleBuilder, prim: Primitive, ins: Sequence[Atom | Linear], cts: Sequence[Atom | None]
) -> Sequence[Atom | None]:
    """For a primitive that acts on values: the transposed program does not compute them."""
    raise NotApplicable(
        f"{prim.name} takes a value that depends on linear inputs, and a transposed program "
        "computes cotangents in the place of such values",
        expected="arguments that do not depend on what is transposed",
        remedy="leave it out of what is transposed; a cotangent can be shown by the backward rule "
        "of a `custom_vjp`",
    )


def each_lane(
    b: BatchBuilder,
    prim: Primitive,
    ins: Sequence[Atom],
    batched: Sequence[bool],
    size: int,
    unroll: int = 1,
) -> BatchOut:
    """One application a lane, in the order of lanes; what lanes are not here do not do it.

    It is the batch rule for any primitive whose effects on the world outside commute.
    """
    consts = [x for x, has in zip(ins, batched, strict=True) if not has]
    xs = [x for x, has in zip(ins, batched, strict=True) if has]
    mask = b.mask_operands()
    body = Builder([x.type for x in consts])
    here = body.bind(array_type((), BOOL)) if mask else None
    for x in xs:
        body.bind(unbatched_type(x.type))
    shared, own = iter(body.binders), iter(body.binders[len(consts) + len(mask) :])
    lane: list[Atom] = [next(own) if has else next(shared) for has in batched]
    if here is None:
        outs: Sequence[Atom] = body.emit(prim, lane)
    else:
        types = tuple([x.type for x in lane])
        branches = (_not_here(prim, types), _applied(prim, types))
        outs = body.emit(Cond(branches), [here, *lane])
    loop = Scan(body.finish(outs), size, False, len(consts), 0, unroll)
    results = b.emit(loop, [*consts, *mask, *xs])
    return BatchOut(results, [True] * len(results))


def _applied(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    b = Builder(types)
    return b.finish(b.emit(prim, b.binders))


def _not_here(prim: Primitive, types: tuple[Type, ...]) -> Jaxpr:
    b = Builder(types)
    return b.finish([zeros(b, t) for t in typing_of(prim, types).outs])


def in_any_order(
    b: BatchBuilder, prim: Primitive, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """:func:`each_lane`, where the table says that no order of lanes can be told from another.

    Raises NotApplicable where effects do not commute with themselves. Lanes run in step, and so
    would not do what they do one lane after the other.
    """
    types = tuple(
        [unbatched_type(x.type) if has else x.type for x, has in zip(ins, batched, strict=True)]
    )
    row = typing_of(prim, types).effects
    for effect in row.side_effects:
        if not commutes(effect, effect):
            raise NotApplicable(
                f"vmap: {prim.name} is ordered, and lanes that run in step have no order in which "
                "one comes after all of another",
                expected="an effect that commutes with itself",
                found=str(row),
                remedy="use `lax.map`, which runs one lane after the other; or `ordered=False`",
            )
    return each_lane(b, prim, ins, batched, size)


METHODS: Final = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)
"""How a pure callback can be batched."""


def pure_batch(
    b: BatchBuilder, prim: PureCallback, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> BatchOut:
    """As its ``vmap_method`` says: a call a lane, or one call that gets all lanes."""
    match prim.vmap_method:
        case "sequential" | "sequential_unrolled" as method:
            unroll = max(size, 1) if method == "sequential_unrolled" else 1
            return each_lane(b, prim, ins, batched, size, unroll)
        case "expand_dims":
            return _called_once(b, prim, _with_axis(b, ins, batched, 1), size)
        case "broadcast_all":
            return _called_once(b, prim, _with_axis(b, ins, batched, size), size)
        case "legacy_vectorized":
            return _called_once(b, prim, ins, size)
        case _:
            raise NotApplicable(
                "vmap of pure_callback: it is not said how the function takes a batch",
                expected=f"vmap_method, one of {', '.join(METHODS)}",
                found=f"vmap_method={prim.vmap_method!r}",
                remedy="pass `vmap_method='sequential'`, which calls it once a lane",
            )


def _with_axis(
    b: BatchBuilder, ins: Sequence[Atom], batched: Sequence[bool], size: int
) -> list[Atom]:
    """The arguments, those that have no batch axis with a leading one of this size."""
    given: list[Atom] = []
    for x, has in zip(ins, batched, strict=True):
        shape = x.type.shape
        propagate = BroadcastInDim((size, *shape), tuple(range(1, 1 + len(shape))))
        given.append(x if has else b(propagate, x))
    return given


def _called_once(b: BatchBuilder, prim: PureCallback, ins: Sequence[Atom], size: int) -> BatchOut:
    avals = tuple([_stacked(t, size) for t in prim.result_avals])
    outs = b.emit(PureCallback(prim.callback, avals, prim.vmap_method), ins)
    return BatchOut(outs, [True] * len(outs))


def _stacked(type_: ArrayType, size: int) -> ArrayType:
    return array_type((size, *type_.shape), type_.dtype, type_.weak)


def acts_jvp(
    b: RuleBuilder,
    prim: Primitive,
    primals: Sequence[Atom],
    tangents: Sequence[Atom | None],
) -> JvpOut:
    """Without results it acts on primal values alone; what comes back has no derivative."""
    has_results = bool(typing_of(prim, tuple([x.type for x in primals])).outs)
    return (no_derivative if has_results else of_primals)(b, prim, primals, tangents)


ACTS_OUTSIDE: Final[Rules[Primitive]] = array_rules(
    jvp=acts_jvp, transpose=not_computed, batch=in_any_order
)
"""The rules of any primitive on arrays that acts on the world outside."""

RULES: Final[RuleSet] = (
    NO_RULES.extend(
        DebugCallback,
        array_rules(jvp=of_primals, transpose=not_computed, batch=each_lane),
    )
    .extend(
        IoCallback,
        array_rules(jvp=no_derivative, transpose=not_computed, batch=in_any_order),
    )
    .extend(
        PureCallback,
        array_rules(jvp=no_derivative, transpose=not_computed, batch=pure_batch),
    )
)
