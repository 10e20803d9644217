"""Arrays placed on a mesh of one device: shardings, constraints, shard_map, jit with shardings."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

device = jax.devices()[0]
mesh = Mesh(np.array([device]), ("x",))
sharding = NamedSharding(mesh, P("x"))
print(dict(mesh.shape), mesh.axis_names, tuple(sharding.spec))
array = jax.device_put(jnp.arange(4.0), sharding)
print(array, array.sharding.is_fully_replicated, len(array.addressable_shards))
print(array.addressable_shards[0].data, array.addressable_shards[0].index)
single = jax.device_put(np.ones(2), device)
print(isinstance(single.sharding, SingleDeviceSharding), single.devices() == {device})


@partial(jax.jit, out_shardings=sharding)
def double(x):
    return jax.lax.with_sharding_constraint(x * 2, sharding)


print(double(array), double(array).sharding == sharding)


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())
def total(block):
    return jax.lax.psum(jnp.sum(block), "x")


print(total(array), jax.grad(total)(array))
made = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
print(made.axis_names, made.size)
print(jax.device_get({"a": array, "b": [single]}))
print(jax.jit(lambda x: x + 1, in_shardings=sharding, donate_argnums=0)(jnp.zeros(4)))
print(jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([[1.0, 2.0]])))
print(jax.process_index(), jax.process_count(), jax.local_device_count())
