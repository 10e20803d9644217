"""The cache of a jitted function: one entry a signature, and two indices."""

from __future__ import annotations

from typing import Any

import effax
import effax.numpy as jnp


def _cache(f: Any) -> Any:
    return f._cache


def test_one_entry_serves_for_all_calls_of_a_signature() -> None:
    f = effax.jit(lambda x, y: x + y)
    for n in range(3):
        f(jnp.ones(3) * n, 1.0)
    (signature,) = _cache(f).entries
    assert len(signature.types) == 2
    assert signature.types[1].weak
    assert signature.static is None
    assert not signature.x64
    assert signature.axes == ()


def test_signatures_differ_by_weak_types_static_values_and_x64() -> None:
    f = effax.jit(lambda x, n: x * n, static_argnums=1)
    f(1.0, 2)
    f(jnp.float32(1), 2)
    f(1.0, 3)
    with effax.enable_x64():
        f(1.0, 2)
    assert len(_cache(f).entries) == 4


def test_arrays_and_trees_have_an_index_each() -> None:
    f = effax.jit(lambda x: x)
    f(jnp.ones(3))
    f({"a": jnp.ones(3)})
    f(1.0)
    cache = _cache(f)
    assert [len(t) for t in (cache.entries, cache.by_types, cache.by_structure)] == [3, 1, 1]
    f.clear_cache()
    assert not any([cache.entries, cache.by_types, cache.by_structure])


def test_a_call_that_was_traced_first_is_compiled_from_the_same_entry() -> None:
    traces: list[object] = []

    @effax.jit
    def f(x: Any) -> Any:
        traces.append(x)
        return x * 2

    effax.make_jaxpr(f)(1.0)
    f(1.0)
    assert len(traces) == len(_cache(f).entries) == 1
