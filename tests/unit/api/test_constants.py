"""A value never depends on what was computed before: f(b) with empty caches = f(b) after f(a).

Python numbers that are equal, or print alike, differ in bits or in kind: 0.0 and -0.0, nan and
-nan, 1 and 1.0 and True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.ir.build import lit
from effax.ir.syntax import Lit
from effax.ir.text.parser import parse
from effax.ir.types import array_type

NAN = float("nan")
ALIKE: list[tuple[Any, ...]] = [
    (0.0, -0.0, 0, False),
    (1, 1.0, True),
    (NAN, -NAN),
    (1 + 0j, complex(1, -0.0), 1.0),
    (0j, complex(-0.0, 0.0), complex(0.0, -0.0), -0.0),
    (complex(NAN, 0.0), complex(-NAN, 0.0), complex(0.0, NAN), complex(0.0, -NAN)),
]
ORDERED = [pair for group in ALIKE for pair in permutations(group, 2)]


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Setting:
    name: str
    value: Any
    nested: Any = None


def bits(result: Any) -> list[tuple[str, bool, bytes]]:
    """Return dtypes, weakness and bits."""
    leaves = jax.tree.leaves(result)
    return [(str(x.dtype), x.weak_type, np.asarray(x).tobytes()) for x in leaves]


def static(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = jax.jit(lambda c: jax.tree.map(jnp.asarray, c), static_argnums=0)
    return lambda c: function(wrap(c))


def uses() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield functions of a Python number, which enters programs as a constant or a parameter."""
    yield "asarray", jnp.asarray
    yield "full", lambda c: jnp.full(2, c)
    yield "where", lambda c: jnp.where(jnp.array([True, False]), c, c)
    yield "add", lambda c: jnp.array([-0.0, 1.0]) + c
    yield "mul", lambda c: c * jnp.array([-0.0, 1.0])
    yield "select", lambda c: jax.jit(lambda p: jnp.where(p, c, c))(True)
    yield "jit", lambda c: jax.jit(lambda: jnp.asarray(c))()
    yield "partial", lambda c: jax.jit(partial(jnp.full, 2, c))()
    yield "scan", lambda c: lax.scan(lambda k, _: (k, jnp.asarray(c)), 0, None, length=2)[1]
    yield "vmap", lambda c: jax.vmap(lambda x: jnp.asarray(c))(jnp.zeros(2))
    yield "checkpoint", lambda c: jax.checkpoint(lambda x: jnp.asarray(c) * x)(1.0)
    yield "static", static(lambda c: c)
    yield "static tuple", static(lambda c: (c, (c,)))
    yield "static record", static(lambda c: Pair(c, 1))

    by_setting = jax.jit(
        lambda s: (jnp.asarray(s.value), jnp.asarray(s.nested[0])), static_argnums=0
    )
    yield "static dataclass", lambda c: by_setting(Setting("a", c, (c,)))


USES = dict(uses())


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_a_value_does_not_depend_on_earlier_ones(use: str) -> None:
    call = USES[use]
    alone = {}
    for group in ALIKE:
        for value in group:
            jax.clear_caches()
            alone[id(value)] = bits(call(value))
    jax.clear_caches()
    for before, value in ORDERED:
        call(before)
        assert bits(call(value)) == alone[id(value)], (before, value)


@pytest.mark.parametrize(("x", "y"), [p for p in ORDERED if type(p[0]) is type(p[1])])
def test_literals_of_different_bits_differ(x: Any, y: Any) -> None:
    type_ = array_type((), jnp.asarray(x).dtype)
    first, second = lit(x, type_), lit(y, type_)
    assert first != second
    assert (first == lit(x, type_), hash(first)) == (True, hash(lit(x, type_)))
    assert str(first) != str(second)


@pytest.mark.parametrize("value", [v for group in ALIKE for v in group])
def test_the_text_of_a_literal_keeps_its_bits(value: Any) -> None:
    jaxpr = jax.make_jaxpr(lambda: jnp.full(2, value))().jaxpr
    again = parse(str(jaxpr))
    assert again == jaxpr
    kept = [a for e in again.eqns for a in e.ins if isinstance(a, Lit)]
    assert np.asarray(kept[0].value).tobytes() == np.asarray(value).tobytes()


def test_a_literal_keeps_no_payload_of_a_nan() -> None:
    payload = float(np.array(0x7FF8_0000_0000_1234, np.uint64).view(np.float64))
    type_ = array_type((), np.float64)
    assert Lit(payload, type_) == Lit(NAN, type_)
    assert np.asarray(Lit(payload, type_).value).tobytes() == np.asarray(NAN).tobytes()
