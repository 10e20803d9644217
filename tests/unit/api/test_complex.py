"""Complex numbers: JAX's conventions, for every function that takes them.

A tangent is the directional derivative, whatever the function: holomorphic ones have no rules of
their own. Cotangents pull back so that Re Σ ct·(J t) = Re Σ (Jᵀ ct)·t: without conjugation, so that
for a holomorphic function Jᵀ is the multiplication by f'.
"""

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


def drawn(seed: int, *shape: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


Z, W, M = drawn(0, 3), drawn(1, 3), drawn(2, 3, 3)
R = Z.real.copy()

HOLOMORPHIC = [
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log1p", "log2",
    "sqrt", "square", "negative", "positive", "reciprocal", "arcsin", "arccos", "arctan", "arcsinh",
    "arccosh", "arctanh", "sinc",
]  # fmt: skip
OTHERS = ["real", "imag", "conj", "abs", "angle", "sign"]
ELEMENTWISE: dict[str, Any] = {name: getattr(jnp, name) for name in (*HOLOMORPHIC, *OTHERS)}
POWERS: dict[str, Any] = {
    f"power {p}": partial(lambda p, z: z**p, p) for p in (-2, 0, 1, 3, 0.5, 2 - 1j)
}
OF_ONE: dict[str, Any] = {
    "power of two": lambda z: 2.0**z,
    "logistic": lax.logistic,
    "rsqrt": lax.rsqrt,
    "tanh of silu": lambda z: jnp.tanh(jax.nn.silu(z)),
    "sum": jnp.sum,
    "prod": jnp.prod,
    "mean": jnp.mean,
    "var": jnp.var,
    "std": jnp.std,
    "cumsum": jnp.cumsum,
    "cumprod": jnp.cumprod,
    "norm": jnp.linalg.norm,
    "gathered": lambda z: z[np.array([0, 0, 2])],
    "written": lambda z: z.at[1].multiply(z[0]).at[2].set(z[0]),
    "parts": lambda z: jnp.stack([z.real, z.imag]),
    "joined": lambda z: lax.complex(z.imag, z.real * 2),
    "scanned": lambda z: lax.scan(lambda c, w: (c * w + 1j, c), z[0], z),
    "chosen": lambda z: jnp.where(z.real > 0, z, z * 1j),
    "looped in parts": lambda z: lax.fori_loop(0, 3, lambda i, c: c * z, z),
}
OF_TWO: dict[str, Any] = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "power": jnp.power,
    "vdot": jnp.vdot,
    "dot": jnp.dot,
    "outer": jnp.outer,
    "convolve": jnp.convolve,
    "einsum": lambda x, y: jnp.einsum("i,j,j->ij", x, y, x),
}


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


def paired(ct: Any, t: Any) -> float:
    pairs = zip(jax.tree.leaves(ct), jax.tree.leaves(t), strict=True)
    return float(sum((np.asarray(a) * np.asarray(b)).sum().real for a, b in pairs))


def check_conventions(f: Any, *args: Any) -> None:
    """The tangent against differences, the cotangent against the tangent, types alike."""
    dots = [drawn(7 + i, *a.shape) if a.dtype.kind == "c" else R.copy() for i, a in enumerate(args)]
    args = tuple(map(jnp.asarray, args))
    out, dot = jax.jvp(f, args, tuple(map(jnp.asarray, dots)))
    h = 1e-2
    ahead = f(*[a + h * d for a, d in zip(args, dots, strict=True)])
    behind = f(*[a - h * d for a, d in zip(args, dots, strict=True)])
    for a, b, t in zip(*map(jax.tree.leaves, (ahead, behind, dot)), strict=True):
        close(t, (np.asarray(a) - np.asarray(b)) / (2 * h))
    out, pull = jax.vjp(f, *args)
    cts = jax.tree.map(lambda y: counted(y).astype(y.dtype), out)
    found = pull(cts)
    assert [x.dtype for x in found] == [a.dtype for a in args]
    assert paired(found, dots) == pytest.approx(paired(cts, dot), rel=1e-3, abs=1e-3)


def counted(y: Any) -> Any:
    grid = jnp.arange(float(y.size)).reshape(y.shape) + 1
    return grid * (1 + 0.5j) if y.dtype.kind == "c" else grid


@pytest.mark.parametrize("name", [*ELEMENTWISE, *POWERS, *OF_ONE])
def test_functions_of_one_operand(name: str) -> None:
    check_conventions((ELEMENTWISE | POWERS | OF_ONE)[name], Z)


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("kind", ["complex", "real and complex", "complex and real"])
def test_functions_of_two_operands(name: str, kind: str) -> None:
    args = {"complex": (Z, W), "real and complex": (np.abs(R), W), "complex and real": (Z, R)}
    check_conventions(OF_TWO[name], *args[kind])


def test_matrices() -> None:
    check_conventions(jnp.matmul, M, drawn(5, 3, 2))
    check_conventions(lambda m: jnp.trace(m @ m.conj().T), M)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions_multiply_by_their_derivative(name: str) -> None:
    f = ELEMENTWISE[name]
    slope = jax.grad(f, holomorphic=True)
    for z in Z:
        point = jnp.asarray(z)
        h = np.complex64(1e-2)
        close(slope(point), (np.asarray(f(point + h)) - np.asarray(f(point - h))) / (2 * h))
        _, pull = jax.vjp(f, point)
        close(pull(jnp.asarray(np.complex64(2j)))[0], 2j * np.asarray(slope(point)))


def test_gradients_of_real_functions_point_down() -> None:
    """For a real function of complex numbers grad is ∂f/∂x - i ∂f/∂y: its conjugate ascends."""

    def f(z: Any) -> Any:
        return (z.real**2 + 3 * z.imag).sum()

    np.testing.assert_allclose(jax.grad(f)(jnp.asarray(Z)), 2 * Z.real - 3j, rtol=1e-6)
    both = jax.jit(jax.vmap(jax.grad(f)))(jnp.asarray(Z))
    np.testing.assert_allclose(both, 2 * Z.real - 3j, rtol=1e-6)


def test_jacobians() -> None:
    z = jnp.asarray(Z)

    def square(z: Any) -> Any:
        return z * z

    expected = np.diag(2 * Z)
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jacobian(square, holomorphic=True)(z), expected, rtol=1e-5)
        with pytest.raises(IllTyped, match="complex"):
            jacobian(square)(z)
    second = jax.hessian(lambda z: (z**3).sum(), holomorphic=True)(z)
    np.testing.assert_allclose(second, np.diag(6 * Z), rtol=1e-5)
    # From real arguments, forward mode takes complex results; to real results, reverse mode takes
    # complex arguments.
    turned = jax.jacfwd(lambda x: x * (1 + 2j))(jnp.asarray(R))
    np.testing.assert_allclose(turned, np.eye(3) * (1 + 2j), rtol=1e-5)
    length = jax.jacrev(jnp.abs)(z)
    np.testing.assert_allclose(length, np.diag(Z.conj() / np.abs(Z)), rtol=1e-5)


def test_both_ways_around_second_order() -> None:

    def f(z: Any) -> Any:
        return (jnp.abs(z) ** 3).sum()

    x, y = jnp.asarray(R), jnp.asarray(Z.imag.copy())

    def of_parts(x: Any, y: Any) -> Any:
        return f(lax.complex(x, y))

    hxx = jax.hessian(of_parts)(x, y)
    size = np.abs(Z)
    np.testing.assert_allclose(np.diag(hxx), 3 * size + 3 * R**2 / size, rtol=1e-3)
