"""Small differentiable functions of one argument, each with a point, for all transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Make = Callable[[Any, Any], Callable[[Any], Any]]


class Function(NamedTuple):
    """A function from an array to an array, made for a namespace, and a point.

    ``pure`` is the same function without references, for what JAX cannot do with them.
    """

    make: Make
    point: object
    pure: Make | None = None


def _vector(n: int = 3) -> np.ndarray:
    return np.linspace(0.3, 1.4, n, dtype=np.float32)


def _matrix() -> np.ndarray:
    return np.linspace(-1.0, 1.5, 6, dtype=np.float32).reshape(2, 3)


def _scan(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    def step(c: Any, x: Any) -> tuple[Any, Any]:
        return jnp.sin(c) * x, c + x

    def f(xs: Any) -> Any:
        c, ys = jax.lax.scan(step, jnp.float32(0.5), xs)
        return ys * c

    return f


def _scan_of_cond(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    def step(c: Any, x: Any) -> tuple[Any, Any]:
        c = jax.lax.cond(x > 0.8, lambda c: c * x, lambda c: c + jnp.cos(x), c)
        return c, c * c

    return lambda xs: jax.lax.scan(step, jnp.float32(0.7), xs, reverse=True)[1]


def _while(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    # The number of iterations does not depend on the differentiated input.
    def f(x: Any) -> Any:
        return jax.lax.fori_loop(0, 4, lambda i, v: jnp.sin(v) + x * i, x)

    return f


def _switch(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    branches = [lambda x: x, lambda x: x * x, jnp.exp]
    return lambda x: sum(jax.lax.switch(i, branches, x) for i in (jnp.int32(1), jnp.int32(7)))


def _jitted(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    inner = jax.jit(lambda x, y: jnp.tanh(x) * y)
    return lambda x: inner(x, 2.0) + inner(x, x)


def _custom_jvp(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), 3.0 * jnp.cos(x) * t

    return lambda x: f(x) * x


def _internal_ref(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = jnp.sin(ref[...])
        ref[...] += x * x
        return ref[...] * ref[...]

    return f


def _vmapped(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    return lambda m: jax.vmap(lambda r: jnp.dot(r, jnp.cos(r)))(m)


def _gradient(jax: Any, jnp: Any) -> Callable[[Any], Any]:
    return jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3))  # type: ignore[no-any-return]  # jax is Any


FUNCTIONS: dict[str, Function] = {
    "square": Function(lambda jax, jnp: lambda x: x * x, _vector()),
    "scalar": Function(lambda jax, jnp: lambda x: jnp.sin(x) / x, np.float32(0.7)),
    "python_float": Function(lambda jax, jnp: lambda x: jnp.sin(x) * 2 + 1, 0.7),
    "constant": Function(lambda jax, jnp: lambda x: jnp.ones(3), _vector()),
    "identity": Function(lambda jax, jnp: lambda x: x, _vector()),
    "partly_constant": Function(
        lambda jax, jnp: lambda x: jnp.where(x > 0.5, x, 0.0).astype("float32"), _vector()
    ),
    "stopped": Function(lambda jax, jnp: lambda x: x * jax.lax.stop_gradient(x), _vector()),
    "power": Function(lambda jax, jnp: lambda x: x**3 + x**0.5 + 2.0**x, _vector()),
    "maximum": Function(lambda jax, jnp: lambda x: jnp.maximum(x, x[::-1]), _vector()),
    "product": Function(lambda jax, jnp: lambda x: jnp.prod(x) * jnp.max(x), _vector()),
    "cumulative": Function(lambda jax, jnp: lambda x: jnp.cumsum(x) * jnp.cumprod(x), _vector()),
    "indexed": Function(lambda jax, jnp: lambda x: x[jnp.array([0, 2, 0])] * x[1], _vector()),
    "updated": Function(
        lambda jax, jnp: lambda x: jnp.asarray(x).at[1].set(x[0] * 2).at[0].add(x[2]), _vector()
    ),
    "matmul": Function(lambda jax, jnp: lambda m: m @ m.T, _matrix()),
    "einsum": Function(
        lambda jax, jnp: lambda m: jnp.einsum("ij,kj->ik", m, jnp.sin(m)), _matrix()
    ),
    "softmax": Function(
        lambda jax, jnp: lambda m: jnp.exp(m) / jnp.exp(m).sum(1, keepdims=True), _matrix()
    ),
    "shapes": Function(
        lambda jax, jnp: lambda m: jnp.concatenate([m.T, m.reshape(3, 2)])[::-1].sum(0), _matrix()
    ),
    "empty": Function(lambda jax, jnp: lambda x: jnp.sin(x) * 2, np.zeros((0, 3), np.float32)),
    "half": Function(lambda jax, jnp: lambda x: x * x + 1, np.array([0.5, 1.5], np.float16)),
    "jitted": Function(_jitted, _vector()),
    "scan": Function(_scan, _vector()),
    "scan_of_cond": Function(_scan_of_cond, _vector()),
    "fori": Function(_while, np.float32(0.7)),
    "switch": Function(_switch, _vector()),
    "custom_jvp": Function(_custom_jvp, _vector()),
    "internal_ref": Function(
        _internal_ref, _vector(), lambda jax, jnp: lambda x: (jnp.sin(x) + x * x) ** 2
    ),
    "vmapped": Function(_vmapped, _matrix()),
    "gradient": Function(_gradient, _vector()),
}
