"""Sparse evaluation of programs: functions of dense arrays applied to sparse ones.

A function is traced on dense arrays of the same shapes; its program runs with sparse arrays in
their place. Each equation on one has a rule, which returns a sparse array, or a dense one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Final, cast

import numpy as np

import effax.numpy as jnp
from effax import lax, tree
from effax.api.staging import ShapeDtypeStruct, make_jaxpr
from effax.arrays.array import Array
from effax.arrays.binding import bind
from effax.arrays.conversion import from_numpy
from effax.experimental.sparse.bcoo import (
    BCOO,
    TODENSE,
    bcoo_multiply_dense,
    bcoo_todense,
    is_sparse,
)
from effax.experimental.sparse.duplicates import bcoo_sum_duplicates
from effax.experimental.sparse.products import bcoo_dot_general, bcoo_multiply_sparse
from effax.experimental.sparse.structure import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    permuted,
)
from effax.ir import prims as p
from effax.ir.errors import IllTyped, NotSupported
from effax.ir.eval.numpy import literal_value
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.tree import PyTree

__all__ = ["sparsify"]

Value = Array | BCOO
Values = tuple[Value, ...]
Rule = Callable[..., Value]


def sparsify(f: Callable[..., object], use_tracer: bool = False) -> Callable[..., PyTree]:
    """Return ``f`` as a function of sparse arrays as well, sparse where its operations keep zeros.

    Args:
        f: function of trees of arrays.
        use_tracer: accepted as in JAX.

    Raises:
        NotSupported: (by the result) an operation on a sparse array would have a dense result, or
            has no rule.
        IllTyped: branches, or the steps of a loop, differ in which arrays are sparse.

    >>> from effax.experimental import sparse
    >>> f = sparse.sparsify(lambda x, y: jnp.sin(x).T @ y)
    >>> f(sparse.eye(2), jnp.array([1.0, 2.0]))
    Array([0.841471, 1.682942], dtype=float32)
    """
    del use_tracer

    @wraps(f)
    def sparse_function(*args: object, **kwargs: object) -> PyTree:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=is_sparse)

        def dense(*xs: object) -> object:
            given, named = cast("tuple[list[object], dict[str, object]]", treedef.unflatten(xs))
            return f(*given, **named)

        shapes = [ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, BCOO) else x for x in leaves]
        closed, out = make_jaxpr(dense, return_shape=True)(*shapes)
        values = [x if isinstance(x, BCOO) else jnp.asarray(x) for x in (*closed.consts, *leaves)]
        return tree.unflatten(tree.structure(out), evaluate(closed.jaxpr, values))

    return sparse_function


def evaluate(jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Return the results of a program on dense and sparse arrays."""
    values = dict(zip(jaxpr.binders, args, strict=True))

    def read(atom: Atom) -> Value:
        return _number(atom) if isinstance(atom, Lit) else values[atom]

    for eqn in jaxpr.eqns:
        values.update(zip(eqn.outs, _applied(eqn, [read(a) for a in eqn.ins]), strict=True))
    return [read(a) for a in jaxpr.outs]


def _number(literal: Lit) -> Array:
    return from_numpy(literal_value(literal), literal.type.weak)


def _applied(eqn: Eqn, ins: Sequence[Value]) -> Sequence[Value]:
    prim = eqn.prim
    if not any(map(is_sparse, ins)):
        return cast("Sequence[Array]", bind(prim, *cast("Sequence[Array]", ins)))
    if isinstance(prim, p.Jit) and prim.label == TODENSE:
        return [bcoo_todense(cast(BCOO, ins[0]))]
    if isinstance(prim, p.Cond | p.While | p.Scan):
        return _controlled(prim, ins)
    called = prim.subjaxprs()
    if len(called) == 1 and len(called[0].binders) == len(ins):
        return evaluate(called[0], ins)
    rule = _RULES.get(type(prim)) or (_keeping_zero if prim.is_elementwise else None)
    if rule is None:
        raise NotSupported(f"sparse rule for {prim.name} is not implemented", found=str(eqn))
    return [rule(prim, *ins)]


def _controlled(prim: p.Cond | p.While | p.Scan, ins: Sequence[Value]) -> Sequence[Value]:
    """Return the results of control flow, with sparse arrays among operands and results."""
    if isinstance(prim, p.Cond):
        branches = [_function(j) for j in prim.branches]
        return cast("Sequence[Value]", lax.switch(jnp.asarray(ins[0], int), branches, *ins[1:]))
    consts, rest = ins[: prim.n_consts], ins[prim.n_consts :]
    if isinstance(prim, p.While):
        again, step = _function(prim.cond), _function(prim.body)
        return cast(
            "Sequence[Value]",
            lax.while_loop(
                lambda c: again(*consts, *c)[0], lambda c: step(*consts, *c), tuple(rest)
            ),
        )
    body, n = _function(prim.jaxpr), prim.n_carry

    def turn(carry: Values, xs: Values) -> tuple[Values, Values]:
        outs = body(*consts, *carry, *xs)
        return outs[:n], outs[n:]

    carry, ys = lax.scan(
        turn, tuple(rest[:n]), tuple(rest[n:]), prim.length, prim.reverse, prim.unroll
    )
    return [*carry, *ys]


