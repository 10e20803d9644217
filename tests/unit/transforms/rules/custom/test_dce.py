"""Dead code in and around calls with custom rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from returns.pipeline import is_successful

import effax
import effax.numpy as jnp
from effax.ir.analysis.check import check
from effax.ir.eval.numpy import evaluate
from effax.ir.prims import CustomJvp, CustomLinear, CustomVjp, CustomVmap
from effax.ir.syntax import Jaxpr
from effax.transforms.jvp import jvp
from effax.transforms.linearize import linearize
from effax.transforms.optimize.dce import dce
from effax.transforms.reverse.engine import reverse
from effax.transforms.vmap.engine import vmap

jax: Any = effax
POINT: list[np.ndarray] = [np.asarray(x, np.float32) for x in (0.5, 2.0, 3.0)]


def pushing() -> Any:
    """Return a function whose first two results use one argument each, the last all three."""

    @effax.custom_jvp
    def f(x: Any, y: Any, z: Any) -> Any:
        return jnp.sin(x), y * 2, z * y

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        (x, y, z), (dx, dy, dz) = p, t
        return (jnp.sin(x), y * 2, z * y), (jnp.cos(x) * dx, dy * 2, dz * y + z * dy)

    return f


def pulling(straight: bool = False) -> Any:
    """Return the same with a reverse rule; its first cotangent may use the second result's."""

    @effax.custom_vjp
    def f(x: Any, y: Any, z: Any) -> Any:
        return jnp.sin(x), y * 2, z * y

    def backward(res: Any, cts: Any) -> Any:
        (x, y, z), (a, b, c) = res, cts
        return b if straight else jnp.cos(x) * a, b * 2 + c * z, c * y

    f.defvjp(lambda x, y, z: ((jnp.sin(x), y * 2, z * y), (x, y, z)), backward)
    return f


def counted(jaxpr: Jaxpr) -> tuple[int, int]:
    (eqn,) = [e for e in jaxpr.eqns if isinstance(e.prim, CustomJvp | CustomVjp | CustomVmap)]
    return len(eqn.ins), len(eqn.outs)


def traced(f: Any, *args: Any) -> Jaxpr:
    return effax.make_jaxpr(f)(*(args or (1.0, 2.0, 3.0))).jaxpr


def reduced(jaxpr: Jaxpr, *used: bool) -> Jaxpr:
    """Remove dead code, and check that the program is valid and dce is idempotent."""
    once = dce(jaxpr, used or None, False).unwrap().jaxpr
    assert is_successful(check(once))
    again = dce(once, None, False).unwrap().jaxpr
    assert again == once
    return once


@pytest.mark.parametrize("used", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)], ids=str)
def test_unused_results_of_jvp_rules_are_removed(used: Any) -> None:
    jaxpr = traced(pushing())
    keep = tuple(map(bool, used))
    small = reduced(jaxpr, *keep)
    # A rule may use an argument that the function does not use.
    assert counted(small) == (3, sum(used))
    whole = [x for x, u in zip(evaluate(jaxpr, POINT), keep, strict=True) if u]
    np.testing.assert_allclose(evaluate(small, POINT), whole)
    before = jvp(jaxpr, [True] * 3).unwrap().jaxpr
    after = jvp(small, [True] * 3).unwrap().jaxpr
    dots = evaluate(before, [*POINT, *POINT])[3:]
    wanted = [x for x, u in zip(dots, keep, strict=True) if u]
    np.testing.assert_allclose(evaluate(after, [*POINT, *POINT])[sum(used) :], wanted)


@pytest.mark.parametrize("used", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)], ids=str)
@pytest.mark.parametrize("straight", [False, True])
def test_unused_results_of_vjp_rules_are_removed_and_cotangents_kept(
    used: Any, straight: bool
) -> None:
    jaxpr = traced(pulling(straight))
    keep = tuple(map(bool, used))
    small = reduced(jaxpr, *keep)
    # A rule returns all three cotangents for any used results.
    assert counted(small) == (3, sum(used))
    before = reverse(jaxpr, [True] * 3, keep).unwrap()
    after = reverse(small, [True] * 3).unwrap()
    cts: list[np.ndarray] = [np.asarray(i + 1, np.float32) for i in range(sum(used))]
    found = evaluate(after.jaxpr, [*POINT, *cts])[sum(used) :]
    wanted = evaluate(before.jaxpr, [*POINT, *cts])[3:]
    ours = iter(found)
    theirs = iter(wanted)
    for mine, its in zip(after.nonzero, before.nonzero, strict=True):
        a = next(ours) if mine else np.float32(0)
        b = next(theirs) if its else np.float32(0)
        np.testing.assert_allclose(a, b)


