"""Gradient, quasi-Newton, proximal, projected and least-squares solvers, with implicit differentiation."""

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import implicit_diff, projection, prox

x = jnp.sin(jnp.arange(24.0)).reshape(8, 3)
y = x @ jnp.array([1.0, -2.0, 0.5]) + 0.1 * jnp.cos(jnp.arange(8.0))


def ridge(w, l2, x, y):
    return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w**2)


start = jnp.zeros(3)
smooth = {
    "gradient": jaxopt.GradientDescent(ridge, maxiter=50, tol=1e-4),
    "bfgs": jaxopt.BFGS(ridge, maxiter=20),
    "lbfgs": jaxopt.LBFGS(ridge, maxiter=20),
    "nonlinear_cg": jaxopt.NonlinearCG(ridge, maxiter=20),
}
for name, solver in smooth.items():
    found = solver.run(start, 0.1, x, y).params
    print(name, jnp.round(found, 3))
    print(name, jnp.round(jax.jacobian(lambda l2: solver.run(start, l2, x, y).params)(0.1), 2))

least = lambda w, x, y: x @ w - y
lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, prox.prox_lasso, maxiter=50)
found = lasso.run(start, hyperparams_prox=0.2, data=(x, y)).params
print("lasso", jnp.round(found, 3))
projected = jaxopt.ProjectedGradient(
    jaxopt.objective.least_squares, projection.projection_simplex, maxiter=50
)
print("simplex", jnp.round(projected.run(start + 1 / 3, data=(x, y)).params, 3))
block = jaxopt.BlockCoordinateDescent(jaxopt.objective.least_squares, prox.prox_lasso, maxiter=20)
print("block", jnp.round(block.run(start, hyperparams_prox=0.2, data=(x, y)).params, 3))
gauss = jaxopt.GaussNewton(lambda w: jnp.sinh(x @ w / 4) - y / 4 + 0.1 * w[0], maxiter=5)
print("gauss_newton", jnp.round(gauss.run(start).params, 3))
levenberg = jaxopt.LevenbergMarquardt(lambda w: jnp.exp(x @ w / 4) - 1 - y / 4, maxiter=20)
print("levenberg", jnp.round(levenberg.run(start).params, 3))
bisection = jaxopt.Bisection(lambda x, a: x**3 - a, lower=0.0, upper=3.0)
print(
    "bisection",
    bisection.run(None, 2.0).params,
    jax.grad(lambda a: bisection.run(None, a).params)(2.0),
)
fixed = jaxopt.FixedPointIteration(lambda x, a: 0.5 * (x + a / x), maxiter=30)
print("fixed", fixed.run(1.0, 2.0).params, jax.grad(lambda a: fixed.run(1.0, a).params)(2.0))
anderson = jaxopt.AndersonAcceleration(lambda x, a: jnp.cos(x) * a, maxiter=30)
print("anderson", anderson.run(jnp.ones(2), 0.9).params)
quadratic = jaxopt.OSQP(maxiter=200)
q, c = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])
a, b = jnp.array([[1.0, 1.0]]), jnp.array([1.0])
print("osqp", jnp.round(quadratic.run(params_obj=(q, c), params_eq=(a, b)).params.primal, 3))
equality = jaxopt.EqualityConstrainedQP()
solve = lambda b: equality.run(params_obj=(q, c), params_eq=(a, b)).params.primal
print("equality", solve(b), jax.jacrev(solve)(b))
armijo = jaxopt.ArmijoSGD(ridge, maxiter=10)
print("armijo", jnp.round(armijo.run(start, 0.1, x, y).params, 3))


@implicit_diff.custom_root(jax.grad(ridge))
def closed_form(init, l2, x, y):
    return jnp.linalg.solve(x.T @ x / 8 + l2 * jnp.eye(3), x.T @ y / 8)


print("root", jax.jacobian(closed_form, argnums=1)(None, 0.1, x, y))
loop = lambda w: jaxopt.loop.while_loop(
    lambda c: jnp.sum(c) < 4, lambda c: c * 1.5, w, 8, unroll=False, jit=True
)
print("loop", loop(jnp.array([0.5, 0.5])))
print(
    "losses",
    jaxopt.loss.multiclass_logistic_loss(1, jnp.array([0.1, 0.7, -0.2])),
    jaxopt.loss.binary_logistic_loss(1, 0.3),
)
print(
    "projections",
    projection.projection_l1_ball(jnp.array([0.7, -1.2]), 1.0),
    projection.projection_box(y[:2], (0.0, 1.0)),
)
