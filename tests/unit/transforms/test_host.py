"""Passes over user-defined side effects: the commutation table alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from effax.effects import Row, SideEffect, commutes
from effax.effects.row import effect_text
from effax.ir import prims as p
from effax.ir.analysis.check import checked
from effax.ir.build import Builder, lit
from effax.ir.edit.without_io import silent
from effax.ir.errors import NotApplicable, TransformError
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims import Cond, Jit, Remat, Scan, While
from effax.ir.registry import registry
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.text.parser import parse
from effax.ir.text.printer import pretty
from effax.ir.types import Type, array_type
from effax.transforms.discharge import discharge
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.inline import inline
from effax.transforms.partial_eval.partial_eval import partial_eval, recompose
from effax.transforms.reverse.engine import reverse
from effax.transforms.rules.common.generic_rules import array_rules
from effax.transforms.rules.default import DEFAULT_RULES
from effax.transforms.rules.host import (
    SIDE_EFFECT_RULES,
    sequential_batch,
    side_effect_jvp,
    side_effect_transpose,
)
from effax.transforms.transpose.cotangent_spec import GradValue
from effax.transforms.transpose.engine import transpose
from effax.transforms.vmap.engine import vmap
from tests.unit.building import program

F = array_type((), "float64")
F3 = array_type((3,), "float64")
N = array_type((), "int32")


@dataclass(frozen=True, slots=True)
class Topic(SideEffect):
    """Messages of one topic keep their order; those of topic "any" keep theirs with all."""

    name: str
    word: ClassVar[str] = "topic"

    def commutes_with(self, other: SideEffect) -> bool:
        return not isinstance(other, Topic) or (
            "any" not in (self.name, other.name) and self != other
        )


@dataclass(frozen=True, slots=True)
class Peek(SideEffect):
    """An unobserved read of external state, which publishing in topic "a" changes."""

    word: ClassVar[str] = "peek"
    observed: ClassVar[bool] = False

    def commutes_with(self, other: SideEffect) -> bool:
        return other != Topic("a")


LOG: list[tuple[str, float]] = []


@dataclass(frozen=True, slots=True)
class Publish(Primitive):
    """Publishes a number in a topic."""

    topic: str
    name: ClassVar[str] = "publish"

    def typing(self, *ins: Type) -> Typing:
        return Typing((), Row([Topic(self.topic)]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        LOG.append((self.topic, float(ins[0])))
        return ()


@dataclass(frozen=True, slots=True)
class Look(Primitive):
    """The number of messages so far."""

    name: ClassVar[str] = "look"

    def typing(self, *ins: Type) -> Typing:
        return Typing((F,), Row([Peek()]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return [np.asarray(float(len(LOG)))]


RULES = DEFAULT_RULES.extend(Publish, SIDE_EFFECT_RULES).extend(Look, SIDE_EFFECT_RULES)
SEQUENTIAL = RULES.extend(
    Publish, array_rules(side_effect_jvp, side_effect_transpose, sequential_batch)
)


def publish(b: Builder, topic: str, x: Atom) -> list[Atom]:
    return [*b.emit(Publish(topic), [x])]


def look(b: Builder) -> Atom:
    return b(Look())


def run(jaxpr: Jaxpr, *args: object) -> list[tuple[str, float]]:
    """Return the published numbers."""
    LOG.clear()
    evaluate(
        checked(jaxpr), [np.asarray(x, t.dtype) for x, t in zip(args, jaxpr.in_types, strict=True)]
    )
    return list(LOG)


def published(jaxpr: Jaxpr) -> list[str]:
    return [eqn.prim.topic for eqn in jaxpr.eqns if isinstance(eqn.prim, Publish)]


@pytest.mark.parametrize(("late", "early"), list(product(["a", "b", "any"], repeat=2)))
def test_known_effects_move_first_only_if_they_commute(late: str, early: str) -> None:
    def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
        publish(b, late, y)
        publish(b, early, x)
        return []

    jaxpr = program([F, F], body)
    pe = partial_eval(jaxpr, (True, False), rules=RULES).unwrap()
    may = commutes(Topic(late), Topic(early))
    assert published(pe.known) == ([early] if may else [])
    assert published(pe.unknown) == ([late] if may else [late, early])
    if not may:
        assert run(recompose(pe), 1, 2) == run(jaxpr, 1, 2)


@pytest.mark.parametrize("topic", ["a", "b"])
def test_observing_effects_wait_for_what_they_observe(topic: str) -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        publish(b, topic, x)
        return [look(b)]

    pe = partial_eval(program([F], body), (False,), rules=RULES).unwrap()
    assert pe.known_outs == ((topic == "b"),)


def test_unobserved_effects_are_dead_if_their_results_are() -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        look(b)
        publish(b, "a", x)
        return [look(b)]

    jaxpr = program([F], body)
    assert [type(e.prim) for e in dce(jaxpr).unwrap().jaxpr.eqns] == [Publish, Look]
    assert [type(e.prim) for e in dce(jaxpr, (False,)).unwrap().jaxpr.eqns] == [Publish]


def publish_and_sin(b: Builder, x: Atom) -> list[Atom]:
    publish(b, "a", x)
    return [b(p.Sin(), x)]


INNER = program([F], publish_and_sin)
CALLS = {
    "jit": lambda b, x: b.emit(Jit(INNER), [x]),
    "remat": lambda b, x: b.emit(Remat(INNER), [x]),
    "cond": lambda b, x: b.emit(Cond((INNER, INNER)), [b(p.Gt(), x, lit(0.0, F)), x]),
    "scan": lambda b, x: b.emit(Scan(INNER, 2, False, 0, 1), [x]),
    "while": lambda b, x: b.emit(
        While(
            program([N, F], lambda b, i, x: (publish(b, "b", x), [b(p.Lt(), i, lit(2, N))])[1]),
            program([N, F], lambda b, i, x: [b(p.Add(), i, lit(1, N)), *publish_and_sin(b, x)]),
            0,
        ),
        [lit(0, N), x],
    )[1:],
}


@pytest.mark.parametrize("call", CALLS)
def test_passes_keep_the_effects_of_subjaxprs(call: str) -> None:
    jaxpr = checked(program([F], CALLS[call]))
    plain = run(jaxpr, 0.5)
    assert plain
    assert run(dce(jaxpr, (False,)).unwrap().jaxpr, 0.5) == plain
    assert run(inline(jaxpr).unwrap(), 0.5) == plain
    assert run(discharge(jaxpr, RULES).unwrap().jaxpr, 0.5) == plain
    assert run(jvp(jaxpr, (True,), rules=RULES).unwrap().jaxpr, 0.5, 1.0) == plain
    made = linearize(jaxpr, (True,), rules=RULES).unwrap()
    assert run(made.primal, 0.5) == plain
    assert not made.linear.effects.side_effects
    again = parse(pretty(jaxpr, effects=True), registry(Publish, Look))
    assert again == jaxpr and again.effects == jaxpr.effects
    one = vmap(jaxpr, 1, (0,), rules=SEQUENTIAL).unwrap().jaxpr
    LOG.clear()
    evaluate(checked(one), [np.array([0.5])])
    assert plain == LOG


@pytest.mark.parametrize("call", ["jit", "remat", "cond", "scan"])
def test_cotangents_flow_past_side_effects(call: str) -> None:
    jaxpr = program([F], CALLS[call])
    quiet = silent(jaxpr)
    assert quiet is not None
    backward = reverse(jaxpr, (True,), rules=RULES).unwrap().jaxpr
    assert run(backward, 0.5, 1.0) == run(jaxpr, 0.5)
    args = [np.array(0.5), np.array(1.0)]
    assert evaluate(backward, args) == evaluate(reverse(quiet, (True,)).unwrap().jaxpr, args)


def test_vmap_refuses_effects_that_do_not_commute() -> None:
    jaxpr = program([F], lambda b, x: publish(b, "a", x))
    error = vmap(jaxpr, 2, (0,), rules=RULES).failure()
    assert "publish is ordered" in error.what and error.equation
    found = vmap(program([F], lambda b, x: [look(b)]), 3, (0,), 0, RULES).unwrap()
    assert found.out_batched == (True,)
    # A batched result needs an axis.
    assert (
        "no axis" in vmap(program([F], lambda b, x: [look(b)]), 3, (0,), None, RULES).failure().what
    )


def test_an_effect_that_a_linear_value_decides_is_not_dropped() -> None:
    def body(b: Builder, x: Atom) -> list[Atom]:
        publish(b, "a", x)
        return [b(p.Neg(), x)]

    for jaxpr in (
        program([F], body),
        program([F], lambda b, x: b.emit(Jit(program([F], body)), [x])),
        program([F], lambda b, x: b.emit(Scan(program([F], body), 2, False, 0, 1), [x])),
    ):
        error = transpose(jaxpr, [GradValue()], rules=RULES).failure()
        assert isinstance(error, NotApplicable | TransformError)
        assert "publish" in str(error)


def test_partial_eval_splits_scans_whose_iterations_commute() -> None:
    def step(first: str, second: str) -> Jaxpr:
        def body(b: Builder, x: Atom, y: Atom) -> list[Atom]:
            publish(b, first, x)
            publish(b, second, y)
            return []

        return program([F, F], body)

    for topics, parted in ((("a", "b"), True), (("a", "a"), False), (("a", "any"), False)):
        scan = Scan(step(*topics), 3, False, 0, 0)
        jaxpr = program([F3, F3], lambda b, x, y, scan=scan: b.emit(scan, [x, y]))
        pe = partial_eval(jaxpr, (True, False), rules=RULES).unwrap()
        assert bool(pe.known.eqns) is parted
        if not parted:
            args = ([1, 2, 3], [4, 5, 6])
            assert run(recompose(pe), *args) == run(jaxpr, *args)


def test_without_io_is_none_if_io_has_results() -> None:
    quiet = silent(program([F], CALLS["scan"]))
    assert quiet is not None and not quiet.effects
    assert run(quiet, 0.5) == []
    assert (
        silent(program([F], lambda b, x: b.emit(Jit(program([], lambda b: [look(b)])), []))) is None
    )
    pure = program([F], lambda b, x: [b(p.Sin(), x)])
    assert silent(pure) is pure


def test_effects_of_a_kind_are_written_by_its_fields() -> None:
    assert effect_text(Topic("a b"), None) == "topic a_b"
    assert effect_text(Peek(), None) == "peek"
    jaxpr = program([F], lambda b, x: (publish(b, "a", x), [look(b)])[1])
    assert "!{peek, topic a}" in pretty(jaxpr, effects=True)
    assert parse(pretty(jaxpr, effects=True), registry(Publish, Look)) == jaxpr
    assert str(replace(Publish("b")).typing(F).effects) == "{topic b}"
