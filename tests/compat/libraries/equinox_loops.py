"""Checkpointed and bounded loops with gradients; errors at run time; custom rules of filtered functions."""

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp


def iterate(kind, **options):
    def run(x, w):
        def body(carry):
            i, x = carry
            return i + 1, jnp.sin(x * w) + 0.1 * x

        _, x = eqxi.while_loop(lambda c: c[0] < 9, body, (0, x), kind=kind, max_steps=16, **options)
        return jnp.sum(x)

    return run


x, w = jnp.array([0.5, -1.0, 2.0]), jnp.array([1.5, 0.7, 1.1])
for kind, options in (("lax", {}), ("checkpointed", {"checkpoints": 4}), ("bounded", {})):
    run = jax.jit(iterate(kind, **options))
    print(kind, run(x, w))
    if kind != "lax":
        print(kind, jax.jit(jax.grad(iterate(kind, **options), argnums=(0, 1)))(x, w))

batched = jax.vmap(jax.grad(iterate("checkpointed", checkpoints=3)), in_axes=(0, None))
print("batched", batched(jnp.stack([x, -x]), w))


def history(x):
    buffer = jnp.zeros((10, 3))

    def body(carry):
        i, x, buffer = carry
        return i + 1, x * 0.9, buffer.at[i].set(x)

    _, _, buffer = eqxi.while_loop(
        lambda c: c[0] < 7,
        body,
        (0, x, buffer),
        kind="checkpointed",
        checkpoints=3,
        max_steps=10,
        buffers=lambda c: c[2],
    )
    return jnp.sum(buffer**2)


print("buffers", jax.jit(jax.value_and_grad(history))(x))


def scanned(x):
    return eqxi.scan(lambda c, x: (c * x, c + x), x[0], x, kind="checkpointed", checkpoints=2)


print("scan", scanned(x), jax.grad(lambda x: scanned(x)[0])(x))


@eqx.filter_custom_vjp
def clipped(x, low):
    return jnp.maximum(x, low)


@clipped.def_fwd
def clipped_fwd(perturbed, x, low):
    return clipped(x, low), x > low


@clipped.def_bwd
def clipped_bwd(residual, grad, perturbed, x, low):
    return jnp.where(residual, grad, 0.5)


print("custom", eqx.filter_grad(lambda x: jnp.sum(clipped(x, 0.0)))(x))


@eqx.filter_jit
def checked(x):
    x = eqx.error_if(x, jnp.any(x < 0), "x must not be negative")
    return jnp.sqrt(x)


print("checked", checked(jnp.array([1.0, 4.0])))
try:
    checked(jnp.array([1.0, -4.0])).block_until_ready()
except RuntimeError as error:
    print("raises", "x must not be negative" in str(error))


print("nextafter", eqxi.nextafter(jnp.array(1.0)) > 1, eqxi.prevbefore(jnp.array(1.0)) < 1)
print("noinline", jax.grad(lambda x: eqxi.noinline(jnp.sin)(x))(0.5))
