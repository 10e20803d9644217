"""Linear functions, their transposes, closures as arguments, derivatives beside results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.custom_derivatives import linear_call
from effax.ir.errors import IllTyped, TransformError

jax: Any = effax
X = jnp.arange(3.0)
M = jnp.arange(6.0).reshape(2, 3) + 1

LINEAR: dict[str, Any] = {
    "scaled": lambda x: -x * 2 / 3,
    "matrix": lambda x: M @ x,
    "parts": lambda x: jnp.concatenate([x[1:], jnp.zeros(2), x[jnp.array([0, 0])]]),
    "masked": lambda x: jnp.where(jnp.array([True, False, True]), x, 0.0),
    "written": lambda x: jnp.zeros(5).at[1:4].set(x).at[0].add(x[0]),
    "padded": lambda x: jnp.pad(x, 1).reshape(5, 1).sum(1),
    "jitted": effax.jit(lambda y: y + y),
    "scanned": lambda x: lax.scan(lambda c, m: (c * m + x, c.sum()), x * 0, X),
    "chosen": lambda x: lax.cond(True, lambda: x * 2, lambda: x * 0),
    "summed": jnp.cumsum,
    "in a tree": lambda x: {"a": (x, x[0]), "b": x.sum()},
    "nothing": lambda x: jnp.zeros(2),
    "narrowed": lambda x: x.astype("bfloat16"),
    "complex": lambda x: x * (1 + 2j),
}


def gathered(x: Any) -> Any:
    ref = effax.new_ref(jnp.zeros(2))
    ref[0] = x[0]
    ref[1] += x.sum()
    return effax.freeze(ref)


def doubled(x: Any) -> Any:
    f = jax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (p[0] * 2, t[0] * 2))
    return f(x)


LINEAR |= {"in a reference": gathered, "of a custom function": doubled}


def counted(y: Any) -> Any:
    return (jnp.arange(float(y.size)).reshape(y.shape) + 1).astype(y.dtype)


def inner(a: Any, b: Any) -> complex:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return sum(complex((np.asarray(x, np.complex64) * np.asarray(y)).sum()) for x, y in pairs)


@pytest.mark.parametrize("name", LINEAR)
def test_a_transpose_is_adjoint_and_its_own_inverse(name: str) -> None:
    f = LINEAR[name]
    out = f(X)
    cts = jax.tree.map(
        lambda y: (jnp.arange(float(y.size)).reshape(y.shape) + 1).astype(y.dtype), out
    )
    transposed = jax.linear_transpose(f, X)
    (ct,) = transposed(cts)
    assert (ct.shape, ct.dtype) == (X.shape, X.dtype)
    # The cotangent of the real operand of a complex number is the real part.
    assert inner(ct, X).real == pytest.approx(inner(cts, out).real, rel=1e-2)
    if name != "complex":
        (again,) = jax.linear_transpose(lambda c: transposed(c)[0], out)(X)
        for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(out), strict=True):
            np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-5)


def test_types_are_enough_and_other_transformations_go_around() -> None:
    struct = effax.ShapeDtypeStruct((3,), jnp.float32)
    transposed = jax.linear_transpose(lambda x, y: {"a": M @ x + y["b"]}, struct, {"b": X[:2]})
    x, y = jax.jit(transposed)({"a": X[:2]})
    np.testing.assert_allclose(x, np.asarray(M).T @ [0, 1])
    np.testing.assert_allclose(y["b"], [0, 1])

    def weighted(m: Any) -> Any:
        return jax.linear_transpose(lambda x: m * x, X)(X)[0].sum()

    assert jax.grad(weighted)(2.0) == 3.0
    np.testing.assert_allclose(jax.vmap(weighted)(X), 3 * np.asarray(X))


REFUSED: dict[str, Any] = {
    "one": (lambda x: x + 1, IllTyped, "not linear: the result is not zero"),
    "a constant": (lambda x: {"a": x, "b": jnp.ones(2)}, IllTyped, r"the result\['b'\]"),
    "a constant at some elements": (lambda x: jnp.where(X > 1, x, 1.0), IllTyped, "not linear"),
    "a constant of a loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + 1.0, x),
        IllTyped,
        "not linear",
    ),
    "a constant of a branch": (
        lambda x: lax.cond(X[0] > 1, lambda: x, lambda: X + 1),
        IllTyped,
        "not linear",
    ),
    "a function": (jnp.sin, TransformError, "sin"),
    "a product": (lambda x: x * x, TransformError, "mul is transposed"),
    "a quotient": (lambda x: 1 / x, TransformError, "div"),
    "a comparison": (lambda x: x > 1, IllTyped, "the result is neither real"),
    "an integer": (lambda x: x.astype(int), IllTyped, "the result is neither real"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_linear(name: str) -> None:
    f, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        jax.linear_transpose(f, X)


def test_a_function_of_integers_is_transposed_over_the_integers() -> None:
    m = jnp.arange(6).reshape(2, 3)
    (found,) = jax.linear_transpose(lambda x: m @ x, jnp.zeros(3, int))(jnp.array([1, 10]))
    assert found.tolist() == [30, 41, 52]
    assert found.dtype == np.int32
    with pytest.raises(IllTyped, match="the result has the wrong type"):
        jax.linear_transpose(lambda x: 2 * x, 1)(1.5)


def test_wrong_calls() -> None:
    with pytest.raises(IllTyped, match="n is neither real"):
        jax.linear_transpose(lambda n: 2.0 * n, jnp.arange(3))
    with pytest.raises(IllTyped, match="p is neither real"):
        jax.linear_transpose(lambda p: p, jnp.arange(3) > 1)
    with pytest.raises(IllTyped, match="the cotangent of the result"):
        jax.linear_transpose(lambda x: x, X)(jnp.ones(2))
    with pytest.raises(IllTyped, match="wrong structure"):
        jax.linear_transpose(lambda x: x, X)((X,))
    with pytest.raises(IllTyped, match="reduces no axes"):
        jax.linear_transpose(lambda x: x, X, reduce_axes=("i",))


def divided(r: Any, x: Any) -> Any:
    """x / r, whose transpose is 10 times too large."""
    return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, r, x)


def test_linear_calls_bring_their_transposes() -> None:
    assert divided(2.0, 3.0) == 1.5

    def push(x: Any) -> Any:
        return divided(2.0, x)

    def back(ct: Any) -> Any:
        return jax.linear_transpose(push, 1.0)(ct)[0]

    assert (back(1.0), jax.jit(back)(1.0)) == (5.0, 5.0)
    # The transpose of the transpose is the function again.
    assert jax.linear_transpose(back, 1.0)(1.0)[0] == 0.5
    assert jax.grad(push)(3.0) == 5.0
    assert jax.jvp(push, (3.0,), (1.0,)) == (1.5, 0.5)
    xs = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(jax.vmap(push)(xs), [0.5, 1.0])
    np.testing.assert_allclose(jax.vmap(jax.grad(push))(xs), [5, 5])
    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(push)(x).sum())(xs), [5, 5])
    np.testing.assert_allclose(jax.vmap(jax.grad(divided, 1), (0, None))(xs, 1.0), [10, 5])

    def looped(x: Any) -> Any:
        return lax.scan(lambda c, _: (push(c), None), x, None, length=2)[0]

    assert jax.grad(looped)(1.0) == 25.0
    assert jax.grad(jax.checkpoint(looped))(1.0) == 25.0


def test_linear_calls_are_differentiated_in_their_residuals() -> None:
    assert jax.grad(divided)(2.0, 3.0) == pytest.approx(-3 / 4)
    assert jax.grad(jax.grad(divided))(2.0, 3.0) == pytest.approx(3 / 4)
    assert jax.grad(jax.grad(divided, 1))(2.0, 3.0) == pytest.approx(-10 / 4)
    assert jax.jvp(divided, (2.0, 3.0), (1.0, 1.0))[1] == pytest.approx(-3 / 4 + 1 / 2)


def test_linear_calls_of_trees() -> None:

    def forward(r: Any, d: Any) -> Any:
        return (d["a"] * r[0] + d["b"].sum(), d["b"] * 2)

    def back(r: Any, ct: Any) -> Any:
        return {"a": ct[0] * r[0], "b": jnp.full(3, ct[0]) + ct[1] * 2}

    def f(d: Any) -> Any:
        return linear_call(forward, back, (3.0,), d)

    d = {"a": jnp.float32(2), "b": X}
    np.testing.assert_allclose(f(d)[0], 9.0)
    found = jax.grad(lambda d: f(d)[0])(d)
    np.testing.assert_allclose(found["b"], np.ones(3))

    def transposed(back: Any) -> Any:
        return jax.jit(jax.grad(lambda d: linear_call(forward, back, (3.0,), d)[0]))(d)

    with pytest.raises(IllTyped, match="another structure"):
        transposed(lambda r, ct: ct)

    def wrong(r: Any, ct: Any) -> Any:
        return {"a": ct[1], "b": ct[1]}

    with pytest.raises(IllTyped, match="wrong type"):
        transposed(wrong)
    with pytest.raises(IllTyped, match="linear_args is neither real"):
        jax.jit(lambda n: linear_call(lambda r, x: x, lambda r, x: x, (), n))(3)


def test_closures_become_arguments() -> None:
    seen: list[Any] = []

    def minimum(f: Any, x: Any) -> Any:
        converted, values = jax.closure_convert(f, x)
        seen.append(len(values))
        return solve(converted, x, *values)

    def solve_(f: Any, x: Any, *values: Any) -> Any:
        return f(x, *values)

    solve = jax.custom_vjp(solve_, nondiff_argnums=(0,))
    solve.defvjp(
        lambda f, x, *values: (f(x, *values), (x, values)),
        lambda f, res, ct: (ct * 7, *[ct * 100 + 0 * v for v in res[1]]),
    )
    table = jnp.arange(2.0)

    def loss(x: Any, k: Any) -> Any:
        return minimum(lambda y: (y * k * table).sum(), x)

    assert loss(2.0, 3.0) == 6.0
    assert jax.grad(loss, (0, 1))(2.0, 3.0) == (7.0, 100.0)
    assert jax.jit(jax.grad(loss, (0, 1)))(2.0, 3.0) == (7.0, 100.0)
    assert set(seen) == {0, 1}
    converted, values = jax.closure_convert(lambda d: d["x"] * table, {"x": 1.0})
    assert values == []
    np.testing.assert_allclose(converted({"x": 2.0}), [0, 2])
    with pytest.raises(IllTyped, match="another structure"):
        converted(2.0)
    with pytest.raises(IllTyped, match="wrong type"):
        converted({"x": X})


def test_gradients_beside_results() -> None:
    @effax.custom_gradient
    def f(x: Any, n: int = 2) -> Any:
        powered = x**n
        return powered, lambda g: (g * powered * 10, None)

    assert f(3.0) == 9.0
    assert jax.grad(f)(3.0) == 90.0
    assert jax.grad(lambda x: f(x, n=3))(2.0) == 80.0
    assert jax.jit(jax.grad(f))(3.0) == 90.0
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(X), 10 * np.asarray(X) ** 2)
    assert jax.grad(jax.grad(f))(3.0) == 60.0
    one = jax.custom_gradient(lambda d: (d["a"] * 2, lambda g: {"a": g * 5}))
    assert jax.grad(one)({"a": 1.0}) == {"a": 5.0}
    several = jax.custom_gradient(lambda x: ((x, x.astype(int)), lambda g: g[0] * 3))
    assert jax.grad(lambda x: several(x)[0])(jnp.float32(2)) == 3.0

    def looped(x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    assert jax.grad(looped)(1.0) == 100.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_wrong_gradients_beside_results(wrap: Any) -> None:
    with pytest.raises(IllTyped, match="must return"):
        wrap(jax.grad(jax.custom_gradient(lambda x: x)))(1.0)
    with pytest.raises(ValueError, match="takes a function"):
        wrap(jax.grad(jax.custom_gradient(lambda x: (x, 3))))(1.0)
    with pytest.raises(IllTyped, match="wrong number of cotangents"):
        wrap(jax.grad(jax.custom_gradient(lambda x: (x, lambda g: (g, g)))))(1.0)
    with pytest.raises(IllTyped, match="wrong type for x"):
        wrap(jax.grad(jax.custom_gradient(lambda x: (x, lambda g: jnp.stack([g, g])))))(1.0)
