"""Universal functions, bits, the text of arrays, and methods of arrays, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped, NotSupported

X = np.array([[3, 1, 2], [0, 5, 7]], np.int32)

CALLS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("reduce", lambda xp, x: xp.add.reduce(x, axis=None)),
    ("initial", lambda xp, x: xp.multiply.reduce(x, axis=1, initial=2, keepdims=True)),
    ("scan", lambda xp, x: xp.subtract.reduce(x, axis=1)),
    ("mask", lambda xp, x: xp.bitwise_xor.reduce(x, axis=0, where=x > 1)),
    ("tree", lambda xp, x: xp.logical_xor.reduce(x, axis=(0, 1))),
    ("accumulate", lambda xp, x: xp.subtract.accumulate(x, axis=1)),
    ("running", lambda xp, x: xp.bitwise_or.accumulate(x, 1)),
    ("reduceat", lambda xp, x: xp.add.reduceat(x.ravel(), np.array([0, 4, 1, 5]))),
    ("outer", lambda xp, x: xp.maximum.outer(x, x[0])),
    ("packbits", lambda xp, x: xp.packbits(x > 1, axis=1, bitorder="little")),
    ("unpackbits", lambda xp, x: xp.unpackbits(x.astype(np.uint8), axis=0, count=-3)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_methods_have_numpys_values(name: str, call: Callable[[Any, Any], Any]) -> None:
    wanted = call(np, X)
    for found in (call(jnp, jnp.asarray(X)), jax.jit(lambda x: call(jnp, x))(X)):
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.slow
def test_at_applies_once_for_each_occurrence() -> None:
    index = jnp.array([0, 0, 2])
    for add in (jnp.add.at, jax.jit(jnp.add.at, static_argnames="inplace")):
        assert add(jnp.zeros(3), index, 1.0, inplace=False).tolist() == [2, 0, 1]
    assert jnp.negative.at(jnp.ones(3), index, inplace=False).tolist() == [1, 1, -1]
    assert jnp.bitwise_xor.at(jnp.zeros(3, int), index, 3, inplace=False).tolist() == [0, 0, 3]
    with pytest.raises(NotSupported, match="in place"):
        jnp.add.at(jnp.zeros(3), 0, 1.0)


def test_universal_functions_of_scalars() -> None:
    pair = jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1, identity=0)
    functions: list[Any] = [pair, jnp.add, jnp.sin]
    assert [isinstance(f, jnp.ufunc) for f in functions] == [True, True, False]
    assert (jnp.add.nin, jnp.add.nout, jnp.add.identity) == (2, 1, 0)
    assert functions[0](jnp.array([1, 2]), 3).tolist() == [13, 23]
    assert pair.reduce(jnp.array([1, 2, 3])) == 123
    with pytest.raises(BadArgument, match="identity"):
        jnp.subtract.reduce(jnp.zeros(0))
    with pytest.raises(BadArgument, match="two operands"):
        jnp.negative.reduce(jnp.zeros(2))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_spacing_is_numpys(dtype: str) -> None:
    values = [0.0, 1, -1.5, 6e4, 1e-7, np.finfo(np.float32).smallest_subnormal, np.inf]
    x = jnp.asarray(values, dtype)
    with np.errstate(all="ignore"):
        wanted = np.asarray(np.spacing(x.numpy()))
    for found in (jnp.spacing(x), jax.jit(jnp.spacing)(x)):
        assert found.tobytes()[:-4] == wanted.tobytes()[:-4]


def test_smallest_elements() -> None:
    values, places = jnp.top_k(jnp.array([[3.0, 1.0, 2.0]]), 2, axis=1, mode="smallest")
    assert (values.tolist(), places.tolist()) == ([[1, 2]], [[1, 2]])
    with pytest.raises(BadArgument, match="mode"):
        jnp.top_k(jnp.ones(2), 1, mode="least")


def test_text_of_arrays() -> None:
    x = jnp.array([1 / 3, 2.0])
    assert jnp.array_str(x, precision=2) == "[0.33 2.  ]"
    with jnp.printoptions(precision=1):
        assert repr(x) == jnp.array_repr(x) == "Array([0.3, 2. ], dtype=float32)"


def test_methods_of_arrays() -> None:
    x = jnp.asarray(X)
    assert x.tobytes() == X.tobytes()
    assert x.byteswap().tobytes() == X.byteswap().tobytes()
    assert x.argpartition(1)[0, 1] == 2
    assert x.compress(jnp.array([False, True]), axis=0).tolist() == [[0, 5, 7]]
    assert x.trace() == 8
    assert jnp.array([1, 3]).searchsorted(2) == 1
    assert [i.tolist() for i in x.nonzero()] == [i.tolist() for i in X.nonzero()]
    with pytest.raises(NotSupported, match="ravel"):
        _ = x.flat


@pytest.mark.slow
def test_insertions_and_deletions_at_traced_positions() -> None:
    x = jnp.arange(4)
    assert jax.jit(jnp.insert)(x, -1, 9).tolist() == [0, 1, 2, 9, 3]
    delete = jax.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))
    assert delete(x, jnp.array([[0], [2]])).tolist() == [1, 3]
    assert jnp.delete(x, jnp.array([[0], [2]])).tolist() == [1, 3]


def test_sizes_and_dtypes_of_sets() -> None:
    x, y = jnp.array([5, 1, 3], jnp.int8), jnp.array([3.0, 7.0])
    assert jnp.setdiff1d(x, y, size=3).tolist() == [1, 5, 0]
    assert jnp.setdiff1d(x, y).dtype == jnp.int8
    values, first, second = jnp.intersect1d(x, y, return_indices=True, size=2)
    assert [values.tolist(), first.tolist(), second.tolist()] == [[3, 3], [2, 3], [0, 2]]
    assert jnp.union1d(x[:0], x[:0], size=2).tolist() == [0, 0]


def test_arguments_in_further_forms() -> None:
    assert jnp.array_equal([1, 2], [1, 2])
    assert jnp.r_["r", [1, 2], 3].shape == (1, 3)
    assert jnp.unwrap(jnp.array([0, 3], jnp.int16), period=4).dtype == jnp.int16
    assert [i.tolist() for i in jnp.unravel_index(jnp.int8(9), (2, 3))] == [1, 2]
    assert jnp.vectorize(lambda x, y: x if y is None else y)(jnp.ones(2), None).shape == (2,)
    with pytest.warns(DeprecationWarning, match="2 elements"):
        assert jnp.cross(jnp.array([1, 2]), jnp.array([3, 4])) == -2
    with pytest.raises(BadArgument, match="directive"):
        jnp.c_["x", 1]
    with pytest.raises(IllTyped, match="initial value"):
        jnp.sum(jnp.ones(2), initial=jnp.ones(2))
    with pytest.raises(BadArgument, match="ddof"):
        jnp.var(jnp.ones(2), ddof=1, correction=1)
