"""Rules of custom_jvp and custom_vjp that are not right: typed errors that say which and how."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import effax.numpy as jnp
from effax.ir.errors import BadArgument, IllTyped, TransformError
from tests.unit.api.refusals import Bad, check, jax, total, vector


def custom_jvp(rule: Any, fun: Any = lambda x: x * 2, **options: Any) -> Any:
    f = partial(jax.custom_jvp, **options)(fun)
    f.defjvp(rule)
    return f


def custom_vjp(forward: Any, backward: Any, fun: Any = lambda x: x * 2) -> Any:
    f = jax.custom_vjp(fun)
    f.defvjp(forward, backward)
    return f


def doubled(x: Any) -> Any:
    return x * 2, x


CUSTOM: dict[str, Bad] = {
    "no function": Bad(lambda: jax.custom_jvp(3), BadArgument, "custom_jvp takes", "int: 3"),
    "no rule": Bad(lambda: jax.custom_jvp(total)(vector()), BadArgument, "total is a", "none"),
    "no rules": Bad(lambda: jax.custom_vjp(total)(vector()), BadArgument, "total is a", "none"),
    "a rule that is no function": Bad(
        lambda: jax.custom_jvp(total).defjvp(3), BadArgument, "defjvp of total", "int: 3"
    ),
    "rules that are no functions": Bad(
        lambda: jax.custom_vjp(total).defvjp(doubled, 3), BadArgument, "of total: bwd", "int: 3"
    ),
    "a rule without a pair": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: p[0]))(1.0), IllTyped, "must give", "Traced"
    ),
    "a rule's result of another shape": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: (vector(), t[0])))(1.0),
        IllTyped,
        "the result of the jvp rule",
        r"f32\[3\]",
    ),
    "a rule's result of another dtype": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: (jnp.int32(1), t[0])))(1.0),
        IllTyped,
        "the result of the jvp rule",
        "i32",
    ),
    "a rule's tangent of another shape": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: (p[0], vector())))(1.0),
        IllTyped,
        "the tangent given by the jvp rule",
        r"f32\[3\]",
    ),
    "a rule's tangent in another tree": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: (p[0], (t[0],))))(1.0), IllTyped, "struct", r"\*,"
    ),
    "a position that does not exist": Bad(
        lambda: jax.grad(custom_jvp(lambda p, t: (p, t), nondiff_argnums=(3,)))(1.0),
        BadArgument,
        "nondiff_argnums",
        "3",
    ),
    "a keyword-only argument": Bad(
        lambda: jax.grad(lambda x: custom_jvp(lambda p, t: (p, t), lambda x, *, k: x)(x, k=2))(1.0),
        BadArgument,
        "by position only",
        "k",
    ),
    "a closed-over tracer": Bad(
        lambda: jax.grad(lambda y: custom_jvp(lambda p, t: (p[0], t[0]), lambda x: x * y)(1.0))(
            2.0
        ),
        TransformError,
        "closes over a differentiated value",
        "",
    ),
    "a forward rule without a pair": Bad(
        lambda: jax.grad(custom_vjp(lambda x: x, lambda r, g: (g,)))(1.0),
        IllTyped,
        "must",
        "Traced",
    ),
    "a forward rule's result of another shape": Bad(
        lambda: jax.grad(custom_vjp(lambda x: (vector(), x), lambda r, g: (g,)))(1.0),
        IllTyped,
        "the result of the forward rule",
        r"f32\[3\]",
    ),
    "residuals that are strings": Bad(
        lambda: jax.grad(custom_vjp(lambda x: (x * 2, "a"), lambda r, g: (g,)))(1.0),
        IllTyped,
        "fwd of",
        "'a'",
    ),
    "a backward rule without a tuple": Bad(
        lambda: jax.grad(custom_vjp(doubled, lambda r, g: g))(1.0), IllTyped, "a tuple", "Traced"
    ),
    "too many cotangents": Bad(
        lambda: jax.grad(custom_vjp(doubled, lambda r, g: (g, g)))(1.0), IllTyped, "number", "2"
    ),
    "a backward rule's cotangent of another shape": Bad(
        lambda: jax.grad(custom_vjp(doubled, lambda r, g: (vector(),)))(1.0),
        IllTyped,
        "wrong type for x",
        r"f32\[3\]",
    ),
    "a backward rule's cotangent in another tree": Bad(
        lambda: jax.grad(
            custom_vjp(lambda d: (d["a"] * 2, None), lambda r, g: ({"b": g},), lambda d: d["a"] * 2)
        )({"a": 1.0}),
        IllTyped,
        "another structure of cotangents",
        "'b'",
    ),
    "forward mode": Bad(
        lambda: jax.jvp(custom_vjp(doubled, lambda r, g: (g,)), (1.0,), (1.0,)),
        TransformError,
        "no forward one",
        "forward-mode",
    ),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_custom(name: str) -> None:
    check(CUSTOM[name])
