"""Indexed reads and updates: XLA agrees with the evaluator, for every kind of indexer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from effax.ir.build import Builder
from effax.ir.indexing import Indexer, Mode, Pick, Span, layout
from effax.ir.prims import Gather, Scatter, ScatterAdd, ScatterMax, ScatterMin, ScatterMul
from effax.ir.syntax import Atom, Jaxpr, Var
from effax.ir.types import type_of_value
from tests.unit.lowering.compiled import Array, agree, i32, program, samples, scalar

pytestmark = pytest.mark.slow

AT, ALL, MOVING = Pick(None), Span(0, 5), Span(None, 2)


class Case(NamedTuple):
    """An indexer, the shape that it indexes, and its operands."""

    name: str
    shape: tuple[int, ...]
    dims: tuple[Pick | Span, ...]
    operands: Sequence[Array] = ()


STATIC = [
    Case("whole", (4, 5), (Span(0, 4), ALL)),
    Case("part", (4, 5), (Span(1, 2), Span(2, 3))),
    Case("steps", (9, 5), (Span(1, 4, 2), Span(0, 2, 3))),
    Case("backward", (4, 5), (Span(3, 4, -1), ALL)),
    Case("backward steps", (9, 5), (Span(8, 4, -2), Span(4, 2, -3))),
    Case("a step beyond", (4, 5), (Span(2, 1, -7), Span(0, 5))),
    Case("pick", (4, 5), (Pick(2), ALL)),
    Case("picks", (4, 5), (Pick(2), Pick(4))),
    Case("pick and steps", (3, 9), (Pick(1), Span(7, 3, -3))),
    Case("nothing", (4, 5), (Span(0, 0), ALL)),
    Case("scalar", (), ()),
    Case("empty array", (0, 5), (Span(0, 0), ALL)),
]
SINGLE = [
    Case("row", (4, 5), (AT, ALL), [scalar(2)]),
    Case("element", (4, 5), (AT, AT), [scalar(2), scalar(1)]),
    Case("column", (4, 5), (Span(0, 4), AT), [scalar(3)]),
    Case("outside", (4, 5), (AT, ALL), [scalar(4)]),
    Case("below", (4, 5), (AT, ALL), [scalar(-1)]),
    Case("far outside", (4, 5), (AT, AT), [scalar(2**31 - 1), scalar(0)]),
    Case("far below", (4, 5), (AT, AT), [scalar(1), scalar(-(2**31))]),
    Case("moving", (4, 5), (MOVING, ALL), [scalar(1)]),
    Case("moving outside", (4, 5), (MOVING, ALL), [scalar(3)]),
    Case("moving below", (4, 5), (MOVING, Span(1, 3)), [scalar(-5)]),
    Case("moving steps", (9, 5), (Span(None, 3, 2), ALL), [scalar(2)]),
    Case("moving steps outside", (9, 5), (Span(None, 3, 2), ALL), [scalar(7)]),
    Case("moving backward", (9, 5), (Span(None, 3, -1), ALL), [scalar(5)]),
    Case("moving backward below", (9, 5), (Span(None, 3, -2), ALL), [scalar(1)]),
    Case("moving backward far below", (9, 5), (Span(None, 3, -2), ALL), [scalar(-(2**31))]),
    Case("moving backward outside", (9, 5), (Span(None, 3, -2), ALL), [scalar(2**31 - 1)]),
    Case(
        "all kinds",
        (4, 9, 3, 5),
        (AT, Span(None, 2, 3), Pick(1), MOVING),
        [scalar(3), scalar(4), scalar(2)],
    ),
    Case("a pick of nothing", (0, 5), (AT, ALL), [scalar(0)]),
    Case("nothing moving", (4, 5), (Span(None, 0), AT), [scalar(2), scalar(9)]),
]
ARRAYS = [
    Case("rows", (4, 5), (AT, ALL), [i32(2, 0, 3)]),
    Case("rows outside", (4, 5), (AT, ALL), [i32(2, 4, -1, 1)]),
    Case("columns", (4, 5), (Span(0, 4), AT), [i32(4, 0, 1)]),
    Case("matrix of rows", (4, 5), (AT, ALL), [np.array([[0, 1], [3, 9]], np.int32)]),
    Case("elements", (4, 5), (AT, AT), [i32(0, 1, 2, 7), i32(4, -3, 2, 1)]),
    Case("broadcast", (4, 5), (AT, AT), [i32(0, 2).reshape(2, 1), i32(4, 3, 1)]),
    Case("array and scalar", (4, 5), (AT, AT), [i32(0, 2, 9), scalar(3)]),
    Case("array and scalar outside", (4, 5), (AT, AT), [i32(0, 2), scalar(9)]),
    Case("array and static", (4, 5), (AT, Pick(2)), [i32(3, 0)]),
    Case("apart", (3, 4, 5), (AT, Span(0, 4), AT), [i32(0, 2), i32(1, 4)]),
    Case("apart with static", (3, 4, 5), (Pick(1), Span(0, 4), AT), [i32(1, 4, 0)]),
    Case("in the middle", (3, 4, 5, 2), (Span(0, 3), AT, AT, Span(0, 2)), [i32(0, 3), i32(1, 4)]),
    Case("with a part", (4, 9), (AT, Span(2, 4)), [i32(2, 0)]),
    Case("with a moving part", (4, 9), (AT, Span(None, 4)), [i32(2, 0), scalar(3)]),
    Case("with a moving part outside", (4, 9), (AT, Span(None, 4)), [i32(2, 5), scalar(99)]),
    Case("with steps", (4, 9), (AT, Span(1, 3, 2)), [i32(2, 0)]),
    Case("with steps before", (9, 4, 3), (Span(8, 3, -2), AT, Span(0, 3)), [i32(3, 0)]),
    Case("with moving steps", (4, 9), (AT, Span(None, 3, 2)), [i32(2, 0), scalar(3)]),
    Case("with moving steps outside", (4, 9), (AT, Span(None, 3, -2)), [i32(2, 0), scalar(-1)]),
    Case("no rows", (4, 5), (AT, ALL), [i32()]),
    Case("rows of nothing", (0, 5), (AT, ALL), [i32(0, 1)]),
    Case("rows without columns", (4, 0), (AT, Span(0, 0)), [i32(0, 1)]),
    Case("one row", (4, 5), (AT, ALL), [i32(2)]),
    Case(
        "all at once",
        (3, 9, 4, 5),
        (AT, Span(None, 2, -3), AT, MOVING),
        [i32(0, 5), scalar(7), i32(1, 0), scalar(9)],
    ),
]
DUPLICATES = [
    Case("rows", (4, 5), (AT, ALL), [i32(2, 0, 2, 2)]),
    Case("clipped onto one", (4, 5), (AT, ALL), [i32(3, 9, 7, -1)]),
    Case("elements", (4, 5), (AT, AT), [i32(1, 1, 0, 1), i32(2, 2, 3, 2)]),
]


def reads_and_updates(case: Case, mode: Mode, x: Array, value: Array) -> Jaxpr:
    """Return the program with a read, an update and an accumulation at the indexer."""
    indexer = Indexer(case.dims, mode)
    types = [type_of_value(v) for v in (x, value, *case.operands)]

    def body(b: Builder, x: Var, value: Var, *at: Var) -> list[Atom]:
        outs: list[Atom] = [b(Gather(indexer), x, *at), b(Scatter(indexer), x, value, *at)]
        if x.type.dtype != np.bool_:
            outs.append(b(ScatterAdd(indexer), x, value, *at))
            if x.type.dtype.name == "float32":
                outs += [b(p(indexer), x, value, *at) for p in (ScatterMul, ScatterMax, ScatterMin)]
        return outs

    return program(types, body)


def check(case: Case, mode: Mode, dtype: str = "float32") -> None:
    part = layout(Indexer(case.dims), [o.shape for o in case.operands]).shape
    x, value = samples(dtype, case.shape), samples(dtype, part, 1)
    names = ["gather", "scatter", "scatter_add", "scatter_mul", "scatter_max", "scatter_min"]
    agree(reads_and_updates(case, mode, x, value), [x, value, *case.operands], names=names)


@pytest.mark.parametrize("case", STATIC, ids=lambda c: c.name)
def test_static(case: Case) -> None:
    check(case, Mode.CLIP)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("case", SINGLE, ids=lambda c: c.name)
def test_single_positions(case: Case, mode: Mode) -> None:
    check(case, mode)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("case", ARRAYS, ids=lambda c: c.name)
def test_arrays_of_positions(case: Case, mode: Mode) -> None:
    check(case, mode)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("case", DUPLICATES, ids=lambda c: c.name)
def test_duplicates_all_count_and_the_last_one_stays(case: Case, mode: Mode) -> None:
    check(case, mode)


@pytest.mark.parametrize("dtype", ["bfloat16", "int32", "uint8", "bool", "complex64", "float64"])
@pytest.mark.parametrize("case", [SINGLE[16], ARRAYS[1], STATIC[4]], ids=lambda c: c.name)
def test_dtypes(case: Case, dtype: str) -> None:
    check(case, Mode.DROP, dtype)


INDICES = ["int8", "uint8", "int16", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("mode", Mode)
def test_indices_of_any_integer_dtype(dtype: str, mode: Mode) -> None:
    """Bounds exceed the narrow dtypes; the wide dtypes exceed int32."""
    info = np.iinfo(dtype)
    ends = np.array([3, 120, info.min, info.max], dtype)
    check(Case("array", (300, 2), (AT, Span(0, 2)), [ends]), mode)
    for end in ends:
        check(Case("single", (300, 2), (AT, Span(0, 2)), [end]), mode)


def test_indices_of_mixed_dtypes() -> None:
    operands: list[Array] = [
        np.array([0, 250], np.uint8),
        np.array([2, 2**40], np.int64),
        scalar(1),
    ]
    dims = (AT, AT, Span(None, 2))
    for mode in Mode:
        check(Case("mixed", (300, 4, 5), dims, operands), mode)
