"""Convolutions: the evaluator against NumPy, XLA against the evaluator, both against JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.ir.errors import BadArgument, IllTyped
from tests.unit.lowering.compiled import agree, applied
from tests.unit.transforms.array_cases import convolutions, normal

X = normal(2, 6, 5, 4, dtype="float32")
W = normal(3, 2, 4, 6, dtype="float32")
Z = normal(1, 2, 5, dtype="complex64")
LAYOUT = ("NHWC", "HWIO", "NHWC")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_compiled_as_evaluated(dtype: str) -> None:
    for prim, a, b in convolutions():
        if dtype == "float32" or len(a) < 4:
            given = [np.round(3 * normal(*s, seed=i)) for i, s in enumerate((a, b))]
            operands = [np.asarray(jnp.asarray(x, dtype)) for x in given]
            agree(applied(prim, *operands), operands)


WRAPS: list[Any] = [lambda f: f, effax.jit]


@pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jitted"])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (2, 0), (0, 3)])
def test_convolutions_over_no_examples(axes: tuple[int | None, int | None], wrap: Any) -> None:
    def convolved(x: Any, w: Any) -> Any:
        return lax.conv(x, w, (1,), "VALID")

    x, w = (
        jnp.ones(s if axis is None else (*s[:axis], 0, *s[axis:]))
        for s, axis in zip(((2, 1, 5), (4, 1, 2)), axes, strict=True)
    )
    batched: Any = effax.vmap(convolved, axes)

    def total(x: Any, w: Any) -> Any:
        return batched(x, w).sum()

    def one(x: Any, w: Any) -> Any:
        return convolved(x, w).sum()

    assert wrap(batched)(x, w).shape == (0, 2, 4, 4)
    grads = wrap(effax.grad(total, (0, 1)))(x, w)
    assert [g.shape for g in grads] == [x.shape, w.shape]
    assert not any(np.asarray(g).any() for g in grads)
    each = effax.vmap(effax.grad(one, (0, 1)), axes)
    assert [g.shape for g in wrap(each)(x, w)] == [(0, 2, 1, 5), (0, 4, 1, 2)]


CALLS: dict[str, tuple[Any, ...]] = {
    "plain": ((1, 1), "VALID"),
    "same": ((2, 1), "SAME"),
    "same lower": ((2, 2), "SAME_LOWER"),
    "numbers": ((1, 2), [(1, -1), (0, 2)]),
    "apart": ((1, 1), [(1, 1), (0, 0)], (2, 3), (1, 2)),
}


@pytest.mark.jax
@pytest.mark.parametrize("name", CALLS)
def test_results_agree_with_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    options: dict[str, Any] = {"dimension_numbers": LAYOUT}
    ours = lax.conv_general_dilated(X, W, *CALLS[name], **options)
    theirs = jax.lax.conv_general_dilated(X, W, *CALLS[name], **options)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.jax
def test_groups_and_complex_numbers_and_transposes_as_in_jax() -> None:
    jax = pytest.importorskip("jax")
    w = normal(6, 2, 2, dtype="float32")
    x = normal(4, 4, 5, dtype="float32")

    def calls(m: Any) -> list[Any]:
        conv = m.lax.conv_general_dilated
        return [
            conv(x, w, (1,), "SAME", feature_group_count=2),
            conv(x[:, :2], w, (1,), "SAME", batch_group_count=2),
            conv(Z, normal(3, 2, 2, dtype="complex64"), (1,), "VALID"),
            m.lax.conv_transpose(X, W, (2, 3), "SAME"),
            m.lax.conv_transpose(X, W, (2, 1), "VALID", rhs_dilation=(1, 2)),
            m.lax.conv_transpose(X, W.swapaxes(2, 3), (1, 1), "SAME", transpose_kernel=True),
            m.numpy.convolve(x[0, 0], w[0, 0], "same"),
            m.numpy.correlate(Z[0, 0], Z[0, 1, :2], "full"),
            m.numpy.correlate(Z[0, 0, :2], Z[0, 1], "same"),
            m.numpy.convolve(np.arange(3), np.arange(2)),
        ]

    for have, ct_spec in zip(calls(effax), calls(jax), strict=True):
        assert have.dtype == ct_spec.dtype
        np.testing.assert_allclose(np.asarray(have), np.asarray(ct_spec), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(5, 2), (2, 5), (4, 3), (3, 3), (1, 4)])
def test_vectors_as_in_numpy(mode: Any, n: int, m: int) -> None:
    a, v = normal(n, dtype="complex64"), normal(m, seed=1, dtype="complex64")
    for ours, theirs in ((jnp.convolve, np.convolve), (jnp.correlate, np.correlate)):
        np.testing.assert_allclose(
            np.asarray(ours(a, v, mode)), theirs(a, v, mode), rtol=1e-5, atol=1e-5
        )


def test_rules_of_convolutions_are_convolutions() -> None:
    """The gradient and a batch of a convolution are convolutions, without unrolling."""

    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(lax.conv(x, w, (1,), "SAME"))

    x, w = normal(2, 3, 5, dtype="float32"), normal(4, 3, 3, dtype="float32")
    made = effax.make_jaxpr(effax.grad(loss, (0, 1)))(x, w).jaxpr
    # The value, which jit leaves out, and two cotangents.
    assert sum(e.prim.name == "conv_general_dilated" for e in made.eqns) == 3
    many = effax.vmap(partial(lax.conv, window_strides=(1,), padding="SAME"))
    batched = effax.make_jaxpr(many)(np.stack([x, x]), np.stack([w, w])).jaxpr
    assert sum(e.prim.name == "conv_general_dilated" for e in batched.eqns) == 1


def test_bad_input() -> None:
    x, w = normal(2, 3, 5, dtype="float32"), normal(4, 2, 3, dtype="float32")
    with pytest.raises(IllTyped, match="features that do not match"):
        lax.conv(x, w, (1,), "SAME")
    with pytest.raises(BadArgument, match="unknown padding"):
        lax.conv(x, w, (1,), "WIDE")
    with pytest.raises(BadArgument, match="dimension_numbers must name the axes"):
        lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHX"))
    with pytest.raises(IllTyped, match="positive"):
        lax.conv(x[:, :2], w, (0,), [(0, 0)])
    with pytest.raises(IllTyped, match="axes of batch"):
        lax.conv(x[:, :2], w, (1, 1), [(0, 0)])
    with pytest.raises(IllTyped, match="groups of the batch"):
        lax.conv_general_dilated(x, x, (1,), "SAME", batch_group_count=3)
    with pytest.raises(IllTyped, match="two vectors"):
        jnp.convolve(x, w)
    with pytest.raises(BadArgument, match="full, same or valid"):
        jnp.convolve(x[0, 0], w[0, 0], "wide")
