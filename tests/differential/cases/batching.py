"""vmap: axes of arguments and results, trees, keywords, control flow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class _Pair(NamedTuple):
    left: Any
    right: Any


def _grid() -> np.ndarray:
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def axes_of_arguments(jax: Any, jnp: Any) -> object:
    f = lambda x, y: x * y + x.sum()
    m, v = _grid(), np.arange(3, dtype=np.float32)
    return (
        jax.vmap(f, (1, None))(m, v),
        jax.vmap(f, (-1, None))(m, v),
        jax.vmap(f, in_axes=(0, None))(m, np.float32(2)),
        jax.vmap(f, [0, 0])(m, m),
        jax.vmap(jax.vmap(f, (None, 0)), (0, None))(m, m),
    )


def axes_of_results(jax: Any, jnp: Any) -> object:
    f = lambda x: {"a": x, "b": (x * 2, x.sum())}
    return (
        jax.vmap(f, 1, {"a": 1, "b": 0})(_grid()),
        jax.vmap(f, 1, {"a": -1, "b": (-2, -1)})(_grid()),
        jax.vmap(lambda x: (x, jnp.float32(3)), out_axes=(0, None))(_grid()),
        jax.vmap(lambda x: 3.0, out_axes=0)(_grid()),
        jax.vmap(lambda x: jnp.ones(2), out_axes=1)(_grid()),
    )


def prefixes(jax: Any, jnp: Any) -> object:
    f = lambda p, q: (p["w"] @ q[0] + p["b"], q[1])
    p = {"w": _grid(), "b": np.ones(3, np.float32)}
    q = (np.ones((5, 4), np.float32), np.arange(5, dtype=np.int32))
    return (
        jax.vmap(f, (None, 0))(p, q),
        jax.vmap(f, ({"w": 1, "b": None}, (None, None)), (0, None))(
            {"w": np.ones((3, 2, 4), np.float32), "b": np.ones(3, np.float32)},
            (q[0][0], jnp.int32(7)),
        ),
        jax.vmap(f, in_axes=(None, (0, None)), out_axes=(0, None))(p, (q[0], jnp.float32(3.5))),
    )


def named_tuples(jax: Any, jnp: Any) -> object:
    pair = _Pair(jnp.asarray(_grid()), jnp.arange(3))
    return (
        jax.vmap(lambda p: _Pair(p.right, p.left * 2))(pair),
        jax.vmap(lambda p: p.left + p.right, (_Pair(1, None),))(_Pair(_grid(), np.arange(3))),
    )


def none_leaves(jax: Any, jnp: Any) -> object:
    f = lambda x, y: (x[0] + 1, y, None)
    return jax.vmap(f, (0, 0))((_grid(), None), None)


def keywords(jax: Any, jnp: Any) -> object:
    f = lambda x, *, k: x + k
    return jax.vmap(f, in_axes=(None,))(np.float32(1), k=np.arange(3.0, dtype=np.float32))


def a_given_size(jax: Any, jnp: Any) -> object:
    return jax.vmap(lambda: jnp.float32(1), axis_size=3)(), jax.vmap(
        lambda x: x, in_axes=None, out_axes=0, axis_size=2
    )(np.float32(4))


def empty_batches(jax: Any, jnp: Any) -> object:
    return jax.vmap(lambda x: (x * 2).sum())(np.zeros((0, 3), np.float32))


def integers_and_booleans(jax: Any, jnp: Any) -> object:
    f = lambda i, p: (jnp.where(p, i, -i), i[None] > 2, i * True, i / 2)
    return jax.vmap(f)(np.arange(4), np.array([True, False, True, False]))


def weak_types_stay(jax: Any, jnp: Any) -> object:
    return jax.vmap(lambda x, y: (x * y, y * 2), (0, None))(np.array([1, 2], np.float16), 3.0)


def indexing(jax: Any, jnp: Any) -> object:
    m = jnp.asarray(_grid())
    i = np.array([0, 2, 1])
    return (
        jax.vmap(lambda i: m[i])(i),
        jax.vmap(lambda r, i: r[i])(m, i),
        jax.vmap(lambda r, i: r.at[i].set(9.0))(m, i),
        jax.vmap(lambda r, i: jax.lax.dynamic_slice(r, (i,), (2,)))(m, i),
        jax.vmap(lambda r, i: jax.lax.dynamic_update_slice(r, r[:1], (i,)))(m, i),
        jax.vmap(lambda i: m.at[i, 1:3].add(1.0))(i),
    )


def conditions(jax: Any, jnp: Any) -> object:
    f = lambda p, x: jax.lax.cond(p, jnp.sin, lambda x: x * 2, x)
    xs = _grid()[0]
    return (
        jax.vmap(f)(xs > 1, xs),
        jax.vmap(f, (None, 0))(True, xs),
        jax.vmap(lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x))(
            np.arange(4), xs
        ),
    )


def loops(jax: Any, jnp: Any) -> object:
    collatz = lambda n: jax.lax.while_loop(
        lambda s: s[0] > 1,
        lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, jnp.int32(0)),
    )[1]
    return (
        jax.vmap(collatz)(np.arange(1, 9, dtype=np.int32)),
        jax.vmap(lambda n, x: jax.lax.fori_loop(0, n, lambda i, c: c * 2 + i, x))(
            np.arange(4, dtype=np.int32), np.ones(4, np.float32)
        ),
        jax.vmap(lambda c, xs: jax.lax.scan(lambda c, x: (c + x, c), c, xs), (0, None))(
            np.arange(3, dtype=np.float32), np.ones(2, np.float32)
        ),
    )


def argument_references(jax: Any, jnp: Any) -> object:
    out = jax.new_ref(jnp.zeros((3, 4)))
    total = jax.vmap(lambda x, r: _write(r, x), (0, 0))(jnp.asarray(_grid()), out)
    return total, out[...]


def _write(ref: Any, x: Any) -> Any:
    ref[...] = x * 2
    ref[1] += 5.0
    return ref[0] + x.sum()


def internal_references(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[0] = x.sum()
        return ref[...]

    return jax.vmap(f)(_grid()), jax.vmap(f, 1, 1)(_grid())


def read_references(jax: Any, jnp: Any) -> object:
    table = jax.new_ref(jnp.arange(4.0))
    return jax.jit(jax.vmap(lambda i: i + 1))(np.arange(3)), table[...]


def matrices(jax: Any, jnp: Any) -> object:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = np.arange(8, dtype=np.float32).reshape(2, 4)
    return (
        jax.vmap(jnp.dot)(a, b),
        jax.vmap(jnp.dot, (0, None))(a, b[0]),
        jax.vmap(jnp.dot, (None, 0), 1)(a[0], b),
        jax.vmap(lambda x, y: jnp.einsum("ij,j->i", x, y))(a, b),
        jax.vmap(jax.vmap(lambda x: x / x.sum(), 1, 1))(a),
        jax.vmap(lambda x: (jnp.sort(x), jnp.argmax(x), jnp.cumsum(x)), -1)(a[0]),
    )
