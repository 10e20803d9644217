"""The evaluator against JAX on XLA, primitive by primitive, on edge cases and random values.

Excluded: denormals, which XLA flushes to zero; and infinite or nan results of complex numbers,
where NumPy follows C99 and XLA does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.dtypes import as_dtype, family, int_bounds
from effax.ir.primitive import Primitive, Value
from effax.ir.prims.reduce import Cumulative, Reduction
from effax.ir.types import Shape, type_of_value

pytestmark = [pytest.mark.jax, pytest.mark.slow]

DTYPES = {
    "bool": ["bool"],
    "int": ["int8", "int32"],
    "uint": ["uint8", "uint32"],
    "float": ["bfloat16", "float16", "float32", "float64"],
    "complex": ["complex64"],
}
TOLERANCE = {"bfloat16": 2.0**-6, "float16": 2.0**-9, "float32": 1e-5, "float64": 1e-12}
FINITE = [0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 10.0, -10.0, 88.0, -20.0]
SPECIAL = [-0.0, np.inf, -np.inf, np.nan, 1e20, -1e20]

# What JAX calls by another name.
NAMES = {
    "not": "bitwise_not",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "magnitude": "sqrt",
}
# XLA computes 2^x of narrow floats as exp(x·log 2), rounded twice.
INEXACT_IN_XLA = {("exp2", "bfloat16"), ("exp2", "float16")}


def edges(dtype: str) -> Value:
    """Values at which functions of the dtype are likely to differ."""
    kind = family(as_dtype(dtype))
    if kind == "bool":
        return np.array([False, True])
    if kind in ("int", "uint"):
        low, high = int_bounds(as_dtype(dtype))
        some = {low, low + 1, -3, -1, 0, 1, 2, 5, 7, 31, 33, high - 1, high}
        return np.array(sorted(v for v in some if low <= v <= high), object).astype(as_dtype(dtype))
    if kind == "complex":
        parts = np.array(FINITE[:9])
        return (parts[:, None] + 1j * parts[None, :]).reshape(-1).astype(as_dtype(dtype))
    with np.errstate(over="ignore"):
        return np.array([*FINITE, *SPECIAL]).astype(as_dtype(dtype))


def function(name: str) -> Callable[..., Any]:
    from jax import lax

    if name == "round":
        return lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    if name in ("copy", "stop_gradient"):
        return lambda x: x
    if name == "strong_zero_mul":
        return lambda x, y: lax.select(x == 0, lax.full_like(x, 0), x * y)
    found: Callable[..., Any] = getattr(lax, NAMES.get(name, name))
    return found


def same(found: Value, wanted: Value) -> None:
    """Return the same dtype, shape and values, up to rounding; signs of real zeros included."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    tolerance = TOLERANCE.get(found.dtype.name, 1e-4)
    if family(found.dtype) not in ("float", "complex"):
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.complex128 if family(found.dtype) == "complex" else np.float64
    mine, theirs = found.astype(wide), wanted.astype(wide)
    if wide is np.complex128:
        known = np.isfinite(theirs)
        mine, theirs = mine[known], theirs[known]
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=1e-30)
    if wide is np.float64:
        zero = theirs == 0
        np.testing.assert_array_equal(np.signbit(mine[zero]), np.signbit(theirs[zero]))


def compare(prim: Primitive, jax_function: Callable[..., Any], *args: Value) -> None:
    import jax

    types = [type_of_value(a) for a in args]
    outs = prim.typing(*types).outs
    with np.errstate(all="ignore"):
        found = prim.evaluate(*args)
    with jax.enable_x64(True):
        wanted = jax.jit(jax_function)(*args)
    wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
    for mine, theirs, type_ in zip(found, wanted, outs, strict=True):
        assert type_ is type_of_value(mine)
        same(mine, np.asarray(theirs))


ELEMENTWISE = [
    (value(), dtype)
    # The package imports its names when they are first used.
    for value in [getattr(prims, name) for name in sorted(dir(prims))]
    if isinstance(value, type) and issubclass(value, prims.Elementwise) and hasattr(value, "name")
    # Special functions are compared with SciPy: tests/unit/scipy/test_values.py.
    if not value.__module__.endswith(".special")
    for kind in sorted(value.accepts)
    for dtype in DTYPES.get(kind, ())
    if (value.name, dtype) not in INEXACT_IN_XLA
]


@pytest.mark.parametrize(("prim", "dtype"), ELEMENTWISE, ids=lambda v: getattr(v, "name", v))
def test_elementwise(prim: prims.Elementwise, dtype: str) -> None:
    x = edges(dtype)
    if prim.name == "sign" and family(as_dtype(dtype)) == "float":
        # The sign of -0 is 0, as in the Array API standard and NumPy; in JAX it is -0.
        x = x + x.dtype.type(0)
    if prim.arity == 1:
        args = [x]
    elif prim.arity == 2:
        args = [part.reshape(-1) for part in np.meshgrid(x[:21], x[-21:], indexing="ij")]
    else:
        args = [np.random.default_rng(i).choice(x, 99) for i in range(prim.arity)]
    compare(prim, function(prim.name), *args)


