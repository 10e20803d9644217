"""shard_map on four devices: in a separate process for JAX, as batch elements in effax."""

from __future__ import annotations

from typing import Any

import numpy as np

X = np.arange(16, dtype=np.float32).reshape(4, 4) / 10
W = np.arange(1, 5, dtype=np.float32) / 10


def _mesh(jax: Any, shape: tuple[int, ...] = (4,)) -> Any:
    names = ("x", "y")[: len(shape)]
    if jax.__name__ != "jax":
        return jax.make_mesh(shape, names)
    return jax.make_mesh(shape, names, axis_types=(jax.sharding.AxisType.Auto,) * len(shape))


def _loss(jax: Any, jnp: Any) -> Any:
    return lambda w, v: jax.lax.pmean(jnp.mean(jnp.sin(v @ w) ** 2), "x")


def forward(jax: Any, jnp: Any) -> object:
    lax, spec = jax.lax, jax.P

    def f(v: Any, w: Any) -> Any:
        ring = [(i, (i + 1) % 4) for i in range(4)]
        return (
            lax.psum(v, "x"),
            lax.ppermute(v, "x", ring) * w,
            lax.all_to_all(v, "x", 1, 0, tiled=True),
            lax.psum_scatter(v, "x", scatter_dimension=1, tiled=True),
            lax.axis_index("x") + v,
        )

    outs = (spec(), spec("x"), spec("x"), spec(None, "x"), spec("x"))
    ins = (spec("x"), spec())
    return jax.jit(jax.shard_map(f, mesh=_mesh(jax), in_specs=ins, out_specs=outs))(X, W)


def product_on_a_grid(jax: Any, jnp: Any) -> object:
    spec = jax.P

    def f(a: Any, b: Any) -> Any:
        return jax.lax.psum(jnp.sin(jax.lax.psum(a @ b, "y")), "x")

    mapped = jax.shard_map(
        f, mesh=_mesh(jax, (2, 2)), in_specs=(spec("x", "y"), spec("y")), out_specs=spec()
    )
    return jax.jit(jax.value_and_grad(lambda a, b: jnp.sum(mapped(a, b) ** 2), (0, 1)))(X, X)


def gradients_outside(jax: Any, jnp: Any) -> object:
    spec = jax.P
    mapped = jax.shard_map(
        _loss(jax, jnp), mesh=_mesh(jax), in_specs=(spec(), spec("x")), out_specs=spec()
    )
    return jax.jit(lambda w, v: (jax.grad(mapped, (0, 1))(w, v), jax.hessian(mapped)(w, v)))(W, X)


def gradients_inside(jax: Any, jnp: Any) -> object:
    spec, lax, loss = jax.P, jax.lax, _loss(jax, jnp)

    def f(w: Any, v: Any) -> Any:
        def step(w: Any, _: object) -> Any:
            value, g = jax.value_and_grad(loss)(w, v)
            return w - 0.5 * g, value

        return (
            jax.grad(loss)(w, v),
            jax.grad(lambda w: jnp.sum(jnp.sin(v @ w)))(w),
            lax.scan(step, w, None, length=3),
            jax.hessian(loss)(w, v),
            jax.grad(lambda v: lax.psum(jnp.sum(jnp.sin(v)), "x"))(v),
        )

    outs = (spec(), spec(), spec(), spec(), spec("x"))
    ins = (spec(), spec("x"))
    return jax.jit(jax.shard_map(f, mesh=_mesh(jax), in_specs=ins, out_specs=outs))(W, X)


def without_the_check(jax: Any, jnp: Any) -> object:
    spec = jax.P
    f = lambda w, v: jax.grad(_loss(jax, jnp), (0, 1))(w, v)
    outs = (spec("x"), spec("x"))
    mapped = jax.shard_map(
        f, mesh=_mesh(jax), in_specs=(spec(), spec("x")), out_specs=outs, check_vma=False
    )
    return jax.jit(mapped)(W, X)
