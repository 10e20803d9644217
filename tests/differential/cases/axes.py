"""Named axes of vmap and collectives along them; shard_map on a mesh of one device."""

from __future__ import annotations

from typing import Any

import numpy as np


def _grid() -> np.ndarray:
    return np.arange(12, dtype=np.float32).reshape(3, 4) / 3


def reductions(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    f = lambda v: (
        lax.psum(v, "i"),
        lax.pmean(v, "i"),
        lax.pmax(v, "i"),
        lax.pmin(v, "i"),
        v * lax.psum(1, "i"),
        lax.psum(v > 1, "i"),
        lax.pmean({"a": v, "b": (v, 2.0)}, "i"),
    )
    return jax.vmap(f, axis_name="i")(_grid())


def exchanges(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    f = lambda v: (
        lax.axis_index("i"),
        lax.all_gather(v, "i"),
        lax.all_gather(v, "i", axis=1),
        lax.all_gather(v, "i", tiled=True),
        lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 0)]),
        lax.pshuffle(v, "i", [2, 0, 1]),
        lax.psum_scatter(jnp.tile(v, 3), "i", tiled=True),
        lax.psum_scatter(v[:3], "i"),
        lax.all_to_all(v[:3], "i", 0, 0),
        lax.all_to_all(jnp.tile(v, (2, 3)), "i", 1, 0, tiled=True),
    )
    return jax.vmap(f, axis_name="i")(_grid())


def two_axes(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    f = lambda v: (lax.psum(v, ("i", "j")), lax.pmax(v, "j"), lax.axis_index("i") + v)
    return jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(_grid())


def shared_arguments(jax: Any, jnp: Any) -> object:
    lax = jax.lax
    f = lambda v, w: (lax.psum(w, "i"), lax.all_gather(w, "i"), lax.pmean(v * w, "i"))
    w = np.arange(4, dtype=np.float32)
    indices = jax.vmap(lambda: jax.lax.axis_index("k"), axis_name="k", axis_size=3)()
    return jax.vmap(f, (0, None), axis_name="i")(_grid(), w), indices


def axes_in_control_flow(jax: Any, jnp: Any) -> object:
    lax = jax.lax

    def f(v: Any) -> Any:
        carry, ys = lax.scan(lambda c, e: (c + lax.psum(e, "i"), lax.pmax(c, "i")), v[0], v)
        kept = lax.cond(lax.psum(v[0], "i") > 0, lambda u: lax.psum(u, "i"), lambda u: u, v)
        last = lax.while_loop(lambda c: lax.psum(c, "i") < 50, lambda c: c * 2 + 1, v[1])
        return carry, ys, kept, last, jax.jit(lambda u: u - lax.pmean(u, "i"))(v)

    return jax.vmap(f, axis_name="i")(_grid())


def _smooth(jax: Any, jnp: Any) -> Any:
    lax = jax.lax
    return lambda v: (
        jnp.sin(v) * lax.psum(jnp.cos(v), "i") + lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 0)])
    )


def derivatives_of_named_axes(jax: Any, jnp: Any) -> object:
    f, x = _smooth(jax, jnp), _grid()
    named = jax.vmap(f, axis_name="i")
    return (
        jax.grad(lambda x: jnp.sum(named(x) ** 2))(x),
        jax.jvp(named, (x,), (x,)),
        jax.vmap(jax.grad(lambda v: jnp.sum(f(v))), axis_name="i")(x),
        jax.vmap(jax.grad(lambda v: jax.lax.psum(jnp.sum(v**2), "i")), axis_name="i")(x),
        jax.vmap(jax.grad(jax.checkpoint(lambda v: jnp.sum(f(v)))), axis_name="i")(x),
        jax.jit(jax.grad(lambda x: jnp.sum(named(x) ** 2)))(x),
    )


def one_device(jax: Any, jnp: Any) -> object:
    spec, lax = jax.P, jax.lax
    # Otherwise the types of JAX's arrays contain shardings.
    auto = {"axis_types": (jax.sharding.AxisType.Auto,)} if jax.__name__ == "jax" else {}
    mesh = jax.make_mesh((1,), ("x",), **auto)
    f = lambda v, w: (lax.psum(jnp.sin(v * w).sum(0), "x"), v * lax.axis_index("x") + 1)
    mapped = jax.shard_map(
        f, mesh=mesh, in_specs=(spec("x"), spec()), out_specs=(spec(), spec("x"))
    )
    w = np.arange(4, dtype=np.float32)
    loss = lambda v, w: (jnp.sum(mapped(v, w)[0] ** 2), mapped(v, w))
    return jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(_grid(), w)
