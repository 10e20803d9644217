from __future__ import annotations

import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.signature import NamedEffect
from effax.ir.errors import BadArgument


def test_a_signature_tells_types_effects_and_captures_as_the_user_names_them() -> None:
    table, scale = jax.new_ref(jnp.zeros(3)), jnp.ones(2)

    def step(params, out_ref):  # type: ignore[no-untyped-def]
        local = jax.new_ref(jnp.zeros(2))
        local[0] = 1.0
        table[0] += params["w"]
        return params["w"] * scale + out_ref[...] + local[...]

    struct = jax.ShapeDtypeStruct((), jnp.float32)
    found = jax.signature_of(step)({"w": struct}, jax.new_ref(jnp.zeros(2)))
    assert str(found) == (
        "step(params['w']: f32[], out_ref: Ref{f32[2]}) -> (f32[2]) "
        "!{read captured[0], write captured[0], read out_ref} "
        "capturing captured[0]: Ref{f32[3]}, captured[1]: f32[2]"
    )
    assert found.captures[0].effects == ("read", "write")
    assert found.inputs[0].effects == () and found.inputs[1].effects == ("read",)
    assert not found.is_pure
    assert table[0] == 0.0


def test_effects_of_a_function() -> None:
    ref = jax.new_ref(0.0)
    assert jax.effects_of(lambda r: r[...])(ref) == (NamedEffect("read", "r"),)

    def inside(x):  # type: ignore[no-untyped-def]
        r = jax.new_ref(x)
        r[...] = 2.0
        return jax.freeze(r)

    assert jax.effects_of(inside)(1.0) == ()
    assert jax.signature_of(inside)(1.0).is_pure
    assert jax.effects_of(lambda n, r: r[n], static_argnums=0)(0, jax.new_ref(jnp.ones(2))) == (
        NamedEffect("read", "r"),
    )


def test_what_cannot_be_called_has_no_signature() -> None:
    for told in (jax.signature_of, jax.effects_of):
        with pytest.raises(BadArgument, match="callable"):
            told(3)  # type: ignore[arg-type]
