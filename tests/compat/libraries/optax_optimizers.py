"""Every optimizer, ten steps each; L-BFGS with its line search; projections."""

import jax
import jax.numpy as jnp
import optax


def loss(params):
    w, b = params["w"], params["b"]
    return jnp.sum((w @ jnp.array([1.0, -2.0]) - jnp.array([0.5, 1.5, -1.0])) ** 2) + jnp.sum(b**4)


start = {"w": jnp.arange(6.0).reshape(3, 2) / 6 + 0.1, "b": jnp.array([0.5, -0.25])}

optimizers = {
    "adabelief": optax.adabelief(0.05),
    "adadelta": optax.adadelta(0.5),
    "adafactor": optax.adafactor(0.05, min_dim_size_to_factor=2),
    "adagrad": optax.adagrad(0.1),
    "adam": optax.adam(0.05),
    "adamax": optax.adamax(0.05),
    "adamaxw": optax.adamaxw(0.05),
    "adamw": optax.adamw(0.05),
    "adan": optax.adan(0.05),
    "amsgrad": optax.amsgrad(0.05),
    "fromage": optax.fromage(0.05),
    "lamb": optax.lamb(0.05),
    "lars": optax.lars(0.05),
    "lion": optax.lion(0.02),
    "momentum": optax.sgd(0.01, momentum=0.9),
    "nadam": optax.nadam(0.05),
    "nadamw": optax.nadamw(0.05),
    "nesterov": optax.sgd(0.01, momentum=0.9, nesterov=True),
    "noisy_sgd": optax.noisy_sgd(0.01, key=0),
    "novograd": optax.novograd(0.05),
    "optimistic_adam_v2": optax.optimistic_adam_v2(0.05),
    "optimistic_gradient_descent": optax.optimistic_gradient_descent(0.01),
    "radam": optax.radam(0.05),
    "rmsprop": optax.rmsprop(0.02, centered=True),
    "rprop": optax.rprop(0.02),
    "sgd": optax.sgd(0.01),
    "sign_sgd": optax.sign_sgd(0.02),
    "sm3": optax.sm3(0.05),
    "yogi": optax.yogi(0.05),
}


def run(optimizer):
    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    carry = (start, optimizer.init(start))
    (params, _), _ = jax.lax.scan(step, carry, None, length=10)
    return params


def run_all(start):
    return {name: run(optimizer) for name, optimizer in optimizers.items()}


for name, params in jax.jit(run_all)(start).items():
    print(name, loss(params), params["w"][0], params["b"])

polyak = optax.polyak_sgd(max_learning_rate=0.1)
params, state = start, polyak.init(start)
for _ in range(5):
    value, grads = jax.value_and_grad(loss)(params)
    updates, state = polyak.update(grads, state, params, value=value)
    params = optax.apply_updates(params, updates)
print("polyak_sgd", loss(params))

lbfgs = optax.lbfgs()
value_and_grad = optax.value_and_grad_from_state(loss)


@jax.jit
def search(params, state):
    value, grads = value_and_grad(params, state=state)
    updates, state = lbfgs.update(grads, state, params, value=value, grad=grads, value_fn=loss)
    return optax.apply_updates(params, updates), state


params, state = start, lbfgs.init(start)
for _ in range(4):
    params, state = search(params, state)
    print("lbfgs", jnp.round(loss(params), 4))

x = jnp.array([0.7, -1.2, 2.0])
print("simplex", optax.projections.projection_simplex(x))
print("l1", optax.projections.projection_l1_ball(x, 1.0))
print("l2", optax.projections.projection_l2_ball(x, 1.0))
print("box", optax.projections.projection_box(x, -1.0, 1.0))
