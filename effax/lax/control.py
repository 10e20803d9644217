"""Loops on traced values: scan, map, while_loop, fori_loop.

A body may close over arrays, traced values and references; what it closes over becomes constants
of the loop. References are closed over or scanned, never carried or returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from effax import operators as ops
from effax import tree
from effax.array import Array, DeviceArray, as_value
from effax.bind import Operand, bind
from effax.checks import as_integer, check_callable
from effax.effects import Rule
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.prims.control import Scan, While, element_type, fits
from effax.ir.trace import shown_ref
from effax.ir.types import ArrayType, Type, array_type
from effax.lax.leaves import Leaves, leaves_of, rank
from effax.numpy.promotion import converted, literal
from effax.ref import Ref
from effax.tracing import FlatFunction, check_same_tree, shared_consts, shown_tree, trace_flat
from effax.tree import PyTreeDef

Carry = TypeVar("Carry")


def _no_refs(carried: Leaves, what: str) -> None:
    for x, name in zip(carried.leaves, carried.names, strict=True):
        if isinstance(x, Ref):
            raise RefError.against(
                Rule.ESCAPE,
                f"{what}: {name} is a reference",
                "an array",
                shown_ref(x),
                "close over the reference instead of carrying it",
            )


def _call_tree(*parts: PyTreeDef) -> PyTreeDef:
    """The structure of ``(args, kwargs)`` for a call with these argument structures."""
    args = tuple(tree.unflatten(p, [0] * p.num_leaves) for p in parts)
    return tree.structure((args, {}))


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Any]:
    """Loop over leading axes, with a carry.

    Args:
        f: ``(carry, x) -> (carry, y)``; ``x`` is one element of ``xs`` along its leading axis.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays and references, all of one leading size, or None. A reference is
            given to ``f`` as a view of its element, which may be written.
        length: the number of steps; needed where ``xs`` has no leaves.
        reverse: whether to go from the last element to the first.
        unroll: how many steps one iteration of the compiled loop takes (True: all).

    Returns:
        The last carry, and the tree of stacked ``y``s.

    Raises:
        IllTyped: ``f`` gives another carry type than it takes, or leading sizes differ.
        RefError: a reference is carried, returned, or reaches the loop twice.
    """
    check_callable(f, "scan")
    carry, scanned = leaves_of(init, "init"), leaves_of(xs, "xs")
    return _scanned(f, carry, scanned, length, reverse, unroll, "scan")


def _scanned(
    f: Callable[[Any, Any], tuple[Any, Any]],
    carry: Leaves,
    scanned: Leaves,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
    what: str,
) -> tuple[Any, Any]:
    """:func:`scan` on trees taken apart, for what is called ``what`` in messages."""
    _no_refs(carry, what)
    unrolled = _unrolled(unroll, what)
    n = _length(scanned, length, what)
    types = [element_type(t) for t in scanned.types]

    def body(carry_types: Sequence[Type]) -> FlatFunction:
        return trace_flat(
            f,
            _call_tree(carry.treedef, scanned.treedef),
            [*carry_types, *types],
            [*carry.names, *scanned.names],
            f"the body of {what}",
            [*[None] * len(carry_types), *scanned.leaves],
            result_names="the result",
        )

    flat, carry_leaves = _with_stable_carry(carry, body, what, _scan_carry_tree)
    carry_tree, y_tree = _pair(flat.out_tree)
    n_carry = len(carry.leaves)
    steps = max(n, 1) if unrolled is None else max(unrolled, 1)
    prim = Scan(flat.jaxpr, n, bool(reverse), len(flat.consts), n_carry, steps)
    outs = bind(prim, *flat.consts, *carry_leaves, *scanned.leaves)
    return (
        tree.unflatten(carry_tree, outs[:n_carry]),
        tree.unflatten(y_tree, outs[n_carry:]),
    )


def _unrolled(unroll: object, what: str) -> int | None:
    """How many steps an iteration takes; None: all. Raises BadArgument."""
    if isinstance(unroll, bool):
        return None if unroll else 1
    steps = as_integer(unroll, f"{what}: unroll")
    if steps < 0:
        raise BadArgument(
            f"{what}: unroll is negative", expected="a bool, or an integer >= 0", found=str(steps)
        )
    return steps


def _given_length(length: object, what: str) -> int:
    n = as_integer(length, f"{what}: length")
    if n < 0:
        raise BadArgument(f"{what}: length is negative", expected="at least 0", found=str(n))
    return n


def _length(scanned: Leaves, length: int | None, what: str) -> int:
    sizes: dict[int, str] = {}
    for x, name in zip(scanned.leaves, scanned.names, strict=True):
        if not x.type.shape:
            raise IllTyped(
                f"{what}: {name} has no leading axis to scan over",
                expected="at least one axis",
                found=str(x.type),
            )
        sizes.setdefault(x.type.shape[0], name)
    if length is not None:
        sizes.setdefault(_given_length(length, what), "length")
    if not sizes:
        raise BadArgument(
            f"{what} does not know how many steps to take",
            expected="at least one array in xs" + (", or a length" if what == "scan" else ""),
            found="neither" if what == "scan" else "none",
            remedy="pass `length`, or scan over at least one array" if what == "scan" else None,
        )
    if len(sizes) > 1:
        found = ", ".join(f"{n} for {name}" for n, name in sizes.items())
        raise IllTyped(f"{what}: leading sizes differ", expected="one leading size", found=found)
    return next(iter(sizes))


def _pair(out_tree: PyTreeDef) -> tuple[PyTreeDef, PyTreeDef]:
    carry, ys = out_tree.children()
    return carry, ys


def _scan_carry_tree(flat: FlatFunction) -> PyTreeDef:
    if flat.out_tree.type not in (tuple, list) or flat.out_tree.num_children != 2:
        raise IllTyped(
            "scan: the body must give a pair (carry, y)",
            expected="(carry, y)",
            found=shown_tree(flat.out_tree),
        )
    return _pair(flat.out_tree)[0]


def _whole_tree(flat: FlatFunction) -> PyTreeDef:
    return flat.out_tree


def _with_stable_carry(
    carry: Leaves,
    trace: Callable[[Sequence[Type]], FlatFunction],
    what: str,
    carry_tree: Callable[[FlatFunction], PyTreeDef],
) -> tuple[FlatFunction, list[Operand]]:
    """Trace a body whose carry goes in and out with one type; weak types give way.

    Raises IllTyped, leaf by leaf, where the types differ by more than that.
    """
    leaves = list(carry.leaves)
    for _ in range(2):
        types = [x.type for x in leaves]
        flat = trace(types)
        found_tree = carry_tree(flat)
        if found_tree != carry.treedef:
            raise IllTyped(
                f"{what}: the body gives a carry of another structure than it takes",
                expected=shown_tree(carry.treedef),
                found=shown_tree(found_tree),
            )
        outs = flat.jaxpr.out_types[: len(leaves)]
        if all(have is want for have, want in zip(outs, types, strict=True)):
            return flat, leaves
        leaves = [
            _promoted(x, out, name, what)
            for x, out, name in zip(leaves, outs, carry.names, strict=True)
        ]
        if all(x.type is t for x, t in zip(leaves, types, strict=True)):
            # What differs is weakness of a result only: the carry's own type holds.
            return flat, leaves
    _check_carry(carry.names, [x.type for x in leaves], trace, what)
    return trace([x.type for x in leaves]), leaves


def _promoted(x: Operand, out: Type, name: str, what: str) -> Operand:
    """The carry leaf with its weak dtype replaced by the body's, where that is enough."""
    assert isinstance(x, Array)
    have = x.type
    if have is out or not isinstance(out, ArrayType):
        return x
    yields = have.weak and not out.weak and rank(have) <= rank(out)
    if have.shape == out.shape and yields:
        return converted(x, out.dtype, False)
    if have.shape == out.shape and have.dtype == out.dtype:
        return x
    raise IllTyped(
        f"{what}: {name} goes into the body with one type and comes out with another",
        expected=str(have),
        found=str(out),
        remedy=f"give the carry that type first, or convert the result: `.astype('{have.dtype}')`",
    )


