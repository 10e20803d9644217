"""Functions with rules in every spelling, all importable: their programs can be pickled."""

from __future__ import annotations

from typing import Any

import effax
from effax import lax
from effax.custom_batching import custom_vmap as _custom_vmap
from effax.custom_derivatives import linear_call as _linear_call

jax: Any = effax


def pushed(primals: Any, tangents: Any) -> Any:
    return 2 * primals[0], 20 * tangents[0]


def saved(x: Any) -> Any:
    return 2 * x, None


def pulled(_: None, ct: Any) -> Any:
    return (200 * ct,)


def batched(n: int, in_batched: Any, xs: Any) -> Any:
    return 2000 * xs, True


@effax.custom_jvp
def with_jvp(x: Any) -> Any:
    return 2 * x


@effax.custom_vjp
def with_vjp(x: Any) -> Any:
    return 2 * x


@effax.custom_rules
def with_both(x: Any) -> Any:
    return 2 * x


@_custom_vmap
def with_vmap(x: Any) -> Any:
    return 2 * x


with_jvp.defjvp(pushed)
with_vjp.defvjp(saved, pulled)
with_both.defjvp(pushed)
with_both.defvjp(saved, pulled)
with_vmap.def_vmap(batched)


def minus_four(y: Any) -> Any:
    return y * y - 4


def root_of(f: Any, guess: Any) -> Any:
    return 0 * guess + 2


def tangent_solve(g: Any, y: Any) -> Any:
    return y / g(1.0)


def root(x: Any) -> Any:
    return x * lax.custom_root(minus_four, 0 * x + 1, root_of, tangent_solve)


def halved(y: Any) -> Any:
    return y / 2


def doubled(_: Any, b: Any) -> Any:
    return 2 * b


def transpose_solve(_: Any, b: Any) -> Any:
    return 200 * b


def solve(x: Any) -> Any:
    return lax.custom_linear_solve(halved, x, doubled, transpose_solve)


def scaled(r: Any, x: Any) -> Any:
    return r * x


def transpose_of_scaled(r: Any, ct: Any) -> Any:
    return 100 * r * ct


def linear(x: Any) -> Any:
    return _linear_call(scaled, transpose_of_scaled, 2.0, x)


# Each is 2x; the gradient, the forward derivative (None: refused), and what a batch multiplies.
EVERY: dict[str, tuple[Any, float, float | None, float]] = {
    "custom_jvp": (with_jvp, 20.0, 20.0, 2.0),
    "custom_vjp": (with_vjp, 200.0, None, 2.0),
    "custom_rules": (with_both, 200.0, 20.0, 2.0),
    "custom_vmap": (with_vmap, 2.0, 2.0, 2000.0),
    "custom_root": (root, 2.0, 2.0, 2.0),
    "custom_linear_solve": (solve, 200.0, 2.0, 2.0),
    "linear_call": (linear, 200.0, 2.0, 2.0),
}
