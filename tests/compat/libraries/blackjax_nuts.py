"""NUTS with window adaptation, HMC, MALA, Metropolis, elliptical slice and sequential Monte Carlo."""

import blackjax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(-1.0, 1.0, 10)
y = 0.5 + 2.0 * x


def logdensity(position):
    w, log_scale = position["w"], position["log_scale"]
    residual = (y - w[0] - w[1] * x) / jnp.exp(log_scale)
    return -0.5 * jnp.sum(residual**2) - 10 * log_scale - 0.5 * (jnp.sum(w**2) + log_scale**2)


start = {"w": jnp.zeros(2), "log_scale": 0.0}
key = jax.random.PRNGKey(0)


def sample(kernel, state, count):
    def one(state, key):
        state, info = kernel(key, state)
        return state, info.acceptance_rate

    return jax.lax.scan(one, state, jax.random.split(key, count))


warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(key, start, num_steps=40)
print("adapted", parameters["step_size"], parameters["inverse_mass_matrix"])
nuts = blackjax.nuts(logdensity, **parameters)
state, rates = jax.jit(lambda s: sample(nuts.step, s, 10))(state)
print("nuts", state.position["w"], state.position["log_scale"], rates[-1])

mass = jnp.ones(3)
hmc = blackjax.hmc(logdensity, step_size=0.05, inverse_mass_matrix=mass, num_integration_steps=5)
state, rates = sample(hmc.step, hmc.init(start), 5)
print("hmc", state.position["w"], state.position["log_scale"], rates)
mala = blackjax.mala(logdensity, 0.01)
state, rates = sample(mala.step, mala.init(start), 5)
print("mala", state.position["w"], state.position["log_scale"], rates)
walk = blackjax.additive_step_random_walk(
    logdensity, blackjax.mcmc.random_walk.normal(jnp.ones(3) * 0.1)
)
state, _ = sample(walk.step, walk.init(start), 5)
print("walk", state.position["w"], state.position["log_scale"])
likelihood = lambda w: -0.5 * jnp.sum((y - w[0] - w[1] * x) ** 2)
slice_ = blackjax.elliptical_slice(likelihood, mean=jnp.zeros(2), cov=jnp.eye(2))
state = slice_.init(jnp.zeros(2))
for key_ in jax.random.split(key, 3):
    state, _ = slice_.step(key_, state)
print("slice", state.position)

tempered = blackjax.adaptive_tempered_smc(
    lambda w: -0.5 * jnp.sum(w**2),
    likelihood,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    {
        "step_size": jnp.array([0.1]),
        "inverse_mass_matrix": jnp.ones((1, 2)),
        "num_integration_steps": jnp.array([3]),
    },
    blackjax.smc.resampling.systematic,
    target_ess=0.5,
    num_mcmc_steps=2,
)
particles = tempered.init(jax.random.normal(key, (16, 2)))
for key_ in jax.random.split(key, 2):
    particles, info = jax.jit(tempered.step)(key_, particles)
print("smc", particles.tempering_param, particles.particles.mean(0))

state = blackjax.pathfinder.approximate(
    key, lambda w: likelihood(w) - 0.5 * jnp.sum(w**2), jnp.zeros(2)
)[0]
print("pathfinder", state.position)
