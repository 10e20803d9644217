"""``check_pass``: guarantees of passes on random programs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from typing import Any

import pytest
from returns.result import Result, Success

from effax.effects import NO_EFFECTS
from effax.ir import prims as p
from effax.ir.build import Builder
from effax.ir.edit.alpha import renumbered
from effax.ir.edit.operations import everywhere, replace_eqn
from effax.ir.errors import BadArgument, TransformError
from effax.ir.prims import AddUpdate, DebugCallback, Get, Rev, Scan, Swap, Transpose
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit, Var
from effax.ir.text.parser import parse
from effax.ir.types import ArrayType
from effax.passes import (
    ALL,
    EXACT,
    SIMPLIFIES,
    Guarantee,
    Pass,
    as_pass,
    cse,
    dce,
    fixpoint,
    fold,
)
from effax.testing import Inconclusive, check_pass
from effax.testing.generate.features import NUMERIC
from effax.testing.laws import LawBroken
from effax.testing.shrink.changed_parts import changed_parts
from effax.transforms.optimize.rewrite import (
    FLOATS,
    App,
    Hole,
    Number,
    Pattern,
    RewriteRule,
    rewriting,
)

pytestmark = pytest.mark.slow


def without_last_write(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """The program without what it does last to a reference that it was given."""
    given = {v.id for v in jaxpr.binders}
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        eqn = jaxpr.eqns[i]
        ref = eqn.ins[0] if eqn.ins else None
        if isinstance(eqn.prim, AddUpdate) and isinstance(ref, Var) and ref.id in given:
            return Success(jaxpr.replace(eqns=[*jaxpr.eqns[:i], *jaxpr.eqns[i + 1 :]]))
    return Success(jaxpr)


CALLS = count()


def every_other(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """Without dead code, every other time: a pass that remembers."""
    return dce(jaxpr) if next(CALLS) % 2 else Success(jaxpr)


def with_a_copy(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """The program, its first input copied at its end for nothing."""
    first = jaxpr.binders[0]
    if not isinstance(first.type, ArrayType):
        return Success(jaxpr)
    eqn = Eqn(p.Copy(), (first,), (Var(jaxpr.size, first.type.strong()),), NO_EFFECTS)
    return Success(jaxpr.replace(eqns=[*jaxpr.eqns, eqn]))


def test_a_pass_that_keeps_its_claims() -> None:
    report = check_pass(fixpoint(fold | cse | dce), examples=14)
    assert set(report.guarantees) == set(EXACT)
    assert 10 < report.programs <= 140 and 10 < report.changed <= report.programs
    assert report.slices > 10 and not report.stopped
    assert report.after < report.before
    lines = str(report).splitlines()
    assert lines[0] == (
        f"fixpoint(fold | cse | dce): {report.programs} programs, of which it changed "
        f"{report.changed} ({report.before} equations became {report.after})"
    )
    assert lines[1:] == [
        *(f"  holds: {claim.value}" for claim in report.guarantees),
        "  holds: p is a function, and p(f) is valid and has the types of f",
    ]
    assert check_pass([fold, cse, dce], compiled=True, examples=3).changed


def test_guarantees_are_arguments() -> None:
    report = check_pass(dce, guarantees=[Guarantee.NEVER_LARGER], examples=3)
    assert report.guarantees == (Guarantee.NEVER_LARGER,)
    assert "no guarantees" in str(check_pass(Pass("any", dce.transform, ()), examples=3))
    zero = App(p.Add, x, Number(0))
    with pytest.raises(LawBroken, match="bit by bit"):
        check_pass(algebra(zero, x), guarantees=[Guarantee.SAME_BITS], focus=zero)
    with pytest.raises(BadArgument, match=r"guarantees of check_pass are not valid"):
        check_pass(dce, guarantees=["same"])  # type: ignore[list-item]  # the test is about this


@pytest.mark.parametrize("step", ALL, ids=str)
def test_the_passes_of_the_library_are_found_right(step: Pass) -> None:
    assert check_pass(step, examples=20).changed


def algebra(
    left: App, right: Pattern, *guarantees: Guarantee, families: frozenset[str] = FLOATS
) -> Pass:
    rules = [RewriteRule(str(left), left, right, families)]
    return Pass(str(left), rewriting(rules), guarantees or (Guarantee.SAME_MEANING,))


@as_pass
def cosines(jaxpr: Jaxpr) -> Jaxpr:
    """Every sine becomes a cosine, wherever it is."""
    return everywhere(_cosines, jaxpr)


def _cosines(jaxpr: Jaxpr) -> Jaxpr:
    for i, eqn in enumerate(jaxpr.eqns):
        if isinstance(eqn.prim, p.Sin):
            jaxpr = replace_eqn(jaxpr, i, p.Cos())
    return jaxpr


@as_pass
def late_reads(jaxpr: Jaxpr) -> Jaxpr:
    """A read changes places with the write to the same reference that follows it."""
    eqns = [*jaxpr.eqns]
    for i in range(len(eqns) - 1):
        first, second = eqns[i], eqns[i + 1]
        ref = first.ins[0] if isinstance(first.prim, Get) else None
        uses = {a.id for a in second.ins if isinstance(a, Var)}
        if isinstance(second.prim, Swap) and second.ins[0] == ref and first.outs[0].id not in uses:
            eqns[i], eqns[i + 1] = second, first
    return renumbered(jaxpr.replace(eqns=eqns))


@as_pass
def silent(jaxpr: Jaxpr) -> Jaxpr:
    """Remove debug callbacks."""
    return jaxpr.replace(eqns=[e for e in jaxpr.eqns if not isinstance(e.prim, DebugCallback)])


x, y = Hole("x"), Hole("y")

WRONG: tuple[Pass, ...] = (
    cosines,
    late_reads,
    silent,
    algebra(App(p.Sub, x, x), Number(0)),
    algebra(App(p.Mul, x, Number(0)), Number(0)),
    algebra(App(p.Div, x, x), Number(1)),
    algebra(App(p.Eq, x, x), Number(True)),
    algebra(App(p.Add, x, Number(0)), x, Guarantee.SAME_BITS),
    algebra(App(p.Div, App(p.Mul, x, y), y), x),
    algebra(App(p.Not, App(p.Lt, x, y)), App(p.Ge, x, y), families=frozenset({"bool"})),
    algebra(App(p.Log, App(p.Exp, x)), x),
)


@pytest.mark.parametrize("step", WRONG, ids=str)
def test_a_wrong_pass_is_found_by_default(step: Pass) -> None:
    with pytest.raises(LawBroken) as broken:
        check_pass(step)
    text = str(broken.value)
    program = re.search(r"parse\(r?'{3}\n(.*?)'{3}", text, re.DOTALL)
    assert program is not None
    assert len(program[1].splitlines()) <= 24, text


def _swapped(jaxpr: Jaxpr) -> Jaxpr:
    eqns = [*jaxpr.eqns]
    for i, (first, second) in enumerate(pairwise(eqns)):
        if not (isinstance(first.prim, Swap) and isinstance(second.prim, Swap)):
            continue
        apart = (first.prim, first.ins[2:]) != (second.prim, second.ins[2:])
        if apart and first.ins[0] == second.ins[0] and first.outs[0] not in second.ins:
            eqns[i : i + 2] = second, first
            return renumbered(jaxpr.replace(eqns=eqns))
    return jaxpr


def _forward(jaxpr: Jaxpr) -> Jaxpr:
    b = Builder(jaxpr.in_types)
    env: dict[Atom, Atom] = dict(zip(jaxpr.binders, b.binders, strict=True))
    for eqn in jaxpr.eqns:
        prim, ins = eqn.prim, [env.get(a, a) for a in eqn.ins]
        if isinstance(prim, Scan) and prim.reverse and not eqn.effects:
            n = prim.n_consts + prim.n_carry
            ins[n:] = [b(Rev((0,)), a) for a in ins[n:]]
            prim = replace(prim, reverse=False)
        env.update(zip(eqn.outs, b.emit(prim, ins, eqn.source), strict=True))
    return b.finish([env.get(a, a) for a in jaxpr.outs], jaxpr.n_consts, jaxpr.names)


def _known(jaxpr: Jaxpr) -> Jaxpr:
    env: dict[Atom, Atom] = {}
    for eqn in jaxpr.eqns:
        if isinstance(eqn.prim, Scan):
            fed = eqn.prim.jaxpr.outs[: eqn.prim.n_carry]
            pairs = zip(eqn.outs, fed, strict=False)
            env |= {v: a for v, a in pairs if isinstance(a, Lit) and a.type is v.type}
    eqns = [eqn._replace(ins=tuple([env.get(a, a) for a in eqn.ins])) for eqn in jaxpr.eqns]
    return jaxpr.replace(eqns=eqns, outs=[env.get(a, a) for a in jaxpr.outs])


@as_pass
def swapped_writes(jaxpr: Jaxpr) -> Jaxpr:
    """Two writes to parts of one reference change places, which may overlap."""
    return everywhere(_swapped, jaxpr)


@as_pass
def forward(jaxpr: Jaxpr) -> Jaxpr:
    """Replace a reversed scan by a scan of reversed arrays, without reversing its results."""
    return everywhere(_forward, jaxpr)


@as_pass
def known_carries(jaxpr: Jaxpr) -> Jaxpr:
    """A carry that every round sets to a number is that number, of no rounds too."""
    return everywhere(_known, jaxpr)


def chosen(by: type[p.Lt | p.Gt | p.Ge], *cases: Pattern, as_: type[p.Max | p.Min]) -> Pass:
    """A choice by comparison as an extremum, which nan is not."""
    left = App(p.SelectN, App(by, x, y), *cases)
    return algebra(left, App(as_, x, y), families=frozenset({"bool"}))


NARROW: tuple[Pass, ...] = (
    chosen(p.Lt, x, y, as_=p.Max),
    chosen(p.Gt, y, x, as_=p.Max),
    chosen(p.Gt, x, y, as_=p.Min),
    swapped_writes,
    forward,
    known_carries,
)


@pytest.mark.parametrize("step", NARROW, ids=str)
def test_what_is_wrong_in_few_programs_is_found_by_default(step: Pass) -> None:
    with pytest.raises(LawBroken):
        check_pass(step)


def test_another_seed_tries_other_programs() -> None:
    first, second = (check_pass(dce, examples=6, seed=seed) for seed in (0, 1))
    assert first == check_pass(dce, examples=6) != second
    few = replace(first, changed=2, kinds=("sin",))
    assert few.changes_little and "few changes: only 2 of" in str(few)


def test_what_a_pass_changed_is_narrowed_down() -> None:
    before = parse("{ lambda ; a:f32[]. let b:f32[] = neg a; c:f32[] = add b b in (c,) }")
    after = parse("{ lambda ; a:f32[]. let b:f32[] = neg a; c:f32[] = mul b 2.0:f32[] in (c,) }")
    found = changed_parts([(before, after)])
    assert found.kinds == ("add", "mul") and found.steps == ("scan", "while", "cond")
    assert [str(one) for one in found.patterns] == [
        *("add(x0, x0)", "add(neg(x0), neg(x0))", "add(x0, x1)", "add(neg(x0), neg(x1))")
    ]
    assert changed_parts([(after, after)]).kinds == ()


def test_an_addition_of_zero_is_right_up_to_the_sign_of_zero() -> None:
    left = App(p.Add, x, Number(0))
    assert check_pass(algebra(left, x), focus=left, examples=40).changed


WRONG_RULE = RewriteRule("x² = |x|", App(p.IntegerPow(2), x), App(p.Abs, x), FLOATS)
RARE = App(p.Erf, App(p.Cbrt, x))


@pytest.mark.parametrize(
    ("step", "focus"),
    [
        (cosines, p.Sin),
        (cosines, p.Sin()),
        (algebra(App(p.Acosh, x), x), p.Acosh),
        (algebra(RARE, x), [RARE, "scan"]),
        (Pass("wrong", rewriting([WRONG_RULE])), WRONG_RULE),
        (late_reads, ["refs.swap", "refs.get"]),
    ],
    ids=lambda focus: str(focus)[:20],
)
def test_what_a_pass_looks_for_is_met_often(step: Pass, focus: Any) -> None:
    with pytest.raises(LawBroken):
        check_pass(step, focus=focus, examples=40)


def test_programs_of_the_user_are_tried_first() -> None:
    program = parse("""{ lambda ; a:f32[] b:f32[]. let
        c:f32[] = atan2 a b; d:f32[] = atan2 c c in (d,) }""")
    rare = algebra(App(p.Atan2, x, x), x)
    with pytest.raises(LawBroken, match="atan2"):
        check_pass(rare, programs=[program], examples=1)
    with pytest.raises(BadArgument, match=r"takes a program"):
        check_pass(rare, programs=["atan2"])  # type: ignore[list-item]  # the test is about this


def test_a_pass_that_never_fires_is_not_proved() -> None:
    ruled = algebra(App(p.Atan2, App(p.Erf, App(p.Cbrt, x)), x), x)
    # A function, whose rule is not seen.
    rare = Pass("rare", partial(ruled))
    with pytest.raises(Inconclusive, match=r"changed no program(.|\n)*`focus=`") as unproved:
        check_pass(rare, examples=10)
    assert isinstance(unproved.value, AssertionError)
    assert "programs, none of them changed" in str(unproved.value)
    report = check_pass(Pass("identity", Success, SIMPLIFIES), allow_unchanged=True, examples=5)
    assert report.changed == 0 and report.programs > 1


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Pass("forgets", without_last_write), "final content of reference"),
        (Pass("doubles", lambda j: Success(j.replace(outs=[*j.outs, *j.outs]))), "results"),
        (Pass("random", every_other), "random returns different programs for equal ones"),
        (Pass("copies", with_a_copy, (Guarantee.NEVER_LARGER,)), "makes the program grow"),
    ],
    ids=["forgets", "doubles", "random", "copies"],
)
def test_a_pass_that_does_not_is_found(step: Pass, says: str) -> None:
    with pytest.raises(LawBroken, match=says):
        check_pass(step, features=replace(NUMERIC, control=(), steps=5), examples=200)


def test_what_is_no_pass_is_refused() -> None:
    with pytest.raises(BadArgument, match="this is not a pass"):
        check_pass(without_last_write)  # type: ignore[arg-type]  # the test is about this


def test_a_kind_of_step_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"kind of step(.|\n)*found: +mul(.|\n)*arith\.mul\?\n"):
        check_pass(dce, features=replace(NUMERIC, focus="mul"), examples=5)
    with pytest.raises(BadArgument, match="unknown kind of step"):
        check_pass(dce, focus=["scan", "nonsense"])


def test_what_programs_cannot_be_full_of() -> None:
    with pytest.raises(BadArgument, match="which has parameters"):
        check_pass(dce, focus=App(p.Neg, App(Transpose, Hole("x"))))
    with pytest.raises(BadArgument, match="programs cannot be full of this"):
        check_pass(dce, focus=3)  # type: ignore[arg-type]  # the test is about this


def test_a_pass_is_tried_on_something() -> None:
    with pytest.raises(BadArgument, match="examples of at least 1"):
        check_pass(dce, examples=0)


def test_a_claim_that_is_none_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"guarantees of mine are not valid(.|\n)*found: +'same'"):
        Pass("mine", Success, ("same",))  # type: ignore[arg-type]  # the test is about this


def test_a_pass_that_returns_no_result_is_named() -> None:
    functions: tuple[Any, ...] = (lambda jaxpr: jaxpr, lambda jaxpr: Success(None))
    for function in functions:
        wrong = Pass("bare", function)
        made = (wrong | dce)(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"))
        assert "the pass bare does not return a `Result`" in made.failure().what
