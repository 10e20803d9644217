"""Apply a primitive to values of every magnitude.

Random values are between -2 and 2, integers between -2 and 4. Programs move them by exact
multiplication with powers of two; so a report shows the values in its program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf, isfinite
from typing import Final, NamedTuple

from effax.ir.build import Builder, lit
from effax.ir.dtypes import DType, family, int_bounds, is_inexact_dtype
from effax.ir.errors import BadArgument
from effax.ir.primitive import Primitive
from effax.ir.prims import Abs, Add, Div, Max, Min, Mul, Neg, RoundEven, StopGradient, Sub
from effax.ir.syntax import Atom, Jaxpr, Scalar, Var
from effax.ir.types import ArrayType, Type
from effax.testing.generate.values import greatest

Interval = tuple[float, float]
Move = Callable[[Builder, Var], Atom]
"""Append equations that move a random value."""

LIMIT: Final = 1024.0
"""The greatest magnitude of values."""


class AtMagnitude(NamedTuple):
    """A primitive at values of some magnitude.

    Attributes:
        where: the values, in words.
        jaxpr: the program.
        smooth: whether derivatives are tried at them.
        together: whether all arguments have them.
    """

    where: str
    jaxpr: Jaxpr
    smooth: bool
    together: bool


def interval_of(entry: object, index: int, type_: Type) -> Interval | None:
    """Return an entry of ``domain``, with infinite ends replaced by finite ones.

    Raises:
        BadArgument: it is no interval, or the argument has no domain.
    """
    if entry is None:
        return None
    if (
        not isinstance(entry, tuple | list)
        or len(entry) != 2
        or not all(isinstance(x, int | float) for x in entry)
        or not entry[0] < entry[1]
    ):
        raise BadArgument(
            f"the domain of argument {index} is no interval",
            expected="None, or (low, high) with low < high",
            found=repr(entry),
        )
    if not isinstance(type_, ArrayType) or family(type_.dtype) not in ("int", "uint", "float"):
        raise BadArgument(
            f"argument {index} has no domain",
            expected="None for an argument that is no array of real numbers",
            found=f"{entry!r} for {type_}",
        )
    low, high = (float(x) for x in entry)
    low = low if isfinite(low) else min(-LIMIT, high - LIMIT)
    return low, high if isfinite(high) else max(LIMIT, low + LIMIT)


def inside(b: Builder, v: Var, interval: Interval | None) -> Atom:
    """Move a value into an interval, if there is one."""
    if interval is None or not isinstance(v.type, ArrayType):
        return v
    low, high = interval
    if not is_inexact_dtype(v.type.dtype):
        return _clamped(b, v, interval)
    return _line(b, v, (low + high) / 2, (high - low) / 4)


def places(
    prim: Primitive,
    types: Sequence[Type],
    domain: Sequence[Interval | None],
    numbers: Sequence[float] = (),
) -> Iterator[AtMagnitude]:
    """Yield programs of the primitive at small and large values, zeros, infinities and nan.

    The values are those of all arguments together, and of each of a few arguments alone. Values at
    and near ``numbers`` follow.
    """
    seen: set[Jaxpr] = set()
    several = [*_moves(types, domain), *_at_numbers(types, domain, numbers)]
    for where, moves, together in several:
        jaxpr = _moved(prim, types, domain, moves)
        if jaxpr not in seen:
            seen.add(jaxpr)
            yield AtMagnitude(where, jaxpr, not where.endswith(_NO_DERIVATIVES), together)


Moves = Sequence[Move | None]

_NO_DERIVATIVES: Final = ("infinities", "nan", "half-integers")
"""Values at which functions are not differentiated: roundings jump at half-integers."""

_APART: Final = ("magnitudes up to 1024", "zeros", "infinities")
"""The values that one argument has while the others are moderate."""


def _moves(
    types: Sequence[Type], domain: Sequence[Interval | None]
) -> Iterator[tuple[str, Moves, bool]]:
    each = [_of_argument(t, i) for t, i in zip(types, domain, strict=True)]
    may_move = [i for i, own in enumerate(each) if own]
    for name in dict.fromkeys(name for own in each for name in own):
        moves = [own.get(name) for own in each]
        yield name, moves, True
        if name in _APART and 1 < len(may_move) < 4:
            for i in may_move:
                alone = [m if j == i else None for j, m in enumerate(moves)]
                yield f"argument {i} at {name}", alone, False


def _at_numbers(
    types: Sequence[Type], domain: Sequence[Interval | None], numbers: Sequence[float]
) -> Iterator[tuple[str, Moves, bool]]:
    for number in numbers:
        near = max(abs(number), 1.0) * 2.0**-10
        may = [_may_be(t, interval, number) for t, interval in zip(types, domain, strict=True)]
        if any(may):
            at: Move = partial(_at, number=number)
            yield f"the number {number:g}", [at if has else None for has in may], False
            around: Move = partial(_at, number=number, by=near)
            # In a narrow dtype, they round to the number, or to its other side.
            narrow = [has and t.dtype.itemsize < 4 for t, has in zip(types, may, strict=True)]
            if not any(narrow):
                yield f"numbers near {number:g}", [around if has else None for has in may], False


def _may_be(type_: Type, interval: Interval | None, number: float) -> bool:
    """Return whether an argument of floats may have a number, and those near it."""
    if not isinstance(type_, ArrayType) or family(type_.dtype) != "float":
        return False
    low, high = interval or (-inf, inf)
    near = max(abs(number), 1.0) * 2.0**-8
    return low + near < number < high - near


def _of_argument(type_: Type, interval: Interval | None) -> dict[str, Move]:
    if not isinstance(type_, ArrayType):
        return {}
    kind, dtype = family(type_.dtype), type_.dtype
    if kind in ("int", "uint"):
        return _of_integers(dtype, interval)
    if kind not in ("float", "complex"):
        return {}
    if interval is not None:
        return _of_interval(interval)
    scaled: dict[str, Move] = {
        "magnitudes up to 2⁻⁹": _tiny,
        "magnitudes up to 16": partial(_times, by=8.0),
        "magnitudes up to 1024": partial(_times, by=512.0),
        "zeros": _zero,
        "zeros of the other sign": lambda b, v: b(Neg(), _zero(b, v)),
        "ones": lambda b, v: b(Add(), _zero(b, v), _lit(v, 1.0)),
        "minus ones": lambda b, v: b(Sub(), _zero(b, v), _lit(v, 1.0)),
    }
    if greatest(dtype) < LIMIT**3:
        # Squares of such values overflow.
        del scaled["magnitudes up to 1024"]
    if dtype.itemsize == 1:
        del scaled["magnitudes up to 2⁻⁹"]
    if kind == "complex":
        return scaled
    return scaled | {"infinities": _infinite, "nan": _nan, "half-integers": _half}


def _of_integers(dtype: DType, interval: Interval | None) -> dict[str, Move]:
    greatest_one = int_bounds(dtype)[1]
    if interval is not None or greatest_one < 127:
        return {}
    # Products with a quarter of the range wrap around to its ends.
    quarter = 1 << greatest_one.bit_length() - 1
    ends: dict[str, Move] = {
        "quarters of the range": partial(_times, by=quarter),
        "one below these": lambda b, v: b(Sub(), _times(b, v, quarter), _lit(v, 1)),
    }
    if greatest_one < LIMIT:
        return {"magnitudes up to 124": partial(_times, by=31), **ends}
    return {"magnitudes up to 1024": partial(_times, by=256), **ends}


def _of_interval(interval: Interval) -> dict[str, Move]:
    """Return moves to both ends, and to zero if it is inside."""
    low, high = interval
    near = (high - low) / 2.0**12
    moves: dict[str, Move] = {
        "near the lower end": partial(_line, middle=low + 2 * near, by=near),
        "near the upper end": partial(_line, middle=high - 2 * near, by=near),
    }
    if low < 0.0 < high:
        moves["zeros"] = _zero
    return moves


def _moved(
    prim: Primitive, types: Sequence[Type], domain: Sequence[Interval | None], moves: Moves
) -> Jaxpr:
    b = Builder(types)
    ins = [
        inside(b, v, interval) if move is None else move(b, v)
        for v, interval, move in zip(b.binders, domain, moves, strict=True)
    ]
    return b.finish(b.emit(prim, ins))


def _lit(v: Atom, value: Scalar) -> Atom:
    assert isinstance(v.type, ArrayType)
    return lit(value, v.type.update(shape=()))


def _times(b: Builder, v: Var, by: Scalar) -> Atom:
    return b(Mul(), v, _lit(v, by))


def _line(b: Builder, v: Var, middle: float, by: float) -> Atom:
    """Return ``middle + by·x``, for x between -2 and 2."""
    return b(Add(), b(Mul(), v, _lit(v, by)), _lit(v, middle))


def _clamped(b: Builder, v: Var, interval: Interval) -> Atom:
    low, high = (int(x) for x in interval)
    return b(Min(), b(Max(), v, _lit(v, low)), _lit(v, high))


def _zero(b: Builder, v: Var) -> Atom:
    """Return ``x - stop(x)``: zeros with the tangents of x."""
    return b(Sub(), v, b(StopGradient(), v))


def _tiny(b: Builder, v: Var) -> Atom:
    """Return ``2⁻¹⁰·x + (x - stop(x))``: small values with tangents that are not small."""
    return b(Add(), _times(b, v, 2.0**-10), _zero(b, v))


def _at(b: Builder, v: Var, number: float, by: float = 0.0) -> Atom:
    """Return ``number + by·x`` with the tangents of x, and one more ``by``."""
    moved = b(Add(), _zero(b, v), _lit(v, number))
    return b(Add(), moved, _times(b, v, by)) if by else moved


def _infinite(b: Builder, v: Var) -> Atom:
    """Return ``x/(1 - |round(x)|)``: infinite where ``1/2 < |x| < 3/2``, else ±x."""
    divisor = b(Sub(), _lit(v, 1.0), b(Abs(), b(RoundEven(), v)))
    return b(Div(), v, divisor)


def _half(b: Builder, v: Var) -> Atom:
    """Return ``round(x) + 1/2``."""
    return b(Add(), b(RoundEven(), v), _lit(v, 0.5))


def _nan(b: Builder, v: Var) -> Atom:
    """Return ``u - u + x`` for infinities u."""
    u = _infinite(b, v)
    return b(Add(), b(Sub(), u, u), v)
