"""Equations that end a variable come after its other uses."""

from __future__ import annotations

from effax.ir.build import Builder
from effax.ir.edit.uses_first import uses_first
from effax.ir.prims import Add, Neg, Sin
from effax.ir.syntax import Var
from effax.ir.text.parser import parse
from effax.ir.types import array_type
from tests.counting import calls

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


def chain(length: int) -> tuple[Builder, dict[int, list[Var]]]:
    """Return updates of one value in sequence, each of which reads the one before."""
    b = Builder([array_type((), "float32")])
    x = first = b.binders[0]
    ends: dict[int, list[Var]] = {}
    for _ in range(length):
        ends[len(b.eqns)] = [x]
        y = b(Neg(), x)
        for _ in range(3):
            y = b(Sin(), y)
        x = b(Add(), x, y)
    b(Add(), first, x)
    return b, ends


def test_the_work_is_linear_in_the_length_of_a_chain() -> None:
    def work(length: int) -> int:
        b, ends = chain(length)
        assert sorted(uses_first(b.eqns, ends)) == list(range(len(b.eqns)))
        return calls(lambda: uses_first(b.eqns, ends))

    assert work(800) < 2.3 * work(400)
