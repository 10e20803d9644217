"""Every public function: derivatives against differences; batched and compiled as evaluated."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import effax
from effax import lax, nn, numpy, random, scipy, tree
from effax.testing import check_grads
from effax.transforms.discharge import discharge
from tests.unit.derivatives import functions, sampled_functions, scipy_functions
from tests.unit.derivatives.functions import Call
from tests.unit.lowering.compiled import run

pytestmark = pytest.mark.slow

MODULES = {
    "numpy": numpy,
    "numpy.linalg": numpy.linalg,
    "numpy.fft": numpy.fft,
    "lax": lax,
    "nn": nn,
    "random": random,
    "scipy.special": scipy.special,
    "scipy.linalg": scipy.linalg,
}
TABLES = functions.TABLES | scipy_functions.TABLES
TABLES["numpy"] = TABLES["numpy"] | sampled_functions.SAMPLED
WITHOUT: dict[str, dict[str, str]] = functions.WITHOUT | scipy_functions.WITHOUT
WITHOUT["numpy"] = WITHOUT["numpy"] | sampled_functions.WITHOUT
CALLS = {f"{m}.{n}": call for m, table in TABLES.items() for n, call in table.items()}


def public(module: Any) -> set[str]:
    """Return the names of the public functions of a module."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    return {n for n in names if isinstance(getattr(module, n), FunctionType)}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_has_a_case_or_a_reason(module: str) -> None:
    cases = {name.split()[0] for name in TABLES[module]}
    reasons = set(WITHOUT[module])
    assert not cases & reasons
    assert public(MODULES[module]) == cases | reasons


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_agree_with_differences(name: str) -> None:
    call = CALLS[name]
    check_grads(call.function, call.args, order=call.order, modes=call.modes, atol=1e-7, rtol=1e-7)


def floats(values: Any) -> list[Any]:
    """Return the floating leaves of a result."""
    return [x for x in tree.leaves(values) if x.dtype.kind in "fc"]


def slope(call: Call) -> Callable[..., list[Any]]:
    """Return a function to floating results and their derivatives along one direction."""
    directions = [np.cos(np.arange(x.size)).reshape(x.shape) for x in call.args]

    def both(*xs: Any) -> list[Any]:
        outs, moved = effax.jvp(lambda *ys: floats(call.function(*ys)), xs, tuple(directions))
        return [*outs, *moved]

    return both


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, call in CALLS.items() if call.batched])
def test_batched_derivatives_equal_stacked_ones(name: str) -> None:
    call = CALLS[name]
    elements = [[x * scale for x in call.args] for scale in (1.0, 1.01)]
    both = slope(call)
    found = effax.vmap(both)(*(np.stack(xs) for xs in zip(*elements, strict=True)))
    for i, element in enumerate(elements):
        for have, ct_spec in zip(found, both(*element), strict=True):
            np.testing.assert_allclose(np.asarray(have)[i], ct_spec, rtol=1e-9, atol=1e-9)


def backward(call: Call) -> Callable[..., list[Any]]:
    """Return a function to floating results and cotangents of all arguments."""

    def both(*xs: Any) -> list[Any]:
        outs, pull = effax.vjp(lambda *ys: floats(call.function(*ys)), *xs)
        weights = [np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in outs]
        return [*outs, *pull(weights)]

    return both


@pytest.mark.parametrize("module", MODULES)
def test_compiled_results_equal_evaluated_ones(module: str) -> None:
    """Values and gradients of all functions of a module, as one program."""
    names = [name for name, call in TABLES[module].items() if call.compiled]
    calls = [TABLES[module][name] for name in names]
    args = [[np.array(x) for x in call.args] for call in calls]

    def everything(args: list[list[Any]]) -> list[Any]:
        return [backward(call)(*xs) for call, xs in zip(calls, args, strict=True)]

    made = effax.make_jaxpr(everything)(args)
    consts: Any = made.consts
    given = [*(c.numpy() for c in consts), *(x for xs in args for x in xs)]
    found = iter(run(discharge(made.jaxpr).unwrap().jaxpr, given))
    for name, call, xs in zip(names, calls, args, strict=True):
        for ct_spec in backward(call)(*xs):
            np.testing.assert_allclose(next(found), ct_spec, rtol=1e-6, atol=1e-7, err_msg=name)
