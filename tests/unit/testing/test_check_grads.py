from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument
from effax.test_util import check_grads, check_jvp, check_vjp

X = np.array([0.3, -1.2, 0.7], np.float32)


def smooth(x: Any, w: Any) -> Any:
    return {"y": jnp.sin(x) * w["a"], "z": jnp.sum(jnp.tanh(w["b"] * x))}


W = {"a": np.array([1.0, 2.0, -0.5], np.float32), "b": np.float32(0.4)}


def wrong_derivative() -> Callable[[Any], Any]:
    @effax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.defjvp
    def f_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
        return jnp.sin(primals[0]), jnp.sin(primals[0]) * tangents[0]

    return f


def through_a_reference(x: Any) -> Any:
    total = effax.new_ref(jnp.zeros(()))

    def step(carry: Any, y: Any) -> tuple[Any, None]:
        total[...] += jnp.sin(y) * carry
        return carry * 0.9, None

    lax.scan(step, jnp.float32(1.0), x)
    return effax.freeze(total)


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_right_derivatives_pass(modes: tuple[str, ...]) -> None:
    check_grads(smooth, (X, W), modes=modes)


def test_second_order() -> None:
    check_grads(smooth, (X, W), order=2)


def test_second_order_in_double_precision() -> None:
    with effax.enable_x64():
        check_grads(
            smooth, (X.astype(np.float64), {"a": np.ones(3), "b": np.float64(0.3)}), order=2
        )


def test_functions_with_references() -> None:
    check_grads(through_a_reference, (X,), order=2)


def test_integers_are_left_alone() -> None:
    check_grads(lambda x, i: x[i] * x, (X, np.int32(1)))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives_do_not_pass(mode: str) -> None:
    with pytest.raises(AssertionError, match="differs from the differences"):
        check_grads(wrong_derivative(), (X,), modes=(mode,))


def test_wrong_second_derivative_does_not_pass() -> None:
    wrong = wrong_derivative()

    @effax.custom_jvp
    def g(x: Any) -> Any:
        return jnp.cos(x)

    @g.defjvp
    def g_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
        return jnp.cos(primals[0]), -wrong(primals[0]) * tangents[0]

    check_grads(g, (X,))
    with pytest.raises(AssertionError, match=r"in mode (fwd|rev), then (fwd|rev)"):
        check_grads(g, (X,), order=2)


def test_unknown_modes() -> None:
    with pytest.raises(BadArgument, match="backward"):
        check_grads(smooth, (X, W), modes=("backward",))
    with pytest.raises(BadArgument, match="order 0"):
        check_grads(smooth, (X, W), order=0)


def test_tolerances_by_dtype_and_values_outside_of_the_domain() -> None:
    narrow = jnp.array([0.3, -1.2], "bfloat16")
    check_grads(lambda x: x * x, (narrow,), atol={np.float32: 0.0}, rtol={"bfloat16": 0.3}, eps=1.0)
    with pytest.raises(AssertionError, match="mode fwd"):
        check_grads(lambda x: x * x, (narrow,), atol=0.0, rtol={"bfloat16": 1e-6})
    check_grads(jnp.sqrt, (X,), modes=["fwd"])


def test_one_mode_of_a_given_derivative() -> None:
    f = wrong_derivative()
    check_jvp(jnp.sin, lambda xs, ts: effax.jvp(jnp.sin, xs, ts), (X,))
    check_vjp(jnp.sin, lambda x: effax.vjp(jnp.sin, x), (X,))
    with pytest.raises(AssertionError, match="of f differs"):
        check_jvp(f, lambda xs, ts: effax.jvp(f, xs, ts), (X,), err_msg="the jvp of f")
    with pytest.raises(AssertionError, match="mode rev"):
        check_vjp(f, lambda x: effax.vjp(f, x), (X,))


def test_a_wrong_value_is_not_said_to_be_a_wrong_difference() -> None:
    with pytest.raises(AssertionError, match="the value differs from that of the function"):
        check_jvp(jnp.sin, lambda *xs: effax.jvp(jnp.cos, *xs), (0.5,))
    with pytest.raises(AssertionError, match="the value differs from that of the function"):
        check_vjp(jnp.sin, lambda x: effax.vjp(jnp.cos, x), (0.5,))


@pytest.mark.filterwarnings("error")
def test_equal_infinities_agree() -> None:
    check_jvp(lambda x: x * np.inf, lambda *xs: (xs[0][0] * np.inf, xs[1][0] * np.nan), (0.5,))