def _check_carry(
    names: Sequence[str],
    types: Sequence[Type],
    trace: Callable[[Sequence[Type]], FlatFunction],
    what: str,
) -> None:
    outs = trace(types).jaxpr.out_types
    for name, have, want in zip(names, outs, types, strict=False):
        if not fits(have, want):
            raise IllTyped(
                f"{what}: {name} goes into the body with one type and comes out with another",
                expected=str(want),
                found=str(have),
                remedy="convert the result to the carry's type",
            )


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """``f`` of each element of ``xs`` along the leading axis, in order; results are stacked."""
    check_callable(f, "map")
    carry, scanned = leaves_of(None, "init"), leaves_of(xs, "xs")
    return _scanned(lambda _, x: (None, f(x)), carry, scanned, None, False, 1, "map")[1]


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Carry
) -> Carry:
    """Apply ``body_fun`` to a carry while ``cond_fun`` of it is true.

    The condition and the body may close over the same references.

    In reverse mode the loop counts its iterations, and goes back over them from checkpoints: there
    is room for 32 carries, and ``n`` iterations are computed about ``n/2·log2 n`` times more. An
    effect of the loop on a reference from outside happens once all the same.

    Raises:
        IllTyped: the condition does not give a boolean scalar, or the body another carry type.
        RefError: a reference is carried or returned.
    """
    check_callable(cond_fun, "while_loop: cond_fun")
    check_callable(body_fun, "while_loop: body_fun")
    result: Carry = _looped(cond_fun, body_fun, leaves_of(init_val, "init_val"), "while_loop")
    return result