EVERY = [dtype for dtypes in DTYPES.values() for dtype in dtypes]


def convertible(have: str, ct_spec: str) -> bool:
    """Return whether JAX converts without a warning."""
    return family(as_dtype(have)) != "complex" or family(as_dtype(ct_spec)) == "complex"


@pytest.mark.parametrize("have", EVERY)
def test_conversion(have: str) -> None:
    from jax import lax

    for ct_spec in [d for d in EVERY if convertible(have, d)]:
        dtype = as_dtype(ct_spec)
        convert = prims.ConvertElementType(dtype)
        compare(convert, lambda x, d=dtype: lax.convert_element_type(x, d), edges(have))


@pytest.mark.parametrize("dtype", [d for d in EVERY if d != "bool"])
def test_integer_power(dtype: str) -> None:
    from jax import lax

    kind = family(as_dtype(dtype))
    x = np.array([1.1, -0.7, 2.5, 0.0]).astype(as_dtype(dtype)) if kind == "float" else edges(dtype)
    for n in (0, 1, 3, 7, *((-2,) if kind in ("float", "complex") else ())):
        compare(prims.IntegerPow(n), lambda v, n=n: lax.integer_pow(v, n), x)


def drawn(shape: Shape, dtype: str, seed: int = 0) -> Value:
    rng = np.random.default_rng(seed)
    kind = family(as_dtype(dtype))
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind in ("int", "uint"):
        return rng.choice(edges(dtype), shape)
    x = rng.normal(size=shape) * 3
    return (x + 1j * rng.normal(size=shape) if kind == "complex" else x).astype(as_dtype(dtype))


SHAPES: list[tuple[Shape, tuple[int, ...]]] = [
    ((3, 4), (0,)),
    ((2, 3, 4), (0, 2)),
    ((3, 4), ()),
    ((0, 4), (0,)),
    ((0, 4), (1,)),
    ((), ()),
]
REDUCTIONS = [
    prims.ReduceSum,
    prims.ReduceProd,
    prims.ReduceMax,
    prims.ReduceMin,
    prims.ReduceAnd,
    prims.ReduceOr,
]
RUNS = [prims.CumSum, prims.CumProd, prims.CumMax, prims.CumMin]


def taken(several: Sequence[type[Reduction | Cumulative]]) -> list[tuple[type[Any], str]]:
    """Each primitive with each dtype that it takes."""
    return [(p, d) for p in several for d in EVERY if family(as_dtype(d)) in p.accepts]


@pytest.mark.parametrize(("prim", "dtype"), taken(REDUCTIONS), ids=lambda v: getattr(v, "name", v))
def test_reductions(prim: type[Reduction], dtype: str) -> None:
    from jax import lax

    jax_function = getattr(lax, prim.name)
    for shape, axes in SHAPES:
        compare(prim(axes), lambda x, axes=axes: jax_function(x, axes), drawn(shape, dtype))


NUMBERS = [(p, d) for p, d in taken(RUNS) if d != "bool"]


@pytest.mark.parametrize(("prim", "dtype"), NUMBERS, ids=lambda v: getattr(v, "name", v))
@pytest.mark.parametrize("reverse", [False, True])
def test_running_combinations(prim: type[Cumulative], dtype: str, reverse: bool) -> None:
    from jax import lax

    jax_function = getattr(lax, prim.name)
    for shape, axis in (((5,), 0), ((3, 4), 1), ((0, 3), 0)):
        x = drawn(shape, dtype)
        if family(x.dtype) == "float":
            # XLA rounds each step of a narrow sum: small integers are exact anyhow.
            x = np.sign(x).astype(x.dtype)
        compare(prim(axis, reverse), lambda v, a=axis: jax_function(v, a, reverse=reverse), x)


@pytest.mark.parametrize("dtype", [d for d in EVERY if d != "complex64"])
def test_positions_of_extremes_and_order(dtype: str) -> None:
    from jax import lax

    index = as_dtype("int32")
    for shape, axis in (((5,), 0), ((4, 6), 1), ((4, 6), 0)):
        x = drawn(shape, dtype)
        if family(x.dtype) == "float":
            x.reshape(-1)[2] = np.nan
        payload, key = drawn(shape, "complex64"), drawn(shape, "int8", 1)
        compare(prims.Argmax(axis, index), lambda v, a=axis: lax.argmax(v, a, np.int32), x)
        compare(prims.Argmin(axis, index), lambda v, a=axis: lax.argmin(v, a, np.int32), x)
        for keys, operands in ((1, [x, payload]), (2, [key, x, payload])):
            compare(
                prims.Sort(axis, keys),
                lambda *v, a=axis, n=keys: lax.sort(v, dimension=a, num_keys=n),
                *operands,
            )


