"""Elementwise functions have SciPy's values in both precisions, evaluated and compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np
import pytest

import effax
from tests.unit.scipy.cases import CASES
from tests.unit.scipy.record import expected

EXPECTED: Final = expected()
ULPS: Final = 64
LOOSE: Final[dict[str, float]] = {}
"""Tolerances in units of the last place that are above the usual one, by function."""


def function(name: str) -> Callable[..., Any]:
    module, _, own = f"effax.scipy.{name}".rpartition(".")
    found: Callable[..., Any] = getattr(import_module(module), own)
    return found


def everything(dtype: type) -> dict[str, list[tuple[Any, ...]]]:
    """Return the calls with arguments in a dtype."""
    return {n: [tuple(np.asarray(x, dtype) for x in args) for args in c] for n, c in CASES.items()}


def results(calls: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[Any]]:
    return {name: [function(name)(*args) for args in each] for name, each in calls.items()}


@pytest.fixture(params=["float32", "float64"], scope="module")
def calls(request: pytest.FixtureRequest) -> Any:
    with effax.enable_x64(request.param == "float64"):
        yield everything(np.dtype(request.param).type)


def check(found: dict[str, list[Any]], dtype: Any) -> None:
    for name, values in found.items():
        for args, value, want in zip(CASES[name], values, EXPECTED[name], strict=True):
            assert value.dtype == dtype, name
            have = np.ravel(np.asarray(value, np.float64))
            assert have.shape == np.shape(want), name
            with np.errstate(over="ignore"):
                narrow = np.asarray(want, np.float64).astype(dtype).astype(np.float64)
            rtol = LOOSE.get(name, ULPS) * float(np.finfo(dtype).eps)
            # XLA flushes denormals to zero.
            atol = 4 * float(np.finfo(dtype).tiny)
            np.testing.assert_allclose(
                have, narrow, rtol=rtol, atol=atol, err_msg=f"{name}{args}", equal_nan=True
            )


def test_evaluated_values_are_scipys(calls: Any) -> None:
    check(results(calls), dtype_of(calls))


@pytest.mark.slow
def test_compiled_values_are_scipys(calls: Any) -> None:
    check(effax.jit(results)(calls), dtype_of(calls))


def dtype_of(calls: dict[str, list[tuple[Any, ...]]]) -> Any:
    return next(iter(calls.values()))[0][0].dtype


def test_every_case_is_recorded() -> None:
    assert {n: len(c) for n, c in CASES.items()} == {n: len(c) for n, c in EXPECTED.items()}
