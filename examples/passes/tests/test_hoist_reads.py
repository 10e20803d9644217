from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from effax_passes import hoist_reads, layers
from effax_passes.hoist_reads import Read, invariant_reads

import effax
import effax.numpy as jnp
from effax import Array, Ref
from effax.extend import Region
from effax.ir import Eqn, Jaxpr, walk
from effax.ir.prims import Get
from effax.passes import unwrap
from effax.testing import LawBroken, check_pass


def reads_in_a_loop(jaxpr: Jaxpr) -> bool:
    return any(isinstance(place.eqn.prim, Get) and place.trip_count != 1 for place in walk(jaxpr))


def grown(limit: Ref, scale: Ref, x: Array) -> Array:
    def inner(i: Array, c: Array) -> Array:
        return c * scale[...]

    def body(c: Array) -> Array:
        return effax.lax.fori_loop(0, 2, inner, c)

    def runs(state: tuple[Array, Array]) -> Array:
        return (state[0] < 2) & (state[1] < limit[...])

    def outer(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return state[0] + 1, body(state[1])

    return effax.lax.while_loop(runs, outer, (jnp.int32(0), x))[1]


LOOPS = ["scan", "while", "refs.get"]
ARGS = effax.new_ref(jnp.float32(9.0)), effax.new_ref(jnp.float32(2.0)), jnp.float32(1.0)
PROGRAM = effax.make_jaxpr(grown)(*ARGS).jaxpr


def test_reads_are_hoisted_bit_by_bit(examples: int) -> None:
    report = check_pass(hoist_reads, programs=PROGRAM, focus=LOOPS, examples=examples)
    assert report.changed > examples // 10


def test_a_read_has_to_stay_in_a_loop_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(loop: Eqn, region: Region, _: set[int]) -> Iterator[tuple[int, Read]]:
        return invariant_reads(loop, region, set())

    # The package has the pass under the name of the module.
    monkeypatch.setattr(sys.modules[invariant_reads.__module__], "invariant_reads", careless)
    with pytest.raises(LawBroken):
        check_pass(hoist_reads, focus=LOOPS, examples=40)


def test_reads_leave_nested_loops_and_conditions() -> None:
    assert not reads_in_a_loop(unwrap(hoist_reads(PROGRAM)))
    assert effax.jit(grown, passes=hoist_reads)(*ARGS) == grown(*ARGS) == 16.0


def test_reads_leave_a_loop_of_this_package() -> None:
    scale = effax.new_ref(jnp.float32(2.0))

    def model(x: Array, weights: Array) -> Array:
        return layers(lambda x, w: x * w * scale[...], x, weights)

    args = jnp.float32(1.0), jnp.arange(1.0, 4.0)
    after = unwrap(hoist_reads(effax.make_jaxpr(model)(*args).jaxpr))
    assert not reads_in_a_loop(after)
    assert effax.jit(model, passes=hoist_reads)(*args) == 48.0
