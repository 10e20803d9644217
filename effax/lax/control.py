"""Loops over leading axes: scan and map.

A body may close over arrays, tracers and references, which become constants
of the loop. References are closed over or scanned, never carried or returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast, overload

from effax import tree
from effax.arrays.argument_checks import as_integer, check_callable
from effax.arrays.array import Array
from effax.arrays.batching import vmap
from effax.arrays.binding import bind
from effax.arrays.config import config
from effax.arrays.ref import Ref
from effax.arrays.ref_view import RefView
from effax.arrays.trace_cache import trace_once
from effax.arrays.tracing import FlatFunction, TraceOptions, shown_tree, trace_flat
from effax.arrays.view_arguments import BorrowedView, borrow_view, check_borrowed, has_views
from effax.ir.analysis.variance import Names
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.prims import Scan
from effax.ir.prims.scan import element_type
from effax.ir.trace import shown_ref
from effax.ir.types import Type
from effax.lax import shape
from effax.lax.carries import call_tree, no_refs, stable_carry, stable_variance
from effax.lax.leaves import Leaves, leaves_of
from effax.lax.python_loops import scan_in_python
from effax.tree import PyTree, PyTreeDef

__all__ = ["map", "scan"]

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[Array, Y]],
    init: complex,
    xs: X,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Array, None], tuple[Array, Y]],
    init: complex,
    xs: None = ...,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...
@overload
def scan(
    f: Callable[[Carry, None], tuple[Carry, Y]],
    init: Carry,
    xs: None = ...,
    length: int | None = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
    _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...
def scan(
    f: Callable[[PyTree, PyTree], object],
    init: object,
    xs: object = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[PyTree, PyTree]:
    """Loop over leading axes with a carry.

    Args:
        f: function ``(carry, x) -> (carry, y)``, where ``x`` is an element of ``xs``.
        init: first carry, a tree of arrays.
        xs: tree of arrays and references of one leading size, or None; an element of a reference is
            a view that ``f`` may write.
        length: number of steps; required where ``xs`` has no leaves.
        reverse: whether to go from the last element to the first.
        unroll: number of steps per iteration of the compiled loop; True for all.
        _split_transpose: ignored: the transpose separates the sums of constants by itself.

    Returns:
        Pair of the last carry and the tree of stacked ``y``s.

    Raises:
        IllTyped: ``f`` returns another carry type than it takes, or leading sizes differ.
        RefError: a reference is carried, returned, or reaches the loop twice.

    >>> lax.scan(lambda c, x: (c + x, c), 0, jnp.array([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 1, 3], dtype=int32))
    """
    check_callable(f, "scan")
    return _over(f, leaves_of(init, "init"), xs, length, reverse, unroll, "scan")


def _over(
    f: Callable[[PyTree, PyTree], object],
    carry: Leaves,
    xs: object,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
    what: str,
) -> tuple[PyTree, PyTree]:
    """Apply :func:`scanned` to a tree, with local references in place of its views."""
    leaves, treedef = tree.flatten(xs)
    if not has_views(leaves):
        return scanned(f, carry, leaves_of(xs, "xs"), length, reverse, unroll, what)
    names = ["xs" + path for path in tree.paths(xs)]
    views = {
        i: borrow_view(x, names[i])
        for i, x in enumerate(leaves)
        if isinstance(x, RefView) and x.shape
    }
    operands = [views[i].local if i in views else x for i, x in enumerate(leaves)]
    given = leaves_of(tree.unflatten(treedef, operands), "xs")
    return scanned(f, carry, given, length, reverse, unroll, what, list(views.values()))


def scanned(
    f: Callable[[PyTree, PyTree], object],
    carry: Leaves,
    xs: Leaves,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
    what: str,
    views: Sequence[BorrowedView] = (),
    of: Callable[..., object] | None = None,
) -> tuple[PyTree, PyTree]:
    """Apply :func:`scan` to flattened trees; ``what`` is its name in messages.

    ``of`` is the user's function, where ``f`` is made of it anew in each call.

    Raises RefError where ``f`` also uses the reference of one of ``views``, borrowed in ``xs``.
    """
    no_refs(carry, what)
    unrolled = _unrolled(unroll, what)
    n = _length(xs, length, what)
    if config.disable_jit and not views:
        return scan_in_python(f, tree.unflatten(carry.treedef, carry.leaves), xs, n, reverse)
    types = [element_type(t) for t in xs.types]
    names = [*carry.names, *xs.names]

    def body(carry_types: Sequence[Type]) -> FlatFunction:
        def traced(differs: Sequence[Names] | None) -> FlatFunction:
            if differs is None and not any(isinstance(x, Ref) for x in xs.leaves):
                inputs = [*carry_types, *types]
                call = call_tree(carry.treedef, xs.treedef)
                return trace_once(f, call, inputs, names, f"the body of {what}", of, what)
            return trace_flat(
                f,
                call_tree(carry.treedef, xs.treedef),
                [*carry_types, *types],
                names,
                f"the body of {what}",
                TraceOptions([*[None] * len(carry_types), *xs.leaves], differs=differs),
            )

        return stable_variance(traced, carry.leaves, xs.leaves)

    flat, carry_leaves = stable_carry(carry, body, what, _scan_carry_tree)
    carry_tree, y_tree = _pair(flat.out_tree)
    n_carry = len(carry.leaves)
    steps = max(n, 1) if unrolled is None else max(unrolled, 1)
    operands = [*flat.consts, *carry_leaves, *xs.leaves]
    check_borrowed(views, operands, what)
    prim = Scan(flat.jaxpr, n, bool(reverse), len(flat.consts), n_carry, steps)
    outs = bind(prim, *operands)
    for view in views:
        view.end(flat.jaxpr, operands)
    return (
        tree.unflatten(carry_tree, outs[:n_carry]),
        tree.unflatten(y_tree, outs[n_carry:]),
    )


def _unrolled(unroll: object, what: str) -> int | None:
    """Return the steps per iteration; None for all. Raises BadArgument."""
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
            f"{what} has an unknown number of steps",
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
            "scan: the body must return a pair (carry, y)",
            expected="(carry, y)",
            found=shown_tree(flat.out_tree),
        )
    return _pair(flat.out_tree)[0]


def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply ``f`` to each element of ``xs`` along the leading axis, and stack the results.

    Args:
        f: function of an element.
        xs: tree of arrays and references of one leading size.
        batch_size: number of elements to which ``f`` is applied at a time, by ``vmap``; 0 for
            all; arrays only.

    Returns:
        Tree of stacked results.

    Raises:
        IllTyped: leading sizes differ.
        RefError: a reference is mapped over in batches.
        BadArgument: ``xs`` has no leaves, or ``batch_size`` is negative.

    >>> lax.map(lambda x: x * 2, jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    check_callable(f, "map")
    if batch_size is not None:
        return _in_batches(f, leaves_of(xs, "xs"), as_integer(batch_size, "map: batch_size"))
    init = leaves_of(None, "init")
    made: Y = _over(lambda _, x: (None, f(x)), init, xs, None, False, 1, "map")[1]
    return made


def _in_batches(f: Callable[[X], Y], xs: Leaves, size: int) -> Y:
    if size < 0:
        raise BadArgument("map: batch_size is negative", "at least 0; 0 for all", str(size))
    for x, name in zip(xs.leaves, xs.names, strict=True):
        if isinstance(x, Ref):
            raise RefError(
                f"map in batches: {name} is a reference",
                expected="an array",
                found=shown_ref(x),
                remedy="leave out `batch_size`, or close over the reference",
            )
    n = _length(xs, None, "map")
    arrays = [cast(Array, x) for x in xs.leaves]
    batched = vmap(f)

    def part(pieces: Sequence[Array]) -> X:
        made: X = tree.unflatten(xs.treedef, pieces)
        return made

    if size == 0:
        return batched(part(arrays))
    whole, rest = divmod(n, size)
    parts: list[Y] = []
    if whole or not rest:
        head = [
            shape.reshape(shape.slice_in_dim(x, 0, whole * size), (whole, size, *x.shape[1:]))
            for x in arrays
        ]

        def step(_: None, x: X) -> tuple[None, Y]:
            return None, batched(x)

        _, ys = scan(step, None, part(head), whole)
        joined = tree.map(lambda y: shape.reshape(y, (whole * size, *y.shape[2:])), ys)
        parts.append(joined)
    if rest:
        parts.append(batched(part([shape.slice_in_dim(x, whole * size, n) for x in arrays])))
    if len(parts) == 1:
        return parts[0]
    whole_ys: Y = tree.map(lambda *ys: shape.concatenate(ys, 0), *parts)
    return whole_ys
