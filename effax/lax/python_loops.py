"""Loops as loops of Python: the meaning of control flow under ``disable_jit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from effax import tree
from effax.arrays.array import Array
from effax.arrays.joining import stack
from effax.arrays.ref import Ref
from effax.ir.errors import BadArgument, ConcretizationError
from effax.lax.leaves import Leaves
from effax.tree import PyTree

TRACED: Final = object()
"""The result of a loop whose condition is traced, which is no loop of Python."""


def scan_in_python(
    f: Callable[[PyTree, PyTree], object], init: PyTree, xs: Leaves, n: int, reverse: bool
) -> tuple[PyTree, PyTree]:
    """Apply ``f`` to each of ``n`` elements, and stack its results.

    Raises BadArgument where there are none: the types of the results are unknown.
    """
    if not n:
        raise BadArgument(
            "a loop without steps has results of unknown types under disable_jit",
            expected="at least one step",
            found="0",
        )
    carry, ys = init, list[PyTree]()
    for i in reversed(range(n)) if reverse else range(n):
        element = [x.at[i] if isinstance(x, Ref) else _element(x, i) for x in xs.leaves]
        pair: PyTree = f(carry, tree.unflatten(xs.treedef, element))
        carry = pair[0]
        ys.append(pair[1])
    ordered = ys[::-1] if reverse else ys
    return carry, tree.map(lambda *parts: stack(parts), *ordered)


def _element(x: object, i: int) -> Array:
    assert isinstance(x, Array)
    return x[i]


def while_in_python(
    cond_fun: Callable[[PyTree], object], body_fun: Callable[[PyTree], object], init: PyTree
) -> PyTree:
    """Apply the body while the condition is true; return TRACED where it has no value at first."""
    try:
        more = bool(cond_fun(init))
    except ConcretizationError:
        return TRACED
    value = init
    while more:
        value = body_fun(value)
        more = bool(cond_fun(value))
    return value


def branch_in_python(
    index: Array, branches: Sequence[Callable[..., object]], operands: Sequence[PyTree]
) -> PyTree:
    """Call the branch of an index; return TRACED where that has no value."""
    try:
        chosen = int(index)
    except ConcretizationError:
        return TRACED
    return branches[chosen](*operands)
