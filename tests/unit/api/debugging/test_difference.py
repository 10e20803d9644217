from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from returns.result import Success

import effax as jax
import effax.numpy as jnp
from effax.debug import first_difference
from effax.ir import map_eqns, parse
from effax.ir.build import Builder
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Cos, Sin
from effax.ir.syntax import Atom, Eqn, Jaxpr
from effax.passes import Pass, cse, dce, simplify

HERE = Path(__file__).name
X = jnp.arange(1.0, 4.0)


def with_cos(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with cosines in place of sines: a wrong pass."""

    def change(b: Builder, eqn: Eqn) -> Atom | None:
        return b(Cos(), *eqn.ins) if isinstance(eqn.prim, Sin) else None

    return map_eqns(change, jaxpr)


wrong = Pass("wrong", lambda jaxpr: Success(with_cos(jaxpr)))


def f(x: jax.Array) -> jax.Array:
    y = jnp.exp(x) * 1.0
    y = jnp.sin(y) + y  # here
    return jnp.sum(y * 2)


def test_equal_functions_have_no_difference() -> None:
    assert first_difference(f, f)(X) is None
    assert first_difference(f, jax.jit(f))(X) is None
    assert first_difference(lambda x: (x + 1) * x, lambda x: x * x + x)(X) is None


def test_a_wrong_pass_is_found_at_its_equation() -> None:
    jaxpr = jax.make_jaxpr(f)(X).jaxpr
    found = first_difference(jaxpr, with_cos(jaxpr))(X)
    assert found is not None
    assert found.left is not None
    assert found.right is not None
    assert (found.left.prim.name, found.right.prim.name) == ("sin", "cos")
    assert found.element == (0,)
    assert f"{HERE}:{f.__code__.co_firstlineno + 2}" in str(found.line)
    np.testing.assert_allclose(found.values[0], np.sin(np.exp(np.asarray(X))), rtol=1e-5)
    for part in ("sin", "cos", "evaluated", HERE):
        assert part in str(found)
    assert "<pre>" in found._repr_html_()


@pytest.mark.slow
def test_passes_in_between_are_passed_over() -> None:
    changed = jax.jit(f, passes=[simplify, wrong, cse, dce])
    found = first_difference(f, changed)(X)
    assert found is not None
    assert found.left is not None
    assert found.right is not None
    assert (found.left.prim.name, found.right.prim.name) == ("sin", "cos")
    assert "compiled" in str(found)
    assert first_difference(f, jax.jit(f, passes=[simplify, cse, dce]))(X) is None


def loop(k: float) -> Callable[[jax.Ref, jax.Array], object]:
    def run(r: jax.Ref, x: jax.Array) -> object:
        def body(c: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
            r[0] += a
            c = jax.lax.cond(a > 1, lambda c: c + jnp.where(c > k, 1.0, 0.0), lambda c: c * 2, c)
            return c + r[0], c

        return jax.lax.scan(body, x, jnp.arange(5.0))

    return run


@pytest.mark.slow
def test_loops_and_branches_are_entered_at_the_iteration() -> None:
    ref = jax.new_ref(jnp.zeros(2))
    for right in (loop(6.0), jax.jit(loop(6.0))):
        found = first_difference(loop(100.0), right)(ref, np.float32(1))
        assert found is not None
        assert found.path == ("scan, iteration 3", "cond, branch 1")
        assert found.right is not None
        assert found.right.prim.name == "gt"
    assert ref[...].tolist() == [0, 0]


def test_references_are_compared() -> None:
    def write(k: float) -> Callable[[jax.Ref], None]:
        def run(r: jax.Ref) -> None:
            r[0] = 1.0
            r[1] = k

        return run

    found = first_difference(write(1.0), write(2.0))(jax.new_ref(jnp.zeros(2)))
    assert found is not None
    assert found.right is not None
    assert found.right.prim.name == "swap"
    assert [v.tolist() for v in found.values] == [[1, 1], [1, 2]]


def test_tolerances() -> None:
    def g(x: jax.Array) -> jax.Array:
        return x * np.float32(1.001)

    assert first_difference(lambda x: x * 1, g)(X) is not None
    assert first_difference(lambda x: x * 1, g, rtol=1e-2)(X) is None
    assert first_difference(lambda x: x * 1, g, rtol=0, atol=0.1)(X) is None
    # Values of different precision are compared with the tolerance of the coarser one.
    half = first_difference(jnp.exp, lambda x: jnp.exp(x).astype("bfloat16"))
    assert half(X) is None
    nan = jnp.array([jnp.nan, jnp.inf, 1.0])
    assert first_difference(lambda x: x + 1, lambda x: 1 + x, rtol=0, atol=0)(nan) is None


def test_a_compiled_program_that_differs_only_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from effax.api.debugging import difference

    run = difference._Compiled.run

    def faulty(self: object, jaxpr: Jaxpr, args: object) -> object:
        outs = run(difference._Compiled(), jaxpr, args)  # type: ignore[arg-type]
        wrong = any(isinstance(e.prim, Sin) for e in jaxpr.eqns) and len(jaxpr.outs) == 1
        return [x + 1 for x in outs] if wrong else outs

    monkeypatch.setattr(difference._Compiled, "run", faulty)
    found = first_difference(f, jax.jit(f))(X)
    assert found is not None
    assert found.alone
    assert found.right is not None
    assert found.right.prim.name == "sin"
    assert "all intermediate values are results" in str(found)


def test_different_results_are_refused() -> None:
    with pytest.raises(IllTyped, match="same results"):
        first_difference(lambda x: x, lambda x: (x, x))(X)
    with pytest.raises(BadArgument, match="a function or a program"):
        first_difference(f, 3)  # type: ignore[arg-type]


def test_one_program_returns_an_argument() -> None:
    jaxpr = parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    found = first_difference(jaxpr, parse("{ lambda ; a:f32[]. let in (a,) }"))(1.0)
    assert found is not None
    assert found.right is None
    assert "no equation" in str(found)
