"""Wrong arguments are reported as such: no law, pass or rule is blamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyrsistent import PMap

from effax import testing
from effax.ir.errors import BadArgument
from effax.ir.prims import Add, Mul, Sin
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.passes import AnyPass, cse, dce
from effax.testing import (
    NUMERIC,
    About,
    Features,
    LawBroken,
    Passes,
    check_law,
    check_laws,
    check_pass,
    law,
    laws,
)
from effax.transforms.optimize.rewrite import FLOATS, App, Hole, Number, RewriteRule
from effax.transforms.rules.default import DEFAULT_RULES

SINE = parse("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }")
RULE = RewriteRule("x + x", App(Add, Hole("x"), Hole("x")), App(Mul, Number(2), Hole("x")), FLOATS)


@pytest.mark.parametrize("verdict", [False, True, 0, "no"])
def test_a_law_raises_and_returns_no_verdict(verdict: object) -> None:
    @law
    def mine(jaxpr: Jaxpr) -> Any:
        return verdict

    says = r"mine returns a result(.|\n)*raises where it does not hold(.|\n)*`assert`"
    for tried in (lambda: mine(SINE), lambda: check_law(mine, examples=2)):
        with pytest.raises(BadArgument, match=says):
            tried()


def test_a_law_that_yields_was_never_run() -> None:
    @law
    def mine(jaxpr: Jaxpr) -> Any:
        assert not jaxpr.eqns
        yield

    with pytest.raises(BadArgument, match="returns a result"):
        check_law(mine, examples=1)


@law
def wants_all(
    jaxpr: Jaxpr, seed: int, passes: Passes, step: AnyPass, primitives: PMap[Any, Any]
) -> None:
    """There is no equation."""
    assert passes == Passes()
    assert step is dce
    assert primitives["sin"] is Sin
    assert not jaxpr.eqns, "an equation"


@law
def may_take_all(
    jaxpr: Jaxpr,
    passes: Passes | None = None,
    primitives: PMap[Any, Any] | None = None,
    step: AnyPass = dce,
) -> None:
    """There is no equation."""
    assert not jaxpr.eqns, "an equation"


@pytest.mark.slow
def test_what_a_law_takes_is_given_with_a_default_or_without() -> None:
    with pytest.raises(LawBroken) as caught:
        check_law(wants_all, step=dce, examples=20)
    text = str(caught.value)
    assert "an equation" in text
    assert "seed=0, passes=Passes(), step=dce, primitives=registry()" in " ".join(text.split())
    source = text.partition("As a test:\n\n")[2]
    # A law of a test file is not imported: the test belongs beside it.
    scope: dict[str, Any] = {"wants_all": wants_all}
    exec(source, scope)
    with pytest.raises(LawBroken, match="an equation"):
        scope["test_wants_all"]()
    with pytest.raises(LawBroken) as caught:
        check_law(may_take_all, examples=20)
    assert "    may_take_all(jaxpr)" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"floats": ()}, r"`floats` of features must not be empty(.|\n)*`floats` and `ints`"),
        ({"ints": ()}, r"`ints` of features must not be empty"),
        ({"ints": ("uint8",)}, r"positions are counted in(.|\n)*at least 32 bits"),
        ({"floats": ("int32",)}, r"`floats` of features are not all of the kind float"),
        ({"complexes": ("float32",)}, r"`complexes` of features are not all"),
        ({"floats": (None,)}, r"`floats` of features are no dtypes"),
        ({"control": "scan"}, r"`control` of features is no sequence"),
        ({"depth": -1}, r"`depth` of features(.|\n)*at least 0"),
        ({"steps": 0}, r"`steps` of features(.|\n)*at least 1"),
    ],
)
def test_features_that_no_program_has_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        replace(NUMERIC, **fields)


def test_features_take_names_and_lack_what_they_may() -> None:
    named = Features(floats="float32", complexes=(), control=[])  # type: ignore[arg-type]  # names
    assert named == Features(Features(floats=("float32",)).floats, (), control=())  # type: ignore[arg-type]  # names
    assert check_law("check_accepts", features=named, examples=3).programs


@law
def has_no_names(jaxpr: Jaxpr) -> None:
    """f is a program."""


untyped: Any = testing
"""What follows is no use of it that types check."""

WRONG: list[tuple[Any, str]] = [
    (lambda: untyped.check_laws(dce), r"found: +Pass\(name='dce'(.|\n)*check_pass\(\.\.\.\)"),
    (lambda: untyped.check_laws(may_take_all), r"`check_law\(law\)`"),
    (lambda: untyped.check_laws([may_take_all]), r"check_laws\(only=\[\.\.\.\]\)"),
    (lambda: untyped.check_laws(DEFAULT_RULES), r"`Passes\(rules=\.\.\.\)`"),
    (lambda: untyped.check_laws(lambda jaxpr: jaxpr), r"dataclasses\.replace\(Passes\(\)"),
    (
        lambda: untyped.check_law("jvp_is_linear", dce),
        r"a `Passes`(.|\n)*check_law\(law, step=\.\.\.\)",
    ),
    (lambda: untyped.check_law(has_no_names, step=dce), r"has_no_names does not take `step`"),
    (lambda: untyped.check_law(has_no_names, Passes()), r"has_no_names does not take `passes`"),
    (lambda: untyped.check_laws(Passes(), only=has_no_names), r"does not take `passes`"),
    (lambda: untyped.check_law(has_no_names, features={}), r"is said by a `Features`"),
    (lambda: untyped.check_pass(dce, features={}), r"is said by a `Features`"),
    (lambda: untyped.law(features=3), r"is said by a `Features`"),
    (lambda: untyped.law(about="programs"), r"did you mean `About\.PROGRAMS`\?"),
    (lambda: untyped.law(about=SINE), r"the subject of a law is unknown"),
    (lambda: untyped.law(3), r"a law is declared by a function"),
    (lambda: untyped.law(has_no_names), r"it is already a law"),
    (
        lambda: untyped.laws.rule_is_sound([RULE]),
        r"`rule` of the law rule_is_sound(.|\n)*one at a time",
    ),
    (lambda: untyped.laws.rule_is_sound(dce), r"an instance of `RewriteRule`(.|\n)*found: +Pass"),
    (lambda: untyped.laws.jvp_is_linear(dce), r"`jaxpr` of the law jvp_is_linear(.|\n)*check_pass"),
    (lambda: untyped.laws.jvp_is_linear(dce(SINE)), r"`unwrap\(\.\.\.\)` returns the program"),
    (lambda: untyped.laws.jvp_is_linear(SINE, "0"), r"`seed` of the law"),
    (lambda: untyped.laws.observationally_equal(SINE, dce(SINE), 0), r"`unwrap\(\.\.\.\)` returns"),
    (
        lambda: untyped.laws.pass_is_a_function(SINE, lambda x: x),
        r"`step` of the law(.|\n)*a `Pass`",
    ),
    (lambda: untyped.laws.transpose_is_adjoint(SINE, 3), r"a mask: for each input whether"),
    (lambda: untyped.check_pass(dce, programs=3), r"a pass takes a program"),
    (lambda: untyped.check_law(has_no_names, focus={}), r"programs cannot be full of this"),
    (lambda: untyped.check_pass(dce, focus=3), r"programs cannot be full of this"),
    (
        lambda: untyped.check_law("transpose_is_adjoint", focus=Sin),
        r"about linear programs(.|\n)*contract\.dot",
    ),
]


@pytest.mark.parametrize(("call", "says"), WRONG, ids=[says[:40] for _, says in WRONG])
def test_a_wrong_argument_is_reported(call: Any, says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        call()


@pytest.mark.parametrize("only", ["has_none", laws.check_accepts, "check_accepts"])
def test_one_law_stands_for_a_list_of_one(only: Any) -> None:
    if only == "has_none":
        with pytest.raises(BadArgument, match="unknown law"):
            check_laws(only=only)
        return
    (tried,) = check_laws(only=only, examples=2)
    assert tried.law == "check_accepts"


@pytest.mark.slow
def test_one_program_stands_for_a_list_of_one() -> None:
    assert check_pass(cse | dce, programs=SINE, examples=3).programs >= 3


@pytest.mark.parametrize("about", [About.PROGRAMS, About.REDUNDANT, About.PAIRS, About.OPEN])
def test_laws_take_patterns_and_lists_as_passes_do(about: About) -> None:
    if about.count == 1:

        @law(about=about, features=NUMERIC)
        def one(jaxpr: Jaxpr) -> None:
            """f is a program."""

        made: Any = one
    else:

        @law(about=about, features=NUMERIC)
        def two(first: Jaxpr, second: object) -> None:
            """f is a program."""

        made = two
    tried = check_law(made, focus=[Sin, RULE, "scan"], examples=12)
    seen = dict(tried.primitives)
    assert seen["sin"] > 9 and seen["add"] > 9 and seen["scan"] > 4


@pytest.mark.parametrize(
    "check", [lambda x: check_law(has_no_names, focus=x), lambda x: check_pass(dce, focus=x)]
)
@pytest.mark.parametrize("focus", ["swap", "refs.swp", "swp"])
def test_similar_names_are_reported_first(check: Any, focus: Any) -> None:
    with pytest.raises(BadArgument) as caught:
        check(focus)
    first, rest = str(caught.value.remedy).split("\n")
    assert first == "did you mean refs.swap?"
    assert "refs.swap" in rest and "arith.mul" in rest
    assert "arith.mul" not in str(caught.value).partition("did you mean")[0]
