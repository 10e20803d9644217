"""Elementwise functions against JAX: values, dtypes, weakness, refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import effax.numpy as jnp
from effax.ir.errors import EffaxError
from tests.unit.numpy.agreement import all_of_jax, check, converted

pytestmark = pytest.mark.jax

UNARY = [
    "abs",
    "absolute",
    "fabs",
    "negative",
    "positive",
    "sign",
    "signbit",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "round",
    "around",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "square",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arctanh",
    "sinc",
    "deg2rad",
    "rad2deg",
    "radians",
    "degrees",
    "isfinite",
    "isinf",
    "isnan",
    "isposinf",
    "isneginf",
    "iscomplex",
    "isreal",
    "real",
    "imag",
    "conj",
    "conjugate",
    "angle",
    "nan_to_num",
    "modf",
    "invert",
    "bitwise_not",
    "bitwise_count",
    "logical_not",
]

BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "mod",
    "fmod",
    "divmod",
    "power",
    "pow",
    "float_power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "heaviside",
    "nextafter",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "logical_and",
    "logical_or",
    "logical_xor",
    "isclose",
]

VALUES = {
    "bool": np.array([True, False, True, False]),
    "int8": np.array([1, 3, -2, 7], np.int8),
    "int32": np.array([1, 4, -3, 2], np.int32),
    "uint8": np.array([2, 1, 5, 20], np.uint8),
    "uint32": np.array([3, 1, 5, 7], np.uint32),
    "float16": np.array([0.5, -1.5, 2.5, 0.25], np.float16),
    "float32": np.array([0.25, -0.5, 2.5, 0.75], np.float32),
    "special": np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    "complex64": np.array([1 + 2j, -0.5j, 2, -1 - 1j], np.complex64),
    "python_int": 3,
    "python_float": 0.5,
    "python_bool": True,
    "numpy_float64": np.float64(1.5),
}
# Results of either library that mean nothing, or differ by what XLA does with infinities.
UNDEFINED = {
    *((name, kind) for name in ("round", "around") for kind in ("bool", "python_bool")),
    ("nan_to_num", "complex64"),
    ("modf", "special"),
    ("sinc", "special"),
    ("angle", "special"),
    ("sqrt", "complex64"),
    ("bitwise_count", "bool"),
}
# Quotients by False, which is 0, and of infinities, where JAX and the Array API standard differ.
UNDEFINED_PAIRS = {
    (name, kinds)
    for name in ("floor_divide", "divmod")
    for kinds in ("bool bool", "float32 special", "special float32")
}
# Here an error: complex numbers have no angle to one another, powers of integers are no fractions.
REFUSED = {
    ("arctan2", "float32 complex64"),
    *(
        (name, kinds)
        for name in ("power", "pow")
        for kinds in ("bool int8", "int8 int32", "int32 int32")
    ),
    *((name, "python_int int8") for name in ("power", "pow")),
}
# Functions of JAX that lose the weakness of their operands.
STRONG = ("hypot", "logaddexp2", "heaviside")


@cache
def unary_results(kind: str) -> dict[str, object]:
    return all_of_jax({name: unary_call(name, kind) for name in UNARY})


def unary_call(name: str, kind: str) -> Any:
    return lambda library: getattr(library, name)(converted(VALUES[kind], library))


UNARY_CASES = [(n, k) for n in UNARY for k in VALUES if (n, k) not in UNDEFINED]


@pytest.mark.parametrize(("name", "kind"), UNARY_CASES)
def test_unary(name: str, kind: str) -> None:
    weak = not kind.startswith("python")
    check(unary_call(name, kind), unary_results(kind)[name], rtol=1e-5, weak=weak)


PAIRS = [
    ("bool", "bool"),
    ("bool", "int8"),
    ("int8", "int32"),
    ("int8", "uint8"),
    ("int32", "uint32"),
    ("int32", "float16"),
    ("int32", "int32"),
    ("float16", "float32"),
    ("float32", "float32"),
    ("float32", "special"),
    ("special", "float32"),
    ("float32", "complex64"),
    ("int32", "python_int"),
    ("python_int", "int8"),
    ("int32", "python_float"),
    ("float16", "python_float"),
    ("float32", "python_int"),
    ("python_int", "python_float"),
    ("float16", "numpy_float64"),
    ("bool", "python_bool"),
    ("uint8", "python_int"),
]


@cache
def binary_results(kinds: tuple[str, str]) -> dict[str, object]:
    return all_of_jax({name: binary_call(name, kinds) for name in BINARY})


def binary_call(name: str, kinds: tuple[str, str]) -> Any:
    def call(library: Any) -> object:
        x, y = (converted(VALUES[kind], library) for kind in kinds)
        return getattr(library, name)(x, y)

    return call


BINARY_CASES = [(n, k) for k in PAIRS for n in BINARY if (n, " ".join(k)) not in UNDEFINED_PAIRS]


@pytest.mark.parametrize(("name", "kinds"), BINARY_CASES)
def test_binary(name: str, kinds: tuple[str, str]) -> None:
    call = binary_call(name, kinds)
    if (name, " ".join(kinds)) in REFUSED:
        with pytest.raises(EffaxError):
            call(jnp)
        return
    check(call, binary_results(kinds)[name], rtol=1e-5, weak=name not in STRONG)
