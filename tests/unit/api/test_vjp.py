"""vjp: cotangents as values and in references, and everything that with_refs refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ad import DidntWant, DontWant, GradRef, GradValue
from effax.ir.errors import BadArgument, IllTyped, RefError


def test_gradients_as_values() -> None:
    out, pull = effax.vjp(lambda x, y: x * y, 3.0, 4.0)
    assert float(out) == 12.0
    assert [float(g) for g in pull(1.0)] == [4.0, 3.0]
    assert [float(g) for g in pull(2.0)] == [8.0, 6.0]


def test_an_integer_argument_gets_a_float0_zero() -> None:
    _, pull = effax.vjp(lambda x, i: x[i], jnp.arange(10.0), jnp.int32(3))
    x_bar, i_bar = pull(1.0)
    np.testing.assert_array_equal(x_bar, np.eye(10)[3])
    assert i_bar.dtype == np.dtype([("float0", np.void, 0)])


def test_a_reference_accumulates() -> None:
    ref = effax.new_ref(100.0)
    _, pull = effax.vjp(jnp.sin, 1.0)
    assert pull.with_refs(ref)(1.0) == (GradRef(),)
    assert float(ref[...]) == pytest.approx(100 + np.cos(1.0))
    pull.with_refs(ref)(1.0)
    assert float(ref[...]) == pytest.approx(100 + 2 * np.cos(1.0))


def test_an_accumulator_may_be_wider_than_the_parameter() -> None:
    w = jnp.full(4, 0.1, jnp.bfloat16)
    wide = effax.new_ref(jnp.zeros(4, jnp.float32))
    _, pull = effax.vjp(lambda w: jnp.sum(w * jnp.arange(4, dtype=jnp.bfloat16)), w)
    for _ in range(300):
        pull.with_refs(wide)(jnp.ones((), jnp.bfloat16))
    # Sums of so many terms would stop growing at 256 in bfloat16.
    np.testing.assert_array_equal(wide[...], [0, 300, 600, 900])
    with pytest.raises(IllTyped, match="wrong type"):
        pull.with_refs(effax.new_ref(jnp.zeros(4, jnp.float16)))


def test_what_is_not_wanted_is_not_computed() -> None:
    w, x = jnp.ones((4, 4)), jnp.ones(4)
    _, pull = effax.vjp(lambda w, x: w @ x, w, x)
    w_bar, x_bar = pull.with_refs(GradValue(), DontWant())(jnp.ones(4))
    np.testing.assert_array_equal(w_bar, np.ones((4, 4)))
    assert x_bar == DidntWant()
    both = effax.make_jaxpr(lambda: pull(jnp.ones(4)))()
    one = effax.make_jaxpr(lambda: pull.with_refs(GradValue(), DontWant())(jnp.ones(4)))()
    assert str(both).count("dot_general") == 2
    assert str(one).count("dot_general") == 1


def test_sparse_gradients_stay_sparse() -> None:
    grad_ref = effax.new_ref(jnp.zeros(10))

    @effax.jit
    def take(x: Any, i: Any) -> Any:
        return x[i]

    for i in [3, 5, 3]:
        _, pull = effax.vjp(take, jnp.arange(10.0), i)
        pull.with_refs(grad_ref, GradValue())(1.0)
    np.testing.assert_array_equal(grad_ref[...], [0, 0, 0, 2, 0, 1, 0, 0, 0, 0])

    def once() -> None:
        _, pull = effax.vjp(take, jnp.arange(10.0), 3)
        pull.with_refs(grad_ref, GradValue())(1.0)

    text = str(effax.make_jaxpr(once)())
    assert "+=" in text
    assert "scatter" not in text
    assert "f32[10] = broadcast_in_dim" not in text


def test_with_respect_to_a_reference() -> None:
    def g(x_ref: effax.Ref) -> Any:
        x_ref[...] = jnp.sin(x_ref[...])
        return x_ref[...] ** 2

    x_ref = effax.new_ref(2.0)
    y, pull = effax.vjp(g, x_ref)
    assert float(x_ref[...]) == pytest.approx(np.sin(2.0))
    assert float(y) == pytest.approx(np.sin(2.0) ** 2)
    bar = effax.new_ref(100.0)
    pull.with_refs(bar)(1.0)
    assert float(bar[...]) == pytest.approx(100 + 2 * np.sin(2.0) * np.cos(2.0), rel=1e-6)


def test_a_reference_argument_needs_a_gradient_reference() -> None:
    _, pull = effax.vjp(lambda r: r[...] ** 2, effax.new_ref(2.0))
    with pytest.raises(RefError, match="with_refs"):
        pull(1.0)


def test_entries_are_trees_and_prefixes() -> None:
    params = {"w": jnp.ones(3), "b": jnp.ones(())}
    refs = effax.tree.map(lambda p: effax.new_ref(jnp.zeros_like(p)), params)
    _, pull = effax.vjp(lambda p, x: jnp.sum(p["w"] * x) + p["b"], params, jnp.arange(3.0))
    result = pull.with_refs(refs, DontWant())(1.0)
    assert result == ({"w": GradRef(), "b": GradRef()}, DidntWant())
    np.testing.assert_array_equal(refs["w"][...], [0, 1, 2])
    assert float(refs["b"][...]) == 1.0


@pytest.mark.parametrize("entry", [None, 0, 1.0, "ref", jnp.zeros, GradRef()])
def test_any_other_entry_is_refused(entry: object) -> None:
    _, pull = effax.vjp(jnp.sin, 1.0)
    with pytest.raises(BadArgument, match="with_refs"):
        pull.with_refs(entry)


def test_entries_that_do_not_fit() -> None:
    _, pull = effax.vjp(jnp.sin, 1.0)
    with pytest.raises(BadArgument, match="one entry for each argument"):
        pull.with_refs(GradValue(), GradValue())
    with pytest.raises(IllTyped, match="wrong type"):
        pull.with_refs(effax.new_ref(jnp.zeros(3)))
    _, pull_both = effax.vjp(lambda x, y: x * y, 1.0, 2.0)
    one = effax.new_ref(0.0)
    with pytest.raises(RefError, match="one reference for x and for y"):
        pull_both.with_refs(one, one)
    assert float(one[...]) == 0.0


def test_cotangents_that_do_not_fit() -> None:
    _, pull = effax.vjp(lambda x: (x, x * 2), jnp.ones(3))
    with pytest.raises(IllTyped, match="structure"):
        pull(jnp.ones(3))
    with pytest.raises(IllTyped, match="wrong type"):
        pull((jnp.ones(3), jnp.ones(4)))


def test_a_differentiated_value_in_a_plumbing_reference() -> None:
    nonlinear_effects = effax.new_ref(0.0)

    def wrong(x: Any) -> Any:
        nonlinear_effects[...] += x
        return x * x

    def right(x: Any) -> Any:
        nonlinear_effects[...] += effax.stop_gradient(x)
        return x * x

    with pytest.raises(effax.ir.errors.EffaxError, match="stop_gradient"):
        effax.grad(wrong)(3.0)
    assert float(nonlinear_effects[...]) == 0.0
    assert float(effax.grad(right)(3.0)) == 6.0
    assert float(nonlinear_effects[...]) == 3.0


def test_a_pullback_crosses_jit_as_a_tree() -> None:
    _, pull = effax.vjp(lambda x: jnp.sin(x) * x, jnp.ones(3))
    expected = pull(jnp.ones(3))[0]
    (found,) = effax.jit(lambda p, ct: p(ct))(pull, jnp.ones(3))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_aux() -> None:
    out, pull, aux = effax.vjp(lambda x: (x * x, "kept" and x + 1), 3.0, has_aux=True)
    assert (float(out), float(aux)) == (9.0, 4.0)
    assert float(pull(1.0)[0]) == 6.0


@pytest.mark.slow
def test_microbatches_accumulate_in_one_reference() -> None:
    def loss(ws: Any, xs: Any) -> Any:
        act, _ = effax.lax.scan(lambda x, w: (jnp.dot(x, w), None), xs, ws)
        return jnp.mean(act)

    def total(ws: Any, batch: Any) -> tuple[effax.Array, effax.Array]:
        acc = effax.new_ref(jnp.zeros_like(ws))

        def micro(_: tuple[()], xs: Any) -> tuple[tuple[()], effax.Array]:
            value, pull = effax.vjp(lambda ws: loss(ws, xs), ws)
            pull.with_refs(acc)(jnp.ones_like(value))
            return (), value

        _, losses = effax.lax.scan(micro, (), batch.reshape(5, 7, -1))
        return effax.freeze(acc), losses

    ws = jnp.ones((3, 4, 4)) * 0.3
    batch = jnp.arange(140.0).reshape(35, 4) / 140
    expected = effax.grad(lambda ws: sum(loss(ws, xs) for xs in batch.reshape(5, 7, -1)))(ws)
    np.testing.assert_allclose(total(ws, batch)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(effax.jit(total)(ws, batch)[0], expected, rtol=1e-5)
