"""Elementwise functions have SciPy's values in both precisions, evaluated and compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np
import pytest

import effax
from effax.scipy import special
from tests.unit.scipy.cases import CASES
from tests.unit.scipy.record import expected

EXPECTED: Final = expected()
ULPS: Final = 64
LONG: Final = {
    f"special.{n}"
    for n in (
        "betainc",
        "comb",
        "exp1",
        "expi",
        "expn",
        "fresnel",
        "gammainc",
        "gammaincc",
        "owens_t",
        "poch",
        "sici",
        "zeta",
    )
}
"""Functions that are long to compile."""

LOOSE: Final[dict[str, float]] = {
    **dict.fromkeys(("special.betainc", "special.gammaincc", "special.poch", "special.sici"), 128),
    "special.gammainc": 600,
    "special.owens_t": 300,
    **dict.fromkeys(("stats.cauchy.isf", "stats.cauchy.ppf", "stats.pareto.ppf"), 200),
    "stats.poisson.entropy": 1500,
}
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


def check(found: dict[str, list[Any]], dtype: Any) -> None:
    for name, values in found.items():
        for value, want in zip(values, EXPECTED[name], strict=True):
            parts = value if isinstance(value, tuple) else (value,)
            assert {x.dtype for x in parts} == {np.dtype(dtype)}, name
            have = np.concatenate([np.ravel(np.asarray(x, np.float64)) for x in parts])
            assert have.shape == np.shape(want), name
            with np.errstate(over="ignore"):
                narrow = np.asarray(want, np.float64).astype(dtype).astype(np.float64)
            rtol = LOOSE.get(name, ULPS) * float(np.finfo(dtype).eps)
            # XLA flushes denormals to zero.
            atol = 4 * float(np.finfo(dtype).tiny)
            np.testing.assert_allclose(
                have, narrow, rtol=rtol, atol=atol, err_msg=name, equal_nan=True
            )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_evaluated_values_are_scipys(dtype: type) -> None:
    with effax.enable_x64(dtype is np.float64):
        check(results(everything(dtype)), dtype)


@pytest.mark.slow
def test_compiled_values_are_scipys() -> None:
    calls = everything(np.float32)
    short = [n for n in calls if n.startswith(("special", "stats.norm")) and n not in LONG]
    check(effax.jit(results)({n: calls[n] for n in short}), np.float32)


@pytest.mark.slow
def test_incomplete_functions_compile_to_their_values() -> None:
    args = [np.array(x, np.float32) for x in ([0.3, 2, 30, 150], [0.2, 5, 20, 160])]
    for f in (special.gammaincc, lambda a, x: special.betainc(a, 2, x / 200)):
        np.testing.assert_allclose(effax.jit(f)(*args), f(*args), rtol=3e-5)


def test_every_case_is_recorded() -> None:
    assert {n: len(c) for n, c in CASES.items()} == {n: len(c) for n, c in EXPECTED.items()}
