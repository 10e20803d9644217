"""Loops that go on while a condition holds, and loops that count: while_loop, fori_loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast, overload

import numpy as np

from effax import tree
from effax.arrays import operators as ops
from effax.arrays.argument_checks import as_integer, check_callable
from effax.arrays.binding import Operand, bind, run
from effax.arrays.device_array import Array, DeviceArray, as_value
from effax.arrays.tracing import (
    FlatFunction,
    TraceOptions,
    check_same_tree,
    shared_consts,
    shown_tree,
    trace_flat,
)
from effax.ir.analysis.variance import Names
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.prims import While
from effax.ir.trace import shown_ref
from effax.ir.types import Type, array_type
from effax.lax.carries import call_tree, no_refs, stable_carry, stable_variance
from effax.lax.control import scanned
from effax.lax.leaves import Leaves, leaves_of
from effax.numpy.promotion import converted, literal
from effax.transforms.reverse.bounded_while import Checkpoints, bounded
from effax.tree import PyTree, PyTreeDef

Carry = TypeVar("Carry")


@overload
def while_loop(
    cond_fun: Callable[[Array], object],
    body_fun: Callable[[Array], Array],
    init_val: complex,
    *,
    max_steps: int | None = ...,
    checkpoint: str | None = ...,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[Carry], object],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    *,
    max_steps: int | None = ...,
    checkpoint: str | None = ...,
) -> Carry: ...
def while_loop(
    cond_fun: Callable[[PyTree], object],
    body_fun: Callable[[PyTree], object],
    init_val: object,
    *,
    max_steps: int | None = None,
    checkpoint: str | None = None,
) -> PyTree:
    """Apply ``body_fun`` to a carry while ``cond_fun`` of it is true.

    The condition and the body may close over the same references.

    In reverse mode the loop goes back over its iterations. What an iteration needs of those before
    it is kept, or computed again, for ``n`` iterations, or at most ``N``:

    =============  =====================================  ==========================
    what is given  keeps                                  runs each iteration
    =============  =====================================  ==========================
    nothing        32 carries                             about ``2 + log2(n) / 2`` times
    ``"all"``      what each of ``N`` iterations computes  once
    ``"sqrt"``     what ``2·√N`` iterations compute       twice
    ``"log"``      ``4·log4 N`` carries                   up to ``1 + log4 N`` times
    =============  =====================================  ==========================

    Args:
        cond_fun: from a carry to a boolean scalar.
        body_fun: from a carry to the next one.
        init_val: the first carry, a tree of arrays.
        max_steps: after how many iterations the loop ends at the latest. It is then a scan that
            skips its steps once the loop is over.
        checkpoint: what is kept for the backward pass: ``"all"``, ``"sqrt"`` or ``"log"``; only
            the last one without ``max_steps``, since arrays do not grow. None: ``"sqrt"``, and
            ``"all"`` for a loop with effects, which cannot be computed again; ``"log"`` without
            ``max_steps``. Without it, effects on references happen once all the same.

    Raises:
        IllTyped: the condition does not give a boolean scalar, or the body another carry type.
        RefError: a reference is carried or returned; a loop that uses references from outside is
            to be computed again.
        BadArgument: ``max_steps`` is negative, or there is no such ``checkpoint``.
    """
    check_callable(cond_fun, "while_loop: cond_fun")
    check_callable(body_fun, "while_loop: body_fun")
    bound = _bound(max_steps, checkpoint)
    carry = leaves_of(init_val, "init_val")
    return _looped(cond_fun, body_fun, carry, "while_loop", bound)


Bound = tuple[int, Checkpoints | None]
"""How many steps there are at most, and what is kept of them (None: what fits the effects)."""


def _bound(max_steps: object, checkpoint: object) -> Bound | None:
    names = [c.value for c in Checkpoints]
    if checkpoint is not None and checkpoint not in names:
        raise BadArgument(
            "while_loop: there is no such checkpoint",
            expected=", ".join(map(repr, names)),
            found=f"{checkpoint!r:.60}",
        )
    if max_steps is None:
        if checkpoint not in (None, "log"):
            raise BadArgument(
                f"while_loop: checkpoint={checkpoint!r} needs a bound on the number of steps",
                expected="max_steps, since arrays for what is kept do not grow",
                found="no max_steps",
                remedy="pass `max_steps`, or leave out `checkpoint`",
            )
        return None
    n = as_integer(max_steps, "while_loop: max_steps")
    if n < 0:
        raise BadArgument("while_loop: max_steps is negative", expected="at least 0", found=str(n))
    return n, None if checkpoint is None else Checkpoints(checkpoint)


def _looped(
    cond_fun: Callable[[PyTree], object],
    body_fun: Callable[[PyTree], object],
    carry: Leaves,
    what: str,
    bound: Bound | None = None,
) -> PyTree:
    """:func:`while_loop` on a tree taken apart, for what is called ``what`` in messages."""
    no_refs(carry, what)
    call = call_tree(carry.treedef)

    def body(types: Sequence[Type]) -> FlatFunction:
        def traced(differs: Sequence[Names] | None) -> FlatFunction:
            where = f"the body of {what}"
            options = TraceOptions(differs=differs)
            return trace_flat(body_fun, call, types, carry.names, where, options)

        return stable_variance(traced, carry.leaves)

    flat, leaves = stable_carry(carry, body, what, lambda flat: flat.out_tree)
    types = [x.type for x in leaves]
    test = trace_flat(cond_fun, call, types, carry.names, f"the condition of {what}")
    _check_predicate(test)
    consts, (cond_jaxpr, body_jaxpr) = shared_consts([test, flat])
    prim = While(cond_jaxpr, body_jaxpr, len(consts))
    outs = bind(prim, *consts, *leaves) if bound is None else _run(prim, bound, consts, leaves)
    return tree.unflatten(carry.treedef, outs)


def _run(
    loop: While, bound: Bound, consts: Sequence[Operand], leaves: Sequence[Operand]
) -> list[Array]:
    """The loop with a bound, as a program."""
    steps, checkpoints = bound
    effects = loop.cond.effects.join(loop.body.effects)
    if checkpoints is None:
        checkpoints = Checkpoints.ALL if effects else Checkpoints.SQRT
    if effects and checkpoints is not Checkpoints.ALL:
        refs = ", ".join([shown_ref(consts[i]) for i in effects.refs])
        raise RefError(
            "while_loop: the loop has effects, and its backward pass would compute it again",
            expected=f"a loop without effects, for checkpoint={checkpoints.value!r}",
            found=f"{effects} of {refs}" if refs else str(effects),
            remedy="pass checkpoint='all', or leave it out",
        )
    return run(bounded(loop, steps, checkpoints), [*consts, *leaves])


def _check_predicate(test: FlatFunction) -> None:
    types = test.jaxpr.out_types
    alone = test.out_tree == tree.structure(0)
    if not alone or types[0].shape != () or types[0].dtype != np.bool_:
        raise IllTyped(
            "while_loop: the condition must give one boolean scalar",
            expected="bool[]",
            found=str(types[0]) if alone else shown_tree(test.out_tree),
        )


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Array, Array], Array],
    init_val: complex,
    *,
    unroll: int | bool | None = ...,
) -> Array: ...
@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Array, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = ...,
) -> Carry: ...
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Array, PyTree], object],
    init_val: object,
    *,
    unroll: int | bool | None = None,
) -> PyTree:
    """``for i in range(lower, upper): val = body_fun(i, val)``.

    With static bounds it is a ``scan``, with traced ones a ``while_loop``. Both are differentiated
    in reverse; a ``scan`` keeps what it computes, a ``while_loop`` computes it again.

    Raises:
        IllTyped: a bound is no integer scalar, or the bounds have different dtypes; the body gives
            another type than it takes.
        BadArgument: a bound does not fit in the dtype of the other, or a loop with traced bounds
            is to be unrolled.
    """
    check_callable(body_fun, "fori_loop: body_fun")
    start, end = _bounds(lower, upper)
    value = leaves_of(init_val, "init_val")
    if all(isinstance(x, int | np.integer | np.ndarray | DeviceArray) for x in (lower, upper)):
        steps = max(int(cast(int, upper)) - int(cast(int, lower)), 0)
        return _counting(steps, start, body_fun, value, unroll)
    if unroll is True or (unroll and as_integer(unroll, "fori_loop: unroll") > 1):
        raise BadArgument(
            "fori_loop: only a loop with static bounds is unrolled",
            expected="bounds that are known when the loop is traced",
            found=f"unroll={unroll!r}, and a bound that is traced",
            remedy="leave out `unroll`, or make the bounds static arguments",
        )
    return _until(start, end, body_fun, value)


def _counting(
    steps: int,
    start: Array,
    body_fun: Callable[[Array, PyTree], object],
    value: Leaves,
    unroll: int | bool | None,
) -> PyTree:
    """A loop of so many steps."""

    def step(state: tuple[Array, PyTree], _: None) -> tuple[tuple[Array, object], None]:
        i, v = state
        return (ops.add(i, 1), _next_value(body_fun, i, v, value.treedef)), None

    carry = _beside([start], ["the index"], value)
    nothing = leaves_of(None, "xs")
    (_, result), _ = scanned(step, carry, nothing, steps, False, unroll or 1, "fori_loop")
    return result


def _until(
    start: Array, end: Array, body_fun: Callable[[Array, PyTree], object], value: Leaves
) -> PyTree:
    """A loop whose bounds are known when it runs."""

    def body(state: tuple[Array, Array, PyTree]) -> tuple[Array, Array, object]:
        i, end, v = state
        return ops.add(i, 1), end, _next_value(body_fun, i, v, value.treedef)

    carry = _beside([start, end], ["the index", "upper"], value)
    return _looped(lambda state: ops.less(state[0], state[1]), body, carry, "fori_loop")[2]


def _beside(bounds: Sequence[Operand], names: Sequence[str], value: Leaves) -> Leaves:
    """The carry of a counting loop: bounds, then what the user carries."""
    whole = tree.unflatten(value.treedef, value.leaves)
    treedef = tree.structure((*[0] * len(bounds), whole))
    return Leaves([*bounds, *value.leaves], treedef, [*names, *value.names])


def _next_value(
    body_fun: Callable[[Array, PyTree], object], i: Array, value: PyTree, treedef: PyTreeDef
) -> object:
    result = body_fun(i, value)
    check_same_tree(
        tree.structure(result),
        treedef,
        "fori_loop: the carry that the body gives, unlike init_val,",
    )
    return result


def _bounds(lower: object, upper: object) -> tuple[Array, Array]:
    """Both bounds of a loop in one dtype, which is weak where both are Python's integers."""
    first, last = as_value(lower, "lower of fori_loop"), as_value(upper, "upper of fori_loop")
    for x, name in ((first, "lower"), (last, "upper")):
        if family(x.dtype) not in ("int", "uint") or x.shape:
            raise IllTyped(
                f"fori_loop: {name} must be an integer scalar",
                expected="an integer, or an array of one",
                found=str(x.type),
            )
    weak = first.weak_type and last.weak_type
    dtype = last.dtype if first.weak_type else first.dtype
    if first.dtype != last.dtype and not first.weak_type and not last.weak_type:
        raise IllTyped(
            "fori_loop: lower and upper have different dtypes",
            expected=str(first.dtype),
            found=str(last.dtype),
            remedy="convert one of them: `.astype(...)`",
        )
    for bound in (lower, upper):
        if isinstance(bound, int):
            literal(bound, array_type((), dtype))
    return converted(first, dtype, weak), converted(last, dtype, weak)
