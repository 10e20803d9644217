"""The peak of live memory, by the order of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir import Jaxpr, array_type, ref_type
from effax.ir.analysis.cost import memory

N = 1000
X = array_type((N,), "float32")
SIZE = 4 * N
REF = ref_type(X)


def buffers(found: effax.ir.Cost) -> float:
    """Return the peak, arguments excluded, as a number of buffers."""
    return round((found.peak_bytes - found.argument_bytes) / SIZE, 2)


def test_a_chain_of_elementwise_equations_needs_one_buffer() -> None:
    assert buffers(effax.cost(lambda x: jnp.sin(jnp.exp(x) * 2.0) + x)(X)) == 1


def test_a_value_that_is_only_reduced_is_not_stored() -> None:
    assert buffers(effax.cost(lambda x, y: jnp.sum((x - y) ** 2))(X, X)) == 0


def test_values_are_live_to_their_last_use() -> None:
    def f(x: effax.Array) -> effax.Array:
        a = jnp.sort(x)
        b = jnp.sort(a)
        return jnp.sort(a + b)

    assert buffers(effax.cost(f)(X)) == 2


def test_a_result_that_is_an_argument_is_copied() -> None:
    assert buffers(effax.cost(lambda x: (x, x))(X)) == 2


def test_references_are_updated_in_place() -> None:
    def whole(r: effax.Ref, x: effax.Array) -> None:
        r[...] = r[...] * 0.9 + x

    def row(r: effax.Ref, i: effax.Array) -> None:
        r[i] = r[i] * 2.0

    assert buffers(effax.cost(whole)(REF, X)) == 0
    assert buffers(effax.cost(row)(REF, 3)) < 0.01


def test_a_read_before_a_write_has_its_own_buffer() -> None:
    def f(r: effax.Ref, x: effax.Array) -> effax.Array:
        old = r[...]
        r[...] = x
        return jnp.sort(old)

    assert buffers(effax.cost(f)(REF, X)) == 2


def test_a_loop_keeps_carries_and_stacks_results() -> None:
    def f(x: effax.Array) -> tuple[effax.Array, effax.Array]:
        return lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=5)

    # The carry, the stacked results, and the next carry.
    assert buffers(effax.cost(f)(X)) == 7


def test_a_call_frees_operands_that_are_not_used_again() -> None:
    inner = effax.jit(lambda x: jnp.sort(jnp.sort(x)))
    called = effax.cost(lambda x: inner(jnp.sort(x)))(X)
    assert called.peak_bytes == effax.cost(lambda x: jnp.sort(jnp.sort(jnp.sort(x))))(X).peak_bytes


def test_peaks_are_computed_a_few_times_for_each_program(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Jaxpr] = []
    real = memory.Memory._keep

    def keep(self: memory.Memory, jaxpr: Jaxpr, owned: memory.Owned) -> None:
        computed.append(jaxpr)
        real(self, jaxpr, owned)

    monkeypatch.setattr(memory.Memory, "_keep", keep)
    function: Callable[[effax.Array], effax.Array] = jnp.sort
    for _ in range(12):
        function = nested(function)
    # Each level calls the one below twice, once with an operand that dies there.
    effax.cost(function)(X)
    each = Counter(map(id, computed))
    assert len(each) == 13
    assert max(each.values()) <= 1 + memory.VARIANTS


def nested(inner: Callable[[effax.Array], effax.Array]) -> Callable[[effax.Array], effax.Array]:
    called = effax.jit(inner)

    def twice(x: effax.Array) -> effax.Array:
        y = jnp.sort(x)
        return called(y) + called(called(y))

    return twice


def test_values_live_at_the_peak() -> None:
    found = effax.cost(lambda weights: lax.scan(lambda c, _: (c, c), weights, None, length=3))(X)
    assert found.live_at_peak[0].bytes == SIZE
    assert "weights" in [live.name for live in found.live_at_peak]
