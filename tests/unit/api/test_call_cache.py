"""The cache of a jitted function: one entry a signature, and indices of calls."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
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


def test_numpy_arrays_beside_arrays_without_a_buffer() -> None:
    f, x = effax.jit(lambda x, y: x + y), np.ones(3, np.float32)
    for n in range(3):
        assert f(x, jnp.full(3, n, np.float32)).tolist() == [n + 1] * 3


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
    tables = (cache.entries, cache.by_types, cache.by_structure, cache.by_kind)
    assert [len(t) for t in tables] == [3, 1, 1, 1]
    f.clear_cache()
    assert not any(tables)


def test_every_kind_of_argument_runs_the_same_program_warm(monkeypatch: Any) -> None:
    f = effax.jit(lambda x, y, n=1: (x - y) * n, static_argnames="n")
    x, y = jnp.arange(3.0), np.ones(3, np.float32)
    calls = [
        lambda: f(x, y, n=2), lambda: f(x, y=y, n=2), lambda: f(n=2, y=y, x=x),
        lambda: f(x, 1.0, 2), lambda: f(y=1.0, x=x, n=2),
    ]  # fmt: skip
    cold = [call().tolist() for call in calls]
    monkeypatch.setattr(type(f), "_flatten_call", None)
    assert [call().tolist() for call in calls] == cold == [[-2.0, 0.0, 2.0]] * 5


def test_static_values_are_exact_in_warm_calls() -> None:
    f = effax.jit(lambda x, n: x + n if n is not True else x - 1, static_argnums=1)
    for _ in range(2):
        assert [float(f(1.0, n)) for n in (1, True, 2)] == [2.0, 0.0, 3.0]
    g = effax.jit(lambda x, s: x * (2.0 if s == "a" else 3.0), static_argnums=1)
    assert [float(g(1.0, s)) for s in ("a", "b", "a")] == [2.0, 3.0, 2.0]


def test_warm_calls_copy_numpy_arrays_and_share_buffers_of_numbers() -> None:
    f = effax.jit(lambda x: x)
    a = np.ones(64, np.float32)
    outs = [f(a)]
    a += 1
    outs.append(f(a))
    a += 1
    assert [out[0].item() for out in outs] == [1.0, 2.0]
    for _ in range(3):
        made = f(2.5)
        made.delete()
    assert float(f(2.5)) == 2.5 and np.signbit(f(-0.0)) and not np.signbit(f(0.0))
    donating = effax.jit(lambda x: x + 1, donate_argnums=0)
    assert [float(donating(2.5)) for _ in range(3)] == [3.5] * 3
    with effax.enable_x64():
        assert f(2.5).dtype == np.float64
    with pytest.raises(OverflowError):
        f(2**40)


def test_warm_calls_of_threads_have_copies_of_their_own() -> None:
    f = effax.jit(lambda x, y: (x, x[::-1] + y))

    def results(n: int) -> set[tuple[float, ...]]:
        x = np.arange(64, dtype=np.float32)[:: (1, -1)[n]]
        outs = [f(y=np.float32(n), x=x) for _ in range(100)]
        return {(float(a[0]), float(b[0])) for a, b in outs}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(results, (0, 1))) == [{(0.0, 63.0)}, {(63.0, 1.0)}]


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
