"""Reductions, cumulative operations, sort, contraction: XLA agrees with the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.dtypes import as_dtype, family
from effax.ir.errors import LoweringError
from effax.ir.primitive import Primitive
from effax.lowering.rules.default import DEFAULT, HOST_LIBRARIES
from effax.lowering.stablehlo import lower
from effax.lowering.writer import LoweringRules
from tests.unit.lowering.compiled import (
    DTYPES,
    Array,
    agree,
    applied,
    close,
    in_each,
    module,
    run,
    samples,
)

pytestmark = pytest.mark.slow

REDUCTIONS = (
    prims.ReduceSum,
    prims.ReduceProd,
    prims.ReduceMax,
    prims.ReduceMin,
    prims.ReduceAnd,
    prims.ReduceOr,
)
CUMULATIVE = (prims.CumSum, prims.CumProd, prims.CumMax, prims.CumMin)
ALL = [*DTYPES, "float16", "float64", "int8", "uint32", "int64"]


def of(kinds: tuple[type, ...], dtype: str) -> list[type]:
    return [k for k in kinds if family(as_dtype(dtype)) in k.accepts]  # type: ignore[attr-defined]  # reductions have it


@pytest.mark.parametrize("dtype", ALL)
def test_reductions(dtype: str) -> None:
    x = samples(dtype, (3, 4, 2))
    several: list[Primitive] = [
        k(axes) for k in of(REDUCTIONS, dtype) for axes in [(0,), (2, 0), (0, 1, 2), ()]
    ]
    agree(in_each(several, x), [x], names=[str(p) for p in several])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_nothing(dtype: str) -> None:
    x = samples(dtype, (0, 3))
    several: list[Primitive] = [k((0,)) for k in of(REDUCTIONS, dtype)]
    agree(in_each(several, x), [x])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_extremes_of_nan(dtype: str) -> None:
    x = np.array([[1, np.nan, 3], [-np.inf, 2, np.inf]], as_dtype(dtype))
    agree(
        in_each(
            [prims.ReduceMax((1,)), prims.ReduceMin((1,)), prims.CumMax(1), prims.CumMin(1)], x
        ),
        [x],
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_accumulate_in_float32(dtype: str) -> None:
    x = np.full(2000, 1.0, as_dtype(dtype))
    sums = run(in_each([prims.ReduceSum((0,)), prims.CumSum(0)], x), [x])
    assert float(sums[0]) == 2000
    assert float(sums[1][-1]) == 2000


@pytest.mark.parametrize("dtype", [d for d in ALL if not d.startswith("complex")])
def test_arg_reductions(dtype: str) -> None:
    x = samples(dtype, (3, 50))
    indices = [as_dtype(d) for d in ("int32", "int64", "uint8")]
    several: list[Primitive] = [
        k(axis, d) for k in (prims.Argmax, prims.Argmin) for axis in (0, 1) for d in indices
    ]
    agree(in_each(several, x), [x], names=[str(p) for p in several])


ROWS = [
    [1.0, 3.0, 3.0],
    [np.nan, 5.0, np.nan],
    [1.0, np.inf, np.nan],
    [-np.inf, -np.inf, -np.inf],
    [0.0, -0.0, 0.0],
    [np.inf, np.inf, 1.0],
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_arg_reductions_return_the_first_extreme_or_nan(dtype: str) -> None:
    x = np.array(ROWS, as_dtype(dtype))
    index = as_dtype("int32")
    found = agree(in_each([prims.Argmax(1, index), prims.Argmin(1, index)], x), [x])
    assert found[0].tolist() == [1, 0, 2, 0, 0, 0]
    assert found[1].tolist() == [0, 0, 2, 0, 0, 2]


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "complex64", "float16"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(dtype: str, reverse: bool) -> None:
    x = samples(dtype, (3, 40))
    several: list[Primitive] = [k(axis, reverse) for k in of(CUMULATIVE, dtype) for axis in (0, 1)]
    # If terms cancel, sums in another order differ by the rounding of the terms.
    relative = None if dtype == "float16" else 1e-4
    agree(in_each(several, x), [x], relative, names=[str(p) for p in several])


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3)])
def test_cumulative_of_nothing_and_of_one(shape: tuple[int, ...]) -> None:
    x = samples("float32", shape)
    agree(in_each([k(0) for k in CUMULATIVE], x), [x])


def test_a_long_cumulative_sum_takes_few_operations() -> None:
    assert (
        len(module(applied(prims.CumSum(0), samples("float32", (1 << 20,)))).text.splitlines()) < 12
    )


SPECIAL = [3.0, np.nan, -0.0, 0.0, -np.inf, 1.0, np.nan, np.inf, 1.0, 0.0, -0.0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_sort_puts_nan_last_and_is_stable(dtype: str) -> None:
    x = np.array(SPECIAL, as_dtype(dtype))
    order = np.arange(len(SPECIAL), dtype=np.int32)
    found = agree(applied(prims.Sort(0), x, order), [x, order])
    assert found[1].tolist() == [4, 2, 3, 9, 10, 5, 8, 0, 7, 1, 6]


NEGATIVE_NAN = np.copysign(np.nan, -1)


@pytest.mark.parametrize("rules", [DEFAULT, HOST_LIBRARIES], ids=["anywhere", "host"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_top_k_orders_nan_first_and_is_stable(dtype: str, rules: LoweringRules) -> None:
    x = np.array([SPECIAL, [NEGATIVE_NAN, *SPECIAL[1:]]], as_dtype(dtype))
    values, at = in_both(prims.TopK(10, 1), x, rules)
    assert at[0].tolist() == [1, 6, 7, 0, 5, 8, 2, 3, 9, 10]
    assert at[1].tolist() == [0, 1, 6, 7, 5, 8, 2, 3, 9, 10]
    assert np.signbit(values[0, 6]) and not np.signbit(values[0, 7])


@pytest.mark.parametrize("rules", [DEFAULT, HOST_LIBRARIES], ids=["anywhere", "host"])
def test_top_k_of_every_dtype_and_shape(rules: LoweringRules) -> None:
    ends = np.array([0, -1, 2**31 - 1, -(2**31), 1, -1, 5], np.int32)
    assert in_both(prims.TopK(7, 0), ends, rules)[1].tolist() == [2, 6, 4, 0, 1, 5, 3]
    unsigned = in_both(prims.TopK(7, 0), ends.view(np.uint32), rules)[1]
    assert unsigned.tolist() == [1, 5, 3, 2, 6, 4, 0]
    for dtype in ("bool", "int8", "uint16", "int64"):
        in_both(prims.TopK(3, 1), samples(dtype, (4, 5)), rules)
    x = samples("float32", (3, 4, 2))
    for k, axis in ((0, 0), (3, 0), (2, 1), (1, 2)):
        in_both(prims.TopK(k, axis), x, rules)
    in_both(prims.TopK(1, 1), x[:0], rules)


def in_both(prim: prims.TopK, x: Array, rules: LoweringRules) -> list[Array]:
    """Return the compiled results, which equal the evaluator's bit by bit."""
    found = run(applied(prim, x), [x], rules)
    for a, b in zip(found, prim.evaluate(x), strict=True):
        assert close(a, b, 0).all()
    return found


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort_of_integers(dtype: str, axis: int) -> None:
    x = samples(dtype, (5, 7))
    order = np.arange(35, dtype=np.int32).reshape(5, 7)
    agree(applied(prims.Sort(axis), x, order), [x, order])


