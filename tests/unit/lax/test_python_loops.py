"""Control flow under ``disable_jit`` runs as Python; else functions are traced once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument

XS = np.arange(3, dtype=np.float32)


def test_loops_and_branches_see_values() -> None:
    seen: list[float] = []

    def note(x: Any) -> Any:
        seen.append(float(x))
        return x

    with effax.disable_jit():
        total, ys = lax.scan(lambda c, x: (note(c) + x, (c, x)), 1.0, XS)
        assert total == 4.0
        np.testing.assert_array_equal(ys[0], [1, 1, 2])
        assert lax.while_loop(lambda x: x < 5, lambda x: note(x) * 2, 1.0) == 8.0
        assert lax.fori_loop(0, 3, lambda i, x: x + note(i), 0.0) == 3.0
        assert lax.fori_loop(2, 2, lambda i, x: note(x), 5.0) == 5.0
        assert lax.cond(True, note, lambda x: -x, 7.0) == 7.0
        assert lax.switch(1, [lambda x: x, lambda x: -note(x)], 9.0) == -9.0
        np.testing.assert_array_equal(lax.map(lambda x: note(x) * 2, XS), 2 * XS)
        xs: Any = XS
        _, back = lax.scan(lambda c, x: (x, c), 5.0, xs, reverse=True)
        np.testing.assert_array_equal(back, [1, 2, 5])
    assert seen == [1, 1, 2, 1, 2, 4, 0, 1, 2, 7, 9, 0, 1, 2]


def test_references_are_written_by_loops_of_python() -> None:
    r, cells = effax.new_ref(0.0), effax.new_ref(XS)

    def body(_: None, cell: Any) -> tuple[None, Any]:
        r[...] += cell[...]
        cell[...] = 9.0
        return None, r[...]

    with effax.disable_jit():
        _, sums = lax.scan(body, None, cells)
    np.testing.assert_array_equal(sums, [0, 1, 3])
    np.testing.assert_array_equal(cells[...], [9, 9, 9])


def test_traced_conditions_fall_back() -> None:
    with effax.disable_jit():
        found = effax.vmap(lambda x: lax.cond(x > 1, lambda y: y, lambda y: -y, x))(XS)
        np.testing.assert_array_equal(found, [0, -1, 2])
        doubled = effax.vmap(lambda x: lax.while_loop(lambda v: v < 4, lambda v: v + 2, x))(XS)
        np.testing.assert_array_equal(doubled, [4, 5, 4])
        slope = effax.grad(lambda x: lax.fori_loop(0, 3, lambda _, v: v * x, 1.0))(2.0)
        assert slope == 12.0
        with pytest.raises(BadArgument, match="without steps"):
            lax.scan(lambda c, x: (c, x), 0.0, XS[:0])


def uses(f: Callable[[Any], Any]) -> dict[str, Callable[[Any], object]]:
    def step(c: Any, _: Any) -> Any:
        return f(c), None

    once = effax.remat(f)
    return {
        "scan": lambda x: lax.scan(step, x, None, length=2),
        "while": lambda x: lax.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1]), (0, x)),
        "cond": lambda x: lax.cond(True, f, f, x),
        "remat": once,
        "jit": lambda x: effax.jit(f)(x),  # noqa: PLW0108  # another jitted function each time
    }


@pytest.mark.parametrize("use", ["scan", "cond", "remat", "jit"])
def test_a_function_is_traced_once_for_equal_types(use: str) -> None:
    traces: list[object] = []

    def f(x: Any) -> Any:
        traces.append(x)
        return jnp.sin(x)

    run = uses(f)[use]
    for _ in range(3):
        run(XS)
        effax.jit(lambda x: run(x) if x is not None else x)(XS)
        effax.grad(lambda x: jnp.sum(effax.tree.leaves(run(x))[0]))(XS)
    assert len(traces) == 1
    run(XS[:2])
    assert len(traces) == 2
    with effax.enable_x64():
        run(XS)
    assert len(traces) == 3


@pytest.mark.slow
def test_a_changed_array_is_traced_anew_and_nothing_is_kept_alive() -> None:
    scale = jnp.ones(3)

    def f(c: Any, x: Any) -> Any:
        return c + x * scale.sum(), None

    assert lax.scan(f, jnp.float32(0), XS)[0] == 9
    scale = 2 * scale
    assert lax.scan(f, jnp.float32(0), XS)[0] == 18
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None


def test_a_changed_reference_is_traced_anew() -> None:
    r = effax.new_ref(1.0)

    def g(c: Any, x: Any) -> Any:
        return c + x * r[...], None

    assert lax.scan(g, jnp.float32(0), XS)[0] == 3
    r = effax.new_ref(2.0)
    assert lax.scan(g, jnp.float32(0), XS)[0] == 6


@pytest.mark.parametrize(
    ("before", "after"), [(1, 2), (True, False), ("+", "-"), (jnp.sin, jnp.cos), (None, 3)]
)
def test_a_changed_value_is_traced_anew(before: Any, after: Any) -> None:
    choice: Any = before

    def f(x: Any) -> Any:
        if callable(choice):
            return choice(x)
        return x + (choice if type(choice) is int else len(repr(choice)))

    expected = {}
    for value in (before, after):
        choice = value
        expected[value] = f(1.5)
    for use in ("cond", "remat"):
        run: Any = uses(f)[use]
        for value in (before, after, before):
            choice = value
            for _ in range(2):
                assert run(1.5) == expected[value]


def test_static_arguments_of_checkpoint_select_the_trace() -> None:
    traces: list[object] = []

    @partial(effax.remat, static_argnums=1)
    def f(x: Any, n: object) -> Any:
        traces.append(n)
        return x * (n if isinstance(n, float) else 2)

    for _ in range(2):
        assert f(2.0, 3.0) == 6
        assert f(2.0, 0.0) == 0
        assert np.signbit(f(2.0, -0.0))
    assert traces == [3.0, 0.0, -0.0]
    f(2.0, [1])
    f(2.0, [1])
    assert len(traces) == 5
