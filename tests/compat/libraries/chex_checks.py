"""Assertions, data classes, variants of tests, fake jit and pmap, and checks at run time."""

import io
import unittest

import chex
import jax
import jax.numpy as jnp
from absl.testing import parameterized


@chex.dataclass
class Parameters:
    x: chex.ArrayDevice
    y: chex.ArrayDevice


params = Parameters(x=jnp.arange(2.0), y=jnp.ones((2, 3)))
print("dataclass", jax.tree_util.tree_map(lambda x: x + 1, params).x, params["y"].shape)
print("replaced", params.replace(x=jnp.zeros(1)).x, sorted(params))
print("sum", jax.jit(lambda p: p.x.sum() + p.y.sum())(params))


def refused(check, *args, **kwargs):
    try:
        check(*args, **kwargs)
    except (AssertionError, ValueError, TypeError):
        return True
    return False


x = jnp.ones((2, 3))
print("shape", refused(chex.assert_shape, x, (2, 3)), refused(chex.assert_shape, x, (3, None)))
print("rank", refused(chex.assert_rank, [x, x], 2), refused(chex.assert_rank, x, 1))
print("type", refused(chex.assert_type, x, float), refused(chex.assert_type, x, jnp.int32))
print("equal", refused(chex.assert_equal_shape, [x, x]), refused(chex.assert_equal_shape, [x, x.T]))
print(
    "trees",
    refused(chex.assert_trees_all_close, params, params),
    refused(chex.assert_trees_all_equal, params, 1),
)
print(
    "shapes", refused(chex.assert_trees_all_equal_shapes_and_dtypes, {"a": x}, {"a": x.astype(int)})
)
print(
    "finite", refused(chex.assert_tree_all_finite, x), refused(chex.assert_tree_all_finite, x / 0)
)
print("scalar", refused(chex.assert_scalar, 1.0), refused(chex.assert_scalar, x))
print(
    "axis",
    refused(chex.assert_axis_dimension, x, 0, 2),
    refused(chex.assert_axis_dimension, x, 1, 2),
)
print("tracers", refused(jax.jit(lambda x: chex.assert_tree_has_only_ndarrays(x) or x), x))
dims = chex.Dimensions(B=2, T=3)
print("dimensions", dims["BT"], refused(chex.assert_shape, x, dims["TB"]))
print(
    "numerical", refused(chex.assert_numerical_grads, jnp.sin, (jnp.ones(2),), order=1, atol=1e-2)
)


@jax.jit
@chex.assert_max_traces(n=1)
def traced_once(x):
    return x * 2


print("traces", traced_once(x)[0, 0], refused(traced_once, x.T))


@chex.chexify
@jax.jit
def positive(x):
    chex.assert_trees_all_close(x, jnp.abs(x))
    return jnp.sqrt(x)


print("chexify", positive(x)[0, 0])
positive(-x)
print("chexify", refused(chex.block_until_chexify_assertions_complete))
with chex.fake_jit():
    print("fake", jax.jit(lambda x: float(x) + 1)(2.0))


class VariantsTest(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True, with_device=True, without_device=True)
    def test_variants(self):
        chex.assert_trees_all_close(self.variant(lambda x, y: x + y)(1, 2), 3)

    @chex.all_variants(with_pmap=False)
    @parameterized.parameters((1.0, 2.0), (3.0, 4.0))
    def test_parameters(self, x, y):
        @self.variant
        def product(x):
            return x * y

        self.assertEqual(float(product(x)), x * y)


suite = unittest.defaultTestLoader.loadTestsFromTestCase(VariantsTest)
result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
print("variants", result.testsRun, len(result.failures), len(result.errors))
