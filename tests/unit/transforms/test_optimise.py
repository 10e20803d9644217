"""Optimization passes: programs before and after, and programs that must not change."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from returns.result import Success

from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.prims import AddUpdate, Jit
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.text.parser import parse
from effax.passes import (
    ALL,
    AnyPass,
    accumulate,
    cse,
    dce,
    dead_stores,
    fold,
    forward_stores,
    fuse_accumulations,
    hoist,
    inline,
    loop_carries,
    optimize,
    pipeline,
    simplify,
    unroll,
    unroll_to,
)
from effax.transforms.optimize.outline import outline
from effax.transforms.optimize.rewrite import REALS, App, Hole, RewriteRule, rewriting
from tests.counting import calls
from tests.unit import building as p
from tests.unit.building import (
    add,
    count,
    get,
    nested,
    primitives,
    program,
    run,
    scan,
    swap,
    values,
)


def after(step: AnyPass, text: str) -> Jaxpr:
    """Apply a pass, and check that the result is valid, equivalent, and a fixpoint."""
    jaxpr = parse(text)
    made = step(jaxpr).unwrap()
    check(made).unwrap()
    args = values(jaxpr)
    for xs, ys in zip(run(jaxpr, args), run(made, args), strict=True):
        for x, y in zip(xs, ys, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
    assert step(made).unwrap() == made
    return made


def names(jaxpr: Jaxpr) -> list[str]:
    return [eqn.prim.name for eqn in jaxpr.eqns]


def unchanged(step: AnyPass, text: str) -> None:
    assert after(step, text) == parse(text)


def programs_in(module: ModuleType) -> list[str]:
    """Return the programs in a module's docstring."""
    assert module.__doc__ is not None
    found: list[str] = []
    depth = 0
    for line in module.__doc__.splitlines():
        if depth == 0 and line.startswith("    { lambda"):
            found.append("")
        elif depth == 0:
            continue
        found[-1] += line + "\n"
        depth += line.count("{") - line.count("}")
    assert found
    return found


RULE = RewriteRule(
    "x + (-y) = x - y",
    App(prims.Add, Hole("x"), App(prims.Neg, Hole("y"))),
    App(prims.Sub, Hole("x"), Hole("y")),
    REALS,
)


