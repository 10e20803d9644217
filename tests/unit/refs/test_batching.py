"""Beyond the document: shared references under vmap, every axis, Jacobians, loops, branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax

jax: Any = effax
F = Callable[[Any], Any]

EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
X = jnp.asarray([1.0, 2.0, 3.0])


@pytest.mark.slow
@EAGER_AND_JITTED
def test_batch_elements_add_to_one_reference(wrap: Any) -> None:
    total = jax.new_ref(10.0)
    wrap(jax.vmap(lambda x: jax.ref.addupdate(total, ..., x)))(X)
    assert float(total[...]) == 16.0
    # Each batch element adds, even an unbatched value.
    wrap(jax.vmap(lambda x: jax.ref.addupdate(total, ..., 1.0)))(X)
    assert float(total[...]) == 19.0
    table = jax.new_ref(jnp.zeros(5))
    wrap(jax.vmap(lambda x, i: jax.ref.addupdate(table, i, x)))(X, jnp.asarray([1, 1, 3]))
    np.testing.assert_array_equal(table[...], [0, 3, 0, 3, 0])
    wrap(jax.vmap(jax.vmap(lambda i: jax.ref.addupdate(table, i, 1.0))))(jnp.ones((2, 2), int))
    np.testing.assert_array_equal(table[...], [0, 7, 0, 3, 0])


@EAGER_AND_JITTED
def test_batch_elements_add_through_control_flow(wrap: Any) -> None:
    total = jax.new_ref(0.0)

    def element(p: Any, x: Any) -> None:
        lax.cond(p, lambda: jax.ref.addupdate(total, ..., x), lambda: None)
        lax.foreach(length=2)(lambda: jax.ref.addupdate(total, ..., 10 * x))
        jax.jit(lambda: jax.ref.addupdate(total, ..., 100 * x))()

    wrap(jax.vmap(element))(jnp.asarray([True, False, True]), X)
    assert float(total[...]) == 4 + 2 * 60 + 600


@EAGER_AND_JITTED
def test_a_gradient_reference_sums_over_batch_elements(wrap: Any) -> None:
    grads, table = jax.new_ref(jnp.zeros(4)), jnp.arange(4.0)

    def element(i: Any) -> None:
        _, pull = jax.vjp(lambda t: t[i] ** 2, table)
        pull.with_refs(grads)(1.0)

    wrap(jax.vmap(element))(jnp.asarray([3, 1, 3]))
    np.testing.assert_array_equal(grads[...], [0, 2, 0, 12])


@EAGER_AND_JITTED
def test_batch_elements_read_one_reference(wrap: Any) -> None:
    table = jax.new_ref(X)
    np.testing.assert_array_equal(
        wrap(jax.vmap(lambda i: table[i] * i))(jnp.asarray([2, 0])), [6, 0]
    )
    np.testing.assert_array_equal(wrap(jax.vmap(lambda x: table[...] * x))(X), np.outer(X, X))


@EAGER_AND_JITTED
def test_all_batch_elements_write_the_same(wrap: Any) -> None:
    last = jax.new_ref(0.0)
    wrap(jax.vmap(lambda x: (last.__setitem__(..., 5.0), x)[1]))(X)
    assert float(last[...]) == 5.0


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_references_are_batched_along_any_axis(axis: int, out_axis: int, wrap: Any) -> None:
    contents = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    n = contents.shape[axis]
    add = np.arange(n, dtype=np.float32)

    def element(ref: Any, x: Any) -> Any:
        old = ref[0]
        ref[0] = ref[1] + x
        ref[1, 0] += 1
        return old

    ref = jax.new_ref(contents)
    out = wrap(jax.vmap(element, (axis, 0), out_axes=out_axis))(ref, add)
    wanted = np.moveaxis(contents.copy(), axis, 0)
    olds = wanted[:, 0].copy()
    for k in range(n):
        wanted[k, 0] = wanted[k, 1] + add[k]
        wanted[k, 1, 0] += 1
    np.testing.assert_array_equal(ref[...], np.moveaxis(wanted, 0, axis))
    np.testing.assert_array_equal(out, np.moveaxis(olds, 0, out_axis))


@EAGER_AND_JITTED
def test_references_in_trees_and_nested_vmap(wrap: Any) -> None:
    refs = {"a": jax.new_ref(jnp.zeros((2, 3))), "b": [jax.new_ref(jnp.zeros((3, 2)))]}

    def cell(refs: Any, x: Any) -> None:
        refs["a"][...] = x
        refs["b"][0][...] += x

    inner = jax.vmap(cell, ({"a": 0, "b": [0]}, 0))
    outer = jax.vmap(inner, ({"a": 0, "b": [1]}, 0))
    wrap(outer)(refs, jnp.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(refs["a"][...], np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(refs["b"][0][...], np.arange(6.0).reshape(2, 3).T)


@pytest.mark.slow
@EAGER_AND_JITTED
def test_cond_on_references_under_vmap(wrap: Any) -> None:
    ref = jax.new_ref(jnp.zeros(3))

    def element(p: Any, r: Any, x: Any) -> Any:
        return lax.cond(
            p, lambda: jax.ref.swap(r, ..., x), lambda: (r.__setitem__(..., -x), r[...])[1]
        )

    out = wrap(jax.vmap(element))(jnp.asarray([True, False, True]), ref, X)
    np.testing.assert_array_equal(ref[...], [1, -2, 3])
    np.testing.assert_array_equal(out, [0, -2, 0])


@EAGER_AND_JITTED
def test_switch_on_closed_over_references_under_vmap(wrap: Any) -> None:
    table = jax.new_ref(jnp.asarray([10.0, 20.0]))
    branches = [lambda x: x, lambda x: x * table[0], lambda x: x + table[1]]
    f = jax.vmap(lambda i, x: lax.switch(i, branches, x))
    np.testing.assert_array_equal(wrap(f)(jnp.asarray([2, 0, 1]), X), [21, 2, 30])


@EAGER_AND_JITTED
def test_loops_on_references_under_vmap(wrap: Any) -> None:
    ref = jax.new_ref(jnp.zeros(3))

    def element(n: Any, r: Any) -> Any:
        def body(i: Any) -> Any:
            r[...] += i
            return i + 1.0

        return lax.while_loop(lambda i: (i < n) & (r[...] < 3), body, 1.0)

    out = wrap(jax.vmap(element))(jnp.asarray([2.0, 0.0, 9.0]), ref)
    np.testing.assert_array_equal(ref[...], [1, 0, 3])
    np.testing.assert_array_equal(out, [2, 1, 3])


def two_cells(x: Any) -> Any:
    """(x₀·x₁, x₁ + sin(x₀·x₁)), by way of references."""
    ref = jax.new_ref(x)
    ref[0] *= ref[1]
    ref[1] += jnp.sin(ref[0])
    return jax.freeze(ref)


def loop_of_cells(x: Any) -> Any:
    ref, total = jax.new_ref(x), jax.new_ref(0.0)

    @effax.lax.foreach(jnp.asarray([1, 0, 1]))
    def _(i: Any) -> None:
        ref[i] = jnp.sin(ref[1 - i]) * ref[i]
        total[...] += ref[i]

    return jnp.stack([total[...], ref[0]])


def choice_of_cells(x: Any) -> Any:
    ref = jax.new_ref(x)
    lax.cond(x[0] > 0, lambda: ref.__setitem__(0, x[1] ** 3), lambda: ref.__setitem__(1, 2.0))
    return ref[...] * ref[0]


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("f", [two_cells, loop_of_cells, choice_of_cells])
def test_jacobians_through_internal_references(f: F, wrap: Any) -> None:
    x = jnp.asarray([0.5, 1.5])
    step = 1e-2

    def differences(g: F) -> np.ndarray:
        ends = [
            (np.asarray(g(x + step * e)) - np.asarray(g(x - step * e))) / (2 * step)
            for e in np.eye(2, dtype=np.float32)
        ]
        return np.stack(ends, -1)

    wanted = differences(f)
    for transform in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(wrap(transform(f))(x), wanted, rtol=5e-3, atol=5e-3)
    seconds = differences(jax.jacfwd(f))
    for transform in (
        jax.hessian,
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: jax.jacrev(jax.jacrev(f)),
        lambda f: jax.jacrev(jax.jacfwd(f)),
    ):
        np.testing.assert_allclose(wrap(transform(f))(x), seconds, rtol=5e-3, atol=1e-2)


@EAGER_AND_JITTED
@pytest.mark.parametrize("reverse", [False, True])
def test_scanned_references(reverse: bool, wrap: Any) -> None:
    ref, scale = jax.new_ref(jnp.arange(6.0).reshape(3, 2)), jax.new_ref(2.0)

    def body(c: Any, x: tuple[Any, Any]) -> tuple[Any, Any]:
        row, y = x
        row[0] = c + row[1]
        scale[...] += 1.0
        return c * y + row[0], row[...] * scale[...]

    def run(ref: Any, ys: Any) -> Any:
        return lax.scan(body, 1.0, (ref, ys), reverse=reverse)

    carry, out = wrap(run)(ref, X)
    wanted, c, s, outs = np.arange(6.0).reshape(3, 2), 1.0, 2.0, np.zeros((3, 2))
    for k in (2, 1, 0) if reverse else (0, 1, 2):
        wanted[k, 0] = c + wanted[k, 1]
        s += 1
        c = c * float(X[k]) + wanted[k, 0]
        outs[k] = wanted[k] * s
    np.testing.assert_array_equal(ref[...], wanted)
    np.testing.assert_allclose(carry, c)
    np.testing.assert_allclose(out, outs)


@EAGER_AND_JITTED
def test_a_scan_over_a_reference_without_elements(wrap: Any) -> None:
    ref = jax.new_ref(jnp.zeros((0, 2)))

    def run(ref: Any, y: Any) -> Any:
        def body(c: Any, row: Any) -> tuple[Any, Any]:
            row[...] = jnp.ones(2) * c
            return c * y, row[0]

        return lax.scan(body, 1.0, ref)

    carry, rows = wrap(run)(ref, 3.0)
    assert float(carry) == 1.0
    assert rows.shape == (0,)
    assert float(wrap(jax.grad(lambda y: run(ref, lax.stop_gradient(y))[0] * y))(3.0)) == 1.0
    out = wrap(jax.vmap(lambda r, y: run(r, y)[0], (1, 0)))(jax.new_ref(jnp.zeros((0, 3, 2))), X)
    np.testing.assert_array_equal(out, [1, 1, 1])


@EAGER_AND_JITTED
def test_gradients_through_scanned_references(wrap: Any) -> None:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)

        def body(c: Any, cell: Any) -> tuple[Any, None]:
            cell[...] = jnp.sin(cell[...]) * c
            return c + cell[...], None

        c, _ = lax.scan(body, 1.0, ref)
        return c * jnp.sum(ref[...])

    def plain(x: Any) -> Any:
        c: Any = 1.0
        cells: list[Any] = []
        for k in range(3):
            cells.append(jnp.sin(x[k]) * c)
            c = c + cells[-1]
        return c * sum(cells)

    np.testing.assert_allclose(wrap(jax.grad(f))(X), jax.grad(plain)(X), rtol=1e-5)
    _, pull = jax.vjp(
        lambda r: lax.scan(lambda c, x: (c + x[...] ** 2, None), 0.0, r)[0], jax.new_ref(X)
    )
    grads = jax.new_ref(jnp.ones(3))
    pull.with_refs(grads)(1.0)
    np.testing.assert_allclose(grads[...], 1 + 2 * np.asarray(X))


@pytest.mark.slow
@EAGER_AND_JITTED
def test_condition_and_body_share_a_reference(wrap: Any) -> None:
    count = jax.new_ref(0)

    def body(c: Any) -> Any:
        count[...] += 1
        return c * 2

    assert int(wrap(lambda: lax.while_loop(lambda c: count[...] < 5, body, 1))()) == 32
    assert int(count[...]) == 5

    def counts_itself(limit: Any) -> Any:
        seen = jax.new_ref(0)

        def again(c: Any) -> Any:
            seen[...] += 1
            return seen[...] <= limit

        return lax.while_loop(again, lambda c: c + 1, 0), seen[...]

    assert [int(v) for v in wrap(counts_itself)(4)] == [4, 5]
    np.testing.assert_array_equal(wrap(jax.vmap(counts_itself))(jnp.asarray([2, 0]))[0], [2, 0])


@pytest.mark.slow
@EAGER_AND_JITTED
def test_forward_derivatives_of_loops_on_references(wrap: Any) -> None:
    def power(x: Any) -> Any:
        """x ↦ x⁴, by a loop whose condition reads what the body writes."""
        count, value = jax.new_ref(0), jax.new_ref(x)

        def body(c: Any) -> Any:
            count[...] += 1
            value[...] *= x
            return c

        lax.while_loop(lambda c: count[...] < 3, body, 0)
        return value[...]

    for push in (
        lambda x: jax.jvp(power, (x,), (1.0,))[1],
        lambda x: jax.linearize(power, x)[1](1.0),
        jax.jacfwd(power),
    ):
        np.testing.assert_allclose(wrap(push)(2.0), 32.0)
