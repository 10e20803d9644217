"""The cases of eager derivatives and control flow; the unit is a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cases
from compiled import LEVEL
from measure import Case, Thunk


def eager_cases() -> Iterator[Case]:
    """Yield calls outside of ``jit`` of one function at the same types."""
    yield cases.call("eager sin", 2, lambda _, np: _thunk(np.sin, np.ones(())))
    yield cases.call("eager grad(sin)", 8, lambda lib, np: _thunk(lib.grad(np.sin), np.ones(())))
    yield cases.call("eager vjp, pull back", 8, _vjp)
    yield cases.call("eager grad with refs", 8, _grad_with_refs)
    yield cases.call("eager jvp", 5, _jvp)
    yield cases.call("eager linearize", 5, _linearize)
    yield cases.call("eager vmap", 5, lambda lib, np: _thunk(lib.vmap(_small(np)), np.ones(3)))
    yield cases.call("eager grad of a jit", 8, _grad_of_jit)
    yield cases.call("eager vjp of a jit", 8, _vjp_of_jit)
    yield cases.call("eager vmap of a jit", 8, _vmap_of_jit)
    yield cases.call("eager scan", 5, _scan)
    yield cases.call("eager scan over a ref", 5, _scan_over_a_ref)
    yield cases.call(
        "eager matmul 1,024", LEVEL, lambda _, np: _product(np, "ij,jk->ik", 1024, 1024)
    )
    many = "bihd,bjhd->bhij"
    yield cases.call("eager einsum", LEVEL, lambda _, np: _product(np, many, 2, 128, 4, 128))
    yield cases.call("eager while, 10,000 steps", LEVEL, _while)


def _thunk(f: Any, *args: object) -> Thunk:
    return lambda: f(*args)


def _product(np: Any, subscripts: str, *shape: int) -> Thunk:
    x = np.ones(shape)

    def call() -> object:
        return np.einsum(subscripts, x, x).block_until_ready()

    return call


def _while(lib: Any, np: Any) -> Thunk:
    def body(c: Any) -> Any:
        return c[0] + 1, c[1] * 0.99

    def call() -> object:
        return lib.lax.while_loop(lambda c: c[0] < 10_000, body, (0, x))[1].block_until_ready()

    x = np.ones(())
    return call


def _small(np: Any) -> Any:
    return lambda x: np.sin(x) * x + 1.0


def _vjp(lib: Any, np: Any) -> Thunk:
    f, x = _small(np), np.ones(())
    return lambda: lib.vjp(f, x)[1](x)


def _jvp(lib: Any, np: Any) -> Thunk:
    f, x = _small(np), np.ones(())
    return lambda: lib.jvp(f, (x,), (x,))


def _linearize(lib: Any, np: Any) -> Thunk:
    f, x = _small(np), np.ones(())
    return lambda: lib.linearize(f, x)[1](x)


def _grad_with_refs(lib: Any, np: Any) -> Thunk:
    def f(x: Any) -> Any:
        r = lib.new_ref(x)
        r[...] = r[...] * x
        return np.sin(r[...])

    return _thunk(lib.grad(f), np.ones(()))


def _grad_of_jit(lib: Any, np: Any) -> Thunk:
    return _thunk(lib.grad(lib.jit(_small(np))), np.ones(()))


def _vjp_of_jit(lib: Any, np: Any) -> Thunk:
    f, x = lib.jit(_small(np)), np.ones(())
    return lambda: lib.vjp(f, x)[1](x)


def _vmap_of_jit(lib: Any, np: Any) -> Thunk:
    return _thunk(lib.vmap(lib.jit(_small(np))), np.ones(3))


def _scan(lib: Any, np: Any) -> Thunk:
    xs = np.ones(3)

    def body(c: Any, x: Any) -> Any:
        return c + x, c * x

    return lambda: lib.lax.scan(body, xs[0], xs)


def _scan_over_a_ref(lib: Any, np: Any) -> Thunk:
    xs, r = np.ones(3), lib.new_ref(np.zeros(()))

    def body(c: Any, x: Any) -> Any:
        r[...] += x
        return c + x, c * x

    return lambda: lib.lax.scan(body, xs[0], xs)
