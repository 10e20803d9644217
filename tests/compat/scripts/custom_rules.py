"""Functions with derivatives of their own: clipped gradients, stable formulas, straight-through steps."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.custom_vjp
def clip_gradient(lo, hi, x):
    return x


def clip_fwd(lo, hi, x):
    return x, (lo, hi)


def clip_bwd(bounds, g):
    lo, hi = bounds
    return None, None, jnp.clip(g, lo, hi)


clip_gradient.defvjp(clip_fwd, clip_bwd)
print(jax.vmap(jax.grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x))))(jnp.linspace(0, 6, 7)))


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


print(jax.grad(log1pexp)(3.0), jax.grad(log1pexp)(100.0))
print(jax.jit(jax.vmap(jax.grad(jax.grad(log1pexp))))(jnp.arange(3.0)))


@jax.custom_jvp
def safe_divide(x, y):
    return x / y


safe_divide.defjvps(lambda t, out, x, y: t / y, lambda t, out, x, y: -x * t / y**2)
print(jax.jacfwd(safe_divide, argnums=(0, 1))(1.0, 2.0))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def apply(f, x):
    return f(x)


def apply_fwd(f, x):
    return f(x), jnp.cos(x)


def apply_bwd(f, residual, g):
    return (g * residual * 2.0,)


apply.defvjp(apply_fwd, apply_bwd)
print(*jax.value_and_grad(lambda x: apply(jnp.sin, x) * x)(0.4))


@jax.custom_vjp
def quantize(x):
    return jnp.round(x)


quantize.defvjp(lambda x: (quantize(x), None), lambda _, g: (g,))
print(jax.grad(lambda x: jnp.sum(quantize(x) ** 2))(jnp.array([0.4, 1.7])))


@jax.custom_gradient
def scaled(x):
    return x**2, lambda g: (g * 10.0,)


print(*jax.value_and_grad(scaled)(3.0))


@jax.custom_vjp
def tree_function(point, scale):
    return {"sum": (point["x"] + point["y"]) * scale}


def tree_fwd(point, scale):
    return tree_function(point, scale), (point, scale)


def tree_bwd(residual, g):
    point, scale = residual
    return {"x": g["sum"] * scale, "y": g["sum"] * 0.0}, g["sum"] * point["x"]


tree_function.defvjp(tree_fwd, tree_bwd)
print(jax.grad(lambda p, s: tree_function(p, s)["sum"], argnums=(0, 1))({"x": 2.0, "y": 3.0}, 4.0))
print(jax.lax.stop_gradient(2.0), jax.grad(lambda x: x * jax.lax.stop_gradient(x))(2.0))
