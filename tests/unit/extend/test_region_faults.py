"""Wrong regions, forgotten effects, and primitives that are not what their regions declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import ArgIndex, BadRule, IllTyped, Read, Region, Row, Type, Typing, Value
from effax.ir import Builder, Jaxpr, parse
from effax.ir.errors import RefError
from effax.ir.primitive import Primitive
from effax.testing import check_primitive
from tests.unit.extend.region_primitives import Choose, Repeat, Until
from tests.unit.extend.test_regions import F3, LINEAR, OTHER, STEP, B, F, R

jax: Any = effax

READS = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let c:f32[] <- a[...] d:f32[] = mul b c in (d,) }")


@dataclass(frozen=True, slots=True)
class Forgetful(Repeat):
    """A loop whose ``typing`` returns no effects."""

    def typing(self, *ins: Type) -> Typing:
        return Typing((ins[-1],))


@dataclass(frozen=True, slots=True)
class Undeclared(extend.FunctionPrimitive):
    """A call whose reads no region declares."""

    jaxpr: Jaxpr
    name: ClassVar[str] = "undeclared"

    def typing(self, *ins: Type) -> Typing:
        return Typing((ins[-1],))

    def function(self, *args: Any, **kwargs: Any) -> Sequence[Array]:
        return extend.eval_jaxpr(self.jaxpr, *args)

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)

    def with_subjaxprs(self, jaxprs: Sequence[Jaxpr]) -> Undeclared:
        return Undeclared(jaxprs[0])


@dataclass(frozen=True, slots=True)
class Hidden(Undeclared):
    """The same, with a program that passes do not see."""

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return ()


def test_effects_cannot_be_forgotten() -> None:
    r, x = effax.new_ref(jnp.float32(2.0)), jnp.float32(3.0)
    program = jax.make_jaxpr(lambda r, x: Forgetful(READS, 2).bind(r, x)[0])(r, x).jaxpr
    assert program.eqns[0].effects == Row([Read(ArgIndex(0))])
    assert jax.jit(lambda r, x: Forgetful(READS, 2).bind(r, x)[0])(r, x) == 12.0
    for prim in (Undeclared(READS), Hidden(READS)):
        for bound in (lambda p: p.bind(r, x), lambda p: jax.make_jaxpr(p.bind)(r, x)):
            with pytest.raises(BadRule, match=r"undeclared (runs|has) a \w+ with effects"):
                bound(prim)
    assert float(r[...]) == 2.0


@dataclass(frozen=True, slots=True)
class Free(extend.RegionPrimitive):
    """Regions as they are given."""

    body: Jaxpr
    args: tuple[int, ...] = (0, 1)
    results: tuple[int | None, ...] = (0,)
    carry_to: tuple[int | None, ...] = (1,)
    trip_count: int | None = 2
    repeats: bool = True
    name: ClassVar[str] = "free"

    def regions(self) -> tuple[Region, ...]:
        return (
            Region(
                self.body,
                self.args,
                self.results,
                self.carry_to,
                repeats=self.repeats,
                trip_count=self.trip_count,
                name="body",
            ),
        )


TWO = parse("{ lambda ; a:f32[] b:f32[]. let in (b, a) }")
WIDE = parse("{ lambda ; a:f32[3] b:f32[]. let in (a,) }")
ALIASES = parse("{ lambda ; a:Ref{f32[]} b:Ref{f32[]}. let in () }")
RETURNS = parse("{ lambda ; a:Ref{f32[]} b:f32[]. let in (a,) }")

WRONG: dict[str, tuple[Primitive, tuple[Type, ...], type[Exception], str]] = {
    "trip count": (Repeat(LINEAR, -1), (F, F), BadRule, "body has a negative trip count"),
    "carry type": (Repeat(WIDE, 2), (F3, F), IllTyped, "the carry of operand 1 changes its type"),
    "operand": (Repeat(LINEAR, 2), (F, F3), IllTyped, "operand 1 does not fit"),
    "few operands": (Repeat(LINEAR, 2), (F,), IllTyped, "takes more operands than there are"),
    "many operands": (Repeat(LINEAR, 2), (F, F, F), IllTyped, "wrong number of operands"),
    "a reference": (Repeat(LINEAR, 2), (R, F), IllTyped, "operand 0 does not fit"),
    "args": (Free(LINEAR, args=(0,)), (F, F), BadRule, "binds another number of operands"),
    "negative": (Free(LINEAR, args=(-1, 1)), (F, F), BadRule, "names a negative position"),
    "results": (Free(LINEAR, results=()), (F, F), BadRule, "has not one entry a result"),
    "aliasing": (
        Free(TWO, results=(0, 1), carry_to=(1, 1)),
        (F, F),
        BadRule,
        "carries two results to one operand",
    ),
    "foreign carry": (Free(LINEAR, carry_to=(2,)), (F, F, F), BadRule, "that it does not bind"),
    "gap": (Free(LINEAR, results=(1,)), (F, F), BadRule, "do not return all results"),
    "twice": (
        Free(TWO, results=(0, 0), carry_to=(0, 1)),
        (F, F),
        BadRule,
        "returns a result twice",
    ),
    "unknown runs": (
        Free(LINEAR, carry_to=(None,), trip_count=None),
        (F, F),
        BadRule,
        "unknown number of runs",
    ),
    "carries once": (Free(LINEAR, repeats=False), (F, F), BadRule, "runs once and has carries"),
    "carried reference": (Repeat(RETURNS, 2), (R, F), RefError, "result 0 is a reference"),
    "alias": (
        Free(ALIASES, args=(0, 0), results=(), carry_to=()),
        (R,),
        BadRule,
        "binds a reference twice",
    ),
    "predicate": (Until(LINEAR, LINEAR), (F, F), BadRule, "cond does not return a predicate"),
    "selector": (Choose((OTHER, STEP)), (F, R, F, F, F), IllTyped, "takes a scalar selector"),
    "branches": (Choose((STEP,) * 3), (B, R, F, F, F), IllTyped, "wrong number of branches"),
    "branch results": (Choose((LINEAR, TWO)), (B, F, F), BadRule, "does not return all results"),
    "branch types": (Choose((LINEAR, WIDE)), (B, F, F), IllTyped, "does not fit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_declarations_are_refused(name: str) -> None:
    prim, types, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        Builder(types).emit(prim, Builder(types).binders)


def test_errors_leave_references_as_they_are_and_name_the_line() -> None:
    r = effax.new_ref(jnp.float32(2.0))
    for run_ in (lambda f: f(), lambda f: jax.jit(f)()):
        with pytest.raises(BadRule, match=r"negative trip count(.|\n)*region_primitives.py"):
            run_(lambda: Repeat(STEP, -1).bind(r, 1.0, 1.0, 1.0))
    assert float(r[...]) == 2.0


@dataclass(frozen=True, slots=True)
class Miscounted(Repeat):
    """Runs once less than declared."""

    def function(self, *args: Any, **kwargs: Any) -> Sequence[Array]:
        return Repeat(self.body, self.times - 1).bind(*args)


@dataclass(frozen=True, slots=True)
class Crossed(Repeat):
    """Declares that its two carries change places, and evaluates as if they did not."""

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return list(Repeat(self.body, self.times).evaluate(*ins))[::-1]


@dataclass(frozen=True, slots=True)
class Unreduced(Repeat):
    """Runs more often after dead code is removed."""

    def restrict(
        self, jaxprs: Sequence[Jaxpr], ins: Sequence[bool], outs: Sequence[bool]
    ) -> Unreduced:
        return Unreduced(jaxprs[0], self.times + 1)


@dataclass(frozen=True, slots=True)
class Unextended(Repeat):
    """Runs more often with more constants."""

    def with_constants(self, jaxprs: Sequence[Jaxpr], n: int) -> Unextended:
        return Unextended(jaxprs[0], self.times + 1)


@dataclass(frozen=True, slots=True)
class Both(extend.RegionPrimitive):
    """Declares ``(f, g)``, each run once, and returns ``(g, f)``."""

    f: Jaxpr
    g: Jaxpr
    name: ClassVar[str] = "both"

    def regions(self) -> tuple[Region, ...]:
        return tuple(
            Region(jaxpr, (0,), (i,), (None,), repeats=False, name=name)
            for i, (jaxpr, name) in enumerate(((self.f, "f"), (self.g, "g")))
        )

    def function(self, *args: Any, **kwargs: Any) -> Sequence[Array]:
        return extend.eval_jaxpr(self.g, *args)[0], extend.eval_jaxpr(self.f, *args)[0]


SINE = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
COSINE = parse("{ lambda ; a:f32[]. let b:f32[] = cos a in (b,) }")


def test_the_check_refuses_results_in_another_order() -> None:
    with pytest.raises(BadRule, match="another than its regions declare: result 0 differs"):
        check_primitive(Both(SINE, COSINE), F, seeds=(0,))


def test_a_stacked_result_of_unknown_runs_suggests_a_single_run() -> None:
    b, prim = Builder((F, F)), Free(LINEAR, carry_to=(None,), trip_count=None)
    with pytest.raises(BadRule, match="`repeats=False` declares a program that runs once"):
        b.emit(prim, b.binders)


SWAPPED = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a in (b, c) }")
APART = parse("{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a in (c, b) }")


@pytest.mark.parametrize(
    ("prim", "message"),
    [
        (Miscounted(LINEAR, 3), "the evaluation of repeat is another than its regions declare"),
        (Crossed(SWAPPED, 3), "the evaluation of repeat is another than its regions declare"),
        (Unreduced(APART, 3), "repeat without its results other than 0"),
        (Unextended(LINEAR, 3), "`with_constants` of repeat"),
    ],
    ids=["trip count", "carries", "restrict", "with_constants"],
)
def test_the_check_refuses_a_wrong_primitive(prim: Primitive, message: str) -> None:
    with pytest.raises(BadRule, match=message):
        check_primitive(prim, F, F, seeds=(0,))
