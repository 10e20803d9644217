"""Operations by which a formula is evaluated on NumPy arrays, written, or differentiated.

A formula is a function of :class:`RealValue` operands. Their ``RealOperations`` apply each
operation: to arrays at once, to the values of a program in lowering, or to pairs of a value and a
tangent (:class:`Dual`). Operations have the names of StableHLO.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np

from effax.ir.primitive import Value
from effax.lazy.dataclasses import dataclass


class RealOperations(ABC):
    """The operations on the values behind :class:`RealValue`."""

    @abstractmethod
    def apply(self, name: str, *xs: object) -> object:
        """Apply an operation on floats, or ``and``, ``or``, ``not`` on booleans."""

    @abstractmethod
    def compare(self, direction: str, x: object, y: object) -> object:
        """Compare by ``LT``, ``LE``, ``GT``, ``GE``, ``EQ`` or ``NE``."""

    @abstractmethod
    def select(self, which: object, yes: object, no: object) -> object:
        """Select ``yes`` where ``which`` is true."""

    @abstractmethod
    def number(self, value: float, like: object) -> object:
        """Return a constant."""

    @abstractmethod
    def loop(
        self,
        state: Sequence[object],
        again: Callable[..., object],
        step: Callable[..., Sequence[object]],
        bound: int,
    ) -> Sequence[object]:
        """Return ``state = step(*state)`` while any of ``again(*state)``, within a bound."""

    @abstractmethod
    def epsilon(self, x: object) -> float:
        """Return the distance from 1 to the next number."""

    def is_small(self, term: object, total: object, rtol: float) -> object:
        """Return whether a term is below ``rtol`` times the total."""
        bound = self.apply("multiply", self.apply("abs", total), self.number(rtol, total))
        return self.compare("LE", self.apply("abs", term), bound)


class RealValue:
    """A number in a formula: an array of floats, or of booleans."""

    __slots__ = ("ops", "value")

    def __init__(self, ops: RealOperations, value: object) -> None:
        self.ops: RealOperations = ops
        self.value: object = value

    def _with(self, name: str, *xs: RealValue) -> RealValue:
        return RealValue(self.ops, self.ops.apply(name, *[x.value for x in xs]))

    def like(self, x: RealValue | float) -> RealValue:
        """Return a number as a constant of this type."""
        return (
            x if isinstance(x, RealValue) else RealValue(self.ops, self.ops.number(x, self.value))
        )

    def _compared(self, direction: str, y: RealValue | float) -> RealValue:
        return RealValue(self.ops, self.ops.compare(direction, self.value, self.like(y).value))

    def __add__(self, y: RealValue | float) -> RealValue:
        return self._with("add", self, self.like(y))

    def __sub__(self, y: RealValue | float) -> RealValue:
        return self._with("subtract", self, self.like(y))

    def __mul__(self, y: RealValue | float) -> RealValue:
        return self._with("multiply", self, self.like(y))

    def __truediv__(self, y: RealValue | float) -> RealValue:
        return self._with("divide", self, self.like(y))

    def __radd__(self, y: float) -> RealValue:
        return self.like(y) + self

    def __rsub__(self, y: float) -> RealValue:
        return self.like(y) - self

    def __rmul__(self, y: float) -> RealValue:
        return self.like(y) * self

    def __rtruediv__(self, y: float) -> RealValue:
        return self.like(y) / self

    def __neg__(self) -> RealValue:
        return self._with("negate", self)

    def __lt__(self, y: RealValue | float) -> RealValue:
        return self._compared("LT", y)

    def __le__(self, y: RealValue | float) -> RealValue:
        return self._compared("LE", y)

    def __gt__(self, y: RealValue | float) -> RealValue:
        return self._compared("GT", y)

    def __ge__(self, y: RealValue | float) -> RealValue:
        return self._compared("GE", y)

    def equals(self, y: RealValue | float) -> RealValue:
        """Return whether the numbers are equal."""
        return self._compared("EQ", y)

    def __and__(self, y: RealValue) -> RealValue:
        return self._with("and", self, y)

    def __or__(self, y: RealValue) -> RealValue:
        return self._with("or", self, y)

    def __invert__(self) -> RealValue:
        return self._with("not", self)

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return self.ops.epsilon(self.value)


def _function(name: str) -> Callable[[RealValue], RealValue]:
    def function(x: RealValue) -> RealValue:
        return RealValue(x.ops, x.ops.apply(name, x.value))

    function.__name__ = name
    return function


absolute: Final = _function("abs")
cosine: Final = _function("cosine")
exp: Final = _function("exponential")
expm1: Final = _function("exponential_minus_one")
erfc: Final = _function("chlo.erfc")
floor: Final = _function("floor")
log: Final = _function("log")
log1p: Final = _function("log_plus_one")
sine: Final = _function("sine")
sqrt: Final = _function("sqrt")


def power(x: RealValue, y: RealValue) -> RealValue:
    """Return ``x ** y``."""
    return RealValue(x.ops, x.ops.apply("power", x.value, y.value))


def where(which: RealValue, yes: RealValue | float, no: RealValue | float) -> RealValue:
    """Return ``yes`` where ``which`` is true, else ``no``; one of them is not a constant."""
    like = yes if isinstance(yes, RealValue) else cast(RealValue, no)
    yes, no = like.like(yes), like.like(no)
    return RealValue(like.ops, like.ops.select(which.value, yes.value, no.value))


def is_nan(x: RealValue) -> RealValue:
    """Return whether ``x`` is nan."""
    return x._compared("NE", x)


def is_small(term: RealValue, total: RealValue) -> RealValue:
    """Return whether a term no longer changes a total, nor its tangent."""
    ops = total.ops
    return RealValue(ops, ops.is_small(term.value, total.value, total.epsilon / 2))


def polynomial(coefficients: Sequence[float], x: RealValue) -> RealValue:
    """Return the polynomial in ``x``, the coefficient of the highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * x + c
    return total


