"""The programs that are timed, each for both ``jnp`` and ``effax.numpy``.

``np`` is the namespace of array functions. ``constant`` becomes a literal: programs with different
constants are different, and share no cache entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

WIDTH = 8
"""The number of elements of every array, small so that arithmetic takes no time."""


def elementwise(np: Any, size: int, constant: float) -> Function:
    """Return ``size`` equations on one array: unary, and binary with an array or a scalar."""

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
    """Return the sum of :func:`elementwise`, for ``grad``."""
    f = elementwise(np, size, constant)

    def g(x: Any) -> Any:
        return np.sum(f(x))

    return g


def half_dead(np: Any, size: int, constant: float) -> Function:
    """Return two results of ``size / 2`` equations each, interleaved."""

    def f(x: Any) -> Any:
        y = z = x * constant
        for i in range(size // 2):
            y = _stage(np, i % 9, x, y)
            z = _stage(np, i % 9, x, z)
        return y, z

    return f


def updates(np: Any, size: int, constant: float) -> Function:
    """Return ``size / 4`` each of reads, products, writes and additions on elements of a ref."""

    def f(r: Any, x: Any) -> Any:
        y = x * constant
        for i in range(size // 4):
            y = y * x
            r[i % WIDTH] = y
            r[(i + 1) % WIDTH] += y
        return y

    return f


def scalar(np: Any, constant: float) -> Function:
    """Return five equations on one scalar, for nested ``grad``."""

    def f(x: Any) -> Any:
        return np.sin(x * constant) * np.tanh(x) * x

    return f


def add_one(x: Any) -> Any:
    """Take one argument."""
    return x + 1


def add_ten(*xs: Any) -> Any:
    """Take ten arguments and return one result."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def add_to_each(tree: Any) -> Any:
    """Map a dict of arrays to a dict of arrays."""
    return {name: x + 1 for name, x in tree.items()}


def count_up(r: Any, x: Any) -> Any:
    """Take a reference."""
    r[0] += x
    return x * 2


def count_up_each(rs: Any, x: Any) -> Any:
    """Take several references."""
    for r in rs:
        r[0] += x
    return x * 2
