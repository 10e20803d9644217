from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from returns.result import Failure, Result, Success

import effax as jax
import effax.numpy as jnp
from effax.ir import prims as p
from effax.ir.build import lit
from effax.ir.edit.operations import replace_eqn
from effax.ir.errors import BadArgument, TransformError
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.passes import (
    EXACT,
    SIMPLIFIES,
    Broken,
    Guarantee,
    Pass,
    Pipeline,
    as_pass,
    bisect,
    dce,
    dump,
    fixpoint,
    fuse_accumulations,
    guarantees_of,
    inline,
    optimize,
    passes_of,
    pipeline,
    unwrap,
    watch,
    when,
)
from effax.testing import check_pass
from effax.testing.laws import LawBroken

PROGRAM = parse("""
    { lambda ; a:f32[]. let
        b:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }] a
        c:f32[] = cos b
        d:f32[] = mul b 2.0:f32[]
      in (d,) }
""")


def swapping(name: str, old: type, new: p.Unary) -> Pass:
    """The pass that puts one function in the place of another, once a run."""

    def transform(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        for i, eqn in enumerate(jaxpr.eqns):
            if isinstance(eqn.prim, old):
                return Success(replace_eqn(jaxpr, i, new))
        return Success(jaxpr)

    return Pass(name, transform)


def names(jaxpr: Jaxpr) -> list[str]:
    return [eqn.prim.name for eqn in jaxpr.eqns]


FAILS = Pass("fails", lambda jaxpr: Failure(TransformError("it never works")))
COS = swapping("sin to cos", p.Sin, p.Cos())
SIN = swapping("cos to sin", p.Cos, p.Sin())
DOUBLE = Pass("doubled", lambda jaxpr: Success(jaxpr.replace(outs=[*jaxpr.outs, *jaxpr.outs])))
UNBOUND = Pass("unbound", lambda jaxpr: Success(jaxpr.replace(eqns=[])))


def test_passes_compose_and_a_composition_is_a_value() -> None:
    both = inline | dce
    assert both == pipeline(inline, dce) == passes_of([inline, dce])
    assert names(both(PROGRAM).unwrap()) == ["sin", "mul"]
    assert (both | COS).passes == (inline | (dce | COS)).passes == (inline, dce, COS)
    assert str(both) == "inline | dce"
    assert pipeline()(PROGRAM).unwrap() is PROGRAM


def test_a_failure_ends_a_pipeline() -> None:
    run = watch(inline | FAILS | dce, PROGRAM)
    assert [record.name for record in run.records] == ["inline", "fails"]
    assert run.result.failure().what == "it never works"
    with pytest.raises(TransformError, match="never works"):
        run.unwrap()
    assert (inline | FAILS | dce)(PROGRAM).failure().what == "it never works"


def test_an_error_that_a_pass_raises_is_its_failure() -> None:
    wrong = Pass("wrong", lambda jaxpr: Success(replace_eqn(jaxpr, 7, p.Sin())))
    error = (wrong | dce)(PROGRAM).failure()
    assert "equation index out of range" in error.what


def test_a_step_may_depend_on_the_program() -> None:
    pass_ = when(has_calls, inline | COS)
    assert names(pass_(PROGRAM).unwrap()) == ["cos", "cos", "mul"]
    flat = inline(PROGRAM).unwrap()
    assert pass_(flat).unwrap() is flat
    assert str(pass_) == "when(has_calls, inline | sin to cos)"


def test_a_fixpoint_ends_when_nothing_changes() -> None:
    run = watch(inline | fixpoint(SIN), PROGRAM)
    assert names(run.unwrap()) == ["sin", "sin", "mul"]
    assert [r.changed for r in run.records] == [True, True, False]
    assert run.records[1].title == "cos to sin (1 / round 0)"


def test_a_fixpoint_that_is_none_is_an_error() -> None:
    turn = Pass("turn", lambda j: Success((SIN if names(j)[0] == "cos" else COS)(j).unwrap()))
    found = fixpoint(turn, limit=3)(inline(PROGRAM).unwrap()).failure()
    assert "does not reach a fixpoint" in found.what and "recurs" in str(found)
    with pytest.raises(BadArgument, match="the limit of a fixpoint is not valid"):
        fixpoint(COS, limit=0)


def cosine(jaxpr: Jaxpr) -> Jaxpr:
    """A function from program to program."""
    return COS(jaxpr).unwrap()


NOT_PASSES: list[tuple[object, str]] = [
    (3, "as_pass"),
    ("dce", r"use the value, an attribute of `effax\.passes`, not its name"),
    ("nonsense", "not its name"),
    (None, r"the identity is `pipeline\(\)`"),
    ([dce, 3], "as_pass"),
    ([[dce]], "passes are ordered"),
    (cosine, r"as_pass\(cosine\)"),
    ([cosine], r"as_pass\(cosine\)"),
    (Pass, "not the class"),
    ((pass_ for pass_ in [dce]), "use a list"),
    ({dce}, "use a list"),
]


@pytest.mark.parametrize(("given", "remedy"), NOT_PASSES, ids=lambda x: str(x)[:16])
def test_arguments_that_are_not_passes_are_errors(given: object, remedy: str) -> None:
    pass_: Any = given
    takers: list[Callable[[], object]] = [
        lambda: passes_of(pass_),
        lambda: watch(pass_, PROGRAM),
        lambda: bisect(pass_, PROGRAM, has_calls),
        lambda: check_pass(pass_),
    ]
    if not isinstance(given, list):
        takers += [
            lambda: pipeline(pass_),
            lambda: fixpoint(pass_),
            lambda: when(has_calls, pass_),
            lambda: Pipeline((dce, pass_)),
            lambda: dce | pass_,
        ]
    if pass_ is not None:
        takers.append(lambda: jax.jit(jnp.sin, passes=pass_))
    if not isinstance(given, list | set | str):
        takers.append(lambda: pass_ | dce)
    for take in takers:
        with pytest.raises(BadArgument, match=rf"not a pass(.|\n)*{remedy}"):
            take()


def has_calls(jaxpr: Jaxpr) -> bool:
    return "jit" in names(jaxpr)


def test_a_list_of_passes_is_a_pass() -> None:
    both = [inline, dce]
    assert watch(both, PROGRAM).unwrap() == (inline | dce)(PROGRAM).unwrap()
    assert bisect(both, PROGRAM, lambda jaxpr: True) is None


# The arguments below are ill-typed.
a_pass: Any = Pass
a_when: Any = when
a_fixpoint: Any = fixpoint
any_as_pass: Any = as_pass
any_dce: Any = dce
any_watch: Any = watch


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: a_pass("", cosine), "the name of a pass is not valid"),
        (lambda: a_pass(cosine, cosine), "the name of a pass is not valid"),
        (lambda: a_pass("mine", None), r"the transform of the pass mine is not a function"),
        (lambda: a_pass("mine", "dce"), "is not a function"),
        (
            lambda: a_pass("mine", cosine, Guarantee.IDEMPOTENT),
            r"guarantees of mine are not valid(.|\n)*\(Guarantee.IDEMPOTENT,\)",
        ),
        (
            lambda: a_pass("mine", cosine, "same"),
            r"guarantees of mine are not valid(.|\n)*found: +'same'",
        ),
        (lambda: a_pass("mine", cosine, 3), "guarantees of mine are not valid"),
        (lambda: a_when(True, dce), "the condition of `when` is not a function"),
        (lambda: a_when(dce, dce), "the condition of `when` is not a function"),
        (lambda: a_fixpoint(dce, None), "the limit of a fixpoint is not valid"),
        (lambda: any_as_pass("dce"), "as_pass takes a function"),
        (lambda: any_as_pass(dce), "as_pass takes a function"),
        (lambda: any_dce(jax.make_jaxpr(jnp.sin)(1.0)), r"takes a program(.|\n)*`\.jaxpr`"),
        (lambda: any_dce(jnp.sin), r"takes a program(.|\n)*make_jaxpr"),
        (lambda: any_watch(dce, "{ lambda ; . let  in () }"), "takes a program"),
    ],
)
def test_invalid_passes_are_errors(make: Callable[[], object], says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        make()


def test_a_pass_of_a_plain_function() -> None:
    made = as_pass(cosine)
    assert (str(made), made.laws) == ("cosine", (Guarantee.SAME_MEANING,))
    assert names(unwrap((inline | made)(PROGRAM))) == ["cos", "cos", "mul"]

    @as_pass(name="none", laws=SIMPLIFIES)
    def other(jaxpr: Jaxpr) -> Result[Jaxpr, TransformError]:
        return Failure(TransformError("it never works"))

    assert (other.name, other.laws) == ("none", SIMPLIFIES)
    assert other(PROGRAM).failure().step == "none"
    assert as_pass(cosine) == as_pass(cosine)


@pytest.mark.slow
def test_an_exception_of_a_pass_is_its_failure() -> None:
    def boom(jaxpr: Jaxpr) -> Jaxpr:
        raise KeyError(len(jaxpr.eqns) + 70)

    wrong = dce | as_pass(boom)
    error = wrong(PROGRAM).failure()
    assert "the pass boom raises KeyError: 72" in str(error)
    assert isinstance(error.__cause__, KeyError)
    assert watch(wrong, PROGRAM).result.failure().what == error.what
    with pytest.raises(TransformError, match="the pass boom raises KeyError"):
        jax.jit(jnp.sin, passes=wrong)(1.0)
    with pytest.raises(TransformError, match="the pass boom raises KeyError"):
        unwrap(wrong(PROGRAM))
    with pytest.raises(LawBroken, match="the pass boom raises KeyError"):
        check_pass(wrong, examples=1)
    odd = when(lambda jaxpr: jaxpr.nonsense, dce)  # type: ignore[attr-defined]
    assert "the condition <lambda> raises AttributeError" in odd(PROGRAM).failure().what


def test_a_failure_names_its_pass_and_is_raised_by_unwrap() -> None:
    wrong = Pass("wrong", lambda jaxpr: Success(replace_eqn(jaxpr, 7, p.Sin())))
    with pytest.raises(TransformError, match=r"index out of range(.|\n)*in: +the pass wrong"):
        unwrap((dce | wrong)(PROGRAM))


def test_jit_names_the_pass_at_fault() -> None:
    with pytest.raises(Broken, match="the pass doubled changes the types of the results"):
        jax.jit(jnp.sin, passes=inline | DOUBLE | dce)(1.0)


def test_guarantees_of_compositions() -> None:
    keeps = Pass("keeps", Success)
    says_nothing = Pass("any", Success, ())
    same = (Guarantee.SAME_MEANING,)
    assert guarantees_of(dce) == (*SIMPLIFIES[:1], Guarantee.SAME_BITS, *SIMPLIFIES[1:])
    assert guarantees_of(dce | keeps) == same
    assert guarantees_of(dce | fuse_accumulations) == (
        Guarantee.SAME_MEANING,
        Guarantee.NEVER_LARGER,
    )
    assert guarantees_of(dce | says_nothing) == ()
    assert guarantees_of(fixpoint(keeps)) == (Guarantee.SAME_MEANING, Guarantee.IDEMPOTENT)
    assert guarantees_of(when(has_calls, fuse_accumulations)) == (
        *(Guarantee.SAME_MEANING, Guarantee.NEVER_LARGER),
    )
    assert set(guarantees_of(optimize)) == set(guarantees_of(pipeline())) == set(EXACT)
    assert Pass("bits", Success, (Guarantee.SAME_BITS,)).laws == (*same, Guarantee.SAME_BITS)


def test_each_pass_is_verified() -> None:
    run = watch(inline | DOUBLE | dce, PROGRAM)
    assert [record.name for record in run.records] == ["inline", "doubled"]
    error = run.result.failure()
    assert isinstance(error, Broken)
    assert "the pass doubled changes the types of the results" in error.what
    error = watch(inline | UNBOUND, PROGRAM).result.failure()
    assert "the pass unbound returns a program that is not well formed" in error.what
    assert watch(inline | UNBOUND, PROGRAM, verify=False).unwrap().eqns == inline(
        PROGRAM
    ).unwrap().eqns.delete(0, 3)


def test_errors_of_a_pass_name_the_helper_that_mends_them() -> None:
    swapped = Pass("swapped", lambda jaxpr: Success(jaxpr.replace(eqns=[*jaxpr.eqns][::-1])))
    chain = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = cos b in (c, d) }")
    error = watch(swapped, chain).result.failure()
    assert "`renumbered(jaxpr)`" in (error.remedy or "")
    weak = Pass("weak", lambda _: Success(parse("{ lambda ; a:~f32[]. let  in (a,) }")))
    given = parse("{ lambda ; a:f32[]. let  in (a,) }")
    assert "weakness is a part of a type" in (watch(weak, given).result.failure().remedy or "")


