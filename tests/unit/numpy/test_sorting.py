"""Distinct elements, of all and of known numbers of them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, ConcretizationError

untyped: Any = jnp
nan = np.nan
ARRAYS: dict[str, np.ndarray] = {
    "integers": np.array([3, 1, 3, 2, 1], np.int32),
    "floats": np.array([[1.5, nan, 0], [nan, -1, 1.5]], np.float32),
    "booleans": np.array([True, False, True]),
    "complex": np.array([1 + 1j, nan + 1j, 1, complex(1, nan), 1 + 1j], np.complex64),
    "rows": np.array([[1, 2], [1, 2], [0, 5]], np.uint8),
    "layers": np.arange(12, dtype=np.int32).reshape(2, 3, 2) % 4,
    "narrow": np.array([2, nan, 1, 2], np.float16),
    "scalar": np.array(3, np.float32),
    "empty": np.zeros(0, np.float32),
    "empty rows": np.zeros((3, 0), np.float32),
}
CASES = [(name, axis) for name, x in ARRAYS.items() for axis in (None, *range(x.ndim))]


def of_size(parts: list[np.ndarray], size: int, fill: Any, axis: int) -> list[np.ndarray]:
    """Return NumPy's elements, first positions, inverse and counts, with a known number of them."""
    found, first, inverse, counts = parts
    have = min(size, found.shape[axis])
    one = np.take(found, [0], axis) if fill is None else np.array(fill, found.dtype)
    shape = [size - have if i == axis else n for i, n in enumerate(found.shape)]
    kept = np.take(found, range(have), axis)
    return [
        np.concatenate([kept, np.broadcast_to(one, shape)], axis),
        np.concatenate([first[:have], np.full(size - have, first[0])]),
        inverse,
        np.concatenate([counts[:have], np.zeros(size - have, int)]),
    ]


def assert_same(found: Any, wanted: list[Any]) -> None:
    for have, want in zip(found, wanted, strict=True):
        assert have.shape == want.shape
        np.testing.assert_array_equal(np.asarray(have), want)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "axis"), CASES)
def test_unique(name: str, axis: int | None) -> None:
    x = ARRAYS[name]
    for equal_nan in (True, False):
        wanted = list(np.unique(x, True, True, True, axis, equal_nan=equal_nan))
        found = jnp.unique(x, True, True, True, axis, equal_nan=equal_nan)
        assert_same(found, wanted)
        assert found[0].dtype == x.dtype
        if not (x.size if axis is None else x.shape[axis]):
            continue
        seven, one = (True, True) if x.dtype == np.bool_ else (7, 1)
        for size, fill in ((1, None), (2, seven), (6, one), (6, None), (0, None)):

            def call(x: Any, size: int = size, fill: Any = fill, same: bool = equal_nan) -> Any:
                return jnp.unique(
                    x, True, True, True, axis, equal_nan=same, size=size, fill_value=fill
                )

            assert_same(call(x), of_size(wanted, size, fill, axis or 0))
            if fill and size == 6 and equal_nan:
                assert_same(effax.jit(call)(x), of_size(wanted, size, fill, axis or 0))


FLAGS = [(i, j, k) for i in (False, True) for j in (False, True) for k in (False, True)]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_results_of_unique(flags: tuple[bool, bool, bool]) -> None:
    x = ARRAYS["floats"]
    for size in (None, 3):
        whole = jnp.unique(x, True, True, True, size=size)
        found = jnp.unique(x, *flags, size=size)
        wanted = [whole[0], *(w for w, flag in zip(whole[1:], flags, strict=True) if flag)]
        assert isinstance(found, tuple) == any(flags)
        assert_same(found if any(flags) else [found], wanted)


def test_unique_of_no_elements() -> None:
    found = jnp.unique(jnp.zeros((0, 2)), True, True, True, 0, size=2, fill_value=5)
    assert_same(found, [np.full((2, 2), 5), np.zeros(2), np.zeros(0), np.zeros(2)])
    assert untyped.unique(jnp.zeros(0), size=0).shape == (0,)
    with pytest.raises(BadArgument, match="fill value"):
        jnp.unique(jnp.zeros(0), size=1)
    with pytest.raises(BadArgument, match="negative"):
        jnp.unique(jnp.zeros(1), size=-1)
    with pytest.raises(ConcretizationError):
        effax.jit(jnp.unique)(jnp.zeros(1))


@pytest.mark.slow
def test_derivatives_and_batches_of_unique() -> None:
    x = jnp.array([[3.0, 1, 3], [2, 2, 2]])
    found = effax.jit(effax.vmap(lambda x: jnp.unique(x, size=2, fill_value=0)))(x)
    np.testing.assert_array_equal(np.asarray(found), [[1, 3], [2, 0]])
    grad = effax.grad(lambda x: untyped.unique(x, size=2) @ jnp.array([5.0, 7.0]))(x[0])
    np.testing.assert_array_equal(np.asarray(grad), [7, 5, 0])
