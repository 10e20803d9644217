from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax.flatten_util import ravel_pytree
from effax.ir.errors import IllTyped


def test_a_tree_round_trips_through_a_vector() -> None:
    tree: Any = {"w": jnp.ones((2, 2)), "b": [jnp.arange(3), 2.0], "none": None}
    flat, unravel = ravel_pytree(tree)
    assert flat.dtype == "float32"
    assert flat.tolist() == [0, 1, 2, 2, 1, 1, 1, 1]
    back = unravel(flat * 2)
    assert effax.tree.structure(back) == effax.tree.structure(tree)
    assert [x.dtype.name for x in effax.tree.leaves(back)] == ["int32", "float32", "float32"]
    assert np.array_equal(back["w"], np.full((2, 2), 2.0))
    assert np.array_equal(back["b"][0], [0, 2, 4])


def test_flattening_composes_with_transformations() -> None:
    params = {"a": jnp.array([1.0, 2.0]), "b": jnp.float32(3.0)}
    flat, unravel = ravel_pytree(params)

    def loss(vector: effax.Array) -> effax.Array:
        p = unravel(vector)
        return (p["a"] ** 2).sum() * p["b"]

    assert effax.jit(effax.grad(loss))(flat).tolist() == [6, 12, 5]
    assert effax.hessian(loss)(flat).tolist() == [[6, 0, 2], [0, 6, 4], [2, 4, 0]]
    ravelled = effax.vmap(lambda a, b: ravel_pytree((a, b))[0])(jnp.ones((3, 2)), jnp.zeros(3))
    assert ravelled.tolist() == [[1, 1, 0]] * 3


def test_complex_and_real_leaves_keep_their_dtypes() -> None:
    flat, unravel = ravel_pytree((jnp.ones(1), jnp.array([1j])))
    assert flat.dtype == "complex64"
    real, imaginary = unravel(flat)
    assert real.dtype == "float32"
    assert imaginary.dtype == "complex64"


def test_a_tree_without_leaves() -> None:
    flat, unravel = ravel_pytree({"a": None})
    assert flat.shape == (0,)
    assert unravel(flat) == {"a": None}


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "bool", "complex64"])
def test_leaves_of_one_dtype_take_that_of_the_vector(dtype: str) -> None:
    flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": jnp.zeros((1, 1))})
    for back in (unravel(flat.astype(dtype)), effax.jit(unravel)(flat.astype(dtype))):
        assert [x.dtype.name for x in effax.tree.leaves(back)] == [dtype] * 2
        assert back["a"].tolist() == [1, 1]
        assert back["b"].shape == (1, 1)


def test_a_vector_of_another_type_is_rejected() -> None:
    flat, unravel = ravel_pytree([jnp.ones(2), jnp.ones(1), 1])
    with pytest.raises(IllTyped, match=r"expected: float32\[4\]"):
        unravel(flat[:2])
    with pytest.raises(IllTyped, match=r"found:    int32\[4\]") as caught:
        unravel(flat.astype("int32"))
    assert "astype('float32')" in str(caught.value.remedy)
    with pytest.raises(IllTyped, match="a leaf of ravel_pytree"):
        ravel_pytree(["no number"])


def test_inverses_of_trees_of_one_structure_are_equal() -> None:
    first, second = (ravel_pytree({"a": jnp.ones(2), "b": i})[1] for i in (1, 2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != ravel_pytree({"a": jnp.ones(3), "b": 1})[1]