def loop(
    state: Sequence[RealValue],
    again: Callable[..., RealValue],
    step: Callable[..., Sequence[RealValue]],
    bound: int,
) -> list[RealValue]:
    """Return the state after steps while ``again`` is true, for each element, at most ``bound``."""
    ops = state[0].ops

    def reals(values: Sequence[object]) -> list[RealValue]:
        return [RealValue(ops, v) for v in values]

    def next_values(*xs: object) -> list[object]:
        have = reals(xs)
        more = again(*have)
        return [where(more, new, old).value for new, old in zip(step(*have), have, strict=True)]

    start = [x.value for x in state]
    return reals(ops.loop(start, lambda *xs: again(*reals(xs)).value, next_values, bound))


_UFUNCS: Final[dict[str, Callable[..., object]]] = {
    "abs": np.abs,
    "add": np.add,
    "and": np.logical_and,
    "cosine": np.cos,
    "divide": np.divide,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log_plus_one": np.log1p,
    "multiply": np.multiply,
    "negate": np.negative,
    "not": np.logical_not,
    "or": np.logical_or,
    "power": np.power,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
}
_COMPARISONS: Final[dict[str, Callable[..., object]]] = {
    "EQ": np.equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
    "NE": np.not_equal,
}


class OnNumPy(RealOperations):
    """Operations on NumPy arrays."""

    def apply(self, name: str, *xs: object) -> object:
        from effax.ir.prims.common import error_function

        if name == "chlo.erfc":
            return error_function.erfc(np.asarray(xs[0]))
        return _UFUNCS[name](*xs)

    def compare(self, direction: str, x: object, y: object) -> object:
        return _COMPARISONS[direction](x, y)

    def select(self, which: object, yes: object, no: object) -> object:
        return np.where(cast(Value, which), cast(Value, yes), cast(Value, no))

    def number(self, value: float, like: object) -> object:
        return cast(Value, like).dtype.type(value)

    def loop(
        self,
        state: Sequence[object],
        again: Callable[..., object],
        step: Callable[..., Sequence[object]],
        bound: int,
    ) -> Sequence[object]:
        for _ in range(bound):
            if not np.any(cast(Value, again(*state))):
                break
            state = step(*state)
        return state

    def epsilon(self, x: object) -> float:
        return float(np.finfo(cast(Value, x).dtype).eps)


ON_NUMPY: Final = OnNumPy()


def on_numpy(formula: Callable[..., RealValue]) -> Callable[..., Value]:
    """Return a formula as a function of NumPy arrays; narrow floats are computed in float32."""

    def function(*xs: Value) -> Value:
        dtype = xs[0].dtype
        wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
        shape = np.broadcast_shapes(*[x.shape for x in xs])
        # Operations on arrays without axes return scalars, which have other rules of overflow.
        arrays = [np.broadcast_to(x, shape).astype(wide).reshape(-1) for x in xs]
        with np.errstate(all="ignore"):
            found = formula(*[RealValue(ON_NUMPY, x) for x in arrays]).value
        return np.asarray(found).reshape(shape).astype(dtype, copy=False)

    return function


@dataclass(frozen=True)
class Pair:
    """A value and its tangent; None for a tangent of 0."""

    value: object
    tangent: object | None


