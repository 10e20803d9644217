"""Array functions under transformations: compiled, batched, differentiated."""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.arrays.array import Array
from tests.unit.numpy.agreement import flat
from tests.unit.numpy.cases import FAMILIES, Case
from tests.unit.numpy.test_elementwise import BINARY, UNARY

CASES = {f"{f} {n}": case for f, cases in FAMILIES.items() for n, case in cases.items()}


def same(found: Any, wanted: Any, rtol: float = 1e-5) -> None:
    np.testing.assert_allclose(
        np.asarray(found).astype(np.complex128),
        np.asarray(wanted).astype(np.complex128),
        rtol=rtol,
        atol=1e-6,
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_as_evaluated(family: str) -> None:
    cases = FAMILIES[family]
    args = {name: [jnp.asarray(x) for x in case.args] for name, case in cases.items()}

    def run(args: dict[str, list[Array]]) -> dict[str, list[Any]]:
        return {name: flat(case.call(jnp, *args[name])) for name, case in cases.items()}

    found, wanted = effax.jit(run)(args), run(args)
    for name in cases:
        for a, b in zip(found[name], wanted[name], strict=True):
            assert a.aval is b.aval
            same(a, b)


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.args])
def test_batched_as_stacked(name: str) -> None:
    case = CASES[name]
    first, *rest = (jnp.asarray(x) for x in case.args)
    other = first if first.dtype.kind in "bi" else first * 0.5 + 1
    batch = jnp.stack([first, other, jnp.flip(first, 0)])

    def call(x: Array) -> tuple[Any, ...]:
        return tuple(flat(case.call(jnp, x, *rest)))

    found = effax.vmap(call)(batch)
    for i in range(3):
        for a, b in zip(found, call(batch[i]), strict=True):
            same(a[i], b)


X = np.array([0.25, -0.5, 0.6, 0.75, 0.0], np.float32)
P = np.array([0.3, 1.2, 2.0, 0.9, 1.0], np.float32)


def _unary(name: str, x: np.ndarray) -> Case:
    return Case(lambda n, x: getattr(n, name)(x), (x,))


DIFFERENTIATED = {
    **{n: c for n, c in CASES.items() if c.args and c.args[0].dtype == np.float32},
    **{f"{n} of any": _unary(n, X) for n in UNARY},
    **{f"{n} of positive": _unary(n, P) for n in UNARY},
    **{
        f"{n} of two": Case(lambda lib, x, y, n=n: getattr(lib, n)(x, y), (P, P[::-1].copy()))
        for n in BINARY
        if n != "nextafter"
    },
}
# The derivative of a clamped read, which JAX takes for 0; of nan; of the angle of a real 0.
OTHERWISE = {"indexing index traced out", "reductions max nan", "angle of any"}


def weighted(library: Any, case: Case, x: Any) -> Any:
    """Return a weighted sum of all floats of the result."""
    total = library.sum(x * 0)
    for out in flat(case.call(library, x, *map(library.asarray, case.args[1:]))):
        if out.dtype == np.float32:
            weights = np.cos(np.arange(out.size)).reshape(out.shape)
            total = total + library.sum(out * library.asarray(weights, "float32"))
    return total


@cache
def gradients_of_jax() -> dict[str, Any]:
    import jax

    def run() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, case in DIFFERENTIATED.items():
            # Some functions refuse floats.
            with suppress(TypeError, ValueError):
                found[name] = jax.grad(partial(weighted, jax.numpy, case))(case.args[0])
        return found

    return jax.jit(run)()  # type: ignore[no-any-return, unused-ignore]  # jax is not typed


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in DIFFERENTIATED if n not in OTHERWISE])
def test_gradients_are_those_of_jax(name: str) -> None:
    case = DIFFERENTIATED[name]

    def total(x: Array) -> Array:
        return weighted(jnp, case, x)  # type: ignore[no-any-return]  # an array

    x = jnp.asarray(case.args[0])
    if name not in gradients_of_jax():
        with pytest.raises(TypeError):
            effax.grad(total)(x)
        return
    same(effax.grad(total)(x), gradients_of_jax()[name], rtol=1e-4)


def test_a_clamped_read_has_its_derivative() -> None:
    def total(x: Array) -> Array:
        return jnp.sum(x[np.array([0, 9])] * jnp.array([2.0, 3.0]))

    np.testing.assert_array_equal(np.asarray(effax.grad(total)(jnp.zeros(3))), [2, 0, 3])


def test_masked_nan_does_not_reach_derivatives() -> None:
    x = jnp.array([1.0, np.nan, 3.0, 5.0])
    for f in (jnp.nansum, jnp.nanmean, jnp.nanvar, jnp.nanstd, jnp.nanmax):
        grad = np.asarray(effax.grad(f)(x))
        assert np.isfinite(grad).all()
        assert grad[1] == 0
