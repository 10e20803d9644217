"""Passes take time linear in the nesting depth, and have no depth limit."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from effax.ir import recursion
from effax.ir.analysis.check import check, checked
from effax.ir.analysis.diff import diff
from effax.ir.analysis.queries import size
from effax.ir.edit.alpha import alpha_eq
from effax.ir.edit.operations import everywhere
from effax.ir.errors import TooDeep
from effax.ir.eval.numpy import evaluate
from effax.ir.recursion import call_with_fresh_stack, carried, postorder
from effax.ir.syntax import Jaxpr
from effax.ir.text.json import from_json, to_json
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.transforms.discharge import discharge
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize
from effax.transforms.optimize.dce import dce
from effax.transforms.optimize.inline import inline
from effax.transforms.partial_eval.packing import MAX_RESIDUALS
from effax.transforms.partial_eval.partial_eval import partial_eval
from effax.transforms.reverse.engine import reverse
from effax.transforms.transpose.cotangent_spec import CotangentSpec, GradValue, NonLinear
from effax.transforms.transpose.engine import transpose
from effax.transforms.vmap.engine import vmap
from tests.unit.building import program
from tests.unit.transforms.nests import CALLS, LEAF, F, equations, interfaces, nest

pytestmark = pytest.mark.slow

LEVELS = 1000
KINDS = sorted(CALLS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_program_is_a_value(kind: str) -> None:
    jaxpr, same, other = nest(kind, LEVELS), nest(kind, LEVELS), nest(kind, LEVELS - 1)
    assert hash(jaxpr) == hash(same)
    assert jaxpr == same
    assert jaxpr != other
    assert len({jaxpr, same, other}) == 2
    assert alpha_eq(jaxpr, same)
    assert pickle.loads(pickle.dumps(jaxpr)) == jaxpr


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_program_has_a_text_of_its_size(kind: str) -> None:
    jaxpr, half = nest(kind, LEVELS), nest(kind, LEVELS // 2)
    text = str(jaxpr)
    assert parse(text, references=references(jaxpr)) == jaxpr
    assert len(text) < 2.2 * len(str(half))


def test_text_that_nests_deeply_is_read() -> None:
    text = "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    for _ in range(300):
        text = f"{{ lambda ; a:f32[]. let b:f32[] = jit[name=f jaxpr={text}] a in (b,) }}"
    assert len(postorder(parse(text))) == 301


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_program_is_checked(kind: str) -> None:
    assert checked(nest(kind, LEVELS))
    wrong = program([F], lambda b, x: [x])
    fault = wrong.replace(outs=[F_UNBOUND])
    (found,) = check(nest("jit", LEVELS, leaf=fault)).failure()
    assert len(found.path) == LEVELS


F_UNBOUND = LEAF.eqns[0].outs[0]._replace(id=7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_program_is_evaluated(kind: str) -> None:
    x = np.float32(1.0)
    (found,) = evaluate(nest(kind, LEVELS), [np.asarray(x)])
    (expected,) = evaluate(nest(kind, 3), [np.asarray(x)])
    assert found == expected


PASSES: dict[str, Callable[[Jaxpr], Jaxpr]] = {
    "jvp": lambda jaxpr: jvp(jaxpr, [True]).unwrap().jaxpr,
    "vmap": lambda jaxpr: vmap(jaxpr, 3, [0]).unwrap().jaxpr,
    "known": lambda jaxpr: partial_eval(jaxpr, [True]).unwrap().known,
    "dce": lambda jaxpr: dce(jaxpr).unwrap().jaxpr,
    "discharge": lambda jaxpr: discharge(jaxpr).unwrap().jaxpr,
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_passes_keep_the_size_of_a_deep_program(kind: str, name: str) -> None:
    run = PASSES[name]
    small, twice = run(nest(kind, 20)), run(nest(kind, 40))
    whole = run(nest(kind, LEVELS))
    step = equations(twice) - equations(small)
    assert equations(whole) == equations(small) + step * (LEVELS - 20) // 20


@pytest.mark.slow
def test_deep_calls_are_differentiated() -> None:
    jaxpr = nest("jit", LEVELS)
    done = linearize(jaxpr, [True]).unwrap()
    whole = reverse(jaxpr, [True]).unwrap().jaxpr
    n_residuals = len(done.residuals)
    ct_specs: list[CotangentSpec] = [*[NonLinear()] * n_residuals, GradValue()]
    back = transpose(done.linear, ct_specs).unwrap().jaxpr
    for made in (done.primal, done.linear, back, whole):
        assert equations(made) < 12 * LEVELS
        assert interfaces(made) <= MAX_RESIDUALS + 3
    one = np.asarray(np.float32(1.0))
    _, gradient = evaluate(whole, [one, one])
    # f0 = sin x, f(n + 1) = x · f(n), so f'(1) = n sin 1 + cos 1
    assert gradient == pytest.approx(LEVELS * np.sin(1.0) + np.cos(1.0), rel=1e-4)


@pytest.mark.parametrize("kind", ["scan", "cond", "remat"])
def test_loops_and_branches_in_each_other_are_differentiated(kind: str) -> None:
    small, whole = (reverse(nest(kind, n), [True]).unwrap().jaxpr for n in (70, 140))
    assert equations(whole) < 2.3 * equations(small)
    assert interfaces(whole) <= 2 * MAX_RESIDUALS
    one = np.asarray(np.float32(1.0))
    _, gradient = evaluate(whole, [one, one])
    assert gradient == pytest.approx(140 * np.sin(1.0) + np.cos(1.0), rel=1e-4)


@pytest.mark.parametrize("kind", ["jit", "scan", "cond", "remat", "custom_jvp"])
def test_shared_subjaxprs_are_transformed_once(kind: str) -> None:
    """2^n calls of n distinct programs stay n programs; residuals are packed."""
    sizes = []
    for levels in (10, 20):
        once = reverse(nest(kind, levels, calls=2), [True]).unwrap().jaxpr
        sizes.append(equations(once))
        assert interfaces(once) < 4 * MAX_RESIDUALS
    assert sizes[1] < 4 * sizes[0]


def test_a_second_derivative_of_calls_that_double() -> None:
    small, whole = (
        reverse(
            reverse(nest("jit", levels, calls=2), [True]).unwrap().jaxpr, [True, False]
        ).unwrap()
        for levels in (8, 16)
    )
    assert equations(whole.jaxpr) < 4 * equations(small.jaxpr)


@pytest.mark.slow
def test_deep_calls_are_inlined() -> None:
    flat = inline(nest("jit", LEVELS)).unwrap()
    assert equations(flat) == len(flat.eqns) == LEVELS + 1


def test_pickles_of_shared_programs_do_not_double() -> None:
    jaxpr = nest("jit", 40, calls=2)
    restored = pickle.loads(pickle.dumps(jaxpr))
    assert restored == jaxpr
    assert len(postorder(restored)) == 41


def test_fresh_stacks_inherit_the_state_of_the_thread() -> None:
    class State(threading.local):
        value = 0

    state = carried(State())
    threads = set[int]()

    def down(level: int) -> int:
        assert state.value == level
        state.value += 1
        threads.add(threading.get_ident())
        return call_with_fresh_stack(down, level + 1) if level < 2000 else level

    try:
        assert down(0) == 2000
        assert state.value == 2001
        assert len(threads) > 5
    finally:
        recursion._carried.remove(state)


def test_errors_in_fresh_stacks_propagate() -> None:
    def down(level: int) -> int:
        if level == 0:
            raise KeyError("at the bottom")
        return call_with_fresh_stack(down, level - 1)

    with pytest.raises(KeyError, match="at the bottom"):
        down(1000)
    assert threading.active_count() == 1


def test_unbounded_recursion_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "STACKS", 3)

    def down() -> None:
        call_with_fresh_stack(down)

    with pytest.raises(TooDeep, match="calls itself without end"):
        down()
    assert isinstance(TooDeep("x"), RecursionError)
    assert sys.getrecursionlimit() >= 1000


@pytest.mark.parametrize("kind", ["jit", "cond"])
def test_deep_programs_are_measured_edited_compared_and_exchanged(kind: str) -> None:
    jaxpr, other = nest(kind, LEVELS), nest(kind, LEVELS, leaf=program([F], lambda b, x: [x]))
    assert size(nest("jit", LEVELS)) == 2 * LEVELS + 1
    assert from_json(to_json(jaxpr)) == jaxpr
    assert everywhere(lambda inner: inner, jaxpr) is jaxpr
    assert diff(jaxpr, other)
    assert not diff(jaxpr, nest(kind, LEVELS))
    assert references(jaxpr) == {}
    assert jaxpr.free_axes == ()