def _looped(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Leaves, what: str
) -> Any:
    """:func:`while_loop` on a tree taken apart, for what is called ``what`` in messages."""
    _no_refs(carry, what)
    call = _call_tree(carry.treedef)

    def body(types: Sequence[Type]) -> FlatFunction:
        return trace_flat(body_fun, call, types, carry.names, f"the body of {what}")

    flat, leaves = _with_stable_carry(carry, body, what, _whole_tree)
    types = [x.type for x in leaves]
    test = trace_flat(cond_fun, call, types, carry.names, f"the condition of {what}")
    _check_predicate(test)
    consts, (cond_jaxpr, body_jaxpr) = shared_consts([test, flat])
    outs = bind(While(cond_jaxpr, body_jaxpr, len(consts)), *consts, *leaves)
    return tree.unflatten(carry.treedef, outs)


def _check_predicate(test: FlatFunction) -> None:
    types = test.jaxpr.out_types
    alone = test.out_tree == tree.structure(0)
    if not alone or types[0].shape != () or types[0].dtype != np.bool_:
        raise IllTyped(
            "while_loop: the condition must give one boolean scalar",
            expected="bool[]",
            found=str(types[0]) if alone else shown_tree(test.out_tree),
        )


def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Any, Any], Any],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
) -> Carry:
    """``for i in range(lower, upper): val = body_fun(i, val)``.

    With static bounds it is a ``scan``, with traced ones a ``while_loop``. Both are differentiated
    in reverse; a ``scan`` keeps what it computes, a ``while_loop`` computes it again.

    Raises:
        IllTyped: a bound is no integer scalar, or the bounds have different dtypes; the body gives
            another type than it takes.
        BadArgument: a bound does not fit in the dtype of the other.
    """
    check_callable(body_fun, "fori_loop: body_fun")
    start, end = _bounds(lower, upper)
    value = leaves_of(init_val, "init_val")
    result: Carry
    if all(isinstance(x, int | np.integer | np.ndarray | DeviceArray) for x in (lower, upper)):
        steps = max(int(cast(int, upper)) - int(cast(int, lower)), 0)

        def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
            i, v = state
            return (ops.add(i, 1), _next_value(body_fun, i, v, value.treedef)), None

        carry = _beside([start], ["the index"], value)
        nothing = leaves_of(None, "xs")
        (_, result), _ = _scanned(step, carry, nothing, steps, False, unroll or 1, "fori_loop")
        return result

    def body(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, end, v = state
        return ops.add(i, 1), end, _next_value(body_fun, i, v, value.treedef)

    carry = _beside([start, end], ["the index", "upper"], value)
    result = _looped(lambda state: ops.less(state[0], state[1]), body, carry, "fori_loop")[2]
    return result


def _beside(bounds: Sequence[Operand], names: Sequence[str], value: Leaves) -> Leaves:
    """The carry of a counting loop: bounds, then what the user carries."""
    whole = tree.unflatten(value.treedef, value.leaves)
    treedef = tree.structure((*[0] * len(bounds), whole))
    return Leaves([*bounds, *value.leaves], treedef, [*names, *value.names])


def _next_value(
    body_fun: Callable[[Any, Any], Any], i: Any, value: Any, treedef: PyTreeDef
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
