"""Interpreters of jaxprs that a user writes: evaluation, inversion, counting of operations."""

from functools import wraps

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core


def evaluate(jaxpr, consts, *args):
    env = {}

    def read(var):
        return var.val if type(var) is core.Literal else env[var]

    def write(var, value):
        env[var] = value

    list(map(write, jaxpr.invars, args))
    list(map(write, jaxpr.constvars, consts))
    for eqn in jaxpr.eqns:
        values = list(map(read, eqn.invars))
        params = eqn.primitive.get_bind_params(eqn.params)
        out = eqn.primitive.bind(*values, **params)
        list(map(write, eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return list(map(read, jaxpr.outvars))


def f(x):
    return jnp.exp(jnp.tanh(x)) * 2.0 + jnp.sum(x)


closed = jax.make_jaxpr(f)(jnp.ones(3))
print([eqn.primitive.name for eqn in closed.jaxpr.eqns])
print(evaluate(closed.jaxpr, closed.consts, jnp.ones(3)), f(jnp.ones(3)))

registry = {}
registry[lax.exp_p] = jnp.log
registry[lax.tanh_p] = jnp.arctanh
registry[lax.neg_p] = lambda x: -x


def inverse(fun):
    @wraps(fun)
    def wrapped(*args):
        closed = jax.make_jaxpr(fun)(*args)
        env = dict(zip(closed.jaxpr.outvars, args))
        for eqn in closed.jaxpr.eqns[::-1]:
            if eqn.primitive not in registry:
                raise NotImplementedError(eqn.primitive)
            env[eqn.invars[0]] = registry[eqn.primitive](env[eqn.outvars[0]])
        return env[closed.jaxpr.invars[0]]

    return wrapped


g = lambda x: jnp.exp(-jnp.tanh(x))
print(
    inverse(g)(g(0.3)),
    jax.grad(inverse(g))(g(0.3)),
    jax.vmap(jax.jit(inverse(g)))(g(jnp.arange(3.0) / 3)),
)
try:
    inverse(jnp.sin)(0.1)
except NotImplementedError as error:
    print("NotImplementedError", error)


def count(jaxpr, counts):
    for eqn in jaxpr.eqns:
        counts[eqn.primitive.name] = counts.get(eqn.primitive.name, 0) + 1
        for value in eqn.params.values():
            if isinstance(value, core.ClosedJaxpr):
                count(value.jaxpr, counts)
    return counts


looped = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) * x, x))(1.0)
print(sorted(name for name in count(looped.jaxpr, {}) if name in {"sin", "mul", "scan"}))
for eqn in jax.make_jaxpr(lambda x, y: jnp.dot(x, y))(jnp.ones((2, 3)), jnp.ones(3)).jaxpr.eqns:
    print(eqn.primitive, eqn.params["dimension_numbers"], [v.aval.shape for v in eqn.invars])
