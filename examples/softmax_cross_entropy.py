"""A primitive declared outside of effax: softmax and cross-entropy in one.

The loss of a classifier is ``logsumexp(x) - x[label]``. Its derivative in ``x`` is
``softmax(x) - onehot(label)``, which has the sums and exponentials of the loss itself. Written with
``log_softmax`` and an index, the backward pass keeps several arrays of the logits' size and
scatters. The primitive gives loss and slope at once: the backward pass is one product.

Run it with ``python examples/softmax_cross_entropy.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import (
    ArrayType,
    IllTyped,
    Linear,
    NotApplicable,
    Type,
    Typing,
    Val,
    Value,
    Writer,
)
from effax.testing import check_primitive


@dataclass(frozen=True, slots=True)
class SoftmaxCrossEntropy(extend.ArrayPrimitive):
    """``(logits[..., n], labels[...]) -> (loss[...], slope[..., n])``.

    The loss is ``logsumexp(logits) - logits[label]``, and the slope its derivative in the logits,
    ``softmax(logits) - onehot(label)``. A label outside of ``0 <= label < n`` names no class: its
    onehot is zero, and the loss the whole ``logsumexp``.
    """

    name: ClassVar[str] = "softmax_cross_entropy"

    def typing(self, *ins: Type) -> Typing:
        logits, labels = ins
        if (
            not isinstance(logits, ArrayType)
            or not isinstance(labels, ArrayType)
            or logits.dtype.kind != "f"
            or labels.dtype.kind not in "iu"
            or logits.shape[:-1] != labels.shape
            or not logits.shape
        ):
            raise IllTyped(
                "softmax_cross_entropy takes floats, and an integer for each row of them",
                expected="logits[..., n] and labels[...]",
                found=f"{logits} and {labels}",
            )
        return Typing((logits.strong().update(shape=labels.shape), logits.strong()))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        logits, labels = ins
        high = logits.max(axis=-1, keepdims=True)
        powers = np.exp(logits - high)
        total = powers.sum(axis=-1, keepdims=True)
        onehot = np.arange(logits.shape[-1]) == labels[..., None]
        right = np.where(onehot, logits, 0).sum(axis=-1)
        loss = (np.log(total) + high)[..., 0] - right
        return [loss.astype(logits.dtype), (powers / total - onehot).astype(logits.dtype)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        logits, labels = primals
        loss, slope = softmax_cross_entropy(logits, labels)
        dx = tangents[0]
        if dx is None:
            return [loss, slope], [None, None]
        # d loss = <slope, dx>, and d softmax = p·(dx - <p, dx>) with p = slope + onehot(label).
        p = slope + onehot(logits, labels)
        inner = (p * dx).sum(axis=-1, keepdims=True)
        return [loss, slope], [(slope * dx).sum(axis=-1), p * (dx - inner)]

    def transpose(self, ins: Sequence[Any | Linear], cts: Sequence[Any]) -> Sequence[Any]:
        raise NotApplicable("it is not linear, and its tangents are products")

    def batch(
        self, ins: Sequence[Any], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Any], Sequence[bool]]:
        # Rows are independent, so a batch axis is one more axis of rows.
        logits, labels = [
            x if has else jnp.broadcast_to(x, (size, *x.shape))
            for x, has in zip(ins, batched, strict=True)
        ]
        return softmax_cross_entropy(logits, labels), (True, True)

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, fused, ins, self.name)


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Loss and slope of each row."""
    loss, slope = SoftmaxCrossEntropy().bind(logits, labels)
    return loss, slope


def onehot(logits: Array, labels: Array) -> Array:
    """1 where a logit is that of the label, else 0."""
    classes = jnp.arange(logits.shape[-1], dtype=labels.dtype)
    return (classes == labels[..., None]).astype(logits.dtype)


def fused(logits: Array, labels: Array) -> tuple[Array, Array]:
    """What the primitive is compiled as."""
    high = logits.max(axis=-1, keepdims=True)
    powers = jnp.exp(logits - high)
    total = powers.sum(axis=-1, keepdims=True)
    right = onehot(logits, labels)
    loss = (jnp.log(total) + high)[..., 0] - (right * logits).sum(axis=-1)
    return loss, powers / total - right


def mean_loss(logits: Array, labels: Array) -> Array:
    """The mean over rows."""
    return softmax_cross_entropy(logits, labels)[0].mean()


def plain_loss(logits: Array, labels: Array) -> Array:
    """The same, of parts."""
    rows = jnp.arange(labels.shape[0])
    return -effax.nn.log_softmax(logits)[rows, labels].mean()


def main() -> None:
    """Prove the primitive, and compare what the two backward passes are made of."""
    floats, labels = extend.array_type((2, 5), "float32"), extend.array_type((2,), "int32")
    checked = check_primitive(SoftmaxCrossEntropy(), floats, labels)
    print(f"{len(checked.held)} laws hold; does not apply: {list(checked.refused)}\n")

    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(512, 100)).astype(np.float32))
    targets = jnp.asarray(rng.integers(0, 100, 512).astype(np.int32))
    found = effax.grad(mean_loss)(logits, targets)
    expected = effax.grad(plain_loss)(logits, targets)
    print(f"The greatest difference between the gradients: {abs(found - expected).max():.1e}")
    losses: tuple[Callable[[Array, Array], Array], ...] = (mean_loss, plain_loss)
    for loss in losses:
        program = effax.make_jaxpr(effax.grad(loss))(logits, targets).jaxpr
        memory = effax.jit(effax.grad(loss)).lower(logits, targets).compile().memory_analysis()
        print(
            f"{loss.__name__}: {len(program.eqns)} equations, {memory.temp_bytes} temporary bytes"
        )


if __name__ == "__main__":
    main()
