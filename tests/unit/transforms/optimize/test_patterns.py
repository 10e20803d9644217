"""The language of rules: sequences, references, nested programs, types, costs and text."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
from returns.result import Failure

import effax
import effax.numpy as jnp
from effax import extend
from effax.ir import Jaxpr, parse, registry
from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.errors import BadArgument, IllTyped, ParseError
from effax.ir.indexing import Indexer, Pick
from effax.ir.primitive import Primitive
from effax.ir.types import array_type, ref_type
from effax.passes import Guarantee, Pass, as_pass, optimize
from effax.testing import check_pass, laws
from effax.testing.laws import LawBroken
from effax.transforms import (
    FLOATS,
    NUMBERS,
    AnyNumber,
    App,
    Body,
    Hole,
    IndexHole,
    Let,
    Match,
    Number,
    Param,
    Rest,
    RewriteRule,
    Seq,
    equation_count,
    match,
    parse_rule,
    rewriting,
    weighted,
)
from tests.counting import calls
from tests.golden.subjects import RULES

x, y, z, r, h = (Hole(name) for name in "xyzrh")
i, c, d = IndexHole("i"), AnyNumber("c"), AnyNumber("d")
F3 = array_type((3,), "float32")
STORE = Let("o", App(p.Swap, r, x, i))
LOOP = parse("""{ lambda ; a:f32[] b:f32[3] c:Ref{f32[]}. let
    d:f32[] = scan[
      jaxpr={ lambda a:f32[] b:Ref{f32[]}; c:f32[] d:f32[]. let
          e:f32[] = exp d
          f:f32[] = exp a
          g:f32[] <- b[...]
          h:f32[] = add e f
          i:f32[] = add c h
          j:f32[] = mul g i
        in (j,) }
      length=3 n_carry=1 n_consts=2 reverse=False unroll=1
    ] a c 0.0:f32[] b
  in (d,) }""")


def rule(left: App | Seq, right: object, **more: object) -> Callable[[], RewriteRule]:
    return lambda: RewriteRule("mine", left, right, **more)  # type: ignore[arg-type]  # refused


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (rule(Seq(), Seq()), BadArgument, "matches everything"),
        (lambda: App(Primitive, Rest("xs")), BadArgument, r"would match every equation"),
        (lambda: App(p.Binary, x, y), BadArgument, r"would match every(.|\n)*found: +Binary"),
        (rule(Seq(STORE), x), BadArgument, "is not a sequence"),
        (rule(App(p.Sin, x), Seq()), BadArgument, "does not say which result"),
        (rule(Seq(STORE), Seq(Let("v", "o"))), BadArgument, r"uses the result of a replaced"),
        (rule(Seq(STORE), Seq()), BadArgument, "loses an effect of the left side: write r"),
        (
            rule(Seq(App(p.Get, r, i), App(p.AddUpdate, r, x, i)), Seq(App(p.Get, r, i))),
            BadArgument,
            "loses an effect of the left side: accum r",
        ),
        (
            rule(Seq(Let("v", App(p.Freeze, r))), Seq(Let("v", App(p.Get, r, i)))),
            BadArgument,
            r"a hole that the left side lacks(.|\n)*found: +i",
        ),
        (
            rule(App(p.Freeze, r), Number(0)),
            BadArgument,
            "loses an effect of the left side: free r",
        ),
        (
            rule(Seq(Let("v", App(p.Get, r, i))), Seq(Let("v", App(p.Swap, r, Number(0), i)))),
            BadArgument,
            "has an effect that the left side lacks: write r",
        ),
        (
            rule(Seq(App(p.Swap, r, x, i), App(p.Swap, y, z, i)), Seq(App(p.Swap, y, z, i))),
            BadArgument,
            "shares nothing with later ones",
        ),
        (
            rule(App(p.Lt, x, y), x, families=FLOATS),
            IllTyped,
            r"another type(.|\n)*expected: bool(.|\n)*: x",
        ),
        (rule(App(p.Sin, x), App(p.Lt, x, x)), IllTyped, "another type"),
        (lambda: App(p.Neg, x, params={"axis": 0}), BadArgument, "no parameter"),
        (lambda: App(p.Transpose, x, params={"axes": 0}), BadArgument, r"no parameter `axes`"),
        (
            rule(App(p.Transpose, x), App(p.Transpose, x, params={"permutation": Param("p")})),
            BadArgument,
            "has a parameter that the left side lacks",
        ),
        (
            rule(App(p.Jit, Rest("xs")), App(p.Jit, Rest("xs"), bodies=[Body(outs=[Number(0)])])),
            BadArgument,
            "changes a subjaxpr of no matched equation",
        ),
        (lambda: App(p.Sin, Rest("xs"), i), BadArgument, "is not a pattern"),
        (lambda: App(p.Sin, i), BadArgument, "sin has no index"),
        (lambda: App(p.Scan, x, effects={"raed"}), BadArgument, r"unknown kind(.|\n)*`read`"),
        (lambda: Hole("x", "f33[2]"), BadArgument, r"the type of a hole(.|\n)*found: +'f33\[2\]'"),
        (lambda: Hole("x", "float[1.5]"), BadArgument, "the type of a hole"),
        (lambda: Hole("nan"), BadArgument, "the name of a number"),
        (lambda: Seq(x), BadArgument, "a step of a sequence"),  # type: ignore[arg-type]
        (lambda: rewriting([], cost=3), BadArgument, "not a function"),  # type: ignore[arg-type]
        (lambda: weighted({p.Sin: -1}), BadArgument, "weights of equations"),
        (lambda: match(x, LOOP), BadArgument, "match takes a pattern"),  # type: ignore[arg-type]
        (lambda: match(LOOP, App(p.Sin, x)), BadArgument, "the pattern comes first"),  # type: ignore[arg-type]
        (
            lambda: parse_rule("'a' for any: sine(x) => x"),
            ParseError,
            r"no primitive is called sine",
        ),
        (lambda: parse_rule("'a' for any: sin(x) = x"), ParseError, r"expected: `=>`"),
        (lambda: parse_rule("'a' for any: sin(x) => @f"), ParseError, "names a Python object"),
        (lambda: parse_rule("'a' for any: add(x) => x"), ParseError, "wrong number of arguments"),
    ],
)
def test_invalid_rules_are_rejected(
    make: Callable[[], object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make()


@pytest.mark.parametrize(
    "text",
    [
        *map(str, RULES.values()),
        "'instance' for any: transpose[permutation=(1, 0)](x) => x",
        "'conditions' for float|int: scan&loop!{}(*xs):f32[...]{(a, *b) -> (c) has HAS} => RIGHT",
        "'number' for any: mul(x, -0.0) => mul(x, True)",
        "'partial' for any: scan[..., length=3](x, *xs) => x where @f",
    ],
)
def test_text_of_a_rule_is_read_back(text: str) -> None:
    def f(found: Match) -> bool:
        return True

    text = text.replace("HAS", "exp&e(x:Ref{_[n]}) of x")
    text = text.replace("=> RIGHT", "=> scan&loop(*xs){with e := c}")
    made = parse_rule(text, references={"f": f})
    assert str(made) == text
    assert parse_rule(str(made), references=made.references) == made
    assert hash(pickle.loads(pickle.dumps(made.left))) == hash(made.left)


@dataclass(frozen=True, slots=True)
class Doubled(extend.Elementwise):
    name: ClassVar[str] = "doubled"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: object) -> object:  # type: ignore[override]  # of arrays
        return x + x  # type: ignore[operator]

    def derivatives(self, x: object) -> object:  # type: ignore[override]
        return 2.0


def test_user_defined_primitives_are_in_rules() -> None:
    own = RewriteRule("x + x", App(p.Add, x, x), App(Doubled, x), FLOATS)
    assert parse_rule(str(own), registry(Doubled)) == own
    assert "doubled a" in str(
        rewriting([own])(parse("{ lambda ; a:f32[]. let b:f32[] = add a a in (b,) }")).unwrap()
    )


def test_matches_have_their_path_and_positions() -> None:
    exponentials = match(App(p.Exp, x), LOOP)
    assert [(str(m.path), m.positions, str(m.atoms["x"])) for m in exponentials] == [
        ("0:scan.body", (0,), "d"),
        ("0:scan.body", (1,), "a"),
    ]
    (found,) = match(App(p.Mul, App(p.Get, r, i), App(p.Add, y, z)), LOOP)
    assert found.positions == (2, 4, 5) and found.jaxpr is LOOP.eqns[0].prim.subjaxprs()[0]
    (outer,) = match(
        App(p.Scan, x, Rest("xs"), name="loop", bodies=[Body(ins=[x, Rest("rest")])]), LOOP
    )
    assert outer.path == () and len(outer.rests["xs"]) == 3 and len(outer.rests["rest"]) == 3
    assert str(outer.prims["loop"].name) == "scan"
    assert not match(App(p.Exp, Hole("x", "float[n]")), LOOP)
    assert len(match(App(p.Scan, Rest("xs"), effects={"read"}), LOOP)) == 1
    assert not match(App(p.Scan, Rest("xs"), effects=()), LOOP)
    inside = Body(contains=[App(p.Exp, x)], invariant=["x"])
    (hoistable,) = match(App(p.Scan, Rest("xs"), bodies=[inside]), LOOP)
    assert hoistable.atoms["x"] == LOOP.binders[0]


def test_equal_variables_of_two_programs_are_two() -> None:
    # Both are variable 0; the inner one is a carry.
    program = parse("""{ lambda ; a:f32[]. let
        b:f32[] = scan[
          jaxpr={ lambda ; a:f32[]. let b:f32[] = exp a in (b,) }
          length=3 n_carry=1 n_consts=0 reverse=False unroll=1
        ] a
      in (b,) }""")
    inside = Body(contains=[App(p.Exp, x)])
    assert not match(App(p.Scan, x, bodies=[inside]), program)
    assert len(match(App(p.Scan, y, bodies=[inside]), program)) == 1


def test_values_of_literals_are_read() -> None:
    program = parse("{ lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }")
    (found,) = match(App(p.Mul, x, c), program)
    assert found.value("c") == 3.0
    with pytest.raises(BadArgument, match="`x` is not a literal"):
        found.value("x")


@pytest.mark.parametrize(
    "name", ["distribute", "constants", "square_matrix", "forward", "overwrite", "restore", "twice"]
)
def test_rules_of_each_kind_are_sound(name: str) -> None:
    laws.rule_is_sound(RULES[name])


WRONG = [
    parse_rule(
        "'stale' for any: o = swap(r, x, [i]); v = get(r, [i]); => o = swap(r, x, [i]); v = o;"
    ),
    parse_rule("'dropped' for any: swap(r, x, [i]); swap(r, y, [i]); => swap(r, x, [i]);"),
    parse_rule(
        "'once' for int: addupdate(r, x, [i]); addupdate(r, y, [i]); => addupdate(r, x, [i]);"
    ),
    parse_rule(
        "'dropped' for any: o = swap(r, x, [~i]); v = get(r, [~i]); => o = swap(r, x, [~i]); v = x;"
    ),
    parse_rule("'swapped' for int: sub(sub(x, $c), $d) => sub(x, sub($c, $d))"),
    parse_rule("'square' for float: sub(x:float[n,n], x) => 0"),
    RewriteRule(
        "sum",
        App(p.Jit, Rest("xs"), bodies=[Body(outs=[App(p.Sub, x, y)])]),
        App(p.Sub, y, x),
        samples=(
            parse("""{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = jit[name=f jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = sub a b in (c,) }] a b
  in (c,) }"""),
        ),
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.name)
def test_a_wrong_rule_of_each_kind_is_refused(wrong: RewriteRule) -> None:
    with pytest.raises(LawBroken, match="the left side is"):
        laws.rule_is_sound(wrong)


@pytest.mark.slow
def test_programs_keep_their_meaning_under_rules_of_all_kinds() -> None:
    names = [
        "forward",
        "overwrite",
        "restore",
        "hoist",
        "load_out",
        "inline",
        "constants",
        "double",
    ]
    several = Pass("several", rewriting([RULES[name] for name in names]), (Guarantee.SAME_MEANING,))
    check_pass(several, examples=25, seed=1, focus=["refs.swap", "refs.get", "scan", "jit"])


@pytest.mark.slow
def test_a_cost_never_increases() -> None:
    both = [RULES["distribute"], RULES["factor"], RULES["constants"], RULES["sine_and_cosine"]]
    cheaper = rewriting(both, cost=equation_count)

    @as_pass(laws=(Guarantee.NEVER_LARGER, Guarantee.SAME_MEANING))
    def by_cost(jaxpr: Jaxpr) -> Jaxpr:
        return cheaper(jaxpr).unwrap()

    check_pass(by_cost, examples=12, focus=[p.Add, p.Mul])
    assert cheaper == rewriting(both, cost=equation_count) != rewriting(both)
    assert pickle.loads(pickle.dumps(cheaper)) == cheaper
    failing = rewriting(both, cost=lambda jaxpr: "dear")  # type: ignore[arg-type]
    result = failing(LOOP)
    assert isinstance(result, Failure) and "does not return a number" in result.failure().what


def test_rules_that_undo_each_other_end() -> None:
    program = parse("""{ lambda ; a:i32[] b:i32[]. let
        c:i32[] = mul a b; d:i32[] = mul a a; e:i32[] = add c d in (e,) }""")
    both = [RULES["distribute"], RULES["factor"]]
    made = rewriting(both)(program).unwrap()
    assert len(made.eqns) < 60
    weights = weighted({p.Mul: 5})
    assert weights(rewriting(both, weights)(program).unwrap()) == 6


def accesses(n: int) -> Jaxpr:
    """A program of many loads, stores and accumulations on few references."""
    b = Builder([ref_type(F3), ref_type(F3), array_type((), "float32")])
    one, two, v = b.binders
    place = p.Get(Indexer((Pick(1),)))
    for _ in range(n):
        for ref in (one, two):
            b.emit(p.Swap(place.indexer), [ref, v])
            v = b(p.Add(), b(place, ref), b(p.Exp(), b(p.Mul(), v, lit(2, v.type))))
    return b.finish([v])


@pytest.mark.slow
def test_the_work_of_sequences_is_linear() -> None:
    names = ["forward", "overwrite", "accumulate", "sine_and_cosine", "hoist"]
    apply = rewriting([RULES[name] for name in names])
    small, large = accesses(10), accesses(80)
    apply(small)
    assert calls(lambda: apply(large)) < 9 * calls(lambda: apply(small))
    assert len(apply(large).unwrap().eqns) < len(large.eqns)
    pattern = Seq(STORE, App(p.Get, r, i))
    assert calls(lambda: match(pattern, large)) < 9 * calls(lambda: match(pattern, small))
    assert len(match(pattern, small)) == 20
    cheaper = rewriting([RULES["forward"], RULES["double"]], cost=equation_count)
    assert calls(lambda: cheaper(large)) < 10 * calls(lambda: cheaper(small))


def test_a_store_is_not_forwarded_over_a_loop_that_writes() -> None:
    text = """{ lambda ; a:Ref{f32[]} b:f32[]. let
        a[...] <- b
        scan[
          jaxpr={ lambda a:Ref{f32[]}; . let b:f32[] <- a[...]; c:f32[] = KIND b; USE in () }
          length=2 n_carry=0 n_consts=1 reverse=False unroll=1
        ] a
        d:f32[] <- a[...]
      in (d,) }"""
    written = parse(text.replace("KIND", "sin").replace("USE", "a[...] <- c"))
    read = parse(text.replace("KIND", "sin").replace("USE", "d:f32[] = neg c"))
    forward = rewriting([RULES["forward"]])
    assert forward(written).unwrap() is written
    assert forward(read).unwrap().outs == read.binders[1:]


def test_rules_are_passes_of_jit() -> None:
    memory = Pass("memory", rewriting([RULES["forward"], RULES["accumulate"], RULES["hoist"]]))
    ref = effax.new_ref(jnp.zeros(3))

    def step(x: effax.Array) -> effax.Array:
        ref[0] = ref[0] + x
        return effax.lax.fori_loop(0, 3, lambda _, c: c * jnp.exp(x), x) + ref[0]

    fast = effax.jit(step, passes=memory)
    assert {"addupdate", "exp"} <= {eqn.prim.name for eqn in fast.trace(1.0).jaxpr.eqns}
    one = jnp.ones(())
    assert fast(one) == pytest.approx(math.exp(3) + 1) and ref[0] == 1
    assert step(one) == pytest.approx(math.exp(3) + 2) and ref[0] == 2


@pytest.mark.parametrize("right", [(1, 0), (0, 1)])
def test_a_rule_that_only_reorders_steps_is_rejected(right: tuple[int, ...]) -> None:
    steps = App(p.Swap, r, x, i), App(p.Swap, r, y, IndexHole("j"))
    with pytest.raises(BadArgument, match="rule swap only reorders the steps of the left side"):
        RewriteRule("swap", Seq(*steps), Seq(*[steps[k] for k in right]), NUMBERS)


def test_functions_return_sequences_too() -> None:
    def right(found: Match) -> Seq:
        assert found.indices["i"].indexer.dims == ()
        return Seq(STORE, Let("v", x))

    forward = RewriteRule("mine", Seq(STORE, Let("v", App(p.Get, r, i))), right)
    program = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let a[...] <- b; d:f32[] <- a[...] in (d,) }")
    assert rewriting([forward])(program).unwrap().outs == program.binders[1:]
    laws.rule_is_sound(RewriteRule("r", App(p.Neg, App(p.Neg, x)), x, NUMBERS))


@pytest.mark.slow
def test_patterns_of_one_rule_are_found_by_class_only() -> None:
    program = accesses(50)
    unrelated = rewriting([RULES["cumsum"], RULES["square_matrix"], RULES["sine_and_cosine"]])
    related = rewriting([RULES["forward"]])
    assert calls(lambda: unrelated(program)) < calls(lambda: related(program))
    assert optimize(program).unwrap() != program