class Dual(RealOperations):
    """Operations on pairs of values and tangents, by the rules of derivatives."""

    def __init__(self, base: RealOperations) -> None:
        self.base = base

    def apply(self, name: str, *xs: object) -> object:
        pairs = [cast(Pair, x) for x in xs]
        base = self.base
        values = [RealValue(base, x.value) for x in pairs]
        result = RealValue(base, base.apply(name, *[x.value for x in pairs]))
        slopes = _SLOPES.get(name)
        total: RealValue | None = None
        if slopes is not None:
            for x, slope in zip(pairs, slopes, strict=True):
                if x.tangent is not None:
                    part = slope(RealValue(base, x.tangent), result, *values)
                    total = part if total is None else total + part
        return Pair(result.value, None if total is None else total.value)

    def compare(self, direction: str, x: object, y: object) -> object:
        values = (cast(Pair, x).value, cast(Pair, y).value)
        return Pair(self.base.compare(direction, *values), None)

    def select(self, which: object, yes: object, no: object) -> object:
        a, b, chosen = cast(Pair, yes), cast(Pair, no), cast(Pair, which).value
        value = self.base.select(chosen, a.value, b.value)
        if a.tangent is None and b.tangent is None:
            return Pair(value, None)
        tangents = [self.tangent(p) for p in (a, b)]
        return Pair(value, self.base.select(chosen, *tangents))

    def tangent(self, x: Pair) -> object:
        """Return the tangent of a pair, or zeros."""
        return self.base.number(0.0, x.value) if x.tangent is None else x.tangent

    def number(self, value: float, like: object) -> object:
        return Pair(self.base.number(value, cast(Pair, like).value), None)

    def loop(
        self,
        state: Sequence[object],
        again: Callable[..., object],
        step: Callable[..., Sequence[object]],
        bound: int,
    ) -> Sequence[object]:
        n = len(state)

        def pairs(xs: Sequence[object]) -> list[Pair]:
            return [Pair(v, t) for v, t in zip(xs[:n], xs[n:], strict=True)]

        def flat(given: Sequence[object]) -> list[object]:
            found = [cast(Pair, x) for x in given]
            return [*[x.value for x in found], *[self.tangent(x) for x in found]]

        found = self.base.loop(
            flat(state),
            lambda *xs: cast(Pair, again(*pairs(xs))).value,
            lambda *xs: flat(step(*pairs(xs))),
            bound,
        )
        return pairs(found)

    def epsilon(self, x: object) -> float:
        return self.base.epsilon(cast(Pair, x).value)

    def is_small(self, term: object, total: object, rtol: float) -> object:
        a, b = cast(Pair, term), cast(Pair, total)
        small = self.base.is_small(a.value, b.value, rtol)
        if a.tangent is None or b.tangent is None:
            return Pair(small, None)
        settled = self.base.is_small(a.tangent, b.tangent, rtol)
        return Pair(self.base.apply("and", small, settled), None)


def derivative(formula: Callable[..., RealValue], wrt: int) -> Callable[..., RealValue]:
    """Return the derivative of a formula in one of its operands, as a formula."""

    def moved(*xs: RealValue) -> RealValue:
        base = xs[0].ops
        ops = Dual(base)
        one = base.number(1.0, xs[wrt].value)
        pairs = [Pair(x.value, one if i == wrt else None) for i, x in enumerate(xs)]
        return RealValue(
            base, ops.tangent(cast(Pair, formula(*[RealValue(ops, p) for p in pairs]).value))
        )

    return moved


Slope = Callable[..., RealValue]
"""From the tangent of an operand, the result and the operands: the term of the tangent."""

_SLOPES: Final[dict[str, tuple[Slope, ...]]] = {
    "abs": (lambda t, y, a: where(a < 0, -t, t),),
    "add": (lambda t, y, a, b: t, lambda t, y, a, b: t),
    "chlo.erfc": (lambda t, y, a: t * exp(-(a * a)) * (-2 / math.sqrt(math.pi)),),
    "cosine": (lambda t, y, a: -(t * sine(a)),),
    "divide": (lambda t, y, a, b: t / b, lambda t, y, a, b: -(t * y / b)),
    "exponential": (lambda t, y, a: t * y,),
    "exponential_minus_one": (lambda t, y, a: t * (y + 1),),
    "log": (lambda t, y, a: t / a,),
    "log_plus_one": (lambda t, y, a: t / (a + 1),),
    "multiply": (lambda t, y, a, b: t * b, lambda t, y, a, b: t * a),
    "negate": (lambda t, y, a: -t,),
    "power": (
        lambda t, y, a, b: t * b * power(a, b - 1),
        lambda t, y, a, b: t * y * log(a),
    ),
    "sine": (lambda t, y, a: t * cosine(a),),
    "sqrt": (lambda t, y, a: t / (y * 2),),
    "subtract": (lambda t, y, a, b: t, lambda t, y, a, b: -t),
}
