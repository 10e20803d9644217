from __future__ import annotations

import pytest
from effax_passes import Layers, layers

import effax
import effax.numpy as jnp
from effax import Array, Ref, extend
from effax.ir import BadArgument, walk
from effax.passes import hoist, optimize, unwrap
from effax.testing import check_primitive, laws


def layer(x: Array, w: Array) -> Array:
    return jnp.tanh(x @ w)


def by_hand(x: Array, weights: Array) -> Array:
    for i in range(weights.shape[0]):
        x = layer(x, weights[i])
    return x


def by_layers(x: Array, weights: Array) -> Array:
    return layers(layer, x, weights)


X = jnp.array([0.5, -1.0])
WEIGHTS = jnp.arange(12.0).reshape(3, 2, 2) / 10


def test_the_primitive_obeys_every_law() -> None:
    def scaled(t: Array, x: Array, w: Array) -> Array:
        return jnp.tanh(x * w) * t

    body = effax.make_jaxpr(scaled)(jnp.float32(1.0), X, X).jaxpr
    types = [extend.array_type(shape, "float32") for shape in ((), (2,), (2, 2))]
    assert not check_primitive(Layers(body, 2, 1), *types, seeds=(0,)).refused


def test_layers_are_those_of_a_python_loop() -> None:
    def sum_by_layers(x: Array, weights: Array) -> Array:
        return by_layers(x, weights).sum()

    def sum_by_hand(x: Array, weights: Array) -> Array:
        return by_hand(x, weights).sum()

    assert jnp.allclose(by_layers(X, WEIGHTS), by_hand(X, WEIGHTS))
    found = effax.jit(effax.grad(sum_by_layers, (0, 1)))(X, WEIGHTS)
    expected = effax.grad(sum_by_hand, (0, 1))(X, WEIGHTS)
    assert all(jnp.allclose(found[i], expected[i], atol=1e-6) for i in (0, 1))
    rows = jnp.stack([X, 2 * X])
    batched = effax.vmap(by_layers, (0, None))(rows, WEIGHTS)
    assert jnp.allclose(batched, jnp.stack([by_hand(x, WEIGHTS) for x in rows]), atol=1e-6)


def test_passes_know_its_regions() -> None:
    def model(t: Array, x: Array, weights: Array) -> Array:
        return layers(lambda x, w: layer(x, w) * jnp.exp(t), x, weights)

    before = effax.make_jaxpr(model)(jnp.float32(0.5), X, WEIGHTS).jaxpr
    counts = {str(place): place.trip_count for place in walk(unwrap(hoist(before)))}
    assert counts["0:exp"] == 1 and counts["1:layers.body/0:dot_general"] == 3
    laws.observationally_equal(before, unwrap((hoist | optimize)(before)), seed=0)


def test_effects_of_a_layer_are_those_of_the_loop() -> None:
    def model(norms: Ref, x: Array, weights: Array) -> Array:
        def seen(x: Array, w: Array) -> Array:
            effax.ref.addupdate(norms, ..., jnp.sum(x * x))
            return layer(x, w)

        return layers(seen, x, weights)

    norms = effax.new_ref(jnp.float32(0.0))
    assert [str(effect) for effect in effax.effects_of(model)(norms, X, WEIGHTS)] == ["accum norms"]
    made = effax.jit(model)(norms, X, WEIGHTS)
    assert jnp.allclose(made, by_hand(X, WEIGHTS))
    states = [by_hand(X, WEIGHTS[:i]) for i in range(3)]
    assert jnp.allclose(norms[...], sum(jnp.sum(x * x) for x in states))


def test_unfit_layers_are_refused() -> None:
    with pytest.raises(BadArgument, match="changes the type"):
        layers(lambda x, w: jnp.sum(x), X, WEIGHTS)
    with pytest.raises(BadArgument, match="no weights"):
        layers(layer, X, jnp.float32(1.0))
