"""Elementwise mathematical functions: exponential, logarithm, roots, trigonometric, special."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from effax.ir.dtypes import is_inexact_dtype
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive, Typing, Value
from effax.ir.prims.common import error_function
from effax.ir.prims.common import numpy_semantics as m
from effax.ir.prims.common.operands import (
    FLOATS,
    INEXACT,
    NUMBERS,
    Binary,
    Meaning,
    Unary,
    arrays,
    check_dtype,
)
from effax.ir.types import Type
from effax.ir.work import Work, elements, moved
from effax.lazy.dataclasses import dataclass

__all__ = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "Cbrt",
    "Cos",
    "Cosh",
    "Erf",
    "Erfc",
    "Exp",
    "Exp2",
    "Expm1",
    "IntegerPow",
    "Log",
    "Log1p",
    "Logistic",
    "Magnitude",
    "Pow",
    "Rsqrt",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
    "Transcendental",
]


class Transcendental(Unary):
    """A transcendental function of one operand."""

    __slots__ = ()
    transcendental = True


class Exp(Transcendental):
    """e to the power of the operand."""

    name = "exp"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.exp


class Exp2(Transcendental):
    """2 to the power of the operand."""

    name = "exp2"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.exp2


class Expm1(Transcendental):
    """``exp(x) - 1``, accurate near 0."""

    name = "expm1"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.expm1


class Log(Transcendental):
    """The natural logarithm."""

    name = "log"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.log


class Log1p(Transcendental):
    """``log(1 + x)``, accurate near 0."""

    name = "log1p"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.log1p


class Sqrt(Transcendental):
    """The square root."""

    name = "sqrt"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.sqrt


class Magnitude(Transcendental):
    """The square root of a sum of squares, whose derivative at 0 is defined as 0."""

    name = "magnitude"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.sqrt


class Rsqrt(Transcendental):
    """``1 / sqrt(x)``."""

    name = "rsqrt"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.rsqrt


class Cbrt(Transcendental):
    """The real cube root."""

    name = "cbrt"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.cbrt


class Sin(Transcendental):
    """The sine."""

    name = "sin"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.sin


class Cos(Transcendental):
    """The cosine."""

    name = "cos"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.cos


class Tan(Transcendental):
    """The tangent."""

    name = "tan"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.tan


class Asin(Transcendental):
    """The inverse sine."""

    name = "asin"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arcsin


class Acos(Transcendental):
    """The inverse cosine."""

    name = "acos"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arccos


class Atan(Transcendental):
    """The inverse tangent."""

    name = "atan"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arctan


class Atan2(Binary):
    """``atan2(y, x)``: the angle of ``(x, y)``, from -pi to pi."""

    name = "atan2"
    transcendental = True
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = np.arctan2


class Sinh(Transcendental):
    """The hyperbolic sine."""

    name = "sinh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.sinh


class Cosh(Transcendental):
    """The hyperbolic cosine."""

    name = "cosh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.cosh


class Tanh(Transcendental):
    """The hyperbolic tangent."""

    name = "tanh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.tanh


class Asinh(Transcendental):
    """The inverse hyperbolic sine."""

    name = "asinh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arcsinh


class Acosh(Transcendental):
    """The inverse hyperbolic cosine."""

    name = "acosh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arccosh


class Atanh(Transcendental):
    """The inverse hyperbolic tangent."""

    name = "atanh"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = np.arctanh


class Logistic(Transcendental):
    """``1 / (1 + exp(-x))``."""

    name = "logistic"
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.logistic


class Erf(Transcendental):
    """The error function."""

    name = "erf"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = error_function.erf


class Erfc(Transcendental):
    """``1 - erf(x)``, accurate where it is small."""

    name = "erfc"
    accepts: ClassVar[frozenset[str]] = FLOATS
    ufunc: ClassVar[Meaning] = error_function.erfc


@dataclass(frozen=True, slots=True)
class IntegerPow(Primitive):
    """``x ** y`` for a constant integer ``y``."""

    y: int
    name: ClassVar[str] = "integer_pow"
    is_elementwise: ClassVar[bool] = True

    def typing(self, *ins: Type) -> Typing:
        (x,) = arrays(self, ins, 1)
        check_dtype(self, x, NUMBERS)
        if self.y < 0 and not is_inexact_dtype(x.dtype):
            raise IllTyped(
                "integer_pow of integers takes an exponent of at least 0", found=str(self.y)
            )
        return Typing((x,))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        # By repeated squaring: a product for each bit but the first, and for each further 1.
        n = abs(self.y)
        products = max(n.bit_length() - 1, 0) + max(n.bit_count() - 1, 0) + (self.y < 0)
        each = 6 if ins[0].dtype.kind == "c" else 1
        return moved(ins, outs, flops=elements(outs) * products * each)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        return (m.integer_power(ins[0], self.y),)


class Pow(Binary):
    """``x ** y`` of inexact operands of equal dtype."""

    name = "pow"
    transcendental = True
    accepts: ClassVar[frozenset[str]] = INEXACT
    ufunc: ClassVar[Meaning] = m.power
