"""Costs are near XLA's own figures, on programs that XLA compiles as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir import Type, array_type, ref_type

N: Final = 128
A: Final = array_type((N, N), "float32")
REF: Final = ref_type(A)
ROWS: Final = array_type((16,), "int32")
QKV: Final = array_type((256, 32), "float32")

Fun = Callable[..., object]


def pointwise(x: effax.Array, y: effax.Array) -> effax.Array:
    return jnp.sin(x) * y + jnp.exp(-x * x)


def distance(x: effax.Array, y: effax.Array) -> effax.Array:
    return jnp.sum((x - y) ** 2)


def products(x: effax.Array, y: effax.Array, z: effax.Array) -> effax.Array:
    return (x @ y) @ z @ x


def softmax(x: effax.Array) -> effax.Array:
    return effax.nn.softmax(x, axis=-1)


def outer(x: effax.Array) -> effax.Array:
    return jnp.sum(jnp.tanh(x[0, :, None] * x[1, None, :]), 0)


def looped(w: effax.Array, x: effax.Array) -> effax.Array:
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=10)[0]


def perceptron(weights: list[effax.Array], x: effax.Array) -> effax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.sum(x**2)


def attention(q: effax.Array, k: effax.Array, v: effax.Array) -> effax.Array:
    return jnp.sum((effax.nn.softmax(q @ k.T / 8.0) @ v) ** 2)


def rows(x: effax.Array, i: effax.Array) -> object:
    return x.at[i].add(x[i] * 2.0)


def updated(r: effax.Ref, x: effax.Array) -> None:
    r[...] = r[...] * 0.9 + x


def step(w: effax.Ref, m: effax.Ref, v: effax.Ref, x: effax.Array) -> object:
    loss, d = effax.value_and_grad(lambda w: perceptron([w, w], x))(w[...])
    m[...] = 0.9 * m[...] + 0.1 * d
    v[...] = 0.99 * v[...] + 0.01 * d * d
    w[...] -= 1e-3 * m[...] / (jnp.sqrt(v[...]) + 1e-8)
    return loss


def chosen(p: effax.Array, x: effax.Array) -> effax.Array:
    return lax.cond(p, lambda x: x @ x @ x, lambda x: x + 1, x)


def noise(key: effax.Array) -> object:
    return effax.random.normal(key, (N, N))


PROGRAMS: Final[dict[str, tuple[Fun, tuple[object, ...]]]] = {
    "pointwise": (pointwise, (A, A)),
    "distance": (distance, (A, A)),
    "products": (products, (A, A, A)),
    "softmax": (softmax, (A,)),
    "outer": (outer, (A,)),
    "looped": (looped, (A, A)),
    "gradient": (effax.grad(perceptron), ([A] * 4, A)),
    "attention": (effax.grad(attention, argnums=(0, 1, 2)), (QKV, QKV, QKV)),
    "rows": (rows, (A, ROWS)),
    "sorted": (jnp.sort, (A,)),
    "updated": (updated, (REF, A)),
    "step": (step, (REF, REF, REF, A)),
    "chosen": (chosen, (array_type((), "bool"), A)),
    "noise": (noise, (array_type((2,), "uint32"),)),
}
COUNTED_ONCE: Final = {"looped": 10}
"""XLA counts the body of a loop once."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_costs_are_near_those_of_xla(name: str) -> None:
    fun, args = PROGRAMS[name]
    found = effax.cost(fun)(*args)
    compiled = effax.jit(fun).lower(*args).compile()
    assert found.peak_bytes == pytest.approx(compiled.memory_analysis().peak_bytes, rel=0.2)
    figures, times = compiled.cost_analysis(), COUNTED_ONCE.get(name, 1)
    assert found.transcendentals == pytest.approx(figures["transcendentals"] * times, rel=0.2)
    if name != "sorted":
        assert found.flops == pytest.approx(figures["flops"] * times, rel=0.2)
    assert figures["effax flops"] == found.flops


def test_lowered_and_compiled_have_both_figures() -> None:
    types: list[Type] = [A, A]
    lowered = effax.jit(distance).lower(*types)
    for figures in (lowered.cost_analysis(), lowered.compile().cost_analysis()):
        assert figures["effax bytes read"] == effax.cost(distance)(*types).bytes_read
        assert {"flops", "bytes accessed", "effax peak bytes"} <= set(figures)
