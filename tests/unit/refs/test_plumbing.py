"""Plumbing: references that carry values out of backward passes, by rules of custom_vjp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

jax: Any = effax
EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])


@effax.custom_vjp
def stash(out: Any, x: Any) -> Any:
    return x


def _fwd(out: Any, x: Any) -> Any:
    return x, {"out": out, "x": x}


def _bwd(res: Any, ct: Any) -> Any:
    res["out"][...] += ct * res["x"]
    return None, ct


stash.defvjp(_fwd, _bwd)

X = 0.7
SIN = np.sin(X)


def chain(out: Any, x: Any) -> Any:
    return jnp.sin(stash(out, jnp.sin(x)))


PLACES: dict[str, tuple[Callable[..., Any], float]] = {
    "as it is": (chain, np.cos(SIN) * SIN),
    "in jit": (jax.jit(chain), np.cos(SIN) * SIN),
    "closed over by jit": (lambda out, x: jax.jit(lambda x: chain(out, x))(x), np.cos(SIN) * SIN),
    "in checkpoint": (jax.checkpoint(chain), np.cos(SIN) * SIN),
    "in checkpoint in jit": (
        lambda out, x: jax.jit(jax.checkpoint(lambda x: chain(out, x)))(x),
        np.cos(SIN) * SIN,
    ),
    "in cond": (lambda out, x: lax.cond(x > 0, chain, lambda o, x: x, out, x), np.cos(SIN) * SIN),
    "in the other branch": (lambda out, x: lax.cond(x < 0, chain, lambda o, x: x, out, x), 0.0),
    "in scan": (
        lambda out, x: lax.scan(lambda c, _: (stash(out, c) * 2, None), x, None, 3)[0],
        8 * X + 4 * 2 * X + 2 * 4 * X,
    ),
    "in checkpoint in scan": (
        lambda out, x: lax.scan(jax.checkpoint(lambda c, _: (stash(out, c) * 2, None)), x, None, 3)[
            0
        ],
        24 * X,
    ),
    "in scan in checkpoint": (
        jax.checkpoint(
            lambda out, x: lax.scan(lambda c, _: (stash(out, c) * 2, None), x, None, 3)[0]
        ),
        24 * X,
    ),
    "in fori_loop": (
        lambda out, x: lax.fori_loop(0, 3, lambda _, c: stash(out, c) * 2, x),
        24 * X,
    ),
    "twice": (lambda out, x: stash(out, stash(out, x)) * 3, 6 * X),
}


@EAGER_AND_JITTED
@pytest.mark.parametrize("how", ["grad", "vjp", "value_and_grad"])
@pytest.mark.parametrize("place", PLACES)
def test_the_backward_rule_writes_once(place: str, how: str, wrap: Any) -> None:
    f, wanted = PLACES[place]
    by = {
        "grad": lambda out, x: jax.grad(lambda x: f(out, x))(x),
        "vjp": lambda out, x: jax.vjp(lambda x: f(out, x), x)[1](1.0)[0],
        "value_and_grad": lambda out, x: jax.value_and_grad(lambda x: f(out, x))(x)[1],
    }
    out = jax.new_ref(100.0)
    slope = wrap(by[how])(out, X)
    np.testing.assert_allclose(out[...], 100 + wanted, rtol=1e-6)
    plain = jax.grad(lambda x: f(jax.new_ref(0.0), x))(X)
    np.testing.assert_allclose(slope, plain, rtol=1e-6)


@EAGER_AND_JITTED
def test_the_call_itself_writes_nothing(wrap: Any) -> None:
    out = jax.new_ref(1.0)
    np.testing.assert_allclose(wrap(chain)(out, X), np.sin(SIN), rtol=1e-6)
    assert float(out[...]) == 1.0


@EAGER_AND_JITTED
def test_scanned_plumbing_gets_an_element_an_iteration(wrap: Any) -> None:
    def f(x: Any, outs: Any) -> Any:
        return lax.scan(lambda c, out: (stash(out, c) * 2, None), x, outs)[0]

    outs = jax.new_ref(jnp.zeros(3))
    wrap(jax.grad(f))(X, outs)
    np.testing.assert_allclose(outs[...], [8 * X, 8 * X, 8 * X], rtol=1e-6)


@EAGER_AND_JITTED
def test_plumbing_of_batch_elements(wrap: Any) -> None:
    outs, xs = jax.new_ref(jnp.zeros(3)), jnp.asarray([1.0, 2.0, 3.0])
    slopes = wrap(jax.vmap(jax.grad(lambda x, out: stash(out, x) ** 2)))(xs, outs)
    np.testing.assert_allclose(slopes, 2 * np.asarray(xs))
    np.testing.assert_allclose(outs[...], 2 * np.asarray(xs) ** 2)


@EAGER_AND_JITTED
def test_a_rule_that_only_reads(wrap: Any) -> None:
    @effax.custom_vjp
    def scaled(ref: Any, x: Any) -> Any:
        return x

    scaled.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (None, ct * ref[...]))
    ref = jax.new_ref(5.0)
    f = wrap(jax.grad(lambda x, ref: scaled(ref, x) ** 2))
    assert float(f(3.0, ref)) == 30.0
    ref[...] = 2.0
    assert float(f(3.0, ref)) == 12.0


@EAGER_AND_JITTED
def test_several_references_and_repeats(wrap: Any) -> None:
    @effax.custom_vjp
    def both(a: Any, x: Any, b: Any) -> Any:
        return x

    def bwd(res: Any, ct: Any) -> Any:
        second, again, first = res
        first[...] = ct
        second[...] = again[...] + 2 * ct
        return None, ct, None

    both.defvjp(lambda a, x, b: (x, (b, b, a)), bwd)
    a, b = jax.new_ref(0.0), jax.new_ref(10.0)
    wrap(jax.grad(lambda x, a, b: both(a, x, b) * 3))(1.0, a, b)
    assert [float(a[...]), float(b[...])] == [3.0, 16.0]
