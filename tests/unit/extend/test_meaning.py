"""Evaluation is a function, and effects declare every access to references."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.effects import Accum, ArgIndex, Read, Row, Write
from effax.extend import BadRule, IllTyped, NotApplicable, Type, Typing, Val, Value, Writer
from effax.ir import Jaxpr
from effax.testing import assume, check_primitive, law
from effax.testing.check_primitive import (
    PROGRAMS,
    Case,
    Checked,
    Refused,
    SkippedLaw,
    _result,
    programs_of,
)
from effax.testing.ending import Ending
from effax.testing.primitive_checks import check_behavior
from effax.transforms.rules.default import DEFAULT_RULES

F3 = extend.array_type((3,), "float32")
R3 = extend.ref_type(F3)
Meaning = Callable[..., Sequence[Value]]

READ, WRITE, ACCUM = Read(ArgIndex(0)), Write(ArgIndex(0)), Accum(ArgIndex(0))


def no_rule(*args: object) -> Any:
    raise NotApplicable("it is for data")


refuse: Any = no_rule


class OnRef(extend.RefPrimitive):
    """A primitive on one reference, with results of the type of its contents."""

    __slots__ = ()
    says: ClassVar[tuple[Any, ...]] = ()
    jvp = transpose = batch = refuse

    def typing(self, *ins: Type) -> Typing:
        if len(ins) != 2 or ins[1] not in (F3, R3):
            raise IllTyped("it takes a reference and an array of 3 elements")
        return Typing((F3,), Row(self.says))

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        raise NotApplicable("references are discharged first")

    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        return [ins[1]], [ins[0], None]


def means(meaning: Meaning, *says: Any, **methods: Any) -> Any:
    body = {
        "__slots__": (),
        "__module__": __name__,
        "name": "on_ref",
        "says": says,
        "evaluate": lambda self, r, x: meaning(r, x),
        **methods,
    }
    made: Any = dataclass(frozen=True)(type("OnRefHere", (OnRef,), body))
    return made()


def conduct(prim: Any, *types: Type) -> None:
    check_behavior(prim, types, None, DEFAULT_RULES)


def pops(r: Value, x: Value) -> Sequence[Value]:
    old = np.array(r)
    r[...] = x
    return [old]


def decays(r: Value, x: Value) -> Sequence[Value]:
    r[...] = r / 2 + x
    return [np.array(x)]


def stores_first(r: Value, x: Value) -> Sequence[Value]:
    r[0] = x[0]
    return [np.array(x)]


def stores(r: Value, x: Value) -> Sequence[Value]:
    r[...] = x
    return [np.array(x)]


def adds(r: Value, x: Value) -> Sequence[Value]:
    r += x
    return [np.array(x)]


def counts(r: Value, x: Value) -> Sequence[Value]:
    r += 1
    return [np.array(r)]


def peeks(r: Value, x: Value) -> Sequence[Value]:
    return [np.array(r)]


def peeks_at_times(r: Value, x: Value) -> Sequence[Value]:
    return [np.array(r if x[0] > 0 else x)]


def peeks_at_zero(r: Value, x: Value) -> Sequence[Value]:
    return [np.array(x if x.any() else r)]


def peeks_at_minus_one(r: Value, x: Value) -> Sequence[Value]:
    return [np.array(r if (x == -1).any() else x)]


@pytest.mark.parametrize(
    ("meaning", "says", "what"),
    [
        (pops, (WRITE,), "result 0"),
        (pops, (ACCUM,), "result 0"),
        (decays, (WRITE,), "the final contents of argument 0"),
        (decays, (ACCUM,), "the increment of argument 0"),
        (stores_first, (WRITE,), "the final contents of argument 0"),
        (stores, (ACCUM,), "the increment of argument 0"),
        (adds, (WRITE,), "the final contents of argument 0"),
        (counts, (ACCUM,), "result 0"),
        (peeks, (), "result 0"),
        (peeks_at_times, (), "result 0"),
        (peeks_at_zero, (), "result 0"),
        (peeks_at_minus_one, (), "result 0"),
    ],
)
def test_contents_that_matter_are_read(meaning: Meaning, says: tuple[Any, ...], what: str) -> None:
    wanted = (
        rf"does not declare that argument 0 is read\n(.|\n)*`Read\(ArgIndex\(0\)\)`(.|\n)*{what}"
    )
    with pytest.raises(BadRule, match=wanted):
        conduct(means(meaning, *says), R3, F3)


@pytest.mark.parametrize(
    ("meaning", "says"),
    [
        (pops, (READ, WRITE)),
        (decays, (READ, WRITE)),
        (stores_first, (READ, WRITE)),
        (stores, (WRITE,)),
        (adds, (ACCUM,)),
        (peeks, (READ,)),
    ],
)
def test_effects_that_say_it_pass(meaning: Meaning, says: tuple[Any, ...]) -> None:
    conduct(means(meaning, *says), R3, F3)


def test_integers_and_narrow_floats_that_are_added_are_compared_as_they_round() -> None:
    for dtype in ("int32", "float16", "bfloat16"):
        x = extend.array_type((3,), dtype)
        types = extend.ref_type(x), x
        typing = {"typing": lambda self, *ins: Typing((ins[1],), Row(self.says))}
        conduct(means(adds, ACCUM, **typing), *types)
        with pytest.raises(BadRule, match="does not declare that argument 0 is read"):
            conduct(means(stores, ACCUM, **typing), *types)


def test_contents_of_another_reference_may_depend_on_reads_only() -> None:
    def copies(r: Value, x: Value) -> Sequence[Value]:
        x[...] = r
        return [np.zeros(3, np.float32)]

    with pytest.raises(
        BadRule, match=r"argument 0 is read(.|\n)*affect the final contents of argument 1"
    ):
        conduct(means(copies, Write(ArgIndex(1))), R3, R3)
    conduct(means(copies, READ, Write(ArgIndex(1))), R3, R3)


@pytest.mark.parametrize("effect", [Write(ArgIndex(1)), Read(ArgIndex(2)), Accum(ArgIndex(1))])
def test_an_effect_on_what_is_no_reference_is_refused_wherever_it_is_used(effect: Any) -> None:
    prim = means(stores, WRITE, effect)
    ref = effax.new_ref(jnp.zeros(3))
    for use in (
        lambda: conduct(prim, R3, F3),
        lambda: prim.bind(ref, jnp.ones(3)),
        lambda: effax.make_jaxpr(prim.bind)(ref, jnp.ones(3)),
    ):
        with pytest.raises(BadRule, match="an effect on an operand that is not a reference"):
            use()
    assert ref[...].tolist() == [0, 0, 0]


def test_new_contents_of_an_array_are_refused() -> None:
    prim = means(stores, WRITE, discharge=lambda self, ins, is_ref: ([ins[1]], [ins[1], ins[1]]))
    with pytest.raises(BadRule, match="new contents for argument 1, which is not a reference"):
        conduct(prim, R3, F3)


def test_evaluation_must_be_deterministic() -> None:
    calls = itertools.count()

    def random(r: Value, x: Value) -> Sequence[Value]:
        return [np.asarray(x + next(calls), x.dtype)]

    def leaves(r: Value, x: Value) -> Sequence[Value]:
        r[...] = next(calls)
        return [np.array(x)]

    with pytest.raises(BadRule, match="not a function of its arguments: result 0"):
        conduct(means(random), R3, F3)
    with pytest.raises(BadRule, match="arguments: the final contents of argument 0"):
        conduct(means(leaves, WRITE), R3, F3)


@dataclass(frozen=True, slots=True)
class Lone(extend.FunctionPrimitive):
    """A primitive with results that are not in a list."""

    result: str
    name: ClassVar[str] = "lone"

    def function(self, x: Array) -> Array:
        return x

    def typing(self, *ins: Type) -> Typing:
        loose: Any = Typing
        return loose(ins[0]) if self.result == "a type" else Typing(tuple(ins))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        given: Any = {
            "an array": ins[0],
            "nothing": None,
            "two": [*ins, *ins],
            "wider": [ins[0].astype(float)],
            "a type": [ins[0]],
            "a list": [np.array(ins[0])],
        }[self.result]
        return given  # type: ignore[no-any-return]  # it is wrong on purpose


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ("an array", "the evaluation of lone: results are not a list"),
        ("nothing", "the evaluation of lone: results are not a list(.|\n)*None"),
        ("two", "the evaluation of lone: wrong number of results"),
        ("wider", "result 0 of the evaluation of lone is of another type"),
        ("a type", r"does not return a tuple of types(.|\n)*`Typing\(\(x,\)\)`"),
    ],
)
def test_a_call_says_what_the_check_says(result: str, says: str) -> None:
    for use in (lambda: check_primitive(Lone(result), F3), lambda: Lone(result).bind(jnp.ones(3))):
        with pytest.raises(BadRule, match=says):
            use()


@dataclass(frozen=True, slots=True)
class Narrowed(extend.ArrayPrimitive):
    """A correct rule that creates zeros of its operand's dtype."""

    name: ClassVar[str] = "narrowed"

    def typing(self, *ins: Type) -> Typing:
        return Typing(tuple(ins))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [np.array(ins[0])]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.bind(*primals), [jnp.zeros(primals[0].shape, primals[0].dtype)]

    transpose = batch = refuse

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return ins


