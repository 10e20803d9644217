"""Functions with custom batching rules, and rules with symbolic zeros."""

from __future__ import annotations

from typing import Any

import numpy as np


def _counted(jax: Any, jnp: Any) -> Any:
    """Return sin(x) + y with the batching rule 10 cos(x) + y, to see which of the two ran."""

    @jax.custom_batching.custom_vmap
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) + y

    @f.def_vmap
    def rule(n: Any, in_batched: Any, xs: Any, ys: Any) -> Any:
        assert type(in_batched) is list
        assert [np.ndim(xs), np.ndim(ys)] == [int(b) for b in in_batched]
        return jnp.cos(xs) * 10 + ys, True

    return f


def _axis(jnp: Any, n: int = 3) -> Any:
    return jnp.arange(float(n)), jnp.arange(float(n)) + 1


def batching_rules(jax: Any, jnp: Any) -> object:
    f = _counted(jax, jnp)
    xs, ys = _axis(jnp)
    y = jnp.float32(2)
    return (
        f(y, y),
        jax.vmap(f)(xs, ys),
        jax.vmap(f, (0, None))(xs, y),
        jax.vmap(f, (None, 0))(y, ys),
        jax.jit(jax.vmap(f))(xs, ys),
        jax.vmap(jax.jit(f))(xs, ys),
        jax.vmap(jax.vmap(f, (0, None)), (None, 0))(xs, ys),
        jax.vmap(jax.checkpoint(f))(xs, ys),
        jax.vmap(lambda x: f(y=x, x=y))(xs),
    )


def batching_rules_differentiated(jax: Any, jnp: Any) -> object:
    f = _counted(jax, jnp)
    xs, ys = _axis(jnp)
    one = jnp.float32(1)
    return (
        jax.jvp(f, (one, one), (one, one)),
        jax.jvp(jax.vmap(f), (xs, ys), (ys, xs)),
        jax.vmap(lambda x, y: jax.jvp(f, (x, y), (y, x)))(xs, ys),
        jax.grad(lambda x: jax.vmap(f)(x, ys).sum())(xs),
    )


def batching_rules_in_control_flow(jax: Any, jnp: Any) -> object:
    f = _counted(jax, jnp)
    lax = jax.lax
    xs, ys = _axis(jnp)
    return (
        jax.vmap(lambda x, y: lax.scan(lambda c, _: (f(c, y), c), x, None, length=2))(xs, ys),
        jax.vmap(lambda x, y: lax.cond(x > 1, f, lambda x, y: x, x, y))(xs, ys),
        jax.vmap(lambda x, y: lax.fori_loop(0, 3, lambda i, c: f(c, y), x))(xs, ys),
        jax.vmap(lambda x, y: lax.map(lambda z: f(z, y), xs))(xs, ys),
    )


def trees_of_batched_values(jax: Any, jnp: Any) -> object:
    seen: list[Any] = []

    @jax.custom_batching.custom_vmap
    def f(d: Any, z: Any) -> Any:
        return {"a": d["x"] + d["y"] * z, "b": (d["y"], z)}

    @f.def_vmap
    def rule(n: Any, in_batched: Any, d: Any, z: Any) -> Any:
        seen.append((n, in_batched))
        out = {"a": d["x"] + d["y"] * z, "b": (d["y"], z)}
        return out, {"a": True, "b": (False, False)}

    xs, _ = _axis(jnp)
    y = jnp.float32(4)
    axes = ({"x": 0, "y": None}, None)
    return jax.vmap(f, axes)({"x": xs, "y": y}, y), seen


def sequential_batching(jax: Any, jnp: Any) -> object:
    @jax.custom_batching.sequential_vmap
    def f(x: Any, d: Any) -> Any:
        return x + d["k"], x.sum()

    table = jnp.arange(6.0).reshape(2, 3)
    d = {"k": jnp.float32(1)}
    return (
        f(table, d),
        jax.vmap(f, (0, None))(table, d),
        jax.vmap(f, (None, 0))(table, {"k": jnp.arange(2.0)}),
        jax.jit(jax.vmap(f, (0, None)))(table, d),
        jax.vmap(jax.vmap(f, (0, None)), (0, None))(table, d),
        jax.jvp(jax.vmap(lambda x: f(x, d)), (table,), (table,)),
    )


def a_reverse_rule_around_a_batching_rule(jax: Any, jnp: Any) -> object:
    @jax.custom_vjp
    @jax.custom_batching.custom_vmap
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(n: Any, in_batched: Any, xs: Any, ys: Any) -> Any:
        return jnp.cos(xs) * ys, True

    def backward(res: Any, ct: Any) -> Any:
        x, y = res
        return 3 * jnp.cos(x) * y * ct, jnp.sin(x) * ct

    f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)
    xs, ys = _axis(jnp)
    return (
        jax.vmap(f)(xs, ys),
        jax.grad(f)(1.0, 2.0),
        jax.vmap(jax.grad(f, (0, 1)))(xs, ys),
        jax.grad(lambda x: jax.vmap(f)(x, ys).sum())(xs),
    )


