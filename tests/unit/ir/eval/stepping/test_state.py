from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import extend
from effax.ir.errors import EffaxError
from effax.ir.eval.numpy import evaluate
from effax.ir.eval.stepping.breaks import at_primitive, condition_of, run_until
from effax.ir.eval.stepping.memory import RefChange, RefPart, Version
from effax.ir.eval.stepping.state import State, advance, contents, first_state, step_over
from effax.ir.primitive import Value
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse


def num(x: float) -> Value:
    return np.asarray(x, np.float32)


def states(state: State) -> list[State]:
    found = [state]
    while not found[-1].has_ended:
        found.append(advance(found[-1]))
    return found


def scanned(reverse: bool) -> Jaxpr:
    """A loop over the elements of a reference, which it reads and writes."""

    def body(c: jax.Array, r: jax.Ref) -> tuple[jax.Array, jax.Array]:
        c = c * 2 + r[...]
        r[...] = c
        return c, c + 1

    def loop(r: jax.Ref, x: jax.Array) -> object:
        return jax.lax.scan(body, x, r, reverse=reverse)

    return jax.make_jaxpr(loop)(jax.new_ref(jnp.arange(3.0)), jnp.float32(1)).jaxpr


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_over_a_reference_is_entered_with_its_elements(reverse: bool) -> None:
    jaxpr = scanned(reverse)
    first = first_state(jaxpr, [np.arange(3, dtype=np.float32), num(1)])
    found = states(first)
    last = found[-1]
    buffer = first.frame.value(jaxpr.binders[0])
    assert last.results is not None
    expected = [2, 5, 12] if not reverse else [18, 9, 4]
    assert contents(last, buffer).tolist() == expected
    assert last.results[1].tolist() == [x + 1 for x in expected]
    # Any earlier state has the contents of its time, in any order.
    for state in (first, last, found[len(found) // 2], first):
        now = contents(state, buffer)
        changed = {0: [0, 1, 2], len(found) - 1: expected}.get(found.index(state))
        assert changed is None or now.tolist() == changed
    labels = {s.frame.path for s in found}
    wanted = "scan, iteration 1 on element 1" if reverse else "scan, iteration 1"
    assert (wanted,) in labels


def test_a_state_can_be_continued_twice() -> None:
    jaxpr = parse("""{ lambda ; a:Ref{f32[2]} b:f32[]. let
        a[0] += b
        a[1] <- b
        d:f32[2] <- a[...]
      in (d,) }""")
    first = first_state(jaxpr, [np.zeros(2, np.float32), num(3)])
    once = end = advance(first)
    for _ in range(2):
        end = advance(advance(once))
        assert end.frame.env[3].tolist() == [3, 3]  # type: ignore[union-attr]
        assert contents(first, first.frame.value(jaxpr.binders[0])).tolist() == [0, 0]
    assert [a.change is None for a in end.accesses()] == [True, False, False]


def test_versions_are_restored_in_any_order() -> None:
    buffer = np.zeros(2)
    versions = [Version()]
    for i in range(1, 5):
        before = buffer.copy()
        buffer[i % 2] = i
        change = RefChange(RefPart(buffer), before, buffer.copy())
        versions.append(versions[-1].changed((change,)))
    expected = [[0, 0], [0, 1], [2, 1], [2, 3], [4, 3]]
    for i in (4, 0, 3, 1, 2, 0, 4):
        versions[i].restore()
        assert buffer.tolist() == expected[i]


def test_an_equation_that_fails_leaves_the_state_as_it_was() -> None:
    def f(r: jax.Ref) -> None:
        r[0] = 1.0
        jax.debug.callback(fail)
        r[1] = 1.0

    def fail() -> None:
        raise ZeroDivisionError

    jaxpr = jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(2))).jaxpr
    state = first_state(jaxpr, [np.zeros(2, np.float32)])
    stopped = run_until(state)
    assert isinstance(stopped.error, ZeroDivisionError)
    assert stopped.state.eqn is jaxpr.eqns[1]
    assert contents(stopped.state, state.frame.value(jaxpr.binders[0])).tolist() == [1, 0]


def test_errors_have_the_equation_and_the_line() -> None:
    def f(x: jax.Array) -> object:
        return jax.pure_callback(lambda x: np.zeros(3), jax.ShapeDtypeStruct((), "float32"), x)

    jaxpr = jax.make_jaxpr(f)(1.0).jaxpr
    stopped = run_until(first_state(jaxpr, [num(1)]))
    assert isinstance(stopped.error, EffaxError)
    assert "test_state.py" in str(stopped.error.source)
    assert "pure_callback" in str(stopped.error.equation)


