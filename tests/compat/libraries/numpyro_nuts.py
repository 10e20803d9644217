"""Sampling with NUTS and HMC: regression, a hierarchy, transformed parameters, predictions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, MCMC, NUTS, Predictive, log_likelihood
from numpyro.infer.reparam import LocScaleReparam

numpyro.enable_x64()
x = jnp.linspace(-1.0, 1.0, 12)
y = 0.5 + 2.0 * x + 0.1 * jnp.sin(17.0 * x)


def regression(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(a + b * x, sigma), obs=y)


mcmc = MCMC(NUTS(regression), num_warmup=20, num_samples=10, progress_bar=False)
mcmc.run(jax.random.PRNGKey(0), x, y)
samples = mcmc.get_samples()
print("nuts", {name: values[-1] for name, values in samples.items()})
print("steps", mcmc.get_extra_fields()["diverging"].sum())
predictive = Predictive(regression, samples)(jax.random.PRNGKey(1), x)
print("predictive", predictive["y"].shape, predictive["y"][-1, 0])
print("likelihood", log_likelihood(regression, samples, x, y)["y"][-1].sum())

groups = jnp.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2])


def hierarchy(groups, y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 2.0))
    tau = numpyro.sample("tau", dist.LogNormal(0.0, 0.5))
    with numpyro.plate("groups", 3):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("y", dist.StudentT(5.0, theta[groups] + weights[groups], 0.5), obs=y)


model = numpyro.handlers.reparam(hierarchy, config={"theta": LocScaleReparam(0.0)})
mcmc = MCMC(
    HMC(model, step_size=0.1, trajectory_length=0.4),
    num_warmup=10,
    num_samples=5,
    progress_bar=False,
)
mcmc.run(jax.random.PRNGKey(2), groups, y)
print("hmc", mcmc.get_samples()["theta"][-1], mcmc.get_samples()["weights"][-1])
