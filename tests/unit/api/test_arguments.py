"""Arguments and results that are not arrays: other objects, auxiliary results, names."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped

jax: Any = effax


def apply(x: Any, n: int, mode: str, g: Any, *, train: bool) -> Any:
    assert isinstance(n, int)
    y = g(x) if mode == "apply" and train else x
    return sum(y * i for i in range(n))


ARGS = (3, "apply", jnp.sin)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_arguments_that_are_not_differentiated_are_anything(wrap: Any) -> None:
    for transform in (jax.grad, jax.jacfwd, jax.jacrev):
        f = transform(apply)
        assert float(wrap(lambda x, f=f: f(x, *ARGS, train=True))(0.5)) == pytest.approx(
            3 * np.cos(0.5), rel=1e-6
        )
    value, slope = wrap(lambda x: jax.value_and_grad(apply)(x, *ARGS, train=False))(0.5)
    assert (float(value), float(slope)) == (1.5, 3.0)
    second = wrap(lambda x: jax.hessian(apply)(x, *ARGS, train=True))(0.5)
    assert float(second) == pytest.approx(-3 * np.sin(0.5), rel=1e-6)


def test_arguments_that_are_not_mapped_are_anything() -> None:
    f = jax.vmap(lambda x, n, mode: x * n if mode == "mul" else x, (0, None, None))
    np.testing.assert_array_equal(f(jnp.arange(3.0), 2, "mul"), [0, 2, 4])
    np.testing.assert_array_equal(f(jnp.arange(3.0), 2, "add"), [0, 1, 2])
    g = jax.vmap(lambda x, p: x[: p["n"]] * p["w"], (0, {"n": None, "w": None}))
    assert g(jnp.ones((2, 5)), {"n": 3, "w": jnp.float32(2)}).shape == (2, 3)


def test_static_arguments_pass_through_gradients() -> None:
    power = effax.jit(lambda x, n: x**n, static_argnums=1)
    assert float(jax.grad(power)(2.0, 3)) == 12.0
    assert float(jax.jit(jax.grad(power), static_argnums=1)(2.0, 3)) == 12.0
    assert float(jax.vmap(power, (0, None))(jnp.array([2.0]), 3)[0]) == 8.0


def test_auxiliary_results_are_anything() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(x), {"x": x * 2, "name": "sin", "n": 3, "none": None, "f": jnp.sin}

    def check(aux: Any) -> None:
        assert float(aux["x"]) == 1.0
        assert aux["x"].dtype == np.float32
        assert (aux["name"], aux["n"], aux["none"], aux["f"]) == ("sin", 3, None, jnp.sin)

    x = jnp.float32(0.5)
    check(jax.grad(f, has_aux=True)(x)[1])
    check(jax.value_and_grad(f, has_aux=True)(x)[0][1])
    check(jax.vjp(f, x, has_aux=True)[2])
    check(jax.jvp(f, (x,), (x,), has_aux=True)[2])
    check(jax.linearize(f, x, has_aux=True)[2])
    check(jax.jacfwd(f, has_aux=True)(x)[1])
    check(jax.jacrev(f, has_aux=True)(x)[1])
    out, push, _ = jax.linearize(f, x, has_aux=True)
    assert float(out) == pytest.approx(np.sin(0.5))
    assert float(push(2.0)) == pytest.approx(2 * np.cos(0.5))


def test_auxiliary_results_need_no_derivative() -> None:
    def f(x: Any) -> Any:
        return x * 2, lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)

    assert [float(v) for v in jax.grad(f, has_aux=True)(1.0)] == [2.0, 16.0]


def test_a_reference_is_no_auxiliary_result() -> None:
    ref = effax.new_ref(0.0)
    with pytest.raises(IllTyped, match="is a reference"):
        jax.grad(lambda x: (x, ref), has_aux=True)(1.0)


def named(x: Any, *rest: Any, scale: float = 1.0) -> Any:
    return x


class Layer:
    def __call__(self, weights: Any) -> Any:
        return weights

    def method(self, bias: Any) -> Any:
        return bias


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: effax.jit(named)("a"), "x"),
        (lambda: jax.jit(named)(1.0, {"k": "a"}), r"rest\[0\]\['k'\]"),
        (lambda: jax.jit(named)(1.0, scale="a"), "scale"),
        (lambda: jax.jit(named, static_argnums=0)(1.0, 2.0, "a"), r"args\[1\]"),
        (lambda: jax.jit(partial(named, 1.0))("a"), r"rest\[0\]|args\[0\]"),
        (lambda: jax.jit(Layer())("a"), "weights"),
        (lambda: jax.jit(Layer().method)("a"), "bias"),
        (lambda: jax.grad(jax.jit(named))("a"), "x"),
        (lambda: jax.jit(jax.vmap(jax.grad(named)))("a"), "x"),
        (lambda: jax.vjp(jax.jit(Layer().method), "a"), "bias"),
        (lambda: jax.custom_jvp(named).__wrapped__ is named and jax.jit(max)("a"), r"args\[0\]"),
    ],
)
def test_arguments_are_named_as_the_user_does(call: Any, name: str) -> None:
    with pytest.raises(IllTyped, match=f"^({name}) is not an array"):
        call()


def test_jit_is_a_decorator_with_options() -> None:
    @effax.jit(static_argnames="n")
    def f(x: effax.Array, n: int) -> effax.Array:
        return x * n

    assert float(f(jnp.float32(2.0), 3)) == 6.0


def test_shapes_stand_for_arguments() -> None:
    f = effax.jit(lambda p, n: {"y": p["w"] @ p["x"] * n}, static_argnames="n")
    w, x = (effax.ShapeDtypeStruct(s, "float32") for s in ((2, 3), (3,)))
    lowered = f.lower({"w": w, "x": x}, n=2)
    assert "stablehlo.dot_general" in lowered.as_text()
    out = lowered.compile()({"w": jnp.ones((2, 3)), "x": jnp.arange(3.0)})
    np.testing.assert_array_equal(out["y"], [6, 6])
    shape = f.eval_shape({"w": w, "x": x}, n=2)["y"]
    assert (shape.shape, str(shape.dtype)) == ((2,), "float32")
    traced = f.trace({"w": jnp.ones((2, 3)), "x": jnp.ones(3)}, n=2)
    assert f.trace({"w": w, "x": x}, n=2).jaxpr == traced.jaxpr


def test_a_compiled_call_cannot_be_traced() -> None:
    compiled = effax.jit(lambda x: x * 2).lower(1.0).compile()
    with pytest.raises(IllTyped, match="cannot be traced"):
        effax.jit(compiled)(1.0)


def test_constants_are_literals_where_control_flow_begins() -> None:
    def f(n: Any, x: Any) -> Any:
        y = lax.fori_loop(0, n, lambda i, c: c + x, 0.0)
        z, _ = lax.scan(lambda c, _: (c * x, None), 1.0, None, 3)
        return y + z + lax.switch(n, [lambda: 1.0, lambda: 2.0])

    jaxpr = effax.make_jaxpr(f)(jnp.int32(3), jnp.float32(2))
    assert jaxpr.consts == ()
    assert "convert_element_type" not in str(jaxpr)


def test_indices_of_loops_are_weak_where_the_bounds_are() -> None:
    total = lax.fori_loop(0, 4, lambda i, c: c + i, jnp.int8(0))
    assert (int(total), str(total.dtype)) == (6, "int8")
    for lower, upper, expected in (
        (0, 3, "~i32[]"),
        (jnp.int16(0), 3, "i16[]"),
        (0, jnp.int16(3), "i16[]"),
    ):
        seen: list[str] = []

        def body(i: Any, c: Any, seen: list[str] = seen) -> Any:
            seen.append(str(i.type))
            return c

        lax.fori_loop(lower, upper, body, 0.0)
        assert set(seen) == {expected}
