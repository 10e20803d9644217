"""Promotion of weak types where values of several programs meet: branches, carries, updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import EffaxError

Thunk = Callable[[], Any]

i8, bf16 = jnp.int8, jnp.bfloat16


def compiled(f: Thunk) -> Thunk:
    return effax.jit(f)


RUNS = pytest.mark.parametrize("how", [lambda f: f, compiled], ids=["eager", "jit"])


def ruled(tangent: Callable[[Any], Any]) -> Any:
    """Return the identity, with a rule for its tangent."""
    f = effax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangent(tangents[0])))
    return f


LOSES: dict[str, Thunk] = {
    "float_and_int": lambda: lax.cond(True, lambda: 1.7, lambda: jnp.int32(3)),
    "gradient": lambda: effax.grad(
        lambda x: lax.cond(x > 0, lambda x: x * x, lambda x: jnp.int32(0), x)
    )(3.0),
    "bool_and_int": lambda: lax.cond(False, lambda a: a, lambda a: a + 1, jnp.array([True, False])),
    "bool_and_python_int": lambda: lax.cond(True, lambda: True, lambda: 1),
    "constant_out_of_range": lambda: lax.cond(True, lambda: 300, lambda: i8(3)),
    "constant_overflows": lambda: lax.switch(0, [lambda: 70000.0, lambda: jnp.float16(3)]),
    "unknown_integer": lambda: lax.cond(True, lambda x: x, lambda x: i8(2), 5),
    "unknown_float": lambda: lax.cond(True, lambda x: x, lambda x: bf16(2), 1.1),
    "two_strong_of_three": lambda: lax.switch(0, [lambda: 1, lambda: i8(2), lambda: bf16(3)]),
    "complex_and_float": lambda: lax.cond(True, lambda: 1j, lambda: jnp.float32(3)),
    "while_init": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + i8(1), 300),
    "while_kind": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, jnp.int32(0)),
    "while_bool": lambda: lax.while_loop(lambda c: True, lambda c: c + 1, True),
    "fori_init": lambda: lax.fori_loop(0, 0, lambda i, c: c + i8(1), 300),
    "fori_bound": lambda: lax.fori_loop(300, i8(5), lambda i, c: c, 1),
    "scan_kind": lambda: lax.scan(lambda c, _: (c > 0, None), 1, None, 2),
    "scan_result": lambda: lax.scan(lambda c, _: (jnp.asarray(300), None), i8(1), None, 2),
    "where_constant": lambda: jnp.where(True, 300, i8(3)),
    "select_default": lambda: jnp.select([jnp.array([True])], [jnp.array([1], i8)], 300),
    "stack": lambda: jnp.stack([i8(2), 300]),
    "lax_select": lambda: lax.select(True, 1.7, jnp.int32(3)),
    "clamp": lambda: lax.clamp(0, jnp.array([1, 2], i8), 300),
    "clip": lambda: jnp.clip(jnp.array([1, 2], i8), 0, 300),
    "reduce_init": lambda: lax.reduce(jnp.arange(4), 0.5, lax.add, (0,)),
    "reduce_init_range": lambda: lax.reduce(jnp.arange(4, dtype=i8), 300, lax.add, (0,)),
    "reduce_result": lambda: lax.reduce(jnp.arange(4), 0, lambda a, b: a + b + 0.5, (0,)),
    "window_init": lambda: lax.reduce_window(jnp.arange(4), 0.5, lax.add, (2,)),
    "window_result": lambda: lax.reduce_window(jnp.arange(4), 0, lambda a, b: a * b + 0.5, (2,)),
    "associative_scan": lambda: lax.associative_scan(lambda a, b: a + b + 0.5, jnp.arange(4)),
    "associative_scan_bool": lambda: lax.associative_scan(lambda a, b: a > b, jnp.arange(4)),
    "set_range": lambda: jnp.zeros(3, i8).at[0].set(300),
    "get_fill": lambda: jnp.arange(4).at[jnp.array([9])].get(mode="fill", fill_value=1.7),
    "take_fill": lambda: jnp.take(jnp.arange(3), jnp.array([9]), fill_value=1.7),
    "unique_fill": lambda: jnp.unique(jnp.arange(3), size=4, fill_value=1.7),
    "extract_fill": lambda: jnp.extract(
        jnp.array([True, False]), jnp.array([1, 2]), size=2, fill_value=1.7
    ),
    "tangent_overflows": lambda: effax.jvp(
        ruled(lambda x: 70000.0), (jnp.float16(1),), (jnp.float16(1),)
    ),
    "solution_of_root": lambda: lax.custom_root(
        lambda x: x - 2, jnp.int32(1), lambda f, x: jnp.asarray(2.5), lambda g, y: y
    ),
    "update_slice": lambda: lax.dynamic_update_slice(
        jnp.zeros(3, jnp.int32), jnp.array([1.7]), (0,)
    ),
    "pad": lambda: lax.pad(jnp.arange(4), 0.5, ((1, 1, 0),)),
}

KEEPS: dict[str, tuple[Thunk, Any, str]] = {
    "int_to_float": (lambda: lax.cond(True, lambda: 1, lambda: jnp.float32(2.5)), 1, "float32"),
    "two_weak": (lambda: lax.cond(True, lambda: 1, lambda: 2.5), 1, "float32"),
    "constant_in_range": (lambda: lax.cond(True, lambda: 100, lambda: i8(3)), 100, "int8"),
    "constant_is_rounded": (lambda: lax.cond(True, lambda: 0.5, lambda: bf16(3)), 0.5, "bfloat16"),
    "infinity": (lambda: lax.cond(True, lambda: np.inf, lambda: bf16(3)), np.inf, "bfloat16"),
    "unknown_to_float": (
        lambda: lax.cond(True, lambda x: x, lambda x: jnp.float32(2), 5),
        5,
        "float32",
    ),
    "float_to_complex": (
        lambda: lax.cond(True, lambda x: x, lambda x: jnp.complex64(2), 0.5),
        0.5,
        "complex64",
    ),
    "carry": (lambda: lax.fori_loop(0, 3, lambda i, c: c + 1.5, 3), 7.5, "float32"),
    "carry_to_unsigned": (
        lambda: lax.fori_loop(0, 2, lambda i, c: c ^ jnp.uint32(7), 1),
        1,
        "uint32",
    ),
    "carry_to_narrow_float": (
        lambda: effax.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: c + bf16(1), x))(0.5),
        2.5,
        "bfloat16",
    ),
    "result_of_body": (
        lambda: lax.fori_loop(0, 2, lambda i, c: jnp.asarray(3), jnp.float32(1)),
        3,
        "float32",
    ),
    "root": (
        lambda: lax.custom_root(lambda x: x - 2.0, 1.0, lambda f, x: 2, lambda g, y: y / g(1.0)),
        2,
        "float32",
    ),
    "reduce": (lambda: lax.reduce(jnp.arange(4.0), 1, lax.add, (0,)), 7, "float32"),
}


@RUNS
@pytest.mark.parametrize("f", LOSES.values(), ids=LOSES)
def test_a_value_or_kind_that_would_be_lost_is_an_error(
    f: Thunk, how: Callable[[Thunk], Thunk]
) -> None:
    with pytest.raises(EffaxError) as info:
        how(f)()
    assert "expected" in str(info.value)


@RUNS
@pytest.mark.parametrize(("f", "value", "dtype"), KEEPS.values(), ids=KEEPS)
def test_a_weak_value_promotes_where_it_keeps_its_value(
    f: Thunk, value: Any, dtype: str, how: Callable[[Thunk], Thunk]
) -> None:
    made = how(f)()
    assert (np.asarray(made, complex).tolist(), str(made.dtype)) == (value, dtype)


def test_weak_arrays_of_known_value_are_checked_as_python_numbers() -> None:
    big = jnp.asarray(300)
    for f in (
        lambda: jnp.where(jnp.array(True), big, i8(3)),
        lambda: jnp.zeros(3, i8).at[0].set(big),
        lambda: jnp.clip(jnp.array([1], i8), -big, big),
    ):
        with pytest.raises(EffaxError, match="does not fit"):
            f()


def test_cotangents_of_rules_keep_their_kind_and_stay_finite() -> None:
    def identity(ct: Any) -> Callable[[Any], Any]:
        f = effax.custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x * 1, None), lambda _, g: (ct,))
        return f

    assert effax.grad(identity(3))(jnp.float32(1)) == 3
    for ct, x in ((1j, jnp.float32(1)), (70000.0, jnp.float16(1)), (True, jnp.float32(1))):
        for grad in (effax.grad, lambda f: effax.jit(effax.grad(f))):
            with pytest.raises(EffaxError, match="wrong type"):
                grad(identity(ct))(x)