@pytest.mark.parametrize(
    ("name", "transforms"),
    [
        ("cse", [cse]),
        ("fold", [fold]),
        ("forward_stores", [forward_stores]),
        ("dead_stores", [dead_stores]),
        ("accumulate", [accumulate, fuse_accumulations]),
        ("licm", [loop_carries | hoist | dce]),
        ("unroll", [unroll]),
        ("outline", [lambda jaxpr: outline(jaxpr, 0, 2, "f")]),
        ("rewrite", [rewriting([RULE])]),
        ("simplify", [simplify | dce]),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_module_shows_what_its_pass_does(name: str, transforms: list[Any]) -> None:
    first, *others = map(parse, programs_in(import_module(f"effax.transforms.optimize.{name}")))
    assert len(others) == len(transforms)
    for transform, expected in zip(transforms, others, strict=True):
        first = transform(first).unwrap()
        assert first == expected, f"\n{first}"


def test_reads_are_shared_until_a_write_to_the_same_reference() -> None:
    made = after(
        cse,
        """
        { lambda ; a:Ref{f32[]} b:Ref{f32[]} c:f32[]. let
            d:f32[] <- a[...]
            b[...] <- c
            f:f32[] <- a[...]
            a[...] += d
            g:f32[] <- a[...]
            h:f32[] <- b[...]
          in (d, f, g, h) }
        """,
    )
    assert names(made) == ["get", "swap", "addupdate", "get", "get"]


def test_calls_that_only_read_are_shared_and_allocations_are_not() -> None:
    reads = "jit[name=f jaxpr={ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...] in (b,) }] a"
    made = after(
        cse,
        f"""
        {{ lambda ; a:Ref{{f32[]}} b:f32[]. let
            c:f32[] = {reads}
            d:f32[] = {reads}
            e:Ref{{f32[]}} = new_ref b
            f:Ref{{f32[]}} = new_ref b
            e[...] += c
            f[...] += d
            g:f32[] = freeze e
            h:f32[] = freeze f
          in (g, h) }}
        """,
    )
    assert names(made).count("jit") == 1
    assert names(made).count("new_ref") == 2


def test_programs_that_become_equal_are_computed_once() -> None:
    once = "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b b in (c,) }"
    twice = "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin a; d:f32[] = mul b c in (d,) }"
    made = after(
        cse,
        f"""
        {{ lambda ; a:f32[]. let
            b:f32[] = jit[name=f jaxpr={once}] a
            c:f32[] = jit[name=f jaxpr={twice}] a
          in (b, c) }}
        """,
    )
    assert names(made) == ["jit"]


def test_nan_and_large_arrays_are_not_folded() -> None:
    unchanged(fold, "{ lambda ; . let a:f32[] = log -1.0:f32[] in (a,) }")
    large = "broadcast_in_dim[broadcast_dimensions=() shape=(65,)] 1.0:f32[]"
    unchanged(
        fold,
        f"{{ lambda ; . let a:f32[65] = {large}; b:f32[] = reduce_sum[axes=(0,)] a in (b,) }}",
    )


def test_a_literal_has_the_type_that_the_result_had() -> None:
    made = after(
        fold,
        """
        { lambda ; a:~f32[] b:bf16[] c:c64[]. let
            d:~f32[] = mul 2.0:~f32[] 3.0:~f32[]
            e:~f32[] = add a d
            f:bf16[] = exp 1.0:bf16[]
            g:bf16[] = mul b f
            h:c64[] = mul (1+2j):c64[] (0-1j):c64[]
            i:bool[] = lt 1:i32[] 2:i32[]
          in (e, g, h, i) }
        """,
    )
    assert names(made) == ["add", "mul"]
    assert [str(a) for a in made.outs[2:]] == ["(2-1j):c64[]", "True:bool[]"]


@pytest.mark.parametrize(("index", "left"), [("True:bool[]", "cos"), ("-3:i32[]", "sin")])
def test_the_branch_of_a_known_index_is_taken_and_folded_in_turn(index: str, left: str) -> None:
    made = after(
        fold,
        f"""
        {{ lambda ; a:f32[] b:Ref{{f32[]}}. let
            c:f32[] = cond[
              branches=(
                {{ lambda ; a:f32[] b:f32[] c:Ref{{f32[]}}. let d:f32[] = sin a in (d,) }}
                {{ lambda ; a:f32[] b:f32[] c:Ref{{f32[]}}. let
                    d:f32[] = mul b 2.0:f32[]
                    c[...] += d
                    e:f32[] = cos a
                  in (e,) }}
              )
            ] {index} a 3.0:f32[] b
          in (c,) }}
        """,
    )
    assert names(made) == (["addupdate", "cos"] if left == "cos" else ["sin"])
    assert bool(made.effects) == (left == "cos")


def test_what_a_dropping_or_repeating_index_stored_is_read_again() -> None:
    unchanged(
        forward_stores,
        """
        { lambda ; a:Ref{f32[3]} b:f32[] c:i32[] d:i32[2] e:f32[2]. let
            a[c;drop] <- b
            g:f32[] <- a[c;drop]
            a[d] <- e
            i:f32[2] <- a[d]
          in (g, i) }
        """,
    )


def test_stores_that_may_overlap_end_what_is_known() -> None:
    made = after(
        forward_stores,
        """
        { lambda ; a:Ref{f32[4]} b:f32[] c:i32[] d:f32[2]. let
            a[0] <- b
            a[2:] <- d
            g:f32[] <- a[0]
            h:f32[2] <- a[2:]
            a[c] <- b
            j:f32[] <- a[0]
            k:f32[] <- a[c]
            a[1:3] += d
            l:f32[] <- a[0]
            m:f32[] <- a[c]
          in (g, h, j, k, l, m) }
        """,
    )
    assert names(made) == ["swap", "swap", "swap", "get", "addupdate", "get"]


def test_calls_end_what_is_known_if_they_change_the_reference() -> None:
    made = after(
        forward_stores,
        """
        { lambda ; a:Ref{f32[]} b:f32[]. let
            a[...] <- b
            d:f32[] = jit[
              name=f
              jaxpr={ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...] in (b,) }
            ] a
            e:f32[] <- a[...]
            jit[name=f jaxpr={ lambda ; a:Ref{f32[]}. let a[...] += 1.0:f32[] in () }] a
            f:f32[] <- a[...]
          in (d, e, f) }
        """,
    )
    assert names(made) == ["swap", "jit", "jit", "get"]


def test_a_local_reference_vanishes() -> None:
    made = after(
        pipeline(forward_stores, dead_stores, dce),
        """
        { lambda ; a:f32[3] b:f32[3]. let
            c:Ref{f32[3]} = new_ref a
            d:f32[3] <- c[...]
            e:f32[3] = mul d b
            c[...] <- e
            g:f32[3] = freeze c
          in (g,) }
        """,
    )
    assert made == parse("{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (c,) }")


def test_dead_stores_keeps_stores_that_are_read() -> None:
    unchanged(
        dead_stores,
        """
        { lambda ; a:Ref{f32[3]} b:f32[] c:i32[]. let
            a[0] <- b
            e:f32[] <- a[c]
            a[0] <- e
            a[1] <- b
            a[c] <- b
            i:f32[], a[1] <- a[1], 2.0:f32[]
            a[1] <- i
          in () }
        """,
    )
    made = after(
        dead_stores,
        """
        { lambda ; a:Ref{f32[3]} b:f32[] c:i32[]. let
            a[c;drop] <- b
            e:f32[] <- a[0]
            a[1] <- b
            a[1] += b
            g:f32[] <- a[2]
            a[1] <- e
            a[c;drop] += b
            a[c;drop] <- g
          in () }
        """,
    )
    assert names(made) == ["swap", "get", "get", "swap", "swap"]


def test_dead_stores_and_calls() -> None:
    call = "jit[name=f jaxpr={ lambda ; a:Ref{f32[]}. let a[...] += 1.0:f32[] in () }] a"
    text = "{ lambda ; a:Ref{f32[]} b:f32[]. let\n a[...] <- b\n %s\n a[...] <- 2.0:f32[]\n in () }"
    assert names(after(dead_stores, text % call)) == ["jit", "swap"]
    reads = call.replace("a[...] += 1.0:f32[]", "b:f32[] <- a[...]; a[...] <- 1.0:f32[]")
    unchanged(dead_stores, text % reads)


UPDATE = """
    {{ lambda ; a:Ref{{f32[3]}} b:f32[] c:i32[] d:i32[2]. let
        {load}
        {between}
        {sum}
        {store}
      in ({out}) }}
"""


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, ["addupdate"]),
        ({"sum": "f:f32[] = sub e b"}, ["neg", "addupdate"]),
        ({"between": "a[c] += b"}, None),
        ({"between": "jit[name=f jaxpr={ lambda ; . let  in () }]"}, ["jit", "addupdate"]),
        ({"out": "e,"}, None),
        ({"out": "f,"}, None),
        ({"sum": "f:f32[] = sub b e"}, None),
        ({"sum": "f:f32[] = mul e b"}, None),
        ({"sum": "f:f32[] = add e e"}, None),
        ({"load": "e:f32[] <- a[0]"}, None),
        ({"load": "e:f32[] <- a[c;drop]", "store": "a[c;drop] <- f"}, ["addupdate"]),
        ({"store": "a[c;drop] <- f"}, ["addupdate"]),
        ({"load": "e:f32[] <- a[c;drop]"}, None),
        ({"load": "e:f32[2] <- a[d]", "sum": "f:f32[2] = add e b", "store": "a[d] <- f"}, None),
        (
            {"load": "e:f32[3] <- a[...]", "sum": "f:f32[3] = add b e", "store": "a[...] <- f"},
            ["broadcast_in_dim", "addupdate"],
        ),
    ],
)
def test_accumulate_matches_read_add_write(parts: dict[str, str], found: list[str] | None) -> None:
    usual = {
        "load": "e:f32[] <- a[c]",
        "between": "",
        "sum": "f:f32[] = add e b",
        "store": "a[c] <- f",
        "out": "",
    }
    text = UPDATE.format(**{**usual, **parts})
    if found is None:
        unchanged(accumulate, text)
    else:
        assert names(after(accumulate, text)) == found