def values_in_batching_rules(jax: Any, jnp: Any) -> object:
    table = jnp.arange(4.0)

    @jax.custom_batching.custom_vmap
    def f(x: Any) -> Any:
        return x * table[1]

    @f.def_vmap
    def rule(n: Any, in_batched: Any, xs: Any) -> Any:
        return xs * table[2] + jnp.array([1.0, 2.0, 4.0]) * np.float32(n), True

    def outer(x: Any, y: Any) -> Any:
        g = jax.custom_batching.custom_vmap(lambda x: x * y)
        g.def_vmap(lambda n, b, xs: (xs * y + 1, True))
        return g(x)

    xs, _ = _axis(jnp)
    two = jnp.float32(2)
    return (
        jax.vmap(f)(xs),
        jax.jit(jax.vmap(jax.jit(f)))(xs),
        jax.vmap(outer, (0, None))(xs, two),
        jax.jit(jax.vmap(outer, (0, None)))(xs, two),
    )


def non_differentiable_names(jax: Any, jnp: Any) -> object:
    def scaled(x: Any, k: Any, mode: Any = "sin") -> Any:
        return getattr(jnp, mode)(x) * k

    f = jax.custom_jvp(scaled, nondiff_argnames=("mode",))
    f.defjvp(lambda mode, p, t: (f(*p, mode), getattr(jnp, mode)(p[0]) * t[0] * 5 + t[1]))
    g = jax.custom_vjp(scaled, nondiff_argnums=(1,), nondiff_argnames=("mode",))
    g.defvjp(
        lambda x, k, mode: (g(x, k, mode), x),
        lambda k, mode, x, ct: (getattr(jnp, mode)(x) * k * ct * 7,),
    )
    x = jnp.float32(0.5)
    return (
        jax.grad(f, (0, 1))(x, 2.0),
        jax.grad(lambda x: f(x, 2.0, mode="cos"))(x),
        jax.vmap(jax.grad(lambda x: f(x, k=x, mode="exp")))(jnp.arange(3.0)),
        jax.grad(lambda x: g(x, 2, "cos"))(x),
        jax.jit(jax.grad(lambda x: g(x, 3, mode="exp")))(x),
    )


def arrays_among_non_differentiable_arguments(jax: Any, jnp: Any) -> object:
    def product(k: Any, x: Any) -> Any:
        return x * k

    f = jax.custom_jvp(product, nondiff_argnums=(0,))
    f.defjvp(lambda k, p, t: (f(k, *p), t[0] * k * 3))
    x = jnp.float32(0.5)
    return (
        jax.grad(f, 1)(x, x),
        jax.grad(lambda k: f(k, x))(x),
        jax.grad(lambda k: f(k, k))(x),
        jax.jit(jax.grad(lambda k: f(k, k)))(x),
    )


def symbolic_zeros_in_forward_rules(jax: Any, jnp: Any) -> object:
    zero = jax.custom_derivatives.SymbolicZero

    @jax.custom_jvp
    def f(x: Any, n: Any, y: Any) -> Any:
        return jnp.sin(x) * n + y

    def rule(primals: Any, tangents: Any) -> Any:
        (x, n, y), (dx, dn, dy) = primals, tangents
        assert isinstance(dn, zero)
        assert dn.shape == ()
        dots = [] if isinstance(dx, zero) else [jnp.cos(x) * dx * n]
        dots += [] if isinstance(dy, zero) else [dy * 100]
        return f(x, n, y), sum(dots[1:], dots[0])

    f.defjvp(rule, symbolic_zeros=True)
    xs, _ = _axis(jnp)
    x = jnp.float32(0.5)
    return (
        jax.grad(lambda x: f(x, 2, 3.0))(x),
        jax.grad(lambda y: f(1.0, 2, y))(x),
        jax.grad(lambda x: f(x, 2, x))(x),
        jax.jvp(lambda x, y: f(x, 2, y), (x, x), (x, x)),
        jax.vmap(jax.grad(lambda x: f(x, 2, 3.0)))(xs),
        jax.grad(lambda x: jax.vmap(lambda y: f(x, 2, y))(xs).sum())(x),
        jax.grad(jax.grad(lambda x: f(x, 2, 3.0)))(x),
        jax.jit(jax.grad(lambda y: f(1.0, 2, y)))(x),
    )


def symbolic_zeros_in_reverse_rules(jax: Any, jnp: Any) -> object:
    zero = jax.custom_derivatives.SymbolicZero

    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) + y["a"], x * 2

    def forward(x: Any, y: Any) -> Any:
        assert (x.perturbed, y["a"].perturbed) != (False, False)
        return f(*jax.custom_derivatives.custom_vjp_primal_tree_values((x, y))), x.value

    def backward(x: Any, cts: Any) -> Any:
        total = [0 * x]
        total += [] if isinstance(cts[0], zero) else [jnp.cos(x) * cts[0]]
        total += [] if isinstance(cts[1], zero) else [2 * cts[1]]
        return sum(total), {"a": None if isinstance(cts[0], zero) else cts[0] * 3}

    f.defvjp(forward, backward, symbolic_zeros=True)
    x, y = jnp.float32(0.5), jnp.float32(2)
    return (
        jax.grad(lambda x: f(x, {"a": y})[0])(x),
        jax.grad(lambda y: f(x, {"a": y})[0])(y),
        jax.grad(lambda x: f(x, {"a": y})[1])(x),
        jax.grad(lambda x: sum(f(x, {"a": x})))(x),
        jax.jit(jax.grad(lambda x: sum(f(x, {"a": x}))))(x),
        jax.vmap(jax.grad(lambda x: f(x, {"a": y})[0]))(jnp.arange(3.0)),
    )
