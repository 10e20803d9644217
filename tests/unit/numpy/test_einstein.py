"""Orders of contractions in all forms that NumPy, JAX and opt_einsum have."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import opt_einsum
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument

TEXT = "ij,jk,kl->il"
ARRAYS = [np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in ((2, 3), (3, 4), (4, 5))]
untyped: Any = jnp

ORDERS: list[Any] = [
    *("auto", "greedy", "optimal", "eager", "dp", True, False, None),
    *(("greedy", 10), ("optimal", 100), opt_einsum.RandomGreedy()),
    *([(0, 1), (0, 1)], [(1, 2), (0, 1)], [[0, 1], [0, 1]], [(0, 1, 2)], [(0,), (0, 1), (0, 1)]),
    ((1, 2), (0, 1)),
    np.array([[0, 1], [0, 1]]),
    ["einsum_path", (1, 2), (0, 1)],
    np.einsum_path(TEXT, *ARRAYS)[0],
    jnp.einsum_path(TEXT, *ARRAYS)[0],
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: re.sub(r" at 0x\w+", "", str(order)))
def test_orders(order: Any) -> None:
    wanted = np.einsum(TEXT, *ARRAYS)
    for run in (lambda f: f, effax.jit):
        found = run(lambda *arrays: untyped.einsum(TEXT, *arrays, optimize=order))(*ARRAYS)
        np.testing.assert_allclose(np.asarray(found), wanted)
    path = untyped.einsum_path(TEXT, *ARRAYS, optimize=order)[0]
    assert untyped.einsum(TEXT, *ARRAYS, optimize=path).shape == (2, 5)


NO_ORDERS: list[Any] = [
    *("bogus", 3, [], [(0, 1)], [(0, 5)], [(0, 0), (0, 1)], [(-1, 0), (0, 1)], [(0.5, 1)]),
    *([1, 2], ["einsum_path", (0, 1)], ("bogus", 3), ("greedy", "much")),
]


@pytest.mark.parametrize("order", NO_ORDERS, ids=str)
def test_no_orders(order: Any) -> None:
    for call in (untyped.einsum, untyped.einsum_path):
        with pytest.raises(BadArgument, match="not an order of contractions"):
            call(TEXT, *ARRAYS, optimize=order)


def test_orders_of_lists_of_axes() -> None:
    args = (ARRAYS[0], [0, 1], ARRAYS[1], [1, 2], [0, 2])
    path = untyped.einsum_path(*args)[0]
    found = untyped.einsum(*args, optimize=path)
    np.testing.assert_allclose(np.asarray(found), ARRAYS[0] @ ARRAYS[1])


def test_the_product_of_two_operands_is_a_parameter() -> None:
    calls = []

    def product(*args: Any, **kwargs: Any) -> Any:
        calls.append(args[2])
        return lax.dot_general(*args, **kwargs)

    x = jnp.ones((2, 3))
    made = jnp.einsum("ij,kj->ik", x, x, _dot_general=product)
    assert made.tolist() == [[3.0, 3.0]] * 2
    assert calls == [(((1,), (1,)), ((), ()))]