def test_accumulations_are_fused_over_others_and_not_over_reads() -> None:
    made = after(
        fuse_accumulations,
        """
        { lambda ; a:Ref{f32[3]} b:f32[] c:i32[2] d:f32[2]. let
            a[c] += d
            a[0] += b
            a[c] += d
            a[0] += b
            a[0] += b
            e:f32[] <- a[1]
            a[0] += b
            a[0] += 1.0:~f32[]
          in (e,) }
        """,
    )
    assert [count(made, kind) for kind in (AddUpdate, prims.Add)] == [4, 3]


def test_hoist_moves_invariants_out_of_all_loops() -> None:
    made = after(
        hoist,
        """
        { lambda ; a:f32[] b:f32[3] c:Ref{f32[]} d:Ref{f32[]}. let
            e:f32[] = scan[
              jaxpr={ lambda ; a:f32[] b:Ref{f32[]} c:Ref{f32[]} d:f32[] e:f32[]. let
                  f:f32[] = scan[
                    jaxpr={ lambda ; a:f32[] b:Ref{f32[]} c:Ref{f32[]} d:f32[]. let
                        e:f32[] = sin a
                        f:f32[] <- b[...]
                        g:f32[] = mul e f
                        c[...] += g
                        h:f32[] <- c[...]
                        i:f32[] = add d h
                      in (i,) }
                    length=2
                    n_carry=1
                    n_consts=3
                    reverse=False
                    unroll=1
                  ] a b c d
                in (f,) }
              length=3
              n_carry=1
              n_consts=3
              reverse=False
              unroll=1
            ] a c d 0.0:f32[] b
          in (e,) }
        """,
    )
    assert names(made) == ["sin", "get", "mul", "scan"]
    assert [prim.name for prim in primitives(made)[3:]] == [
        "scan",
        "scan",
        "addupdate",
        "get",
        "add",
    ]


