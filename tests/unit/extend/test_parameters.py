"""Parameters: equality by kind and bits, and kinds that print and parse."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend.parameters import KINDS, check_written
from effax.ir import Jaxpr, parse
from effax.ir.errors import BadArgument
from effax.testing import LawBroken, check_primitive, law
from effax.testing.primitive_checks import as_primitive

F3 = extend.array_type((3,), "float32")


class Side(Enum):
    LEFT = 1
    RIGHT = 2


@dataclass(frozen=True)
class Window:
    size: int
    side: Side


class Range(NamedTuple):
    first: int
    last: int


@dataclass
class Thawed:
    size: int


@dataclass(frozen=True, slots=True)
class Scaled(extend.FunctionPrimitive):
    k: float
    name: ClassVar[str] = "scaled"

    def function(self, x: Array) -> Array:
        return x * self.k


@dataclass(frozen=True, slots=True)
class Full(extend.FunctionPrimitive):
    k: Any
    name: ClassVar[str] = "full_of"

    def function(self, x: Array) -> Array:
        return jnp.full_like(x, self.k)


@dataclass(frozen=True, slots=True)
class Fields(extend.FunctionPrimitive):
    """A primitive with each kind of parameter, annotated with its class."""

    window: Window
    side: Side | None = None
    ends: tuple[Range, ...] = ()
    factor: float | None = None
    factors: tuple[float, ...] = ()
    name: ClassVar[str] = "fields"

    def function(self, x: Array) -> Array:
        return x


@pytest.mark.parametrize(
    ("one", "other"),
    [(2, 2.0), (1, True), (0.0, -0.0), (1.0, 1 + 0j), ((1,), (1.0,)), (2.0, np.float64(2.0))],
)
def test_values_that_python_takes_for_equal_differ(one: object, other: object) -> None:
    assert one == other
    assert Full(one) != Full(other) and Full(one) == Full(copy.deepcopy(one))
    assert hash(Full(one)) == hash(Full(copy.deepcopy(one)))
    assert Full(frozenset({one})) != Full(frozenset({other}))


def test_nan_is_equal_to_itself_and_records_are_compared_by_fields() -> None:
    assert Full(float("nan")) == pickle.loads(pickle.dumps(Full(float("nan"))))
    assert Full(Range(1, 2)) != Full(Range(True, 2)) and Full(Window(1, Side.LEFT)) != Full(
        Window(True, Side.LEFT)
    )
    other: object = Scaled(1)
    assert Full(1) != other


def test_results_do_not_depend_on_what_came_first() -> None:
    x = jnp.ones(2)
    for k in (0.0, -0.0, 0.0):
        signs = [Full(k).bind(x)[0], effax.jit(Full(k).bind)(x)[0]]
        assert all(bool(np.signbit(s).all()) == (str(k)[0] == "-") for s in signs)


def test_a_field_of_floats_that_is_given_an_integer_has_a_float() -> None:
    i = jnp.arange(3)
    for k in (2, 2.0):
        found = effax.make_jaxpr(Scaled(k).bind)(i).jaxpr
        assert "scaled[k=2.0]" in str(found)
        assert Scaled(k).bind(i)[0].dtype == effax.jit(Scaled(k).bind)(i)[0].dtype == np.float32
        assert parse(str(found), extend.registry(Scaled)) == found
    (eqn,) = effax.make_jaxpr(Fields(Window(1, Side.LEFT), None, (), 1, (1, 2.0)).bind)(
        i
    ).jaxpr.eqns
    assert eqn.prim == Fields(Window(1, Side.LEFT), None, (), 1.0, (1.0, 2.0))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.float32(2), r"float32(.|\n)*convert it to a Python scalar: `float\(...\)`"),
        (np.int64(2), r"int64(.|\n)*convert it to a Python scalar: `int\(...\)`"),
        (range(3), r"range\(0, 3\)(.|\n)*a tuple"),
        (len, "built-in function len"),
        (int, "<class 'int'>"),
        (Side.LEFT, r"Side.LEFT(.|\n)*annotate the field with the class, `Side`"),
        (Window(1, Side.LEFT), "annotate the field with the class, `Window`"),
        (Range(1, 2), "annotate the field with the class, `Range`"),
        ((1, (np.float64(2),)), r"float64(.|\n)*convert it to a Python scalar: `float\(...\)`"),
        (frozenset({Side.LEFT}), "annotate the field with the class, `Side`"),
    ],
    ids=repr,
)
def test_a_parameter_that_does_not_parse_is_reported(value: object, says: str) -> None:
    wanted = rf"the parameter k of full_of cannot be printed(.|\n)*enums(.|\n)*`k` is (.|\n)*{says}"
    with pytest.raises(BadArgument, match=wanted):
        check_primitive(Full(value), F3)


def test_kinds_that_annotations_name_are_read_back() -> None:
    prim = Fields(Window(3, Side.RIGHT), Side.LEFT, (Range(1, 2),), 0.5, (1.0,))
    check_written(prim)
    program = effax.make_jaxpr(prim.bind)(jnp.ones(3)).jaxpr
    assert parse(str(program), extend.registry(Fields)) == program
    for value in (
        1,
        2.5,
        1j,
        "a",
        b"a",
        None,
        True,
        (1, ("b",)),
        frozenset({1}),
        np.dtype("f4"),
        F3,
    ):
        check_written(Full(value))
    assert "enums" in KINDS


def test_a_parameter_of_another_kind_than_declared_is_reported() -> None:
    loose: Any = Scaled
    for value in ("a", True, None):
        with pytest.raises(BadArgument, match="the parameter k of scaled is of another kind"):
            check_primitive(loose(value), F3)
    with_fields: Any = Fields
    with pytest.raises(
        BadArgument, match=r"declare Thawed with `@dataclass\(frozen=True\)`|hashable"
    ):
        check_primitive(with_fields(Thawed(1)), F3)


@dataclass(slots=True)
class Loose(extend.FunctionPrimitive):
    k: float
    name: ClassVar[str] = "loose"

    def function(self, x: Array) -> Array:
        return x


class Bare(extend.FunctionPrimitive):
    name: ClassVar[str] = "bare"

    def __init__(self, k: float) -> None:
        self.k = k

    def function(self, x: Array) -> Array:
        return x


@dataclass(frozen=True, slots=True)
class Nameless(extend.FunctionPrimitive):
    def function(self, x: Array) -> Array:
        return x


@dataclass(frozen=True, slots=True)
class Misnamed(Nameless):
    name: ClassVar[str] = "bad name!"


@pytest.mark.parametrize(
    ("prim", "says"),
    [
        (Loose(1.0), r"not frozen(.|\n)*@dataclass\(frozen=True"),
        (Bare(1.0), r"not a dataclass(.|\n)*@dataclass\(frozen=True"),
        (Nameless(), "no valid name"),
        (Misnamed(), "no valid name"),
        (Full([1]), "is not hashable"),
    ],
)
def test_what_is_no_primitive_says_why_wherever_it_is_used(prim: Any, says: str) -> None:
    uses: Sequence[Callable[[], object]] = (
        lambda: as_primitive(prim),
        lambda: prim.bind(jnp.ones(3)),
        lambda: effax.make_jaxpr(prim.bind)(jnp.ones(3)),
    )
    for use in uses:
        with pytest.raises(BadArgument, match=says):
            use()


@dataclass(frozen=True, slots=True)
class Kept(extend.FunctionPrimitive):
    k: Any
    name: ClassVar[str] = "kept"

    def function(self, x: Array) -> Array:
        return x


@law
def never(jaxpr: Jaxpr, seed: int) -> None:
    """Return False."""
    raise AssertionError("it is not so")


class Odd:
    """An object whose methods raise."""

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.float32(2), r"# `k` of kept is float32: np.float32\(2.0\), which is not read back."),
        (range(3), "which is not read back"),
        (len, "which is not read back"),
        (Side.LEFT, "which is not read back"),
        (Odd(), "No test can be written"),
        (0.5, r"kept\[k=0.5\] a"),
    ],
    ids=["scalar", "range", "function", "enum", "odd", "float"],
)
def test_a_report_says_what_it_cannot_write(value: object, says: str) -> None:
    with pytest.raises(LawBroken) as broken:
        never(effax.make_jaxpr(Kept(value).bind)(jnp.ones(3)).jaxpr, 0)
    assert re.search(rf"a law is broken: never(.|\n)*it is not so(.|\n)*{says}", str(broken.value))
