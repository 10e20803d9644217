"""Residuals of a derivative: each value once, with name, line and type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import checkpoint_policies as policies
from effax import lax
from effax.ad import SavedResidual, saved_residuals
from effax.ad_checkpoint import checkpoint_name, print_saved_residuals
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Scan
from effax.ir.recursion import postorder
from effax.ir.syntax import Jaxpr
from effax.transforms.linearize import linearize
from effax.transforms.partial_eval.saved import FromArgument, FromConstant, Named, OutputOf

W = jnp.ones((3, 3))
X = jnp.arange(3.0)


def kinds(found: list[SavedResidual]) -> list[str]:
    """Type and origin, lines left out."""
    return [str(r).partition(" from /")[0] for r in found]


def layer(params: Any, x: Any) -> Any:
    h = checkpoint_name(jnp.tanh(x @ params["w"]), "h")
    return jnp.sum(jnp.sin(h) @ W)


def test_arguments_constants_names_and_outputs_are_distinguished() -> None:
    found = saved_residuals(layer, {"w": W}, X)
    assert {type(r.origin) for r in found} == {FromArgument, FromConstant, OutputOf}
    named = [r.origin.name for r in found if isinstance(r.origin, FromArgument)]
    assert named == ["params['w']", "x"]
    assert "f32[3,3] from a constant" in kinds(found)
    (line,) = [str(r) for r in found if "output of cos" in str(r)]
    assert "test_saved.py" in line
    assert "(layer)" in line


def test_a_policy_keeps_what_it_names() -> None:
    keep = effax.checkpoint(layer, policy=policies.save_only_these_names("h"))
    found = saved_residuals(keep, {"w": W}, X)
    (h,) = [r for r in found if isinstance(r.origin, Named)]
    assert h.type.shape == (3,)
    assert str(h).startswith("f32[3] named 'h' from ")
    assert not [r for r in found if isinstance(r.origin, OutputOf)]
    nothing = saved_residuals(effax.checkpoint(layer), {"w": W}, X)
    assert {type(r.origin) for r in nothing} == {FromArgument, FromConstant}


def test_names_are_seen_in_compiled_functions_and_in_loops() -> None:
    def step(c: Any, x: Any) -> tuple[Any, None]:
        return jnp.sin(checkpoint_name(jnp.sin(c) * x, "state")), None

    keep = effax.checkpoint(step, policy=policies.save_only_these_names("state"))
    loop = effax.jit(lambda x: lax.scan(keep, x, jnp.ones((5, 3)))[0])
    found = saved_residuals(loop, X)
    (state,) = [r for r in found if isinstance(r.origin, Named)]
    assert state.type.shape == (5, 3)


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        # x * x needs x, once; x is an argument.
        (lambda x: x * x * x, ["f32[3] from the argument x", "f32[3] output of mul"]),
        # The result of exp is its derivative: the residual.
        (jnp.exp, ["f32[3] output of exp"]),
        (lambda x: x + 1.0, []),
        (effax.jit(jnp.exp), ["f32[3] output of exp"]),
        # A call that needs its argument, called on one: nothing else is kept.
        (effax.jit(lambda x: x * x), ["f32[3] from the argument x"]),
        (lambda x: effax.jit(lambda a, b: a * b * a)(x, x), None),
        (lambda x: lax.cond(True, jnp.exp, jnp.exp, x), None),
    ],
)
def test_a_value_is_kept_once(fun: Callable[..., Any], expected: list[str] | None) -> None:
    jaxpr = effax.make_jaxpr(fun)(X).jaxpr
    done = linearize(jaxpr, [True]).unwrap()
    assert len(set(done.residuals)) == len(done.residuals)
    outs = [done.primal.outs[r.index] for r in done.residuals if hasattr(r, "index")]
    assert len(done.primal.outs) == len(set(done.primal.outs)) or not outs
    if expected is not None:
        assert sorted(kinds(saved_residuals(fun, X))) == sorted(expected)


def loops(jaxpr: Jaxpr) -> list[Counter[str]]:
    """The primitives in the body of each loop, subjaxprs included."""
    scans = [e.prim for p in postorder(jaxpr) for e in p.eqns if isinstance(e.prim, Scan)]
    return [Counter(e.prim.name for p in postorder(scan.jaxpr) for e in p.eqns) for scan in scans]


def repeated(w: Any, c: Any, xs: Any) -> Any:
    """sin w, and cos of it, are the same in each step."""

    def body(c: Any, x: Any) -> tuple[Any, Any]:
        a = jnp.sin(w)
        return c * a + x, jnp.cos(a) * c

    return lax.scan(body, c, xs)


def test_work_that_is_the_same_in_each_step_is_done_once_before_the_loop() -> None:
    jaxpr = effax.make_jaxpr(repeated)(2.0, 1.0, X).jaxpr
    done = linearize(jaxpr, [True, True, False]).unwrap()
    for made in (done.primal, done.linear):
        (body,) = loops(made)
        assert not {"sin", "cos"} & set(body)
    outside = Counter(eqn.prim.name for eqn in done.primal.eqns)
    assert outside["scan"] == 1
    assert outside["sin"] >= 2
    # What is the same in each step is not stacked: of three numbers there is one array, of c.
    shapes = [v.type.shape for v in done.linear.binders[: len(done.residuals)]]
    assert shapes.count((3,)) == 1


def test_calls_in_a_loop_are_hoisted_in_part() -> None:
    def looped(w: Any, c: Any) -> Any:
        scaled = effax.jit(lambda c: c * jnp.exp(w))
        return lax.scan(lambda c, _: (scaled(c), None), c, None, length=4)[0]

    jaxpr = effax.make_jaxpr(looped)(0.5, 1.0).jaxpr
    done = linearize(jaxpr, [True, True]).unwrap()
    assert [body["exp"] for body in loops(done.primal)] == [0]
    w = np.float32(0.5)
    assert effax.grad(looped)(w, np.float32(2.0)) == pytest.approx(8.0 * np.exp(2.0), rel=1e-5)


def test_a_copy_is_made_in_each_step_and_not_kept() -> None:
    def looped(w: Any, c: Any) -> Any:
        def body(c: Any, _: None) -> tuple[Any, None]:
            return c * jnp.sin(jnp.broadcast_to(w, (3,))), None

        return jnp.sum(lax.scan(body, c, None, length=4)[0])

    found = saved_residuals(looped, 0.5, X)
    assert "f32[3] output of broadcast_in_dim" not in kinds(found)


def test_a_loop_with_effects_does_them_in_each_step() -> None:
    count = effax.new_ref(jnp.float32(0.0))

    def looped(w: Any) -> Any:
        def body(c: Any, _: None) -> tuple[Any, None]:
            count[...] += 1.0
            return c * jnp.sin(w), None

        return lax.scan(body, 1.0, None, length=4)[0]

    assert effax.grad(looped)(0.5) == pytest.approx(4 * np.sin(0.5) ** 3 * np.cos(0.5), rel=1e-5)
    assert count[...] == 4.0


def test_what_is_handed_over_together_is_listed_by_itself() -> None:
    def long(x: Any) -> Any:
        for _ in range(70):
            x = jnp.sin(x)
        return x

    found = saved_residuals(effax.jit(long), X)
    assert kinds(found) == ["f32[3] output of cos"] * 70


def test_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_saved_residuals(lambda x: jnp.sin(x) * x, X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "f32[3] from the argument x" in lines
    assert all(" from " in line for line in lines)


def test_shapes_stand_for_arguments() -> None:
    shape = effax.ShapeDtypeStruct((4,), "float32")
    assert [r.type.shape for r in saved_residuals(jnp.sin, shape)] == [(4,)]


def test_bad_input() -> None:
    with pytest.raises(BadArgument, match="callable"):
        saved_residuals(3)  # type: ignore[arg-type]  # no function
    with pytest.raises(IllTyped, match="x"):
        saved_residuals(lambda x: x, "text")


@pytest.mark.jax
@pytest.mark.parametrize("remat", [False, True])
def test_types_are_those_of_jax(remat: bool) -> None:
    jax = pytest.importorskip("jax")
    ad_checkpoint = pytest.importorskip("jax.ad_checkpoint")
    theirs = getattr(ad_checkpoint, "saved_residuals", None)
    if theirs is None:
        theirs = pytest.importorskip("jax._src.ad_checkpoint").saved_residuals

    def program(module: Any, numpy: Any) -> Any:
        def f(w: Any, x: Any) -> Any:
            return numpy.sum(numpy.sin(numpy.sin(x @ w)) ** 2)

        policy = module.checkpoint_policies.dots_saveable
        return module.checkpoint(f, policy=policy) if remat else f

    w, x = np.ones((3, 4), np.float32), np.ones((2, 3), np.float32)
    expected = [tuple(aval.shape) for aval, _ in theirs(program(jax, jax.numpy), w, x)]
    found = [r.type.shape for r in saved_residuals(program(effax, jnp), w, x)]
    assert sorted(found) == sorted(expected)
