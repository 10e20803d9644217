"""Memory of references: one buffer for life, and no copies of it."""

from __future__ import annotations

import copy
import pickle
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import RefError

jax: Any = effax
HUGE = 25_000_000
"""Elements of 100 MB."""

EAGER_AND_JITTED = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])


@EAGER_AND_JITTED
def test_frozen_contents_never_change(wrap: Any) -> None:
    r = jax.new_ref(jnp.arange(4.0))
    wrap(lambda r: r.__setitem__(0, 9.0))(r)
    before = r[...]
    r[1] = 7.0
    frozen = jax.freeze(r)
    np.testing.assert_array_equal(frozen, [9, 7, 2, 3])
    np.testing.assert_array_equal(before, [9, 1, 2, 3])
    # Its memory is not reused, neither by references nor by compiled programs.
    others = [jax.new_ref(frozen) for _ in range(4)]
    for other in others:
        wrap(lambda r: r.__setitem__(..., 0.0))(other)
    with pytest.raises(RefError, match="freeze"):
        r[0] = 1.0
    with pytest.raises((ValueError, TypeError)):
        np.asarray(frozen)[0] = 1.0
    np.testing.assert_array_equal(frozen, [9, 7, 2, 3])


@EAGER_AND_JITTED
def test_a_new_reference_has_its_own_memory(wrap: Any) -> None:
    array, numbers = jnp.arange(3.0), np.arange(3, dtype=np.float32)
    first, second, third = jax.new_ref(array), jax.new_ref(array), jax.new_ref(numbers)
    wrap(lambda r: r.__setitem__(0, 5.0))(first)
    numbers[1] = 8.0
    np.testing.assert_array_equal(array, [0, 1, 2])
    np.testing.assert_array_equal(second[...], [0, 1, 2])
    np.testing.assert_array_equal(third[...], [0, 1, 2])
    assert len({r.unsafe_buffer_pointer() for r in (first, second, third)}) == 3


@pytest.mark.slow
def test_the_address_stays_the_same() -> None:
    r = jax.new_ref(jnp.arange(3.0))
    address = r.unsafe_buffer_pointer()
    table = jax.new_ref(jnp.zeros((4, 3)))
    other = table.unsafe_buffer_pointer()

    def update(r: Any, i: Any) -> Any:
        r[i] += 1.0
        table[i] = r[...]
        return r[0]

    compiled = jax.jit(update)
    sines = jax.jit(lambda: r.__setitem__(..., jnp.sin(r[...])))
    for k in range(3):
        update(r, k)
        compiled(r, k)
        sines()
        lax.foreach(length=2)(lambda: r.__setitem__(0, 1.0))
        jax.jit(jax.vmap(lambda x: x.__setitem__(..., x[...] * 2)))(r)
        copy = r[...]
        assert r.unsafe_buffer_pointer() == address
        assert table.unsafe_buffer_pointer() == other
        del copy
    jax.jit(jax.grad(lambda x, r: (r.__setitem__(0, lax.stop_gradient(x)), x)[1]))(1.0, r)
    assert r.unsafe_buffer_pointer() == address


