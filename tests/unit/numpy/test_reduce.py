"""Reductions and running combinations in a requested dtype, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda n, x, dtype: n.sum(x, axis=1, dtype=dtype),
    "sum of some": lambda n, x, dtype: n.sum(x, 1, dtype, where=np.arange(3) != 1, initial=1),
    "prod": lambda n, x, dtype: n.prod(x, axis=1, dtype=dtype),
    "prod of some": lambda n, x, dtype: n.prod(x, 1, dtype, where=np.arange(3) != 1, initial=2),
    "mean": lambda n, x, dtype: n.mean(x, axis=1, dtype=dtype),
    "cumsum": lambda n, x, dtype: n.cumsum(x, axis=1, dtype=dtype),
    "cumprod": lambda n, x, dtype: n.cumprod(x, axis=1, dtype=dtype),
    "nansum": lambda n, x, dtype: n.nansum(x, axis=1, dtype=dtype),
    "nanprod": lambda n, x, dtype: n.nanprod(x, axis=1, dtype=dtype),
    "nancumsum": lambda n, x, dtype: n.nancumsum(x, axis=1, dtype=dtype),
    "nancumprod": lambda n, x, dtype: n.nancumprod(x, axis=1, dtype=dtype),
    "trace": lambda n, x, dtype: n.trace(x, dtype=dtype),
}
OPERANDS = {
    "bool": np.array([[True, False, True], [False, False, True]]),
    "int8": np.array([[1, -1, 2], [0, 3, -4]], np.int8),
    "uint8": np.array([[1, 0, 2], [20, 3, 4]], np.uint8),
    "float16": np.array([[1, -1, 2.5], [0, 3, -4]], np.float16),
    "float32": np.array([[0.5, 0, 0.25], [-0.5, 0.5, 0.75]], np.float32),
    "complex64": np.array([[1, -1j, 2], [0, 3, -4]], np.complex64),
}
DTYPES = ["bool", "int8", "int32", "float16", "float32", "complex64"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_dtype_can_be_requested(name: str) -> None:
    call = FUNCTIONS[name]

    def results(xs: dict[str, Any], dtypes: list[str]) -> list[Any]:
        return [call(jnp, x, dtype) for dtype in dtypes for x in xs.values()]

    wanted = [call(np, x, dtype) for dtype in DTYPES for x in OPERANDS.values()]
    compiled = effax.jit(lambda xs: results(xs, DTYPES[:1]))(OPERANDS)
    for found in (results(OPERANDS, DTYPES), compiled):
        for have, want in zip(found, wanted, strict=False):
            assert have.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(have), want, rtol=2e-3)
