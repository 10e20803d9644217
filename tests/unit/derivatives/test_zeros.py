"""No pass materializes known zeros: zeros are counted in its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.prims import Scan
from effax.ir.syntax import Jaxpr, Lit
from effax.transforms.jvp import jvp
from tests.unit.transforms.array_cases import DIFFERENTIABLE, Case
from tests.unit.transforms.test_array_rules import single, subsets

X = np.arange(1, 5, dtype=np.float32)
Y = X * 2
ARITHMETIC = {"add", "sub", "mul", "div", "neg"}


def zeros_in(jaxpr: Jaxpr) -> int:
    """Return the number of arrays of zeros, and of operations on the number 0, in a program."""
    count = 0
    for eqn in jaxpr.eqns:
        zero = any(isinstance(a, Lit) and a.value == 0 for a in eqn.ins)
        count += zero and eqn.prim.name in {"broadcast_in_dim", *ARITHMETIC}
        count += sum(map(zeros_in, eqn.prim.subjaxprs()))
    return count


Program = Callable[[Any, Any], Any]

# Programs of x, which is differentiated, and y, which is not.
PROGRAMS: dict[str, Program] = {
    "a product": lambda x, y: jnp.sum(jnp.sin(x) * y),
    "a choice": lambda x, y: jnp.sum(jnp.where(y > 2, x * 2, y)),
    "a concatenation": lambda x, y: jnp.sum(jnp.concatenate([x, x]) * 2) + jnp.sum(y),
    "a contraction": lambda x, y: 2 * jnp.dot(x, y),
    "a part": lambda x, y: jnp.sum(jnp.split(x * y, 2)[0]),
    "running sums": lambda x, y: jnp.sum(jnp.cumsum(x) * y),
    "products": lambda x, y: jnp.prod(x) * jnp.prod(y),
    "the greatest": lambda x, y: jnp.max(x * y),
    "a norm": lambda x, y: jnp.linalg.norm(x * y),
    "softmax": lambda x, y: jnp.sum(effax.nn.softmax(x) * effax.nn.softmax(y)),
    "a loop": lambda x, y: lax.scan(
        lambda c, t: ((c[0] * t, c[1] + 1.0, c[2] + 1), c[1]), (x[0], y[0], 0), y
    )[0][0],
    "what a loop stacks": lambda x, y: jnp.sum(
        lax.scan(lambda c, t: ((c[0] * t, c[1] * t), (c[0], c[1])), (x[0], y[0]), y)[1][0]
    ),
    "a loop of counted steps": lambda x, y: jnp.sum(
        lax.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, c[1] + 1.0), (x, y))[0]
    ),
    "a branch": lambda x, y: jnp.sum(
        lax.cond(y[0] > 0, lambda x, y: (x * 2, y * 3), lambda x, y: (x * 3, y), x, y)[0]
    ),
    "a call": lambda x, y: jnp.sum(effax.jit(lambda x, y: (x * 2, x * y, jnp.sin(y)))(x, y)[0]),
    "a call that is computed again": lambda x, y: jnp.sum(
        effax.checkpoint(lambda x, y: (jnp.sin(x) * y, jnp.cos(x), y + 1))(x, y)[0]
    ),
    "no dependence": lambda x, y: jnp.sum(y) + jnp.sum(jnp.floor(x)),
    "integers on the way": lambda x, y: jnp.sum(jnp.round(x).astype(int) * y) + x[0] * 3,
}

PASSES: dict[str, Callable[[Program], Any]] = {
    "jvp": lambda f: effax.make_jaxpr(lambda x, y, t: effax.jvp(lambda x: f(x, y), (x,), (t,)))(
        X, Y, X
    ),
    "grad": lambda f: effax.make_jaxpr(effax.grad(f))(X, Y),
    "grad of both": lambda f: effax.make_jaxpr(effax.grad(f, (0, 1)))(X, Y),
    "linearize": lambda f: effax.make_jaxpr(
        lambda x, y, t: effax.linearize(lambda x: f(x, y), x)[1](t)
    )(X, Y, X),
    "jvp of grad": lambda f: effax.make_jaxpr(
        lambda x, y, t: effax.jvp(lambda x: effax.grad(f)(x, y), (x,), (t,))[1]
    )(X, Y, X),
    "vmap of grad": lambda f: effax.make_jaxpr(effax.vmap(effax.grad(f), (0, None)))(
        np.stack([X, Y]), Y
    ),
}


def zeros_used(made: Any) -> bool:
    """Return whether an equation other than a broadcast has a constant of zeros as operand."""
    computed = (eqn for eqn in made.jaxpr.eqns if eqn.prim.name != "broadcast_in_dim")
    used = {a for eqn in computed for a in eqn.ins}
    binders = zip(made.jaxpr.binders, made.consts, strict=False)
    return any(v in used and not np.asarray(c).any() for v, c in binders)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_pass_materializes_zeros(name: str) -> None:
    assert zeros_in(effax.make_jaxpr(PROGRAMS[name])(X, Y).jaxpr) == 0
    for applied in PASSES.values():
        made = applied(PROGRAMS[name])
        assert zeros_in(made.jaxpr) == 0
        assert not zeros_used(made)


def test_zeros_that_are_written_are_counted() -> None:
    written = effax.make_jaxpr(lambda x: effax.jit(lambda x: x + jnp.zeros(4))(x) * 0.0)(X)
    assert zeros_in(written.jaxpr) == 2


def test_a_loop_carries_nonzero_tangents_only() -> None:
    jaxpr = PASSES["jvp"](PROGRAMS["a loop"]).jaxpr
    (loop,) = (eqn.prim for eqn in jaxpr.eqns if isinstance(eqn.prim, Scan))
    assert loop.n_carry == 4


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_a_zero_tangent_is_not_an_array(case: Case) -> None:
    """Only what has zero elements beside others writes zeros, once: parts that do not move."""
    parts = {"concatenate", "pad", "dynamic_update_slice", "scatter", "scatter_add"}
    parts |= {"scatter_mul", "scatter_max", "scatter_min"}
    for positions in subsets(case.smooth):
        mask = [i in positions for i in range(len(case.args))]
        made = jvp(single(case.prim, case.args), mask).unwrap().jaxpr
        assert zeros_in(made) <= (case.prim.name in parts)