def test_hoist_from_conditions_keeps_loops_that_may_not_end() -> None:
    loop = """
        b:f32[] = while[
          body={ lambda ; a:f32[] b:f32[]. let c:f32[] = exp a; d:f32[] = add b c in (d,) }
          cond={ lambda ; a:f32[] b:f32[]. let
              c:f32[] = mul a 2.0:f32[]
              d:bool[] = lt b c
            in (d,) }
          n_consts=1
        ] a 0.0:f32[]
    """
    made = after(hoist, f"{{ lambda ; a:f32[]. let {loop} in (b,) }}")
    assert names(made) == ["mul", "exp", "while"]
    inner = loop.replace("\n", "\n            ")
    text = f"""
        {{ lambda ; a:f32[]. let
            b:f32[] = scan[
              jaxpr={{ lambda ; a:f32[]. let {inner}
                in (b,) }}
              length=0
              n_carry=0
              n_consts=1
              reverse=False
              unroll=1
            ] a
          in () }}
    """
    made = after(hoist, text.replace("b:f32[] = scan", "b:f32[0] = scan"))
    assert names(made) == ["mul", "exp", "scan"]
    (*_, scan) = made.eqns
    assert names(scan.prim.subjaxprs()[0]) == ["while"]


def test_loop_carries_then_dce_removes_constant_carries() -> None:
    made = after(
        loop_carries | dce,
        """
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] d:f32[] = while[
              body={ lambda ; a:f32[] b:f32[]. let
                  c:f32[] = exp a
                  d:f32[] = add b c
                in (a, d) }
              cond={ lambda ; a:f32[] b:f32[]. let c:bool[] = lt b 1.0:f32[] in (c,) }
              n_consts=0
            ] a b
            e:f32[] = add c d
          in (e,) }
        """,
    )
    (loop, last) = made.eqns
    assert (loop.prim.n_consts, len(loop.outs)) == (1, 1)  # type: ignore[attr-defined]  # a while
    assert last.ins[0] == made.binders[0]


COUNTED = """
    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:i32[] d:f32[] = while[
          body={ lambda ; a:Ref{f32[]} b:i32[] c:f32[]. let
              d:i32[] = add b 2:i32[]
              e:f32[] = sin c
              a[...] += e
            in (d, e) }
          cond={ lambda ; a:Ref{f32[]} b:i32[] c:f32[]. let d:bool[] = lt b %s:i32[] in (d,) }
          n_consts=1
        ] b 0:i32[] a
      in (c, d) }
"""


def test_unroll_while_with_a_known_trip_count() -> None:
    unchanged(unroll, COUNTED % 5)
    made = after(unroll_to(8), COUNTED % 5)
    assert names(made) == ["add", "sin", "addupdate"] * 3
    assert names(after(unroll, COUNTED % 2)) == ["add", "sin", "addupdate"]
    none = after(unroll, COUNTED % 0)
    assert (names(none), none.effects.effects) == ([], ())
    endless = parse((COUNTED % 5).replace("2:i32[]", "0:i32[]"))
    assert unroll_to(100)(endless).unwrap() is endless


def test_unroll_keeps_the_order_of_a_scan() -> None:
    scan = """
        { lambda ; a:f32[] b:f32[3]. let
            c:f32[] d:f32[3] = scan[
              jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c, a) }
              length=3
              n_carry=1
              n_consts=0
              reverse=%s
              unroll=1
            ] a b
          in (c, d) }
    """
    for reverse in (True, False):
        unchanged(unroll, scan % reverse)
        made = after(unroll_to(20), scan % reverse)
        assert names(made).count("mul") == 3
        assert names(made).count("concatenate") == 1


