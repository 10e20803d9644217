"""Loops with a condition and counting loops: while_loop, fori_loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast, overload

import numpy as np

from effax import tree
from effax.arrays.argument_checks import as_integer, check_callable
from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind, run
from effax.arrays.config import config
from effax.arrays.conversion import as_value
from effax.arrays.device_array import DeviceArray
from effax.arrays.operators import ops
from effax.arrays.promotion import literal, promoted
from effax.arrays.trace_cache import trace_once
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
from effax.lax.python_loops import TRACED, while_in_python
from effax.transforms.reverse.bounded_while import Checkpoints, bounded
from effax.tree import PyTree, PyTreeDef

__all__ = ["fori_loop", "while_loop"]

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

    The condition and the body may close over the same references. Reverse mode walks the iterations
    backwards; what ``checkpoint`` keeps of ``n`` iterations, or at most ``N = max_steps``, decides
    how often each one runs: None keeps 32 carries (about ``2 + log2(n) / 2`` runs), "all" the
    residuals of all (1), "sqrt" those of ``2·√N`` (2), "log" ``4·log4 N`` carries (up to ``1 + log4
    N``).

    Args:
        cond_fun: function of a carry to a boolean scalar.
        body_fun: function of a carry to the next one.
        init_val: first carry, a tree of arrays.
        max_steps: greatest number of iterations; the loop is then a scan that skips the rest.
        checkpoint: "all", "sqrt" or "log"; without ``max_steps`` only "log". By default "sqrt" with
            ``max_steps``, "all" if the loop has effects, which cannot run again.

    Returns:
        Last carry.

    Raises:
        IllTyped: the condition does not return a boolean scalar, or the body changes the carry
            type.
        RefError: a reference is carried or returned, or the backward pass would run effects again.
        BadArgument: ``max_steps`` is negative, or an unknown ``checkpoint``.

    >>> lax.while_loop(lambda x: x < 10, lambda x: x * 2, jnp.array(1))
    Array(16, dtype=int32, weak_type=True)
    """
    check_callable(cond_fun, "while_loop: cond_fun")
    check_callable(body_fun, "while_loop: body_fun")
    bound = _bound(max_steps, checkpoint)
    carry = leaves_of(init_val, "init_val")
    return _looped(cond_fun, body_fun, carry, "while_loop", bound)


Bound = tuple[int, Checkpoints | None]
"""Greatest number of steps, and the residuals kept (None: chosen by the effects)."""


def _bound(max_steps: object, checkpoint: object) -> Bound | None:
    names = [c.value for c in Checkpoints]
    if checkpoint is not None and checkpoint not in names:
        raise BadArgument(
            "while_loop: unknown checkpoint",
            expected=", ".join(map(repr, names)),
            found=f"{checkpoint!r:.60}",
        )
    if max_steps is None:
        if checkpoint not in (None, "log"):
            raise BadArgument(
                f"while_loop: checkpoint={checkpoint!r} needs a bound on the number of steps",
                expected="max_steps, since arrays of residuals have static sizes",
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
    of: Callable[..., object] | None = None,
) -> PyTree:
    """Apply :func:`while_loop` to a flattened tree; ``what`` is its name in messages.

    ``of`` is the user's function, where ``body_fun`` is made of it anew in each call.
    """
    no_refs(carry, what)
    if config.disable_jit:
        init = tree.unflatten(carry.treedef, carry.leaves)
        done = while_in_python(cond_fun, body_fun, init)
        if done is not TRACED:
            return done
    call = call_tree(carry.treedef)

    def body(types: Sequence[Type]) -> FlatFunction:
        def traced(differs: Sequence[Names] | None) -> FlatFunction:
            where = f"the body of {what}"
            if differs is None:
                return trace_once(body_fun, call, types, carry.names, where, of, what)
            options = TraceOptions(differs=differs)
            return trace_flat(body_fun, call, types, carry.names, where, options)

        return stable_variance(traced, carry.leaves)

    flat, leaves = stable_carry(carry, body, what, lambda flat: flat.out_tree)
    types = [x.type for x in leaves]
    test = trace_once(cond_fun, call, types, carry.names, f"the condition of {what}")
    _check_predicate(test)
    consts, (cond_jaxpr, body_jaxpr) = shared_consts([test, flat])
    prim = While(cond_jaxpr, body_jaxpr, len(consts))
    outs = bind(prim, *consts, *leaves) if bound is None else _run(prim, bound, consts, leaves)
    return tree.unflatten(carry.treedef, outs)


