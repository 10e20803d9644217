"""Gradients of solutions by every adjoint; stochastic and neural differential equations."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp


def pendulum(t, y, args):
    return jnp.array([y[1], -args[0] * jnp.sin(y[0]) - args[1] * y[1]])


term = diffrax.ODETerm(pendulum)


@eqx.filter_jit
def final(args, adjoint):
    solution = diffrax.diffeqsolve(
        term,
        diffrax.Tsit5(),
        0.0,
        1.0,
        0.1,
        jnp.array([1.0, 0.0]),
        args,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
        adjoint=adjoint,
    )
    return jnp.sum(solution.ys**2)


args = jnp.array([2.0, 0.1])
adjoints = [diffrax.RecursiveCheckpointAdjoint(), diffrax.BacksolveAdjoint()]
for adjoint in adjoints:
    print(type(adjoint).__name__, jax.grad(final)(args, adjoint))
forward = diffrax.ForwardMode()
print("ForwardMode", jax.jacfwd(lambda args: final(args, forward))(args))
direct = diffrax.DirectAdjoint()
print("DirectAdjoint", jax.jvp(lambda a: final(a, direct), (args,), (jnp.ones(2),)))

brownian = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.PRNGKey(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, args: -args * y),
    diffrax.ControlTerm(lambda t, y, args: 0.1, brownian),
)


@jax.jit
def noisy(rate):
    return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.05, 1.0, rate).ys[0]


print("sde", noisy(0.5), jax.grad(noisy)(0.5))


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


field = Field(eqx.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=jax.random.PRNGKey(1)))


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(field, y0):
    saveat = diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 3))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, 0.2, y0, saveat=saveat
    )
    return jnp.mean(solution.ys**2)


value, grads = loss(field, jnp.array([0.5, -0.5]))
print("neural", value, grads.mlp.layers[-1].bias)
ts = jnp.linspace(0.0, 1.0, 5)
coeffs = diffrax.backward_hermite_coefficients(ts, jnp.stack([ts, jnp.sin(4 * ts)], 1))
control = diffrax.CubicInterpolation(ts, coeffs)
print("interpolation", control.evaluate(0.3), control.derivative(0.3))
