"""A primitive without a required method, and rules without a required rule, are type errors."""

from collections.abc import Sequence
from typing import Any

from effax import Array
from effax.effects import Accum, ArgIndex, Read, Row, VarId
from effax.extend import ArrayPrimitive, Elementwise, LinearPrimitive, Val, Writer, program
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.syntax import Atom
from effax.ir.types import Type
from effax.transforms.framework.rules import (
    Indivisible,
    JvpOut,
    RuleBuilder,
    Rules,
    Unsupported,
)


class Meaningless(Primitive):
    """A primitive with a typing rule and without evaluation."""

    name = "meaningless"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)


Meaningless()  # E: abstract


class Twice(Primitive):
    """A complete primitive."""

    name = "twice"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [x + x for x in ins]


def twice_jvp(
    b: RuleBuilder, prim: Twice, primals: Sequence[Atom], tangents: Sequence[Atom | None]
) -> JvpOut:
    return JvpOut([b(prim, primals[0])], [b(prim, tangents[0])] if tangents[0] else [None])


def not_a_rule(b: RuleBuilder, prim: Twice) -> JvpOut:
    return JvpOut([], [])


nothing = Unsupported("this is an example")

Rules(twice_jvp, nothing, nothing, Indivisible(), nothing)
Rules(twice_jvp, batch=nothing, split=Indivisible(), discharge=nothing)  # E: call-arg
Rules(not_a_rule, nothing, nothing, Indivisible(), nothing)  # E: arg-type

of_arguments: Row[ArgIndex] = Row([Read(ArgIndex(0))])
of_variables: Row[VarId] = Row([Accum(VarId(0))])
of_arguments.join(of_variables)  # E: arg-type


class Doubled(ArrayPrimitive):
    """A user-defined primitive without a batch rule."""

    name = "doubled"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [x + x for x in ins]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        return self.bind(*primals), self.bind(*tangents)

    def transpose(self, ins: Sequence[Any], cts: Sequence[Array | None]) -> Sequence[Array | None]:
        return cts

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return program(w, lambda x: x + x, ins, self.name)


Doubled()  # E: abstract


class Whole(Doubled):
    """A user-defined primitive with all rules."""

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return self.bind(*ins), batched


Whole().bind(1.0)


class Wrong(Whole):
    """A user-defined primitive whose jvp rule has another signature."""

    def jvp(self, primals: Sequence[Any]) -> Sequence[Array]:  # E: override
        return self.bind(*primals)


class Cube(Elementwise):
    """A function that lacks derivatives."""

    name = "cube"

    def function(self, x: Array) -> Array:
        return x * x * x


Cube()  # E: abstract


class WholeCube(Cube):
    """It has them."""

    def derivatives(self, x: Array) -> Array:
        return 3.0 * x * x


cubed: Array = WholeCube()(2.0)


class BadCube(Cube):
    """Its derivatives are not arrays."""

    def derivatives(self, x: Array) -> str:  # E: override
        return "3.0 * x * x"


class Halved(LinearPrimitive):
    """A linear map that lacks an adjoint."""

    name = "halved"

    def typing(self, *ins: Type) -> Typing:
        return Typing(ins)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [x / 2 for x in ins]

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return self.bind(*ins), batched

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return program(w, lambda x: x / 2, ins, self.name)


Halved()  # E: abstract
