from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from effax.effects import ArgIndex, Read, Write
from effax.ir import prims
from effax.ir.analysis.check import check
from effax.ir.edit.alpha import alpha_eq
from effax.ir.edit.operations import (
    everywhere,
    insert,
    map_subjaxprs,
    remove,
    rename,
    replace_eqn,
    splice,
    substitute,
)
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.eval.numpy import evaluate
from effax.ir.prims import AddUpdate, Get, Jit, Swap
from effax.ir.syntax import Jaxpr, Lit, Var
from effax.ir.text.parser import parse
from tests.counting import calls
from tests.unit.building import ALL, F32, VEC, WEAK, chain, nested, program, writer

SIN = parse("{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }")
FOREIGN = Var(77, F32)
OTHER: tuple[Any, ...] = (1.0, None, "sin", prims.Cos, SIN.binders[0], str)
"""Arguments of other kinds than the functions take."""

CALL = """
    { lambda ; a:Ref{f32[3]} b:f32[3]. let
        jit[name=f jaxpr={ lambda ; a:Ref{f32[3]} b:f32[3]. let a[...] <- b in () }] a b
      in () }
"""


def valid(jaxpr: Jaxpr) -> Jaxpr:
    return check(jaxpr).unwrap()


def test_an_equation_is_replaced_and_the_rest_is_shared() -> None:
    made = valid(replace_eqn(SIN, 0, prims.Cos()))
    assert made == parse(str(SIN).replace("sin", "cos"))
    assert made.eqns[1] is SIN.eqns[1]
    assert SIN.eqns[0].prim == prims.Sin()
    assert replace_eqn(SIN, -1, ins=[SIN.binders[0], SIN.binders[0]]).eqns[1].prim == prims.Mul()


def test_effects_follow_from_what_an_equation_becomes() -> None:
    jaxpr = writer()
    assert Write(ArgIndex(0)) in jaxpr.effects
    only_reads = parse("{ lambda ; a:Ref{f32[3]}. let b:f32[3] <- a[...] in (b,) }")
    assert only_reads.effects.effects == (Read(ArgIndex(0)),)
    (eqn,) = only_reads.eqns
    made = replace_eqn(
        parse("{ lambda ; a:Ref{f32[3]} b:f32[3]. let c:f32[3], a[...] <- a[...], b in (c,) }"),
        0,
        Get(ALL),
        [Var(0, eqn.ins[0].type)],
    )
    assert valid(made).effects.effects == (Read(ArgIndex(0)),)


def test_an_equation_is_inserted_and_the_rest_renumbered() -> None:
    made, outs = insert(SIN, 1, prims.Neg(), [SIN.eqns[0].outs[0]])
    assert valid(made) == parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = neg b; "
        "d:f32[] = mul b 2.0:f32[] in (d,) }"
    )
    assert made.eqns[0] is SIN.eqns[0]
    used = made.outs[0]
    assert isinstance(used, Var)
    assert valid(substitute(made, {used: outs[0]})).outs == outs
    first, _ = insert(SIN, 0, prims.Neg(), SIN.binders)
    last, _ = insert(SIN, 2, prims.Neg(), SIN.outs)
    assert [e.prim.name for e in valid(first).eqns] == ["neg", "sin", "mul"]
    assert [e.prim.name for e in valid(last).eqns] == ["sin", "mul", "neg"]


def test_an_equation_at_the_end_costs_the_same_however_long_the_program_is() -> None:
    def work(jaxpr: Jaxpr) -> int:
        return calls(lambda: insert(jaxpr, len(jaxpr.eqns), prims.Neg(), [jaxpr.binders[0]]))

    short, long = chain(64), chain(4096)
    work(short)
    # Where pyrsistent is not compiled, its own calls count: a few for each 32 equations.
    assert work(long) < work(short) + len(long.eqns) / 2


def test_a_program_is_spliced_in_for_a_call() -> None:
    inner = program([F32, F32], lambda b, x, y: [b(prims.Add(), y, x), x])

    def body(b, x):  # type: ignore[no-untyped-def]
        s = b(prims.Sin(), x)
        p, q = b.emit(Jit(inner), [s, x])
        return [b(prims.Mul(), p, q)]

    jaxpr = program([F32], body)
    made, outs = splice(jaxpr, 1, 2, inner, jaxpr.eqns[1].ins)
    assert valid(made) == parse(
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = add a b; d:f32[] = mul c b in (d,) }"
    )
    assert outs == (Var(2, F32), Var(1, F32))
    x = np.asarray(0.5, np.float32)
    assert evaluate(made, [x]) == evaluate(jaxpr, [x])


def test_remove_refuses_used_equations() -> None:
    with pytest.raises(BadArgument, match="substitute"):
        remove(SIN, 0)
    unused, _ = insert(SIN, 1, prims.Neg(), SIN.binders)
    assert alpha_eq(valid(remove(unused, 1)), SIN)
    with pytest.raises(BadArgument, match="is used"):
        splice(SIN, 0, 1, parse("{ lambda ; . let  in () }"), [], results=False)


