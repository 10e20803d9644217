"""Roots, fixed points, least squares and minima, with implicit gradients and checkpointed ones."""

import jax
import jax.numpy as jnp
import optimistix as optx

jax.config.update("jax_enable_x64", True)


def equations(y, args):
    a, b = y
    return jnp.array([jnp.tanh(b) * args + 0.5 - a, a**2 - jnp.sinh(b + 1)])


start = jnp.zeros(2)
for solver in (
    optx.Newton(rtol=1e-8, atol=1e-8),
    optx.Chord(rtol=1e-8, atol=1e-8),
    optx.Dogleg(rtol=1e-8, atol=1e-8),
):
    root = lambda args: optx.root_find(equations, solver, start + 0.5, args).value
    print(type(solver).__name__, root(1.0), jax.jacrev(root)(1.0))
bracket = optx.Bisection(rtol=1e-8, atol=1e-8)
cubic = lambda a: (
    optx.root_find(
        lambda y, a: y**3 - a, bracket, 1.0, a, options={"lower": 0.0, "upper": 4.0}
    ).value
)
print("bisection", cubic(2.0), jax.grad(cubic)(2.0))
fixed = lambda a: (
    optx.fixed_point(
        lambda y, a: 0.5 * (y + a / y), optx.FixedPointIteration(rtol=1e-8, atol=1e-8), 1.0, a
    ).value
)
print("fixed point", fixed(2.0), jax.grad(fixed)(2.0))

x = jnp.linspace(0.0, 1.0, 9)
data = 2.0 * jnp.exp(-1.5 * x) + 0.3


def residuals(y, data):
    return y["a"] * jnp.exp(-y["rate"] * x) + y["c"] - data


guess = {"a": 1.0, "rate": 1.0, "c": 0.0}
for solver in (
    optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8),
    optx.GaussNewton(rtol=1e-8, atol=1e-8),
    optx.IndirectLevenbergMarquardt(rtol=1e-8, atol=1e-8),
    optx.Dogleg(rtol=1e-8, atol=1e-8),
):
    fit = lambda data: optx.least_squares(residuals, solver, guess, data).value
    print(type(solver).__name__, sorted(fit(data).items()))
    print(type(solver).__name__, jax.grad(lambda data: fit(data)["rate"])(data)[:3])


def rosenbrock(y, scale):
    return jnp.sum(scale * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)


for solver in (
    optx.BFGS(rtol=1e-6, atol=1e-6),
    optx.NonlinearCG(rtol=1e-6, atol=1e-6),
    optx.LBFGS(rtol=1e-6, atol=1e-6),
    optx.NelderMead(rtol=1e-6, atol=1e-6),
):
    found = optx.minimise(rosenbrock, solver, jnp.array([0.5, 0.5]), 5.0, max_steps=500)
    print(type(solver).__name__, jnp.round(found.value, 3))
quadratic = lambda y, a: jnp.sum((y - a) ** 2 + y**4)
lowest = lambda a: optx.minimise(quadratic, optx.BFGS(rtol=1e-8, atol=1e-8), start, a).value
print("implicit", jax.jacrev(lowest)(jnp.array([1.0, 2.0])))
adjoint = optx.RecursiveCheckpointAdjoint()
descent = optx.GradientDescent(learning_rate=0.05, rtol=1e-6, atol=1e-6)
through = lambda a: jnp.sum(optx.minimise(quadratic, descent, start, a, adjoint=adjoint).value)
print("checkpointed", jnp.round(jax.grad(through)(jnp.array([1.0, 2.0])), 4))
batched = jax.vmap(
    lambda a: optx.root_find(equations, optx.Newton(rtol=1e-8, atol=1e-8), start + 0.5, a).value
)
print("vmap", batched(jnp.array([0.8, 1.0])))
failed = optx.root_find(
    lambda y, _: y**2 + 1, optx.Newton(rtol=1e-8, atol=1e-8), 0.3, max_steps=4, throw=False
)
print("result", failed.result == optx.RESULTS.nonlinear_max_steps_reached)
