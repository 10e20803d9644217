"""Invalid arguments raise errors of the library about them, not Python's about internals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import extend
from effax.effects import ArgIndex, Read, Row, SideEffect
from effax.ir import Builder, array_type, evaluate, lit, map_eqns, parse, ref_type
from effax.ir.errors import BadArgument, BadRule, EffaxError, IllTyped, ParseError
from effax.ir.prims import Neg, Sin
from effax.ir.registry import own_primitives
from effax.testing import check_effects

jax: Any = effax
any_: Any = None
X = jnp.arange(3.0)
F3 = array_type((3,), "float32")
SIN = parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")
READS = parse("{ lambda ; a:Ref{f32[3]}. let b:f32[3] <- a[...] in (b,) }")


@dataclass(frozen=True, slots=True)
class Plain(extend.FunctionPrimitive):
    """A primitive that is not elementwise."""

    name: ClassVar[str] = "plain"

    def function(self, x: Any) -> Any:
        return x[::-1]


def stored(x: Any) -> Any:
    x[0] = 1.0
    return x


def added(x: Any) -> Any:
    x[...] += 1.0
    return x


def deleted(x: Any) -> Any:
    del x[0]
    return x


@pytest.mark.parametrize("change", [stored, added, deleted])
@pytest.mark.parametrize("run", [lambda f: f(X), lambda f: jax.jit(f)(X)], ids=["eager", "jit"])
def test_an_assignment_to_an_element_mentions_at_and_references(
    change: Callable[..., object], run: Callable[..., object]
) -> None:
    with pytest.raises(
        IllTyped, match=r"arrays are immutable[\s\S]*x\.at\[i\]\.set\(v\)[\s\S]*new_ref"
    ):
        run(change)
    assert X.tolist() == [0.0, 1.0, 2.0]


WRONG: dict[str, tuple[Callable[[], object], type[EffaxError], str]] = {
    "a user-defined primitive is called": (
        lambda: any_of(Plain())(X),
        IllTyped,
        r"plain is a primitive[\s\S]*`prim\.bind\(x\)`",
    ),
    "one of the library's is called": (
        lambda: any_of(Sin())(X),
        IllTyped,
        r"sin is a primitive[\s\S]*builder\(prim, x\)[\s\S]*effax\.numpy",
    ),
    "map_eqns swapped": (
        lambda: map_eqns(any_of(SIN), any_of(lambda b, eqn: None)),
        BadArgument,
        r"the function comes first: `map_eqns\(change, jaxpr\)`",
    ),
    "map_eqns of a closed program": (
        lambda: map_eqns(lambda b, eqn: None, any_of(jax.make_jaxpr(jnp.sin)(X))),
        BadArgument,
        r"its program is `\.jaxpr`",
    ),
    "array_type swapped": (
        lambda: array_type(any_of("float32"), (3,)),
        IllTyped,
        r"a shape and a dtype[\s\S]*the shape comes first",
    ),
    "a shape that is a number": (
        lambda: array_type(any_of(3), "float32"),
        IllTyped,
        r"found: +3 and 'float32'[\s\S]*`\(n,\)`",
    ),
    "a dtype that is none": (
        lambda: array_type((3,), "flaot32"),
        IllTyped,
        r"'flaot32' not understood[\s\S]*array_type\(\(3,\), \"float32\"\)",
    ),
    "a reference to a shape": (
        lambda: ref_type(any_of((3,))),
        IllTyped,
        r"the type of an array[\s\S]*ref_type\(array_type",
    ),
    "a number as a result": (
        lambda: Builder([F3]).finish([any_of(3.0)]),
        BadArgument,
        r"found: +3\.0[\s\S]*makes a literal",
    ),
    "a number as an operand": (
        lambda: Builder([F3])(Sin(), any_of(3.0)),
        BadArgument,
        r"found: +3\.0[\s\S]*makes a literal",
    ),
    "evaluation of a number": (
        lambda: evaluate(SIN, [any_of(1.0)]),
        IllTyped,
        r"a NumPy array, f32\[3\][\s\S]*float: 1\.0",
    ),
    "evaluation in another dtype": (
        lambda: evaluate(SIN, [np.zeros(3)]),
        IllTyped,
        r"expected: a NumPy array, f32\[3\][\s\S]*found: +f64\[3\]",
    ),
    "evaluation in another shape": (
        lambda: evaluate(SIN, [np.zeros(4, np.float32)]),
        IllTyped,
        r"f32\[3\][\s\S]*f32\[4\]",
    ),
    "evaluation of an array of objects": (
        lambda: evaluate(SIN, [np.array([None] * 3)]),
        IllTyped,
        r"an array of the dtype object",
    ),
    "evaluation of too few": (lambda: evaluate(SIN, []), IllTyped, r"expected: 1: \(f32\[3\]\)"),
    "evaluation of a closed program": (
        lambda: evaluate(any_of(jax.make_jaxpr(jnp.sin)(X)), [any_of(X)]),
        BadArgument,
        r"its program is `\.jaxpr`",
    ),
    "an unknown primitive": (
        lambda: parse("{ lambda ; a:f32[3]. let b:f32[3] = leaky a in (b,) }"),
        ParseError,
        r"is called leaky\n  expected: a primitive of the registry[\s\S]*registry\(Mine\)",
    ),
    "a primitive misspelt": (
        lambda: parse("{ lambda ; a:f32[3]. let b:f32[3] = sine a in (b,) }"),
        ParseError,
        r"no primitive is called sine\n  expected: `sin`",
    ),
}


def any_of(x: object) -> Any:
    """Return the value with its type erased."""
    return x


@pytest.mark.parametrize("name", WRONG)
def test_an_error_shows_the_invalid_argument(name: str) -> None:
    attempt, error, says = WRONG[name]
    with pytest.raises(error, match=says):
        attempt()


@pytest.mark.parametrize("given", [Read(ArgIndex(0)), [3], [None], 3])
def test_a_row_is_made_of_effects(given: Any) -> None:
    with pytest.raises(TypeError, match=r"Row\(\[Read\(i\), Write\(i\)\]\)`; found"):
        Row(given)


def test_a_reference_is_evaluated_in_its_buffer_alone() -> None:
    assert evaluate(READS, [np.ones(3, np.float32)])[0].tolist() == [1.0] * 3
    scalar = parse("{ lambda ; a:Ref{f32[]}. let b:f32[] <- a[...] in (b,) }")
    with pytest.raises(IllTyped, match=r"Ref\{f32\[\]\}[\s\S]*float32"):
        evaluate(scalar, [any_of(np.float32(1))])


def test_values_that_fit_are_evaluated() -> None:
    b = Builder([array_type((), "float32", weak=True)])
    program = b.finish([b(Neg(), b.binders[0]), lit(1.0, array_type((), "float32"))])
    assert [float(x) for x in evaluate(program, [any_of(np.float32(2))])] == [-2.0, 1.0]


def kind_of(word: object, observed: object = True) -> Any:
    fields = {"__slots__": (), "word": word, "observed": observed, "__module__": __name__}
    made: Any = type("Kind", (SideEffect,), fields)
    return dataclass(frozen=True)(made)()


@pytest.mark.parametrize("word", ["read", "write", "accum", "alloc", "free", "io"])
def test_words_of_the_library_are_its_own(word: str) -> None:
    with pytest.raises(BadRule, match=rf"Kind prints as an effect of the library[\s\S]*{word}"):
        check_effects(kind_of(word))


def test_observed_is_a_boolean() -> None:
    with pytest.raises(BadRule, match=r"`observed` of the kind Kind is no boolean[\s\S]*'no'"):
        check_effects(kind_of("send", "no"))


def test_the_parameters_of_every_primitive_are_fields() -> None:
    assert all(map(is_dataclass, own_primitives().values()))
    assert fields(any_of(Sin())) == () and Sin() is Sin()
    with pytest.raises(AttributeError, match="immutable"):
        any_of(Sin()).depth = 1