@pytest.mark.parametrize(
    "edit",
    [
        lambda: replace_eqn(SIN, 7, prims.Cos()),
        lambda: replace_eqn(SIN, 0, ins=[SIN.eqns[1].outs[0]]),
        lambda: insert(SIN, 0, prims.Neg(), [SIN.eqns[0].outs[0]]),
        lambda: insert(SIN, 3, prims.Neg(), SIN.binders),
        lambda: splice(SIN, 1, 0, SIN, SIN.binders),
        lambda: substitute(SIN, {SIN.eqns[0].outs[0]: SIN.eqns[1].outs[0]}),
        lambda: rename(SIN, {1: 0}),
        lambda: rename(SIN, lambda i: i - 1),
        lambda: rename(SIN, lambda i: i + 10**12),
        lambda: rename(SIN, OTHER[5]),
        lambda: insert(SIN, 1, prims.Neg(), [FOREIGN]),
        lambda: splice(SIN, 0, 0, SIN, [FOREIGN]),
        lambda: substitute(SIN, {FOREIGN: SIN.binders[0]}),
        lambda: substitute(SIN, {SIN.binders[0]: FOREIGN}),
        lambda: substitute(SIN, {SIN.eqns[1].outs[0]: FOREIGN}),
        lambda: replace_eqn(SIN, -3, prims.Cos()),
        lambda: insert(SIN, -3, prims.Neg(), SIN.binders),
        lambda: remove(SIN, 2),
        lambda: replace_eqn(SIN, OTHER[0], prims.Cos()),
        lambda: insert(SIN, OTHER[1], prims.Neg(), SIN.binders),
        lambda: remove(SIN, OTHER[2]),
        lambda: replace_eqn(SIN, 0, OTHER[3]),
        lambda: insert(SIN, 0, OTHER[3], SIN.binders),
        lambda: insert(SIN, 0, prims.Neg(), [OTHER[0]]),
        lambda: replace_eqn(SIN, 0, ins=[OTHER[0]]),
        lambda: insert(SIN, 0, prims.Neg(), OTHER[4]),
        lambda: substitute(SIN, {OTHER[0]: SIN.binders[0]}),
        lambda: map_subjaxprs(lambda inner: OTHER[1], parse(CALL)),
    ],
)
def test_edits_out_of_range_or_scope_are_errors(edit) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadArgument):
        edit()


@pytest.mark.parametrize(
    "edit",
    [
        lambda: replace_eqn(SIN, 0, prims.Add()),
        lambda: replace_eqn(SIN, 0, prims.IsFinite()),
        lambda: insert(SIN, 0, prims.Add(), SIN.binders),
        lambda: splice(SIN, 0, 1, chain(2), SIN.binders),
        lambda: splice(SIN, 0, 0, SIN, SIN.binders),
        lambda: substitute(SIN, {SIN.binders[0]: Var(0, chain(1).in_types[0])}),
        lambda: substitute(SIN, {Var(0, VEC): Lit(1.0, F32)}),
        lambda: insert(SIN, 1, prims.Neg(), [Var(0, VEC)]),
        lambda: insert(SIN, 1, prims.Neg(), [Var(0, WEAK)]),
        lambda: replace_eqn(SIN, 0, ins=[Var(0, WEAK)]),
        lambda: insert(SIN, 0, prims.Neg(), [Lit(3, F32)]),
        lambda: splice(SIN, 0, 0, SIN, []),
    ],
)
def test_what_does_not_fit_is_ill_typed(edit) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(IllTyped):
        edit()


def test_edits_keep_names_and_constants() -> None:
    jaxpr = Jaxpr(SIN.binders, SIN.eqns, SIN.outs, 1, ["x"])
    for made in (
        replace_eqn(jaxpr, 0, prims.Cos()),
        insert(jaxpr, 1, prims.Neg(), jaxpr.binders).jaxpr,
        splice(jaxpr, 1, 1, SIN, jaxpr.binders, results=False).jaxpr,
        remove(insert(jaxpr, 1, prims.Neg(), jaxpr.binders).jaxpr, 1),
        rename(jaxpr, lambda i: i + 1),
        substitute(jaxpr, {jaxpr.binders[0]: Lit(1.0, F32)}),
    ):
        assert (made.n_consts, made.names) == (1, ("x",))


def test_variables_are_renumbered_in_order() -> None:
    made = valid(rename(SIN, lambda i: 2 * i))
    assert [v.id for e in made.eqns for v in e.outs] == [2, 4]
    assert alpha_eq(made, SIN)
    assert rename(SIN, {}) == SIN


def test_subjaxprs_are_mapped_and_effects_derived_again() -> None:
    jaxpr = parse(CALL)
    assert map_subjaxprs(lambda inner: inner, jaxpr) is jaxpr

    def harmless(inner: Jaxpr) -> Jaxpr:
        return inner.replace(eqns=[])

    made = valid(map_subjaxprs(harmless, jaxpr))
    assert jaxpr.effects and not made.effects

    def adds(inner: Jaxpr) -> Jaxpr:
        (eqn,) = inner.eqns
        assert isinstance(eqn.prim, Swap)
        return remove(insert(inner, 0, AddUpdate(eqn.prim.indexer), eqn.ins).jaxpr, 1)

    assert str(valid(map_subjaxprs(adds, jaxpr)).effects) == "{accum 0}"
    with pytest.raises(IllTyped):
        map_subjaxprs(lambda inner: inner.replace(outs=inner.binders[1:]), jaxpr)


def test_every_program_is_changed_once_from_the_inside() -> None:
    seen: list[Jaxpr] = []

    def look(inner: Jaxpr) -> Jaxpr:
        seen.append(inner)
        return inner

    jaxpr = nested()
    assert everywhere(look, jaxpr) is jaxpr
    assert seen[-1] is jaxpr
    assert len(seen) == len(set(seen)) == 6


def test_nesting_is_not_paid_twice() -> None:
    jaxpr = SIN
    for _ in range(40):
        inner = jaxpr
        jaxpr = program([F32], lambda b, x: b.emit(Jit(inner), b.emit(Jit(inner), [x])))  # noqa: B023
    count = 0

    def look(inner: Jaxpr) -> Jaxpr:
        nonlocal count
        count += 1
        return inner

    everywhere(look, jaxpr)
    assert count == 41