@dataclass(frozen=True, slots=True)
class Widened(Narrowed):
    """A result of 64 bits of any operand, with a rule that creates zeros of 64 bits."""

    name: ClassVar[str] = "widened"

    def typing(self, *ins: Type) -> Typing:
        return Typing((extend.array_type(ins[0].shape, "float64"),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [np.array(ins[0], np.float64)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.bind(*primals), [jnp.zeros(primals[0].shape, "float64")]


@dataclass(frozen=True, slots=True)
class Halved(extend.FunctionPrimitive):
    name: ClassVar[str] = "halved"

    def function(self, x: effax.Array) -> effax.Array:
        return jnp.max(x, initial=-jnp.inf) - x.astype(x.dtype) / 2


def test_rules_on_operands_of_64_bits_need_no_setting() -> None:
    wide = extend.array_type((3,), "float64")
    conduct(Narrowed(), wide)
    assert Halved().typing(wide).outs == (wide,)
    with effax.enable_x64():
        conduct(Narrowed(), wide)
        assert Halved().typing(wide).outs == (wide,)


def test_where_64_bits_are_not_enabled_the_error_says_so() -> None:
    with pytest.raises(BadRule, match=r"returns a tangent(.|\n)*update\(\"enable_x64\", True\)"):
        conduct(Widened(), extend.array_type((3,), "float32"))


def test_what_was_found_reads_well() -> None:
    checked = Checked(
        ("a", "b"), (Refused("c", "why", ("alone",), ()), Refused("d", "why", (), ("x",))), ("e",)
    )
    assert str(checked) == (
        "2 laws passed\n  a, b\n2 laws refused: why\n  c, d (passed x)\n1 law skipped\n  e"
    )
    assert str(Checked(("a",), ())) == "1 law passed\n  a"


@law
def of_nothing(jaxpr: Jaxpr, seed: int) -> None:
    """A law that skips programs of one equation, and all seeds but 1."""
    assume(len(jaxpr.eqns) > 1 and seed == 1)


def test_a_law_that_applies_to_no_program_is_skipped() -> None:
    several = programs_of(Lone("two"), (F3,), (None,))

    def found(programs: Sequence[Jaxpr], seeds: Sequence[int]) -> object:
        pairs = zip(PROGRAMS, programs, strict=False)
        return _result(
            of_nothing, [Case(name, (jaxpr,), seeds) for name, jaxpr in pairs], {}, Ending(100, 1.0)
        )

    assert found(several[:1], (0, 1)) == SkippedLaw("of_nothing")
    assert found(several, (0,)) == SkippedLaw("of_nothing")
    assert found(several, (0, 1)) == "of_nothing"


@pytest.mark.slow
def test_every_law_says_something_of_a_primitive_that_is_smooth() -> None:
    assert not check_primitive(Lone("a list"), F3, seeds=(0,)).skipped
