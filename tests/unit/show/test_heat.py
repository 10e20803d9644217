"""Equations are shaded by their share of the cost of a program."""

from __future__ import annotations

import pytest

import effax
import effax.numpy as jnp
from effax import lax, show
from effax.ir import BadArgument, array_type
from effax.show.heat import shades

WEIGHTS = array_type((12, 64, 64), "float32")


def model(weights: effax.Array, x: effax.Array) -> effax.Array:
    h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)
    return jnp.sum(h * h)


PROGRAM = effax.make_jaxpr(model)(WEIGHTS, array_type((8, 64), "float32")).jaxpr


def test_shades_follow_shares() -> None:
    body = PROGRAM.eqns[0].prim.subjaxprs()[0]
    found = shades(PROGRAM, "flops")
    assert found[id(body), 0].level == 5
    assert found[id(body), 0].text == "786 kflops · 99%"
    assert found[id(PROGRAM), 1].level == 1
    assert found[id(PROGRAM), 1].text == "512 flops · <1%"


def test_pictures_are_shaded_on_demand() -> None:
    plain, hot = show.svg(PROGRAM), show.svg(PROGRAM, heat="flops")
    assert "fill-opacity:0.62" in hot
    assert "fill-opacity:0.62" not in plain
    assert "kB ·" in show.html(PROGRAM, heat="bytes")
    assert show.svg(PROGRAM, heat="flops") == hot


def test_an_unknown_heat_is_refused() -> None:
    with pytest.raises(BadArgument, match="unknown heat"):
        show.svg(PROGRAM, heat="time")  # type: ignore[arg-type]
    empty = effax.make_jaxpr(lambda x: x)(1.0)
    assert "<svg" in show.svg(empty, heat="flops")