def test_arguments_without_cotangents_have_none() -> None:
    f = jax.custom_vjp(lambda x, n: (x * 2, n + 1))
    f.defvjp(lambda x, n: ((x * 2, n + 1), x), lambda x, cts: (cts[0] * 3, None))
    small = reduced(traced(f, 1.0, 2.0), True, False)
    assert counted(small) == (2, 1)
    assert reverse(small, [True, True]).unwrap().nonzero == (True, False)


def test_residuals_that_the_backward_rule_does_not_use_are_not_kept() -> None:
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), (jnp.exp(x), x * 5)), lambda r, ct: (ct * r[1],))
    done = linearize(traced(f, 1.0), [True]).unwrap()
    assert len(done.residuals) == 1
    assert "exp" not in str(done.primal)
    assert float(jax.grad(f)(2.0)) == 10.0


def test_constants_of_rules_stay_until_these_are_asked() -> None:
    table = jnp.arange(3.0)
    f = jax.custom_jvp(lambda x, y: (x * table[1], y))
    f.defjvp(lambda p, t: (f(*p), (t[0] * table[1], t[1])))
    small = reduced(traced(f, 1.0, 2.0), False, True)
    assert counted(small) == (3, 1)
    pushed = dce(jvp(small, [False, True, True]).unwrap().jaxpr, None, False).unwrap().jaxpr
    assert not any(isinstance(e.prim, CustomJvp) and len(e.outs) > 1 for e in pushed.eqns)


def test_rules_that_call_their_function_are_narrowed() -> None:
    f = jax.custom_jvp(lambda x, y: (jnp.sin(x), y))
    f.defjvp(lambda p, t: (f(*p), (jnp.cos(p[0]) * t[0], t[1])))
    small = reduced(traced(f, 1.0, 2.0), True, False)
    assert counted(small) == (2, 1)
    pushed = jvp(small, [True, True]).unwrap().jaxpr
    assert counted(dce(pushed, None, False).unwrap().jaxpr) == (2, 1)


def test_vmap_rules_return_only_used_results() -> None:
    f = jax.custom_batching.custom_vmap(lambda x, y: (x * 2, y * 3))
    f.def_vmap(lambda n, b, xs, ys: ((xs * 20, ys * 30), (True, b[1])))
    small = reduced(traced(f, 1.0, 2.0), False, True)
    assert counted(small) == (2, 1)
    batched = vmap(small, 2, [0, 0]).unwrap().jaxpr
    xs = np.ones(2, np.float32)
    np.testing.assert_allclose(evaluate(batched, [xs, xs])[0], 30 * xs)


def test_linear_calls_of_both_rules() -> None:
    f = jax.custom_rules(lambda x, y: (x * 2, y * 3))
    f.defjvp(lambda p, t: (f(*p), (t[0] * 20, t[1] * 30)))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct[0] * 200, ct[1] * 300 * r[1]))
    done = linearize(traced(f, 1.0, 2.0), [True, True]).unwrap()
    small = dce(done.linear, [False, True], False).unwrap().jaxpr
    (eqn,) = [e for e in small.eqns if isinstance(e.prim, CustomLinear)]
    assert len(eqn.outs) == 1
    assert is_successful(check(small))
    assert jax.grad(lambda x, y: f(x, y)[1], (0, 1))(1.0, 2.0) == (0.0, 600.0)
    assert jax.jvp(lambda x, y: f(x, y)[1], (1.0, 2.0), (1.0, 1.0))[1] == 30.0


def test_writes_that_a_backward_rule_reads_are_kept() -> None:
    @effax.custom_vjp
    def note(ref: Any, x: Any) -> Any:
        ref[...] = effax.stop_gradient(x * 2)
        return x

    def forward(ref: Any, x: Any) -> Any:
        ref[...] = effax.stop_gradient(x * 2)
        return x, ref

    note.defvjp(forward, lambda ref, ct: (None, ct * ref[...]))

    def f(x: Any, ref: Any) -> Any:
        return note(ref, x)

    ref = effax.new_ref(0.0)
    assert float(jax.grad(jax.jit(f))(3.0, ref)) == 6.0
    assert float(ref[...]) == 6.0
