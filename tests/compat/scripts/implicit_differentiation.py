"""Implicit differentiation of fixed points and roots, by a custom rule that solves a linear system."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, start):
    def unfinished(carry):
        previous, x = carry
        return jnp.max(jnp.abs(previous - x)) > 1e-6

    def body(carry):
        _, x = carry
        return x, f(a, x)

    _, x = lax.while_loop(unfinished, body, (start, f(a, start)))
    return x


def forward(f, a, start):
    x = fixed_point(f, a, start)
    return x, (a, x)


def backward(f, residual, x_bar):
    a, x = residual
    _, vjp_a = jax.vjp(lambda a: f(a, x), a)
    step = partial(transposed, f)
    u = fixed_point(step, (a, x, x_bar), x_bar)
    return vjp_a(u)[0], jnp.zeros_like(x)


def transposed(f, packed, u):
    a, x, x_bar = packed
    _, vjp_x = jax.vjp(lambda x: f(a, x), x)
    return x_bar + vjp_x(u)[0]


fixed_point.defvjp(forward, backward)


def newton_sqrt(a):
    update = lambda a, x: 0.5 * (x + a / x)
    return fixed_point(update, a, a)


print(newton_sqrt(2.0), jax.grad(newton_sqrt)(2.0), jax.grad(jax.grad(newton_sqrt))(2.0))
print(jax.jit(jax.vmap(jax.grad(newton_sqrt)))(jnp.array([2.0, 3.0])))
w = jnp.array([[0.2, -0.1], [0.3, 0.1]])
layer = lambda w, x: jnp.tanh(w @ x + 1.0)
print(jax.jacrev(lambda w: fixed_point(layer, w, jnp.zeros(2)))(w))


def solve_cubic(a):
    f = lambda x: x**3 + x - a
    newton = lambda f, x: lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.grad(f)(x), x)
    return lax.custom_root(f, 1.0, newton, lambda g, y: y / g(1.0))


print(solve_cubic(3.0), jax.grad(solve_cubic)(3.0), jax.jvp(solve_cubic, (3.0,), (2.0,)))


def solve(matrix, b):
    return lax.custom_linear_solve(
        lambda x: matrix @ x,
        b,
        lambda mv, b: jnp.linalg.solve(matrix, b),
        lambda vm, b: jnp.linalg.solve(matrix.T, b),
    )


matrix = jnp.array([[3.0, 1.0], [-1.0, 2.0]])
print(
    jax.jacfwd(solve)(matrix, jnp.ones(2)), jax.grad(lambda b: solve(matrix, b).sum())(jnp.ones(2))
)
