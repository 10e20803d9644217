"""Gradients accumulated in references, and the program that does it: in place, without zeros."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ad import DidntWant, DontWant, GradRef, GradValue
from effax.ir.analysis.check import checked
from effax.ir.errors import BadArgument, EffaxError, IllTyped, RefError

jax: Any = effax
F = Callable[..., Any]

EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
X = jnp.asarray(np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32))
TWICE_ONE = jnp.asarray([1, 1, 3])

PARTS: dict[str, F] = {
    "slice": lambda x, k: x[1:3, ::2],
    "negative steps": lambda x, k: x[::-1, -2],
    "empty slice": lambda x, k: x[3:1],
    "row of a traced number": lambda x, k: x[k],
    "element of traced numbers": lambda x, k: x[k, k + 1],
    "dynamic_slice": lambda x, k: lax.dynamic_slice(x, (k, k), (2, 3)),
    "gather, duplicates": lambda x, k: x[TWICE_ONE],
    "gather of two axes": lambda x, k: x[TWICE_ONE, TWICE_ONE + 1],
    "gather apart": lambda x, k: x[TWICE_ONE[:, None], np.array([0, 5, 0])],
    "gather, traced": lambda x, k: x[jnp.stack([k, k, 0])],
    "gather, clipped": lambda x, k: jnp.take(x, jnp.asarray([0, 9, -9]), axis=0, mode="clip"),
    "gather, filled": lambda x, k: x.at[jnp.asarray([0, 9])].get(mode="fill", fill_value=2.0),
    "take_along_axis": lambda x, k: jnp.take_along_axis(x, jnp.asarray([[0, 0, 1, 1, 2, 2]]), 0),
    "mask": lambda x, k: x[np.array([True, False, True, False])],
    "two parts": lambda x, k: x[0] * x[k],
    "a part of a part": lambda x, k: x[1:][k][::2],
    "in jit": jax.jit(lambda x, k: jnp.sin(x[k])),
    "in cond": lambda x, k: lax.cond(k > 1, lambda: x[0], lambda: x[k]),
    "in scan": lambda x, k: lax.scan(lambda c, j: (c + x[j] ** 2, x[k]), X[0], TWICE_ONE),
    "in fori_loop": lambda x, k: lax.fori_loop(0, 3, lambda j, c: c + x[j] * x[k], X[0]),
    "scanned": lambda x, k: lax.scan(lambda c, row: (c + row[0] ** 2, row[:2]), 0.0, x),
    "in checkpoint": lambda x, k: jax.checkpoint(lambda x: jnp.sin(x[k]))(x),
    "of a matmul": lambda x, k: x[k] @ jnp.ones((6, 2)),
    "split": lambda x, k: jnp.split(x, 2)[1],
}


def loss(f: F, k: Any) -> F:
    return lambda x: sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(f(x, k)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_parts_accumulate_in_place(name: str) -> None:
    f = PARTS[name]

    def step(x: Any, k: Any, grads: Any) -> None:
        _, pull = jax.vjp(loss(f, k), x)
        pull.with_refs(grads)(1.0)

    grads = jax.new_ref(jnp.ones((4, 6)))
    wanted = jax.grad(loss(f, 2))(X)
    step(X, 2, grads)
    np.testing.assert_allclose(grads[...], 1 + np.asarray(wanted), rtol=1e-4, atol=1e-5)
    jax.jit(step)(X, 2, grads)
    np.testing.assert_allclose(grads[...], 1 + 2 * np.asarray(wanted), rtol=1e-4, atol=1e-5)

    program = checked(jax.make_jaxpr(step)(X, 2, grads).jaxpr)
    text = str(program)
    assert "+=" in text or name == "empty slice"
    assert not re.search(r"f32\[4,6\] = (broadcast|pad|scatter|add|concatenate)", text), text
    assert "new_ref" not in text


def test_against_differences_of_the_function() -> None:
    """One of them, so that the comparison above is not of two equal mistakes."""
    f = loss(PARTS["gather, duplicates"], 2)
    step = 1e-2
    for at in ((1, 0), (3, 5), (0, 0)):
        direction = np.zeros((4, 6), np.float32)
        direction[at] = step
        slope = (float(f(X + direction)) - float(f(X - direction))) / (2 * step)
        np.testing.assert_allclose(jax.grad(f)(X)[at], slope, rtol=1e-2, atol=1e-3)


@EAGER_AND_JITTED
def test_a_reference_that_the_function_changes(wrap: Any) -> None:
    def g(ref: Any) -> Any:
        ref[...] = jnp.sin(ref[...])
        return ref[...] ** 2

    def run(ref: Any, grads: Any) -> Any:
        out, pull = jax.vjp(g, ref)
        for _ in range(3):
            assert pull.with_refs(grads)(1.0) == (GradRef(),)
        return out

    ref, grads = jax.new_ref(2.0), jax.new_ref(100.0)
    out = wrap(run)(ref, grads)
    np.testing.assert_allclose(out, np.sin(2.0) ** 2, rtol=1e-6)
    np.testing.assert_allclose(ref[...], np.sin(2.0), rtol=1e-6)
    np.testing.assert_allclose(grads[...], 100 + 3 * 2 * np.sin(2) * np.cos(2), rtol=1e-6)


@pytest.mark.slow
@EAGER_AND_JITTED
def test_a_part_of_a_reference_that_the_function_changes(wrap: Any) -> None:
    def g(ref: Any, x: Any, k: Any) -> Any:
        ref[k] *= x
        ref[0] += ref[k]
        return jnp.sum(ref[...] ** 2)

    def run(ref: Any, x: Any, k: Any, grads: Any) -> Any:
        _, pull = jax.vjp(lambda r, x: g(r, x, k), ref, x)
        return pull.with_refs(grads, GradValue())(1.0)[1]

    def plain(r: Any, x: Any) -> Any:
        r = r.at[1].multiply(x)
        return jnp.sum(r.at[0].add(r[1]) ** 2)

    start = jnp.asarray([1.0, 2.0, 3.0])
    grads = jax.new_ref(jnp.ones(3))
    x_bar = wrap(run)(jax.new_ref(start), 3.0, 1, grads)
    wanted = jax.grad(plain, argnums=(0, 1))(start, 3.0)
    np.testing.assert_allclose(grads[...], 1 + np.asarray(wanted[0]))
    np.testing.assert_allclose(x_bar, wanted[1])


@EAGER_AND_JITTED
def test_several_passes_and_functions_share_an_accumulator(wrap: Any) -> None:
    grads = jax.new_ref(jnp.zeros(3))

    def run(x: Any, grads: Any) -> None:
        for scale in (1.0, 2.0):
            _, pull = jax.vjp(lambda x: jnp.sum(x**2), x)
            pull.with_refs(grads)(scale)
        _, pull = jax.vjp(lambda x: x[1], x)
        pull.with_refs(grads)(10.0)

    wrap(run)(jnp.asarray([1.0, 2.0, 3.0]), grads)
    np.testing.assert_array_equal(grads[...], [6, 22, 18])


@EAGER_AND_JITTED
def test_every_kind_of_entry(wrap: Any) -> None:
    grads = jax.new_ref(1.0)

    def run(grads: Any) -> Any:
        _, pull = jax.vjp(lambda a, b, c: a * b["x"] * b["y"] * c, 2.0, {"x": 3.0, "y": 5.0}, 7.0)
        first = pull.with_refs(grads, {"x": GradValue(), "y": DontWant()}, DontWant())(1.0)
        second = pull.with_refs(DontWant(), DontWant(), GradValue())(2.0)
        third = pull.with_refs(DontWant(), DontWant(), DontWant())(1.0)
        return first, second, third

    first, second, third = wrap(run)(grads)
    assert first[0] == GradRef()
    assert float(first[1]["x"]) == 70.0
    assert first[1]["y"] == DidntWant()
    assert first[2] == DidntWant()
    assert float(grads[...]) == 106.0
    assert second[:2] == (DidntWant(), {"x": DidntWant(), "y": DidntWant()})
    assert float(second[2]) == 60.0
    assert third == (DidntWant(), {"x": DidntWant(), "y": DidntWant()}, DidntWant())


@EAGER_AND_JITTED
def test_a_reference_argument_without_a_requested_gradient(wrap: Any) -> None:
    def run(ref: Any) -> Any:
        _, pull = jax.vjp(lambda r, x: r[...] * x, ref, 3.0)
        return pull.with_refs(DontWant(), GradValue())(1.0)

    out = wrap(run)(jax.new_ref(2.0))
    assert out[0] == DidntWant()
    assert float(out[1]) == 2.0
    with pytest.raises(EffaxError, match="with_refs"):
        jax.vjp(lambda r: r[...], jax.new_ref(2.0))[1](1.0)
    with pytest.raises(EffaxError, match=r"with_refs|GradValue"):
        jax.vjp(lambda r: r[...], jax.new_ref(2.0))[1].with_refs(GradValue())(1.0)


def test_what_is_not_wanted_is_not_computed() -> None:
    w, x = jnp.ones((4, 4)), jnp.ones(4)

    def dots(*entries: Any) -> int:
        def run() -> Any:
            _, pull = jax.vjp(lambda w, v, x: jnp.sin(w @ (v @ x)), w, w, x)
            return pull.with_refs(*entries)(x)

        return str(jax.make_jaxpr(run)()).count("dot_general")

    value, none = GradValue(), DontWant()
    # Two forward; v needs the cotangent of v @ x, w only a product.
    assert dots(value, value, value) == 6
    assert dots(value, none, none) == 3
    assert dots(none, value, none) == 4
    assert dots(none, none, none) == 2


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_accumulator_in_a_wider_dtype(dtype: str, wrap: Any) -> None:
    grads = jax.new_ref(jnp.zeros((3, 4), jnp.float32))

    def run(w: Any, k: Any, grads: Any) -> None:
        _, pull = jax.vjp(lambda w: jnp.sum(w[k]) + w[0, 1] + jnp.sum(w[jnp.asarray([2, 2])]), w)
        pull.with_refs(grads)(jnp.ones((), dtype))

    step = wrap(run)
    for _ in range(600):
        step(jnp.ones((3, 4), dtype), 1, grads)
    # In bfloat16 the sum would stop at 256.
    wanted = np.zeros((3, 4))
    wanted[1] += 600
    wanted[0, 1] += 600
    wanted[2] += 1200
    np.testing.assert_array_equal(grads[...], wanted)


@pytest.mark.slow
@EAGER_AND_JITTED
def test_a_pullback_and_its_references_enter_jit(wrap: Any) -> None:
    grads = jax.new_ref(0.0)
    _, pull = jax.vjp(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)
    bound = pull.with_refs(grads, GradValue())
    out = jax.jit(lambda p, ct: p(ct))(bound, 1.0)
    assert out[0] == GradRef()
    np.testing.assert_allclose(out[1], np.sin(1.0), rtol=1e-6)
    jax.jit(lambda p, g, ct: p.with_refs(g, DontWant())(ct))(pull, grads, 1.0)
    np.testing.assert_allclose(grads[...], 4 * np.cos(1.0), rtol=1e-6)

    made = jax.jit(lambda x: jax.vjp(lambda x: jnp.sin(x) * x, x)[1])(1.0)
    np.testing.assert_allclose(made(1.0)[0], np.sin(1) + np.cos(1), rtol=1e-6)
    made.with_refs(grads)(1.0)
    np.testing.assert_allclose(grads[...], np.sin(1) + 5 * np.cos(1), rtol=1e-6)
    with pytest.raises(RefError, match="is a reference"):
        jax.jit(lambda x, g: jax.vjp(jnp.sin, x)[1].with_refs(g))(1.0, grads)


@pytest.mark.parametrize(
    "entry", [1.0, "x", None, jnp.ones(()), np.ones(()), GradRef(), DidntWant(), GradValue, [1.0]]
)
def test_nothing_else_is_an_entry(entry: object) -> None:
    _, pull = jax.vjp(jnp.sin, 1.0)
    with pytest.raises(BadArgument, match="with_refs"):
        pull.with_refs(entry)


def test_one_accumulator_for_two_arguments_is_refused() -> None:
    grads = jax.new_ref(0.0)
    _, pull = jax.vjp(lambda a, b: a * b, 2.0, 3.0)
    with pytest.raises(RefError, match="one reference for a and for b"):
        pull.with_refs(grads, grads)
    tree = jax.vjp(lambda t: t["p"] * t["q"], {"p": 1.0, "q": 2.0})[1]
    with pytest.raises(RefError, match=r"t\['p'\] and for t\['q'\]"):
        tree.with_refs({"p": grads, "q": grads})
    assert float(grads[...]) == 0.0


@pytest.mark.slow
@EAGER_AND_JITTED
def test_microbatches_of_a_scanned_model(wrap: Any) -> None:
    layers = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)) / 2
    data = jnp.asarray(np.random.default_rng(2).normal(size=(5, 7, 4)).astype(np.float32))

    def model(ws: Any, xs: Any) -> Any:
        return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(x @ w), None), xs, ws)[0])

    def train(ws: Any, data: Any) -> Any:
        grads = jax.new_ref(jnp.zeros_like(ws))

        def step(_: Any, xs: Any) -> tuple[Any, Any]:
            out, pull = jax.vjp(lambda ws: model(ws, xs), ws)
            pull.with_refs(grads)(1.0)
            return (), out

        _, losses = lax.scan(step, (), data)
        return jax.freeze(grads), losses

    grads, losses = wrap(train)(layers, data)
    wanted = jax.grad(lambda ws: sum(model(ws, xs) for xs in data))(layers)
    np.testing.assert_allclose(grads, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(losses, [model(layers, xs) for xs in data], rtol=1e-5)
    text = jax.jit(train).lower(layers, data).compile().as_text()
    assert not re.search(r"f32\[5,3,4,4\]", text), "gradients of microbatches are arrays"


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, effax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("factor", [3.0, np.float32(3), jnp.float32(3)])
def test_jvp_and_linearize_of_a_reference_beside_a_number(wrap: Any, factor: Any) -> None:
    def product(r: Any, x: Any) -> Any:
        return r[...] * x

    def by_jvp(a: Any, x: Any) -> Any:
        refs = effax.new_ref(a), effax.new_ref(1.0)
        return effax.jvp(product, (refs[0], x), (refs[1], x * 0 + 1))

    def by_linearize(a: Any, x: Any) -> Any:
        y, linear = effax.linearize(product, effax.new_ref(a), x)
        return y, linear(effax.new_ref(1.0), x * 0 + 1)

    for f in (by_jvp, by_linearize):
        assert [float(y) for y in wrap(f)(2.0, factor)] == [6, 5]


@pytest.mark.parametrize("number", [3, np.int32(3), jnp.int32(3)])
def test_jvp_and_linearize_of_a_reference_beside_an_integer(number: Any) -> None:
    def product(r: Any, n: Any) -> Any:
        return r[...] * n

    r, dr, zero = effax.new_ref(2.0), effax.new_ref(1.0), np.zeros((), effax.float0)
    out, tangent = effax.jvp(product, (r, number), (dr, zero))
    assert (float(out), float(tangent)) == (6, 3)
    y, linear = effax.linearize(product, r, number)
    assert (float(y), float(linear(dr, zero))) == (6, 3)
    with pytest.raises(IllTyped, match="tangent of r"):
        effax.jvp(product, (r, number), (jnp.ones(()), zero))
    with pytest.raises(IllTyped, match="tangent of n"):
        effax.jvp(product, (r, number), (dr, dr))
