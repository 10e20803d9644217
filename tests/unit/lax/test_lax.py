"""Primitives under JAX's names: values, strict dtypes, one equation each, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import effax.numpy as jnp
from effax import lax
from effax.arrays.array import Array
from effax.ir.errors import BadArgument, EffaxError, IllTyped
from effax.ir.prims import Binary, Unary
from tests.unit.numpy.agreement import assert_same, converted
from tests.unit.numpy.tracing import run_traced, traced

A = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 - 1
U = np.array([0.1, 0.5, 0.9], np.float32)
I = np.array([5, -3, 2], np.int32)  # noqa: E741
B = np.array([True, False, True])
Z = np.array([1 + 2j, 3 - 1j], np.complex64)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

Call = Callable[..., Any]


def unary(name: str) -> Call:
    return lambda lax, x: getattr(lax, name)(x)


FLOATS = [
    "abs",
    "neg",
    "sign",
    "floor",
    "ceil",
    "is_finite",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "cbrt",
    "square",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atanh",
    "logistic",
    "erf",
    "erfc",
    "erf_inv",
    "reciprocal",
    "round",
]
PAIRS = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "max",
    "min",
    "atan2",
    "nextafter",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "pow",
]
BITS = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
]

CALLS: dict[str, tuple[Call, tuple[Any, ...]]] = {
    **{name: (unary(name), (U,)) for name in FLOATS},
    **{
        name: (lambda lax, x, y, n=name: getattr(lax, n)(x, y), (U, U[::-1].copy()))
        for name in PAIRS
    },
    **{
        f"{name} number": (lambda lax, x, n=name: getattr(lax, n)(x, 2.0), (U,))
        for name in ("add", "mul", "pow", "max")
    },
    **{name: (lambda lax, x, y, n=name: getattr(lax, n)(x, y), (I, I[::-1] % 8)) for name in BITS},
    "bitwise_not": (unary("bitwise_not"), (I,)),
    "bitwise_not bool": (unary("bitwise_not"), (B,)),
    "population_count": (unary("population_count"), (I,)),
    "div int": (lambda lax, x: lax.div(x, 2), (I,)),
    "rem int": (lambda lax, x: lax.rem(x, 3), (I,)),
    "real": (unary("real"), (Z,)),
    "imag": (unary("imag"), (Z,)),
    "conj": (unary("conj"), (Z,)),
    "conj real": (unary("conj"), (U,)),
    "complex": (lambda lax, x: lax.complex(x, x), (U,)),
    "round even": (lambda lax, x: lax.round(x * 5, 1), (U,)),
    "round away": (lambda lax, x: lax.round(x * 5), (U,)),
    "integer_pow": (lambda lax, x: lax.integer_pow(x, -3), (U,)),
    "pow int": (lambda lax, x, y: lax.pow(x, y), (U, I)),
    "clamp": (lambda lax, x: lax.clamp(0.2, x, 0.7), (U,)),
    "select": (lambda lax, b, x: lax.select(b, x, -x), (B, U)),
    "select_n": (lambda lax, i, x: lax.select_n(i - 2 > 0, x, -x), (I, U)),
    "convert_element_type": (lambda lax, x: lax.convert_element_type(x * 9, "int8"), (U,)),
    "bitcast_convert_type": (lambda lax, x: lax.bitcast_convert_type(x, "uint32"), (U,)),
    "stop_gradient": (lambda lax, x: lax.stop_gradient({"a": x, "b": 3})["a"], (U,)),
    "reshape": (lambda lax, x: lax.reshape(x, (2, 6)), (A,)),
    "reshape dimensions": (lambda lax, x: lax.reshape(x, (12,), (1, 0)), (A,)),
    "broadcast": (lambda lax, x: lax.broadcast(x, (2, 1)), (U,)),
    "broadcast_in_dim": (lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), (U,)),
    "transpose": (lambda lax, x: lax.transpose(x, (1, 0)), (A,)),
    "squeeze": (lambda lax, x: lax.squeeze(x[None], (0,)), (A,)),
    "expand_dims": (lambda lax, x: lax.expand_dims(x, (0, 2)), (U,)),
    "collapse": (lambda lax, x: lax.collapse(x, 0, 2), (C,)),
    "rev": (lambda lax, x: lax.rev(x, (1,)), (A,)),
    "concatenate": (lambda lax, x: lax.concatenate([x, x * 2], 1), (A,)),
    "pad": (lambda lax, x: lax.pad(x, 7.0, ((1, 0, 0), (-1, 2, 1))), (A,)),
    "slice": (lambda lax, x: lax.slice(x, (0, 1), (3, 4), (2, 1)), (A,)),
    "slice_in_dim": (lambda lax, x: lax.slice_in_dim(x, 1, -1, axis=1), (A,)),
    "slice_in_dim stride": (lambda lax, x: lax.slice_in_dim(x, 0, None, 2, axis=1), (A,)),
    "index_in_dim": (lambda lax, x: lax.index_in_dim(x, -1, 1, keepdims=False), (A,)),
    "split": (lambda lax, x: lax.split(x, (1, 3), axis=1), (A,)),
    "iota": (lambda lax: lax.iota("float32", 4), ()),
    "broadcasted_iota": (lambda lax: lax.broadcasted_iota("int32", (2, 3), 1), ()),
    "full": (lambda lax: lax.full((2,), 3.0), ()),
    "full_like": (lambda lax, x: lax.full_like(x, 2), (I,)),
    "dynamic_slice": (lambda lax, x, i: lax.dynamic_slice(x, (i[2], i[1]), (1, 2)), (A, I)),
    "dynamic_slice clamped": (lambda lax, x, i: lax.dynamic_slice(x, (i[0], i[0]), (2, 3)), (A, I)),
    "dynamic_slice static": (lambda lax, x: lax.dynamic_slice(x, (1, -2), (2, 2)), (A,)),
    "dynamic_slice array": (lambda lax, x, i: lax.dynamic_slice(x, i[:2], (2, 2)), (A, I)),
    "dynamic_slice_in_dim": (lambda lax, x, i: lax.dynamic_slice_in_dim(x, i[2], 2, 1), (A, I)),
    "dynamic_index_in_dim": (
        lambda lax, x, i: lax.dynamic_index_in_dim(x, i[1], 1, keepdims=False),
        (A, I),
    ),
    "dynamic_update_slice": (
        lambda lax, x, i: lax.dynamic_update_slice(x, x[:2, :2] * 9, (i[2], i[1])),
        (A, I),
    ),
    "dynamic_update_slice_in_dim": (
        lambda lax, x, i: lax.dynamic_update_slice_in_dim(x, x[:, :2], i[2], 1),
        (A, I),
    ),
    "dynamic_update_index_in_dim": (
        lambda lax, x, i: lax.dynamic_update_index_in_dim(x, x[:, 0] * 9, i[1], 1),
        (A, I),
    ),
    "reduce_sum": (lambda lax, x: lax.reduce_sum(x, (0,)), (A,)),
    "reduce_max": (lambda lax, x: lax.reduce_max(x, (0, 1)), (A,)),
    "reduce_min": (lambda lax, x: lax.reduce_min(x, (1,)), (A,)),
    "reduce_prod": (lambda lax, x: lax.reduce_prod(x, (1,)), (A,)),
    "reduce_and": (lambda lax, x: lax.reduce_and(x, (0,)), (B,)),
    "reduce_or": (lambda lax, x: lax.reduce_or(x, (0,)), (B,)),
    "argmax": (lambda lax, x: lax.argmax(x, 1, "int32"), (A,)),
    "argmin": (lambda lax, x: lax.argmin(x, 0, "int32"), (A,)),
    "cumsum": (lambda lax, x: lax.cumsum(x, 1, reverse=True), (A,)),
    "cumprod": (lambda lax, x: lax.cumprod(x), (A,)),
    "cummax": (lambda lax, x: lax.cummax(x, 0), (I,)),
    "cummin": (lambda lax, x: lax.cummin(x, 0), (I,)),
    "sort": (lambda lax, x: lax.sort(x), (U,)),
    "sort many": (lambda lax, x, y: lax.sort((x, y), num_keys=2), (I % 2, I)),
    "sort_key_val": (lambda lax, x, y: lax.sort_key_val(x, y), (I, U)),
    "top_k": (lambda lax, x: lax.top_k(x % 1, 2), (A,)),
    "top_k equal": (lambda lax, x: lax.top_k(x * 0, 3), (A,)),
    "dot": (lambda lax, x: lax.dot(x, x.T), (A,)),
    "dot vectors": (lambda lax, x: lax.dot(x, x), (U,)),
    "dot_general": (
        lambda lax, x: lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))),
        (C,),
    ),
    "dot preferred": (lambda lax, x: lax.dot(x, x, preferred_element_type="float32"), (I,)),
    "batch_matmul": (lambda lax, x: lax.batch_matmul(x, lax.transpose(x, (0, 2, 1))), (C,)),
}


@cache
def results_of_jax() -> dict[str, Any]:
    import jax

    def run() -> dict[str, Any]:
        return {
            name: call(jax.lax, *(converted(x, jax.numpy) for x in args))
            for name, (call, args) in CALLS.items()
        }

    return jax.jit(run)()  # type: ignore[no-any-return, unused-ignore]  # jax is not typed


@pytest.mark.jax
@pytest.mark.parametrize("name", CALLS)
def test_results_agree_with_jax(name: str) -> None:
    call, args = CALLS[name]
    found = call(lax, *(converted(x, jnp) for x in args))
    assert_same(found, results_of_jax()[name], rtol=3e-6)


@pytest.mark.parametrize("name", CALLS)
def test_traced_results_equal_evaluated_ones(name: str) -> None:
    call, args = CALLS[name]
    arrays = [jnp.asarray(x) for x in args]
    found = run_traced(lambda *xs: call(lax, *xs), *arrays)
    wanted = call(lax, *arrays)
    for a, b in zip(
        found if isinstance(wanted, list | tuple) else [found],
        wanted if isinstance(wanted, list | tuple) else [wanted],
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


MADE_OF_OTHERS = {"reciprocal", "round", "erf_inv"}


@pytest.mark.parametrize("name", [n for n in (*FLOATS, *PAIRS) if n not in MADE_OF_OTHERS])
def test_a_function_applies_the_primitive_of_its_name(name: str) -> None:
    call, args = CALLS[name]
    (eqn,) = traced(lambda *xs: call(lax, *xs), *map(jnp.asarray, args)).eqns
    assert eqn.prim.name == name
    assert isinstance(eqn.prim, Unary | Binary) or name == "abs"


def test_every_public_name_of_the_modules_is_exported() -> None:
    for name in [
        "cond",
        "fori_loop",
        "map",
        "scan",
        "switch",
        "while_loop",
        "ds",
        "dslice",
        "Precision",
    ]:
        assert hasattr(lax, name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_erf_inv_inverts(dtype: str) -> None:
    x = jnp.linspace(-0.9, 0.9, 19).astype(dtype)
    found = np.asarray(lax.erf(lax.erf_inv(x))).astype(np.float32)
    assert lax.erf_inv(x).dtype == dtype
    tolerance = 1e-6 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(found, np.asarray(x).astype(np.float32), atol=tolerance)
    ends = np.asarray(lax.erf_inv(jnp.array([-1, 1, 2], jnp.float32)))
    assert ends[:2].tolist() == [-np.inf, np.inf]
    assert np.isnan(ends[2])


def test_erf_inv_in_double_precision() -> None:
    from effax import enable_x64

    with enable_x64():
        p = np.array([1e-300, 1e-9, 0.3, 0.5, 0.99, 1 - 1e-9, 1 - 2**-53, -0.75])
        x = lax.erf_inv(jnp.asarray(p))
        assert x.dtype == np.float64
        found = np.asarray(x)
        np.testing.assert_allclose(np.asarray(lax.erf(x))[2:5], p[2:5], rtol=1e-14)
        np.testing.assert_allclose(found[0], p[0] * np.sqrt(np.pi) / 2, rtol=1e-14)
        # From tables of the normal distribution.
        np.testing.assert_allclose(found[5], 4.320005384913445, rtol=1e-8)
        np.testing.assert_allclose(found[7], -0.8134198475976185, rtol=1e-14)


def test_erf_inv_has_the_derivative_of_an_inverse() -> None:
    from effax.api.autodiff import grad

    for x in (-0.7, 0.0, 0.5):
        y = float(lax.erf_inv(x))
        slope = np.asarray(grad(lax.erf_inv)(jnp.float32(x)))
        np.testing.assert_allclose(slope, np.sqrt(np.pi) / 2 * np.exp(y * y), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: lax.add(jnp.zeros(2), jnp.arange(2)), IllTyped, "different dtype"),
        (lambda: lax.add(jnp.arange(2), 1.5), IllTyped, "convert_element_type"),
        (lambda: lax.mul(jnp.zeros(2), jnp.zeros(3)), IllTyped, "different shape"),
        (lambda: lax.sin(jnp.arange(2)), IllTyped, "float"),
        (lambda: lax.bitwise_and(jnp.zeros(2), 1), IllTyped, "does not take"),
        (lambda: lax.erf_inv(jnp.arange(2)), IllTyped, "floats"),
        (lambda: lax.round(jnp.zeros(2), 7), BadArgument, "rounding method"),
        (lambda: lax.reshape(jnp.zeros(4), (3,)), IllTyped, "number of elements"),
        (lambda: lax.slice(jnp.zeros(4), (0,), (5,)), IllTyped, "out of bounds"),
        (lambda: lax.concatenate([], 0), BadArgument, "no arrays"),
        (lambda: lax.concatenate([jnp.zeros(2), jnp.arange(2)], 0), IllTyped, "dtype"),
        (lambda: lax.broadcast_in_dim(jnp.zeros(2), (3,), (0,)), IllTyped, "broadcast_in_dim"),
        (lambda: lax.dynamic_slice(jnp.zeros(4), (0, 0), (2,)), BadArgument, "one start per axis"),
        (lambda: lax.dynamic_slice(jnp.zeros(4), (1.5,), (2,)), IllTyped, "integer"),
        (lambda: lax.top_k(jnp.zeros(3), 4), BadArgument, "top_k"),
        (lambda: lax.reduce_sum(jnp.zeros(3), (1,)), BadArgument, "axis"),
        (lambda: lax.dot(jnp.zeros((2, 2, 2)), jnp.zeros(2)), IllTyped, "vectors and matrices"),
        (lambda: lax.dot(jnp.zeros(2), jnp.zeros(2), precision="most"), BadArgument, "precision"),
        (lambda: lax.split(jnp.zeros(3), (1, 1)), BadArgument, "sum to 3"),
        (lambda: lax.sort([]), BadArgument, "at least one operand"),
        (lambda: lax.full((-1,), 0), BadArgument, "negative"),
        (lambda: lax.iota("bool", 3), IllTyped, "numbers"),
    ],
)
def test_errors(call: Callable[[], Array], error: type[EffaxError], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_errors_of_traced_calls_name_the_line() -> None:
    def add(x: Array, y: Array) -> Array:
        return lax.add(x, y)

    with pytest.raises(IllTyped, match=r"test_lax\.py"):
        traced(add, jnp.zeros(2), jnp.zeros(3))
