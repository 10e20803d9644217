from __future__ import annotations

from functools import partial, wraps

import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.signature import NamedEffect
from effax.ir.errors import BadArgument


def test_a_signature_has_types_effects_and_captures_with_the_names_of_the_user() -> None:
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
        "!{accum table, read out_ref} "
        "capturing table: Ref{f32[3]}, scale: f32[2]"
    )
    assert found.captures[0].effects == ("accum",)
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


ONES = jnp.ones(3)
TABLE = jax.new_ref(jnp.zeros(3))


class Model:
    """A user's class with state."""

    def __init__(self) -> None:
        self.count = jax.new_ref(jnp.zeros(2))
        self.layers = [{"w": jnp.ones(2)}]

    def step(self, x):  # type: ignore[no-untyped-def]
        self.count[0] += x
        return self.layers[0]["w"] * x

    __call__ = step


def captured(fun, *args, **static) -> str:  # type: ignore[no-untyped-def]
    found = jax.signature_of(fun, **static)(*args)
    row = " ".join(map(str, found.effects))
    return f"{found.name} {row}: {' '.join(slot.name for slot in found.captures)}"


def test_captures_are_called_as_the_user_calls_them() -> None:
    model, ref = Model(), jax.new_ref(jnp.zeros(3))

    def inner(x):  # type: ignore[no-untyped-def]
        ref[0] = x
        return x

    def add(r, x, y=ONES):  # type: ignore[no-untyped-def]
        r[0] += x
        return y

    def scaled(x):  # type: ignore[no-untyped-def]
        return x * ref[0]

    shown = "accum self.count: self.count self.layers[0]['w']"
    assert captured(model.step, 1.0) == f"step {shown}"
    assert captured(model, 1.0) == f"Model {shown}"
    both = captured(lambda x: inner(x) + TABLE[0], 1.0)
    assert both == "<lambda> read ref write ref read TABLE: ref TABLE"
    assert captured(partial(add, ref), 1.0) == "add accum r: r y"
    assert captured(partial(partial(add, x=1.0), r=ref)) == "add accum r: r y"
    assert captured(wraps(inner)(partial(inner)), 1.0) == "inner read ref write ref: ref"
    assert captured(jax.jit(inner), 1.0) == "inner read ref write ref: ref"
    assert captured(jax.vmap(scaled), ONES) == "scaled read ref: ref"


def test_a_name_that_an_input_has_is_not_given_twice() -> None:
    x = jax.new_ref(1.0)

    def f(y):  # type: ignore[no-untyped-def]
        return y * x[...]

    assert captured(lambda x: f(x) + 1, 1.0) == "<lambda> read captured[0]: captured[0]"


def test_arguments_may_be_static() -> None:
    def power(x, n):  # type: ignore[no-untyped-def]
        return x**n

    assert (
        str(jax.signature_of(power, static_argnames="n")(2.0, n=3))
        == "power(x: ~f32[]) -> (~f32[])"
    )
    assert (
        str(jax.signature_of(power, static_argnums=[1])(2.0, 3)) == "power(x: ~f32[]) -> (~f32[])"
    )
    with pytest.raises(BadArgument, match="static_argnames"):
        jax.effects_of(power, static_argnames="m")


def test_what_cannot_be_called_has_no_signature() -> None:
    for function in (jax.signature_of, jax.effects_of):
        with pytest.raises(BadArgument, match="callable"):
            function(3)  # type: ignore[arg-type]


OFFSETS = jnp.ones(2)


def test_a_global_of_a_function_inside_has_its_name() -> None:
    def outer(x):  # type: ignore[no-untyped-def]
        return jax.vmap(lambda y: y + OFFSETS)(x)

    found = jax.signature_of(outer)(jnp.ones(3))
    assert [slot.name for slot in found.captures] == ["OFFSETS"]


def training_state() -> dict[str, dict[str, jax.Ref]]:
    names = [f"w{i}" for i in range(24)]
    return {kind: {name: jax.new_ref(jnp.zeros(2)) for name in names} for kind in "mpv"}


def update(state, x):  # type: ignore[no-untyped-def]
    for name in state["m"]:
        state["m"][name][...] += state["v"][name][...] * x
        if name != "w0":
            jax.ref.addupdate(state["p"][name], ..., state["m"][name][...])
    return {"old": {name: r[...] for name, r in state["p"].items()}, "x": x}


def test_the_references_of_a_tree_are_listed_as_one() -> None:
    effects = jax.effects_of(jax.jit(update))(training_state(), 1.0)
    shown = (
        "{accum state['m']['w0'], read,accum state['m'].* (23 of 24 refs), "
        "read,accum state['p'].* (23 of 24 refs), read state['p']['w0'], "
        "read state['v'].* (24 refs)}"
    )
    assert str(effects) == repr(effects) == shown
    assert NamedEffect("accum", "state['m']['w17']") in effects and len(effects) == 118


def test_a_long_signature_is_grouped_and_wrapped_and_prints_in_full_on_demand() -> None:
    found = jax.signature_of(update)(training_state(), 1.0)
    assert str(found) == (
        "update(state['m'].*: 24 refs, state['p'].*: 24 refs, state['v'].*: 24 refs, x: ~f32[])"
        " -> (result['old'].*: 24 arrays, result['x']: ~f32[])\n"
        "!{\n"
        "    accum state['m']['w0'],\n"
        "    read,accum state['m'].* (23 of 24 refs),\n"
        "    read,accum state['p'].* (23 of 24 refs),\n"
        "    read state['p']['w0'],\n"
        "    read state['v'].* (24 refs),\n"
        "}"
    )
    full = found.full()
    assert full.count("Ref{f32[2]}") == 72 and "result['old']['w7']: f32[2]" in full
    assert "\n    accum state['m']['w7'],\n" in full
    assert found.result_names[-1] == "result['x']"
