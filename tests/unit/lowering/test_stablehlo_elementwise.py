"""Elementwise primitives: XLA agrees with the evaluator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.dtypes import as_dtype, family
from effax.ir.errors import EffaxError
from effax.ir.primitive import Primitive
from effax.ir.syntax import Atom
from effax.ir.types import array_type
from tests.unit.lowering.compiled import (
    DTYPES,
    Array,
    agree,
    applied,
    array,
    in_each,
    module,
    program,
    run,
    samples,
    scalar,
)

pytestmark = pytest.mark.slow

ALL = [*DTYPES, "float16", "float64", "int8", "uint32", "int64", "uint64", "complex128"]


def concrete(base: type[prims.Elementwise]) -> Iterator[type[prims.Elementwise]]:
    for sub in base.__subclasses__():
        if sub.__module__.startswith("effax.ir.prims") and "name" in vars(sub):
            yield sub
        else:
            yield from concrete(sub)


UNARY: list[Primitive] = [p() for p in concrete(prims.Unary)]
UNARY += [
    prims.Abs(),
    prims.Real(),
    prims.Imag(),
    *[prims.IntegerPow(y) for y in (0, 1, 2, 3, 7, -1, -3)],
]
# Special functions are series of many steps, and rounded otherwise when compiled.
BINARY: list[Primitive] = [
    *[p() for p in concrete(prims.Binary) if not p.__module__.endswith(".special")],
    prims.Complex(),
]


def edges(dtype: str) -> Array:
    """Return special values of the dtype."""
    made = as_dtype(dtype)
    kind = family(made)
    if kind == "bool":
        return np.array([False, True])
    if kind in ("int", "uint"):
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, 2, 3, 7, info.max // 2, info.max - 1], made)
    if kind == "complex":
        parts = np.array([0, 1, -1, 0.5, 2, -3])
        return (parts[:, None] + 1j * parts).ravel().astype(made)
    ordinary = [0.0, -0.0, 1, -1, 0.5, -0.7, 2.5, -2.5, 3.5, 1e-3, 10, -10, 30, -30, 80, -80, 0.999]
    with np.errstate(over="ignore"):
        return np.array([*ordinary, np.inf, -np.inf, np.nan], made)


def accepting(several: list[Primitive], *values: Array) -> list[Primitive]:
    types = [array_type(v.shape, v.dtype) for v in values]

    def accepts(prim: Primitive) -> bool:
        try:
            prim.typing(*types)
        except EffaxError:
            return False
        return True

    return [p for p in several if accepts(p)]


def test_no_primitive_is_forgotten() -> None:
    assert len(UNARY) > 40
    assert len(BINARY) > 20


@pytest.mark.parametrize("dtype", ALL)
def test_unary(dtype: str) -> None:
    x = edges(dtype)
    several = accepting(UNARY, x)
    if family(as_dtype(dtype)) in ("int", "uint"):
        # The evaluator's exponent must fit, and so must powers in the exact comparison.
        several = [p for p in several if not isinstance(p, prims.IntegerPow) or p.y < 4]
    agree(in_each(several, x), [x], names=[str(p) for p in several])


@pytest.mark.parametrize("dtype", ALL)
def test_binary(dtype: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    several = accepting(BINARY, x, y)
    agree(in_each(several, x, y), [x, y], names=[p.name for p in several])


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_zero_divided_by_itself(dtype: str) -> None:
    x = np.array([0, 5], dtype)
    jaxpr = program([array(dtype, 2)], lambda b, x: [b(prims.Div(), x, x), b(prims.Rem(), x, x)])
    agree(jaxpr, [x])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_scalar_broadcasts_to_any_shape(dtype: str) -> None:
    x, y = samples(dtype, (2, 3)), samples(dtype, (), 1)
    several = accepting(BINARY, x, x)
    agree(in_each(several, x, y), [x, y])
    agree(in_each(several, y, x), [y, x])
    agree(in_each(several, y, y), [y, y])


@pytest.mark.parametrize("side", [0, 1])
def test_a_literal_broadcasts_to_any_shape(side: int) -> None:
    type_ = array("float32", 2, 3)
    b = Builder([type_])
    ins: list[Atom] = [b.binders[0], lit(2.5, type_)]
    outs = [
        b(p, *(ins if side else ins[::-1]))
        for p in (prims.Add(), prims.Sub(), prims.Div(), prims.Lt())
    ]
    agree(b.finish(outs), [samples("float32", (2, 3))])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    "shapes", [((5,), (5,), (5,)), ((), (5,), ()), ((), (5,), (5,)), ((5,), (), ())]
)
def test_clamp(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    values = [samples(dtype, s, k) for k, s in enumerate(shapes)]
    agree(applied(prims.Clamp(), *values), values)


def test_clamp_keeps_nan_and_lets_the_high_end_win() -> None:
    x = np.array([np.nan, 3.0], np.float32)
    (out,) = agree(
        applied(prims.Clamp(), scalar(5, "float32"), x, scalar(1, "float32")),
        [scalar(5, "float32"), x, scalar(1, "float32")],
    )
    assert np.isnan(out[0])
    assert out[1] == 1


@pytest.mark.parametrize("before", [*ALL, "int16", "uint16"])
def test_conversions(before: str) -> None:
    x = edges(before)
    kinds = ("complex", "bool") if family(as_dtype(before)) == "complex" else ()
    after = [d for d in ALL if not kinds or family(as_dtype(d)) in kinds]
    several: list[Primitive] = [prims.ConvertElementType(as_dtype(d)) for d in after]
    agree(in_each(several, x), [x], names=after)


def test_floats_saturate_and_truncate_into_integers() -> None:
    x = np.array([1e20, -1e20, np.nan, 2.9, -2.9, 255.5, np.inf], np.float32)
    to_u8, to_i32 = (prims.ConvertElementType(as_dtype(d)) for d in ("uint8", "int32"))
    found = run(in_each([to_u8, to_i32], x), [x])
    assert found[0].tolist() == [255, 0, 0, 2, 0, 255, 255]
    assert found[1].tolist() == [2**31 - 1, -(2**31), 0, 2, -2, 255, 2**31 - 1]


WIDTHS = [
    ["float32", "int32", "uint32"],
    ["float16", "bfloat16", "int16", "uint16"],
    ["float64", "int64", "uint64", "complex64"],
    ["bool", "int8", "uint8"],
]


@pytest.mark.parametrize("dtypes", WIDTHS, ids=lambda ds: ds[0])
def test_bitcasts(dtypes: list[str]) -> None:
    several: list[Primitive] = [prims.BitcastConvertType(as_dtype(d)) for d in dtypes]
    for before in dtypes:
        x = edges(before)
        if "bool" in dtypes and before != "bool":
            x = np.array([0, 1], before)
        found = run(in_each(several, x), [x])
        assert [f.tobytes() for f in found] == [x.tobytes()] * len(found)


@pytest.mark.parametrize(
    ("which", "n"),
    [("int32", 1), ("int32", 2), ("int32", 3), ("int32", 5), ("bool", 1), ("bool", 2)],
)
def test_select_n(which: str, n: int) -> None:
    cases = [samples("float32", (6,), k) for k in range(n)]
    index = np.array([0, 1, 2, 3, 4, 9]).astype(which)
    agree(applied(prims.SelectN(), index, *cases), [index, *cases])
    agree(applied(prims.SelectN(), index[1], *cases), [index[1], *cases])
    ends = [c[0] for c in cases]
    agree(applied(prims.SelectN(), index, *ends), [index, *ends])


def test_select_n_takes_the_nearest_case() -> None:
    cases = [scalar(k, "float32") for k in range(3)]
    index = np.array([-(2**31), -1, 0, 2, 3, 2**31 - 1], np.int32)
    (out,) = agree(applied(prims.SelectN(), index, *cases), [index, *cases])
    assert out.tolist() == [0, 0, 0, 2, 2, 2]


def test_select_n_mixes_arrays_and_scalars() -> None:
    index, x, y = np.array([True, False, True]), samples("float32", (3,)), samples("float32", ())
    agree(applied(prims.SelectN(), index, x, y), [index, x, y])
    agree(applied(prims.SelectN(), index, y, x), [index, y, x])


def test_integer_pow_of_bfloat16_rounds_once() -> None:
    x = samples("bfloat16", (64,))
    (out,) = run(applied(prims.IntegerPow(5), x), [x])
    wanted = (x.astype(np.float64) ** 5).astype(x.dtype)
    assert np.mean(out == wanted) > 0.9


def test_integer_pow_takes_few_operations() -> None:
    jaxpr = applied(prims.IntegerPow(1 << 20), samples("float32", (3,)))
    assert module(jaxpr).text.count("multiply") == 20


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    agree(in_each([prims.Sin(), prims.Neg(), prims.Abs(), prims.IntegerPow(3)], x), [x])
    agree(in_each([prims.Add(), prims.Max(), prims.Lt()], x, x), [x, x])


def test_the_identity_writes_nothing() -> None:
    type_ = array("float32", 3)
    jaxpr = program([type_], lambda b, x: [b(prims.StopGradient(), b(prims.Copy(), x)), x])
    agree(jaxpr, [samples("float32", (3,))])
    literal = program([], lambda b: [b(prims.Copy(), lit(1.5, type_))])
    agree(literal, [])
