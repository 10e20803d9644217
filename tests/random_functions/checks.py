"""Check one function: every way to compute its value and derivatives, and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import effax as jax
import effax.numpy as jnp
from effax import lax
from effax.passes import optimize
from tests.random_functions.generate import random_function

POINTS = ((np.array([0.3, -0.7, 1.1]), 0.4), (np.array([-1.2, 0.5, 0.8]), -0.9))
DIRECTION = (np.array([0.6, -0.2, 0.5]), 0.7)
STEPS = (1e-5, 3e-6)


class Skipped(Exception):
    """The function is not finite, or not smooth, at the point."""


class Disagrees(AssertionError):
    """Two ways to compute the same value or derivative disagree."""


def apart(x: Any) -> Any:
    """Return offsets that make equal elements differ: ties have no derivative."""
    return 0.37 * jnp.arange(jnp.size(x), dtype=jnp.float64) ** 1.5


def function_of(seed: int) -> Callable[..., Any]:
    """Return the random function of a seed."""
    scope: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax, "apart": apart}
    exec(compile(random_function(seed), f"<random function {seed}>", "exec"), scope)
    found: Callable[..., Any] = scope["f"]
    return found


def check_seed(seed: int, compiled: bool = True) -> int:
    """Check a random function in float64, and return the number of comparisons.

    Its gradient is always compared with finite differences; unless ``compiled``, only one of the
    groups of comparisons is run, which depends on the seed.

    Raises:
        Skipped: it is not smooth at the points.
        Disagrees: values or derivatives disagree.
    """
    with jax.enable_x64(True):
        f, count = function_of(seed), 0
        for what, found, expected, rtol in comparisons(f, seed, compiled):
            compare(what, found, expected, rtol)
            count += 1
        return count


def compare(what: str, found: Any, expected: Any, rtol: float) -> None:
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    scale = max(1.0, float(np.max(np.abs(expected))))
    if found.shape != expected.shape or not np.max(np.abs(found - expected)) <= rtol * scale:
        raise Disagrees(f"{what}: {found.tolist()} and {expected.tolist()}")


Comparison = tuple[str, Any, Any, float]


def comparisons(f: Callable[..., Any], seed: int, compiled: bool) -> Iterator[Comparison]:
    """Yield values that have to agree: what they are, both, and a tolerance."""
    x, y = point(POINTS[seed % 2])
    u, w = point(DIRECTION)
    value = f(x, y)
    if not np.all(np.abs(np.asarray(value)) < 1e4):
        raise Skipped
    slope = difference(f, (x, y), (u, w))
    gx, gy = jax.grad(f, (0, 1))(x, y)
    along = dot((gx, gy), (u, w))
    yield "grad, and finite differences", along, slope, 2e-5
    at, to, gradient = (x, y), (u, w), (gx, gy)
    forward = "custom_vjp" not in random_function(seed)
    groups = [
        lambda: reverse_mode(f, at, to, gradient),
        lambda: forward_mode(f, at, to, gradient) if forward else (),
        lambda: batched(f),
        lambda: second_order(f, at, to, forward),
    ]
    for group in groups if compiled else [groups[seed % 4]]:
        yield from group()
    if compiled:
        yield from in_jit(f, at, to, value, gradient)


def forward_mode(
    f: Callable[..., Any], at: tuple[Any, Any], to: tuple[Any, Any], gradient: tuple[Any, Any]
) -> Iterator[Comparison]:
    out, tangent = jax.jvp(f, at, to)
    yield "jvp's value", out, f(*at), 1e-9
    yield "jvp, and grad", tangent, dot(gradient, to), 1e-8
    out, linear = jax.linearize(f, *at)
    yield "linearize's value", out, f(*at), 1e-9
    yield "linearize, and grad", linear(*to), dot(gradient, to), 1e-8
    yield "jacfwd, and grad", jax.jacfwd(f)(*at), gradient[0], 1e-8


def reverse_mode(
    f: Callable[..., Any], at: tuple[Any, Any], to: tuple[Any, Any], gradient: tuple[Any, Any]
) -> Iterator[Comparison]:
    again = jax.grad(jax.checkpoint(f), (0, 1))(*at)
    yield "grad of checkpoint", dot(again, to), dot(gradient, to), 1e-8
    ref = jax.new_ref(jnp.zeros(3))
    jax.vjp(f, *at)[1].with_refs(ref, jax.new_ref(jnp.zeros(())))(jnp.ones(()))
    yield "vjp into a reference", ref[...], gradient[0], 1e-8


def batched(f: Callable[..., Any]) -> Iterator[Comparison]:
    points = [point(p) for p in POINTS]
    xs, ys = (jnp.stack([p[i] for p in points]) for i in range(2))
    yield "vmap", jax.vmap(f)(xs, ys), [f(*p) for p in points], 1e-8
    one = jax.grad(f)
    expected = [one(*p) for p in points]
    yield "vmap of grad", jax.vmap(one)(xs, ys), expected, 1e-8
    total = lambda xs, ys: jnp.sum(jax.vmap(f)(xs, ys))  # noqa: E731
    yield "grad of vmap", jax.grad(total)(xs, ys), expected, 1e-8


def second_order(
    f: Callable[..., Any], at: tuple[Any, Any], to: tuple[Any, Any], forward: bool
) -> Iterator[Comparison]:
    slope = lambda *a: dot(jax.grad(f, (0, 1))(*a), to)  # noqa: E731
    twice = dot(jax.grad(slope, (0, 1))(*at), to)
    if forward:
        yield "reverse over reverse, and forward", twice, jax.jvp(slope, at, to)[1], 1e-7
    try:
        expected = difference(slope, at, to)
    except Skipped:
        return
    yield "second derivative, and finite differences", twice, expected, 2e-4


def in_jit(
    f: Callable[..., Any],
    at: tuple[Any, Any],
    to: tuple[Any, Any],
    value: Any,
    gradient: tuple[Any, Any],
) -> Iterator[Comparison]:
    yield "jit", jax.jit(f)(*at), value, 1e-8
    yield "jit of grad", dot(jax.jit(jax.grad(f, (0, 1)))(*at), to), dot(gradient, to), 1e-7
    yield "grad of jit", dot(jax.grad(jax.jit(f), (0, 1))(*at), to), dot(gradient, to), 1e-7
    yield "jit with passes", jax.jit(f, passes=optimize)(*at), value, 1e-8


def point(values: tuple[Any, float]) -> tuple[Any, Any]:
    return jnp.asarray(values[0], jnp.float64), jnp.asarray(values[1], jnp.float64)


def dot(a: tuple[Any, Any], b: tuple[Any, Any]) -> Any:
    return jnp.sum(a[0] * b[0]) + a[1] * b[1]


def difference(f: Callable[..., Any], at: tuple[Any, Any], to: tuple[Any, Any]) -> float:
    """Return the derivative along a direction by central differences.

    Raises:
        Skipped: two steps disagree, as they do near a kink.
    """
    found = []
    for step in STEPS:
        ends = [float(f(at[0] + s * to[0], at[1] + s * to[1])) for s in (step, -step)]
        found.append((ends[0] - ends[1]) / (2 * step))
    one, two = found
    if not abs(one - two) <= 3e-6 * max(1.0, abs(one)):
        raise Skipped
    return one
