"""Functions of sizes, symbolic or not: their names and values, broadcasts, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import NoReturn, cast

import numpy as np

from effax.ir.errors import InconclusiveDimension
from effax.ir.symbolic import (
    SizeOp,
    SymbolicDim,
    SymbolicScope,
    free_symbol,
    is_symbolic_dim,
    max_dim,
    min_dim,
    symbolic,
)


def symbols_of(size: object) -> frozenset[str]:
    """Return the names in a size."""
    found = symbolic(size)
    if found is None:
        return frozenset()
    names: set[str] = set()
    for monomial, _ in found.terms:
        for atom, _ in monomial:
            if isinstance(atom, str):
                names.add(atom)
            else:
                names |= symbols_of(atom.first) | symbols_of(atom.second)
    return frozenset(names)


def evaluated(size: int, values: Mapping[str, int]) -> int:
    """Return a size with the named sizes replaced by values, where they have one."""
    found = symbolic(size)
    if found is None:
        return size
    total = 0
    for monomial, c in found.terms:
        term = c
        for atom, p in monomial:
            own = _evaluated_atom(atom, values, found.scope)
            for _ in range(p):
                term = term * own
        total = total + term
    return total


def _evaluated_atom(atom: str | SizeOp, values: Mapping[str, int], scope: SymbolicScope) -> int:
    if isinstance(atom, str):
        value = values.get(atom)
        return free_symbol(atom, scope) if value is None else value
    x, y = evaluated(atom.first, values), evaluated(atom.second, values)
    match atom.name:
        case "floordiv":
            return x // y
        case "mod":
            return x % y
        case "max":
            return max_dim(x, y)
        case _:
            return min_dim(x, y)


def unknown_size(size: SymbolicDim, what: str) -> NoReturn:
    """Raise the error for an operation that needs known sizes."""
    raise InconclusiveDimension(
        f"{what} needs sizes that are known",
        expected="integers",
        found=str(size),
        remedy="use fixed sizes for these axes",
    )


def joint_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast. Raises ValueError where there is none.

    A symbolic size is never 1.
    """
    if not any(is_symbolic_dim(n) for shape in shapes for n in shape):
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            pass  # NumPy also raises where the result has more elements than it can count
    ndim = max(map(len, shapes))
    full = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple([_common_size(set(sizes) - {1}) for sizes in zip(*full, strict=True)])


def _common_size(sizes: set[int]) -> int:
    if len(sizes) > 1:
        raise ValueError(f"sizes {sizes} do not broadcast")
    return next(iter(sizes), 1)


def sliced(entry: slice, size: int) -> tuple[int, int, int]:
    """Return start, number of positions and step of a slice of an axis of a symbolic size."""
    step = 1 if entry.step is None else index(entry.step)
    if step == 0:
        raise ValueError("step 0")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def end(value: object, default: int) -> int:
        if value is None:
            return default
        at = cast(int, value) if is_symbolic_dim(value) else index(cast(int, value))
        return max_dim(at + size, low) if at < 0 else min_dim(at, high)

    start, stop = (low, high) if step > 0 else (high, low)
    start, stop = end(entry.start, start), end(entry.stop, stop)
    reach = stop - start if step > 0 else start - stop
    return start, max_dim((reach + abs(step) - 1) // abs(step), 0), step


def typical(size: int) -> int:
    """Return an integer for decisions about costs: a size where all named sizes are 64."""
    return evaluated(size, dict.fromkeys(symbols_of(size), 64))
