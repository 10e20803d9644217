"""``debug.breakpoint``: commands while a program runs."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import debug
from effax.api.debugging.breakpoints import Interrupted
from effax.ir.errors import BadArgument

SCALE = 10.0


def talk(commands: str, wrap: Any = lambda f: f) -> tuple[Any, str]:
    """Return the result of a function with a breakpoint, and the output."""
    out = io.StringIO()

    def inner(y: Any) -> Any:
        label = "inner"
        z = y + 1
        debug.breakpoint(stdin=io.StringIO(commands), stdout=out, ordered=True)
        return z, label

    def outer(x: Any) -> Any:
        tree = {"x": x, "name": "outer"}
        return inner(tree["x"] * 2)[0]

    return wrap(outer)(jnp.float32(2.0)), out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.grad], ids=["eager", "jit", "grad"])
def test_values_of_frames(wrap: Any) -> None:
    result, text = talk("p z\np label\nz * SCALE\nu\npp tree\nd\np nothing\nc\n", wrap)
    assert result in (5.0, 2.0)
    assert "breakpoint at" in text and "inner()" in text
    for shown in ("Array(5., dtype=float32)", "'inner'", "50.", "'name': 'outer'", "NameError"):
        assert shown in text


@pytest.mark.slow
def test_batches_stop_for_each_element() -> None:
    out = io.StringIO()

    def f(x: Any) -> Any:
        debug.breakpoint(stdin=io.StringIO("p x\nc\np x\nc\n"), stdout=out)
        return x

    np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(2.0)), [0.0, 1.0])
    assert out.getvalue().count("breakpoint at") == 2


@pytest.mark.slow
def test_lines_and_frames() -> None:
    _, text = talk("l\nw\n\n")
    assert "->" in text and "debug.breakpoint(" in text and "outer()" in text


@pytest.mark.slow
def test_the_run_ends() -> None:
    with pytest.raises(Interrupted, match="ended at a breakpoint"):
        talk("q\n")


@pytest.mark.slow
def test_options() -> None:
    assert jnp.all(
        debug.breakpoint(token=jnp.ones(1), stdin=io.StringIO("c\n"), stdout=io.StringIO()) == 1
    )
    with pytest.raises(BadArgument, match="unknown backend"):
        debug.breakpoint(backend="web")
