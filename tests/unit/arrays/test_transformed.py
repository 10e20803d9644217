"""Transformed programs are kept by what a call traced, and never by the function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.arrays import transformed
from effax.ir.syntax import Jaxpr

X = jnp.float32(2.0)


class _Scale:
    """An object whose attribute a function reads."""

    factor = 3.0


def _through(name: str) -> Callable[[Callable[[Any], Any]], float]:
    """Return the derivative at 2 (for ``vmap``, the value) by a transformation."""
    return {
        "grad": lambda f: float(effax.grad(f)(X)),
        "vjp": lambda f: float(effax.vjp(f, X)[1](jnp.float32(1.0))[0]),
        "jvp": lambda f: float(effax.jvp(f, (X,), (jnp.float32(1.0),))[1]),
        "linearize": lambda f: float(effax.linearize(f, X)[1](jnp.float32(1.0))),
        "vmap": lambda f: float(effax.vmap(f)(X[None])[0]) / 2,
    }[name]


@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "linearize", "vmap"])
def test_whatever_changes_in_a_function_is_seen(name: str) -> None:
    slope, cell, items, scale = _through(name), 3.0, [3.0], _Scale()
    namespace: dict[str, Any] = {"number": 3.0}
    exec("def of_global(x): return x * number", namespace)

    def of_default(x: Any, factors: list[float] = items) -> Any:
        return x * factors[0]

    def of_cell(x: Any) -> Any:
        return x * cell

    def of_value(x: Any) -> Any:
        return x * (cell if x > 0 else 0.0)

    functions = [
        of_cell, of_default, namespace["of_global"], lambda x: x * scale.factor,
        lambda x: x * items[0], lambda x: lax.cond(True, lambda y: y * items[0], lambda y: y, x),
    ]  # fmt: skip
    if name != "vmap":  # values of batch elements are not known
        functions.append(of_value)
    for now in (3.0, 3.0, 5.0, 3.0):
        cell = items[0] = scale.factor = namespace["number"] = now
        assert [slope(f) for f in functions] == [now] * len(functions)


def test_python_runs_in_each_call() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(type(x).__name__)
        return jnp.sin(x)

    for _ in range(3):
        effax.grad(f)(X)
    assert len(seen) == 3


def test_rules_of_python_functions_are_asked_in_each_call() -> None:
    factors = [3.0]

    @effax.custom_jvp
    def f(x: Any) -> Any:
        return x

    f.defjvp(lambda primals, tangents: (primals[0], tangents[0] * factors[0]))
    for now in (3.0, 5.0):
        factors[0] = now
        assert float(effax.grad(f)(X)) == now


def test_a_program_is_transformed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    f = lambda x: jnp.cos(x) * 0.625  # noqa: E731
    first = [_through(name)(f) for name in ("grad", "jvp", "linearize", "vmap")]
    monkeypatch.setattr(transformed, "_run", None)
    assert [_through(name)(f) for name in ("grad", "jvp", "linearize", "vmap")] == first
    with effax.enable_x64(), pytest.raises(TypeError):
        effax.grad(f)(jnp.float64(2.0))


def _itself(program: Jaxpr) -> Jaxpr:
    return program


def test_equal_programs_of_other_lines_have_results_of_their_own() -> None:
    programs = [
        effax.make_jaxpr(lambda x: jnp.log(x) * 0.3125)(X).jaxpr,
        effax.make_jaxpr(lambda x: jnp.log(x) * 0.3125)(X).jaxpr,
    ]
    assert programs[0] == programs[1]
    for program in (*programs, programs[1], programs[0]):
        assert transformed.transformed(program, "id", [], partial(_itself, program)) is program


def test_gradients_are_values_of_their_own() -> None:
    g = effax.grad(lambda x: x)
    made = g(X)
    made.delete()
    assert float(g(X)) == 1.0
    assert not np.shares_memory(g(X).__array__(), g(X).__array__())
