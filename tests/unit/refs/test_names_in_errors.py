"""Errors about references have the tree path of the reference, also in nested programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError
from effax.ir.syntax import Jaxpr

jax: Any = effax


def write(ref: Any) -> None:
    ref[...] = jnp.ones(4)


USES: dict[str, Callable[[Any], object]] = {
    "shape": write,
    "dtype": lambda ref: ref.__setitem__(0, 1j),
    "range": lambda ref: ref.__setitem__("x", 1.0),
    "read": lambda ref: ref[7],
    "accumulation": lambda ref: jax.ref.addupdate(ref, 9, 1.0),
    "swap": lambda ref: jax.ref.swap(ref, ..., jnp.ones(4)),
}

PROGRAMS: dict[str, Callable[[Any, Any], object]] = {
    "outermost": lambda use, ref: use(ref),
    "scan": lambda use, ref: lax.scan(lambda c, _: (c, use(ref)), 0.0, jnp.ones(2)),
    "scan in cond": lambda use, ref: lax.cond(
        True, lambda: lax.scan(lambda c, _: (c, use(ref)), 0.0, jnp.ones(2))[0], lambda: 0.0
    ),
    "grad": lambda use, ref: jax.grad(lambda x: (use(ref), x)[1])(1.0),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("use", USES)
def test_errors_of_uses_have_the_path_and_the_line_of_the_reference(use: str, program: str) -> None:
    state = {"m": {"w0": jax.new_ref(jnp.zeros(3))}}

    def step(state: Any) -> None:
        PROGRAMS[program](USES[use], state["m"]["w0"])

    with pytest.raises(EffaxError) as caught:
        jax.jit(step)(state)
    assert "(state['m']['w0'], Ref{f32[3]}, made at " in str(caught.value)
    with pytest.raises(EffaxError) as caught:
        step(state)
    assert "Ref{f32[3]}, made at " in str(caught.value)


def test_errors_of_transformations_have_the_path_of_a_closed_over_reference() -> None:
    def step(state: Any) -> None:
        jax.vmap(lambda x: state["m"]["w0"].__setitem__(..., x))(jnp.ones((2, 3)))

    with pytest.raises(EffaxError, match=r"vmap: state\['m'\]\['w0'\] is not batched"):
        jax.jit(step)({"m": {"w0": jax.new_ref(jnp.zeros(3))}})


def test_programs_have_the_paths_of_results_and_of_closed_over_references() -> None:
    def step(state: Any, x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            state["w"][...] += c
            return c, {"twice": c * 2, "c": c}

        return {"last": lax.scan(body, x, None, length=2)[0], "x": [x]}

    state = {"w": jax.new_ref(0.0)}
    program: Jaxpr = jax.make_jaxpr(step)(state, 1.0).jaxpr
    assert program.out_names == ("result['last']", "result['x'][0]")
    (body,) = program.eqns[0].prim.subjaxprs()
    assert "state['w']" in body.names
    again = jax.make_jaxpr(lambda s, y: (step(s, y)["last"], y))(state, 1.0).jaxpr
    assert again == program and hash(again) == hash(program)
    assert again.out_names == ("result[0]", "result[1]")
    assert jax.make_jaxpr(jnp.sin)(1.0).jaxpr.out_names == ()


def test_programs_have_the_names_of_closed_over_references() -> None:
    state = {"m": {"w": jax.new_ref(0.0)}}

    def step(x: Any) -> Any:
        state["m"]["w"][...] += x
        return x

    program: Jaxpr = jax.make_jaxpr(step)(1.0).jaxpr
    assert program.names == ("state['m']['w']", "x")
    assert "state[&#x27;m&#x27;][&#x27;w&#x27;] · a:Ref{f32[]}" in jax.show.svg(program)
