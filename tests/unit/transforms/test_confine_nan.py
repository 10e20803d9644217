"""Zeros of unit vectors stay zeros beside slopes that are nan; all else is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.analysis.check import check
from effax.ir.eval.numpy import evaluate
from effax.ir.text.parser import parse
from effax.transforms.confine_nan import confine_nan

NAN = np.nan
X = jnp.array([1.0, NAN, 3.0])
POINTWISE: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * x,
    "square": jnp.square,
    "chain": lambda x: jnp.exp(jnp.sin(x) * x),
    "quotient": lambda x: 1 / x + jnp.log(x),
    "power": lambda x: x**1.5,
}


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("jacobian", [jax.jacrev, jax.jacfwd])
def test_a_nan_element_stays_in_its_row_and_column(name: str, jacobian: Callable[..., Any]) -> None:
    f = POINTWISE[name]
    slopes = np.array([float(jax.grad(f)(v)) for v in np.asarray(X)])
    for run in (jacobian(f), jax.jit(jacobian(f))):
        found = np.asarray(run(X))
        np.testing.assert_allclose(found.diagonal(), slopes, rtol=1e-5)
        assert not found[~np.eye(3, dtype=bool)].any()


def through_a_reference(x: Any) -> Any:
    r = jax.new_ref(x)

    def body(i: Any, carry: Any) -> Any:
        r[...] = r[...] * jnp.sin(r[...])
        return carry

    lax.fori_loop(0, 2, body, 0)
    return r[...]


NESTED: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: lax.scan(lambda c, _: (c * x * jnp.sin(c), None), x, None, 3)[0],
    "scan of elements": lambda x: lax.scan(lambda c, v: (c + 1, v * v), 0.0, x)[1],
    "map": lambda x: lax.map(lambda v: v * jnp.exp(v), x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.cos(c), x),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "jit": jax.jit(lambda x: jnp.sin(x) * x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: x * x, lambda x: x, x),
    "scan in switch": lambda x: lax.switch(
        1, [jnp.sin, lambda x: lax.scan(lambda c, _: (c * x, None), x, None, 2)[0]], x
    ),
    "vmap of cond": jax.vmap(
        lambda v: lax.cond(v > 2, lambda v: v * v, lambda v: jnp.sin(v), v)  # noqa: PLW0108
    ),
    "reference": through_a_reference,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_a_nan_element_stays_in_its_row_and_column_through_regions(name: str) -> None:
    f = NESTED[name]
    numbers = np.asarray(jax.jacfwd(f)(jnp.array([1.0, 2.0, 3.0])))
    for run in (jax.jacrev(f), jax.jit(jax.jacrev(f))):
        found = np.asarray(run(X))
        np.testing.assert_allclose(found[::2], numbers[::2] * [1, 0, 1], rtol=1e-5)
        np.testing.assert_array_equal(found[1], [0, NAN, 0])


def test_a_hessian_has_nan_where_the_second_derivative_has() -> None:
    for run in (jax.hessian, lambda f: jax.jit(jax.hessian(f))):
        found = np.asarray(run(lambda x: jnp.sum(x**3))(X))
        np.testing.assert_array_equal(found, np.diag([6, NAN, 18]))


def test_rows_that_depend_on_a_nan_element_have_nan() -> None:
    x = np.asarray(X)
    wanted = 2 * np.outer(x, x) + np.diag([np.sum(x * x)] * 3)
    for run in (jax.jacrev, jax.jacfwd):
        found = run(lambda x: jnp.sum(x * x) * x)(X)
        np.testing.assert_array_equal(found, wanted)


def test_an_infinite_slope_times_zero_is_nan() -> None:
    found = jax.jacrev(jnp.sqrt)(jnp.array([1.0, 0.0]))
    np.testing.assert_array_equal(found, [[0.5, NAN], [0.0, np.inf]])


def test_jacobians_are_differentiated_where_cotangents_vanish() -> None:
    def f(x: Any) -> Any:
        return jnp.sum((x * x) * jnp.sin(x))

    x = jnp.array([1.0, 0.0, 2.0])
    wanted = jax.jacfwd(jax.grad(f))(x)
    for run in (jax.jacrev(jax.jacrev(f)), jax.hessian(f), jax.jit(jax.jacrev(jax.jacrev(f)))):
        np.testing.assert_allclose(run(x), wanted, rtol=1e-6)


PROGRAM = """
{ lambda a:f32[3] ; b:bool[] c:f32[3] d:f32[]. let
    e:f32[3] = mul c a
    f:f32[3] = div d a
    g:f32[3] = mul a d
    h:f32[3] = mul c 2.0:f32[]
    i:f32[3] = mul a a
  in (e, f, g, h, i) }
"""


def test_products_of_inputs_with_constants_are_confined() -> None:
    program = parse(PROGRAM)
    confined = confine_nan(program)
    check(confined)
    names = [e.prim.name for e in confined.eqns]
    assert names.count("straight_through") == 3
    slopes = np.array([1, NAN, np.inf], np.float32)
    yes, no = np.array(True), np.array(False)
    zeros = [np.zeros(3, np.float32), np.zeros((), np.float32)]
    found = evaluate(confined, [slopes, yes, *zeros])
    for x, wanted in zip(found, [[0, 0, NAN], [0, 0, 0], [0, 0, NAN]], strict=False):
        np.testing.assert_array_equal(x, wanted)
    numbers, scalar = np.array([1, 2, 4], np.float32), np.array(3, np.float32)
    for same in ([slopes, no, *zeros], [numbers, yes, numbers, scalar]):
        for x, y in zip(evaluate(confined, same), evaluate(program, same), strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_program_without_such_products_is_unchanged() -> None:
    program = parse("{ lambda ; a:bool[] b:f32[3]. let c:f32[3] = add b b in (c,) }")
    assert confine_nan(program) is program


LOOP = """
{ lambda ; a:bool[] b:f32[3] c:f32[3]. let
    d:f32[3] e:f32[3] = scan[
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (c, b) }
      length=2
      n_carry=2
      n_consts=0
      reverse=False
      unroll=1
    ] b c
  in (d, e) }
"""


def test_regions_without_products_are_unchanged() -> None:
    linear = parse(LOOP)
    assert confine_nan(linear) is linear, "a product of two linear values is none of slopes"