CONTRACTIONS: list[tuple[prims.DotDimensionNumbers, Shape, Shape]] = [
    ((((1,), (0,)), ((), ())), (3, 4), (4, 5)),
    ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
    ((((0, 1), (1, 0)), ((), ())), (3, 4), (4, 3)),
    ((((), ()), ((), ())), (2,), (3,)),
    ((((1,), (0,)), ((), ())), (3, 0), (0, 5)),
    ((((), ()), ((1,), (0,))), (3, 2), (2, 5)),
]


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize(("numbers", "left", "right"), CONTRACTIONS, ids=str)
def test_contraction(
    numbers: prims.DotDimensionNumbers, left: Shape, right: Shape, dtype: str
) -> None:
    from jax import lax

    lhs, rhs = drawn(left, dtype), drawn(right, dtype, 1)
    compare(prims.DotGeneral(numbers), lambda x, y: lax.dot_general(x, y, numbers), lhs, rhs)
    if family(lhs.dtype) == "float" and lhs.dtype.itemsize <= 4:
        wide = as_dtype("float32")
        compare(
            prims.DotGeneral(numbers, wide),
            lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=wide),
            lhs,
            rhs,
        )


PADDINGS: list[tuple[tuple[int, int, int], ...]] = [
    ((0, 0, 0), (0, 0, 0)),
    ((1, 2, 1), (0, 3, 0)),
    ((-1, 0, 0), (2, -2, 2)),
    ((-2, 4, 0), (-4, 5, 3)),
]


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "complex64"])
def test_movement(dtype: str) -> None:
    from jax import lax

    x, value = drawn((3, 4), dtype), drawn((), dtype, 1)
    for config in PADDINGS:
        compare(prims.Pad(config), lambda v, p, c=config: lax.pad(v, p, c), x, value)
    compare(prims.Reshape((4, 3)), lambda v: lax.reshape(v, (4, 3)), x)
    compare(prims.Transpose((1, 0)), lambda v: lax.transpose(v, (1, 0)), x)
    compare(prims.Rev((0, 1)), lambda v: lax.rev(v, (0, 1)), x)
    compare(prims.Squeeze((1,)), lambda v: lax.squeeze(v, (1,)), x[:, :1])
    compare(prims.ExpandDims((0, 3)), lambda v: lax.expand_dims(v, (0, 3)), x)
    compare(
        prims.BroadcastInDim((2, 3, 4), (1, 2)),
        lambda v: lax.broadcast_in_dim(v, (2, 3, 4), (1, 2)),
        x,
    )
    compare(prims.Concatenate(1), lambda *v: lax.concatenate(v, 1), x, x[:, :1], x[:, :0])
    compare(prims.Slice((0, 1), (3, 4), (2, 1)), lambda v: lax.slice(v, (0, 1), (3, 4), (2, 1)), x)
    for start in (0, 1, 99):
        at = np.asarray(start, np.int32)
        compare(
            prims.DynamicSlice((2, 2)),
            lambda v, i, j: lax.dynamic_slice(v, (i, j), (2, 2)),
            x,
            at,
            at,
        )
        compare(
            prims.DynamicUpdateSlice(),
            lambda v, u, i, j: lax.dynamic_update_slice(v, u, (i, j)),
            *(x, drawn((2, 2), dtype, 2), at, at),
        )


@pytest.mark.parametrize("dtype", [d for d in EVERY if d != "bool"])
def test_counting(dtype: str) -> None:
    from jax import lax

    shape, t = (2, 300), as_dtype(dtype)
    compare(prims.Iota(t, shape, 1), lambda: lax.broadcasted_iota(t, shape, 1))


@pytest.mark.parametrize("dtype", EVERY)
def test_selection(dtype: str) -> None:
    from jax import lax

    cases = [drawn((3, 4), dtype, i) for i in range(3)]
    compare(prims.SelectN(), lax.select_n, drawn((3, 4), "bool"), *cases[:2])
    compare(prims.SelectN(), lax.select_n, np.asarray(True), *cases[:2])
    which = np.random.default_rng(0).integers(0, 3, (3, 4)).astype(np.int32)
    compare(prims.SelectN(), lax.select_n, which, *cases)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_bits(dtype: str) -> None:
    from jax import lax

    for ct_spec in ("int32", "uint32", "float32"):
        t = as_dtype(ct_spec)
        x = edges(dtype)
        x = x[~np.isnan(x)] if dtype == "float32" else np.abs(x)
        if dtype == "float32" or ct_spec != "float32":
            # Small integers read as floats are denormal.
            compare(prims.BitcastConvertType(t), lambda v, t=t: lax.bitcast_convert_type(v, t), x)