WRITES: dict[str, Callable[[Any], Any]] = {
    "int": lambda r: r.__setitem__(5, 1.0),
    "slice": lambda r: r.__setitem__(slice(5, 8), 1.0),
    "addupdate": lambda r: jax.ref.addupdate(r, 5, 1.0),
    "gather": lambda r: r.__setitem__(jnp.asarray([3, 5]), 1.0),
    "read": lambda r: r[5],
    "swap": lambda r: jax.ref.swap(r, 5, 2.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_an_eager_write_touches_what_it_writes(name: str) -> None:
    r = jax.new_ref(jnp.zeros(HUGE))
    write = WRITES[name]
    write(r)
    tracemalloc.start()
    write(r)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("name", WRITES)
def test_a_compiled_write_touches_what_it_writes(name: str) -> None:
    def write(r: Any, k: Any) -> Any:
        return WRITES[name](r), k

    r = jax.new_ref(jnp.zeros(HUGE // 10))
    program = jax.jit(write).lower(r, 1).compile()
    # Of a scatter XLA counts the whole operand, touched or not.
    assert name == "gather" or program.cost_analysis()["bytes accessed"] < 1000
    assert program.memory_analysis().temp_bytes < 1000
    assert not re.search(rf"f32\[{HUGE // 10}\]\S* copy\(", program.as_text())


def test_a_compiled_loop_of_writes_copies_nothing() -> None:
    def fill(table: Any, order: Any) -> None:
        @effax.lax.foreach(order)
        def _(i: Any) -> None:
            table[i] = table[i] * 2 + 1
            lax.cond(i > 2, lambda: jax.ref.addupdate(table, i, 1.0), lambda: None)

    table = jax.new_ref(jnp.zeros((100_000, 8)))
    program = jax.jit(fill).lower(table, jnp.arange(5)).compile()
    assert not re.search(r"f32\[100000,8\]\S* copy\(", program.as_text())
    assert program.memory_analysis().temp_bytes < 100_000
    address = table.unsafe_buffer_pointer()
    jax.jit(fill)(table, jnp.arange(5))
    assert table.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(table[...][:6, 0], [1, 1, 1, 2, 2, 0])


def test_it_prints_as_jax_does() -> None:
    assert repr(jax.new_ref(jnp.zeros(3))) == "Ref([0., 0., 0.], dtype=float32)"
    assert repr(jax.new_ref(45)) == "Ref(45, dtype=int32)"
    assert str(jax.new_ref(jnp.zeros((1, 2), bool))) == "Ref([[False, False]], dtype=bool)"
    ended = jax.new_ref(1.0)
    jax.freeze(ended)
    assert "consumed" in repr(ended)


@pytest.mark.jax
def test_it_prints_what_jax_prints() -> None:
    import jax as theirs
    import jax.numpy as their_numpy

    for number in (np.float32(0), np.int32(45), True, [0.5, 1.25], [[1, 2]] * 2, [[0.1] * 20] * 3):
        ours = repr(jax.new_ref(jnp.asarray(number)))
        shown = repr(theirs.new_ref(their_numpy.asarray(number)))
        # JAX aligns rows as if they began with `Array(`.
        assert ours.split() == shown.split()


def test_it_is_hashed_by_identity() -> None:
    a, b = jax.new_ref(1.0), jax.new_ref(1.0)
    named = {a: "a", b: "b"}
    a[...] = 2.0
    assert named[a] == "a"
    assert named[b] == "b"
    assert a != b


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@pytest.mark.slow
@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_copies_and_pickles_are_references_of_their_own(again: Any) -> None:
    r = jax.new_ref(0.0)
    assert copy.copy(r) is r
    for value in (jnp.arange(3.0), jnp.asarray(2, "int8"), jnp.ones((2, 2), jnp.bfloat16)):
        r = jax.new_ref(value)
        jax.jit(lambda r: r.__setitem__(..., r[...] + 1))(r)
        made = again({"r": r})["r"]
        assert isinstance(made, jax.Ref)
        assert made.dtype == r.dtype
        np.testing.assert_array_equal(made[...], r[...])
        made[...] = 0
        assert np.count_nonzero(r[...]) >= r.size - 1


@EAGER_AND_JITTED
def test_isinstance_holds_for_traced_references(wrap: Any) -> None:
    seen: Any = []

    def f(r: Any) -> Any:
        local, empty = jax.new_ref(1.0), jax.empty_ref((2,), "int32")
        seen.extend([r, local, empty])
        lax.scan(lambda c, row: (c, seen.append(row)), 0, r)
        return 0

    wrap(f)(jax.new_ref(jnp.ones((2, 3))))
    jax.vmap(seen.append)(jax.new_ref(jnp.ones((2, 3))))
    assert len(seen) >= 5
    assert all(isinstance(r, jax.Ref) and isinstance(r, jax.ref.Ref) for r in seen)
    assert not isinstance(jnp.ones(3), jax.Ref)
    assert [r.shape for r in seen[:3]] == [(2, 3), (), (2,)]
    assert seen[2].dtype == jnp.int32


@EAGER_AND_JITTED
def test_empty_and_freed_references(wrap: Any) -> None:
    def f(x: Any) -> Any:
        r = jax.empty_ref((3,), jnp.float32)
        r[...] = x
        out = r[...]
        jax.free_ref(r)
        return out

    np.testing.assert_array_equal(wrap(f)(2.0), [2, 2, 2])
    np.testing.assert_array_equal(wrap(jax.jacfwd(f))(2.0), [1, 1, 1])
    assert jax.empty_ref((2,)).dtype == jnp.float32
    assert jax.empty_ref((2,), bool)[...].shape == (2,)
