"""Special functions: gamma and its kin, Bessel, and the inverse error function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import ForwardOfFunction, bind1, program_of
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import shared_docs
from effax.ir import prims as p
from effax.ir.dtypes import is_float
from effax.ir.errors import IllTyped
from effax.ir.primitive import Primitive
from effax.ir.prims import CustomJvp
from effax.ir.state import cached
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType
from effax.lax import elementwise as el
from effax.lax.elementwise import (
    UnaryFunction,
    operands,
    stretched,
    unary_function,
)

__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf_inv", "igamma", "igamma_grad_a",
    "igammac", "lgamma", "polygamma", "random_gamma_grad", "zeta",
]  # fmt: skip

lgamma: Final[UnaryFunction] = unary_function(p.Lgamma(), "lgamma")
digamma: Final[UnaryFunction] = unary_function(p.Digamma(), "digamma")
bessel_i0e: Final[UnaryFunction] = unary_function(p.BesselI0e(), "bessel_i0e")
bessel_i1e: Final[UnaryFunction] = unary_function(p.BesselI1e(), "bessel_i1e")


_OPERAND: Final = "array or Python scalar; operands have one dtype and shape."
_documented: Final = shared_docs(
    dict.fromkeys("amqx", _OPERAND), "Array of the common shape of the operands."
)


def _applied(prim: Primitive, *xs: ArrayLike) -> Array:
    return bind1(prim, *stretched(operands(prim.name, *xs)))


@_documented
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of order ``m`` of ``digamma(x)``.

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.polygamma(jnp.array([1.0]), 1.0)
    Array([1.644934], dtype=float32)
    """
    return _applied(p.Polygamma(), m, x)


@_documented
def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Return the sum of ``(q + k) ** -x`` for k = 0, 1, 2, ...

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.zeta(jnp.array([2.0]), 1.0)
    Array([1.644934], dtype=float32)
    """
    return _applied(p.Zeta(), x, q)


@_documented
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the probability up to ``x`` of gamma variates of shape ``a``.

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.igamma(jnp.array([1.0]), 2.0)
    Array([0.86466473], dtype=float32)
    """
    return _applied(p.Igamma(), a, x)


@_documented
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the probability above ``x`` of gamma variates of shape ``a``.

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.igammac(jnp.array([1.0]), 2.0)
    Array([0.13533528], dtype=float32)
    """
    return _applied(p.Igammac(), a, x)


@_documented
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of ``igamma(a, x)`` in ``a``.

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.igamma_grad_a(jnp.array([1.0]), 1.0)
    Array([-0.43172967], dtype=float32)
    """
    return _applied(p.IgammaGradA(), a, x)


@_documented
def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of gamma variates ``x`` in the shape.

    Raises:
        IllTyped: an operand is not an array, or dtypes or shapes do not fit.

    >>> lax.random_gamma_grad(jnp.array([1.0]), 1.0)
    Array([1.173563], dtype=float32)
    """
    return _applied(p.RandomGammaGrad(), a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the probability up to ``x`` of beta variates of parameters ``a`` and ``b``.

    Args:
        a: positive array or scalar.
        b: positive array or scalar.
        x: array or scalar between 0 and 1.

    Returns:
        Array of the common shape and dtype; nan where an operand is out of range.

    Raises:
        IllTyped: dtypes or shapes do not fit.

    >>> lax.betainc(jnp.array([1.0]), 1.0, 0.25)
    Array([0.25], dtype=float32)
    """
    return bind1(p.RegularizedIncompleteBeta(), *stretched(operands("betainc", a, b, x)))


# Coefficients of M. Giles, "Approximating the erfinv function" (2010), in single precision:
# in w - 2.5 for the central part, and in sqrt(w) - 3 for the tails, where w = -log(1 - x²).
_CENTRAL: Final = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAILS: Final = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    """Return the polynomial in ``x``, the coefficient of the highest power first."""
    result = el.add(el.mul(x, coefficients[0]), coefficients[1])
    for c in coefficients[2:]:
        result = el.add(el.mul(result, x), c)
    return result


def _single(x: Array) -> Array:
    """Return the inverse to single precision, in any dtype."""
    w = el.neg(el.log1p(el.mul(x, el.neg(x))))
    tails = _horner(_TAILS, el.sub(el.sqrt(w), 3.0))
    slope = el.select(el.lt(w, 5.0), _horner(_CENTRAL, el.sub(w, 2.5)), tails)
    return el.select(el.eq(el.abs(x), 1.0), el.mul(x, math.inf), el.mul(slope, x))


def _double(x: Array) -> Array:
    """Refine the single precision result by Halley's method on erf(y) = x."""
    size = el.abs(x)
    rest = el.sub(1.0, size)
    y = el.select(el.lt(size, 0.999), _single(size), large_argument(rest))
    for _ in range(3):
        # Near 1, erf(y) - x loses all digits; (1 - x) - erfc(y) keeps them.
        off = el.select(el.lt(size, 0.5), el.sub(el.erf(y), size), el.sub(rest, el.erfc(y)))
        slope = el.mul(el.exp(el.neg(el.square(y))), 2 / math.sqrt(math.pi))
        step = el.div(off, slope)
        # Halley's correction: erf'' / erf' = -2y.
        y = el.sub(y, el.div(step, el.add(el.mul(y, step), 1.0)))
    y = el.select(el.eq(size, 1.0), math.inf, y)
    return el.mul(el.sign(x), y)


def large_argument(rest: Array) -> Array:
    """Return an approximation of y with erfc(y) = rest: erfc(y) = exp(-y²) / (y √π) for large y."""
    logarithm = el.neg(el.log(rest))
    y = el.sqrt(logarithm)
    for _ in range(2):
        y = el.sqrt(el.sub(logarithm, el.log(el.mul(y, math.sqrt(math.pi)))))
    return y


def _erf_inv(x: Array) -> Array:
    if x.dtype == np.float64:
        return _double(x)
    if x.dtype == np.float32:
        return _single(x)
    wide = _single(el.convert_element_type(x, np.float32))
    return el.convert_element_type(wide, x.dtype)


@cached(maxsize=1 << 8)
def _call(type_: ArrayType) -> CustomJvp:
    """Return the call of the function on operands of a type, with its derivative."""
    function = program_of(lambda x: [_erf_inv(x)], "erf_inv", type_)
    return CustomJvp(function, ForwardOfFunction(_erf_inv_jvp, (type_,), "erf_inv"), 0, "erf_inv")


def _erf_inv_jvp(x: Array, tangent: Array) -> list[Array]:
    # d erf⁻¹(x) = √π/2 · exp(erf⁻¹(x)²) · dx
    y = bind1(_call(x.type), x)
    slope = el.mul(el.exp(el.square(y)), math.sqrt(math.pi) / 2)
    return [y, el.mul(tangent, slope)]


def erf_inv(x: ArrayLike) -> Array:
    """Return the inverse error function of ``x``. Raises IllTyped for other dtypes than floats.

    >>> lax.erf_inv(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    value = as_value(x, "the operand of erf_inv")
    if not is_float(value.dtype):
        raise IllTyped("erf_inv takes floats", expected="a floating dtype", found=str(value.type))
    if current_trace() is None:
        return _erf_inv(value)
    return bind1(_call(value.type), value)
