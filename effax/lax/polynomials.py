"""Elementary functions that are no primitives: polynomials, ``1 - x²``, the base-2 logarithm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from effax.arrays import creation
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import static_int
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value, is_python_scalar
from effax.arrays.joining import stack
from effax.arrays.shapes import broadcast_arrays
from effax.ir import prims as p
from effax.ir.dtypes import is_complex
from effax.lax import elementwise as el
from effax.lax.control import scan
from effax.lax.precision import Accuracy

__all__ = ["log2", "one_minus_square", "polynomial"]


def log2(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Return the base-2 logarithm of ``x``.

    Args:
        x: inexact array or scalar.
        accuracy: a ``Tolerance`` or an ``AccuracyMode``, which select no other implementation.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        IllTyped: ``x`` has no inexact dtype.

    >>> lax.log2(jnp.array([8.0]))
    Array([3.], dtype=float32)
    """
    natural = el.log(x, accuracy=accuracy)
    if not is_complex(natural.dtype):
        return el.div(natural, math.log(2))
    # By parts: one of them may be infinite.
    return el.complex(*(el.div(part, math.log(2)) for part in (el.real(natural), el.imag(natural))))


def one_minus_square(x: ArrayLike) -> Array:
    """Return ``1 - x²``, accurate near 1 as ``(1 + x)(1 - x)``, with the derivative ``-2x``.

    Args:
        x: inexact array or scalar.

    Returns:
        Array of the shape and dtype of ``x``.

    Raises:
        IllTyped: ``x`` has no inexact dtype.

    >>> lax.one_minus_square(jnp.array([0.5]))
    Array([0.75], dtype=float32)
    """
    product = el.mul(el.add(x, 1.0), el.sub(1.0, x))
    return bind1(p.StraightThrough(), product, el.sub(1.0, el.square(x)))


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Return ``coeffs[0] + coeffs[1]·x + coeffs[2]·x² + ...``, by Horner's rule.

    Args:
        x: array or scalar.
        coeffs: scalars or arrays that broadcast with ``x``, converted to its dtype.
        unroll: most terms that are written as operations, 64 by default; of more, as a loop.

    Returns:
        Array of the common shape, dtype of ``x``; zeros without coefficients.

    Raises:
        IllTyped: shapes do not broadcast.

    >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    value = as_value(x, "the operand of polynomial")
    most = 64 if unroll is None else static_int(unroll, "unroll of polynomial")
    terms = [c if is_python_scalar(c) else el.convert_element_type(c, value.dtype) for c in coeffs]
    if not terms:
        return creation.zeros_like(value)
    if len(terms) > max(most, 1):
        value, *columns = broadcast_arrays(value, *[as_value(c, "a coefficient") for c in terms])
        rows = stack([el.convert_element_type(c, value.dtype) for c in columns[::-1]])
        return scan(lambda y, c: (el.add(el.mul(y, value), c), None), rows[0], rows[1:])[0]
    total = el.add(creation.zeros_like(value), terms[-1])
    for c in reversed(terms[:-1]):
        total = el.add(el.mul(value, total), c)
    return total
