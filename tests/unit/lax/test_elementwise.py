"""Shapes of operands of binary functions: equal, without axes, or different in axes of size 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import IllTyped

FLOATS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "atan2": np.arctan2,
    "nextafter": np.nextafter,
    "complex": lambda x, y: x + 1j * y,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
INTEGERS: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": np.right_shift,
}
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    *(((1, 3), (2, 3)), ((2, 3), (2, 1)), ((2, 1), (1, 3)), ((1, 1), (2, 3)), ((1,), (3,))),
    *(((0, 3), (1, 3)), ((2, 0), (2, 1)), ((), (2, 3)), ((2, 3), ()), ((2, 3), (2, 3))),
]


def operand(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 5 + 1).reshape(shape).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_axes_of_size_1_broadcast(name: str) -> None:
    call = getattr(lax, name)
    dtype = "float32" if name in FLOATS else "int32"
    pairs = [(operand(s, dtype), operand(t, dtype)) for s, t in SHAPES]
    wanted = [(FLOATS | INTEGERS)[name](x, y) for x, y in pairs]

    def run(pairs: Any) -> list[Any]:
        return [call(x, y) for x, y in pairs]

    as_arrays = [(jnp.asarray(x), jnp.asarray(y)) for x, y in pairs]
    for found in (run(pairs), run(as_arrays), effax.jit(run)(pairs)):
        for have, want in zip(found, wanted, strict=True):
            assert have.shape == want.shape
            np.testing.assert_allclose(np.asarray(have), want, rtol=2e-6)


def test_other_shapes_are_refused() -> None:
    for s, t in (((3,), (2, 3)), ((1,), (2, 3)), ((2, 3), (3, 3)), ((0,), (2,))):
        for call in (lax.add, lax.pow, effax.jit(lax.add)):
            with pytest.raises(IllTyped, match="different shape"):
                call(operand(s, "float32"), operand(t, "float32"))
    row, x = jnp.ones((1, 3)), jnp.ones((2, 3))
    for refused in (
        lambda: lax.clamp(row, x, x),
        lambda: lax.select(row > 0, x, x),
        lambda: lax.select_n(x > 0, x, row),
    ):
        with pytest.raises(IllTyped, match="different shape"):
            refused()


def test_derivatives_and_batches_of_axes_of_size_1() -> None:
    row, x = jnp.ones((1, 3)), jnp.ones((2, 3))
    grads = effax.grad(lambda r, x: lax.mul(r, x).sum(), (0, 1))(row, x)
    assert [g.shape for g in grads] == [(1, 3), (2, 3)]
    np.testing.assert_array_equal(np.asarray(grads[0]), [[2, 2, 2]])
    assert effax.vmap(lax.add)(jnp.ones((5, 1, 3)), jnp.ones((5, 2, 3))).shape == (5, 2, 3)
    assert effax.vmap(lax.add, (0, None))(jnp.ones((5, 1, 3)), x).shape == (5, 2, 3)
