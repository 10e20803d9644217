"""Arrays of random keys: their dtype, what moves them, and what refuses them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax import debug, dtypes, lax, random
from effax.experimental import io_callback
from effax.ir.dtypes import as_dtype, as_key_dtype
from effax.ir.errors import IllTyped
from effax.ir.key_dtype import key_dtype
from effax.ir.prims import RandomUnwrap, RandomWrap
from effax.ir.text.parser import parse
from effax.ir.types import array_type, ref_type
from effax.lowering.physical import physical

KEY = random.key(7)
KEYS = random.split(KEY, 3)


def test_seeds_of_numpy_and_offsets_of_seeds() -> None:
    assert words(random.key(np.int64(-(2**31) - 101))) == [0, 2**31 - 101]
    jax.config.update("random_seed_offset", 3)
    try:
        assert words(random.key(4)) == [0, 7]
    finally:
        jax.config.update("random_seed_offset", 0)


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


WORDS = np.asarray(random.key_data(KEYS))


def test_a_key_has_a_dtype_of_its_own() -> None:
    assert (KEY.shape, KEYS.shape, str(KEY.dtype), KEYS.nbytes) == ((), (3,), "key<fry>", 24)
    assert words(KEY) == np.asarray(random.PRNGKey(7)).tolist() == [0, 7]
    assert random.PRNGKey(7).dtype == jnp.uint32
    assert jnp.issubdtype(KEY.dtype, dtypes.prng_key)
    assert jnp.issubdtype(KEY.dtype, dtypes.extended)
    assert not jnp.issubdtype(jnp.uint32, dtypes.extended)
    assert not jnp.issubdtype(KEY.dtype, jnp.integer)
    assert random.key_dtype() == KEY.dtype != as_dtype("uint32")
    assert random.key_impl(KEYS) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert words(random.wrap_key_data(WORDS)) == WORDS.tolist()
    assert words(random.clone(KEYS)) == WORDS.tolist()
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[0 7]"
    assert repr(jax.new_ref(KEY)) == "Ref((), dtype=key<fry>) overlaying:\n[0 7]"
    assert isinstance(KEY, jax.Array)
    assert words(KEYS._base_array) == WORDS.tolist()  # type: ignore[attr-defined]  # private, as JAX's
    assert not hasattr(jnp.ones(2), "_base_array")
    assert words(pickle.loads(pickle.dumps(KEYS))) == words(copy.deepcopy(KEYS)) == WORDS.tolist()


def test_samples_of_a_key_are_those_of_its_words() -> None:
    raw = random.PRNGKey(7)
    for sample in (random.normal, random.bits, random.rademacher, random.split):
        one, other = sample(KEY, 2), sample(raw, 2)
        equal = words(one) == np.asarray(other).tolist() if sample is random.split else one == other
        assert np.all(equal), sample
    assert words(random.fold_in(KEY, 3)) == np.asarray(random.fold_in(raw, 3)).tolist()


MOVES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "index": (lambda k: k[1], lambda w: w[1]),
    "slice": (lambda k: k[2:0:-1], lambda w: w[2:0:-1]),
    "reshape": (lambda k: k.reshape(3, 1), lambda w: w.reshape(3, 1, 2)),
    "squeeze": (lambda k: k[:, None].squeeze(), lambda w: w),
    "broadcast": (lambda k: jnp.broadcast_to(k, (2, 3)), lambda w: np.stack([w, w])),
    "transpose": (lambda k: jnp.stack([k, k]).T, lambda w: np.stack([w, w], 1)),
    "concatenate": (lambda k: jnp.concatenate([k, k[:1]]), lambda w: w[[0, 1, 2, 0]]),
    "gather": (lambda k: k[jnp.array([2, 0])], lambda w: w[[2, 0]]),
    "fill": (
        lambda k: k.at[jnp.array([1, 5])].get(mode="fill"),
        lambda w: np.stack([w[1], np.full(2, 2**32 - 1)]),
    ),
    "scatter": (lambda k: k.at[0].set(k[2]), lambda w: w[[2, 1, 2]]),
    "where": (lambda k: jnp.where(jnp.arange(3) > 1, k, k[0]), lambda w: w[[0, 0, 2]]),
    "select": (lambda k: lax.select(jnp.arange(3) > 1, k, k[::-1]), lambda w: w[[2, 1, 2]]),
    "dynamic slice": (lambda k: lax.dynamic_slice_in_dim(k, 1, 2), lambda w: w[1:]),
    "dynamic update": (
        lambda k: lax.dynamic_update_slice_in_dim(k, k[:1], 1, 0),
        lambda w: w[[0, 0, 2]],
    ),
    "pad": (lambda k: lax.pad(k, k[0], [(1, 0, 0)]), lambda w: w[[0, 0, 1, 2]]),
    "rev": (jnp.flip, lambda w: w[::-1]),
    "roll": (lambda k: jnp.roll(k, 1), lambda w: w[[2, 0, 1]]),
    "copy": (lambda k: k.copy(), lambda w: w),
    "zeros": (jnp.zeros_like, np.zeros_like),
    "equal": (lambda k: random.wrap_key_data(_flags(k == k[1], k != k[1])), lambda w: _of_flags()),
}


def _flags(equal: Any, other: Any) -> Any:
    return jnp.stack([equal, other], -1).astype("uint32")


def _of_flags() -> Any:
    return np.array([[0, 1], [1, 0], [0, 1]])


@pytest.mark.slow
def test_keys_are_moved_as_any_elements() -> None:
    def moved(keys: Any) -> Any:
        return {name: move(keys) for name, (move, _) in MOVES.items()}

    wanted = {name: of_words(WORDS).tolist() for name, (_, of_words) in MOVES.items()}
    assert {name: words(k) for name, k in moved(KEYS).items()} == wanted
    assert {name: words(k) for name, k in jax.jit(moved)(KEYS).items()} == wanted


def test_batched_moves_are_those_of_each_element() -> None:
    table = random.split(KEY, (2, 3))
    for name, (move, _) in MOVES.items():
        wanted = [words(move(row)) for row in table]
        assert words(jax.vmap(move)(table)) == wanted, name
    columns = jax.vmap(lambda k: random.split(k[0]), in_axes=1, out_axes=1)(table)
    assert words(columns[:, 2]) == words(random.split(table[0, 2]))


def loops(keys: Any) -> Any:
    def step(key: Any, x: Any) -> tuple[Any, Any]:
        key, sub = random.split(key)
        return key, random.uniform(sub) + x

    last, samples = lax.scan(step, keys[0], jnp.arange(2.0))
    folded = lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), keys[1])
    found = lax.while_loop(lambda k: random.uniform(k) < 0.9, lambda k: random.split(k)[1], keys[2])
    chosen = lax.cond(samples[0] > 0.5, lambda k: k[0], lambda k: random.split(k[1])[0], keys)
    switched = lax.switch(1, [lambda k: k[0], lambda k: k[1]], keys)
    return jnp.stack([last, folded, found, chosen, switched]), samples


@pytest.mark.slow
def test_keys_are_carries_and_operands_of_control_flow() -> None:
    keys, samples = loops(KEYS)
    compiled, same = jax.jit(loops)(KEYS)
    assert words(keys) == words(compiled)
    np.testing.assert_allclose(samples, same, rtol=1e-6)
    table = random.split(KEY, (2, 3))
    for batched in (jax.vmap(loops), jax.jit(jax.vmap(loops))):
        assert words(batched(table)[0]) == [words(loops(row)[0]) for row in table]


@pytest.mark.slow
def test_keys_in_references() -> None:
    def step(ref: Any) -> Any:
        key, sub = random.split(ref[...])
        old = jax.ref.swap(ref, ..., key)
        return random.normal(sub), old

    ref, same = jax.new_ref(KEY), jax.new_ref(KEY)
    for _ in range(2):
        (x, old), (y, before) = step(ref), jax.jit(step)(same)
        assert float(x) == pytest.approx(float(y), rel=1e-6)
        assert words(old) == words(before)
        assert words(ref[...]) == words(same[...]) != words(old)
    table = jax.new_ref(KEYS)
    table[1] = KEY
    jax.jit(lambda r: r.__setitem__(2, r[1]))(table)
    assert words(table[...]) == [WORDS[0].tolist(), [0, 7], [0, 7]]
    jax.vmap(lambda r: step(r)[0])(table)
    assert words(table[1]) == words(table[2]) == words(random.split(KEY)[0])
    assert words(jax.freeze(table)[0]) == words(random.split(KEYS[0])[0])


def test_a_failed_write_leaves_the_keys_as_they_were() -> None:
    ref = jax.new_ref(KEYS)
    for value in (jnp.uint32(3), random.PRNGKey(0), random.split(KEY, 2)):
        with pytest.raises((IllTyped, ValueError)):
            ref[0] = value
    with pytest.raises(TypeError):
        ref.addupdate(KEY, 0)
    assert words(ref[...]) == WORDS.tolist()


@pytest.mark.slow
def test_derivatives_of_functions_of_keys() -> None:
    def f(x: Any, key: Any) -> Any:
        (x, key), _ = lax.scan(
            lambda c, _: ((c[0] * random.uniform(c[1]), random.split(c[1])[0]), None),
            (x, key),
            None,
            length=2,
        )
        return x

    slope = f(1.0, KEY)
    for g in (jax.grad(f), jax.grad(jax.checkpoint(f)), jax.jit(jax.grad(f))):
        assert float(g(2.0, KEY)) == pytest.approx(float(slope), rel=1e-6)
    zero = np.zeros((), dtypes.float0)
    assert float(jax.jvp(f, (2.0, KEY), (1.0, zero))[1]) == pytest.approx(float(slope), rel=1e-6)
    assert jax.vjp(f, 2.0, KEY)[1](1.0)[1].dtype == dtypes.float0
    with pytest.raises(TypeError, match="key<fry>"):
        jax.grad(f, 1)(2.0, KEY)


@pytest.mark.slow
def test_derivatives_by_rules_that_take_keys() -> None:
    @jax.custom_vjp
    def f(x: Any, key: Any) -> Any:
        return x * random.normal(key)

    f.defvjp(lambda x, key: (f(x, key), key), lambda key, ct: (ct * random.normal(key), None))

    @jax.custom_jvp
    def g(x: Any, key: Any) -> Any:
        return x * random.normal(key)

    g.defjvp(lambda ps, ts: (g(*ps), ts[0] * random.normal(ps[1])))
    for h in (f, g):
        assert float(jax.jit(jax.grad(h))(2.0, KEY)) == pytest.approx(float(random.normal(KEY)))


def test_python_functions_are_called_with_keys() -> None:
    seen: list[Any] = []

    def f(key: Any) -> Any:
        debug.callback(seen.append, key)
        two = jax.ShapeDtypeStruct((2,), key.dtype)
        return jax.pure_callback(random.split, two, key), io_callback(random.clone, two, KEYS[:2])

    for g in (f, jax.jit(f)):
        split, same = g(KEY)
        assert words(split) == words(random.split(KEY))
        assert words(same) == WORDS[:2].tolist()
    assert [words(k) for k in seen] == [[0, 7]] * 2


def test_programs_on_keys_print_and_parse() -> None:
    jaxpr = jax.make_jaxpr(lambda k: (random.split(k, 3)[1] == k, jnp.zeros((2,), k.dtype)))(KEY)
    assert "a:key<fry>[]" in str(jaxpr)
    assert "0:key<fry>[]" in str(jaxpr)
    assert parse(str(jaxpr.jaxpr)) == jaxpr.jaxpr
    assert str(ref_type(array_type((3,), KEY.dtype))) == "Ref{key<fry>[3]}"
    shape = jax.eval_shape(lambda k: random.split(k, 3), jax.ShapeDtypeStruct((), KEY.dtype))
    assert (shape.shape, shape.dtype) == ((3,), KEY.dtype)
    assert len(jax.tree.leaves({"a": KEYS})) == 1
    assert "ui32" in jax.jit(lambda k: k[0]).lower(KEYS).as_text()


def test_the_program_on_words_has_no_keys() -> None:
    jaxpr = jax.make_jaxpr(loops)(KEYS).jaxpr
    assert "key<" not in str(physical(jaxpr))
    plain = jax.make_jaxpr(jnp.sin)(1.0).jaxpr
    assert physical(plain) is plain


REFUSED: dict[str, Callable[[], object]] = {
    "add": lambda: KEY + KEY,
    "add 1": lambda: 1 + KEY,
    "negative": lambda: -KEY,
    "less": lambda: KEY < KEYS,
    "equal 0": lambda: KEY == 0,
    "sum": lambda: jnp.sum(KEYS),
    "sort": lambda: jnp.sort(KEYS),
    "astype": lambda: KEY.astype("uint32"),
    "bitcast": lambda: lax.bitcast_convert_type(KEY, "uint32"),
    "at add": lambda: KEYS.at[0].add(KEY),
    "where": lambda: jnp.where(True, KEY, 0),
    "concatenate": lambda: jnp.concatenate([KEYS, jnp.ones(2)]),
    "asarray": lambda: np.asarray(KEY),
    "int": lambda: int(KEY),
    "bool": lambda: bool(KEY),
    "item": KEY.item,
    "hash": lambda: hash(KEY),
    "split": lambda: random.split(KEYS),
    "seed": lambda: random.key(KEY),
    "words": lambda: random.wrap_key_data(jnp.arange(3)),
    "data": lambda: random.key_data(jnp.arange(3)),
    "typing": lambda: RandomUnwrap().typing(array_type((2,), "uint32")),
    "generator": lambda: RandomWrap("none").typing(array_type((2,), "uint32")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_on_keys_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError):
        REFUSED[name]()


def test_a_tag_belongs_to_one_generator() -> None:
    assert key_dtype("threefry2x32", "fry", (2,)) is as_key_dtype(random.key_dtype())
    assert pickle.loads(pickle.dumps(KEY.dtype)) is KEY.dtype
    for tag in ("fry", "not a name"):
        with pytest.raises(ValueError, match="tag"):
            key_dtype("other", tag, (4,))
