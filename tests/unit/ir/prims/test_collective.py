"""Evaluation of collectives on all devices of a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from effax.ir.axes import Axis
from effax.ir.errors import Divergence, IllTyped, UnboundAxis
from effax.ir.eval.numpy import evaluate
from effax.ir.eval.spmd import Devices, evaluate_spmd
from effax.ir.primitive import Value
from effax.ir.prims import Add, Cond, ConvertElementType, Gt, Jit, Lt, Scan, While
from effax.ir.prims import collective as c
from effax.ir.syntax import Jaxpr, Lit
from effax.ir.types import array_type
from tests.unit.building import F32, program

X, Y = Axis("x", 2), Axis("y", 3)
GRID = Devices((X, Y))
VEC = array_type((3,), "float32")


def alone(prim: c.Collective, values: Sequence[Value], devices: Devices) -> list[Value]:
    return [out for (out,) in prim.evaluate_spmd(devices, [(x,) for x in values])]


def numbered(devices: Devices, shape: tuple[int, ...] = ()) -> list[Value]:
    rng = np.random.default_rng(0)
    return [np.asarray(rng.normal(size=shape), np.float32) for _ in range(devices.total)]


def test_devices_are_grouped_along_an_axis() -> None:
    assert GRID.total == 6
    assert GRID.groups("x") == [[0, 3], [1, 4], [2, 5]]
    assert GRID.groups("y") == [[0, 1, 2], [3, 4, 5]]
    assert [GRID.coordinate(d, "y") for d in range(6)] == [0, 1, 2, 0, 1, 2]


def test_reductions_along_one_axis_of_a_grid() -> None:
    values = numbered(GRID, (4,))
    grid = np.stack(values).reshape(2, 3, 4)
    for prim, reduced in (
        (c.Psum(Y), grid.sum(1, keepdims=True)),
        (c.PsumInvariant(X), grid.sum(0, keepdims=True)),
        (c.Pmax(X), grid.max(0, keepdims=True)),
        (c.Pmin(Y), grid.min(1, keepdims=True)),
    ):
        found = np.stack(alone(prim, values, GRID)).reshape(2, 3, 4)
        np.testing.assert_allclose(found, np.broadcast_to(reduced, (2, 3, 4)), rtol=1e-6)


def test_sums_of_narrow_integers_wrap_around() -> None:
    values = [np.asarray(100, np.int8)] * 2
    assert [int(x) for x in alone(c.Psum(X), values, Devices((X,)))] == [-56, -56]


def test_ppermute_all_gather_and_all_to_all() -> None:
    devices = Devices((Y,))
    values = numbered(devices, (3, 2))
    every = np.stack(values)
    gathered = alone(c.AllGather(Y, 1), values, devices)
    assert all(np.array_equal(x, np.moveaxis(every, 0, 1)) for x in gathered)
    parts = alone(c.ReduceScatter(Y, 0), values, devices)
    np.testing.assert_allclose(np.stack(parts), every.sum(0), rtol=1e-6)
    swapped = alone(c.AllToAll(Y, 0, 1), values, devices)
    assert np.array_equal(np.stack(swapped), every.transpose(1, 2, 0))
    moved = alone(c.PPermute(Y, ((0, 2), (2, 1))), values, devices)
    assert np.array_equal(np.stack(moved), [np.zeros((3, 2)), values[2], values[0]])
    assert alone(c.Pvary(Y), values, devices) == values


def test_axis_index_is_the_coordinate() -> None:
    given = c.AxisIndex(Y).evaluate_spmd(GRID, [()] * 6)
    assert [int(out) for (out,) in given] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "prim",
    [
        c.ReduceScatter(Y, 0),
        c.AllToAll(Y, 0, 0),
        c.AllToAll(X, 0, 3),
        c.AllGather(X, 3),
        c.PPermute(X, ((0, 2),)),
        c.PPermute(X, ((0, 1), (1, 1))),
    ],
    ids=str,
)
def test_what_does_not_fit_is_ill_typed(prim: c.Collective) -> None:
    with pytest.raises(IllTyped, match=prim.name):
        prim.typing(array_type((2, 4), "float32"))


# Programs.


def mean_of(prim: type[c.Psum] = c.Psum) -> Jaxpr:
    return program([VEC], lambda b, x: [b(Add(), x, b(prim(Y), x))])


def test_a_program_says_which_axes_it_needs() -> None:
    inner = mean_of()
    outer = program([VEC], lambda b, x: [b(c.Pmax(X), b.emit(Jit(inner), [x])[0])])
    assert inner.free_axes == (Y,)
    assert outer.free_axes == (X, Y)
    assert program([VEC], lambda b, x: [b(Add(), x, x)]).free_axes == ()


def test_an_open_program_is_not_evaluated() -> None:
    with pytest.raises(UnboundAxis, match="axis 'y'") as caught:
        evaluate(mean_of(), [np.zeros(3, np.float32)])
    assert "y:3" in str(caught.value)
    with pytest.raises(UnboundAxis, match="in scope: 'x'"):
        evaluate_spmd(mean_of(), Devices((X,)), [[np.zeros(3, np.float32)]] * 2)


def test_collectives_run_inside_of_calls_and_loops() -> None:
    body = program([F32], lambda b, s: [b(Add(), b(c.Psum(X), s), Lit(1.0, F32))])
    scan = Scan(body, 2, False, 0, 1)
    jaxpr = program([F32], lambda b, s: b.emit(scan, b.emit(Jit(body), [s])))
    args = [[np.asarray(k, np.float32)] for k in (1.0, 2.0)]
    # 1 + 2 + 1 = 4; 4 + 4 + 1 = 9; 9 + 9 + 1 = 19
    assert evaluate_spmd(jaxpr, Devices((X,)), args) == [[19.0], [19.0]]


def loop(limit: float) -> Jaxpr:
    going = program([F32], lambda b, s: [b(Lt(), b(c.Psum(X), s), Lit(limit, F32))])
    step = program([F32], lambda b, s: [b(Add(), s, b(c.Pmax(X), s))])
    return program([F32], lambda b, s: b.emit(While(going, step, 0), [s]))


def test_a_loop_ends_on_all_devices_at_once() -> None:
    args = [[np.asarray(k, np.float32)] for k in (1.0, 2.0)]
    # (1, 2) sums to 3, (3, 4) to 7, (7, 8) to 15
    assert evaluate_spmd(loop(10.0), Devices((X,)), args) == [[7.0], [8.0]]


def test_a_collective_where_devices_part_is_an_error() -> None:
    summed = program([F32], lambda b, s: [b(c.Psum(X), s)])
    kept = program([F32], lambda b, s: [s])
    jaxpr = program(
        [F32], lambda b, s: b.emit(Cond((kept, summed)), [b(Gt(), s, Lit(1.5, F32)), s])
    )
    alike = [[np.asarray(k, np.float32)] for k in (2.0, 3.0)]
    assert evaluate_spmd(jaxpr, Devices((X,)), alike) == [[5.0], [5.0]]
    parted = [[np.asarray(k, np.float32)] for k in (1.0, 2.0)]
    with pytest.raises(Divergence, match="along 'x'") as caught:
        evaluate_spmd(jaxpr, Devices((X,)), parted)
    assert "the devices 1 of 2" in str(caught.value)
    # Along y all are there that are along it: those of the second row.
    rows = [[np.asarray(k, np.float32)] for k in (0.0, 1.0, 1.0, 2.0, 3.0, 4.0)]
    along_y = program([F32], lambda b, s: [b(c.Psum(Y), s)])
    index = program(
        [F32], lambda b, s: b.emit(Cond((kept, along_y)), [b(Gt(), s, Lit(1.5, F32)), s])
    )
    assert evaluate_spmd(index, GRID, rows) == [[0.0], [1.0], [1.0], [9.0], [9.0], [9.0]]


def test_axis_index_is_allowed_under_divergence() -> None:
    places = program([F32], lambda b, s: [b(ConvertElementType(F32.dtype), b(c.AxisIndex(X)))])
    kept = program([F32], lambda b, s: [b(c.Pvary(X), s)])
    choose = Cond((kept, places))
    jaxpr = program([F32], lambda b, s: b.emit(choose, [b(Gt(), s, Lit(1.5, F32)), s]))
    parted = [[np.asarray(k, np.float32)] for k in (1.0, 2.0)]
    assert evaluate_spmd(jaxpr, Devices((X,)), parted) == [[1.0], [1.0]]


def test_devices_leave_a_loop_one_by_one_where_they_exchange_nothing() -> None:
    going = program([F32], lambda b, s: [b(Lt(), s, Lit(3.0, F32))])
    step = program([F32], lambda b, s: [b(Add(), b(c.Pvary(X), s), Lit(1.0, F32))])
    jaxpr = program([F32], lambda b, s: b.emit(While(going, step, 0), [s]))
    args = [[np.asarray(k, np.float32)] for k in (0.5, 5.0)]
    assert evaluate_spmd(jaxpr, Devices((X,)), args) == [[3.5], [5.0]]
