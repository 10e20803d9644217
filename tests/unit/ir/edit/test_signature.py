"""Edits of inputs and results of programs, which renumber by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from effax.ir import (
    add_inputs,
    add_results,
    array_type,
    check,
    drop_inputs,
    drop_results,
    parse,
    permute_inputs,
    permute_results,
)
from effax.ir.edit.alpha import renumbered
from effax.ir.errors import BadArgument
from effax.ir.syntax import Jaxpr, Var

F32 = array_type((), "float32")
I32 = array_type((), "int32")
PROGRAM = parse("""
    { lambda a:f32[]; b:f32[] c:i32[]. let d:f32[] = sub a b; e:f32[] = sin d in (e, c) }
""")


def same(made: Jaxpr, text: str) -> None:
    assert made == parse(text), f"\n{made}"
    assert made == renumbered(made)
    check(made).unwrap()


def test_inputs_are_added() -> None:
    made, (x, y) = add_inputs(PROGRAM, [F32, I32], at=1, names=("x", "y"))
    same(
        made,
        "{ lambda a:f32[]; b:f32[] c:i32[] d:f32[] e:i32[]. let "
        "f:f32[] = sub a d; g:f32[] = sin f in (g, e) }",
    )
    assert (x, y) == made.binders[1:3] and made.name_of(1) == "x"
    made, (z,) = add_inputs(PROGRAM, [I32], constants=True)
    same(
        made,
        "{ lambda a:f32[] b:i32[]; c:f32[] d:i32[]. let "
        "e:f32[] = sub a c; f:f32[] = sin e in (f, d) }",
    )
    assert z == made.binders[1]
    assert add_inputs(PROGRAM, [F32]).outs == (Var(3, F32),)


def test_inputs_are_dropped_and_permuted() -> None:
    without = drop_results(PROGRAM, [1])
    same(
        drop_inputs(without, [-1]),
        "{ lambda a:f32[]; b:f32[]. let c:f32[] = sub a b; d:f32[] = sin c in (d,) }",
    )
    same(
        permute_inputs(PROGRAM, [0, 2, 1]),
        "{ lambda a:f32[]; b:i32[] c:f32[]. let d:f32[] = sub a c; e:f32[] = sin d in (e, b) }",
    )


def test_results_are_added_dropped_and_permuted() -> None:
    difference = PROGRAM.eqns[0].outs[0]
    made = add_results(PROGRAM, [difference, PROGRAM.binders[0]], at=0)
    assert made.outs == (difference, PROGRAM.binders[0], *PROGRAM.outs)
    assert permute_results(PROGRAM, [1, 0]).outs == PROGRAM.outs[::-1]
    assert drop_results(PROGRAM, [0]).outs == PROGRAM.outs[1:]
    assert permute_results(permute_results(PROGRAM, [1, 0]), [1, 0]) == PROGRAM


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda: add_inputs(PROGRAM, [F32], at=0), r"out of range(.|\n)*from 1 to 3"),
        (lambda: add_inputs(PROGRAM, [F32], at=2, constants=True), r"out of range(.|\n)*0 to 1"),
        (lambda: drop_inputs(PROGRAM, [0]), r"a dropped input is used(.|\n)*found: +a"),
        (lambda: drop_inputs(PROGRAM, [3]), "position among the inputs is out of range"),
        (lambda: permute_inputs(PROGRAM, [0, 1]), r"not an order of the inputs(.|\n)*0 to 2 once"),
        (lambda: permute_inputs(PROGRAM, [1, 0, 2]), "constants come before"),
        (lambda: add_results(PROGRAM, [Var(9, F32)]), "not in scope at the end"),
        (lambda: drop_results(PROGRAM, [2]), "position among the results is out of range"),
        (lambda: permute_results(PROGRAM, [0, 0]), "not an order of the results"),
    ],
)
def test_invalid_edits_raise(edit: Callable[[], object], says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        edit()
