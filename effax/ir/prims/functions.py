"""Functions of analysis, elementwise: exponential, logarithm, roots, circular, special."""

from __future__ import annotations

import numpy as np

from effax.ir.prims import error_function
from effax.ir.prims import meanings as m
from effax.ir.prims.operands import FLOATS, INEXACT, Binary, Unary


class Exp(Unary):
    """e to the operand."""

    name = "exp"
    accepts = INEXACT
    ufunc = np.exp


class Exp2(Unary):
    """2 to the operand."""

    name = "exp2"
    accepts = INEXACT
    ufunc = np.exp2


class Expm1(Unary):
    """``exp(x) - 1``, accurate near 0."""

    name = "expm1"
    accepts = INEXACT
    ufunc = m.expm1


class Log(Unary):
    """The natural logarithm."""

    name = "log"
    accepts = INEXACT
    ufunc = np.log


class Log1p(Unary):
    """``log(1 + x)``, accurate near 0."""

    name = "log1p"
    accepts = INEXACT
    ufunc = m.log1p


class Sqrt(Unary):
    """The square root."""

    name = "sqrt"
    accepts = INEXACT
    ufunc = np.sqrt


class Rsqrt(Unary):
    """``1 / sqrt(x)``."""

    name = "rsqrt"
    accepts = INEXACT
    ufunc = m.rsqrt


class Cbrt(Unary):
    """The real cube root."""

    name = "cbrt"
    accepts = FLOATS
    ufunc = np.cbrt


class Sin(Unary):
    """The sine."""

    name = "sin"
    accepts = INEXACT
    ufunc = np.sin


class Cos(Unary):
    """The cosine."""

    name = "cos"
    accepts = INEXACT
    ufunc = np.cos


class Tan(Unary):
    """The tangent."""

    name = "tan"
    accepts = INEXACT
    ufunc = np.tan


class Asin(Unary):
    """The inverse sine."""

    name = "asin"
    accepts = INEXACT
    ufunc = np.arcsin


class Acos(Unary):
    """The inverse cosine."""

    name = "acos"
    accepts = INEXACT
    ufunc = np.arccos


class Atan(Unary):
    """The inverse tangent."""

    name = "atan"
    accepts = INEXACT
    ufunc = np.arctan


class Atan2(Binary):
    """``atan2(y, x)``: the angle of ``(x, y)``, from -pi to pi."""

    name = "atan2"
    accepts = FLOATS
    ufunc = np.arctan2


class Sinh(Unary):
    """The hyperbolic sine."""

    name = "sinh"
    accepts = INEXACT
    ufunc = np.sinh


class Cosh(Unary):
    """The hyperbolic cosine."""

    name = "cosh"
    accepts = INEXACT
    ufunc = np.cosh


class Tanh(Unary):
    """The hyperbolic tangent."""

    name = "tanh"
    accepts = INEXACT
    ufunc = np.tanh


class Asinh(Unary):
    """The inverse hyperbolic sine."""

    name = "asinh"
    accepts = INEXACT
    ufunc = np.arcsinh


class Acosh(Unary):
    """The inverse hyperbolic cosine."""

    name = "acosh"
    accepts = INEXACT
    ufunc = np.arccosh


class Atanh(Unary):
    """The inverse hyperbolic tangent."""

    name = "atanh"
    accepts = INEXACT
    ufunc = np.arctanh


class Logistic(Unary):
    """``1 / (1 + exp(-x))``."""

    name = "logistic"
    accepts = INEXACT
    ufunc = m.logistic


class Erf(Unary):
    """The error function."""

    name = "erf"
    accepts = FLOATS
    ufunc = error_function.erf


class Erfc(Unary):
    """``1 - erf(x)``, accurate where it is small."""

    name = "erfc"
    accepts = FLOATS
    ufunc = error_function.erfc
