"""Primitives that are wrong at few places, as their authors might write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

import effax
import effax.numpy as jnp
from effax import Array, extend
from effax.extend import Linear, NotApplicable, Type, Typing, Val, Value, Writer


@dataclass(frozen=True, slots=True)
class KinkedAtZero(extend.Elementwise):
    """``x·|x|``, with the derivative 1 at zero alone."""

    name: ClassVar[str] = "kinked_at_zero"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return x * jnp.abs(x)

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x == 0, 1, 2 * jnp.abs(x))


@dataclass(frozen=True, slots=True)
class KinkedAtOne(extend.Elementwise):
    """``x²``, with the derivative 0 at one alone."""

    name: ClassVar[str] = "kinked_at_one"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return x * x

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x == 1, 0, 2 * x)


@dataclass(frozen=True, slots=True)
class Scaled(extend.ArrayPrimitive):
    """``x·y``, elementwise: right."""

    def typing(self, *ins: Type) -> Typing:
        x, y = ins
        if not isinstance(x, extend.ArrayType) or not isinstance(y, extend.ArrayType):
            raise extend.IllTyped("takes two arrays")
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise extend.IllTyped("takes two arrays of one type", found=f"{x}, {y}")
        return Typing((x.strong(),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        x, y = ins
        return [np.asarray(x * y)]

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (x, y), (dx, dy) = primals, tangents
        parts = [a * b for a, b in ((dx, y), (x, dy)) if a is not None and b is not None]
        return [x * y], [sum(parts[1:], parts[0])]

    def transpose(
        self, ins: Sequence[Array | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        raise NotApplicable("derivatives are products")

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        x, y = extend.with_batch_axis(ins, batched, size)
        return self.bind(x, y), [True]

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, lambda x, y: x * y, ins, self.name)


@dataclass(frozen=True, slots=True)
class WrongForTwo(Scaled):
    """Wrong for batches of two elements."""

    name: ClassVar[str] = "wrong_for_two"

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        x, y = extend.with_batch_axis(ins, batched, size)
        return self.bind(x, y[::-1] if size == 2 else y), [True]


@dataclass(frozen=True, slots=True)
class WrongForMany(Scaled):
    """Wrong for batches of more than two elements."""

    name: ClassVar[str] = "wrong_for_many"

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        x, y = extend.with_batch_axis(ins, batched, size)
        return self.bind(x, y[::-1] if size > 2 else y), [True]


@dataclass(frozen=True, slots=True)
class HalfTangent(Scaled):
    """Drop the second tangent where both operands have one."""

    name: ClassVar[str] = "half_tangent"

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        (x, y), (dx, dy) = primals, tangents
        if dx is not None:
            return [x * y], [dx * y]
        assert dy is not None
        return [x * y], [x * dy]


@dataclass(frozen=True, slots=True)
class CompiledOtherwise(Scaled):
    """Compile to a program that differs at infinities."""

    name: ClassVar[str] = "compiled_otherwise"

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        def clipped(x: Array, y: Array) -> Array:
            return jnp.clip(x * y, -1e30, 1e30)

        return extend.program(w, clipped, ins, self.name)


@dataclass(frozen=True, slots=True)
class WeakResult(Scaled):
    """Return a weak result for strong operands."""

    name: ClassVar[str] = "weak_result"

    def typing(self, *ins: Type) -> Typing:
        (out,) = Scaled.typing(self, *ins).outs
        assert isinstance(out, extend.ArrayType)
        return Typing((out.update(weak=True),))


@dataclass(frozen=True, slots=True)
class TiledWhole(Scaled):
    """Repeat an operand that is not batched by its elements: right for operands of one axis."""

    name: ClassVar[str] = "tiled_whole"

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        x, y = ins
        if not batched[1]:
            y = jnp.repeat(y[..., None], size, axis=-1).T
        if not batched[0]:
            x = jnp.broadcast_to(x, y.shape)
        return self.bind(x, y.reshape(x.shape)), [True]


@dataclass(frozen=True, slots=True)
class Differences(extend.LinearPrimitive):
    """``x[1:] - x[:-1]``, which has no elements if ``x`` has none; its typing says one."""

    name: ClassVar[str] = "differences"

    def typing(self, *ins: Type) -> Typing:
        (x,) = ins
        if not isinstance(x, extend.ArrayType) or len(x.shape) != 1:
            raise extend.IllTyped("takes an array of one axis")
        return Typing((x.update(shape=(abs(x.shape[0] - 1),)),))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        return [np.asarray(x[1:] - x[:-1])]

    def adjoint(self, *cts: Array) -> Sequence[Array | None]:
        (ct,) = cts
        return [jnp.pad(ct, (1, 0)) - jnp.pad(ct, (0, 1))]

    def batch(
        self, ins: Sequence[Array], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        return [effax.vmap(self.differences)(*ins)], batched

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        return extend.program(w, self.differences, ins, self.name)

    def differences(self, x: Array) -> Array:
        return x[1:] - x[:-1]


@dataclass(frozen=True, slots=True)
class StepAboveOne(extend.Elementwise):
    """``x²`` between 0 and 1, and constant elsewhere; the derivative is wrong from 1 to 1.5."""

    name: ClassVar[str] = "step_above_one"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return jnp.clip(x, 0, 1) ** 2

    def derivatives(self, x: Array) -> Array:
        return jnp.where((x < 0) | (x > 1.5), 0, 2 * x)


@dataclass(frozen=True, slots=True)
class ZeroForNan(extend.Elementwise):
    """The positive part, which is 0 at nan where it is evaluated, and nan where it is compiled."""

    name: ClassVar[str] = "zero_for_nan"
    accepts: ClassVar[frozenset[str]] = frozenset({"float"})

    def function(self, x: Array) -> Array:
        return jnp.maximum(x, 0)

    def derivatives(self, x: Array) -> Array:
        return jnp.where(x > 0, 1, 0)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        (x,) = ins
        return [np.asarray(np.fmax(x, 0), x.dtype)]


@dataclass(frozen=True, slots=True)
class SecretRead(extend.RefPrimitive):
    """Add ``x`` to a reference where it is positive, which is a read that it does not declare."""

    name: ClassVar[str] = "secret_read"

    def typing(self, *ins: Type) -> Typing:
        r, _ = ins
        if not isinstance(r, extend.RefType):
            raise extend.IllTyped("takes a reference and an array")
        return Typing((), extend.Row([extend.Accum(extend.ArgIndex(0))]))

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        r, x = ins
        r[...] += np.where(r > 0, x, 0).astype(r.dtype)
        return []

    def discharge(
        self, ins: Sequence[Array], is_ref: Sequence[bool]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        r, x = ins
        return [], [r + jnp.where(r > 0, x, 0), None]

    def jvp(
        self, primals: Sequence[object], tangents: Sequence[object | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        raise NotApplicable("it is for data")

    def transpose(
        self, ins: Sequence[object], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        raise NotApplicable("it is for data")

    def batch(
        self, ins: Sequence[object], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        raise NotApplicable("it is for data")

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        raise NotApplicable("references are discharged first")


F3: Final = extend.array_type((3,), "float32")
R3: Final = extend.ref_type(F3)

WRONG: Final[tuple[tuple[extend.Primitive, tuple[Type, ...]], ...]] = (
    (KinkedAtZero(), (F3,)),
    (KinkedAtOne(), (F3,)),
    (WrongForTwo(), (F3, F3)),
    (WrongForMany(), (F3, F3)),
    (HalfTangent(), (F3, F3)),
    (CompiledOtherwise(), (F3, F3)),
    (WeakResult(), (F3, F3)),
    (SecretRead(), (R3, F3)),
    (TiledWhole(), (F3, F3)),
    (Differences(), (F3,)),
    (StepAboveOne(), (F3,)),
    (ZeroForNan(), (F3,)),
)
