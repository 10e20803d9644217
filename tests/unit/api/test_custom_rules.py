"""custom_rules: which rule serves which transformation, alone and nested."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from returns.pipeline import is_successful

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.analysis.check import check
from effax.ir.errors import BadArgument, TransformError

jax: Any = effax
XS, YS = jnp.arange(3.0), jnp.arange(3.0) + 1
COS, SIN = np.cos, np.sin


def marked(jvp: bool = True, vjp: bool = True, vmap: bool = True) -> Any:
    """sin(x)·y: derivatives are too large, forward 10, reverse 100, batched ones 1000 times."""

    @effax.custom_rules
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    if jvp:

        @f.defjvp
        def pushed(p: Any, t: Any) -> Any:
            return f(*p), 10 * (jnp.cos(p[0]) * p[1] * t[0] + jnp.sin(p[0]) * t[1])

    if vjp:
        f.defvjp(
            lambda x, y: (f(x, y), (x, y)),
            lambda r, g: (100 * jnp.cos(r[0]) * r[1] * g, 100 * jnp.sin(r[0]) * g),
        )
    if vmap:

        @f.def_vmap
        def batched(n: Any, in_batched: Any, x: Any, y: Any) -> Any:
            return 1000 * jnp.sin(x) * y, True

    return f


KINDS = [k for k in product([False, True], repeat=3) if any(k)]


def same(f: Any) -> Any:
    return f


BOTH_WAYS = [(k, same) for k in KINDS] + [(k, jax.jit) for k in KINDS if k[2]]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "wrap"), BOTH_WAYS)
def test_each_transformation_takes_its_rule(kind: Any, wrap: Any) -> None:
    jvp, vjp, vmap = kind
    f = marked(*kind)
    reverse = 100 if vjp else 10 if jvp else 1
    batched = 1000 if vmap else 1
    assert_near(wrap(f)(1.0, 2.0), 2 * SIN(1.0))
    assert_near(wrap(jax.vmap(f))(XS, YS), batched * SIN(XS) * YS)
    assert_near(wrap(jax.grad(f, (0, 1)))(1.0, 2.0), (reverse * 2 * COS(1.0), reverse * SIN(1.0)))
    # The batched derivative is that of each batch element; without derivatives of their own,
    # that of the batching rule.
    of_rule = batched if not (jvp or vjp) else reverse
    assert_near(wrap(jax.vmap(jax.grad(f)))(XS, YS), reverse * COS(XS) * YS)

    def total(x: Any) -> Any:
        return jax.vmap(f)(x, YS).sum()

    assert_near(wrap(jax.grad(total))(XS), of_rule * COS(XS) * YS)

    def shared(x: Any) -> Any:
        return jax.vmap(f, (None, 0))(x, YS).sum()

    assert_near(wrap(jax.grad(shared))(1.0), of_rule * COS(1.0) * YS.sum())


@pytest.mark.parametrize("kind", [k for k in KINDS if k[0] or not k[1]], ids=str)
def test_forward_mode(kind: Any) -> None:
    jvp, vjp, _ = kind
    f, forward, batched = marked(*kind), 10 if kind[0] else 1, 1000 if kind[2] else 1
    of_rule = batched if not (jvp or vjp) else forward
    assert_near(jax.jvp(f, (1.0, 2.0), (3.0, 0.0)), (2 * SIN(1.0), forward * 6 * COS(1.0)))
    assert_near(jax.jacfwd(f)(1.0, 2.0), forward * 2 * COS(1.0))
    assert_near(jax.linearize(f, 1.0, 2.0)[1](3.0, 0.0), forward * 6 * COS(1.0))

    def one(x: Any) -> Any:
        return jax.jvp(f, (x, 2.0), (1.0, 0.0))

    assert_near(jax.vmap(one)(XS), (batched * 2 * SIN(XS), of_rule * 2 * COS(XS)))
    both = jax.jvp(lambda x: jax.vmap(f, (0, None))(x, 2.0), (XS,), (YS,))
    assert_near(both, (batched * 2 * SIN(XS), of_rule * 2 * COS(XS) * YS))

    def dot(x: Any) -> Any:
        return jax.jvp(f, (x, 2.0), (1.0, 0.0))[1]

    assert_near(jax.jvp(dot, (1.0,), (1.0,))[1], -forward * 2 * SIN(1.0))
    assert_near(jax.grad(dot)(1.0), -forward * 2 * SIN(1.0))


def test_reverse_rules_alone_have_no_forward_mode() -> None:
    f = marked(False, True, True)
    with pytest.raises(TransformError, match="no forward one"):
        jax.jvp(f, (1.0, 2.0), (1.0, 0.0))
    with pytest.raises(TransformError, match="no forward one"):
        jax.vmap(lambda x: jax.jvp(f, (x, 2.0), (1.0, 0.0)))(XS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_nested_in_everything(kind: Any) -> None:
    jvp, vjp, _ = kind
    f = marked(*kind)
    k = 100 if vjp else 10 if jvp else 1

    def twice(x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c, 2.0), None), x, None, length=2)[0]

    slope = 4 * COS(2 * SIN(1.0)) * COS(1.0)
    assert_near(jax.grad(twice)(1.0), k * k * slope)
    assert_near(jax.grad(jax.checkpoint(f))(1.0, 2.0), k * 2 * COS(1.0))
    assert_near(jax.grad(jax.grad(f))(1.0, 2.0), -k * 2 * SIN(1.0))
    assert_near(jax.hessian(f)(1.0, 2.0), -k * 2 * SIN(1.0))

    def chosen(x: Any) -> Any:
        return lax.cond(x > 1, lambda: f(x, 2.0), lambda: x)

    assert_near(jax.vmap(jax.grad(chosen))(XS), np.array([1, 1, k * 2 * COS(2.0)]))
    inner = jax.vmap(jax.grad(jax.checkpoint(twice)))(XS)
    compiled = jax.jit(jax.vmap(jax.grad(jax.checkpoint(twice))))(XS)
    np.testing.assert_allclose(compiled, inner, rtol=1e-3)


def test_programs_are_well_formed_at_every_stage() -> None:
    f = marked()

    def forward(x: Any, y: Any) -> Any:
        return jax.jvp(f, (x, y), (x, y))

    programs = [(f, 1.0), (forward, 1.0), (jax.grad(f), 1.0), (jax.vmap(f), XS)]
    for g, x in [*programs, (jax.vmap(forward), XS), (jax.vmap(jax.grad(f)), XS)]:
        assert is_successful(check(effax.make_jaxpr(g)(x, x).jaxpr))


def test_a_rule_may_call_its_function_in_nested_batches() -> None:
    @effax.custom_rules
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), f(p[0] + np.pi / 2) * t[0]))
    f.def_vmap(lambda n, b, xs: (lax.map(f, xs), True))
    table = jnp.linspace(0.0, 1.0, 6).reshape(2, 3)
    assert_near(jax.vmap(jax.vmap(f))(table), SIN(table))
    assert_near(jax.vmap(jax.vmap(jax.grad(jax.grad(f))))(table), -SIN(table))
    assert_near(jax.jit(jax.vmap(jax.vmap(jax.grad(f))))(table), COS(table))


def test_nondiff_arguments_come_first() -> None:
    def applied(g: Any, x: Any, k: Any) -> Any:
        return g(x) * k

    f = jax.custom_rules(applied, nondiff_argnums=(0,), nondiff_argnames="k")
    f.defjvp(lambda g, k, p, t: (f(g, *p, k), 10 * k * t[0]))
    f.defvjp(lambda g, x, k: (f(g, x, k), None), lambda g, k, r, ct: (100 * k * ct,))
    f.def_vmap(lambda n, b, g, k, xs: (g(xs) * k * 1000 * len(b), True))
    assert_near(jax.jvp(lambda x: f(jnp.sin, x, 2), (1.0,), (1.0,))[1], 20.0)
    assert_near(jax.grad(lambda x: f(jnp.sin, x, k=2))(1.0), 200.0)
    assert_near(jax.vmap(lambda x: f(jnp.sin, x, 2))(XS), 2000 * SIN(XS))


def test_methods() -> None:
    class Scaled:
        """Its method has rules."""

        def __init__(self, k: float) -> None:
            self.k = k

        @effax.custom_rules
        def f(self, x: Any) -> Any:
            return x * self.k

    # A method's instance is an argument like the others.
    g = jax.custom_rules(Scaled.f.fun, nondiff_argnums=0)
    g.defjvp(lambda self, p, t: (g(self, *p), 7 * self.k * t[0]))
    assert_near(jax.grad(lambda x: g(Scaled(2.0), x))(1.0), 14.0)


REFUSED = {
    "without rules": (lambda: jax.custom_rules(jnp.sin)(1.0), BadArgument, "without a rule"),
    "no such name": (
        lambda: jax.custom_rules(lambda x: x, nondiff_argnames="y"),
        BadArgument,
        "nondiff_argnames",
    ),
    "rules of arguments beside others": (
        lambda: jax.custom_rules(lambda g, x: x, nondiff_argnums=0).defjvps(None),
        BadArgument,
        "defjvps",
    ),
    "a batching rule of a function that closes over batched values": (
        lambda: jax.vmap(lambda y: closing_itself(y)(1.0 + 0 * y))(YS),
        TransformError,
        "closes over a batched value",
    ),
}


def closing(table: Any) -> Any:
    f = jax.custom_rules(lambda x: x)
    f.def_vmap(lambda n, b, xs: (xs * table[3], True))
    return f


def closing_itself(y: Any) -> Any:
    f = jax.custom_rules(lambda x: x * y)
    f.def_vmap(lambda n, b, xs: (xs * y, True))
    return f


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        call()


def test_values_that_batching_rules_close_over() -> None:
    """Values that the function captures too, few elements or many, expired tracers."""
    assert_near(jax.vmap(closing(jnp.arange(5.0)))(XS), 3 * np.asarray(XS))
    assert_near(jax.vmap(closing(jnp.arange(1000.0)))(XS), 3 * np.asarray(XS))
    assert_near(jax.vmap(closing(jnp.full(1000, 2.0)))(XS), 2 * np.asarray(XS))
    assert_near(jax.vmap(closing(jnp.array([[-0.0, np.nan], [0, 1]]).ravel()))(XS), XS)

    def over(x: Any, y: Any) -> Any:
        return closing_itself(y)(x)

    for g in (over, jax.jit(over)):
        assert_near(jax.vmap(g, (0, None))(XS, 3.0), 3 * np.asarray(XS))
        assert_near(jax.jit(jax.vmap(g, (0, None)))(XS, 3.0), 3 * np.asarray(XS))


def test_masked_batch_elements() -> None:
    """A batching rule must not write for all batch elements under a mask."""

    @effax.custom_rules
    def f(r: Any, x: Any) -> Any:
        r[...] += x
        return x

    f.def_vmap(lambda n, b, r, xs: (add_all(r, xs), True))
    ref = effax.new_ref(0.0)
    jax.vmap(lambda x: f(ref, x))(XS)

    def g(x: Any) -> Any:
        return lax.cond(x > 1, lambda: f(ref, x), lambda: x)

    with pytest.raises(TransformError, match=r"changes a reference|closes over"):
        jax.vmap(g)(XS)


def test_references_in_batching_rules() -> None:
    """An unbatched reference is one for the rule too; a batched one has a cell per element."""

    @effax.custom_batching.custom_vmap
    def f(ref: Any, x: Any) -> Any:
        ref[...] += x
        return ref[...]

    @f.def_vmap
    def rule(n: Any, in_batched: Any, ref: Any, xs: Any) -> Any:
        ref[...] += xs if in_batched[0] else xs.sum()
        return ref[...], in_batched[0]

    for wrap in (same, jax.jit):
        one, many = effax.new_ref(1.0), effax.new_ref(jnp.ones(3))
        total = wrap(jax.vmap(f, (None, 0)))(one, XS)
        np.testing.assert_allclose(total, np.full(3, 4.0))
        assert_near(one[...], 4.0)
        assert_near(wrap(jax.vmap(f))(many, XS), 1 + np.asarray(XS))
        assert_near(many[...], 1 + np.asarray(XS))


def add_all(r: Any, xs: Any) -> Any:
    r[...] += xs.sum()
    return xs


def assert_near(found: Any, expected: Any) -> None:
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(expected)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4)
