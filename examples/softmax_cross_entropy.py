"""Define a primitive that fuses softmax and cross-entropy.

The loss of a classifier is ``logsumexp(x) - x[label]``. Its derivative in ``x`` is
``softmax(x) - onehot(label)``, which shares the sums and exponentials of the loss. Written with
``log_softmax`` and indexing, the backward pass saves several arrays of the logits' size and
scatters. The primitive returns loss and slope together: the backward pass is one product.

Run it with ``python examples/softmax_cross_entropy.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import ArrayType, IllTyped, Type, Typing
from effax.testing import check_primitive


@dataclass(frozen=True, slots=True)
class SoftmaxCrossEntropy(extend.FunctionPrimitive):
    """``(logits[..., n], labels[...]) -> (loss[...], slope[..., n])``.

    The loss is ``logsumexp(logits) - logits[label]``, and the slope its derivative in the logits,
    ``softmax(logits) - onehot(label)``. A label outside of ``0 <= label < n`` has an onehot of
    zero, and the loss ``logsumexp(logits)``. Narrow floats are summed in single precision.
    """

    name: ClassVar[str] = "softmax_cross_entropy"

    def typing(self, *ins: Type) -> Typing:
        logits, labels = ins
        if (
            not isinstance(logits, ArrayType)
            or not isinstance(labels, ArrayType)
            or not extend.is_float(logits.dtype)
            or not extend.is_integer(labels.dtype)
            or logits.shape[:-1] != labels.shape
            or not logits.shape
            or not logits.shape[-1]
        ):
            raise IllTyped(
                "softmax_cross_entropy takes floats, and an integer for each row of them",
                expected="logits[..., n] and labels[...], of at least one class",
                found=f"{logits} and {labels}",
            )
        return Typing((logits.strong().update(shape=labels.shape), logits.strong()))

    def function(self, logits: Array, labels: Array) -> Sequence[Array]:
        narrow = logits.dtype.itemsize < 4
        x = logits.astype("float32") if narrow else logits
        greatest = x.max(axis=-1, keepdims=True)
        high = jnp.where(jnp.isfinite(greatest), greatest, 0)
        powers = jnp.exp(x - high)
        total = powers.sum(axis=-1, keepdims=True)
        named = is_label(x, labels)
        # A sum of products would be nan for a logit that is masked by -inf.
        right = jnp.where(named, x, 0).sum(axis=-1)
        loss = (jnp.log(total) + high)[..., 0] - right
        slope = powers / total - jnp.where(named, 1, 0)
        return [y.astype(logits.dtype) if narrow else y for y in (loss, slope)]

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (logits, labels), dx = primals, tangents[0]
        loss, slope = self.bind(logits, labels)
        if dx is None:
            return [loss, slope], [None, None]
        # d loss = <slope, dx>, and d softmax = p·(dx - <p, dx>) with p = slope + onehot(label).
        p = slope + jnp.where(is_label(logits, labels), 1, 0)
        inner = (p * dx).sum(axis=-1, keepdims=True)
        return [loss, slope], [(slope * dx).sum(axis=-1), p * (dx - inner)]

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        # Rows are independent, so the batch axis is another axis of rows.
        return self.bind(*extend.with_batch_axis(ins, batched, size)), [True, True]


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Return the loss and the slope of each row."""
    loss, slope = SoftmaxCrossEntropy().bind(logits, labels)
    return loss, slope


def is_label(logits: Array, labels: Array) -> Array:
    """Return a mask of the logits of the labels."""
    n = logits.shape[-1]
    # The labels' dtype may be too narrow for the number of classes.
    counts = labels.dtype if n - 1 <= jnp.iinfo(labels.dtype).max else np.dtype("int32")
    return jnp.arange(n, dtype=counts) == labels.astype(counts)[..., None]


def mean_loss(logits: Array, labels: Array) -> Array:
    """Return the mean loss over rows."""
    return softmax_cross_entropy(logits, labels)[0].mean()


def plain_loss(logits: Array, labels: Array) -> Array:
    """Return the mean loss, computed without the primitive."""
    rows = jnp.arange(labels.shape[0])
    return -effax.nn.log_softmax(logits)[rows, labels].mean()


def main() -> None:
    """Test the primitive, and compare the two backward passes."""
    floats, labels = extend.array_type((2, 5), "float32"), extend.array_type((2,), "int32")
    checked = check_primitive(SoftmaxCrossEntropy(), floats, labels)
    print(f"{len(checked.passed)} laws hold; refused: {list(checked.refused)}\n")

    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(512, 100)).astype(np.float32))
    targets = jnp.asarray(rng.integers(0, 100, 512).astype(np.int32))
    found = effax.grad(mean_loss)(logits, targets)
    expected = effax.grad(plain_loss)(logits, targets)
    print(f"The largest difference between the gradients: {abs(found - expected).max():.1e}")
    losses: tuple[Callable[[Array, Array], Array], ...] = (mean_loss, plain_loss)
    for loss in losses:
        program = effax.make_jaxpr(effax.grad(loss))(logits, targets).jaxpr
        memory = effax.jit(effax.grad(loss)).lower(logits, targets).compile().memory_analysis()
        print(
            f"{loss.__name__}: {len(program.eqns)} equations, {memory.temp_bytes} temporary bytes"
        )


if __name__ == "__main__":
    main()
