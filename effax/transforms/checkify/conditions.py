"""The conditions under which an equation fails: a nan, a division by zero, an index out of bounds.

An equation that only moves values generates no nan; one that calls Python does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Final, NamedTuple

from effax.ir import prims as p
from effax.ir.build import Builder, lit
from effax.ir.dtypes import INT32, family, is_inexact_dtype
from effax.ir.errors import CheckError, DivisionByZeroError, FailedCheckError, NaNError, OOBError
from effax.ir.indexing import Indexer, Pick, Span, is_dynamic, pick_shape
from effax.ir.symbolic import is_symbolic_dim
from effax.ir.syntax import Atom, Eqn, Lit
from effax.ir.types import ArrayType, Shape, array_type
from effax.transforms.rules.common.arrays import reshaped

Errors = frozenset[type[CheckError]]
"""The classes of the errors that are enabled."""

USER: Final[Errors] = frozenset({FailedCheckError})
NAN: Final[Errors] = frozenset({NaNError})
DIVISION: Final[Errors] = frozenset({DivisionByZeroError})
INDEX: Final[Errors] = frozenset({OOBError})
AUTOMATIC: Final[Errors] = NAN | DIVISION | INDEX
ALL: Final[Errors] = USER | AUTOMATIC


class Tested(NamedTuple):
    """A boolean scalar, true for a failure, and the arrays of its message."""

    has_failed: Atom
    payload: Sequence[Atom]


class FailureCondition(NamedTuple):
    """A failure of an equation.

    Attributes:
        failure: the failure.
        of_results: whether it is that of the results; otherwise, of the operands.
        emit: appends its test on the operands and results of the equation.
    """

    failure: p.Failure
    of_results: bool
    emit: Callable[[Builder, Sequence[Atom], Sequence[Atom]], Tested]


MOVES: Final = (
    p.Name, p.OptimizationBarrier, p.SelectN, p.Sort, p.TopK, p.ConvertElementType, p.StopGradient,
    p.StraightThrough, p.Copy, p.BitcastConvertType, p.Real, p.Imag, p.Complex, p.PureCallback,
    p.IoCallback, p.Pvary, p.AllGather, p.AllGatherInvariant, p.AllToAll, p.PPermute, p.Clamp,
    p.Scatter, p.DynamicUpdateSlice,
)  # fmt: skip
"""Primitives whose results have a nan only if an operand has one, or that call Python."""


def conditions_of(eqn: Eqn, errors: Errors) -> list[FailureCondition]:
    """Return the conditions of an equation that has no subjaxprs, in order."""
    place = None if eqn.source is None else str(eqn.source)
    found: list[FailureCondition] = []
    if DivisionByZeroError in errors and isinstance(eqn.prim, p.Div | p.Rem):
        found.append(FailureCondition(p.DivisionFailure(place), False, _has_zero_divisor))
    if OOBError in errors:
        found += _bounds(eqn, place)
    if NaNError in errors and computes(eqn):
        found.append(FailureCondition(p.NanFailure(eqn.prim.name, place), True, _has_nan))
    return found


def computes(eqn: Eqn) -> bool:
    """Return whether an equation computes floats: a nan among its results is new."""
    prim = eqn.prim
    if isinstance(prim, MOVES) or prim.is_view or not prim.flops_per_element or eqn.effects.refs:
        return False
    return any(map(_is_inexact, eqn.outs))


def _is_inexact(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and is_inexact_dtype(atom.type.dtype)


def is_any(b: Builder, flags: Atom) -> Atom:
    """Return whether an element is true, as a scalar."""
    return b(p.ReduceOr(tuple(range(len(flags.type.shape)))), flags) if flags.type.shape else flags


def _has_nan(b: Builder, ins: Sequence[Atom], outs: Sequence[Atom]) -> Tested:
    # x != x holds for nan alone.
    flags = [is_any(b, b(p.Ne(), x, x)) for x in outs if _is_inexact(x)]
    found = flags[0]
    for flag in flags[1:]:
        found = b(p.Or(), found, flag)
    return Tested(found, ())


def _has_zero_divisor(b: Builder, ins: Sequence[Atom], outs: Sequence[Atom]) -> Tested:
    divisor = ins[1]
    return Tested(is_any(b, b(p.Eq(), divisor, lit(0, divisor.type))), ())


class Bound(NamedTuple):
    """An axis with a dynamic index, which must be at least ``low`` and at most ``high``."""

    axis: int
    size: int
    low: int
    high: int


INDEXED: Final = (p.Gather, p.Scatter, p.Combining, p.Get, p.Swap, p.AddUpdate)
"""Primitives with an indexer of their first operand, whose dynamic parts are the last operands."""


def _bounds(eqn: Eqn, place: str | None) -> list[FailureCondition]:
    """Return the condition that all dynamic indices are inside of the bounds."""
    prim, shape = eqn.prim, eqn.ins[0].type.shape if eqn.ins else ()
    bounds: list[Bound] = []
    if isinstance(prim, p.DynamicSlice | p.DynamicUpdateSlice):
        part = eqn.outs[0] if isinstance(prim, p.DynamicSlice) else eqn.ins[1]
        sizes = zip(shape, part.type.shape, strict=True)
        bounds = [Bound(i, n, 0, n - k) for i, (n, k) in enumerate(sizes)]
    elif isinstance(prim, INDEXED):
        bounds = _indexed_bounds(prim.indexer, shape)
    indices = eqn.ins[len(eqn.ins) - len(bounds) :]
    if not bounds or 0 in pick_shape([x.type.shape for x in indices]):
        return []
    if any(map(is_symbolic_dim, shape)):
        return []
    test = partial(_is_outside, tuple(bounds))
    return [FailureCondition(p.IndexFailure(shape, place), False, test)]


def _indexed_bounds(indexer: Indexer, shape: Shape) -> list[Bound]:
    """Return the bounds of the dynamic parts of an indexer of an array of this shape."""
    found: list[Bound] = []
    for axis, (dim, size) in enumerate(zip(indexer.dims, shape, strict=True)):
        if is_dynamic(dim):
            reach = (dim.size - 1) * dim.step if isinstance(dim, Span) and dim.size else 0
            low = -size if isinstance(dim, Pick) and dim.wraps else max(0, -reach)
            found.append(Bound(axis, size, low, size - 1 - max(0, reach)))
    return found


def _is_outside(
    bounds: Sequence[Bound], b: Builder, ins: Sequence[Atom], outs: Sequence[Atom]
) -> Tested:
    """Find the first index out of bounds: by position among the picks, then by axis."""
    indices = ins[len(ins) - len(bounds) :]
    shape = pick_shape([x.type.shape for x in indices])
    flags = [_outside(b, x, bound) for x, bound in zip(indices, bounds, strict=True)]
    if shape == () and len(bounds) == 1:
        return Tested(flags[0], [_message(b, indices[0], *_literals(bounds[0]))])
    flat = _stacked(b, flags, shape)
    at = b(p.Argmax(0, INT32), flat)
    column = b(p.Rem(), at, lit(len(bounds), at.type))
    values = [b(p.ConvertElementType(INT32), x) for x in indices]
    index = element(b, _stacked(b, values, shape), at)
    axes, sizes = zip(*map(_literals, bounds), strict=True)
    axis, size = _chosen(b, column, axes), _chosen(b, column, sizes)
    return Tested(is_any(b, flat), [_message(b, index, axis, size)])


def _message(b: Builder, index: Atom, axis: Atom, size: Atom) -> Atom:
    return _stacked(b, [b(p.ConvertElementType(INT32), index), axis, size], ())


def _literals(bound: Bound) -> tuple[Lit, Lit]:
    int32 = array_type((), INT32)
    return lit(bound.axis, int32), lit(bound.size, int32)


def _outside(b: Builder, x: Atom, bound: Bound) -> Atom:
    if x.type.dtype.itemsize < 4:
        # A narrow dtype may lack the size of the axis.
        x = b(p.ConvertElementType(INT32), x)
    above = b(p.Ge(), x, lit(bound.high + 1, x.type))
    return above if family(x.type.dtype) == "uint" else b(p.Or(), above, _below(b, x, bound))


def _below(b: Builder, x: Atom, bound: Bound) -> Atom:
    return b(p.Lt(), x, lit(bound.low, x.type))


def _stacked(b: Builder, values: Sequence[Atom], shape: Shape) -> Atom:
    """Return the values, broadcast to a shape and stacked along a last axis, as a vector."""
    columns: list[Atom] = []
    for x in values:
        axes = tuple(range(len(shape) - len(x.type.shape), len(shape)))
        columns.append(b(p.BroadcastInDim((*shape, 1), axes), x))
    joined = columns[0] if len(columns) == 1 else b(p.Concatenate(len(shape)), *columns)
    return reshaped(b, joined, (prod(shape) * len(values),))


def element(b: Builder, x: Atom, at: Atom) -> Atom:
    """Return the element of an array at a dynamic position along its first axis."""
    rest = [Span(0, n) for n in x.type.shape[1:]]
    return b(p.Gather(Indexer((Pick(None), *rest))), x, at)


def _chosen(b: Builder, column: Atom, choices: Sequence[Lit]) -> Atom:
    return choices[0] if len(choices) == 1 else b(p.SelectN(), column, *choices)
