"""Regression with Gaussian processes: kernels, gradients of the likelihood, conditioning, quasiseparable solver."""

import jax
import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels, transforms

jax.config.update("jax_enable_x64", True)
x = jnp.sort(jnp.sin(jnp.arange(10.0)) * 3)
y = jnp.sin(x) + 0.1 * jnp.cos(7 * x)


def build(theta, x):
    kernel = jnp.exp(theta["log_amp"]) * kernels.Matern32(jnp.exp(theta["log_scale"]))
    return GaussianProcess(kernel, x, diag=jnp.exp(theta["log_diag"]), mean=theta["mean"])


def loss(theta):
    return -build(theta, x).log_probability(y)


theta = {"mean": 0.1, "log_amp": 0.2, "log_scale": 0.3, "log_diag": -2.0}
value, grads = jax.jit(jax.value_and_grad(loss))(theta)
print("loss", value, sorted(grads.items()))
for _ in range(5):
    grads = jax.grad(loss)(theta)
    theta = {name: theta[name] - 0.02 * grads[name] for name in theta}
print("trained", sorted(theta.items()))
points = jnp.linspace(-3.0, 3.0, 4)
found = build(theta, x).condition(y, points)
print("conditioned", found.log_probability, found.gp.loc, found.gp.variance)
print("sampled", build(theta, points).sample(jax.random.PRNGKey(0)))
print("mean", build(theta, x).predict(y, points, return_var=True))

pairs = jnp.stack([x, x**2], 1)
composed = 1.5 * kernels.ExpSquared(2.0) + kernels.RationalQuadratic(alpha=1.0) * kernels.Cosine(
    1.0
)
print("composed", composed(x[:2], x[:3]))
for kernel in (
    kernels.Exp(1.0),
    kernels.Matern52(1.5),
    kernels.ExpSineSquared(scale=1.0, gamma=0.5),
    kernels.DotProduct(),
    kernels.Polynomial(order=2),
):
    print(type(kernel).__name__, kernel(pairs[:2], pairs[2:4]))
linear = transforms.Linear(jnp.array([0.5, 2.0]), kernels.ExpSquared())
cholesky = transforms.Cholesky(jnp.array([[1.0, 0.0], [0.3, 0.8]]), kernels.ExpSquared())
subspace = transforms.Subspace(0, kernels.ExpSquared())
print("transforms", [kernel(pairs[:1], pairs[1:3]) for kernel in (linear, cholesky, subspace)])


def fast(scale):
    kernel = kernels.quasisep.Matern32(scale=scale) + kernels.quasisep.SHO(
        omega=2.0, quality=1.5, sigma=0.5
    )
    return GaussianProcess(kernel, x, diag=0.1).log_probability(y)


print("quasisep", jax.jit(jax.value_and_grad(fast))(1.2))
noisy = GaussianProcess(kernels.ExpSquared(), x, noise=tinygp.noise.Diagonal(0.1 + 0.05 * x**2))
print("noise", noisy.log_probability(y))
