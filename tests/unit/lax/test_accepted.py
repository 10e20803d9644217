"""Operands that JAX's functions accept, and those that they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, random
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import DotGeneral
from effax.sharding import NamedSharding, PartitionSpec


@pytest.mark.slow
def test_operands_of_several_dtypes_and_shapes_are_accepted() -> None:
    narrow = jnp.ones(3, jnp.float8_e4m3fn), jnp.ones(3, jnp.float8_e5m2)
    for run in (lambda f: f, effax.jit):
        made = run(lax.dot)(jnp.ones(3, jnp.bfloat16), jnp.ones(3, jnp.int16))
        assert (made.dtype, float(made)) == (jnp.bfloat16, 3)
        wide = run(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32))(*narrow)
        assert (wide.dtype, float(wide)) == (jnp.float32, 3)
        x = run(lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)))(jnp.arange(4.0)[None])
        np.testing.assert_array_equal(np.asarray(x), np.broadcast_to(np.arange(4.0), (2, 3, 4)))
        keys = np.array([1 + 2j, 1 - 1j, 0], np.complex64)
        np.testing.assert_array_equal(np.asarray(run(lax.sort)(keys)), np.sort(keys))
        assert run(lax.betainc)(jnp.ones((3, 1)), 1.0, jnp.ones((1, 4))).shape == (3, 4)
        assert int(run(lambda z: lax.convert_element_type(z, int))(jnp.asarray(1.5 + 2j))) == 1
    with pytest.raises(IllTyped, match="promotes to no other dtype"):
        lax.dot(*narrow)


def test_numbers_of_several_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="numbers of one type"):
        lax.add(0, 0.0)
    with pytest.raises(BadArgument, match="unknown accuracy"):
        lax.exp(0.0, accuracy="best")  # type: ignore[arg-type]  # a Tolerance is meant
    with pytest.raises(BadArgument, match="no tolerance"):
        lax.Tolerance()
    assert float(lax.exp(0.0, accuracy=lax.Tolerance(rtol=1e-3))) == 1


def test_algorithms_of_products_have_at_least_their_precision() -> None:
    def precision(given: object) -> object:
        jaxpr = effax.make_jaxpr(lambda x: lax.dot(x, x, precision=given))(jnp.ones(2)).jaxpr
        prim = jaxpr.eqns[0].prim
        assert isinstance(prim, DotGeneral)
        return prim.precision

    assert precision(lax.DotAlgorithmPreset.F32_F32_F32) == "highest"
    assert precision("BF16_BF16_F32") is None
    assert precision(lax.DotAlgorithm("bfloat16", "bfloat16", "float32", 3, 3, 6)) == "highest"


@pytest.mark.slow
def test_samples_are_placed() -> None:
    mesh = effax.make_mesh((1,), ("x",))
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    made = random.normal(random.key(0), (4,), out_sharding=sharding)
    assert made.sharding.is_equivalent_to(sharding, 1)
    np.testing.assert_array_equal(np.asarray(made), np.asarray(random.normal(random.key(0), (4,))))


@pytest.mark.slow
def test_parts_of_several_sizes_are_exchanged() -> None:
    x = np.array([[1, 2, 2], [3, 4, 0]])
    starts, sizes, places = np.array([[0, 1]] * 2), np.array([[1, 2], [1, 1]]), [[0, 0], [1, 2]]

    def exchange(*parts: effax.Array) -> effax.Array:
        x, starts, sizes, places = parts
        return lax.ragged_all_to_all(
            x, jnp.zeros(4, int), starts, sizes, places, sizes, axis_name="i"
        )

    for run in (lambda f: f, effax.jit):
        given = [jnp.asarray(v) for v in (x, starts, sizes, np.array(places))]
        made = run(effax.vmap(exchange, axis_name="i"))(*given)
        np.testing.assert_array_equal(np.asarray(made), [[1, 3, 0, 0], [2, 2, 4, 0]])
