"""Comparing results of effax with those of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import effax.numpy as jnp
from effax.arrays.array import Array
from effax.ir.errors import EffaxError

Function = Callable[..., Any]


class Refused:
    """The error that a function raised in place of a result."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def converted(x: object, to: Any) -> Any:
    """Return NumPy arrays as arrays of a library; other values unchanged."""
    if isinstance(x, np.ndarray):
        return to.asarray(x)
    if isinstance(x, list | tuple):
        return type(x)(converted(y, to) for y in x)
    return x


def all_of_jax(calls: dict[str, Callable[[Any], object]]) -> dict[str, object]:
    """Return the results or errors of many functions of ``jax.numpy``, compiled at once."""
    import jax

    refusals: dict[str, object] = {}

    def run() -> dict[str, object]:
        results: dict[str, object] = {}
        for name, call in calls.items():
            try:
                results[name] = call(jax.numpy)
            except (TypeError, ValueError, NotImplementedError) as error:
                refusals[name] = Refused(error)
        return results

    return {**jax.jit(run)(), **refusals}


def flat(result: object) -> list[Any]:
    if isinstance(result, list | tuple):
        return [leaf for r in result for leaf in flat(r)]
    return [result]


def assert_same(ours: object, theirs: object, rtol: float = 2e-6, weak: bool = True) -> None:
    """Assert equal shapes, dtypes, weakness and (nearly) values, leaf by leaf."""
    mine, other = flat(ours), flat(theirs)
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        if not isinstance(a, Array):
            np.testing.assert_equal(a, b)
            continue
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        # Booleans of JAX can be weak, which means nothing.
        if weak and a.dtype != np.bool_:
            assert a.weak_type == bool(b.weak_type)
        assert_close(np.asarray(a), np.asarray(b), rtol)


def assert_close(x: np.ndarray, y: np.ndarray, rtol: float) -> None:
    """Assert equality, of inexact dtypes up to a tolerance, wider for narrow floats."""
    if x.dtype.kind in "biu":
        np.testing.assert_array_equal(x, y)
        return
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    tolerance = rtol if x.dtype.itemsize >= 4 else 1e-2
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=tolerance, atol=tolerance)


def check(
    call: Callable[[Any], object], expected: object, rtol: float = 2e-6, weak: bool = True
) -> None:
    """Assert that ``call(effax.numpy)`` returns the expected value, or raises where JAX does."""
    if isinstance(expected, Refused):
        try:
            found = call(jnp)
        except (EffaxError, TypeError):
            return
        raise AssertionError(f"JAX refuses ({expected.error}), effax returns {found}")
    assert_same(call(jnp), expected, rtol, weak)
