"""Values that the compiler does not move, merge or remove, and tokens that order them."""

from __future__ import annotations

from typing import TypeVar, cast

from effax import tree
from effax.arrays import creation
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind, bind1
from effax.arrays.conversion import as_value
from effax.arrays.ref import Ref
from effax.ir.prims import Copy, DceSink, OptimizationBarrier

__all__ = ["after_all", "create_token", "dce_sink", "optimization_barrier", "stage"]

T = TypeVar("T")


def optimization_barrier(operand: T, /) -> T:
    """Return ``operand``, a tree of arrays, all of which is computed before any of it is used.

    The compiler neither fuses nor merges operations across a barrier. Derivatives pass through
    barriers of their own.

    Args:
        operand: tree of arrays; references in it are returned unchanged, as their accesses stay
            in program order.

    Returns:
        Tree of the same arrays.

    Raises:
        IllTyped: a leaf is not an array.

    >>> x, y = lax.optimization_barrier((jnp.array(1.0), jnp.array([2, 3])))
    >>> y
    Array([2, 3], dtype=int32)
    """
    leaves, treedef = tree.flatten(cast("tree.PyTree", operand))
    what = "an operand of optimization_barrier"
    values = [as_value(x, what) for x in leaves if not isinstance(x, Ref)]
    if not values:
        return operand
    made = iter(bind(OptimizationBarrier(), *values))
    return cast(
        T, tree.unflatten(treedef, [x if isinstance(x, Ref) else next(made) for x in leaves])
    )


def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> None:
    """Use ``val``, a tree of arrays, so that no pass removes what computes it from a program.

    Args:
        val: tree of arrays.
        prevent_mlir_dce: whether the compiler, too, keeps what computes it; this costs a call of a
            Python function.

    Raises:
        IllTyped: a leaf is not an array.

    >>> print(jax.make_jaxpr(lambda x: lax.dce_sink(x + 1))(1).effects)
    {io debug}
    """
    for leaf in tree.leaves(cast("tree.PyTree", val)):
        bind(DceSink(prevent_mlir_dce), as_value(leaf, "the operand of dce_sink"))


def stage(x: ArrayLike, /) -> Array:
    """Return ``x`` as a value of the program that is traced; outside of one, as an array.

    Raises IllTyped for what is no array.

    >>> lax.stage(3)
    Array(3, dtype=int32, weak_type=True)
    """
    return bind1(Copy(), as_value(x, "the operand of stage"))


def create_token(_: object = None) -> Array:
    """Return a token, an array without elements: it orders values by :func:`after_all`.

    >>> lax.create_token().shape
    (0,)
    """
    return creation.zeros((0,), bool)


def after_all(*operands: ArrayLike) -> Array:
    """Return a token that depends on all operands.

    Args:
        operands: tokens, or other arrays.

    Returns:
        A token.

    >>> lax.after_all(lax.create_token(), jnp.ones(2)).shape
    (0,)
    """
    values = [as_value(x, "an operand of after_all") for x in operands]
    return optimization_barrier([create_token(), *values])[0]
