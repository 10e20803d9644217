"""Control flow: XLA agrees with the evaluator, and the text stays short."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from effax.ir import prims
from effax.ir.build import Builder, lit
from effax.ir.syntax import Atom, Jaxpr, Var
from tests.unit.lowering.compiled import (
    agree,
    applied,
    array,
    executable,
    i32,
    module,
    program,
    samples,
    scalar,
)

F, INT, B = array("float32"), array("int32"), array("bool")
VEC = array("float32", 3)


def unary(prim: prims.Elementwise, type_: object = F) -> Jaxpr:
    assert isinstance(type_, type(F))
    return program([type_], lambda b, x: [b(prim, x)])


def n_operations(jaxpr: Jaxpr) -> int:
    return module(jaxpr).text.count(" = ")


# A body of all parts: constant, carry, element; next carry, result.
BODY = program(
    [F, F, F], lambda b, k, c, x: [b(prims.Add(), b(prims.Mul(), k, c), x), b(prims.Sin(), c)]
)


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 7, 99])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_scan(length: int, unroll: int, reverse: bool) -> None:
    scan = prims.Scan(BODY, length, reverse, 1, 1, unroll)
    args = [scalar(0.5, "float32"), scalar(2, "float32"), samples("float32", (length,))]
    agree(applied(scan, *args), args)


def test_scan_without_parts() -> None:
    only_carry = program([F], lambda b, x: [b(prims.Mul(), x, lit(2, F))])
    agree(
        applied(prims.Scan(only_carry, 5, False, 0, 1), scalar(1, "float32")),
        [scalar(1, "float32")],
    )
    only_xs = unary(prims.Sin(), VEC)
    xs = samples("float32", (4, 3))
    agree(applied(prims.Scan(only_xs, 4, True, 0, 0), xs), [xs])
    nothing_in = program([], lambda b: [lit(3, F)])
    agree(applied(prims.Scan(nothing_in, 4, False, 0, 0)), [])


def test_scan_of_arrays_and_other_dtypes() -> None:
    def body(b: Builder, state: Var, x: Var, flag: Var) -> list[Atom]:
        kept = b(prims.SelectN(), flag, state, b(prims.Add(), state, x))
        return [kept, kept, flag]

    jaxpr = program([VEC, VEC, B], body)
    args = [samples("float32", (3,)), samples("float32", (5, 3)), samples("bool", (5,))]
    agree(applied(prims.Scan(jaxpr, 5, False, 0, 1), *args), args)


def test_scan_of_empty_elements() -> None:
    jaxpr = unary(prims.Sin(), array("float32", 0))
    xs = samples("float32", (4, 0))
    agree(applied(prims.Scan(jaxpr, 4, False, 0, 0), xs), [xs])


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 7])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_cond_takes_the_nearest_branch(index: int, n: int) -> None:
    branches = tuple(unary(p) for p in (prims.Sin(), prims.Exp(), prims.Neg())[:n])
    args = [scalar(index), scalar(0.3, "float32")]
    agree(applied(prims.Cond(branches), *args), args)


@pytest.mark.parametrize("which", [False, True])
def test_cond_of_a_boolean(which: bool) -> None:
    args = [scalar(which, "bool"), scalar(0.3, "float32")]
    agree(applied(prims.Cond((unary(prims.Sin()), unary(prims.Exp()))), *args), args)


def test_cond_of_many_results_and_of_none() -> None:
    both = program([F, VEC], lambda b, x, y: [y, x, lit(True, B)])
    swap = program([F, VEC], lambda b, x, y: [b(prims.Sin(), y), b(prims.Cos(), x), lit(False, B)])
    none = program([F, VEC], lambda b, x, y: [])
    args = [scalar(1), scalar(0.3, "float32"), samples("float32", (3,))]
    agree(applied(prims.Cond((both, swap)), *args), args)
    agree(applied(prims.Cond((none, none)), *args), args)


def halve_until(limit: float) -> prims.While:
    """``while k·x > limit: x = x·k, n += 1``."""
    cond = program(
        [F, F, INT], lambda b, k, x, n: [b(prims.Gt(), b(prims.Mul(), k, x), lit(limit, F))]
    )
    body = program(
        [F, F, INT], lambda b, k, x, n: [b(prims.Mul(), x, k), b(prims.Add(), n, lit(1, INT))]
    )
    return prims.While(cond, body, 1)


@pytest.mark.parametrize("start", [0.0, 1.0, 1e6])
def test_while(start: float) -> None:
    args = [scalar(0.5, "float32"), scalar(start, "float32"), scalar(0)]
    agree(applied(halve_until(1.0), *args), args)


def test_literals_reach_into_loops() -> None:
    scan = prims.Scan(BODY, 4, False, 1, 1)
    loop = halve_until(0.5)

    def body(b: Builder, x: Var) -> Sequence[Atom]:
        carry, ys = b.emit(scan, (lit(0.5, F), lit(2, F), x))
        y, n = b.emit(loop, (lit(0.25, F), lit(7, F), lit(0, INT)))
        return [carry, ys, y, n]

    agree(program([array("float32", 4)], body), [samples("float32", (4,))])


def test_three_levels_of_everything() -> None:
    inner = prims.While(
        program([F, F], lambda b, k, x: [b(prims.Lt(), x, lit(5, F))]),
        program(
            [F, F],
            lambda b, k, x: [b(prims.Add(), x, b(prims.Add(), b(prims.Abs(), k), lit(1, F)))],
        ),
        1,
    )
    calls = program([F, F], lambda b, k, x: b.emit(inner, (k, x)))
    plain = program([F, F], lambda b, k, x: [b(prims.Mul(), k, x)])

    def step(b: Builder, k: Var, state: Var, x: Var) -> list[Atom]:
        (y,) = b.emit(prims.Jit(calls, "inner"), (x, state))
        (z,) = b.emit(prims.Cond((plain, calls)), (b(prims.Gt(), x, lit(0, F)), k, y))
        return [b(prims.Sin(), z), y]

    scan = prims.Scan(program([F, F, F], step), 6, True, 1, 1, 2)

    def outer(b: Builder, k: Var, x: Var, xs: Var) -> Sequence[Atom]:
        first = b.emit(scan, (k, x, xs))
        return [
            *first,
            *b.emit(prims.Jit(program([F, F], lambda b, *a: b.emit(inner, a))), (x, first[0])),
        ]

    jaxpr = program([F, F, array("float32", 6)], outer)
    args = [scalar(0.3, "float32"), scalar(-1, "float32"), samples("float32", (6,))]
    agree(jaxpr, args, 1e-5)


def nested(depth: int, wrap: Callable[[Jaxpr], prims.Jit]) -> Jaxpr:
    jaxpr = unary(prims.Sin())
    for _ in range(depth):
        jaxpr = program([F], lambda b, x, inner=jaxpr: b.emit(wrap(inner), (x,)))
    return jaxpr


def test_deep_nesting_is_linear_and_runs() -> None:
    sizes = [n_operations(nested(n, prims.Jit)) for n in (50, 100)]
    assert sizes == [51, 101]
    agree(nested(100, prims.Jit), [scalar(0.5, "float32")])


def test_a_shared_subjaxpr_is_written_once() -> None:
    jaxpr = unary(prims.Sin())
    for _ in range(100):
        call = prims.Jit(jaxpr)
        # Each level calls the one below twice: 2^100 calls, 201 lines.
        jaxpr = program([F], lambda b, x, call=call: [b(call, b(call, x))])
    assert n_operations(jaxpr) == 201


def test_equal_programs_share_a_function() -> None:
    def body(b: Builder, x: Var) -> list[Atom]:
        return [b(prims.Jit(unary(prims.Sin()), label), x) for label in ("f", "g", "h")]

    jaxpr = program([F], body)
    assert module(jaxpr).text.count("stablehlo.sine") == 1
    agree(jaxpr, [scalar(0.5, "float32")])


def test_loops_share_their_body_with_calls() -> None:
    scan, call = prims.Scan(BODY, 3, False, 1, 1), prims.Jit(BODY)

    def body(b: Builder, k: Var, x: Var, xs: Var) -> list[Atom]:
        outs: list[Atom] = []
        for _ in range(10):
            outs += b.emit(scan, (k, x, xs))
        return [*outs, *b.emit(call, (k, x, x))]

    text = module(program([F, F, array("float32", 3)], body)).text
    assert text.count("stablehlo.sine") == 1


def test_a_subjaxpr_that_returns_an_argument() -> None:
    swap = program([F, VEC], lambda b, x, y: [y, x, x, lit(1, F)])
    args = [scalar(2, "float32"), samples("float32", (3,))]
    agree(applied(prims.Jit(swap), *args), args)


def test_calls_without_results_are_left_out() -> None:
    nothing = program([F], lambda b, x: [])
    jaxpr = program([F], lambda b, x: [*b.emit(prims.Jit(nothing), (x,)), x])
    assert n_operations(jaxpr) == 0
    agree(jaxpr, [scalar(2, "float32")])


def test_a_loop_over_integers_counts_to_the_end() -> None:
    step = program([INT, INT], lambda b, n, x: [b(prims.Add(), n, x), n])
    xs = i32(*range(1000))
    found = agree(applied(prims.Scan(step, 1000, False, 0, 1), scalar(0), xs), [scalar(0), xs])
    assert found[0] == 499500


def test_a_scan_is_one_loop_in_xla() -> None:
    scan = prims.Scan(BODY, 50, False, 1, 1)
    args = [scalar(0.5, "float32"), scalar(2, "float32"), samples("float32", (50,))]
    hlo = executable(applied(scan, *args)).optimized_hlo()
    assert hlo.count(" while(") == 1
    assert np.isfinite(agree(applied(scan, *args), args)[0])
