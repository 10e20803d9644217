"""Variational inference with SVI, guides and optimizers; effect handlers; distributions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro import handlers
from numpyro.distributions import constraints
from numpyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoDelta, AutoMultivariateNormal, AutoNormal
from numpyro.infer.util import log_density

data = jnp.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


def model(data):
    f = numpyro.sample("f", dist.Beta(2.0, 2.0))
    with numpyro.plate("N", data.shape[0]):
        numpyro.sample("obs", dist.Bernoulli(f), obs=data)


def guide(data):
    a = numpyro.param("a", 2.0, constraint=constraints.positive)
    b = numpyro.param("b", 2.0, constraint=constraints.positive)
    numpyro.sample("f", dist.Beta(a, b))


svi = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
result = svi.run(jax.random.PRNGKey(0), 20, data, progress_bar=False)
print("svi", result.params, result.losses[-1])

x = jnp.linspace(-1.0, 1.0, 8)


def regression(x, y):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.Gamma(2.0, 2.0))
    numpyro.sample("y", dist.Normal(w[0] + w[1] * x, scale), obs=y)


for kind in (AutoNormal, AutoMultivariateNormal, AutoDelta):
    automatic = kind(regression)
    svi = SVI(
        regression,
        automatic,
        optax.adam(0.05),
        TraceMeanField_ELBO() if kind is AutoNormal else Trace_ELBO(),
    )
    result = svi.run(jax.random.PRNGKey(1), 10, x, 2 * x, progress_bar=False)
    print(kind.__name__, result.losses[-1], automatic.median(result.params)["w"])

density, trace = log_density(regression, (x, 2 * x), {}, {"w": jnp.ones(2), "scale": 0.5})
print("density", density, sorted(trace))
gradient = jax.grad(lambda w: log_density(regression, (x, 2 * x), {}, {"w": w, "scale": 0.5})[0])
print("gradient", gradient(jnp.ones(2)))
seeded = handlers.seed(handlers.condition(regression, {"scale": 1.0}), 3)
print("trace", handlers.trace(seeded).get_trace(x, None)["w"]["value"])
scaled = handlers.scale(regression, scale=2.0)
print(
    "substituted",
    log_density(handlers.substitute(scaled, {"w": jnp.ones(2), "scale": 1.0}), (x, x), {}, {})[0],
)

key = jax.random.PRNGKey(4)
distributions = {
    "beta": dist.Beta(2.0, 3.0),
    "binomial": dist.Binomial(5, 0.3),
    "categorical": dist.Categorical(jnp.array([0.2, 0.3, 0.5])),
    "cauchy": dist.Cauchy(0.0, 1.0),
    "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    "exponential": dist.Exponential(2.0),
    "gamma": dist.Gamma(2.0, 3.0),
    "gumbel": dist.Gumbel(0.0, 1.0),
    "laplace": dist.Laplace(0.0, 1.0),
    "lkj": dist.LKJCholesky(3, 1.5),
    "mixture": dist.MixtureSameFamily(
        dist.Categorical(jnp.ones(2) / 2), dist.Normal(jnp.arange(2.0), 1.0)
    ),
    "multivariate": dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])),
    "negative": dist.NegativeBinomial2(3.0, 2.0),
    "pareto": dist.Pareto(1.0, 3.0),
    "poisson": dist.Poisson(4.0),
    "student": dist.StudentT(3.0, 0.0, 1.0),
    "truncated": dist.TruncatedNormal(0.5, 1.0, low=0.0, high=2.0),
    "von_mises": dist.VonMises(0.5, 2.0),
    "weibull": dist.Weibull(1.0, 2.0),
}
for name, distribution in distributions.items():
    value = distribution.sample(key)
    print(name, value, distribution.log_prob(value))