@dataclass(frozen=True, slots=True)
class Twice(extend.Primitive):
    """The program, applied two times to its own result; the region does not say so."""

    jaxpr: Jaxpr
    name: ClassVar[str] = "twice"

    def typing(self, *ins: extend.Type) -> extend.Typing:
        return extend.Typing(ins)

    def evaluate(self, *ins: Value) -> list[Value]:
        return evaluate(self.jaxpr, evaluate(self.jaxpr, ins))

    def subjaxprs(self) -> tuple[Jaxpr, ...]:
        return (self.jaxpr,)


def test_a_primitive_whose_regions_are_not_declared_is_one_step() -> None:
    body = parse("{ lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }")
    jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }")
    eqn = jaxpr.eqns[0]._replace(prim=Twice(body))
    state = advance(first_state(jaxpr.replace(eqns=[eqn]), [num(2)]))
    assert state.frame.depth == 0
    assert state.frame.env[1] == 18


@dataclass(frozen=True, slots=True)
class Last(extend.RegionPrimitive):
    """A loop over the elements from the last to the first."""

    body: Jaxpr
    times: int
    name: ClassVar[str] = "last"

    def regions(self) -> tuple[extend.Region, ...]:
        return (extend.loop_region(self.body, self.times, 0, 1)._replace(reverse=True),)


def test_a_loop_of_the_user_is_entered_by_its_regions() -> None:
    body = parse("{ lambda ; c:f32[] x:f32[]. let d:f32[] = mul c x; e:f32[] = add d x in (e, d) }")
    loop = Last(body, 3)

    def f(c: jax.Array, xs: jax.Array) -> list[jax.Array]:
        return loop.bind(c, xs)

    jaxpr = jax.make_jaxpr(f)(np.float32(2), jnp.arange(3.0)).jaxpr
    args = [num(2), np.arange(3, dtype=np.float32)]
    found = states(first_state(jaxpr, args))
    assert ("last, iteration 2 on element 0",) in {s.frame.path for s in found}
    assert found[-1].results is not None
    for x, y in zip(found[-1].results, evaluate(jaxpr, args), strict=True):
        assert x.tolist() == y.tolist()
    compiled = jax.jit(f)(jnp.array(args[0]), jnp.array(args[1]))
    assert [x.tolist() for x in compiled] == [y.tolist() for y in found[-1].results]


def test_a_loop_of_many_steps_is_linear() -> None:
    def f(r: jax.Ref, n: int) -> jax.Array:
        def body(i: jax.Array, c: jax.Array) -> jax.Array:
            r[i % 1000] += c
            return c + 1

        return jax.lax.fori_loop(0, n, body, 0.0)

    def calls(n: int) -> int:
        jaxpr = jax.make_jaxpr(lambda r: f(r, n))(jax.new_ref(jnp.zeros(1000))).jaxpr
        count = 0

        def counted(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += 1

        state = first_state(jaxpr, [np.zeros(1000, np.float32)])
        sys.setprofile(counted)
        try:
            while not state.has_ended:
                state = step_over(state)
        finally:
            sys.setprofile(None)
        assert sum(1 for a in state.accesses() if a.change is not None) == n
        # A write keeps the element that it changes, and not the whole reference.
        sizes = [a.change.before.size for a in state.accesses() if a.change is not None]
        assert set(sizes) == {1}
        return count

    calls(5)
    few, many = calls(50), calls(100)
    assert many < 2.2 * few


def test_programs_without_stops_inside_are_evaluated_at_once() -> None:
    def f(x: jax.Array) -> jax.Array:
        x = jax.lax.fori_loop(0, 100, lambda i, c: c + 1, x)
        return jax.lax.fori_loop(0, 2, lambda i, c: jnp.sin(c), x)

    jaxpr = jax.make_jaxpr(f)(1.0).jaxpr
    stopped = run_until(first_state(jaxpr, [num(1)]), [at_primitive("sin")])
    assert stopped.reason == "break 1: primitive sin"
    assert stopped.state.steps < 10
    again = run_until(stopped.state, [at_primitive("sin").when("value < -1")])
    assert again.reason == "the end"
    assert again.state.has_ended


def test_conditions_are_tested_on_a_trial() -> None:
    jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = log a; c:f32[] = exp b in (c,) }")
    state = first_state(jaxpr, [num(-1)])
    assert condition_of("nan")(state)
    assert condition_of("np.isnan(b)")(state)
    assert not condition_of("inf")(state)
    assert state.frame.env[1] is None
