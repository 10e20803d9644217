"""Checks of the options of public functions: callables, positions, names, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import isgeneratorfunction
from operator import index
from types import FunctionType, MethodType

import numpy as np

from effax.ir.errors import BadArgument, ConcretizationError
from effax.ir.symbolic import SymbolicDim, as_int


def check_callable(fun: object, what: str, or_else: str = "") -> Callable[..., object]:
    """Return ``fun``. Raises BadArgument unless it is callable; ``or_else`` is also accepted."""
    if not callable(fun):
        raise BadArgument(
            f"{what} takes a function{or_else and f' or {or_else}'}",
            expected=f"a callable{or_else and f', or {or_else}'}",
            found=f"{type(fun).__name__}: {fun!r:.60}",
        )
    # The look into other objects takes longer than the call of many a jitted function.
    if isinstance(fun, FunctionType | MethodType | partial) and isgeneratorfunction(fun):
        raise BadArgument(
            f"{what} takes a function, not a generator",
            expected="a function that returns arrays",
            found=f"{fun!r:.60}",
            remedy="return a list of what it yields",
        )
    return fun


def as_integer(x: object, what: str) -> int:
    """Return ``x`` as a Python integer. Raises BadArgument for a boolean, a float, a string, ..."""
    if isinstance(x, SymbolicDim):
        return as_int(x)
    if not isinstance(x, bool | str):
        try:
            return index(x)  # type: ignore[arg-type]  # raises TypeError for other types
        except ConcretizationError as error:
            error.what = f"{what}: {error.what}"
            raise
        except TypeError:
            value = getattr(x, "numpy", None)
            if getattr(x, "shape", None) == () and callable(value):
                value()  # raises ConcretizationError for a symbol
    raise BadArgument(
        f"{what} must be an integer", expected="an integer", found=f"{type(x).__name__}: {x!r:.60}"
    )


def integers(x: object, what: str) -> tuple[int, ...]:
    """Return one integer or a sequence of them as a tuple. Raises BadArgument."""
    if (isinstance(x, Sequence) and not isinstance(x, str)) or (
        isinstance(x, np.ndarray) and x.ndim == 1
    ):
        return tuple(as_integer(n, f"each entry of {what}") for n in x)
    return (as_integer(x, what),)


def strings(x: object, what: str) -> tuple[str, ...]:
    """Return one string or a sequence of them as a tuple. Raises BadArgument."""
    names = (x,) if isinstance(x, str) else x
    if isinstance(names, Sequence) and all(isinstance(n, str) for n in names):
        return tuple(names)
    raise BadArgument(
        f"{what} must be names of arguments",
        expected="a string, or a sequence of strings",
        found=f"{type(x).__name__}: {x!r:.60}",
    )


def argument_positions(argnums: object, n_args: int, what: str) -> tuple[int, ...]:
    """Return the positions in ``argnums``, counted from the front. Raises BadArgument."""
    nums = integers(argnums, f"{what}: argnums")
    for n in nums:
        if not -n_args <= n < n_args:
            raise BadArgument(
                f"{what}: argnums names an argument that the call does not have",
                expected=f"{-n_args} to {n_args - 1}" if n_args else "an argument by position",
                found=f"{n}, in a call with {n_args} by position",
                remedy="pass the argument by position",
            )
    return tuple(n % n_args for n in nums)


def axis_name_of(x: object, what: str) -> str:
    """Return the name of an axis. Raises BadArgument unless it is a nonempty string."""
    if isinstance(x, str) and x:
        return x
    raise BadArgument(
        f"{what} must be the name of an axis",
        expected="a nonempty string",
        found=f"{type(x).__name__}: {x!r:.60}",
    )


def axis_names_of(x: object, what: str) -> tuple[str, ...]:
    """Return one name of an axis or a sequence of them as a tuple. Raises BadArgument."""
    names = x if isinstance(x, tuple | list) else (x,)
    found = tuple(axis_name_of(name, what) for name in names)
    if not found or len(set(found)) < len(found):
        raise BadArgument(
            f"{what} names no axis, or an axis twice",
            expected="at least one name, each once",
            found=repr(found),
        )
    return found