def test_inline_undoes_outline() -> None:
    jaxpr = nested()
    for start, stop in ((0, 2), (1, 4), (0, 5)):
        made = outline(jaxpr, start, stop, "part").unwrap()
        check(made).unwrap()
        assert made.effects == jaxpr.effects
        flat = inline(made).unwrap()
        assert flat == inline(jaxpr).unwrap()


@pytest.mark.parametrize(
    ("start", "stop", "match"),
    [(0, 1, "used after it"), (1, 3, "consumes"), (2, 2, "range"), (0, 9, "range")],
)
def test_outline_refuses_ranges_that_are_no_call(start: int, stop: int, match: str) -> None:
    jaxpr = parse("""
        { lambda ; a:f32[]. let
            b:Ref{f32[]} = new_ref a
            b[...] += a
            c:f32[] = freeze b
          in (c,) }
    """)
    assert match in outline(jaxpr, start, stop).failure().what
    assert isinstance(outline(jaxpr, 0, 3), Success)


def test_the_pipeline_brings_a_loss_with_a_local_accumulator_to_its_formula() -> None:
    made = after(
        optimize,
        """
        { lambda ; a:f32[3]. let
            b:Ref{f32[]} = new_ref 0.0:f32[]
            c:f32[3] = jit[
              name=square
              jaxpr={ lambda ; a:f32[3]. let b:f32[3] = mul a a in (b,) }
            ] a
            d:f32[] = reduce_sum[axes=(0,)] c
            e:f32[] <- b[...]
            f:f32[] = add e d
            b[...] <- f
            h:f32[] <- b[...]
            i:f32[] = mul h 1.0:f32[]
          in (i,) }
        """,
    )
    assert names(made) == ["mul", "reduce_sum", "add"]


def busy(n: int) -> Jaxpr:
    """A program of some ``10 n`` equations of all sorts."""

    def body(b: Builder, r: Atom, s: Atom, x: Atom) -> list[Atom]:
        y = x
        for i in range(n):
            y = p.plus(b, p.sin(b, y), b(prims.Neg(), p.sin(b, x)))
            swap(b, r, y)
            old = get(b, r)
            swap(b, s, p.plus(b, get(b, s), old))
            add(b, s, y)
            add(b, s, old)
            y = p.mul(b, y, lit(float(i % 3), p.F))
        return [y]

    return program([p.R, p.R, p.F], body)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [step for step in ALL if step not in (dce, inline, loop_carries)],
    ids=str,
)
def test_the_work_is_linear_in_the_program(step: AnyPass) -> None:
    small, large = busy(40), busy(160)
    step(small)
    assert calls(lambda: step(large)) < 5.5 * calls(lambda: step(small))


@pytest.mark.parametrize("step", [cse, fold, simplify, hoist, loop_carries, unroll], ids=str)
def test_nesting_is_not_paid_twice(step: AnyPass) -> None:
    def deep(n: int) -> Jaxpr:
        jaxpr = program([p.F], lambda b, x: [p.sin(b, x)])
        for _ in range(n):
            inner = jaxpr
            jaxpr = program([p.F], lambda b, x: b.emit(Jit(inner), b.emit(Jit(inner), [x])))  # noqa: B023
        return jaxpr

    step(deep(5))
    assert calls(lambda: step(deep(40))) < 6 * calls(lambda: step(deep(10)))


def loops_in_loops(depth: int) -> Jaxpr:
    """Loops in loops, each with something that is the same in every iteration."""
    jaxpr = program([p.F, p.F], lambda b, x, c: [p.plus(b, p.sin(b, x), c)])
    for _ in range(depth):
        loop = scan(jaxpr, 2, 1, 1)
        jaxpr = program([p.F, p.F], lambda b, x, c: b.emit(loop, [x, c]))  # noqa: B023
    return jaxpr


@pytest.mark.slow
@pytest.mark.parametrize("step", ALL, ids=str)
def test_passes_are_linear_and_unbounded_in_depth(step: AnyPass) -> None:
    shallow, deep = loops_in_loops(100), loops_in_loops(400)
    step(loops_in_loops(3))
    few = calls(lambda: step(shallow).unwrap())
    assert calls(lambda: step(deep).unwrap()) < 5.5 * few


def test_hoist_moves_through_all_loops_in_one_pass() -> None:
    made = hoist(loops_in_loops(50)).unwrap()
    assert names(made) == ["sin", "scan"]
