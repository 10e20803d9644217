"""Lowering of factorisations of matrices to LAPACK routines, on CPU.

Each rule calls a routine on a batch of matrices, and normalizes its results as the evaluator does:
nan on failure, zeros in the other triangle, signs. The routines are part of jaxlib, so these rules
are for modules that run in this process; the rules of ``programs`` are portable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

from effax.ir import prims
from effax.ir.build import Builder
from effax.ir.dtypes import BOOL, INT32, complex_dtype, is_complex, real_dtype
from effax.ir.indexing import Indexer, Pick, Span
from effax.ir.primitive import Typing
from effax.ir.prims import Gather, Reshape, Slice
from effax.ir.prims import linalg as p
from effax.ir.syntax import Atom, Jaxpr
from effax.ir.types import ArrayType, Shape, Type, array_type
from effax.lazy.dataclasses import dataclass
from effax.lowering import ops, xla
from effax.lowering.custom_calls import custom_call
from effax.lowering.rules.linalg import programs
from effax.lowering.rules.linalg.programs import Expanded, nan_unless, types_of
from effax.lowering.writer import Val, Writer
from effax.transforms.rules.common import matrices as m
from effax.transforms.rules.common.pointwise import const, sub


@dataclass(frozen=True, slots=True)
class Routine(Expanded):
    """A call of a routine, whose first result may reuse the buffer of operand ``over``.

    Attributes:
        routine: the routine, without the letter of the dtype.
        options: ``(name, letter)`` pairs.
        outs: the types of its results.
        over: the position of the operand; None if no buffer is reused.
    """

    routine: str
    options: tuple[tuple[str, str], ...]
    outs: tuple[ArrayType, ...]
    over: int | None = 0
    name: ClassVar[str] = "routine"

    def typing(self, *ins: Type) -> Typing:
        return Typing(self.outs)


def routine(w: Writer, prim: Routine, ins: Sequence[Val]) -> Sequence[Val]:
    text = custom_call(
        xla.lapack_target(prim.routine, ins[0].type.dtype),
        [(x.name, x.type) for x in ins],
        prim.outs,
        [f"{name} = {ord(letter)} : ui8" for name, letter in prim.options],
        columns_first=len(ins[0].shape),
        in_place=None if prim.over is None else (prim.over, 0),
    )
    return w.op(text, *prim.outs)


def _info(x: ArrayType) -> ArrayType:
    """Return the type of the status: an integer per matrix, 0 on success."""
    return array_type(x.shape[:-2], INT32)


def _of(x: ArrayType, shape: Shape | None = None) -> ArrayType:
    """Return the strong type of the dtype, with the same shape or another."""
    return array_type(x.shape if shape is None else shape, x.dtype)


def _well(b: Builder, info: Atom) -> Atom:
    return b(prims.Eq(), info, const(0, info))


def cholesky(prim: p.Cholesky, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of Cholesky: nan on failure, zeros above the diagonal."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    if type_.size == 0:
        return b.finish([x])
    factor, info = b.emit(Routine("potrf", (("uplo", "L"),), (_of(type_), _info(type_))), [x])
    # The routine does not report nan as a failure; nan propagates to the last element.
    n = len(type_.shape)
    last = b(Slice((*[0] * (n - 2), *[type_.shape[-1] - 1] * 2), type_.shape), factor)
    corner = b(Reshape(type_.shape[:-2]), last)
    well = b(prims.And(), _well(b, info), b(prims.Eq(), corner, corner))
    return b.finish([nan_unless(b, well, m.below(b, factor))])


INDEX: Final = array_type((), INT32)

LETTERS: Final = {p.Op.PLAIN: "N", p.Op.TRANSPOSE: "T", p.Op.ADJOINT: "C"}


def triangular_solve(w: Writer, prim: p.TriangularSolve, ins: Sequence[Val]) -> Sequence[Val]:
    _, y = ins
    if y.type.size == 0:
        return (y,)
    options = (
        ("side", "L"),
        ("uplo", "L" if prim.lower else "U"),
        ("trans_x", LETTERS[prim.op]),
        ("diag", "U" if prim.unit_diagonal else "N"),
    )
    return routine(w, Routine("trsm", options, (_of(y.type),), 1), ins)


def lu(w: Writer, prim: p.Lu, ins: Sequence[Val]) -> Sequence[Val]:
    """Write LU: the routine's pivots, counted from 1, determine the permutation.

    A nan of a square matrix propagates along its column or row to the diagonal, where failure is
    detected.
    """
    (x,) = ins
    *batch, height, n = x.shape
    rows, still = (
        ops.iota(w, array_type((*batch, k), INT32), len(batch)) for k in (height, min(height, n))
    )
    if x.type.size == 0:
        return (x, ops.full(w, 0, still), rows)
    outs = (_of(x.type), still.type, _info(x.type))
    factors, pivots, _ = routine(w, Routine("getrf", (), outs), ins)
    pivots = ops.same(w, "subtract", pivots, ops.full(w, 1, pivots))
    order, well = _exchanges(w, pivots, rows, _diagonal(w, factors))
    if height != n:
        finite = ops.compare(w, "EQ", factors, factors)
        axes = [len(batch), len(batch) + 1]
        well = ops.reduce(w, "and", finite, w.constant(True, array_type((), BOOL)), axes)
    found = ((factors, ops.full(w, math.nan, factors)), (pivots, still), (order, rows))
    return [
        ops.select(w, ops.broadcast(w, well, y.shape, range(len(batch))), y, n) for y, n in found
    ]


def _diagonal(w: Writer, x: Val) -> Val:
    *batch, m, n = x.shape
    whole = [Span(0, size) for size in batch]
    places = ops.iota(w, array_type((min(m, n),), INT32), 0)
    return w.apply1(Gather(Indexer((*whole, Pick(None), Pick(None)))), x, places, places)


def _exchanges(w: Writer, pivots: Val, places: Val, diagonal: Val) -> tuple[Val, Val]:
    """Apply the exchanges of k and ``pivots[k]``, in order, to ``places``: ``0, 1, 2, ...``.

    Returns the permutation, and whether the diagonals have no nan: XLA compiles one small loop for
    both to one function.
    """
    *batch, n = pivots.shape
    first = w.constant(0, INDEX)
    edge = (*batch, 1)

    def at(k: Val) -> list[Val]:
        return [*[first] * len(batch), k]

    def again(k: Val, *_: Val) -> Sequence[Val]:
        return (ops.compare(w, "LT", k, w.constant(n, k.type)),)

    def step(k: Val, order: Val, well: Val) -> Sequence[Val]:
        pivot, here = (ops.dynamic_slice(w, v, at(k), edge) for v in (pivots, order))
        if batch:
            found = ops.compare(w, "EQ", places, _across(w, pivot, places.shape[-1]))
            there = _only(w, found, order)
            order = ops.select(w, found, _across(w, here, places.shape[-1]), order)
            order = ops.dynamic_update_slice(w, order, there, at(k))
        else:
            row = [ops.reshape(w, pivot, ())]
            there = ops.dynamic_slice(w, order, row, edge)
            order = ops.dynamic_update_slice(w, order, there, at(k))
            order = ops.dynamic_update_slice(w, order, here, row)
        entry = ops.dynamic_slice(w, diagonal, at(k), edge)
        well = ops.same(w, "and", well, ops.compare(w, "EQ", entry, entry))
        return ops.same(w, "add", k, w.constant(1, k.type)), order, well

    start = [first, places, w.constant(True, array_type(edge, BOOL))]
    _, order, well = ops.while_(w, start, again, step)
    return order, ops.reshape(w, well, tuple(batch))


def _across(w: Writer, x: Val, n: int) -> Val:
    """Broadcast the last axis, of size 1, to size n."""
    return ops.broadcast(w, x, (*x.shape[:-1], n), range(len(x.shape)))


def _only(w: Writer, found: Val, x: Val) -> Val:
    """Return the one element of each row at which ``found`` is true."""
    zero = ops.full(w, 0, x)
    kept = ops.select(w, found, x, zero)
    total = ops.reduce(w, "add", kept, w.constant(0, INDEX), [len(x.shape) - 1])
    return ops.reshape(w, total, (*x.shape[:-1], 1))


def reflections(w: Writer, prim: programs.Reflections, ins: Sequence[Val]) -> Sequence[Val]:
    return routine(w, Routine("geqrf", (), types_of(prim, ins)), ins)


def product(w: Writer, prim: programs.ProductOfReflections, ins: Sequence[Val]) -> Sequence[Val]:
    return routine(w, Routine("orgqr", (), types_of(prim, ins)), ins)


def eigh(prim: p.Eigh, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of Eigh: nan on failure; signs of real vectors as in the evaluator."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    values = array_type(type_.shape[:-1], real_dtype(type_.dtype))
    if type_.size == 0:
        return b.finish([programs.zeros(b, values), programs.zeros(b, _of(type_))])
    options = (("mode", "V"), ("uplo", "L"))
    v, w, info = b.emit(Routine("syevd", options, (_of(type_), values, _info(type_))), [x])
    v_, w_ = (nan_unless(b, _well(b, info), x) for x in (v, w))
    real = not is_complex(type_.dtype)
    return b.finish([w_, programs.flipped(b, v_, programs.signs(b, v_)) if real else v_])


def eig(prim: p.Eig, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of Eig: nan on failure; phases of vectors as in the evaluator."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    values, wide = array_type(type_.shape[:-1], type_.dtype), complex_dtype(type_.dtype)
    if type_.size == 0:
        return b.finish([programs.zeros(b, t) for t in prim.typing(*types).outs])
    parts = 1 if is_complex(type_.dtype) else 2
    outs = (*[values] * parts, *[array_type(type_.shape, wide)] * 2, _info(type_))
    asked = (("compute_left", "NV"[prim.left]), ("compute_right", "NV"[prim.right]))
    *found, left, right, info = b.emit(Routine("geev", asked, outs, None), [x])
    w = found[0] if parts == 1 else b(prims.Complex(), *found)
    vectors = [v for v, wanted in ((left, prim.left), (right, prim.right)) if wanted]
    turned = [programs.flipped(b, v, programs.phases(b, v)) for v in vectors]
    return b.finish([nan_unless(b, _well(b, info), y) for y in (w, *turned)])


def schur(prim: p.Schur, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of Schur's form: nan on failure, and of matrices that are not finite."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    values = array_type(type_.shape[:-1], type_.dtype)
    if type_.size == 0:
        return b.finish([programs.zeros(b, t) for t in prim.typing(*types).outs])
    parts = 1 if is_complex(type_.dtype) else 2
    outs = (*[_of(type_)] * 2, *[values] * parts, *[_info(type_)] * 2)
    asked = (("mode", "NV"[prim.vectors]), ("sort", "N"))
    t, q, *_, info = b.emit(Routine("gees", asked, outs), [x])
    finite = programs.has_no_nan(b, sub(b, x, x), 2)
    well = b(prims.And(), _well(b, info), finite)
    return b.finish([nan_unless(b, well, y) for y in (t, q)[: 1 + prim.vectors]])


def svd(prim: p.Svd, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Return the program of the SVD: nan on failure; signs of real vectors as in the evaluator."""
    (type_,) = types
    b = Builder(types)
    (x,) = b.binders
    *batch, rows, columns = type_.shape
    k = min(rows, columns)
    s_type = array_type((*batch, k), real_dtype(type_.dtype))
    u_type, vh_type = _of(type_, (*batch, rows, k)), _of(type_, (*batch, k, columns))
    if type_.size == 0:
        return b.finish([programs.zeros(b, t) for t in prim.typing(*types).outs])
    outs = (_of(type_), s_type, u_type, vh_type, _info(type_))
    mode = "S" if prim.vectors else "N"
    _, *found, info = b.emit(Routine("gesdd", (("mode", mode),), outs), [x])
    well = _well(b, info)
    s, u, vh = [nan_unless(b, well, part) for part in found]
    if not prim.vectors:
        return b.finish([s])
    if not is_complex(type_.dtype):
        v = m.swapped(b, vh)
        flips = programs.signs(b, v)
        u, vh = programs.flipped(b, u, flips), m.swapped(b, programs.flipped(b, v, flips))
    return b.finish([u, s, vh])
