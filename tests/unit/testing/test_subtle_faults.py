"""Passes and primitives that are wrong at few places are refused, whatever the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from returns.pipeline import is_successful

import effax.numpy as jnp
from effax import Array, extend
from effax.effects import ArgIndex, Row, Write
from effax.extend import Type, Typing, Value
from effax.ir import BadRule, TransformError, everywhere, map_eqns, parse
from effax.ir.build import Builder, lit
from effax.ir.prims import Add, Cos, DynamicSlice, Le, Lt, Mul, Sin, Sort, Sub, Transpose
from effax.ir.syntax import Atom, Eqn, Jaxpr, Lit
from effax.ir.types import ArrayType
from effax.passes import Guarantee, Pass, as_pass
from effax.testing import LawBroken, check_pass, check_primitive
from effax.testing.check_primitive import numbers_of, programs_of
from effax.testing.evaluate_checks import check_evaluation
from effax.testing.generate.catalogue import mixed, movements, sorts
from effax.testing.generate.magnitudes import places
from effax.testing.generate.special_values import special
from effax.testing.laws import jvp_is_the_derivative, pass_keeps_its_guarantees
from effax.testing.primitive_checks import check_behavior
from effax.transforms.rules.default import DEFAULT_RULES
from tests.planted.subtle_primitives import F3, R3, Scaled, SecretRead

INT = extend.array_type((64,), "int32")


def _before(b: Builder, eqn: Eqn) -> Atom | None:
    """Replace ``x <= y`` by ``x - 1 < y``, which is wrong at the least integer."""
    if not isinstance(eqn.prim, Le) or eqn.ins[0].type.dtype.kind != "i":
        return None
    x, y = eqn.ins
    assert isinstance(x.type, ArrayType)
    return b(Lt(), b(Sub(), x, lit(1, x.type.update(shape=()))), y)


def _after(b: Builder, eqn: Eqn) -> Atom | None:
    """Replace ``x < y`` by ``x + 1 <= y``, which is wrong at the greatest integer."""
    if not isinstance(eqn.prim, Lt) or eqn.ins[0].type.dtype.kind != "i":
        return None
    x, y = eqn.ins
    assert isinstance(x.type, ArrayType)
    return b(Le(), b(Add(), x, lit(1, x.type.update(shape=()))), y)


def _doubled(b: Builder, eqn: Eqn) -> Atom | None:
    """Replace ``2·x`` by ``x + x``, which is ill typed for a weak x."""
    if not isinstance(eqn.prim, Mul):
        return None
    two, x = eqn.ins
    return b(Add(), x, x) if isinstance(two, Lit) and two.value == 2 else None


def _unstable(b: Builder, eqn: Eqn) -> Sequence[Atom] | None:
    """Sort by all operands, so that ties lose their order."""
    if not isinstance(eqn.prim, Sort) or len(eqn.ins) == eqn.prim.num_keys:
        return None
    return b.emit(Sort(eqn.prim.dimension, len(eqn.ins)), eqn.ins)


def _pass_of(rule: object) -> Pass:
    return as_pass(lambda jaxpr: everywhere(partial(map_eqns, rule), jaxpr))  # type: ignore[arg-type]  # a rule


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "prim"), [(_before, Le()), (_after, Lt())])
def test_the_ends_of_integers_are_tried(rule: object, prim: extend.Primitive) -> None:
    b = Builder([INT, INT])
    jaxpr = b.finish(b.emit(prim, b.binders))
    for seed in range(4):
        with pytest.raises(LawBroken, match="differs"):
            pass_keeps_its_guarantees(jaxpr, seed, _pass_of(rule), (Guarantee.SAME_MEANING,))
    assert -(2**31) in special(INT.dtype, extremes=False)


def test_weak_operands_and_strong_numbers_are_in_the_catalogue() -> None:
    step = _pass_of(_doubled)
    assert any(not is_successful(step(jaxpr)) for jaxpr in mixed())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_pass_that_ignores_weakness_is_refused(seed: int) -> None:
    with pytest.raises(LawBroken):
        check_pass(_pass_of(_doubled), examples=40, seed=seed)


def _raising(b: Builder, eqn: Eqn) -> Atom | None:
    """Replace sines by cosines, and fail at cosines."""
    if isinstance(eqn.prim, Cos):
        raise TransformError("no cosines")
    return b(Cos(), *eqn.ins) if isinstance(eqn.prim, Sin) else None


@pytest.mark.slow
def test_a_pass_that_raises_is_not_said_to_be_no_function() -> None:
    sine, cosine = (
        parse(f"{{ lambda ; a:f32[]. let b:f32[] = {name} a in (b,) }}") for name in ("sin", "cos")
    )
    with pytest.raises(LawBroken, match="result 0 differs") as caught:
        check_pass(_pass_of(_raising), programs=[sine, cosine], examples=1)
    assert "pass_is_a_function" not in str(caught.value)


@pytest.mark.slow
def test_ties_of_sorts_with_payloads_are_tried() -> None:
    for jaxpr in sorts():
        for seed in range(3):
            with pytest.raises(LawBroken, match="differs"):
                pass_keeps_its_guarantees(jaxpr, seed, _pass_of(_unstable))


def _composed(b: Builder, eqn: Eqn) -> Atom | None:
    """Compose transpositions in the wrong order, and dynamic slices without their clamps."""
    inner = b.equation_of(eqn.ins[0]) if eqn.ins else None
    if inner is None:
        return None
    match eqn.prim, inner.prim:
        case Transpose(q), Transpose(p):
            return b(Transpose(tuple(q[i] for i in p)), inner.ins[0])
        case DynamicSlice(), DynamicSlice():
            starts = zip(inner.ins[1:], eqn.ins[1:], strict=True)
            return b(eqn.prim, inner.ins[0], *[b(Add(), x, y) for x, y in starts])
        case _:
            return None


def _is_refused(jaxpr: Jaxpr) -> bool:
    try:
        pass_keeps_its_guarantees(jaxpr, 0, _pass_of(_composed))
    except LawBroken:
        return True
    return False


@pytest.mark.slow
def test_movements_are_composed_in_the_catalogue() -> None:
    names = {jaxpr.eqns[0].prim.name for jaxpr in movements() if _is_refused(jaxpr)}
    assert names == {"transpose", "dynamic_slice"}


def test_integers_that_floats_do_not_represent_are_tried() -> None:
    for ints, floats in (("int32", "float32"), ("int64", "float64"), ("int16", "float16")):
        values = special(np.dtype(ints))
        assert any(int(np.dtype(floats).type(x)) != int(x) for x in values[2:-1])


@dataclass(frozen=True, slots=True)
class Halfway(extend.FunctionPrimitive):
    """Round half-integers to even numbers, but upwards if compiled."""

    name: ClassVar[str] = "halfway"

    def function(self, x: Array) -> Array:
        return jnp.floor(x + 0.5)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [np.rint(ins[0])]


@pytest.mark.slow
def test_compiled_code_is_compared_at_half_integers() -> None:
    with pytest.raises(LawBroken, match="not at half-integers"):
        check_primitive(Halfway(), extend.array_type((3,), "float32"), seeds=(0,))


@dataclass(frozen=True, slots=True)
class FlatAtHalf(extend.Elementwise):
    """``sin x``, with the derivative 0 at 0.5 alone."""

    name: ClassVar[str] = "flat_at_half"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return jnp.sin(x)

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x == 0.5, 0, jnp.cos(x))


@pytest.mark.slow
def test_derivatives_are_tried_at_the_numbers_of_rules() -> None:
    with pytest.raises(LawBroken, match=r"not at the number 0\.5"):
        check_primitive(FlatAtHalf(), extend.array_type((3,), "float32"), seeds=(0,))


@dataclass(frozen=True, slots=True)
class Leaky(extend.Elementwise):
    """``x`` above 0.3, else ``x/10``: right, with a kink."""

    name: ClassVar[str] = "leaky"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return jnp.where(x > 0.3, x, 0.1 * x)

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x > 0.3, 1, 0.1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kink_at_a_number_is_no_fault(dtype: str) -> None:
    types = (extend.array_type((3,), dtype),)
    jaxpr = programs_of(Leaky(), types, (None,))[0]
    numbers = numbers_of(Leaky(), jaxpr, DEFAULT_RULES)
    assert 0.3 in numbers
    for place in places(Leaky(), types, (None,), numbers):
        if "number" in place.where:
            jvp_is_the_derivative(place.jaxpr)


@dataclass(frozen=True, slots=True)
class ReadsFarAway(SecretRead):
    """Read where an operand is above a limit."""

    limit: float = 1.9
    name: ClassVar[str] = "reads_far_away"

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        r, x = ins
        r[...] += np.where((r > 0) & (x > self.limit), x, 0).astype(r.dtype)
        return []


@dataclass(frozen=True, slots=True)
class WritesFarAway(SecretRead):
    """Write, and read where an operand is large."""

    name: ClassVar[str] = "writes_far_away"

    def typing(self, *ins: Type) -> Typing:
        return Typing((), Row([Write(ArgIndex(0))]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        r, x = ins
        r[...] = np.where(np.abs(x) > 50, r, x)
        return []


@pytest.mark.parametrize("prim", [ReadsFarAway(), WritesFarAway()])
def test_contents_are_tried_for_large_operands(prim: SecretRead) -> None:
    with pytest.raises(BadRule, match="does not declare that argument 0 is read"):
        check_evaluation(prim, (R3, F3), prim.typing(R3, F3))


@dataclass(frozen=True, slots=True)
class FirstWeakness(Scaled):
    """Return a result of the first operand's type."""

    name: ClassVar[str] = "first_weakness"

    def typing(self, *ins: Type) -> Typing:
        Scaled.typing(self, *ins)
        return Typing((ins[0],))


def test_a_weak_result_of_a_strong_operand_is_refused() -> None:
    with pytest.raises(BadRule, match=r"weak result 0, which depends on a strong argument 1"):
        check_behavior(FirstWeakness(), (F3, F3), None, DEFAULT_RULES)


@dataclass(frozen=True, slots=True)
class Saturated(extend.Elementwise):
    """``x + x``; its evaluation saturates where compiled code wraps around."""

    name: ClassVar[str] = "saturated"
    accepts: ClassVar[frozenset[str]] = frozenset({"int"})

    def function(self, x: Array) -> Array:
        return x + x

    def derivatives(self, x: Array) -> Array:
        raise extend.NotApplicable("of integers")

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        wide = 2 * x.astype(np.int64)
        info = np.iinfo(x.dtype)
        return [np.clip(wide, info.min, info.max).astype(x.dtype)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (3,)])
def test_compiled_integers_are_compared_at_the_ends(shape: tuple[int, ...]) -> None:
    for seeds in ((0,), (1,), (0, 1, 2)):
        with pytest.raises(LawBroken, match="lowering_agrees_with_evaluation"):
            check_primitive(Saturated(), extend.array_type(shape, "int8"), seeds=seeds)