def test_a_run_prints_times_sizes_and_differences() -> None:
    run = watch(inline | COS | dce | dce, PROGRAM)
    lines = str(run).splitlines()
    assert len(lines) == 5
    assert "inline (0)" in lines[0] and "4 -> 3" in lines[0]
    assert "(no change)" in lines[3] and "ok" in lines[4]
    shown = run.text()
    assert "-     b:f32[] = sin a\n+     b:f32[] = cos a" in shown
    assert shown.count("diff:") == 3
    assert run.text("before", "after", all_passes=True).count("before:") == 4


def test_a_run_is_written_to_a_folder(tmp_path: Path) -> None:
    run = watch(inline | COS | dce | dce, PROGRAM)
    files = dump(run, tmp_path / "new")
    assert [file.name for file in files] == [
        "00_given.jaxpr",
        "01_inline.jaxpr",
        "01_inline.diff",
        "02_sin-to-cos.jaxpr",
        "02_sin-to-cos.diff",
        "03_dce.jaxpr",
        "03_dce.diff",
        "summary.txt",
    ]
    assert parse(files[5].read_text()) == run.unwrap()


def test_bisect_finds_the_pass_that_breaks_a_property() -> None:
    looks = 0

    def has_sin(jaxpr: Jaxpr) -> bool:
        nonlocal looks
        looks += 1
        return any("sin" in str(eqn) for eqn in [*jaxpr.eqns]) or "sin" in str(jaxpr)

    many = pipeline(*[dce] * 20, COS, *[dce] * 11)
    culprit = bisect(inline | many, PROGRAM, has_sin)
    assert culprit is not None
    assert (culprit.record.name, culprit.position) == ("sin to cos", 21)
    assert looks <= 8
    assert "cos a" in str(culprit)
    assert bisect(inline | dce, PROGRAM, has_sin) is None
    with pytest.raises(BadArgument, match="before the first pass"):
        bisect(dce, inline(PROGRAM).unwrap(), lambda j: "jit" in names(j))
    with pytest.raises(TransformError, match="never works"):
        bisect(inline | FAILS, PROGRAM, has_sin)


