"""The order of complex numbers: by real parts, then by imaginary ones, as NumPy's.

Primitives compare real numbers only. Nan is neither less nor greater than anything, and the
extreme element of numbers one of which has a nan part is the first such number.
"""

from __future__ import annotations

from math import prod
from typing import Final

from effax.arrays import promotion as pr
from effax.arrays.array import Array
from effax.arrays.binding import bind1
from effax.arrays.shapes import broadcast_to, expand_dims, moveaxis, reshape
from effax.ir import prims as p
from effax.ir.dtypes import DType, as_dtype, is_complex
from effax.ir.primitive import Primitive
from effax.ir.prims.reduce import greatest, lowest
from effax.ir.syntax import Lit
from effax.ir.types import array_type

Operand = Array | Lit


def compared(prim: Primitive, x: Operand, y: Operand) -> Array:
    """Apply a comparison, ``Max`` or ``Min``, to complex numbers too."""
    if not is_complex(x.type.dtype) or x.type.dtype != y.type.dtype:
        return bind1(prim, x, y)
    match prim:
        case p.Gt() | p.Ge():
            return _before(p.Lt() if isinstance(prim, p.Gt) else p.Le(), y, x)
        case p.Max():
            kept = _before(p.Le(), y, x)
        case p.Min():
            kept = _before(p.Le(), x, y)
        case _:
            return _before(prim, x, y)
    return bind1(p.SelectN(), _or(kept, _nan(x)), y, x)


def position(x: Array, axis: int, largest: bool, index: DType) -> Array:
    """Return the position of the first extreme element along an axis."""
    extreme = p.Argmax(axis, index) if largest else p.Argmin(axis, index)
    if not is_complex(x.dtype):
        return bind1(extreme, x)
    re, im, missing = bind1(p.Real(), x), bind1(p.Imag(), x), _nan(x)
    first = _equal_extreme(re, axis, largest)
    worst = (lowest if largest else greatest)(re.dtype)
    among = bind1(p.SelectN(), first, _scalar(worst, re.dtype), im)
    best = _and(first, _equal_extreme(among, axis, largest))
    some = broadcast_to(expand_dims(bind1(p.ReduceOr((axis,)), missing), axis), x.shape)
    return bind1(p.Argmax(axis, index), bind1(p.SelectN(), some, best, missing))


def extreme(x: Array, axes: tuple[int, ...], largest: bool) -> Array:
    """Return the extreme elements along axes; of no elements, the neutral one."""
    if not is_complex(x.dtype):
        return bind1(p.ReduceMax(axes) if largest else p.ReduceMin(axes), x)
    front = moveaxis(x, axes, tuple(range(len(axes))))
    rest = front.shape[len(axes) :]
    rows = reshape(front, (prod(front.shape[: len(axes)]), *rest))
    if not rows.shape[0]:
        neutral = (lowest if largest else greatest)(x.dtype)
        return pr.to_shape(_scalar(neutral, x.dtype), rest)
    at = broadcast_to(expand_dims(position(rows, 0, largest, _INDEX), 0), rows.shape)
    here = bind1(p.Eq(), bind1(p.Iota(_INDEX, rows.shape, 0)), at)
    return bind1(p.ReduceSum((0,)), bind1(p.SelectN(), here, _scalar(0, x.dtype), rows))


_INDEX: Final = as_dtype("int32")


def _before(prim: Primitive, x: Operand, y: Operand) -> Array:
    """Compare real parts, and where they are equal imaginary ones by ``prim``, ``Lt`` or ``Le``."""
    (a, b), (c, d) = ((bind1(p.Real(), z), bind1(p.Imag(), z)) for z in (x, y))
    known = bind1(p.Not(), _or(bind1(p.Ne(), b, b), bind1(p.Ne(), d, d)))
    return _or(_and(bind1(p.Lt(), a, c), known), _and(bind1(p.Eq(), a, c), bind1(prim, b, d)))


def _equal_extreme(x: Array, axis: int, largest: bool) -> Array:
    top = bind1(p.ReduceMax((axis,)) if largest else p.ReduceMin((axis,)), x)
    return bind1(p.Eq(), x, broadcast_to(expand_dims(top, axis), x.shape))


def _scalar(value: float, dtype: DType) -> Lit:
    return pr.literal(value, array_type((), dtype))


def _nan(x: Operand) -> Array:
    return bind1(p.Ne(), x, x)


def _or(x: Array, y: Array) -> Array:
    return bind1(p.Or(), x, y)


def _and(x: Array, y: Array) -> Array:
    return bind1(p.And(), x, y)
