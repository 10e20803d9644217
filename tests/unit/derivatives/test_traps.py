"""Derivatives at the usual traps: eager, compiled, forward, backward, and beside JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
from effax.ir.syntax import Jaxpr
from effax.transforms.discharge import discharge
from tests.unit.derivatives.traps import FAMILIES, Trap
from tests.unit.lowering.compiled import run

pytestmark = pytest.mark.slow

ALL = {f"{f}: {n}": trap for f, traps in FAMILIES.items() for n, trap in traps.items()}


def pushed(m: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative by forward mode."""
    return lambda x: m.jvp(f, (x,), (m.numpy.ones_like(x),))[1]


def measured(m: Any, trap: Trap, x: Any, each: Callable[[Any], Any]) -> list[Any]:
    """Return value and derivatives, backward and forward: (f, f', f'', f'', f')."""
    f = partial(trap.call, m)
    slope, rise = m.grad(f), pushed(m, f)
    return [each(g)(x) for g in (f, slope, m.grad(slope), pushed(m, rise), rise)]


def points(trap: Trap) -> np.ndarray:
    return np.array([row[0] for row in trap.rows], np.float32)


def wanted(trap: Trap) -> list[np.ndarray]:
    _, y, slope, bend = (np.array(column) for column in zip(*trap.rows, strict=True))
    return [y, slope, bend, bend, slope]


def assert_close(
    found: list[Any], expected: list[np.ndarray], which: tuple[bool, ...] | None = None
) -> None:
    chosen = slice(None) if which is None else np.array(which)
    for have, ct_spec in zip(found, expected, strict=True):
        here = np.asarray(have, np.float64)[chosen]
        np.testing.assert_allclose(here, ct_spec[chosen], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ALL)
def test_derivatives_at_traps(name: str) -> None:
    trap = ALL[name]
    xs = points(trap)
    rows = [measured(effax, trap, effax.numpy.asarray(x), lambda g: g) for x in xs]
    columns = [np.array([float(v) for v in c]) for c in zip(*rows, strict=True)]
    assert_close(columns, wanted(trap))


def program(family: str) -> tuple[Jaxpr, list[np.ndarray]]:
    """Return values and derivatives of a family of traps, batched over points, as one program."""
    traps = list(FAMILIES[family].values())
    args = [points(trap) for trap in traps]

    def everything(*xs: Any) -> list[Any]:
        found = [measured(effax, trap, x, effax.vmap) for trap, x in zip(traps, xs, strict=True)]
        return [part for parts in found for part in parts[:4]]

    made = effax.make_jaxpr(everything)(*args)
    pure = discharge(made.jaxpr).unwrap().jaxpr
    return pure, [*map(np.asarray, made.consts), *args]


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_at_traps_compiled_and_batched(family: str) -> None:
    jaxpr, args = program(family)
    found = run(jaxpr, args)
    for i, (name, trap) in enumerate(FAMILIES[family].items()):
        try:
            assert_close(found[4 * i : 4 * i + 4], wanted(trap)[:4])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_at_traps_are_those_of_jax(family: str) -> None:
    jax = pytest.importorskip("jax")
    if not jax.__version__.startswith("0.12"):
        pytest.skip("the table speaks of jax 0.12")
    traps = FAMILIES[family]

    def everything(xs: dict[str, Any]) -> dict[str, Any]:
        return {name: measured(jax, traps[name], x, jax.vmap) for name, x in xs.items()}

    found = jax.jit(everything)({name: points(trap) for name, trap in traps.items()})
    for name, trap in traps.items():
        try:
            assert_close(found[name], wanted(trap), trap.jax)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
