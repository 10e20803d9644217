"""Positions of nonzero elements, of all and of known numbers of them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.ir.errors import BadArgument, ConcretizationError

untyped: Any = jnp
ARRAYS: dict[str, np.ndarray] = {
    "vector": np.array([0, 3, 0, 2, 1], np.int32),
    "matrix": np.array([[1.5, 0, np.nan], [0, -0.0, 2]], np.float32),
    "booleans": np.array([[True], [False], [True]]),
    "zeros": np.zeros((2, 3), np.float32),
    "empty": np.zeros((0, 2), np.float32),
}
FILLS: dict[str, Any] = {
    "none": None,
    "number": 7,
    "negative": -1,
    "array": np.int32(3),
    "tuple": (4, 5),
}


def padded(positions: tuple[np.ndarray, ...], size: int, fill: Any) -> list[np.ndarray]:
    fills = fill if isinstance(fill, tuple) else (fill or 0,) * len(positions)
    return [
        np.concatenate([p[:size], np.full(max(0, size - len(p)), f)])
        for p, f in zip(positions, fills, strict=False)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("name", ARRAYS)
def test_known_numbers_of_positions(name: str, fill: str) -> None:
    x, value = ARRAYS[name], FILLS[fill]
    if isinstance(value, tuple):
        value = value[: x.ndim]
    for size in (0, 1, 2, 7):
        wanted = padded(np.nonzero(x), size, value)

        def calls(x: Any, size: int = size) -> list[Any]:
            more = {"size": size, "fill_value": value}
            flat = {"size": size, "fill_value": None if isinstance(value, tuple) else value}
            return [
                untyped.nonzero(x, **more),
                untyped.where(x, **more),
                untyped.argwhere(x, **more).T,
                [untyped.flatnonzero(x, **flat)],
            ]

        for found in (calls(x), effax.jit(calls)(x) if size == 7 else calls(x)):
            for have in found[:3]:
                np.testing.assert_array_equal(np.array(list(have)), np.array(wanted))
            flat = None if isinstance(value, tuple) else value
            want = padded((np.flatnonzero(x),), size, flat)
            np.testing.assert_array_equal(np.asarray(found[3][0]), want[0])


@pytest.mark.parametrize("name", ARRAYS)
def test_known_numbers_of_elements(name: str) -> None:
    mask = ARRAYS[name]
    x = np.arange(mask.size, dtype=np.float32).reshape(mask.shape) + 1
    for size in (None, 0, 2, 7):
        kept = np.extract(mask, x)
        count = len(kept) if size is None else size
        wanted = np.concatenate([kept[:count], np.full(max(0, count - len(kept)), -3)])

        def call(mask: Any, size: int | None = size) -> Any:
            return jnp.extract(mask, x, size=size, fill_value=-3)

        np.testing.assert_array_equal(np.asarray(call(mask)), wanted)
        if size == 7:
            np.testing.assert_array_equal(np.asarray(effax.jit(call)(mask)), wanted)


def test_elements_of_booleans() -> None:
    mask, x = jnp.array([True, False, True]), jnp.array([False, True, True])
    assert jnp.extract(mask, x).tolist() == [False, True]
    assert jnp.extract(mask, x, size=3).tolist() == [False, True, False]
    assert jnp.extract(mask, x, size=3, fill_value=True).tolist() == [False, True, True]


def test_positions_of_scalars() -> None:
    for x in (0.0, 5.0):
        assert jnp.argwhere(x).shape == np.argwhere(x).shape
        assert jnp.argwhere(x, size=3).shape == (3, 0)
        np.testing.assert_array_equal(np.asarray(jnp.flatnonzero(x)), np.flatnonzero(x))


def test_bad_sizes_and_fill_values() -> None:
    x = jnp.ones((2, 2))
    for more in ({"size": -1}, {"size": 2, "fill_value": (1,)}, {"size": 2, "fill_value": [1, 2]}):
        for name in ("nonzero", "where", "argwhere"):
            with pytest.raises(BadArgument):
                getattr(untyped, name)(x, **more)
    for name in ("nonzero", "where", "argwhere", "flatnonzero"):
        with pytest.raises(ConcretizationError):
            effax.jit(getattr(untyped, name))(x)
