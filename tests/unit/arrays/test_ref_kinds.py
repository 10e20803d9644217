"""References that take no part in differentiation and rematerialization."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir import parse
from effax.ir.errors import BadArgument, RefError


def state(value: Any = 1.0) -> Any:
    return jax.new_ref(value, kind="no_grad_no_remat")


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "compiled"])
def test_a_recomputed_function_changes_it_once(wrap: Any) -> None:
    @jax.checkpoint
    def f(y: Any, ref: Any) -> Any:
        out = y * ref[...]
        ref[...] += out * 2
        return out * y

    ref = state()
    assert jax.grad(wrap(f))(2.0, ref) == 4.0
    assert ref[...] == 5.0

    @jax.checkpoint
    @partial(jax.checkpoint, policy=lambda *_, **__: False)
    def g(y: Any) -> Any:
        out = jnp.sin(y * ref[...])
        ref[...] += 1
        return out

    np.testing.assert_allclose(jax.grad(wrap(g))(0.5), 5.0 * np.cos(2.5), rtol=1e-6)
    assert ref[...] == 6.0


def test_values_that_are_written_are_constants() -> None:
    def f(x: Any) -> Any:
        ref = state(x)
        ref[...] = ref[...] * x
        old = jax.ref.swap(ref, ..., x * 3)
        jax.ref.addupdate(ref, ..., x)
        return ref[...] * x + old

    for run in (jax.jvp, lambda f, x, t: jax.jit(partial(jax.jvp, f))(x, t)):
        value, tangent = run(f, (3.0,), (1.0,))
        assert (value, tangent) == (45.0, 12.0)


def test_it_is_a_part_of_loops_and_batches() -> None:
    def loss(w: Any) -> Any:
        count = state(jnp.zeros(2))

        @jax.checkpoint
        def step(s: Any, x: Any) -> Any:
            count[0] += s * 0 + 1
            count[1] = x
            return jnp.sin(s * w + x), None

        return lax.scan(step, w, jnp.arange(3.0))[0], count[...]

    slope, count = jax.grad(loss, has_aux=True)(0.5)
    np.testing.assert_allclose(slope, -0.81695724, rtol=1e-5)
    np.testing.assert_array_equal(count, [3.0, 2.0])
    slopes, counts = jax.vmap(jax.jit(jax.grad(loss, has_aux=True)))(jnp.array([0.5, 0.2]))
    np.testing.assert_allclose(slopes, [-0.81695724, -0.48361582], rtol=1e-5)
    np.testing.assert_array_equal(counts, [[3.0, 2.0]] * 2)


def test_its_kind_is_in_the_type() -> None:
    ref = state()
    jaxpr = jax.make_jaxpr(lambda c: c[...] + 1)(ref).jaxpr
    assert str(jaxpr).startswith("{ lambda ; a:StateRef{f32[]}. let")
    assert parse(str(jaxpr)) == jaxpr
    assert copy.deepcopy(ref).type is ref.type


def test_wrong_options() -> None:
    for options, says in (
        ({"kind": "other"}, "unknown kind"),
        ({"memory_space": "host"}, "memory of its device"),
        ({"pin": 1}, "pin is a boolean"),
    ):
        with pytest.raises(BadArgument, match=says):
            jax.new_ref(1.0, **options)
    with pytest.raises(BadArgument, match="memory of its device"):
        jax.empty_ref(2, memory_space="host")  # type: ignore[arg-type]
    assert jax.empty_ref(2, pin=True).shape == (2,)
    plain = jax.new_ref(1.0)
    with pytest.raises(RefError, match="has effects"):
        jax.checkpoint(lambda x: plain.__setitem__(..., x))(1.0)
