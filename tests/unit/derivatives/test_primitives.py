"""Every primitive: derivatives of first and second order against differences, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ad_checkpoint import checkpoint_name
from effax.arrays.binding import bind
from effax.custom_batching import custom_vmap
from effax.ir.prims import OptimizationBarrier
from effax.ir.registry import own_primitives
from effax.ir.syntax import Jaxpr
from effax.testing import check_grads
from effax.transforms.rules.default import DEFAULT_RULES
from tests.unit.derivatives.functions import rooted, solved
from tests.unit.transforms.array_cases import ALL, DIFFERENTIABLE, Case

X, W = np.array([0.6, -1.3, 1.7]), np.array([0.4, 0.9, -0.7])


def _cell(use: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a function of a local reference, initialized with its argument."""

    def f(x: Any) -> Any:
        cell = effax.new_ref(x)
        use(cell, x)
        return effax.freeze(cell)

    return f


def _read_and_freed(x: Any) -> Any:
    cell = effax.new_ref(jnp.sin(x))
    read = cell[1:] * cell[0]
    effax.free_ref(cell)
    return read


def _written_in_empty(x: Any) -> Any:
    cell = effax.empty_ref((3,), float)
    cell[...] = x * x
    return effax.freeze(cell)


def _step(c: tuple[Any, Any]) -> tuple[Any, Any]:
    return c[0] + 1.1, jnp.sin(c[1]) * c[1] + c[0]


@effax.custom_jvp
def _own_forward(x: Any) -> Any:
    return jnp.sin(x) * x


@_own_forward.defjvp
def _(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _own_forward(x), (jnp.cos(x) * x + jnp.sin(x)) * t


@effax.custom_vjp
def _own_backward(x: Any) -> Any:
    return jnp.sin(x) * x


_own_backward.defvjp(
    lambda x: (_own_backward(x), x), lambda x, ct: ((jnp.cos(x) * x + jnp.sin(x)) * ct,)
)


@custom_vmap
def _own_batch(x: Any) -> Any:
    return jnp.sin(x) * x


@_own_batch.def_vmap
def _(size: int, batched: Any, x: Any) -> tuple[Any, bool]:
    return jnp.sin(x) * x, True


Program = tuple[Callable[[Any], Any], tuple[str, ...]]
BOTH = ("fwd", "rev")

# Primitives that hold programs or act on references, by their names: programs with them.
PROGRAMS: dict[str, Program] = {
    "addupdate": (_cell(lambda cell, x: effax.ref.addupdate(cell, 0, x[1] * x[2])), BOTH),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, lambda y: y * y, x), BOTH),
    "custom_linear_solve": (lambda x: solved(jnp.outer(x, x), x), BOTH),
    "composite": (lax.composite(lambda x: jnp.sin(x) * x, "my.f"), BOTH),
    "custom_root": (rooted, BOTH),
    "custom_jvp_call": (_own_forward, BOTH),
    "custom_vjp_call": (_own_backward, ("rev",)),
    "custom_vmap_call": (_own_batch, BOTH),
    "empty_ref": (_written_in_empty, BOTH),
    "free_ref": (_read_and_freed, BOTH),
    "freeze": (_cell(lambda cell, x: None), BOTH),
    "get": (_read_and_freed, BOTH),
    "jit": (effax.jit(lambda x: jnp.sin(x) * x), BOTH),
    "name": (lambda x: checkpoint_name(jnp.sin(x), "a") * x, BOTH),
    "new_ref": (_read_and_freed, BOTH),
    "optimization_barrier": (lambda x: bind(OptimizationBarrier(), jnp.sin(x))[0] * x, BOTH),
    "remat2": (effax.checkpoint(lambda x: jnp.sin(x) * jnp.cos(x)), BOTH),
    "scan": (lambda x: lax.scan(lambda c, w: (jnp.sin(c) * w, c * c), x, W), BOTH),
    "swap": (_cell(lambda cell, x: cell.__setitem__(1, x[0] * x[2])), BOTH),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 4, _step, (x[0], x))[1], BOTH),
}

WITHOUT = {
    "custom_lin": "it is the tangent of a custom_vjp_call, of which it is a part",
    "constant": "it has no operands",
    "iota": "it has no operands",
    "dim_value": "it has no operands",
    "pure_callback": "nothing is known of the derivative of a Python function",
    "io_callback": "nothing is known of the derivative of a Python function",
    "debug_callback": "it has no results",
    "check": "it has no results",
    "dce_sink": "it has no results",
    **{
        name: "it is tested with its function: tests/unit/derivatives/scipy_functions.py"
        for name, prim in own_primitives().items()
        if prim.__module__.endswith(".special") and name not in {case.prim.name for case in ALL}
    },
    **{
        name: "it runs on the devices of a mesh, or along a named axis, and is tested there"
        for name, prim in own_primitives().items()
        if prim.__module__.endswith((".collective", ".shard"))
    },
}


def test_every_primitive_has_a_case_or_a_reason() -> None:
    cases = {case.prim.name for case in ALL}
    assert not cases & set(PROGRAMS)
    assert not (cases | set(PROGRAMS)) & set(WITHOUT)
    everything = set(own_primitives()) | {prim.name for prim in DEFAULT_RULES.rules}
    assert everything == cases | set(PROGRAMS) | set(WITHOUT)


def names_in(jaxpr: Jaxpr) -> set[str]:
    found = {eqn.prim.name for eqn in jaxpr.eqns}
    return found.union(*(names_in(j) for eqn in jaxpr.eqns for j in eqn.prim.subjaxprs()))


@pytest.fixture(autouse=True)
def doubles() -> Any:
    with effax.enable_x64():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_programs_agree_with_differences(name: str) -> None:
    function, modes = PROGRAMS[name]
    assert name in names_in(effax.make_jaxpr(function)(X).jaxpr)
    check_grads(function, (X,), order=2, modes=modes, atol=1e-7, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_derivatives_of_applications_agree_with_differences(case: Case) -> None:
    def applied(*xs: Any) -> list[Any]:
        given = {i: jnp.asarray(a) for i, a in enumerate(case.args)}
        given |= {i: jnp.asarray(x) for i, x in zip(case.smooth, xs, strict=True)}
        return list(bind(case.prim, *given.values()))

    xs = [case.args[i] for i in case.smooth]
    check_grads(applied, xs, order=2, atol=1e-6, rtol=1e-6)
