"""Primitives that rearrange elements: XLA agrees with the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.dtypes import as_dtype
from effax.ir.primitive import Primitive
from tests.unit.lowering.compiled import (
    DTYPES,
    Array,
    agree,
    applied,
    i32,
    in_each,
    samples,
    scalar,
)

MOVES: list[Primitive] = [
    prims.Reshape((6, 4)),
    prims.Reshape((24,)),
    prims.Reshape((2, 3, 4)),
    prims.Transpose((2, 0, 1)),
    prims.Transpose((0, 1, 2)),
    prims.ExpandDims((0, 3)),
    prims.BroadcastInDim((5, 2, 3, 4), (1, 2, 3)),
    prims.BroadcastInDim((2, 3, 4), (0, 1, 2)),
    prims.Rev((0, 2)),
    prims.Rev(()),
    prims.Slice((0, 1, 0), (2, 3, 4)),
    prims.Slice((1, 0, 0), (2, 3, 4), (1, 2, 3)),
    prims.Slice((1, 1, 1), (1, 2, 2)),
]


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "int64", "uint32"])
def test_moves(dtype: str) -> None:
    x = samples(dtype, (2, 3, 4))
    agree(in_each(MOVES, x), [x], names=[str(p) for p in MOVES])


def test_axes_of_size_one() -> None:
    x = samples("float32", (1, 3, 1))
    several: list[Primitive] = [
        prims.Squeeze((0, 2)),
        prims.Squeeze((2,)),
        prims.BroadcastInDim((4, 3, 5), (0, 1, 2)),
        prims.BroadcastInDim((2, 4, 3, 5), (1, 2, 3)),
        prims.Reshape((3,)),
    ]
    agree(in_each(several, x), [x])


def test_scalars() -> None:
    x = samples("float32", ())
    several: list[Primitive] = [
        prims.Reshape((1, 1)),
        prims.BroadcastInDim((2, 3), ()),
        prims.BroadcastInDim((), ()),
        prims.ExpandDims((0,)),
        prims.Transpose(()),
    ]
    agree(in_each(several, x), [x])


@pytest.mark.parametrize("dtype", DTYPES)
def test_concatenate(dtype: str) -> None:
    xs = [samples(dtype, (2, n), n) for n in (3, 1, 0, 4)]
    agree(applied(prims.Concatenate(1), *xs), xs)
    agree(applied(prims.Concatenate(0), xs[0]), xs[:1])
    agree(applied(prims.Concatenate(0), xs[0], xs[0]), [xs[0], xs[0]])


CONFIGS = [
    ((0, 0, 0), (0, 0, 0)),
    ((1, 2, 0), (0, 0, 0)),
    ((0, 0, 2), (1, 0, 1)),
    ((-1, 0, 0), (2, -2, 0)),
    ((-1, -2, 1), (0, 3, 0)),
    ((5, -3, 0), (-4, 2, 0)),
    ((0, -4, 0), (0, 0, 0)),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_pad(config: tuple[tuple[int, int, int], ...]) -> None:
    x, value = samples("float32", (4, 5)), scalar(7, "float32")
    agree(applied(prims.Pad(config), x, value), [x, value])


@pytest.mark.parametrize("dtype", DTYPES)
def test_pad_of_an_empty_array(dtype: str) -> None:
    x, value = samples(dtype, (0, 2)), samples(dtype, ())
    agree(applied(prims.Pad(((2, 1, 3), (0, 0, 0))), x, value), [x, value])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "uint8", "complex64"])
def test_iota(dtype: str) -> None:
    several: list[Primitive] = [
        prims.Iota(as_dtype(dtype), shape, d)
        for shape, d in [((5,), 0), ((2, 3), 0), ((2, 3), 1), ((0,), 0)]
    ]
    agree(in_each(several), [])


def test_iota_wraps_around_and_rounds() -> None:
    agree(applied(prims.Iota(as_dtype("int8"), (300,), 0)), [])
    agree(applied(prims.Iota(as_dtype("bfloat16"), (1000,), 0)), [])


STARTS = [(0, 0), (1, 2), (-3, 9), (2**31 - 1, -(2**31))]


@pytest.mark.parametrize("starts", STARTS)
def test_windows_move_inward(starts: tuple[int, int]) -> None:
    x, update = samples("float32", (4, 5)), samples("float32", (2, 3), 1)
    at = [scalar(k) for k in starts]
    agree(applied(prims.DynamicSlice((2, 3)), x, *at), [x, *at])
    agree(applied(prims.DynamicUpdateSlice(), x, update, *at), [x, update, *at])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_starts_of_any_integer_dtype(dtype: str) -> None:
    """Bounds exceed the narrow dtypes; the wide dtypes exceed int32."""
    x = np.arange(1000, dtype=np.float32)
    ends: list[Array] = [np.asarray(v, dtype) for v in (0, 5, *_ends(dtype))]
    for start in ends:
        agree(applied(prims.DynamicSlice((3,)), x, start), [x, start])


def _ends(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def test_whole_and_empty_windows() -> None:
    x, at = samples("float32", (4,)), [scalar(2)]
    agree(applied(prims.DynamicSlice((4,)), x, *at), [x, *at])
    agree(applied(prims.DynamicSlice((0,)), x, *at), [x, *at])
    agree(applied(prims.DynamicUpdateSlice(), x, x + 1, *at), [x, x + 1, *at])
    agree(applied(prims.DynamicUpdateSlice(), x, x[:0], *at), [x, x[:0], *at])


def test_starts_of_scalars() -> None:
    x = samples("float32", ())
    agree(applied(prims.DynamicSlice(()), x), [x])
    agree(applied(prims.DynamicUpdateSlice(), x, x + 1), [x, x + 1])
    assert i32(1).dtype == np.int32
