"""The language of rewrite rules: what matches, what is refused, and what it costs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from returns.result import Failure

from effax.ir import prims as p
from effax.ir.build import Builder, lit, typing_of
from effax.ir.errors import BadArgument, EffaxError, TransformError
from effax.ir.primitive import Primitive
from effax.ir.prims import Reshape, Transpose
from effax.ir.syntax import Jaxpr, Lit
from effax.ir.text.parser import parse
from effax.ir.types import array_type
from effax.testing import Inconclusive, laws
from effax.testing.generate.special_values import all_together, identical
from effax.testing.laws import LawBroken
from effax.testing.laws import rules as laws_of_rules
from effax.transforms.optimize.rewrite import (
    ANY,
    BOOL,
    FLOATS,
    INTEGERS,
    REALS,
    App,
    Hole,
    Match,
    Number,
    Pattern,
    RewriteRule,
    Sample,
    equation_count,
    rewriting,
)
from effax.transforms.optimize.simplify import RULES, simplify
from tests.counting import calls

x, y, z = Hole("x"), Hole("y"), Hole("z")
F3 = array_type((3,), "float32")


def after(rule: RewriteRule, text: str) -> str:
    """The text of the program, after the rule."""
    return str(rewriting([rule])(parse(text)).unwrap())


def one(prim: str, operands: str, type_: str = "f32[]") -> str:
    return f"{{ lambda ; a:{type_} b:{type_}. let c:{type_} = {prim} {operands} in (c,) }}"


COMMUTING = [
    kind
    for kind in vars(p).values()
    if isinstance(kind, type) and issubclass(kind, Primitive) and kind.commutes
]


def test_commutative_primitives() -> None:
    assert {kind.name for kind in COMMUTING} == {
        *("add", "mul", "max", "min", "and", "or", "xor", "eq", "ne")
    }


@pytest.mark.parametrize("kind", COMMUTING, ids=lambda kind: kind.name)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float32", "float64"])
def test_commutative_primitives_are_exact(kind: type[Primitive], dtype: str) -> None:
    type_ = array_type((), dtype)
    try:
        typing_of(kind(), (type_, type_))
    except EffaxError:
        return
    u, v = all_together([type_.dtype] * 2)
    with np.errstate(all="ignore"):
        first, second = kind().evaluate(u, v)[0], kind().evaluate(v, u)[0]
    assert identical(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize("operands", ["a 0:i32[]", "0:i32[] a"])
def test_operands_match_in_both_orders_where_they_commute(operands: str) -> None:
    zero = RewriteRule("x + 0 = x", App(p.Add, x, Number(0)), x, INTEGERS)
    made = rewriting([zero])(parse(one("add", operands, "i32[]"))).unwrap()
    assert not made.eqns and made.outs == made.binders[:1]


def test_operands_of_what_does_not_commute_match_as_they_are_written() -> None:
    zero = RewriteRule("x - 0 = x", App(p.Sub, x, Number(0)), x, INTEGERS)
    program = parse(one("sub", "0:i32[] a", "i32[]"))
    assert rewriting([zero])(program).unwrap() is program


def test_nested_commutative_patterns_match() -> None:
    # x·y + x·z = x·(y + z), however the products are written; here only where it is found.
    found: list[tuple[str, str, str]] = []

    def note(match: Match) -> bool:
        found.append(tuple(str(match.atoms[n]) for n in "xyz"))  # type: ignore[arg-type]
        return False

    rule = RewriteRule("found", App(p.Add, App(p.Mul, x, y), App(p.Mul, x, z)), x, FLOATS, note)
    text = """{ lambda ; a:f32[] b:f32[] c:f32[]. let
        d:f32[] = mul b a; e:f32[] = mul a c; f:f32[] = add d e in (f,) }"""
    rewriting([rule])(parse(text)).unwrap()
    assert set(found) == {("a", "b", "c"), ("a", "c", "b")}


def test_a_rule_that_swaps_operands_terminates() -> None:
    last = RewriteRule("2 + x = x + 2", App(p.Add, Number(2), x), App(p.Add, x, Number(2)), FLOATS)
    assert "add a 2.0:f32[]" in after(last, one("add", "2.0:f32[] a"))
    program = parse(one("add", "a 2.0:f32[]"))
    assert rewriting([last])(program).unwrap() is program
    turned = RewriteRule("x + y = y + x", App(p.Add, x, y), App(p.Add, y, x), FLOATS)
    made = rewriting([turned])(parse(one("add", "a b"))).unwrap()
    assert len(made.eqns) == 1


@pytest.mark.parametrize(
    ("number", "literal", "matches"),
    [
        (0, "0:i32[]", True),
        (0.0, "0:i32[]", True),
        (0.5, "0:i32[]", False),
        (2, "1:i32[]", False),
        (300, "44:i8[]", False),
        (1, "True:bool[]", True),
        (2, "True:bool[]", False),
        (0.0, "-0.0:f32[]", False),
        (-0.0, "-0.0:f32[]", True),
        (1j, "0.0:f32[]", False),
    ],
)
def test_numbers_match_only_if_representable(number: Any, literal: str, matches: bool) -> None:
    type_ = literal.split(":")[1]
    name = "or" if type_ == "bool[]" else "add"
    prim = p.Or if name == "or" else p.Add
    rule = RewriteRule("found", App(prim, x, Number(number)), x, ANY)
    program = parse(one(name, f"a {literal}", type_))
    assert (rewriting([rule])(program).unwrap() != program) == matches


def test_a_number_that_a_dtype_lacks_is_not_written() -> None:
    halved = RewriteRule(
        "x / 2 = x · 0.5", App(p.Div, x, Number(2)), App(p.Mul, x, Number(0.5)), REALS
    )
    assert "mul a 0.5:f32[]" in after(halved, one("div", "a 2.0:f32[]"))
    assert "div a 2:i32[]" in after(halved, one("div", "a 2:i32[]", "i32[]"))


def test_a_number_comes_in_the_place_of_arrays_too() -> None:
    zero = RewriteRule("x - x = 0", App(p.Sub, x, x), Number(0), INTEGERS)
    assert "broadcast_in_dim" in after(zero, one("sub", "a a", "i32[3]"))
    laws.rule_is_sound(zero)


def rule(**changes: Any) -> Callable[[], RewriteRule]:
    given: dict[str, Any] = {"left": App(p.Neg, App(p.Neg, x)), "right": x, "families": FLOATS}
    return lambda: RewriteRule("mine", **{**given, **changes})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (rule(left=x), r"left side of the rule mine is not an application"),
        (rule(right=Hole("y")), r"has a hole that the left side lacks(.|\n)*x(.|\n)*found: +y"),
        (
            rule(left=App(p.Neg, App(p.Neg, Hole("value"))), right=Hole("valu")),
            r"did you mean `value`\?",
        ),
        (rule(right=0.0), r"right side of the rule mine is not a pattern(.|\n)*`Number\(0\.0\)`"),
        (rule(right=App(Transpose, x)), r"without its parameters(.|\n)*`Transpose\(\.\.\.\)`"),
        (rule(families=frozenset()), "has no family"),
        (rule(families="float"), r"has no family(.|\n)*frozenset\(\{'float'\}\)"),
        (rule(families=None), "has no family"),
        (rule(families={"flaot"}), r"unknown family(.|\n)*found: +flaot(.|\n)*`float`"),
        (rule(where=True), "condition of the rule mine is not a function"),
        (
            rule(left=App(p.Neg, App(p.Neg, x, name="inner"), name="inner")),
            r"a duplicate name(.|\n)*inner",
        ),
        (rule(left=App(p.Neg, x, name="x")), "a duplicate name"),
        (rule(samples=(3,)), "invalid sample"),
        (rule(samples=(Sample(App(Transpose, x), (2, 2)),)), "without its parameters"),
        (rule(samples=(Sample(App(p.Neg, x), (2,), "flaot32"),)), "sample of an unknown dtype"),
        (lambda: App(p.Add, x), r"wrong number of arguments(.|\n)*expected: 2(.|\n)*found: +1"),
        (lambda: App(p.Neg, x, y), "wrong number of arguments"),
        (lambda: App(p.Add, x, 0), r"is not a pattern(.|\n)*`Number\(0\)`"),  # type: ignore[arg-type]
        (lambda: App("add", x, y), "must be a primitive"),  # type: ignore[arg-type]
        (lambda: Hole(""), "a hole needs a name"),
        (lambda: Number(np.zeros(2)), "must be a Python number"),  # type: ignore[arg-type]
        (lambda: Number(float("nan")), "nan matches no literal"),
        (lambda: rewriting(rule()()), r"takes rules(.|\n)*\[rule\]"),  # type: ignore[arg-type]
        (lambda: rewriting([3]), "takes rules"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_rule_is_refused_where_it_is_made(make: Callable[[], object], says: str) -> None:
    with pytest.raises(BadArgument, match=says):
        make()


def test_a_left_side_of_too_many_orders_is_refused() -> None:
    left: Pattern = x
    for i in range(9):
        left = App(p.Add, left, Hole(f"h{i}"))
    with pytest.raises(BadArgument, match=r"too many orders(.|\n)*at most 8"):
        RewriteRule("long", left, x, FLOATS)  # type: ignore[arg-type]


def failing(right: Any, where: Any = None) -> TransformError:
    left = App(Reshape, App(Reshape, x, name="inner"), name="outer")
    program = parse("""{ lambda ; a:f32[6]. let
        b:f32[2,3] = reshape[new_sizes=(2, 3)] a; c:f32[3,2] = reshape[new_sizes=(3, 2)] b
        in (c,) }""")
    result = rewriting([RewriteRule("mine", left, right, FLOATS, where)])(program)
    assert isinstance(result, Failure)
    error: TransformError = result.failure()
    return error


def test_functions_of_rules_that_fail_are_named() -> None:
    error = failing(x, lambda match: match.prims["iner"])
    assert "condition of the rule mine raises BadArgument" in error.what
    assert "did you mean `inner`?" in str(error.__cause__)
    error = failing(lambda match: 1 / 0)
    assert "right side of the rule mine raises ZeroDivisionError" in error.what
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "does not return a pattern" in failing(lambda match: None).what
    assert "has a hole that the left side lacks" in failing(lambda m: App(p.Neg, y)).what


WRONG = [
    RewriteRule("x · y = max(x, y)", App(p.Mul, x, y), App(p.Max, x, y), FLOATS),
    RewriteRule("x + y = y + x + 0", App(p.Add, x, Number(0)), x, FLOATS),
    RewriteRule("max(x, y) = x", App(p.Max, x, y), x, FLOATS),
    RewriteRule("x ∨ y = y", App(p.Or, x, y), y, BOOL),
]


@pytest.mark.parametrize("wrong", WRONG, ids=attrgetter("name"))
def test_a_wrong_rule_is_reported_at_one_place(wrong: RewriteRule) -> None:
    with pytest.raises(LawBroken, match=r"on np\.array(.|\n)*the left side is"):
        laws.rule_is_sound(wrong)


@pytest.mark.parametrize(
    ("untried", "says"),
    [
        (
            RewriteRule("never", App(p.Neg, App(p.Neg, x)), x, FLOATS, lambda m: False),
            "does not apply(.|\n)*the condition does not hold",
        ),
        (
            RewriteRule("no sample", App(Transpose, x), x, FLOATS),
            "without its parameters(.|\n)*to the samples",
        ),
        (RewriteRule("of floats", App(p.And, x, x), x, FLOATS), "does not apply"),
        (RewriteRule("half", App(p.Mul, x, Number(0.5)), x, INTEGERS), "does not apply"),
    ],
    ids=lambda x: x.name if isinstance(x, RewriteRule) else "",
)
def test_a_rule_that_was_not_tried_is_not_true(untried: RewriteRule, says: str) -> None:
    with pytest.raises(Inconclusive, match=says):
        laws.rule_is_sound(untried)


def test_a_rule_whose_right_side_does_not_fit_is_false() -> None:
    rule = RewriteRule("not here", App(p.Mul, x, Number(2)), Number(0.5), INTEGERS)
    with pytest.raises(LawBroken, match=r"does not apply(.|\n)*the right side does not fit"):
        laws.rule_is_sound(rule)


FALSE = [
    RewriteRule("¬(x < y) = x ≥ y", App(p.Not, App(p.Lt, x, y)), App(p.Ge, x, y), BOOL),
    RewriteRule("x is not finite = false", App(p.Not, App(p.IsFinite, x)), Number(False), BOOL),
    RewriteRule("p ? y : x = x", App(p.SelectN, Hole("p"), x, y), x, BOOL),
    RewriteRule("|x·x| = x·x", App(p.Abs, App(p.Mul, x, x)), App(p.Mul, x, x), INTEGERS),
    RewriteRule("x·x ≥ 0", App(p.Ge, App(p.Mul, x, x), Number(0)), Number(True), INTEGERS),
    RewriteRule("x·x > 0", App(p.Gt, App(p.Mul, x, x), Number(0)), App(p.Ne, x, Number(0)), FLOATS),
    RewriteRule("√(x·x) = |x|", App(p.Sqrt, App(p.Mul, x, x)), App(p.Abs, x), FLOATS),
]


@pytest.mark.parametrize("false", FALSE, ids=attrgetter("name"))
def test_rules_are_tried_in_every_dtype_and_where_squares_overflow(false: RewriteRule) -> None:
    with pytest.raises(LawBroken, match=r"on np\.array(.|\n)*the left side is"):
        laws.rule_is_sound(false)


def test_rules_are_tried_only_in_dtypes_that_type_check() -> None:
    def of_integers(match: Match) -> bool:
        return match.atoms["x"].type.dtype.kind == "i"

    unequal = App(p.Not, App(p.Ne, x, y))
    laws.rule_is_sound(RewriteRule("¬(x ≠ y) = (x = y)", unequal, App(p.Eq, x, y), BOOL))
    less = App(p.Not, App(p.Lt, x, y))
    laws.rule_is_sound(RewriteRule("¬(x < y) = x ≥ y", less, App(p.Ge, x, y), BOOL, of_integers))
    dtypes = [
        tuple(dtype.name for dtype in one.dtypes.values())
        for one in laws_of_rules.instances(RewriteRule("p", App(p.SelectN, x, y, y), y, BOOL))
    ]
    assert {first for first, _ in dtypes} == {"bool"} and len({*dtypes}) == 8


def test_passes_of_equal_rules_are_equal() -> None:
    first, second = (rewriting([FALSE[0]]) for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first


def chain(n: int) -> Jaxpr:
    """A program whose equations many rules look at, along and across."""
    b = Builder([F3, F3])
    u, v = b.binders
    for _ in range(n):
        u, v = b(p.Add(), u, b(p.Neg(), v)), u
        u = b(p.Mul(), b(p.Max(), u, v), lit(1, F3))
    return b.finish([u, v])


def test_the_work_of_rules_is_linear_in_the_program() -> None:
    small, large = chain(50), chain(400)
    simplify(small)
    assert calls(lambda: simplify(large)) < 8.8 * calls(lambda: simplify(small))
    assert len(simplify(large).unwrap().eqns) < len(large.eqns)


def test_each_rule_of_the_library_is_needed() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for each in RULES:
        others = [rule for rule in RULES if rule is not each]
        with pytest.raises(AssertionError, match="does not apply"):
            needed(each, others)


def needed(each: RewriteRule, others: list[RewriteRule]) -> None:
    """Raises AssertionError unless the other rules do what this one does."""
    for instance in laws_of_rules.instances(each):
        jaxpr = laws_of_rules.program_of(each, instance)
        made = rewriting(others)(jaxpr).unwrap()
        assert made != jaxpr, "does not apply"


def test_literals_are_atoms_of_a_match() -> None:
    seen: list[object] = []

    def square(match: Match) -> Pattern:
        seen.append(match.atoms["y"])
        return App(p.Neg, x)

    after(RewriteRule("mine", App(p.Mul, x, y), square, FLOATS), one("mul", "a 3.0:f32[]"))
    assert isinstance(seen[0], Lit) and seen[0].value == 3.0


GROWING = RewriteRule("sin x = sin -x", App(p.Sin, x), App(p.Sin, App(p.Neg, x)), FLOATS)


def test_a_rule_that_does_not_end_is_an_error() -> None:
    jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    says = str(rewriting([GROWING])(jaxpr).failure())
    assert f"rewriting does not end: the rule {GROWING.name}" in says and "at most 16" in says
    assert rewriting([GROWING], cost=equation_count)(jaxpr).unwrap() == jaxpr
