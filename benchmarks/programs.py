"""The programs that are timed: each is written once, over ``jnp`` or ``effax.numpy``.

``np`` is the namespace of array functions. ``constant`` enters the program as a literal: programs
of different constants are different programs, so that no cache answers for one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

WIDTH = 8
"""The number of elements of every array here: what is timed is not the arithmetic."""


def elementwise(np: Any, size: int, constant: float) -> Function:
    """``size`` equations on one array: unary, binary with an array, and binary with a scalar."""

    def f(x: Any) -> Any:
        y = x * constant
        for i in range(size - 1):
            y = _stage(np, i % 9, x, y)
        return y

    return f


def _stage(np: Any, kind: int, x: Any, y: Any) -> Any:
    match kind:
        case 0:
            return np.sin(y)
        case 1:
            return y * x
        case 2:
            return y + 0.5
        case 3:
            return np.tanh(y)
        case 4:
            return y - x
        case 5:
            return y * 0.9
        case 6:
            return np.exp(y)
        case 7:
            return y / x
        case _:
            return 1.5 - y


def loss(np: Any, size: int, constant: float) -> Function:
    """The sum of :func:`elementwise`: what ``grad`` takes."""
    f = elementwise(np, size, constant)

    def g(x: Any) -> Any:
        return np.sum(f(x))

    return g


def half_dead(np: Any, size: int, constant: float) -> Function:
    """Two results of ``size / 2`` equations each, which take turns."""

    def f(x: Any) -> Any:
        y = z = x * constant
        for i in range(size // 2):
            y = _stage(np, i % 9, x, y)
            z = _stage(np, i % 9, x, z)
        return y, z

    return f


def updates(np: Any, size: int, constant: float) -> Function:
    """A quarter of ``size`` each: reads of a ref, products, writes and sums into its elements."""

    def f(r: Any, x: Any) -> Any:
        y = x * constant
        for i in range(size // 4):
            y = y * x
            r[i % WIDTH] = y
            r[(i + 1) % WIDTH] += y
        return y

    return f


def scalar(np: Any, constant: float) -> Function:
    """Five equations on one scalar: what nested ``grad`` takes."""

    def f(x: Any) -> Any:
        return np.sin(x * constant) * np.tanh(x) * x

    return f


def add_one(x: Any) -> Any:
    """One argument."""
    return x + 1


def add_ten(*xs: Any) -> Any:
    """Ten arguments, one result."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def add_to_each(tree: Any) -> Any:
    """A dict of arrays to a dict of arrays."""
    return {name: x + 1 for name, x in tree.items()}


def count_up(r: Any, x: Any) -> Any:
    """A reference as an argument."""
    r[0] += x
    return x * 2


def count_up_each(rs: Any, x: Any) -> Any:
    """References as arguments."""
    for r in rs:
        r[0] += x
    return x * 2
