"""foreach: a loop as a decorated function; access in any order costs only the parts accessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import IllTyped, RefError

jax: Any = effax

EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])


@EAGER_AND_JITTED
def test_the_loop_runs_at_its_definition(wrap: Any) -> None:
    total = jax.new_ref(0)

    def run(xs: Any) -> Any:
        @effax.lax.foreach(xs)
        def ys(x: Any) -> Any:
            total[...] += x
            return x * 2

        return ys

    ys = wrap(run)(jnp.arange(10))
    assert repr(total) == "Ref(45, dtype=int32)"
    np.testing.assert_array_equal(ys, 2 * np.arange(10))


@EAGER_AND_JITTED
def test_several_trees_and_references(wrap: Any) -> None:
    def run(xs: Any, tree: Any, ref: Any) -> Any:
        @effax.lax.foreach(xs, tree, ref, reverse=True)
        def sums(x: Any, part: dict[str, Any], row: Any) -> Any:
            row[0] = x
            return x + part["a"], row[1]

        return sums

    ref = jax.new_ref(jnp.arange(6.0).reshape(3, 2))
    first, second = wrap(run)(jnp.arange(3.0), {"a": jnp.ones(3)}, ref)
    np.testing.assert_array_equal(first, [1, 2, 3])
    np.testing.assert_array_equal(second, [1, 3, 5])
    np.testing.assert_array_equal(ref[...], [[0, 1], [1, 3], [2, 5]])


def test_without_elements() -> None:
    count = jax.new_ref(0)

    @effax.lax.foreach(length=4)
    def nothing() -> None:
        count[...] += 1

    assert nothing is None
    assert int(count[...]) == 4
    with pytest.raises(IllTyped, match="leading sizes differ"):
        jax.lax.foreach(jnp.ones(3), jnp.ones(2))(lambda x, y: x)
    with pytest.raises(RefError, match="is a reference"):
        jax.lax.foreach(jnp.ones(3))(lambda x: count)
    assert int(count[...]) == 4


def of_array(table: Any, order: Any) -> Any:
    @effax.lax.foreach(order)
    def ys(i: Any) -> Any:
        return jnp.sum(jnp.sin(table[i]))

    return jnp.sum(ys)


def of_reference(table: Any, order: Any) -> Any:
    rows, total = jax.new_ref(table), jax.new_ref(0.0)

    @effax.lax.foreach(order)
    def _(i: Any) -> None:
        total[...] += jnp.sum(jnp.sin(rows[i]))

    return total[...]


@pytest.mark.slow
@EAGER_AND_JITTED
@pytest.mark.parametrize("f", [of_array, of_reference])
def test_gradients_of_access_in_any_order(f: Callable[..., Any], wrap: Any) -> None:
    table, order = jnp.arange(20.0).reshape(5, 4), jnp.asarray([3, 0, 3, 1])
    wanted = np.cos(np.asarray(table)) * np.array([1, 1, 0, 2, 0])[:, None]
    np.testing.assert_allclose(wrap(jax.grad(f))(table, order), wanted, rtol=1e-5, atol=1e-6)
    grads = jax.new_ref(jnp.ones((5, 4)))

    def accumulate(table: Any, order: Any) -> None:
        _, pull = jax.vjp(lambda t: f(t, order), table)
        pull.with_refs(grads)(1.0)

    wrap(accumulate)(table, order)
    np.testing.assert_allclose(grads[...], 1 + wanted, rtol=1e-5, atol=1e-6)


ROWS, WIDTH = 10000, 64


def compiled(f: Callable[..., Any], steps: int) -> Any:
    def accumulate(table: Any, order: Any, grads: Any) -> None:
        _, pull = jax.vjp(lambda t: f(t, order), table)
        pull.with_refs(grads)(1.0)

    table, grads = jnp.ones((ROWS, WIDTH)), jax.new_ref(jnp.zeros((ROWS, WIDTH)))
    return jax.jit(accumulate).lower(table, jnp.zeros(steps, int), grads).compile()


@pytest.mark.slow
def test_the_cost_of_reverse_mode_is_that_of_the_rows_accessed() -> None:
    """The compiled program accesses the bytes of the rows that are read, not of the table."""
    few, many = (compiled(of_array, n) for n in (10, 1000))
    moved = [program.cost_analysis()["bytes accessed"] for program in (few, many)]
    # Each step keeps one row of cosines, reads a row and adds to one.
    row = WIDTH * 4
    assert moved[0] < 50 * row
    assert moved[1] - moved[0] < 990 * 8 * row
    assert many.memory_analysis().temp_bytes < 1000 * 2 * row
    # Nothing makes an array like the table but updates in place.
    made = set(re.findall(rf"f32\[{ROWS},{WIDTH}\]\S* ([a-z-]+)\(", many.as_text()))
    passed_on = {"get-tuple-element", "tuple", "parameter", "while", "call", "fusion"}
    assert made <= passed_on | {"dynamic-update-slice", "bitcast"}
    assert "dynamic-update-slice" in made


@pytest.mark.slow
def test_a_reference_in_the_loop_costs_no_more_a_step() -> None:
    few, many = (compiled(of_reference, n) for n in (10, 1000))
    moved = [program.cost_analysis()["bytes accessed"] for program in (few, many)]
    assert moved[1] - moved[0] < 990 * 8 * WIDTH * 4
    assert not re.search(rf"f32\[{ROWS},{WIDTH}\]\S* copy\(", many.as_text())
