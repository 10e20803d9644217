"""Values of array functions at their limits, eager and compiled, against NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.dtypes import as_dtype
from effax.ir.errors import BadArgument
from tests.unit.numpy.special_values import leaves, pairs

SIGNED = ["int8", "int16", "int32"]
INTEGERS = [*SIGNED, "uint8", "uint16", "uint32"]
FLOATS = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"]
NAN, INF = np.nan, np.inf


def both(call: Callable[..., Any], *args: np.ndarray) -> list[np.ndarray]:
    """Return the results of a function, which must be those of the compiled one."""
    eager = leaves(call(*map(jnp.asarray, args)))
    for x, y in zip(eager, leaves(jax.jit(call)(*args)), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=2e-6)
    return eager


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "mod", "fmod", "divmod"])
def test_division_of_integers_is_numpys_for_every_divisor(name: str, dtype: str) -> None:
    x, y = pairs(dtype)
    assert (y == 0).any()
    with np.errstate(all="ignore"):
        wanted = leaves(getattr(np, name)(x, y))
    for found, right in zip(both(getattr(jnp, name), x, y), wanted, strict=True):
        np.testing.assert_array_equal(found, right, strict=True)


@pytest.mark.parametrize("operator", [lambda x: x % 0, lambda x: x // 0, lambda x: 0 % (x * 0)])
def test_integers_divided_by_a_constant_zero_are_zero(operator: Callable[[Any], Any]) -> None:
    (found,) = both(operator, np.array([7, 0, -7, -(2**31)], np.int32))
    assert found.tolist() == [0] * 4


@pytest.mark.slow
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_and_multiples_are_numpys(name: str, dtype: str) -> None:
    x, y = np.meshgrid(np.array([0, 1, 4, 6, 11], dtype), np.array([0, 1, 4, 6, 9], dtype))
    (found,) = both(getattr(jnp, name), x, y)
    np.testing.assert_array_equal(found, getattr(np, name)(x, y), strict=True)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_cumulative_results_widen_as_sums_do(name: str, dtype: str) -> None:
    x = np.array([1, 1, 1] if dtype == "bool" else [100, 100, 2]).astype(dtype)
    (found,) = both(getattr(jnp, name), x)
    np.testing.assert_array_equal(found, getattr(np, name)(x))
    assert found.dtype == jnp.sum(jnp.asarray(x)).dtype
    assert getattr(jnp, name)(x, dtype=x.dtype).dtype == x.dtype


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("decimals", [0, 1, -1, -2, -3, -12])
def test_integers_are_rounded_to_tens(dtype: str, decimals: int) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, 0, 5, 15, 25, 49, 50, 51, 120, info.max - 8], dtype)
    (found,) = both(lambda x: jnp.round(x, decimals), x)
    unit = 10 ** max(-decimals, 0)
    wanted = [round(int(v) / unit) * unit for v in x]
    fits = np.array([info.min <= w <= info.max for w in wanted])
    assert found.dtype == x.dtype
    assert found[fits].tolist() == [w for w, f in zip(wanted, fits, strict=True) if f]


NARROW = [("int8", [100, 127, 3]), ("uint8", [200, 255, 3]), ("int16", [100, 127, 3])]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "at"), NARROW)
@pytest.mark.parametrize(
    "call",
    [
        lambda n, i: n.unravel_index(i, (2, 500)),
        lambda n, i: n.unravel_index(i, (64, 2, 3)),
        lambda n, i: n.ravel_multi_index((i, i), (300, 300), "clip"),
        lambda n, i: n.ravel_multi_index((i, i), (300, 7), mode="wrap"),
        lambda n, i: n.take(n.arange(1000), i),
        lambda n, i: n.take(n.arange(1000), i, mode="wrap"),
        lambda n, i: n.take(n.arange(150), i, mode="clip"),
        lambda n, i: n.take_along_axis(n.arange(1000), i, 0),
        lambda n, i: n.arange(1000)[i],
    ],
)
def test_positions_of_narrow_dtypes_do_not_overflow(
    call: Callable[..., Any], dtype: str, at: list[int]
) -> None:
    index = np.array(at, dtype)
    wanted = leaves(call(np, index.astype(np.int64)))
    for found, right in zip(both(lambda i: call(jnp, i), index), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def test_negative_positions_of_take_along_axis_count_from_the_end() -> None:
    x, at = np.arange(5), np.array([-1, -5, -7, 9, 2])
    for mode, wanted in {"clip": [4, 0, 0, 4, 2], "wrap": [4, 0, 3, 4, 2]}.items():
        (found,) = both(lambda x, i, m=mode: jnp.take_along_axis(x, i, 0, mode=m), x, at)
        assert found.tolist() == wanted


@pytest.mark.slow
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[1, 2, 3], [3, 2, 1], [3, 3, 1], [2], [2, 2]])
def test_bins_are_in_either_order(bins: list[float], right: bool) -> None:
    x, edges = np.array([0, 1, 1.5, 2, 3, 4], np.float32), np.array(bins, np.float32)
    (found,) = both(lambda x, b: jnp.digitize(x, b, right=right), x, edges)
    assert found.tolist() == np.digitize(x, edges, right=right).tolist()


def ordered(x: Any) -> list[Any]:
    sorted_ = jnp.sort(x)
    places = [jnp.argsort(x), jnp.lexsort((x,)), jnp.searchsorted(sorted_, x)]
    extremes = [getattr(jnp, name)(x) for name in ("max", "min", "nanmax", "nanmin")]
    at = [jnp.argmax(x), jnp.argmin(x), jnp.nanargmax(x), jnp.nanargmin(x)]
    return [sorted_, *places, jnp.stack(extremes), jnp.stack(at)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_of_either_sign_sorts_last(dtype: str) -> None:
    x = np.array([3, NAN, 1, -NAN, 2, NAN]).astype(as_dtype(dtype))
    found = both(ordered, x)
    assert found[0].dtype == x.dtype
    assert [v.astype(float).tolist() for v in found[1:4]] == [
        [2, 4, 0, 1, 3, 5],
        [2, 4, 0, 1, 3, 5],
        [2, 3, 0, 3, 1, 3],
    ]
    np.testing.assert_array_equal(found[0].astype(float), [1, 2, 3, NAN, NAN, NAN])
    np.testing.assert_array_equal(found[4].astype(float), [NAN, NAN, 3, 1])
    assert found[5].tolist() == [1, 1, 0, 2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_unique_counts_nan_once(dtype: str) -> None:
    x = jnp.asarray(np.array([3, NAN, 1, -NAN, 1]).astype(as_dtype(dtype)))
    values, index, inverse, counts = (np.asarray(v) for v in jnp.unique(x, True, True, True))
    assert values.dtype == x.dtype
    assert [str(v) for v in values.astype(float)] == ["1.0", "3.0", "nan"]
    assert index.tolist() == [2, 0, 1]
    assert inverse.tolist() == [1, 2, 0, 2, 0]
    assert counts.tolist() == [2, 1, 2]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin", "cumsum"])
def test_extremes_of_a_dtype_are_kept(name: str, dtype: str) -> None:
    limits = ml_dtypes.finfo(as_dtype(dtype))
    x = np.array([limits.max, limits.min]).astype(as_dtype(dtype))
    (found,) = both(getattr(jnp, name), x)
    assert float(np.ravel(found)[0]) == float(limits.min if "min" in name else limits.max)


POWERS = [-INF, -0.0, 4.0, -4.0, 0.0, INF, NAN]
ROOTS = [INF, 0.0, 2.0, NAN, 0.0, INF, NAN]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_power_of_a_half_is_not_a_square_root(dtype: str) -> None:
    x = np.array(POWERS).astype(as_dtype(dtype))
    half = np.full_like(x, 0.5)
    for found in both(lambda x, e: [jnp.power(x, e), x**e, x**0.5, x ** e[:1]], x, half):
        np.testing.assert_array_equal(found.astype(float), ROOTS)
        assert not np.signbit(found[:3].astype(float)).any()
    assert [float(v) for v in both(lambda: [jnp.power(v, 0.5) for v in POWERS[:2]])] == [INF, 0]


def test_the_magnitude_of_a_number_with_an_infinite_part_is_infinite() -> None:
    z = np.array([complex(INF, NAN), complex(NAN, -INF), complex(-INF, 1)], np.complex64)
    assert both(jnp.abs, z)[0].tolist() == [INF] * 3


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_ldexp_overflows_only_where_its_result_does(dtype: str) -> None:
    limits = ml_dtypes.finfo(as_dtype(dtype))
    top, least = int(limits.maxexp), int(limits.minexp)
    x = np.array([0, -0.0, 1, 1, -1, limits.tiny, 1.5, limits.max, INF, NAN, 1.5, INF, -INF])
    n = [
        1000,
        10**6,
        top - 1,
        top,
        -(10**9),
        top - 1 - least,
        -3,
        -top,
        5,
        5,
        2**31 - 1,
        -1000,
        least - 3,
    ]
    exponents = np.array(n, np.int32)
    x = x.astype(as_dtype(dtype))
    (found,) = both(jnp.ldexp, x, exponents)
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x.astype(np.float64), np.clip(exponents, -4000, 4000)).astype(x.dtype)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.slow
def test_ldexp_takes_any_integers() -> None:
    for dtype in (*INTEGERS, "bool"):
        (found,) = both(jnp.ldexp, np.array([3.0], np.float32), np.array([1], dtype))
        assert found.tolist() == [6.0]


@pytest.mark.slow
@pytest.mark.parametrize("where", [False, True])
def test_no_degree_of_freedom_is_nan(where: bool) -> None:
    x = np.array([1, 2, 4], np.float32)
    mask = np.ones(3, bool) if where else None

    def spreads(x: Any) -> list[Any]:
        return [f(x, ddof=d, where=mask) for f in (jnp.var, jnp.std) for d in (2, 3, 4)]

    for dtype in ("float32", "int32"):
        found = both(spreads, x.astype(dtype))
        wanted = [float(np.var(x, ddof=2)), NAN, NAN, float(np.std(x, ddof=2)), NAN, NAN]
        np.testing.assert_allclose(np.stack(found), wanted, rtol=1e-6)


def test_a_variance_has_the_dtype_that_is_asked_for() -> None:
    z = np.array([1, 2j, 3], np.complex64)
    assert jnp.var(z).dtype == jnp.float32
    for x in (z, np.array([1, 2, 3], np.float32)):
        for call in (jnp.var, jax.jit(lambda x: jnp.var(x, dtype=np.complex64))):
            found = np.asarray(call(x, dtype=np.complex64) if call is jnp.var else call(x))
            assert found.dtype == np.complex64
            np.testing.assert_allclose(found, np.var(x), rtol=1e-6)


def test_a_difference_of_order_zero_is_the_array() -> None:
    x = np.array([1, 2, 4], np.float32)
    for joined in ({"prepend": 0}, {"append": np.zeros(2)}, {}):
        (found,) = both(lambda x, j=joined: jnp.diff(x, n=0, **j), x)
        np.testing.assert_array_equal(found, np.diff(x, n=0, **joined))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_angles_of_narrow_floats(dtype: str) -> None:
    x = np.array([-1, 1, NAN, -0.0]).astype(as_dtype(dtype))
    for deg in (False, True):
        (found,) = both(lambda x, d=deg: jnp.angle(x, deg=d), x)
        wanted = np.angle(x.astype(float), deg=deg).astype(x.dtype)
        np.testing.assert_array_equal(found.astype(float), wanted.astype(float))


LINES = [
    ([0, 1, 2], [0, 1, INF]),
    ([0, 1, 2], [-INF, 1, 2]),
    ([0, 1, 2], [0, INF, INF]),
    ([0, 1, 2], [-INF, INF, 3]),
    ([0, 1, INF], [0, 1, 2]),
    ([-INF, 0, 1], [5, 0, 1]),
    ([0, 1, 2], [0, NAN, 2]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("xp", "fp"), LINES)
def test_interpolation_beside_an_infinity(xp: list[float], fp: list[float]) -> None:
    x = np.array([-INF, -1, 0, 0.5, 1, 1.5, 2, 3, INF], np.float32)
    places, values = np.array(xp, np.float32), np.array(fp, np.float32)
    with np.errstate(all="ignore"):
        wanted = np.interp(x, places, values)
    (found,) = both(jnp.interp, x, places, values)
    np.testing.assert_allclose(found, wanted)


def test_a_line_beside_an_infinity_has_a_derivative() -> None:
    places, values = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 3.0, jnp.inf])
    assert jax.grad(lambda x: jnp.interp(x, places, values))(0.5) == 3
    found = jax.grad(lambda f: jnp.interp(0.5, places, f))(values)
    assert found.tolist() == [0.5, 0.5, 0.0]


WIDE = [np.int64(2**31 + 5), np.array([2**31 + 5]), np.uint64(2**40), np.array([[1], [-(2**40)]])]


@pytest.mark.parametrize("value", WIDE, ids=str)
def test_a_64_bit_integer_that_does_not_fit_is_an_error(value: Any) -> None:
    r = jax.new_ref(jnp.zeros(value.shape, jnp.int32))
    uses: list[Callable[[], object]] = [
        lambda: r.__setitem__(..., value),
        lambda: jax.jit(lambda r: r.__setitem__(..., value))(r),
        lambda: jnp.asarray(value),
        lambda: jnp.arange(2) + value,
        lambda: jnp.arange(2).at[0].add(value),
        lambda: jax.jit(lambda x: x)(value),
        lambda: jnp.stack([value]),
    ]
    for use in uses:
        with pytest.raises(BadArgument, match="does not fit"):
            use()
    assert not np.asarray(r[...]).any()
    assert jnp.asarray(value, jnp.float32).tolist() == value.astype(np.float32).tolist()


def test_a_requested_dtype_is_reached_directly() -> None:
    # In float32, the number is a tie of float16.
    number = np.float64(2049 + 1e-9)
    assert jnp.asarray(number, jnp.float16) == 2050
    assert jnp.asarray(np.int64(2**40), jnp.float32) == 2.0**40
