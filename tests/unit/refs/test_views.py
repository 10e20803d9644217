"""ref.at[...]: views of references, and views of views, against NumPy's views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadIndex, IllTyped, RefError

jax: Any = effax
START = np.arange(120, dtype=np.float32).reshape(4, 5, 6)


@st.composite
def chains(draw: st.DrawFn) -> list[Any]:
    """Two or three indices of ints and slices, each of the result of the previous one."""
    shape, chain = START.shape, []
    for _ in range(draw(st.integers(2, 3))):
        entries: list[Any] = []
        for n in shape[: draw(st.integers(0, len(shape)))]:
            if n and draw(st.booleans()):
                entries.append(draw(st.integers(-n, n - 1)))
            else:
                entries.append(draw(st.slices(n)))
        if draw(st.booleans()):
            entries.append(...)
        chain.append(tuple(entries))
        shape = np.zeros(shape)[tuple(entries)].shape
    return chain


@pytest.mark.slow
@given(chains(), st.booleans())
def test_views_of_views(chain: list[Any], jitted: bool) -> None:
    wrap = jax.jit if jitted else lambda f: f
    r, contents = jax.new_ref(START), START.copy()
    view, part = r, contents
    for index in chain:
        view, part = view.at[index], part[index] if index else part
    part = np.asarray(part)
    assert view.shape == part.shape
    np.testing.assert_array_equal(wrap(lambda: view[...])(), part)
    wrap(lambda: view.set(-1.0))()
    wrap(lambda: view.addupdate(0.5))()
    wanted = START.copy()
    marks = np.arange(120).reshape(START.shape)
    for index in chain:
        marks = marks[index]
    wanted.reshape(-1)[np.asarray(marks).reshape(-1)] = -0.5
    np.testing.assert_array_equal(r[...], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_traced_positions_in_views(wrap: Any) -> None:
    r = jax.new_ref(START)
    row = r.at[1:3].at[:, ::2]
    np.testing.assert_array_equal(wrap(lambda k: row[k, 1])(1), START[2, 2])
    np.testing.assert_array_equal(wrap(lambda k: row.at[k][-1])(-2), START[1, 4])
    np.testing.assert_array_equal(
        jax.jit(lambda k: r.at[lax.ds(k, 2)].at[0, lax.ds(k, 3)][1:])(1), START[1, 2:4]
    )
    # A position outside of the view is not inside of the reference.
    write = jax.jit(lambda k: row.__setitem__(k, 0.0))
    for k in (2, 9, -3):
        write(k)
    np.testing.assert_array_equal(r[...], START)
    np.testing.assert_array_equal(jax.jit(lambda k: row[k, 0])(9), START[2, 0])
    write(-1)
    np.testing.assert_array_equal(r[2, 0], np.zeros(6))
    np.testing.assert_array_equal(r[2, 1], START[2, 1])


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_arrays_of_positions(wrap: Any) -> None:
    r, contents = jax.new_ref(START), START.copy()
    rows = np.array([2, 0])
    np.testing.assert_array_equal(wrap(lambda: r.at[rows][...])(), START[rows])
    wrap(lambda: r.at[rows].addupdate(1.0))()
    wrap(lambda: r.at[1].at[:, rows].set(5.0))()
    wrap(lambda: r.at[0].addupdate(2.0, np.array([1, 1])))()
    contents[rows] += 1
    contents[1][:, rows] = 5
    contents[0][1] += 4
    np.testing.assert_array_equal(r[...], contents)
    np.testing.assert_array_equal(
        wrap(lambda: r.at[1:][None, 0][..., rows])(), contents[1][None][..., rows]
    )


def test_swap_and_what_a_view_has() -> None:
    r = jax.new_ref(START)
    view = r.at[1].at[2:4]
    np.testing.assert_array_equal(view.swap(0.0), START[1, 2:4])
    np.testing.assert_array_equal(view.get(), np.zeros((2, 6)))
    assert (view.shape, view.ndim, len(view), view.dtype) == ((2, 6), 2, 2, np.float32)
    assert "shape=(2, 6)" in repr(view)
    with pytest.raises(RefError, match=r"view\[...\]"):
        view + 1
    with pytest.raises(RefError, match="used as an array"):
        np.asarray(view)
    with pytest.raises(IllTyped):
        jnp.sin(view)
    with pytest.raises(BadIndex):
        r.at[4]
    with pytest.raises(BadIndex):
        view.at[2]
    with pytest.raises(BadIndex):
        view[2]
    with pytest.raises(IllTyped, match="without axes"):
        len(r.at[0, 0, 0])


def test_a_view_touches_what_it_names() -> None:
    def write(r: Any, k: Any) -> None:
        r.at[10:20].at[k].at[3:5].addupdate(1.0)

    r = jax.new_ref(jnp.zeros((10_000, 64)))
    program = jax.jit(write).lower(r, 1).compile()
    assert program.cost_analysis()["bytes accessed"] < 1000
    assert "+=" in str(jax.make_jaxpr(write)(r, 1))


def test_derivatives_through_views() -> None:
    def f(x: Any) -> Any:
        r = jax.new_ref(x)
        r.at[0].at[1:].set(r.at[1][1:] * x[0, 0])
        return jnp.sum(r[...] ** 2)

    def plain(x: Any) -> Any:
        return jnp.sum(x.at[0, 1:].set(x[1, 1:] * x[0, 0]) ** 2)

    x = jnp.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_allclose(jax.grad(f)(x), jax.grad(plain)(x))