def _run(
    loop: While, bound: Bound, consts: Sequence[Operand], leaves: Sequence[Operand]
) -> list[Array]:
    """Run the bounded loop as a program."""
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
            "while_loop: the condition must return one boolean scalar",
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
    """Return ``init_val`` after ``val = body_fun(i, val)`` for i in range(lower, upper).

    With static bounds it is a ``scan``, which keeps residuals for reverse mode; with traced ones a
    ``while_loop``, which recomputes them.

    Args:
        lower: integer scalar, the first index; or, with ``upper``, a floating one.
        upper: integer scalar, the end of the indices.
        body_fun: function of an index and a carry to the next carry.
        init_val: first carry, a tree of arrays.
        unroll: number of steps per iteration of the compiled loop; True for all; static bounds
            only.

    Returns:
        Last carry.

    Raises:
        IllTyped: a bound is not an integer scalar, or dtypes differ; the body changes the carry
            type.
        BadArgument: a bound overflows the dtype of the other, or a loop with traced bounds is
            unrolled.

    >>> lax.fori_loop(0, 4, lambda i, x: x + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    check_callable(body_fun, "fori_loop: body_fun")
    start, end = _bounds(lower, upper)
    value = leaves_of(init_val, "init_val")
    if family(start.dtype) != "float" and all(
        isinstance(x, int | np.integer | np.ndarray | DeviceArray) for x in (lower, upper)
    ):
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
    """Run a loop with a static number of steps."""
    if not steps and config.disable_jit:
        return tree.unflatten(value.treedef, value.leaves)

    def step(state: tuple[Array, PyTree], _: None) -> tuple[tuple[Array, object], None]:
        i, v = state
        return (ops.add(i, 1), _next_value(body_fun, i, v, value.treedef)), None

    carry = _counting_carry([start], ["the index"], value)
    nothing = leaves_of(None, "xs")
    (_, result), _ = scanned(
        step, carry, nothing, steps, False, unroll or 1, "fori_loop", of=body_fun
    )
    return result


def _until(
    start: Array, end: Array, body_fun: Callable[[Array, PyTree], object], value: Leaves
) -> PyTree:
    """Run a loop with traced bounds."""

    def body(state: tuple[Array, Array, PyTree]) -> tuple[Array, Array, object]:
        i, end, v = state
        return ops.add(i, 1), end, _next_value(body_fun, i, v, value.treedef)

    carry = _counting_carry([start, end], ["the index", "upper"], value)
    return _looped(_before_end, body, carry, "fori_loop", of=body_fun)[2]


def _before_end(state: tuple[Array, Array, PyTree]) -> Array:
    return ops.less(state[0], state[1])


def _counting_carry(bounds: Sequence[Operand], names: Sequence[str], value: Leaves) -> Leaves:
    """Return the carry of a counting loop: bounds, then the user's carry."""
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
        "fori_loop: the carry returned by the body, unlike init_val,",
    )
    return result


def _bounds(lower: object, upper: object) -> tuple[Array, Array]:
    """Return both bounds in one dtype, weak where both are Python ints."""
    first, last = as_value(lower, "lower of fori_loop"), as_value(upper, "upper of fori_loop")
    for x, name in ((first, "lower"), (last, "upper")):
        floats = family(first.dtype) == family(last.dtype) == "float"
        if not (floats or family(x.dtype) in ("int", "uint")) or x.shape:
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
    if weak:
        return first, last
    for bound in (lower, upper):
        if isinstance(bound, int):
            literal(bound, array_type((), dtype))
    return promoted(first, dtype, "fori_loop: lower"), promoted(last, dtype, "fori_loop: upper")
