"""Equations that end a variable come after its other uses."""

from __future__ import annotations

import time

from effax.ir.build import Builder
from effax.ir.edit.uses_first import uses_first
from effax.ir.prims import Add, Neg, Sin
from effax.ir.text.parser import parse
from effax.ir.types import array_type

PROGRAM = parse(
    "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = cos c; e:f32[] = neg b; "
    "f:f32[] = mul a e; g:f32[] = exp d in (f, g) }"
)


def order(text: str, *ends: int) -> list[int]:
    """Return the order where each equation in ``ends`` ends its first operand."""
    eqns = list(parse(text).eqns)
    return uses_first(eqns, {k: [eqns[k].ins[0]] for k in ends})  # type: ignore[list-item]  # variables


def test_a_use_moves_with_what_it_depends_on() -> None:
    assert order(str(PROGRAM), 0) == [2, 3, 0, 1, 4]
    assert order(str(PROGRAM), 1) == [0, 1, 2, 3, 4]
    assert order(str(PROGRAM)) == [0, 1, 2, 3, 4]


def test_a_use_that_depends_on_the_end_stays() -> None:
    text = "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul a b; d:f32[] = neg a in (c, d) }"
    assert order(text, 0) == [2, 0, 1]


def test_ends_that_need_each_other_keep_an_order() -> None:
    # 0 should follow 2, which needs 1; 1 should follow 3, which needs 0.
    text = """{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = sin b
        e:f32[] = mul a d; f:f32[] = mul b c in (e, f) }"""
    found = order(text, 0, 1)
    assert sorted(found) == [0, 1, 2, 3] and found.index(1) < found.index(2) < found.index(0)
    assert found.index(0) < found.index(3)


def test_effects_keep_their_order() -> None:
    text = """{ lambda ; a:Ref{f32[]} b:f32[]. let c:f32[] = sin b; a[] <- c;
        a[] += b; e:f32[] <- a[] in (e,) }"""
    assert order(text, 0) == [0, 1, 2, 3]


def test_long_chains_take_linear_time() -> None:
    b = Builder([array_type((), "float32")])
    x = first = b.binders[0]
    ends = {}
    for _ in range(5000):
        ends[len(b.eqns)] = [x]
        y = b(Neg(), x)
        for _ in range(3):
            y = b(Sin(), y)
        x = b(Add(), x, y)
    b(Add(), first, x)
    start = time.perf_counter()
    assert sorted(uses_first(b.eqns, ends)) == list(range(len(b.eqns)))
    assert time.perf_counter() - start < 2
