"""Negative traced positions: the indexer counts them from the end, in one equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir import parse
from effax.ir.errors import IllTyped
from effax.ir.indexing import Indexer, Mode, Pick, Span
from effax.ir.prims import Gather
from effax.ir.text.format import index_text
from effax.ir.types import array_type

jax: Any = effax
X = jnp.arange(12.0).reshape(4, 3)
AT = np.array([-1, 0, -4, 3], np.int32)


def names(f: Any, *args: Any) -> list[str]:
    return [e.prim.name for e in jax.make_jaxpr(f)(*args).jaxpr.eqns]


def test_an_index_is_one_equation() -> None:
    r = jax.new_ref(jnp.asarray(X))
    assert names(lambda x, i: x[i], X, 1) == ["gather"]
    assert names(lambda r, i, j: r[i, j], r, 1, 2) == ["get"]
    assert names(lambda r, i: r.__setitem__(i, 0.0), r, 1) == ["broadcast_in_dim", "swap"]
    assert names(lambda x, i: x.at[i].add(1.0), X, 1) == ["broadcast_in_dim", "scatter_add"]


@pytest.mark.parametrize(
    "positive",
    [
        jnp.argmax,
        lambda i: jnp.arange(3)[::-1],
        lambda i: i.astype("uint8"),
        lambda i: jnp.clip(i, 0, 2),
        lambda i: jnp.maximum(i, 0).reshape(2, 2),
    ],
)
def test_an_index_that_is_not_negative_does_not_wrap(positive: Any) -> None:
    program = jax.make_jaxpr(lambda x, i: x[positive(i)])(X, AT).jaxpr
    assert "wrap" not in str(program)
    np.testing.assert_array_equal(program.eqns[-1].outs[0].type.shape[-1], 3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["clip", "drop", "fill"])
def test_derivatives_and_batches_of_negative_positions(mode: str) -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        read = x[i] * x.at[i, j].get(mode=mode, fill_value=0)[..., None]
        return x.at[i].multiply(2.0).at[i].max(read).at[:, j].add(x[:, i], mode=mode)

    def g(x: Any, i: Any, j: Any) -> Any:
        return f(x, i % 4, j % 3)

    i, j = AT[:2], np.array([-1, 1], np.int32)
    for h in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(h(f)(X, i, j), g(jnp.asarray(X), i, j))
        pulled, wanted = (
            jax.vjp(lambda x, f=f: f(x, i, j), X)[1](jnp.asarray(X))[0] for f in (h(f), g)
        )
        np.testing.assert_array_equal(pulled, wanted)
        batched = [
            h(jax.vmap(f, (None, 0, 0)))(X, AT[:, None] * [1, 1], np.tile(j, (4, 1)))
            for f in (f, g)
        ]
        np.testing.assert_array_equal(*batched)


def test_text_of_picks_that_wrap() -> None:
    some = Indexer((Pick(None, True), Pick(None), Span(0, 2)), Mode.DROP)
    assert index_text(some, (3, 3, 2), ["a", "b"]) == "[a,b,:;wrap(0);drop]"
    program = jax.make_jaxpr(lambda r, x, i, j: (r[i], x[j, :, i]))(
        jax.new_ref(jnp.ones(3)), np.ones((2, 2, 3)), -1, np.int32(0)
    ).jaxpr
    assert "a[c;wrap]" in str(program)
    assert parse(str(program)) == program


def test_a_static_position_does_not_wrap() -> None:
    with pytest.raises(IllTyped, match="static, and wraps"):
        Gather(Indexer((Pick(0, True),))).typing(array_type((3,), "float32"))
