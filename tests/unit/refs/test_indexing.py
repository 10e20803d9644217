"""Indices of references are NumPy's: reads, writes, additions; eager, compiled, differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, BadIndex, EffaxError, IllTyped

jax: Any = effax
SHAPE = (4, 5, 6)
START = np.arange(120, dtype=np.float32).reshape(SHAPE)

INDICES: dict[str, Any] = {
    "int": 2,
    "negative int": -3,
    "numpy int": np.int64(-1),
    "tuple of ints": (1, -2, 3),
    "slice": slice(1, 3),
    "negative slice": slice(-3, -1),
    "step": slice(None, None, 2),
    "negative step": slice(None, None, -1),
    "negative step between": slice(3, 0, -2),
    "empty": slice(3, 1),
    "beyond the end": slice(2, 99),
    "far before the start": slice(-99, 2),
    "several": (slice(1, None), 2, slice(None, None, -2)),
    "ellipsis": ...,
    "ellipsis in front": (..., 1),
    "ellipsis between": (0, ..., slice(1, 3)),
    "nothing": (),
    "new axis": None,
    "new axes": (None, 1, None, ..., None),
    "array": np.array([0, 2, 2]),
    "negative array": np.array([-1, 0, -4]),
    "array of two axes": np.array([[0, 1], [3, 3]]),
    "no elements": np.array([], int),
    "arrays that broadcast": (np.array([[0], [1]]), np.array([1, 2, 1])),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([2, 3])),
    "array and int": (np.array([0, 1]), 2),
    "array, slice, int": (np.array([0, 1]), slice(None), 2),
    "array last": (slice(1, 3), ..., np.array([5, 0])),
    "array and new axis": (None, np.array([0, 1]), None),
    "list": ([0, 2],),
    "mask": np.array([True, False, True, False]),
    "mask of two axes": START[:, :, 0] % 4 == 0,
    "mask of all axes": START > 60,
    "mask after a slice": (slice(0, 2), np.array([True, False, True, False, False])),
    "mask of nothing": np.zeros(4, bool),
    "effax array": jnp.asarray([1, 1]),
    "effax mask": jnp.asarray([True, True, False, False]),
    "mask without axes": True,
    "false mask without axes": (slice(None), np.array(False)),
    "masks without axes": (True, slice(None), jnp.asarray(True)),
    "mask without axes and int": (0, True),
    "mask without axes and array": (slice(None), np.array([1, 3]), True),
    "narrow ints": np.array([1, -1], np.int8),
    "unsigned": np.array([3, 0], np.uint8),
}


def plain(index: Any) -> Any:
    """The index as NumPy takes it."""
    if isinstance(index, tuple):
        return tuple(plain(i) for i in index)
    return np.asarray(index) if isinstance(index, jax.Array) else index


WRAPS = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "in a scan": lambda f: (
        lambda *args: (lax.scan(lambda c, _: (c, f(*args)), 0, None, 1)[1] * 1)[0]
    ),
    "vmap of one": lambda f: lambda *args: jax.vmap(lambda _: f(*args))(jnp.ones(1))[0],
}
WRAPPED = pytest.mark.parametrize("how", WRAPS)
INDEXED = pytest.mark.parametrize("name", INDICES)


@WRAPPED
@INDEXED
def test_reads(name: str, how: str) -> None:
    index, r = INDICES[name], jax.new_ref(START)
    wanted = START[plain(index)]
    out = WRAPS[how](lambda: r[index])()
    assert out.shape == wanted.shape
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(r[...], START)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eager", "jit"])
@INDEXED
def test_writes(name: str, how: str) -> None:
    index, r = INDICES[name], jax.new_ref(START)
    contents = START.copy()
    part = contents[plain(index)]
    values = -1 - np.arange(part.size, dtype=np.float32).reshape(part.shape)
    if name in ("array", "array of two axes", "effax array"):
        # Which of several values stays is not said; that they are all the same is.
        values = np.full(part.shape, -1, np.float32)
    contents[plain(index)] = values
    WRAPS[how](lambda v: (r.__setitem__(index, v), 0)[1])(jnp.asarray(values))
    np.testing.assert_array_equal(r[...], contents)
    contents[plain(index)] = 7
    WRAPS[how](lambda: (r.__setitem__(index, 7), 0)[1])()
    np.testing.assert_array_equal(r[...], contents)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eager", "jit"])
@INDEXED
def test_additions(name: str, how: str) -> None:
    """Each of several equal positions counts: NumPy's add.at."""
    index, r = INDICES[name], jax.new_ref(START)
    contents = START.copy()
    part = contents[plain(index)]
    values = 1 + np.arange(part.size, dtype=np.float32).reshape(part.shape)
    np.add.at(contents, plain(index), values)
    WRAPS[how](lambda v: (jax.ref.addupdate(r, index, v), 0)[1])(jnp.asarray(values))
    np.testing.assert_array_equal(r[...], contents)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eager", "jit"])
