"""Branches that update different large arrays, without copies and with equal results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.analysis.check import check
from effax.ir.eval.numpy import evaluate
from effax.ir.prims import Cond, While
from effax.ir.syntax import Jaxpr
from effax.lowering.branches import in_place
from effax.transforms.discharge import discharge

BIG = 100_000


def adds_or_reads(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    """One adds to t and reads u, the other reads t."""

    def add() -> Any:
        t[i] += 1.0
        return u[i]

    return [add, lambda: t[i] + 0.0]


def different_arrays(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    def first() -> None:
        t[i] += 1.0

    def second() -> None:
        u[i] += 2.0

    return [first, second]


def each_from_the_other(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    def first() -> None:
        t[i] += u[i]

    def second() -> None:
        u[i] = t[i] * 2

    return [first, second]


def swaps(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    return [lambda: effax.ref.swap(t, i, 5.0), lambda: effax.ref.swap(u, i, 6.0)]


def three(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    def first() -> Any:
        t[i] += 1.0
        return u[0], 1

    def second() -> Any:
        u[i] += 1.0
        return t[0], 2

    return [first, second, lambda: (t[i] + u[i], 3)]


def loops_inside(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
    def first() -> Any:
        def step(k: Any, _: Any) -> Any:
            t[k] += u[k]

        lax.fori_loop(0, 4, step, None)
        return t[1]

    def second() -> Any:
        lax.cond(u[0] > 0, *different_arrays(u, t, i))
        return u[1]

    return [first, second]


PATTERNS = [adds_or_reads, different_arrays, each_from_the_other, swaps, three, loops_inside]
each_pattern = pytest.mark.parametrize("branches", PATTERNS, ids=lambda f: f.__name__)


def chosen(branches: Any, t: Any, u: Any, k: Any, i: Any) -> Any:
    return lax.switch(k, branches(t, u, i))


def copies(program: Any, *args: Any) -> int:
    text = effax.jit(program).lower(*args).compile().as_text()
    return len(re.findall(rf"= \(?\w+\[{BIG}\]\S*[^=]*? copy(?:-start)?\(", text))


def pair(n: int) -> tuple[Any, Any]:
    return (
        effax.new_ref(jnp.arange(n, dtype="float32")),
        effax.new_ref(jnp.ones(n, "float32") * 3),
    )


@pytest.mark.slow
@each_pattern
def test_no_array_is_copied(branches: Any) -> None:
    t, u = pair(BIG)
    assert copies(lambda t, u, k, i: chosen(branches, t, u, k, i), t, u, 1, 3) == 0


@pytest.mark.slow
def test_no_copy_in_a_loop_or_after_reads() -> None:
    t, u = pair(BIG)

    def looped(t: Any, u: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            return c + lax.cond(k > 3, *adds_or_reads(t, u, k)), None

        return lax.scan(step, 0.0, jnp.arange(6))[0]

    def read_before(t: Any, u: Any, p: Any, i: Any) -> Any:
        x = t[i + 1]
        lax.cond(p, *different_arrays(t, u, i))
        return x

    assert copies(looped, t, u) == 0
    assert copies(read_before, t, u, True, 3) == 0


def pure(branches: Any, n: int) -> Jaxpr:
    t, u = pair(n)
    made = effax.make_jaxpr(lambda t, u, k, i: chosen(branches, t, u, k, i))(t, u, 1, 3)
    return discharge(made.jaxpr).unwrap().jaxpr


@each_pattern
@pytest.mark.parametrize("k", [-1, 0, 1, 2, 9])
def test_results_are_equal(branches: Any, k: int) -> None:
    jaxpr = pure(branches, 1 << 14)
    made = in_place(jaxpr)
    check(made).unwrap()
    assert not any(isinstance(eqn.prim, Cond) for eqn in made.eqns)
    t, u = np.arange(1 << 14, dtype=np.float32), np.full(1 << 14, 3, np.float32)

    def args() -> list[np.ndarray]:
        return [t.copy(), u.copy(), np.array(k, np.int32), np.array(3, np.int32)]

    for x, y in zip(evaluate(jaxpr, args()), evaluate(made, args()), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_compiled_results_are_equal() -> None:
    for k in (0, 1, 2):
        (t, u), (v, w) = pair(BIG), pair(BIG)
        wanted = chosen(three, t, u, k, 3)
        found = effax.jit(lambda t, u, k: chosen(three, t, u, k, 3))(v, w, k)
        assert [float(x) for x in found] == [float(x) for x in wanted]
        np.testing.assert_array_equal(v[:10], t[:10])
        np.testing.assert_array_equal(w[:10], u[:10])


def test_small_arrays_keep_the_conditional() -> None:
    small = pure(adds_or_reads, 100)
    assert in_place(small) is small
    # One branch is the identity: the conditional updates in place.
    idle = pure(lambda t, u, i: [adds_or_reads(t, u, i)[0], lambda: 0.0], 100)
    assert in_place(idle) is idle

    def nothing(t: Any, u: Any, i: Any) -> list[Callable[[], Any]]:
        return [different_arrays(t, u, i)[0], lambda: None]

    plain = pure(nothing, 1 << 14)
    assert in_place(plain) is plain


def test_new_arrays_keep_the_conditional() -> None:
    """A new array has no buffer before the conditional; to fill one costs as much as a copy."""

    def f(x: Any, p: Any) -> Any:
        return lax.cond(p, lambda: x.at[0].set(1.0), lambda: x * 2)

    jaxpr = effax.make_jaxpr(f)(jnp.ones(1 << 14), True).jaxpr
    assert in_place(jaxpr) is jaxpr


def test_each_loop_carries_the_updates_of_its_branch() -> None:
    made = in_place(pure(adds_or_reads, 1 << 14))
    loops = [eqn for eqn in made.eqns if isinstance(eqn.prim, While)]
    carried = [[v.type.shape for v in eqn.outs] for eqn in loops]
    assert carried == [[(), (), (1 << 14,)], [(), ()]]
