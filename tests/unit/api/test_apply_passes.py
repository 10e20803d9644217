"""Passes transform a function, or the program that is compiled in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import effax
import effax.numpy as jnp
from effax.ir import BadArgument, Builder, Eqn, Jaxpr, Var, everywhere, map_eqns
from effax.ir.prims import Cos, Sin
from effax.passes import Broken, as_pass, inline


def to_cosine(b: Builder, eqn: Eqn) -> Var | None:
    return b(Cos(), *eqn.ins) if isinstance(eqn.prim, Sin) else None


@as_pass
def cosines(jaxpr: Jaxpr) -> Jaxpr:
    return everywhere(lambda program: map_eqns(to_cosine, program), jaxpr)


@as_pass
def cosines_here(jaxpr: Jaxpr) -> Jaxpr:
    return map_eqns(to_cosine, jaxpr)


def wave(x: effax.Array) -> effax.Array:
    return jnp.sin(x)


Made = Callable[[effax.Array], effax.Array]
FIRST: list[Made] = [
    effax.apply_passes(wave, cosines),
    effax.jit(wave, passes=cosines),
    effax.jit(wave, passes=cosines, inline=True),
]


@pytest.mark.parametrize("function", FIRST)
def test_passes_come_before_transformations_around_them(function: Made) -> None:
    x = jnp.asarray(1.0)
    assert function(x) == pytest.approx(float(jnp.cos(x)))
    assert effax.grad(function)(x) == pytest.approx(-float(jnp.sin(x)))
    assert effax.jit(effax.grad(function))(x) == pytest.approx(-float(jnp.sin(x)))
    assert effax.vmap(function)(x[None])[0] == pytest.approx(float(jnp.cos(x)))
    assert effax.jit(lambda x: wave(x) - function(x))(x) == pytest.approx(
        float(jnp.sin(x) - jnp.cos(x))
    )


@pytest.mark.slow
def test_passes_of_the_outermost_jit_transform_what_is_compiled() -> None:
    x = jnp.asarray(1.0)
    # The derivative of a sine has no sine.
    assert effax.jit(effax.grad(wave), passes=cosines)(x) == pytest.approx(float(jnp.cos(x)))
    rows = effax.jit(effax.vmap(wave), passes=cosines)
    assert rows(x[None])[0] == pytest.approx(float(jnp.cos(x)))

    def outer(x: effax.Array) -> effax.Array:
        return effax.jit(wave)(x) + wave(x)

    assert effax.jit(outer, passes=cosines_here)(jnp.asarray(0.0)) == 1.0
    assert effax.jit(outer, passes=inline | cosines_here)(jnp.asarray(0.0)) == 2.0


def test_it_inlines_where_it_is_called() -> None:
    program = effax.make_jaxpr(lambda x: effax.apply_passes(wave, cosines)(x) * 2.0)(1.0)
    assert [eqn.prim.name for eqn in program.jaxpr.eqns] == ["cos", "mul"]


def test_references_and_static_arguments() -> None:
    total = effax.new_ref(jnp.zeros(3))

    def add(ref: effax.Ref, x: effax.Array, i: int) -> effax.Array:
        ref[i] += jnp.sin(x)
        return ref[...]

    made = effax.apply_passes(add, [cosines], static_argnums=2)
    assert made(total, jnp.asarray(0.0), 1)[1] == 1.0
    assert effax.jit(made, static_argnums=2)(total, jnp.asarray(0.0), 1)[1] == 2.0


def test_what_is_refused() -> None:
    with pytest.raises(BadArgument, match="apply_passes"):
        effax.apply_passes(3, cosines)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="not a pass"):
        effax.apply_passes(wave, wave)  # type: ignore[arg-type]

    @as_pass
    def pairs(jaxpr: Jaxpr) -> Jaxpr:
        return jaxpr.replace(outs=[*jaxpr.outs, *jaxpr.outs])

    with pytest.raises(Broken, match="changes the types of the results"):
        effax.apply_passes(wave, pairs)(jnp.asarray(1.0))
