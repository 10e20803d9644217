"""Lifetimes: arrays, references and functions are freed with their last use by the user."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.api import call_cache

pytestmark = pytest.mark.slow

jax: Any = effax
Made = list[Any]


def _jit_over_a_reference() -> Made:
    r = effax.new_ref(jnp.zeros(9))
    f = effax.jit(lambda x: r[0] + x)
    f(1.0)
    f(2.0)
    return [r, f]


def _jit_over_an_array() -> Made:
    a = jnp.zeros(9)
    f = effax.jit(lambda x: a + x)
    f(1.0)
    return [a, f]


def _a_reference_argument() -> Made:
    r = effax.new_ref(jnp.zeros(9))
    KEPT(r)
    return [r]


KEPT: Any = effax.jit(lambda r: r[...])


def _gradient() -> Made:
    a, b = jnp.ones(9), jnp.ones(9)
    jax.grad(lambda x: (jnp.sin(x) * b).sum())(a)
    return [a, b]


def _pullback() -> Made:
    a, total = jnp.ones(9), effax.new_ref(jnp.zeros(9))
    _, pullback = jax.vjp(jnp.sin, a)
    pullback.with_refs(total)(a)
    return [a, total, pullback]


def _scan_over_a_reference() -> Made:
    r, xs = effax.new_ref(jnp.zeros(9)), jnp.ones(3)

    def step(_: None, x: Any) -> tuple[None, Any]:
        r[...] += x
        return None, x

    lax.scan(step, None, xs)
    return [r, xs]


def _batch() -> Made:
    a = jnp.ones((3, 9))
    jax.vmap(jnp.sin)(a)
    return [a]


def _exception() -> Made:
    a, r = jnp.ones(9), effax.new_ref(jnp.zeros(9))

    def f(x: Any) -> Any:
        r[0] = x[0]
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        effax.jit(f)(a)
    return [a, r]


def _custom_rule() -> Made:
    a = jnp.ones(9)
    f = jax.custom_jvp(lambda x: x * a)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * a))
    jax.grad(lambda x: f(x).sum())(1.0)
    return [a, f]


def _leaked_tracer() -> Made:
    a = jnp.ones(9)

    def f(x: Any) -> Any:
        LEAKED.append(x * a)
        return x.sum()

    jax.grad(f)(a)
    return [a]


LEAKED: list[Any] = []


def _frozen() -> Made:
    r = effax.new_ref(jnp.ones(9))
    effax.freeze(r)
    return [r]


@pytest.mark.parametrize(
    "make",
    [
        _jit_over_a_reference,
        _jit_over_an_array,
        _a_reference_argument,
        _gradient,
        _pullback,
        _scan_over_a_reference,
        _batch,
        _exception,
        _custom_rule,
        _leaked_tracer,
        _frozen,
    ],
    ids=lambda f: f.__name__.strip("_"),
)
def test_nothing_is_kept(make: Callable[[], Made]) -> None:
    watched = [ref(x) for x in make()]
    gc.collect()
    assert [w() for w in watched] == [None] * len(watched)


class Model:
    """Has an array, and a method that is compiled for each instance."""

    def __init__(self, n: int) -> None:
        self.table = jnp.arange(float(n))

    @partial(effax.jit, static_argnums=0)
    def __call__(self, x: Any) -> Any:
        return x * self.table


def test_static_arguments_are_not_kept() -> None:
    def used() -> Made:
        model = Model(3)
        np.testing.assert_array_equal(model(2.0), [0, 2, 4])
        np.testing.assert_array_equal(effax.jit(model)(2.0), [0, 2, 4])
        return [ref(model), ref(model.table)]

    other = Model(4)
    np.testing.assert_array_equal(other(2.0), [0, 2, 4, 6])
    watched = used()
    gc.collect()
    assert [w() for w in watched] == [None, None]
    compiled: Any = Model.__call__
    assert len(compiled._cache.entries) == 1
    np.testing.assert_array_equal(other(3.0), [0, 3, 6, 9])
    np.testing.assert_array_equal(Model(3)(2.0), [0, 2, 4])


def test_static_arguments_are_compared_by_value() -> None:
    traces = []

    @partial(effax.jit, static_argnums=1)
    def f(x: Any, key: object) -> Any:
        traces.append(key)
        return x + 1

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.name == other.name

        def __hash__(self) -> int:
            return hash(self.name)

    plain = object()
    for key in (Named("a"), Named("a"), (1, 2), (1, 2), 1, True, 1.0, "1", plain, plain, object()):
        f(1.0, key)
    assert len(traces) == 8


def test_kinds_of_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_cache, "BOUND", 4)
    f: Any = effax.jit(lambda x, n: x * n, static_argnames="n")
    for n in range(9):
        assert float(f(2.0, n=n)) == 2.0 * n
    assert len(f._cache.entries) == 4
    assert float(f(2.0, n=0)) == 0.0
    g: Any = effax.jit(lambda x: x * 2)
    for n in range(9):
        g(jnp.ones(n))
    assert len(g._cache.by_types) == 4


def test_a_frozen_array_is_not_written_through_its_memory() -> None:
    for pinned in (False, True):
        r = effax.new_ref(jnp.ones(3))
        if pinned:
            r.unsafe_buffer_pointer()
        array: Any = np.asarray(effax.freeze(r))
        while isinstance(array, np.ndarray):
            assert not array.flags.writeable
            array = array.base


@pytest.mark.parametrize("pinned", [False, True])
def test_what_was_read_does_not_change(pinned: bool) -> None:
    read, memory, before = _read_and_overwritten(pinned)
    gc.collect()
    for x, seen, expected in zip(read, memory, before, strict=True):
        np.testing.assert_array_equal(x, expected)
        np.testing.assert_array_equal(seen, expected)


def _read_and_overwritten(pinned: bool) -> tuple[Made, Made, Made]:
    """Values read from a reference that was written afterwards and freed."""
    r = effax.new_ref(jnp.zeros(5))
    if pinned:
        r.unsafe_buffer_pointer()
    read = [
        r[...],
        r[0:2],
        r[jnp.array([0, 1])],
        r[0],
        effax.ref.swap(r, slice(0, 2), jnp.ones(2)),
        lax.cond(True, lambda: r[...], lambda: r[...]),
        lax.scan(lambda c, x: (c, r[...]), 0.0, None, 2)[1],
        jax.vmap(lambda i: r[...])(jnp.arange(2)),
    ]
    before = [np.array(x) for x in read]
    memory = [np.asarray(x) for x in read]
    r[...] = 9.0
    effax.jit(lambda r: r.__setitem__(0, r[0] + 1))(r)
    r[1] = 7.0
    return read, memory, before


def test_residuals_are_of_the_time_when_they_were_read() -> None:
    r = effax.new_ref(jnp.arange(3.0))
    ones = jnp.ones(3)
    _, pullback = jax.vjp(lambda x: x * r[...], ones)
    _, push = jax.linearize(lambda x: x * r[...], ones)
    _, crossed = effax.jit(lambda x: jax.vjp(lambda x: x * r[...], x))(ones)
    r[...] = 100.0
    for result in (pullback(ones)[0], push(ones), crossed(ones)[0]):
        np.testing.assert_array_equal(result, [0, 1, 2])
