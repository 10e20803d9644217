from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import ops
from effax.ir.errors import ConcretizationError, IllTyped
from effax.testing import check_grads

Segments = Callable[..., effax.Array]
CASES = [
    (ops.segment_sum, np.sum, 0),
    (ops.segment_prod, np.prod, 1),
    (ops.segment_max, np.max, -np.inf),
    (ops.segment_min, np.min, np.inf),
]


@pytest.mark.parametrize(("function", "reference", "of_none"), CASES)
@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_segments_are_reduced(
    function: Segments, reference: Callable[..., np.ndarray], of_none: float, shape: tuple[int, ...]
) -> None:
    data = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    ids = np.array([2, 0, 2, -1, 4, 9])
    expected = np.full((5, *shape[1:]), of_none, np.float32)
    for k in (0, 2, 4):
        expected[k] = reference(data[ids == k], axis=0)
    found = function(data, jnp.array(ids), 5)
    compiled = effax.jit(lambda d, i: function(d, i, 5))(data, jnp.array(ids))
    for out in (found, compiled):
        assert np.allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("function", [case[0] for case in CASES])
def test_derivatives(function: Segments) -> None:
    data = jnp.array([0.5, -1.0, 2.0, 3.0])
    check_grads(lambda d: function(d, jnp.array([0, 1, 0, 5]), 2), (data,), order=2)


def test_the_number_of_segments_defaults_to_the_largest_known_id() -> None:
    assert ops.segment_sum(jnp.ones(3), jnp.array([0, 3, 3])).tolist() == [1, 0, 0, 2]
    assert ops.segment_sum(jnp.ones(0), jnp.zeros(0, int)).shape == (0,)
    with pytest.raises(ConcretizationError):
        effax.jit(ops.segment_sum)(jnp.ones(3), jnp.array([0, 3, 3]))


def test_integers_have_their_own_bounds() -> None:
    assert ops.segment_max(jnp.array([1, 2]), jnp.array([1, 1]), 2).tolist() == [-(2**31), 2]
    assert ops.segment_min(jnp.array([1, 2]), jnp.array([1, 1]), 2).tolist() == [2**31 - 1, 1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32"])
def test_the_number_of_segments_may_exceed_the_dtype_of_the_ids(dtype: str) -> None:
    found = ops.segment_sum(jnp.ones(3), jnp.array([0, 1, 1], dtype), 300)
    assert found.shape == (300,)
    assert found[:3].tolist() == [1, 2, 0]


def test_ids_of_the_wrong_type_or_shape_are_rejected() -> None:
    with pytest.raises(IllTyped, match="segment_sum takes one integer per row"):
        ops.segment_sum(jnp.ones(3), jnp.ones(3))
    with pytest.raises(IllTyped, match="shape"):
        ops.segment_max(jnp.ones(3), jnp.array([0, 1]))
