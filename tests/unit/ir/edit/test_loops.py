"""Edits of the constants, carries, scanned operands and stacked results of loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pytest

from effax import extend
from effax.ir import (
    Builder,
    LoopBody,
    add_carry,
    add_constants,
    add_xs,
    add_ys,
    array_type,
    check,
    drop_carries,
    drop_constants,
    drop_xs,
    drop_ys,
    lit,
    parse,
    permute_carries,
    permute_constants,
    permute_xs,
    permute_ys,
    registry,
)
from effax.ir.edit.alpha import renumbered
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Region
from effax.ir.prims import Add, Mul, Neg
from effax.ir.syntax import Atom, Jaxpr
from tests.counting import calls

I32 = array_type((), "int32")
SCAN = parse("""{ lambda ; a:f32[] b:f32[] c:f32[3]. let
    d:f32[] e:f32[] f:f32[3] g:f32[3] = scan[
      jaxpr={ lambda a:f32[] b:f32[]; c:f32[] d:f32[] e:f32[]. let
          f:f32[] = mul a c
          g:f32[] = add f b
          h:f32[] = add d e
          i:f32[] = neg h
        in (g, h, f, i) }
      length=3
      n_carry=2
      n_consts=2
      reverse=False
      unroll=1
    ] a b 1.0:f32[] 0.0:f32[] c
  in (d, e, f, g) }""")
WHILE = parse("""{ lambda ; a:f32[]. let
    b:f32[] = while[
      body={ lambda a:f32[]; b:f32[]. let c:f32[] = mul a b in (c,) }
      cond={ lambda a:f32[]; b:f32[]. let c:bool[] = lt b 10.0:f32[] in (c,) }
      n_consts=1
    ] a 1.5:f32[]
  in (b,) }""")


@dataclass(frozen=True, slots=True)
class Repeat(extend.RegionPrimitive):
    body: Jaxpr
    times: int
    name: ClassVar[str] = "repeat"

    def regions(self) -> tuple[Region, ...]:
        return (extend.loop_region(self.body, self.times),)


REPEAT = parse(
    """{ lambda ; a:f32[]. let
    b:f32[] = repeat[body={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) } times=3] a
  in (b,) }""",
    registry(Repeat),
)
INPUTS: Final[Mapping[Jaxpr, Sequence[object]]] = {
    SCAN: [np.float32(2), np.float32(3), np.arange(3, dtype=np.float32)],
    WHILE: [np.float32(2)],
    REPEAT: [np.float32(2)],
}


def results(jaxpr: Jaxpr, of: Jaxpr) -> list[object]:
    check(jaxpr).unwrap()
    assert jaxpr == renumbered(jaxpr)
    found = evaluate(jaxpr, [np.array(x) for x in INPUTS[of]])
    return [np.asarray(x).tolist() for x in found]


def count(b: Builder, body: LoopBody) -> Atom:
    return b(Add(), body.carry[-1], lit(1, I32))


@pytest.mark.parametrize(("loop", "runs"), [(SCAN, 3), (WHILE, 3), (REPEAT, 3)])
def test_a_carry_counts_the_iterations(loop: Jaxpr, runs: int) -> None:
    made, (n,) = add_carry(loop, 0, lit(0, I32), count)
    before = results(loop, loop)
    assert results(made.replace(outs=[*made.outs, n]), loop) == [*before, runs]
    carries = len(made.eqns[0].prim.regions()[-1].carries)
    assert drop_carries(made, 0, [carries - 1]) == loop
    assert add_carry(loop, -1, lit(7, I32)).jaxpr.eqns[0].ins.count(lit(7, I32)) == 1


def test_carries_are_permuted() -> None:
    made = permute_carries(SCAN, 0, [1, 0])
    assert results(made, SCAN) == results(SCAN, SCAN)
    assert made.eqns[0].ins[2:4] == SCAN.eqns[0].ins[3:1:-1]
    assert permute_carries(made, 0, [1, 0]) == SCAN


@pytest.mark.parametrize("loop", [SCAN, WHILE])
def test_constants_are_added_permuted_and_dropped(loop: Jaxpr) -> None:

    k = 2 if loop is SCAN else 1
    made, (inside,) = add_constants(loop, 0, [loop.binders[0]])
    body = made.eqns[0].prim.regions()[-1].jaxpr
    assert inside == body.binders[k] and body.n_consts == k + 1
    turned = permute_constants(made, 0, [k, *range(k)])
    assert results(made, loop) == results(turned, loop) == results(loop, loop)
    assert drop_constants(turned, 0, [0]) == loop


def test_scanned_operands_and_stacked_results() -> None:
    made, (element,) = add_xs(SCAN, 0, [SCAN.binders[2]])
    assert str(element.type) == "f32[]"
    turned = permute_xs(made, 0, [1, 0])
    assert results(turned, SCAN) == results(SCAN, SCAN)
    assert drop_xs(turned, 0, [0]) == SCAN
    squares, (y,) = add_ys(SCAN, 0, lambda b, body: b(Mul(), body.xs[0], body.xs[0]))
    assert results(squares.replace(outs=[y]), SCAN) == [[0.0, 1.0, 4.0]]
    assert results(permute_ys(squares, 0, [2, 0, 1]), SCAN) == results(SCAN, SCAN)
    assert drop_ys(squares, 0, [2]) == SCAN
    less = drop_ys(SCAN.replace(outs=SCAN.outs[:3]), 0, [1])
    assert not any(isinstance(e.prim, Neg) for e in less.eqns[0].prim.subjaxprs()[0].eqns)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            lambda: add_carry(
                parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"), 0, lit(0, I32)
            ),
            "is not a loop(.|\n)*sin a",
        ),
        (lambda: add_carry(SCAN, 1, lit(0, I32)), "position among the equations is out of range"),
        (lambda: drop_carries(SCAN, 0, [0]), "a dropped result of the loop is used"),
        (
            lambda: drop_carries(SCAN.replace(outs=[]), 0, [0]),
            "uses a dropped input(.|\n)*found: +c",
        ),
        (lambda: drop_constants(SCAN, 0, [0]), "uses a dropped input(.|\n)*found: +a"),
        (lambda: add_xs(WHILE, 0, [WHILE.binders[0]]), "leading axis"),
        (lambda: add_ys(WHILE, 0, lambda b, body: b(Neg(), body.carry[0])), "while cannot have"),
        (lambda: permute_carries(SCAN, 0, [0]), "not an order of the carries"),
    ],
)
def test_invalid_edits_raise(edit: Callable[[], object], says: str) -> None:
    with pytest.raises((BadArgument, IllTyped), match=says):
        edit()


def test_the_work_is_linear_in_the_body() -> None:
    def loop(n: int) -> Jaxpr:
        made = SCAN
        for _ in range(n):
            made = add_ys(made, 0, lambda b, body: b(Neg(), body.xs[0])).jaxpr
        return made

    small, large = loop(10), loop(80)
    assert calls(lambda: add_carry(large, 0, lit(0, I32))) < 10 * calls(
        lambda: add_carry(small, 0, lit(0, I32))
    )
