"""Elementwise functions whose derivatives are formulas, not those of their computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from effax.arrays import promotion as pr
from effax.arrays.array import Array, ArrayLike
from effax.arrays.binding import bind1, program_of
from effax.arrays.conversion import as_value
from effax.arrays.shapes import broadcast_to
from effax.ir.dtypes import is_complex
from effax.ir.errors import IllTyped
from effax.ir.prims import CustomJvp, ForwardRule, SparseJvp
from effax.ir.state import cached
from effax.ir.trace import current_trace
from effax.ir.types import ArrayType, tangent_type
from effax.numpy import ufuncs as uf

Formula = Callable[..., Array]


def floats(what: str, *xs: ArrayLike) -> list[Array]:
    """Return the operands in one floating dtype and one shape. Raises IllTyped for complex ones."""
    values = numbers(what, *xs)
    if is_complex(values[0].dtype):
        raise IllTyped(f"{what} takes real operands", "real numbers", str(values[0].dtype))
    return values


def numbers(what: str, *xs: ArrayLike) -> list[Array]:
    """Return the operands in one inexact dtype and one shape."""
    dtype, weak = pr.inexact(*pr.common_dtype(xs, what))
    values = [pr.converted(as_value(x, f"an operand of {what}"), dtype, weak) for x in xs]
    shape = pr.broadcast_shapes([x.shape for x in values], what)
    return [broadcast_to(x, shape) for x in values]


@dataclass(frozen=True)
class Differentiated:
    """A function of arrays of one dtype and shape, with its partial derivatives.

    Attributes:
        function: function of the operands.
        slopes: for each operand, function of the result and the operands.
        name: name of the call in programs.
    """

    function: Formula
    slopes: tuple[Formula, ...]
    name: str

    def __call__(self, *xs: Array) -> Array:
        if current_trace() is None:
            return self.function(*xs)
        return bind1(_call(self, tuple([x.type for x in xs])), *xs)


def slopes(*formulas: Formula) -> Callable[[Formula], Differentiated]:
    """Return a decorator that sets the partial derivatives of a function of arrays."""

    def decorated(function: Formula) -> Differentiated:
        return Differentiated(function, formulas, function.__name__.strip("_"))

    return decorated


@cached(maxsize=1 << 10)
def _call(f: Differentiated, types: tuple[ArrayType, ...]) -> CustomJvp:
    program = program_of(lambda *xs: [f.function(*xs)], f.name, *types)
    return CustomJvp(program, SlopeRule(f, types, f.name), 0, f.name)


@dataclass(frozen=True)
class SlopeRule(ForwardRule):
    """The forward rule of a function with partial derivatives.

    An operand without a tangent adds nothing, even where its slope is not finite.
    """

    f: Differentiated
    types: tuple[ArrayType, ...]
    label: str

    def __call__(self, given: tuple[bool, ...], /) -> SparseJvp:
        n = len(self.types)
        moved = [slope for slope, has in zip(self.f.slopes, given, strict=True) if has]
        dots = [tangent_type(t) for t, has in zip(self.types, given, strict=True) if has]

        def both(*args: Array) -> list[Array]:
            xs = args[:n]
            y = self.f(*xs)
            parts = [uf.multiply(d, s(y, *xs)) for d, s in zip(args[n:], moved, strict=True)]
            return [y, *_total(parts)]

        program = program_of(both, self.f.name, *self.types, *dots)
        return SparseJvp(program, (bool(dots),))


def _total(parts: Sequence[Array]) -> list[Array]:
    total = list(parts[:1])
    for part in parts[1:]:
        total = [uf.add(total[0], part)]
    return total
