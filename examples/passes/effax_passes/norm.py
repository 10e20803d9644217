"""Find norms in programs, and compute them by a primitive that does not overflow.

``sqrt(sum(x²))`` is infinite in float32 where an element is 1e20, and its derivative at zero is
nan. The primitive :class:`Norm` divides by the largest element first, and its derivative at zero
is zero; a rule finds the composite in programs.

>>> import effax, effax.numpy as jnp
>>> from effax.passes import unwrap
>>> def length(x: effax.Array) -> effax.Array:
...     return jnp.sqrt(jnp.sum(x * x))
>>> before = effax.make_jaxpr(length)(jnp.ones(3)).jaxpr
>>> print(before)
{ lambda ; a:f32[3]. let
    b:f32[3] = mul a a
    c:f32[] = reduce_sum[axes=(0,)] b
    d:f32[] = sqrt c
  in (d,) }
>>> print(unwrap(norms(before)))
{ lambda ; a:f32[3]. let b:f32[] = norm[axes=(0,)] a in (b,) }
>>> x = jnp.array([3e20, 4e20])
>>> print(length(x), effax.jit(length, passes=norms)(x))
inf 5e+20
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import effax.numpy as jnp
from effax import Array, extend
from effax.extend import IllTyped, Linear, NotApplicable, Type, Typing, Val, Value, Writer
from effax.ir.prims import Mul, ReduceSum, Sqrt, Square
from effax.passes import Guarantee, Pass, dce
from effax.transforms import FLOATS, App, Hole, Match, RewriteRule, Sample, rewriting


@dataclass(frozen=True, slots=True)
class Norm(extend.ArrayPrimitive):
    """``sqrt(sum(x²))`` along axes, without overflow."""

    axes: tuple[int, ...]
    name: ClassVar[str] = "norm"

    def typing(self, *ins: Type) -> Typing:
        (x,) = ins
        if not isinstance(x, extend.ArrayType) or not extend.is_float(x.dtype):
            raise IllTyped("norm takes an array of floats", found=str(x))
        if len(set(self.axes)) < len(self.axes) or not set(self.axes) <= set(range(x.ndim)):
            raise IllTyped("norm takes distinct axes of its operand", found=f"{self.axes} of {x}")
        shape = [n for i, n in enumerate(x.shape) if i not in self.axes]
        return Typing((extend.array_type(shape, x.dtype, x.weak),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        wide = x.astype(np.float64)
        largest = np.max(np.abs(wide), axis=self.axes, keepdims=True, initial=0.0)
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        total = np.sum(np.square(wide / scale), axis=self.axes)
        return [np.asarray(np.sqrt(total) * scale.reshape(total.shape), x.dtype)]

    # d|x| = x·dx / |x|, and 0 at zero.
    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (x,), (dx,) = primals, tangents
        (size,) = self.bind(x)
        unit = x / jnp.expand_dims(jnp.where(size == 0, 1, size), self.axes)
        return [size], [None if dx is None else jnp.sum(unit * dx, axis=self.axes)]

    def transpose(
        self, ins: Sequence[Array | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        raise NotApplicable("norm is not linear")

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return Norm(tuple(i + 1 for i in self.axes)).bind(*ins), [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, self.scaled, ins, self.name)

    def scaled(self, x: Array) -> Array:
        largest = jnp.max(abs(x), axis=self.axes, keepdims=True, initial=0)
        scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
        total = jnp.sum(jnp.square(x / scale), axis=self.axes)
        return jnp.sqrt(total) * scale.reshape(total.shape)

    # A maximum, a quotient, a square and a sum for each element.
    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> extend.Work:
        return extend.moved(ins, outs, flops=4 * ins[0].size, transcendentals=outs[0].size)


def norm(x: Array, axes: Sequence[int]) -> Array:
    """Return the norm of ``x`` along axes, which count from 0.

    Raises:
        IllTyped: ``x`` has no floats, or no such axes.
    """
    return Norm(tuple(axes)).bind(x)[0]


def _norm(match: Match) -> App:
    summed = match.prims["sum"]
    assert isinstance(summed, ReduceSum)
    return App(Norm(summed.axes), x)


x = Hole("x")


def _rule(name: str, squared: App) -> RewriteRule:
    sample = Sample(App(Sqrt, App(ReduceSum((1,)), squared)), shape=(2, 3))
    left = App(Sqrt, App(ReduceSum, squared, name="sum"))
    return RewriteRule(name, left, _norm, FLOATS, samples=[sample])


RULES = (
    _rule("sqrt(sum(x x)) = norm(x)", App(Mul, x, x)),
    _rule("sqrt(sum(x²)) = norm(x)", App(Square, x)),
)

LAWS = (Guarantee.SAME_WHERE_FINITE, Guarantee.IDEMPOTENT, Guarantee.NEVER_LARGER)
norms = Pass("find", rewriting(RULES), LAWS) | dce
