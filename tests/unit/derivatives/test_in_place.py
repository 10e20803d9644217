"""Gradients of loops that update a part of a carry take time in proportion to that part.

Tested in two ways: the program of the backward loop has no equation of the carry's size but
updates in place, and the compiled loop copies no array of that size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir import prims
from effax.ir.analysis.queries import walk
from effax.ir.syntax import Jaxpr

jax: Any = effax

N = 20_011
"""Elements of the carry; no other array of the programs has so many."""

IN_PLACE = (prims.Scatter, prims.ScatterAdd, prims.ScatterMul, prims.DynamicUpdateSlice)
FREE = (prims.NewRef, prims.Freeze, prims.Cond, prims.Scan, prims.Jit)

Step = Callable[[Any, Any, Any], Any]


def conditional(c: Any, i: Any, y: Any) -> Any:
    return lax.cond(y > 0, lambda: c.at[i].set(y * c[i]), lambda: c), None


def nested(c: Any, i: Any, y: Any) -> Any:
    return lax.fori_loop(0, 2, lambda k, c: c.at[k].set(jnp.sin(y) * c[i]), c), None


STEPS: dict[str, Step] = {
    "set": lambda c, i, y: (c.at[i].set(jnp.sin(y) * c[i]), None),
    "set of another element": lambda c, i, y: (c.at[i].set(y * c[i - 1]), c[i + 2]),
    "set without a read": lambda c, i, y: (c.at[i].set(jnp.sin(y)), None),
    "static slice": lambda c, i, y: (c.at[2:4].set(y * c[3:5]), None),
    "add": lambda c, i, y: (c.at[i].add(y * c[i - 1]), None),
    "multiply": lambda c, i, y: (c.at[i].multiply(y * c[i - 1]), c[i]),
    "apply": lambda c, i, y: (c.at[i].apply(jnp.sin), None),
    "dynamic_update_slice": lambda c, i, y: (
        lax.dynamic_update_slice(c, y * lax.dynamic_slice(c, (i + 1,), (2,)), (i,)),
        None,
    ),
    "set of an array of positions": lambda c, i, y: (
        c.at[i + jnp.array([0, 3])].set(y * c[i]),
        None,
    ),
    "reads after two updates": lambda c, i, y: (
        c.at[i].set(jnp.sin(y)).at[i + 1].add(c[i] * c[i + 2]),
        c[i + 1],
    ),
    "conditional": conditional,
    "nested loop": nested,
    "call": lambda c, i, y: (jax.jit(lambda c: c.at[i].set(y * c[i]))(c), None),
}


def loop(step: Step) -> Any:
    def f(x: Any, ys: Any) -> Any:
        def body(c: Any, pair: Any) -> Any:
            return step(c, *pair)

        c, rows = lax.scan(body, x, (jnp.arange(ys.shape[0]), ys))
        return jnp.sum(c[:5] ** 2) + sum(jnp.sum(r) for r in jax.tree.leaves(rows))

    return f


def arguments(n: int) -> tuple[Any, Any]:
    return jnp.linspace(0.5, 1.5, n), jnp.linspace(0.3, 0.9, 4)


def bodies(jaxpr: Jaxpr) -> list[Jaxpr]:
    """Return the bodies of the loops, at any depth."""
    return [p.eqn.prim.jaxpr for p in walk(jaxpr) if isinstance(p.eqn.prim, prims.Scan)]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_backward_loops_update_in_place(step: Step) -> None:
    jaxpr = jax.make_jaxpr(jax.grad(loop(step), (0, 1)))(*arguments(N)).jaxpr
    found = bodies(jaxpr)
    assert len(found) >= 2
    for eqn in (place.eqn for body in found for place in walk(body)):
        assert isinstance(eqn.prim, (*IN_PLACE, *FREE)) or all(
            np.prod(v.type.shape) < N for v in eqn.outs
        ), str(eqn)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_gradients_are_those_of_the_unrolled_loop(step: Step) -> None:
    def unrolled(x: Any, ys: Any) -> Any:
        rows = []
        for i, y in enumerate(ys):
            x, row = step(x, jnp.int32(i), y)
            rows.append(row)
        return jnp.sum(x[:5] ** 2) + sum(jnp.sum(r) for r in jax.tree.leaves(rows))

    args = arguments(9)
    wanted = jax.grad(unrolled, (0, 1))(*args)
    gradient = jax.grad(loop(step), (0, 1))
    for f in (gradient, jax.jit(gradient)):
        for a, b in zip(f(*args), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["set", "reads after two updates", "dynamic_update_slice"])
def test_compiled_loops_copy_no_carry(name: str) -> None:
    gradient = jax.jit(jax.grad(loop(STEPS[name]), (0, 1)))
    hlo = gradient.lower(*arguments(N)).compile().as_text()
    repeated = set(re.findall(r"body=%([\w.-]+)", hlo))
    assert repeated
    computations = re.findall(r"^%([\w.-]+) \(.*?\{\n(.*?)^\}", hlo, re.MULTILINE | re.DOTALL)
    for body, text in computations:
        copies = re.findall(rf"f32\[{N}\]\S* copy\(", text)
        assert not (copies and body in repeated), text


@pytest.mark.slow
def test_repeated_positions_have_the_last_cotangent() -> None:
    """The mask of the last write, from pairs for few positions and from a table for many."""
    for n in (3, 1000):
        x, v = jnp.zeros(n), jnp.array([1.0, 2.0, 3.0, 4.0])
        at = jnp.array([1, 2, 1, -1 if n == 3 else 7])
        f = lambda v, x=x, at=at: jnp.sum(x.at[at].set(v) * jnp.arange(1.0, x.size + 1))  # noqa: E731
        wanted = [0.0, 0.0 if n == 3 else 3.0, 2.0, float(at[-1]) % n + 1]
        for g in (jax.grad(f), jax.jit(jax.grad(f))):
            np.testing.assert_array_equal(g(v), wanted)
