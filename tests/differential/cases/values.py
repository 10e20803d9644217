"""Arguments and results: trees, Python's numbers, NumPy arrays, dtypes, static arguments."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import numpy as np


class _Layer(NamedTuple):
    w: Any
    b: Any


def trees_through_jit(jax: Any, jnp: Any) -> object:
    f = jax.jit(lambda p, *rest, k: {"p": p, "rest": rest, "k": k, "none": None, "empty": ()})
    return f(_Layer(1.0, [2, None]), (3.0,), {}, k={"z": jnp.ones(2), "a": True})


def ordered_dicts(jax: Any, jnp: Any) -> object:
    return jax.jit(lambda d: {k: v * 2 for k, v in d.items()})(OrderedDict(b=1.0, a=2.0))


def trees_through_derivatives(jax: Any, jnp: Any) -> object:
    f = lambda p, x: (p.w @ x["a"] + p.b[0]).sum()
    p = _Layer(jnp.ones((2, 3)), (jnp.ones(2), None))
    x = {"a": jnp.arange(3.0), "unused": jnp.ones(2)}
    return (
        jax.grad(f)(p, x),
        jax.grad(f, (1, 0))(p, x),
        jax.grad(f, (0,))(p, x),
        jax.grad(f, -1)(p, x),
        jax.vjp(f, p, x)[1](jnp.float32(1)),
        jax.jvp(f, (p, x), (p, x)),
        jax.jacrev(lambda p: {"y": p.w.sum(0), "z": p.b[0]})(p),
        jax.jacfwd(lambda p: {"y": p.w.sum(0), "z": p.b[0]})(p),
        jax.hessian(lambda p: (p.w**2).sum() * p.b[0].sum())(_Layer(jnp.ones(2), (jnp.ones(1),))),
    )


def auxiliary_results(jax: Any, jnp: Any) -> object:
    f = lambda x: (jnp.sin(x), {"n": 3, "x": (x, None), "s": "text"})
    x = jnp.float32(0.5)
    return (
        jax.grad(f, has_aux=True)(x),
        jax.value_and_grad(f, has_aux=True)(x),
        jax.vjp(f, x, has_aux=True)[::2],
        jax.jvp(f, (x,), (x,), has_aux=True),
        jax.jacrev(f, has_aux=True)(x),
        jax.jit(jax.grad(lambda x: (f(x)[0], {"x": x}), has_aux=True))(x),
    )


def python_numbers(jax: Any, jnp: Any) -> object:
    f = lambda a, b: (a + b, a * 2, b / 3, a == b, 7, 2.5, True)
    return [jax.jit(f)(a, b) for a, b in ((1, 2), (1.5, 2), (True, 3), (2, 1j), (jnp.int8(3), 2))]


def promotion(jax: Any, jnp: Any) -> object:
    values = [
        True,
        2,
        2.5,
        1j,
        jnp.int8(3),
        jnp.uint8(200),
        np.float16(1.5),
        jnp.float32(2),
        np.int32(5),
    ]
    f = jax.jit(lambda a, b: (a + b, a * b))
    return [f(a, b) for a in values for b in values], [jnp.asarray(v) for v in values]


def numpy_inputs(jax: Any, jnp: Any) -> object:
    f = jax.jit(lambda x: (x, x + 1))
    inputs = [
        np.arange(3), np.arange(3.0), np.float64(2), np.int64(3), np.bool_(True), np.ones((2, 0)),
        np.arange(6).reshape(2, 3).T, np.arange(3.0)[::-1], np.zeros((), np.complex128),
    ]  # fmt: skip
    return [f(x) for x in inputs], [jnp.asarray(x) for x in inputs]


def weak_types(jax: Any, jnp: Any) -> object:
    h = np.array([1, 2], np.float16)
    return (
        jax.jit(lambda x: x * 2.0)(h),
        jax.jit(lambda x, s: x * s)(h, 2.0),
        jax.jit(lambda s: jnp.asarray(h) * (s + 1))(2.0),
        jax.jit(lambda s: jnp.sin(s))(2),
        jnp.asarray(2.0) * jnp.asarray(h),
        jnp.array(2.0),
        jnp.ones(()) * 2,
        jax.jit(lambda n: jnp.arange(3) * n)(2.5),
        jax.jit(lambda s: jax.jit(lambda t: t + 1)(s))(1.0),
        jax.jit(lambda s: jnp.where(True, s, 1))(2.0),
        jax.jit(lambda s: (jnp.maximum(s, 2), jnp.sum(s), s.astype("float32")))(jnp.asarray(1.0)),
        jax.jit(lambda s: (jnp.stack([s, s]), jnp.reshape(s, 1), jnp.zeros_like(s)))(1.0),
    )


def weak_derivatives(jax: Any, jnp: Any) -> object:
    f = lambda x: jnp.sin(x) * 2
    g = lambda x, h: (x * jnp.asarray(h)).sum()
    h = np.array([1, 2], np.float16)
    return (
        jax.grad(f)(1.0),
        jax.value_and_grad(f)(1.0),
        jax.jvp(f, (1.0,), (2.0,)),
        jax.vjp(f, 1.0)[0],
        jax.vjp(f, 1.0)[1](2.0),
        jax.linearize(f, 1.0)[1](2.0),
        jax.jit(jax.grad(f))(1.0),
        jax.grad(g, (0, 1))(2.0, h),
        jax.grad(f)(1.0) * jnp.asarray(h),
        jax.grad(jax.grad(f))(1.0),
        jax.grad(lambda x: f(jnp.float32(x)))(1.0),
        jax.jvp(lambda x: jnp.float32(x), (1.0,), (2.0,)),
        jax.grad(lambda d: f(d["a"]) * d["b"])({"a": 1.0, "b": jnp.float32(2.0)}),
        jax.vmap(jax.grad(f))(jnp.arange(3.0)),
    )


def mixed_dtypes(jax: Any, jnp: Any) -> object:
    f = lambda x, h: (x * h).sum()
    return (
        jax.grad(f, (0, 1))(jnp.ones(2), jnp.ones(2, "float16")),
        jax.grad(f, (0, 1))(jnp.ones(2, "bfloat16"), jnp.ones(2)),
        jax.grad(lambda x: x.astype("float16").sum())(jnp.ones(2)),
        jax.jvp(lambda x: x.astype("int32"), (jnp.ones(2),), (jnp.ones(2),)),
    )


def complex_numbers(jax: Any, jnp: Any) -> object:
    z = np.array([1 + 2j, 0.5 - 1j], np.complex64)
    return (
        jax.jit(lambda z: (z * z, jnp.abs(z), z.real, z.imag, jnp.exp(z), z.conj()))(z),
        jax.grad(lambda z: jnp.abs(z).sum())(z),
        jax.grad(lambda z: (z**3).sum(), holomorphic=True)(z),
        jax.grad(lambda x: jnp.abs(x * (1 + 2j)) ** 2)(1.5),
        jax.jvp(lambda z: z * z, (z,), (z,)),
        jax.vjp(lambda z: z * z, z)[1](z),
        jax.grad(lambda z: (z.real * z.imag).sum())(z),
        jax.grad(lambda x: (x + 1j * x).real)(2.0),
        jax.jacfwd(lambda z: z * z, holomorphic=True)(z),
        jax.jacrev(lambda z: z * z, holomorphic=True)(z),
    )


def integers_and_booleans(jax: Any, jnp: Any) -> object:
    f = lambda x, n, p: jnp.where(p, x, n).sum() * n
    return (
        jax.grad(f)(1.5, 2, True),
        jax.grad(f, (0, 1), allow_int=True)(1.5, 2, True),
        jax.vjp(f, 1.5, 2, True)[1](1.0),
        jax.jvp(lambda x, n: x * n, (1.5, 2), (1.0, _zero())),
    )


def _zero() -> np.ndarray:
    return np.zeros((), np.dtype([("float0", "V")]))


def empty_arrays(jax: Any, jnp: Any) -> object:
    x = np.zeros((0, 3), np.float32)
    return (
        jax.jit(lambda x: (x + 1, x.sum(), x.sum(0), x.T @ x))(x),
        jax.grad(lambda x: x.sum())(x),
        jax.vmap(lambda x: x.sum())(x),
        jax.lax.scan(lambda c, r: (c + r.sum(), r * 2), jnp.float32(1), x),
        jnp.concatenate([x, x]),
        jax.jacfwd(lambda x: x * 2)(x),
    )


def static_arguments(jax: Any, jnp: Any) -> object:
    def f(x: Any, n: int, *, mode: str = "mul") -> Any:
        return x**n if mode == "pow" else x * n

    return (
        jax.jit(f, static_argnums=1)(2.0, 3),
        jax.jit(f, static_argnums=(1,), static_argnames="mode")(2.0, 3, mode="pow"),
        jax.jit(f, static_argnames=("n", "mode"))(2.0, n=2, mode="pow"),
        jax.jit(f, static_argnums=-1)(2.0, 3),
        jax.grad(jax.jit(f, static_argnums=1))(2.0, 3),
        jax.jit(partial(f, n=4))(2.0),
    )


def methods(jax: Any, jnp: Any) -> object:
    class Model:
        scale = 3.0

        @partial(jax.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

        @jax.custom_jvp
        def plain(self: Any) -> Any:
            return self * 2.0

    model = Model()
    return model(2.0), jax.grad(model)(2.0), jax.grad(model.__call__)(2.0)


def shapes_without_values(jax: Any, jnp: Any) -> object:
    def seen(s: Any) -> object:
        return s.shape, str(s.dtype), s.weak_type

    f = lambda x, y: {"a": x @ y, "b": (x[0], 1.0, None)}
    out = jax.eval_shape(f, jax.ShapeDtypeStruct((2, 3), np.float32), np.ones((3, 4), np.int32))
    types = [jax.typeof(x) for x in (jnp.ones(3), jnp.int8(3), jnp.zeros((2, 0), bool), 1.0)]
    return jax.tree.map(seen, out, is_leaf=lambda s: hasattr(s, "dtype")), [*map(seen, types)]


def stopped_gradients(jax: Any, jnp: Any) -> object:
    f = lambda x: (x * jax.lax.stop_gradient({"a": x})["a"]).sum()
    return jax.grad(f)(jnp.arange(3.0)), jax.lax.stop_gradient((1.0, 2))


def keyword_arguments(jax: Any, jnp: Any) -> object:
    f = lambda x, *, w: jnp.sin(x) * w
    return (
        jax.grad(f)(1.0, w=2.0),
        jax.jit(f)(1.0, w=2.0),
        jax.value_and_grad(jax.jit(f))(1.0, w=jnp.float32(2)),
        jax.jacfwd(f)(jnp.ones(2), w=2.0),
        jax.jit(jax.grad(f))(1.0, w=2.0),
    )


def arguments_that_are_not_differentiated(jax: Any, jnp: Any) -> object:
    def f(x: Any, n: int, mode: str, g: Any, *, train: bool) -> Any:
        assert isinstance(n, int)
        y = g(x) if mode == "apply" and train else x
        return sum(y * i for i in range(n))

    args = (2, "apply", jnp.sin)
    return (
        jax.grad(f)(1.5, *args, train=True),
        jax.value_and_grad(f)(1.5, *args, train=False),
        jax.jacfwd(f)(1.5, *args, train=True),
        jax.jacrev(f)(1.5, *args, train=True),
        jax.hessian(f)(1.5, *args, train=True),
        jax.jit(lambda x: jax.grad(f)(x, *args, train=True))(1.5),
        jax.vmap(lambda x, n, mode: x * n if mode == "mul" else x, (0, None, None))(
            jnp.arange(3.0), 2, "mul"
        ),
    )


def python_control_flow_on_values(jax: Any, jnp: Any) -> object:
    def f(x: Any) -> Any:
        if x > 0:
            return jnp.sin(x)
        for _ in range(int(-x)):
            x = x * 2.0
        return x

    return [(jax.grad(f)(x), jax.jvp(f, (x,), (1.0,)), jax.vjp(f, x)[1](1.0)) for x in (2.0, -3.0)]