def test_sort_by_many_keys() -> None:
    first = np.array([1, np.nan, 1, np.nan, 0, 1], np.float32)
    second = np.array([3, 2, 2, 1, 9, 2], np.int32)
    third = np.array([0, 0, 1, 0, 0, 0], bool)
    rest = samples("complex64", (6,))
    for keys in (1, 2, 3):
        values = [first, second, third, rest]
        agree(applied(prims.Sort(0, keys), *values), values)


DOTS = [
    (((1,), (0,)), ((), ()), (3, 4), (4, 5)),
    (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4, 5)),
    (((0, 2), (1, 0)), ((), ()), (3, 2, 4), (4, 3, 5)),
    (((), ()), ((), ()), (3,), (4,)),
    (((0,), (0,)), ((), ()), (3,), (3,)),
    (((), ()), ((0,), (0,)), (3,), (3,)),
    (((1,), (1,)), ((), ()), (2, 0), (3, 0)),
]


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "float64", "int8"])
def test_dot_general(dtype: str) -> None:
    for contract, batch, left, right in DOTS:
        x, y = samples(dtype, left), samples(dtype, right, 1)
        relative = 0.02 if dtype in ("bfloat16", "float16") else 1e-5
        agree(applied(prims.DotGeneral((contract, batch)), x, y), [x, y], relative)


WIDER = [
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("float32", "float64"),
    ("float32", "bfloat16"),
    ("int8", "int32"),
    ("uint8", "uint32"),
    ("uint8", "int32"),
    ("int32", "float32"),
    ("bool", "int32"),
    ("bool", "float32"),
    ("float32", "complex64"),
]


@pytest.mark.parametrize(("operands", "result"), WIDER)
def test_dot_general_in_another_dtype(operands: str, result: str) -> None:
    x, y = samples(operands, (6, 40)), samples(operands, (40, 5), 1)
    prim = prims.DotGeneral((((1,), (0,)), ((), ())), as_dtype(result))
    agree(applied(prim, x, y), [x, y], 0.02 if result == "bfloat16" else 1e-4)


def test_a_wider_result_does_not_overflow() -> None:
    x = np.full((1, 100), 127, np.int8)
    prim = prims.DotGeneral((((1,), (1,)), ((), ())), as_dtype("int32"))
    assert run(applied(prim, x, x), [x, x])[0].item() == 127 * 127 * 100


@pytest.mark.parametrize("precision", [None, "default", "high", "highest", "HIGHEST"])
def test_precision(precision: str | None) -> None:
    x: Array = samples("float32", (3, 3))
    prim = prims.DotGeneral((((1,), (0,)), ((), ())), None, precision)
    word = (precision or "default").upper()
    assert f"precision = [{word}, {word}]" in module(applied(prim, x, x)).text


def test_an_unknown_precision_is_an_error() -> None:
    x: Array = samples("float32", (3, 3))
    prim = prims.DotGeneral((((1,), (0,)), ((), ())), None, "utmost")
    error = lower(applied(prim, x, x)).failure()
    assert isinstance(error, LoweringError)
    assert "utmost" in str(error)
    assert "dot_general" in (error.equation or "")
