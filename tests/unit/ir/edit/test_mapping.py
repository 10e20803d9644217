from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from effax.ir import prims as p
from effax.ir.analysis.check import check
from effax.ir.build import Builder, lit
from effax.ir.edit.mapping import map_eqns
from effax.ir.edit.operations import everywhere
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import AddUpdate, Swap
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.ir.text.parser import parse
from effax.ir.types import array_type
from tests.counting import calls
from tests.unit.building import chain

PROGRAM = parse("""
    { lambda ; a:f32[] b:Ref{f32[]}. let
        c:f32[] = sin a
        d:f32[] <- b[...]
        b[...] <- c
        b[...] += c
        f:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }] d
        g:f32[] = add f f
      in (c, g) }
""")


def rewritten(change: Any, jaxpr: Jaxpr = PROGRAM) -> Jaxpr:
    made = check(map_eqns(change, jaxpr)).unwrap()
    assert isinstance(made, Jaxpr)
    return made


def test_map_eqns_of_none_is_the_identity() -> None:
    assert map_eqns(lambda b, eqn: None, PROGRAM) is PROGRAM


def test_an_equation_is_replaced_by_several() -> None:
    def change(b: Builder, eqn: Eqn) -> Atom | None:
        match eqn.prim, eqn.ins:
            case p.Add(), (x, y) if x == y:
                return b(p.Neg(), b(p.Mul(), lit(-2, x.type), x))
        return None

    made = rewritten(change)
    text = str(PROGRAM).replace("g:f32[] = add f f", "g:f32[] = mul -2.0:f32[] f; h:f32[] = neg g")
    assert made == parse(text.replace("(c, g)", "(c, h)"))
    assert made.eqns[0] is PROGRAM.eqns[0]
    assert made.eqns[-1].source is PROGRAM.eqns[-1].source
    assert made.effects == PROGRAM.effects


def test_a_removed_equation_renumbers_the_rest() -> None:
    def change(b: Builder, eqn: Eqn) -> object:
        if isinstance(eqn.prim, p.Sin):
            return eqn.ins[0]
        return () if isinstance(eqn.prim, AddUpdate) else None

    made = rewritten(change)
    assert [eqn.prim.name for eqn in made.eqns] == ["get", "swap", "jit", "add"]
    assert made.outs[0] == made.binders[0]


def test_a_removed_write_removes_its_result() -> None:
    def change(b: Builder, eqn: Eqn) -> object:
        return [lit(0, v.type) for v in eqn.outs] if isinstance(eqn.prim, Swap) else None

    made = rewritten(change)
    assert "<- c" not in str(made) and not any(e for e in made.effects if "write" in str(e))


def test_everywhere_changes_subjaxprs() -> None:
    def cosines(b: Builder, eqn: Eqn) -> Atom | None:
        return b(p.Cos(), *eqn.ins) if isinstance(eqn.prim, p.Sin) else None

    assert str(rewritten(cosines)).count("sin") == 1
    assert "sin" not in str(everywhere(partial(map_eqns, cosines), PROGRAM))


@pytest.mark.parametrize(
    ("replacement", "error", "says"),
    [
        (lambda b, eqn: eqn.outs, BadArgument, "not an atom of the new program"),
        (lambda b, eqn: 3, BadArgument, r"not an atom of the new program(.|\n)*found: +3"),
        (lambda b, eqn: "ab", BadArgument, "not an atom of the new program"),
        (lambda b, eqn: (), BadArgument, r"replaced by one atom(.|\n)*expected: 1(.|\n)*found: +0"),
        (lambda b, eqn: lit(0, array_type((), "int32")), IllTyped, r"found: +i32\[\]"),
        (lambda b, eqn: b(p.Cos(), *eqn.ins) and None, BadArgument, "that stays"),
        (lambda b, eqn: b(p.Add(), *eqn.ins), IllTyped, "sin a"),
    ],
)
def test_invalid_replacements_are_errors(replacement: Any, error: Any, says: str) -> None:
    def change(b: Builder, eqn: Eqn) -> object:
        return replacement(b, eqn) if isinstance(eqn.prim, p.Sin) else None

    with pytest.raises(error, match=says) as found:
        rewritten(change)
    assert found.value.equation == "c:f32[] = sin a"


def test_the_work_is_linear() -> None:
    def negated(b: Builder, eqn: Eqn) -> Atom:
        return b(p.Neg(), b(eqn.prim, *eqn.ins))

    small, large = chain(50), chain(400)
    map_eqns(negated, small)
    assert calls(lambda: map_eqns(negated, large)) < 8.8 * calls(lambda: map_eqns(negated, small))
