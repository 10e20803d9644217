"""Callbacks: their arguments, their order, and the use of their results."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Log = list[Any]


def _reported(jax: Any, run: Callable[[Callable[..., None]], object]) -> object:
    """Return the result of ``run`` and the arguments of all calls of its callback, in order."""
    log: Log = []

    def record(*args: Any) -> None:
        log.extend(np.asarray(x) for x in args)

    result = run(record)
    jax.effects_barrier()
    return result, log


def _io(jax: Any) -> Any:
    return import_module(f"{jax.__name__}.experimental").io_callback


def ordered_callbacks_in_loops(jax: Any, jnp: Any) -> object:
    def run(record: Callable[..., None]) -> object:
        def say(*args: Any) -> None:
            jax.debug.callback(record, *args, ordered=True)

        def report_and_add(x: Any, value: Any) -> Any:
            say(value)
            return x + 1

        def body(i: Any, x: Any) -> Any:
            say(i, x)
            x = jax.lax.cond(i % 2 == 0, lambda x: report_and_add(x, x * 10), lambda x: x, x)
            return jax.lax.while_loop(lambda x: x % 3 != 0, lambda x: report_and_add(x, -x), x)

        return jax.jit(lambda x: jax.lax.fori_loop(0, 4, body, x))(jnp.float32(1.0))

    return _reported(jax, run)


def derivatives_report_primal_values(jax: Any, jnp: Any) -> object:
    def run(record: Callable[..., None]) -> object:
        def f(x: Any) -> Any:
            y = jnp.sin(x)
            jax.debug.callback(record, y, ordered=True)
            return y * x

        x = jnp.float32(0.5)
        return jax.grad(f)(x), jax.jit(jax.grad(f))(x), jax.jvp(f, (x,), (x,)), jax.hessian(f)(x)

    return _reported(jax, run)


def batch_elements_report_in_order(jax: Any, jnp: Any) -> object:
    def run(record: Callable[..., None]) -> object:
        def f(x: Any, y: Any) -> Any:
            jax.debug.callback(record, x, y)
            return x + y

        return jax.vmap(f, in_axes=(0, None))(jnp.arange(3.0), 2.0)

    return _reported(jax, run)


def printed_formats(jax: Any, jnp: Any) -> object:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):

        def f(x: Any) -> Any:
            jax.debug.print("x = {x}, {0:.3f} {y[b]} {{}}", x[0], x=x, y={"b": x > 1}, ordered=True)
            jax.debug.print("{} {}", "word", 2, ordered=True)
            return x

        f(jnp.array([1.0, 2.5]))
        jax.jit(f)(jnp.array([1.0, 2.5]))
        jax.effects_barrier()
    return [np.array([ord(c) for c in out.getvalue()])]


def results_are_requested_in_order(jax: Any, jnp: Any) -> object:
    count = iter(range(100))

    def ask(x: Any) -> Any:
        scalar = jax.ShapeDtypeStruct((), np.int32)
        return _io(jax)(lambda x: np.int32(next(count) + x), scalar, x, ordered=True)

    def f(x: Any) -> Any:
        first, _, third = ask(x), ask(x), ask(x)
        last, rest = jax.lax.scan(lambda c, _: (ask(c), c), third, None, length=3)
        return first, third, last, rest

    return f(jnp.int32(0)), jax.jit(f)(jnp.int32(10))


def pure_callbacks_in_batches(jax: Any, jnp: Any) -> object:
    found = []
    for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all"):

        def f(x: Any, y: Any, method: str = method) -> Any:
            shape = jax.ShapeDtypeStruct(jnp.shape(x), np.float32)
            return jax.pure_callback(
                lambda x, y: np.asarray(x) * 2 + np.asarray(y), shape, x, y, vmap_method=method
            )

        found.append(jax.jit(jax.vmap(f, in_axes=(0, None)))(jnp.arange(4.0), 1.0))
        found.append(jax.vmap(f)(jnp.arange(4.0), jnp.arange(4.0)))
    return found


def unordered_io_callbacks_in_batches(jax: Any, jnp: Any) -> object:
    scalar = jax.ShapeDtypeStruct((), np.float32)
    return jax.vmap(lambda x: _io(jax)(lambda x: np.float32(x + 1), scalar, x))(jnp.arange(3.0))


def callbacks_with_rules(jax: Any, jnp: Any) -> object:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: np.sin(x), shape, x, vmap_method="expand_dims")

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), jnp.cos(primals[0]) * tangents[0]

    x = jnp.arange(3.0)
    return f(x), jax.vmap(jax.grad(f))(x), jax.jit(jax.grad(lambda x: f(x).sum()))(x)


def trees_of_arguments_and_answers(jax: Any, jnp: Any) -> object:
    shape = {"a": jax.ShapeDtypeStruct((2,), np.float32), "b": (jax.ShapeDtypeStruct((), bool),)}

    def answer(x: Any, *, scale: Any) -> Any:
        return {"a": np.asarray(x["u"]) * np.asarray(scale), "b": (np.asarray(x["v"]) > 0,)}

    def f(x: Any) -> Any:
        return jax.pure_callback(answer, shape, {"u": x, "v": x[1]}, scale=x[0])

    return f(jnp.array([3.0, -1.0])), jax.jit(f)(jnp.array([2.0, 1.0]))
