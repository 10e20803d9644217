"""Elementwise predicates and logic."""

from __future__ import annotations

import numpy as np

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.axes import no_out
from effax.arrays.binding import bind1
from effax.arrays.conversion import as_value
from effax.arrays.shared_docs import OPERANDS, shared_docs
from effax.ir import prims as p
from effax.ir.dtypes import family, is_complex, is_float
from effax.ir.errors import IllTyped
from effax.ir.types import array_type
from effax.numpy import ufuncs as uf

__all__ = [
    "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "logical_not", "signbit",
]  # fmt: skip


def isfinite(x: ArrayLike, /) -> Array:
    """Return whether ``x`` is neither infinite nor nan.

    >>> jnp.isfinite(jnp.array([1.0, jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    dtype, weak = pr.inexact(*pr.operand_kind(x, "the operand of isfinite"))
    if is_complex(dtype):
        return uf.bitwise_and(isfinite(uf.real(x)), isfinite(uf.imag(x)))
    return bind1(p.IsFinite(), pr.typed(x, dtype, weak, "the operand of isfinite"))


def isnan(x: ArrayLike, /) -> Array:
    """Return whether ``x`` is nan.

    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    return uf.not_equal(x, x)


def isinf(x: ArrayLike, /) -> Array:
    """Return whether ``x`` is infinite, of either sign.

    >>> jnp.isinf(jnp.array([1.0, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    dtype, _ = pr.operand_kind(x, "the operand of isinf")
    if is_complex(dtype):
        return uf.bitwise_or(isinf(uf.real(x)), isinf(uf.imag(x)))
    return uf.equal(uf.absolute(x), float("inf")) if is_float(dtype) else isnan(x)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether ``x`` is positive infinity.

    Args:
        x: real array or scalar.
        out: unsupported.

    Returns:
        Boolean array of the shape of ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    no_out(out, "isposinf")
    return uf.equal(real_operand(x, "isposinf"), float("inf"))


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return whether ``x`` is negative infinity.

    Args:
        x: real array or scalar.
        out: unsupported.

    Returns:
        Boolean array of the shape of ``x``.

    Raises:
        IllTyped: ``x`` is complex.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    no_out(out, "isneginf")
    return uf.equal(real_operand(x, "isneginf"), float("-inf"))


def real_operand(x: ArrayLike, what: str) -> ArrayLike:
    """Return the operand. Raises IllTyped where it is complex."""
    dtype, _ = pr.operand_kind(x, f"the operand of {what}")
    if is_complex(dtype):
        raise IllTyped(f"{what} takes real operands", expected="real numbers", found=str(dtype))
    return x


def iscomplex(x: ArrayLike) -> Array:
    """Return whether the imaginary part of ``x`` is nonzero.

    >>> jnp.iscomplex(jnp.array([1j, 2.0]))
    Array([ True, False], dtype=bool)
    """
    return uf.not_equal(uf.imag(x), 0)


def isreal(x: ArrayLike) -> Array:
    """Return whether the imaginary part of ``x`` is zero.

    >>> jnp.isreal(jnp.array([1j, 2.0]))
    Array([False,  True], dtype=bool)
    """
    return uf.equal(uf.imag(x), 0)


def signbit(x: ArrayLike, /) -> Array:
    """Return whether the sign bit of ``x`` is set, as in negative numbers and -0.0.

    >>> jnp.signbit(jnp.array([-0.0, 1.0]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(real_operand(x, "signbit"), "the operand of signbit")
    if family(value.dtype) == "bool":
        return pr.to_shape(pr.literal(False, array_type((), bool)), value.shape)
    if not is_float(value.dtype):
        return uf.less(value, 0)
    bits = bind1(p.BitcastConvertType(np.dtype(f"i{value.dtype.itemsize}")), value)
    return uf.less(bits, 0)


def logical_not(x: ArrayLike, /) -> Array:
    """Return whether ``x`` is zero.

    >>> jnp.logical_not(jnp.array([0, 2]))
    Array([ True, False], dtype=bool)
    """
    return uf.invert(uf.truth(x))


@shared_docs(OPERANDS, "Boolean array of the broadcast shape.")
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether both operands are nonzero.

    >>> jnp.logical_and(jnp.array([0, 1]), True)
    Array([False,  True], dtype=bool)
    """
    return uf.bitwise_and(uf.truth(x1), uf.truth(x2))


@shared_docs(OPERANDS, "Boolean array of the broadcast shape.")
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether at least one operand is nonzero.

    >>> jnp.logical_or(jnp.array([0, 1]), False)
    Array([False,  True], dtype=bool)
    """
    return uf.bitwise_or(uf.truth(x1), uf.truth(x2))


@shared_docs(OPERANDS, "Boolean array of the broadcast shape.")
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return whether exactly one operand is nonzero.

    >>> jnp.logical_xor(jnp.array([0, 1]), True)
    Array([ True, False], dtype=bool)
    """
    return uf.bitwise_xor(uf.truth(x1), uf.truth(x2))
