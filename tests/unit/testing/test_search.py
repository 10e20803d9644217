"""Laws tried on random programs with one call."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from returns.result import Result, Success

from effax.effects import NO_EFFECTS
from effax.ir.errors import BadArgument, TransformError
from effax.ir.parse import parse
from effax.ir.prims import elementwise as ew
from effax.ir.prims.refs import AddUpdate
from effax.ir.syntax import Eqn, Jaxpr, Var
from effax.ir.types import ArrayType
from effax.passes import SIMPLIFIES, Claim, Pass, cse, fixpoint, fold
from effax.passes import dce as passes_dce
from effax.testing import check_laws, check_pass, laws
from effax.testing.features import NUMERIC
from effax.testing.laws import LawBroken, Passes
from effax.transforms.dce import Dce, dce
from effax.transforms.rules.book import DEFAULT_BOOK
from effax.transforms.rules.pointwise import mul, unary_jvp
from effax.transforms.spread import Mask


def test_the_library_keeps_every_law() -> None:
    tried = check_laws(examples=3)
    assert [one.law for one in tried] == [law.name for law in laws.LAWS if law.takes("passes")]
    assert not [one for one in tried if one.refused]


def test_the_table_has_every_law() -> None:
    declared = [value for value in vars(laws).values() if isinstance(value, laws.Law)]
    assert {law.name for law in declared} == {law.name for law in laws.LAWS} < set(laws.__all__)
    assert len(laws.LAWS) == len({law.name for law in laws.LAWS})


def test_a_wrong_rule_is_found_and_made_small() -> None:
    # d sin(x) = x·dx
    wrong = replace(
        DEFAULT_BOOK.rules[ew.Sin], jvp=partial(unary_jvp, lambda b, d, x, y: mul(b, d, x))
    )
    book = DEFAULT_BOOK.extend(ew.Sin, wrong)
    with pytest.raises(LawBroken) as broken:
        check_laws(
            Passes(book), only=["jvp_is_the_derivative"], focus="elementwise.smooth", examples=200
        )
    text = str(broken.value)
    found = re.search(r"parse\('''\n(.*?)'''\)", text, re.DOTALL)
    assert found is not None and "As a test:" in text
    program = parse(found[1])
    assert len(program.eqns) <= 3
    assert any(isinstance(eqn.prim, ew.Sin) for eqn in program.eqns)


def test_a_wrong_pass_is_found() -> None:
    def lazy(jaxpr: Jaxpr, used: Mask) -> Dce:
        made = dce(jaxpr, used)
        assert isinstance(made, Success)
        right: Dce = made.unwrap()
        # It forgets what is done to references.
        kept = [eqn for eqn in right.jaxpr.eqns if eqn.outs or not eqn.effects.effects]
        return Dce(right.jaxpr.replace(eqns=kept), right.used_ins)

    passes = replace(Passes(), dce=lazy)
    with pytest.raises(LawBroken, match="dce_keeps_what_is_observed"):
        check_laws(passes, only=["dce_keeps_what_is_observed"], examples=100)


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"no such law(.|\n)*found: +nonsense"):
        check_laws(only=["nonsense"])


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
    return passes_dce(jaxpr) if next(CALLS) % 2 else Success(jaxpr)


def with_a_copy(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
    """The program, its first input copied at its end for nothing."""
    first = jaxpr.binders[0]
    if not isinstance(first.type, ArrayType):
        return Success(jaxpr)
    eqn = Eqn(ew.Copy(), (first,), (Var(jaxpr.size, first.type.strong()),), NO_EFFECTS)
    return Success(jaxpr.replace(eqns=[*jaxpr.eqns, eqn]))


def test_a_pass_that_keeps_its_claims() -> None:
    check_pass(fixpoint(fold | cse | passes_dce), examples=10)
    check_pass(Pass("identity", Success, SIMPLIFIES), examples=5)
    check_pass(passes_dce, compiled=True, examples=3)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Pass("forgets", without_last_write), "final content of reference"),
        (Pass("doubles", lambda j: Success(j.replace(outs=[*j.outs, *j.outs]))), "results"),
        (Pass("random", every_other), "random gives different programs for equal ones"),
        (Pass("copies", with_a_copy, (Claim.NEVER_LARGER,)), "made the program grow"),
    ],
    ids=["forgets", "doubles", "random", "copies"],
)
def test_a_pass_that_does_not_is_found(step: Pass, says: str) -> None:
    with pytest.raises(LawBroken, match=says):
        check_pass(step, features=replace(NUMERIC, control=(), steps=5), examples=200)


def test_what_is_no_pass_is_refused() -> None:
    with pytest.raises(BadArgument, match="this is no pass"):
        check_pass(without_last_write)  # type: ignore[arg-type]  # the test is about this


def test_a_kind_of_step_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        BadArgument, match=r"does not exist(.|\n)*elementwise\.mul(.|\n)*found: +mul"
    ):
        check_pass(passes_dce, features=replace(NUMERIC, focus="mul"), examples=5)


def test_a_claim_that_is_none_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"mine claims what is no claim(.|\n)*found: +'same'"):
        Pass("mine", Success, ("same",))  # type: ignore[arg-type]  # the test is about this


def test_a_pass_that_gives_no_result_is_named() -> None:
    functions: tuple[Any, ...] = (lambda jaxpr: jaxpr, lambda jaxpr: Success(None))
    for function in functions:
        wrong = Pass("bare", function)
        made = (wrong | passes_dce)(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"))
        assert "the pass bare gives something else" in made.failure().what
