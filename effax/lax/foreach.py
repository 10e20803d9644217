"""``foreach``: a loop as a decorated function, run at its definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from effax.lax.control import scan

__all__ = ["foreach"]

Xs = TypeVarTuple("Xs")
Y = TypeVar("Y")


def foreach(
    *xs: *Xs, length: int | None = None, reverse: bool = False, unroll: int | bool = 1
) -> Callable[[Callable[[*Xs], Y]], Y]:
    """Run the decorated function for each element of ``xs``, and bind its name to the results.

    The function may read and update references that it closes over; in reverse mode a read of a
    part becomes an addition into that part, so the cost is that of the parts accessed.

    Args:
        xs: trees of arrays and references, of one leading size; an element of a reference is a
            view.
        length: number of steps; required where ``xs`` has no leaves.
        reverse: whether to go from the last element to the first.
        unroll: number of steps per iteration of the compiled loop; True for all.

    Returns:
        Decorator that returns the stacked results of the function.

    Raises:
        IllTyped: leading sizes differ.
        RefError: a reference is returned, or reaches the loop twice.

    >>> ys = lax.foreach(jnp.array([1, 2]))(lambda x: x * 2)
    >>> ys
    Array([2, 4], dtype=int32)
    """

    def run(body: Callable[[*Xs], Y]) -> Y:
        def step(_: None, elements: tuple[*Xs]) -> tuple[None, Y]:
            return None, body(*elements)

        return scan(step, None, xs, length, reverse, unroll)[1]

    return run