def test_jit_takes_passes() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return jnp.sin(x) * 2.0

    assert jax.jit(f, passes=COS)(0.0) == 2.0
    assert jax.jit(f, passes=[COS, SIN])(0.0) == 0.0
    compiled = jax.jit(passes=COS)(f)
    assert names(compiled.trace(0.0).jaxpr.jaxpr) == ["cos", "mul"]
    assert names(compiled.lower(jax.ShapeDtypeStruct((), jnp.float32)).jaxpr) == ["cos", "mul"]
    assert jax.grad(compiled)(0.0) == 0.0


def test_jit_rejects_invalid_programs() -> None:
    ref = jax.new_ref(1.0)

    def f(x):  # type: ignore[no-untyped-def]
        ref[...] += x
        return jnp.sin(x)

    for broken, match in ((UNBOUND, "not well formed"), (DOUBLE, "types"), (FAILS, "never works")):
        with pytest.raises(TransformError, match=match):
            jax.jit(f, passes=broken)(1.0)
    with pytest.raises(BadArgument, match="not a pass"):
        jax.jit(f, passes=3)  # type: ignore[call-overload]
    assert ref[...] == 1.0


def test_a_pass_may_not_change_the_dtype_of_a_result() -> None:
    as_int = Pass(
        "int", lambda j: Success(j.replace(outs=[lit(1, jax.typeof(jnp.int32(1)))] * len(j.outs)))
    )
    with pytest.raises(Broken, match="results"):
        jax.jit(jnp.sin, passes=as_int)(1.0)