@INDEXED
def test_gradients(name: str, how: str) -> None:
    """d/dx of a read, and of what a write leaves."""
    index = INDICES[name]
    part = START[plain(index)]
    weights = jnp.asarray(1 + np.arange(part.size, dtype=np.float32).reshape(part.shape))

    def read(x: Any) -> Any:
        return jnp.sum(jax.new_ref(x)[index] * weights)

    wanted = np.zeros(SHAPE, np.float32)
    np.add.at(wanted, plain(index), np.asarray(weights))
    np.testing.assert_array_equal(WRAPS[how](jax.grad(read))(jnp.asarray(START)), wanted)

    def write(x: Any, v: Any) -> Any:
        ref = jax.new_ref(x)
        ref[index] = v
        return jnp.sum(ref[...] * 2)

    kept = np.full(SHAPE, 2, np.float32)
    kept[plain(index)] = 0
    x_bar, v_bar = WRAPS[how](jax.grad(write, argnums=(0, 1)))(jnp.asarray(START), 3.0)
    np.testing.assert_array_equal(x_bar, kept)
    assert float(v_bar) == 2 * np.count_nonzero(kept == 0)


TRACED: dict[str, Any] = {
    "int": lambda k: k,
    "negative": lambda k: k - 4,
    "two": lambda k: (k, k + 1),
    "int and slice": lambda k: (k, slice(None, None, 2)),
    "slice and int": lambda k: (slice(1, 3), k),
    "int and ellipsis": lambda k: (..., k),
    "int and new axis": lambda k: (None, k, None),
    "array": lambda k: jnp.stack([k, k, jnp.zeros_like(k)]),
    "array and int": lambda k: (jnp.stack([k, k + 1]), 1, slice(None)),
    "array apart": lambda k: (k, slice(None), np.array([0, 1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACED)
def test_traced_positions(name: str) -> None:
    make, r = TRACED[name], jax.new_ref(START)
    index = plain(make(jnp.asarray(2)))
    np.testing.assert_array_equal(jax.jit(lambda k: r[make(k)])(2), START[index])
    contents = START.copy()
    np.add.at(contents, index, 5)
    jax.jit(lambda k: jax.ref.addupdate(r, make(k), 5.0))(2)
    np.testing.assert_array_equal(r[...], contents)
    contents[index] = -1
    jax.jit(lambda k: r.__setitem__(make(k), -1.0))(2)
    np.testing.assert_array_equal(r[...], contents)


def test_traced_starts_of_static_size() -> None:
    r = jax.new_ref(START)
    ds = lax.ds if hasattr(lax, "ds") else jax.ref.ds
    np.testing.assert_array_equal(jax.jit(lambda k: r[ds(k, 2), 1])(1), START[1:3, 1])
    jax.jit(lambda k: r.__setitem__((0, ds(k, 3)), 0.0))(2)
    contents = START.copy()
    contents[0, 2:5] = 0
    np.testing.assert_array_equal(r[...], contents)


def test_known_positions_out_of_bounds_are_errors() -> None:
    r = jax.new_ref(START)
    for index in (4, -5, (0, 5), (0, 0, -7), np.array([0, 4]), (slice(None), [-6])):
        for use in (
            lambda i: r[i],
            lambda i: r.__setitem__(i, 0.0),
            lambda i: jax.ref.addupdate(r, i, 1.0),
        ):
            with pytest.raises(BadIndex):
                use(index)
            with pytest.raises(BadIndex):
                jax.jit(lambda use=use, index=index: (use(index), 0)[1])()
    np.testing.assert_array_equal(r[...], START)


@pytest.mark.slow
def test_traced_positions_out_of_bounds() -> None:
    """Reads take the nearest element, writes and additions do nothing: as for arrays."""
    r = jax.new_ref(jnp.arange(5.0))
    read = jax.jit(lambda k: r[k])
    assert [float(read(k)) for k in (-9, -6, -5, -1, 4, 5, 99)] == [0, 0, 0, 4, 4, 4, 4]
    write = jax.jit(lambda k: r.__setitem__(k, -1.0))
    add = jax.jit(lambda k: jax.ref.addupdate(r, k, 10.0))
    for k in (-9, -6, 5, 99):
        write(k)
        add(k)
    np.testing.assert_array_equal(r[...], np.arange(5.0))
    add(-5)
    np.testing.assert_array_equal(r[...], [10, 1, 2, 3, 4])
    many = jax.jit(lambda i: r.__setitem__(i, 0.0))
    many(jnp.asarray([1, 7, -8]))
    np.testing.assert_array_equal(r[...], [10, 0, 2, 3, 4])
    array = jnp.arange(5.0)
    for k in (-9, -6, 5, 99):
        assert float(jax.jit(lambda k: array[k])(k)) == float(read(k) if k > 0 else array[0])
        np.testing.assert_array_equal(jax.jit(lambda k: array.at[k].set(9.0))(k), array)


NO_INDICES = [1.7, "a", np.float32(1), 1j, {}, jnp.asarray(1.5), object]


@pytest.mark.parametrize("index", NO_INDICES, ids=lambda i: f"{type(i).__name__} {i!r:.9}")
def test_what_is_no_index(index: Any) -> None:
    r = jax.new_ref(jnp.arange(5.0))
    for use in (lambda: r[index], lambda: r.__setitem__(index, 0.0), lambda: r[index, ...]):
        with pytest.raises((IllTyped, BadIndex)):
            use()
        with pytest.raises((IllTyped, BadIndex)):
            jax.jit(lambda use=use: (use(), 0)[1])()
    np.testing.assert_array_equal(r[...], np.arange(5.0))


def test_a_traced_mask_is_an_error_that_says_what_to_do() -> None:
    r = jax.new_ref(jnp.arange(5.0))
    with pytest.raises(EffaxError, match="where"):
        jax.jit(lambda m: r[m])(jnp.ones(5, bool))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_values_broadcast_and_convert(how: str) -> None:
    wrap = WRAPS[how]
    r = jax.new_ref(jnp.zeros((2, 3)))
    value: Any
    for value in (
        1,
        True,
        2.5,
        np.arange(3),
        jnp.ones((1, 3), "int8"),
        [[1], [2]],
        np.ones((1, 1, 3)),
    ):
        wrap(lambda value=value: (r.__setitem__(..., value), 0)[1])()
        wanted = np.broadcast_to(np.squeeze(value, 0) if np.ndim(value) == 3 else value, (2, 3))
        np.testing.assert_array_equal(r[...], wanted)
    i = jax.new_ref(jnp.zeros(3, "int32"))
    for value in (3, jnp.asarray(3, "int8"), True, np.arange(3, dtype=np.int16)):
        wrap(lambda value=value: (i.__setitem__(..., value), 0)[1])()
        np.testing.assert_array_equal(i[...], np.broadcast_to(value, 3))
    half = jax.new_ref(jnp.zeros(2, "bfloat16"))
    wrap(lambda: (half.__setitem__(0, jnp.float32(1.5)), 0)[1])()
    assert float(half[0]) == 1.5


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 1.5),
        ("int32", jnp.asarray(1.5)),
        ("int32", np.ones(3, np.float32)),
        ("int8", jnp.asarray(1000, "int32")),
        ("int8", 1000),
        ("uint8", -1),
        ("uint8", jnp.asarray(-1, "int8")),
        ("bool", 1),
        ("bool", 1.0),
        ("float32", 1j),
        ("float32", jnp.asarray(1j)),
        ("float32", "a"),
        ("float32", None),
        ("float32", np.zeros(4)),
        ("float32", np.zeros((2, 3))),
    ],
    ids=str,
)
def test_values_that_do_not_fit_change_nothing(dtype: str, value: Any, how: str) -> None:
    r = jax.new_ref(jnp.ones(3, dtype))
    uses = [
        lambda: r.__setitem__(..., value),
        lambda: r.__setitem__(slice(0, 3), value),
        lambda: jax.ref.swap(r, ..., value),
    ]
    if dtype != "bool":
        uses.append(lambda: jax.ref.addupdate(r, ..., value))
    for use in uses:
        with pytest.raises((IllTyped, BadArgument)):
            WRAPS[how](lambda use=use: (use(), 0)[1])()
    np.testing.assert_array_equal(r[...], np.ones(3, dtype))