def _function(jaxpr: Jaxpr) -> Callable[..., tuple[Value, ...]]:
    return lambda *args: tuple(evaluate(jaxpr, args))


_LINEAR: Final = (p.Neg, p.Copy, p.Real, p.Imag, p.Conj)


def _keeping_zero(prim: Primitive, *xs: Value) -> Value:
    """Apply a function whose value at 0 is 0 to the elements."""
    (x,) = xs if len(xs) == 1 else (None,)
    if not isinstance(x, BCOO):
        raise NotSupported(f"sparse rule for {prim.name} is not implemented")
    with np.errstate(all="ignore"):
        at_zero = np.asarray(prim.evaluate(np.zeros((), x.dtype))[0])
    if at_zero != 0:
        raise NotSupported(
            f"sparse rule for {prim.name} is not implemented because it would result in dense "
            "output",
            found=f"{prim.name}(0) = {at_zero}",
            remedy="use `sparse.todense(x)` first",
        )
    # f(x + y) of elements of one index is not f(x) + f(y).
    alone = x if isinstance(prim, _LINEAR) else bcoo_sum_duplicates(x, x.nse)
    return alone.with_data(cast(Array, bind(prim, alone.data)[0]))


def _mul(prim: p.Mul, x: Value, y: Value) -> Value:
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return bcoo_multiply_sparse(x, y)
    mat, other = (x, y) if isinstance(x, BCOO) else (cast(BCOO, y), x)
    return mat.with_data(bcoo_multiply_dense(mat, cast(Array, other)))


def _div(prim: p.Div, x: Value, y: Value) -> Value:
    if isinstance(y, BCOO) or not isinstance(x, BCOO):
        raise NotSupported("a division by a sparse array would result in dense output")
    # 1 for padding, where elements of `y` are 0.
    ones = BCOO((jnp.ones_like(x.data), x.indices), shape=x.shape)
    divisor = bcoo_multiply_dense(ones, y)
    inside = bcoo_multiply_dense(ones, jnp.ones((), y.dtype)) != 0
    return x.with_data(cast(Array, bind(prim, x.data, jnp.where(inside, divisor, 1))[0]))


def _add(prim: p.Add | p.Sub, x: Value, y: Value) -> Value:
    if x.shape != y.shape:
        raise NotSupported(
            "Addition between a sparse array X and a dense array Y is not implemented for other "
            "shapes",
            expected=str(x.shape),
            found=str(y.shape),
        )
    if isinstance(prim, p.Sub):
        y = -y
    if not isinstance(x, BCOO) or not isinstance(y, BCOO):
        a, b = (bcoo_todense(v) if isinstance(v, BCOO) else v for v in (x, y))
        return a + b
    if x.indices is y.indices:
        return x.with_data(x.data + y.data)
    if x.n_batch != y.n_batch or x.n_dense != y.n_dense:
        x, y = (bcoo_reshape(v, new_sizes=v.shape) for v in (x, y))
    return x + y


def _concatenate(prim: p.Concatenate, *xs: Value) -> Value:
    if not all(map(is_sparse, xs)):
        raise IllTyped("sparse arrays are joined with sparse ones", found=f"{xs}")
    return bcoo_concatenate(cast("Sequence[BCOO]", xs), dimension=prim.dimension)


def _reduce_sum(prim: p.ReduceSum, x: BCOO) -> Value:
    found = bcoo_reduce_sum(x, axes=prim.axes)
    return found if found.ndim else bcoo_todense(found)


def _expanded(prim: p.ExpandDims, x: BCOO) -> Value:
    rank = x.ndim + len(prim.dimensions)
    kept = [i for i in range(rank) if i not in prim.dimensions]
    sizes = dict(zip(kept, x.shape, strict=True))
    shape = [sizes.get(i, 1) for i in range(rank)]
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept)


def _dot_general(prim: p.DotGeneral, x: Value, y: Value) -> Value:
    return bcoo_dot_general(
        x,
        y,
        dimension_numbers=prim.dimension_numbers,
        preferred_element_type=prim.preferred_element_type,
    )


def _slice(prim: p.Slice, x: BCOO) -> Value:
    ends = {"start_indices": prim.start_indices, "limit_indices": prim.limit_indices}
    return bcoo_slice(x, **ends, strides=prim.strides)


_RULES: Final[dict[type[Primitive], Rule]] = {
    p.Add: _add,
    p.Sub: _add,
    p.Mul: _mul,
    p.Div: _div,
    p.DotGeneral: _dot_general,
    p.ReduceSum: _reduce_sum,
    p.Concatenate: _concatenate,
    p.ExpandDims: _expanded,
    p.BroadcastInDim: lambda prim, x: bcoo_broadcast_in_dim(
        x, shape=prim.shape, broadcast_dimensions=prim.broadcast_dimensions
    ),
    p.Reshape: lambda prim, x: bcoo_reshape(x, new_sizes=prim.new_sizes),
    p.Squeeze: lambda prim, x: bcoo_squeeze(x, dimensions=prim.dimensions),
    p.Rev: lambda prim, x: bcoo_rev(x, prim.dimensions),
    p.Slice: _slice,
    p.DynamicSlice: lambda prim, x, *starts: bcoo_dynamic_slice(x, starts, prim.slice_sizes),
    p.Transpose: lambda prim, x: permuted(x, prim.permutation),
}
