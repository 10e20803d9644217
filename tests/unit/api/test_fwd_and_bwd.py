"""The forward and the backward pass as two functions, each compiled once."""

from __future__ import annotations

import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.jit import JitFunction
from effax.ir.errors import BadArgument


@pytest.mark.slow
@pytest.mark.parametrize("jitted", [True, False])
def test_the_passes_are_those_of_vjp(jitted: bool) -> None:
    def f(x: jax.Array, w: jax.Array) -> tuple[jax.Array, str | jax.Array]:
        return x @ w, x[0]

    fwd, bwd = jax.fwd_and_bwd(f, argnums=(-1,), has_aux=True, jitted=jitted)
    for x in (jnp.arange(3.0), jnp.ones(3)):
        y, pullback, aux = fwd(x, jnp.ones(3))
        assert (float(y), float(aux)) == (3.0, float(x[0]))
        (ct,) = bwd(pullback, 2.0)
        assert ct.tolist() == (2 * x).tolist()
    sizes = [part._cache_size() for part in (fwd, bwd) if isinstance(part, JitFunction)]
    assert sizes == [1, 1] * jitted


def test_an_argument_that_does_not_exist() -> None:
    fwd, _ = jax.fwd_and_bwd(jnp.sin, argnums=1, jitted=False)
    with pytest.raises(BadArgument, match="argnums names an argument"):
        fwd(1.0)
