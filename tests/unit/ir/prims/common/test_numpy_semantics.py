"""Elementwise primitives on values where NumPy, C and XLA may differ."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.dtypes import as_dtype, int_bounds
from effax.ir.primitive import Primitive, Value

INF, NAN = math.inf, math.nan
INTEGERS = ["int8", "int32", "int64", "uint8", "uint32", "uint64", "int4", "uint4"]


def of(dtype: str, *values: complex) -> Value:
    """Values of a dtype, exactly."""
    return np.array(values, object).astype(as_dtype(dtype))


def scalar(dtype: str, value: complex) -> Value:
    """Return a value without axes."""
    return of(dtype, value).reshape(())


def run(prim: Primitive, *args: Value) -> Value:
    with np.errstate(all="ignore"):
        (out,) = prim.evaluate(*args)
    assert type(out) is np.ndarray
    return out


def edges(dtype: str) -> list[int]:
    """Integers about the bounds of the dtype, and small ones."""
    low, high = int_bounds(as_dtype(dtype))
    some = {low, low + 1, -3, -1, 0, 1, 2, 3, 7, high - 1, high}
    return sorted(v for v in some if low <= v <= high)


def wrapped(value: int, dtype: str) -> int:
    low, high = int_bounds(as_dtype(dtype))
    return (value - low) % (high - low + 1) + low


def truncated(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


BINARY: list[tuple[Primitive, Callable[[int, int], int]]] = [
    (prims.Add(), lambda x, y: x + y),
    (prims.Sub(), lambda x, y: x - y),
    (prims.Mul(), lambda x, y: x * y),
    (prims.Div(), lambda x, y: truncated(x, y) if y else -1),
    (prims.Rem(), lambda x, y: x - y * truncated(x, y) if y else x),
    (prims.Max(), max),
    (prims.Min(), min),
    (prims.And(), lambda x, y: x & y),
    (prims.Or(), lambda x, y: x | y),
    (prims.Xor(), lambda x, y: x ^ y),
]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("prim", "exact"), BINARY, ids=lambda p: getattr(p, "name", ""))
def test_integers_are_exact_and_wrap_around(
    prim: Primitive, exact: Callable[[int, int], int], dtype: str
) -> None:
    pairs = list(product(edges(dtype), repeat=2))
    found = run(prim, of(dtype, *(x for x, _ in pairs)), of(dtype, *(y for _, y in pairs)))
    assert found.dtype == as_dtype(dtype)
    assert [int(v) for v in found] == [wrapped(exact(*pair), dtype) for pair in pairs]


def bits_of(value: int, dtype: str) -> int:
    low, high = int_bounds(as_dtype(dtype))
    return value % (high - low + 1)


def width(dtype: str) -> int:
    low, high = int_bounds(as_dtype(dtype))
    return (high - low).bit_length()


UNARY: list[tuple[Primitive, Callable[[int, str], int]]] = [
    (prims.Neg(), lambda x, _: -x),
    (prims.Not(), lambda x, _: ~x),
    (prims.Sign(), lambda x, _: (x > 0) - (x < 0)),
    (prims.Abs(), lambda x, _: abs(x)),
    (prims.Square(), lambda x, _: x * x),
    (prims.IntegerPow(3), lambda x, _: x**3),
    (prims.IntegerPow(0), lambda x, _: 1),
    (prims.IntegerPow(300), lambda x, _: x**300),
    (prims.PopulationCount(), lambda x, dtype: bits_of(x, dtype).bit_count()),
]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("prim", "exact"), UNARY, ids=lambda p: getattr(p, "name", ""))
def test_functions_of_one_integer(
    prim: Primitive, exact: Callable[[int, str], int], dtype: str
) -> None:
    found = run(prim, of(dtype, *edges(dtype)))
    assert found.dtype == as_dtype(dtype)
    assert [int(v) for v in found] == [wrapped(exact(x, dtype), dtype) for x in edges(dtype)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype: str) -> None:
    pairs = list(
        product(edges(dtype), [*range(min(width(dtype) + 2, int_bounds(as_dtype(dtype))[1]))])
    )
    if dtype.startswith("int"):
        pairs += [(x, -1) for x in edges(dtype)]
    xs, ys = of(dtype, *(x for x, _ in pairs)), of(dtype, *(y for _, y in pairs))
    n = width(dtype)
    far = [not 0 <= y < n for _, y in pairs]
    signed = [wrapped(x, f"int{n}") for x, _ in pairs]
    left = [0 if f else x << y for (x, y), f in zip(pairs, far, strict=True)]
    down = [0 if f else bits_of(x, dtype) >> y for (x, y), f in zip(pairs, far, strict=True)]
    kept = [s >> (n - 1 if f else y) for s, (_, y), f in zip(signed, pairs, far, strict=True)]
    for prim, wanted in (
        (prims.ShiftLeft(), left),
        (prims.ShiftRightLogical(), down),
        (prims.ShiftRightArithmetic(), kept),
    ):
        assert [int(v) for v in run(prim, xs, ys)] == [wrapped(w, dtype) for w in wanted]


FLOATS = ["bfloat16", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_keep_their_sign(dtype: str) -> None:
    zeros = of(dtype, 0.0, -0.0)
    np.testing.assert_array_equal(np.signbit(run(prims.Sign(), zeros)), [False, False])
    np.testing.assert_array_equal(
        np.signbit(run(prims.RoundEven(), of(dtype, 0.4, -0.4))), [False, True]
    )
    first, second = of(dtype, 0.0, 0.0, -0.0, -0.0), of(dtype, 0.0, -0.0, 0.0, -0.0)
    greater, lesser = run(prims.Max(), first, second), run(prims.Min(), first, second)
    np.testing.assert_array_equal(np.signbit(greater), [False, False, False, True])
    np.testing.assert_array_equal(np.signbit(lesser), [False, True, True, True])
    after = run(prims.Nextafter(), first, second)
    np.testing.assert_array_equal(np.signbit(after), np.signbit(second))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_passed_on(dtype: str) -> None:
    x, one = of(dtype, NAN, 1.0, NAN), of(dtype, 1.0, NAN, NAN)
    for prim in (
        prims.Max(),
        prims.Min(),
        prims.Add(),
        prims.Mul(),
        prims.Div(),
        prims.Rem(),
        prims.Atan2(),
    ):
        assert np.isnan(run(prim, x, one)).all()
    for unary in (
        prims.Sign(),
        prims.Exp(),
        prims.Logistic(),
        prims.Erf(),
        prims.Sqrt(),
        prims.Abs(),
        prims.Square(),
    ):
        assert np.isnan(run(unary, of(dtype, NAN))).all()
    assert np.isnan(run(prims.Clamp(), of(dtype, 0.0), of(dtype, NAN), of(dtype, 1.0))).all()
    np.testing.assert_array_equal(
        run(prims.IsFinite(), of(dtype, NAN, INF, -INF, 1.0)), [0, 0, 0, 1]
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_are_rounded_to_even(dtype: str) -> None:
    found = run(prims.RoundEven(), of(dtype, 0.5, 1.5, 2.5, -0.5, -1.5, 2.25))
    np.testing.assert_array_equal(found.astype(float), [0, 2, 2, 0, -2, 2])


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_remainder_has_the_sign_of_the_dividend(dtype: str) -> None:
    found = run(
        prims.Rem(), of(dtype, 5.5, -5.5, 5.5, INF, 1.0), of(dtype, 2.0, 2.0, -2.0, 2.0, INF)
    )
    np.testing.assert_array_equal(found.astype(float), [1.5, -1.5, 1.5, NAN, 1.0])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("x", [-80.0, -20.0, -10.0, -3.7, -0.5, 0.0, 2.0, 30.0])
def test_the_logistic_function_is_accurate_everywhere(dtype: str, x: float) -> None:
    argument = of(dtype, x)
    exact = 1 / (1 + math.exp(-float(argument[0])))
    found = float(run(prims.Logistic(), argument)[0])
    assert math.isclose(found, exact, rel_tol=4 * eps(dtype), abs_tol=tiny(dtype))


def eps(dtype: str) -> float:
    return {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-23, "float64": 2.0**-52}[
        dtype
    ]


def tiny(dtype: str) -> float:
    return 2.0**-24 if dtype == "float16" else 0.0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5, 10])
def test_integer_powers_are_rounded_once_or_nearly(dtype: str, n: int) -> None:
    x = of(dtype, 1.1, -0.7, 2.5)
    found = run(prims.IntegerPow(n), x)
    assert found.dtype == x.dtype
    exact = [float(v) ** n for v in x]
    np.testing.assert_allclose(found.astype(float), exact, rtol=8 * eps(dtype))


def test_erf_and_its_complement() -> None:
    x = of("float64", 0.0, 0.5, -2.0, 6.0, 27.0, INF, -INF)
    np.testing.assert_array_equal(run(prims.Erf(), x), [math.erf(v) for v in x])
    np.testing.assert_array_equal(run(prims.Erfc(), x), [math.erfc(v) for v in x])
    assert run(prims.Erf(), np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run(prims.Erf(), scalar("float32", 0.5)).shape == ()


def test_conversion_of_floats_to_integers_saturates() -> None:
    x = of("float32", 1.9, -1.9, 300.0, -300.0, INF, -INF, NAN, 3e38)
    to = {
        d: run(prims.ConvertElementType(as_dtype(d)), x)
        for d in ("int8", "uint8", "int64", "uint64")
    }
    assert to["int8"].tolist() == [1, -1, 127, -128, 127, -128, 0, 127]
    assert to["uint8"].tolist() == [1, 0, 255, 0, 255, 0, 0, 255]
    assert to["int64"].tolist()[4:] == [2**63 - 1, -(2**63), 0, 2**63 - 1]
    assert to["uint64"].tolist()[4:] == [2**64 - 1, 0, 0, 2**64 - 1]


def test_conversion_among_integers_wraps_around() -> None:
    x = of("int32", 257, -1, 128)
    assert run(prims.ConvertElementType(as_dtype("int8")), x).tolist() == [1, -1, -128]
    assert run(prims.ConvertElementType(as_dtype("uint8")), x).tolist() == [1, 255, 128]


def test_anything_nonzero_is_true() -> None:
    x = of("float32", 0.0, -0.0, 0.5, NAN)
    assert run(prims.ConvertElementType(as_dtype("bool")), x).tolist() == [False, False, True, True]
    z = of("complex64", 0j, 1j)
    assert run(prims.ConvertElementType(as_dtype("bool")), z).tolist() == [False, True]


def test_bits_are_read_as_another_dtype_and_back() -> None:
    x = of("float32", 1.0, -0.0, NAN)
    bits = run(prims.BitcastConvertType(as_dtype("uint32")), x)
    assert bits.tolist()[:2] == [0x3F800000, 0x80000000]
    assert run(prims.BitcastConvertType(as_dtype("float32")), bits).tobytes() == x.tobytes()
    strided = np.arange(6, dtype=np.float32).reshape(2, 3).T
    again = run(prims.BitcastConvertType(as_dtype("int32")), strided)
    np.testing.assert_array_equal(again.view(np.float32), strided)


@pytest.mark.parametrize("which", [-1, 0, 1, 2, 5])
def test_selection_by_number_is_clamped(which: int) -> None:
    cases = [of("float32", float(i)) for i in range(3)]
    found = run(prims.SelectN(), np.full(1, which, np.int32), *cases)
    assert found.tolist() == [float(min(max(which, 0), 2))]


def test_selection_by_a_scalar_and_of_scalars() -> None:
    x, y = of("float32", 1.0, 2.0), of("float32", 3.0, 4.0)
    assert run(prims.SelectN(), np.asarray(True), x, y).tolist() == [3.0, 4.0]
    one = scalar("float32", 9.0)
    assert run(prims.SelectN(), np.array([True, False]), one, one).tolist() == [9.0, 9.0]


COMPLEX = [complex(a, b) for a, b in product([0.0, -0.0, 1.0, -2.5, 1e-3, 30.0], repeat=2)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("prim", "exact"),
    [
        (prims.Exp(), cmath.exp),
        (prims.Sin(), cmath.sin),
        (prims.Tanh(), cmath.tanh),
        (prims.Asinh(), cmath.asinh),
        (prims.Sqrt(), cmath.sqrt),
        (prims.Square(), lambda z: z * z),
        (prims.Abs(), abs),
        (prims.Conj(), lambda z: z.conjugate()),
        (prims.Log1p(), lambda z: cmath.log(complex(1 + z.real, z.imag))),
        (prims.Expm1(), lambda z: cmath.exp(z) - 1),
        (prims.Logistic(), lambda z: 1 / (1 + cmath.exp(-z))),
        (prims.IntegerPow(-2), lambda z: 1 / z**2 if z else complex(NAN, NAN)),
        (prims.Rsqrt(), lambda z: 1 / cmath.sqrt(z) if z else complex(NAN, NAN)),
        (prims.Sign(), lambda z: z / abs(z) if z else z),
    ],
    ids=lambda p: getattr(p, "name", ""),
)
def test_functions_of_complex_numbers(
    prim: Primitive, exact: Callable[[complex], complex], dtype: str
) -> None:
    found = run(prim, of(dtype, *COMPLEX))
    wanted = np.array([exact(z) for z in COMPLEX])
    known = ~np.isnan(wanted)
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    np.testing.assert_allclose(found[known], wanted[known], rtol=tolerance, atol=tolerance)


def test_functions_of_small_complex_numbers_are_accurate() -> None:
    z = of("complex128", 1e-20 + 1e-20j, 1e-12j, -1e-15 + 0j)
    np.testing.assert_allclose(run(prims.Log1p(), z), z, rtol=1e-11)
    np.testing.assert_allclose(run(prims.Expm1(), z), z, rtol=1e-11)
    assert run(prims.Expm1(), of("complex64", 200.0 + 0j)).tolist() == [complex(INF, 0.0)]


def test_square_has_no_cancellation() -> None:
    near = 1.0 + 2.0**-12
    (found,) = run(prims.Square(), of("complex64", complex(near, 1.0)))
    assert found.real == np.float32((near - 1) * (near + 1))


def test_complex_division_where_numbers_are_infinite_or_zero() -> None:
    """C99, annex G: finite over infinite is zero; others over zero, and infinite, are infinite."""
    far = [complex(INF, INF), complex(-INF, 0.0), complex(NAN, INF), complex(1.0, INF)]
    for z in far:
        assert run(prims.Div(), of("complex64", 1 + 2j), of("complex64", z))[0] == 0
        quotient = run(prims.Div(), of("complex64", z), of("complex64", 1 + 2j))[0]
        assert np.isinf(quotient.real) or np.isinf(quotient.imag)
        pole = run(prims.Div(), of("complex64", z), of("complex64", 0j))[0]
        assert np.isinf(pole.real) or np.isinf(pole.imag)
    for z in (1 + 0j, -1j, 3 - 4j):
        pole = run(prims.Div(), of("complex128", z), of("complex128", 0j))[0]
        assert np.isinf(pole.real) or np.isinf(pole.imag)
    nothing = run(prims.Div(), of("complex64", 0j), of("complex64", 0j))[0]
    assert np.isnan(nothing.real)
    assert np.isnan(nothing.imag)


def test_a_scalar_matches_any_shape() -> None:
    x, three = of("float32", 1.0, 2.0), scalar("float32", 3.0)
    assert run(prims.Add(), x, three).tolist() == [4.0, 5.0]
    assert run(prims.Complex(), three, x).tolist() == [3 + 1j, 3 + 2j]
    assert run(prims.Clamp(), three, x, three).tolist() == [3.0, 3.0]
    assert run(prims.Div(), of("complex64", 1j, 0j), scalar("complex64", 0)).shape == (2,)
