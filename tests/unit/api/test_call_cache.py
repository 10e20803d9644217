"""The cache of a jitted function: one entry a signature, and two indices."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest

import effax
import effax.numpy as jnp
from effax.api import call_cache
from effax.lowering import program


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
    assert not signature.settings
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


@pytest.mark.slow
def test_entries_of_one_function_are_bounded_and_freed(monkeypatch: Any) -> None:
    monkeypatch.setattr(call_cache, "BOUND", 3)
    f = effax.jit(lambda x: x * 2)
    f(jnp.ones(1))
    first = weakref.ref(_cache(f).by_types.copy().popitem()[1])
    for n in range(2, 6):
        f(jnp.ones(n))
    cache = _cache(f)
    assert [len(t) for t in (cache.entries, cache.by_types, cache.by_structure)] == [3, 3, 0]
    gc.collect()
    assert first() is None
    assert float(f(jnp.ones(1))[0]) == 2


@pytest.mark.slow
def test_executables_that_are_dropped_are_freed(monkeypatch: Any) -> None:
    monkeypatch.setattr(call_cache, "BOUND", 2)
    monkeypatch.setattr(program._cache, "limit", 2)
    f = effax.jit(lambda x, n: x * n, static_argnums=1)
    alive: list[weakref.ref[object]] = []
    for n in range(8):
        f(jnp.ones(3), n)
        alive.append(weakref.ref(next(reversed(program._cache.programs.values())).executable))
    assert [r() is not None for r in alive] == [False] * 6 + [True] * 2


def test_the_function_with_most_entries_loses_its_oldest(monkeypatch: Any) -> None:
    monkeypatch.setattr(call_cache, "FEW", 1)
    few, many = effax.jit(lambda x: x + 1), effax.jit(lambda x: x - 1)
    for n in range(1, 3):
        few(jnp.ones(n))
    large = [len(c.entries) for c in call_cache._live.caches if len(c.entries) > 1]
    monkeypatch.setattr(call_cache, "BOUND_OF_ALL", sum(large) + 2)
    n_before = max(large) + 2
    for n in range(1, n_before + 3):
        many.trace(jnp.ones(n))
    for n in range(1, n_before + 3):
        many._traced(many._flatten_call((jnp.ones(n),), {}, ()))
    assert len(_cache(few).entries) == 2
    total = sum(len(c.entries) for c in call_cache._live.caches if len(c.entries) > 1)
    assert total <= call_cache.BOUND_OF_ALL


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static arguments", "shapes"])
def test_memory_does_not_grow_with_new(kind: str) -> None:
    """Later programs take the memory that the first ones left."""
    program = f"""
import gc
import effax, numpy as np
from effax.api import call_cache
from effax.lowering import program
from effax.lowering.xla import executable

call_cache.BOUND = program._cache.limit = executable.TRIMMED = 20

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096

f = effax.jit(lambda x, n: effax.numpy.sin(x) * n, static_argnums=1)
static = {kind == "static arguments"}
sizes = []
for i in range(141):
    f(np.ones(3 if static else i + 1, np.float32), float(i) if static else 2.0)
    if i in (60, 140):
        sizes.append(resident())
print(sizes[1] - sizes[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    # Without the bound: some 200 kilobytes a program.
    assert int(done.stdout) < 80 * 60_000
