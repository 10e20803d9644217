"""Dtypes by name, promotion, limits; Python's operators; errors of functions."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import effax.numpy as jnp
from effax import enable_x64
from effax.arrays.array import Array
from effax.ir.errors import BadArgument, BadIndex, ConcretizationError, EffaxError, IllTyped
from tests.unit.numpy.tracing import traced

NAMES = [
    "bool_",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
    "int4",
    "float8_e5m2",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_dtype_names_it_and_makes_arrays(name: str) -> None:
    named = getattr(jnp, name)
    wanted = np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))
    assert np.dtype(named) == wanted
    assert named == wanted
    assert wanted == named
    assert named == wanted.type
    assert hash(named) == hash(wanted.type)
    assert jnp.zeros(2, named).dtype == named
    made = named(1)
    assert made.dtype == wanted
    assert not made.weak_type
    assert isinstance(made, named)
    assert not isinstance(jnp.zeros(2, named), named)


def test_names_differ() -> None:
    assert jnp.float32 != jnp.float16
    assert jnp.float32 != "no dtype"
    assert len({jnp.float32, jnp.float16, np.float32}) == 2


def test_64_bits_are_taken_as_32_unless_enabled() -> None:
    assert jnp.zeros(2, jnp.float64).dtype == np.float32
    assert jnp.asarray(np.arange(2)).dtype == np.int32
    assert jnp.arange(3).dtype == np.int32
    with enable_x64():
        assert jnp.zeros(2).dtype == np.float64
        assert jnp.arange(3).dtype == np.int64
        assert jnp.sum(jnp.ones(2, jnp.int8)).dtype == np.int64
        assert (jnp.ones(2, jnp.float32) * 2.0).dtype == np.float32
        assert jnp.asarray(1.5).dtype == np.float64


def test_result_type() -> None:
    x = jnp.zeros(2, jnp.int8)
    assert jnp.result_type(x, 1) == np.int8
    assert jnp.result_type(x, 1.0) == np.float32
    assert jnp.result_type(jnp.float16, 1.0) == np.float16
    assert jnp.result_type(int) == np.int32
    assert jnp.result_type("int8", int) == np.int8
    assert jnp.result_type(np.zeros(2), x) == np.float32
    assert jnp.result_type(x.aval, jnp.uint8) == np.int16
    assert jnp.promote_types("bfloat16", "float16") == np.float32
    with pytest.raises(IllTyped):
        jnp.result_type("float8_e5m2", jnp.float32)
    with pytest.raises(BadArgument):
        jnp.result_type()


@pytest.mark.jax
def test_promotion_is_that_of_jax() -> None:
    import jax.numpy as theirs

    names = [
        "bool",
        "int8",
        "int16",
        "int32",
        "uint8",
        "uint16",
        "uint32",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
    ]
    for a in names:
        for b in names:
            assert jnp.promote_types(a, b) == theirs.promote_types(a, b)
        for number in (True, 1, 1.0, 1j):
            wanted = theirs.result_type(theirs.zeros(2, a), number)
            assert jnp.result_type(jnp.zeros(2, a), number) == wanted


def test_issubdtype() -> None:
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.issubdtype(jnp.zeros(2).dtype, np.inexact)
    assert jnp.issubdtype("int8", jnp.signedinteger)
    assert not jnp.issubdtype(jnp.uint8, jnp.signedinteger)
    assert jnp.issubdtype(jnp.floating, jnp.number)
    assert not jnp.issubdtype(jnp.number, jnp.floating)
    assert jnp.issubdtype(jnp.float32, np.float32)
    assert jnp.issubdtype(bool, jnp.bool_)
    assert jnp.isdtype(jnp.int8, "integral")
    assert jnp.isdtype(jnp.float16, ("bool", "real floating"))
    assert not jnp.isdtype(jnp.float16, "complex floating")
    assert jnp.isdtype("float32", jnp.float32)
    assert jnp.can_cast("int8", "int16")


def test_limits() -> None:
    assert float(jnp.finfo(jnp.bfloat16).eps) == 2**-7
    assert float(jnp.finfo(float).max) == float(np.finfo(np.float32).max)
    assert jnp.iinfo("uint8").max == 255
    assert jnp.iinfo(int).bits == 32
    with pytest.raises(IllTyped):
        jnp.finfo(jnp.int8)
    with pytest.raises(IllTyped):
        jnp.iinfo(jnp.float32)


def test_constants_and_shapes() -> None:
    assert jnp.pi == np.pi
    assert jnp.newaxis is None
    assert jnp.ndim(3) == 0
    assert jnp.shape([[1, 2]]) == (1, 2)
    assert jnp.size(jnp.zeros((2, 3))) == 6
    assert [jnp.size(jnp.zeros((2, 3)), axis) for axis in (1, -2, (), (1,), (0, -1))] == [
        *(3, 2, 1, 3, 6)
    ]
    assert jnp.size(7) == jnp.size([[1]], (0, 1)) == 1
    assert jnp.iscomplexobj(jnp.zeros(2, complex))
    assert jnp.isrealobj(1.0)
    assert jnp.isscalar(jnp.float32(1))
    assert not jnp.isscalar(jnp.zeros(1))
    assert isinstance(jnp.zeros(1), jnp.ndarray)


class Colour(enum.IntEnum):
    RED = 3


def test_numbers_of_other_kinds() -> None:
    x = jnp.zeros(2, jnp.float16)
    assert (x + np.float32(1)).dtype == np.float32
    assert (x + np.float64(1)).dtype == np.float32
    assert (x + Colour.RED).dtype == np.float16
    assert np.asarray(jnp.arange(2) + Colour.RED).tolist() == [3, 4]
    assert (np.float32(2) * x).dtype == np.float32
    assert isinstance(np.ones(2, np.float32) + x, Array)


def test_operators() -> None:
    x, y = np.array([7.0, -3.0], np.float32), np.array([2.0, 2.0], np.float32)
    a, b = jnp.asarray(x), jnp.asarray(y)
    for ours, theirs in [
        (a + b, x + y),
        (1 - a, 1 - x),
        (a * 2, x * 2),
        (1 / a, 1 / x),
        (a // b, x // y),
        (5 % a, 5 % x),
        (a**2, x**2),
        (2**b, 2**y),
        (a @ b, x @ y),
        (-a, -x),
        (+a, +x),
        (abs(a), abs(x)),
        (a < b, x < y),
        (a >= 2, x >= 2),
        (a == b, x == y),
        (a != 7, x != 7),
        (round(a), x),
        (divmod(a, b)[0], x // y),
        (divmod(9, b)[1], 9 % y),
    ]:
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-6)
    i, j = np.array([6, 3]), np.array([5, 1])
    p, q = jnp.asarray(i), jnp.asarray(j)
    for ours, theirs in [
        (p & q, i & j),
        (1 | p, 1 | i),
        (p ^ q, i ^ j),
        (p << q, i << j),
        (64 >> p, 64 >> i),
        (~p, ~i),
    ]:
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_arrays_are_unequal_to_other_values() -> None:
    x = jnp.zeros(2)
    nothing: object = None
    assert [x == nothing, x != "a"] == [False, True]
    assert x not in ["a", nothing]
    assert 0.0 in x
    with pytest.raises(TypeError):
        hash(x)


def test_python_values() -> None:
    assert float(jnp.float32(1.5)) == 1.5
    assert int(jnp.array(3)) == 3
    assert complex(jnp.array(1 + 2j)) == 1 + 2j
    assert bool(jnp.array(1))
    assert [10, 20][jnp.array(1)] == 20
    assert jnp.arange(3).tolist() == [0, 1, 2]
    assert jnp.array(2.5).item() == 2.5
    assert f"{jnp.array(2.5):.2f}" == "2.50"
    assert f"{jnp.arange(2)}" == "[0 1]"
    assert len(jnp.zeros((3, 2))) == 3
    assert [int(v) for v in jnp.arange(3)] == [0, 1, 2]
    assert repr(jnp.array([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(jnp.asarray(1)) == "Array(1, dtype=int32, weak_type=True)"
    with pytest.raises(IllTyped, match="one element"):
        bool(jnp.zeros(2))
    with pytest.raises(IllTyped):
        len(jnp.array(1.0))
    with pytest.raises(IllTyped):
        iter(jnp.array(1.0))
    with pytest.raises(IllTyped):
        [1, 2][jnp.array(1.0)]


def test_values_are_read_only_and_copied_in() -> None:
    value = np.zeros(2, np.float32)
    x = jnp.asarray(value)
    value[0] = 1
    assert np.asarray(x).tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1
    taken = np.array(x)
    taken[0] = 1
    assert np.asarray(x).tolist() == [0, 0]


def test_methods_are_the_functions() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    for found, wanted in [
        (x.T, jnp.transpose(x)),
        (x.mean(0), jnp.mean(x, 0)),
        (x.std(ddof=1), jnp.std(x, ddof=1)),
        (x.astype(int), jnp.astype(x, int)),
        (x.ravel(), jnp.ravel(x)),
        (x.transpose(1, 0), jnp.transpose(x, (1, 0))),
        (x.transpose((1, 0)), jnp.transpose(x)),
        (x.reshape(3, 2), jnp.reshape(x, (3, 2))),
        (x.reshape((3, -1)), jnp.reshape(x, (3, 2))),
        (x.sort(descending=True), jnp.sort(x, descending=True)),
        (x.argmax(1), jnp.argmax(x, 1)),
        (x.take(jnp.array([1])), jnp.take(x, jnp.array([1]))),
        (x.repeat(2, 1), jnp.repeat(x, 2, 1)),
        (x.clip(1, 3), jnp.clip(x, 1, 3)),
        (x.dot(x.T), jnp.dot(x, x.T)),
        (x.swapaxes(0, 1), x.T),
        (x.diagonal(), jnp.diagonal(x)),
        (x.cumsum(1), jnp.cumsum(x, 1)),
        (x.ptp(), jnp.ptp(x)),
        (x.real, x),
        (x.conj(), x),
        (x[None].squeeze(0), x),
        (x.view(jnp.int32).view(jnp.float32), x),
    ]:
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


X = jnp.zeros((2, 3))
# Without its types, which refuse most of these calls before they run.
untyped: Any = jnp
REFUSED: list[tuple[Callable[[], Any], type[EffaxError], str]] = [
    (lambda: untyped.add([1, 2], X), IllTyped, "numpy.array"),
    (lambda: untyped.sum([1, 2]), IllTyped, "sum"),
    (lambda: untyped.sin("a"), IllTyped, "operand of sin"),
    (lambda: untyped.add(X, None), IllTyped, "operand 1 of add"),
    (lambda: untyped.add(X, jnp.zeros(2)), IllTyped, "broadcast"),
    (lambda: untyped.add(jnp.uint8(1), -1), BadArgument, "does not fit"),
    (lambda: untyped.array(1 << 40), BadArgument, "does not fit"),
    (lambda: untyped.array([1, 1 << 40]), BadArgument, "does not fit"),
    (lambda: untyped.array([[1, 2], [3]]), BadArgument, "equal lengths"),
    (lambda: untyped.array(["a"]), IllTyped, "element"),
    (lambda: untyped.array({1: 2}), IllTyped, "dict"),
    (lambda: untyped.zeros((2, -1)), BadArgument, "negative"),
    (lambda: untyped.zeros(2.5), IllTyped, "not an integer"),
    (lambda: untyped.zeros(2, "float33"), IllTyped, "float33"),
    (lambda: untyped.reshape(X, (4,)), IllTyped, "number of elements"),
    (lambda: untyped.reshape(X, (-1, 4)), IllTyped, "divide 6"),
    (lambda: untyped.reshape(X, (-1, -1)), BadArgument, "-1"),
    (lambda: untyped.transpose(X, (0,)), BadArgument, "2 axes"),
    (lambda: untyped.transpose(X, (0, 0)), BadArgument, "twice"),
    (lambda: untyped.sum(X, axis=2), BadArgument, "axis 2"),
    (lambda: untyped.sum(X, axis=(0, -2)), BadArgument, "twice"),
    (lambda: untyped.sum(X, axis=1.0), IllTyped, "not an integer"),
    (lambda: untyped.sum(X, where=jnp.zeros(3)), IllTyped, "mask"),
    (lambda: untyped.max(jnp.zeros((0,))), BadArgument, "initial"),
    (lambda: untyped.max(X, where=X > 0), BadArgument, "initial"),
    (lambda: untyped.argmax(jnp.zeros((0, 2)), 0), BadArgument, "no elements"),
    (lambda: untyped.squeeze(X, 0), BadArgument, "size 1"),
    (lambda: untyped.size(X, 2), BadArgument, "axis"),
    (lambda: untyped.size(X, (0, 0)), BadArgument, "twice"),
    (lambda: untyped.expand_dims(X, 4), BadArgument, "axis"),
    (lambda: untyped.broadcast_to(X, (3, 2)), IllTyped, "broadcast"),
    (lambda: untyped.concatenate([]), BadArgument, "no arrays"),
    (lambda: untyped.concatenate([1, 2]), BadArgument, "stack"),
    (lambda: untyped.concatenate([X, X.T]), IllTyped, "concatenate"),
    (lambda: untyped.stack([X, X.T]), IllTyped, "array 1 of stack"),
    (lambda: untyped.split(X, 2, axis=1), BadArgument, "array_split"),
    (lambda: untyped.pad(X, -1), BadArgument, "negative"),
    (lambda: untyped.pad(X, ((1, 2, 3),)), BadArgument, "pair"),
    (lambda: untyped.pad(X, 1, mode="best"), BadArgument, "mode"),
    (lambda: untyped.pad(jnp.zeros(0), 1, mode="edge"), BadArgument, "cannot repeat elements"),
    (lambda: untyped.matmul(X, X), IllTyped, "different size"),
    (lambda: untyped.matmul(X, 2.0), IllTyped, "multiply"),
    (lambda: untyped.dot(X, X), IllTyped, "different size"),
    (lambda: untyped.tensordot(X, X, 3), BadArgument, "tensordot"),
    (lambda: untyped.einsum("ij,jk", X, X), EffaxError, "einsum"),
    (lambda: untyped.einsum("ij->k", X), BadArgument, "einsum"),
    (lambda: untyped.linalg.norm(X, "nuke"), BadArgument, "unknown norm"),
    (lambda: untyped.linalg.matrix_power(X, 2), IllTyped, "square"),
    (lambda: untyped.take(X, jnp.array([0.5])), IllTyped, "integers"),
    (lambda: untyped.take(X, 0, axis=5), BadArgument, "axis"),
    (lambda: untyped.take(jnp.zeros(0), 0), BadIndex, "empty"),
    (lambda: untyped.take(X, 0, mode="best"), BadArgument, "mode"),
    (lambda: untyped.where(True, X), BadArgument, "both cases"),
    (lambda: untyped.arange(0, 3, 0), BadArgument, "steps of zero"),
    (lambda: untyped.arange(jnp.zeros(2)), IllTyped, "scalars"),
    (lambda: untyped.linspace(0, 1, -1), BadArgument, "negative"),
    (lambda: untyped.tril(jnp.zeros(3)), IllTyped, "matrices"),
    (lambda: untyped.sort(X, kind="quick"), BadArgument, "kind"),
    (lambda: untyped.quantile(X, 0.5, method="best"), BadArgument, "method"),
    (lambda: untyped.searchsorted(X, 1.0), IllTyped, "vector"),
    (lambda: untyped.floor_divide(1j, 2), IllTyped, "real"),
    (lambda: untyped.power(jnp.arange(3), -1), IllTyped, "negative power"),
    (lambda: untyped.left_shift(X, 1), IllTyped, "shift_left"),
    (lambda: untyped.sum(X, out=X), BadArgument, "out"),
    (lambda: untyped.meshgrid(X), IllTyped, "vector"),
    (lambda: untyped.gcd(1.5, 2), IllTyped, "integers"),
    (lambda: untyped.isposinf(1j), IllTyped, "real"),
    (lambda: untyped.roll(X, (1, 2, 3), (0, 1)), BadArgument, "one shift an axis"),
]


@pytest.mark.parametrize(("call", "error", "says"), REFUSED)
def test_bad_arguments_raise_with_a_message(
    call: Callable[[], object], error: type[EffaxError], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    "call",
    [
        jnp.zeros,
        jnp.arange,
        lambda x: jnp.reshape(jnp.zeros(4), (x, 2)),
        bool,
        float,
        lambda x: jnp.nonzero(x[None]),
        lambda x: jnp.repeat(jnp.zeros(3), x[None]),
        lambda x: jnp.unique(x[None]),
        np.asarray,
    ],
)
def test_an_error_on_an_unknown_value_states_the_remedy(
    call: Callable[[Any], object],
) -> None:
    with pytest.raises(ConcretizationError, match="static"):
        traced(call, jnp.int32(3))


def test_numbers_become_literals_not_constants() -> None:
    def function(x: Array) -> Array:
        y = jnp.where(x > 0, x, 0.5) + jnp.asarray(2.0) + jnp.max(x, initial=-1.0)
        return jnp.maximum(y, jnp.zeros(())) * jnp.float32(3)

    jaxpr = traced(function, jnp.zeros(3))
    assert jaxpr.n_consts == 0


def test_a_function_of_one_primitive_is_one_equation() -> None:
    x = jnp.zeros((3, 4))
    for function, name in [
        (lambda x: x + 1, "add"),
        (lambda x: 2.0 * x, "mul"),
        (jnp.sin, "sin"),
        (lambda x: x**2, "square"),
        (lambda x: jnp.sum(x, 0), "reduce_sum"),
        (lambda x: x.T, "transpose"),
        (lambda x: x.reshape(12), "reshape"),
        (lambda x: x @ jnp.swapaxes(x, 0, 1), "transpose dot_general"),
        (lambda x: jnp.where(x > 0, x, 0), "gt select_n"),
        (lambda x: x[1], "slice squeeze"),
        (lambda x: x.at[0].add(1.0), "broadcast_in_dim scatter_add"),
        (lambda x: jnp.concatenate([x, x]), "concatenate"),
        (lambda x: jnp.zeros((2, 2)), "broadcast_in_dim"),
        (lambda x: x.astype(jnp.int32), "convert_element_type"),
        (lambda x: x.astype(jnp.float32), ""),
    ]:
        found = traced(function, x)
        assert " ".join(e.prim.name.replace("-", "_") for e in found.eqns) == name
