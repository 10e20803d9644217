"""``foreach``: a loop written as a decorated function, which runs where it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from effax.lax.control import scan

Xs = TypeVarTuple("Xs")
Y = TypeVar("Y")


def foreach(
    *xs: *Xs, length: int | None = None, reverse: bool = False, unroll: int | bool = 1
) -> Callable[[Callable[[*Xs], Y]], Y]:
    """Run the decorated function for each element of ``xs``, now; its name becomes the results.

    ::

        total = effax.new_ref(0)


        @effax.lax.foreach(xs)
        def ys(x):
            total[...] += x
            return x * 2

    The function may read and update references that it closes over, wherever it likes: in reverse
    mode a read of a part becomes an addition into that part, so a loop costs what it touches.

    Args:
        xs: trees of arrays and references, of one leading size. The function gets an element of
            each; of a reference, a view that it may write.
        length: the number of steps; needed where ``xs`` has no leaves.
        reverse: whether to go from the last element to the first.
        unroll: how many steps one iteration of the compiled loop takes (True: all).

    Returns:
        A decorator that gives the stacked results of the function.

    Raises:
        IllTyped: leading sizes differ.
        RefError: a reference is returned, or reaches the loop twice.
    """

    def run(body: Callable[[*Xs], Y]) -> Y:
        def step(_: None, elements: tuple[*Xs]) -> tuple[None, Y]:
            return None, body(*elements)

        return scan(step, None, xs, length, reverse, unroll)[1]

    return run
