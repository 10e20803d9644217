"""Distributions, and bijectors whose inverse and log-determinant come from the jaxpr of a function."""

import distrax
import jax
import jax.numpy as jnp

x = jnp.array([0.5, 1.5, -0.7])
functions = {
    "affine": lambda x: 2.0 * x + 1.0,
    "exp": lambda x: jnp.exp(x) - 3.0,
    "tanh": lambda x: jnp.tanh(x / 2.0),
    "sinh": lambda x: jnp.sinh(x) * 0.5,
    "log1p": lambda x: jnp.log1p(jnp.exp(x)),
    "jitted": jax.jit(lambda x: -jnp.expm1(x)),
    "power": lambda x: 1.0 / (1.0 + jnp.exp(-x)),
}
for name, function in functions.items():
    bijector = distrax.Lambda(function)
    y = bijector.forward(x)
    print(name, y, bijector.inverse(y), bijector.forward_log_det_jacobian(x))

flow = distrax.Chain(
    [
        distrax.Tanh(),
        distrax.ScalarAffine(shift=0.5, scale=2.0),
        distrax.Inverse(distrax.Sigmoid()),
    ]
)
y, log_det = flow.forward_and_log_det(jax.nn.sigmoid(x))
print("chain", y, log_det, flow.inverse(y))
block = distrax.Block(distrax.Lambda(jnp.exp), 1)
print("block", block.forward_and_log_det(x))
normal = distrax.MultivariateNormalDiag(jnp.zeros(3), jnp.ones(3))
transformed = distrax.Transformed(normal, block)
value, log_prob = transformed.sample_and_log_prob(seed=jax.random.PRNGKey(0))
print("transformed", value, log_prob, transformed.log_prob(value))
mask = jnp.array([True, False, True])
coupling = distrax.MaskedCoupling(
    mask,
    conditioner=lambda x: jnp.stack([jnp.sin(x), jnp.cos(x)]),
    bijector=lambda p: distrax.ScalarAffine(p[0], log_scale=p[1]),
)
print("coupling", coupling.forward_and_log_det(x), coupling.inverse(coupling.forward(x)))
spline = distrax.RationalQuadraticSpline(jnp.sin(jnp.arange(13.0)), 0.0, 1.0)
print("spline", spline.forward_and_log_det(jnp.array([0.2, 0.8])))
triangular = distrax.TriangularLinear(jnp.array([[2.0, 0.0], [1.0, 3.0]]))
print("triangular", triangular.forward_and_log_det(x[:2]), triangular.inverse(x[:2]))

key = jax.random.PRNGKey(1)
distributions = {
    "bernoulli": distrax.Bernoulli(probs=0.3),
    "beta": distrax.Beta(2.0, 3.0),
    "categorical": distrax.Categorical(logits=jnp.array([0.1, 0.5, -0.3])),
    "dirichlet": distrax.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    "gamma": distrax.Gamma(2.0, 3.0),
    "gumbel": distrax.Gumbel(0.0, 1.0),
    "laplace": distrax.Laplace(0.0, 1.0),
    "logistic": distrax.Logistic(0.0, 1.0),
    "multinomial": distrax.Multinomial(5, probs=jnp.array([0.2, 0.3, 0.5])),
    "full": distrax.MultivariateNormalFullCovariance(
        jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])
    ),
    "normal": distrax.Normal(0.0, 1.0),
    "one_hot": distrax.OneHotCategorical(probs=jnp.array([0.2, 0.8])),
    "uniform": distrax.Uniform(0.0, 2.0),
    "mixture": distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.ones(2) / 2), distrax.Normal(jnp.arange(2.0), 1.0)
    ),
}
for name, distribution in distributions.items():
    value = distribution.sample(seed=key)
    print(name, value, distribution.log_prob(value))
print("kl", distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0)))
print("entropy", distributions["categorical"].entropy(), distributions["normal"].entropy())
print("gradient", jax.grad(lambda s: distrax.Normal(0.0, s).log_prob(0.3))(1.5))
hidden = distrax.HMM(
    distrax.Categorical(probs=jnp.array([0.6, 0.4])),
    distrax.Categorical(probs=jnp.array([[0.7, 0.3], [0.2, 0.8]])),
    distrax.Normal(jnp.array([0.0, 2.0]), jnp.ones(2)),
)
print(
    "hmm", hidden.forward(jnp.array([0.1, 1.9, 2.1]))[0], hidden.viterbi(jnp.array([0.1, 1.9, 2.1]))
)
