"""Rules of custom_jvp and custom_vjp that are not right: typed errors that say which and how."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import effax.numpy as jnp
from effax.ir.errors import (
    BadArgument,
    BadRule,
    EffaxError,
    IllTyped,
    LeakedTracer,
    TransformError,
)
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
        lambda: jax.grad(custom_jvp(lambda p, t: p[0]))(1.0), IllTyped, "must return", "Traced"
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
        "the tangent returned by the jvp rule",
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
        "not positional",
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
        "cotangents of the wrong structure",
        "'b'",
    ),
    "forward mode": Bad(
        lambda: jax.jvp(custom_vjp(doubled, lambda r, g: (g,)), (1.0,), (1.0,)),
        # Compiled code is not transformed: its lowering raises the error.
        EffaxError,
        "no forward one",
        "forward-mode",
    ),
}


def custom_vmap(rule: Any, fun: Any = lambda x: x * 2) -> Any:
    f = jax.custom_batching.custom_vmap(fun)
    f.def_vmap(rule)
    return jax.vmap(f)


BATCHED: dict[str, Bad] = {
    "no batching rule": Bad(
        lambda: jax.custom_batching.custom_vmap(total)(vector()), BadArgument, "without a b", "none"
    ),
    "a batching rule that is no function": Bad(
        lambda: jax.custom_batching.custom_vmap(total).def_vmap(3), BadArgument, "def_vmap", "int"
    ),
    "a batching rule without a pair": Bad(
        lambda: custom_vmap(lambda n, b, x: x)(vector()), BadRule, "must return", "Traced"
    ),
    "a batched result that is said not to be": Bad(
        lambda: custom_vmap(lambda n, b, x: (x, False))(vector()), BadRule, "wrong type", "3"
    ),
    "a result that is said to be batched": Bad(
        lambda: custom_vmap(lambda n, b, x: (x[0], True))(vector()), BadRule, "wrong type", r"32\["
    ),
    "a batched result of another size": Bad(
        lambda: custom_vmap(lambda n, b, x: (x[1:], True))(vector()), BadRule, "wrong type", "2"
    ),
    "a batched result of another dtype": Bad(
        lambda: custom_vmap(lambda n, b, x: (x.astype(int), True))(vector()),
        BadRule,
        "the result of the batching rule of <lambda> has the wrong type",
        "i32",
    ),
    "a batched result in another tree": Bad(
        lambda: custom_vmap(lambda n, b, x: ((x, x), (True, True)))(vector()),
        BadRule,
        "another structure",
        r"\*, \*",
    ),
    "flags in another tree": Bad(
        lambda: custom_vmap(lambda n, b, x: (x, (True, True)))(vector()),
        BadRule,
        "another structure",
        r"\*, \*",
    ),
    "flags that are numbers": Bad(
        lambda: custom_vmap(lambda n, b, x: (x, 1))(vector()), BadRule, "not a boolean", "int: 1"
    ),
}

kept: list[Any] = []


def keeping(x: Any) -> Any:
    kept[:] = [x]
    return x


LEAKS: dict[str, Bad] = {
    "a backward rule that uses what the forward one kept aside": Bad(
        lambda: jax.grad(custom_vjp(lambda x: (keeping(x * 2), None), lambda r, g: (g * kept[0],)))(
            1.0
        ),
        LeakedTracer,
        "escaped from fwd of <lambda>",
        "side effect",
    ),
    "what a forward rule kept aside": Bad(
        lambda: (
            jax.grad(custom_jvp(lambda p, t: (keeping(p[0] * 2), t[0])))(1.0),
            kept[0] + 1,
        ),
        LeakedTracer,
        "escaped from the jvp rule of <lambda>",
        "side effect",
    ),
    "what a batching rule kept aside": Bad(
        lambda: (custom_vmap(lambda n, b, x: (keeping(x * 2), True))(vector()), kept[0] + 1),
        LeakedTracer,
        "escaped from the batching rule of <lambda>",
        "side effect",
    ),
    "what the function kept aside": Bad(
        lambda: (
            jax.grad(custom_jvp(lambda p, t: (p[0], t[0]), lambda x: keeping(x * 2)))(1.0),
            kept[0] + 1,
        ),
        LeakedTracer,
        r"escaped from custom_jvp\(<lambda>\)",
        "side effect",
    ),
    "what is computed again, kept aside": Bad(
        lambda: (jax.grad(jax.checkpoint(lambda x: keeping(x * 2)))(1.0), kept[0] + 1),
        LeakedTracer,
        r"escaped from checkpoint\(<lambda>\)",
        "side effect",
    ),
}

ALL = CUSTOM | BATCHED | LEAKS


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jitted"])
def test_custom(name: str, wrap: Any) -> None:
    bad = ALL[name]
    check(bad._replace(call=wrap(bad.call)))
